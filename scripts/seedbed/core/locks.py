"""Locks between processes, which the kernel frees when their holder ends, however it ends.

A lock is `flock` on a file; it works between the processes of a host, and between hosts on NFSv4 and on
Lustre mounted with flock (`works_in` finds out). The file says who holds it: that is for messages, and tells
a holder whose file system gave the lock away that it lost it (`Lock.is_lost`).

Who has a lock: the process that took it, also while it is stopped (SIGSTOP). A program that it starts does
not, unless it is given the descriptor; a forked child closes the file, unless `take` was told to share it.

A lock file is removed by its holder alone, while it holds the lock. A process that waited for the removed
file then locks a file without a name, notices, and begins again with the one that has the name.
"""

import contextlib
import errno
import fcntl
import json
import os
import re
import secrets
import socket
import stat
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from seedbed.core.files import without_umask

NONE_HERE = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}  # of a file system without locks
# options of mounts whose locks are this host's own
LOCAL_LOCKS = {"nolock", "localflock", "local_lock=all", "local_lock=flock"}
# no link is followed, no pipe waited for, and no program that is started gets the file
PLAINLY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
POLL = 0.05  # seconds between two looks at a lock that is held for a moment
MAX_DOING = 1000  # characters of a note on what a holder does


@dataclass(frozen=True)
class Holder:
    """Who holds a lock.

    Attributes:
        host, pid: the process.
        slurm_job: its Slurm job; empty outside of one.
        since: wall-clock time at which it took the lock.
        doing: what it does.
        token: of this holding and no other.
    """

    host: str
    pid: int
    slurm_job: str = ""
    since: str = ""
    doing: str = ""
    token: str = ""

    def __str__(self) -> str:
        job = f" (Slurm job {self.slurm_job})" if self.slurm_job else ""
        doing = f", {self.doing}" if self.doing else ""
        return f"process {self.pid} on host {self.host}{job}, since {self.since}{doing}"


UNKNOWN = Holder("unknown", 0, since="an unknown time")


class Lock:
    """A lock that this process holds.

    Attributes:
        path: the file.
        descriptor: the open file; None after `release`, and in a forked child that does not share the lock.
        before: who held it before and ended without releasing it, None where nobody did.
    """

    def __init__(self, path: Path, descriptor: int, holder: Holder, before: Holder | None):
        self.path, self.before, self._holder = path, before, holder
        self.descriptor: int | None = descriptor

    def is_lost(self) -> bool:
        """Whether the file was removed or is another's by now: its file system gave the lock away."""
        if self.descriptor is None:
            return True
        try:
            if not _has_name(self.descriptor, self.path):
                return True
            found = note(self.path)
        except OSError:
            return False  # a network that stumbles says nothing
        return found is not None and found.token != self._holder.token

    def release(self, remove: bool = False) -> None:
        """Let others take the lock; in a forked child this only closes the file.

        Args:
            remove: remove the file, too, unless it is another's by now.
        """
        if self.descriptor is None:
            return
        if os.getpid() == self._holder.pid:
            with contextlib.suppress(OSError):
                if remove and not self.is_lost():
                    self.path.unlink()
                elif not remove and note(self.path) == self._holder:
                    os.ftruncate(self.descriptor, 0)
        _unshared.discard(self)
        os.close(self.descriptor)
        self.descriptor = None


_unshared: set[Lock] = set()  # locks that forked children do not get


def take(path: Path, doing: str = "", shared_with_forks: bool = False) -> Lock | None:
    """Take a lock that is free; None where another process holds it. Nothing is waited for.

    Args:
        path: the lock file; it is made where it is missing, in a folder that exists.
        doing: what this process does, for others.
        shared_with_forks: whether the lock stays taken until forked children have ended as well.

    Raises:
        OSError: the file cannot be opened or made, or is no plain file; or, with an errno of NONE_HERE, the
            file system has no locks.
    """
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_there = _has_name(descriptor, path)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        if is_there:
            break
        os.close(descriptor)
    lock = Lock(path, descriptor, _this_process(doing), note(path))
    _write(descriptor, lock._holder)
    if not shared_with_forks:
        _unshared.add(lock)
    return lock


def wait(path: Path, seconds: float, doing: str = "") -> Lock | None:
    """Take a lock; wait for it while another process holds it. None where it does for so many `seconds`.

    Raises:
        OSError: as in `take`.
    """
    until = time.monotonic() + seconds
    while (lock := take(path, doing)) is None and time.monotonic() < until:
        time.sleep(POLL)
    return lock


def holder(path: Path) -> Holder | None:
    """Who holds a lock now; None where it is free. UNKNOWN where the file does not say, or locks do not work.

    Raises:
        OSError: the file cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | PLAINLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except OSError:
        return note(path) or UNKNOWN
    finally:
        os.close(descriptor)


def note(path: Path) -> Holder | None:
    """Who holds a lock, or ended without releasing it, as the file says; None where it says nothing."""
    try:
        with open(path, "rb") as stream:
            content = json.load(stream)
        known = {field.name for field in fields(Holder)}
        return Holder(**{key: value for key, value in content.items() if key in known})
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def works_in(folder: Path) -> bool:
    """Whether locks in a folder keep processes of this host and of others out.

    Two openings of one file have to exclude each other, and the mount must not keep locks to this host.

    Raises:
        OSError: no file can be made there.
    """
    path = folder / f".{secrets.token_hex(8)}.lock"
    descriptors = []
    try:
        for _ in range(2):
            descriptors.append(_open(path))
            fcntl.flock(descriptors[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return not (_mount_options(folder) & LOCAL_LOCKS)
    except OSError as error:
        if error.errno not in NONE_HERE:
            raise
        return False
    finally:
        path.unlink(missing_ok=True)
        for descriptor in descriptors:
            os.close(descriptor)


def _mount_options(folder: Path, table: Path = Path("/proc/self/mounts")) -> set[str]:
    """The options of the mount that holds a folder; empty where the kernel does not list mounts."""
    try:
        lines = table.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    place, longest, options = folder.resolve(), "", ""
    for _, escaped, _, found, *_ in map(str.split, lines):
        point = re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), escaped)
        if place.is_relative_to(point) and len(point) >= len(longest):  # the last of several on one point
            longest, options = point, found
    return set(options.split(","))


def _this_process(doing: str) -> Holder:
    return Holder(
        host=socket.gethostname(),
        pid=os.getpid(),
        slurm_job=os.environ.get("SLURM_JOB_ID", ""),
        since=time.strftime("%Y-%m-%d %H:%M:%S %Z"),
        doing=doing[:MAX_DOING],
        token=secrets.token_hex(8),
    )


def _open(path: Path) -> int:
    # without O_CREAT: the kernel may forbid it for others' files in a folder like /tmp (fs.protected_regular)
    flags = os.O_RDWR | PLAINLY
    while True:
        try:
            descriptor = os.open(path, flags)
        except FileNotFoundError:
            _make(path)
            continue
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        raise OSError(f"{path} is no plain file")


def _make(path: Path) -> None:
    """Make an empty file that all users may open: who may enter the folder may lock in it."""
    with without_umask(), contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666))


def _has_name(descriptor: int, path: Path) -> bool:
    """Whether an open file still lies at its path.

    Raises:
        OSError: the path cannot be opened.
    """
    try:
        # opened anew: a network file system then asks its server
        other = os.open(path, os.O_RDONLY | PLAINLY)
    except FileNotFoundError:
        return False
    try:
        return os.path.samestat(os.fstat(descriptor), os.fstat(other))
    except OSError as error:
        if error.errno == errno.ESTALE:  # the server has no such file any more
            return False
        raise
    finally:
        os.close(other)


def _write(descriptor: int, holder: Holder) -> None:
    """Say who holds a lock; information that may fail to be written."""
    with contextlib.suppress(OSError):
        if os.fstat(descriptor).st_nlink == 1:  # somebody's file by another name is not written to
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(asdict(holder)).encode(), 0)


def _close_in_child() -> None:
    for lock in _unshared:
        if lock.descriptor is not None:
            os.close(lock.descriptor)
            lock.descriptor = None
    _unshared.clear()


os.register_at_fork(after_in_child=_close_in_child)
