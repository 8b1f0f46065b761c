"""How many labels a target takes, as the terminal shows it: the numbers in sentences, and a table of them."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seedbed.analysis.label_plan import ONE_SIZE, PLACE, LabelPlan, NeedRow
from seedbed.analysis.label_worth import FEW_SIZES, FEWER, FURTHEST, MORE
from seedbed.analysis.methods import ONE_SEED
from seedbed.analysis.sizes import Number
from seedbed.analysis.verdicts import FEW_SEEDS, UNLEARNED
from seedbed.core.known import known
from seedbed.core.rows import grouped
from seedbed.core.wording import Words
from seedbed.core.words import code, framework_name, level_text, metric_name, unit_of
from seedbed.report.documents.blocks import Table, cell_text
from seedbed.report.method_comparisons import INITS
from seedbed.report.opening import Group, Line, Opening
from seedbed.report.parts import header, keep
from seedbed.report.sizes import interval_text, number_text
from seedbed.report.summary import facts_of

WORDS = Words("report/label_plan")
GAP = 2  # spaces between columns on the terminal


def facts(plan: LabelPlan, width: int) -> dict[str, Any]:
    """What the terminal shows: sentences on each pair of curves, and the table, as `summary.facts_of` makes
    them.

    Args:
        plan: with a row at least.
        width: columns of the terminal.
    """
    groups = grouped(plan.rows, *PLACE)
    several = [name for name in PLACE if len({row[name] for row in plan.rows}) > 1]
    told = [
        Group(", ".join(_name(rows[0], name) for name in several), _lines(plan, rows))
        for rows in groups.values()
    ]
    return facts_of(Opening("", told, []), table(plan, several, width))


def _name(row: NeedRow, column: str) -> str:
    return framework_name(row.framework) if column == "framework" else code(row[column])


def target_text(plan: LabelPlan) -> str:
    """The target with its unit: 85%, 0.5 nats."""
    unit = unit_of(plan.metric)
    return level_text(plan.target) if unit.sign else f"{plan.target:g} {unit.value}".rstrip()


# --- sentences ----------------------------------------------------------------------------------------------


def _lines(plan: LabelPlan, rows: Sequence[NeedRow]) -> list[Line]:
    """What there is to say of the curves of one place, a row an init."""
    level = plan.experiment.level
    answer = WORDS.say("answer", target_text(plan), metric_name(plan.metric), list(map(_need, rows)), level)
    lines = [Line("answer", answer), Line("tried", WORDS.say("tried", _tried(rows)))]
    lines += [Line("beyond", WORDS.say("beyond", _beyond(row), level)) for row in rows if _is_beyond(row)]
    lines += [Line("saved", WORDS.say("saved", found, level)) for row in rows if (found := _saved(row))]
    step = next_step(rows)
    return [*lines, Line("next", WORDS.say("next", step))] if step else lines


@dataclass(frozen=True)
class Need:
    """What the target takes from one start, in words.

    Attributes:
        start: the checkpoint, or random weights.
        number: of labels; empty where there is none.
        interval: its bounds; empty without any.
        no_verdict: why the number bears no verdict, or is not there; empty where it does.
    """

    start: str
    number: str
    interval: str
    no_verdict: str


def _need(row: NeedRow) -> Need:
    return Need(INITS[row.init], _number(row), _interval(row), row.no_verdict or "")


def _number(row: NeedRow) -> str:
    return "" if row.labels is None else number_text(Number(row.labels, row.labels_bound or ""))


def _interval(row: NeedRow) -> str:
    if row.low is None or row.high is None:
        return ""
    return interval_text(Number(row.low, row.low_bound or ""), Number(row.high, row.high_bound or ""))


@dataclass(frozen=True)
class Tried:
    """The sizes of the curves of one place.

    Attributes:
        smallest, largest: that have a score.
        seeds: of each size; 0 where it is not known.
        dataset_size: training texts that the dataset has; None where that is not known.
    """

    smallest: int
    largest: int
    seeds: int
    dataset_size: int | None


def _tried(rows: Sequence[NeedRow]) -> Tried:
    return Tried(
        min((row.smallest for row in rows if row.smallest is not None), default=0),
        max((row.largest for row in rows if row.largest is not None), default=0),
        min((row.n_seeds for row in rows if row.n_seeds is not None), default=0),
        rows[0].dataset_size,
    )


@dataclass(frozen=True)
class Beyond:
    """Where a power law reaches the target beyond the sizes tried, in words.

    Attributes:
        start: the checkpoint, or random weights.
        number: of labels; empty where there is none.
        interval: its bounds; empty without any.
        lacking: how many more that is than the dataset has; empty where it is none; None where it is not
            known what the dataset has.
        why_not: why there is no number; empty where there is one.
    """

    start: str
    number: str
    interval: str
    lacking: str | None
    why_not: str


def _is_beyond(row: NeedRow) -> bool:
    """Whether there is something to say of a power law: of runs that learned nothing there is not."""
    told = row.extrapolated is not None or row.not_extrapolated is not None
    return told and row.no_verdict not in UNLEARNED


def _beyond(row: NeedRow) -> Beyond:
    return Beyond(
        INITS[row.init],
        _plain(row.extrapolated),
        _extrapolated_interval(row),
        None if row.lacking_extrapolated is None else _plain(row.lacking_extrapolated or None),
        row.not_extrapolated or "",
    )


def _plain(number: float | None) -> str:
    return "" if number is None else number_text(Number(number, ""))


def _extrapolated_interval(row: NeedRow) -> str:
    """The interval of an extrapolation, whose upper end may go too far to be told."""
    if row.extrapolated_low is None:
        return ""
    high = row.extrapolated_high
    end = Number(FURTHEST * known(row.largest), MORE) if high is None else Number(high, "")
    return interval_text(Number(row.extrapolated_low, ""), end)


@dataclass(frozen=True)
class Saved:
    """How many fewer texts the checkpoint takes than random weights, or how many more, in words.

    Attributes:
        fewer: whether it takes fewer.
        at_least: whether it is a bound.
        number: of texts.
        low, high: the interval, below zero where the other takes fewer; empty where it has no such end.
    """

    fewer: bool
    at_least: bool
    number: str
    low: str
    high: str


def _saved(row: NeedRow) -> Saved | None:
    """The difference of both needs; None where it is not known, nor a bound of its size."""
    if row.saved is None:
        return None
    fewer = row.saved >= 0
    if row.saved_bound and row.saved_bound != (MORE if fewer else FEWER):
        return None
    sign = 1 if fewer else -1
    low, high = ((row.saved_low, row.saved_high), (row.saved_high, row.saved_low))[not fewer]
    ends = ("" if end is None else _signed(sign * end) for end in (low, high))
    return Saved(fewer, row.saved_bound is not None, _plain(abs(row.saved)), *ends)


def _signed(number: float) -> str:
    return ("−" if number < 0 else "") + _plain(abs(number))


def next_step(rows: Sequence[NeedRow]) -> str:
    """What would make the numbers known, or reach the target: more seeds, sizes or labels, or another model;
    empty where the numbers are known."""
    if any(row.no_verdict in (ONE_SEED, FEW_SEEDS) for row in rows):
        return "seeds"
    above = [row for row in rows if row.labels_bound == MORE or row.no_verdict == ONE_SIZE]
    if any(row.dataset_size and row.dataset_size > (row.largest or 0) for row in above):
        return "larger"
    if above:
        return _step_beyond({row.not_extrapolated for row in above})
    return "smaller" if any(row.labels_bound == FEWER for row in rows) else ""


def _step_beyond(reasons: Collection[str | None]) -> str:
    """The next step where all texts were tried, by why there is no extrapolation: None where there is one."""
    if FEW_SIZES in reasons:
        return "sizes"
    return "label" if None in reasons else "nowhere"


# --- the table ----------------------------------------------------------------------------------------------


def table(plan: LabelPlan, several: Sequence[str], width: int) -> Table:
    """A row for each curve: the number of labels with its interval, and what a power law says beyond.

    Args:
        plan: of labels.
        several: the columns of PLACE in which rows differ.
        width: columns of the terminal.
    """
    columns: list[tuple[str, Callable[[NeedRow], str | None]]] = [
        *((header("any", name), lambda row, name=name: _name(row, name)) for name in several),
        (header("plan", "start"), lambda row: INITS[row.init]),
        (header("plan", "needed"), lambda row: _number(row) or None),
        (header("any", "interval", level=level_text(plan.experiment.confidence)), _interval_cell),
        (header("plan", "power_law"), lambda row: _plain(row.extrapolated) or None),
        (header("plan", "lacking"), _lacking),
    ]
    named = len(several) + 2  # columns that no screen is too narrow for
    shown = [column for column in columns[named:] if any(column[1](row) for row in plan.rows)]
    columns = [*columns[:named], *shown]
    names = [name for name, _ in columns]
    rows = [[cell(row) for _, cell in columns] for row in plan.rows]
    found = _fitting(Table("plan", names, rows, spare=range(named, len(names))), width)
    optional = [name for name in ("power_law", "lacking") if header("plan", name) in found.header]
    caption = WORDS.say("caption", target_text(plan), metric_name(plan.metric), optional)
    return replace(found, caption=caption)


def _interval_cell(row: NeedRow) -> str | None:
    return _interval(row) or None


def _lacking(row: NeedRow) -> str | None:
    lacking = row.lacking_extrapolated if row.labels_bound == MORE else row.lacking
    return None if lacking is None else number_text(Number(lacking, ""))


def _fitting(whole: Table, width: int) -> Table:
    """The table without those of its spare columns that do not fit, the last first: sentences say it, too."""
    fitting = whole
    while fitting.spare and _width(fitting) > width:
        last = max(fitting.spare)
        fitting = keep(fitting, [place for place in range(len(fitting.header)) if place != last])
    return fitting


def _width(table: Table) -> int:
    """Columns of the terminal that it takes, its headers wrapped."""
    columns = zip(*([map(cell_text, row) for row in table.rows]), strict=True)
    words = (max(map(len, cell_text(name).split())) for name in table.header)
    sizes = [max(word, *map(len, cells)) for word, cells in zip(words, columns, strict=True)]
    return sum(sizes) + GAP * (len(sizes) - 1)
