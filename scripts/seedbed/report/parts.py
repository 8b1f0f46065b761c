"""Parts that summary and report are made of: cells with their units, tables that know their limits, figures.

Shares are percentages and their differences in points, losses are in nats; every header says which, and its
cells leave it out. Where a function takes a metric, an accuracy stands for any share.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from seedbed.analysis.experiment import Experiment
from seedbed.core import wording
from seedbed.core.rows import R, Row
from seedbed.core.wording import Words
from seedbed.core.words import (
    NOTHING,
    bounds_of,
    change,
    code,
    difference_bound,
    difference_range,
    mean_sd,
    p_text,
    percent,
    unit_of,
    value_range,
    value_text,
    with_unit,
)
from seedbed.figures import registry
from seedbed.report.documents.blocks import Block, Cell, Figure, Heading, Paragraph, Table, cell_text, spans
from seedbed.report.sources import Sources

MAX_LISTED = 20  # items of a list, or tables of one kind
MAX_ROWS = 200  # of a table; the CSV holds them all
PLACE = ("dataset", "model")
WORDS = Words("report/parts")


# --- words --------------------------------------------------------------------------------------------------


def heading(section: str, level: int = 2, /, **values: Any) -> Heading:
    """A heading of data/headings.yaml."""
    return Heading(heading_text(section, **values), level)


def heading_text(section: str, /, **values: Any) -> str:
    """The text of a heading of data/headings.yaml."""
    return wording.fill(wording.data("report/headings")[section], **values)


def header(table: str, column: str, /, **values: Any) -> str:
    """The header of a column in data/columns.yaml: the table's own, or the one of any table."""
    columns = wording.data("report/columns")
    own = columns.get(table, {})
    return wording.fill(own[column] if column in own else columns["any"][column], **values)


def headers(table: str, *columns: str) -> list[str]:
    """The headers of several columns."""
    return [header(table, column) for column in columns]


def cell_word(name: str, /, **values: Any) -> str:
    """What a cell says in the words of data/cells.yaml."""
    return wording.fill(wording.data("report/cells")[name], **values)


# headers of columns with conditions, not results; `with_places` may fold them into the caption
CONDITIONS = headers("any", "seeds_a_side", "test_examples", "seeds", "test_set")

# --- cells --------------------------------------------------------------------------------------------------


def percent_cell(share: float | None) -> Cell | None:
    """A share in per cent; its header says so."""
    return None if share is None else Cell(percent(share).replace("%", ""), 100 * share)


def value_cell(metric: str, value: float | None) -> Cell | None:
    """A value in the unit of its metric; its header says which."""
    if value is None:
        return None
    return Cell(value_text(metric, value).replace("%", ""), unit_of(metric).factor * value)


def mean_cell(mean: float | None, sd: float | None, metric: str = "accuracy") -> Cell | None:
    """A mean with its standard deviation, below a `mean_header`: of a share in per cent and points."""
    if mean is None:
        return None
    factor = unit_of(metric).factor
    copied = factor * mean, None if sd is None else factor * sd
    return Cell(mean_sd(metric, mean, sd).replace("%", ""), factor * mean, copied)


def mean_header(what: str, metric: str = "accuracy") -> Cell:
    """The header of means with their standard deviations, which are copied as a column each."""
    unit = unit_of(metric)
    mean, sd = header("any", "mean_of", what=what), header("any", "sd_of", what=what)
    copied = with_unit(mean, unit.value), with_unit(sd, unit.difference)
    return Cell(with_unit(what, unit.value), copied=copied)


def points_cell(difference: float | None, digits: int = 1, metric: str = "accuracy") -> Cell | None:
    """A difference, of shares in points, with so many digits, or as many more as the metric has; its header
    says the unit."""
    if difference is None:
        return None
    text = change(metric, difference, digits - 1)
    return Cell(text, unit_of(metric).factor * difference)


def size_cell(size: float | None, digits: int = 1, metric: str = "accuracy") -> Cell | None:
    """The same of a size, which has no sign, such as a standard error."""
    if size is None:
        return None
    text = change(metric, size, digits - 1).removeprefix("+")
    return Cell(text, unit_of(metric).factor * size)


def part_cell(error: float | None, metric: str) -> Cell | None:
    """A part of an error or a spread; an estimate of its variance may be zero or less, which is no zero."""
    return Cell(cell_word("not_above_zero"), error) if error == 0 else size_cell(error, 2, metric)


def p_cell(p_value: float | None) -> Cell | None:
    """A p-value."""
    return None if p_value is None else Cell(p_text(p_value), p_value)


def number_cell(value: float | None, digits: int = 0) -> Cell | None:
    """A number with thousands separators."""
    return None if value is None else Cell(f"{value:,.{digits}f}", value)


def counted_cell(row: Row) -> Cell:
    """A counted number of parameters, which says so where it is not the expected one."""
    differs = row["expected"] is not None and row["expected"] != row["counted"]
    text = f"{row['counted']:,}"
    return Cell(cell_word("differs", number=text) if differs else text, row["counted"])


def interval_header(what: str, unit: str) -> Cell:
    """The header of intervals, whose bounds are copied as a column each."""
    low, high = (with_unit(header("any", end, what=what), unit) for end in ("low", "high"))
    return Cell(with_unit(what, unit), copied=(low, high))


def interval_cell(
    low: float | None, high: float | None, metric: str = "accuracy", of_gains: bool = False
) -> Cell | None:
    """An interval of a difference, that of shares cut at 100 points, that of their gains at 200: none is
    larger."""
    if low is None or high is None:
        return None
    factor, most = unit_of(metric).factor, difference_bound(metric, of_gains)
    low, high = max(-most, low), min(most, high)
    return Cell(difference_range(metric, low, high), copied=(factor * low, factor * high))


def share_interval_cell(low: float | None, high: float | None, metric: str = "accuracy") -> Cell | None:
    """An interval of values, of shares in per cent, cut at what is possible."""
    if low is None or high is None:
        return None
    factor, (least, most) = unit_of(metric).factor, bounds_of(metric)
    low, high = max(least, low), min(most, high)
    return Cell(value_range(metric, low, high).replace("%", ""), copied=(factor * low, factor * high))


# --- texts --------------------------------------------------------------------------------------------------


def literal(text: str) -> str:
    """A text of the data that is shown as it is: as code where it would be taken for Markdown."""
    return text if all(span.kind == "text" for span in spans(text)) else code(text)


def place_text(dataset: str, model: str) -> str:
    return f"{dataset}, {model}"


# --- tables and figures -------------------------------------------------------------------------------------


def capped(table: Table, rows_are: str, *files: str) -> list[Block]:
    """The table with its first MAX_ROWS rows, and where rows were left out a sentence that says so.

    Args:
        table: with all rows.
        rows_are: what they are, one of those in data/titles.yaml.
        files: that hold them all.
    """
    left_out = len(table.rows) - MAX_ROWS
    if left_out <= 0:
        return [table]
    shown = replace(table, rows=table.rows[:MAX_ROWS])
    named = wording.data("report/titles")["rows"][rows_are]
    return [shown, Paragraph(WORDS.say("capped", MAX_ROWS, named, left_out, list(files)))]


def with_places(
    rows: Sequence[R],
    name: str,
    header: Sequence[str | Cell],
    line: Callable[[R], Sequence[Any]],
    *,
    caption: str,
    named: int = 0,
    right: Sequence[int] = (),
    places: Sequence[str] = PLACE,
) -> Table:
    """A table of rows; dataset and model stand first where they are not the same throughout. What tells rows
    apart and CONDITIONS of the numbers go into the caption where they are the same, unless they are empty.

    Args:
        rows: what the lines are made of.
        name, caption, right: of the table; `right` counts the columns of `header`.
        header, line: headers, and the cells of a row.
        named: how many of the first columns tell rows apart; `fold` takes those that do not.
        places: of dataset and model those that no column of `header` names.
    """
    keys = [key for key in places if len({row[key] for row in rows}) > 1]
    body = [[*(row[key] for key in keys), *line(row)] for row in rows]
    names = [*headers("any", *keys), *header]
    table = Table(name, names, body, caption, [index + len(keys) for index in right])
    conditions = {index for index, name in enumerate(table.header) if cell_text(name) in CONDITIONS}
    return fold(table, sorted({*range(len(keys), len(keys) + named), *conditions}))


def fold(table: Table, columns: Collection[int]) -> Table:
    """The table without those of these columns that say the same in each row; the caption says it instead,
    unless it is nothing. A single row keeps the first of them, which names it."""
    several = len(table.rows) > 1
    told, empty = {}, set()
    for index in sorted(columns)[0 if several else 1 :] if table.rows else ():
        texts = {cell_text(row[index]) for row in table.rows}
        if texts == {""} or (texts == {NOTHING} and not several):
            empty.add(index)
        elif len(texts) == 1:
            told[index] = f"{cell_text(table.header[index])} {texts.pop()}"
    if not told and not empty:
        return table
    kept = keep(table, [index for index in range(len(table.header)) if index not in {*told, *empty}])
    if not told:
        return kept
    return replace(kept, caption=WORDS.say("same_throughout", table.caption, several, list(told.values())))


def keep(table: Table, columns: Sequence[int]) -> Table:
    """The table with these columns alone, in this order."""
    return replace(
        table,
        header=[table.header[index] for index in columns],
        rows=[[row[index] for index in columns] for row in table.rows],
        right=[place for place, index in enumerate(columns) if index in table.right],
        spare=[place for place, index in enumerate(columns) if index in table.spare],
    )


def figures(experiment: Experiment, sources: Sources, section: str) -> list[Block]:
    """The figures of a section with their captions, as far as the experiment has them."""
    task = experiment.task
    return [
        Figure(spec.name, spec.title_for(task), caption.text, caption.details)
        for spec in registry.FIGURES
        if spec.section == section and (caption := sources.captions.get(spec.name))
    ]
