"""Aggregation: the tables of made-up runs, and every fault that it must notice."""

import csv
import json
import math
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from builders_rows import run_row
from scipy import stats
from synthetic import Synthetic, edit_csv, edit_json, learning_rate_levels, make_experiment

from seedbed.analysis import diagnostics, tables
from seedbed.analysis.contrasts import CONTRAST_COLUMNS
from seedbed.analysis.records import SECONDS
from seedbed.analysis.runs import read_runs
from seedbed.analysis.table_rows import SUMMARY_COLUMNS, RunRow, SummaryRow
from seedbed.config.runs import RUN_KEYS, build_runs
from seedbed.core.errors import SeedbedError
from seedbed.core.rows import Row, grouped, on_test_set, read_table
from seedbed.core.tasks import TASKS
from seedbed.data import duplicates

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
def found(plain) -> dict[str, list[Row]]:
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
    assert first["total_seconds"] == pytest.approx(sum(first[f"{part}_seconds"] for part in SECONDS[:-1]))


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
    assert header(plain.outputs["summary"]) == list(SUMMARY_COLUMNS)
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


def test_the_best_of_the_seeds_on_validation_is_their_largest_value(found):
    runs = grouped(found["runs"], "framework", "init")
    for row in found["summary"]:
        values = [run["validation_accuracy"] for run in runs[row["framework"], row["init"]]]
        assert row["validation_best"] == max(values)


def right_of(made: Synthetic) -> dict[tuple[str, ...], np.ndarray]:
    """Whether each test prediction is right, (seeds, examples), by framework and init."""
    found: dict[tuple[str, ...], list[list[bool]]] = {}
    for folder in made.folders:
        with open(folder / "predictions.csv", encoding="utf-8", newline="") as stream:
            rows = [row for row in csv.DictReader(stream) if row["split"] == "test"]
        right = [row["label"] == row["prediction"] and row[f"probability_{LABELS[0]}"] != "" for row in rows]
        found.setdefault(folder.parts[-4:-2], []).append(right)
    return {key: np.array(values, dtype=float) for key, values in found.items()}


def test_the_interval_of_a_mean_over_seeds_and_examples_and_what_seeds_add_to_new_examples(plain, found):
    """A normal approximation of the rule: the replicates' shape makes the ends differ by a few per cent."""
    for row in found["summary"]:
        right = right_of(plain)[row["framework"], row["init"]]
        n, m = right.shape
        rest = right - right.mean(0) - right.mean(1, keepdims=True) + right.mean()
        interaction = (rest**2).sum() / ((n - 1) * (m - 1))
        of_seeds, of_examples = right.mean(1).var(ddof=1), right.mean(0).var(ddof=1)
        own = math.sqrt(max(0.0, of_seeds - interaction / m))
        assert row["sd_new_examples"] == pytest.approx(own, abs=1e-7)
        z, t, both = stats.norm.ppf(0.975), stats.t.ppf(0.975, n - 1), interaction / n / m
        steady = max(0.0, of_examples / m - both) + both
        excess = max(0.0, t**2 * (of_seeds / n - both / 2) - z**2 * both / 2)
        half = math.sqrt(z**2 * steady + excess)
        assert row["both_low"] < row["mean"] < row["both_high"]
        if half < min(row["mean"], 1 - row["mean"]):  # else it is cut
            assert (row["both_high"] - row["both_low"]) / 2 == pytest.approx(half, rel=0.08)
        assert 0 <= row["both_low"] < row["both_high"] <= 1


def test_calibration_error_of_runs_and_its_mean(plain, found):
    with open(plain.folders[0] / "predictions.csv", encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["split"] == "test"]
    sure = np.array([max(float(row[f"probability_{name}"]) for name in LABELS) for row in rows])
    right = np.array([row["label"] == row["prediction"] for row in rows])
    bins = np.ceil(sure * 10)
    gaps = [abs(right[bins == one].sum() - sure[bins == one].sum()) for one in np.unique(bins)]
    assert found["runs"][0]["test_ece"] == pytest.approx(sum(gaps) / len(rows))
    # outcomes drawn as a calibrated model has them
    drawn = np.random.default_rng(0).random((4000, len(sure))) < sure
    gaps = [abs((drawn - sure)[:, bins == one].sum(axis=1)) for one in np.unique(bins)]
    by_chance = np.mean(sum(gaps)) / len(rows)
    assert found["runs"][0]["test_ece_of_chance"] == pytest.approx(by_chance, rel=0.02)
    runs = grouped(found["runs"], "framework", "init")
    for column in ("ece", "ece_of_chance"):
        means = [
            [run[f"test_{column}"] for run in runs[row["framework"], row["init"]]] for row in found["summary"]
        ]
        for row, values in zip(found["summary"], means, strict=True):
            # a diverged run has no probabilities, and a mean without it would be of other runs
            assert row[column] == (None if None in values else pytest.approx(np.mean(values)))
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
        empty = (
            "sd",
            "sd_new_examples",
            "ci_low",
            "ci_high",
            "both_low",
            "both_high",
            "validation_sd",
            "iqm",
        )
        assert [row[key] for key in empty] == [None] * 8
        assert row["ci_method"] == ""
    (contrast,) = found["contrasts"]
    empty = ("ci_low", "ci_high", "p_value", "p_holm", "p_exact", "direction")
    assert [contrast[key] for key in empty] == [None] * 6
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
def sweep(tmp_path_factory) -> tuple[Synthetic, dict[str, list[Row]]]:
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


def test_how_often_validation_would_choose_each_recipe_of_a_sweep(sweep, found):
    _, tables_of_sweep = sweep
    equal = [row for row in tables_of_sweep["summary"] if row["selection"] == "equal"]
    for rows in grouped(equal, "framework", "init").values():
        assert sum(row["chosen_share"] for row in rows) == pytest.approx(1)
        best = max(rows, key=lambda row: row["validation_mean"])
        assert best["chosen_share"] == max(row["chosen_share"] for row in rows)
    # where nothing is swept there is nothing to choose
    assert {row["chosen_share"] for row in found["summary"]} == {None}


def test_ties_on_validation_go_to_the_lower_loss_then_to_the_order_of_the_sweep():
    def group(loss: float | None) -> list[RunRow]:
        return [run_row(validation_accuracy=value, validation_loss=loss) for value in (0.7, 0.8)]

    task = TASKS["classification"]
    groups = {"first": group(0.6), "lower": group(0.5), "same": group(0.5), "missing": group(None)}
    assert list(groups)[tables.best_group(list(groups.values()), task)] == "lower"


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
    assert header(plain.outputs["contrasts"]) == list(CONTRAST_COLUMNS)
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
        test = stats.ttest_rel(a, b)
        assert row["paired"] is True
        assert row["delta"] == pytest.approx(np.mean(a) - np.mean(b))
        # no difference of accuracies is larger than 1
        assert (row["t_low"], row["t_high"]) == pytest.approx(np.clip(test.confidence_interval(0.95), -1, 1))
        assert row["ci_low"] < row["delta"] < row["ci_high"]
        assert row["method"].startswith("Multi-Bootstrap of 10,000 replicates")
        assert row["p_exact"] >= 0.25
        assert row["p_value"] <= row["p_holm"] <= 2 * row["p_value"]
        assert row["error_reduction"] == pytest.approx(row["delta"] / (1 - np.mean(b)))


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
        read_runs(folders, plain.plan.reporting(), {})


def test_a_run_that_is_not_in_the_grid_is_named(plain):
    stranger = Path("elsewhere/reviews/small/fairseq/random/lab/seed9")
    shutil.copytree(plain.folders[0], plain.plan.results / stranger)
    with pytest.raises(SeedbedError, match="not in the grid") as caught:
        read_runs([*plain.folders, plain.plan.results / stranger], plain.plan.reporting(), {})
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


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"updates": 0, "total_updates": 0}, "0 of 0 updates"),
        ({"updates": 900}, "900 of 1125 updates"),
        ({"updates": 2000}, "2000 of 1125 updates"),
    ],
)
def test_a_run_without_the_updates_of_its_plan_is_refused(broken, changes, told):
    edit_json(broken.folders[4] / "run.json", lambda document: document.update(changes))
    fails(broken, "tells what cannot be", f"{broken.folders[4]}/run.json, updates", told, "hint:  remove")


def test_runs_of_one_recipe_with_other_numbers_of_updates_are_refused(broken):
    changes = {"updates": 450, "total_updates": 450}
    edit_json(broken.folders[4] / "run.json", lambda document: document.update(changes))
    usual, odd = len(broken.folders) - 1, f"{broken.folders[4]}/run.json"
    fails(
        broken,
        "runs of one recipe were not trained for the same number of updates",
        f"1125 updates in {usual} runs; 450 in {odd}",
        f"--forcerun {odd}",
    )


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


def test_other_classes_than_those_of_the_config_are_refused_even_in_all_runs(broken):
    for folder in broken.folders:
        edit_json(folder / "run.json", lambda document: document.update(label_names=LABELS[::-1]))
    told = "['positive', 'negative'], the configuration says ['negative', 'positive']"
    fails(broken, "does not know the classes", f"{broken.folders[0]}/run.json, label_names", told)


def test_tables_call_classes_as_people_do_whatever_the_runs_call_them(broken, found):
    names = {"negative": "mauvais", "positive": "bon"}
    broken.plan.config["datasets"]["reviews"]["label_names"] = list(names.values())
    renamed = broken.aggregate()
    for table in ("confusion", "never_right"):
        expected = [{key: names.get(value, value) for key, value in row.items()} for row in found[table]]
        assert renamed[table] == expected != found[table]
    for table in ("runs", "summary", "contrasts"):
        assert renamed[table] == found[table]


def test_an_example_that_stands_twice_is_refused(broken):
    path = broken.folders[0] / "predictions.csv"
    edit_csv(path, lambda rows: rows[-1].update(example="test-0"))
    fails(broken, "stands twice", str(path), "test-0")


def test_a_probability_outside_its_range_is_refused(broken):
    path = broken.folders[0] / "predictions.csv"
    edit_csv(path, lambda rows: rows[0].update(probability_positive="1.25"))
    fails(broken, "a probability outside [0, 1]", f"{path}, line 2, probability_positive")


@pytest.mark.parametrize("told", ["NaN", "Infinity", "-0.5", '"low"', "true"])
def test_a_loss_that_is_no_number_is_refused(broken, told):
    path = broken.folders[0] / "run.json"
    path.write_text(re.sub(r'"loss": [0-9.]+', f'"loss": {told}', path.read_text()))
    fails(broken, "tells what cannot be", f"{path}, validation.loss")


@pytest.mark.parametrize("split", ["validation", "test"])
@pytest.mark.parametrize("change", [lambda loss: loss + 2e-6, lambda loss: None])
def test_a_loss_that_is_not_that_of_the_predictions_is_refused(broken, split, change):
    path = broken.folders[0] / "run.json"
    edit_json(path, lambda document: document[split].update(loss=change(document[split]["loss"])))
    fails(broken, f"the {split} loss of a run is not that of its predictions", str(path))


def test_a_loss_beside_missing_probabilities_is_refused(broken):
    index = [run.folder for run in broken.plan.runs].index(DIVERGED)
    edit_json(broken.folders[index] / "run.json", lambda document: document["test"].update(loss=0.7))
    fails(broken, "the test loss of a run", "0.7 in run.json, none by counting")


def test_a_loss_is_that_of_the_predictions_to_the_digits_they_are_written_with(plain, found):
    with open(plain.folders[0] / "predictions.csv", encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["split"] == "test"]
    losses = [-math.log(float(row[f"probability_{row['label']}"])) for row in rows]
    assert found["runs"][0]["test_loss"] == pytest.approx(np.mean(losses), rel=1e-9)


def test_a_loss_that_no_probability_can_tell_is_taken_as_told(broken):
    def change(rows):
        row = next(row for row in rows if row["split"] == "test" and row["label"] != row["prediction"])
        row[f"probability_{row['label']}"], row[f"probability_{row['prediction']}"] = "0", "1"

    edit_csv(broken.folders[0] / "predictions.csv", change)
    edit_json(broken.folders[0] / "run.json", lambda document: document["test"].update(loss=12.5))
    assert broken.aggregate()["runs"][0]["test_loss"] == 12.5


NUMBERS = ["selected.step", "updates", "seconds.train", "seconds.total", "peak_memory_mib"]
NUMBERS += ["samples_per_second", "tokens_per_second", "padding_share", "energy_joules", "hardware.threads"]


def put(folder: Path, key: str, value: object) -> Path:
    """Set a nested key of a run.json, where NaN stays NaN."""
    path = folder / "run.json"
    document = json.loads(path.read_text())
    *parents, last = key.split(".")
    place = document
    for parent in parents:
        place = place[parent]
    place[last] = value
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("key", NUMBERS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -1, "5", True])
def test_every_number_of_run_json_is_finite_and_not_negative(broken, key, value):
    path = put(broken.folders[3], key, value)
    fails(broken, "tells what cannot be", f"{path}, {key}", repr(value))


@pytest.mark.parametrize("key", ["selected.step", "updates", "seconds.train", "hardware.threads"])
def test_what_every_run_can_tell_is_not_null(broken, key):
    path = put(broken.folders[3], key, None)
    fails(broken, "tells what cannot be", f"{path}, {key}", "None")


@pytest.mark.parametrize("key", ["peak_memory_mib", "samples_per_second", "padding_share"])
def test_what_a_run_cannot_tell_is_an_empty_cell(broken, key):
    put(broken.folders[0], key, None)
    assert broken.aggregate()["runs"][0][key] is None


def test_runs_tell_how_many_seeds_their_time_and_memory_are_of(broken):
    put(broken.folders[0], "fused_with", [["random", 0, 0], ["pretrained", 0, 0], ["pretrained", 7, 9]])
    assert [run["fused_seeds"] for run in broken.aggregate()["runs"][:2]] == [3, 1]


@pytest.mark.parametrize("value", [3, [], [[1, 1], [2, 2]], [0]])
def test_fused_seeds_that_are_not_the_runs_are_refused(broken, value):
    path = put(broken.folders[0], "fused_with", value)
    fails(broken, "tells what cannot be", f"{path}, fused_with", "['pretrained', 0, 0]")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("diverged", "false"),
        ("diverged", None),
        ("seconds", None),
        ("versions", None),
        ("hardware", []),
        ("device", None),
        ("git_commit", 5),
        ("differences", {}),
        ("differences", [{"setting": "dropout", "asked": ""}]),
        ("settings", []),
        ("run.swept", 3),
    ],
)
def test_a_key_of_another_type_is_refused(broken, key, value):
    path = put(broken.folders[3], key, value)
    fails(broken, f"{path}", key.split(".")[-1])


@pytest.mark.parametrize(
    "key", ["versions", "differences", "git_commit", "hardware", "device", "seconds", "settings", "diverged"]
)
def test_a_key_that_tables_or_reports_need_is_asked_for(broken, key):
    path = broken.folders[3] / "run.json"
    edit_json(path, lambda document: document.pop(key))
    fails(broken, "lacks a key", f"{path}, {key}")


def test_a_run_json_that_is_not_utf8_is_refused(broken):
    path = broken.folders[3] / "run.json"
    path.write_bytes(b'{"experiment": "\xe9"}')
    fails(broken, "not a whole JSON file", str(path), "not UTF-8")


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
    columns = ("delta", "error_reduction", "ci_low", "p_value", "p_exact")
    assert [tuple(row[name] for name in columns) for row in inits] == [(1, 1, None, None, 0.25)] * 2
    frameworks = [row for row in found["contrasts"] if row["family"] == "framework"]
    # both without errors; both without a right answer
    assert [row["error_reduction"] for row in frameworks] == [None, 0]


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
    fails(broken, "not a whole table of predictions", f"{path}, line 101", "the file was cut")


def test_predictions_without_probabilities_are_refused(broken):
    path = broken.folders[0] / "predictions.csv"
    path.write_text("split,example,label,prediction\n")
    fails(broken, "not a table of predictions", f"{path}, line 1")


def test_predictions_of_one_split_are_refused(broken):
    path = broken.folders[0] / "predictions.csv"
    edit_csv(path, lambda rows: rows.__delitem__(slice(20, None)))
    fails(broken, "no row of the split test")


def test_a_label_that_the_run_does_not_know_is_refused(broken):
    edit_csv(broken.folders[0] / "predictions.csv", lambda rows: rows[0].update(label="neutral"))
    fails(broken, "a label that the run does not know", "found: neutral")


def test_other_columns_of_metrics_are_refused(broken):
    path = broken.folders[0] / "metrics.csv"
    path.write_text("step,loss\n1,2\n")
    fails(broken, "not a table of metrics", f"{path}, line 1", "found: step, loss")


def test_a_torn_row_of_metrics_is_refused(broken):
    path = broken.folders[0] / "metrics.csv"
    path.write_text(path.read_text() + "1125,5,test\n")
    fails(broken, "not a whole table of metrics", f"{path}, line 24", "a row of 3 cells, not 7")


def test_nothing_is_written_where_anything_is_wrong(broken):
    for path in broken.outputs.values():
        path.unlink(missing_ok=True)
    path = broken.folders[-1] / "metrics.csv"
    path.write_text("step\n")
    fails(broken, "not a table of metrics", str(path))
    assert not any(path.exists() for path in broken.outputs.values())


@pytest.mark.parametrize(
    ("column", "value"),
    [("value", "x0.5"), ("step", "first"), ("epoch", "1.5"), ("learning_rate", "nan"), ("seconds", "-1")],
)
def test_a_cell_of_metrics_that_is_no_number_is_refused(broken, column, value):
    path = broken.folders[3] / "metrics.csv"
    edit_csv(path, lambda rows: rows[4].update({column: value}))
    fails(broken, "no number", f"{path}, line 6", f"{column} {value!r}")


@pytest.mark.parametrize("value", ["1e400", "inf", "-Infinity", "NaN", ""])
def test_a_metric_that_is_not_finite_is_an_empty_cell_of_the_curves(broken, value):
    edit_csv(broken.folders[0] / "metrics.csv", lambda rows: rows[3].update(value=value))
    assert broken.aggregate()["curves"][3]["value"] is None


def test_metrics_of_another_run_are_refused(broken):
    ours, other = broken.folders[3] / "metrics.csv", broken.folders[1] / "metrics.csv"
    shutil.copy(other, ours)
    fails(broken, "do not agree on the selected weights", str(ours), "validation loss at step 1125")


def test_metrics_without_the_selected_step_are_refused(broken):
    path = broken.folders[3] / "metrics.csv"
    edit_csv(path, lambda rows: rows.__delitem__(slice(16, None)))
    fails(
        broken,
        "do not agree on the selected weights",
        "validation accuracy at step 1125: none in metrics.csv",
    )


def test_a_table_of_metrics_without_rows_is_refused(broken):
    edit_csv(broken.folders[3] / "metrics.csv", lambda rows: rows.clear())
    fails(broken, "not a table of metrics", "found: no row")


def test_a_run_that_selected_its_last_weights_tells_no_selected_value(broken):
    index = [run.folder for run in broken.plan.runs].index(DIVERGED)
    put(broken.folders[index], "selected.value", None)
    assert broken.aggregate()["runs"][index]["diverged"] is True


def test_a_missing_baseline_is_named(broken):
    path = Path(broken.plan.per_dataset("bag_of_words.csv")[0])
    path.write_text("split,metric,value\n")
    fails(broken, "no test accuracy of the bag-of-words baseline", str(path))


@pytest.mark.parametrize("value", ["nan", "good", "", "7", "-0.1"])
def test_a_baseline_that_is_no_accuracy_is_refused(broken, value):
    path = Path(broken.plan.per_dataset("bag_of_words.csv")[0])
    edit_csv(path, lambda rows: rows[2].update(value=value))
    fails(broken, "outside [0, 1]", f"{path}, line 4", f"found: {value!r}")


@pytest.mark.parametrize(
    ("metric", "value", "column", "bag"),
    [
        ("features", "characters", "bag_of_words_features", 0.825),
        ("left_out", "all training texts are empty", "bag_of_words_left_out", None),
    ],
)
def test_a_bag_that_is_not_of_words_has_a_column_of_the_summary(broken, metric, value, column, bag):
    path = Path(broken.plan.per_dataset("bag_of_words.csv")[0])

    def change(rows):
        if bag is None:
            del rows[:3]
        rows.insert(0, {"split": "train", "metric": metric, "value": value})

    assert not {*SummaryRow.OPTIONAL} & {*broken.aggregate()["summary"][0]}
    edit_csv(path, change)
    found = broken.aggregate()["summary"]
    assert header(broken.outputs["summary"]) == [*SUMMARY_COLUMNS, column]
    assert {(row["bag_of_words"], row[column]) for row in found} == {(bag, value)}


def test_a_file_of_the_baseline_that_is_missing_is_named(broken):
    path = Path(broken.plan.per_dataset("bag_of_words.csv")[0])
    path.unlink()
    fails(broken, "no table of the bag-of-words baseline", str(path), "let Snakemake make it again")


def test_a_table_of_the_baseline_with_other_columns_is_refused(broken):
    path = Path(broken.plan.per_dataset("bag_of_words.csv")[0])
    path.write_text("a,b\n1,2\n")
    fails(broken, "not a table of the bag-of-words baseline", str(path), "found: a, b")


def test_columns_and_run_keys_are_fields_of_the_plan(plain):
    run = build_runs(plain.plan.config)[0]
    assert all(hasattr(run, key) for key in RUN_KEYS)


def test_tables_read_back_as_they_were_written(tmp_path):
    path = tmp_path / "table.csv"
    with open(path, "w", newline="") as stream:
        csv.writer(stream).writerows(
            [["dataset", "n", "x", "flag", "none"], ["2020", "3", "0.5", "true", ""]]
        )
    assert read_table(path) == [{"dataset": "2020", "n": 3, "x": 0.5, "flag": True, "none": None}]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "an empty file"),
        ("dataset,n\nx,1", "the file was cut"),
        ("dataset,n\nx\n", "a row of 1 cells, not 2"),
        ("dataset,n\nx,1,2\n", "a row of 3 cells, not 2"),
        ("dataset,dataset\nx,1\n", "found: dataset, dataset"),
        ("dataset,m\nx,1\n", "it lacks n; remove the file"),
        ("\ufeffdataset,n\nx,1\n", "a byte order mark"),
    ],
)
def test_a_table_that_is_not_whole_is_refused(tmp_path, text, told):
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SeedbedError) as caught:
        read_table(path, ("dataset", "n"))
    assert told in str(caught.value)
    assert str(path) in caught.value.where


# --- collapsed runs ---


@pytest.mark.parametrize(
    ("labels", "size", "expected"),
    # chance of one class: 2 * 2**-10 = 0.00195, 2 * 2**-12 = 0.0005; 3 * 3**-6 = 0.004, 3 * 3**-9 = 0.0002
    [(LABELS, 10, False), (LABELS, 12, True), (("a", "b", "c"), 6, False), (("a", "b", "c"), 9, True)],
)
def test_one_class_is_a_collapse_only_where_it_is_more_than_chance(tmp_path, labels, size, expected):
    run = "reviews/small/fairseq/random/lab/seed0"
    made = make_experiment(
        tmp_path, labels=labels, sizes={"validation": 1, "test": size}, collapsed=[run],
        frameworks=["fairseq"], inits=["random"], seeds=[0, 1],
    )  # fmt: skip
    assert [row["collapsed"] for row in made.aggregate()["runs"]] == [expected, False]


def test_one_class_on_a_telling_validation_split_is_a_collapse_whatever_the_test_split_says(broken):
    path = broken.folders[0]

    def change(rows):
        for row in rows:
            if row["split"] == "validation":
                row |= {
                    "prediction": "negative",
                    "probability_negative": "0.6",
                    "probability_positive": "0.4",
                }

    edit_csv(path / "predictions.csv", change)
    with open(path / "predictions.csv", encoding="utf-8", newline="") as stream:
        labels = [row["label"] for row in csv.DictReader(stream) if row["split"] == "validation"]
    told = {"accuracy": labels.count("negative") / 20}
    told["loss"] = -np.mean([math.log(0.6 if label == "negative" else 0.4) for label in labels])
    edit_json(path / "run.json", lambda document: document.update(validation=told))
    put(path, "selected.value", told["accuracy"])

    def of_validation(rows):
        for row in rows:
            if (row["split"], row["step"]) == ("validation", "1125"):
                row["value"] = told[row["metric"]]

    edit_csv(path / "metrics.csv", of_validation)
    assert broken.aggregate()["runs"][0]["collapsed"] is True


# --- crossed seeds ---


def test_intervals_of_crossed_seeds_are_those_of_both_factors(tmp_path):
    """Against the two-way analysis by hand: two init seeds by three data seeds."""
    made = make_experiment(
        tmp_path, sizes=SIZES, seeds={"init": [0, 1], "data": [0, 1, 2]}, frameworks=["fairseq"],
        inits=["random"], accuracy=lambda run: 0.6 + 0.1 * run.init_seed + 0.02 * run.data_seed, noise=0.0,
    )  # fmt: skip
    found = made.aggregate()
    values = {(run["init_seed"], run["data_seed"]): run["test_accuracy"] for run in found["runs"]}
    table = np.array([[values[init, data] for data in range(3)] for init in range(2)])
    by_init, by_data = table.mean(axis=1), table.mean(axis=0)
    rest = table - by_init[:, None] - by_data + table.mean()
    terms = [by_init.var(ddof=1) / 2, by_data.var(ddof=1) / 3, -(rest**2).sum() / 2 / 6]
    error = math.sqrt(sum(terms))
    degrees = sum(terms) ** 2 / (terms[0] ** 2 / 1 + terms[1] ** 2 / 2 + terms[2] ** 2 / 2)
    (row,) = found["summary"]
    half = stats.t.ppf(0.975, max(degrees, 1)) * error
    assert table.mean() + half > 1
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((table.mean() - half, 1))
    assert row["ci_method"].startswith("Student t over crossed init and data seeds")
    naive = stats.t.interval(0.95, 5, table.mean(), stats.sem(table.ravel()))
    assert row["ci_high"] - row["ci_low"] > naive[1] - naive[0]


# --- leaked test examples ---


LEAKED = ["test-0", "test-3", "test-5", "test-40"]


@pytest.fixture(scope="module")
def leaky(tmp_path_factory) -> tuple[Synthetic, dict[str, list[Row]]]:
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
        test_set: [tuple(row[key] for key in keys) for row in on_test_set(found["summary"], test_set)]
        for test_set in ("all", "without leaks")
    }
    assert sets["all"] == sets["without leaks"]
    assert len(sets["all"]) == 2 * 2 * (len(RATES) + 1)
    runs = grouped(found["runs"], "framework", "init", "recipe")
    for row in on_test_set(found["summary"], "without leaks"):
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
        for rows in (on_test_set(found["summary"], name) for name in ("all", "without leaks"))
    ]
    assert best[0] == best[1]
    assert len(best[0]) == 4


def test_contrasts_without_leaks_are_a_family_of_their_own(leaky):
    _, found = leaky
    for test_set in ("all", "without leaks"):
        rows = [r for r in on_test_set(found["contrasts"], test_set) if r["family"] == "init"]
        assert len(rows) == 2 * (len(RATES) + 1)
        smallest = min(row["p_value"] for row in rows)
        assert min(row["p_holm"] for row in rows) == pytest.approx(min(1, smallest * len(rows)))
    a, b = (
        next(r for r in on_test_set(found["contrasts"], name) if r["selection"] == "best")
        for name in ("all", "without leaks")
    )
    means = {
        (row["framework"], row["init"]): row["mean"]
        for row in on_test_set(found["summary"], "without leaks")
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


# --- methods ------------------------------------------------------------------------------------------------


def test_classes_by_adapter_are_compared_with_training_all_weights(tmp_path):
    made = make_experiment(
        tmp_path, accuracy=lambda run: 0.9 if run.method == "lora" else 0.6, sizes=SIZES,
        recipes={"adapter": {"method": "lora", "lora": {"task_type": "SEQ_CLS"}}},
        seeds=[0, 1], inits=["pretrained"],
    )  # fmt: skip
    made.plan.config["statistics"]["replicates"] = 500
    found = made.aggregate()
    (row,) = (row for row in found["contrasts"] if row["family"] == "method")
    assert (row["contrast"], row["a"], row["b"]) == (
        "lora - full",
        "transformers/pretrained",
        "transformers/pretrained",
    )
    assert (row["recipe_a"], row["recipe_b"], row["paired"]) == ("adapter", "lab", True)
    assert row["delta"] == pytest.approx(0.3, abs=0.05)
    pairs = [row for row in found["pairs"] if row["family"] == "method"]
    assert [row["init_seed"] for row in pairs] == [0, 1]
    counts = {row["recipe"]: row["trainable_parameters"] for row in found["runs"]}
    assert 0 < counts["adapter"] < counts["lab"] / 100
    assert {row["unstable"] for row in found["runs"]} == {False}
