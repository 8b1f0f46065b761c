"""Tables from predictions, on a handful of examples that can be counted by hand."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from builders_rows import changed, run_row, summary_row
from scipy.stats import binomtest

from seedbed.analysis import statistics
from seedbed.analysis.diagnostics import COLUMNS, tabulate
from seedbed.analysis.differences import Contrast
from seedbed.analysis.predictions import CellPredictions

REPORTING = {
    "grid": {"datasets": ["reviews", "films"]},
    "datasets": {"reviews": {"task": "classification"}, "films": {"task": "classification"}},
}
NAMES = ("negative", "positive")
LABELS = (0, 0, 1, 1)
# the examples 1 and 3 change; the last seed returned no number for example 3
PREDICTED = ((0, 1, 1, 1), (0, 0, 1, 0), (0, 1, 1, -1))


def key(framework="fairseq", init="pretrained", recipe="lab", dataset="reviews", model="small"):
    return (dataset, model, framework, init, recipe)


def cell(predicted, labels=LABELS, names=NAMES, confidence=None):
    predicted = np.array(predicted, dtype=np.int16)
    ids = tuple(f"test-{number}" for number in range(len(labels)))
    shares = np.full(predicted.shape, 0.9) if confidence is None else np.array(confidence)
    shares = np.where(predicted < 0, np.nan, shares).astype(np.float32)
    return CellPredictions(names, ids, np.array(labels, dtype=np.int16), predicted, shares, 1 - shares)


def runs_of(key, seeds, **columns):
    """Rows of runs.csv of one cell; a column is one value, or a list with one for each seed."""
    names = dict(zip(("dataset", "model", "framework", "init", "recipe"), key, strict=True))
    names |= {"recipe_family": key[4].partition(".")[0], "collapsed": False} | columns
    rows = []
    for number, (init_seed, data_seed) in enumerate(seeds):
        values = {name: value[number] if isinstance(value, list) else value for name, value in names.items()}
        rows.append(run_row(values, init_seed=init_seed, data_seed=data_seed))
    return rows


def made(cells, runs=None, contrasts=(), summary=(), name=None):
    same = {key: [(seed, seed) for seed in range(len(cell.predicted))] for key, cell in cells.items()}
    runs = runs or [row for key, seeds in same.items() for row in runs_of(key, seeds)]
    tables = tabulate(runs, cells, contrasts, summary, REPORTING)
    for table, rows in tables.items():
        assert all(set(row) == set(COLUMNS[table]) for row in rows), table
    return tables[name] if name else tables


def without_names(rows):
    return [{k: v for k, v in row.items() if k not in COLUMNS["churn"][:5]} for row in rows]


# --- churn --------------------------------------------------------------------------------------------------


def test_churn_counts_examples_whose_prediction_depends_on_the_seed():
    (row,) = made({key(): cell(PREDICTED)}, name="churn")
    assert {k: row[k] for k in ("n_seeds", "examples", "changed", "changed_share")} == {
        "n_seeds": 3,
        "examples": 4,
        "changed": 2,
        "changed_share": 0.5,
    }
    # seeds 0 and 1 differ on two examples, 0 and 2 on one, 1 and 2 on two
    assert row["mean_disagreement"] == pytest.approx((2 + 1 + 2) / 3 / 4)
    assert (row["always_right"], row["never_right"], row["never_right_share"]) == (2, 0, 0.0)


def test_disagreement_is_the_mean_over_all_pairs_of_seeds():
    draw = np.random.default_rng(0)
    predicted = draw.integers(-1, 3, size=(5, 40))
    pairs = [(predicted[i] != predicted[j]).mean() for i in range(5) for j in range(i)]
    (row,) = made({key(): cell(predicted, draw.integers(0, 3, 40), ("a", "b", "c"))}, name="churn")
    assert row["mean_disagreement"] == pytest.approx(np.mean(pairs))


def test_identical_predictions_do_not_churn():
    (row,) = made({key(): cell([[1, 1, 1, 1]] * 3)}, name="churn")
    assert (row["changed"], row["mean_disagreement"]) == (0, 0.0)
    assert (row["always_right"], row["never_right"], row["never_right_share"]) == (2, 2, 0.5)


def test_one_seed_says_nothing_of_churn():
    (row,) = made({key(): cell(PREDICTED[:1])}, name="churn")
    assert (row["changed"], row["changed_share"], row["mean_disagreement"]) == (None, None, None)
    assert (row["n_seeds"], row["always_right"], row["never_right"]) == (1, 3, 1)


# --- examples that no run gets right ------------------------------------------------------------------------


def test_never_right_is_over_all_cells_of_a_dataset():
    cells = {
        key(): cell([[0, 1, 1, 0], [0, 1, 0, 0]]),
        key(framework="transformers"): cell([[1, 1, 1, 0], [0, 1, 1, -1]]),
        key(dataset="films"): cell([[1, 0, 1, 1]]),
    }
    assert made(cells, name="never_right") == [
        {"dataset": "reviews", "example": "test-1", "label": "negative", "wrong_runs": 4, "runs": 4}
        | {"most_common_prediction": "positive"},
        {"dataset": "reviews", "example": "test-3", "label": "positive", "wrong_runs": 4, "runs": 4}
        | {"most_common_prediction": "negative"},
        {"dataset": "films", "example": "test-0", "label": "negative", "wrong_runs": 1, "runs": 1}
        | {"most_common_prediction": "positive"},
    ]


def test_collapsed_runs_do_not_count_among_those_that_are_never_right():
    cells = {key(): cell([[0, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0]])}
    runs = runs_of(key(), [(0, 0), (1, 1), (2, 2)], collapsed=[False, True, True])
    (row,) = made(cells, runs, name="never_right")
    assert (row["example"], row["wrong_runs"], row["runs"]) == ("test-1", 1, 1)


def test_where_all_runs_collapsed_no_example_is_called_never_right():
    runs = runs_of(key(), [(0, 0)], collapsed=True)
    assert made({key(): cell([[0, 0, 0, 0]])}, runs, name="never_right") == []


def test_an_example_without_any_prediction_is_never_right():
    (row,) = made({key(): cell([[0, 0, 1, -1]])}, name="never_right")
    assert (row["example"], row["most_common_prediction"]) == ("test-3", "none")


# --- calibration and confusion ------------------------------------------------------------------------------


def test_calibration_pools_seeds_and_leaves_empty_bins_out():
    confidence = [[0.95, 0.62, 0.66, 0.7], [1.0, 0.91, 0.68, 0.75], [0.99, 0.97, 0.61, 0.5]]
    rows = without_names(made({key(): cell(PREDICTED, confidence=confidence)}, name="calibration"))
    assert [(row["bin_low"], row["bin_high"], row["count"]) for row in rows] == [
        (0.6, 0.7, 5),
        (0.7, 0.8, 1),
        (0.9, 1.0, 5),
    ]
    expected = [
        ((0.62 + 0.66 + 0.7 + 0.68 + 0.61) / 5, 4 / 5),
        (0.75, 0 / 1),
        ((0.95 + 1.0 + 0.91 + 0.99 + 0.97) / 5, 4 / 5),
    ]
    assert [(row["confidence"], row["accuracy"]) for row in rows] == [
        (pytest.approx(confidence), pytest.approx(accuracy)) for confidence, accuracy in expected
    ]


def test_calibration_agrees_with_the_expected_calibration_error():
    draw = np.random.default_rng(1)
    predicted, labels = draw.integers(0, 2, (6, 300)), draw.integers(0, 2, 300)
    confidence = draw.uniform(0.5, 1.0, (6, 300)).round(1)
    made_cell = cell(predicted, labels, confidence=confidence)
    rows = made({key(): made_cell}, name="calibration")
    gaps = sum(row["count"] * abs(row["confidence"] - row["accuracy"]) for row in rows)
    assert sum(row["count"] for row in rows) == 6 * 300
    assert gaps / (6 * 300) == pytest.approx(
        statistics.calibration_error(made_cell.confidence.ravel(), made_cell.correct.ravel(), bins=10)
    )


def test_a_cell_without_probabilities_has_no_calibration():
    assert made({key(): cell([[-1, -1, -1, -1]])}, name="calibration") == []


def test_confusion_counts_every_label_with_every_class_over_seeds():
    rows = without_names(made({key(): cell(PREDICTED[:2])}, name="confusion"))
    assert [(row["label"], row["prediction"], row["count"]) for row in rows] == [
        ("negative", "negative", 3),
        ("negative", "positive", 1),
        ("positive", "negative", 1),
        ("positive", "positive", 3),
    ]


def test_confusion_tells_missing_predictions_apart():
    rows = made({key(): cell(PREDICTED)}, name="confusion")
    counts = {(row["label"], row["prediction"]): row["count"] for row in rows}
    assert counts[("positive", "none")] == 1
    assert counts[("negative", "none")] == 0
    assert sum(counts.values()) == 12


# --- pairs of runs ------------------------------------------------------------------------------------------


def contrast_of(a, b, family="init", test_set="all"):
    return Contrast(
        family=family,
        dataset=a[0],
        model=a[1],
        dataset_b=b[0],
        model_b=b[1],
        metric="accuracy",
        test_set=test_set,
        contrast="pretrained - random",
        a=f"{a[2]}/{a[3]}",
        b=f"{b[2]}/{b[3]}",
        recipe_a=a[4],
        recipe_b=b[4],
        selection="equal",
        paired=True,
        n_a=2,
        n_b=2,
        delta=0.0,
        p_value=0.25,
        p_holm=0.5,
        interval="no spread",
    )


def two_sides(right_a, right_b):
    """Predictions on examples of class 0, right where told."""
    labels = [0] * len(right_a[0])
    sides = [cell(1 - np.array(right, dtype=int), labels) for right in (right_a, right_b)]
    return {key(): sides[0], key(init="random"): sides[1]}


def test_pairs_compare_the_runs_of_a_seed():
    right_a = [[1] * 8 + [0] * 4, [1] * 6 + [0] * 6]
    right_b = [[1] * 1 + [0] * 9 + [1, 0], [1] * 6 + [0] * 6]
    contrast = contrast_of(key(), key(init="random"))
    first, second = made(two_sides(right_a, right_b), contrasts=[contrast], name="pairs")
    names = ("init_seed", "data_seed", "examples", "both_right", "only_a_right", "only_b_right", "both_wrong")
    assert [first[name] for name in names] == [0, 0, 12, 1, 7, 1, 3]
    assert first["p_value"] == pytest.approx(binomtest(7, 8, 0.5).pvalue)
    assert first["p_holm"] == pytest.approx(2 * first["p_value"])
    assert [second[name] for name in names] == [1, 1, 12, 6, 0, 0, 6]
    assert (second["p_value"], second["p_holm"]) == (1.0, 1.0)
    assert (first["a"], first["b"], first["selection"]) == ("fairseq/pretrained", "fairseq/random", "equal")


def test_pairs_are_matched_by_seed_whatever_their_order():
    cells = two_sides([[1, 1, 1, 1], [0, 0, 0, 0]], [[0, 0, 0, 1], [1, 1, 1, 0], [1, 1, 1, 1]])
    runs = runs_of(key(), [(0, 0), (1, 5)]) + runs_of(key(init="random"), [(1, 5), (0, 0), (2, 2)])
    rows = made(cells, runs, [contrast_of(key(), key(init="random"))], name="pairs")
    assert [
        (row["init_seed"], row["data_seed"], row["only_a_right"], row["only_b_right"]) for row in rows
    ] == [
        (0, 0, 1, 0),
        (1, 5, 0, 1),
    ]


def test_holm_adjusts_the_pairs_of_each_family_apart():
    cells = two_sides([[1] * 10], [[0] * 10])
    cells[key(framework="transformers")] = cells[key(init="random")]
    cells[key(framework="transformers", recipe="other")] = cells[key(init="random")]
    other = contrast_of(key(), key(framework="transformers", recipe="other"), family="framework")
    contrasts = [
        contrast_of(key(), key(init="random")),
        contrast_of(key(), key(framework="transformers"), family="framework"),
        other,
        replace(other, selection="best"),  # the same two cells again: no further test
    ]
    rows = made(cells, contrasts=contrasts, name="pairs")
    alone = 2 * 0.5**10
    assert [row["p_holm"] for row in rows] == [alone, 2 * alone, 2 * alone, 2 * alone]


@pytest.mark.parametrize("changes", [{"family": "dataset"}, {"test_set": "without leaks"}])
def test_only_contrasts_on_the_same_whole_test_set_have_pairs(changes):
    contrast = replace(contrast_of(key(), key(init="random")), **changes)
    assert made(two_sides([[1, 1]], [[0, 1]]), contrasts=[contrast], name="pairs") == []


# --- variance -----------------------------------------------------------------------------------------------

CROSSED = [(init, order) for init in (0, 1) for order in (0, 1, 2)]
VALUES = [0.80, 0.82, 0.84, 0.70, 0.74, 0.72]


def summary_of(key, selection="equal"):
    names = dict(zip(("dataset", "model", "framework", "init", "recipe"), key, strict=True))
    return summary_row(names, selection=selection)


def test_crossed_seeds_have_their_variance_taken_apart():
    runs = runs_of(key(), CROSSED, test_accuracy=VALUES)
    rows = made({}, runs, summary=[summary_of(key()), summary_of(key(), "best")], name="variance")
    found = {row["component"]: row for row in rows}
    assert list(found) == ["init seed", "data seed", "residual"]
    # means of the rows .82 and .72, of the columns .75, .78, .78, of all .77
    assert found["init seed"]["mean_square"] == pytest.approx(3 * (0.05**2 + 0.05**2))
    assert found["data seed"]["mean_square"] == pytest.approx(2 * (0.02**2 + 0.01**2 + 0.01**2) / 2)
    assert [found[name]["degrees"] for name in found] == [1, 2, 2]
    assert [found[name]["levels"] for name in ("init seed", "data seed")] == [2, 3]


def test_the_order_of_runs_does_not_matter_to_the_variance():
    order = [4, 2, 0, 5, 3, 1]
    rows = [
        made({}, runs, summary=[summary_of(key())], name="variance")
        for runs in (
            runs_of(key(), CROSSED, test_accuracy=VALUES),
            runs_of(key(), [CROSSED[i] for i in order], test_accuracy=[VALUES[i] for i in order]),
        )
    ]
    for first, second in zip(*rows, strict=True):
        assert first["mean_square"] == pytest.approx(second["mean_square"])


@pytest.mark.parametrize(
    "seeds",
    [
        CROSSED[:-1],  # a combination is missing
        [(0, 0), (1, 1), (2, 2)],  # one seed for both
        [(0, 0), (0, 1), (0, 2)],  # one init seed
    ],
)
def test_seeds_that_are_not_crossed_have_no_such_rows(seeds):
    runs = runs_of(key(), seeds, test_accuracy=VALUES[: len(seeds)])
    assert made({}, runs, summary=[summary_of(key())], name="variance") == []


# --- expected validation ------------------------------------------------------------------------------------


def test_expected_validation_is_the_mean_of_the_best_of_all_subsets():
    means = {"lab.lr=1": [0.6, 0.7], "lab.lr=2": [0.8, 0.8], "lab.lr=3": [0.7, 0.7]}
    runs = [
        row
        for recipe, values in means.items()
        for row in runs_of(key(recipe=recipe), [(0, 0), (1, 1)], validation_accuracy=values)
    ]
    rows = made({}, runs, name="expected_validation")
    assert [row["settings"] for row in rows] == [1, 2, 3]
    assert {(row["recipe_family"], row["metric"]) for row in rows} == {("lab", "accuracy")}
    values = (0.65, 0.8, 0.7)
    for row in rows:
        best = [max(subset) for subset in itertools.combinations(values, row["settings"])]
        assert row["expected"] == pytest.approx(np.mean(best))
        assert row["sd"] == pytest.approx(np.std(best), abs=1e-9)


def test_a_recipe_that_sweeps_nothing_has_no_expected_validation():
    runs = runs_of(key(), [(0, 0)], validation_accuracy=0.7)
    assert made({}, runs, name="expected_validation") == []


# --- published results --------------------------------------------------------------------------------------


def test_runs_without_predictions_have_no_rows_that_need_them():
    runs = [row for init in ("pretrained", "random") for row in runs_of(key(init=init), [(0, 0), (1, 1)])]
    runs = [changed(row, collapsed=None, test_accuracy=0.8, validation_accuracy=None) for row in runs]
    tables = made({}, runs, [contrast_of(key(), key(init="random"))], [summary_of(key())])
    assert set(tables) == set(COLUMNS)
    assert not any(tables.values())
