"""`seedbed status`: what it prints, refuses, and shows in place."""

import json
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from builders_watch import Watched

from seedbed.commands import main

ROOT = Path(__file__).parents[3]
ERROR = "2026-01-01 00:00:00,000 ERROR   the loss is not finite\n"


@pytest.fixture
def watched(tmp_path):
    """The demo, of which three runs are done and one is at work."""
    made = Watched(tmp_path)
    made.begin()
    for run in made.runs[:3]:
        made.finish(run, seconds=20 if run.framework == "fairseq" else 30)
    made.hold(made.runs[3], ago=12)
    made.workflow()
    yield made
    made.end()


def told(capsys, *arguments, code: int = 0) -> str:
    """What is printed."""
    assert main(["status", *map(str, arguments)]) == code
    return capsys.readouterr().out


def test_people_get_lines(watched, capsys):
    lines = told(capsys, watched.folder).splitlines()
    assert lines[0] == f"{watched.folder}: 3 of 12 runs done, 1 at work, 8 waiting, 0 failed"
    assert lines[1] == "about 2 min left, 2 at a time"  # 4 of 20 s, 5 of 30 s, less 12 s
    assert lines[2].startswith(f"workflow: process {os.getpid()} on host ")
    assert lines[4:7] == ["mean seconds of a run", "    20.0  fairseq", "    30.0  Transformers"]
    assert lines[8] == "at work"
    assert lines[9].startswith(f"  {watched.runs[3].folder}: for 12 s, process {os.getpid()} on host ")
    assert len(lines) == 10


def test_programs_get_every_run(watched, capsys):
    found = json.loads(told(capsys, watched.folder, "--json"))
    assert found["counts"] == {"done": 3, "at work": 1, "waiting": 8, "failed": 0}
    assert [run["name"] for run in found["runs"]] == [run.folder for run in watched.runs]
    assert found["runs"][3]["holder"]["pid"] == os.getpid()
    assert found["seconds_left"] == pytest.approx((4 * 20 + 5 * 30 - 12) / 2, abs=1)


def test_the_exit_code_says_whether_runs_have_failed(watched, capsys):
    log = watched.write_log(watched.runs[4], ERROR)
    assert f"  {watched.runs[4].folder}: the loss is not finite; see {log}" in told(
        capsys, watched.folder, code=1
    )


def test_an_error_of_another_rule_is_a_failure(watched, capsys):
    log = watched.folder / "logs/aggregate.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(ERROR, encoding="utf-8")
    assert f"\nfailed\n  the loss is not finite; see {log}\n" in told(capsys, watched.folder, code=1)


def test_config_files_name_the_experiment(watched, capsys, tmp_path):
    config = tmp_path / "mine.yaml"
    config.write_text(f"results: {watched.folder.parent}\n")
    assert told(capsys, "--configfile", config) == told(capsys, watched.folder)


def test_what_cannot_be_told_is_refused(tmp_path, capsys):
    assert main(["status", str(tmp_path / "nothing")]) == 1
    assert "ERROR: no workflow has planned the runs of this experiment" in capsys.readouterr().err
    assert main(["status", str(tmp_path), "--watch"]) == 1
    assert "only a terminal can show a status in place" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["status"])
    assert ended.value.code == 2


def test_a_terminal_shows_it_in_place_until_all_runs_are_done(watched):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "seedbed", "status", "results/demo", "--watch"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts"), "COLUMNS": "60", "LINES": "7"}
    process = subprocess.Popen(command, stdout=theirs, env=environment, cwd=watched.folder.parents[1])
    late = threading.Timer(60, process.kill)
    late.start()
    os.close(theirs)
    shown = b""
    try:
        while b"8 waiting" not in shown:
            shown += os.read(ours, 65_536)
        watched.end()
        for run in watched.runs[3:]:
            watched.finish(run)
        while True:
            shown += os.read(ours, 65_536)
    except OSError:  # the terminal's other side is closed
        pass
    late.cancel()
    assert process.wait(timeout=60) == 0
    first, *_, last = shown.decode().split("\x1b[6F")  # over the six lines before
    assert "12 of 12 runs done" in last
    assert all(len(line) < 60 for line in first.replace("\x1b[K", "").split("\r\n"))
