"""The metrics of a finished experiment, counted again from the predictions of its runs."""

import itertools
from dataclasses import dataclass
from pathlib import Path

from seedbed.analysis.finished import Finished, Group, agree, read_finished, read_group
from seedbed.core.errors import SeedbedError
from seedbed.core.rows import CELL, grouped
from seedbed.core.splits import PREDICTED
from seedbed.core.statistics_settings import complete_settings


@dataclass(frozen=True)
class Recount:
    """What agrees.

    Attributes:
        runs: number of runs.
        metrics: names of the metrics that were counted, on validation and test.
    """

    runs: int
    metrics: tuple[str, ...]


def recount(folder: Path) -> Recount:
    """Count the metrics of every run again from its predictions, and compare them with runs.csv.

    A metric that predictions do not tell exactly, such as the loss of classes, is not counted.

    Args:
        folder: of the experiment, such as results/demo.

    Raises:
        SeedbedError: a metric differs by more than rounding; or see `read_finished` and `read_group`.
    """
    results = read_finished(folder, complete_settings({}), folder.name)
    metrics = tuple(dict.fromkeys((results.metric, *results.task.counted)))
    for runs in grouped(results.runs, *CELL).values():
        _check(results, read_group(results, runs), metrics)
    return Recount(len(results.runs), metrics)


def _check(results: Finished, group: Group, metrics: tuple[str, ...]) -> None:
    for split, metric in itertools.product(PREDICTED, metrics):
        for run, counted in zip(group.runs, group.splits[split].measured(metric), strict=True):
            told = run.value(f"{split}_{metric}")
            if not agree(told, counted):
                raise SeedbedError(
                    f"the predictions of a run do not have the {metric} on {split} of the table of runs",
                    where=f"{results.run_folder(run)}/predictions.csv",
                    found=f"{counted} by counting, {told} in runs.csv",
                    hint="one of both was changed: let Snakemake make the run and the tables anew",
                )
