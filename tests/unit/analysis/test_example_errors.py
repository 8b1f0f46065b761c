"""What each init gets right, on a handful of examples that can be counted by hand."""

import itertools

import numpy as np
import pytest
from builders_rows import run_row, summary_row
from synthetic import make_experiment
from synthetic_values import make_values

from seedbed.analysis.example_errors import COLUMNS, tabulate
from seedbed.analysis.predictions import CellPredictions
from seedbed.core.rows import CELL

LABELS = (0, 0, 1, 1)
# three seeds of each init; the random run of the last seed returned no number for the last example
PRETRAINED = ((0, 1, 1, 0), (0, 1, 1, 1), (0, 1, 0, 0))
RANDOM = ((1, 1, 1, 1), (1, 0, 1, 1), (0, 0, 1, -1))
SURE = np.array([[0.6, 0.9, 0.8, 0.7], [0.8, 0.9, 0.8, 0.6], [0.7, 0.6, 0.6, 0.9]])


def cell(predicted, confidence=0.75):
    predicted = np.array(predicted, dtype=np.int16)
    shares = np.where(predicted < 0, np.nan, np.broadcast_to(confidence, predicted.shape))
    labels = np.array(LABELS, dtype=np.int16)
    loss = -np.log(np.where(predicted == labels, shares, 1 - shares))
    ids = tuple(f"test-{number}" for number in range(len(LABELS)))
    shares, loss = shares.astype(np.float32), loss.astype(np.float32)
    return CellPredictions(("bad", "good"), ids, labels, predicted, shares, loss)


def key(init, framework="fairseq", recipe="lab"):
    return ("reviews", "small", framework, init, recipe)


def made(cells, best=(), collapsed=(), leaks=()):
    """The tables of these cells; best: the cells that validation chose; collapsed: pairs of cell and seed."""
    names = {place: dict(zip(CELL, place, strict=True)) for place in cells}
    runs = [
        run_row(names[place], init_seed=seed, data_seed=seed, collapsed=(place, seed) in collapsed)
        for place, of in cells.items()
        for seed in range(len(of.predicted))
    ]
    summary = [summary_row(names[place]) for place in cells]
    summary += [summary_row(names[place], selection="best") for place in best]
    tables = tabulate(runs, cells, summary, {"reviews": set(leaks)})
    for name, rows in tables.items():
        assert all(set(row) <= set(COLUMNS[name]) for row in rows)
    return tables["example_errors"], tables["example_gains"]


def both(**options):
    return made({key("pretrained"): cell(PRETRAINED, SURE), key("random"): cell(RANDOM)}, **options)


def test_an_example_has_a_row_where_at_least_half_the_runs_of_an_init_are_wrong():
    errors, _ = both(leaks=["test-1"])
    assert [(row["example"], row["label"], row["leaked"]) for row in errors] == [
        ("test-0", "bad", False),
        ("test-1", "bad", True),
        ("test-3", "good", False),
    ]
    shares = [(row["right_pretrained"], row["right_random"], row["right_difference"]) for row in errors]
    expected = [(1, 1 / 3, 2 / 3), (0, 2 / 3, -2 / 3), (1 / 3, 2 / 3, -1 / 3)]
    assert shares == [pytest.approx(each) for each in expected]
    assert {(row["runs_pretrained"], row["runs_random"]) for row in errors} == {(3, 3)}


def test_probabilities_are_means_over_the_runs_that_have_one():
    first, second, third = both()[0]
    assert first["label_probability_pretrained"] == pytest.approx((0.6 + 0.8 + 0.7) / 3)
    assert first["wrong_confidence_pretrained"] is None
    assert second["label_probability_pretrained"] == pytest.approx((0.1 + 0.1 + 0.4) / 3)
    assert second["wrong_confidence_pretrained"] == pytest.approx((0.9 + 0.9 + 0.6) / 3)
    assert third["wrong_confidence_pretrained"] == pytest.approx((0.7 + 0.9) / 2)
    # the wrong run has no probability
    assert third["label_probability_random"] == pytest.approx(0.75)
    assert third["wrong_confidence_random"] is None


def test_the_commonest_prediction_is_named_and_of_equal_ones_the_first():
    errors, _ = made({key("random"): cell([[0, 1, -1, 0], [1, 1, 0, -1]])})
    found = {row["example"]: row["prediction_random"] for row in errors}
    assert found == {"test-0": "bad", "test-1": "good", "test-2": "none", "test-3": "none"}


def test_gains_are_means_over_all_pairs_of_runs():
    _, (row,) = both()
    right = {
        "pretrained": np.array(PRETRAINED) == LABELS,
        "random": np.array(RANDOM) == LABELS,
    }
    pairs = list(itertools.product(right["pretrained"], right["random"]))
    assert row["gained"] == pytest.approx(np.mean([(a & ~b).sum() for a, b in pairs]))
    assert row["lost"] == pytest.approx(np.mean([(b & ~a).sum() for a, b in pairs]))
    for init, of in right.items():
        swaps = [(a & ~b).sum() for a, b in itertools.permutations(of, 2)]
        assert row[f"swapped_{init}"] == pytest.approx(np.mean(swaps))
    assert (row["examples"], row["only_pretrained"], row["only_random"]) == (4, 1, 2)
    accuracies = [right[init].mean() for init in ("pretrained", "random")]
    assert row["gained"] - row["lost"] == pytest.approx(4 * (accuracies[0] - accuracies[1]))


def test_frameworks_count_together_and_only_runs_of_one_framework_are_paired():
    cells = {
        key("pretrained"): cell([[0, 0, 1, 1]]),
        key("random"): cell([[1, 0, 1, 1]]),
        key("pretrained", "transformers"): cell([[1, 1, 1, 1]]),
        key("random", "transformers"): cell([[1, 1, 1, 1]]),
    }
    errors, (row,) = made(cells)
    assert {each["example"]: each["right_pretrained"] for each in errors} == {"test-0": 0.5, "test-1": 0.5}
    assert (row["runs_pretrained"], row["gained"], row["lost"]) == (2, 0.5, 0)
    # half the runs from the checkpoint are no most
    assert (row["only_pretrained"], row["only_random"]) == (0, 0)
    assert (row["swapped_pretrained"], row["swapped_random"]) == (None, None)


def test_a_sweep_is_told_at_the_recipe_that_validation_chose():
    low, high = "lab.learning_rate=1e-05", "lab.learning_rate=0.0001"
    cells = {
        key(init, recipe=recipe): cell([[0, 0, 1, 1]] if recipe == high else [[1, 1, 0, 0]])
        for init in ("pretrained", "random")
        for recipe in (low, high)
    }
    errors, (row,) = made(cells, best=[key("pretrained", recipe=high), key("random", recipe=low)])
    assert (row["recipe_family"], row["only_pretrained"], row["only_random"]) == ("lab", 4, 0)
    assert {each["right_difference"] for each in errors} == {1}


def test_collapsed_runs_do_not_count():
    cells = {key("pretrained"): cell([[0, 0, 1, 1], [0, 0, 0, 0]]), key("random"): cell([[1, 1, 1, 1]])}
    errors, (row,) = made(cells, collapsed=[(key("pretrained"), 1), (key("random"), 0)])
    assert (row["runs_pretrained"], row["runs_random"]) == (1, 0)
    assert (errors, row.get("gained"), row.get("only_pretrained")) == ([], None, None)


def test_of_one_init_nothing_is_compared():
    errors, (row,) = made({key("pretrained"): cell(PRETRAINED, SURE)})
    assert [each["example"] for each in errors] == ["test-1", "test-3"]
    assert {(each["right_random"], each["right_difference"]) for each in errors} == {(None, None)}
    assert row["swapped_pretrained"] == pytest.approx(2 / 3)
    assert row.get("gained") is None


def test_the_tables_fit_the_others(tmp_path):
    made = make_experiment(tmp_path, sizes={"validation": 20, "test": 80}, leaked=["test-1"])
    made.plan.config["statistics"]["replicates"] = 200
    tables = made.aggregate()
    (row,) = tables["example_gains"]
    means = {
        init: np.mean([run["test_accuracy"] for run in tables["runs"] if run["init"] == init])
        for init in ("pretrained", "random")
    }
    assert row["gained"] - row["lost"] == pytest.approx(80 * (means["pretrained"] - means["random"]))
    differences = [each["right_difference"] for each in tables["example_errors"]]
    only = [sum(share > 0 for share in differences), sum(share < 0 for share in differences)]
    assert (row["only_pretrained"] <= only[0], row["only_random"] <= only[1]) == (True, True)
    never = {each["example"] for each in tables["never_right"]}
    assert never <= {each["example"] for each in tables["example_errors"]}
    assert {each["example"] for each in tables["example_errors"] if each["leaked"]} <= {"test-1"}


def test_numbers_have_no_such_tables(tmp_path):
    made = make_values(tmp_path, correlations={"pretrained": 0.8, "random": 0.3}, seeds=[0, 1])
    assert made.plan.example_tables == []
    assert "example_errors" not in made.outputs
