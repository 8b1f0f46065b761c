"""Make a killed workflow restart without manual work; for the main Snakemake process.

Snakemake's lock outlives a kill -9, and its jobs may, too. So each workflow holds a lock (`core.locks`) in
`.snakemake/seedbed` and one beside the results. A later workflow removes the Snakemake lock of a dead one
with a warning, and names a living one. Before Snakemake deletes the outputs of a run to make it again, the
run's files are kept (`publishing`).
"""

import atexit
import os
import secrets
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from seedbed.config.batching import OneAfterAnother
from seedbed.core import interruption, locks
from seedbed.core.errors import SeedbedError
from seedbed.core.locks import Holder, Lock
from seedbed.core.run_folder import RunFolder, work_folders, workflows_folder
from seedbed.running import claims, command_line, publishing

RUN_SCRIPT = "finetune"  # of all rules that publish a run
BATCH_SCRIPT = "finetune_batch"
PASSING = {"temp", "pipe", "service"}  # flags of files that do not outlive the workflow
WORKFLOWS = Path(".snakemake/seedbed")  # in the working directory, for the workflows that work there

_present: list[Lock] = []


# --- while the Snakefile is read ---


def enter(workflow: Any, arguments: Sequence[str] | None = None) -> None:
    """Register this workflow in the working directory, and remove the Snakemake lock of a dead one.

    Args:
        workflow: Snakemake's.
        arguments: the command line; by default this process's.

    Raises:
        SeedbedError: the working directory cannot be written.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if not workflow.is_main_process or command_line.makes_nothing(arguments) or _is_registered(WORKFLOWS):
        return
    try:
        _register(WORKFLOWS, " ".join(["snakemake", *arguments]))
        living, dead = _others(WORKFLOWS)
    except OSError as error:
        raise claims.unwritable(Path.cwd(), error) from error
    _settle_locks(workflow, living, dead)


def _settle_locks(workflow: Any, living: Sequence[Holder], dead: dict[Path, Holder]) -> None:
    locked = _SnakemakeLocks(workflow)
    if locked.exist() and living:
        _say(
            f"Another workflow works in this directory: {_list(living)}. If both make the same files, this "
            "one stops now and changes nothing. Wait for the other, or end it; do not --unlock."
        )
    elif locked.exist() and dead:
        locked.remove()
        _say(
            f"A workflow in this directory has ended without cleaning up: {_list(dead.values())}. Its lock "
            "was removed. Of its runs, those still training are waited for, stopped ones are resumed, and "
            "finished ones are adopted."
        )
    if not locked.exist():  # else it may be a dead workflow's, to be removed when no living one needs it
        for path in dead:
            path.unlink(missing_ok=True)


def _list(holders: Iterable[Holder]) -> str:
    return "; ".join(map(str, holders))


class _SnakemakeLocks:
    """Snakemake's locks of the working directory, in files or in its database."""

    def __init__(self, workflow: Any):
        self._folder = Path(".snakemake/locks")
        settings = workflow.workflow_settings
        backend = str(getattr(settings, "persistence_backend", "file")).lower()
        self._database = None
        if backend.endswith("db") and self._folder.parent.exists():
            from snakemake.persistence.db import DbPersistence

            url = settings.persistence_backend_db_url
            self._database = DbPersistence(**({"db_url": url} if url else {}))

    def exist(self) -> bool:
        if self._database is not None:
            return any(True for _ in self._database._read_locks())
        return any(self._folder.glob("*.lock"))

    def remove(self) -> None:
        if self._database is not None:
            self._database.cleanup_locks()
        for path in self._folder.glob("*.lock"):
            path.unlink(missing_ok=True)


# --- before the first job, and after the last ---


def begin(workflow: Any, experiment: Path) -> None:
    """Before the first job, keep the results of runs that Snakemake makes again, and name other workflows.

    From here on, SIGTERM cannot make Snakemake wait for itself.

    Args:
        workflow: Snakemake's, whose jobs are known.
        experiment: the folder results/EXPERIMENT.

    Raises:
        SeedbedError: the results cannot be written.
    """
    if not makes(workflow):
        return
    interruption.call_in_a_thread(signal.SIGTERM)
    folder = workflows_folder(experiment)
    try:
        if not _is_registered(folder):
            _register(folder, f"in {Path.cwd()}")
        if not locks.works_in(folder):
            _say(
                f"File locks do not work between processes or hosts in {experiment}. Do not start a second "
                "workflow on these results: it might train the same runs. After a kill -9, end the remaining "
                "jobs before you start the workflow again."
            )
        living = _living(folder)
        if living:
            _say(
                f"Another workflow works on {experiment}: {_list(living)}. Both share their runs: each is "
                "trained once, and the other workflow adopts its result. A rule that reads a run while it is "
                "published may fail: start again then."
            )
        _keep_results(workflow, experiment, alone=not living)
    except OSError as error:
        raise claims.unwritable(experiment, error) from error


def check_batches(workflow: Any, batching: OneAfterAnother) -> None:
    """Refuse batches if jobs share no file system with this process, which would not get the results.

    Args:
        workflow: Snakemake's.
        batching: how the experiment puts runs into jobs.

    Raises:
        SeedbedError: the experiment has batches, and jobs share no file system.
    """
    if batching.batched and not workflow.storage_settings.shared_fs_usage:
        key, value = batching.off
        raise SeedbedError(
            f"{batching.name} need a file system that all jobs share",
            where=f"config, {key}",
            hint=f"set it to {value}, or choose a profile whose jobs share the folder of the results",
        )


def end(workflow: Any, experiment: Path) -> None:
    """After the last job, check that all files exist, and remove the kept results of runs.

    Args:
        workflow: Snakemake's.
        experiment: the folder results/EXPERIMENT.

    Raises:
        SeedbedError: files that this workflow made, or that are its targets, are missing.
    """
    if makes(workflow):
        there = work_folders(experiment)
        for target, job in targets(workflow):
            # an older result of another run, whose job failed before, may be kept
            if (work := _work(target)) in there and workflow.dag.needrun(job):
                publishing.restore(target, work)
        _check_outputs(workflow)
        if not _living(workflows_folder(experiment)):
            for target, _ in targets(workflow):
                if (work := _work(target)) in there:
                    publishing.forget(work)
        _leave()


def _check_outputs(workflow: Any) -> None:
    missing = [path for path in dict.fromkeys(_promised(workflow.dag)) if not os.path.lexists(path)]
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise SeedbedError(
            "the workflow has ended without all of its files; another workflow on these results may have "
            "removed them",
            where=", ".join(missing[:5]) + more,
            hint="start the workflow again: it makes the missing files, and trains no finished run again",
        )


def _promised(dag: Any) -> Iterator[str]:
    """Paths of the files that a workflow's jobs made, and of the files of its targets."""
    # only outputs are marked as files that Snakemake removes, not the inputs of rules that read them
    passing = {str(file) for job in dag.jobs for file in job.output if PASSING & file.flags.keys()}
    # a target without files of its own stands for the experiment, and so for all of its runs
    is_whole = any(not job.output for job in dag.targetjobs)
    for job in dag.jobs:
        made = job.output if dag.needrun(job) or (is_whole and _script(job) == RUN_SCRIPT) else ()
        wanted = job.input if job in dag.targetjobs else ()
        for file in (*made, *wanted):
            if not file.is_storage and str(file) not in passing:
                yield str(file)


def makes(workflow: Any) -> bool:
    """Whether this process is the main one of a workflow that makes files."""
    return workflow.is_main_process and not (workflow.dryrun or workflow.touch)


def _keep_results(workflow: Any, experiment: Path, alone: bool) -> None:
    dag, there = workflow.dag, work_folders(experiment)
    for target, job in targets(workflow):
        work = _work(target)
        if not dag.needrun(job):
            if work in there and alone and publishing.is_complete(target):
                publishing.forget(work)
        elif _forced(workflow, job):
            publishing.ask_anew(work)
        else:
            if work in there:
                (work / publishing.ANEW).unlink(missing_ok=True)
            # a kept result is never older: a batch writes its results only there
            if publishing.is_complete(target) and not publishing.is_complete(work / publishing.KEPT):
                publishing.keep(target, work)


def targets(workflow: Any) -> Iterator[tuple[Path, Any]]:
    """Run folder and job of every requested run."""
    for job in workflow.dag.jobs:
        if _script(job) == RUN_SCRIPT:
            yield Path(job.output.run_json).parent, job


def _script(job: Any) -> str | None:
    """The name of the script of the job's rule; a module's rules may be renamed."""
    script = getattr(job.rule, "script", None)
    return Path(str(script)).stem if script else None


def _work(target: Path) -> Path:
    return RunFolder.from_path(target).work


def _forced(workflow: Any, job: Any) -> bool:
    """Whether the user forces a run, or its batch; an unfinished run is not forced."""
    settings, dag = workflow.dag_settings, workflow.dag
    if settings.forceall or (settings.forcetargets and job in dag.targetjobs):
        return True
    if not settings.forcerun:
        return False
    named = {name if name.isidentifier() else os.path.relpath(name) for name in settings.forcerun}
    batches = [other for other in dag.dependencies[job] if _script(other) == BATCH_SCRIPT]
    return any(
        other.rule.name in named or any(os.path.relpath(path) in named for path in other.output)
        for other in (job, *batches)
    )


# --- registered workflows ---


def _is_registered(folder: Path) -> bool:
    """Whether this process is already registered in a folder; a module may be read several times."""
    return any(lock.path.parent == folder for lock in _present)


def _register(folder: Path, doing: str) -> None:
    """Hold a lock in a folder until this process ends; on a file system without locks, do nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.json"):  # of Seedbed's versions before locks
        path.unlink(missing_ok=True)
    path = folder / f"{os.getpid()}-{secrets.token_hex(4)}.lock"
    try:
        while (lock := locks.take(path, doing)) is None:
            time.sleep(locks.POLL)  # another workflow checks whether it is held
    except OSError as error:
        path.unlink(missing_ok=True)
        if error.errno not in locks.NONE_HERE:
            raise
        return
    if not _present:
        atexit.register(_leave)
    _present.append(lock)


def _leave() -> None:
    """Release this process's locks."""
    while _present:
        lock = _present.pop()
        lock.release(remove=True)
        if lock.path.parent.name == "workflows":
            claims.remove_if_empty(lock.path.parent)


def _others(folder: Path) -> tuple[list[Holder], dict[Path, Holder]]:
    """Other workflows registered in a folder: the living ones, and the dead ones by their files."""
    living, dead = [], {}
    mine = {lock.path for lock in _present}
    for path in sorted(set(folder.glob("*.lock")) - mine):
        if (holder := locks.holder(path)) is not None:
            living.append(holder)
        elif (holder := locks.note(path)) is not None:  # else its workflow is about to lock it
            dead[path] = holder
    return living, dead


def _living(folder: Path) -> list[Holder]:
    """Other living workflows registered in a folder; the files of dead ones are removed."""
    living, dead = _others(folder)
    for path in dead:
        path.unlink(missing_ok=True)
    return living


def _say(text: str) -> None:
    from snakemake.logging import logger

    logger.warning(text)
