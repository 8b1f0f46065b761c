"""A fine-tuning job: adopt an existing result, wait for another process's, or train.

Heavy packages are imported only by a process that trains.
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
from seedbed.core.tasks import ENCODER, TASKS
from seedbed.running import claims, gpu_slots, gpus, publishing
from seedbed.running.jobs import Job, jobs_from_rule

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
log = logging.getLogger(__name__)


def from_rule(snakemake: Any) -> None:
    """Run a fine-tuning rule: train its run, or adopt a batch's result.

    Args:
        snakemake: the object that Snakemake gives to a script.

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
    """Put each job's result at its target, training it if needed.

    Args:
        jobs: the runs, trained one after the other.
        trainer: name of the module whose `train` takes a list of jobs; imported when the first run trains.
        config: the experiment's config, for the GPUs.
        slot: whether training needs a slot of a GPU (`gpu_slots`); taken once, before the import.
        around: a context manager around each run; if it suppresses an error, the next run follows.

    Raises:
        SeedbedError: the results cannot be written, or the GPU's memory is too small.
        Interrupted: a signal ended the job.
    """
    interruption.watch()
    with contextlib.ExitStack() as stack:

        def take_slot(run: str) -> None:
            if slot:
                stack.enter_context(gpu_slots.hold(config, run, jobs))  # or use the one that is held

        for job in jobs:
            with around(job):
                _settle(job, trainer, take_slot)


def run_together(jobs: Sequence[Job], trainer: str, config: Mapping[str, Any], slot: bool = False) -> None:
    """Make the results of runs that are trained as one batched model.

    All runs are claimed, then the trainer is called once with those without a result; it knows the others
    from the params. Another process with the same runs waits here, and adopts this one's results.

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
                stack.enter_context(gpu_slots.hold(config, jobs[0].name, jobs))  # or use the one that is held

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
    """Own the runs without a result until the stack is closed; the others are adopted and released.

    Every process claims in the order of the names, so that no two wait for each other.
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
    """Prevent imports of packages that no run uses, in this process; call it before importing PyTorch.

    Transformers' Trainer imports all optional packages that are installed, which takes two seconds.
    """
    used = {package for job in jobs for package in METHODS[job.run["method"]].packages}
    if all(TASKS[job.run["task"]].model == ENCODER for job in jobs):
        imports.leave_out(imports.UNUSED - used)
    else:
        imports.leave_out({"bitsandbytes"} - used)


def adopt(jobs: Sequence[Job], batch: Path) -> None:
    """Put the results of a batch at the targets of its runs.

    Args:
        jobs: the runs.
        batch: the file of `batches.write_results`. Its identities count, not the present ones: results are
            valid even if code was edited while the batch worked.

    Raises:
        SeedbedError: a result is missing, or its target cannot be written.
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
    """Call `settle` again after another process took over its run, whose result it then adopts.

    If the job failed instead, Snakemake would delete its outputs, which the other process has published.
    """
    while True:
        try:
            settle()
            return
        except claims.Overtaken as error:
            log.warning("%s", error)


def _adopted(job: Job) -> bool:
    """Whether the run's result exists and is valid; for its owner."""
    anew = publishing.begin_anew(job.work)
    if not anew and publishing.adopt(job):
        publishing.prune(job.work)  # what a process left that published the run and was killed then
        return True
    if publishing.outdated(job):
        log.info("the result that is there has other params, inputs, packages or code: not adopted")
    return False


def imported(trainer: str, job: Job) -> Any:
    """The trainer's module; during the import, the GPU of a run that may use one is initialised.

    GPUs are hidden from a run on the CPU: fairseq would compute the norm of its gradients there, and fail.
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
    """Turn a lack of resources into an error with a remedy.

    Raises:
        SeedbedError: there is too little GPU memory or disk space, or no permission to write.
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
    """Whether an error of PyTorch or CUDA means that GPU memory is exhausted; without importing PyTorch."""
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
    """The advice to let fewer runs share a GPU, and its consequences."""
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
    """Keys of a recipe that a run's memory depends on, and advice to reduce it."""
    smaller = job.task.less_memory
    if job.task.cuda_graphs and job.run["cuda_graphs"]:
        smaller += ",\n         or set cuda_graphs: false, since graphs keep memory of their own"
    return job.task.memory_settings, smaller
