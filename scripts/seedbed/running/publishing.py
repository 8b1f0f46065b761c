"""Publish finished runs, and adopt them later.

Snakemake deletes a job's declared outputs before the job starts, even those of a finished run that Snakemake
had not recorded when it was killed. So a published run is kept as hard links in its work folder, which
Snakemake does not know, and adopted from there if it has the requested identity.
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
    """Move the finished run folder to its target in one rename, and remove the files of training.

    A run trained in a batch is only kept: it is an output of another rule, which adopts it.

    Raises:
        Overtaken: another process has taken over the run.
        SeedbedError: the run has made fewer updates than planned.
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
    """Check that a run that trains has made its planned updates.

    Raises:
        SeedbedError: it has made another number.
    """
    record = json.loads(path.read_text(encoding="utf-8"))
    if job.method.trains and not has_planned_updates(record):
        raise SeedbedError(
            "the run was not published, since its number of updates differs from the plan",
            where=job.name,
            found=f"{record['updates']} of {record['total_updates']} updates",
            hint=f"check that {job.tokens / 'train.jsonl'} has the training examples",
        )


def _record(job: Job, ready: Path) -> None:
    """Record the run's files except TensorBoard's, which no rule reads."""
    _remove(ready / checksums.FOLDER)  # from a process that was killed here
    others = sorted(path for path in ready.iterdir() if path.name not in ("run.json", "tensorboard"))
    checksums.record(job.rule, [ready / "run.json", *others])


def has_result(job: Job) -> bool:
    """Whether `adopt` would find this run's result."""
    return not is_anew(job.work) and (is_result(job.target, job) or is_result(job.work / KEPT, job))


def adopt(job: Job) -> bool:
    """Put this run's existing result at its target, and return whether there was one. For the run's owner.

    The identity decides (params, inputs, packages and code), not times of files.
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
    """Whether there is a complete result of another identity."""
    return any(is_complete(place) and not is_result(place, job) for place in (job.target, job.work / KEPT))


def content_of(job: Job) -> tuple[str, ...]:
    """The files of a run's folder, with an adapter if one was trained, and the model if it is kept."""
    adapter = ("adapter",) if job.method.has_adapter else ()
    model = ("model",) if job.run["keep_model"] else ()
    return (*CONTENT, *adapter, *model)


def is_complete(folder: Path, names: Sequence[str] = CONTENT) -> bool:
    """Whether a folder has all files of a run, which appear at once when it is published."""
    return all((folder / name).exists() for name in names)


def is_result(folder: Path, job: Job) -> bool:
    """Whether a folder has this run's complete and unchanged result."""
    if not is_complete(folder, content_of(job)):
        return False
    try:
        found = json.loads((folder / "run.json").read_text(encoding="utf-8")).get("identity")
    except (OSError, ValueError):
        return False
    if found is None or found != job.identity:
        return False
    # an adapter or a model may be large: rules that read it compare it
    changed = checksums.changed(folder, CONTENT)
    if changed:
        log.warning("%s: changed or damaged since it was published, and not adopted: %s", folder, changed)
    return not changed


# --- the work folder ---


def keep(target: Path, work: Path) -> None:
    """Keep the files of a published run in its work folder."""
    work.mkdir(parents=True, exist_ok=True)
    files.publish_folder(_copy(target, work), work / KEPT)


def restore(target: Path, work: Path) -> None:
    """Restore a run whose published folder was removed from its kept files, with their times.

    If a job of another workflow fails, Snakemake deletes its outputs, even if another job made them.
    """
    if not is_complete(target) and is_complete(work / KEPT) and not is_anew(work):
        files.publish_folder(_copy(work / KEPT, work), target)


def forget(work: Path) -> None:
    """Remove the kept files of a run, and its whole work folder unless a process works there."""
    _remove(work / KEPT)
    with contextlib.suppress(OSError):
        (work / ANEW).unlink()
    if work.exists() and any(work.iterdir()):
        tidy(work)
    claims.remove_if_empty(work)


def tidy(work: Path) -> None:
    """Remove the remains of a process that was killed after it published its run."""
    with contextlib.suppress(FileNotFoundError):
        if all(path.name == KEPT for path in work.iterdir()):
            return
    mine = claims.attempt(work)
    if mine is not None:
        prune(work)
        mine.release()


def prune(work: Path, but: str = "") -> None:
    """Remove the files of training, except the kept result, the owner's lock, and `but`."""
    for path in list(work.iterdir()):
        if path.name not in (KEPT, claims.FILE, but):
            _remove(path)


def ask_anew(work: Path) -> None:
    """Mark the run to be trained again from its beginning, ignoring results and checkpoints."""
    work.mkdir(parents=True, exist_ok=True)
    (work / ANEW).touch()


def is_anew(work: Path) -> bool:
    """Whether a run is marked by `ask_anew` and has not begun yet."""
    return (work / ANEW).exists()


def begin_anew(work: Path) -> bool:
    """Whether a run is marked by `ask_anew`; if so, remove its results and checkpoints. For its owner."""
    if not is_anew(work):
        return False
    log.info("the run is forced: it is trained anew, from its beginning")
    _remove(work / KEPT)
    prune(work, but=ANEW)
    (work / ANEW).unlink(missing_ok=True)
    return True


# --- folders ---


def _copy(folder: Path, work: Path) -> Path:
    """A folder in `work` of hard links to another folder's files, or of copies if links are impossible."""
    new = work / f"{uuid.uuid4().hex}.part"
    try:
        # copytree would hide errors of space or permissions
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
    """Flush a folder's files to disk before they are renamed."""
    for path in [folder, *folder.rglob("*")]:
        files.sync(path)


def _touch(folder: Path) -> None:
    """Make files newer than all inputs, like those of a new run."""
    for path in [*folder.rglob("*"), folder]:
        os.utime(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()
