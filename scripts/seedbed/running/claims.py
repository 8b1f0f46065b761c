"""One owner of a run at a time, whatever processes, hosts, containers and Slurm jobs want to train it.

The owner of a work folder is who signed `owner-N.json` with the highest N there. Whoever finds that owner
dead signs N + 1, which only one can. No lock outlives its holder, and a process that was taken for dead (it
was suspended, or its file system did not answer) learns of it before it publishes: `confirm`.
"""

import contextlib
import logging
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from seedbed.core import interruption, waiting
from seedbed.core.errors import SeedbedError
from seedbed.core.printable import Lines
from seedbed.running import liveness
from seedbed.running.liveness import Presence, Process, Watch

POLL = 2.0  # seconds between two looks at a living owner; the first ones come sooner
_NAME = re.compile(r"owner-(\d+)\.json")
log = logging.getLogger(__name__)


class Overtaken(SeedbedError):
    """Another process has taken a run over, since this one showed no sign of life for a while."""

    def __init__(self, work: Path):
        others = [read for _, path in _owners(work) if (read := liveness.read(path))]
        super().__init__(
            "another process has taken this run over, as this one showed no sign of life for a while",
            where=str(work),
            found="; ".join(map(str, others)) or "its claim was removed",
            hint="nothing is lost: this job waits for the other's result, and takes it",
        )


class Claim:
    """A run that this process owns."""

    def __init__(self, work: Path, generation: int, process: Process):
        self.work, self.generation, self._process = work, generation, process
        self._presence = Presence(_path(work, generation), self._still, self._leave)

    def _still(self) -> bool:
        if any(generation > self.generation for generation, _ in _owners(self.work)):
            return False
        return self._is_mine()

    def _is_mine(self) -> bool:
        # where all owners have left, the next one counts from 1 again: the name alone does not tell
        signed = liveness.read(_path(self.work, self.generation))
        return signed is not None and (signed == self._process or signed.is_unknown)

    def _leave(self) -> None:
        """Have training stop at its next update: the folder is another's, which trains there."""
        interruption.stop(Overtaken(self.work))

    def is_lost(self) -> bool:
        """Whether another process has taken the run over."""
        self._presence.beat()
        return self._presence.lost

    def confirm(self) -> None:
        """Assert that this process still owns the run.

        Raises:
            Overtaken: another process took it over.
        """
        if self.is_lost():
            raise Overtaken(self.work)

    def release(self) -> None:
        """Give the run free."""
        _held.pop(self.work.absolute(), None)
        if self.is_lost():
            interruption.go_on()
        self._presence.end(remove=self._is_mine())
        remove_if_empty(self.work)


_held: dict[Path, Claim] = {}


@contextlib.contextmanager
def claim(
    work: Path, until: Callable[[], bool] = lambda: False, what: str = "this run"
) -> Iterator[Claim | None]:
    """Own a run; wait while somebody else who is alive does.

    Args:
        work: the run's work folder; it is made.
        until: called before every look: whether waiting is over, since the result has appeared.
        what: what is owned, for the log.

    Yields:
        The claim, or None where `until` ended the waiting.

    Raises:
        Overtaken: another process took the run over while this one worked; whatever else went wrong since,
            such as a file that the other has removed, is the cause.
        SeedbedError: the folder cannot be written.
        Interrupted: a signal asked to leave while this waited.
    """
    with waiting.counted():
        mine = _wait(work, until, what)
    try:
        yield mine
    except Exception as error:
        if mine is None or isinstance(error, Overtaken) or not mine.is_lost():
            raise
        raise Overtaken(work) from error
    finally:
        if mine is not None:
            mine.release()


def attempt(work: Path) -> Claim | None:
    """Own a run that is free or whose owner is known to be dead; None otherwise. To be released."""
    owner = _owner(work)
    if owner is None or liveness.judge(owner[2]).alive is False:
        return _take(work, owner)
    return None


def confirm(work: Path) -> None:
    """Assert that this process still owns the run, if it ever claimed it.

    Raises:
        Overtaken: another process took it over.
    """
    mine = _held.get(work.absolute())
    if mine is not None:
        mine.confirm()


def owner_of(work: Path) -> Process | None:
    """Who signed last, dead or alive."""
    owner = _owner(work)
    return owner and owner[2]


def remove_if_empty(work: Path) -> None:
    """Remove a work folder and the empty ones above it, up to the experiment's own."""
    above = [folder.name for folder in work.parents]
    count = above.index("work") + 3 if "work" in above else 1
    for folder in [work, *work.parents][:count]:
        try:
            folder.rmdir()
        except OSError:
            return


# --- waiting ---


def _wait(work: Path, until: Callable[[], bool], what: str) -> Claim | None:
    watch: Watch | None = None
    told, pause = "", 0.1
    while True:
        interruption.leave_if_requested()
        if until():
            return None
        owner = _owner(work)
        if owner is None:
            watch = None
        elif watch is None or (watch.path, watch.process) != owner[1:]:
            watch = Watch(owner[1], owner[2])
        verdict = watch.verdict() if watch else None
        if verdict is None or verdict.alive is False:
            if watch:
                log.warning("%s belonged to %s; %s: taking it over", what, watch.process, verdict.why)
            mine = _take(work, owner)
            if mine is not None:
                return mine
        elif told != str(watch.process):
            told = str(watch.process)
            log.info("%s belongs to %s (%s); waiting for its result", what, told, verdict.why)
        time.sleep(pause)
        pause = min(POLL, pause * 1.5)


def _owners(work: Path) -> list[tuple[int, Path]]:
    try:
        names = [path.name for path in work.iterdir()]
    except FileNotFoundError:
        return []
    found = (_NAME.fullmatch(name) for name in names)
    return sorted((int(match[1]), work / match[0]) for match in found if match)


def _owner(work: Path) -> tuple[int, Path, Process] | None:
    for generation, path in reversed(_owners(work)):
        process = liveness.read(path)
        if process is not None:
            return generation, path, process
    return None


def _path(work: Path, generation: int) -> Path:
    return work / f"owner-{generation}.json"


def _take(work: Path, dead: tuple[int, Path, Process] | None) -> Claim | None:
    """Sign the next generation; None where somebody else was faster.

    Raises:
        SeedbedError: the folder cannot be written.
    """
    generation = dead[0] + 1 if dead else 1
    path, process = _path(work, generation), liveness.this_process()
    try:
        work.mkdir(parents=True, exist_ok=True)
        if not liveness.sign(path, process):
            return None
    except FileNotFoundError:
        return None  # the empty folder was removed meanwhile
    except OSError as error:
        raise unwritable(work, error) from error
    owners = _owners(work)
    beaten = owners[-1:] != [(generation, path)]
    if beaten or (dead and liveness.read(dead[1]) != dead[2]):
        # the dead owner has been followed by others since it was judged
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    mine = Claim(work, generation, process)
    _held[work.absolute()] = mine
    for _, older in owners[:-1]:
        with contextlib.suppress(OSError):
            older.unlink()
    return mine


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
