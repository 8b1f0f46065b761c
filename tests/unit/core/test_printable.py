"""Text from outside in errors, logs and on the terminal: no forged lines, no escape sequences."""

import io
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from seedbed.core.errors import SeedbedError
from seedbed.core.printable import Lines, one_line
from seedbed.core.script import Terminal

ROOT = Path(__file__).parents[3]
FORGED = "2026-01-01 00:00:00,000 ERROR   forged"
HOSTILE = f"name\n{FORGED}\r\x1b[31m\x9b2J\u2028{FORGED}\u202e\u2066\ud800"
SHOWN = rf"name\n{FORGED}\r\x1b[31m\x9b2J\u2028{FORGED}\u202e\u2066\ud800"


def test_text_that_is_harmless_stays_as_it_is():
    text = "très «satisfait» 中文 العربية می‌خواهم 👩‍👩‍👧 ▁mot \\n"
    assert one_line(text) == text
    assert one_line(one_line(HOSTILE)) == SHOWN


@pytest.mark.parametrize("part", ["what", "where", "found", "hint"])
def test_each_part_of_an_error_is_one_line(part):
    parts = {"what": "a fault", "where": "file", "found": "this", "hint": "that"} | {part: HOSTILE}
    error = SeedbedError(parts.pop("what"), **parts)
    assert getattr(error, part) == SHOWN
    assert len(str(error).splitlines()) == 4
    assert SHOWN in str(error)


def test_a_part_of_absurd_length_is_cut():
    error = SeedbedError("a fault", where="x" * 10**6, found=["y" * 10**6])
    assert len(str(error)) < 7000
    assert "letters left out" in error.where


def test_an_exception_as_what_was_found_is_one_line():
    assert str(SeedbedError("a fault", found=ValueError(HOSTILE))) == f"a fault\n  found: {SHOWN}"


def test_lines_of_our_own_stay_and_what_stands_in_them_is_printable():
    found = Lines("\n    first\n    \x1b[1msecond")
    assert str(SeedbedError("a fault", found=found)) == "a fault\n  found: \n    first\n    \\x1b[1msecond"


def test_records_are_printable_whoever_handles_them(caplog):
    log = logging.getLogger("seedbed.somewhere")
    with caplog.at_level(logging.INFO):
        log.info("%s: %d of %.1f, %s, %s", HOSTILE, 3, 0.5, None, Path(HOSTILE.replace("\ud800", "")))
        log.error("%s", SeedbedError("a fault", found=HOSTILE))
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith(f"{SHOWN}: 3 of 0.5, None, name\\n")
    assert "\n" not in first
    assert second == f"a fault\n  found: {SHOWN}"


def test_the_terminal_shows_escape_sequences_as_text_and_keeps_progress_bars():
    stream = io.StringIO()
    Terminal(stream).write("\x1b]0;title\x07\u202e\r 50%\n")
    assert stream.getvalue() == "\\x1b]0;title\\x07\\u202e\r 50%\n"


SCRIPT = """
import logging, sys, warnings
from types import SimpleNamespace
from seedbed.core import script
from seedbed.core.errors import SeedbedError
script.start(SimpleNamespace(log=[sys.argv[1]], rule="finetune_rule", input=[], output=[]))
logging.getLogger("other").warning("of a library: %s", "\\x1b[31m")
warnings.warn("\\x1b[32m", stacklevel=1)
{end}
"""


def run_script(tmp_path, end, **options):
    """(what a script prints to the terminal, its log)."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(end=end), str(tmp_path / "log")],
        capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT / "scripts")}, **options,
    )  # fmt: skip
    assert done.returncode == 1
    return done.stderr, (tmp_path / "log").read_text(encoding="utf-8")


def test_a_script_prints_and_logs_no_escape_sequences(tmp_path):
    told, log = run_script(tmp_path, f"raise SeedbedError('a fault', found={HOSTILE!r})")
    assert told == f"\nERROR: a fault\n  found: {SHOWN}\n  log:   {tmp_path / 'log'}\n"
    assert f"ERROR   a fault\n  found: {SHOWN}\n" in log
    assert r"of a library: \x1b[31m" in log
    assert "\x1b" not in log


@pytest.mark.parametrize(
    ("end", "what"),
    [
        ("open('x' * 300, 'w')", "a name is too long for the file system"),
        ("open('large', 'wb').write(bytes(2**20))", "a file is larger than a process may write"),
        (
            "import torch; from safetensors.torch import save_file\n"
            "save_file({'w': torch.zeros(2**18)}, 'large')",
            "a file is larger than a process may write",
        ),
        ("raise MemoryError", "there is too little memory"),
        (
            "import os, shutil; shutil.rmtree(os.getcwd())\nopen('x', 'w')",
            "the current working directory no longer exists",
        ),
    ],
)
def test_what_the_system_refuses_is_one_clear_error(tmp_path, end, what):
    folder = tmp_path / "working"
    folder.mkdir()
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2**19, 2**19))\n"
    told, log = run_script(tmp_path, limited + end, cwd=folder)
    assert told.startswith(f"\nERROR: {what}\n")
    assert "\n  hint:  " in told
    assert "Traceback" not in told + log
    assert len(told) < 700
