"""Ensure that only one process owns a run at a time, across hosts, containers and Slurm jobs.

The owner of a work folder holds the lock on its owner.lock (`core.locks`). If it ends in any way, another
process can take the run at once. If the file system gave its lock to another process (its host was cut off),
it notices before it writes a checkpoint or publishes (`confirm`). On a file system without locks, two
processes may train a run: the first to end publishes its result, and the other adopts it.
"""

import contextlib
import logging
import time
from collections.abc import Iterator
from pathlib import Path

from seedbed.core import interruption, locks, waiting
from seedbed.core.errors import SeedbedError
from seedbed.core.locks import Holder, Lock
from seedbed.core.printable import Lines

FILE = "owner.lock"
POLL = 2.0  # seconds between two checks of a living owner; the first ones are closer
log = logging.getLogger(__name__)


class Overtaken(SeedbedError):
    """This process lost the lock of a run to another."""

    def __init__(self, work: Path):
        super().__init__(
            "this process lost its lock, and another process has taken over the run",
            where=str(work),
            found=str(owner(work) or "the lock file was removed"),
            hint="nothing is lost: this job waits for the other's result, and adopts it",
        )


class Claim:
    """A run that this process owns; `lock` is None on a file system without locks."""

    def __init__(self, work: Path, lock: Lock | None):
        self.work, self._lock = work, lock
        _held[work.absolute()] = self

    @property
    def before(self) -> Holder | None:
        """The previous owner if it ended without releasing the run, else None."""
        return self._lock.before if self._lock else None

    def is_lost(self) -> bool:
        """Whether another process has taken over the run."""
        return self._lock is not None and self._lock.is_lost()

    def confirm(self) -> None:
        """Check that this process still owns the run.

        Raises:
            Overtaken: another process took it over.
        """
        # without locks, both may continue: otherwise each would take the run back for ever
        if self.is_lost() and locks.works_in(existing(self.work)):
            raise Overtaken(self.work)

    def release(self) -> None:
        """Release the run."""
        _held.pop(self.work.absolute(), None)
        if self._lock is not None:
            self._lock.release(remove=True)
        remove_if_empty(self.work)


_held: dict[Path, Claim] = {}


@contextlib.contextmanager
def claim(work: Path, what: str = "this run") -> Iterator[Claim]:
    """Own a run, after waiting for another owner.

    Args:
        work: the run's work folder; it is created.
        what: the run, for the log.

    Raises:
        Overtaken: another process took over the run while this one worked; a later error, such as that of a
            file removed by the other, is the cause.
        SeedbedError: the folder cannot be written.
        Interrupted: a signal ended the wait.
    """
    with waiting.counted():
        mine = _wait(work, what)
    try:
        yield mine
    except Exception as error:
        if isinstance(error, Overtaken) or not mine.is_lost():
            raise
        raise Overtaken(work) from error
    finally:
        mine.release()


def attempt(work: Path) -> Claim | None:
    """Own a free run until `Claim.release`; None if another process owns it.

    Raises:
        SeedbedError: the folder cannot be written.
    """
    while True:
        try:
            work.mkdir(parents=True, exist_ok=True)
            lock = locks.take(work / FILE)
        except FileNotFoundError:
            continue  # its last owner has just removed the empty folder
        except OSError as error:
            if error.errno not in locks.NONE_HERE:
                raise unwritable(work, error) from error
            (work / FILE).unlink(missing_ok=True)
            log.warning("%s: this file system has no locks; another process may train this run, too", work)
            return Claim(work, None)
        return None if lock is None else Claim(work, lock)


def confirm(work: Path) -> None:
    """Check that this process still owns the run, if it ever claimed it.

    Raises:
        Overtaken: another process took it over.
    """
    mine = _held.get(work.absolute())
    if mine is not None:
        mine.confirm()


def owner(work: Path) -> Holder | None:
    """The present owner of a run, or None."""
    return locks.holder(work / FILE)


def remove_if_empty(work: Path) -> None:
    """Remove a work folder and the empty ones above it, up to the experiment's own."""
    above = [folder.name for folder in work.parents]
    count = above.index("work") + 3 if "work" in above else 1
    for folder in [work, *work.parents][:count]:
        try:
            folder.rmdir()
        except OSError:
            return


def existing(folder: Path) -> Path:
    """The folder, or the nearest existing folder above it."""
    return next(place for place in (folder, *folder.absolute().parents) if place.is_dir())


def unwritable(folder: Path, error: OSError) -> SeedbedError:
    """The error for a folder of results that cannot be written."""
    return SeedbedError(
        "the results cannot be written",
        where=str(folder),
        found=error.strerror or str(error),
        hint=Lines(
            "check the free space, your quota, and that you may write there;\n"
            "         then start the workflow again: it continues where it stopped"
        ),
    )


def _wait(work: Path, what: str) -> Claim:
    seen: Holder | None = None
    pause = 0.1
    while True:
        interruption.leave_if_requested()
        mine = attempt(work)
        if mine is not None:
            if mine.before:
                log.warning("%s belonged to %s, which has ended: taking it over", what, mine.before)
            return mine
        found = owner(work)
        if found is not None and found != seen:
            seen = found
            log.info("%s belongs to %s; waiting for its result", what, found)
        time.sleep(pause)
        pause = min(POLL, pause * 1.5)
