"""Tables of runs that generate answers: numbers against the runs' own files, directions, and every fault."""

import csv
import itertools
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from synthetic import LOSS_RATES, Synthetic, edit_csv, edit_json, generation_config, make_generation

from seedbed.analysis.records import curve_columns
from seedbed.config.plan import Plan
from seedbed.core import files
from seedbed.core.errors import SeedbedError
from seedbed.core.rows import Row, grouped, on_test_set
from seedbed.core.tasks import TASKS

TASK = TASKS["generation"]
METRICS = (*TASK.metrics, *TASK.final)
PLACE = "questions/tiny/transformers/pretrained"
UNSTABLE = f"{PLACE}/full.learning_rate=0.001/seed1"
DIVERGED = f"{PLACE}/full.learning_rate=0.001/seed2"
REPEATING = f"{PLACE}/lora.learning_rate=3e-05/seed0"
LEAKED = ("test-3", "test-7")
BROKEN_RECIPE = "full.learning_rate=0.001"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory) -> Synthetic:
    made = make_generation(
        tmp_path_factory.mktemp("sweep"), rates=LOSS_RATES, seeds=[0, 1, 2], leaked=LEAKED,
        unstable=[UNSTABLE], diverged=[DIVERGED], repeating=[REPEATING],
    )  # fmt: skip
    made.plan.config["statistics"]["replicates"] = 500
    return made


@pytest.fixture(scope="module")
def found(sweep) -> dict[str, list[Row]]:
    return sweep.aggregate()


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Synthetic:
    return make_generation(
        tmp_path_factory.mktemp("plain"), seeds=[0, 1], sizes={"validation": 15, "test": 20}
    )


@pytest.fixture
def broken(plain, tmp_path) -> Synthetic:
    """A copy that a test may break."""
    shutil.copytree(plain.plan.results, tmp_path, dirs_exist_ok=True)
    methods = ("none", "lora", "full")
    config = generation_config(tmp_path, methods, ("questions",), ("tiny",), (), False, {"seeds": [0, 1]})
    return Synthetic(Plan(config))


def run_of(found, recipe: str, seed: int) -> Row:
    (row,) = (row for row in found["runs"] if (row["recipe"], row["init_seed"]) == (recipe, seed))
    return row


def rows_of(table: list[Row], **values) -> list[Row]:
    return [row for row in table if all(row[key] == value for key, value in values.items())]


def predictions(folder: Path, split: str = "test") -> list[Row]:
    with open(folder / "predictions.csv", encoding="utf-8", newline="") as stream:
        return [row for row in csv.DictReader(stream) if row["split"] == split]


def fails(made: Synthetic, *parts: str) -> None:
    with pytest.raises(SeedbedError) as caught:
        made.aggregate()
    for part in parts:
        assert part in str(caught.value)
    assert not any(path.exists() for path in made.outputs.values())


# --- runs ---------------------------------------------------------------------------------------------------


def test_runs_have_the_metrics_that_they_told(sweep, found):
    for row, folder in zip(found["runs"], sweep.folders, strict=True):
        told = files.read_json(folder / "run.json")
        for split, metric in itertools.product(("validation", "test"), METRICS):
            assert row[f"{split}_{metric}"] == (
                told[split][metric] and pytest.approx(told[split][metric], rel=1e-9)
            ), (row["recipe"], metric)
        assert row["trainable_parameters"] == told["parameters"]["trainable"]
        assert row["total_parameters"] == told["parameters"]["total"]
    assert run_of(found, "none", 0)["trainable_parameters"] == 0
    assert run_of(found, "none", 0)["samples_per_second"] is None


def test_what_is_of_classes_is_empty(found):
    columns = ("test_majority_share", "test_ece", "not_above_majority", "validation_majority_share")
    assert {row[column] for row in found["runs"] for column in columns} == {None}
    assert {row[key] for row in found["summary"] for key in ("majority_share", "bag_of_words", "ece")} == {
        None
    }
    assert {row["n_not_above_majority"] for row in found["summary"]} == {None}
    tables = ("churn", "never_right", "calibration", "confusion", "variance")
    assert {name: found[name] for name in tables} == {name: [] for name in tables}


def test_leaks_are_left_out_of_ratios_too(sweep, found):
    row, folder = run_of(found, "lora.learning_rate=0.0003", 1), None
    folder = next(path for path in sweep.folders if str(path).endswith("lora.learning_rate=0.0003/seed1"))
    kept = [each for each in predictions(folder) if each["example"] not in LEAKED]
    tokens = np.array([int(each["tokens"]) for each in kept])
    loss = np.array([float(each["loss"]) for each in kept])
    assert row["test_loss_without_leaks"] == pytest.approx((loss * tokens).sum() / tokens.sum(), rel=1e-12)
    assert row["test_perplexity_without_leaks"] == pytest.approx(math.exp(row["test_loss_without_leaks"]))
    assert row["test_f1_without_leaks"] == pytest.approx(np.mean([float(each["f1"]) for each in kept]))
    assert (row["test_examples"], row["test_examples_without_leaks"], row["leaked_test_examples"]) == (
        120,
        118,
        2,
    )


def test_runs_that_went_wrong_are_marked(found):
    marks = {
        (row["recipe"], row["init_seed"]): (row["unstable"], row["diverged"], row["collapsed"])
        for row in found["runs"]
    }
    assert marks.pop((BROKEN_RECIPE, 1)) == (True, False, False)
    assert marks.pop((BROKEN_RECIPE, 2)) == (True, True, True)
    assert marks.pop(("lora.learning_rate=3e-05", 0)) == (False, False, True)  # one answer to every question
    assert set(marks.values()) == {(False, False, False)}
    assert run_of(found, BROKEN_RECIPE, 2)["not_above_untrained"] is True
    assert run_of(found, BROKEN_RECIPE, 1)["not_above_untrained"] is False
    untrained = run_of(found, "none", 0)
    assert untrained["not_above_untrained"] is None
    assert untrained["untrained_validation_loss"] == untrained["validation_loss"]


@pytest.mark.parametrize(
    ("train", "unstable"),
    [
        ([2.0, 1.5, 1.0], False),
        ([2.0, 2.11], True),
        ([2.0, 2.09], False),  # less than 5%
        ([0.10, 0.149], False),  # less than 0.05 nats
        ([0.10, 0.151], True),
        ([2.0, 1.0, 1.2, 0.5], True),
        ([2.0, None], True),
        ([], False),
    ],
)
def test_a_training_loss_that_rises_is_unstable(train, unstable):
    rows = [
        [str(10 * epoch), str(epoch), "train", "loss", "" if loss is None else str(loss), "0", "0"]
        for epoch, loss in enumerate(train, 1)
    ]
    told = {"diverged": False, "method": "full"}
    assert curve_columns(rows, told, TASKS["classification"], Path("metrics.csv")) == {"unstable": unstable}
    assert curve_columns(rows, told | {"diverged": True}, TASKS["classification"], Path("m"))["unstable"]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [("3.0", 2.9, False), ("3.0", 3.0, True), ("3.0", 3.1, True), ("3.0", None, True), ("", 2.9, False)],
)
def test_a_run_is_held_to_the_untrained_model(before, after, expected):
    rows = [["0", "0", "validation", "loss", before, "0", "0"]]
    told = {"diverged": False, "method": "lora", "validation_loss": after}
    assert curve_columns(rows, told, TASK, Path("metrics.csv"))["not_above_untrained"] is expected


# --- summary ------------------------------------------------------------------------------------------------


def test_there_is_a_row_for_every_reported_metric_and_test_set(found):
    cells = grouped(found["summary"], "recipe", "selection")
    assert len(cells) == 9 + 2
    for rows in cells.values():
        told = [(row["test_set"], row["metric"]) for row in rows]
        assert told == list(itertools.product(("all", "without leaks"), TASK.reported))


def test_means_are_over_seeds_and_only_shares_of_examples_have_a_binomial_error(found):
    for row in on_test_set(rows_of(found["summary"], recipe="lora.learning_rate=0.0001", selection="equal")):
        values = [run_of(found, row["recipe"], seed)[f"test_{row['metric']}"] for seed in (0, 1, 2)]
        assert row["mean"] == pytest.approx(np.mean(values))
        low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
        assert (row["ci_low"], row["ci_high"]) == pytest.approx((low, high))
        if row["metric"] == "exact_match":
            assert row["binomial_se"] == pytest.approx(math.sqrt(row["mean"] * (1 - row["mean"]) / 120))
        else:
            assert row["binomial_se"] is None


def test_the_lowest_validation_loss_is_the_best(found):
    best = {row["recipe_family"]: row["recipe"] for row in rows_of(found["summary"], selection="best")}
    assert best == {name: f"{name}.learning_rate=0.0003" for name in ("lora", "full")}
    (row,) = on_test_set(rows_of(found["summary"], recipe=best["lora"], selection="equal", metric="loss"))
    assert row["chosen_share"] == 1
    values = [run_of(found, row["recipe"], seed)["validation_loss"] for seed in (0, 1, 2)]
    assert row["validation_best"] == min(values)


def test_a_diverged_run_is_counted_and_never_averaged(found):
    (row,) = on_test_set(rows_of(found["summary"], recipe=BROKEN_RECIPE, metric="loss"))
    others = [run_of(found, BROKEN_RECIPE, seed)["test_loss"] for seed in (0, 1)]
    assert run_of(found, BROKEN_RECIPE, 2)["test_loss"] is None
    assert (row["n_seeds"], row["n_collapsed"]) == (3, 1)
    empty = ("mean", "sd", "ci_low", "ci_high", "iqm", "max", "validation_mean", "validation_best")
    assert {row[key] for key in empty} == {None}
    assert row["mean_without_collapsed"] == pytest.approx(np.mean(others))
    # it ranks as the worst, so that the middle one of three is the worse of the others
    assert (row["min"], row["median"]) == (min(others), max(others))
    assert "no finite loss" in row["ci_method"]
    # what counts answers is defined for it as for any run
    (exact,) = on_test_set(rows_of(found["summary"], recipe=BROKEN_RECIPE, metric="exact_match"))
    assert exact["mean"] == pytest.approx(
        np.mean([run_of(found, BROKEN_RECIPE, seed)["test_exact_match"] for seed in (0, 1, 2)])
    )


def test_a_setting_with_a_diverged_run_counts_as_the_worst_of_a_search(found):
    rows = rows_of(found["expected_validation"], recipe_family="full")
    means = [
        np.mean(
            [run_of(found, f"full.learning_rate={rate:g}", seed)["validation_loss"] for seed in (0, 1, 2)]
        )
        for rate in LOSS_RATES[:3]
    ]
    assert rows[0]["expected"] == pytest.approx((sum(means) + max(means)) / 4)
    assert [row["metric"] for row in rows] == ["loss"] * 4
    # all four settings find the best one
    assert rows[3]["expected"] == pytest.approx(min(means))
    assert rows[3]["sd"] == pytest.approx(0, abs=1e-9)


# --- contrasts ----------------------------------------------------------------------------------------------


def test_methods_are_compared_at_equal_settings_and_at_their_best(found):
    rows = on_test_set(rows_of(found["contrasts"], metric="loss"))
    assert {row["family"] for row in rows} == {"method"}
    told = [(row["contrast"], row["recipe_a"], row["recipe_b"]) for row in rows_of(rows, selection="equal")]
    lora, full = ([f"{name}.learning_rate={rate:g}" for rate in LOSS_RATES] for name in ("lora", "full"))
    assert told == [
        *(("lora - full", a, b) for a, b in zip(lora, full, strict=True)),
        *(("full - none", name, "none") for name in full),
        *(("lora - none", name, "none") for name in lora),
    ]
    best = rows_of(rows, selection="best")
    assert [row["contrast"] for row in best] == ["lora - full", "full - none", "lora - none"]
    assert [(row["recipe_a"], row["recipe_b"]) for row in best][1:] == [(full[2], "none"), (lora[2], "none")]
    assert all(row["paired"] and row["n_a"] == 3 for row in rows)


def test_a_contrast_of_losses_is_a_minus_b_and_better_means_less(found):
    (row,) = on_test_set(rows_of(found["contrasts"], contrast="full - none", selection="best", metric="loss"))
    values = {
        recipe: [run_of(found, recipe, seed)["test_loss"] for seed in (0, 1, 2)]
        for recipe in (row["recipe_a"], "none")
    }
    assert row["delta"] == pytest.approx(np.mean(values[row["recipe_a"]]) - np.mean(values["none"]))
    assert row["delta"] < 0
    assert row["ci_high"] < 0
    assert (row["probability_of_improvement"], row["aso_eps_min"]) == (1, 0)
    (row,) = on_test_set(
        rows_of(found["contrasts"], contrast="full - none", selection="best", metric="token_accuracy")
    )
    assert row["delta"] > 0
    assert row["probability_of_improvement"] == 1


def test_holm_adjusts_each_metric_and_test_set_apart(found):
    for rows in grouped(found["contrasts"], "metric", "test_set").values():
        # a best that is also an equal recipe is a test of its own: its p carries the choice
        ordered = sorted((row for row in rows if row["p_value"] is not None), key=lambda row: row["p_value"])
        reached = 0.0
        for place, row in enumerate(ordered):
            reached = max(reached, min(1.0, row["p_value"] * (len(ordered) - place)))
            assert row["p_holm"] == pytest.approx(reached)


def test_a_contrast_with_a_diverged_run_says_so(found):
    rows = rows_of(found["contrasts"], recipe_a=BROKEN_RECIPE, metric="loss")
    assert len(rows) == 2  # on both test sets
    for row in rows:
        empty = ("delta", "ci_low", "ci_high", "t_low", "t_high", "p_value", "p_holm", "aso_eps_min")
        assert {row[key] for key in empty} == {None}
        assert row["method"] == "a run has no finite loss: no difference, no interval and no test"
        # two of its three runs are better than the untrained model
        assert row["probability_of_improvement"] == pytest.approx(2 / 3)
    (row,) = on_test_set(rows_of(found["contrasts"], recipe_a=BROKEN_RECIPE, metric="exact_match"))
    assert row["ci_low"] <= row["delta"] <= row["ci_high"]


def test_a_best_that_did_not_diverge_has_an_interval_though_another_did(found):
    (row,) = on_test_set(rows_of(found["contrasts"], contrast="lora - full", selection="best", metric="loss"))
    assert "anew in every replicate" in row["method"]
    assert 0 < row["ci_low"] <= row["delta"] <= row["ci_high"] < 0.5


def test_pairs_of_runs_are_of_exact_matches(sweep, found):
    (row,) = rows_of(
        found["pairs"],
        contrast="lora - full",
        selection="best",
        init_seed=1,
        recipe_a="lora.learning_rate=0.0003",
    )
    right = {}
    for name in ("lora", "full"):
        ending = f"{name}.learning_rate=0.0003/seed1"
        folder = next(path for path in sweep.folders if str(path).endswith(ending))
        right[name] = np.array([int(each["exact_match"]) for each in predictions(folder)], dtype=bool)
    a, b = right["lora"], right["full"]
    assert (row["only_a_right"], row["only_b_right"]) == ((a & ~b).sum(), (b & ~a).sum())
    assert row["p_value"] == pytest.approx(
        stats.binomtest(int((a & ~b).sum()), int((a ^ b).sum())).pvalue if (a ^ b).any() else 1.0
    )


def test_all_runs_of_a_recipe_may_diverge(tmp_path):
    folders = [f"{PLACE}/lora.learning_rate=0.001/seed{seed}" for seed in (0, 1)]
    made = make_generation(
        tmp_path, methods=("none", "lora"), rates=(1e-4, 1e-3), diverged=folders, seeds=[0, 1]
    )
    made.plan.config["statistics"]["replicates"] = 500
    found = made.aggregate()
    (row,) = rows_of(found["summary"], recipe="lora.learning_rate=0.001", metric="loss")
    assert {row[key] for key in ("mean", "median", "min", "max", "mean_without_collapsed")} == {None}
    (best,) = rows_of(found["summary"], selection="best", metric="loss")
    assert best["recipe"] == "lora.learning_rate=0.0001"


def test_where_all_runs_diverged_there_is_no_second_test_set(tmp_path):
    folders = [f"{PLACE}/lora/seed{seed}" for seed in (0, 1)]
    made = make_generation(tmp_path, methods=("lora",), diverged=folders, seeds=[0, 1])
    found = made.aggregate()
    # the loss of these runs is none on any examples
    assert [(row["test_set"], row["metric"]) for row in found["summary"]] == [
        ("all", metric) for metric in TASK.reported
    ]


def test_a_run_that_loses_one_loss_is_collapsed_though_it_did_not_diverge(broken):
    folder = folder_of(broken, "lora/seed1")

    def change(rows):
        (row,) = (row for row in rows if row["example"] == "test-4")
        row["loss"] = ""

    edit_csv(folder / "predictions.csv", change)
    rows = predictions(folder)
    tokens = [int(row["tokens"]) for row in rows]
    right = [float(row["token_accuracy"]) * int(row["tokens"]) if row["loss"] else 0 for row in rows]
    accuracy = {"loss": None, "perplexity": None, "token_accuracy": sum(right) / sum(tokens)}
    edit_json(folder / "run.json", lambda told: told["test"].update(accuracy))
    found = broken.aggregate()
    row = run_of(found, "lora", 1)
    assert (row["diverged"], row["collapsed"], row["test_loss"]) == (False, True, None)
    (row,) = rows_of(found["summary"], recipe="lora", metric="loss")
    assert (row["n_collapsed"], row["mean"]) == (1, None)


def test_inits_and_crossed_seeds_have_their_rows(tmp_path):
    seeds = {"init": [0, 1], "data": [0, 1]}
    made = make_generation(tmp_path, methods=("lora",), inits=["pretrained", "random"], seeds=seeds)
    made.plan.config["statistics"]["replicates"] = 500
    found = made.aggregate()
    rows = rows_of(found["contrasts"], family="init")
    assert [row["metric"] for row in rows] == list(TASK.reported)
    assert rows[0]["delta"] < -1  # the pretrained init has the lower loss
    assert {row["metric"] for row in found["variance"]} == set(TASK.reported)


# --- faults -------------------------------------------------------------------------------------------------


def folder_of(made: Synthetic, ending: str) -> Path:
    return next(path for path in made.folders if str(path).endswith(ending))


def test_a_copy_that_is_whole_is_accepted(broken):
    assert len(broken.aggregate()["runs"]) == 6


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_that_the_answers_contradict_is_refused(broken, metric):
    path = folder_of(broken, "lora/seed1") / "run.json"
    edit_json(path, lambda told: told["test"].update({metric: told["test"][metric] + 0.003}))
    fails(broken, f"the test {metric} of a run is not that of its predictions", str(path))


@pytest.mark.parametrize("metric", ["loss", "f1"])
def test_a_metric_that_is_not_told_is_refused(broken, metric):
    path = folder_of(broken, "lora/seed1") / "run.json"
    edit_json(path, lambda told: told["test"].update({metric: None}))
    fails(broken, f"the test {metric} of a run", "None in run.json")
    edit_json(path, lambda told: told["test"].pop(metric))
    fails(broken, "lacks a key", f"test.{metric}")


def test_a_run_must_tell_its_parameters(broken):
    path = folder_of(broken, "lora/seed1") / "run.json"
    edit_json(path, lambda told: told["parameters"].pop("trainable"))
    fails(broken, "lacks a key", "parameters.trainable")


def test_other_references_are_refused(broken):
    def change(rows):
        rows[20]["reference"] = "une autre"

    edit_csv(folder_of(broken, "full/seed0") / "predictions.csv", change)
    fails(broken, "were not evaluated on the same test examples", "une autre")


def test_other_tokens_of_one_model_are_refused(broken):
    def change(rows):
        rows[20]["tokens"] = int(rows[20]["tokens"]) + 1

    edit_csv(folder_of(broken, "full/seed0") / "predictions.csv", change)
    fails(broken, "two runs of one model do not have the same tokens", "test example 'test-5'")


def test_two_models_may_have_other_tokens(tmp_path):
    made = make_generation(tmp_path, methods=("none",), models=("tiny", "small"), seeds=[0])
    made.plan.config["statistics"]["replicates"] = 500
    found = made.aggregate()
    assert [row["family"] for row in found["contrasts"]] == ["model"] * 4
    assert len({tuple(row["tokens"] for row in predictions(folder)) for folder in made.folders}) == 2


def test_metrics_without_the_untrained_model_are_refused(broken):
    path = folder_of(broken, "full/seed0") / "metrics.csv"
    edit_csv(path, lambda rows: rows.__delitem__(slice(0, 3)))
    fails(broken, "no validation loss before training", str(path))


def test_a_swept_key_in_a_block_has_its_column(tmp_path):
    made = make_generation(tmp_path, methods=("lora",), seeds=[0], sweeps={"lora": {"lora.r": [4, 8]}})
    made.plan.config["statistics"]["replicates"] = 500
    assert [row["lora.r"] for row in made.aggregate()["runs"]] == [4, 8]
