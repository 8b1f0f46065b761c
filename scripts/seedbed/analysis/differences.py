"""A difference of two sides as a typed row, and what contrasts and comparisons of experiments ask of each."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypedDict, TypeVar

from seedbed.analysis import verdicts
from seedbed.analysis.bootstrap import Estimate, Side, compare
from seedbed.analysis.sides import only_seeds
from seedbed.analysis.verdicts import Cells, Sound
from seedbed.core.rows import TypedRow
from seedbed.core.words import difference_bound

# families of differences of two gains of pretraining
OF_GAINS = ("dataset", "recipe")


@dataclass(frozen=True, kw_only=True)
class Difference(TypedRow):
    """Side a minus side b; None is what is not defined or not known.

    Attributes:
        recipe_a, recipe_b: of both sides.
        selection: equal recipes; or best, each side's on validation.
        test_set: all, or without leaks.
        paired: whether seeds are pairs.
        n_a, n_b: seeds.
        delta: the difference of the means.
        ci_low, ci_high: the primary interval, over seeds and test examples.
        given_low, given_high: the primary interval if the chosen recipes had been given; None where recipes
            were not chosen.
        t_low, t_high: the interval over seeds alone.
        p_value, p_holm: the smallest level at which the primary interval leaves zero out, and the same
            adjusted within a family.
        direction: higher or lower where p_holm is below the level, else unclear; None without an interval.
        seed_correlation: of the values of both sides over paired seeds.
        pairing_ratio: variance over seeds with pairs, relative to that without.
        p_exact: of the exact test over seeds.
        test, test_unit, test_means: what that test is, see `sides.ExactTest`.
        equivalence: equivalent, different or inconclusive.
        no_verdict: why it bears no verdict, see `verdicts.no_verdict`.
        delta_without_collapsed, ci_low_without_collapsed, ci_high_without_collapsed: without collapsed runs,
            where a cell is partly collapsed.
    """

    recipe_a: str
    recipe_b: str
    selection: str
    test_set: str = "all"
    paired: bool
    n_a: int
    n_b: int
    delta: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    t_low: float | None = None
    t_high: float | None = None
    given_low: float | None = None
    given_high: float | None = None
    p_value: float | None = None
    p_holm: float | None = None
    direction: str | None = None
    seed_correlation: float | None = None
    pairing_ratio: float | None = None
    p_exact: float | None = None
    test: str | None = None
    test_unit: str | None = None
    test_means: int | None = None
    equivalence: str | None = None
    no_verdict: str | None = None
    delta_without_collapsed: float | None = None
    ci_low_without_collapsed: float | None = None
    ci_high_without_collapsed: float | None = None


@dataclass(frozen=True, kw_only=True)
class Contrast(Difference):
    """A row of contrasts.csv.

    Attributes:
        family: what is contrasted: init, framework, model, dataset, recipe or method; or system, of results
            from outside.
        dataset, model, dataset_b, model_b: of both sides.
        metric: of the test values.
        contrast: a minus b in names.
        a, b: FRAMEWORK/INIT of a side, or FRAMEWORK/gain.
        error_reduction: how much smaller the share of errors of a is, relative to that of b; None where
            errors are not counted, as of a loss or of gains, and where b has none.
        bootstrap_low, bootstrap_high: the Multi-Bootstrap's interval as published.
        standard_error, se_seeds, se_interaction, se_examples: see `bootstrap.Estimate`.
        margin: of equivalence.
        p_equivalence, p_equivalence_holm: of two one-sided tests, and adjusted within the family.
        equivalence_low, equivalence_high: the interval that lies within the margin where both reject.
        probability_of_improvement, aso_eps_min: see `dominance`.
        interval: what the primary interval is, see `methods`.
        method: how the row was made, in words.
        look, looks: which of the looks of a growing experiment this is, and how many are planned; the primary
            interval has the level of that look.
        fixed_low, fixed_high: the interval if the number of seeds had been fixed before.
    """

    # written only where seeds are added until a question is decided
    OPTIONAL: ClassVar[Collection[str]] = ("look", "looks", "fixed_low", "fixed_high")

    family: str
    dataset: str
    model: str
    dataset_b: str
    model_b: str
    metric: str
    contrast: str
    a: str
    b: str
    error_reduction: float | None = None
    bootstrap_low: float | None = None
    bootstrap_high: float | None = None
    standard_error: float | None = None
    se_seeds: float | None = None
    se_interaction: float | None = None
    se_examples: float | None = None
    margin: float | None = None
    p_equivalence: float | None = None
    p_equivalence_holm: float | None = None
    equivalence_low: float | None = None
    equivalence_high: float | None = None
    probability_of_improvement: float | None = None
    aso_eps_min: float | None = None
    interval: str
    method: str = ""
    look: int | None = None
    looks: int | None = None
    fixed_low: float | None = None
    fixed_high: float | None = None

    def cell(self, side: str) -> tuple[str, str, str, str, str]:
        """Dataset, model, framework, init and recipe of side a or b; the init of a gain is `gain`."""
        if side == "a":
            framework, init = self.a.split("/")
            return self.dataset, self.model, framework, init, self.recipe_a
        framework, init = self.b.split("/")
        return self.dataset_b, self.model_b, framework, init, self.recipe_b


@dataclass(frozen=True, kw_only=True)
class Compared(Difference):
    """A difference of two experiments.

    Attributes:
        dataset, model, framework, init: where; of a gain, that of the pretrained side.
        same_examples: whether both sides were evaluated on the same examples.
        undefined_a, undefined_b: runs without a finite loss.
        mean_a, mean_b, sd_a, sd_b: over seeds; None where a run has no finite loss.
        learned_nothing_a, learned_nothing_b: whether no run of the side learned the task.
    """

    dataset: str
    model: str
    framework: str
    init: str
    same_examples: bool
    undefined_a: int
    undefined_b: int
    mean_a: float | None
    mean_b: float | None
    sd_a: float | None
    sd_b: float | None
    learned_nothing_a: bool
    learned_nothing_b: bool


D = TypeVar("D", bound=Difference)


class How(TypedDict):
    """What `bootstrap.compare` is asked beside the sides."""

    paired: bool
    confidence: float
    seed: int
    credit: float


def estimate_without_collapsed(
    tests: Sequence[Side], seeds: Sequence[Sequence[tuple[int, int]]], how: How
) -> Estimate:
    """The difference of two sides over the seeds that are left of each.

    Seeds of which one side lost its run are no pairs any more.
    """
    a, b = (only_seeds(test, kept) for test, kept in zip(tests, seeds, strict=True))
    paired = how["paired"] and a.seeds == b.seeds
    return compare(a, b, paired=paired, confidence=how["confidence"], seed=how["seed"], credit=how["credit"])


def with_verdict(
    row: D, a: Cells, b: Cells, sound: Sound | None, metric: str, *, of_gains: bool, ends: Sequence[str]
) -> D:
    """The row with what it says without collapsed runs, and why it bears no verdict; its intervals are cut.

    Args:
        row: the difference.
        a, b: the runs of both sides.
        sound: the difference without collapsed runs; None where no cell is partly collapsed.
        metric: what was measured.
        of_gains: whether it is a difference of two differences.
        ends: the bounds of its intervals.
    """
    withheld = verdicts.no_verdict(row, a, b, sound)
    changes: dict[str, Any] = {"no_verdict": withheld}
    if withheld and row.equivalence:
        changes["equivalence"] = "inconclusive"
    if sound is not None:
        changes["delta_without_collapsed"] = sound.delta
        changes["ci_low_without_collapsed"] = sound.low
        changes["ci_high_without_collapsed"] = sound.high
    return cut(replace(row, **changes), metric, of_gains=of_gains, ends=(*ends, *WITHOUT_COLLAPSED))


def with_holm(row: D, p_holm: float | None, confidence: float) -> D:
    """The row with its adjusted p, and with the direction that this allows."""
    direction = verdicts.direction(*verdicts.bounds(row))
    if direction in ("higher", "lower") and p_holm is not None and p_holm >= 1 - confidence:
        direction = "unclear"
    return replace(row, p_holm=p_holm, direction=direction)


WITHOUT_COLLAPSED = ("ci_low_without_collapsed", "ci_high_without_collapsed")


def cut(row: D, metric: str, *, of_gains: bool, ends: Sequence[str]) -> D:
    """The row with bounds of intervals cut at what a difference can be."""
    most = difference_bound(metric, of_gains)
    bounds: dict[str, Any] = verdicts.cut({name: row[name] for name in ends}, -most, most)
    return replace(row, **bounds)
