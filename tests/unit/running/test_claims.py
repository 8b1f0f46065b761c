"""One owner of a run at a time; who is alive is known without comparing clocks."""

import dataclasses
import json
import logging
import os
import signal
import stat
import subprocess
import threading
import time
from pathlib import Path

import pytest
from builders_jobs import run_python

from seedbed.core import interruption
from seedbed.core.errors import SeedbedError
from seedbed.running import claims, liveness
from seedbed.running.liveness import INITIAL_NAMESPACE, Presence, Process, Watch

ELSEWHERE = {"host": "elsewhere", "machine": "m2", "boot": "another boot"}

HOLD = """
from pathlib import Path
from seedbed.running import claims
with claims.claim(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
print("released", flush=True)
"""


def process(**changes: object) -> Process:
    """This process, or one that differs from it."""
    return dataclasses.replace(liveness.this_process(), **changes)


def sign(work: Path, generation: int = 1, **changes: object) -> Path:
    """An owner's file."""
    work.mkdir(parents=True, exist_ok=True)
    path = work / f"owner-{generation}.json"
    assert liveness.sign(path, process(**changes))
    return path


def hold(work: Path) -> subprocess.Popen:
    """Another process that owns the run until a line is written to it."""
    other = run_python(HOLD, work)
    assert other.stdout.readline() == "held\n"
    return other


def wait_for(condition) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def work(tmp_path) -> Path:
    return tmp_path / "work" / "run"


@pytest.fixture
def quick(monkeypatch) -> None:
    """Hearts that beat fast, and watchers without patience."""
    monkeypatch.setattr(liveness, "BEAT", 0.01)
    monkeypatch.setattr(liveness, "SILENCE", 0.5)
    monkeypatch.setattr(claims, "POLL", 0.05)


@pytest.fixture
def squeue(tmp_path, monkeypatch):
    """A squeue that says what the test wants, and notes how it was asked."""

    def install(answer: str, status: int = 0, cluster: str = "") -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        script = f'#!/bin/sh\necho "$@" >> {folder}/asked\n{answer}\nexit {status}\n'
        programs = {"squeue": script}
        if cluster:
            programs["scontrol"] = f'#!/bin/sh\necho "ClusterName             = {cluster}"\n'
        for name, text in programs.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        liveness._local_cluster.cache_clear()
        return folder / "asked"

    for name in (
        "SLURM_JOB_ID",
        "SLURM_RESTART_COUNT",
        "SLURM_CLUSTER_NAME",
        "SLURM_JOB_NODELIST",
        "SLURM_NODELIST",
    ):
        monkeypatch.delenv(name, raising=False)
    yield install
    liveness._local_cluster.cache_clear()


# --- owning ---


def test_a_claim_leaves_nothing_behind(work):
    with claims.claim(work) as mine:
        assert [path.name for path in work.iterdir()] == ["owner-1.json"]
        assert claims.owner_of(work).pid == os.getpid()
        mine.confirm()
        claims.confirm(work)
    assert not work.parent.exists()
    claims.confirm(work)  # who never claimed a run has nothing to lose


def test_of_many_processes_one_owns_the_run_at_a_time(work, tmp_path):
    code = """
import os
from pathlib import Path
from seedbed.running import claims
claims.POLL = 0.02
with claims.claim(Path(sys.argv[1])):
    os.mkdir(sys.argv[2])  # fails where somebody else is inside
    os.rmdir(sys.argv[2])
"""
    inside = tmp_path / "inside"
    work.mkdir(parents=True)
    dead = subprocess.Popen(["true"])
    dead.wait()
    sign(work, pid=dead.pid, started="1")  # they also have to agree on who follows a dead owner
    others = [run_python(code, work, inside) for _ in range(12)]
    assert [other.wait(timeout=120) for other in others] == [0] * 12
    assert not work.exists()


def test_a_living_owner_is_waited_for(work, caplog):
    caplog.set_level(logging.INFO)
    other = hold(work)
    done = []

    def wait():
        with claims.claim(work) as mine:
            done.append(mine.generation)

    waiter = threading.Thread(target=wait)
    waiter.start()
    wait_for(lambda: f"process {other.pid} on host" in caplog.text)
    assert "waiting for its result" in caplog.text
    assert not done
    other.communicate("\n", timeout=60)
    waiter.join(timeout=60)
    assert done == [1]


def test_waiting_ends_when_the_result_appears(work):
    other = hold(work)
    answers = iter([False, False, True])
    with claims.claim(work, until=lambda: next(answers)) as mine:
        assert mine is None
        assert claims.attempt(work) is None
    assert claims.owner_of(work).pid == other.pid
    other.communicate("\n", timeout=60)


def test_waiting_ends_when_a_signal_asks_to_leave(work):
    code = """
from pathlib import Path
from seedbed.running import claims; from seedbed.core import interruption
interruption.watch()
def until():
    print("looking", flush=True)
    return False
with claims.claim(Path(sys.argv[1]), until):
    pass
"""
    owner = hold(work)
    waiter = run_python(code, work)
    assert waiter.stdout.readline() == "looking\n"
    waiter.send_signal(signal.SIGTERM)
    waiter.communicate(timeout=60)
    assert waiter.returncode == 128 + signal.SIGTERM
    owner.communicate("\n", timeout=60)


@pytest.mark.parametrize("reaped", [True, False])
def test_a_killed_owner_is_followed(work, caplog, reaped):
    """Also one whose parent has not noticed yet."""
    other = hold(work)
    other.kill()
    if reaped:
        other.wait(timeout=60)
    else:
        wait_for(lambda: Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    with claims.claim(work) as mine:
        assert mine.generation == 2
        assert [path.name for path in work.iterdir()] == ["owner-2.json"]
    assert f"belonged to process {other.pid}" in caplog.text
    other.communicate(timeout=60)


def test_who_was_taken_for_dead_learns_of_it(work):
    with claims.claim(work) as mine:
        sign(work, 2, **ELSEWHERE, pid=77)
        with pytest.raises(SeedbedError, match="taken this run over") as caught:
            claims.confirm(work)
        assert "process 77 on host elsewhere" in str(caught.value)
        assert mine.generation == 1
    assert [path.name for path in work.iterdir()] == ["owner-2.json"]


def test_who_was_followed_by_others_that_left_does_not_own_what_a_later_one_signs(work):
    """Where all owners have left, the next one counts from 1 again."""
    with claims.claim(work):
        (work / "owner-1.json").unlink()
        later = sign(work, 1, **ELSEWHERE, pid=78)
        with pytest.raises(claims.Overtaken):
            claims.confirm(work)
    assert liveness.read(later).pid == 78


def test_a_file_that_cannot_be_read_for_a_moment_is_not_lost(work, monkeypatch):
    with claims.claim(work):
        content = (work / "owner-1.json").read_text()
        (work / "owner-1.json").write_text("")
        claims.confirm(work)
        (work / "owner-1.json").write_text(content)
        claims.confirm(work)


def test_who_lost_its_file_learns_of_it(work):
    with claims.claim(work):
        (work / "owner-1.json").unlink()
        with pytest.raises(SeedbedError, match="its claim was removed"):
            claims.confirm(work)


def test_who_comes_late_withdraws(work, monkeypatch):
    """Others have followed the dead owner and are done, and a new one is at work: 2 is free."""
    dead = sign(work, 1, pid=1, started="1")
    late = (1, dead, liveness.read(dead))
    dead.unlink()
    other = hold(work)
    assert claims._take(work, late) is None
    assert claims.owner_of(work).pid == other.pid
    other.communicate("\n", timeout=60)


def test_a_folder_that_cannot_be_written_is_named():
    place = Path("/sys/kernel/seedbed/run")  # nobody can make files there, root included
    with pytest.raises(SeedbedError, match="the results cannot be written") as caught, claims.claim(place):
        pass
    assert str(place) in str(caught.value)
    assert "disk has space" in str(caught.value)


def test_an_owner_file_that_was_cut_off_belongs_to_nobody_for_long(work, quick):
    """As after a power cut on a file system without hard links."""
    work.mkdir(parents=True)
    (work / "owner-3.json").write_text('{"host": "el')
    with claims.claim(work) as mine:
        assert mine.generation == 4


# --- judging ---


def test_this_process_is_alive():
    assert liveness.judge(process()).alive
    assert liveness.judge(process(host="renamed")).alive  # the kernel's id counts, not the name


def test_a_number_that_was_used_again_is_another_process():
    verdict = liveness.judge(process(started="1"))
    assert verdict.alive is False
    assert "another process has its number" in verdict.why


def test_a_process_before_a_restart_of_the_host_is_dead(monkeypatch):
    monkeypatch.setattr(liveness, "_namespace", lambda: INITIAL_NAMESPACE)
    verdict = liveness.judge(process(boot="before"))
    assert verdict.alive is False
    assert "restarted" in verdict.why
    assert liveness.judge(process(boot="before", machine="a twin of the same name")).alive is None


def test_containers_share_host_names_and_numbers(monkeypatch):
    """The same kernel or another one: nothing can be said of a process of another pid namespace."""
    monkeypatch.setattr(liveness, "_namespace", lambda: "pid:[4026532001]")
    assert liveness.judge(process()).alive
    assert liveness.judge(process(namespace="pid:[4026532002]")).alive is None
    assert liveness.judge(process(boot="another kernel")).alive is None


def test_a_process_that_is_hidden_is_not_taken_for_dead(monkeypatch):
    """/proc may be mounted so that others' processes are invisible."""

    def refuse(pid, number):
        raise PermissionError

    monkeypatch.setattr(liveness, "started", lambda pid: None)
    monkeypatch.setattr(os, "kill", refuse)
    assert liveness.judge(process()).alive is None


@pytest.mark.parametrize(
    ("answer", "status", "alive"),
    [
        ("echo RUNNING", 0, True),
        ("echo SUSPENDED", 0, True),
        ("echo COMPLETING", 0, True),
        ("echo PENDING", 0, False),  # requeued
        ("echo PREEMPTED", 0, False),
        ("", 0, False),
        ("echo slurm_load_jobs error: Invalid job id specified >&2", 1, False),
        ("echo slurm_load_jobs error: Unable to contact slurm controller >&2", 1, None),
    ],
)
def test_slurm_is_asked_for_processes_of_other_hosts(squeue, answer, status, alive):
    asked = squeue(answer, status)
    assert liveness.judge(process(**ELSEWHERE, slurm_job="4711", slurm_restart="0")).alive is alive
    assert asked.read_text() == "-h -j 4711 -o %T\n"


def test_slurm_is_not_asked_for_what_the_kernel_knows(squeue):
    asked = squeue("echo RUNNING")
    assert liveness.judge(process(started="1", slurm_job="4711")).alive is False
    assert not asked.exists()


def test_another_cluster_has_other_jobs_under_the_same_numbers(squeue):
    theirs = process(**ELSEWHERE, slurm_job="4711", slurm_restart="0", slurm_cluster="north")
    asked = squeue("", cluster="south")
    assert liveness.judge(theirs).alive is None
    assert not asked.exists()
    squeue("", cluster="north")
    assert liveness.judge(theirs).alive is False


def test_a_requeued_job_follows_itself(squeue, monkeypatch):
    squeue("echo RUNNING")
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    before = process(**ELSEWHERE, slurm_restart="0")
    assert before.slurm_job == "4711"
    assert liveness.judge(before).alive is False
    assert liveness.judge(process(**ELSEWHERE)).alive  # another node of this very job


@pytest.mark.parametrize(
    ("of_step", "of_job", "alive"),
    [("gpu7", "gpu7", False), ("gpu7", "gpu[6-7]", None), ("gpu6,gpu7", "", None), ("gpu7", "", False)],
)
def test_a_requeued_job_follows_itself_in_a_step(squeue, monkeypatch, of_step, of_job, alive):
    """A step does not know that its job was restarted, and Slurm says that the job is running: it is it."""
    squeue("echo RUNNING")
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    before = process(**ELSEWHERE)
    monkeypatch.setenv("SLURM_JOB_NODELIST", of_step)
    monkeypatch.setenv("SLURM_NODELIST", of_job)
    assert liveness.judge(before).alive is alive


# --- hearts ---


def test_a_heart_that_beats_elsewhere_is_waited_for_and_a_silent_one_followed(work, quick, monkeypatch):
    """While wall clocks jump, and files claim to be of the future."""
    path = sign(work, **ELSEWHERE)
    presence = Presence(path)
    os.utime(path, (4e9, 4e9))
    clock = iter(range(10**9, 0, -(10**5)))
    monkeypatch.setattr(time, "time", lambda: float(next(clock)))
    watch = Watch(path, liveness.read(path))
    wait_for(lambda: watch.verdict().alive)
    presence.end()
    assert liveness.sign(path, process(**ELSEWHERE))  # the file stays, the heart does not
    with claims.claim(work) as mine:
        assert mine.generation == 2


def test_a_silent_owner_is_watched_with_patience(work, monkeypatch):
    path = sign(work, **ELSEWHERE)
    now = iter([0.0, 1.0, 60.0, 90.0, 92.0])
    watch = Watch(path, liveness.read(path))
    watch._since = 0.0
    monkeypatch.setattr(liveness.time, "monotonic", lambda: next(now))
    assert [watch.verdict().alive for _ in range(5)] == [None, None, None, None, False]


def test_a_beat_changes_the_file_whatever_the_clock_says(tmp_path, monkeypatch):
    path = tmp_path / "signed.json"
    liveness.sign(path, process())
    presence = Presence(path)
    times = set()
    for jump in (0, -(10**9), 10**9):
        monkeypatch.setattr(time, "time_ns", lambda jump=jump: 10**18 + jump)
        presence.beat()
        times.add(path.stat().st_mtime_ns)
    assert len(times) == 3
    presence.end()
    assert not path.exists()
    presence.beat()
    assert presence.lost


def test_a_file_is_signed_once_also_without_hard_links(tmp_path, monkeypatch):
    import errno

    def refuse(*args):
        raise OSError(errno.EOPNOTSUPP, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "signed.json"
    assert liveness.sign(path, process())
    assert not liveness.sign(path, process(pid=1))
    assert liveness.read(path).pid == os.getpid()
    assert [path.name for path in tmp_path.iterdir()] == ["signed.json"]
    assert stat.S_IMODE(path.stat().st_mode) & 0o444


def test_a_file_of_another_version_is_read(tmp_path):
    path = tmp_path / "signed.json"
    path.write_text(json.dumps({**dataclasses.asdict(process()), "colour": "blue"}))
    assert liveness.read(path) == process()
    assert liveness.read(tmp_path / "none.json") is None


def test_nothing_heavy_is_imported():
    code = "import seedbed.running.runner, seedbed.running.guard; print(sorted(sys.modules))"
    out, _ = run_python(code).communicate(timeout=60)
    for heavy in ("torch", "numpy", "pandas", "transformers", "fairseq", "snakemake"):
        assert f"'{heavy}'" not in out
    assert interruption.__name__ in out


def test_a_lower_number_gives_way_to_a_higher_one(tmp_path):
    sign(tmp_path / "work", 2)
    assert claims._take(tmp_path / "work", None) is None
