"""Metrics of sets of labels: their values are scikit-learn's, and their influences are derivatives."""

import numpy as np
import pytest
from builders import tiered
from sklearn import metrics

from seedbed.core import set_metrics
from seedbed.core.set_metrics import Counts, exact_sets


def draw_case(number):
    """Labels and predictions of 2 to 6 labels, of which some may not occur, and missing predictions.

    In every third case some predictions are missing: no label is predicted there.
    """
    rng = np.random.default_rng(number)
    labels, texts = rng.integers(2, 7), rng.integers(1, 40)
    shares = rng.beta(0.5, 1, labels)
    actual, others = (rng.random((texts, labels)) < shares for _ in range(2))
    predicted = np.where(rng.random((texts, labels)) < rng.random(), actual, others)
    missing = np.full(texts, False)
    if number % 3 == 0:
        missing = rng.random(texts) < 0.1
        predicted = predicted & ~missing[:, None]
    return actual, predicted, missing


def counted(actual, predicted, missing):
    return Counts.of(actual, predicted, exact_sets(actual, predicted, missing))


def expected(actual, predicted, missing):
    """By scikit-learn, which would call a missing set right where a text has no label."""
    wrong = (missing & ~actual.any(axis=1)).mean()
    return {
        "micro_f1": metrics.f1_score(actual, predicted, average="micro", zero_division=0),
        "macro_f1": metrics.f1_score(actual, predicted, average="macro", zero_division=0),
        "subset_accuracy": metrics.accuracy_score(actual, predicted) - wrong,
    }


@pytest.mark.parametrize("cases", tiered([100, 1000], 100))
def test_values_are_those_of_scikit_learn(cases):
    for number in range(cases):
        case = draw_case(number)
        for metric, value in expected(*case).items():
            assert np.isclose(set_metrics.value(metric, counted(*case)), value, atol=1e-12), (number, metric)


def weighted(actual, predicted, missing, weights):
    """The counts where every text weighs its own."""
    parts = (predicted & actual, predicted, actual, exact_sets(actual, predicted, missing))
    return Counts(*(part.T @ weights for part in parts), weights.sum())


def test_an_influence_is_what_more_weight_of_a_text_changes_and_their_mean_is_zero():
    step = 1e-5
    for number in range(100):
        actual, predicted, missing = case = draw_case(number)
        chosen = number % len(actual)
        for metric in set_metrics.VALUES:
            exact = exact_sets(actual, predicted, missing)
            influences = set_metrics.influences(metric, actual, predicted, exact)
            assert abs(influences.mean()) < 1e-12
            changed = []
            for sign in (1, -1):
                weights = np.ones(len(actual))
                weights[chosen] += sign * step
                changed.append(set_metrics.value(metric, weighted(*case, weights)))
            slope = len(actual) * (changed[0] - changed[1]) / (2 * step)
            assert np.isclose(slope, influences[chosen], rtol=1e-4, atol=1e-5), (number, metric)


def test_many_runs_at_once_are_each_on_their_own():
    actual, predicted, _ = draw_case(1)
    seeds = np.stack([predicted, actual, np.roll(predicted, 1, axis=0)])
    exact = exact_sets(actual, seeds, np.zeros(seeds.shape[:2], dtype=bool))
    for metric in set_metrics.VALUES:
        values = set_metrics.value(metric, Counts.of(actual, seeds, exact))
        influences = set_metrics.influences(metric, actual, seeds, exact)
        for row, one in enumerate(seeds):
            assert values[row] == set_metrics.value(metric, Counts.of(actual, one, exact[row]))
            np.testing.assert_array_equal(
                influences[row], set_metrics.influences(metric, actual, one, exact[row])
            )


def test_no_other_constant_answer_scores_better():
    for number in range(60):
        actual, *_ = draw_case(number)
        every = [np.array([code >> place & 1 for place in range(actual.shape[1])], bool) for code in
                 range(2 ** actual.shape[1])]  # fmt: skip
        for metric in set_metrics.VALUES:
            found = set_metrics.constant_value(metric, actual, set_metrics.best_constant(metric, actual))
            best = max(set_metrics.constant_value(metric, actual, constant) for constant in every)
            assert np.isclose(found, best, atol=1e-12), (number, metric)
