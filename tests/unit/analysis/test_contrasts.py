"""Contrasts: which differences there are, and their numbers against SciPy and against hand-made tables."""

import itertools
from typing import Any

import numpy as np
import pytest
from builders_rows import changed, run_row, summary_row
from scipy import stats

from seedbed.analysis import tables
from seedbed.analysis.bootstrap import Draws, Side
from seedbed.analysis.contrasts import CONTRAST_COLUMNS, choice_shares, contrast, list_contrasts, sides_of
from seedbed.analysis.looks import look_at
from seedbed.analysis.predictions import CellPredictions
from seedbed.analysis.sides import SAME_CELLS, adjusted, combine, over_units
from seedbed.analysis.table_rows import RunRow, SummaryRow
from seedbed.core.rows import CELL, Row

STATISTICS = {
    "confidence": 0.95,
    "power": 0.8,
    "replicates": 1000,
    "bootstrap_seed": 0,
    "equivalence_margin": {"pretrained": 0.01, "random": 0.02},
}
EXAMPLES, VALIDATION = 60, 40


class Made:
    """Cells with known predictions, and their runs."""

    def __init__(self):
        self.runs: list[RunRow] = []
        self.cells: dict[str, dict[tuple[str, ...], CellPredictions]] = {"test": {}, "validation": {}}
        self.leaks: dict[str, set[str]] = {}

    def add(
        self, place: str, test: np.ndarray, validation: np.ndarray | None = None, *,
        seeds: list[Any] | None = None, loss: float = 0.5,
    ) -> "Made":  # fmt: skip
        """A cell `dataset/model/framework/init/recipe`; scores (seeds, examples): right or not."""
        key = tuple(place.split("/"))
        test = np.asarray(test, dtype=bool)
        validation = test[:, :1].repeat(VALIDATION, axis=1) if validation is None else validation
        self.cells["test"][key] = predictions(test, "test")
        self.cells["validation"][key] = predictions(validation, "validation", loss)
        for row, seed in enumerate(seeds or range(len(test))):
            init, data = seed if isinstance(seed, tuple) else (seed, seed)
            self.runs.append(
                run_row(
                    dict(zip(CELL, key, strict=True)),
                    init_seed=init,
                    data_seed=data,
                    test_accuracy=test[row].mean(),
                    validation_accuracy=validation[row].mean(),
                    validation_loss=loss,
                    test_accuracy_without_leaks=self._clean(key[0], test[row]),
                )
            )
        return self

    def _clean(self, dataset: str, right: np.ndarray) -> float | None:
        leaked = self.leaks.get(dataset)
        if not leaked:
            return None
        return np.mean([value for index, value in enumerate(right) if f"test-{index}" not in leaked])

    def contrasts(
        self, *, predicted: bool = True, looks: list[int] | None = None, **settings: Any
    ) -> list[Row]:
        reporting = self.reporting(**settings) | ({"until": {"looks": looks}} if looks else {})
        summary = tables.summarise(self.runs, {}, reporting)
        sides = sides_of(self.runs, reporting, self.cells, self.leaks) if predicted else None
        return contrast(self.runs, summary, reporting, sides)

    def shares(self) -> dict[tuple[str, ...], float]:
        reporting = self.reporting()
        summary = tables.summarise(self.runs, {}, reporting)
        return choice_shares(summary, reporting, sides_of(self.runs, reporting, self.cells, self.leaks))

    def reporting(self, **settings: Any) -> dict[str, Any]:
        names = dict.fromkeys(run.dataset for run in self.runs)
        datasets = {name: {"task": "classification"} for name in names}
        grid = {"datasets": list(names)}
        return {"statistics": STATISTICS | settings, "grid": grid, "datasets": datasets, "recipes": {}}


def predictions(right: np.ndarray, split: str, loss: float = 0.5) -> CellPredictions:
    right = np.asarray(right, dtype=bool)
    labels = np.zeros(right.shape[1], dtype=np.int16)
    ids = tuple(f"{split}-{index}" for index in range(right.shape[1]))
    shape = right.shape
    return CellPredictions(
        ("no", "yes"), ids, labels, np.where(right, 0, 1).astype(np.int16),
        np.full(shape, 0.7, np.float32), np.full(shape, loss, np.float32),
    )  # fmt: skip


def scores(level: float, seeds: int = 3, examples: int = EXAMPLES, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    hard = draw.normal(size=examples)
    noise = draw.normal(size=(seeds, examples)) + 0.3 * draw.normal(size=(seeds, 1))
    return hard + noise < stats.norm.ppf(level) * np.sqrt(2)


def two_inits() -> Made:
    made = Made()
    made.add("x/m/fairseq/pretrained/lab", scores(0.8, seed=1))
    return made.add("x/m/fairseq/random/lab", scores(0.6, seed=2))


# --- numbers ---


def test_the_standard_error_is_that_of_the_two_way_table():
    made = two_inits()
    (row,) = made.contrasts()
    a, b = (cell.correct.astype(float) for cell in made.cells["test"].values())
    table = a - b
    n, m = table.shape
    residual = table - table.mean(0) - table.mean(1, keepdims=True) + table.mean()
    over_seeds = table.mean(1).var(ddof=1) / n
    over_examples = table.mean(0).var(ddof=1) / m - (residual**2).sum() / (n - 1) / (m - 1) / n / m
    assert row["delta"] == pytest.approx(table.mean())
    assert row["se_seeds"] == pytest.approx(np.sqrt(over_seeds))
    assert row["se_examples"] == pytest.approx(np.sqrt(over_examples))
    assert row["standard_error"] == pytest.approx(np.sqrt(over_seeds + over_examples))
    interaction = (residual**2).sum() / (n - 1) / (m - 1) / n / m
    assert row["se_interaction"] == pytest.approx(np.sqrt(interaction))
    assert row["ci_low"] < row["bootstrap_low"] < row["delta"] < row["bootstrap_high"] < row["ci_high"]


def test_paired_columns_over_seeds_against_scipy():
    made = two_inits()
    (row,) = made.contrasts()
    a, b = ([run["test_accuracy"] for run in made.runs[start : start + 3]] for start in (0, 3))
    assert row["paired"] is True
    bounds = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert (row["t_low"], row["t_high"]) == pytest.approx(tuple(bounds))
    exact = stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", vectorized=True
    )
    assert row["p_exact"] == pytest.approx(exact.pvalue)
    assert row["p_value"] < 0.05
    assert row["direction"] == "higher"
    assert row["seed_correlation"] == pytest.approx(np.corrcoef(a, b)[0, 1])
    gaps = np.subtract(a, b).var(ddof=1)
    assert row["pairing_ratio"] == pytest.approx(gaps / (np.var(a, ddof=1) + np.var(b, ddof=1)))
    assert row["probability_of_improvement"] == stats.mannwhitneyu(a, b).statistic / 9
    assert row["method"] == (
        "Multi-Bootstrap of 1,000 replicates over paired seeds and test examples, scaled to the two-way "
        "analysis of variance; exact sign-flip test over seeds"
    )
    assert set(CONTRAST_COLUMNS) == set(row) - set(row.OPTIONAL)


def test_sides_of_other_seeds_are_not_paired_and_against_scipy():
    made = Made()
    made.add("x/m/fairseq/random/lab", scores(0.7, seed=1))
    made.add("x/m/transformers/random/lab", scores(0.7, seeds=4, seed=2))
    (row,) = made.contrasts()
    a, b = ([run["test_accuracy"] for run in part] for part in (made.runs[:3], made.runs[3:]))
    welch = stats.ttest_ind(a, b, equal_var=False)
    assert (row["family"], row["paired"], row["n_a"], row["n_b"]) == ("framework", False, 3, 4)
    assert (row["t_low"], row["t_high"]) == pytest.approx(tuple(welch.confidence_interval(0.95)))
    assert (row["seed_correlation"], row["pairing_ratio"]) == (None, None)
    # the half width of the interval of two one-sided tests: seeds of each side with their own degrees
    tables = [cell.correct.astype(float) for cell in made.cells["test"].values()]
    z, examples = stats.norm.ppf(0.95), np.subtract(*(table.mean(0) for table in tables)).var(ddof=1)
    excess, interaction = 0.0, 0.0
    for table in tables:
        n, m = table.shape
        rest = table - table.mean(0) - table.mean(1, keepdims=True) + table.mean()
        of_both = (rest**2).sum() / (n - 1) / (m - 1) / n / m
        own = table.mean(1).var(ddof=1) / n - of_both / 2
        excess += max(0.0, stats.t.ppf(0.95, n - 1) ** 2 * own - z**2 * of_both / 2)
        interaction += of_both
    half = np.sqrt(z**2 * (max(0, examples / m - interaction) + interaction) + excess)
    assert (row["equivalence_high"] - row["equivalence_low"]) / 2 == pytest.approx(half, rel=0.05)
    assert row["margin"] == 0.02
    assert "over the seeds of each side" in row["method"]


def test_frameworks_of_one_seed_are_pairs():
    """Runs of one init seed share the weights that it draws."""
    made = Made()
    made.add("x/m/fairseq/random/lab", scores(0.7, seed=1))
    made.add("x/m/transformers/random/lab", scores(0.7, seed=2))
    (row,) = made.contrasts()
    assert (row["paired"], row["test"]) == (True, "sign-flip")
    assert row["seed_correlation"] is not None


def test_inits_with_other_seeds_are_not_paired():
    made = Made()
    made.add("x/m/fairseq/pretrained/lab", scores(0.8, seed=1))
    made.add("x/m/fairseq/random/lab", scores(0.6, seed=2), seeds=[0, 1, 5])
    (row,) = made.contrasts()
    assert row["paired"] is False
    assert (row["test"], row["test_unit"], row["test_means"]) == ("permutation", "seeds", None)
    assert "permutation" in row["method"]


def test_without_leaks_only_the_other_examples_count():
    made = Made()
    made.leaks = {"x": {f"test-{index}" for index in range(20)}}
    a, b = scores(0.8, seed=1), scores(0.6, seed=2)
    made.add("x/m/fairseq/pretrained/lab", a).add("x/m/fairseq/random/lab", b)
    whole, clean = made.contrasts()
    other = Made().add("x/m/fairseq/pretrained/lab", a[:, 20:]).add("x/m/fairseq/random/lab", b[:, 20:])
    (expected,) = other.contrasts()
    assert (whole["test_set"], clean["test_set"]) == ("all", "without leaks")
    assert whole["delta"] == pytest.approx(a.mean() - b.mean())
    for column in ("delta", "standard_error", "se_seeds", "se_interaction", "t_low"):
        assert clean[column] == pytest.approx(expected[column])


def test_the_same_numbers_whatever_else_the_grid_holds():
    alone = two_inits().contrasts()[0]
    more = two_inits()
    for place, level in (("x/n", 0.7), ("y/m", 0.9)):
        more.add(f"{place}/fairseq/pretrained/lab", scores(level, seed=3))
        more.add(f"{place}/fairseq/random/lab", scores(level - 0.2, seed=4))
    rows = more.contrasts()
    among = next(row for row in rows if (row["a"], row["model"]) == (alone["a"], "m"))
    for column in set(CONTRAST_COLUMNS) - {"p_holm", "direction", "aso_eps_min"}:
        assert among[column] == alone[column], column
    ordered = sorted(row["p_value"] for row in rows if row["family"] == "init")
    smaller = ordered[: ordered.index(among["p_value"]) + 1]
    assert among["p_holm"] == max((3 - place) * p_value for place, p_value in enumerate(smaller))


def test_another_bootstrap_seed_draws_anew_and_the_same_one_repeats():
    first, again, other = (two_inits().contrasts(bootstrap_seed=seed)[0] for seed in (0, 0, 1))
    assert first == again
    assert first["ci_low"] != other["ci_low"]
    assert first["standard_error"] == other["standard_error"]


def test_several_comparisons_raise_the_bound_of_stochastic_order():
    def bound(models: int) -> float:
        made = Made()
        for number in range(models):
            made.add(f"x/m{number}/fairseq/pretrained/lab", scores(0.72, seeds=6, seed=1))
            made.add(f"x/m{number}/fairseq/random/lab", scores(0.7, seeds=6, seed=2))
        return made.contrasts()[0]["aso_eps_min"]

    assert bound(1) < bound(4)


# --- families ---


def four_gains() -> Made:
    made = Made()
    cells = itertools.product(("x", "y"), ("m", "n"), ("pretrained", "random"))
    for number, (dataset, model, init) in enumerate(cells):
        level = {"pretrained": 0.8, "random": 0.6}[init]
        examples = EXAMPLES if dataset == "x" else 80
        made.add(f"{dataset}/{model}/fairseq/{init}/lab", scores(level, examples=examples, seed=number))
    return made


def test_models_are_compared_all_else_equal():
    rows = [row for row in four_gains().contrasts() if row["family"] == "model"]
    assert [(row["dataset"], row["model"], row["model_b"], row["a"], row["contrast"]) for row in rows] == [
        ("x", "m", "n", "fairseq/pretrained", "m - n"),
        ("x", "m", "n", "fairseq/random", "m - n"),
        ("y", "m", "n", "fairseq/pretrained", "m - n"),
        ("y", "m", "n", "fairseq/random", "m - n"),
    ]
    assert all(row["paired"] and row["dataset_b"] == row["dataset"] for row in rows)


def test_datasets_are_compared_by_the_gain_of_pretraining():
    made = four_gains()
    rows = [row for row in made.contrasts() if row["family"] == "dataset"]
    assert [(row["model"], row["contrast"], row["a"], row["b"], row["recipe_a"]) for row in rows] == [
        ("m", "gain on x - gain on y", "fairseq/gain", "fairseq/gain", "lab"),
        ("n", "gain on x - gain on y", "fairseq/gain", "fairseq/gain", "lab"),
    ]
    correct = [cell.correct.astype(float) for cell in made.cells["test"].values()]
    gains = [(correct[0] - correct[1]).mean(axis=1), (correct[4] - correct[5]).mean(axis=1)]
    bounds = stats.ttest_ind(*gains, equal_var=False).confidence_interval(0.95)
    first = rows[0]
    assert (first["paired"], first["dataset"], first["dataset_b"]) == (False, "x", "y")
    assert first["delta"] == pytest.approx(gains[0].mean() - gains[1].mean())
    assert (first["t_low"], first["t_high"]) == pytest.approx(tuple(bounds))
    # over seeds, or what chance at each example makes of seeds that are all alike
    assert first["se_seeds"] >= np.sqrt(sum(gain.var(ddof=1) / 3 for gain in gains)) - 1e-9
    assert first["ci_low"] < first["delta"] < first["ci_high"]


def test_a_gain_needs_both_inits_with_the_same_seeds():
    made = four_gains()
    made.add("z/m/fairseq/pretrained/lab", scores(0.8))
    made.add("z/m/fairseq/random/lab", scores(0.6), seeds=[7, 8, 9])
    datasets = {row["dataset_b"] for row in made.contrasts() if row["family"] == "dataset"}
    assert datasets == {"y"}


def swept(**levels: dict[str, tuple[float, float]]) -> Made:
    """levels: recipe -> (validation, test) by init, on dataset x; y is the same with other examples."""
    made = Made()
    for number, (init, recipes) in enumerate(levels.items()):
        for index, (recipe, (validation, test)) in enumerate(recipes.items()):
            for offset, dataset in enumerate("xy"):
                seed = 100 * offset + 10 * number + index
                made.add(
                    f"{dataset}/m/fairseq/{init}/lab.{recipe}",
                    scores(test, seed=seed),
                    scores(validation, examples=VALIDATION, seed=seed + 50),
                )
    return made


def test_each_side_at_its_best():
    made = swept(
        pretrained={"low": (0.9, 0.9), "high": (0.5, 0.5)}, random={"low": (0.4, 0.4), "high": (0.8, 0.8)}
    )
    rows = made.contrasts()
    best = [row for row in rows if row["selection"] == "best" and row["family"] != "recipe"]
    assert [(row["family"], row["recipe_a"], row["recipe_b"]) for row in best] == [
        ("init", "lab.low", "lab.high"),
        ("init", "lab.low", "lab.high"),
        ("dataset", "lab.low/lab.high", "lab.low/lab.high"),
    ]
    means = {key: cell.correct.mean() for key, cell in made.cells["test"].items()}
    gains = [
        means[name, "m", "fairseq", "pretrained", "lab.low"]
        - means[name, "m", "fairseq", "random", "lab.high"]
        for name in "xy"
    ]
    assert [row["delta"] for row in best] == pytest.approx([*gains, gains[0] - gains[1]])
    assert all(row["ci_low"] < row["delta"] < row["ci_high"] for row in best)
    assert all("do not carry" in row["method"] and "every replicate" in row["method"] for row in best)


def test_the_gain_at_own_bests_is_compared_with_that_at_the_first_recipe():
    made = swept(
        pretrained={"low": (0.9, 0.9), "high": (0.5, 0.5)}, random={"low": (0.4, 0.4), "high": (0.8, 0.8)}
    )
    rows = made.contrasts()
    changes = [row for row in rows if row["family"] == "recipe"]
    assert [(row["dataset"], row["recipe_a"], row["recipe_b"]) for row in changes] == [
        ("x", "lab.low/lab.high", "lab.low"),
        ("y", "lab.low/lab.high", "lab.low"),
    ]
    row, inits = changes[0], [row for row in rows if row["family"] == "init" and row["dataset"] == "x"]
    best = next(row for row in inits if row["selection"] == "best")
    equal = next(row for row in inits if row["recipe_a"] == row["recipe_b"] == "lab.low")
    assert row["delta"] == pytest.approx(best["delta"] - equal["delta"])
    assert (row["paired"], row["selection"], row["a"], row["b"]) == (
        True, "best", "fairseq/gain", "fairseq/gain",
    )  # fmt: skip
    # pretrained has the same recipe on both sides, so that its scores cancel
    low, high = (
        made.cells["test"]["x", "m", "fairseq", "random", f"lab.{name}"].correct.astype(float)
        for name in ("low", "high")
    )
    changed_by = low - high
    assert row["delta"] == pytest.approx(changed_by.mean())
    over_seeds = stats.ttest_1samp(changed_by.mean(axis=1), 0).confidence_interval(0.95)
    assert (row["t_low"], row["t_high"]) == pytest.approx(tuple(over_seeds))
    assert row["ci_high"] < 0
    assert row["direction"] == "lower"


def test_a_doubtful_choice_is_in_the_interval_of_the_change_of_a_gain():
    made = swept(
        pretrained={"low": (0.66, 0.9), "high": (0.76, 0.6)}, random={"low": (0.9, 0.5), "high": (0.1, 0.5)}
    )
    row = next(row for row in made.contrasts() if row["family"] == "recipe")
    assert row["standard_error"] ** 2 > 1.1 * (row["se_seeds"] ** 2 + row["se_examples"] ** 2)
    assert row["ci_high"] - row["ci_low"] > row["given_high"] - row["given_low"]


def test_a_gain_does_not_change_where_the_first_recipe_is_the_best_of_both():
    made = swept(
        pretrained={"low": (0.9, 0.9), "high": (0.1, 0.5)}, random={"low": (0.9, 0.6), "high": (0.1, 0.5)}
    )
    row = next(row for row in made.contrasts() if row["family"] == "recipe")
    assert (row["recipe_a"], row["recipe_b"], row["delta"]) == ("lab.low", "lab.low", 0)
    assert (row["ci_low"], row["p_value"], row["direction"], row["interval"]) == (
        None,
        None,
        None,
        "no spread",
    )


def test_a_close_choice_widens_the_interval():
    def width(validation: float) -> float:
        low, high = (validation, 0.9), (0.6, 0.5)  # on validation close or not, on test far apart
        made = swept(pretrained={"low": low, "high": high}, random={"low": (0.9, 0.6), "high": (0.1, 0.5)})
        row = next(row for row in made.contrasts() if row["selection"] == "best")
        return row["bootstrap_high"] - row["bootstrap_low"]

    assert width(0.65) > 1.5 * width(0.99)


def test_the_choice_of_a_gain_is_that_of_each_init():
    """Of all pairs of recipes the best sum of validation scores is that of each init's best."""
    made = swept(
        pretrained={"low": (0.62, 0.7), "high": (0.6, 0.8)}, random={"low": (0.6, 0.4), "high": (0.62, 0.5)}
    )
    rows = [row for row in made.contrasts() if row["selection"] == "best"]
    of_inits, of_datasets = rows[:2], rows[2]
    assert of_datasets["delta"] == pytest.approx(of_inits[0]["delta"] - of_inits[1]["delta"])
    assert of_datasets["ci_low"] is not None


def test_a_choice_that_the_predictions_contradict_has_no_interval():
    made = Made()
    same = scores(0.7, examples=VALIDATION, seed=9)
    made.add("x/m/fairseq/pretrained/lab.low", scores(0.9, seed=1), same, loss=0.5)
    made.add("x/m/fairseq/pretrained/lab.high", scores(0.6, seed=2), same, loss=0.4)
    for recipe in ("low", "high"):
        made.add(f"x/m/fairseq/random/lab.{recipe}", scores(0.5, seed=3), same)
    agreed = next(row for row in made.contrasts() if row["selection"] == "best")
    assert (agreed["recipe_a"], agreed["ci_low"] is None) == ("lab.high", False)
    made.runs[:3] = [changed(run, validation_loss=0.3) for run in made.runs[:3]]  # what run.json tells
    row = next(row for row in made.contrasts() if row["selection"] == "best")
    assert row["recipe_a"] == "lab.low"
    assert (row["ci_low"], row["bootstrap_low"], row["standard_error"]) == (None, None, None)
    assert row["interval"] == "other choice"
    assert "choose different recipes" in row["method"]


def test_means_of_combined_sides_are_those_of_their_scores():
    draws = Draws(EXAMPLES, 50, 3)
    a, b = (Side(scores(level), ((0, 0), (1, 1), (2, 2)), draws) for level in (0.8, 0.6))
    for sign in (1, -1):
        plain = Side(a.scores + sign * b.scores, a.seeds, draws)
        assert combine(a, b, sign).means == pytest.approx(plain.means, abs=1e-6)


def test_the_order_of_families():
    rows = [
        summary_row(dataset=d, model="m", framework=f, init=i, recipe="r")
        for d in "xy"
        for f in ("fairseq", "transformers")
        for i in ("pretrained", "random")
    ]
    families = [one.family for one in list_contrasts(rows)]
    assert families == ["init"] * 4 + ["framework"] * 4 + ["dataset"] * 2


# --- methods ---


def method_rows(
    *recipes: tuple[str, str, str], selection: str = "equal", metric: str = "loss"
) -> list[SummaryRow]:
    """Rows of a summary: recipe, family and method of each."""
    names = {"dataset": "x", "model": "m", "framework": "transformers", "init": "pretrained"}
    names |= {"test_set": "all", "metric": metric, "selection": selection}
    return [
        summary_row(names, recipe=recipe, recipe_family=family, method=method)
        for recipe, family, method in recipes
    ]


def told_methods(rows: list[SummaryRow], recipes: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    found = [one.names for one in list_contrasts(rows, recipes) if one.family == "method"]
    return [(row["contrast"], row["recipe_a"], row["recipe_b"], row["selection"]) for row in found]


def test_methods_that_are_compared():
    methods = ("none", "full", "lora", "qlora")
    rows = method_rows(*((name, name, name) for name in methods))
    recipes = {name: {"swept": {}} for name in methods}
    assert [contrast for contrast, *_ in told_methods(rows, recipes)] == [
        "lora - full", "qlora - full", "qlora - lora", "full - none", "lora - none", "qlora - none",
    ]  # fmt: skip
    assert told_methods(method_rows(("a", "a", "full"), ("b", "b", "full")), recipes) == []


def test_methods_are_compared_where_they_agree_in_what_either_sweeps():
    recipes = {
        "f.1": {"learning_rate": 1, "swept": {"learning_rate": 1}},
        "f.2": {"learning_rate": 2, "swept": {"learning_rate": 2}},
        # full has no rank, so that a rank does not tell a recipe from it
        "l.1.4": {"learning_rate": 1, "lora": {"r": 4}, "swept": {"learning_rate": 1, "lora.r": 4}},
        "l.2.8": {"learning_rate": 2, "lora": {"r": 8}, "swept": {"learning_rate": 2, "lora.r": 8}},
        # not swept, but the same as one that is
        "q": {"learning_rate": 2, "lora": {"r": 4}, "swept": {}},
    }
    rows = method_rows(
        ("f.1", "f", "full"), ("f.2", "f", "full"), ("l.1.4", "l", "lora"), ("l.2.8", "l", "lora"),
        ("q", "q", "qlora"),
    )  # fmt: skip
    assert told_methods(rows, recipes) == [
        ("lora - full", "l.1.4", "f.1", "equal"),
        ("lora - full", "l.2.8", "f.2", "equal"),
        ("qlora - full", "q", "f.2", "equal"),
    ]


def test_methods_are_compared_at_the_same_size_of_training():
    names = ("full", "lora", "full.train_size=20", "lora.train_size=20")
    methods = [name.partition(".")[0] for name in names]
    rows = method_rows(*zip(names, names, methods, strict=True), ("none", "none", "none"))
    rows = [changed(row, train_size=20 if "=" in row.recipe else 90) for row in rows]
    recipes = {name: {"swept": {}} for name in (*names, "none")}
    compared = [(a, b) for _, a, b, _ in told_methods(rows, recipes)]
    assert compared == [
        ("lora", "full"), ("lora.train_size=20", "full.train_size=20"), ("full", "none"),
        ("full.train_size=20", "none"), ("lora", "none"), ("lora.train_size=20", "none"),
    ]  # fmt: skip


def test_the_best_of_a_family_is_compared_with_the_only_one_of_another():
    equal = method_rows(
        ("l.1", "l", "lora"), ("l.2", "l", "lora"), ("none", "none", "none"), ("f", "f", "full")
    )
    best = method_rows(("l.2", "l", "lora"), selection="best")
    recipes = {name: {"learning_rate": name, "swept": {"learning_rate": name}} for name in ("l.1", "l.2")}
    recipes |= {"none": {"swept": {}}, "f": {"learning_rate": 3, "swept": {}}}
    assert told_methods(equal + best, recipes) == [
        ("full - none", "f", "none", "equal"),
        ("lora - none", "l.1", "none", "equal"),
        ("lora - none", "l.2", "none", "equal"),
        ("lora - full", "l.2", "f", "best"),
        ("lora - none", "l.2", "none", "best"),
    ]


def test_methods_are_compared_within_a_framework_an_init_and_a_metric():
    other = {"framework": "fairseq"}, {"init": "random"}, {"metric": "f1"}, {"test_set": "without leaks"}
    recipes = {name: {"swept": {}} for name in ("full", "lora")}
    full, lora = method_rows(("full", "full", "full"), ("lora", "lora", "lora"))
    assert len(told_methods([full, lora], recipes)) == 1
    for change in other:
        assert told_methods([full, changed(lora, **change)], recipes) == []


# --- equivalence ---


def frameworks(a: np.ndarray, b: np.ndarray) -> Row:
    made = Made().add("x/m/fairseq/pretrained/lab", a).add("x/m/transformers/pretrained/lab", b)
    return made.contrasts()[0]


def right(counts: list[int], examples: int = 1000) -> np.ndarray:
    return np.arange(examples) < np.array(counts)[:, None]


def test_equivalent_different_and_inconclusive():
    same = frameworks(right([800, 801, 799]), right([801, 800, 799]))
    assert (same["equivalence"], same["p_equivalence"] < 0.05) == ("equivalent", True)
    other = frameworks(right([800, 801, 799]), right([601, 600, 599]))
    assert (other["equivalence"], other["ci_low"] > 0) == ("different", True)
    unclear = frameworks(right([800, 850, 750]), right([790, 830, 760]))
    assert (unclear["equivalence"], unclear["p_equivalence"] > 0.05) == ("inconclusive", True)
    assert unclear["ci_low"] < 0 < unclear["ci_high"]


def test_frameworks_alike_over_seeds_are_not_equivalent_where_few_examples_tell():
    # each is wrong about 200 of 1,000 examples, in nearly the same ones whatever the seed, but in others
    a = np.arange(1000) >= np.array([[200], [201], [199]])
    b = a[:, ::-1]
    row = frameworks(a, b)
    error = np.sqrt(2) * stats.sem(a.mean(axis=1))
    over_seeds = stats.t.sf((row["margin"] - abs(row["delta"])) / error, 4)
    assert over_seeds < 0.05 < row["p_equivalence"]
    assert row["equivalence"] == "inconclusive"


def test_frameworks_whose_seeds_all_agree_can_differ_by_their_examples():
    row = frameworks(right([800, 800, 800]), right([400, 400, 400]))
    assert (row["equivalence"], row["t_low"], row["ci_low"] > 0) == ("different", None, True)


def test_equivalence_of_own_bests_carries_the_choice():
    made = Made()
    draw = np.random.default_rng(0)
    for number, (framework, levels) in enumerate({"fairseq": (0.8, 0.6), "transformers": (0.8, 0.8)}.items()):
        for recipe, level in zip(("lab.x=1", "lab.x=2"), levels, strict=True):
            validation = draw.random((4, VALIDATION)) < 0.8
            made.add(f"x/m/{framework}/pretrained/{recipe}", scores(level, seeds=4, seed=number), validation)
    rows = [row for row in made.contrasts() if row["family"] == "framework"]
    (best,) = [row for row in rows if row["selection"] == "best"]
    (same,) = [row for row in rows if row["selection"] == "equal" and row["recipe_a"] == best["recipe_a"]]
    assert best["recipe_b"] == best["recipe_a"]
    of_choice = best["standard_error"] ** 2 - same["standard_error"] ** 2
    assert of_choice > 0
    halves = [(row["equivalence_high"] - row["equivalence_low"]) / 2 for row in (best, same)]
    expected = np.sqrt(halves[1] ** 2 + stats.norm.ppf(0.95) ** 2 * of_choice)
    assert halves[0] == pytest.approx(expected, rel=0.1)
    given = best["given_low"], best["given_high"]
    assert given == pytest.approx((same["ci_low"], same["ci_high"]), abs=0.08 * (given[1] - given[0]))


def test_shares_of_a_choice_are_told_by_recipe():
    made = Made()
    for recipe, right_ones in (("lab.x=1", 1.0), ("lab.x=2", 0.0)):
        validation = np.full((3, VALIDATION), bool(right_ones))
        made.add(f"x/m/fairseq/random/{recipe}", scores(0.7), validation)
    made.add("x/m/fairseq/random/alone", scores(0.7))
    assert made.shares() == {
        ("x", "m", "fairseq", "random", "lab.x=1"): 1.0,
        ("x", "m", "fairseq", "random", "lab.x=2"): 0.0,
    }


def test_equivalence_is_asked_of_frameworks_only():
    (row,) = two_inits().contrasts()
    assert [row[name] for name in ("margin", "p_equivalence", "equivalence")] == [None] * 3


# --- crossed seeds ---


CROSSED = [(init, data) for init in (0, 1, 2) for data in (0, 1)]


def test_crossed_seeds_are_tested_over_the_factor_with_fewer_levels():
    made = Made()
    made.add("x/m/fairseq/pretrained/lab", right([800, 812, 830, 845, 815, 829]), seeds=CROSSED)
    made.add("x/m/fairseq/random/lab", right([600, 601, 603, 604, 601, 600]), seeds=CROSSED)
    (row,) = made.contrasts()
    assert (row["n_a"], row["paired"]) == (6, True)
    # two-way: init seeds, data seeds, and what both count of the rest, which is taken off once
    table = np.array([run["test_accuracy"] for run in made.runs]).reshape(2, 3, 2)
    gains = table[0] - table[1]
    over_inits, over_datas = (np.var(gains.mean(axis=axis), ddof=1) for axis in (1, 0))
    rest = gains - gains.mean(axis=1, keepdims=True) - gains.mean(axis=0) + gains.mean()
    terms = [(over_inits / 3, 2), (over_datas / 2, 1), (-(rest**2).sum() / 2 / 6, 2)]
    variance = sum(value for value, _ in terms)
    degrees = max(1, variance**2 / sum(value**2 / degrees for value, degrees in terms))
    assert variance > max(terms)[0]
    half = stats.t.ppf(0.975, degrees) * np.sqrt(variance)
    assert (row["t_low"], row["t_high"]) == pytest.approx((row["delta"] - half, row["delta"] + half))
    assert row["p_exact"] == 0.5
    assert (row["test"], row["test_unit"], row["test_means"]) == ("sign-flip", "data seeds", 2)
    assert row["method"].endswith("exact sign-flip test over the means of 2 data seeds")
    assert row["ci_low"] is not None


@pytest.mark.parametrize(
    ("seeds", "kind", "values"),
    [
        ([(0, 0), (1, 1)], "seeds", [1, 2]),
        ([(0, 5), (1, 5), (2, 5)], "seeds", [1, 2, 3]),
        ([(0, 0), (0, 1), (1, 0), (1, 1)], "init seeds", [1.5, 3.5]),
        ([(0, 3), (1, 3), (2, 2)], "data seeds", [1.5, 3]),
    ],
)
def test_what_counts_as_independent(seeds, kind, values):
    found = over_units(dict(zip(seeds, range(1, 9), strict=False)))
    assert (found.kind, list(found.values.values())) == (kind, values)
    assert found.means == (None if kind == "seeds" else len(values))


# --- bad input ---


def test_one_seed_has_no_interval_and_no_test():
    made = Made()
    made.add("x/m/fairseq/pretrained/lab", scores(0.8, seeds=1))
    made.add("x/m/fairseq/random/lab", scores(0.6, seeds=1))
    (row,) = made.contrasts()
    empty = set(CONTRAST_COLUMNS) - {
        *("family", "dataset", "model", "dataset_b", "model_b", "metric", "test_set", "contrast", "a", "b"),
        *("recipe_a", "recipe_b", "selection", "paired", "n_a", "n_b", "delta", "method"),
        *("error_reduction", "probability_of_improvement", "interval"),
    }
    assert {name: row[name] for name in empty} == dict.fromkeys(empty)
    assert row["interval"] == "one seed"
    assert row["method"] == "one seed on a side: no interval and no test"


def test_identical_predictions_everywhere_have_no_interval():
    right = scores(0.7, seeds=1).repeat(3, axis=0)
    (row,) = Made().add("x/m/fairseq/pretrained/lab", right).add("x/m/fairseq/random/lab", right).contrasts()
    assert (row["delta"], row["p_exact"], row["probability_of_improvement"]) == (0, 1, 0.5)
    columns = (
        "ci_low",
        "ci_high",
        "bootstrap_low",
        "bootstrap_high",
        "standard_error",
        "t_low",
        "aso_eps_min",
        "p_value",
        "p_holm",
        "direction",
        "seed_correlation",
    )
    assert [row[name] for name in columns] == [None] * 11
    assert row["interval"] == "no spread"
    assert row["method"] == "no spread: no interval; exact sign-flip test over seeds"


def test_all_right_against_all_wrong_is_a_difference_of_one_without_spread():
    ones, zeros = np.ones((3, EXAMPLES), bool), np.zeros((3, EXAMPLES), bool)
    (row,) = Made().add("x/m/fairseq/pretrained/lab", ones).add("x/m/fairseq/random/lab", zeros).contrasts()
    assert (row["delta"], row["ci_low"], row["t_low"], row["p_exact"]) == (1, None, None, 0.25)
    assert (row["p_value"], row["direction"]) == (None, None)
    assert (row["probability_of_improvement"], row["aso_eps_min"]) == (1, 0)


def test_all_right_against_some_right_has_the_spread_of_the_other_side():
    made = Made()
    made.add("x/m/fairseq/pretrained/lab", np.ones((3, EXAMPLES), bool))
    made.add("x/m/fairseq/random/lab", scores(0.6))
    (row,) = made.contrasts()
    assert row["ci_low"] < row["delta"] < row["ci_high"]


def test_a_run_without_a_number_loses_ties_and_counts_as_wrong():
    made = Made()
    same = scores(0.7, examples=VALIDATION)
    made.add("x/m/fairseq/pretrained/lab.low", scores(0.9, seed=1), same)
    made.add("x/m/fairseq/pretrained/lab.high", scores(0.6, seed=2), same, loss=float("inf"))
    for recipe in ("low", "high"):
        made.add(f"x/m/fairseq/random/lab.{recipe}", scores(0.5, seed=3), same)
    made.runs = [
        changed(run, validation_loss=None) if run.value("validation_loss") > 1 else run for run in made.runs
    ]
    row = next(row for row in made.contrasts() if row["selection"] == "best")
    assert row["recipe_a"] == "lab.low"
    assert row["ci_low"] < row["delta"] < row["ci_high"]


def test_without_predictions_what_needs_them_is_empty():
    (known,), (row,) = two_inits().contrasts(), two_inits().contrasts(predicted=False)
    needed = {"ci_low", "ci_high", "bootstrap_low", "bootstrap_high", "standard_error", "se_seeds"}
    needed |= {"se_interaction", "se_examples"}
    assert {name: row[name] for name in needed} == dict.fromkeys(needed)
    for column in set(CONTRAST_COLUMNS) - needed - {"interval", "method", "p_value", "p_holm"}:
        assert row[column] == known[column], column
    a, b = ([run["test_accuracy"] for run in two_inits().runs[start : start + 3]] for start in (0, 3))
    assert row["p_value"] == row["p_holm"] == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert (known["interval"], row["interval"]) == ("over seeds and examples", "over seeds")
    assert row["method"] == (
        "no predictions: no Multi-Bootstrap, t interval over seeds only; exact sign-flip test over seeds"
    )


def test_holm_counts_the_same_two_cells_once():
    p_values = [0.01, 0.04, 0.01]
    rows = [
        dict.fromkeys(SAME_CELLS, "x") | {"recipe_a": recipe, "p": p}
        for recipe, p in zip("aba", p_values, strict=True)
    ]
    assert adjusted(rows, "p") == [0.02, 0.04, 0.02]
    families = [{**row, "family": family} for family in "xy" for row in rows[: 3 if family == "x" else 1]]
    assert adjusted(families, "p", family=("family",)) == [0.02, 0.04, 0.02, 0.01]


def test_a_family_of_equivalence_tests_is_corrected():
    made = Made()
    for recipe, shift in (("one", 0), ("two", 6)):
        made.add(f"x/m/fairseq/pretrained/{recipe}", right([800, 803, 797]))
        made.add(f"x/m/transformers/pretrained/{recipe}", right([800 + shift, 805 + shift, 795 + shift]))
    rows = [row for row in made.contrasts() if row["family"] == "framework"]
    p_values = [row["p_equivalence"] for row in rows]
    assert p_values[0] < 0.05 / 2 < p_values[1] < 0.05
    assert [row["p_equivalence_holm"] for row in rows] == pytest.approx([2 * p_values[0], p_values[1]])
    assert [row["equivalence"] for row in rows] == ["equivalent", "equivalent"]


# --- looks ---


def test_a_look_has_its_own_level_and_a_p_of_all_looks():
    made = two_inits()
    (row,), (fixed,) = made.contrasts(looks=[3, 5, 10]), made.contrasts()
    level = look_at(3, [3, 5, 10], 0.95).level
    (narrow,) = made.contrasts(confidence=1 - level, replicates=1000)
    assert (row["look"], row["looks"], fixed["look"]) == (1, 3, None)
    assert (row["fixed_low"], row["fixed_high"]) == (fixed["ci_low"], fixed["ci_high"])
    assert row["p_value"] >= fixed["p_value"] * 0.05 / level * (1 - 1e-5)
    # without credit for the interaction the interval is at least as wide
    assert row["ci_low"] <= narrow["ci_low"] < fixed["ci_low"] < fixed["ci_high"] < narrow["ci_high"]
    assert narrow["ci_high"] <= row["ci_high"]
    assert (row["t_low"], row["delta"]) == (narrow["t_low"], fixed["delta"])


@pytest.mark.parametrize(("level", "decided"), [(0.62, False), (0.95, True)])
def test_the_interval_of_a_look_leaves_zero_out_where_its_p_decides(level, decided):
    made = Made().add("x/m/fairseq/pretrained/lab", scores(level, seeds=8, seed=1))
    made.add("x/m/fairseq/random/lab", scores(0.6, seeds=8, seed=2))
    (row,) = made.contrasts(looks=[4, 8, 12])
    assert (row["ci_low"] > 0, row["p_value"] < 0.05, row["direction"] == "higher") == (decided,) * 3


def test_seeds_between_looks_and_other_families_have_the_level_of_fixed_numbers():
    made = two_inits()
    made.add("x/m/transformers/pretrained/lab", scores(0.8, seed=3))
    rows = made.contrasts(looks=[3, 5])
    assert [(row["family"], row["look"]) for row in rows] == [("init", 1), ("framework", None)]
    assert [row["look"] for row in two_inits().contrasts(looks=[4, 5])] == [None]
