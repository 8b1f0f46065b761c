"""Differences between the cells of an experiment, each with its intervals and tests: contrasts.csv.

The primary interval is the Multi-Bootstrap's over seeds and test examples. It needs predictions; where there
are none, as of results that others published, the columns that rest on them are empty.
"""

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seedbed.analysis import bootstrap, dominance, spread, statistics, verdicts
from seedbed.analysis.bootstrap import Candidate, Estimate, Seeds, Side, compare, compare_best
from seedbed.analysis.differences import (
    OF_GAINS,
    Contrast,
    How,
    estimate_without_collapsed,
    with_holm,
    with_verdict,
)
from seedbed.analysis.equal_recipes import equal_recipe
from seedbed.analysis.looks import Look, look_at
from seedbed.analysis.methods import (
    NO_SPREAD,
    ONE_SEED,
    OTHER_CHOICE,
    OVER_BOTH,
    OVER_SEEDS,
    UNDEFINED,
    method_text,
)
from seedbed.analysis.outputs import CellOutputs
from seedbed.analysis.predictions import UNDEFINED_LOSS, without_leaks
from seedbed.analysis.records import setting
from seedbed.analysis.sides import (
    SAME_CELLS,
    Seed,
    SideMaker,
    adjusted,
    combine,
    exact_test,
    gain_candidates,
    named_seed,
    pairing,
    seeds_of,
)
from seedbed.analysis.spread import CREDIT, NO_CREDIT
from seedbed.analysis.table_rows import RunRow, SummaryRow, seed_values, value_column
from seedbed.core.known import all_known, known
from seedbed.core.rows import CELL, Row, grouped
from seedbed.core.seeds import independent_seeds
from seedbed.core.tasks import METRICS, task_of

CONTRAST_COLUMNS = (
    "family",
    "dataset",
    "model",
    "dataset_b",
    "model_b",
    "metric",
    "test_set",
    "contrast",
    "a",
    "b",
    "recipe_a",
    "recipe_b",
    "selection",
    "paired",
    "n_a",
    "n_b",
    "delta",
    "error_reduction",
    "ci_low",
    "ci_high",
    "p_value",
    "p_holm",
    "direction",
    "given_low",
    "given_high",
    "bootstrap_low",
    "bootstrap_high",
    "standard_error",
    "se_seeds",
    "se_interaction",
    "se_examples",
    "t_low",
    "t_high",
    "seed_correlation",
    "pairing_ratio",
    "p_exact",
    "margin",
    "p_equivalence",
    "p_equivalence_holm",
    "equivalence_low",
    "equivalence_high",
    "equivalence",
    "probability_of_improvement",
    "aso_eps_min",
    "interval",
    "test",
    "test_unit",
    "test_means",
    "method",
    "no_verdict",
    "delta_without_collapsed",
    "ci_low_without_collapsed",
    "ci_high_without_collapsed",
)
# the bounds of a contrast's intervals
ENDS = tuple(
    f"{name}_{end}"
    for name in ("ci", "given", "bootstrap", "t", "equivalence", "fixed")
    for end in ("low", "high")
)
TESTED_TOGETHER = ("family", "test_set", "metric")  # columns in which the rows of one family of tests agree
# Resampled means that are kept for further contrasts, in bytes; beyond it they are made anew.
MAX_KEPT = 640 * 2**20
# Largest disagreement of two ways to compute one difference that rounding explains, of values up to 1;
# relative to the values of those that are larger.
ROUNDING = 1e-6
# Which methods are compared, and which of two is subtracted.
METHOD_PAIRS = (
    ("bitfit", "full"),
    ("last_layers", "full"),
    ("head", "full"),
    ("lora", "full"),
    ("qlora", "full"),
    ("qlora", "lora"),
    ("full", "none"),
    ("lora", "none"),
    ("qlora", "none"),
)

# the family of systems that Seedbed did not train; a recipe stands for a system
SYSTEM = "system"
# metrics of which 1 - value is a share of errors
SHARES_OF_RIGHT = ("accuracy", "token_accuracy", "exact_match")

PLACE = CELL[:-1]
MEASURE = ("metric", "test_set")

Key = tuple[str, ...]
Cells = Mapping[Key, CellOutputs]


@dataclass(frozen=True)
class Pair:
    """Two sides whose difference is to be made: a minus b.

    Each side is one row of the summary; or two, of the pretrained and the random init, whose difference (the
    gain of pretraining) counts. `exchangeable` says whether runs of one seed on a dataset are pairs.
    """

    family: str
    a: tuple[SummaryRow, ...]
    b: tuple[SummaryRow, ...]
    exchangeable: bool = True

    @property
    def names(self) -> Row:
        """The columns that tell it from all others."""
        (a, *_), (b, *_) = self.a, self.b
        return {
            "family": self.family,
            **{key: a[key] for key in ("dataset", "model")},
            **{f"{key}_b": b[key] for key in ("dataset", "model")},
            **{key: a[key] for key in ("metric", "test_set")},
            "contrast": f"{self._word(self.a)} - {self._word(self.b)}",
            "a": _label(self.a),
            "b": _label(self.b),
            "recipe_a": _recipe(self.a),
            "recipe_b": _recipe(self.b),
            # of a family with one recipe, that is its best
            "selection": "best" if "best" in (a.selection, b.selection) else "equal",
        }

    def _word(self, side: tuple[SummaryRow, ...]) -> str:
        if self.family == "dataset":
            return f"gain on {side[0].dataset}"
        if self.family == "recipe":
            return "gain at own best" if side is self.a else "gain at reference"
        return side[0].recipe if self.family == SYSTEM else side[0][self.family]


def _label(side: tuple[SummaryRow, ...]) -> str:
    return f"{side[0].framework}/{'gain' if len(side) > 1 else side[0].init}"


def _recipe(side: tuple[SummaryRow, ...]) -> str:
    """The recipe of a side; of a gain whose inits have their own, both: PRETRAINED/RANDOM."""
    return "/".join(dict.fromkeys(row.recipe for row in side))


def contrast(
    runs: Sequence[RunRow],
    summary: Sequence[SummaryRow],
    reporting: Mapping[str, Any],
    sides: "Sides | None" = None,
) -> list[Contrast]:
    """All differences of the experiment, rows of contrasts.csv, by family:

    - init: pretrained - random within each framework, at each equal recipe and at each side's own best of a
      swept family;
    - framework: fairseq - transformers within each init, at equal recipes and at each side's own best;
    - model: every two models, all else equal, and at each side's own best;
    - dataset: the gain of pretraining on one dataset minus that on another, for every two datasets, at equal
      recipes and with the best recipe of each init on each dataset;
    - recipe: the gain of pretraining with the best recipe of each init of a swept family, minus that at the
      family's equal recipe (see `equal_recipes`): what becomes of a gain when each init has its own;
    - method: the METHOD_PAIRS, such as lora - full, all else equal: recipes that agree in all that one of
      them sweeps and the other has, too; and at each family's own best. Method none trains nothing and has
      one recipe, with which every other is compared. Other methods are compared at the same size of training.

    For every reported metric; a difference is a minus b as it is, so that of a loss, less is better.

    Runs of one seed on a dataset are pairs, which are exchangeable: within a framework they see the examples
    in the same order, and of two frameworks they share the weights that the init seed draws. The correlation
    over seeds says what that buys. Where init seeds and data seeds are crossed, runs that share one are not
    independent: t intervals have the error of both, and exact tests run over the means of the factor with
    fewer levels, given those of the other. p is of the primary interval; without predictions, of the one over
    seeds. p-values, those of equivalence too, are adjusted by Holm's method within each family and metric,
    those on the whole test set and those without leaks apart: the second ask the same questions again. A
    difference has a direction where the adjusted p is below the level.

    Where a run of a side has no finite loss, neither has the side a mean: the row has no difference, interval
    or test, and says so; only its probability of improvement is told, for which that run is the worst.

    Where seeds are added until a question is decided (`until`), differences of inits have the level of their
    look (`looks`), and a p that counts all looks.

    Intervals are cut at what is possible. `no_verdict` says why a difference bears no verdict whatever its
    interval (see `verdicts.no_verdict`), and is empty where it may; the frameworks are then inconclusive.
    Where some runs of a cell collapsed, the last three columns have the difference without them and its
    interval, for the recipes as chosen.

    Args:
        runs: rows of runs.csv.
        summary: rows of summary.csv.
        reporting: `Plan.reporting()`; its `statistics` are read.
        sides: the cells with their predictions; None where these are not known.
    """
    by_cell = grouped(runs, *CELL)
    references = {family: equal_recipe(family, reporting) for family in reporting.get("ranges", {})}
    listed = list_contrasts(summary, reporting["recipes"], references)
    chosen = [one for one in listed if _has_pairs_of_inits(one, by_cell)]
    looks = reporting.get("until", {}).get("looks", ())
    return contrast_pairs(chosen, runs, summary, reporting["statistics"], sides, looks)


def contrast_pairs(
    pairs: Sequence[Pair],
    runs: Sequence[RunRow],
    summary: Sequence[SummaryRow],
    settings: Mapping[str, Any],
    sides: "Sides | None" = None,
    looks: Sequence[int] = (),
) -> list[Contrast]:
    """The differences of these pairs, a row each, whoever listed them. Rules: see `contrast`.

    Args:
        pairs: whose p-values are adjusted over each family and metric.
        runs, summary: the rows behind them.
        settings: the config's `statistics`.
        sides: the cells with their predictions or scores; None where these are not known. Of a pair whose
            cells it does not have, the interval is over seeds alone.
        looks: numbers of seeds at which an experiment looks whether a question is decided; none for a fixed
            number.
    """
    by_cell = grouped(runs, *CELL)
    comparisons = Counter(_tested_together(one) for one in pairs)
    families = _recipes_of_families(summary)
    of_pairs = [sides if sides is not None and sides.has(one) else None for one in pairs]
    own_settings = [_settings_of(one, by_cell, settings, looks) for one in pairs]
    rows = []
    for one, outputs, own in zip(pairs, of_pairs, own_settings, strict=True):
        over_seeds = _over_seeds(one, by_cell, own, comparisons[_tested_together(one)])
        estimate = _estimate(one, over_seeds, outputs, families, own)
        rows.append(_finish(over_seeds, estimate, outputs is not None, own))
    adjusted_rows = _with_holm(rows, settings["confidence"])
    return [
        _with_verdict(row, one, by_cell, outputs, own)
        for one, outputs, own, row in zip(pairs, of_pairs, own_settings, adjusted_rows, strict=True)
    ]


def _settings_of(
    one: Pair,
    by_cell: Mapping[Key, Sequence[RunRow]],
    settings: Mapping[str, Any],
    looks: Sequence[int],
) -> Mapping[str, Any]:
    """The config's `statistics` for a difference; of one that decides whether there will be more seeds, with
    its `look` and the confidence of that."""
    seeds = min(len(by_cell[row.cell]) for side in (one.a, one.b) for row in side)
    look = look_at(seeds, looks, settings["confidence"]) if one.family == "init" else None
    return settings if look is None else {**settings, "confidence": look.confidence, "look": look}


def _with_holm(rows: Sequence[Contrast], confidence: float) -> list[Contrast]:
    """The rows with adjusted p-values, and with the direction that these allow."""
    # both carry the choice of each side's best, so that a best and an equal recipe are two tests
    same = (*SAME_CELLS, "selection")
    differing = adjusted(rows, "p_value", same, family=TESTED_TOGETHER)
    equivalent = adjusted(rows, "p_equivalence", same, family=TESTED_TOGETHER)
    return [
        with_holm(replace(row, p_equivalence_holm=p_equivalence), p_value, confidence)
        for row, p_value, p_equivalence in zip(rows, differing, equivalent, strict=True)
    ]


def _tested_together(one: Pair) -> Key:
    return one.family, one.a[0].test_set, one.a[0].metric


def choice_shares(
    summary: Sequence[SummaryRow], reporting: Mapping[str, Any], sides: "Sides"
) -> dict[Key, float]:
    """How often validation would choose each recipe of a swept family, by cell: the share of replicates that
    draw seeds and validation examples anew. Args: see `contrast`."""
    settings, metric = reporting["statistics"], task_of(reporting).selection
    shares: dict[Key, float] = {}
    for place, recipes in _recipes_of_families(summary).items():
        if len(recipes) > 1:
            keys = [(*place[:-1], recipe) for recipe in recipes]
            candidates = [sides.candidate(key, "all", metric) for key in keys]
            chosen = bootstrap.choice_shares(candidates, named_seed(settings, place))
            shares.update(zip(keys, chosen, strict=True))
    return shares


# --- which differences --------------------------------------------------------------------------------------


def list_contrasts(
    summary: Sequence[SummaryRow],
    recipes: Mapping[str, Mapping[str, Any]] | None = None,
    references: Mapping[str, str] | None = None,
) -> list[Pair]:
    """The contrasts of all families, in the order of the summary.

    Args:
        summary: rows of summary.csv.
        recipes: as in `Plan.reporting()`; without them, contrasts of methods are left out.
        references: the equal recipe of each family where it is not the first.
    """
    equal = [row for row in summary if row.selection == "equal"]
    best = [row for row in summary if row.selection == "best"]
    both = ((equal, "recipe"), (best, "recipe_family"))
    found = [one for rows, recipe in both for one in _of_inits(rows, recipe)]
    found += [one for rows, recipe in both for one in _of_frameworks(rows, recipe)]
    found += [one for rows, recipe in both for one in _of_models(rows, recipe)]
    found += [one for rows, recipe in both for one in _of_datasets(rows, recipe)]
    found += _of_recipes(equal, best, references or {})
    found += _of_methods(equal, recipes or {})
    found += _of_methods_at_best([row for row in summary if row.selection in ("equal", "best")])
    return found


def _of_inits(rows: Sequence[SummaryRow], recipe: str) -> Iterator[Pair]:
    for pretrained, random in _pairs_of_inits(rows, recipe):
        yield Pair("init", (pretrained,), (random,))


def _pairs_of_inits(rows: Sequence[SummaryRow], recipe: str) -> Iterator[tuple[SummaryRow, SummaryRow]]:
    for group in grouped(rows, "dataset", "model", *MEASURE, recipe, "framework").values():
        inits = {row.init: row for row in group}
        if {"pretrained", "random"} <= set(inits):
            yield inits["pretrained"], inits["random"]


def _of_frameworks(rows: Sequence[SummaryRow], recipe: str) -> Iterator[Pair]:
    for group in grouped(rows, "dataset", "model", *MEASURE, recipe, "init").values():
        frameworks = {row.framework: row for row in group}
        if {"fairseq", "transformers"} <= set(frameworks):
            yield Pair("framework", (frameworks["fairseq"],), (frameworks["transformers"],))


def _of_models(rows: Sequence[SummaryRow], recipe: str) -> Iterator[Pair]:
    for group in grouped(rows, "dataset", *MEASURE, recipe, "framework", "init").values():
        for a, b in itertools.combinations(group, 2):
            yield Pair("model", (a,), (b,))


def _of_datasets(rows: Sequence[SummaryRow], recipe: str) -> Iterator[Pair]:
    gains: dict[Key, list[tuple[SummaryRow, SummaryRow]]] = {}
    for pretrained, random in _pairs_of_inits(rows, recipe):
        key = tuple(pretrained[name] for name in ("model", *MEASURE, recipe, "framework"))
        gains.setdefault(key, []).append((pretrained, random))
    for group in gains.values():
        for a, b in itertools.combinations(group, 2):
            yield Pair("dataset", a, b)


def _of_recipes(
    equal: Sequence[SummaryRow], best: Sequence[SummaryRow], references: Mapping[str, str]
) -> Iterator[Pair]:
    """The gain at each init's own best recipe, and at the equal recipe of the family."""
    same = (*PLACE[:-1], *MEASURE, "recipe_family")
    first: dict[Key, tuple[SummaryRow, SummaryRow]] = {}
    for gain in _pairs_of_inits(equal, "recipe"):
        if gain[0].recipe == references.get(gain[0].recipe_family, gain[0].recipe):
            first.setdefault(tuple(gain[0][name] for name in same), gain)
    for gain in _pairs_of_inits(best, "recipe_family"):
        at_equal = first.get(tuple(gain[0][name] for name in same))
        if at_equal is not None:
            yield Pair("recipe", gain, at_equal)


def _of_methods(rows: Sequence[SummaryRow], recipes: Mapping[str, Mapping[str, Any]]) -> Iterator[Pair]:
    """Recipes of two methods that agree in what either sweeps."""
    for group in grouped(rows, *PLACE, *MEASURE).values():
        for a, b in _pairs_of_methods(group):
            if "none" in (a.method, b.method) or _agree(recipes.get(a.recipe), recipes.get(b.recipe)):
                yield Pair("method", (a,), (b,))


def _of_methods_at_best(rows: Sequence[SummaryRow]) -> Iterator[Pair]:
    """The best of two families of recipes, of which one or both have several."""
    for group in grouped(rows, *PLACE, *MEASURE).values():
        best = []
        for members in grouped(group, "recipe_family").values():
            chosen = [row for row in members if row.selection == "best"]
            best += chosen or (members if len(members) == 1 else [])
        for a, b in _pairs_of_methods(best):
            if "best" in (a.selection, b.selection):
                yield Pair("method", (a,), (b,))


def _pairs_of_methods(rows: Sequence[SummaryRow]) -> Iterator[tuple[SummaryRow, SummaryRow]]:
    by_method = {method: members for (method,), members in grouped(rows, "method").items()}
    for first, second in METHOD_PAIRS:
        for a, b in itertools.product(by_method.get(first, []), by_method.get(second, [])):
            # what trains nothing has no size, and is compared with each
            if a.train_size == b.train_size or "none" in (first, second):
                yield a, b


def _agree(a: Mapping[str, Any] | None, b: Mapping[str, Any] | None) -> bool:
    """Whether two recipes have the same value of whatever either sweeps, as far as both have it."""
    if a is None or b is None:
        return False
    pairs = ((setting(a, key), setting(b, key)) for key in (*a["swept"], *b["swept"]))
    return all(None in pair or pair[0] == pair[1] for pair in pairs)


def _has_pairs_of_inits(one: Pair, by_cell: Mapping[Key, Sequence[RunRow]]) -> bool:
    """Whether both inits of each gain have the same seeds: a gain is the difference of pairs of runs."""
    return all(
        len({frozenset(_values_of_cell(row, by_cell)) for row in side}) == 1 for side in (one.a, one.b)
    )


def _recipes_of_families(summary: Sequence[SummaryRow]) -> dict[Key, list[str]]:
    """The recipes that a side may choose from, by (dataset, model, framework, init, recipe family)."""
    rows = [row for row in summary if row.selection == "equal"]
    groups = grouped(rows, *PLACE, "recipe_family")
    return {key: list(dict.fromkeys(row.recipe for row in group)) for key, group in groups.items()}


# --- over seeds alone ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _OverSeeds:
    """What a contrast tells without any predictions.

    Attributes:
        columns: those that need none.
        error: standard error of the difference over seeds, and its degrees of freedom.
        scale: of the values: the largest, and no less than 1.
    """

    columns: dict[str, Any]
    error: tuple[float, float] | None
    scale: float = 1.0


def _over_seeds(
    one: Pair, by_cell: Mapping[Key, Sequence[RunRow]], settings: Mapping[str, Any], comparisons: int
) -> _OverSeeds:
    told_a, told_b = (_values(side, by_cell) for side in (one.a, one.b))
    paired = _is_paired(one) and set(told_a) == set(told_b)
    if None in (*told_a.values(), *told_b.values()):
        return _OverSeeds(_undefined_columns(one, told_a, told_b, paired), None)
    a, b = all_known(told_a), all_known(told_b)
    error = _seed_error(a, b, paired=paired)
    left, right = list(a.values()), list(b.values())
    better = [[METRICS[one.a[0].metric].direction * value for value in side] for side in (left, right)]
    delta = statistics.mean(left) - statistics.mean(right)
    interval = error and _t_interval(delta, error, settings["confidence"])
    columns = {
        **one.names,
        "paired": paired,
        "n_a": len(a),
        "n_b": len(b),
        "delta": delta,
        "error_reduction": _error_reduction(one, delta, statistics.mean(right)),
        "t_low": interval and interval[0],
        "t_high": interval and interval[1],
        **(pairing(a, b) if paired else {}),
        **exact_test(a, b, paired=paired).columns,
        "margin": _margin(one, settings),
        "probability_of_improvement": dominance.probability_of_improvement(*better),
        "aso_eps_min": dominance.aso_eps_min(
            *better,
            confidence=settings["confidence"],
            comparisons=comparisons,
            replicates=settings["replicates"],
            seed=named_seed(settings, one.names),
        ),
    }
    return _OverSeeds(columns, error, max(1.0, *map(abs, left), *map(abs, right)))


def _error_reduction(one: Pair, delta: float, mean_b: float) -> float | None:
    """How much smaller side a's share of errors is, relative to that of b; negative where it is larger.

    None where errors are not counted, as of a loss or of gains, and where b has none.
    """
    errors = 1 - mean_b
    if one.a[0].metric not in SHARES_OF_RIGHT or len(one.b) > 1 or errors < ROUNDING:
        return None
    return delta / errors


def _undefined_columns(
    one: Pair, a: Mapping[Seed, float | None], b: Mapping[Seed, float | None], paired: bool
) -> dict[str, Any]:
    """The columns of a difference that is none, since a run of a side has no finite loss."""
    direction = METRICS[one.a[0].metric].direction
    better = [
        [-UNDEFINED_LOSS if value is None else direction * value for value in side.values()]
        for side in (a, b)
    ]
    improvement = None if len(one.a) > 1 else dominance.probability_of_improvement(*better)
    return {
        **one.names,
        "delta": None,
        "paired": paired,
        "n_a": len(a),
        "n_b": len(b),
        "probability_of_improvement": improvement,
    }


def _is_paired(one: Pair) -> bool:
    """Whether runs of one seed belong together: they share the order of examples, or drawn weights."""
    (a, *_), (b, *_) = one.a, one.b
    return one.exchangeable and a.dataset == b.dataset


def _values(
    side: tuple[SummaryRow, ...], by_cell: Mapping[Key, Sequence[RunRow]]
) -> dict[Seed, float | None]:
    """Test value by seed of a side; the difference of its two rows where it is a gain."""
    values = [_values_of_cell(row, by_cell) for row in side]
    if len(values) == 1:
        return values[0]
    return {
        seed: None if value is None or (other := values[1][seed]) is None else value - other
        for seed, value in values[0].items()
    }


def _values_of_cell(row: SummaryRow, by_cell: Mapping[Key, Sequence[RunRow]]) -> dict[Seed, float | None]:
    return seed_values(by_cell[row.cell], value_column(row))


def _seed_error(
    a: Mapping[Seed, float], b: Mapping[Seed, float], *, paired: bool
) -> tuple[float, float] | None:
    """Standard error of mean(a) - mean(b) over seeds, and its degrees of freedom; None with one seed a side,
    and without any spread. Not paired: after Welch (1947)."""
    if min(len(a), len(b)) < 2:
        return None
    if paired:
        return spread.seed_error([value - b[seed] for seed, value in a.items()], tuple(a))
    known = [error for side in (a, b) if (error := spread.seed_error(list(side.values()), tuple(side)))]
    if not known:
        return None
    variance = sum(error**2 for error, _ in known)
    return math.sqrt(variance), variance**2 / sum(error**4 / degrees for error, degrees in known)


def _t_interval(delta: float, error: tuple[float, float], confidence: float) -> statistics.Bounds:
    half = statistics.t_quantile(confidence, error[1]) * error[0]
    return delta - half, delta + half


def _margin(one: Pair, settings: Mapping[str, Any]) -> float | None:
    """The margin of equivalence: of the frameworks only, which are meant to do the same."""
    return settings["equivalence_margin"][one.a[0].init] if one.family == "framework" else None


# --- over seeds and examples --------------------------------------------------------------------------------


class Sides:
    """The cells of an experiment as sides of the Multi-Bootstrap.

    Cells on the same examples share the draws of examples, and a cell in several contrasts is resampled once.

    Args:
        by_cell: runs of each cell, in the order of the rows of its predictions.
        cells: what the models returned, by split and cell.
        leaks: ids of each dataset's leaked test examples.
        settings: the config's `statistics`.
    """

    def __init__(
        self,
        by_cell: Mapping[Key, Sequence[RunRow]],
        cells: Mapping[str, Cells],
        leaks: Mapping[str, Collection[str]],
        settings: Mapping[str, Any],
    ):
        self._by_cell, self._cells, self._leaks = by_cell, cells, leaks
        seeds = max((len(runs) for runs in by_cell.values()), default=1)
        kept = max(2, MAX_KEPT // (4 * settings["replicates"] * seeds))
        self._sides = SideMaker(settings)
        self._kept = functools.cache(self._make_kept)
        self.test: Callable[[Key, str, str], Side] = functools.lru_cache(kept)(self._make_test)
        # only the recipes of one family are chosen among at a time
        self._validation = functools.lru_cache(max(1, kept // 4))(self._make_validation)

    def has(self, one: Pair) -> bool:
        """Whether the outputs of both sides of a pair are known."""
        return all(row.cell in self._cells["test"] for row in (*one.a, *one.b))

    def candidate(self, key: Key, test_set: str, metric: str) -> Candidate:
        """The cell as what a side may choose: its scores on test and on validation."""
        validation, tie_break = self._validation(key)
        return Candidate(self.test(key, test_set, metric), validation, tie_break)

    def outputs(self, key: Key, test_set: str) -> CellOutputs:
        """The outputs of a cell on a test set."""
        return self._of_test_set(self._cells["test"][key], key[0], test_set)

    def beside(self, key: Key, outputs: CellOutputs, test_set: str, metric: str) -> Side:
        """Outputs of something other than runs, such as a bag of words, as a side that is paired with a cell.

        Args:
            key: the cell.
            outputs: on all test examples of the cell, with a row for each of its runs.
            test_set, metric: see `test`.
        """
        kept = self._of_test_set(outputs, key[0], test_set)
        return self._sides.side(kept, metric, self._seeds(key), key[0], "test", test_set)

    def _make_test(self, key: Key, test_set: str, metric: str) -> Side:
        return self.beside(key, self._cells["test"][key], test_set, metric)

    def _of_test_set(self, outputs: CellOutputs, dataset: str, test_set: str) -> CellOutputs:
        return outputs if test_set == "all" else outputs.keep(known(self._kept(dataset)))

    def _make_validation(self, key: Key) -> tuple[Side, Side]:
        cell = self._cells["validation"][key]
        return self._sides.validation(cell, self._seeds(key), key[0], "validation", "all")

    def _make_kept(self, dataset: str) -> np.ndarray | None:
        ids = next(cell.ids for key, cell in self._cells["test"].items() if key[0] == dataset)
        return without_leaks(ids, self._leaks.get(dataset, ()))

    def _seeds(self, key: Key) -> Seeds:
        return seeds_of(self._by_cell[key])


def sides_of(
    runs: Sequence[RunRow],
    reporting: Mapping[str, Any],
    cells: Mapping[str, Cells],
    leaks: Mapping[str, Collection[str]],
) -> Sides:
    """The cells of an experiment as sides.

    Args:
        runs: rows of runs.csv.
        reporting: `Plan.reporting()`.
        cells: predictions by split (validation, test) and cell.
        leaks: ids of each dataset's leaked test examples.
    """
    return Sides(grouped(runs, *CELL), cells, leaks, reporting["statistics"])


def _estimate(
    one: Pair,
    over_seeds: _OverSeeds,
    sides: Sides | None,
    families: Mapping[Key, Sequence[str]],
    settings: Mapping[str, Any],
) -> Estimate | None:
    if sides is None or over_seeds.columns["delta"] is None:
        return None
    how = _how(one, over_seeds.columns["paired"], settings)
    if one.names["selection"] == "equal":
        return compare(_test_side(one.a, sides), _test_side(one.b, sides), **how)
    return compare_best(_candidates(one.a, sides, families), _candidates(one.b, sides, families), **how)


def _how(one: Pair, paired: bool, settings: Mapping[str, Any]) -> How:
    seed = named_seed(settings, one.names)
    credit = NO_CREDIT if "look" in settings else CREDIT
    return {"paired": paired, "confidence": settings["confidence"], "seed": seed, "credit": credit}


def _test_side(side: tuple[SummaryRow, ...], sides: Sides) -> Side:
    tested = [sides.test(row.cell, row.test_set, row.metric) for row in side]
    return tested[0] if len(tested) == 1 else combine(tested[0], tested[1], -1)


def _candidates(
    side: tuple[SummaryRow, ...], sides: Sides, families: Mapping[Key, Sequence[str]]
) -> list[Candidate]:
    """What a side may choose: of a best recipe all of its family, else the one that it has."""
    choices = []
    for row in side:
        place = tuple(row[name] for name in PLACE)
        recipes = families[*place, row.recipe_family] if row.selection == "best" else [row.recipe]
        choices.append([sides.candidate((*place, recipe), row.test_set, row.metric) for recipe in recipes])
    return choices[0] if len(choices) == 1 else gain_candidates(*choices)


# --- the row ------------------------------------------------------------------------------------------------


def _finish(
    over_seeds: _OverSeeds, estimate: Estimate | None, predicted: bool, settings: Mapping[str, Any]
) -> Contrast:
    """The row with the estimate's columns, equivalence and how it was made; not yet adjusted or cut."""
    delta = over_seeds.columns["delta"]
    # the choice of the summary rests on the losses that the runs told, that of the estimate on predictions
    agreed = estimate is None or abs(known(estimate.delta) - delta) < ROUNDING * over_seeds.scale
    if estimate is None or not agreed:
        estimate = Estimate(delta)
    confidence = settings["confidence"]
    error = None if predicted else over_seeds.error
    row = Contrast(
        **over_seeds.columns,
        ci_low=estimate.low,
        ci_high=estimate.high,
        p_value=statistics.t_p(delta, *error) if error else estimate.p_value,
        given_low=estimate.given_low,
        given_high=estimate.given_high,
        bootstrap_low=estimate.percentile_low,
        bootstrap_high=estimate.percentile_high,
        standard_error=estimate.standard_error,
        se_seeds=estimate.se_seeds,
        se_interaction=estimate.se_interaction,
        se_examples=estimate.se_examples,
        interval=_kind_of_interval(over_seeds.columns, estimate, predicted, agreed),
    )
    if "look" in settings:
        row = _with_look(row, estimate, settings["look"])
    if row.margin is not None and delta is not None:
        row = _with_equivalence(row, row.margin, estimate, error, confidence)
    return replace(row, method=method_text(row, settings["replicates"]))


def _with_look(row: Contrast, estimate: Estimate, look: Look) -> Contrast:
    """The row with its look, p of all looks together, and the interval if its number of seeds had been fixed
    before."""
    scaled = estimate.scaled
    fixed = (None, None) if scaled is None else scaled.with_credit().interval(1 - look.alpha)
    return replace(
        row,
        p_value=None if row.p_value is None else look.adjusted(row.p_value),
        look=look.number,
        looks=look.of,
        fixed_low=fixed[0],
        fixed_high=fixed[1],
    )


def _kind_of_interval(columns: Row, estimate: Estimate, predicted: bool, agreed: bool) -> str:
    """What the primary interval is, or why there is none: see `methods`."""
    if estimate.delta is None:
        return UNDEFINED
    if min(columns["n_a"], columns["n_b"]) < 2:
        return ONE_SEED
    if not predicted:
        return OVER_SEEDS
    if not agreed:
        return OTHER_CHOICE
    return NO_SPREAD if estimate.low is None else OVER_BOTH


def _with_equivalence(
    row: Contrast,
    margin: float,
    estimate: Estimate,
    error: tuple[float, float] | None,
    confidence: float,
) -> Contrast:
    """The row with p of two one-sided tests, by the rule of its interval, and with the interval that lies
    within the margin where both reject: at confidence 95% the 90% interval (Schuirmann 1987).

    Args:
        row: the difference.
        margin: of equivalence.
        estimate: over seeds and examples.
        error: over seeds alone, and its degrees of freedom, where there are no predictions.
        confidence: of the primary interval.
    """
    found = _equivalence(known(row.delta), margin, estimate, error, confidence)
    if found is None:
        return row
    p_value, (low, high) = found
    return replace(row, p_equivalence=p_value, equivalence_low=low, equivalence_high=high)


def _equivalence(
    delta: float,
    margin: float,
    estimate: Estimate,
    error: tuple[float, float] | None,
    confidence: float,
) -> tuple[float, statistics.Bounds] | None:
    """p of equivalence and its interval; None without any error. Args: see `_with_equivalence`."""
    narrower = 2 * confidence - 1
    if estimate.scaled is not None:
        return estimate.scaled.equivalence_p(margin), estimate.scaled.interval(narrower)
    if error is not None:
        return statistics.equivalence_p(delta, *error, margin), _t_interval(delta, error, narrower)
    return None


def _verdict_of_equivalence(row: Contrast, confidence: float) -> str | None:
    """equivalent, different or inconclusive; None where equivalence is not asked, and without any error."""
    if row.p_equivalence_holm is None:
        return None
    if row.p_equivalence_holm < 1 - confidence:
        return "equivalent"
    return "different" if row.direction in ("higher", "lower") else "inconclusive"


def _with_verdict(
    row: Contrast,
    one: Pair,
    by_cell: Mapping[Key, Sequence[RunRow]],
    sides: Sides | None,
    settings: Mapping[str, Any],
) -> Contrast:
    """The row with its verdict of equivalence, and with whether it bears a verdict at all; see
    `differences.with_verdict`."""
    row = replace(row, equivalence=_verdict_of_equivalence(row, settings["confidence"]))
    a, b = ([by_cell[of.cell] for of in side] for side in (one.a, one.b))
    sound = None
    if row.delta is not None and any(map(verdicts.partly_collapsed, (a, b))):
        sound = _without_collapsed(row, one, (a, b), by_cell, sides, settings)
    of_gains = row.family in OF_GAINS
    return with_verdict(row, a, b, sound, row.metric, of_gains=of_gains, ends=ENDS)


def _without_collapsed(
    row: Contrast,
    one: Pair,
    cells: Sequence[verdicts.Cells],
    by_cell: Mapping[Key, Sequence[RunRow]],
    sides: Sides | None,
    settings: Mapping[str, Any],
) -> verdicts.Sound:
    """The difference without collapsed runs."""
    kept = [verdicts.sound_seeds(of_side) for of_side in cells]
    fewest = min(map(independent_seeds, kept))
    if not fewest:
        return verdicts.Sound(None, None, None, 0)
    how = _how(one, row.paired, settings)
    confidence = how["confidence"]
    if sides is None:
        delta, error = _over_some_seeds(one, kept, by_cell, row.paired)
        low, high = _t_interval(delta, error, confidence) if error else (None, None)
        estimate = Estimate(delta)
    else:
        tests = [_test_side(side, sides) for side in (one.a, one.b)]
        estimate, error = estimate_without_collapsed(tests, kept, how), None
        delta, low, high = known(estimate.delta), estimate.low, estimate.high
    equivalent = None
    if row.margin is not None and (found := _equivalence(delta, row.margin, estimate, error, confidence)):
        equivalent = found[0] < 1 - confidence
    return verdicts.Sound(delta, low, high, fewest, equivalent)


def _over_some_seeds(
    one: Pair, kept: Sequence[Sequence[Seed]], by_cell: Mapping[Key, Sequence[RunRow]], paired: bool
) -> tuple[float, tuple[float, float] | None]:
    """The difference over some seeds of each side, and its error over them."""
    a, b = (
        {seed: known(value) for seed, value in _values(side, by_cell).items() if seed in seeds}
        for side, seeds in zip((one.a, one.b), kept, strict=True)
    )
    delta = statistics.mean(list(a.values())) - statistics.mean(list(b.values()))
    return delta, _seed_error(a, b, paired=paired and set(kept[0]) == set(kept[1]))
