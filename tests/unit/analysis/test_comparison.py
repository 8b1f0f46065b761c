"""Two experiments side by side: what is matched, what is paired, and numbers against runs.csv and by hand."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from builders_report import asked
from synthetic import (
    edit_csv,
    edit_json,
    learning_rate_levels,
    loss_level,
    make_experiment,
    make_generation,
)

from seedbed.analysis import statistics
from seedbed.analysis.comparison import (
    Comparison,
    compare_experiments,
    find_matches,
    read_experiments,
)
from seedbed.analysis.runs import read_runs
from seedbed.analysis.table_rows import write_runs
from seedbed.commands import main
from seedbed.core.errors import SeedbedError
from seedbed.core.files import write_json
from seedbed.core.rows import grouped, read_table, write_table
from seedbed.core.statistics_settings import complete_settings
from seedbed.report import comparison_document
from seedbed.report.documents.blocks import cell_text

SETTINGS = {"confidence": 0.95, "replicates": 500, "bootstrap_seed": 0}
SIZES = {"validation": 60, "test": 200}
CELL = ("dataset", "model", "framework", "init", "recipe")


def make(folder: Path, name: str, **options) -> Path:
    """A made-up experiment with its table of runs, in a folder of that name."""
    made = make_experiment(folder / f"results_of_{name}", **{"sizes": SIZES, **options})
    reporting = made.plan.reporting()
    rows = read_runs(made.folders, reporting, {}).rows
    write_runs(made.experiment / "runs.csv", rows, reporting)
    return made.experiment.rename(made.experiment.with_name(name))


def levels(pretrained: float, random: float):
    return lambda run: {"pretrained": pretrained, "random": random}[run.init]


def accuracies(folder: Path) -> dict[tuple, list[float]]:
    """Test accuracies by cell, in the order of seeds."""
    rows = read_table(folder / "runs.csv")
    return {cell: [row["test_accuracy"] for row in group] for cell, group in grouped(rows, *CELL).items()}


def rows_of(comparison: Comparison, **values) -> list[dict]:
    found = comparison.differences
    return [row for row in found if all(row[key] == value for key, value in values.items())]


def text(comparison: Comparison) -> str:
    return comparison_document.render(comparison, ".md")


def said(comparison: Comparison) -> dict[str, list[tuple]]:
    """What templates are asked to word in the document."""
    return asked(lambda: text(comparison))


# --- what is matched and paired -----------------------------------------------------------------------------


def test_equal_names_are_matched_and_equal_seeds_on_equal_examples_are_pairs(tmp_path):
    x, y = make(tmp_path, "x"), make(tmp_path, "y", noise=0.02)
    found = compare_experiments(x, y, SETTINGS)
    a, b = accuracies(x), accuracies(y)
    assert len(found.differences) == 4
    for row in found.differences:
        cell = (*(row[key] for key in CELL[:-1]), "lab")
        pairs = [left - right for left, right in zip(a[cell], b[cell], strict=True)]
        assert (row["paired"], row["same_examples"], row["n_a"], row["n_b"]) == (True, True, 3, 3)
        assert row["delta"] == pytest.approx(statistics.mean(pairs), abs=1e-7)
        assert row["mean_a"] == pytest.approx(statistics.mean(a[cell]))
        assert row["sd_b"] == pytest.approx(statistics.sample_sd(b[cell]))
        assert row["p_exact"] == statistics.sign_flip_p(pairs)
        assert (row["p_value"] < 0.05) == (not row["ci_low"] <= 0 <= row["ci_high"])
        if min(statistics.sample_sd(a[cell]), statistics.sample_sd(b[cell])) > 0:
            assert row["seed_correlation"] == pytest.approx(np.corrcoef(a[cell], b[cell])[0, 1])
        assert row["ci_low"] <= row["delta"] <= row["ci_high"]
    assert found.only_a == found.only_b == []


def test_a_dataset_and_a_model_of_other_names_are_matched_where_that_is_said(tmp_path, capsys):
    x, y = make(tmp_path, "x"), make(tmp_path, "y", noise=0.02)
    (y / "runs/reviews/small").rename(y / "runs/reviews/tiny")
    (y / "runs/reviews").rename(y / "runs/reviews_2")
    new = {"dataset": "reviews_2", "model": "tiny"}
    edit_csv(y / "runs.csv", lambda rows: [row.update(new) for row in rows])
    with pytest.raises(SeedbedError, match="--same A=B says that dataset or model B"):
        compare_experiments(x, y, SETTINGS)
    found = compare_experiments(x, y, SETTINGS, {"reviews": "reviews_2", "small": "tiny"})
    a, b = accuracies(x), accuracies(y)
    assert len(found.differences) == 4
    for row in found.differences:
        cell = (*(row[key] for key in CELL[:-1]), "lab")
        assert cell[:2] == ("reviews", "small")
        left, right = a[cell], b["reviews_2", "tiny", *cell[2:]]
        assert row["delta"] == pytest.approx(statistics.mean(left) - statistics.mean(right), abs=1e-7)
        assert (row["paired"], row["same_examples"]) == (True, True)
    named = {(row["where"], row["a"], row["b"]) for row in found.settings if row["setting"] == "name"}
    assert named == {("dataset reviews", "reviews", "reviews_2"), ("model small", "small", "tiny")}
    assert found.only_a == found.only_b == []
    arguments = [str(x), str(y), "--replicates", "500", "--same", "reviews=reviews_2", "--same", "small=tiny"]
    assert main(["compare", *arguments]) == 0
    assert "Differs  name (reviews and reviews_2), name (small and tiny)" in capsys.readouterr().out


def test_runs_of_a_version_that_called_classes_by_their_names_are_compared_by_labels(tmp_path):
    x, y = make(tmp_path, "x"), make(tmp_path, "y", noise=0.02)
    same = compare_experiments(x, y, SETTINGS)
    for path in (y / "runs").rglob("predictions.csv"):
        path.write_text(path.read_text().replace("negative", "0").replace("positive", "1"))
    for path in (y / "runs").rglob("run.json"):
        edit_json(path, lambda document: document.update(label_names=["0", "1"]))
    with pytest.raises(SeedbedError, match="dataset 'reviews' has other classes in one experiment"):
        compare_experiments(x, y, SETTINGS)
    labels = {"labels": ["0", "1"], "names": ["negative", "positive"]}
    write_json(x.parent / "data/reviews/labels.json", labels)
    found = compare_experiments(x, y, SETTINGS)
    assert found.differences == same.differences
    assert all(row["same_examples"] for row in found.differences)


@pytest.mark.parametrize(
    ("same", "told"),
    [
        ({"review": "reviews_2"}, "'review'; it has reviews, small"),
        ({"reviews": "reviews_3"}, "'reviews_3'; it has reviews, reviews_2, small"),
        ({"reviews": "reviews_2"}, "the second experiment has both 'reviews' and 'reviews_2'"),
    ],
)
def test_names_that_cannot_answer_to_each_other(tmp_path, same, told):
    x, y = make(tmp_path, "x"), make(tmp_path, "y", datasets=("reviews", "reviews_2"))
    with pytest.raises(SeedbedError) as error:
        compare_experiments(x, y, SETTINGS, same)
    assert told in str(error.value)


def test_one_recipe_on_each_side_is_matched_whatever_its_name_and_the_text_says_so(tmp_path):
    x = make(tmp_path, "x", frameworks=["fairseq"])
    y = make(tmp_path, "y", frameworks=["fairseq"], recipe={"sweep": {"learning_rate": [1e-4]}})
    found = compare_experiments(x, y, SETTINGS)
    assert {(one.name_a, one.name_b) for one in found.matches} == {("lab", "lab.learning_rate=0.0001")}
    assert said(found)["comparison.by_position"] == [([("lab", "lab.learning_rate=0.0001")],)]
    told = [(row["setting"], row["a"], row["b"]) for row in found.settings]
    assert told == [("learning_rate", "1e-05", "0.0001")]


def swept(folder: Path, name: str, rates: list[float], **options) -> Path:
    recipe = {"sweep": {"learning_rate": rates}}
    return make(folder, name, recipe=recipe, **{"accuracy": learning_rate_levels, **options})


def test_recipes_of_a_sweep_are_matched_by_name_and_all_of_them_are_chosen_from(tmp_path):
    sweeps = {"x": [1e-5, 3e-5], "y": [3e-5, 1e-4, 3e-4]}
    folders = [swept(tmp_path, name, rates, frameworks=["fairseq"]) for name, rates in sweeps.items()]
    found = compare_experiments(*folders, SETTINGS)
    assert {row["recipe_a"] for row in rows_of(found, selection="equal")} == {"lab.learning_rate=3e-05"}
    assert found.only_a == found.only_b == []
    (told,) = [row for row in found.settings if row["setting"] == "to choose from"]
    assert told["where"] == "recipes of lab"
    assert told["a"] == "lab.learning_rate=1e-05, lab.learning_rate=3e-05"
    for folder, side in zip(folders, "ab", strict=True):
        for row in rows_of(found, selection="best"):
            runs = [run for run in read_table(folder / "runs.csv") if run["init"] == row["init"]]
            validation = {
                recipe: statistics.mean([run["validation_accuracy"] for run in group])
                for (recipe,), group in grouped(runs, "recipe").items()
            }
            chosen = max(validation, key=validation.get)
            assert row[f"recipe_{side}"] == chosen
            test = [run["test_accuracy"] for run in runs if run["recipe"] == chosen]
            assert row[f"mean_{side}"] == pytest.approx(statistics.mean(test))


def test_sweeps_without_a_recipe_in_common_are_compared_at_their_best(tmp_path):
    x = swept(tmp_path, "x", [1e-5, 3e-5], frameworks=["fairseq"])
    y = swept(tmp_path, "y", [1e-4], frameworks=["fairseq"])
    found = compare_experiments(x, y, SETTINGS)
    assert [row["selection"] for row in found.differences] == ["best", "best"]
    assert {row["recipe_b"] for row in found.differences} == {"lab.learning_rate=0.0001"}
    assert found.only_a == found.only_b == []
    rates = {row["a"] for row in found.settings if row["setting"] == "learning_rate"}
    chosen = {row["recipe_a"].split("=")[1] for row in found.differences}
    assert rates == chosen
    assert [values[2:4] for values in said(found)["comparison.counts"]] == [(2, True)]


def test_gains_of_sweeps_are_those_of_each_inits_best(tmp_path):
    x = swept(tmp_path, "x", [1e-5, 3e-5], frameworks=["fairseq"])
    y = swept(tmp_path, "y", [1e-4, 3e-4], frameworks=["fairseq"])
    found = compare_experiments(x, y, SETTINGS)
    (gain,) = found.gains
    pretrained, random = (rows_of(found, init=init)[0] for init in ("pretrained", "random"))
    for side in "ab":
        expected = pretrained[f"mean_{side}"] - random[f"mean_{side}"]
        assert gain[f"mean_{side}"] == pytest.approx(expected)
        recipes = dict.fromkeys((pretrained[f"recipe_{side}"], random[f"recipe_{side}"]))
        assert gain[f"recipe_{side}"] == "/".join(recipes)
    assert gain["delta"] == pytest.approx(pretrained["delta"] - random["delta"], abs=1e-6)
    assert gain["ci_low"] < gain["delta"] < gain["ci_high"]


def test_a_sweep_of_another_family_name_and_a_group_without_match(tmp_path):
    x = swept(tmp_path, "x", [1e-5, 3e-5])
    y = swept(tmp_path, "y", [1e-4], frameworks=["fairseq"])
    for path in [y / "runs.csv"]:
        edit_csv(path, lambda rows: [row.update(recipe_family="tuned") for row in rows])
    found = compare_experiments(x, y, SETTINGS)
    assert {(one.name_a, one.name_b, one.selection) for one in found.matches} == {("lab", "tuned", "best")}
    assert said(found)["comparison.by_position"] == [([("lab", "tuned")],)]
    assert {cell[2] for cell in found.only_a} == {"transformers"}
    assert len(found.only_a) == 4


def test_other_seeds_are_no_pairs(tmp_path):
    only = {"frameworks": ["fairseq"], "inits": ["random"]}
    x = make(tmp_path, "x", accuracy=levels(0.9, 0.6), noise=0.005, **only)
    y = make(tmp_path, "y", accuracy=levels(0.9, 0.8), noise=0.005, seeds=[3, 4, 5], **only)
    (row,) = compare_experiments(x, y, SETTINGS).differences
    assert (row["paired"], row["same_examples"]) == (False, True)
    assert row["p_exact"] == pytest.approx(2 / 20)  # all of three below all of three others
    assert row["ci_high"] < 0


def test_other_examples_are_resampled_apart_which_widens_the_interval(tmp_path):
    only = {"frameworks": ["fairseq"], "inits": ["random"], "noise": 0.0}
    x, y = make(tmp_path, "x", **only), make(tmp_path, "y", **only)
    z = make(tmp_path, "z", sizes={"validation": 60, "test": 201}, **only)
    (same,) = compare_experiments(x, y, SETTINGS).differences
    found = compare_experiments(x, z, SETTINGS)
    (other,) = found.differences
    assert (other["paired"], other["same_examples"]) == (False, False)
    assert same["ci_low"] is None  # x and y are the same runs: nothing differs in any example
    assert other["ci_high"] - other["ci_low"] > 0.05
    assert ("test examples", "200, not the same ones") in {
        (row["setting"], row["a"]) for row in found.settings
    }
    assert "comparison.other_examples" in said(found)


def test_gains_of_pretraining_are_compared(tmp_path):
    x = make(tmp_path, "x", accuracy=levels(0.8, 0.7), frameworks=["fairseq"])
    y = make(tmp_path, "y", accuracy=levels(0.8, 0.6), frameworks=["fairseq"])
    (row,) = compare_experiments(x, y, SETTINGS).gains
    gains = []
    for folder in (x, y):
        values = accuracies(folder)
        cell = ("reviews", "small", "fairseq")
        gains.append(statistics.mean(values[(*cell, "pretrained", "lab")]))
        gains[-1] -= statistics.mean(values[(*cell, "random", "lab")])
    assert (row["mean_a"], row["mean_b"]) == pytest.approx(tuple(gains))
    assert row["delta"] == pytest.approx(gains[0] - gains[1], abs=1e-6)
    assert row["ci_high"] < 0


def test_one_seed_has_no_interval_and_a_copy_no_difference(tmp_path):
    x = make(tmp_path, "x", seeds=[0])
    y = make(tmp_path, "y", seeds=[0], accuracy=levels(0.9, 0.9))
    for row in compare_experiments(x, y, SETTINGS).differences:
        assert (row["ci_low"], row["ci_high"], row["p_value"], row["sd_a"]) == (None, None, None, None)
    z = make(tmp_path, "z")
    copy = Path(shutil.copytree(z, tmp_path / "copy"))
    found = compare_experiments(z, copy, SETTINGS)
    columns = ("delta", "ci_low", "p_value", "direction", "p_exact")
    told = {tuple(row[name] for name in columns) for row in found.differences}
    assert told == {(0.0, None, None, None, 1.0)}
    assert found.settings == []
    assert "comparison.no_settings" in said(found)


def test_a_diverged_run_counts_as_wrong_and_breaks_no_choice(tmp_path):
    options = {"recipe": {"sweep": {"learning_rate": [1e-5, 1e-4]}}, "accuracy": learning_rate_levels}
    diverged = ["reviews/small/fairseq/random/lab.learning_rate=0.0001/seed1"]
    x = make(tmp_path, "x", frameworks=["fairseq"], diverged=diverged, **options)
    y = make(tmp_path, "y", frameworks=["fairseq"], **options)
    found = compare_experiments(x, y, SETTINGS)
    (best,) = rows_of(found, selection="best", init="random")
    assert (best["recipe_a"], best["recipe_b"]) == ("lab.learning_rate=1e-05", "lab.learning_rate=0.0001")
    (row,) = rows_of(found, recipe_a="lab.learning_rate=0.0001", init="random", selection="equal")
    assert row["mean_a"] == pytest.approx(
        statistics.mean(accuracies(x)["reviews", "small", "fairseq", "random", "lab.learning_rate=0.0001"])
    )


def test_crossed_seeds_are_tested_over_means_of_one_kind(tmp_path):
    seeds = [{"init": init, "data": data} for init in (0, 1) for data in (0, 1, 2)]
    only = {"frameworks": ["fairseq"], "inits": ["random"], "seeds": seeds}
    x = make(tmp_path, "x", **only)
    y = make(tmp_path, "y", accuracy=levels(0.9, 0.9), **only)
    found = compare_experiments(x, y, SETTINGS)
    (row,) = found.differences
    assert row["p_exact"] == 0.5  # two means of init seeds a side: 2 of 4 ways to flip signs
    assert (row["test_unit"], row["test_means"]) == ("init seeds", 2)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjustment (1979) of each, in the given order."""
    ordered = sorted(p_values)
    steps = [min(1.0, (len(ordered) - place) * p_value) for place, p_value in enumerate(ordered)]
    return [max(steps[: ordered.index(p_value) + 1]) for p_value in p_values]


def test_holm_counts_the_rows_of_the_table(tmp_path):
    x, y = make(tmp_path, "x"), make(tmp_path, "y", accuracy=levels(0.83, 0.66))
    rows = compare_experiments(x, y, SETTINGS).differences
    p_values = [row["p_value"] for row in rows]
    assert len(p_values) == 4
    assert len(set(p_values)) > 2
    assert [row["p_holm"] for row in rows] == pytest.approx(holm(p_values))
    decided = [row["direction"] != "unclear" for row in rows]
    assert decided == [row["p_holm"] < 0.05 for row in rows]


def test_a_best_that_is_also_an_equal_recipe_is_a_test_of_its_own(tmp_path):
    """Its p carries the choice."""
    only = {"frameworks": ["fairseq"], "inits": ["random"]}
    x = swept(tmp_path, "x", [1e-5, 1e-4], **only)
    y = swept(
        tmp_path, "y", [1e-5, 1e-4], noise=0.02, accuracy=lambda run: learning_rate_levels(run) - 0.03, **only
    )
    found = compare_experiments(x, y, SETTINGS).differences
    assert [row["selection"] for row in found] == ["best", "equal", "equal"]
    assert [row["p_exact"] for row in found] == [0.25] * 3
    assert {(row["recipe_a"], row["recipe_b"]) for row in found[:1]} < {
        (row["recipe_a"], row["recipe_b"]) for row in found[1:]
    }
    assert [row["p_holm"] for row in found] == pytest.approx(holm([row["p_value"] for row in found]))


# --- settings and words -------------------------------------------------------------------------------------


def test_what_differs_is_listed_once_and_what_is_equal_is_not(tmp_path):
    x = make(tmp_path, "x")
    y = make(tmp_path, "y", recipe={"head_init": {"distribution": "normal", "sd": 0.02}}, seeds=[0, 1])
    for path in y.glob("runs/**/run.json"):
        edit_json(path, lambda document: document["versions"].update(torch="2.14.0"))
        edit_json(path, lambda document: document["hardware"].update(gpu_id="GPU-1"))  # of equal cards
    found = compare_experiments(x, y, SETTINGS)
    told = [(row["where"], row["setting"], row["a"], row["b"]) for row in found.settings]
    assert told.count(("recipe lab", "head_init.distribution", "torch", "normal")) == 1
    assert told.count(("software and hardware", "torch", "2.13.0", "2.14.0")) == 1
    assert ("reviews, small, fairseq, random", "seeds", "0 1 2", "0 1") in told
    assert {setting for _, setting, _, _ in told} == {"head_init.distribution", "torch", "seeds"}


def test_training_texts_that_changed_in_place_are_a_setting(tmp_path):
    x, y = make(tmp_path, "x"), make(tmp_path, "y")
    for folder, mark in ((x, "a"), (y, "b")):
        inputs = {"tokens/train": mark * 64, "tokens/test": "c" * 64, "weights/model.pt": "d" * 64}
        for path in folder.glob("runs/**/run.json"):
            edit_json(path, lambda document, inputs=inputs: document.update(inputs=inputs))
    rows = compare_experiments(x, y, SETTINGS).settings
    assert [(row["where"], row["setting"], row["a"], row["b"]) for row in rows] == [
        ("reviews, small", "tokens of the training texts (SHA-256)", "a" * 16, "b" * 16)
    ]


def test_seeds_that_one_side_trained_as_one_model_are_a_setting(tmp_path):
    x, y = make(tmp_path, "x"), make(tmp_path, "y")
    for path in y.glob("runs/**/run.json"):
        edit_json(path, lambda document: document.update(fused_with=[[0, 0], [1, 1], [2, 2]]))
    rows = compare_experiments(x, y, SETTINGS).settings
    assert {(row["setting"], row["a"], row["b"]) for row in rows} == {
        ("seeds trained as one model", "1", "3")
    }


def test_the_definition_of_a_shared_dataset_is_compared_where_it_is_known(tmp_path):
    x, y = make(tmp_path, "x"), make(tmp_path, "y")
    for folder, mark in ((x, "aaaa"), (y, "bbbb")):
        path = folder.parent / "data/reviews/fingerprint.json"
        path.write_text(f'{{"fingerprint": "{mark}"}}')
    rows = compare_experiments(x, y, SETTINGS).settings
    assert [(row["where"], row["a"], row["b"]) for row in rows] == [("dataset reviews", "aaaa", "bbbb")]


def test_the_answer_counts_what_the_intervals_carry(tmp_path):
    x = make(tmp_path, "x", frameworks=["fairseq"], noise=0.005)
    y = make(tmp_path, "y", frameworks=["fairseq"], noise=0.005, accuracy=levels(0.79, 0.8))
    found = compare_experiments(x, y, SETTINGS)
    verdicts = [comparison_document.verdict(found, row) for row in found.differences]
    assert verdicts[1] == "b"
    ((counts, _, total, own_best, *_),) = said(found)["comparison.counts"]
    assert (counts["b"], total, own_best) == (1, 2, False)
    only = {"frameworks": ["fairseq"], "inits": ["random"], "noise": 0.005}
    lower, higher = make(tmp_path, "lower", **only), make(tmp_path, "higher", accuracy=levels(0, 0.8), **only)
    ((verdict, _, own_best, delta, *_),) = said(compare_experiments(lower, higher, SETTINGS))[
        "comparison.single"
    ]
    assert (verdict, own_best) == ("b", False)
    assert delta < -0.1


def test_units_stand_in_headers_and_not_in_cells(tmp_path):
    x = make(tmp_path, "x", frameworks=["fairseq"], inits=["random"])
    y = make(tmp_path, "y", frameworks=["fairseq"], inits=["random"], accuracy=levels(0, 0.9))
    found = compare_experiments(x, y, SETTINGS)
    (row,) = found.differences
    tables = comparison_document.difference_tables(found)
    table, _ = tables
    shown = {
        cell_text(name): cell_text(cell)
        for one in tables
        for name, cell in zip(one.header, one.rows[0], strict=True)
    }
    assert shown["`x` (%)"] == f"{100 * row['mean_a']:.1f} ± {100 * row['sd_a']:.1f}"
    assert shown["95% interval (points)"].startswith("−")
    assert {"difference (points)", "p", "p, Holm"} <= set(shown)
    assert not any("%" in told for told in shown.values())
    assert table.header[1].copied == ("x, mean (%)", "x, sd (points)")
    assert table.rows[0][1].copied == pytest.approx((100 * row["mean_a"], 100 * row["sd_a"]))


def test_gains_beyond_100_points_are_shown_uncut(tmp_path):
    few = {"frameworks": ["fairseq"], "sizes": {"validation": 30, "test": 30}, "noise": 0.05, "seeds": [0, 1]}
    x = make(tmp_path, "x", accuracy=levels(0.85, 0.1), **few)
    y = make(tmp_path, "y", accuracy=levels(0.1, 0.85), **few)
    found = compare_experiments(x, y, SETTINGS)
    (row,) = found.gains
    assert row["ci_high"] > row["delta"] > 1.2
    table, _ = comparison_document.gain_tables(found)
    interval = next(
        cell
        for cell, header in zip(table.rows[0], table.header, strict=True)
        if "interval" in cell_text(header)
    )
    assert interval.copied == pytest.approx((100 * row["ci_low"], 100 * row["ci_high"]))
    assert float(cell_text(interval).split("+")[-1]) > 120


def test_the_same_folders_give_the_same_text_whatever_else_they_hold(tmp_path):
    x, y = make(tmp_path, "x"), make(tmp_path, "y", frameworks=["fairseq"])
    first = compare_experiments(x, y, SETTINGS)
    assert text(first) == text(compare_experiments(x, y, SETTINGS))
    z = make(tmp_path, "z", frameworks=["fairseq"], inits=["random"])
    alone = compare_experiments(x, z, SETTINGS).differences[0]
    (among,) = rows_of(first, framework="fairseq", init="random")
    assert (alone["ci_low"], alone["ci_high"]) == (among["ci_low"], among["ci_high"])


def test_names_that_are_equal_are_told_apart_by_their_paths(tmp_path):
    x = make(tmp_path / "here", "same")
    y = make(tmp_path / "there", "same")
    a, b = read_experiments(x, y, complete_settings(SETTINGS))
    assert (a.name, b.name) == (str(x), str(y))
    assert len(find_matches(a, b)) == 4


# --- the command --------------------------------------------------------------------------------------------


LABELS = ["Answer", "Differs", "Next"]


def test_the_command_prints_one_screen_and_writes_both_formats(tmp_path, capsys):
    x, y = make(tmp_path, "x"), make(tmp_path, "y")
    few = ["--replicates", "200"]
    assert main(["compare", str(x), str(y), *few]) == 0
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines() if line[0:1].isalpha()][:3] == LABELS
    assert len(printed.splitlines()) <= 25
    assert main(["compare", str(x), str(y), *few, "--output", str(tmp_path / "out.md")]) == 0
    written = (tmp_path / "out.md").read_text(encoding="utf-8")
    assert [line.split("**")[1] for line in written.splitlines()[2:5]] == [f"{label}:" for label in LABELS]
    assert main(["compare", str(x), str(y), *few, "--output", str(tmp_path / "out.html")]) == 0
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert page.lower().lstrip().startswith("<!doctype html>")
    assert "What pretraining gains" in page
    assert main(["compare", str(x), str(y), "--output", str(tmp_path / "out.pdf")]) == 1
    assert "ends in .md or .html" in capsys.readouterr().err
    assert main(["compare", str(x), str(y), "--confidence", "95"]) == 1
    assert "95.0 is greater than or equal to the maximum of 1" in capsys.readouterr().err
    assert main(["compare", str(x), str(y), "--confidence", "nan"]) == 1
    assert "statistics.confidence" in capsys.readouterr().err
    assert main(["compare", str(x), str(y), "--bootstrap-seed", "-1"]) == 1
    assert "-1 is less than the minimum of 0" in capsys.readouterr().err


def refused(a: Path, b: Path) -> str:
    with pytest.raises(SeedbedError) as caught:
        compare_experiments(a, b, SETTINGS)
    return str(caught.value)


def test_folders_that_cannot_be_compared_are_refused(tmp_path, capsys):
    x = make(tmp_path, "x")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no finished experiment" in refused(x, empty)
    assert "no such folder" in refused(tmp_path / "nowhere", x)
    link = tmp_path / "link"
    link.symlink_to(x)
    assert "not compared with itself" in refused(x, link)
    assert main(["compare", str(x), str(empty)]) == 1
    assert str(empty / "runs.csv") in capsys.readouterr().err


def without_columns(path: Path, *names: str) -> None:
    """Take columns out of a table."""
    rows = [{name: cell for name, cell in row.items() if name not in names} for row in read_table(path)]
    write_table(path, list(rows[0]), rows)


def test_the_task_is_the_one_that_the_runs_recorded(tmp_path):
    x, y = make(tmp_path, "x"), make(tmp_path, "y")
    answers = make_answers(tmp_path, "z", seeds=[0, 1, 2])
    records = sorted(y.glob("runs/**/run.json"))
    for path in records:  # as it was before there was another task
        edit_json(path, lambda record: record.pop("task"))
    assert compare_experiments(x, y, SETTINGS).metric == "accuracy"
    assert "classification and generation" in refused(x, answers)
    without_columns(x / "runs.csv", "test_accuracy")
    assert "found: no column test_accuracy" in refused(x, y)
    for path in records:
        edit_json(path, lambda record: record.update(task="translation"))
    assert "'translation'" in refused(y, answers)
    for path in records:
        path.unlink()
    assert "a run of the table of runs is not there" in refused(y, answers)


def test_a_table_of_an_earlier_version_is_compared(tmp_path):
    x, y = make(tmp_path, "x"), make(tmp_path, "y", noise=0.02)
    now = compare_experiments(x, y, SETTINGS).differences
    without_columns(y / "runs.csv", "first_train_loss", "fused_seeds", "validation_all_same", "test_all_same")
    assert compare_experiments(x, y, SETTINGS).differences == now


def test_nothing_in_common_and_other_classes_are_refused(tmp_path):
    x = make(tmp_path, "x")
    other = make(tmp_path, "y", datasets=("forum",))
    assert "x has reviews/small/fairseq/pretrained/lab" in refused(x, other)
    classes = make(tmp_path, "z", labels=("bad", "good"))
    assert "negative, positive" in refused(x, classes)


def test_other_classes_are_refused_where_only_families_are_compared(tmp_path):
    x = swept(tmp_path, "x", [1e-5, 3e-5])
    y = swept(tmp_path, "y", [1e-4], labels=("bad", "good"))
    assert "negative, positive" in refused(x, y)


def test_runs_that_do_not_fit_their_table_are_refused(tmp_path):
    x, y = make(tmp_path, "x"), make(tmp_path, "y")
    run = next(iter(sorted(y.glob("runs/**/predictions.csv"))))

    def flip(rows):
        rows[-1]["label"] = "negative" if rows[-1]["label"] == "positive" else "positive"

    edit_csv(run, flip)
    assert "do not have the accuracy" in refused(x, y)
    run.unlink()
    assert str(run) in refused(x, y)


# --- generation ---------------------------------------------------------------------------------------------


def make_answers(folder: Path, name: str, **options) -> Path:
    """A made-up experiment that generates answers, with its table of runs, in a folder of that name."""
    made = make_generation(folder / f"results_of_{name}", **{"methods": ("lora",), **options})
    reporting = made.plan.reporting()
    rows = read_runs(made.folders, reporting, {}).rows
    write_runs(made.experiment / "runs.csv", rows, reporting)
    return made.experiment.rename(made.experiment.with_name(name))


def losses(folder: Path) -> list[float]:
    return [row["test_loss"] for row in read_table(folder / "runs.csv")]


def test_experiments_that_generate_are_compared_by_their_loss(tmp_path):
    seeds = {"seeds": [0, 1, 2]}
    a = make_answers(tmp_path, "a", loss=lambda run: 2.5, **seeds)
    b = make_answers(tmp_path, "b", loss=lambda run: 2.0, **seeds)
    found = compare_experiments(a, b, SETTINGS)
    assert found.metric == "loss"
    (row,) = found.differences
    assert row["delta"] == pytest.approx(statistics.mean(losses(a)) - statistics.mean(losses(b)), rel=1e-5)
    assert (row["mean_a"], row["mean_b"]) == pytest.approx(
        (statistics.mean(losses(a)), statistics.mean(losses(b))), rel=1e-6
    )
    assert 0.3 < row["ci_low"] < row["delta"] < row["ci_high"]
    assert (row["paired"], row["undefined_a"], row["undefined_b"]) == (True, 0, 0)


def test_the_lower_loss_is_the_better_one_and_is_told_in_nats(tmp_path):
    seeds, inits = {"seeds": [0, 1, 2]}, {"inits": ["pretrained", "random"]}
    a = make_answers(tmp_path, "a", loss=lambda run: 2.5, **seeds)
    b = make_answers(tmp_path, "b", loss=lambda run: 2.0, **seeds)
    found = compare_experiments(a, b, SETTINGS)
    told, (row,) = text(found), found.differences
    ((verdict, _, _, delta, *_),) = said(found)["comparison.single"]
    assert (verdict, delta) == ("b", row["delta"])
    assert "Test loss (lower is better), mean ± sd" in told
    assert "| `a` (nats) | `b` (nats) | difference (nats) | 95% interval (nats) |" in told
    assert f"| {row['mean_a']:.3f} ± {row['sd_a']:.3f} |" in told
    assert "accurac" not in told
    assert "points" not in told
    both = [
        make_answers(tmp_path, name, **seeds, **inits, loss=lambda run, by=by: levels(2.0, 2.0 + by)(run))
        for name, by in (("c", 0.5), ("d", 1.0))
    ]
    gains = text(compare_experiments(*both, SETTINGS)).split("## What pretraining gains")[1]
    assert "| gain in `c` (nats) | gain in `d` (nats) | difference (nats) |" in gains


def test_sweeps_that_generate_are_compared_at_their_lowest_validation_loss(tmp_path):
    rates, seeds = (1e-4, 3e-4, 1e-3), [0, 1, 2]
    worst = "questions/tiny/transformers/pretrained/lora.learning_rate=0.001/seed1"
    a = make_answers(tmp_path, "a", rates=rates, seeds=seeds, diverged=[worst])
    b = make_answers(tmp_path, "b", rates=rates[:2], seeds=seeds, loss=lambda run: loss_level(run) + 0.2)
    (best,) = rows_of(compare_experiments(a, b, SETTINGS), selection="best")
    assert best["recipe_a"] == best["recipe_b"] == "lora.learning_rate=0.0003"
    assert -0.5 < best["ci_low"] <= best["delta"] <= best["ci_high"] < 0


def test_a_side_with_a_diverged_run_has_no_loss_to_compare(tmp_path):
    seeds = [0, 1, 2]
    bad = "questions/tiny/transformers/pretrained/lora/seed1"
    a = make_answers(tmp_path, "a", seeds=seeds, diverged=[bad])
    b = make_answers(tmp_path, "b", seeds=seeds)
    (row,) = compare_experiments(a, b, SETTINGS).differences
    assert (row["undefined_a"], row["undefined_b"]) == (1, 0)
    assert {row[key] for key in ("delta", "ci_low", "ci_high", "p_value", "p_holm", "mean_a", "sd_a")} == {
        None
    }
    assert row["mean_b"] == pytest.approx(statistics.mean(losses(b)), rel=1e-6)
    ((verdict, *_),) = said(compare_experiments(a, b, SETTINGS))["comparison.single"]
    assert verdict == "undefined"


def test_experiments_of_two_tasks_are_not_compared(tmp_path):
    a = make_answers(tmp_path, "a", seeds=[0, 1])
    b = make(tmp_path, "b", seeds=[0, 1])
    with pytest.raises(SeedbedError, match="two tasks") as caught:
        compare_experiments(a, b, SETTINGS)
    assert "generation and classification" in str(caught.value)


def test_answers_that_are_not_those_of_the_table_are_refused(tmp_path):
    a, b = (make_answers(tmp_path, name, seeds=[0, 1]) for name in "ab")
    path = a / "runs" / "questions/tiny/transformers/pretrained/lora/seed1/predictions.csv"

    def change(rows):
        rows[-1]["loss"] = float(rows[-1]["loss"]) + 0.5

    edit_csv(path, change)
    with pytest.raises(SeedbedError, match="do not have the loss of the table of runs"):
        compare_experiments(a, b, SETTINGS)


# --- no verdict ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seeds", "reason"), [((2, 2), "too few seeds"), ((2, 10), "too few seeds"), ((3, 3), None)]
)
def test_the_experiment_with_fewer_seeds_decides_whether_one_is_better(tmp_path, seeds, reason):
    one = {"frameworks": ["fairseq"], "inits": ["random"], "noise": 0.005}
    folders = [
        make(tmp_path, name, accuracy=levels(0.8, level), seeds=list(range(number)), **one)
        for name, level, number in zip("xy", (0.85, 0.65), seeds, strict=True)
    ]
    found = compare_experiments(*folders, SETTINGS)
    (row,) = found.differences
    assert row["ci_low"] > 0
    assert row["no_verdict"] == reason
    calls = said(found)
    assert [values[0] for values in calls["comparison.single"]] == [reason or "a"]
    assert calls["comparison.next"][0][0] == ("few_seeds" if reason else "settled")
    assert ("comparison.no_verdict" in calls) is (reason is not None)


def test_two_experiments_that_learned_nothing_have_no_better_one(tmp_path):
    one = {"frameworks": ["fairseq"], "noise": 0.0}
    x = make(tmp_path, "x", accuracy=levels(0.52, 0.52), **one)
    y = make(tmp_path, "y", accuracy=levels(0.4, 0.4), **one)
    found = compare_experiments(x, y, SETTINGS)
    assert {row["no_verdict"] for row in (*found.differences, *found.gains)} == {"nothing learned"}
    calls = said(found)
    assert [values[0] for values in calls["comparison.counts"]] == [{"nothing learned": 2}]
    assert [values[0] for values in calls["comparison.next"]] == ["learn"]
    learned = make(tmp_path, "z", accuracy=levels(0.8, 0.8), **one)
    calls = said(compare_experiments(learned, y, SETTINGS))
    assert [values[0] for values in calls["comparison.counts"]] == [{"a": 2}]
    assert [side for side, _ in calls["comparison.unlearned_side"]] == ["y", "y"]


def test_runs_without_a_finite_loss_that_learned_nothing_have_no_difference_to_show(tmp_path):
    every = [f"questions/tiny/transformers/pretrained/lora/seed{seed}" for seed in range(3)]
    folders = []
    for name in "xy":
        made = make_generation(
            tmp_path / name,
            methods=("lora",),
            seeds=[0, 1, 2],
            sizes={"validation": 20, "test": 40},
            diverged=every,
        )
        reporting = made.plan.reporting()
        rows = read_runs(made.folders, reporting, {}).rows
        write_runs(made.experiment / "runs.csv", rows, reporting)
        folders.append(made.experiment.rename(made.experiment.with_name(name)))
    ((verdict, _, _, delta, *_),) = said(compare_experiments(*folders, SETTINGS))["comparison.single"]
    assert (verdict, delta) == ("nothing learned", None)


def test_a_collapse_makes_no_experiment_the_better_one(tmp_path):
    one = {"frameworks": ["fairseq"], "inits": ["random"], "seeds": list(range(10)), "noise": 0.005}
    collapsed = [f"reviews/small/fairseq/random/lab/seed{seed}" for seed in range(1, 7)]
    x = make(tmp_path, "x", accuracy=levels(0.8, 0.8), **one)
    y = make(tmp_path, "y", accuracy=levels(0.8, 0.8), collapsed=collapsed, **one)
    found = compare_experiments(x, y, SETTINGS)
    (row,) = found.differences
    assert row["ci_low"] > 0
    assert row["no_verdict"] == "a collapse"
    a, b = (accuracies(folder)["reviews", "small", "fairseq", "random", "lab"] for folder in (x, y))
    sound = [value for seed, value in enumerate(b) if seed not in range(1, 7)]
    expected = statistics.mean(a) - statistics.mean(sound)
    assert row["delta_without_collapsed"] == pytest.approx(expected, abs=1e-7)
    calls = said(found)
    assert [values[0] for values in calls["comparison.single"]] == ["a collapse"]
    assert [values[0] for values in calls["comparison.next"]] == ["collapse"]
    assert [values[0] for values in calls["comparison.without_collapsed"]] == [row["delta_without_collapsed"]]


def test_intervals_of_two_experiments_are_within_what_is_possible(tmp_path):
    one = {"frameworks": ["fairseq"], "seeds": [0, 1], "noise": 0.0, "sizes": {"validation": 6, "test": 6}}
    x = make(tmp_path, "x", accuracy=lambda run: (0.9, 0.2)[run.init_seed], **one)
    y = make(tmp_path, "y", accuracy=lambda run: (0.2, 0.9)[run.init_seed], **one)
    found = compare_experiments(x, y, SETTINGS)
    bounds = [row[f"ci_{end}"] for row in found.differences for end in ("low", "high")]
    assert bounds == [-1, 1, -1, 1]
