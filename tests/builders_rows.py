"""Rows of runs.csv and summary.csv, made up: what a test does not say has a default or is not known."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from seedbed.analysis.experiment import Experiment
from seedbed.analysis.table_rows import RunRow, SummaryRow
from seedbed.core.rows import TEST_SETS
from seedbed.core.splits import PREDICTED
from seedbed.core.tasks import METRICS

T = TypeVar("T", RunRow, SummaryRow)
NAMES = {"dataset": "reviews", "model": "small", "framework": "fairseq", "init": "pretrained"}
MEASURED = [
    f"{split}_{metric}{ending}" for split in PREDICTED for metric in METRICS for ending in TEST_SETS.values()
]
NAMES |= {"recipe": "lab", "method": "full"}


def run_row(told: Mapping[str, Any] | None = None, **more: Any) -> RunRow:
    """A run, by columns of runs.csv."""
    return RunRow.of({**dict.fromkeys(MEASURED), "init_seed": 0, "data_seed": 0} | _named(told, more))


def summary_row(told: Mapping[str, Any] | None = None, **more: Any) -> SummaryRow:
    """A group of seeds, by columns of summary.csv."""
    return SummaryRow(**{"metric": "accuracy", "n_seeds": 3} | _named(told, more))


def _named(told: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    names = {**NAMES, **(told or {}), **more}
    return {"recipe_family": names["recipe"].partition(".")[0]} | names


def changed(row: T, **columns: Any) -> T:
    """The row with other values of some columns."""
    return RunRow.of({**row, **columns}) if isinstance(row, RunRow) else dataclasses.replace(row, **columns)


def change_runs(experiment: Experiment, change: Callable[[RunRow], Mapping[str, Any]]) -> None:
    """Give the runs of an experiment, by all its metrics, other values of the columns that `change` names."""
    experiment.runs[:] = [changed(run, **change(run)) for run in experiment.runs]
    for one in experiment.by_metric.values():
        vars(one).pop("cells", None)  # made of the runs as they were
