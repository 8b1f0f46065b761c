"""What these seeds can and cannot show: numbers of seeds and of test examples, in words and as a table.

Each plan simulates the rule of the interval (`analysis.planning`) with the variances of the contrast at hand,
for the smallest difference of interest that the config names, not for the difference seen.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from seedbed.analysis.contrast_plans import Planning, Values, planning
from seedbed.analysis.planning import MOST_SEEDS
from seedbed.analysis.sides import seed_table
from seedbed.analysis.table_rows import seed_values, value_column
from seedbed.analysis.verdicts import COLLAPSE, FEW_SEEDS, NOTHING_LEARNED, ONE_CLASS, UNLEARNED, WITHHELD
from seedbed.core.rows import Row
from seedbed.core.wording import Words
from seedbed.core.words import (
    framework_name,
    unit_of,
    with_unit,
)
from seedbed.report.documents.blocks import Cell, Table
from seedbed.report.experiment import Experiment, Question, interval, questions, seeds_of, verdict
from seedbed.report.parts import (
    cell_word,
    header,
    headers,
    number_cell,
    points_cell,
    size_cell,
    with_places,
)

WORDS = Words("report/power")
SEEDS = (5, 10, 25)  # numbers of seeds a side for which presets lie in experiments/


# --- what intervals rest on --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Footing:
    """What the intervals of some differences rest on.

    Attributes:
        overs: what the intervals are over, the first difference's first.
        by_name: names of the differences by what their intervals are over; empty unless these differ and the
            differences have names.
        seeds: of both sides, each once.
    """

    overs: list[str]
    by_name: list[tuple[str, list[str]]]
    seeds: list[str]


def rests_on(rows: Sequence[Row], names: Sequence[str] = ()) -> str:
    """What the intervals of some contrasts are over, and how many seeds they rest on, as a sentence; empty
    without any interval."""
    found = footing(rows, names)
    return WORDS.say("rests_on", found) if found else ""


def footing(rows: Sequence[Row], names: Sequence[str] = ()) -> Footing | None:
    """The same as a record; None without any interval.

    Args:
        rows: of contrasts.csv.
        names: tell the rows apart where their intervals are over different things; without them the first
            rows are those at each side's best recipe, and others those at the equal one.
    """
    known = {id(row): bounds.over for row in rows if (bounds := interval(row))}
    if not known:
        return None
    by_name: dict[str, list[str]] = {}
    for name, row in zip(names, rows, strict=True) if names else ():
        if id(row) in known:
            by_name.setdefault(known[id(row)], []).append(name)
    seeds = dict.fromkeys(seeds_of(row) for row in rows if id(row) in known)
    overs = list(dict.fromkeys(known.values()))
    return Footing(overs, list(by_name.items()) if len(overs) > 1 else [], list(seeds))


# --- in words -----------------------------------------------------------------------------------------------


def plan_sentences(question: Question) -> list[str]:
    """What these seeds can and cannot show of a question, each init at its best where recipes are swept."""
    rows = question.headline()
    return [*_detectable(question.experiment, rows), *outcomes(question.experiment, rows)]


def _detectable(experiment: Experiment, rows: Mapping[str, Row]) -> list[str]:
    """What the seeds at hand detect in each framework, and with which power; crossed ones are not so many
    independent seeds."""
    sizes: dict[tuple[int, bool], list[str]] = {}
    for framework, row in rows.items():
        plan = None if verdict(row) in WITHHELD else planning(experiment, row)
        if plan is not None:
            number = SEEDS[0] if plan.crossed else plan.seeds
            unit = unit_of(row["metric"]).difference
            size = WORDS.say("size", plan.plan.detectable(number), row["metric"], unit, framework)
            sizes.setdefault((number, plan.crossed), []).append(size)
    return [WORDS.say("detectable", *seeds, experiment.power, of_seeds) for seeds, of_seeds in sizes.items()]


@dataclass(frozen=True)
class Outcome:
    """Whether a difference is decided, and if not, what would find a difference of interest.

    Attributes:
        kind: unlearned, few_seeds, collapse, undefined, single or flat: why nothing can be said. decided. Or
            what finds a difference of interest: enough (these seeds), more_seeds, more_examples, or
            too_many_seeds to search.
        interest: the difference of interest, in the metric's unit.
        metric: of the difference.
        power: with which it is found.
        seeds: a side, as estimated, and the range that the variances leave open; None: no number.
        needed: test examples, no more than are needed; 0 where none are named.
        examples: test examples at hand, where more are needed.
        endless: power of endless seeds on these test examples.
        crossed: whether the seeds at hand are crossed, so that `seeds` are independent ones.
    """

    kind: str
    interest: float = 0.0
    metric: str = ""
    power: float = 0.0
    seeds: tuple[int | None, int | None, int | None] = (None, None, None)
    needed: int = 0
    examples: int = 0
    endless: float = 0.0
    crossed: bool = False


def outcomes(experiment: Experiment, rows: Mapping[str, Row]) -> list[str]:
    """Whether each framework's difference is decided, and what would find one of interest; frameworks with
    the same outcome share a sentence. Where that is more seeds, how not to add them."""
    found: dict[Outcome, list[str]] = {}
    for name, row in rows.items():
        found.setdefault(outcome(experiment, row), []).append(framework_name(name))
    level = experiment.confidence
    told = [WORDS.say("outcome_of", names, WORDS.say("outcome", one, level)) for one, names in found.items()]
    return [*told, *([plan_ahead()] if any(one.kind == "more_seeds" for one in found) else [])]


def plan_ahead() -> str:
    """What goes with any number of seeds."""
    return WORDS.say("plan_ahead")


def range_text(found: Sequence[int | None]) -> str:
    """The range of a number of seeds or test examples, in brackets.

    Args:
        found: the number as estimated, and the range that the variances leave open; None: no number.
    """
    return WORDS.say("range_of", found)


# verdicts of which nothing is decided, whatever the seeds
_OPEN = {
    NOTHING_LEARNED: "unlearned",
    ONE_CLASS: "unlearned",
    FEW_SEEDS: "few_seeds",
    COLLAPSE: "collapse",
    "undefined": "undefined",
    "single": "single",
}


def outcome(experiment: Experiment, row: Row) -> Outcome:
    """Whether a contrast's difference is decided, and what would find one of interest."""
    if verdict(row) in _OPEN:
        return Outcome(_OPEN[verdict(row)])
    plan = planning(experiment, row)
    if plan is None:
        return Outcome("flat")
    if plan.decided:
        return Outcome("decided")
    seeds, metric = plan.needed, row["metric"]
    found = Outcome("", plan.interest, metric, experiment.power, seeds, crossed=plan.crossed)
    if seeds[0] is not None:
        return replace(found, kind="enough" if seeds[0] <= plan.seeds else "more_seeds")
    if plan.examples_needed and plan.examples:
        endless = plan.plan.design.power_of_endless_seeds(plan.interest)
        needed = rounded_down(plan.examples_needed)
        return replace(found, kind="more_examples", needed=needed, examples=plan.examples, endless=endless)
    return replace(found, kind="too_many_seeds", seeds=(MOST_SEEDS, None, None))


def outcome_text(experiment: Experiment, row: Row) -> str:
    """The same in words, as a part of a sentence."""
    return WORDS.say("outcome", outcome(experiment, row), experiment.confidence)


def rounded_down(number: int) -> int:
    """Two significant digits, since more are not known; down, so that a lower bound stays one."""
    unit = 10 ** max(0, len(str(number)) - 2)
    return number // unit * unit


# --- as a table ---------------------------------------------------------------------------------------------


def power_table(experiment: Experiment) -> Table:
    """The same as a table with more seeds, one row a contrast of the inits: at each side's best and at the
    reference recipe."""
    unit = unit_of(experiment.metric).difference
    detectable = (header("power", "detectable", seeds=number) for number in SEEDS)
    in_unit = [header("power", "difference"), header("power", "detectable_now"), *detectable]
    in_unit.append(header("power", "endless_seeds"))
    columns = [
        *headers("power", "framework", "recipe", "seeds_a_side"),
        *(with_unit(text, unit) for text in in_unit),
        *headers("power", "seeds_needed", "test_examples", "examples_needed"),
    ]
    return with_places(
        list(planned(experiment)),
        "power",
        columns,
        lambda row: _table_row(experiment, row),
        caption=_caption(experiment),
        named=2,
        right=range(2, len(columns)),
    )


def _caption(experiment: Experiment) -> str:
    """What the columns mean, and what the numbers rest on."""
    withheld = any(verdict(row) in WITHHELD for row in planned(experiment))
    values = (seed_values(experiment.group(row), value_column(row)) for row in experiment.summary)
    crossed = any(seed_table(cast(Values, of_cell)) is not None for of_cell in values)
    level = 1 - experiment.confidence
    interest = experiment.reporting["statistics"]["difference_of_interest"]
    size = WORDS.say("of_interest", interest, experiment.metric)
    return WORDS.say("caption", experiment.scored, experiment.power, level, size, withheld, crossed)


def planned(experiment: Experiment) -> Iterable[Row]:
    """The contrasts that the table has plans of."""
    for question in questions(experiment):
        yield from question.headline().values()
        if question.swept:
            yield from question.contrasts("equal").values()


def _table_row(experiment: Experiment, row: Row) -> list[Cell | str | int | None]:
    plan = planning(experiment, row)
    equal = row["selection"] == "equal"
    recipe = experiment.recipe(row["recipe_a"]) if equal else cell_word("own_best")
    start = [framework_name(row["a"].split("/")[0]), recipe, min(row["n_a"], row["n_b"])]
    metric = row["metric"]
    start.append(points_cell(row["delta"], metric=metric))
    if verdict(row) in UNLEARNED:
        plan = None  # what runs vary that learned nothing says nothing of others
    if plan is None:
        return [*start, *[None] * (len(SEEDS) + 5)]
    withheld = verdict(row) in WITHHELD
    return [
        *start,
        None
        if plan.crossed or withheld
        else size_cell(plan.plan.design.detectable(plan.seeds), metric=metric),
        *(size_cell(plan.plan.design.detectable(number), metric=metric) for number in SEEDS),
        size_cell(plan.plan.design.floor or None, metric=metric),
        Cell(cell_word("no_verdict")) if withheld else _needed(plan),
        number_cell(plan.examples),
        None if withheld else _examples_cell(plan),
    ]


def _needed(plan: Planning) -> Cell:
    """The seeds that find the difference of interest, and their range."""
    number, low, high = plan.needed
    if number is None:
        return Cell(cell_word("no_number") if plan.examples_needed else f"> {MOST_SEEDS:,}")
    ends = ["…" if end is None else f"{end:,}" for end in (low, high)]
    return Cell(cell_word("seeds_in_range", seeds=f"{number:,}", low=ends[0], high=ends[1]), number)


def _examples_cell(plan: Planning) -> Cell | None:
    needed = plan.examples_needed
    return None if needed is None else Cell(f"≥ {rounded_down(needed):,}", needed)
