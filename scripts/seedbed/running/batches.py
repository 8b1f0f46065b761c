"""Train several runs in one job, with one allocation, one GPU, and a few processes to start.

The job starts `at_once` processes on its device. Each trains its share of the runs one after another, like
separate jobs; the failure of one does not affect the others. Fused seeds differ: one process trains all runs
of the batch as one batched model, and they fail together (`Trainer.together`).
"""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seedbed.core import files, interruption, script
from seedbed.core.errors import SeedbedError
from seedbed.core.printable import Lines, one_line
from seedbed.core.run_folder import log_in_batch
from seedbed.running import gpu_slots, publishing, runner
from seedbed.running.jobs import Job, jobs_of_batch

PATHS = ("tokens", "labels", "weights", "model", "target", "work", "binarized", "subset")
LIBRARY = Path(__file__).parents[2]
POLL = 0.05  # seconds between two checks of the processes: half of it passes after the last one has ended
log = logging.getLogger(__name__)


def from_rule(snakemake: Any) -> None:
    """Run the rule of a batch: train its runs, and record the results.

    Args:
        snakemake: the object that Snakemake gives to a script.

    Raises:
        SeedbedError, Interrupted: see `train`.
    """
    runs = jobs_of_batch(snakemake)
    logs = Path(snakemake.log[0]).with_suffix("")
    slot = bool(snakemake.resources.get("gpu_slot", 0))
    train(runs, runs[0].trainer.module, snakemake.config, logs, snakemake.config["batches"]["at_once"], slot)
    write_results(snakemake.output.done, runs, logs)


def is_together(jobs: Sequence[Job]) -> bool:
    """Whether the runs of a batch are trained as one batched model."""
    return bool(jobs) and jobs[0].trainer.together


def train(
    jobs: Sequence[Job],
    trainer: str,
    config: Mapping[str, Any],
    logs: Path,
    at_once: int = 1,
    slot: bool = False,
) -> None:
    """Train the runs, unless their results exist, and keep the results for the runs' own rules.

    Args:
        jobs: the runs.
        trainer: name of the module whose `train` takes a list of jobs.
        config: the experiment's config, for the GPUs.
        logs: folder of the runs' logs.
        at_once: number of processes, at most one per run; one if the runs are trained together.
        slot: whether training needs a slot of a GPU (`gpu_slots`); all processes share it.

    Raises:
        SeedbedError: runs failed; the others are finished.
        Interrupted: a signal ended the job; the runs have checkpoints.
    """
    interruption.watch()
    count = 1 if is_together(jobs) else min(at_once, len(jobs))
    shares = [list(jobs[first::count]) for first in range(count)]
    errors: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        if slot:
            stack.enter_context(gpu_slots.hold(config, jobs[0].name, jobs, count))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        request = {"trainer": trainer, "slot": slot, "logs": str(logs)}
        request["config"] = {"gpus": dict(config.get("gpus", {}))}
        workers = [_Worker(share, request, scratch / str(n)) for n, share in enumerate(shares)]
        _wait(workers, errors)
        interruption.leave_if_requested()
    failures: dict[str, list[str]] = {}
    for job in jobs:
        if not publishing.is_result(job.work / publishing.KEPT, job):
            cause = f"{errors.get(job.name, 'it has left no result')}; see {log_of(job, logs)}"
            failures.setdefault(cause, []).append(job.name)
    if failures:
        raise SeedbedError(
            f"{sum(map(len, failures.values()))} of the {len(jobs)} runs of this batch failed",
            where=str(logs),
            found=Lines(
                "".join("\n    " + ",\n    ".join(names) + f": {cause}" for cause, names in failures.items())
            ),
            hint="correct the causes and run again: only these are trained",
        )


def write_results(path: str | Path, jobs: Sequence[Job], logs: Path) -> None:
    """Write identity and log of each run of a batch, for the rules of its runs (`runner.adopt`)."""
    runs = {job.name: {"identity": job.identity, "log": str(log_of(job, logs))} for job in jobs}
    files.write_json(path, {"runs": runs})


def log_of(job: Job, logs: Path) -> Path:
    """The log of a run's training in a batch; fused seeds share one."""
    return log_in_batch(logs, job.name, job.trainer.together)


class _Worker:
    """A process that trains its share of the runs; after a failed run, a new process trains the rest.

    So no run is affected by the remains of a failure (a device that only returns errors, memory). If the runs
    are trained together, none is left after a failure.
    """

    def __init__(self, share: Sequence[Job], request: Mapping[str, Any], folder: Path):
        self.rest, self._request, self._folder = list(share), request, folder
        self.process = self._start()

    def _start(self) -> subprocess.Popen:
        request = {**self._request, "jobs": [_plain(job) for job in self.rest]}
        files.write_json(self._folder / "request.json", request)
        path = os.pathsep.join(filter(None, (str(LIBRARY), os.environ.get("PYTHONPATH"))))
        return subprocess.Popen(
            [sys.executable, "-m", "seedbed.running.batches", str(self._folder)],
            env={**os.environ, "PYTHONPATH": path},
            pass_fds=gpu_slots.descriptors(),  # the slot stays taken until the last process has ended
        )

    def works(self, errors: dict[str, str]) -> bool:
        """Whether the worker still works; adds the error of a failed run to `errors`."""
        code = self.process.poll()
        if code is None:
            return True
        if code == 0 or not self.rest or interruption.requested():
            return False
        last, names = self._last_run(), [job.name for job in self.rest]
        alone = last is not None and last["run"] is not None
        failed = names.index(last["run"]) if alone else len(names) - 1
        ended = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        for name in names[failed : failed + 1] if alone else names:
            errors[name] = (last or {}).get("error") or f"its process {ended}"
        self.rest = self.rest[failed + 1 :]
        if self.rest:
            self.process = self._start()
        return bool(self.rest)

    def _last_run(self) -> dict[str, Any] | None:
        """The run that the process was training at its end (None: all of them), and its error.

        None if it had not begun a run.
        """
        path = self._folder / "at.json"
        if not path.exists():
            return None
        last = files.read_json(path)
        path.unlink()
        return last


def _wait(workers: Sequence[_Worker], errors: dict[str, str]) -> None:
    """Wait for all processes; pass on a signal that asks to end."""
    passed_on = False
    while True:
        working = [worker.works(errors) for worker in workers]
        if not any(working):
            return
        if (name := interruption.requested()) and not passed_on:
            passed_on = True
            for worker in workers:
                with contextlib.suppress(ProcessLookupError):
                    worker.process.send_signal(signal.Signals[name])
        time.sleep(POLL)


# --- in a process of the batch ---


def work(folder: Path) -> None:
    """Train the runs of a request until one fails, or all together."""
    request = files.read_json(folder / "request.json")

    @contextlib.contextmanager
    def around(job: Job) -> Iterator[None]:
        at = {"run": None if job.trainer.together else job.name}
        files.write_json(folder / "at.json", at)
        with script.logging_to(log_of(job, Path(request["logs"]))):
            try:
                yield
            except Exception as error:
                logging.getLogger("seedbed").error(traceback.format_exc())
                text = one_line(
                    error if isinstance(error, SeedbedError) else f"{type(error).__name__}: {error}"
                )
                files.write_json(folder / "at.json", at | {"error": text})
                sys.exit(1)

    # a signal that all processes of the job get comes once more from the one that started this, later if it
    # is busy
    interruption.SAME_REQUEST = 60.0
    logging.getLogger().setLevel(logging.INFO)
    logging.captureWarnings(True)
    jobs = [_job(plain) for plain in request["jobs"]]
    runner.leave_out_unused(jobs)
    what = request["trainer"], request["config"], request["slot"]
    if is_together(jobs):
        with around(jobs[0]):
            runner.run_together(jobs, *what)
    else:
        runner.run(jobs, *what, around)


def _plain(job: Job) -> dict[str, Any]:
    fields = asdict(job) | {"identity": job.identity}  # computed now, in case code is edited before training
    return fields | {name: str(fields[name]) if fields[name] else None for name in PATHS}


def _job(plain: Mapping[str, Any]) -> Job:
    fields = {**plain, **{name: Path(plain[name]) if plain[name] else None for name in PATHS}}
    identity = fields.pop("identity")
    job = Job(**fields)
    vars(job)["identity"] = identity
    return job


if __name__ == "__main__":
    work(Path(sys.argv[1]))
    script.end()
