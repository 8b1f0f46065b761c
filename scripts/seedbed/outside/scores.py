"""Scores of examples as outputs that can be resampled, and the unit in which scores are told."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seedbed.analysis.predictions import scores_of_clusters
from seedbed.core.errors import SeedbedError
from seedbed.core.tasks import CORRELATION, FRACTION, METRICS, Task
from seedbed.outside.results import Results

PER_CENT = (0.0, 100.0)


@dataclass(frozen=True)
class CellScores:
    """The scores of all seeds of a system on one dataset.

    Attributes:
        ids: of the examples.
        values: (seeds, examples) float32, larger is better.
        task: what the scores are of.
        clusters: (examples,) int64, see `analysis.predictions.numbered`; None where there are none.
    """

    ids: tuple[str, ...]
    values: np.ndarray
    task: Task
    clusters: np.ndarray | None = None

    def scores(self, metric: str) -> np.ndarray:
        """(seeds, examples or clusters): what the metric is the mean of."""
        return scores_of_clusters(self.values, self.clusters)

    def counted(self, metric: str) -> None:
        """None: the mean of the scores is the metric."""


@dataclass(frozen=True)
class Measure:
    """How scores are told.

    Attributes:
        metric: a name of `core.tasks.METRICS`.
        factor: turns scores of the files into those of tables: 0.01 for percentages.
    """

    metric: str
    factor: float = 1.0


def measure_of(results: Sequence[Results], *, bounds_given: bool) -> Measure:
    """How the scores of all datasets are told: shares as fractions, others as they are.

    Datasets with shares of several names have `share_of_score` in common.

    Args:
        results: of all datasets.
        bounds_given: whether the user said what scores are possible, so that none is surprising.

    Raises:
        SeedbedError: scores above 1 whose bounds are not known; datasets whose scores have several units, of
            which no family of tests can be made.
    """
    for one in () if bounds_given else results:
        _require_bounds(one)
    found = {_measure(one) for one in results}
    if len(found) == 1:
        return found.pop()
    factors = {measure.factor for measure in found}
    units = {METRICS[measure.metric].unit for measure in found}
    if units == {FRACTION} and len(factors) == 1:
        return Measure("share_of_score", factors.pop())
    told = {f"{one.metric} from {one.bounds[0]:g} to {one.bounds[1]:g}" for one in results}
    raise SeedbedError(
        "the datasets have scores of several kinds, whose differences are not compared with each other",
        where="metrics of the datasets",
        found=" and ".join(sorted(told)),
        hint="analyse one dataset at a time with --dataset, or name a metric that all have with --metric",
    )


def _measure(one: Results) -> Measure:
    low, high = one.bounds
    if (low, high) == PER_CENT:
        return Measure(_name(one.metric, FRACTION, "share_of_"), 0.01)
    if low >= 0 and high <= 1:
        return Measure(_name(one.metric, FRACTION, "share_of_"))
    if (low, high) == (-1.0, 1.0):
        return Measure(_name(one.metric, CORRELATION, "number_of_"))
    return Measure(f"number_of_{one.metric}")


def _name(metric: str, unit: str, beginning: str) -> str:
    """The metric itself where Seedbed knows it in this unit, else the name for any of that unit."""
    known = dict.get(METRICS, metric)
    return metric if known is not None and known.unit == unit and known.direction > 0 else beginning + metric


def _require_bounds(one: Results) -> None:
    """Refuse scores that may be percentages, which a reader would take for fractions."""
    if math.isfinite(one.bounds[1]):
        return
    of_runs = one.scores if one.examples else one.values
    largest = max(float(np.abs(values).max()) for values in of_runs.values())
    if largest > 1:
        raise SeedbedError(
            "scores above 1, and nothing says how large they can be",
            where=f"{', '.join(map(str, one.files[:3]))}, column {one.metric!r}",
            found=f"a score of {largest:g}",
            hint="give the least and the largest possible score: --bounds 0,100 of percentages, "
            "--bounds=-inf,inf where there is none",
        )
