"""Predicted numbers as arrays: the predictions.csv of runs of the task regression, and what is resampled.

A run with a prediction that is no finite number on a split has no mean squared error there, and correlations
of 0. A run with the same prediction for all examples has correlations of 0.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from seedbed.analysis import statistics
from seedbed.analysis.bootstrap import Draws
from seedbed.analysis.predictions import (
    CATEGORY,
    HINT,
    OF_A_RUN,
    UNDEFINED_LOSS,
    Counted,
    Groups,
    bad_predictions,
    check_unique,
    clusters_of,
    kept_clusters,
    line_of,
    numbered,
    numbers_of,
    read_columns,
    read_header,
    scores_of_clusters,
    summed_by,
)
from seedbed.core import value_metrics
from seedbed.core.errors import SeedbedError
from seedbed.core.tasks import METRICS, SQUARES, TASKS, VALUE_COLUMNS, Task

NUMBERS = ("label", "prediction")
# of scaled values: a variance of resampled predictions below it is none
NO_VARIANCE = 1e-9


@dataclass(frozen=True)
class CellValues:
    """The predictions of all seeds of a cell (dataset, model, framework, init, recipe) on one split.

    Attributes:
        ids: examples, in the order of predictions.csv.
        labels: (examples,) float64.
        predicted: (seeds, examples) float64, rows in the order of the cell's runs; NaN where the model
            returned no finite number.
        constant: mean of the labels of the training split, the answer that needs no text.
        task: what the predictions are of.
        clusters: (examples,) int64: the cluster of each example; None where there are none.
    """

    ids: tuple[str, ...]
    labels: np.ndarray
    predicted: np.ndarray
    constant: float
    task: Task = TASKS["regression"]
    clusters: np.ndarray | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Class names: none."""
        return ()

    @cached_property
    def undefined(self) -> np.ndarray:
        """(seeds,) bool: whether a prediction is no finite number."""
        return ~np.isfinite(self.predicted).all(axis=1)

    @cached_property
    def all_same(self) -> np.ndarray:
        """(seeds,) bool: whether every prediction of the seed is the same, but for rounding."""
        return value_metrics.are_constant(self.labels, self._finite) & ~self.undefined

    @property
    def tells_collapse(self) -> bool:
        """Whether the same prediction for these examples is more than chance: where labels differ."""
        return len(np.unique(self.labels)) > 1

    @cached_property
    def _finite(self) -> np.ndarray:
        """The predictions, with the constant instead of those of undefined seeds."""
        return np.where(self.undefined[:, None], self.constant, self.predicted)

    def measured(self, metric: str) -> list[float | None]:
        """A metric of the split for each seed; None for an error that is not defined."""
        found = value_metrics.value(metric, self.labels, self._finite)
        has_none = self.undefined & (METRICS[metric].unit == SQUARES)
        return [None if none else value for value, none in zip(found.tolist(), has_none, strict=True)]

    def scores(self, metric: str) -> np.ndarray:
        """(seeds, examples or clusters), all finite: what a metric is the mean of.

        A correlation is no mean over examples: its scores are the correlation plus the influence of each
        example, with which they have its mean, and to first order its spread over resampled examples. The
        errors of a seed without a metric are UNDEFINED_LOSS times the variance of the labels.
        """
        found = value_metrics.value(metric, self.labels, self._finite)[:, None]
        scores = found + value_metrics.influences(metric, self.labels, self._finite)
        if METRICS[metric].unit == SQUARES:
            worst = UNDEFINED_LOSS * max(1.0, float(self.labels.var()))
            scores = np.where(self.undefined[:, None], worst, scores)
        return scores_of_clusters(scores, self.clusters)

    def counted(self, metric: str) -> "Counted | Ranked | None":
        """What gives a correlation on resampled examples; None of an error, which is a mean of its scores."""
        if metric == "pearson":
            return self._moments()
        return self._ranked() if metric == "spearman" else None

    def _moments(self) -> Counted:
        """Pearson's correlation by sums of products of scaled values."""
        x, y = value_metrics.scaled(self.labels, self._finite)
        seeds = len(y)
        one = np.ones((len(x), 1))
        columns = np.concatenate([one, x[:, None], x[:, None] ** 2, y.T, y.T**2, y.T * x[:, None]], axis=1)
        columns = columns.astype(np.float32)
        if self.clusters is not None:
            columns = summed_by(columns, self.clusters)

        def measured(sums: np.ndarray) -> np.ndarray:
            number, *rest = np.split(sums.astype(np.float64), [1, 2, 3, 3 + seeds, 3 + 2 * seeds], axis=1)
            mean_x, square_x, mean_y, square_y, product = (part / number for part in rest)
            variances = (square_x - mean_x**2) * (square_y - mean_y**2)
            return _ratio(product - mean_x * mean_y, variances)

        return Counted(columns, measured)

    def _ranked(self) -> "Ranked":
        """Spearman's correlation by ranks among resampled examples, which are sorted once."""
        labels = _Order.of(self.labels)
        rows = [_Order.of(row) for row in self._finite]
        same = value_metrics.are_constant(self.labels, self._finite)

        def measured(counts: np.ndarray) -> np.ndarray:
            # an example a row, since a row is moved at once where examples are put in order
            weights = np.ascontiguousarray(counts.T, dtype=np.float32)
            weights = weights if self.clusters is None else weights[self.clusters]
            u, of_labels = labels.ranks(weights)
            weighted = weights * u
            found = np.zeros((len(counts), len(rows)), dtype=np.float32)
            for seed, row in enumerate(rows):
                if not same[seed]:
                    v, of_row = row.ranks(weights)
                    found[:, seed] = _ratio(_products(weighted, v), of_labels * of_row)
            return found

        return Ranked(measured)

    def constant_value(self, metric: str) -> float:
        """What always answering the mean of the training labels has of a metric."""
        constant = np.full((1, len(self.labels)), self.constant)
        return float(value_metrics.value(metric, self.labels, constant)[0])

    def not_above_constant(self, confidence: float) -> bool:
        """Whether the one-sided bound of the first seed's main metric is not better than the constant's.

        Of a correlation the bound is the correlation less the quantile of the normal distribution times its
        standard error over examples, by the delta method, and the constant has 0. Of an error it is that of
        the mean difference of both errors of an example.
        """
        if self.undefined[0]:
            return True
        metric = self.task.selection
        scores = METRICS[metric].direction * self.scores(metric)[0].astype(np.float64)
        if METRICS[metric].unit == SQUARES:
            constant = np.full((1, len(self.labels)), self.constant)
            errors = value_metrics.squared_errors(self.labels, constant)
            scores = scores + scores_of_clusters(errors, self.clusters)[0]
        return not statistics.bound_of_mean(scores, confidence) > 0

    def keep(self, kept: np.ndarray) -> "CellValues":
        """The predictions on some examples: those where `kept`, (examples,) bool, is true."""
        return replace(
            self,
            ids=tuple(itertools.compress(self.ids, kept)),
            labels=self.labels[kept],
            predicted=self.predicted[:, kept],
            clusters=kept_clusters(self.clusters, kept),
        )

    def clustered(self, clusters: Mapping[str, str]) -> "CellValues":
        """The predictions with the cluster of each example.

        Args:
            clusters: names of clusters by the examples' ids.

        Raises:
            SeedbedError: an example has none.
        """
        return replace(self, clusters=numbered(clusters_of(self.ids, clusters)))

    def same_examples(self, other: Any) -> bool:
        """Whether both are of the same examples with the same labels in the same order.

        Args:
            other: predictions of the same task.
        """
        return self.ids == other.ids and np.array_equal(self.labels, other.labels)

    def called(self, names: Sequence[str]) -> "CellValues":
        """The predictions as they are: there are no classes to be named."""
        return self

    def sharing(self, first: Any) -> "CellValues":
        """These predictions with the examples of `first`, so that ids and labels are in memory once."""
        return replace(self, ids=first.ids, labels=first.labels, clusters=first.clusters)

    def told_examples(self) -> Iterator[str]:
        """Every example as errors name it."""
        for name, label in zip(self.ids, self.labels.tolist(), strict=True):
            yield f"{name!r} with the value {label:g}"

    @staticmethod
    def stacked(runs: Sequence[Any]) -> "CellValues":
        """Predictions on the same examples under each other, in the given order."""
        return replace(runs[0], predicted=np.concatenate([run.predicted for run in runs]))


# --- resampled ranks ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranked:
    """A metric of ranks, for resampled examples.

    Attributes:
        measured: maps counts of examples or clusters (replicates, ...) to the metric (replicates, seeds).
    """

    measured: Any

    def resampled(self, draws: Draws) -> np.ndarray:
        """The metric on the examples of each replicate: (replicates, seeds)."""
        return draws.of_counts(self.measured)


@dataclass(frozen=True)
class _Order:
    """The order of some values, so that resampled ones are ranked without sorting them again.

    Attributes:
        order: (examples,): the examples from the smallest value on.
        starts: places in it where a new value begins.
        place: (examples,): which of the distinct values an example has.
    """

    order: np.ndarray
    starts: np.ndarray
    place: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> "_Order":
        distinct, place = np.unique(values, return_inverse=True)
        order = np.argsort(place, kind="stable")
        return cls(order, np.searchsorted(place[order], np.arange(len(distinct))), place)

    def ranks(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean ranks of examples that occur several times, less their mean.

        Args:
            weights: (examples, replicates) float32: how often each example occurs.

        Returns:
            The ranks as shares of the number of examples, (examples, replicates) float32, and the sum of
            their squares over all occurrences, (replicates,).
        """
        counts = weights[self.order]
        if len(self.starts) < len(counts):  # some values are equal
            counts = np.add.reduceat(counts, self.starts, axis=0)
        number = counts.sum(axis=0)
        # whole and half numbers far below 2^24, which float32 holds exactly
        ranks = (counts.cumsum(axis=0) - counts / 2 - number / 2) / number
        return ranks[self.place], _products(counts * ranks, ranks)


def _products(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(replicates,) float64: sums of products over the first axis."""
    return np.einsum("er,er->r", one, other, dtype=np.float64)


def _ratio(covariance: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """A correlation from a covariance and the product of two variances; 0 where a variance is none."""
    known = variances > NO_VARIANCE
    root = np.sqrt(variances, out=np.ones_like(variances), where=known)
    return np.where(known, covariance / root, 0.0).astype(np.float32)


# --- reading ------------------------------------------------------------------------------------------------


def read_values(path: str | Path, constant: float, groups: Groups = OF_A_RUN) -> dict[Any, CellValues]:
    """The predictions of one run by split: validation and test, both with at least one example.

    Args:
        path: a predictions.csv.
        constant: mean of the labels of the training split.
        groups: see `read_predictions`.

    Raises:
        SeedbedError: the file is cut; a column, a cell or a split is missing; a label that is no finite
            number; an example that stands twice in its split.
    """
    content, text, header = read_header(path)
    if tuple(header) != (*groups.columns, *VALUE_COLUMNS):
        raise bad_predictions(f"{path}, line 1", f"columns {', '.join(header) or 'none'}")
    kinds = {"split": CATEGORY, "example": pa.string(), **dict.fromkeys(NUMBERS, pa.float64())}
    kinds |= groups.columns
    table = read_columns(path, content, text, kinds)
    labels, predicted = (numbers_of(table[name]) for name in NUMBERS)
    wrong = ~np.isfinite(labels)
    if wrong.any():
        raise SeedbedError(
            "a label that is no finite number", where=f"{path}, line {line_of(wrong)}, label", hint=HINT
        )
    predicted = np.where(np.isfinite(predicted), predicted, np.nan)
    ids = np.array(table["example"].to_pylist(), dtype=object)
    found = {}
    for group, rows in groups.rows(table, path).items():
        chosen = tuple(ids[rows].tolist())
        check_unique(chosen, groups.told(group), path)
        found[group] = CellValues(chosen, labels[rows], predicted[None, rows], constant)
    return found
