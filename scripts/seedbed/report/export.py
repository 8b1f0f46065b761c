"""The summary and the contrasts for other people's documents, as CSV, Markdown and LaTeX.

Every column with a unit names it in its header. Accuracies are in per cent, differences and sds in points;
summary.csv and contrasts.csv hold the same as fractions. Where a task reports several metrics, a column
names the unit of each row. CSV and Markdown have one table of all columns; LaTeX has what fits on a page: a
table for each metric, of the contrasts for each family.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedbed.analysis.differences import Contrast
from seedbed.analysis.methods import is_over_means, unit_text
from seedbed.analysis.table_rows import SummaryRow, read_summary
from seedbed.analysis.verdicts import equivalence_word, is_withheld, verdict
from seedbed.core.files import write_text
from seedbed.core.rows import Row, grouped
from seedbed.core.tasks import DEFAULT, TASKS, Task, task_of
from seedbed.core.words import (
    bag_remarks,
    capital,
    count,
    framework_name,
    join,
    level_text,
    metric_name,
    p_text,
    recipe_text,
    unit_of,
    with_unit,
)
from seedbed.report.documents.blocks import Cell, Table
from seedbed.report.documents.latex import to_latex
from seedbed.report.documents.markdown import to_markdown
from seedbed.report.parts import (
    fold,
    interval_cell,
    keep,
    mean_cell,
    p_cell,
    points_cell,
    share_interval_cell,
    size_cell,
)
from seedbed.report.sections_contrasts import (
    FAMILIES,
    contrast_recipe,
    direction,
    margin_cell,
    seeds_text,
    subject,
    subject_header,
)

Show = Callable[[Any, str], Cell | Any]
OF_ROW = "unit of the row"  # in headers, where metrics have units of their own


@dataclass(frozen=True)
class Column:
    """A column of the exported table.

    Args:
        key: the column of the machine's table.
        header: with its unit.
        show: makes a cell of a value that is there, and of its row's metric.
    """

    key: str
    header: str
    show: Show


def _text(value: Any, metric: str) -> str:
    return "yes" if value is True else "no" if value is False else str(value)


def _amount(digits: int) -> Show:
    """A value in the unit of its metric, such as a fraction in per cent or points: the header says which."""
    return lambda value, metric: size_cell(value, digits, metric)


def _share(value: float, metric: str) -> Cell | None:
    """A fraction in per cent, whatever the metric."""
    return size_cell(value)


def _difference(value: float, metric: str) -> Cell | None:
    """A difference with its sign."""
    return points_cell(value, metric=metric)


def _number(digits: int) -> Show:
    return lambda value, metric: Cell(f"{value:.{digits}f}", value)


def _whole(value: int, metric: str) -> Cell:
    return Cell(f"{value:,}", value)


def _p(value: float, metric: str) -> Cell:
    return Cell(p_text(value), value)


PLACE = (
    Column("dataset", "dataset", _text),
    Column("model", "model", _text),
)
TEST_SET = Column("test_set", "test set", _text)
# of tasks that report several metrics
MEASURE = (
    Column("metric", "metric", lambda value, metric: metric_name(value)),
    Column("unit", "unit", _text),
)


def summary_columns(level: str, task: Task = TASKS[DEFAULT]) -> tuple[Column, ...]:
    """Columns of the summary of a task; `level` is such as 95%."""
    if len(task.reported) == 1:
        return _summary_columns(level, "test accuracy", "validation accuracy", "%", "points")
    columns = _summary_columns(level, "test score", "validation score", OF_ROW, OF_ROW)
    left_out = ("majority_share", "bag_of_words", "ece")  # of classes
    kept = [column for column in columns if column.key not in left_out]
    place = next(index for index, column in enumerate(kept) if column.key == "n_seeds")
    return (*kept[:place], *MEASURE, *kept[place:])


def _summary_columns(level: str, tested: str, validated: str, unit: str, spread: str) -> tuple[Column, ...]:
    """Columns of the summary; `unit` is that of scores, and `spread` of their standard deviations."""
    return (
        *PLACE,
        Column("framework", "framework", _text),
        Column("init", "init", _text),
        Column("recipe", "recipe", _text),
        Column("selection", "recipe chosen", _text),
        TEST_SET,
        Column("n_seeds", "seeds", _whole),
        Column("n_collapsed", "collapsed", _whole),
        Column("mean", f"mean {tested} ({unit})", _amount(1)),
        Column("sd", f"sample sd ({spread})", _amount(1)),
        Column("ci_low", f"{level} t interval over seeds, low ({unit})", _amount(1)),
        Column("ci_high", f"{level} t interval over seeds, high ({unit})", _amount(1)),
        Column("median", f"median ({unit})", _amount(1)),
        Column("iqm", f"interquartile mean ({unit})", _amount(1)),
        Column("min", f"min ({unit})", _amount(1)),
        Column("max", f"max ({unit})", _amount(1)),
        Column("mean_without_collapsed", f"mean without collapsed ({unit})", _amount(1)),
        Column("validation_mean", f"mean {validated} ({unit})", _amount(1)),
        Column("validation_sd", f"validation sample sd ({spread})", _amount(1)),
        Column("expected_best", f"expected best {validated} of these seeds ({unit})", _amount(1)),
        Column("chosen_share", "chosen on validation, of replicates (%)", _share),
        Column("binomial_se", "binomial standard error (points)", _share),
        Column("ece", "ECE (points)", _share),
        Column("majority_share", "majority class (%)", _share),
        Column("bag_of_words", "bag of words (%)", _share),
    )


def contrast_columns(level: str, equivalence: str, task: Task = TASKS[DEFAULT]) -> tuple[Column, ...]:
    """Columns of the contrasts; the level of their intervals is such as 95%, and 90% of equivalence."""
    if len(task.reported) == 1:
        return _contrast_columns(level, equivalence, "points")
    columns = _contrast_columns(level, equivalence, OF_ROW)
    place = next(index for index, column in enumerate(columns) if column.key == "contrast")
    return (*columns[:place], *MEASURE, *columns[place:])


def _contrast_columns(level: str, equivalence: str, unit: str) -> tuple[Column, ...]:
    """Columns of the contrasts; `unit` is that of differences."""
    return (
        Column("family", "family", _text),
        *PLACE,
        Column("dataset_b", "dataset of b", _text),
        Column("model_b", "model of b", _text),
        TEST_SET,
        Column("contrast", "contrast", _text),
        Column("a", "a", _text),
        Column("b", "b", _text),
        Column("recipe_a", "recipe of a", _text),
        Column("recipe_b", "recipe of b", _text),
        Column("selection", "recipes chosen", _text),
        Column("paired", "paired over seeds", _text),
        Column("n_a", "seeds of a", _whole),
        Column("n_b", "seeds of b", _whole),
        Column("delta", f"difference ({unit})", _difference),
        Column("ci_low", f"{level} Multi-Bootstrap, low ({unit})", _difference),
        Column("ci_high", f"{level} Multi-Bootstrap, high ({unit})", _difference),
        Column("bootstrap_low", f"{level} percentile interval, low ({unit})", _difference),
        Column("bootstrap_high", f"{level} percentile interval, high ({unit})", _difference),
        Column("t_low", f"{level} t over seeds alone, low ({unit})", _difference),
        Column("t_high", f"{level} t over seeds alone, high ({unit})", _difference),
        Column("standard_error", f"standard error ({unit})", _amount(2)),
        Column("se_seeds", f"from seeds ({unit})", _amount(2)),
        Column("se_examples", f"from test examples ({unit})", _amount(2)),
        Column("se_examples_upper", f"from test examples, upper ({unit})", _amount(2)),
        Column("p_value", "exact p", _p),
        Column("p_holm", "p, Holm", _p),
        Column("margin", f"equivalence margin ({unit})", _amount(1)),
        Column("p_equivalence", "p, equivalence", _p),
        Column("p_equivalence_holm", "p, equivalence, Holm", _p),
        Column("equivalence_low", f"{equivalence} equivalence interval, low ({unit})", _difference),
        Column("equivalence_high", f"{equivalence} equivalence interval, high ({unit})", _difference),
        Column("equivalence", "equivalence", _text),
        Column("no_verdict", "no verdict, because", _text),
        Column("delta_without_collapsed", f"difference without collapsed ({unit})", _difference),
        Column("ci_low_without_collapsed", f"{level} of it, low ({unit})", _difference),
        Column("ci_high_without_collapsed", f"{level} of it, high ({unit})", _difference),
        Column("probability_of_improvement", "probability of improvement", _number(2)),
        Column("aso_eps_min", "ASO ε_min", _number(2)),
    )


def write_tables(
    summary: str | Path,
    contrasts: str | Path,
    reporting: Mapping[str, Any],
    outputs: Mapping[str, str | Path],
) -> None:
    """Write both in all formats.

    Args:
        summary: summary.csv.
        contrasts: contrasts.csv.
        reporting: `Plan.reporting()`.
        outputs: paths: summary_csv, summary_md, summary_tex, contrasts_csv, contrasts_md, contrasts_tex.
    """
    level, equivalence = _levels(reporting)
    experiment, task = reporting["experiment"], task_of(reporting)
    scores = "test accuracy" if len(task.reported) == 1 else "test scores"
    told = f"{capital(scores)} over seeds, experiment {experiment}. sd: sample standard deviation over seeds."
    compared = f"Differences in {scores}, side a minus side b, experiment {experiment}."
    scored = read_summary(summary)
    differences = Contrast.read(contrasts, "table of contrasts")
    if remarks := bag_remarks(scored):
        told = " ".join([told, *remarks])
    for name, columns, found, caption, printed in (
        ("summary", summary_columns(level, task), scored, told, printed_summary(scored, reporting)),
        (
            "contrasts",
            contrast_columns(level, equivalence, task),
            differences,
            compared,
            printed_contrasts(differences, reporting),
        ),
    ):
        rows = [_with_unit(row, name) for row in found]
        write_text(outputs[f"{name}_csv"], to_csv(make_table(name, columns, rows, caption)))
        told_apart = [column for column in columns if not _repeats(column, rows)]
        full = shorten(make_table(name, told_apart, rows, caption))
        write_text(outputs[f"{name}_md"], to_markdown([full]))
        write_text(outputs[f"{name}_tex"], "\n".join(map(to_latex, printed)))


def _with_unit(row: Row, name: str) -> Row:
    """The row with the unit of its metric; that of the summary's scores, or of differences."""
    unit = unit_of(row["metric"])
    return {**row, "unit": unit.value if name == "summary" else unit.difference}


def _levels(reporting: Mapping[str, Any]) -> tuple[str, str]:
    """The level of intervals, and of the interval of both one-sided tests of equivalence: 95%, 90%."""
    confidence = reporting["statistics"]["confidence"]
    return level_text(confidence), level_text(2 * confidence - 1)


def _repeats(column: Column, rows: Sequence[Row]) -> bool:
    """Whether a column of side b says what the one of side a has said."""
    first = {"dataset_b": "dataset", "model_b": "model"}.get(column.key)
    return first is not None and all(row[column.key] == row[first] for row in rows)


def make_table(name: str, columns: Sequence[Column], rows: Sequence[Row], caption: str) -> Table:
    """All columns of all rows; a value that is not there is an empty cell."""
    body = [[_cell(column, row.get(column.key), row["metric"]) for column in columns] for row in rows]
    text = (_text, MEASURE[0].show)
    right = [index for index, column in enumerate(columns) if column.show not in text]
    return Table(name, [column.header for column in columns], body, caption, right)


def _cell(column: Column, value: Any, metric: str) -> Any:
    return None if value is None or value == "" else column.show(value, metric)


def shorten(table: Table) -> Table:
    """The table without the columns that say nothing: those that are empty, and those of text whose one value
    is told in the caption instead."""
    table = _without_empty(table)
    return fold(table, [index for index in range(len(table.header)) if index not in table.right])


def _without_empty(table: Table) -> Table:
    filled = [
        index
        for index in range(len(table.header))
        if not table.rows or any(row[index] not in (None, "") for row in table.rows)
    ]
    return keep(table, filled)


def _shorten_names(table: Table, names: Sequence[str]) -> Table:
    """As `shorten`, but of text only the columns of these headers go into the caption."""
    table = _without_empty(table)
    return fold(table, [index for index, header in enumerate(table.header) if header in names])


def _plain(cell: Any) -> str:
    value = cell.value if isinstance(cell, Cell) else cell
    if isinstance(value, float):
        return f"{value:.10g}"  # no 3.3299999999999996
    return "" if value is None else str(value)


def to_csv(table: Table) -> str:
    """The table as CSV, with values as they are sorted, in the units of the header."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.header)
    writer.writerows([_plain(cell) for cell in row] for row in table.rows)
    return stream.getvalue()


# --- on paper -----------------------------------------------------------------------------------------------


def printed_summary(rows: Sequence[SummaryRow], reporting: Mapping[str, Any]) -> list[Table]:
    """What of the summary fits on a page.

    Args:
        rows: of summary.csv.
        reporting: `Plan.reporting()`.
    """
    return [
        _printed_metric(metric, members, reporting) for (metric,), members in grouped(rows, "metric").items()
    ]


def _printed_metric(metric: str, rows: Sequence[SummaryRow], reporting: Mapping[str, Any]) -> Table:
    level, _ = _levels(reporting)
    chosen = {_cell_of(row) for row in rows if row.selection == "best"}
    unit, scored = unit_of(metric).value, f"test {metric_name(metric)}"
    ending = "" if metric == "accuracy" else f"_{metric}"
    sampled = any(row.binomial_se is not None for row in rows)
    names = ["dataset", "model", "test set", "framework", "init", "recipe", "seeds"]
    header = [*names, "collapsed", with_unit(scored, unit), *(["binomial SE (points)"] if sampled else [])]
    header += [with_unit(f"{level} interval", unit), with_unit(f"validation {metric_name(metric)}", unit)]
    body = [
        (
            row.dataset,
            row.model,
            row.test_set,
            framework_name(row.framework),
            row.init,
            recipe_text(reporting["recipes"], row.recipe) + " (own best)" * (_cell_of(row) in chosen),
            row.n_seeds,
            row.n_collapsed or None,
            mean_cell(row.mean, row.sd, metric),
            *([size_cell(row.binomial_se)] if sampled else []),
            share_interval_cell(row.ci_low, row.ci_high, metric),
            mean_cell(row.validation_mean, row.validation_sd, metric),
        )
        for row in rows
        if row.selection == "equal"
    ]
    binomial = f"Binomial SE: the standard error of one {'accuracy' if not ending else 'score'} by its number"
    binomial = f"{binomial} of test examples alone. " if sampled else ""
    cut = ", cut at 0% and 100%" if unit == "%" else ""
    caption = (
        f"{capital(scored)} of experiment {reporting['experiment']}, mean ± sample standard deviation over "
        f"seeds{direction(metric)}. {binomial}The {level} interval is Student's t over seeds{cut}; it does "
        "not cover the choice of test examples."
    )
    if chosen:
        caption += " Own best: the best recipe of its sweep on validation."
    if any(row.n_collapsed for row in rows):
        caption += (
            " Collapsed: one class, or one answer, throughout validation or test; or a loss not finite."
        )
    table = Table(f"summary{ending}", header, body, caption, right=range(6, len(header)))
    return _shorten_names(table, names)


def _cell_of(row: SummaryRow) -> tuple[str, ...]:
    return (*row.cell, row.test_set)


def printed_contrasts(rows: Sequence[Row], reporting: Mapping[str, Any]) -> list[Table]:
    """What of the contrasts fits on a page, one table a family.

    An equal recipe that is also each side's own best stands there twice: only the interval of the own best
    carries the choice.

    Args:
        rows: of contrasts.csv.
        reporting: `Plan.reporting()`.
    """
    shown = sorted(rows, key=lambda row: (row["test_set"] != "all", row["selection"] != "best"))
    return [
        _printed_family(family, metric, members, reporting)
        for (family, metric), members in grouped(shown, "family", "metric").items()
    ]


def _printed_family(family: str, metric: str, rows: Sequence[Row], reporting: Mapping[str, Any]) -> Table:
    level, _ = _levels(reporting)
    unit = unit_of(metric).difference
    ending = "" if metric == "accuracy" else f"_{metric}"
    names = ["dataset", "model", "test set", *subject_header(family), "recipe", "seeds"]
    header = [*names, with_unit("difference", unit), with_unit(f"{level} interval", unit)]
    header.append(with_unit("over seeds alone", unit))
    header += ["exact p", "p, Holm"]
    if family == "framework":
        header += ["margin (points)", "p, equivalence, Holm", "verdict"]
    body = [
        (
            _both(row, "dataset"),
            _both(row, "model"),
            row["test_set"],
            *subject(row),
            contrast_recipe(reporting["recipes"], row),
            seeds_text(row),
            points_cell(row["delta"], metric=metric),
            interval_cell(row["ci_low"], row["ci_high"], metric, of_gains=family == "dataset"),
            interval_cell(row["t_low"], row["t_high"], metric, of_gains=family == "dataset"),
            p_cell(row["p_value"]),
            p_cell(row["p_holm"]),
            *(_equivalence_cells(row) if family == "framework" else ()),
        )
        for row in rows
    ]
    caption = " ".join(
        [
            f"{FAMILIES[family]}: differences in test {metric_name(metric)}{direction(metric)}, experiment "
            f"{reporting['experiment']}.",
            *_what_intervals_are(rows, level),
            *_where_no_verdict_stands(rows),
            *(_what_verdicts_are(rows, reporting) if family == "framework" else ()),
        ]
    )
    right = range(len(names), len(names) + 5)
    return _shorten_names(Table(f"contrasts_{family}{ending}", header, body, caption, right), names)


def _what_intervals_are(rows: Sequence[Row], level: str) -> list[str]:
    """What a reader of the table alone must know of its intervals and tests."""
    told = []
    if any(row["ci_low"] is not None for row in rows):
        told.append(f"The {level} interval is a Multi-Bootstrap over seeds and test examples.")
    if any(row["selection"] == "best" for row in rows):
        told.append(
            "Own best: each side has its best recipe on validation; the Multi-Bootstrap carries this choice, "
            "the interval over seeds alone and p do not."
        )
    if any(row["t_low"] is not None for row in rows):
        kinds = dict.fromkeys(map(_kind_of_t, rows))
        told.append(f"Over seeds alone: the {level} interval of {join(list(kinds))}.")
    tested = [row for row in rows if row["p_value"] is not None]
    if tested:
        units = dict.fromkeys(unit_text(row) for row in tested)
        told.append(
            f"Exact p: two-sided permutation test over {join(list(units))}. Holm's correction runs over the "
            "tests of this table on one test set; a test of the same two recipes counts once."
        )
    return told


def _where_no_verdict_stands(rows: Sequence[Row]) -> list[str]:
    """How many rows bear no verdict, and why."""
    reasons = Counter(verdict(row) for row in rows if is_withheld(row))
    if not reasons:
        return []
    told = join([f"{count(number, 'row')} ({why})" for why, number in reasons.items()])
    return [f"No verdict stands in {told}, whatever the interval says."]


def _kind_of_t(row: Row) -> str:
    if is_over_means(row):
        return "t with the error of crossed init and data seeds"
    return "paired t" if row["paired"] else "Welch's t"


def _what_verdicts_are(rows: Sequence[Row], reporting: Mapping[str, Any]) -> list[str]:
    level, _ = _levels(reporting)
    if all(row["p_equivalence"] is None for row in rows):
        return []
    return [
        "Equivalent: two one-sided tests reject a difference beyond the margin at "
        f"{level_text(1 - reporting['statistics']['confidence'])}, Holm's correction included; different: "
        f"else, where the {level} interval leaves zero out."
    ]


def _equivalence_cells(row: Row) -> tuple[Cell | None, Cell | None, str | None]:
    return margin_cell(row["margin"]), p_cell(row["p_equivalence_holm"]), equivalence_word(row)


def _both(row: Row, key: str) -> str | None:
    """The dataset or model of a contrast; of the two that its contrast names, neither."""
    return row[key] if row[key] == row[f"{key}_b"] else None
