"""How a finished run comes to stand in its place, and stays there: published once, adopted ever after.

Snakemake deletes a job's declared outputs before the job starts, also those of a run that was finished and
not yet recorded when Snakemake was killed. A published run is therefore kept as hard links in its work
folder, which Snakemake does not own, and adopted from there if it is the run that is asked for.
"""

import contextlib
import errno
import json
import logging
import os
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from seedbed.core import checksums, files
from seedbed.core.errors import SeedbedError
from seedbed.running import claims
from seedbed.running.jobs import Job, has_planned_updates

# of every run folder
CONTENT = ("metrics.csv", "predictions.csv", "run.json", "tensorboard")
KEPT, ANEW = "kept", "anew"
# of file systems without hard links
NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
log = logging.getLogger(__name__)


def publish(job: Job) -> None:
    """Let the finished run folder appear at its target in one rename, and remove what training needed.

    One that was trained in a batch is only kept: it is an output of another rule, which adopts it.

    Raises:
        Overtaken: another process has taken the run over.
        SeedbedError: it has made fewer updates than planned.
        OSError: a folder cannot be written; the finished run stays in the work folder.
    """
    ready = job.work / "run"
    claims.confirm(job.work)
    _check_updates(job, ready / "run.json")
    _record(job, ready)
    _sync(ready)
    files.publish_folder(_copy(ready, job.work), job.work / KEPT)
    if not job.batch:
        claims.confirm(job.work)
        files.publish_folder(ready, job.target)
    prune(job.work)


def _check_updates(job: Job, path: Path) -> None:
    """Assert that a run that trains has made the updates of its plan.

    Raises:
        SeedbedError: it has made another number.
    """
    record = json.loads(path.read_text(encoding="utf-8"))
    if job.method.trains and not has_planned_updates(record):
        raise SeedbedError(
            "the run made another number of updates than its recipe plans, and is not published",
            where=job.name,
            found=f"{record['updates']} of {record['total_updates']} updates",
            hint=f"see that {job.tokens / 'train.jsonl'} holds the training examples",
        )


def _record(job: Job, ready: Path) -> None:
    """Record what the run hands on: all of its files but TensorBoard's, which no rule reads."""
    _remove(ready / checksums.FOLDER)  # what a process left that was killed here
    others = sorted(path for path in ready.iterdir() if path.name not in ("run.json", "tensorboard"))
    checksums.record(job.rule, [ready / "run.json", *others])


def has_result(job: Job) -> bool:
    """Whether `adopt` would find the result of this very run."""
    return not is_anew(job.work) and (is_result(job.target, job) or is_result(job.work / KEPT, job))


def adopt(job: Job) -> bool:
    """Whether the result of this very run is there already; it then stands at its target.

    To be called by the run's owner.

    The identity decides: params, inputs, packages and code, not times of files.
    """
    if is_anew(job.work):
        return False
    kept = job.work / KEPT
    if is_result(job.target, job):
        if not is_result(kept, job):
            keep(job.target, job.work)
    elif not is_result(kept, job):
        return False
    elif not job.batch:
        copy = _copy(kept, job.work)
        _touch(copy)
        files.publish_folder(copy, job.target)
    log.info("adopted: this run was trained before (identity %s); nothing is trained", job.identity)
    return True


def outdated(job: Job) -> bool:
    """Whether a whole result is there that is not this run's."""
    return any(is_complete(place) and not is_result(place, job) for place in (job.target, job.work / KEPT))


def content_of(job: Job) -> tuple[str, ...]:
    """What a run's folder holds: an adapter where one was trained, the model where it is kept."""
    adapter = ("adapter",) if job.method.has_adapter else ()
    model = ("model",) if job.run["keep_model"] else ()
    return (*CONTENT, *adapter, *model)


def is_complete(folder: Path, names: Sequence[str] = CONTENT) -> bool:
    """Whether a folder holds all files of a run; those of one that is published appear at once."""
    return all((folder / name).exists() for name in names)


def is_result(folder: Path, job: Job) -> bool:
    """Whether a folder holds the whole result of this very run, as it was published."""
    if not is_complete(folder, content_of(job)):
        return False
    try:
        found = json.loads((folder / "run.json").read_text(encoding="utf-8")).get("identity")
    except (OSError, ValueError):
        return False
    if found is None or found != job.identity:
        return False
    # an adapter or a model may be large: who reads it compares it
    changed = checksums.changed(folder, CONTENT)
    if changed:
        log.warning("%s: changed or damaged since it was published, and not adopted: %s", folder, changed)
    return not changed


# --- what lies in the work folder ---


def keep(target: Path, work: Path) -> None:
    """Keep the files of a published run, whatever happens to its folder."""
    work.mkdir(parents=True, exist_ok=True)
    files.publish_folder(_copy(target, work), work / KEPT)


def restore(target: Path, work: Path) -> None:
    """Put a run back from what is kept of it, where its published folder was removed, with its files' times.

    A job of another workflow that fails does that: Snakemake deletes its outputs, also those of others.
    """
    if not is_complete(target) and is_complete(work / KEPT) and not is_anew(work):
        files.publish_folder(_copy(work / KEPT, work), target)


def forget(work: Path) -> None:
    """Remove what is kept of a run, and all of its work folder unless somebody works there."""
    _remove(work / KEPT)
    with contextlib.suppress(OSError):
        (work / ANEW).unlink()
    if work.exists() and any(work.iterdir()):
        tidy(work)
    claims.remove_if_empty(work)


def tidy(work: Path) -> None:
    """Remove what a process left that published its run and was killed before it could do so itself."""
    with contextlib.suppress(FileNotFoundError):
        if all(path.name == KEPT for path in work.iterdir()):
            return
    mine = claims.attempt(work)
    if mine is not None:
        prune(work)
        mine.release()


def prune(work: Path, but: str = "") -> None:
    """Remove all that training needed, but for the result that is kept, the owner's lock, and `but`."""
    for path in list(work.iterdir()):
        if path.name not in (KEPT, claims.FILE, but):
            _remove(path)


def ask_anew(work: Path) -> None:
    """Have the run trained anew, from its beginning, whatever results and checkpoints there are."""
    work.mkdir(parents=True, exist_ok=True)
    (work / ANEW).touch()


def is_anew(work: Path) -> bool:
    """Whether a run is to be trained anew, and has not begun yet."""
    return (work / ANEW).exists()


def begin_anew(work: Path) -> bool:
    """Whether a run is to be trained anew; its results and checkpoints are removed then. For its owner."""
    if not is_anew(work):
        return False
    log.info("the run is forced: it is trained anew, from its beginning")
    _remove(work / KEPT)
    prune(work, but=ANEW)
    (work / ANEW).unlink(missing_ok=True)
    return True


# --- folders ---


def _copy(folder: Path, work: Path) -> Path:
    """A folder of hard links to the files of another, of copies where links are impossible; in `work`."""
    new = work / f"{uuid.uuid4().hex}.part"
    try:
        # not copytree, which wraps the errors of files in one that says nothing of space or rights
        for path in [folder, *sorted(folder.rglob("*"))]:
            place = new / path.relative_to(folder)
            if path.is_dir():
                place.mkdir()
            else:
                _link(path, place)
    except BaseException:
        _remove(new)
        raise
    return new


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        shutil.copy2(source, target)


def _sync(folder: Path) -> None:
    """Have the disk hold a folder's files before their names count."""
    for path in [folder, *folder.rglob("*")]:
        files.sync(path)


def _touch(folder: Path) -> None:
    """Make files newer than all inputs, as those of a run that has just been made."""
    for path in [*folder.rglob("*"), folder]:
        os.utime(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()
