"""Signals are noted, and a process leaves where it says it can."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from seedbed.core import files, interruption

SCRIPTS = Path(__file__).parents[3] / "scripts"
# the process says when it may be signalled, and leaves when it is told to
PROGRAM = """
import sys
sys.path.insert(0, {scripts!r})
from seedbed.core import interruption
interruption.watch()
interruption.SAME_REQUEST = 0
print("ready", flush=True)
sys.stdin.readline()
print(interruption.requested(), flush=True)
sys.stdin.readline()
interruption.leave_if_requested()
print("went on", flush=True)
"""


@pytest.fixture
def process():
    text = PROGRAM.format(scripts=str(SCRIPTS))
    pipe = subprocess.PIPE
    started = subprocess.Popen([sys.executable, "-c", text], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert started.stdout.readline() == "ready\n"
    yield started
    started.kill()
    started.communicate()


def step(process) -> str:
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1"])
def test_a_signal_is_noted_and_the_process_leaves_with_its_code(process, name):
    number = signal.Signals[name]
    process.send_signal(number)
    assert step(process) == name
    assert step(process) == ""
    assert process.wait(300) == 128 + number
    assert "Traceback" not in process.stderr.read()


def test_without_a_signal_nothing_leaves(process):
    assert step(process) == "None"
    assert step(process) == "went on"
    assert process.wait(300) == 0


def test_a_second_request_ends_the_process_at_once(process):
    process.send_signal(signal.SIGINT)
    assert step(process) == "SIGINT"
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == -signal.SIGTERM


HALF_WRITTEN = """
import sys, time
sys.path.insert(0, {scripts!r})
from seedbed.core import files
with files.atomic_open(sys.argv[1]) as outer, files.atomic_open(sys.argv[2], "wb") as inner:
    inner.write(b"half")
    inner.flush()
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1"])
def test_a_process_that_a_signal_ends_leaves_nothing_half_written(name, tmp_path):
    number = signal.Signals[name]
    text = HALF_WRITTEN.format(scripts=str(SCRIPTS))
    old = tmp_path / "table.csv"
    old.write_text("as it was")
    command = [sys.executable, "-c", text, str(old), str(tmp_path / "figure.png")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as writing:
        assert writing.stdout.readline() == "ready\n"
        assert len(list(tmp_path.glob(".*.part"))) == 2
        writing.send_signal(number)
        assert writing.wait(300) in (128 + number, -number)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"table.csv": "as it was"}


def test_what_a_signal_does_is_as_before_once_a_file_is_written(tmp_path):
    before = [signal.getsignal(number) for number in interruption.SIGNALS]
    rows = ({"column": 1 / number} for number in (1, 0))
    with pytest.raises(ZeroDivisionError):
        files.write_rows(tmp_path / "table.csv", ["column"], rows)
    assert list(tmp_path.iterdir()) == []
    files.write_text(tmp_path / "table.csv", "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    assert [signal.getsignal(number) for number in interruption.SIGNALS] == before


def test_importing_it_takes_none_of_the_heavy_packages():
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import seedbed.core.interruption; print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(SCRIPTS)], capture_output=True, text=True, check=True
    )
    assert not {"torch", "numpy", "pandas", "transformers"} & set(done.stdout.split())


HOLDS_A_LOCK = """
import os, signal, sys, threading
sys.path.insert(0, {scripts!r})
from seedbed.core import interruption
lock, calls, called = threading.Lock(), [], threading.Event()
def handler(number, frame):
    with lock:
        calls.append(number)
        called.set()
signal.signal(signal.SIGTERM, handler)
interruption.call_in_a_thread(signal.SIGTERM)
with lock:
    for _ in range(3):
        os.kill(os.getpid(), signal.SIGTERM)
assert called.wait(60)
assert calls == [signal.SIGTERM], calls
"""


def test_a_handler_that_needs_a_lock_of_the_main_thread_is_called_once():
    program = HOLDS_A_LOCK.format(scripts=str(SCRIPTS))
    done = subprocess.run([sys.executable, "-c", program], timeout=300, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_without_a_handler_a_signal_kills_as_always():
    program = PROGRAM.format(scripts=str(SCRIPTS)).replace(
        "interruption.watch()", "import signal; interruption.call_in_a_thread(signal.SIGTERM)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as started:
        started.stdout.readline()
        started.send_signal(signal.SIGTERM)
        assert started.wait(300) == -signal.SIGTERM
