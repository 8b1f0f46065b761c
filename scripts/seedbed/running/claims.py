"""One owner of a run at a time, whatever processes, hosts, containers and Slurm jobs want to train it.

The owner of a work folder holds the lock on its owner.lock (`core.locks`). An owner that ends, however it
ends, is followed at once. Where the file system gave its lock to another (its host was cut off), it learns of
it before it writes a checkpoint or publishes: `confirm`. On a file system without locks a run may be trained
twice: the process that ends first publishes a whole result, and the other adopts it.
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
POLL = 2.0  # seconds between two looks at a living owner; the first ones come sooner
log = logging.getLogger(__name__)


class Overtaken(SeedbedError):
    """Another process has taken a run over, whose lock this one lost."""

    def __init__(self, work: Path):
        super().__init__(
            "another process has taken this run over, as this one lost its lock",
            where=str(work),
            found=str(owner(work) or "the lock file was removed"),
            hint="nothing is lost: this job waits for the other's result, and takes it",
        )


class Claim:
    """A run that this process owns; `lock` is None on a file system without locks."""

    def __init__(self, work: Path, lock: Lock | None):
        self.work, self._lock = work, lock
        _held[work.absolute()] = self

    @property
    def before(self) -> Holder | None:
        """Who owned the run before, and ended without giving it free."""
        return self._lock.before if self._lock else None

    def is_lost(self) -> bool:
        """Whether another process has taken the run over."""
        return self._lock is not None and self._lock.is_lost()

    def confirm(self) -> None:
        """Assert that this process still owns the run.

        Raises:
            Overtaken: another process took it over.
        """
        # where locks do not work, both may go on: each would take the run back for ever
        if self.is_lost() and locks.works_in(existing(self.work)):
            raise Overtaken(self.work)

    def release(self) -> None:
        """Give the run free."""
        _held.pop(self.work.absolute(), None)
        if self._lock is not None:
            self._lock.release(remove=True)
        remove_if_empty(self.work)


_held: dict[Path, Claim] = {}


@contextlib.contextmanager
def claim(work: Path, what: str = "this run") -> Iterator[Claim]:
    """Own a run; wait while another process does.

    Args:
        work: the run's work folder; it is made.
        what: what is owned, for the log.

    Raises:
        Overtaken: another process took the run over while this one worked; whatever else went wrong since,
            such as a file that the other has removed, is the cause.
        SeedbedError: the folder cannot be written.
        Interrupted: a signal asked to leave while this waited.
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
    """Own a run that is free, until `Claim.release`; None where another process owns it.

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
    """Assert that this process still owns the run, if it ever claimed it.

    Raises:
        Overtaken: another process took it over.
    """
    mine = _held.get(work.absolute())
    if mine is not None:
        mine.confirm()


def owner(work: Path) -> Holder | None:
    """Who owns a run now; None where nobody does."""
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
    """The nearest folder above, or the folder itself, that exists."""
    return next(place for place in (folder, *folder.absolute().parents) if place.is_dir())


def unwritable(folder: Path, error: OSError) -> SeedbedError:
    """What to say where a folder of results cannot be written."""
    return SeedbedError(
        "the results cannot be written",
        where=str(folder),
        found=error.strerror or str(error),
        hint=Lines(
            "see that the disk has space, that your quota is not used up, and that you may write there;\n"
            "         then start the workflow again: it goes on where it stopped"
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
