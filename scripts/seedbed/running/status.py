"""How far an experiment is, from its files alone: for who watches a workflow that runs elsewhere.

Reads the planned runs (`planned_runs`), the finished runs, the work folders and the logs. Writes nothing.

A held lock shows that a run is at work; looking at it does not wait, and does not disturb the holder. A lock
file without a holder belonged to a process that has ended. Looking at such a file holds its lock for an
instant; a process that wants the run in that instant tries again after a tenth of a second (`claims`).
"""

import csv
import re
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from seedbed.config.stages import stage_file
from seedbed.core import locks
from seedbed.core.files import read_json
from seedbed.core.locks import Holder
from seedbed.core.run_folder import PLANS, RunFolder, workflows_folder
from seedbed.running import claims, forecast, planned_runs, publishing
from seedbed.running.durations import Durations
from seedbed.running.forecast import Cell
from seedbed.running.planned_runs import PlannedRun, PlannedRuns

DONE, AT_WORK, WAITING, FAILED = "done", "at work", "waiting", "failed"
STATES = (DONE, AT_WORK, WAITING, FAILED)
NEWEST = 20  # finished runs of a cell whose times make its mean
TRAINING = "finetune_"  # what names of rules that train begin with
SLURM = "slurm"  # in results/logs, with what profiles/slurm keeps of its jobs
TAIL = 65_536  # bytes at the end of a log in which its last record begins, a traceback as well
RECORD = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (\w+) +", re.MULTILINE)  # `script.FORMAT`
STATE_FILE = re.compile(r"\.update-(\d+)\.")  # of `training.training_state`


@dataclass(frozen=True)
class RunStatus:
    """How far a run is.

    Attributes:
        name: DATASET/MODEL/FRAMEWORK/INIT/RECIPE/SEED.
        state: one of STATES.
        cell: the runs that take the same time.
        changed: when it was finished, or its process began, in seconds since the epoch; else None.
        holder: the process that works on it, or that ended without a result.
        update: the newest update of which a run at work has left a file; None if there is none yet.
        updates: the updates that a run at work will make; None if the dataset is not prepared.
        error: the first line of the error of a failed run.
        log: the log with the error.
    """

    name: str
    state: str
    cell: Cell
    changed: float | None = None
    holder: Holder | None = None
    update: int | None = None
    updates: int | None = None
    error: str = ""
    log: Path | None = None


@dataclass(frozen=True)
class Failure:
    """The error of a rule that trains no run.

    Attributes:
        log: its log.
        error: the first line of the error.
    """

    log: Path
    error: str


@dataclass(frozen=True)
class Times:
    """How long finished runs of a cell took.

    Attributes:
        cell: the runs that take the same time.
        runs: number of finished ones.
        seconds: the mean of the newest NEWEST; for seeds that train as one model, of each one's share.
    """

    cell: Cell
    runs: int
    seconds: float


@dataclass(frozen=True)
class Status:
    """How far an experiment is.

    Attributes:
        planned: the plan of the latest workflow.
        workflows: the workflows that work on the experiment.
        runs: all runs of the plan, in its order.
        failures: of rules that prepare data and models, or make tables and the report; also those of another
            experiment's workflow that prepares shared data.
        times: of cells with finished runs, in the order of the plan.
        seconds_left: until all runs are trained that have not failed; None if no workflow works or it is
            not known.
        undecided: whether a stage has ended, and another one is to follow.
    """

    planned: PlannedRuns
    workflows: list[Holder]
    runs: list[RunStatus]
    failures: list[Failure]
    times: list[Times]
    seconds_left: float | None
    undecided: bool

    def count(self, state: str) -> int:
        """Number of runs in a state."""
        return sum(run.state == state for run in self.runs)

    def of(self, state: str) -> list[RunStatus]:
        """The runs in a state."""
        return [run for run in self.runs if run.state == state]

    @property
    def has_failed(self) -> bool:
        """Whether a run or another rule has failed."""
        return self.count(FAILED) > 0 or bool(self.failures)

    @property
    def works(self) -> bool:
        """Whether a workflow, or a run that has outlived its workflow, is at work."""
        return bool(self.workflows) or self.count(AT_WORK) > 0

    @property
    def is_finished(self) -> bool:
        """Whether all runs are done, nothing has failed, no workflow works, and no stage is to follow."""
        done = self.count(DONE) == len(self.runs) and not self.has_failed
        return done and not self.works and not self.undecided


def status(experiment: Path) -> Status:
    """How far an experiment is now.

    Args:
        experiment: results/EXPERIMENT.

    Raises:
        SeedbedError: see `planned_runs.read`.
    """
    planned = planned_runs.read(experiment)
    durations = Durations(experiment.parent, planned.machine)
    runs = [_status_of(run, planned, durations) for run in planned.runs]
    workflows = [
        holder for path in sorted(workflows_folder(experiment).glob("*.lock")) if (holder := _holder(path))
    ]
    failures, times = list(_failures(planned)), list(_times(runs, experiment))
    left = _seconds_left(planned, runs, durations) if workflows else None
    return Status(planned, workflows, runs, failures, times, left, _is_undecided(planned))


def _status_of(run: PlannedRun, planned: PlannedRuns, durations: Durations) -> RunStatus:
    folder = RunFolder(planned.experiment, *run.name.split("/"))
    # the lock is looked at first: a run that is published after that has its files below
    lock = folder.work / claims.FILE
    holder = _holder(lock)
    ended = None if holder else locks.note(lock)
    began = _time_of(lock)
    if (finished := _finished(run, folder, planned)) is not None:
        return RunStatus(run.name, DONE, run.cell, finished)
    if holder:
        updates = durations.updates(*run.cell)
        return RunStatus(run.name, AT_WORK, run.cell, began, holder, _update(folder.work), updates)
    for log in planned.logs(run):
        if error := _last_error(log, planned.started):
            return RunStatus(run.name, FAILED, run.cell, holder=ended, error=error, log=log)
    if ended and began is not None and began >= planned.started:
        error = "its process has ended without a result"
        return RunStatus(run.name, FAILED, run.cell, began, ended, error=error)
    return RunStatus(run.name, WAITING, run.cell)


def _holder(lock: Path) -> Holder | None:
    """The present holder of a lock; None if it is free, or no file that can be opened."""
    try:
        return locks.holder(lock)
    except OSError:
        return None


def _time_of(path: Path) -> float | None:
    """When a file was written; None if there is none."""
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def _finished(run: PlannedRun, folder: RunFolder, planned: PlannedRuns) -> float | None:
    """When a run was finished; None if it is not, or is made again and the old result is still there."""
    for place in (folder.target, folder.work / publishing.KEPT):  # a batch keeps its results in the second
        made = _time_of(place / "run.json")
        if made is not None and not (run.to_make and made < planned.started):
            return made
    return None


def _update(work: Path) -> int | None:
    """The newest update of which a run has left a training checkpoint or metrics."""
    found = [int(match[1]) for path in (work / "states").glob("*") if (match := STATE_FILE.search(path.name))]
    try:
        with open(work / "run" / "metrics.csv", encoding="utf-8", newline="") as stream:
            found += [int(row["step"]) for row in csv.DictReader(stream)]
    except (OSError, ValueError, KeyError, TypeError):  # none yet, or removed while it is published
        pass
    return max(found, default=None)


def _last_error(log: Path, since: float) -> str | None:
    """The first line of the error with which a log ends; None if it does not end with one, or is older.

    A process that has failed writes nothing after its error, and its next attempt does.
    """
    written = _time_of(log)
    if written is None or written < since:
        return None
    try:
        with open(log, "rb") as stream:
            stream.seek(max(0, log.stat().st_size - TAIL))
            text = stream.read().decode("utf-8", errors="replace")
    except OSError:
        return None
    records = list(RECORD.finditer(text))
    if not records or records[-1][1] != "ERROR":
        return None
    lines = text[records[-1].end() :].strip().splitlines() or [""]
    return lines[-1] if lines[0].startswith("Traceback ") else lines[0]


def _failures(planned: PlannedRuns) -> Iterator[Failure]:
    """Errors in the logs of rules that train no run."""
    shared = [path for path in planned.experiment.parent.glob("logs/*") if path.name not in (SLURM, PLANS)]
    own = [path for path in planned.experiment.glob("logs/*") if not path.name.startswith(TRAINING)]
    for place in sorted(shared) + sorted(own):
        for log in sorted(place.rglob("*.log")) if place.is_dir() else [place]:
            if log.suffix == ".log" and (error := _last_error(log, planned.started)):
                yield Failure(log, error)


# --- times --------------------------------------------------------------------------------------------------


def _times(runs: Sequence[RunStatus], experiment: Path) -> Iterator[Times]:
    finished: dict[Cell, list[RunStatus]] = {}
    for run in runs:
        if run.state == DONE:
            finished.setdefault(run.cell, []).append(run)
    for cell, of_cell in finished.items():
        newest = sorted(of_cell, key=lambda run: run.changed or 0)[-NEWEST:]
        seconds = list(_seconds(newest, experiment))
        if seconds:
            yield Times(cell, len(of_cell), statistics.fmean(seconds))


def _seconds(runs: Iterable[RunStatus], experiment: Path) -> Iterator[float]:
    """The seconds of finished runs, or their shares of those of a batched model."""
    for run in runs:
        folder = RunFolder(experiment, *run.name.split("/"))
        for place in (folder.target, folder.work / publishing.KEPT):
            try:
                yield read_json(place / "run.json")["seconds"]["total"] / run.cell.kind.together
                break
            except (OSError, ValueError, KeyError, TypeError):  # moved meanwhile, or damaged
                continue


def _seconds_left(
    planned: PlannedRuns, runs: Sequence[RunStatus], durations: Durations, now: float | None = None
) -> float | None:
    """Seconds until all runs are trained that have not failed, by the arithmetic of the terminal."""
    now = time.time() if now is None else now
    left = Counter(run.cell for run in runs if run.state in (AT_WORK, WAITING))
    if not left:
        return None
    made = sum(run.state == DONE and (run.changed or 0) >= planned.started for run in runs)
    if planned.at_once is None:  # how many jobs work at the same time is up to the cluster
        return (now - planned.started) * left.total() / made if made else None
    working = [
        # each of several seeds in one model has its share of the time
        ([run.cell], max(0.0, now - (run.changed or now)) / run.cell.kind.together)
        for run in runs
        if run.state == AT_WORK
    ]
    return forecast.seconds_left(left, durations, working, planned.at_once, made > 0)


def _is_undecided(planned: PlannedRuns) -> bool:
    """Whether the stage of the plan has ended, and another one is to follow."""
    if planned.stage is None:
        return False
    try:
        return not read_json(stage_file(planned.experiment, planned.stage))["finished"]
    except (OSError, ValueError, KeyError):
        return False
