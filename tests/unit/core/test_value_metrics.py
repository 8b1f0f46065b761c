"""Metrics of numbers: values of SciPy and scikit-learn, and influences that say how they change."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import mean_squared_error

from seedbed.core import value_metrics

METRICS = ("mse", "pearson", "spearman")
SEED = 0


def case(rng, examples=None):
    """Labels and two rows of predictions, with ties in half of all cases."""
    examples = examples or int(rng.integers(3, 60))
    labels, predicted = rng.normal(3, 2, examples), rng.normal(0, 1, (2, examples))
    predicted = predicted + rng.uniform(0, 1) * labels
    if rng.random() < 0.5:
        labels, predicted = labels.round(), predicted.round()
    labels[:2] = 0, 1  # not all the same
    return labels, predicted


def reference(metric, labels, row):
    """By SciPy and scikit-learn; a correlation with a constant is 0."""
    if metric == "mse":
        return mean_squared_error(labels, row)
    if len(set(row)) == 1:
        return 0.0
    return {"pearson": stats.pearsonr, "spearman": stats.spearmanr}[metric](labels, row).statistic


@pytest.mark.parametrize("metric", METRICS)
def test_values_are_those_of_scipy_and_scikit_learn(metric):
    rng = np.random.default_rng(SEED)
    for _ in range(1000):
        labels, predicted = case(rng)
        expected = [reference(metric, labels, row) for row in predicted]
        assert value_metrics.value(metric, labels, predicted) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("metric", METRICS)
def test_an_influence_is_what_a_little_more_weight_of_an_example_changes(metric):
    """Against a finite difference: the metric where one example of 1,001 copies occurs once more."""
    rng = np.random.default_rng(SEED)
    copies = 1000
    for _ in range(5):
        labels, predicted = case(rng, examples=12)
        row = predicted[:1]
        found = value_metrics.influences(metric, labels, row)[0]
        assert found.mean() == pytest.approx(0, abs=1e-9)
        before = value_metrics.value(metric, labels, row)[0]
        for index in range(len(labels)):
            more = np.concatenate([np.tile(np.arange(len(labels)), copies), [index]])
            changed = value_metrics.value(metric, labels[more], row[:, more])[0] - before
            assert changed * len(more) == pytest.approx(found[index], rel=2e-3, abs=2e-3)


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_predictions_that_are_all_the_same_correlate_with_nothing(metric):
    labels = np.array([0.0, 1.0, 2.0, 5.0])
    rounding = np.array([0.0, 1e-9, 0.0, -1e-9])
    predicted = np.stack([np.full(4, 3.0), 3.0 + rounding])
    assert value_metrics.are_constant(labels, predicted).all()
    assert value_metrics.value(metric, labels, predicted).tolist() == [0.0, 0.0]
    assert not value_metrics.influences(metric, labels, predicted).any()
