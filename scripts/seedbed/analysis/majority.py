"""Whether a run of classes beats the answer that needs no text: always the largest class."""

import numpy as np

from seedbed.analysis import statistics
from seedbed.analysis.predictions import CellPredictions
from seedbed.core.class_metrics import Counts


def not_above_majority(run: CellPredictions, confidence: float) -> bool:
    """Whether the one-sided bound of a run's main metric does not exceed what answers without a text have.

    Of accuracy it is the Wilson bound, and the share of the largest class. Of a metric of counts it is the
    metric less the quantile of the normal distribution times its standard error over examples, by the delta
    method, and the larger of two values: that of always answering the largest class, and that of the run's
    own answers if they did not depend on the label. The second counts, since whoever guesses has a larger
    macro-F1 than the largest class. Of runs that guess, 0 to 8% pass at 95% with 400 examples or more; up to
    20% pass with 100 examples, where a class has three of them or a run answers nearly always the same.

    Args:
        run: predictions of one run.
        confidence: of the bound.
    """
    metric = run.task.selection
    if metric == "accuracy":
        right, examples = int(run.correct.sum()), len(run.ids)
        return not statistics.wilson_lower(right, examples, confidence) > run.majority_share
    bound = statistics.bound_of_mean(run.scores(metric)[0], confidence)
    return not bound > max(majority_value(run, metric), _guessed(run, metric)) + ROUNDING


ROUNDING = 1e-6  # scores are float32


def majority_value(run: CellPredictions, metric: str) -> float:
    """A metric of always answering the largest class."""
    actual = np.bincount(run.labels, minlength=len(run.names)).astype(np.float64)
    largest = np.arange(len(actual)) == actual.argmax()
    counts = Counts(actual * largest, actual.sum() * largest, actual, np.array(0.0))
    return run.of_counts(metric, counts)


def _guessed(run: CellPredictions, metric: str) -> float:
    """A metric of the run's own answers, each as often, if they did not depend on the label."""
    counts = run.counts
    predicted, missing = counts.predicted[0], counts.missing[0]
    right = predicted * counts.actual / counts.total
    return run.of_counts(metric, Counts(right, predicted, counts.actual, missing))
