"""Predicted sets of labels: read, measured, resampled, and held to the best constant answer."""

import json

import numpy as np
import pytest
from sklearn import metrics

from seedbed.analysis import diagnostics
from seedbed.analysis.label_sets import CellLabelSets, as_classes, read_label_sets
from seedbed.analysis.predictions import numbered
from seedbed.analysis.sides import SideMaker
from seedbed.core import set_metrics
from seedbed.core.errors import SeedbedError
from seedbed.core.files import write_rows
from seedbed.core.set_metrics import Counts, exact_sets
from seedbed.core.tasks import TASKS

NAMES = ("often", "sometimes", "rare")
SETTINGS = {"replicates": 400, "bootstrap_seed": 0}
SEEDS = ((2, 2), (0, 0), (1, 1))  # as runs may stand, unsorted
F1 = ("micro_f1", "macro_f1")
RECORD = {"label_names": ["a", "b"], "constant_answers": {"micro_f1": ["a"], "subset_accuracy": []}}


def make_cell(seed=0, examples=300, missing=0.0, clusters=None, right=0.7):
    """Three seeds' predictions of three labels, of which one has 6% of the examples."""
    rng = np.random.default_rng(seed)
    shares = (0.6, 0.24, 0.06)
    labels = rng.random((examples, 3)) < shares
    others = rng.random((3, examples, 3)) < shares
    predicted = np.where(rng.random((3, examples, 3)) < right, labels, others)
    absent = rng.random((3, examples)) < missing
    predicted &= ~absent[..., None]
    constants = {metric: set_metrics.best_constant(metric, labels) for metric in set_metrics.VALUES}
    ids = tuple(f"test-{index}" for index in range(examples))
    none = np.zeros((3, examples))
    cell = CellLabelSets(NAMES, ids, labels, predicted, absent, none, none, constants)
    if clusters is None:
        return cell
    return cell.clustered({name: f"author {index % clusters}" for index, name in enumerate(ids)})


@pytest.mark.parametrize("clusters", [None, 70])
@pytest.mark.parametrize("metric", [*F1, "subset_accuracy"])
def test_scores_have_the_metric_as_their_mean(metric, clusters):
    cell = make_cell(missing=0.02, clusters=clusters)
    np.testing.assert_allclose(cell.scores(metric).mean(axis=1), cell.measured(metric), rtol=1e-6)


@pytest.mark.parametrize("clusters", [None, 70])
@pytest.mark.parametrize("metric", [*F1, "subset_accuracy"])
def test_replicates_are_the_metric_of_the_resampled_examples(metric, clusters):
    cell = make_cell(missing=0.02, clusters=clusters)
    side = SideMaker(SETTINGS).side(cell, metric, SEEDS, "test")
    groups = numbered(np.arange(300)) if clusters is None else cell.clusters
    counts = np.concatenate(list(side.draws._counts()))
    for replicate in range(0, SETTINGS["replicates"], 40):
        drawn = np.repeat(np.arange(300), counts[replicate][groups])
        # the rows of the cell are in the order of SEEDS, those of the side in that of sorted seeds
        labels, predicted = cell.labels[drawn], cell.predicted[[1, 2, 0]][:, drawn]
        exact = exact_sets(labels, predicted, cell.missing[[1, 2, 0]][:, drawn])
        value = set_metrics.value(metric, Counts.of(labels, predicted, exact))
        if metric == "subset_accuracy" and clusters:  # a mean over examples of a ratio of clusters
            np.testing.assert_allclose(side.means[replicate], value, atol=0.02)
        else:
            np.testing.assert_allclose(side.means[replicate], value, rtol=1e-5)


@pytest.mark.parametrize("metric", F1)
def test_scores_spread_as_the_metric_does_over_resampled_examples(metric):
    cell = make_cell(examples=3000)
    side = SideMaker({**SETTINGS, "replicates": 2000}).side(cell, metric, SEEDS, "test")
    by_scores = side.scores.std(axis=1, ddof=1) / np.sqrt(side.scores.shape[1])
    # 2,000 replicates tell a standard deviation to 1.6%
    np.testing.assert_allclose(side.means.std(axis=0), by_scores, rtol=0.08)


def test_a_run_of_one_set_collapsed_where_labels_differ():
    cell = make_cell()
    cell.predicted[1] = [True, False, False]
    assert cell.all_same.tolist() == [False, True, False]
    assert cell.tells_collapse
    assert not cell.keep(np.arange(300) < 3).tells_collapse


@pytest.mark.parametrize("metric", [*F1, "subset_accuracy"])
def test_a_run_has_to_beat_the_constant_answer(metric):
    task = TASKS["multilabel"].measured_by(metric)
    for right, weak in ((0.0, True), (0.9, False)):
        cell = make_cell(right=right)
        run = CellLabelSets(
            NAMES, cell.ids, cell.labels, cell.predicted[:1], cell.missing[:1], cell.loss[:1], cell.loss[:1],
            cell.constants, task,
        )  # fmt: skip
        assert run.not_above_constant(0.95) is weak


def test_sets_as_classes_have_the_same_codes_in_all_cells():
    one, other = make_cell(0, 40), make_cell(0, 40, missing=0.2, right=0.4)
    found = as_classes({"one": one, "other": other})
    assert found["one"].names == found["other"].names
    for name, cell in (("one", one), ("other", other)):
        np.testing.assert_array_equal(found[name].correct, cell.correct)
        np.testing.assert_array_equal(found[name].predicted < 0, cell.missing)
    index = int(np.argmax(one.labels.sum(axis=1)))
    told = found["one"].names[found["one"].labels[index]]
    assert json.loads(told) == [name for name, held in zip(NAMES, one.labels[index], strict=True) if held]


def test_never_right_are_texts_whose_set_no_run_finds():
    cell = make_cell(examples=60)
    key = ("books", "small", "transformers", "random", "lab")

    class Run:
        collapsed = False

    rows = diagnostics.never_right({key: [Run()] * 3}, as_classes({key: cell}))
    wrong = [cell.ids[index] for index in np.flatnonzero(~cell.correct.any(axis=0))]
    assert [row["example"] for row in rows] == wrong
    assert all(isinstance(json.loads(row["label"]), list) for row in rows)


# --- reading ------------------------------------------------------------------------------------------------


def write_predictions(folder, **changes):
    """Four texts a split; the last one of test has no logits. `changes` replace cells of the first row."""
    rows = []
    for split in ("validation", "test"):
        for index, (label, prediction, a, b) in enumerate(
            [('["a"]', '["a"]', 0.9, 0.2), ('["a", "b"]', '["b"]', 0.4, 0.7), ("[]", "[]", 0.1, 0.3),
             ('["b"]', "", "", "")][: 4 if split == "test" else 3]
        ):  # fmt: skip
            row = {"split": split, "example": f"{split}-{index}", "label": label, "prediction": prediction}
            rows.append(row | {"probability_a": a, "probability_b": b})
    rows[0] |= changes
    write_rows(folder / "predictions.csv", list(rows[0]), rows)
    return folder / "predictions.csv"


def test_predictions_are_read_as_they_stand(tmp_path):
    found = read_label_sets(write_predictions(tmp_path), RECORD)
    validation, test = found["validation"], found["test"]
    assert validation.labels.tolist() == [[True, False], [True, True], [False, False]]
    assert validation.predicted[0].tolist() == [[True, False], [False, True], [False, False]]
    assert test.missing.tolist() == [[False, False, False, True]]
    assert test.measured("subset_accuracy") == [0.5]
    assert test.measured("loss") == [None]
    truth = np.array([[1, 0], [1, 1], [0, 0]])
    told = np.array([[0.9, 0.2], [0.4, 0.7], [0.1, 0.3]])
    loss = np.mean([metrics.log_loss(truth[:, k], told[:, k], labels=[0, 1]) for k in (0, 1)])
    assert np.isclose(validation.measured("loss")[0], loss)
    assert validation.constants["micro_f1"].tolist() == [True, False]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"prediction": '["b"]'}, "a prediction is not the labels with a probability above 0.5"),
        ({"prediction": ""}, "a prediction is not the labels with a probability above 0.5"),
        ({"prediction": '["c"]'}, "a label that the run does not know"),
        ({"label": "a"}, "not a table of predictions"),
        ({"label": ""}, "not a table of predictions"),
        ({"probability_a": 1.2}, "a probability outside"),
    ],
)
def test_a_damaged_table_is_refused(tmp_path, changes, told):
    with pytest.raises(SeedbedError, match=told):
        read_label_sets(write_predictions(tmp_path, **changes), RECORD)


def test_a_run_without_constant_answers_is_refused(tmp_path):
    with pytest.raises(SeedbedError, match="constant answers") as error:
        read_label_sets(write_predictions(tmp_path), {"label_names": ["a", "b"]})
    assert error.value.where.endswith("run.json, constant_answers")
