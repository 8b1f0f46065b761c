"""Baselines of each size of training: in summary.csv, and as sides that are compared with runs."""

import itertools
import json
import random
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, f1_score, mean_squared_error
from synthetic import TRAINING, edit_csv, make_experiment

from seedbed.analysis import bootstrap
from seedbed.analysis.baselines_of_sizes import read_bags
from seedbed.analysis.bootstrap import Side
from seedbed.analysis.outputs import read_outputs
from seedbed.analysis.runs import read_runs
from seedbed.analysis.sides import SideMaker
from seedbed.core.errors import SeedbedError
from seedbed.core.run_folder import place_of_probes
from seedbed.core.tasks import TASKS
from seedbed.data.bags_of_sizes import write_bags
from seedbed.data.baselines_of_sizes import Labels, Sizes

LEAKED = ["test-1", "test-30", "test-39"]
STATISTICS = {"replicates": 200, "bootstrap_seed": 0}


def make(folder, **more):
    asked = {
        "frameworks": ["transformers"], "train_sizes": [20, 80, "all"], "leaked": LEAKED,
        "seeds": {"init": [0, 1], "data": [0, 3]}, "sizes": {"validation": 20, "test": 40},
    }  # fmt: skip
    return make_experiment(folder, **(asked | more))


def predictions_of(made):
    return pd.read_csv(made.bags[0] / "predictions.csv")


def edit(path, change):
    """Rewrite a table; `change` maps a row to another, or to None to leave it out."""

    def all_rows(rows):
        rows[:] = [changed for row in rows if (changed := change(row)) is not None]

    edit_csv(path, all_rows)


def runs_of(made):
    """The outputs of the first cell, by split."""
    found = read_runs(made.folders, made.plan.reporting(), {})
    return {split: next(iter(cells.values())) for split, cells in found.cells.items()}


@pytest.mark.parametrize(
    ("metric", "score"),
    [
        ("accuracy", accuracy_score),
        ("macro_f1", lambda actual, predicted: f1_score(actual, predicted, average="macro")),
    ],
)
def test_the_bag_in_the_summary_has_the_size_of_the_runs(tmp_path, metric, score):
    made = make(tmp_path, metric=metric)
    told = predictions_of(made).query("split == 'test'")
    kept = {"all": told, "without leaks": told[~told["example"].isin(LEAKED)]}
    rows = [row for row in made.aggregate()["summary"] if row["metric"] == metric]
    assert {(row["train_size"], row["test_set"]) for row in rows} == {
        (size, test_set) for size in (20, 80, TRAINING) for test_set in kept
    }
    for row in rows:
        of_size = kept[row["test_set"]].query(f"train_size == {row['train_size']}")
        scores = [
            score(each["label"], each["prediction"]) for _, each in of_size.groupby("data_seed", dropna=False)
        ]
        assert len(scores) == (1 if row["train_size"] == TRAINING else 2)
        assert row["bag_of_words"] == pytest.approx(np.mean(scores))


def test_a_size_without_a_bag_tells_why(tmp_path):
    made = make(tmp_path)
    why = "all training texts are of one class"
    at_20 = {"train_size": "20", "data_seed": "3"}
    edit(
        made.bags[0] / "bags.csv",
        lambda row: row | {"selected": "", "left_out": why} if at_20.items() <= row.items() else row,
    )
    edit(made.bags[0] / "predictions.csv", lambda row: None if at_20.items() <= row.items() else row)
    for row in made.aggregate()["summary"]:
        told = row["bag_of_words"] is None, row["bag_of_words_left_out"]
        assert told == ((True, why) if row["train_size"] == 20 else (False, None))
    bags = read_bags(made.bags[0], made.plan.reporting(), runs_of(made))
    assert (bags.sizes, bags.left_out) == ([80, TRAINING], {20: why})
    with pytest.raises(SeedbedError, match="there is no bag of words of a size"):
        bags.outputs("test", 20, [(0, 0)])


def test_bags_are_sides_that_are_paired_with_runs(tmp_path):
    made = make(tmp_path)
    runs = runs_of(made)
    bags = read_bags(made.bags[0], made.plan.reporting(), runs)
    assert bags.sizes == [20, 80, TRAINING]
    seeds = ((0, 0), (0, 3), (1, 0), (1, 3))
    maker = SideMaker(STATISTICS)
    told = predictions_of(made).query("split == 'test' and train_size == 80")
    right = (told["label"] == told["prediction"]).groupby(told["data_seed"]).mean()
    bag = maker.side(bags.outputs("test", 80, seeds), "accuracy", seeds, "reviews", "test", "all")
    assert bag.scores.mean(axis=1) == pytest.approx([right[data] for _, data in seeds])
    run = maker.side(runs["test"], "accuracy", seeds, "reviews", "test", "all")
    found = bootstrap.compare(run, bag, paired=True, confidence=0.95, seed=0)
    assert found.delta == pytest.approx(run.mean - right.mean())
    assert found.low < found.delta < found.high
    # the bag of all training texts is the same for every data seed
    whole = bags.outputs("test", TRAINING, seeds).predicted
    assert (whole == whole[0]).all()
    # validation chooses by accuracy and loss
    selection, tie_break = maker.validation(bags.outputs("validation", 80, seeds), seeds, "reviews")
    assert np.isfinite(tie_break.scores).all()
    assert selection.scores.shape == (4, 20)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda row: row | {"example": "test-x"} if row["example"] == "test-7" else row,
            r"not evaluated on the examples of the runs.*20 training texts, data seed 0, test, example 8: "
            "'test-7'.*remove the file",
        ),
        (lambda row: None if row["train_size"] == "80" else row, "a bag of words has no predictions.*80 tr"),
        (
            lambda row: row | {"probability_positive": "1.5"},
            r"outside \[0, 1\].*predictions.csv, line 2.*remove the file",
        ),
        (
            lambda row: row | {"example": "test-6"} if row["example"] == "test-7" else row,
            "a test example of the baseline of 20 training texts stands twice.*test-6",
        ),
    ],
    ids=["other examples", "no predictions", "probability", "twice"],
)
def test_faulty_predictions_of_bags_are_refused(tmp_path, change, message):
    made = make(tmp_path)
    edit(made.bags[0] / "predictions.csv", change)
    with pytest.raises(SeedbedError) as refused:
        made.aggregate()
    assert re.search(message, str(refused.value), re.DOTALL)


def test_the_interval_of_a_number_of_labels_is_that_of_the_difference_of_runs_and_bags(tmp_path):
    levels = {"lab.train_size=20": 0.6, "lab.train_size=80": 0.72, "lab": 0.85}
    made = make(
        tmp_path, accuracy=lambda run: levels[run.recipe], seeds={"init": [0, 1, 2], "data": [0, 3, 5]},
        sizes={"validation": 20, "test": 400},
    )  # fmt: skip
    worth = [row for row in made.aggregate()["label_worth"] if row["b"] == "bag_of_words"]
    row = next(row for row in worth if (row["train_size"], row["test_set"]) == (80, "all"))
    cells = read_runs(made.folders, made.plan.reporting(), {}).cells["test"]
    runs = next(cell for key, cell in cells.items() if key[-2:] == ("pretrained", "lab.train_size=80"))
    bags = read_bags(made.bags[0], made.plan.reporting(), runs_of(made))
    seeds = tuple(itertools.product([0, 1, 2], [0, 3, 5]))
    maker = SideMaker(made.plan.reporting()["statistics"])
    run, *sides = (
        maker.side(cell, "accuracy", seeds, "reviews", "test", "all")
        for cell in (runs, *(bags.outputs("test", size, seeds) for size in bags.sizes))
    )

    def difference(labels):
        shares = [np.interp(np.log(labels), np.log(bags.sizes), one) for one in np.eye(3)]
        bag = sum(share * side.scores for share, side in zip(shares, sides, strict=True))
        of_bag = Side(bag, seeds, run.draws)
        return bootstrap.compare(run, of_bag, paired=True, confidence=0.95, seed=0)

    assert run.mean == pytest.approx(row["score"])
    assert difference(row["labels"]).delta == pytest.approx(0, abs=1e-6)
    # nearly, since other random numbers draw the seeds
    assert difference(row["low"]).high - difference(row["low"]).low > 0.05
    assert difference(row["low"]).low == pytest.approx(0, abs=0.005)
    assert difference(row["high"]).high == pytest.approx(0, abs=0.005)
    assert (row["paired"], row["n_a"], row["n_b"]) == (True, 9, 3)


def test_a_size_that_the_table_of_bags_lacks_is_refused(tmp_path):
    made = make(tmp_path)
    bags = read_bags(made.bags[0], made.plan.reporting(), runs_of(made))
    with pytest.raises(SeedbedError, match=r"no bag of words of a size of training.*\n.*bags.csv"):
        bags.baseline(40)


# --- linear probes ------------------------------------------------------------------------------------------


def swapped(row):
    """The row with the other class."""
    negative, positive = row["probability_negative"], row["probability_positive"]
    other = {"negative": "positive", "positive": "negative"}[row["prediction"]]
    return row | {"prediction": other, "probability_negative": positive, "probability_positive": negative}


def test_the_probe_in_the_summary_is_of_the_model_and_the_longest_input_of_the_row(tmp_path):
    made = make(
        tmp_path,
        models=("tiny", "small"),
        recipes={"short": {"max_positions": 64}},
        train_sizes=[20, "all"],
        leaked=LEAKED,
    )
    told = {}
    for wrong, folder in enumerate(made.probes, 1):
        # each folder has another number of wrong predictions
        missed = {f"test-{index}" for index in range(wrong)}
        edit(folder / "predictions.csv", lambda row, of=missed: swapped(row) if row["example"] in of else row)
        told[place_of_probes(folder)] = pd.read_csv(folder / "predictions.csv").query("split == 'test'")
    assert set(told) == {
        ("reviews", model, states)
        for model in ("tiny", "small")
        for states in ("pretrained", "pretrained-max64")
    }
    tables = made.aggregate()
    for row in tables["summary"]:
        cut = "-max64" if row["recipe"].startswith("short") else ""
        rows = told["reviews", row["model"], f"pretrained{cut}"]
        rows = rows[~rows["example"].isin(LEAKED if row["test_set"] == "without leaks" else [])]
        of_size = rows[rows["train_size"] == row["train_size"]].groupby("data_seed", dropna=False)
        scores = [accuracy_score(each["label"], each["prediction"]) for _, each in of_size]
        assert row["linear_probe"] == pytest.approx(np.mean(scores))
    curves = [row for row in tables["learning_curves"] if (row["test_set"], row["train_size"]) == ("all", 20)]
    assert len({(row["model"], row["recipe"], row["linear_probe"]) for row in curves}) == 4
    assert len({row["linear_probe"] for row in curves}) == 4


def test_without_runs_from_the_checkpoint_there_is_no_probe(tmp_path):
    tables = make(tmp_path, inits=["random"]).aggregate()
    assert "linear_probe" not in tables["summary"][0]
    assert "linear_probe" not in tables["learning_curves"][0]


def test_a_probe_without_predictions_is_refused(tmp_path):
    made = make(tmp_path)
    edit(made.probes[0] / "predictions.csv", lambda row: None if row["train_size"] == "80" else row)
    with pytest.raises(
        SeedbedError, match=r"(?s)a linear probe has no predictions.*linear_probes.*80 training"
    ):
        made.aggregate()


# --- other tasks --------------------------------------------------------------------------------------------


def splits_of(label_of):
    draw, splits = random.Random(0), {}
    for split, number in {"train": 60, "validation": 20, "test": 30}.items():
        numbers = [draw.choices(range(20), k=5) for _ in range(number)]
        splits[split] = [
            {"id": f"{split}-{index}", "text": " ".join(f"w{n:02}" for n in each), "label": label_of(each)}
            for index, each in enumerate(numbers)
        ]
    return splits


def written(folder, splits, labels):
    """Bags of 30 of 60 texts and of all, and a run that predicts what the bag of all does."""
    order = [example["id"] for example in splits["train"]]
    bags = folder / "bags_of_words" / "texts"
    write_bags(bags / "bags.csv", bags / "predictions.csv", Sizes(splits, {2: order}, [30], labels))
    rows = pd.read_csv(bags / "predictions.csv", dtype=str)
    whole = rows[rows["data_seed"].isna()].drop(columns=["train_size", "data_seed"])
    whole.to_csv(folder / "predictions.csv", index=False)
    return bags, rows[(rows["train_size"] == "30") & (rows["split"] == "test")]


def test_bags_of_sets_of_labels_are_outputs(tmp_path):
    names = ["a", "b", "c"]
    splits = splits_of(lambda each: [int(3 in each), int(sum(each) > 45), int(7 in each)])
    folder, told = written(tmp_path, splits, Labels(TASKS["multilabel"], names, names))
    dataset = {"task": "multilabel", "labels": names, "label_names": names, "classes": names}
    reporting = {"grid": {"datasets": ["texts"]}, "datasets": {"texts": dataset}}
    document = {"label_names": names, "constant_answers": {"micro_f1": ["b"]}}
    runs = read_outputs(tmp_path / "predictions.csv", TASKS["multilabel"], document)
    bags = read_bags(folder, reporting, runs)
    assert np.array_equal(bags.outputs("test", 60, [(0, 2)]).predicted, runs["test"].predicted)
    actual, predicted = (
        np.array([np.isin(names, json.loads(cell)) for cell in told[column]])
        for column in ("label", "prediction")
    )
    assert bags.baseline(30).values["macro_f1", "all"] == pytest.approx(
        f1_score(actual, predicted, average="macro", zero_division=0)
    )
    assert bags.baseline(30, ["test-0"]).values["subset_accuracy", "without leaks"] == pytest.approx(
        accuracy_score(actual[1:], predicted[1:])
    )


def test_bags_of_numbers_are_outputs(tmp_path):
    splits = splits_of(lambda each: sum(each) / 10)
    folder, told = written(tmp_path, splits, Labels(TASKS["regression"]))
    reporting = {"grid": {"datasets": ["texts"]}, "datasets": {"texts": {"task": "regression"}}}
    document = {"targets": {"mean": 4.5}}
    runs = read_outputs(tmp_path / "predictions.csv", TASKS["regression"], document)
    bags = read_bags(folder, reporting, runs)
    assert np.array_equal(bags.outputs("test", 60, [(0, 2)]).predicted, runs["test"].predicted)
    actual, predicted = (told[column].astype(float) for column in ("label", "prediction"))
    expected = {"pearson": np.corrcoef(actual, predicted)[0, 1], "mse": mean_squared_error(actual, predicted)}
    for metric, value in expected.items():
        assert bags.baseline(30).values[metric, "all"] == pytest.approx(value)
    side = SideMaker(STATISTICS).side(bags.of_size("test", 30), "pearson", [(2, 2)], "texts")
    assert side.mean == pytest.approx(expected["pearson"], abs=1e-6)
