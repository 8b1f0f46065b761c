"""Metrics of counts: their values are scikit-learn's, and their influences are derivatives."""

import warnings

import numpy as np
import pytest
import sklearn
from builders import tiered
from sklearn import metrics

from seedbed.core import class_metrics
from seedbed.core.class_metrics import Counts


def draw_case(number):
    """Labels and predictions of 2 to 5 classes, of which some may not occur, and their names.

    In every third case some predictions are missing.
    """
    rng = np.random.default_rng(number)
    classes, examples = rng.integers(2, 6), rng.integers(1, 40)
    shares = rng.dirichlet(np.ones(classes) / 2, 2)
    labels, others = (rng.choice(classes, examples, p=share) for share in shares)
    predicted = np.where(rng.random(examples) < rng.random(), labels, others)
    if number % 3 == 0:
        predicted = np.where(rng.random(examples) < 0.1, -1, predicted)
    return labels, predicted, [f"class {code}" for code in range(classes)]


def expected(labels, predicted, names):
    """The metrics by scikit-learn; a missing prediction is a class that macro-F1 does not average over."""
    occurring = sorted({*labels.tolist(), *predicted.tolist()} - {-1})  # what f1_score averages by itself
    each = metrics.f1_score(labels, predicted, labels=range(len(names)), average=None, zero_division=0)
    return {
        "accuracy": metrics.accuracy_score(labels, predicted),
        "macro_f1": each[occurring].mean(),
        "balanced_accuracy": metrics.balanced_accuracy_score(labels, predicted),
        "mcc": metrics.matthews_corrcoef(labels, predicted),
        **{f"f1_of_{name}": value for name, value in zip(names, each, strict=True)},
    }


@pytest.mark.parametrize("cases", tiered([100, 1000], 100))
def test_values_are_those_of_scikit_learn(cases):
    with warnings.catch_warnings(), sklearn.config_context(skip_parameter_validation=True):
        warnings.simplefilter("ignore")  # of classes that occur on one side only
        for number in range(cases):
            labels, predicted, names = draw_case(number)
            counts = class_metrics.count(labels, predicted, len(names))
            for metric, value in expected(labels, predicted, names).items():
                assert np.isclose(class_metrics.value(metric, counts, names), value, atol=1e-12), (
                    number,
                    metric,
                )


def weighted(labels, predicted, classes, weights):
    """The counts where every example weighs its own."""
    codes = np.arange(classes)[:, None]
    right = (labels == codes) & (predicted == codes)
    parts = (right, predicted == codes, labels == codes, predicted < 0)
    return Counts(*(np.asarray((part * weights).sum(axis=-1)) for part in parts))


def test_an_influence_is_what_more_weight_of_an_example_changes_and_their_mean_is_zero():
    step = 1e-5
    for number in range(100):
        labels, predicted, names = draw_case(number)
        counts = class_metrics.count(labels, predicted, len(names))
        chosen = number % len(labels)
        for metric in (*class_metrics.FUNCTIONS, f"f1_of_{names[1]}"):
            influences = class_metrics.influences(metric, counts, names)[labels, predicted]
            assert abs(influences.mean()) < 1e-12
            changed = []
            for sign in (1, -1):
                weights = np.ones(len(labels))
                weights[chosen] += sign * step
                moved = weighted(labels, predicted, len(names), weights)
                changed.append(class_metrics.value(metric, moved, names))
            slope = len(labels) * (changed[0] - changed[1]) / (2 * step)
            assert np.isclose(slope, influences[chosen], rtol=1e-4, atol=1e-5), (number, metric)


def test_many_tables_at_once_are_each_on_its_own():
    labels, predicted, names = draw_case(1)
    seeds = np.stack([predicted, labels, np.roll(predicted, 1)])
    together = class_metrics.count(labels, seeds, len(names))
    for metric in (*class_metrics.FUNCTIONS, f"f1_of_{names[0]}"):
        values = class_metrics.value(metric, together, names)
        influences = class_metrics.influences(metric, together, names)
        for row, one in enumerate(seeds):
            alone = class_metrics.count(labels, one, len(names))
            assert values[row] == class_metrics.value(metric, alone, names)
            np.testing.assert_array_equal(influences[row], class_metrics.influences(metric, alone, names))
