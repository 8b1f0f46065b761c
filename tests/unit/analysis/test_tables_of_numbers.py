"""Tables of an experiment that predicts numbers: columns, baselines, intervals, and what is refused."""

import csv

import numpy as np
import pytest
from builders_report import aggregate
from scipy import stats
from synthetic import edit_csv, edit_json
from synthetic_values import MEAN, SD, make_values

from seedbed.core.errors import SeedbedError
from seedbed.core.rows import read_table

LEAKED = ("test-1", "test-2")
METRICS = ("pearson", "spearman", "mse")
MEASURES = {
    "pearson": lambda labels, predicted: stats.pearsonr(labels, predicted).statistic,
    "spearman": lambda labels, predicted: stats.spearmanr(labels, predicted).statistic,
    "mse": lambda labels, predicted: ((labels - predicted) ** 2).mean(),
}
BROKEN = {
    "collapsed": ["marks/small/fairseq/random/lab/seed0"],
    "diverged": ["marks/small/transformers/random/lab/seed1"],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    made = make_values(tmp_path_factory.mktemp("values"), leaked=LEAKED, seeds=[0, 1, 2])
    aggregate(made)
    return made, {name: read_table(path) for name, path in made.outputs.items()}


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    made = make_values(tmp_path_factory.mktemp("broken"), seeds=[0, 1, 2], **BROKEN)
    aggregate(made)
    return {name: read_table(path) for name, path in made.outputs.items()}


def predictions_of(folder, split, without=()):
    with open(folder / "predictions.csv", encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["split"] == split]
    kept = [row for row in rows if row["example"] not in without]
    return tuple(np.array([float(row[key]) for row in kept]) for key in ("label", "prediction"))


def test_runs_have_every_metric_as_scipy_measures_it(made):
    experiment, tables = made
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


def test_the_summary_has_the_mean_of_training_and_the_bag_that_validation_chooses(made):
    _, tables = made
    rows = {(row["metric"], row["test_set"], row["framework"], row["init"]): row for row in tables["summary"]}
    assert len(rows) == 3 * 2 * 4
    labels, _ = predictions_of(made[0].folders[0], "test")
    for (metric, test_set, _, _), row in rows.items():
        constant = ((labels - MEAN) ** 2).mean() if metric == "mse" else 0.0
        if test_set == "all":
            assert row["majority_share"] == pytest.approx(constant)
        # 0.62 is the best of the three penalties
        bag = SD**2 * (1 - 0.62**2) if metric == "mse" else 0.62
        assert row["bag_of_words"] == pytest.approx(bag)
        assert row["both_low"] < row["mean"] < row["both_high"]
        assert row["binomial_se"] is None


@pytest.mark.parametrize("metric", METRICS)
def test_a_difference_has_its_interval_and_its_verdict_in_the_metrics_direction(made, metric):
    _, tables = made
    (row,) = (
        row
        for row in tables["contrasts"]
        if row["metric"] == metric
        and row["family"] == "init"
        and row["a"].startswith("fairseq")
        and row["test_set"] == "all"
    )
    assert row["interval"] == "over seeds and examples"
    sign = -1 if metric == "mse" else 1
    assert sign * row["delta"] > 0
    assert row["ci_low"] <= row["delta"] <= row["ci_high"]
    assert row["probability_of_improvement"] == 1.0
    assert row["p_holm"] < 0.05


def test_tables_of_classes_are_empty(made):
    _, tables = made
    for name in ("churn", "never_right", "calibration", "confusion", "pairs"):
        assert tables[name] == []


def test_collapsed_and_diverged_runs_are_told(broken):
    columns = ("dataset", "model", "framework", "init", "recipe", "init_seed")
    rows = {"/".join(str(row[key]) for key in columns): row for row in broken["runs"]}
    collapsed, diverged = (rows[BROKEN[how][0].replace("seed", "")] for how in BROKEN)
    assert collapsed["collapsed"]
    assert diverged["collapsed"]
    assert collapsed["test_pearson"] == 0.0
    assert collapsed["test_all_same"]
    assert collapsed["not_above_majority"]
    assert diverged["test_mse"] is None
    assert not diverged["test_all_same"]
    summary = {(row["metric"], row["framework"], row["init"]): row for row in broken["summary"]}
    assert summary["mse", "transformers", "random"]["mean"] is None
    assert summary["mse", "transformers", "random"]["mean_without_collapsed"] is not None
    assert summary["pearson", "fairseq", "random"]["n_collapsed"] == 1


def test_clusters_widen_nothing_by_themselves(tmp_path):
    """Clusters of one example each are no clusters: all numbers are the same."""
    sizes = {"validation": 40, "test": 80}
    alone = {
        split: {f"author {index}": [f"{split}-{index}"] for index in range(size)}
        for split, size in sizes.items()
    }
    found = []
    for name, clusters in (("plain", None), ("alone", alone)):
        made = make_values(tmp_path / name, sizes=sizes, clusters=clusters, seeds=[0, 1])
        aggregate(made)
        found.append([row["both_low"] for row in read_table(made.outputs["summary"])])
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_the_mean_squared_error_may_lead(tmp_path):
    made = make_values(
        tmp_path, metric="mse", recipe={"sweep": {"learning_rate": [1e-5, 1e-4]}}, seeds=[0, 1, 2]
    )
    aggregate(made)
    best = {row["recipe"] for row in read_table(made.outputs["summary"]) if row["selection"] == "best"}
    assert best == {"lab.learning_rate=0.0001"}
    chosen = read_table(made.outputs["expected_validation"])
    assert {row["metric"] for row in chosen} == {"mse"}
    # the expected best of two settings is lower than that of one
    first, second = (row["expected"] for row in chosen[:2])
    assert second < first


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_that_is_not_that_of_the_predictions_is_refused(tmp_path, metric):
    made = make_values(tmp_path, seeds=[0], frameworks=["transformers"], inits=["random"])

    def change(document):
        document["test"][metric] = document["test"][metric] * 0.99 + 0.001

    edit_json(made.folders[0] / "run.json", change)
    with pytest.raises(SeedbedError, match=f"the test {metric} of a run is not that of its predictions"):
        made.aggregate()


def test_a_score_of_the_bag_that_cannot_be_is_refused(tmp_path):
    made = make_values(tmp_path, seeds=[0], frameworks=["transformers"], inits=["random"])

    def change(rows):
        rows[0]["value"] = "1.5"

    path = made.plan.results / "data/marks/bag_of_words.csv"
    edit_csv(path, change)
    with pytest.raises(SeedbedError) as error:
        made.aggregate()
    assert error.value.where == f"{path}, line 2"
    edit_csv(path, lambda rows: rows.clear())
    with pytest.raises(SeedbedError, match="no scores of the bag-of-words baseline"):
        made.aggregate()
