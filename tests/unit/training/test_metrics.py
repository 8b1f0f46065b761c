"""Metrics from logits against numbers worked out by hand and against SciPy."""

import math

import numpy as np
import pytest
from scipy.special import log_softmax as scipy_log_softmax

from seedbed.core.tasks import TASKS
from seedbed.training.metrics import classification_metrics, log_softmax, measure_of


def test_metrics_by_hand():
    # p(correct) = 1/2, 3/4, 1/4: right (a tie goes to the first class), right, wrong
    logits = np.log([[0.5, 0.5], [0.25, 0.75], [0.75, 0.25]])
    metrics = classification_metrics(logits, np.array([0, 1, 1]))
    assert metrics["accuracy"] == pytest.approx(2 / 3)
    assert metrics["loss"] == pytest.approx((math.log(2) + math.log(4 / 3) + math.log(4)) / 3)


def test_loss_is_in_nats_and_uniform_logits_give_log_classes():
    metrics = classification_metrics(np.zeros((10, 3)), np.zeros(10, dtype=int))
    assert metrics["loss"] == pytest.approx(math.log(3))


def test_log_softmax_agrees_with_scipy_for_large_logits():
    logits = np.array([[1000.0, 0.0, -1000.0], [3.0, 4.0, 5.0]])
    np.testing.assert_allclose(log_softmax(logits), scipy_log_softmax(logits, axis=1))


def test_logits_that_are_not_finite_are_wrong_and_make_the_loss_nan():
    logits = np.array([[np.nan, np.nan], [0.0, 1.0]])
    metrics = classification_metrics(logits, np.array([0, 1]))
    assert metrics["accuracy"] == 0.5
    assert math.isnan(metrics["loss"])


@pytest.mark.parametrize(
    ("logits", "labels"), [(np.zeros((0, 2)), []), (np.zeros((2, 2)), [0]), (np.zeros(2), [0, 1])]
)
def test_shapes_that_do_not_fit_are_errors(logits, labels):
    with pytest.raises(ValueError, match="do not fit"):
        classification_metrics(logits, np.array(labels))


def test_the_metric_of_a_task_is_measured_with_all_that_it_may_choose():
    task = TASKS["classification"].measured_by("f1_of_spam")
    logits = np.log([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4], [np.nan, np.nan]])
    with np.errstate(invalid="ignore"):
        found = measure_of(task, {"labels": ["ham", "spam"]})(logits, np.array([0, 0, 1, 1, 1]))
    assert tuple(found) == task.metrics
    # spam: one of three is found, and nothing else is taken for it; ham: two of three are ham
    assert found["f1_of_spam"] == pytest.approx(2 * 1 / (1 + 3))
    assert found["macro_f1"] == pytest.approx((found["f1_of_spam"] + 2 * 2 / (3 + 2)) / 2)
    assert found["balanced_accuracy"] == pytest.approx((1 + 1 / 3) / 2)
    assert found["accuracy"] == pytest.approx(3 / 5)
    assert math.isnan(found["loss"])
