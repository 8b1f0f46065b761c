"""Tables of an experiment whose datasets choose a metric of counts."""

import csv

import numpy as np
import pytest
from builders_report import aggregate
from sklearn import metrics
from synthetic import edit_csv, edit_json, make_experiment

from seedbed.analysis import comparison
from seedbed.analysis.majority import majority_value, not_above_majority
from seedbed.analysis.predictions import CellPredictions
from seedbed.core.errors import SeedbedError
from seedbed.core.rows import read_table
from seedbed.core.tasks import TASKS

SHARES = (0.8, 0.2)
LEVELS = {"pretrained": 0.9, "random": 0.8}
TASK = TASKS["classification"].measured_by("macro_f1")


def make(folder, metric="macro_f1", **options):
    return make_experiment(
        folder,
        metric=metric,
        shares=SHARES,
        accuracy=lambda run: LEVELS[run.init],
        seeds=[0, 1, 2],
        **options,
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    made = make(tmp_path_factory.mktemp("chosen"), leaked=["test-1", "test-2"])
    return made, made.aggregate()


def predictions_of(folder, split, without=()):
    with open(folder / "predictions.csv", encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["split"] == split]
    kept = [row for row in rows if row["example"] not in without]
    return [row["label"] for row in kept], [row["prediction"] for row in kept]


MEASURES = {
    "macro_f1": lambda *both: metrics.f1_score(*both, average="macro"),
    "accuracy": metrics.accuracy_score,
    "balanced_accuracy": metrics.balanced_accuracy_score,
    "mcc": metrics.matthews_corrcoef,
}


def test_runs_have_every_metric_as_scikit_learn_measures_it(made):
    experiment, tables = made
    for folder, row in zip(experiment.folders, tables["runs"], strict=True):
        places = {"validation_{}": ("validation", ()), "test_{}": ("test", ())}
        places["test_{}_without_leaks"] = ("test", ("test-1", "test-2"))
        for column, (split, without) in places.items():
            both = predictions_of(folder, split, without)
            for metric, measure in MEASURES.items():
                assert row[column.format(metric)] == pytest.approx(measure(*both), abs=1e-12)


def test_the_chosen_metric_leads_and_the_others_stand_beside_it(made):
    _, tables = made
    assert list(dict.fromkeys(row["metric"] for row in tables["summary"])) == list(MEASURES)
    for row in tables["contrasts"]:
        if row["family"] == "init":
            assert row["ci_low"] < row["delta"] < row["ci_high"]
            assert row["direction"] == "higher"


def test_baselines_speak_every_metric(made):
    experiment, tables = made
    labels, _ = predictions_of(experiment.folders[0], "test")
    largest = ["negative"] * len(labels)
    for row in tables["summary"]:
        if row["test_set"] == "all":
            assert row["majority_share"] == pytest.approx(MEASURES[row["metric"]](labels, largest))
    # the bag takes 53 of 320 negative texts and 13 of 80 positive ones for the other class
    of_bag = ["positive"] * 53 + ["negative"] * (320 - 53) + ["negative"] * 13 + ["positive"] * (80 - 13)
    for row in tables["summary"]:
        expected = MEASURES[row["metric"]](["negative"] * 320 + ["positive"] * 80, of_bag)
        assert row["bag_of_words"] == pytest.approx(expected)


def test_the_bag_is_that_which_the_metric_chooses(tmp_path):
    made = make(tmp_path)

    def add(rows):
        # more validation examples right, and none of the rare class; of the other split as good as perfect
        tables = {"validation": "[[80, 0], [20, 0]]", "test": "[[320, 0], [1, 79]]"}
        rows += [
            {"split": split, "metric": "counts C=0.1", "value": value} for split, value in tables.items()
        ]

    edit_csv(made.plan.results / "data" / "reviews" / "bag_of_words.csv", add)
    row = next(row for row in made.aggregate()["summary"] if row["metric"] == "accuracy")
    assert row["bag_of_words"] == pytest.approx(334 / 400)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("accuracy", "1", "no counts of the bag-of-words baseline"),
        ("counts C=1", "[[1, 2]", "not a table of counts"),
        ("counts C=1", "[[1, 2, 3], [1, 2, 3], [1, 2, 3]]", "not a table of counts"),
    ],
)
def test_a_bag_without_sound_counts_is_refused(tmp_path, name, value, message):
    made = make(tmp_path)

    def change(rows):
        for row in rows:
            if row["metric"].startswith("counts"):
                row.update(metric=name, value=value)

    edit_csv(made.plan.results / "data" / "reviews" / "bag_of_words.csv", change)
    with pytest.raises(SeedbedError, match=message):
        made.aggregate()


def test_a_metric_of_a_run_that_is_not_that_of_its_predictions_is_refused(tmp_path):
    made = make(tmp_path)
    path = made.folders[0] / "run.json"
    text = path.read_text(encoding="utf-8")
    told = made.aggregate()["runs"][0]["test_mcc"]
    path.write_text(text.replace(str(told), str(told - 0.001)), encoding="utf-8")
    with pytest.raises(SeedbedError, match="the test mcc of a run is not that of its predictions"):
        made.aggregate()


def test_a_run_that_another_metric_selected_is_refused(tmp_path):
    made = make(tmp_path)
    edit_json(made.folders[0] / "run.json", lambda record: record.update(metric="mcc"))
    with pytest.raises(SeedbedError, match="selected by another metric") as error:
        made.aggregate()
    assert error.value.found == "mcc, the configuration says macro_f1"


def test_the_f1_of_a_class_goes_by_its_label_and_not_by_its_name(tmp_path):
    made = make(tmp_path, metric={"f1_of": "1"}, labels=("0", "1"))
    made.plan.config["datasets"]["reviews"]["label_names"] = ["bad", "good"]
    row = made.aggregate()["runs"][0]
    labels, predicted = predictions_of(made.folders[0], "test")
    assert row["test_f1_of_1"] == pytest.approx(metrics.f1_score(labels, predicted, pos_label="1"))


# --- the largest class --------------------------------------------------------------------------------------


def one_run(labels, predicted, task=TASK):
    shape = (1, len(labels))
    ids = tuple(map(str, range(len(labels))))
    names = tuple(map(str, range(1 + int(max(labels)))))
    rest = (np.asarray(predicted)[None], np.ones(shape), np.ones(shape), task)
    return CellPredictions(names, ids, np.asarray(labels), *rest)


@pytest.mark.parametrize("metric", ["macro_f1", "balanced_accuracy", "mcc", "f1_of_1"])
def test_runs_that_guess_are_seldom_above_the_largest_class(metric):
    rng = np.random.default_rng(0)
    task = TASKS["classification"].measured_by(metric)
    for shares in ((0.5, 0.5), (0.9, 0.1)):
        above = 0
        for _ in range(200):
            labels, predicted = rng.choice(2, 400, p=shares), rng.choice(2, 400, p=shares)
            above += not not_above_majority(one_run(labels, predicted, task), 0.95)
        assert above <= 20  # 5% of 200 are 10, and 20 are three standard deviations more


def test_runs_that_tell_the_classes_are_above_the_largest_one_and_others_are_not():
    labels = np.repeat([0, 1], [90, 10])
    perfect, constant, half = labels, np.zeros(100, dtype=int), np.where(np.arange(100) < 95, 0, 1)
    assert not not_above_majority(one_run(labels, perfect), 0.95)
    assert not_above_majority(one_run(labels, constant), 0.95)
    assert not not_above_majority(one_run(labels, half), 0.95)  # accuracy 95%, bound 90.3%
    assert not_above_majority(one_run(labels, 1 - labels), 0.95)
    assert majority_value(one_run(labels, perfect), "macro_f1") == pytest.approx(18 / 19 / 2)


# --- two experiments ----------------------------------------------------------------------------------------


def finished(folder, **options):
    made = make(folder, frameworks=["transformers"], **options)
    aggregate(made)
    return made.experiment


def test_two_experiments_are_compared_by_their_metric(tmp_path):
    a, b = finished(tmp_path / "a"), finished(tmp_path / "b")
    found = comparison.compare_experiments(a, b, {"replicates": 400})
    assert found.metric == "macro_f1"
    assert [row.delta for row in found.differences] == [0.0, 0.0]
    runs = [row for row in read_table(a / "runs.csv") if row["init"] == "pretrained"]
    expected = np.mean([row["test_macro_f1"] for row in runs])
    assert found.differences[0].mean_a == pytest.approx(expected, rel=1e-6)


def test_experiments_of_two_metrics_are_not_compared(tmp_path):
    a, b = finished(tmp_path / "a"), finished(tmp_path / "b", metric="mcc")
    with pytest.raises(SeedbedError, match="selected by two metrics") as error:
        comparison.compare_experiments(a, b, {"replicates": 400})
    assert error.value.found == "macro-F1 and Matthews correlation"
