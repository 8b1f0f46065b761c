"""Metrics of classes that are no mean over examples: of counts of labels and predictions.

Values are those of scikit-learn. Each metric is a function of `Counts`, of any number of confusion tables at
once, and has `Slopes`: what one more example changes. A slope times the number of examples is the influence
of an example (Hampel 1974). The mean influence is zero, and the metric plus the mean influence of resampled
examples is, to first order, their metric (the delta method).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from seedbed.core.errors import SeedbedError
from seedbed.core.tasks import class_of_metric


@dataclass(frozen=True)
class Counts:
    """Counts of any number of confusion tables, as float64 arrays whose last axis, if any, is the classes.

    Attributes:
        right: (..., classes): examples of the class that are predicted as such.
        predicted: (..., classes): examples that are predicted as the class.
        actual: (..., classes): examples of the class; its leading axes may be fewer, or of length 1.
        missing: (...,): examples without a prediction. They are wrong, and of no class.
    """

    right: np.ndarray
    predicted: np.ndarray
    actual: np.ndarray
    missing: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """The number of examples."""
        return self.actual.sum(axis=-1)


@dataclass(frozen=True)
class Slopes:
    """What a further example changes: (..., classes), or (...,) of what depends on no class.

    Attributes:
        right: if it is predicted right, by its class.
        predicted: by its prediction.
        actual: by its label.
        missing: if it has no prediction.
        any: whatever it is.
    """

    right: np.ndarray
    predicted: np.ndarray
    actual: np.ndarray
    missing: np.ndarray
    any: np.ndarray

    def table(self) -> np.ndarray:
        """(..., labels, predictions): the change by label and prediction.

        The last column is that of a missing prediction, so that its code, -1, indexes it.
        """
        classes = self.right.shape[-1]
        cells = self.actual[..., :, None] + self.predicted[..., None, :]
        cells = cells + self.right[..., :, None] * np.eye(classes)
        none = self.actual + self.missing[..., None]
        return np.concatenate([cells, none[..., None]], axis=-1) + self.any[..., None, None]


Functions = tuple[Callable[[Counts], np.ndarray], Callable[[Counts], Slopes]]


def count(labels: np.ndarray, predicted: np.ndarray, classes: int) -> Counts:
    """The counts of each row of predictions.

    Args:
        labels: (examples,) codes of classes from 0 on.
        predicted: (..., examples) codes of classes; -1 where there is no prediction.
        classes: number of classes.
    """
    one_hot = predicted[..., None] == np.arange(classes)
    right = (predicted == labels)[..., None] & (labels[:, None] == np.arange(classes))
    return Counts(
        right.sum(axis=-2, dtype=np.float64),
        one_hot.sum(axis=-2, dtype=np.float64),
        np.bincount(labels, minlength=classes).astype(np.float64),
        (predicted < 0).sum(axis=-1, dtype=np.float64),
    )


def value(metric: str, counts: Counts, classes: Sequence[str]) -> np.ndarray:
    """(...,): a metric of each table.

    Args:
        metric: its name in `METRICS`.
        counts: of the tables.
        classes: their labels.
    """
    measured, _ = _functions(metric, classes)
    return measured(counts)


def influences(metric: str, counts: Counts, classes: Sequence[str]) -> np.ndarray:
    """(..., labels, predictions): the influence of an example of each cell. Args: see `value`.

    The last column is that of a missing prediction.
    """
    _, slopes = _functions(metric, classes)
    return slopes(counts).table() * counts.total[..., None, None]


def _functions(metric: str, classes: Sequence[str]) -> Functions:
    """A metric's value and its slopes."""
    label = class_of_metric(metric)
    if label is None:
        return FUNCTIONS[metric]
    if label not in classes:
        raise SeedbedError(
            "a metric of a class that there is not",
            where=metric,
            found=f"classes {', '.join(classes)}",
            hint="give metric.f1_of of the dataset one of its labels",
        )
    index = classes.index(label)

    def measured(counts: Counts) -> np.ndarray:
        return _f1(counts)[..., index]

    def slopes(counts: Counts) -> Slopes:
        chosen = np.zeros(len(classes))
        chosen[index] = 1.0
        return _slopes_of_f1(counts, chosen)

    return measured, slopes


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """above / below, and 0 where below is 0."""
    shape = np.broadcast_shapes(above.shape, below.shape)
    return np.divide(above, below, out=np.zeros(shape), where=below > 0)


# --- accuracy -----------------------------------------------------------------------------------------------


def _accuracy(counts: Counts) -> np.ndarray:
    """The share of examples that are predicted right."""
    return _ratio(counts.right.sum(axis=-1), counts.total)


def _slopes_of_accuracy(counts: Counts) -> Slopes:
    shape = np.broadcast_shapes(counts.right.shape, counts.actual.shape)
    each = 1 / np.broadcast_to(counts.total, shape[:-1])
    none = np.zeros(shape)
    return Slopes(none + each[..., None], none, none, none[..., 0], -_accuracy(counts) * each)


# --- F1 -----------------------------------------------------------------------------------------------------


def _f1(counts: Counts) -> np.ndarray:
    """(..., classes): F1 of each class, the harmonic mean of precision and recall.

    0 of a class that is neither a label nor a prediction.
    """
    return _ratio(2 * counts.right, counts.predicted + counts.actual)


def _shares(occurs: np.ndarray) -> np.ndarray:
    """(..., classes): what each class counts in a mean over those that occur."""
    return _ratio(occurs.astype(np.float64), occurs.sum(axis=-1, keepdims=True).astype(np.float64))


def _macro_f1(counts: Counts) -> np.ndarray:
    """The mean F1 of the classes that occur as a label or as a prediction."""
    return (_f1(counts) * _shares(counts.predicted + counts.actual > 0)).sum(axis=-1)


def _slopes_of_macro_f1(counts: Counts) -> Slopes:
    return _slopes_of_f1(counts, _shares(counts.predicted + counts.actual > 0))


def _slopes_of_f1(counts: Counts, shares: np.ndarray) -> Slopes:
    """Of the sum of the F1 of classes, each times its share."""
    of_one = _ratio(shares, counts.predicted + counts.actual)
    lost = -_f1(counts) * of_one
    none = np.zeros(lost.shape[:-1])
    return Slopes(2 * of_one, lost, lost, none, none)


# --- balanced accuracy --------------------------------------------------------------------------------------


def _balanced_accuracy(counts: Counts) -> np.ndarray:
    """The mean recall of the classes that occur as a label."""
    return (_ratio(counts.right, counts.actual) * _shares(counts.actual > 0)).sum(axis=-1)


def _slopes_of_balanced_accuracy(counts: Counts) -> Slopes:
    of_one = _ratio(_shares(counts.actual > 0), counts.actual) + np.zeros(counts.right.shape)
    none = np.zeros(of_one.shape[:-1])
    lost = -_ratio(counts.right, counts.actual) * of_one
    return Slopes(of_one, np.zeros(of_one.shape), lost, none, none)


# --- Matthews correlation -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Covariances:
    """Of labels and predictions as indicators of classes, times the squared number of examples.

    After Gorodkin (2004).
    """

    both: np.ndarray
    of_predictions: np.ndarray
    of_labels: np.ndarray

    @classmethod
    def of(cls, counts: Counts) -> "_Covariances":
        squared = counts.total**2
        return cls(
            counts.right.sum(axis=-1) * counts.total - (counts.predicted * counts.actual).sum(axis=-1),
            squared - (counts.predicted**2).sum(axis=-1) - counts.missing**2,
            squared - (counts.actual**2).sum(axis=-1),
        )

    @property
    def correlation(self) -> np.ndarray:
        """0 where all predictions or all labels are of one class."""
        return _ratio(self.both, np.sqrt(self.of_predictions * self.of_labels))


def _mcc(counts: Counts) -> np.ndarray:
    """Matthews correlation; a missing prediction is a class of its own."""
    return _Covariances.of(counts).correlation


def _slopes_of_mcc(counts: Counts) -> Slopes:
    found = _Covariances.of(counts)
    scale = _ratio(np.ones(found.both.shape), np.sqrt(found.of_predictions * found.of_labels))
    # a correlation N / sqrt(A B) changes by dN / sqrt(A B) - N / sqrt(A B) (dA / 2A + dB / 2B)
    halves = [_ratio(found.correlation, of) for of in (found.of_predictions, found.of_labels)]
    total, right = np.broadcast_arrays(counts.total, counts.right.sum(axis=-1))
    predicted = -counts.actual * scale[..., None] + halves[0][..., None] * counts.predicted
    actual = -counts.predicted * scale[..., None] + halves[1][..., None] * counts.actual
    of_right = np.broadcast_to((total * scale)[..., None], predicted.shape)
    everyone = right * scale - total * (halves[0] + halves[1])
    return Slopes(of_right, predicted, actual, halves[0] * counts.missing, everyone)


FUNCTIONS: dict[str, Functions] = {
    "accuracy": (_accuracy, _slopes_of_accuracy),
    "macro_f1": (_macro_f1, _slopes_of_macro_f1),
    "balanced_accuracy": (_balanced_accuracy, _slopes_of_balanced_accuracy),
    "mcc": (_mcc, _slopes_of_mcc),
}
