"""Metrics of sets of labels: micro-F1, macro-F1 and subset accuracy.

Values are those of scikit-learn for a matrix of labels, with zero_division=0: micro-F1 counts the labels of
all texts together, macro-F1 is the mean F1 of all labels, of which one that is neither a label nor a
prediction has 0, and subset accuracy is the share of texts all of whose labels are right. A text without a
prediction has no predicted label, and its set is wrong.

The influence of a text (Hampel 1974) is what one more text like it would change, times the number of texts.
The mean influence is zero, and the metric plus the mean influence of resampled texts is, to first order,
their metric (the delta method).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np


@dataclass(frozen=True)
class Counts:
    """Counts of any number of runs, as float64 arrays.

    Attributes:
        right: (..., labels): texts of which the label is both predicted and true.
        predicted, actual: (..., labels): texts of which it is predicted, and of which it is true.
        exact: (...,): texts whose predicted set is the true one.
        total: (...,): texts.
    """

    right: np.ndarray
    predicted: np.ndarray
    actual: np.ndarray
    exact: np.ndarray
    total: np.ndarray

    @classmethod
    def of(cls, actual: np.ndarray, predicted: np.ndarray, exact: np.ndarray) -> Self:
        """The counts of each row of predictions.

        Args:
            actual: (texts, labels) bool.
            predicted: (..., texts, labels) bool.
            exact: (..., texts) bool, see `exact_sets`.
        """
        return cls(
            (predicted & actual).sum(axis=-2, dtype=np.float64),
            predicted.sum(axis=-2, dtype=np.float64),
            actual.sum(axis=-2, dtype=np.float64),
            exact.sum(axis=-1, dtype=np.float64),
            np.array(float(len(actual))),
        )


def exact_sets(actual: np.ndarray, predicted: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """(..., texts) bool: whether the predicted set is the true one; a missing prediction has none.

    Args:
        actual: (texts, labels) bool.
        predicted: (..., texts, labels) bool.
        missing: (..., texts) bool.
    """
    return (predicted == actual).all(axis=-1) & ~missing


def value(metric: str, counts: Counts) -> np.ndarray:
    """(...,): a metric of each run; `metric` is its name in `METRICS`."""
    return VALUES[metric](counts)


def influences(metric: str, actual: np.ndarray, predicted: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """(..., texts) float64: the influence of each text. Args: see `value` and `Counts.of`."""
    counts = Counts.of(actual, predicted, exact)
    if metric == "subset_accuracy":
        return exact - value(metric, counts)[..., None]
    right, either = predicted & actual, predicted.astype(np.int64) + actual
    if metric == "micro_f1":
        below = (counts.predicted + counts.actual).sum(axis=-1)
        gained = 2 * right.sum(axis=-1) - value(metric, counts)[..., None] * either.sum(axis=-1)
        return len(actual) * _ratio(gained, below[..., None])
    below = (counts.predicted + counts.actual)[..., None, :]
    gained = 2 * right - label_f1(counts)[..., None, :] * either
    return len(actual) * _ratio(gained, below).mean(axis=-1)


def label_f1(counts: Counts) -> np.ndarray:
    """(..., labels): F1 of each label; 0 of one that is neither a label nor a prediction."""
    return _ratio(2 * counts.right, counts.predicted + counts.actual)


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """above / below, and 0 where below is 0."""
    shape = np.broadcast_shapes(above.shape, below.shape)
    return np.divide(above, below, out=np.zeros(shape), where=below > 0)


def _micro_f1(counts: Counts) -> np.ndarray:
    return _ratio(2 * counts.right.sum(axis=-1), (counts.predicted + counts.actual).sum(axis=-1))


def _macro_f1(counts: Counts) -> np.ndarray:
    return label_f1(counts).mean(axis=-1)


def _subset_accuracy(counts: Counts) -> np.ndarray:
    return counts.exact / counts.total


VALUES: dict[str, Callable[[Counts], np.ndarray]] = {
    "micro_f1": _micro_f1,
    "macro_f1": _macro_f1,
    "subset_accuracy": _subset_accuracy,
}


# --- constant answers ---------------------------------------------------------------------------------------


def best_constant(metric: str, actual: np.ndarray) -> np.ndarray:
    """(labels,) bool: the set that scores best if it is the answer to all texts; of several the smallest.

    It is looked for among the n most frequent labels, for each n, and the most frequent set. For a given
    number of labels, the most frequent ones have the best micro-F1 and macro-F1.

    Args:
        metric: its name in `METRICS`.
        actual: (texts, labels) bool: those of the training split.
    """
    order = np.argsort(-actual.sum(axis=0), kind="stable")
    sets, counts = np.unique(actual, axis=0, return_counts=True)
    candidates = [np.isin(np.arange(actual.shape[1]), order[:size]) for size in range(len(order) + 1)]
    candidates.append(sets[counts.argmax()])
    candidates.sort(key=lambda candidate: int(candidate.sum()))
    scores = [constant_value(metric, actual, candidate) for candidate in candidates]
    return candidates[int(np.argmax(scores))]


def constant_value(metric: str, actual: np.ndarray, constant: np.ndarray) -> float:
    """A metric of answering `constant`, (labels,) bool, to all texts. Args: see `best_constant`."""
    predicted = np.broadcast_to(constant, actual.shape)
    exact = exact_sets(actual, predicted, np.zeros(len(actual), dtype=bool))
    return float(value(metric, Counts.of(actual, predicted, exact)))
