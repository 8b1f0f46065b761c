"""How many seeds and test examples find a difference: from an earlier experiment, or from what is assumed.

`planning` simulates, `contrast_plans` and `assumed_variances` say with which variances.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from seedbed.analysis import assumed_variances
from seedbed.analysis.assumed_variances import Assumed
from seedbed.analysis.contrast_plans import Planning, planning
from seedbed.analysis.differences import OF_GAINS, Contrast
from seedbed.analysis.experiment import Experiment
from seedbed.analysis.planning import Number, Plan, Range
from seedbed.analysis.table_rows import RunRow
from seedbed.analysis.verdicts import WITHHELD, verdict
from seedbed.core import checksums
from seedbed.core.errors import SeedbedError
from seedbed.core.rows import TypedRow, on_test_set
from seedbed.core.seeds import FEWEST_SEEDS
from seedbed.core.spelling import nearest
from seedbed.core.words import difference_bound, unit_of

ASSUMED = "assumed"  # name of the only question where variances are assumed
# why a difference has no plan, beside the reasons for which it bears no verdict
ONE_SEED, UNDEFINED = "one seed a side", "a run without a finite loss"
NO_PREDICTIONS, NO_SPREAD = "no predictions", "every seed shows the same"
SEEDS = (3, 5, 10, 25)
TIMES = (1, 2, 4)  # the test examples at hand, in tables of which nobody says the numbers


@dataclass(frozen=True)
class Wanted:
    """What a plan is asked for.

    Attributes:
        difference: the smallest true difference that is to be found, as people give it: in points of
            fractions, else in the unit of the metric.
        confidence: level of the interval that leaves zero out.
        power: probability that it does.
        seeds: numbers of seeds a side, for the table.
        examples: numbers of test examples, for the table; empty: those at hand, and twice and four times as
            many.
    """

    difference: float
    confidence: float = 0.95
    power: float = 0.8
    seeds: tuple[int, ...] = SEEDS
    examples: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("confidence", "power"):
            if not 0.5 <= getattr(self, name) < 1:
                raise SeedbedError(
                    f"no level of {name}",
                    where=f"--{name}",
                    found=getattr(self, name),
                    hint="give a fraction of 0.5 or more and below 1, such as 0.9",
                )
        _check_numbers("--seeds", self.seeds, FEWEST_SEEDS, "fewer seeds decide nothing: give")
        _check_numbers("--examples", self.examples, 2, "give")


def _check_numbers(option: str, numbers: Sequence[int], fewest: int, remedy: str) -> None:
    if few := [number for number in numbers if number < fewest]:
        raise SeedbedError(
            "a plan cannot have such a number",
            where=option,
            found=few[0],
            hint=f"{remedy} numbers of {fewest} or more",
        )


@dataclass(frozen=True)
class SeedPlan:
    """The plan of one difference.

    Attributes:
        question: its name.
        metric: of the difference.
        difference: the smallest true one that is to be found, in the unit of tables.
        wanted: what was asked for.
        plan: simulates, on the test examples at hand.
        paired: whether runs are compared in pairs of one seed.
        seeds: a side, of the experiment; None where variances are assumed.
        crossed: whether the seeds of the experiment are crossed; the plan is of independent ones.
        assumed: what is assumed; None of an experiment.
    """

    question: str
    metric: str
    difference: float
    wanted: Wanted
    plan: Plan
    paired: bool
    seeds: int | None = None
    crossed: bool = False
    assumed: Assumed | None = None

    @property
    def examples(self) -> int:
        """The test examples at hand."""
        return self.plan.design.examples

    @property
    def examples_needed(self) -> tuple[int, int, int] | None:
        """Test examples with which endless seeds find the difference, and their range; None where those at
        hand are enough."""
        enough = self.plan.design.floor < self.difference
        return None if enough else self.plan.examples_for(self.difference)

    def table(self) -> list["OnExamples"]:
        """What numbers of seeds find on each number of test examples that was asked for."""
        numbers = self.wanted.examples or tuple(times * self.examples for times in TIMES)
        return [self._on(number) for number in dict.fromkeys(numbers)]

    def _on(self, examples: int) -> "OnExamples":
        plan = self.plan.on(examples)
        detectable = {seeds: plan.detectable(seeds) for seeds in self.wanted.seeds}
        return OnExamples(examples, plan.seeds_for(self.difference), detectable, plan.floor)


@dataclass(frozen=True)
class OnExamples:
    """What numbers of seeds find on so many test examples, each as estimated with its range.

    Attributes:
        examples: their number.
        seeds_needed: to find the difference that was asked for.
        detectable: the smallest difference that is found, by number of seeds.
        floor: the same of endless seeds.
    """

    examples: int
    seeds_needed: Number
    detectable: dict[int, Range]
    floor: Range


@dataclass(frozen=True)
class Plans:
    """The plans of an experiment or of what is assumed.

    Attributes:
        plans: of the differences that have one; one at least.
        without: why others have none, by name.
    """

    plans: Sequence[SeedPlan]
    without: dict[str, str]


# --- from what is assumed -----------------------------------------------------------------------------------


def plan_assumed(assumed: Assumed, wanted: Wanted) -> Plans:
    """The plan for accuracies, with variances from what is known of them.

    Raises:
        SeedbedError: see `assumed_variances.plan_of`; a difference that accuracies cannot have.
    """
    (a, _) = assumed.accuracies
    difference = _difference("accuracy", wanted, max(a, 1 - a))
    plan = assumed_variances.plan_of(assumed, wanted.confidence, wanted.power)
    return Plans(
        [SeedPlan(ASSUMED, "accuracy", difference, wanted, plan, assumed.paired, assumed=assumed)], {}
    )


def _difference(metric: str, wanted: Wanted, most: float) -> float:
    """The difference in the unit of tables."""
    factor = unit_of(metric).factor
    difference = wanted.difference / factor
    if 0 < difference <= most:
        return difference
    unit = unit_of(metric).difference
    limit = f" and at most {most * factor:g}" if math.isfinite(most) else ""
    raise SeedbedError(
        "no difference to plan for",
        where="--difference",
        found=wanted.difference,
        hint=f"give a number above 0{limit}{', in ' if unit else ''}{unit}, such as {0.02 * factor:g}",
    )


# --- from an earlier experiment -----------------------------------------------------------------------------


def plan_from(folder: Path, wanted: Wanted, question: str | None = None, metric: str | None = None) -> Plans:
    """The plans of an experiment's differences on all test examples, at each side's best recipe where recipes
    are swept, with the variances that it measured. Differences of gains have none.

    Args:
        folder: with runs.csv and contrasts.csv; other files are not read.
        wanted: what is asked for.
        question: a part of the names of the differences that are meant; None: all.
        metric: of the differences; None for the main one of the experiment.

    Raises:
        SeedbedError: a folder that holds no finished experiment, or tables that are not whole; a question or
            a metric that it does not have; a difference that the metric cannot have; variances that no
            difference tells.
    """
    runs, contrasts = _read(folder)
    families = {run.recipe: run.recipe_family for run in runs}
    rows = _headline(_of_metric(contrasts, metric, folder), families)
    chosen = _chosen(dict(zip(_names(rows, families), rows, strict=True)), question, folder)
    difference = _difference(rows[0].metric, wanted, difference_bound(rows[0].metric))
    settings = {"confidence": wanted.confidence, "power": wanted.power, "difference_of_interest": difference}
    experiment = Experiment(runs, (), rows, {"statistics": settings})
    found = {name: _planning(experiment, row) for name, row in chosen.items()}
    without = {name: why for name, why in found.items() if isinstance(why, str)}
    if len(without) == len(found):
        raise _nothing_known(folder, without)
    plans = [
        _measured(name, chosen[name], wanted, planned)
        for name, planned in found.items()
        if isinstance(planned, Planning)
    ]
    return Plans(plans, without)


def _measured(name: str, row: Contrast, wanted: Wanted, found: Planning) -> SeedPlan:
    return SeedPlan(
        name, row.metric, found.interest, wanted, found.plan, bool(row.paired), found.seeds, found.crossed
    )


def _nothing_known(folder: Path, without: Mapping[str, str]) -> SeedbedError:
    return SeedbedError(
        "no difference of this experiment tells its variances",
        where=str(folder / "contrasts.csv"),
        found="; ".join(f"{name}: {why}" for name, why in without.items()),
        hint="take an experiment with predictions and three seeds or more that learned the task, or give "
        "what you know instead: --accuracy 0.8 --sd-seeds 1.5 --examples 2000",
    )


def _read(folder: Path) -> tuple[list[RunRow], list[Contrast]]:
    paths = [folder / name for name in ("runs.csv", "contrasts.csv")]
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise SeedbedError(
            "no finished experiment",
            where=str(missing[0]),
            found="a folder without this table" if folder.is_dir() else "no such folder",
            hint="name the folder of an experiment that has run, such as results/demo",
        )
    checksums.compare(paths)
    runs, contrasts = RunRow.read(paths[0]), Contrast.read(paths[1], "table of contrasts")
    if not contrasts:
        raise SeedbedError(
            "this experiment has no difference",
            where=str(paths[1]),
            hint="compare two starts, frameworks, models or methods in its config, and run it",
        )
    return runs, contrasts


def _of_metric(contrasts: Sequence[Contrast], metric: str | None, folder: Path) -> list[Contrast]:
    """Those of a metric on all test examples; the main metric stands first in the table."""
    rows = on_test_set(contrasts)
    there = list(dict.fromkeys(row.metric for row in rows))
    if metric is not None and metric not in there:
        raise SeedbedError(
            "a metric that this experiment does not report",
            where="--metric",
            found=metric,
            hint=f"name one of those in {folder / 'contrasts.csv'}: {', '.join(there)}",
        )
    return [row for row in rows if row.metric == (metric or there[0])]


def _headline(rows: Sequence[Contrast], families: Mapping[str, str]) -> list[Contrast]:
    """Those at each side's best recipe, and those of families with one recipe; without differences of gains,
    of which four sides make the variance."""
    numbers = Counter(families.values())
    return [
        row
        for row in rows
        if row.family not in OF_GAINS
        and (row.selection == "best" or numbers[families.get(row.recipe_a, "")] <= 1)
    ]


def _names(rows: Sequence[Contrast], families: Mapping[str, str]) -> list[str]:
    """Names of differences: what is subtracted, and where, as far as that tells them apart."""
    parts: list[Callable[[Contrast], str]] = [
        _side,
        lambda row: _of_both(row.dataset, row.dataset_b),
        lambda row: _of_both(row.model, row.model_b),
        lambda row: _of_both(*(families.get(recipe, recipe) for recipe in (row.recipe_a, row.recipe_b))),
    ]
    several = [part for part in parts if len(set(map(part, rows))) > 1]
    told = ([row.contrast, *(part(row) for part in several)] for row in rows)
    return [", ".join(filter(None, dict.fromkeys(names))) for names in told]


def _side(row: Contrast) -> str:
    """What FRAMEWORK/INIT of both sides have in common."""
    return "/".join(a for a, b in zip(row.a.split("/"), row.b.split("/"), strict=False) if a == b)


def _of_both(a: str, b: str) -> str:
    return a if a == b else f"{a} - {b}"


def _chosen(rows: dict[str, Contrast], question: str | None, folder: Path) -> dict[str, Contrast]:
    if question is None:
        return rows
    found = {name: row for name, row in rows.items() if question.casefold() in name.casefold()}
    if not found:
        raise SeedbedError(
            "a question that this experiment does not ask",
            where="--question",
            found=question,
            hint=f"{nearest(question, rows)}{folder / 'contrasts.csv'} has: {'; '.join(rows)}",
        )
    return found


def _planning(experiment: Experiment, row: Contrast) -> Planning | str:
    """The plan of a difference, or why it has none."""
    said = verdict(row)
    if said in ("single", "undefined"):
        return ONE_SEED if said == "single" else UNDEFINED
    if said in WITHHELD:
        return said
    found = planning(experiment, row)
    if found is None:
        return NO_SPREAD
    if row.standard_error is None or found.examples is None:
        return NO_PREDICTIONS
    return found


# --- as a table ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SeedPlanRow(TypedRow):
    """What one number of seeds finds on one number of test examples. None means no number.

    Attributes:
        question: name of the difference; assumed where the variances were given.
        metric: of the difference.
        difference: the smallest true one that is to be found.
        confidence: level of the interval.
        power: probability that the interval leaves zero out.
        paired: whether runs are compared in pairs of one seed.
        variance_seeds: between seeds, of the difference of one seed a side on all examples.
        variance_examples: between examples, of the difference on one example with all seeds.
        variance_interaction: of one seed on one example beside both.
        examples: test examples.
        seeds_needed: seeds a side that find the difference on them; None where no number does.
        seeds_needed_low: the fewest that the variances leave open; None where no number does.
        seeds_needed_high: the most, likewise.
        endless: the smallest difference that endless seeds find on them.
        endless_low, endless_high: an end of what the variances leave open.
        seeds: a side.
        detectable: the smallest difference that they find.
        detectable_low, detectable_high: an end of what the variances leave open.
        examples_needed: with endless seeds, where no number of seeds finds the difference on the examples at
            hand; None where those are enough.
        examples_needed_low, examples_needed_high: an end of what the variances leave open.
    """

    question: str
    metric: str
    difference: float
    confidence: float
    power: float
    paired: bool
    variance_seeds: float
    variance_examples: float
    variance_interaction: float
    examples: int
    seeds_needed: int | None
    seeds_needed_low: int | None
    seeds_needed_high: int | None
    endless: float
    endless_low: float
    endless_high: float
    seeds: int
    detectable: float
    detectable_low: float
    detectable_high: float
    examples_needed: int | None = None
    examples_needed_low: int | None = None
    examples_needed_high: int | None = None


SEED_PLAN_COLUMNS = tuple(each.name for each in fields(SeedPlanRow))


def plan_rows(plans: Plans) -> list[SeedPlanRow]:
    """A row for each difference, number of test examples and number of seeds."""
    return [row for one in plans.plans for row in _rows(one)]


def _rows(one: SeedPlan) -> Iterator[SeedPlanRow]:
    variances, needed = one.plan.design.variances, one.examples_needed or (None, None, None)
    for on in one.table():
        for seeds, detectable in on.detectable.items():
            yield SeedPlanRow(
                question=one.question,
                metric=one.metric,
                difference=one.difference,
                confidence=one.wanted.confidence,
                power=one.wanted.power,
                paired=one.paired,
                variance_seeds=variances.seeds,
                variance_examples=variances.examples,
                variance_interaction=variances.interaction,
                examples=on.examples,
                seeds=seeds,
                **_with_range("seeds_needed", on.seeds_needed),
                **_with_range("endless", on.floor),
                **_with_range("detectable", detectable),
                **_with_range("examples_needed", needed),
            )


def _with_range(name: str, found: Sequence[float | None]) -> dict[str, Any]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), found, strict=True))
