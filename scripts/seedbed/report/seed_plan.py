"""How many seeds and test examples find a difference, as the terminal shows it: sentences, and a table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from seedbed.analysis.assumed_variances import Alike, Assumed
from seedbed.analysis.planning import MOST_SEEDS, Number, Range
from seedbed.analysis.seed_plan import OnExamples, Plans, SeedPlan
from seedbed.core.wording import Words
from seedbed.core.words import change, code, difference_text, percent, short_number, unit_of
from seedbed.report import power
from seedbed.report.documents.blocks import Table
from seedbed.report.opening import Group, Line, Opening
from seedbed.report.parts import cell_word, header
from seedbed.report.summary import facts_of

WORDS = Words("report/seed_plan")


def facts(plans: Plans) -> list[dict[str, Any]]:
    """What the terminal shows of each difference: sentences and a table, as `summary.facts_of` makes them.

    The last names the differences without a plan, and why they have none.
    """
    alone = len(plans.plans) == 1 and not plans.without
    last = len(plans.plans) - 1
    return [
        facts_of(
            Opening(
                "",
                [Group("" if alone else code(one.question), _lines(one))],
                _without(plans.without) if number == last else [],
            ),
            table(one),
        )
        for number, one in enumerate(plans.plans)
    ]


def _asked(one: SeedPlan) -> str:
    """The difference that was asked for, as it was given, with its unit."""
    return f"{short_number(one.wanted.difference)} {unit_of(one.metric).difference}".rstrip()


def _size(one: SeedPlan, size: float) -> str:
    """A size with its unit: 38.5 points."""
    return difference_text(one.metric, size).removeprefix("+")


# --- sentences ----------------------------------------------------------------------------------------------


def _lines(one: SeedPlan) -> list[Line]:
    lines = [Line("answer", WORDS.say("answer", answer(one)))]
    if one.assumed is not None:
        given = given_of(one.assumed)
        lines.append(Line("known", WORDS.say("given", given)))
        lines += [Line("open", WORDS.say("missing", name)) for name in MISSABLE if not getattr(given, name)]
    lines.append(Line("spread", WORDS.say("spread", _spread(one))))
    return [*lines, Line("next", power.plan_ahead())]


@dataclass(frozen=True)
class Answer:
    """What finds the difference that was asked for on the test examples at hand.

    Attributes:
        examples: at hand.
        difference: with its unit.
        power: with which it is found.
        seeds: a side; 0 where no number up to `most` finds it.
        needed: test examples, no more than are needed; 0 where more seeds alone would do.
        range: of the number of seeds or of test examples, in brackets; empty where nothing is open.
        endless: power of endless seeds on the examples at hand.
        at_best: seeds that would do in the best case; 0 unless there is no number otherwise.
        most: seeds that were tried.
        crossed: whether seeds were crossed, so that `seeds` are independent ones.
    """

    examples: int
    difference: str
    power: float
    seeds: int
    needed: int
    range: str
    endless: float
    at_best: int
    most: int
    crossed: bool


def answer(one: SeedPlan) -> Answer:
    """The answer on the test examples at hand."""
    seeds = one.plan.seeds_for(one.difference)
    needed = one.examples_needed
    return Answer(
        examples=one.examples,
        difference=_asked(one),
        power=one.wanted.power,
        seeds=seeds[0] or 0,
        needed=power.rounded_down(needed[0]) if needed else 0,
        range=_range_of_seeds(seeds) if needed is None else _range_of_examples(needed, one.examples),
        endless=one.plan.design.power_of_endless_seeds(one.difference),
        at_best=0 if seeds[0] else seeds[1] or 0,
        most=MOST_SEEDS,
        crossed=one.crossed,
    )


def _range_of_seeds(seeds: Number) -> str:
    number, low, high = seeds
    return "" if number is None or low == high else power.range_text(seeds)


def _range_of_examples(needed: tuple[int, int, int], at_hand: int) -> str:
    """Empty where nothing is open, or where those at hand might do: the best case says so."""
    _, low, high = needed
    if low == high or low <= at_hand:
        return ""
    return power.range_text([power.rounded_down(number) for number in needed])


@dataclass(frozen=True)
class Spread:
    """By how much the difference of one run a side varies, in words.

    Attributes:
        seeds: of the experiment; 0 where variances are assumed.
        paired: whether runs are compared in pairs.
        of_seeds, of_examples, interaction: standard deviations, with their unit.
    """

    seeds: int
    paired: bool
    of_seeds: str
    of_examples: str
    interaction: str


def _spread(one: SeedPlan) -> Spread:
    variances = one.plan.design.variances
    parts = (variances.seeds, variances.examples, variances.interaction)
    return Spread(one.seeds or 0, one.paired, *(_size(one, variance**0.5) for variance in parts))


MISSABLE = ("sds", "sides", "seeds")  # fields of Given that may be empty


@dataclass(frozen=True)
class Given:
    """What was given to plan with, in words.

    Attributes:
        accuracies: of both sides; one where they are equal.
        sds: their standard deviations over seeds in points; one where they are equal, empty if not given.
        sides: how a run of each side are alike; empty if not given.
        seeds: how two seeds of a side are alike; one where both sides are so, empty if not given.
    """

    accuracies: list[str]
    sds: list[str]
    sides: str
    seeds: list[str]


def given_of(assumed: Assumed) -> Given:
    """The numbers in words."""
    sds = [short_number(round(100 * sd, 6)) for sd in assumed.sds or ()]
    sides = "" if assumed.sides is None else _alike(assumed.sides)
    seeds = map(_alike, assumed.seeds or ())
    return Given(_distinct(map(percent, assumed.accuracies)), _distinct(sds), sides, _distinct(seeds))


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _alike(found: Alike) -> str:
    return WORDS.say("alike", found.agreement, found.correlation)


def _without(without: dict[str, str]) -> list[Line]:
    """The differences without a plan, a line a reason."""
    by_reason: dict[str, list[str]] = {}
    for name, why in without.items():
        by_reason.setdefault(why, []).append(code(name))
    return [Line("without", WORDS.say("without", names, why)) for why, names in by_reason.items()]


# --- the table ----------------------------------------------------------------------------------------------


def table(one: SeedPlan) -> Table:
    """A row for each number of seeds, a column for each number of test examples."""
    columns = one.table()
    heads = [header("seed_plan", "examples", examples=f"{each.examples:,}") for each in columns]
    rows = [
        *(
            [f"{seeds:,}", *(_sizes(one, on.detectable[seeds]) for on in columns)]
            for seeds in one.wanted.seeds
        ),
        [cell_word("endless"), *(_sizes(one, on.floor) for on in columns)],
        [cell_word("seeds_needed"), *map(_needed, columns)],
    ]
    unit, level = unit_of(one.metric).difference, 1 - one.wanted.confidence
    asked = one.wanted.power, level, _asked(one)
    caption = WORDS.say("caption", unit, *asked, _ranges(one))
    return Table("seed_plan", [header("seed_plan", "seeds"), *heads], rows, caption)


def _ranges(one: SeedPlan) -> str:
    """What ranges hold; empty where there are none."""
    if one.assumed is None:
        return "variances"
    return "" if one.assumed.seeds else "cases"


def _sizes(one: SeedPlan, sizes: Range) -> str:
    """The smallest difference that is found, and its range without repeating itself."""
    texts = [change(one.metric, size).removeprefix("+") for size in sizes]
    return _in_range(texts)


def _needed(on: OnExamples) -> str:
    """The seeds needed, and their range."""
    number, low, high = on.seeds_needed
    if number is None:
        return cell_word("no_number") if low is None else cell_word("at_best", seeds=f"{low:,}")
    return _in_range(["…" if seeds is None else f"{seeds:,}" for seeds in (number, low, high)])


def _in_range(texts: Sequence[str]) -> str:
    number, low, high = texts
    return number if low == high else cell_word("seeds_in_range", seeds=number, low=low, high=high)
