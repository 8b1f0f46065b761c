"""A fine-tuning job: adopt the result that is there, wait for the one that is on its way, or train.

Nothing heavy is imported before it is clear that this process trains.
"""

import contextlib
import errno
import importlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core import files, imports, interruption
from seedbed.core.errors import SeedbedError
from seedbed.core.methods import METHODS
from seedbed.core.printable import Lines
from seedbed.core.run_folder import RunFolder
from seedbed.core.tasks import TASKS
from seedbed.running import claims, gpu_slots, gpus, publishing
from seedbed.running.jobs import Job, jobs_from_rule

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
log = logging.getLogger(__name__)


def from_rule(snakemake: Any) -> None:
    """What a fine-tuning rule does: train its run, or adopt what a batch made of it.

    Args:
        snakemake: what Snakemake gives to a script.

    Raises:
        SeedbedError, Interrupted: see `run` and `adopt`.
    """
    runs = jobs_from_rule(snakemake)
    if snakemake.input.get("batch"):
        adopt(runs, Path(snakemake.input.batch[0]))
        return
    leave_out_unused(runs)
    run(runs, runs[0].trainer.module, snakemake.config, bool(snakemake.resources.get("gpu_slot", 0)))


def run(
    jobs: Sequence[Job],
    trainer: str,
    config: Mapping[str, Any],
    slot: bool = False,
    around: Callable[[Job], contextlib.AbstractContextManager] = contextlib.nullcontext,
) -> None:
    """Make sure that every job's result stands at its target.

    Args:
        jobs: the runs, one after the other.
        trainer: name of the module whose `train` takes a list of jobs; imported when the first one trains.
        config: the experiment's, for the GPUs.
        slot: whether training needs a slot of a GPU (`gpu_slots`); taken once, before the import.
        around: what each run happens in; it may swallow an error, then the next run follows.

    Raises:
        SeedbedError: the results cannot be written, or the GPU's memory does not suffice.
        Interrupted: a signal asked to leave.
    """
    interruption.watch()
    with contextlib.ExitStack() as stack:

        def take_slot(run: str) -> None:
            if slot:
                stack.enter_context(gpu_slots.hold(config, run))  # the one that is held, if one is

        for job in jobs:
            with around(job):
                _settle(job, trainer, take_slot)


def run_together(jobs: Sequence[Job], trainer: str, config: Mapping[str, Any], slot: bool = False) -> None:
    """Make sure that the results of runs are there that are trained as one batched model.

    All are claimed before the trainer is called, once, with those that have no result; it knows of the others
    from their params. A twin of these runs waits here, and adopts what this process has made.

    Args:
        jobs: the runs of one group of seeds.
        trainer: as in `run`.
        config: as in `run`.
        slot: as in `run`.

    Raises:
        SeedbedError: as in `run`.
        Interrupted: a signal asked to leave.
    """
    interruption.watch()
    with contextlib.ExitStack() as stack:

        def take_slot() -> None:
            if slot:
                stack.enter_context(gpu_slots.hold(config, jobs[0].name))  # the one that is held, if one is

        def settle() -> None:
            if not all(map(publishing.has_result, jobs)):
                take_slot()  # before the claims, as for runs one after another
            with contextlib.ExitStack() as claimed:
                rest = _claim_rest(jobs, claimed)
                if rest:
                    take_slot()
                    imported(trainer, rest[0]).train(rest)

        with explained(jobs[0]):
            _until_settled(settle)


def _claim_rest(jobs: Sequence[Job], stack: contextlib.ExitStack) -> list[Job]:
    """Own the runs that have no result, until the stack is closed; the others are adopted and free again.

    Every process claims in the order of the names: no two can wait for each other.
    """
    rest, anew = set(), False
    for job in sorted(jobs, key=lambda job: job.name):
        own = stack.enter_context(contextlib.ExitStack())
        own.enter_context(claims.claim(job.work))
        anew |= publishing.is_anew(job.work)
        if _adopted(job):
            own.close()
        else:
            rest.add(job.name)
    left = [job for job in jobs if job.name in rest]
    for job in left if anew else ():
        publishing.prune(job.work)  # where one begins anew, all of its model does
    return left


def leave_out_unused(jobs: Sequence[Job]) -> None:
    """Keep this process from importing what none of its runs uses, for good; to be called before PyTorch.

    Transformers' Trainer imports whatever it finds installed of what it could use; together two seconds.
    """
    used = {package for job in jobs for package in METHODS[job.run["method"]].packages}
    if all(TASKS[job.run["task"]].has_classes for job in jobs):
        imports.leave_out(imports.UNUSED - used)
    else:
        imports.leave_out({"bitsandbytes"} - used)


def adopt(jobs: Sequence[Job], batch: Path) -> None:
    """Put every job's result at its target, where a batch has trained it.

    Args:
        jobs: the runs.
        batch: what `batches.write_results` wrote. The identities there count, not those of now: code that was
            edited while the batch worked is no reason to refuse what it made.

    Raises:
        SeedbedError: there is no such result, or it cannot be put there.
    """
    interruption.watch()
    made = {}
    with contextlib.suppress(FileNotFoundError, ValueError):  # without it, the identities of now count
        made = files.read_json(batch)["runs"]
    for job in jobs:
        trained = made.get(job.name)
        if trained:
            vars(job)["identity"] = trained["identity"]
        with explained(job), claims.claim(job.work):
            if not publishing.adopt(job):
                # without its file the batch is not taken for done
                batch.unlink(missing_ok=True)
                raise SeedbedError(
                    "the batch of this run has left no result for it",
                    where=job.name,
                    hint="start the workflow again: the batch then trains what is missing",
                )
        if trained:
            log.info("a batch trained this run; its log: %s", trained["log"])


def _settle(job: Job, trainer: str, take_slot: Callable[[str], None]) -> None:
    def settle() -> None:
        if not publishing.has_result(job):
            # before the claim, everywhere: who owns a run never waits for a slot that another holds who waits
            # for the run
            take_slot(job.name)
        with claims.claim(job.work):
            if not _adopted(job):
                take_slot(job.name)
                imported(trainer, job).train([job])

    with explained(job):
        # it compares the inputs with what their rules wrote, before anything reads them
        log.info("identity %s", job.identity)
        try:
            _until_settled(settle)
        except interruption.Interrupted:
            if not publishing.is_result(job.target, job):
                raise
            log.warning("another process has published this run: leaving with its result")


def _until_settled(settle: Callable[[], None]) -> None:
    """Call `settle` until no other process takes over what it works on: it then adopts the other's result.

    A job that failed instead would have Snakemake delete its outputs, which the other has published.
    """
    while True:
        try:
            settle()
            return
        except claims.Overtaken as error:
            log.warning("%s", error)


def _adopted(job: Job) -> bool:
    """Whether the run's result is there and need not be made; for its owner."""
    anew = publishing.begin_anew(job.work)
    if not anew and publishing.adopt(job):
        publishing.prune(job.work)  # what a process left that published the run and was killed then
        return True
    if publishing.outdated(job):
        log.info("the result that is there has other params, inputs, packages or code: not adopted")
    return False


def imported(trainer: str, job: Job) -> Any:
    """The trainer's module; while it is imported, the GPU of a run that may use one is made ready.

    A run on the CPU sees no GPU: fairseq would compute the norm of its gradients there, and fail.
    """
    if trainer in sys.modules:  # what an earlier run has left is not to stay
        return sys.modules[trainer]
    with imports.uncollected():
        if job.run["device"] == "cpu":
            gpus.hide()
        # a PyTorch without CUDA would leave the GPU's memory that this takes unused
        elif importlib.import_module("torch").version.cuda:
            gpus.wake()
        return importlib.import_module(trainer)


@contextlib.contextmanager
def explained(job: Job) -> Iterator[None]:
    """Turn what a machine lacks into an error that says what to change.

    Raises:
        SeedbedError: GPU memory, disk space or the right to write is lacking.
    """
    try:
        yield
    except SeedbedError:
        raise
    except OSError as error:
        if error.errno in UNWRITABLE:
            raise claims.unwritable(RunFolder.from_path(job.target).experiment, error) from error
        raise
    except Exception as error:
        if is_out_of_gpu_memory(error):
            raise _out_of_gpu_memory(job, error) from error
        raise


def is_out_of_gpu_memory(error: BaseException) -> bool:
    """Whether PyTorch or CUDA says that the GPU's memory is used up; without importing PyTorch."""
    text = str(error)
    known = type(error).__name__ == "OutOfMemoryError"
    return known or (isinstance(error, RuntimeError) and "CUDA" in text and "out of memory" in text)


def _out_of_gpu_memory(job: Job, error: BaseException) -> SeedbedError:
    settings = job.settings
    family = settings.get("family", job.run.get("recipe"))
    first = str(error).partition("\n")[0]
    named, smaller = _memory_settings(job)
    values = ", ".join(f"{key} {settings[key]}" for key in named if key in settings)
    return SeedbedError(
        "the GPU has not enough memory for this run",
        where=f"{job.name}; config, recipes.{family}: {values}",
        found=first,
        hint=Lines(
            f"let fewer {_sharers(job)}; see with nvidia-smi whether others use\n"
            f"         the GPU; or {smaller}"
        ),
    )


def _sharers(job: Job) -> str:
    """Who may leave a GPU's memory to a run, and what that changes."""
    if job.trainer.together:
        return (
            f"than {len(job.run['fused'])} seeds train as one model (batches.runs): these are other runs,\n"
            "         which begin anew"
        )
    return (
        "runs share a GPU (gpus.runs_per_gpu, batches.at_once): that changes no number, and\n"
        "         the run goes on from its newest checkpoint"
    )


def _memory_settings(job: Job) -> tuple[tuple[str, ...], str]:
    """Keys of a recipe that a run's memory depends on, and what makes it smaller."""
    smaller = job.task.less_memory
    if job.task.cuda_graphs and job.run["cuda_graphs"]:
        smaller += ",\n         or set cuda_graphs: false, since graphs keep memory of their own"
    return job.task.memory_settings, smaller
