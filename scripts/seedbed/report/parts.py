"""Parts that summary and report are made of: cells with their units, tables that know their limits, figures.

Accuracies are percentages, differences are in points; every header says which, and its cells leave it out.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from seedbed.analysis.rows import Row
from seedbed.documents.blocks import Block, Cell, Figure, Paragraph, Table, cell_text, code, spans
from seedbed.report.findings import Findings
from seedbed.words import p_text, percent, percent_range, percent_sd, points, points_range

MAX_LISTED = 20  # items of a list, or tables of one kind
MAX_ROWS = 200  # of a table; the CSV holds them all
PLACE = ("dataset", "model")
CONDITIONS = ("seeds a side", "test examples", "smallest exact p", "seeds", "test set")  # no results
FIGURES = {
    "data_audit": "The data: token lengths, classes, duplicates and leaks",
    "test_accuracy": "Test accuracy of the selected checkpoints",
    "contrasts": "Differences with their intervals",
    "performance_profile": "Performance profile over the datasets",
    "test_accuracy_by_recipe": "Test accuracy over the swept values",
    "expected_validation": "Expected best validation accuracy, by the number of settings tried",
    "learning_curves": "Accuracy and loss while training",
    "test_curves": "Test accuracy while training (it selects nothing)",
    "calibration": "Calibration on the test set",
    "confusion": "Confusion on the test set",
    "time_and_memory": "Time and memory of the runs",
}


# --- cells --------------------------------------------------------------------------------------------------


def percent_cell(share: float | None) -> Cell | None:
    """A share in per cent; its header says so."""
    return None if share is None else Cell(percent(share).replace("%", ""), 100 * share)


def mean_cell(mean: float | None, sd: float | None) -> Cell | None:
    """A mean share in per cent with its standard deviation in points, below a `mean_header`."""
    if mean is None:
        return None
    copied = 100 * mean, None if sd is None else 100 * sd
    return Cell(percent_sd(mean, sd).replace("%", ""), 100 * mean, copied)


def mean_header(what: str) -> Cell:
    """The header of means with their standard deviations, which are copied as a column each."""
    return Cell(f"{what} (%)", copied=(f"mean {what} (%)", f"sd of {what} (points)"))


def points_cell(difference: float | None, digits: int = 1) -> Cell | None:
    """A difference in points; its header says so."""
    return None if difference is None else Cell(points(difference, digits), 100 * difference)


def size_cell(size: float | None, digits: int = 1) -> Cell | None:
    """A size in points, which has no sign, such as a standard error."""
    return None if size is None else Cell(points(size, digits).removeprefix("+"), 100 * size)


def p_cell(p_value: float | None) -> Cell | None:
    """A p-value."""
    return None if p_value is None else Cell(p_text(p_value), p_value)


def number_cell(value: float | None, digits: int = 0) -> Cell | None:
    """A number with thousands separators."""
    return None if value is None else Cell(f"{value:,.{digits}f}", value)


def interval_header(what: str, unit: str) -> Cell:
    """The header of intervals, whose bounds are copied as a column each."""
    return Cell(f"{what} ({unit})", copied=(f"{what}, low ({unit})", f"{what}, high ({unit})"))


def interval_cell(low: float | None, high: float | None) -> Cell | None:
    """An interval of a difference in points, cut at 100 points: no difference is larger."""
    if low is None or high is None:
        return None
    low, high = max(-1.0, low), min(1.0, high)
    return Cell(points_range(low, high), copied=(100 * low, 100 * high))


def share_interval_cell(low: float | None, high: float | None) -> Cell | None:
    """An interval of a share in per cent, cut at 0 and 100."""
    if low is None or high is None:
        return None
    low, high = max(0.0, low), min(1.0, high)
    return Cell(percent_range(low, high).replace("%", ""), copied=(100 * low, 100 * high))


# --- texts --------------------------------------------------------------------------------------------------


def literal(text: str) -> str:
    """A text of the data that is shown as it is: as code where it would be taken for Markdown."""
    return text if all(span.kind == "text" for span in spans(text)) else code(text)


def place_text(dataset: str, model: str) -> str:
    return f"{dataset}, {model}"


# --- tables and figures -------------------------------------------------------------------------------------


def capped(table: Table, rows_are: str, file: str) -> list[Block]:
    """The table with its first MAX_ROWS rows, and where rows were left out a sentence that says so."""
    left_out = len(table.rows) - MAX_ROWS
    if left_out <= 0:
        return [table]
    shown = replace(table, rows=table.rows[:MAX_ROWS])
    return [shown, Paragraph(f"The first {MAX_ROWS} {rows_are}; {left_out:,} more stand in {file}.")]


def with_places(
    rows: Sequence[Row],
    name: str,
    header: Sequence[str | Cell],
    line: Callable[[Row], Sequence[Any]],
    *,
    caption: str,
    named: int = 0,
    right: Sequence[int] = (),
    places: Sequence[str] = PLACE,
) -> Table:
    """A table of rows; dataset and model stand first where they are not the same throughout. What tells rows
    apart and CONDITIONS of the numbers go into the caption where they are the same.

    Args:
        rows: what the lines are made of.
        name, caption, right: of the table; `right` counts the columns of `header`.
        header, line: headers, and the cells of a row.
        named: how many of the first columns tell rows apart; `fold` takes those that do not.
        places: of dataset and model those that no column of `header` names.
    """
    keys = [key for key in places if len({row[key] for row in rows}) > 1]
    body = [[*(row[key] for key in keys), *line(row)] for row in rows]
    table = Table(name, [*keys, *header], body, caption, [index + len(keys) for index in right])
    conditions = {index for index, name in enumerate(table.header) if cell_text(name) in CONDITIONS}
    return fold(table, sorted({*range(len(keys), len(keys) + named), *conditions}))


def fold(table: Table, columns: Collection[int]) -> Table:
    """The table without those of these columns that say the same in each of several rows; the caption says
    it instead."""
    if len(table.rows) < 2:
        return table
    told = {}
    for index in columns:
        texts = {cell_text(row[index]) for row in table.rows}
        if len(texts) == 1:
            told[index] = f"{cell_text(table.header[index])} {texts.pop()}"
    if not told:
        return table
    ending = "" if table.caption.endswith(".") else "."
    return replace(
        keep(table, [index for index in range(len(table.header)) if index not in told]),
        caption=f"{table.caption}{ending} All rows: {'; '.join(told.values())}.",
    )


def keep(table: Table, columns: Sequence[int]) -> Table:
    """The table with these columns alone, in this order."""
    return replace(
        table,
        header=[table.header[index] for index in columns],
        rows=[[row[index] for index in columns] for row in table.rows],
        right=[place for place, index in enumerate(columns) if index in table.right],
    )


def figure(findings: Findings, name: str) -> list[Block]:
    """The figure with its caption, where the experiment has it."""
    if name not in findings.figures:
        return []
    return [Figure(name, FIGURES.get(name, name), findings.captions.get(name, ""))]
