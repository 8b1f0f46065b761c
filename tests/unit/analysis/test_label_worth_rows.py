"""learning_curves.csv and label_worth.csv of made-up experiments with several sizes of training."""

import re

import numpy as np
import pytest
from synthetic import TRAINING, edit_csv, make_experiment

from seedbed.analysis import methods, verdicts
from seedbed.analysis.label_worth import FEWER, MORE
from seedbed.analysis.label_worth_rows import BASELINE, PASSED, PASSES, WORTH, list_pairs
from seedbed.analysis.learning_curves import LearningCurve

SIZES = [20, 40, 80, TRAINING]
LEVELS = {"pretrained": [0.70, 0.75, 0.80, 0.85], "random": [0.60, 0.65, 0.70, 0.75]}
SMALL = {"validation": 20, "test": 200}
AT_20 = "reviews/small/transformers/pretrained/lab.train_size=20"


def size_of(run):
    found = re.search(r"train_size=(\d+)", run.recipe)
    return int(found[1]) if found else TRAINING


def level(run):
    return LEVELS[run.init][SIZES.index(size_of(run))]


def rows_of(tables, kind, family="init"):
    return [row for row in tables["label_worth"] if (row["kind"], row["family"]) == (kind, family)]


def make(folder, accuracy=level, **more):
    asked = {
        "frameworks": ["transformers"], "seeds": [0, 1, 2], "train_sizes": [20, 40, 80, "all"],
        "noise": 0.004, "sizes": SMALL,
    }  # fmt: skip
    return make_experiment(folder, accuracy=accuracy, **(asked | more))


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return make(tmp_path_factory.mktemp("sizes"), sizes={"validation": 20, "test": 400}).aggregate()


def test_a_curve_has_a_row_for_each_size_with_what_the_summary_says(found):
    rows = found["learning_curves"]
    assert [(row["init"], row["train_size"]) for row in rows] == [
        (init, size) for init in ("pretrained", "random") for size in SIZES
    ]
    by_recipe = {(row["init"], row["recipe"]): row for row in found["summary"]}
    for row in rows:
        assert row["recipe"] == "lab"
        assert row["chosen"] == (
            "lab" if row["train_size"] == TRAINING else f"lab.train_size={row['train_size']}"
        )
        expected = by_recipe[row["init"], row["chosen"]]
        for column in ("mean", "sd", "both_low", "both_high", "n_seeds", "n_collapsed"):
            assert row[column] == expected[column]


def test_a_score_is_worth_the_labels_at_which_the_other_curve_has_it(found):
    means = {
        init: [row["mean"] for row in found["learning_curves"] if row["init"] == init] for init in LEVELS
    }
    rows = rows_of(found, WORTH)
    assert [(row["family"], row["a"], row["b"], row["train_size"]) for row in rows] == [
        ("init", "transformers/pretrained", "transformers/random", size) for size in SIZES
    ]
    first = rows[0]
    expected = 2 ** np.interp(first["score"], means["random"], np.log2(SIZES))
    assert first["score"] == means["pretrained"][0]
    assert first["labels"] == pytest.approx(expected)
    assert first["low"] < expected < first["high"]
    for name in ("low", "high"):
        assert first[f"ratio_{name}"] == pytest.approx(first[name] / 20)
    assert (first["ratio"], first["paired"], first["no_verdict"]) == (
        pytest.approx(expected / 20),
        True,
        None,
    )
    last = rows[-1]
    assert (last["labels"], last["labels_bound"], last["low_bound"]) == (TRAINING, MORE, MORE)
    assert last["not_extrapolated"] is not None or last["extrapolated"] > TRAINING


def test_a_curve_that_is_better_from_the_first_size_on_has_passed_before(found):
    (row,) = rows_of(found, PASSES)
    assert (row["a"], row["labels"], row["labels_bound"]) == ("transformers/pretrained", 20, FEWER)
    assert (row["train_size"], row["score"], row["ratio"]) == (None, None, None)


def test_the_curve_that_is_better_in_the_end_passes_the_other(tmp_path):
    crossing = {"pretrained": [0.8, 0.79, 0.78, 0.77], "random": [0.6, 0.7, 0.8, 0.9]}
    made = make(tmp_path, lambda run: crossing[run.init][SIZES.index(size_of(run))], noise=0.002)
    (row,) = rows_of(made.aggregate(), PASSES)
    assert (row["a"], row["b"]) == ("transformers/random", "transformers/pretrained")
    # differences of -0.09 at 40 and 0.02 at 80
    assert row["labels"] == pytest.approx(40 * 2 ** (9 / 11), rel=0.1)
    assert 20 < row["low"] < row["labels"] < row["high"] < TRAINING


def test_each_size_has_the_recipe_that_its_validation_chooses(tmp_path):
    def small_sizes_like_fast_learning(run):
        fast = dict(run.swept)["learning_rate"] == 1e-3
        return level(run) - (0.0 if fast == (size_of(run) <= 40) else 0.1)

    made = make(
        tmp_path,
        small_sizes_like_fast_learning,
        recipe={"sweep": {"learning_rate": [1e-4, 1e-3]}},
        inits=["pretrained"],
        sizes={"validation": 100, "test": 200},
    )
    rows = made.aggregate()["learning_curves"]
    assert [row["recipe"] for row in rows] == ["lab"] * 4
    assert [row["chosen"] for row in rows] == [
        "lab.learning_rate=0.001.train_size=20",
        "lab.learning_rate=0.001.train_size=40",
        "lab.learning_rate=0.0001.train_size=80",
        "lab.learning_rate=0.0001",
    ]


@pytest.mark.parametrize(("seeds", "reason"), [([0], methods.ONE_SEED), ([0, 1], verdicts.FEW_SEEDS)])
def test_few_seeds_have_numbers_and_no_interval(tmp_path, seeds, reason):
    rows = make(tmp_path, seeds=seeds).aggregate()["label_worth"]
    assert {row["no_verdict"] for row in rows} == {reason}
    assert all(row["labels"] for row in rows)
    assert {row["low"] for row in rows} == {None}


def test_what_hangs_on_collapsed_runs_bears_no_verdict(tmp_path):
    made = make(tmp_path, collapsed=[f"{AT_20}/seed1"])
    tables = made.aggregate()
    for rows in (rows_of(tables, WORTH), rows_of(tables, WORTH, BASELINE)[:4]):
        assert [row["no_verdict"] for row in rows] == [verdicts.COLLAPSE, None, None, None]
        assert [row["n_collapsed_a"] for row in rows] == [1, 0, 0, 0]


def test_a_collapse_that_five_seeds_outvote_is_counted_and_no_more(tmp_path):
    made = make(
        tmp_path, collapsed=["reviews/small/transformers/random/lab.train_size=20/seed1"], seeds=[*range(5)]
    )
    tables = made.aggregate()
    rows = rows_of(tables, WORTH)
    assert {row["n_collapsed_b"] for row in rows} == {1}
    assert {row["no_verdict"] for row in rows} == {None}
    beside_bags = rows_of(tables, WORTH, BASELINE)
    assert [row["n_collapsed_a"] for row in beside_bags] == [0, 0, 0, 0, 1, 0, 0, 0]
    assert {row["no_verdict"] for row in beside_bags} == {None}


def test_a_score_of_runs_that_learned_nothing_is_worth_nothing_that_is_known(tmp_path):
    made = make(tmp_path, lambda run: 0.5 if size_of(run) == 20 else level(run))
    tables = made.aggregate()
    nothing = [verdicts.NOTHING_LEARNED, None, None, None]
    assert [row["no_verdict"] for row in rows_of(tables, WORTH)] == nothing
    assert [row["no_verdict"] for row in rows_of(tables, WORTH, BASELINE)] == 2 * nothing


# --- beside bags of words -----------------------------------------------------------------------------------


def bag_of(tables):
    """The accuracy of the bag of words at each size."""
    return [row["bag_of_words"] for row in tables["learning_curves"] if row["init"] == "pretrained"]


def test_a_score_is_worth_the_labels_at_which_the_bag_of_words_has_it(found):
    rows = rows_of(found, WORTH, BASELINE)
    assert [(row["a"], row["train_size"]) for row in rows] == [
        (f"transformers/{init}", size) for init in LEVELS for size in SIZES
    ]
    names = ("model", "recipe_a", "method_a", "b")
    assert {tuple(row[name] for name in names) for row in rows} == {("small", "lab", "full", "bag_of_words")}
    assert not any(row[name] for row in rows for name in ("model_b", "recipe_b", "method_b"))
    assert {(row["paired"], row["n_a"], row["n_b"], row["n_collapsed_b"]) for row in rows} == {
        (True, 3, 3, 0)
    }
    row = rows[5]
    assert (row["a"], row["train_size"]) == ("transformers/random", 40)
    expected = 2 ** np.interp(row["score"], bag_of(found), np.log2(SIZES))
    assert (row["labels"], row["ratio"]) == pytest.approx((expected, expected / 40))
    assert row["low"] < expected < row["high"] < TRAINING
    assert (rows[3]["labels"], rows[3]["labels_bound"]) == (TRAINING, MORE)


def test_runs_pass_the_bag_of_words_where_their_difference_is_zero(tmp_path):
    levels = [0.505, 0.56, 0.70, 0.9]
    tables = make(tmp_path, lambda run: levels[SIZES.index(size_of(run))], noise=0.002).aggregate()
    row = rows_of(tables, PASSES, BASELINE)[0]
    assert (row["a"], row["b"], row["train_size"]) == ("transformers/pretrained", "bag_of_words", None)
    means = [row["mean"] for row in tables["learning_curves"] if row["init"] == "pretrained"]
    ahead = np.subtract(means, bag_of(tables))
    assert row["labels"] == pytest.approx(2 ** np.interp(0, ahead, np.log2(SIZES)))
    assert 20 <= row["low"] < row["labels"] < row["high"] < TRAINING
    assert not rows_of(tables, PASSED, BASELINE)


def test_runs_that_are_ahead_at_small_sizes_alone_are_passed_by_the_bag_of_words(tmp_path):
    tables = make(tmp_path, lambda run: 0.68, noise=0.002).aggregate()
    passes, passed = (rows_of(tables, kind, BASELINE)[0] for kind in (PASSES, PASSED))
    assert (passes["labels"], passes["labels_bound"], passes["high_bound"]) == (TRAINING, MORE, MORE)
    assert (passed["a"], passed["b"]) == ("transformers/pretrained", "bag_of_words")
    means = [row["mean"] for row in tables["learning_curves"] if row["init"] == "pretrained"]
    behind = np.subtract(bag_of(tables), means)
    assert passed["labels"] == pytest.approx(2 ** np.interp(0, behind, np.log2(SIZES)))
    # where the one interval begins, since both are of one difference
    assert passed["low"] == pytest.approx(passes["low"], rel=0.05)
    assert 20 < passed["low"] < passed["labels"] < passed["high"] < TRAINING


def test_a_size_without_a_bag_of_words_is_not_of_its_curve(tmp_path):
    made = make(tmp_path)
    at_20 = {"train_size": "20"}
    why = {"selected": "", "left_out": "all training texts are of one class"}

    def without_bags(rows):
        rows[:] = [row | why if at_20.items() <= row.items() else row for row in rows]

    def without_predictions(rows):
        rows[:] = [row for row in rows if not at_20.items() <= row.items()]

    edit_csv(made.bags[0] / "bags.csv", without_bags)
    edit_csv(made.bags[0] / "predictions.csv", without_predictions)
    tables = made.aggregate()
    worth = rows_of(tables, WORTH, BASELINE)
    assert [row["train_size"] for row in worth] == 2 * SIZES
    assert (worth[4]["score"], worth[4]["labels"], worth[4]["labels_bound"]) == (
        pytest.approx(0.6, abs=0.03), pytest.approx(55, abs=12), None,
    )  # fmt: skip
    passes = rows_of(tables, PASSES, BASELINE)[0]
    assert (passes["labels"], passes["labels_bound"]) == (40, FEWER)


def test_without_sizes_there_are_no_such_tables(tmp_path):
    made = make_experiment(tmp_path, frameworks=["transformers"], seeds=[0], sizes=SMALL)
    assert made.plan.size_tables == []
    made.aggregate()
    assert not list(made.experiment.glob("l*.csv"))


# --- pairs --------------------------------------------------------------------------------------------------


def curve(**differs):
    names = {
        "dataset": "reviews", "model": "small", "framework": "fairseq", "init": "pretrained", "recipe": "lab",
        "method": "full", "metric": "accuracy", "test_set": "all",
    }  # fmt: skip
    return LearningCurve(**(names | differs), candidates={}, chosen={})


@pytest.mark.parametrize(
    ("family", "a", "b"),
    [
        ("init", {}, {"init": "random"}),
        ("framework", {}, {"framework": "transformers"}),
        ("model", {}, {"model": "large"}),
        ("method", {"recipe": "adapter", "method": "lora"}, {}),
    ],
)
def test_curves_that_differ_in_one_thing_are_a_pair(family, a, b):
    others = [curve(metric="loss"), curve(dataset="other"), curve(test_set="without leaks")]
    (pair,) = list_pairs([curve(**b), *others, curve(**a)] if a else [curve(**a), *others, curve(**b)])
    assert (pair.family, pair.a, pair.b) == (family, curve(**a), curve(**b))


def test_curves_of_other_recipes_or_of_two_differences_are_no_pair():
    assert list_pairs([curve(), curve(recipe="other"), curve(init="random", framework="transformers")]) == []
