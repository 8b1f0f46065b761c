"""Tables of an experiment that predicts sets of labels: columns, baselines, intervals, what is refused."""

import csv
import json

import numpy as np
import pytest
from builders_report import aggregate
from sklearn import metrics
from synthetic import edit_csv, edit_json
from synthetic_label_sets import CONSTANT, LABELS, make_label_sets

from seedbed.core.errors import SeedbedError
from seedbed.core.rows import read_table

LEAKED = ("test-1", "test-2")
MEASURES = {
    "micro_f1": lambda labels, predicted: metrics.f1_score(labels, predicted, average="micro"),
    "macro_f1": lambda labels, predicted: metrics.f1_score(labels, predicted, average="macro"),
    "subset_accuracy": metrics.accuracy_score,
}
COLLAPSED = "plots/small/transformers/random/lab/seed0"
DIVERGED = "plots/small/transformers/random/lab/seed1"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    made = make_label_sets(tmp_path_factory.mktemp("sets"), leaked=LEAKED, seeds=[0, 1, 2])
    aggregate(made)
    return made, {name: read_table(path) for name, path in made.outputs.items()}


def matrix(cells):
    return np.array([[name in json.loads(cell) for name in LABELS] for cell in cells])


def predictions_of(folder, split, without=()):
    with open(folder / "predictions.csv", encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["split"] == split]
    kept = [row for row in rows if row["example"] not in without]
    return tuple(matrix(row[key] for row in kept) for key in ("label", "prediction"))


def test_runs_have_every_metric_as_scikit_learn_measures_it(made):
    experiment, tables = made
    assert len(tables["runs"]) == 6
    for folder, row in zip(experiment.folders, tables["runs"], strict=True):
        places = {"validation_{}": ("validation", ()), "test_{}": ("test", ())}
        places["test_{}_without_leaks"] = ("test", LEAKED)
        for column, place in places.items():
            labels, predicted = predictions_of(folder, *place)
            for metric, measure in MEASURES.items():
                assert row[column.format(metric)] == pytest.approx(measure(labels, predicted), rel=1e-9)
        assert (row["test_examples"], row["test_examples_without_leaks"]) == (400, 398)
        assert row["test_majority_share"] is row["test_ece"] is None
        assert not row["collapsed"]
        assert not row["not_above_majority"]


def test_the_summary_has_the_constant_answer_and_the_bag_that_validation_chooses(made):
    experiment, tables = made
    rows = {(row["metric"], row["test_set"], row["init"]): row for row in tables["summary"]}
    assert len(rows) == 3 * 2 * 2
    for (metric, test_set, _), row in rows.items():
        labels, _ = predictions_of(experiment.folders[0], "test", LEAKED if test_set != "all" else ())
        constant = np.tile([name in CONSTANT[metric] for name in LABELS], (len(labels), 1))
        assert row["majority_share"] == pytest.approx(MEASURES[metric](labels, constant))
        assert row["bag_of_words"] == 0.7
        assert row["both_low"] < row["mean"] < row["both_high"]
        assert (row["binomial_se"] is not None) == (metric == "subset_accuracy")


def test_inits_are_compared_by_every_metric_and_mcnemar_by_sets_that_are_right(made):
    experiment, tables = made
    rows = [row for row in tables["contrasts"] if row["family"] == "init" and row["test_set"] == "all"]
    assert {row["metric"] for row in rows} == set(MEASURES)
    assert all(row["delta"] > 0 and row["ci_low"] < row["delta"] < row["ci_high"] for row in rows)
    right = {}
    for folder, run in zip(experiment.folders, tables["runs"], strict=True):
        labels, predicted = predictions_of(folder, "test")
        right[run["init"], run["init_seed"]] = (labels == predicted).all(axis=1)
    for row in tables["pairs"]:
        a, b = (right[init, row["init_seed"]] for init in ("pretrained", "random"))
        assert (row["only_a_right"], row["only_b_right"]) == (int((a & ~b).sum()), int((b & ~a).sum()))


def test_churn_and_never_right_are_of_whole_sets(made):
    experiment, tables = made
    found = [predictions_of(folder, "test") for folder in experiment.folders]
    wrong = ~np.any([(labels == predicted).all(axis=1) for labels, predicted in found], axis=0)
    assert [row["example"] for row in tables["never_right"]] == [f"test-{i}" for i in np.flatnonzero(wrong)]
    assert all(row["label"] == json.dumps(json.loads(row["label"])) for row in tables["never_right"])
    for row in tables["churn"]:
        runs = [
            predicted
            for (_, predicted), run in zip(found, tables["runs"], strict=True)
            if run["init"] == row["init"]
        ]
        changed = np.any([(runs[0] != other).any(axis=1) for other in runs[1:]], axis=0)
        assert row["changed"] == int(changed.sum())
    assert tables["confusion"] == tables["calibration"] == []


def test_runs_that_collapse_or_diverge_are_told(tmp_path):
    made = make_label_sets(tmp_path, seeds=[0, 1, 2], collapsed=[COLLAPSED], diverged=[DIVERGED])
    aggregate(made)
    rows = {row["init_seed"]: row for row in read_table(made.outputs["runs"]) if row["init"] == "random"}
    assert [rows[seed]["collapsed"] for seed in range(3)] == [True, True, False]
    assert [rows[seed]["diverged"] for seed in range(3)] == [False, True, False]
    assert [rows[seed]["test_all_same"] for seed in range(3)] == [True, True, False]
    assert rows[1]["test_micro_f1"] == rows[1]["test_subset_accuracy"] == 0.0
    assert rows[1]["validation_loss"] is None
    assert all(rows[seed]["not_above_majority"] for seed in (0, 1))


@pytest.mark.parametrize("metric", ["macro_f1", "subset_accuracy"])
def test_the_chosen_metric_leads(tmp_path, metric):
    made = make_label_sets(tmp_path, seeds=[0, 1, 2], metric=metric)
    aggregate(made)
    assert next(iter(read_table(made.outputs["summary"])))["metric"] == metric


@pytest.mark.parametrize(("name", "value"), [("macro_f1", 0.5), ("loss", 0.01)])
def test_a_metric_that_is_not_that_of_the_predictions_is_refused(tmp_path, name, value):
    made = make_label_sets(tmp_path, seeds=[0])
    edit_json(made.folders[0] / "run.json", lambda record: record["test"].update({name: value}))
    with pytest.raises(SeedbedError, match=f"the test {name} of a run is not that of its predictions"):
        aggregate(made)


def test_a_changed_label_is_refused(tmp_path):
    made = make_label_sets(tmp_path, seeds=[0])
    edit_csv(made.folders[0] / "predictions.csv", lambda rows: rows[0].update(label='["opera"]'))
    with pytest.raises(SeedbedError, match="a label that the run does not know"):
        aggregate(made)
