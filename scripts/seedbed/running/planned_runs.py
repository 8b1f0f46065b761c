"""The runs that a workflow is to make, in a file for who watches it: results/logs/plans/EXPERIMENT.json.

The workflow writes it before its first job. It has all runs of the experiment at its present stage, also
those that this workflow was not asked for. A later workflow replaces it, and so does the next stage. The time
of the file is the workflow's start by the clock of the file system, as are the times of the files of runs.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core.errors import SeedbedError
from seedbed.core.files import parse_json, write_json
from seedbed.core.run_folder import RunFolder, batch_log, log_in_batch, name_of, plan_file
from seedbed.running import claims, gpu_slots, guard
from seedbed.running.durations import Kind, this_machine
from seedbed.running.forecast import Cell, cell_of

if TYPE_CHECKING:
    from seedbed.config.plan import Plan


@dataclass(frozen=True)
class PlannedRun:
    """A run of the plan.

    Attributes:
        name: DATASET/MODEL/FRAMEWORK/INIT/RECIPE/SEED.
        cell: the runs that take the same time.
        rule: the rule that publishes it.
        batch: DATASET/MODEL/FRAMEWORK/NUMBER of the batch that trains it; empty if it has its own job.
        to_make: whether the workflow makes it, also where a result of before is there.
    """

    name: str
    cell: Cell
    rule: str
    batch: str
    to_make: bool


@dataclass(frozen=True)
class PlannedRuns:
    """The runs of an experiment, as its latest workflow planned them.

    Attributes:
        experiment: results/EXPERIMENT.
        started: when the workflow started, in seconds of the file system's clock.
        stage: number of the experiment's stage; None if it does not grow.
        at_once: runs that the workflow's host trains at the same time; None if a cluster trains them.
        machine: `durations.this_machine` of the workflow's host.
        together: whether a batch trains its runs as one model.
        runs: all runs.
    """

    experiment: Path
    started: float
    stage: int | None
    at_once: int | None
    machine: dict[str, Any]
    together: bool
    runs: list[PlannedRun]

    def logs(self, run: PlannedRun) -> Iterator[Path]:
        """The logs that may have an error of a run, the closest first."""
        if run.batch:
            log = batch_log(self.experiment, run.rule, run.batch)
            yield log_in_batch(log.with_suffix(""), run.name, self.together)
            yield log
        yield RunFolder(self.experiment, *run.name.split("/")).log(run.rule)


def write(workflow: Any, plan: "Plan") -> None:
    """Write the file, if this process is the main one of a workflow that makes files.

    Args:
        workflow: Snakemake's, whose jobs are known.
        plan: the experiment's.

    Raises:
        SeedbedError: the results cannot be written.
    """
    if not guard.makes(workflow):
        return
    to_make = {name_of(target) for target, job in guard.targets(workflow) if workflow.dag.needrun(job)}
    cells: dict[Cell, int] = {}
    runs = [
        {
            "run": run.folder,
            "cell": cells.setdefault(plan_cell(plan, run), len(cells)),
            "rule": plan.task.rules[run.framework],
            "batch": run.batch if plan.batched else "",
            "to_make": run.folder in to_make,
        }
        for run in plan.runs
    ]
    content = {
        "stage": plan.stage.number if plan.stage else None,
        "at_once": runs_at_once(workflow, plan) if workflow.local_exec else None,
        "machine": this_machine(),
        "together": plan.config["fused_seeds"],
        "cells": [{**cell._asdict(), "kind": asdict(cell.kind)} for cell in cells],
        "runs": runs,
    }
    experiment = Path(plan.experiment_folder)
    try:
        write_json(plan_file(experiment), content)
    except OSError as error:
        raise claims.unwritable(experiment, error) from error


def read(experiment: Path) -> PlannedRuns:
    """The planned runs of an experiment.

    Args:
        experiment: results/EXPERIMENT.

    Raises:
        SeedbedError: no workflow has written the file, or it is damaged.
    """
    path = plan_file(experiment)
    try:
        # should the file be replaced meanwhile, text and time are still of one file
        with open(path, encoding="utf-8") as stream:
            content, started = parse_json(stream.read()), os.fstat(stream.fileno()).st_mtime
        return _planned(experiment, started, content)
    except FileNotFoundError:
        raise SeedbedError(
            "no workflow has planned the runs of this experiment",
            where=str(path),
            hint="check the folder, or start the experiment: a workflow writes the file before its first job",
        ) from None
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise SeedbedError(
            "the plan of this experiment is damaged, or of another version",
            where=str(path),
            found=f"{type(error).__name__}: {error}",
            hint="start the experiment again: that writes the file anew, and trains no finished run again",
        ) from None


def _planned(experiment: Path, started: float, content: Mapping[str, Any]) -> PlannedRuns:
    cells = [Cell(**{**cell, "kind": Kind(**cell["kind"])}) for cell in content["cells"]]
    runs = [
        PlannedRun(run["run"], cells[run["cell"]], run["rule"], run["batch"], run["to_make"])
        for run in content["runs"]
    ]
    own = {key: content[key] for key in ("stage", "at_once", "machine", "together")}
    return PlannedRuns(experiment, started, runs=runs, **own)


def plan_cell(plan: "Plan", run: Any) -> Cell:
    """The cell of a run of a plan."""
    return cell_of(asdict(run), plan.config["recipes"][run.recipe], plan.together(run))


def runs_at_once(workflow: Any, plan: "Plan") -> int:
    """Number of runs that this host trains at the same time.

    Args:
        workflow: Snakemake's.
        plan: the experiment's.
    """
    threads = plan.batch_threads if plan.batched else plan.run_threads
    jobs = (workflow.resource_settings.cores or 1) // threads
    return max(1, gpu_slots.limited(workflow, jobs)) * plan.batching.at_once
