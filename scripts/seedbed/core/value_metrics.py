"""Metrics of predicted numbers: the correlations of Pearson and Spearman, and the mean squared error.

Values are those of SciPy and scikit-learn. A correlation with predictions that are all the same is not
defined; it is 0 here, since they say nothing of the labels.

The influence of an example (Hampel 1974) is what one more example like it would change, times the number of
examples. The mean influence is zero, and the metric plus the mean influence of resampled examples is, to
first order, their metric (the delta method).
"""

from collections.abc import Callable

import numpy as np

# of the standard deviation of labels: predictions that vary by less are all the same, but for rounding
CONSTANT = 1e-6


def value(metric: str, labels: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """(rows,) float64: a metric of each row of predictions.

    Args:
        metric: its name in `METRICS`.
        labels: (examples,).
        predicted: (rows, examples), all finite.
    """
    return FUNCTIONS[metric][0](np.asarray(labels, np.float64), np.asarray(predicted, np.float64))


def influences(metric: str, labels: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """(rows, examples) float64: the influence of each example. Args: see `value`."""
    return FUNCTIONS[metric][1](np.asarray(labels, np.float64), np.asarray(predicted, np.float64))


def are_constant(labels: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """(rows,) bool: whether all predictions of a row are the same."""
    return predicted.std(axis=1) <= CONSTANT * labels.std()


def scaled(labels: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both with mean 0 and standard deviation 1; of a row that is constant, zeros. Args: see `value`."""
    same = are_constant(labels, predicted)
    spread = predicted.std(axis=1, keepdims=True)
    centred = predicted - predicted.mean(axis=1, keepdims=True)
    rows = np.divide(centred, spread, out=np.zeros_like(centred), where=~same[:, None])
    sd = labels.std()
    return (labels - labels.mean()) / sd if sd > 0 else np.zeros_like(labels), rows


# --- mean squared error -------------------------------------------------------------------------------------


def squared_errors(labels: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """(rows, examples): of which the metric is the mean."""
    return (predicted - labels) ** 2


def _mse(labels: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return squared_errors(labels, predicted).mean(axis=1)


def _influences_of_mse(labels: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    errors = squared_errors(labels, predicted)
    return errors - errors.mean(axis=1, keepdims=True)


# --- Pearson ------------------------------------------------------------------------------------------------


def _pearson(labels: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    x, y = scaled(labels, predicted)
    return (x * y).mean(axis=1)


def _influences_of_pearson(labels: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """x y - r (x^2 + y^2) / 2 of scaled values (Devlin et al. 1975)."""
    x, y = scaled(labels, predicted)
    correlation = (x * y).mean(axis=1, keepdims=True)
    halves = np.where(are_constant(labels, predicted)[:, None], 0.0, (x**2 + y**2) / 2)
    return x * y - correlation * halves


# --- Spearman -----------------------------------------------------------------------------------------------


def _ranks(values: np.ndarray) -> np.ndarray:
    """(examples,): mean ranks as shares of the number of values, less their mean.

    SciPy has a function for this, but a run would wait for its import.
    """
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    middles = counts.cumsum() - counts / 2
    return middles[places] / len(values) - 0.5


def _spearman(labels: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    found = _pearson(_ranks(labels), np.stack([_ranks(row) for row in predicted]))
    return np.where(are_constant(labels, predicted), 0.0, found)


def _influences_of_spearman(labels: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Of the covariance and the variances of ranks, which a further example changes for all others, too.

    With centred ranks u and v, covariance C and variances S_u and S_v, the influence on C is
    u v + A(x) + B(y) - 3 C, where A(x) is the mean over examples of v where the label exceeds x, and half of
    it where it is x; likewise B(y), and S_u and S_v, whose A and B are the same.
    """
    u = _ranks(labels)
    found = np.zeros_like(predicted)
    for row, same in enumerate(are_constant(labels, predicted)):
        v = _ranks(predicted[row])
        covariance, of_labels, of_row = (float((a * b).mean()) for a, b in ((u, v), (u, u), (v, v)))
        if same or min(of_labels, of_row) <= 0:
            continue
        on_covariance = u * v + _beyond(labels, v) + _beyond(predicted[row], u) - 3 * covariance
        on_labels = u * u + 2 * _beyond(labels, u) - 3 * of_labels
        on_row = v * v + 2 * _beyond(predicted[row], v) - 3 * of_row
        scale = np.sqrt(of_labels * of_row)
        lost = covariance / scale / 2 * (on_labels / of_labels + on_row / of_row)
        found[row] = on_covariance / scale - lost
    return found


def _beyond(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(examples,): of each value the sum of the weights of larger values, and half of equal ones, over their
    number."""
    _, places = np.unique(values, return_inverse=True)
    sums = np.bincount(places, weights)
    larger = sums[::-1].cumsum()[::-1] - sums / 2
    return larger[places] / len(values)


Function = Callable[[np.ndarray, np.ndarray], np.ndarray]
FUNCTIONS: dict[str, tuple[Function, Function]] = {
    "mse": (_mse, _influences_of_mse),
    "pearson": (_pearson, _influences_of_pearson),
    "spearman": (_spearman, _influences_of_spearman),
}
