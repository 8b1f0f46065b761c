"""The lines that tell people how far an experiment is, and the same for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any

from seedbed.config.stages import stage_file
from seedbed.core.locks import Holder
from seedbed.core.words import count, framework_name, key_text
from seedbed.running.durations import about
from seedbed.running.forecast import Cell
from seedbed.running.status import AT_WORK, FAILED, STATES, RunStatus, Status

MOST = 20  # runs of a state, and rows of times


def lines_of(status: Status, now: float) -> Iterator[str]:
    """The lines of a status.

    Args:
        status: of the experiment.
        now: seconds since the epoch.
    """
    planned = status.planned
    stage = "" if planned.stage is None else f", stage {planned.stage}"
    others = ", ".join(f"{status.count(state):,} {state}" for state in STATES[1:])
    of_all = f"{status.count(STATES[0]):,} of {count(len(status.runs), 'run')} done"
    yield f"{planned.experiment}{stage}: {of_all}, {others}"
    yield from _what_is_next(status)
    if status.times:
        yield from ["", "mean seconds of a run"]
        names = _names([times.cell for times in status.times])
        rows = [f"{times.seconds:8,.1f}  {name}" for times, name in zip(status.times, names, strict=True)]
        yield from _shortened(rows, "row")
    if status.has_failed:
        yield from ["", FAILED]
        yield from _shortened([f"  {failure.error}; see {failure.log}" for failure in status.failures], "log")
        yield from _shortened([f"  {run.name}: {_failure(run)}" for run in status.of(FAILED)], "run")
    if at_work := status.of(AT_WORK):
        yield from ["", AT_WORK]
        yield from _shortened([f"  {run.name}: {_progress(run, now)}" for run in at_work], "run")


def _what_is_next(status: Status) -> Iterator[str]:
    planned = status.planned
    if status.seconds_left is not None:
        at_once = "" if planned.at_once is None else f", {planned.at_once:,} at a time"
        yield f"about {about(status.seconds_left)} left{at_once}"
    if status.workflows:
        yield f"workflow: {'; '.join(map(_process, status.workflows))}"
    elif status.works:
        yield "no workflow is at work: these runs have outlived theirs"
    elif status.undecided:
        place = stage_file(planned.experiment, planned.stage or 0)
        yield f"no workflow is at work; questions are open after this stage ({place})"
    elif not status.is_finished:
        yield "no workflow is at work; start the same command again to go on"


def _process(holder: Holder) -> str:
    job = f", Slurm job {holder.slurm_job}" if holder.slurm_job else ""
    return f"process {holder.pid} on host {holder.host}{job}, since {holder.since}"


def _progress(run: RunStatus, now: float) -> str:
    """How far a run at work is, for how long it works, and who does."""
    parts = []
    if run.update is not None:
        share = f" of {run.updates:,} ({run.update / run.updates:.0%})" if run.updates else ""
        parts.append(f"update {run.update:,}{share}")
    if run.changed is not None:
        parts.append(f"for {max(0, now - run.changed):,.0f} s")
    if run.holder:
        parts.append(f"process {run.holder.pid} on host {run.holder.host}")
    return ", ".join(parts)


def _failure(run: RunStatus) -> str:
    place = f"; see {run.log}" if run.log else ""
    holder = f" ({_process(run.holder)})" if run.holder else ""
    return f"{run.error}{holder}{place}"


def _shortened(lines: Sequence[str], what: str) -> Iterator[str]:
    yield from lines[:MOST]
    if len(lines) > MOST:
        yield f"  and {count(len(lines) - MOST, f'further {what}')}; --json has all"


def _names(cells: Sequence[Cell]) -> list[str]:
    """Cells by what differs between them; a single one is `all`."""
    facts = [_facts(cell) for cell in cells]
    differing = [key for key in facts[0] if len({str(fact[key]) for fact in facts}) > 1]
    return [", ".join(_fact(key, fact[key]) for key in differing) or "all" for fact in facts]


def _facts(cell: Cell) -> dict[str, Any]:
    """What a cell has in common, by the names of the config."""
    return {"dataset": cell.dataset, **asdict(cell.kind), "epochs": cell.epochs, "texts": cell.size}


def _fact(key: str, value: Any) -> str:
    if key == "framework":
        return framework_name(value)
    if isinstance(value, str):
        return value
    return f"{key_text(key)} {'all' if value is None else value}"


def for_programs(status: Status) -> dict[str, Any]:
    """A status as plain data; times are seconds, points in time seconds since the epoch."""
    planned = status.planned
    return {
        "experiment": str(planned.experiment),
        "stage": planned.stage,
        "started": planned.started,
        "finished": status.is_finished,
        "counts": {state: status.count(state) for state in STATES},
        "seconds_left": status.seconds_left,
        "at_once": planned.at_once,
        "workflows": [asdict(holder) for holder in status.workflows],
        "times": [
            {**_facts(times.cell), "runs": times.runs, "mean_seconds": times.seconds}
            for times in status.times
        ],
        "failures": [{"log": str(one.log), "error": one.error} for one in status.failures],
        "runs": [_plain(run) for run in status.runs],
    }


def _plain(run: RunStatus) -> dict[str, Any]:
    own = {field.name: getattr(run, field.name) for field in fields(run) if field.name != "cell"}
    holder = asdict(run.holder) if run.holder else None
    return {**own, "holder": holder, "log": str(run.log) if run.log else None}
