"""Predicted numbers: metrics on resampled examples, what a run is held to, and every fault of the file."""

import numpy as np
import pytest

from seedbed.analysis.bootstrap import Draws
from seedbed.analysis.outputs import read_outputs, stack
from seedbed.analysis.predictions import group_scores
from seedbed.analysis.sides import SideMaker
from seedbed.analysis.values import CellValues
from seedbed.core import value_metrics
from seedbed.core.errors import SeedbedError
from seedbed.core.tasks import TASKS

TASK = TASKS["regression"]
METRICS = TASK.reported
DOCUMENT = {"targets": {"mean": 2.5, "sd": 1.0}}


def cell(labels, predicted, task=TASK, constant=2.5):
    ids = tuple(f"test-{index}" for index in range(len(labels)))
    return CellValues(ids, np.asarray(labels, float), np.asarray(predicted, float), constant, task)


def random_cell(rng, examples=40, seeds=3, ties=False):
    labels = rng.normal(3, 1, examples)
    predicted = labels * rng.uniform(0, 1) + rng.normal(0, 1, (seeds, examples))
    return cell(labels.round() if ties else labels, predicted.round() if ties else predicted)


def drawn_counts(draws):
    return draws.of_counts(lambda counts: counts)


@pytest.mark.parametrize("metric", METRICS)
def test_replicates_are_the_metric_of_the_examples_that_they_draw(metric):
    """1,000 replicates of random cells, with ties and without, against the metric of repeated examples."""
    rng = np.random.default_rng(0)
    for round_ in range(10):
        outputs = random_cell(rng, ties=round_ % 2 == 0)
        made = SideMaker({"replicates": 100, "bootstrap_seed": round_})
        side = made.side(outputs, metric, ((0, 0), (1, 1), (2, 2)), "data")
        for counts, found in zip(drawn_counts(side.draws), side.means, strict=True):
            rows = np.repeat(np.arange(len(outputs.ids)), counts)
            expected = value_metrics.value(metric, outputs.labels[rows], outputs.predicted[:, rows])
            assert found == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("metric", METRICS)
def test_clusters_are_resampled_whole(metric):
    rng = np.random.default_rng(1)
    names = {f"test-{index}": f"author {index // 4}" for index in range(40)}
    outputs = random_cell(rng).clustered(names)
    scores = outputs.scores(metric)
    assert scores.shape == (3, 10)
    assert scores.mean(axis=1) == pytest.approx(outputs.measured(metric), abs=1e-5)
    draws = Draws(10, 60, seed=3)
    counted = outputs.counted(metric)
    if counted is None:
        return
    for counts, found in zip(drawn_counts(draws), counted.resampled(draws), strict=True):
        rows = np.concatenate([np.arange(4 * of, 4 * of + 4) for of in np.repeat(np.arange(10), counts)])
        expected = value_metrics.value(metric, outputs.labels[rows], outputs.predicted[:, rows])
        assert found == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("metric", METRICS)
def test_linearised_scores_have_the_metric_as_their_mean_and_its_spread(metric):
    rng = np.random.default_rng(2)
    outputs = random_cell(rng, examples=2000)
    scores = outputs.scores(metric)
    assert scores.mean(axis=1) == pytest.approx(outputs.measured(metric), abs=1e-9)
    draws = Draws(2000, 1000, seed=0)
    counted = outputs.counted(metric)
    means = draws.means(scores.astype(np.float32)) if counted is None else counted.resampled(draws)
    assert means.std(axis=0) == pytest.approx(scores.std(axis=1) / np.sqrt(2000), rel=0.1)


def test_a_run_with_one_value_is_collapsed_and_correlates_with_nothing():
    rng = np.random.default_rng(3)
    labels = rng.normal(3, 1, 30)
    outputs = cell(labels, [np.full(30, 2.0) + rng.normal(0, 1e-8, 30), labels])
    assert outputs.all_same.tolist() == [True, False]
    assert outputs.tells_collapse
    assert outputs.measured("pearson") == [0.0, pytest.approx(1.0)]
    draws = Draws(30, 20, seed=0)
    for metric in ("pearson", "spearman"):
        found = outputs.counted(metric).resampled(draws)
        assert found[:, 0].tolist() == [0.0] * 20
        assert found[:, 1] == pytest.approx(np.ones(20), abs=1e-5)


def test_a_run_without_a_number_has_no_error_and_the_worst_scores():
    rng = np.random.default_rng(4)
    labels = rng.normal(3, 1, 30)
    broken = labels.copy()
    broken[7] = np.nan
    outputs = cell(labels, [broken, labels + 0.1])
    assert outputs.undefined.tolist() == [True, False]
    assert outputs.measured("mse") == [None, pytest.approx(0.01)]
    assert outputs.measured("pearson")[0] == 0.0
    assert np.isfinite(outputs.scores("mse")).all()
    assert outputs.scores("mse")[0].min() > 1e5 * outputs.scores("mse")[1].max()


@pytest.mark.parametrize("metric", METRICS)
def test_a_run_is_held_to_the_mean_of_the_training_values(metric):
    """Of runs that guess, 5% pass at 95%; a run that knows half of the variance passes."""
    rng = np.random.default_rng(5)
    task = TASK.measured_by(metric)
    passed = 0
    for _ in range(300):
        labels = rng.normal(2.5, 1, 200)
        guessed = np.full(200, 2.5) if metric == "mse" else rng.normal(2.5, 1, 200)
        if metric == "mse":
            guessed = guessed + rng.normal(0, 0.1, 200)
        passed += not cell(labels, [guessed], task).not_above_constant(0.95)
    assert passed / 300 < 0.09
    labels = rng.normal(2.5, 1, 200)
    knows = cell(labels, [0.5 * (labels - 2.5) + 2.5 + rng.normal(0, 0.5, 200)], task)
    assert not knows.not_above_constant(0.95)
    assert knows.constant_value("pearson") == 0.0
    assert knows.constant_value("mse") == pytest.approx(((labels - 2.5) ** 2).mean())


ROWS = """split,example,label,prediction
validation,validation-0,1.5,1.25
validation,validation-1,2,
test,test-0,3,nan
test,test-1,4.5,2.75
"""


def written(tmp_path, text):
    path = tmp_path / "predictions.csv"
    path.write_text(text)
    return path


def test_a_table_is_read_by_split_with_missing_predictions(tmp_path):
    found = read_outputs(written(tmp_path, ROWS), TASK, DOCUMENT)
    assert found["validation"].ids == ("validation-0", "validation-1")
    assert found["validation"].labels.tolist() == [1.5, 2.0]
    assert found["test"].predicted[0, 1] == 2.75
    assert found["test"].undefined.tolist() == found["validation"].undefined.tolist() == [True]
    assert found["test"].constant == 2.5
    two = stack([found["test"], found["test"]])
    assert two.predicted.shape == (2, 2)
    assert two.keep(np.array([False, True])).ids == ("test-1",)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (("3,nan", ",nan"), "line 4"),
        (("3,nan", "many,nan"), "'many' in column label"),
        (("test-1", "test-0"), "test-0"),
        (("example", "text"), "columns split, text"),
        (("test,test-0,3,nan\ntest,test-1,4.5,2.75\n", ""), "no row of the split test"),
    ],
)
def test_a_fault_of_the_file_is_named(tmp_path, change, found):
    with pytest.raises(SeedbedError) as error:
        read_outputs(written(tmp_path, ROWS.replace(*change)), TASK, DOCUMENT)
    assert found in str(error.value)


@pytest.mark.parametrize("targets", [None, {}, {"mean": "x"}, {"mean": float("nan")}])
def test_a_run_that_does_not_tell_its_targets_is_refused(tmp_path, targets):
    with pytest.raises(SeedbedError, match="mean of its training labels"):
        read_outputs(written(tmp_path, ROWS), TASK, {"targets": targets})


def test_scores_of_clusters_are_those_of_a_ratio():
    rng = np.random.default_rng(6)
    outputs = random_cell(rng).clustered({f"test-{index}": str(index // 8) for index in range(40)})
    errors = value_metrics.squared_errors(outputs.labels, outputs.predicted)
    assert np.array_equal(outputs.scores("mse"), group_scores(errors, np.ones(40), outputs.clusters))
