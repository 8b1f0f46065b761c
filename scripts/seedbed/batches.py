"""Runs that share a job: one allocation, one GPU, and one start-up for each of a few processes.

The job starts `at_once` processes on the device that it was given. Each trains its share of the runs one
after another, as if it had a job of its own. A run that fails leaves the others alone.
"""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seedbed import files, gpu_slots, interruption, publishing, running, script
from seedbed.errors import SeedbedError
from seedbed.jobs import Job

PATHS = ("tokens", "labels", "weights", "model", "target", "work", "binarized")
LIBRARY = Path(__file__).parents[1]
log = logging.getLogger(__name__)


def train(
    jobs: Sequence[Job],
    trainer: str,
    config: Mapping[str, Any],
    logs: Path,
    at_once: int = 1,
    slot: bool = False,
) -> None:
    """Make sure that the result of every run is kept, for its own rule to put it in its place.

    Args:
        jobs: the runs.
        trainer: name of the module whose `train` takes a list of jobs.
        config: the experiment's, for the GPUs.
        logs: folder of the runs' logs.
        at_once: processes, at most one a run.
        slot: whether training needs a slot of a GPU (`gpu_slots`); all processes share it.

    Raises:
        SeedbedError: runs failed; the others are finished.
        Interrupted: a signal asked to leave; the runs left their checkpoints.
    """
    interruption.watch()
    shares = [list(jobs[first::at_once]) for first in range(min(at_once, len(jobs)))]
    with contextlib.ExitStack() as stack:
        if slot:
            stack.enter_context(gpu_slots.hold(config, jobs[0].name))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        workers = [
            _start(share, trainer, config, slot, logs, scratch / str(number))
            for number, share in enumerate(shares)
        ]
        _wait(workers)
        interruption.leave_if_requested()
        failures = [
            _failure(job, worker.returncode, scratch / str(number), logs)
            for number, (share, worker) in enumerate(zip(shares, workers, strict=True))
            for job in share
            if not publishing.is_result(job.work / publishing.KEPT, job)
        ]
    if failures:
        raise SeedbedError(
            f"{len(failures)} of the {len(jobs)} runs of this batch failed",
            where=str(logs),
            found="\n" + "\n".join(failures),
            hint="mend what they name and run again: only these are trained",
        )


def log_of(job: Job, logs: Path) -> Path:
    """The log of a run's training in a batch."""
    return logs / f"{'-'.join(job.target.parts[-3:])}.log"


def _start(
    share: Sequence[Job], trainer: str, config: Mapping[str, Any], slot: bool, logs: Path, folder: Path
) -> subprocess.Popen:
    """Start a process that trains its share of the runs; it tells of failures in `folder`."""
    request = {
        "jobs": [_plain(job) for job in share],
        "trainer": trainer,
        "config": {"gpus": dict(config.get("gpus", {}))},
        "slot": slot,
        "logs": str(logs),
    }
    files.write_json(folder / "request.json", request)
    path = os.pathsep.join(filter(None, (str(LIBRARY), os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-m", "seedbed.batches", str(folder)],
        env={**os.environ, "PYTHONPATH": path},
        pass_fds=gpu_slots.descriptors(),  # the slot stays taken until the last process has ended
    )


def _wait(workers: Sequence[subprocess.Popen]) -> None:
    """Wait for all processes; pass on the wish that they leave."""
    told = False
    for worker in workers:
        while True:
            if interruption.requested() and not told:
                told = True
                for other in workers:
                    with contextlib.suppress(ProcessLookupError):
                        other.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(0.2)
                break


def _failure(job: Job, code: int | None, folder: Path, logs: Path) -> str:
    errors = files.read_json(folder / "errors.json") if (folder / "errors.json").exists() else {}
    if job.name in errors:
        return f"    {job.name}: {errors[job.name]}"
    ended = f"was killed by {signal.Signals(-code).name}" if code and code < 0 else f"ended with code {code}"
    return f"    {job.name}: its process {ended}; see {log_of(job, logs)}"


# --- in a process of the batch ---


def work(folder: Path) -> bool:
    """Train the runs of a request; whether all succeeded."""
    request = files.read_json(folder / "request.json")
    jobs = [_job(plain) for plain in request["jobs"]]
    errors: dict[str, str] = {}

    @contextlib.contextmanager
    def around(job: Job) -> Iterator[None]:
        with script.logging_to(log_of(job, Path(request["logs"]))):
            try:
                yield
            except Exception as error:  # the other runs of the batch go on
                logging.getLogger("seedbed").error(traceback.format_exc())
                text = str(error) if isinstance(error, SeedbedError) else f"{type(error).__name__}: {error}"
                errors[job.name] = text
                files.write_json(folder / "errors.json", errors)

    logging.getLogger().setLevel(logging.INFO)
    logging.captureWarnings(True)
    running.run(jobs, request["trainer"], request["config"], request["slot"], around)
    return not errors


def _plain(job: Job) -> dict[str, Any]:
    fields = asdict(job) | {"identity": job.identity}  # of now, whatever is edited before it is trained
    return fields | {name: str(fields[name]) if fields[name] else None for name in PATHS}


def _job(plain: Mapping[str, Any]) -> Job:
    fields = {**plain, **{name: Path(plain[name]) if plain[name] else None for name in PATHS}}
    identity = fields.pop("identity")
    job = Job(**fields)
    vars(job)["identity"] = identity
    return job


if __name__ == "__main__":
    sys.exit(0 if work(Path(sys.argv[1])) else 1)
