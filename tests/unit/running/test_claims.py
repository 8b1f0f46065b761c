"""One owner of a run at a time; the lock itself is tested in core/test_locks.py."""

import errno
import fcntl
import logging
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from builders_jobs import run_python

from seedbed.core import interruption, locks
from seedbed.core.errors import SeedbedError
from seedbed.running import claims

HOLD = """
from pathlib import Path
from seedbed.running import claims
with claims.claim(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
print("released", flush=True)
"""


def hold(work: Path) -> subprocess.Popen:
    """Another process that owns the run until a line is written to it."""
    other = run_python(HOLD, work)
    assert other.stdout.readline() == "held\n"
    return other


def wait_for(condition) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def work(tmp_path) -> Path:
    return tmp_path / "work" / "run"


def test_a_claim_leaves_nothing_behind(work):
    with claims.claim(work) as mine:
        assert [path.name for path in work.iterdir()] == ["owner.lock"]
        assert claims.owner(work).pid == os.getpid()
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
    os.mkdir(sys.argv[2])  # fails where another process is inside
    os.rmdir(sys.argv[2])
"""
    dead = hold(work)
    dead.kill()
    dead.communicate(timeout=300)
    others = [run_python(code, work, tmp_path / "inside") for _ in range(12)]
    assert [other.wait(timeout=300) for other in others] == [0] * 12
    assert not work.exists()


def test_a_living_owner_is_waited_for(work, caplog):
    caplog.set_level(logging.INFO)
    other = hold(work)
    done = []

    def wait():
        with claims.claim(work) as mine:
            done.append(mine)

    waiter = threading.Thread(target=wait)
    waiter.start()
    wait_for(lambda: f"process {other.pid} on host" in caplog.text)
    assert "waiting for its result" in caplog.text
    assert not done
    assert claims.attempt(work) is None
    other.communicate("\n", timeout=300)
    waiter.join(timeout=300)
    assert [mine.before for mine in done] == [None]


def test_a_suspended_owner_still_owns_its_run(work):
    other = hold(work)
    other.send_signal(signal.SIGSTOP)
    assert claims.attempt(work) is None
    other.send_signal(signal.SIGCONT)
    other.communicate("\n", timeout=300)


def test_waiting_ends_when_a_signal_asks_to_leave(work):
    code = """
import logging
from pathlib import Path
from seedbed.running import claims; from seedbed.core import interruption
logging.basicConfig(stream=sys.stdout, level=logging.INFO)
interruption.watch()
with claims.claim(Path(sys.argv[1])):
    pass
"""
    owner = hold(work)
    waiter = run_python(code, work)
    assert "waiting" in waiter.stdout.readline()
    waiter.send_signal(signal.SIGTERM)
    waiter.communicate(timeout=300)
    assert waiter.returncode == 128 + signal.SIGTERM
    owner.communicate("\n", timeout=300)


@pytest.mark.parametrize("reaped", [True, False])
def test_a_killed_owner_is_followed(work, caplog, reaped):
    """Also one whose parent has not noticed yet."""
    other = hold(work)
    other.kill()
    if reaped:
        other.wait(timeout=300)
    else:
        wait_for(lambda: Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    with claims.claim(work) as mine:
        assert mine.before.pid == other.pid
        assert claims.owner(work).pid == os.getpid()
    assert f"belonged to process {other.pid}" in caplog.text
    other.communicate(timeout=300)


def test_whose_lock_the_file_system_gave_to_another_learns_of_it(work):
    with claims.claim(work):
        other = locks.Holder("elsewhere", 77, token="another")
        with open(work / claims.FILE, "r+b") as stream:
            locks._write(stream.fileno(), other)
        with pytest.raises(claims.Overtaken, match="taken over the run") as caught:
            claims.confirm(work)
        assert "process 77 on host elsewhere" in str(caught.value)
    assert locks.note(work / claims.FILE) == other


def test_who_lost_its_file_learns_of_it(work):
    with claims.claim(work):
        (work / claims.FILE).unlink()
        with pytest.raises(SeedbedError, match="the lock file was removed"):
            claims.confirm(work)


def test_what_goes_wrong_after_the_run_was_lost_is_not_this_process_s_fault(work):
    def fail():
        with claims.claim(work):
            (work / claims.FILE).unlink()
            raise ValueError("a file is gone")

    with pytest.raises(claims.Overtaken) as caught:
        fail()
    assert isinstance(caught.value.__cause__, ValueError)


def test_without_locks_a_run_is_owned_with_a_warning(work, monkeypatch, caplog):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with claims.claim(work) as one, claims.claim(work) as two:
        one.confirm()
        two.confirm()
    assert "this file system has no locks" in caplog.text
    assert not work.exists()


def test_where_locks_do_not_work_no_run_is_taken_back_and_forth(work, monkeypatch):
    """Each of two hosts would find the other's note, and begin again, for ever."""
    monkeypatch.setattr(locks, "works_in", lambda folder: False)
    with claims.claim(work):
        with open(work / claims.FILE, "r+b") as stream:
            locks._write(stream.fileno(), locks.Holder("elsewhere", 77, token="another"))
        claims.confirm(work)


def test_a_folder_that_cannot_be_written_is_named():
    place = Path("/sys/kernel/seedbed/run")  # nobody can make files there, root included
    with pytest.raises(SeedbedError, match="the results cannot be written") as caught, claims.claim(place):
        pass
    assert str(place) in str(caught.value)
    assert "check the free space" in str(caught.value)


def test_what_versions_before_locks_left_blocks_nobody(work):
    """They signed owner-N.json; the owner that is found there has ended long ago."""
    work.mkdir(parents=True)
    (work / "owner-3.json").write_text('{"host": "here", "pid": 1}')
    with claims.claim(work) as mine:
        assert mine.before is None


def test_nothing_heavy_is_imported():
    code = "import seedbed.running.runner, seedbed.running.guard; print(sorted(sys.modules))"
    out, _ = run_python(code).communicate(timeout=300)
    for heavy in ("torch", "numpy", "pandas", "transformers", "fairseq", "snakemake"):
        assert f"'{heavy}'" not in out
    assert interruption.__name__ in out
