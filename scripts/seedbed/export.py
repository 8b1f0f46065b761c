"""The summary and the contrasts for other people's documents: one table each, as CSV, Markdown and LaTeX.

Every column with a unit names it in its header. Accuracies are in per cent, differences and sds in points;
summary.csv and contrasts.csv hold the same as fractions.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedbed.document import Cell, Table
from seedbed.files import write_text
from seedbed.render_latex import to_latex
from seedbed.render_markdown import to_markdown
from seedbed.rows import Row, read_table
from seedbed.words import p_text

Show = Callable[[Any], Cell | Any]


@dataclass(frozen=True)
class Column:
    """A column of the exported table.

    Args:
        key: the column of the machine's table.
        header: with its unit.
        show: makes a cell of a value that is there.
        printed: whether it is among the few that fit on a printed page, as LaTeX makes them.
    """

    key: str
    header: str
    show: Show
    printed: bool = True


def _text(value: Any) -> str:
    return "yes" if value is True else "no" if value is False else str(value)


def _hundredfold(digits: int) -> Show:
    """A fraction in per cent or points: the header says which."""
    return lambda value: Cell(f"{100 * value:.{digits}f}".replace("-", "−"), round(100 * value, 6))


def _number(digits: int) -> Show:
    return lambda value: Cell(f"{value:.{digits}f}", value)


def _whole(value: int) -> Cell:
    return Cell(f"{value:,}", value)


def _p(value: float) -> Cell:
    return Cell(p_text(value), value)


PLACE = (
    Column("dataset", "dataset", _text),
    Column("model", "model", _text),
)
TEST_SET = Column("test_set", "test set", _text)


def summary_columns(level: str) -> tuple[Column, ...]:
    """Columns of the summary; `level` is such as 95%."""
    return (
        *PLACE,
        Column("framework", "framework", _text),
        Column("init", "init", _text),
        Column("recipe", "recipe", _text),
        Column("selection", "recipe chosen", _text),
        TEST_SET,
        Column("n_seeds", "seeds", _whole),
        Column("n_collapsed", "collapsed", _whole),
        Column("mean", "mean test accuracy (%)", _hundredfold(1)),
        Column("sd", "sample sd (points)", _hundredfold(1)),
        Column("ci_low", f"{level} t interval over seeds, low (%)", _hundredfold(1)),
        Column("ci_high", f"{level} t interval over seeds, high (%)", _hundredfold(1)),
        Column("median", "median (%)", _hundredfold(1), printed=False),
        Column("iqm", "interquartile mean (%)", _hundredfold(1), printed=False),
        Column("min", "min (%)", _hundredfold(1), printed=False),
        Column("max", "max (%)", _hundredfold(1), printed=False),
        Column("mean_without_collapsed", "mean without collapsed (%)", _hundredfold(1), printed=False),
        Column("validation_mean", "mean validation accuracy (%)", _hundredfold(1)),
        Column("validation_sd", "validation sample sd (points)", _hundredfold(1)),
        Column(
            "expected_best",
            "expected best validation accuracy of these seeds (%)",
            _hundredfold(1),
            printed=False,
        ),
        Column("binomial_se", "binomial standard error (points)", _hundredfold(1), printed=False),
        Column("ece", "ECE (points)", _hundredfold(1), printed=False),
        Column("majority_share", "majority class (%)", _hundredfold(1), printed=False),
        Column("bag_of_words", "bag of words (%)", _hundredfold(1), printed=False),
    )


def contrast_columns(level: str) -> tuple[Column, ...]:
    """Columns of the contrasts; `level` is such as 95%."""
    return (
        Column("family", "family", _text),
        *PLACE,
        Column("dataset_b", "dataset of b", _text),
        Column("model_b", "model of b", _text),
        TEST_SET,
        Column("contrast", "contrast", _text, printed=False),
        Column("a", "a", _text),
        Column("b", "b", _text),
        Column("recipe_a", "recipe of a", _text),
        Column("recipe_b", "recipe of b", _text),
        Column("selection", "recipes chosen", _text),
        Column("paired", "paired over seeds", _text),
        Column("n_a", "seeds of a", _whole),
        Column("n_b", "seeds of b", _whole),
        Column("delta", "difference (points)", _hundredfold(1)),
        Column("ci_low", f"{level} Multi-Bootstrap, low (points)", _hundredfold(1)),
        Column("ci_high", f"{level} Multi-Bootstrap, high (points)", _hundredfold(1)),
        Column("t_low", f"{level} t over seeds alone, low (points)", _hundredfold(1), printed=False),
        Column("t_high", f"{level} t over seeds alone, high (points)", _hundredfold(1), printed=False),
        Column("standard_error", "standard error (points)", _hundredfold(2), printed=False),
        Column("se_seeds", "from seeds (points)", _hundredfold(2), printed=False),
        Column("se_examples", "from test examples (points)", _hundredfold(2), printed=False),
        Column("p_value", "exact p", _p),
        Column("p_holm", "p, Holm", _p),
        Column("margin", "equivalence margin (points)", _hundredfold(1), printed=False),
        Column("p_equivalence", "p, equivalence", _p, printed=False),
        Column("equivalence", "equivalence", _text),
        Column("probability_of_improvement", "probability of improvement", _number(2), printed=False),
        Column("aso_eps_min", "ASO ε_min", _number(2), printed=False),
    )


def write_tables(
    summary: str | Path,
    contrasts: str | Path,
    reporting: Mapping[str, Any],
    outputs: Mapping[str, str | Path],
) -> None:
    """Write both tables in all formats: CSV has every column, LaTeX those that fit on a page.

    Args:
        summary: summary.csv.
        contrasts: contrasts.csv.
        reporting: `Plan.reporting()`.
        outputs: paths: summary_csv, summary_md, summary_tex, contrasts_csv, contrasts_md, contrasts_tex.
    """
    level = f"{100 * reporting['statistics']['confidence']:.4g}%"
    experiment = reporting["experiment"]
    told = f"Test accuracy over seeds, experiment {experiment}. sd: sample standard deviation over seeds."
    compared = f"Differences in test accuracy, side a minus side b, experiment {experiment}."
    for name, columns, path, caption in (
        ("summary", summary_columns(level), summary, told),
        ("contrasts", contrast_columns(level), contrasts, compared),
    ):
        rows = read_table(path)
        write_text(outputs[f"{name}_csv"], to_csv(make_table(name, columns, rows, caption)))
        told_apart = [column for column in columns if not _repeats(column, rows)]
        full = shorten(make_table(name, told_apart, rows, caption))
        write_text(outputs[f"{name}_md"], to_markdown([full]))
        printed = [column for column in told_apart if column.printed]
        write_text(outputs[f"{name}_tex"], to_latex(shorten(make_table(name, printed, rows, caption))))


def _repeats(column: Column, rows: Sequence[Row]) -> bool:
    """Whether a column of side b says what the one of side a has said."""
    first = {"dataset_b": "dataset", "model_b": "model"}.get(column.key)
    return first is not None and all(row[column.key] == row[first] for row in rows)


def make_table(name: str, columns: Sequence[Column], rows: Sequence[Row], caption: str) -> Table:
    """All columns of all rows; a value that is not there is an empty cell."""
    body = [[_cell(column, row[column.key]) for column in columns] for row in rows]
    right = [index for index, column in enumerate(columns) if column.show is not _text]
    return Table(name, [column.header for column in columns], body, caption, right)


def _cell(column: Column, value: Any) -> Any:
    return None if value is None or value == "" else column.show(value)


def shorten(table: Table) -> Table:
    """The table without the columns that say nothing: those that are empty, and those of text whose one value
    is told in the caption instead."""
    kept, told = [], []
    for index, header in enumerate(table.header):
        texts = {_plain(row[index]) for row in table.rows}
        if texts <= {""}:
            continue
        if len(texts) == 1 and index not in table.right and len(table.rows) > 1:
            told.append(f"{header} {texts.pop()}")
        else:
            kept.append(index)
    caption = f"{table.caption} All rows: {', '.join(told)}." if told else table.caption
    return Table(
        table.name,
        [table.header[index] for index in kept],
        [[row[index] for index in kept] for row in table.rows],
        caption,
        [place for place, index in enumerate(kept) if index in table.right],
    )


def _plain(cell: Any) -> str:
    value = cell.value if isinstance(cell, Cell) else cell
    return "" if value is None else str(value)


def to_csv(table: Table) -> str:
    """The table as CSV, with values as they are sorted, in the units of the header."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.header)
    writer.writerows([_plain(cell) for cell in row] for row in table.rows)
    return stream.getvalue()
