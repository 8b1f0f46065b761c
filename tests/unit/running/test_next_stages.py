"""scripts/next_stages.py: a command that makes one stage is run until no question is open."""

import json
import signal
import subprocess
import sys
import time

import pytest

import next_stages

# writes the next stage; the third is the last
STAGE = """
import json, pathlib, sys
folder = pathlib.Path("results/mine/stages")
folder.mkdir(parents=True, exist_ok=True)
number = len(list(folder.glob("*.json"))) + 1
(folder / f"{number}.json").write_text(json.dumps({"finished": number >= 3}))
"""

WAIT = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
print("on", flush=True)
time.sleep(60)
"""


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("experiment: mine\n")
    return tmp_path / "results" / "mine"


def stages(experiment) -> int:
    return len(list((experiment / "stages").glob("*.json")))


def go_on(code: str) -> int:
    return next_stages.main(["mine.yaml", "--", sys.executable, "-c", code])


def test_nothing_runs_where_nothing_is_open(experiment):
    assert go_on(STAGE) == 0
    assert stages(experiment) == 0


def test_stages_follow_until_the_last(experiment):
    subprocess.run([sys.executable, "-c", STAGE], check=True)
    assert go_on(STAGE) == 0
    assert stages(experiment) == 3
    assert go_on("raise SystemExit(9)") == 0  # it is finished


def test_a_stage_that_fails_ends_it_with_its_status(experiment):
    subprocess.run([sys.executable, "-c", STAGE], check=True)
    assert go_on("raise SystemExit(7)") == 7
    assert stages(experiment) == 1


def test_stages_of_an_earlier_config_end_it_once_no_stage_follows(experiment):
    """As where `until` was taken out of the config."""
    subprocess.run([sys.executable, "-c", STAGE], check=True)
    assert go_on("pass") == 0
    assert stages(experiment) == 1


def test_sigterm_reaches_the_stage(experiment):
    """As `timeout make run` sends it: the stage ends in its own way, and no other begins."""
    (experiment / "stages").mkdir(parents=True)
    (experiment / "stages" / "1.json").write_text(json.dumps({"finished": False}))
    command = [sys.executable, next_stages.__file__, "mine.yaml", "--", sys.executable, "-c", WAIT]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "on\n"
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 3
    assert time.monotonic() - began < 20
