"""Aggregation: the tables of made-up runs, and every fault that it must notice."""

import csv
import itertools
import math
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from synthetic import Synthetic, edit_csv, edit_json, learning_rate_levels, make_experiment

from seedbed import diagnostics, duplicates, tables
from seedbed.errors import SeedbedError
from seedbed.plan import build_runs

RATES = [1e-5, 1e-4, 3e-4]
LABELS = ("negative", "positive")
SIZES = {"validation": 20, "test": 80}
COLLAPSED = "reviews/small/fairseq/random/lab/seed1"
DIVERGED = "reviews/small/transformers/random/lab/seed2"


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Synthetic:
    folder = tmp_path_factory.mktemp("plain")
    return make_experiment(folder, collapsed=[COLLAPSED], diverged=[DIVERGED], sizes=SIZES)


@pytest.fixture(scope="module")
def found(plain) -> dict[str, list[tables.Row]]:
    return plain.aggregate()


@pytest.fixture
def broken(plain, tmp_path) -> Synthetic:
    """A copy that a test may break."""
    shutil.copytree(plain.plan.results, tmp_path, dirs_exist_ok=True)
    return Synthetic(
        type(plain.plan)({**plain.plan.config, "results": str(tmp_path), "recipes": {"lab": {}}})
    )


def header(path: Path) -> list[str]:
    return path.read_text().splitlines()[0].split(",")


# --- runs and curves ---


def test_runs_are_those_of_the_plan_in_its_order(plain, found):
    assert [(run["framework"], run["init"], run["init_seed"]) for run in found["runs"]] == [
        (run.framework, run.init, run.init_seed) for run in plain.plan.runs
    ]
    first = found["runs"][0]
    assert first["selected_step"] == 1125
    assert first["device"] == "cpu: Made-up 3000"
    assert first["total_seconds"] == pytest.approx(
        sum(first[f"{part}_seconds"] for part in tables.SECONDS[:-1])
    )


def test_collapsed_diverged_and_weak_runs_are_marked(plain, found):
    by_folder = dict(zip([run.folder for run in plain.plan.runs], found["runs"], strict=True))
    collapsed, diverged = by_folder[COLLAPSED], by_folder[DIVERGED]
    assert (collapsed["collapsed"], collapsed["diverged"], collapsed["not_above_majority"]) == (
        True,
        False,
        True,
    )
    assert (diverged["collapsed"], diverged["diverged"], diverged["test_accuracy"]) == (True, True, 0.0)
    assert diverged["test_loss"] is None
    assert sum(run["collapsed"] for run in found["runs"]) == 2


def test_not_above_majority_is_the_one_sided_wilson_bound(tmp_path):
    # 59 and 60 of 100 on balanced classes: the bounds are 50.8% and 51.8%; 58 gives 49.8%
    made = make_experiment(
        tmp_path,
        accuracy=lambda run: {0: 0.58, 1: 0.59, 2: 0.60}[run.init_seed],
        noise=0,
        sizes={"validation": 100, "test": 100},
        frameworks=["fairseq"],
        inits=["random"],
    )
    runs = made.aggregate()["runs"]
    assert [run["test_accuracy"] for run in runs] == [0.58, 0.59, 0.60]
    assert [run["not_above_majority"] for run in runs] == [True, False, False]


def test_curves_hold_every_metric_and_no_not_a_number(plain, found):
    rows = [row for row in found["curves"] if row["split"] == "train" and row["metric"] == "loss"]
    assert len(rows) == 5 * len(plain.plan.runs)
    assert sum(row["value"] is None for row in rows) == 4
    assert "nan" not in plain.outputs["curves"].read_text().lower()


def test_every_table_is_written_with_its_columns(plain, found):
    assert set(diagnostics.COLUMNS) <= set(plain.outputs)
    for name, columns in diagnostics.COLUMNS.items():
        assert header(plain.outputs[name]) == list(columns)
    assert len(found["churn"]) == len(found["summary"])


def test_files_are_the_same_when_made_again(plain, found):
    before = {name: path.read_bytes() for name, path in plain.outputs.items()}
    plain.aggregate()
    assert before == {name: path.read_bytes() for name, path in plain.outputs.items()}


# --- summary ---


def test_summary_against_scipy(plain, found):
    assert header(plain.outputs["summary"]) == list(tables.SUMMARY_COLUMNS)
    row = found["summary"][0]
    values = [
        run["test_accuracy"]
        for run in found["runs"]
        if (run["framework"], run["init"]) == ("fairseq", "pretrained")
    ]
    low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert (row["framework"], row["init"], row["selection"], row["test_set"]) == (
        "fairseq",
        "pretrained",
        "equal",
        "all",
    )
    assert row["mean"] == pytest.approx(np.mean(values))
    assert row["sd"] == pytest.approx(np.std(values, ddof=1))
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((low, high))
    assert row["ci_method"] == "Student t over seeds, 0.95"
    assert row["binomial_se"] == pytest.approx(math.sqrt(row["mean"] * (1 - row["mean"]) / 80))
    assert (row["majority_share"], row["bag_of_words"]) == (0.5, 0.825)


def test_expected_best_is_the_expected_maximum_of_as_many_draws_as_there_are_seeds(found):
    runs = tables.grouped(found["runs"], "framework", "init")
    for row in found["summary"]:
        values = [run["validation_accuracy"] for run in runs[row["framework"], row["init"]]]
        draws = [max(draw) for draw in itertools.product(values, repeat=3)]
        assert row["expected_best"] == pytest.approx(np.mean(draws))


def test_calibration_error_of_runs_and_its_mean(plain, found):
    with open(plain.folders[0] / "predictions.csv", encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["split"] == "test"]
    sure = np.array([max(float(row[f"probability_{name}"]) for name in LABELS) for row in rows])
    right = np.array([row["label"] == row["prediction"] for row in rows])
    bins = np.ceil(sure * 10)
    gaps = [abs(right[bins == one].sum() - sure[bins == one].sum()) for one in np.unique(bins)]
    assert found["runs"][0]["test_ece"] == pytest.approx(sum(gaps) / len(rows))
    runs = tables.grouped(found["runs"], "framework", "init")
    means = [[run["test_ece"] for run in runs[row["framework"], row["init"]]] for row in found["summary"]]
    for row, values in zip(found["summary"], means, strict=True):
        # a diverged run has no probabilities, and a mean without it would be of other runs
        assert row["ece"] == (None if None in values else pytest.approx(np.mean(values)))
    assert sum(None in values for values in means) == 1


def test_means_without_collapsed_runs(found):
    row = next(row for row in found["summary"] if (row["framework"], row["init"]) == ("fairseq", "random"))
    runs = [run for run in found["runs"] if (run["framework"], run["init"]) == ("fairseq", "random")]
    sound = [run["test_accuracy"] for run in runs if not run["collapsed"]]
    assert (row["n_seeds"], row["n_collapsed"]) == (3, 1)
    assert row["mean"] == pytest.approx(np.mean([run["test_accuracy"] for run in runs]))
    assert row["mean_without_collapsed"] == pytest.approx(np.mean(sound))
    assert row["sd_without_collapsed"] == pytest.approx(np.std(sound, ddof=1))


def test_one_seed_leaves_cells_empty(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, seeds=[0], frameworks=["fairseq"])
    found = made.aggregate()
    for row in found["summary"]:
        assert row["n_seeds"] == 1
        assert [row[key] for key in ("sd", "ci_low", "ci_high", "validation_sd")] == [None] * 4
        assert row["ci_method"] == ""
    (contrast,) = found["contrasts"]
    assert [contrast[key] for key in ("ci_low", "ci_high", "p_value", "p_holm")] == [None] * 4
    assert contrast["delta"] == pytest.approx(found["summary"][0]["mean"] - found["summary"][1]["mean"])
    assert contrast["method"] == "one seed on a side: no interval and no test"


def test_all_collapsed_leaves_no_mean_without_them(tmp_path):
    folders = [f"reviews/small/fairseq/random/lab/seed{seed}" for seed in range(3)]
    made = make_experiment(tmp_path, sizes=SIZES, collapsed=folders, frameworks=["fairseq"], inits=["random"])
    found = made.aggregate()
    assert found["summary"][0]["mean_without_collapsed"] is None
    assert found["contrasts"] == []


# --- sweeps ---


@pytest.fixture(scope="module")
def sweep(tmp_path_factory) -> tuple[Synthetic, dict[str, list[tables.Row]]]:
    made = make_experiment(
        tmp_path_factory.mktemp("sweep"),
        accuracy=learning_rate_levels,
        noise=0.002,
        recipe={"sweep": {"learning_rate": RATES}},
        sizes={"validation": 400, "test": 400},
    )
    return made, made.aggregate()


def test_swept_values_have_a_column(sweep):
    made, found = sweep
    assert header(made.outputs["runs"])[-1] == "learning_rate"
    assert {run["learning_rate"] for run in found["runs"]} == set(RATES)


def test_the_best_recipe_is_chosen_on_validation(sweep):
    _, found = sweep
    best = [row for row in found["summary"] if row["selection"] == "best"]
    assert len(best) == 4
    for row in best:
        family = [
            other
            for other in found["summary"]
            if other["selection"] == "equal" and all(other[key] == row[key] for key in ("framework", "init"))
        ]
        assert len(family) == 3
        assert row["validation_mean"] == max(other["validation_mean"] for other in family)
        twin = next(other for other in family if other["recipe"] == row["recipe"])
        assert {**twin, "selection": "best"} == row


def test_ties_on_validation_go_to_the_lower_loss_then_to_the_order_of_the_sweep():
    def group(loss: float | None) -> list[tables.Row]:
        return [{"validation_accuracy": value, "validation_loss": loss} for value in (0.7, 0.8)]

    task = tables.TASKS["classification"]
    groups = {"first": group(0.6), "lower": group(0.5), "same": group(0.5), "missing": group(None)}
    assert max(groups, key=lambda name: tables._merit(groups[name], task)) == "lower"


def test_contrasts_at_equal_recipes_and_at_each_sides_best(sweep):
    _, found = sweep
    inits = [row for row in found["contrasts"] if row["family"] == "init"]
    assert [row["selection"] for row in inits] == ["equal"] * 6 + ["best"] * 2
    assert all(row["recipe_a"] == row["recipe_b"] for row in inits if row["selection"] == "equal")
    best = {
        (row["framework"], row["init"]): row["recipe"]
        for row in found["summary"]
        if row["selection"] == "best"
    }
    for row in inits[6:]:
        framework = row["a"].split("/")[0]
        assert (row["recipe_a"], row["recipe_b"]) == (
            best[framework, "pretrained"],
            best[framework, "random"],
        )
        assert "do not carry" in row["method"]


# --- contrasts ---


def test_contrasts_against_scipy(plain, found):
    assert header(plain.outputs["contrasts"]) == list(tables.CONTRAST_COLUMNS)
    values = {}
    for run in found["runs"]:
        values.setdefault(f"{run['framework']}/{run['init']}", []).append(run["test_accuracy"])
    assert [(row["family"], row["a"], row["b"]) for row in found["contrasts"]] == [
        ("init", "fairseq/pretrained", "fairseq/random"),
        ("init", "transformers/pretrained", "transformers/random"),
        ("framework", "fairseq/pretrained", "transformers/pretrained"),
        ("framework", "fairseq/random", "transformers/random"),
    ]
    for row in found["contrasts"]:
        a, b = values[row["a"]], values[row["b"]]
        paired = row["family"] == "init"
        test = stats.ttest_rel(a, b) if paired else stats.ttest_ind(a, b, equal_var=False)
        assert row["paired"] is paired
        assert row["delta"] == pytest.approx(np.mean(a) - np.mean(b))
        assert (row["t_low"], row["t_high"]) == pytest.approx(tuple(test.confidence_interval(0.95)))
        assert row["ci_low"] < row["delta"] < row["ci_high"]
        assert row["method"].startswith("Multi-Bootstrap of 10,000 replicates")
        assert row["p_value"] >= (0.25 if paired else 0.1)
        assert row["p_holm"] == pytest.approx(min(1, 2 * row["p_value"])) or row["p_holm"] > row["p_value"]


def test_seeds_of_init_and_data_are_paired_together(tmp_path):
    seeds = [{"init": 0, "data": 3}, {"init": 1, "data": 3}, 2]
    made = make_experiment(tmp_path, sizes=SIZES, seeds=seeds, frameworks=["transformers"])
    (contrast,) = made.aggregate()["contrasts"]
    assert (contrast["paired"], contrast["n_a"], contrast["n_b"]) == (True, 3, 3)


def test_three_classes_two_datasets_two_models(tmp_path):
    made = make_experiment(
        tmp_path, labels=("a", "b", "c"), datasets=("x", "y"), models=("m", "n"), sizes=SIZES, seeds=[0, 1]
    )
    found = made.aggregate()
    assert len(found["runs"]) == 32
    assert len(found["summary"]) == 16
    families = Counter(row["family"] for row in found["contrasts"])
    assert families == {"init": 8, "framework": 8, "model": 8, "dataset": 4}
    assert found["summary"][0]["majority_share"] == pytest.approx(27 / 80)


# --- faults ---


def fails(made: Synthetic, *parts: str) -> None:
    with pytest.raises(SeedbedError) as caught:
        made.aggregate()
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("name", ["run.json", "predictions.csv", "metrics.csv"])
def test_a_missing_file_is_named(broken, name):
    (broken.folders[3] / name).unlink()
    fails(
        broken, "runs of the grid are missing", f"{broken.plan.runs[3].folder}/{name}", "hint:  let Snakemake"
    )


def test_a_missing_run_is_named(plain):
    folders = plain.folders[:-1]
    with pytest.raises(SeedbedError, match=f"missing: {plain.plan.runs[-1].folder}"):
        tables.read_runs(folders, plain.plan.reporting(), {})


def test_a_run_that_is_not_in_the_grid_is_named(plain):
    stranger = Path("elsewhere/reviews/small/fairseq/random/lab/seed9")
    shutil.copytree(plain.folders[0], plain.plan.results / stranger)
    with pytest.raises(SeedbedError, match="not in the grid") as caught:
        tables.read_runs([*plain.folders, plain.plan.results / stranger], plain.plan.reporting(), {})
    assert "seed9" in caught.value.where


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("init", "random", "init is 'random', the folder says 'pretrained'"),
        ("init_seed", 7, "init_seed is 7, the folder says 0"),
        ("framework", "transformers", "framework is 'transformers', the folder says 'fairseq'"),
    ],
)
def test_a_run_of_another_folder_is_refused(broken, key, value, told):
    path = broken.folders[0] / "run.json"
    edit_json(path, lambda document: document["run"].update({key: value}))
    fails(broken, "tells of another run", str(path), told)


def test_a_run_of_another_experiment_is_refused(broken):
    edit_json(broken.folders[0] / "run.json", lambda document: document.update(experiment="other"))
    fails(broken, "experiment is 'other', the folder says 'synthetic'")


def test_a_run_with_another_swept_value_is_refused(tmp_path):
    made = make_experiment(tmp_path, recipe={"sweep": {"learning_rate": RATES}}, sizes=SIZES, seeds=[0])
    edit_json(made.folders[0] / "run.json", lambda document: document["settings"].update(learning_rate=0.5))
    fails(made, "tells of another run", "{'learning_rate': 0.5}", "{'learning_rate': 1e-05}")


def test_a_run_trained_before_the_recipe_changed_is_refused(broken):
    edit_json(broken.folders[4] / "run.json", lambda document: document["settings"].update(epochs=2))
    fails(broken, "other settings than its recipe has now", str(broken.folders[4]), "epochs was 2, is 5")


def test_other_test_examples_are_refused(broken):
    path = broken.folders[5] / "predictions.csv"

    def change(rows):
        next(row for row in rows if row["split"] == "test")["example"] = "test-999"

    edit_csv(path, change)
    fails(broken, "not evaluated on the same test examples", str(path), str(broken.folders[0]), "'test-999'")


def test_fewer_validation_examples_are_refused(broken):
    path = broken.folders[2] / "predictions.csv"
    edit_csv(path, lambda rows: rows.pop(19))
    fails(broken, "not evaluated on the same validation examples", "validation example 20", "and none")


def test_other_labels_are_refused(broken):
    path = broken.folders[1] / "predictions.csv"

    def change(rows):
        for row in rows:
            row["label"] = "positive" if row["label"] == "negative" else "negative"

    edit_csv(path, change)
    fails(broken, "not evaluated on the same validation examples", str(path))


def test_another_order_of_examples_is_refused(broken):
    path = broken.folders[1] / "predictions.csv"

    def change(rows):
        rows[3], rows[4] = rows[4], rows[3]

    edit_csv(path, change)
    fails(broken, "not evaluated on the same validation examples", "example 4: 'validation-3'", str(path))


def test_other_classes_than_those_of_its_peers_are_refused(broken):
    path = broken.folders[2]
    edit_json(path / "run.json", lambda document: document.update(label_names=LABELS[::-1]))
    fails(broken, "do not know the same classes", str(path), "negative, positive; and positive, negative")


def test_an_example_that_stands_twice_is_refused(broken):
    path = broken.folders[0] / "predictions.csv"
    edit_csv(path, lambda rows: rows[-1].update(example="test-0"))
    fails(broken, "stands twice", str(path), "test-0")


def test_a_probability_outside_its_range_is_refused(broken):
    path = broken.folders[0] / "predictions.csv"
    edit_csv(path, lambda rows: rows[0].update(probability_positive="1.25"))
    fails(broken, "a probability outside [0, 1]", f"{path}, line 2, probability_positive")


def test_a_metric_that_is_not_a_number_is_an_empty_cell(broken):
    path = broken.folders[0] / "run.json"
    path.write_text(re.sub(r'"loss": [0-9.]+', '"loss": NaN', path.read_text()))
    first = broken.aggregate()["runs"][0]
    assert (first["validation_loss"], first["test_loss"]) == (None, None)
    assert first["test_accuracy"] > 0


def test_accuracies_of_zero_and_one(tmp_path):
    level = {"pretrained": 1.0, "random": 0.0}
    made = make_experiment(tmp_path, sizes=SIZES, accuracy=lambda run: level[run.init], noise=0)
    found = made.aggregate()
    assert [(row["mean"], row["sd"], row["ci_low"]) for row in found["summary"]] == [
        (1, 0, None),
        (0, 0, None),
        (1, 0, None),
        (0, 0, None),
    ]
    assert [row["binomial_se"] for row in found["summary"]] == [0] * 4
    inits = [row for row in found["contrasts"] if row["family"] == "init"]
    assert [(row["delta"], row["ci_low"], row["p_value"]) for row in inits] == [(1, None, 0.25)] * 2


def test_a_nan_accuracy_in_run_json_is_refused(broken):
    path = broken.folders[0] / "run.json"
    path.write_text(re.sub(r'"accuracy": [0-9.]+', '"accuracy": NaN', path.read_text()))
    fails(broken, "is not that of its predictions", "nan in run.json")


@pytest.mark.parametrize("split", ["test", "validation"])
def test_an_accuracy_that_is_not_that_of_the_predictions_is_refused(broken, split):
    def change(document):
        document[split]["accuracy"] += 1 / SIZES[split]

    edit_json(broken.folders[0] / "run.json", change)
    fails(broken, f"the {split} accuracy of a run is not that of its predictions", "by counting", "run.json")


def test_an_empty_accuracy_is_refused(broken):
    edit_json(broken.folders[0] / "run.json", lambda document: document["test"].update(accuracy=None))
    fails(broken, "is not that of its predictions", "None in run.json")


def test_a_torn_run_json_is_refused(broken):
    path = broken.folders[0] / "run.json"
    path.write_text(path.read_text()[:200])
    fails(broken, "not a whole JSON file", str(path))


def test_a_missing_key_is_named(broken):
    path = broken.folders[0] / "run.json"
    edit_json(path, lambda document: document["selected"].pop("step"))
    fails(broken, "lacks a key", f"{path}, selected.step")


def test_a_torn_table_of_predictions_is_refused(broken):
    path = broken.folders[0] / "predictions.csv"
    path.write_text(path.read_text()[:-30])
    fails(broken, "not a table of predictions", f"{path}, line 101")


def test_predictions_without_probabilities_are_refused(broken):
    path = broken.folders[0] / "predictions.csv"
    path.write_text("split,example,label,prediction\n")
    fails(broken, "not a table of predictions", f"{path}, line 1")


def test_predictions_of_one_split_are_refused(broken):
    path = broken.folders[0] / "predictions.csv"
    edit_csv(path, lambda rows: rows.__delitem__(slice(20, None)))
    fails(broken, "no row of the split test")


def test_a_label_that_the_run_does_not_know_is_refused(broken):
    edit_json(broken.folders[0] / "run.json", lambda document: document.update(label_names=["0", "1"]))
    fails(broken, "a label that the run does not know", "found: negative")


def test_other_columns_of_metrics_are_refused(broken):
    path = broken.folders[0] / "metrics.csv"
    path.write_text("step,loss\n1,2\n")
    fails(broken, "not a table of metrics", f"{path}, line 1", "found: step, loss")


def test_a_torn_row_of_metrics_is_refused(broken):
    path = broken.folders[0] / "metrics.csv"
    path.write_text(path.read_text() + "1125,5,test\n")
    fails(broken, "is not whole", f"{path}, line 24")


def test_a_missing_baseline_is_named(broken):
    path = Path(broken.plan.per_dataset("bag_of_words.csv")[0])
    path.write_text("split,metric,value\n")
    fails(broken, "no test accuracy of the bag-of-words baseline", str(path))


def test_columns_and_run_keys_are_fields_of_the_plan(plain):
    run = build_runs(plain.plan.config)[0]
    assert all(hasattr(run, key) for key in tables.RUN_KEYS)


def test_tables_read_back_as_they_were_written(tmp_path):
    path = tmp_path / "table.csv"
    with open(path, "w", newline="") as stream:
        csv.writer(stream).writerows(
            [["dataset", "n", "x", "flag", "none"], ["2020", "3", "0.5", "true", ""]]
        )
    assert tables.read_table(path) == [{"dataset": "2020", "n": 3, "x": 0.5, "flag": True, "none": None}]


# --- leaked test examples ---


LEAKED = ["test-0", "test-3", "test-5", "test-40"]


@pytest.fixture(scope="module")
def leaky(tmp_path_factory) -> tuple[Synthetic, dict[str, list[tables.Row]]]:
    made = make_experiment(
        tmp_path_factory.mktemp("leaky"),
        sizes=SIZES,
        leaked=LEAKED,
        recipe={"sweep": {"learning_rate": RATES}},
        accuracy=learning_rate_levels,
    )
    return made, made.aggregate()


def count_right(folder: Path, left_out: list[str]) -> tuple[int, int]:
    with open(folder / "predictions.csv", encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["split"] == "test"]
    kept = [row for row in rows if row["example"] not in left_out]
    return sum(row["label"] == row["prediction"] for row in kept), len(kept)


def test_accuracy_without_leaks_is_counted_from_the_other_predictions(leaky):
    made, found = leaky
    for folder, run in zip(made.folders, found["runs"], strict=True):
        right, kept = count_right(folder, LEAKED)
        assert kept == run["test_examples_without_leaks"] == 76
        assert run["test_accuracy_without_leaks"] == right / 76
        assert run["test_accuracy"] == count_right(folder, [])[0] / 80


def labels_without(folder: Path, left_out: list[str]) -> list[str]:
    with open(folder / "predictions.csv", encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["split"] == "test"]
    return [row["label"] for row in rows if row["example"] not in left_out]


def test_not_above_majority_is_of_the_same_test_set(tmp_path):
    """Most correct answers leaked: with them the run is above the majority class, without them it is not."""
    made = make_experiment(
        tmp_path, sizes=SIZES, accuracy=lambda run: 0.75, noise=0.0, frameworks=["fairseq"],
        inits=["random"], seeds=[0],
    )  # fmt: skip
    with open(made.folders[0] / "predictions.csv", encoding="utf-8", newline="") as stream:
        right = [
            row["example"]
            for row in csv.DictReader(stream)
            if row["split"] == "test" and row["label"] == row["prediction"]
        ]
    pairs = [
        {"split": "test", "example": name, "with_split": "train", "with_example": "train-0"}
        | {"kind": "exact", "similarity": 1.0, "same_label": True}
        for name in right[:45]
    ]
    duplicates.write_duplicates(made.plan.per_dataset("duplicates.csv")[0], pairs)
    found = made.aggregate()
    counts = {row["test_set"]: row["n_not_above_majority"] for row in found["summary"]}
    assert counts == {"all": 0, "without leaks": 1}
    assert found["runs"][0]["leaked_test_examples"] == 45


def test_every_row_of_the_summary_stands_again_without_leaks(leaky):
    _, found = leaky
    keys = ("framework", "init", "recipe", "selection")
    sets = {
        test_set: [tuple(row[key] for key in keys) for row in tables.on_test_set(found["summary"], test_set)]
        for test_set in ("all", "without leaks")
    }
    assert sets["all"] == sets["without leaks"]
    assert len(sets["all"]) == 2 * 2 * (len(RATES) + 1)
    runs = tables.grouped(found["runs"], "framework", "init", "recipe")
    for row in tables.on_test_set(found["summary"], "without leaks"):
        values = [run["test_accuracy_without_leaks"] for run in runs[tuple(row[key] for key in keys[:3])]]
        assert row["mean"] == pytest.approx(np.mean(values))
        assert row["sd"] == pytest.approx(np.std(values, ddof=1))
        assert row["binomial_se"] == pytest.approx(math.sqrt(row["mean"] * (1 - row["mean"]) / 76))
        assert row["bag_of_words"] == 0.82
        first = runs[tuple(row[key] for key in keys[:3])][0]
        labels = labels_without(leaky[0].folders[0], LEAKED)
        assert row["majority_share"] == first["test_majority_share_without_leaks"]
        assert row["majority_share"] == max(map(labels.count, labels)) / 76 != first["test_majority_share"]


def test_the_best_recipe_is_the_same_with_and_without_leaks(leaky):
    _, found = leaky
    best = [
        {(row["framework"], row["init"]): row["recipe"] for row in rows if row["selection"] == "best"}
        for rows in (tables.on_test_set(found["summary"], name) for name in ("all", "without leaks"))
    ]
    assert best[0] == best[1]
    assert len(best[0]) == 4


def test_contrasts_without_leaks_are_a_family_of_their_own(leaky):
    _, found = leaky
    for test_set in ("all", "without leaks"):
        rows = [r for r in tables.on_test_set(found["contrasts"], test_set) if r["family"] == "init"]
        assert len(rows) == 2 * (len(RATES) + 1)
        smallest = min(row["p_value"] for row in rows)
        assert min(row["p_holm"] for row in rows) == pytest.approx(min(1, smallest * len(rows)))
    a, b = (
        next(r for r in tables.on_test_set(found["contrasts"], name) if r["selection"] == "best")
        for name in ("all", "without leaks")
    )
    means = {
        (row["framework"], row["init"]): row["mean"]
        for row in tables.on_test_set(found["summary"], "without leaks")
        if row["selection"] == "best"
    }
    assert b["delta"] == pytest.approx(means["fairseq", "pretrained"] - means["fairseq", "random"])
    assert a["delta"] != b["delta"]


def test_without_leaks_there_is_one_test_set(found):
    assert {row["test_set"] for row in found["summary"] + found["contrasts"]} == {"all"}
    assert {run["test_accuracy_without_leaks"] for run in found["runs"]} == {None}


def test_where_every_test_example_leaked_there_is_nothing_without_leaks(tmp_path):
    every = [f"test-{number}" for number in range(SIZES["test"])]
    found = make_experiment(tmp_path, sizes=SIZES, leaked=every, seeds=[0, 1]).aggregate()
    assert {row["test_set"] for row in found["summary"]} == {"all"}
