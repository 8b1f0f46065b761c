"""Locks between processes, which the kernel frees when their holder ends in any way.

A lock is `flock` on a file. It works between processes of one host, and between hosts on NFSv4 and on Lustre
mounted with flock (see `works_in`). The file names its holder, for messages, and for a holder to notice that
its file system gave the lock to another process (`Lock.is_lost`).

The process that took a lock keeps it, also while stopped (SIGSTOP). Programs that it starts do not have the
lock, unless they get the descriptor; forked children close the file, unless `take` shares the lock with them.

Only the holder removes a lock file, while it holds the lock. A process that waited for the removed file then
locks a file without a name, notices, and tries again at the same path.
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

NONE_HERE = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}  # from a file system without locks
# mount options that keep locks local to this host
LOCAL_LOCKS = {"nolock", "localflock", "local_lock=all", "local_lock=flock"}
# follow no link, wait for no pipe, and do not pass the file to started programs
PLAINLY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
POLL = 0.05  # seconds between two attempts to take a lock
MAX_DOING = 1000  # characters of a holder's activity


@dataclass(frozen=True)
class Holder:
    """The process that holds a lock.

    Attributes:
        host, pid: the process.
        slurm_job: its Slurm job, or empty.
        since: wall-clock time at which it took the lock.
        doing: its activity, for messages.
        token: unique to this holding.
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
        before: the previous holder if it ended without releasing the lock, else None.
    """

    def __init__(self, path: Path, descriptor: int, holder: Holder, before: Holder | None):
        self.path, self.before, self._holder = path, before, holder
        self.descriptor: int | None = descriptor

    def is_lost(self) -> bool:
        """Whether the file was removed or belongs to another process: the file system gave the lock away."""
        if self.descriptor is None:
            return True
        try:
            if not _has_name(self.descriptor, self.path):
                return True
            found = note(self.path)
        except OSError:
            return False  # a network error proves nothing
        return found is not None and found.token != self._holder.token

    def wait_for_others(self) -> None:
        """Wait until no other process shares the lock; then this process alone holds it."""
        if self.descriptor is not None:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)

    def release(self, remove: bool = False) -> None:
        """Let others take the lock; in a forked child this only closes the file.

        Args:
            remove: remove the file, too, unless it belongs to another process by now.
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
    """Take a lock if it is free, without waiting; None if another process holds it.

    Args:
        path: the lock file in an existing folder; it is created if missing.
        doing: this process's activity, for messages of others.
        shared_with_forks: keep the lock until forked children have ended, too.

    Raises:
        OSError: the file cannot be opened or created, or is no regular file; with an errno of NONE_HERE, the
            file system has no locks.
    """
    descriptor = _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if descriptor is None:
        return None
    lock = Lock(path, descriptor, _this_process(doing), note(path))
    _write(descriptor, lock._holder)
    if not shared_with_forks:
        _unshared.add(lock)
    return lock


def share(path: Path, shared_with_forks: bool = False) -> Lock:
    """Hold a lock together with others that share it; wait while a process holds it alone.

    Args:
        path: as in `take`; the file names no holder.
        shared_with_forks: as in `take`.

    Raises:
        OSError: as in `take`.
    """
    descriptor = _locked(path, fcntl.LOCK_SH)
    assert descriptor is not None  # it waits
    lock = Lock(path, descriptor, _this_process(""), None)
    if not shared_with_forks:
        _unshared.add(lock)
    return lock


def _locked(path: Path, how: int) -> int | None:
    """A locked descriptor of the file that has this name now; None if another process holds it.

    Args:
        path: as in `take`.
        how: flags of flock.
    """
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, how)
            if _has_name(descriptor, path):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def wait(path: Path, seconds: float, doing: str = "") -> Lock | None:
    """Take a lock, waiting while another process holds it; None after `seconds` of waiting.

    Raises:
        OSError: as in `take`.
    """
    until = time.monotonic() + seconds
    while (lock := take(path, doing)) is None and time.monotonic() < until:
        time.sleep(POLL)
    return lock


def holder(path: Path) -> Holder | None:
    """The present holder of a lock; None if it is free.

    UNKNOWN if the file does not name the holder, or the file system has no locks.

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
    """The holder that a lock file names, also one that ended without releasing the lock; else None."""
    try:
        with open(path, "rb") as stream:
            content = json.load(stream)
        known = {field.name for field in fields(Holder)}
        return Holder(**{key: value for key, value in content.items() if key in known})
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def works_in(folder: Path) -> bool:
    """Whether locks in a folder work between processes of this host and of others.

    Two descriptors of one file must exclude each other, and the mount must not keep locks local.

    Raises:
        OSError: no file can be created there.
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
    """The mount options of a folder's file system; empty if the kernel does not list mounts."""
    try:
        lines = table.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    place, longest, options = folder.resolve(), "", ""
    for _, escaped, _, found, *_ in map(str.split, lines):
        point = re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), escaped)
        if place.is_relative_to(point) and len(point) >= len(longest):  # the last of several mounts there
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
    # without O_CREAT, which the kernel may forbid for others' files in /tmp (fs.protected_regular)
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
        raise OSError(f"{path} is not a regular file")


def _make(path: Path) -> None:
    """Create an empty file that all users may open, so that all users of the folder may lock in it."""
    with without_umask(), contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666))


def _has_name(descriptor: int, path: Path) -> bool:
    """Whether an open file still lies at its path.

    Raises:
        OSError: the path cannot be opened.
    """
    try:
        # opening the path makes a network file system ask its server
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
    """Write the holder into a lock file, if possible."""
    with contextlib.suppress(OSError):
        if os.fstat(descriptor).st_nlink == 1:  # else it is also another file, which must not change
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(asdict(holder)).encode(), 0)


def _close_in_child() -> None:
    for lock in _unshared:
        if lock.descriptor is not None:
            os.close(lock.descriptor)
            lock.descriptor = None
    _unshared.clear()


os.register_at_fork(after_in_child=_close_in_child)
