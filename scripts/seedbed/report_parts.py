"""Parts that summary and report are made of: cells with their units, tables that know their limits, figures.

Accuracies are percentages, differences are in points; every header says which.
"""

from collections.abc import Callable, Sequence
from typing import Any

from seedbed.document import Block, Cell, Figure, Paragraph, Table, code, spans
from seedbed.findings import Findings
from seedbed.rows import Row
from seedbed.words import p_text, percent_sd, points, points_range

MAX_LISTED = 20  # items of a list, or tables of one kind
MAX_ROWS = 200  # of a table; the CSV holds them all
PLACE = ("dataset", "model")
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


def percent_cell(mean: float | None, sd: float | None = None) -> Cell | None:
    """A share in per cent, with its standard deviation where there is one; sorted by the share."""
    return None if mean is None else Cell(percent_sd(mean, sd), round(100 * mean, 6))


def points_cell(difference: float | None) -> Cell | None:
    """A difference in points; its header says so."""
    return None if difference is None else Cell(points(difference), round(100 * difference, 6))


def size_cell(size: float | None, digits: int = 1) -> Cell | None:
    """A size in points, which has no sign, such as a standard error."""
    return None if size is None else Cell(f"{100 * size:.{digits}f}", round(100 * size, 6))


def p_cell(p_value: float | None) -> Cell | None:
    """A p-value."""
    return None if p_value is None else Cell(p_text(p_value), p_value)


def number_cell(value: float | None, digits: int = 0) -> Cell | None:
    """A number with thousands separators."""
    return None if value is None else Cell(f"{value:,.{digits}f}", value)


def range_text(low: float | None, high: float | None) -> str | None:
    """An interval of a difference in points, without a unit, cut at 100 points: no difference is larger."""
    return None if low is None or high is None else points_range(max(-1.0, low), min(1.0, high))


def literal(text: str) -> str:
    """A text of the data that is shown as it is: as code where it would be taken for Markdown."""
    return text if all(span.kind == "text" for span in spans(text)) else code(text)


def place_text(dataset: str, model: str) -> str:
    return f"{dataset}, {model}"


def capped(table: Table, rows_are: str, file: str) -> list[Block]:
    """The table with its first MAX_ROWS rows, and where rows were left out a sentence that says so."""
    left_out = len(table.rows) - MAX_ROWS
    if left_out <= 0:
        return [table]
    shown = Table(table.name, table.header, table.rows[:MAX_ROWS], table.caption, table.right)
    return [shown, Paragraph(f"The first {MAX_ROWS} {rows_are}; {left_out:,} more stand in {file}.")]


def with_places(
    rows: Sequence[Row],
    name: str,
    header: Sequence[str],
    line: Callable[[Row], Sequence[Any]],
    *,
    caption: str,
    right: Sequence[int] = (),
) -> Table:
    """A table of rows; dataset and model stand first where they are not the same throughout."""
    keys = [key for key in PLACE if len({row[key] for row in rows}) > 1]
    body = [[*(row[key] for key in keys), *line(row)] for row in rows]
    return Table(name, [*keys, *header], body, caption, [index + len(keys) for index in right])


def figure(findings: Findings, name: str) -> list[Block]:
    """The figure with its caption, where the experiment has it."""
    if name not in findings.figures:
        return []
    return [Figure(name, FIGURES.get(name, name), findings.captions.get(name, ""))]
