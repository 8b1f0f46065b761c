"""Locks are the kernel's, held by real processes."""

import fcntl
import multiprocessing
import os
import re
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest
from builders_jobs import run_python

from seedbed.core import locks

HOLD = """
import os, time
from pathlib import Path
from seedbed.core import locks
lock = locks.take(Path(sys.argv[1]), "a test", shared_with_forks=sys.argv[2] == "shared")
child = eval(sys.argv[3])
print(child, flush=True)
sys.stdin.readline()
lock.release()
"""

WAIT_FOR_OTHERS = """
from pathlib import Path
from seedbed.core import locks
lock = locks.share(Path(sys.argv[1]))
print("shares", flush=True)
lock.wait_for_others()
print("alone", flush=True)
sys.stdin.readline()
"""


def hold(path: Path, shared: bool = False, child: str = "0") -> tuple[subprocess.Popen, int]:
    """A process that holds a lock until a line is written to it, and the pid of its child."""
    other = run_python(HOLD, path, "shared" if shared else "own", child)
    return other, int(other.stdout.readline())


def wait_for(condition) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def refuse(number: int):
    def flock(descriptor, operation):
        raise OSError(number, os.strerror(number))

    return flock


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "a.lock"


# --- holding ---


def test_a_lock_is_one_process_s_and_says_whose(path):
    other, _ = hold(path)
    assert locks.take(path) is None
    assert locks.holder(path) == locks.note(path)
    assert str(locks.holder(path)).startswith(f"process {other.pid} on host ")
    assert str(locks.holder(path)).endswith(", a test")
    other.communicate("\n", timeout=300)
    assert locks.holder(path) is None
    lock = locks.take(path)
    assert lock.before is None  # the other one has released it
    lock.release()


def test_two_openings_in_one_process_exclude_each_other(path):
    lock = locks.take(path)
    assert locks.take(path) is None
    lock.release()
    lock.release()  # once more does nothing
    again = locks.take(path)
    assert again is not None
    again.release()


def test_a_killed_holder_leaves_its_name_and_no_lock(path):
    other, _ = hold(path)
    other.kill()
    other.communicate(timeout=300)
    assert locks.holder(path) is None
    lock = locks.take(path)
    assert lock.before.pid == other.pid
    lock.release()
    assert locks.take(path).before is None


def test_a_stopped_holder_still_holds(path):
    other, _ = hold(path)
    other.send_signal(signal.SIGSTOP)
    assert locks.take(path) is None
    other.send_signal(signal.SIGCONT)
    other.communicate("\n", timeout=300)
    assert locks.take(path) is not None


def test_waiting_ends_with_the_holder_or_in_time(path):
    other, _ = hold(path)
    assert locks.wait(path, 0.01) is None
    other.kill()
    assert locks.wait(path, 300) is not None
    other.communicate(timeout=300)


def test_a_shared_lock_excludes_a_holder_that_is_alone_until_the_last_has_let_go(path):
    first, second = locks.share(path), locks.share(path)
    assert locks.take(path) is None
    waiting = run_python(WAIT_FOR_OTHERS, path)
    assert waiting.stdout.readline() == "shares\n"
    first.release()
    assert locks.take(path) is None
    second.release()
    assert waiting.stdout.readline() == "alone\n"
    assert locks.take(path) is None
    waiting.communicate("\n")
    locks.take(path).release()


@pytest.mark.parametrize(
    ("shared", "child", "keeps"),
    [
        (False, "os.fork() or time.sleep(600)", False),
        (True, "os.fork() or time.sleep(600)", True),
        (False, "__import__('subprocess').Popen(['sleep', '600'], stdout=-3).pid", False),
        (True, "__import__('subprocess').Popen(['sleep', '600'], stdout=-3).pid", False),
        (
            True,
            "__import__('subprocess').Popen(['sleep', '600'], stdout=-3, pass_fds=[lock.descriptor]).pid",
            True,
        ),
    ],
    ids=["fork", "shared fork", "program", "program of a sharing one", "program with the descriptor"],
)
def test_a_living_child_keeps_the_lock_of_a_dead_holder_only_where_it_shares_it(path, shared, child, keeps):
    other, pid = hold(path, shared, child)
    try:
        assert locks.take(path) is None
        other.kill()
        other.wait(timeout=300)
        if keeps:
            assert locks.take(path) is None
        else:  # a forked child closes the file a moment after the fork
            wait_for(lambda: locks.take(path) is not None)
    finally:
        os.kill(pid, signal.SIGKILL)
        other.stdout.close()
        other.stdin.close()
    if keeps:
        wait_for(lambda: locks.take(path) is not None)


def test_workers_of_a_data_loader_do_not_keep_the_lock_and_do_not_release_it(path):
    """They are forked, and end before or after their parent."""
    lock = locks.take(path)
    worker = multiprocessing.get_context("fork").Process(target=lock.release, kwargs={"remove": True})
    worker.start()
    worker.join(60)
    assert path.exists()
    assert not lock.is_lost()
    assert locks.take(path) is None


# --- removing ---


def test_who_waited_for_a_file_that_was_removed_locks_the_one_that_is_there(path, monkeypatch):
    """Between opening and locking, the last holder removes the file, and another makes it anew."""
    first, flock, others = locks.take(path), fcntl.flock, []

    def late(descriptor, operation):
        if not others:
            first.release(remove=True)
            others.append(path)
            others.append(locks.take(path))
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    assert locks.take(path) is None  # the removed file is free, and no lock
    monkeypatch.undo()
    assert not others[1].is_lost()
    others[1].release(remove=True)
    assert not path.exists()


def test_of_many_processes_one_holds_a_lock_that_is_removed_each_time(path, tmp_path):
    code = """
import os
from pathlib import Path
from seedbed.core import locks
locks.POLL = 0.001
for _ in range(20):
    lock = locks.wait(Path(sys.argv[1]), 60)
    os.mkdir(sys.argv[2])  # fails where another process is inside
    os.rmdir(sys.argv[2])
    lock.release(remove=True)
"""
    others = [run_python(code, path, tmp_path / "inside") for _ in range(8)]
    assert [other.wait(timeout=300) for other in others] == [0] * 8
    assert not path.exists()
    for other in others:
        other.stdout.close()
        other.stdin.close()


def test_who_lost_its_lock_learns_of_it_and_removes_nothing(path):
    lock = locks.take(path)
    assert not lock.is_lost()
    path.unlink()
    assert lock.is_lost()
    later = locks.take(path)
    assert lock.is_lost()
    lock.release(remove=True)
    assert not later.is_lost()
    # a file system gives the lock of a host that it does not reach to another
    locks._write(later.descriptor, locks._this_process("elsewhere"))
    assert later.is_lost()


def test_a_file_that_cannot_be_read_for_a_moment_is_not_lost(path):
    lock = locks.take(path)
    content = path.read_bytes()
    path.write_bytes(content[:20])
    assert not lock.is_lost()
    path.write_bytes(content)
    assert not lock.is_lost()


# --- files ---


def test_all_users_may_open_a_lock_whatever_the_umask(path):
    mask = os.umask(0o077)
    try:
        lock = locks.take(path)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    assert not lock.is_lost()


def test_what_is_no_plain_file_is_neither_opened_nor_written(path, tmp_path):
    (tmp_path / "valuable").write_text("kept")
    path.symlink_to(tmp_path / "valuable")
    with pytest.raises(OSError, match="symbolic links"):
        locks.take(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError, match="not a regular file"):
        locks.take(path)
    path.unlink()
    os.link(tmp_path / "valuable", path)
    locks.take(path).release()
    assert (tmp_path / "valuable").read_text() == "kept"


def test_a_note_of_another_version_is_read(path):
    path.write_text('{"host": "a", "pid": 7, "colour": "blue"}')
    assert str(locks.note(path)) == "process 7 on host a, since "
    path.write_text("[]")
    assert locks.note(path) is None


# --- file systems ---


def test_locks_work_here_and_nothing_is_left(tmp_path):
    assert locks.works_in(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", sorted(locks.NONE_HERE))
def test_a_file_system_without_locks_is_noticed(path, monkeypatch, number):
    monkeypatch.setattr(fcntl, "flock", refuse(number))
    assert not locks.works_in(path.parent)
    with pytest.raises(OSError, match=re.escape(os.strerror(number))) as error:
        locks.take(path)
    assert error.value.errno in locks.NONE_HERE
    assert locks.holder(path) == locks.UNKNOWN  # it may be held


def test_a_file_system_whose_locks_exclude_nobody_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", lambda descriptor, operation: None)
    assert not locks.works_in(tmp_path)


@pytest.mark.parametrize(
    ("options", "works"),
    [("rw,vers=4.2", True), ("rw,nolock", False), ("rw,localflock", False), ("rw,local_lock=all", False)],
)
def test_a_mount_that_keeps_locks_to_this_host_is_noticed(tmp_path, monkeypatch, options, works):
    place = tmp_path / "a folder" / "results"
    place.mkdir(parents=True)
    table = tmp_path / "mounts"
    point = str(place.parent).replace(" ", "\\040")
    table.write_text(f"/dev/sda / ext4 rw 0 0\nserver:/a {point} nfs {options} 0 0\nproc /proc proc rw 0 0\n")
    found = locks._mount_options(place, table)
    assert found == set(options.split(","))
    monkeypatch.setattr(locks, "_mount_options", lambda folder: found)
    assert locks.works_in(place) == works


def test_the_module_is_light():
    code = "import seedbed.core.locks; print(*sys.modules)"
    out, _ = run_python(code).communicate(timeout=300)
    assert not {"torch", "numpy", "filelock", "snakemake"} & set(out.split())
