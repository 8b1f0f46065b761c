"""MPS with a stand-in for NVIDIA's control program; workflows and jobs are real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import builders_mps
import pytest
from builders_mps import slots_folder  # noqa: F401 - a fixture

from seedbed.core import locks
from seedbed.core.errors import SeedbedError
from seedbed.running import gpu_slots, gpus, mps

SCRIPTS = Path(__file__).parents[3] / "scripts"
DEADLINE = 60  # seconds; machines are shared
# A workflow that uses MPS until its input ends, and a job of a workflow.
WORKFLOW = """
import json, os, sys
from seedbed.running import mps
variables = mps.start(["fake0"])
print(json.dumps(variables), flush=True)
sys.stdin.readline()
"""
JOB = """
import os, sys
from seedbed.running import gpu_slots
with gpu_slots.hold({"gpus": {"devices": ["fake0"], "runs_per_gpu": 9}}):
    print("holds", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def place(tmp_path, monkeypatch, slots_folder) -> Path:  # noqa: F811
    """This user's folder of MPS, in slots of the test's own, with a control program on PATH."""
    for name, value in builders_mps.install(tmp_path / "bin").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(gpu_slots.FOLDER_VARIABLE, slots_folder)
    monkeypatch.setenv("PYTHONPATH", str(SCRIPTS))
    monkeypatch.setenv(gpus.VISIBLE, "1,2")
    monkeypatch.setattr(mps, "DEFAULT_PIPE", tmp_path / "nvidia-mps")
    for name in (mps.PIPE, mps.LOG, gpu_slots.MPS, gpu_slots.HELD):
        monkeypatch.delenv(name, raising=False)
    return Path(slots_folder) / f"mps-{os.geteuid()}"


@pytest.fixture
def run(place) -> Iterator:
    """Start a process, and read its first line; none outlives the test, nor does a daemon."""
    started = []

    def begin(code: str, **variables: str) -> subprocess.Popen:
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True, env={**os.environ, **variables}
        )
        started.append(process)
        process.said = process.stdout.readline()
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()
    wait_until(lambda: not list(mps._processes(place)))


def end(process: subprocess.Popen) -> None:
    process.communicate("\n")
    assert process.returncode == 0


def journal() -> list[dict]:
    """What daemons have noted."""
    path = Path(os.environ[builders_mps.JOURNAL])
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return list(map(json.loads, lines))


def events() -> list[str]:
    return [line["event"] for line in journal()]


def wait_until(holds) -> None:
    until = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def kill_keeper(place: Path) -> None:
    wait_until(lambda: locks.holder(place / "keeper") is not None)
    os.kill(locks.holder(place / "keeper").pid, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# --- while it is used ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGKILL])
def test_the_daemon_serves_all_gpus_and_is_stopped_however_its_workflow_ends(place, run, number):
    workflow = run(WORKFLOW)
    variables = json.loads(workflow.said)
    assert variables == {
        mps.PIPE: str(place / "pipe"), mps.LOG: str(place / "log"), gpu_slots.MPS: str(place),
    }  # fmt: skip
    (started,) = journal()
    assert started["visible"] is None
    assert started["log"] == variables[mps.LOG]
    assert is_alive(started["pid"])
    for folder in (place, place / "pipe", place / "log"):
        assert folder.stat().st_mode & 0o777 == 0o700
    if number is None:
        end(workflow)
    else:
        workflow.send_signal(number)
    wait_until(lambda: events() == ["start", "quit"] and not is_alive(started["pid"]))
    wait_until(lambda: locks.holder(place / "keeper") is None)  # the keeper makes the folder anew
    assert not list((place / "pipe").iterdir())
    assert (place / "log/start.log").exists()  # what is written there is read afterwards


def test_two_workflows_share_a_daemon_which_the_last_one_stops(place, run):
    first, second = run(WORKFLOW), run(WORKFLOW)
    assert first.said == second.said
    end(first)
    third = run(WORKFLOW)
    end(second)
    time.sleep(0.2)  # a daemon that is stopped too early would be by now
    assert events() == ["start"]
    end(third)
    wait_until(lambda: events() == ["start", "quit"])
    end(run(WORKFLOW))
    wait_until(lambda: events() == ["start", "quit"] * 2)


def test_a_job_keeps_the_daemon_that_its_killed_workflow_has_left(place, run):
    workflow = run(WORKFLOW)
    job = run(JOB, **json.loads(workflow.said))
    assert job.said == "holds\n"
    workflow.kill()
    time.sleep(0.2)  # as above
    assert events() == ["start"]
    end(run(WORKFLOW))  # the next workflow uses it
    time.sleep(0.2)
    assert events() == ["start"]
    end(job)
    wait_until(lambda: events() == ["start", "quit"])


def test_what_a_dead_daemon_has_left_is_in_nobodys_way(place, run):
    first = run(WORKFLOW)
    kill_keeper(place)
    os.kill(journal()[0]["pid"], signal.SIGKILL)
    first.kill()
    assert (place / "pipe/control").exists()
    end(run(WORKFLOW))
    wait_until(lambda: events() == ["start", "start", "quit"])


def test_a_daemon_whose_keeper_was_killed_gets_another(place, run):
    first = run(WORKFLOW)
    kill_keeper(place)
    end(first)
    end(run(WORKFLOW))
    wait_until(lambda: events() == ["start", "quit"])


def test_an_mps_of_the_users_own_is_used_and_left_alone(place, run, monkeypatch):
    own = {mps.PIPE: str(mps.DEFAULT_PIPE), mps.LOG: str(mps.DEFAULT_PIPE)}
    mps.DEFAULT_PIPE.mkdir()
    subprocess.run([mps.CONTROL, "-d"], env=os.environ | own, check=True)
    try:
        assert mps.start(["fake0"]) == {mps.PIPE: str(mps.DEFAULT_PIPE)}
        monkeypatch.setenv(mps.PIPE, "/anywhere")
        assert mps.start(["fake0"]) == {}
        assert not place.exists()
        assert events() == ["start"]
    finally:
        subprocess.run([mps.CONTROL], input="quit\n", text=True, env=os.environ | own, check=True)


# --- where it is not to be had ------------------------------------------------------------------------------


def without_control(place, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")


def with_a_daemon_that_fails(place, monkeypatch):
    monkeypatch.setenv("MPS_FAILS", "Permission denied")


def with_a_folder_of_everyone(place, monkeypatch):
    place.mkdir(parents=True)
    place.chmod(0o777)


def with_a_long_path(place, monkeypatch):
    monkeypatch.setenv(gpu_slots.FOLDER_VARIABLE, str(place.parent / ("long" * 25)))


def with_a_client_that_fails(place, monkeypatch):
    """There is no GPU of this name, and on most hosts of tests no driver."""
    monkeypatch.setattr(gpus, "is_fake", lambda device: False)


@pytest.mark.parametrize(
    ("obstacle", "reason"),
    [
        (without_control, "nvidia-cuda-mps-control is not installed here"),
        (with_a_daemon_that_fails, "its daemon does not start: Permission denied"),
        (with_a_folder_of_everyone, "is not a folder of this user alone"),
        (with_a_long_path, "is too long for a socket"),
        (with_a_client_that_fails, "a process cannot use the GPUs through it: "),
    ],
)
def test_without_it_auto_says_why_and_true_refuses(place, run, monkeypatch, obstacle, reason):
    obstacle(place, monkeypatch)
    told = mps.begin(workflow(), config(mps="auto"), 1)
    assert told.startswith("Runs share a GPU without NVIDIA's MPS")
    assert reason in told
    with pytest.raises(SeedbedError) as caught:
        mps.begin(workflow(), config(mps=True), 1)
    assert reason in caught.value.found
    assert caught.value.where == "config, gpus.mps: true"
    assert mps.PIPE not in os.environ
    wait_until(lambda: events().count("start") == events().count("quit"))


def test_instances_of_a_divided_gpu_are_not_served(place):
    with pytest.raises(mps.Unavailable, match="MIG"):
        mps.start(["MIG-1", "MIG-2"])


# --- when it is asked for -----------------------------------------------------------------------------------


def config(device="auto", runs=2, **keys):
    return {"device": device, "gpus": {"devices": ["fake0"], "runs_per_gpu": runs, "mps": "auto", **keys}}


def workflow(jobs=2, dry=False, local=True, asked=True, slots=None):
    """What of a workflow is looked at; test_local_gpu.py has Snakemake's own."""
    resources = {"finetune_fairseq": {gpu_slots.RESOURCE: 1}} if asked else {}
    return SimpleNamespace(
        is_main_process=True, local_exec=local, dryrun=dry, touch=False,
        resource_settings=SimpleNamespace(overwrite_resources=resources, default_resources=None),
        global_resources={} if slots is None else {gpu_slots.RESOURCE: SimpleNamespace(value=slots)},
        dag=SimpleNamespace(needrun_jobs=lambda: [SimpleNamespace(resources={gpu_slots.RESOURCE: 1})] * jobs),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((workflow(), config(), 1), True),
        ((workflow(jobs=1), config(runs=1), 4), True),  # a batch that trains four runs at a time
        ((workflow(jobs=1), config(), 1), False),
        ((workflow(slots=1), config(), 1), False),
        ((workflow(slots=1), config(), 2), True),
        ((workflow(), config(mps=False), 1), False),
        ((workflow(), config(device="cpu"), 1), False),
        ((workflow(asked=False), config(), 1), False),
        ((workflow(local=False), config(), 1), False),  # a cluster's nodes are other hosts
        ((workflow(dry=True), config(), 1), False),
    ],
)
def test_it_is_started_where_processes_share_a_gpu(monkeypatch, arguments, expected):
    given = []
    monkeypatch.setattr(mps, "start", lambda devices: given.append(devices) or {})
    assert mps.begin(*arguments) is None
    assert given == ([["fake0"]] if expected else [])


def test_more_processes_than_it_serves_go_without_it(monkeypatch):
    monkeypatch.setattr(mps, "start", None)
    assert "49 processes may share a GPU, and MPS serves 48" in mps.begin(workflow(jobs=49), config(), 1)
