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

from seedbed.analysis.differences import OF_GAINS, Contrast
from seedbed.analysis.methods import is_over_means
from seedbed.analysis.table_rows import SummaryRow, read_summary
from seedbed.analysis.verdicts import equivalence_word, is_withheld, verdict
from seedbed.core import wording
from seedbed.core.bag_of_words import bag_remarks
from seedbed.core.files import write_text
from seedbed.core.rows import Row, grouped
from seedbed.core.tasks import DEFAULT, TASKS, Task, task_of
from seedbed.core.wording import Words
from seedbed.core.words import (
    framework_name,
    level_text,
    metric_key,
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
    cell_word,
    fold,
    header,
    headers,
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

WORDS = Words("report/export")
Show = Callable[[Any, str], Cell | Any]


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
    return cell_word("yes" if value else "no") if isinstance(value, bool) else str(value)


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


def _metric(value: str, metric: str) -> str:
    return metric_name(value)


# how the columns of summary.csv and contrasts.csv are shown, in this order; their headers are in
# data/exported.yaml
SUMMARY: Mapping[str, Show] = {
    "dataset": _text,
    "model": _text,
    "framework": _text,
    "init": _text,
    "recipe": _text,
    "selection": _text,
    "test_set": _text,
    "metric": _metric,
    "unit": _text,
    "n_seeds": _whole,
    "n_collapsed": _whole,
    "mean": _amount(1),
    "sd": _amount(1),
    "sd_new_examples": _amount(1),
    "ci_low": _amount(1),
    "ci_high": _amount(1),
    "both_low": _amount(1),
    "both_high": _amount(1),
    "median": _amount(1),
    "iqm": _amount(1),
    "min": _amount(1),
    "max": _amount(1),
    "mean_without_collapsed": _amount(1),
    "validation_mean": _amount(1),
    "validation_sd": _amount(1),
    "validation_best": _amount(1),
    "chosen_share": _share,
    "binomial_se": _share,
    "ece": _share,
    "ece_of_chance": _share,
    "majority_share": _amount(1),
    "bag_of_words": _amount(1),
    "linear_probe": _amount(1),
}
CONTRASTS: Mapping[str, Show] = {
    "family": _text,
    "dataset": _text,
    "model": _text,
    "dataset_b": _text,
    "model_b": _text,
    "test_set": _text,
    "metric": _metric,
    "unit": _text,
    "contrast": _text,
    "a": _text,
    "b": _text,
    "recipe_a": _text,
    "recipe_b": _text,
    "selection": _text,
    "paired": _text,
    "n_a": _whole,
    "n_b": _whole,
    "delta": _difference,
    "error_reduction": _share,
    "ci_low": _difference,
    "ci_high": _difference,
    "p_value": _p,
    "p_holm": _p,
    "direction": _text,
    "given_low": _difference,
    "given_high": _difference,
    "bootstrap_low": _difference,
    "bootstrap_high": _difference,
    "standard_error": _amount(2),
    "se_seeds": _amount(2),
    "se_interaction": _amount(2),
    "se_examples": _amount(2),
    "t_low": _difference,
    "t_high": _difference,
    "seed_correlation": _number(2),
    "pairing_ratio": _number(2),
    "p_exact": _p,
    "margin": _amount(1),
    "p_equivalence": _p,
    "p_equivalence_holm": _p,
    "equivalence_low": _difference,
    "equivalence_high": _difference,
    "equivalence": _text,
    "no_verdict": _text,
    "delta_without_collapsed": _difference,
    "ci_low_without_collapsed": _difference,
    "ci_high_without_collapsed": _difference,
    "probability_of_improvement": _number(2),
    "aso_eps_min": _number(2),
}
OF_SEVERAL_METRICS = ("metric", "unit")
OF_LABELS = ("majority_share", "bag_of_words")
OF_PROBABILITIES = ("ece", "ece_of_chance")


def summary_columns(level: str, task: Task = TASKS[DEFAULT]) -> tuple[Column, ...]:
    """Columns of the summary of a task; `level` is such as 95%."""
    unit = unit_of("accuracy")
    return _columns("summary", SUMMARY, task, level=level, unit=unit.value, spread=unit.difference)


def contrast_columns(level: str, equivalence: str, task: Task = TASKS[DEFAULT]) -> tuple[Column, ...]:
    """Columns of the contrasts; the level of their intervals is such as 95%, and 90% of equivalence."""
    unit = unit_of("accuracy").difference
    return _columns("contrasts", CONTRASTS, task, level=level, level_of_equivalence=equivalence, unit=unit)


def _columns(table: str, shown: Mapping[str, Show], task: Task, **values: str) -> tuple[Column, ...]:
    """The columns of a table that a task has. `values` are what headers name, among them the unit of an
    accuracy, or of differences in it; where metrics have units of their own, a column has that of the row."""
    words = wording.data("report/exported")
    several = not task.has_one_metric
    values |= words["several_metrics" if several else "one_metric"] | {"constant": task.words.constant}
    if several:
        values["spread"] = values["unit"]
    texts = words["both"] | words[table]
    left_out = {
        *(() if several else OF_SEVERAL_METRICS),
        *(() if task.has_labels else OF_LABELS),
        *(() if task.is_calibrated else OF_PROBABILITIES),
    }
    return tuple(
        Column(key, wording.fill(texts[key], **values), show)
        for key, show in shown.items()
        if key not in left_out
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
    scored = WORDS.say("scored", task.reported[0]) if len(task.reported) == 1 else ""
    scores = read_summary(summary)
    summarised = [
        column
        for column in summary_columns(level, task)
        if column.key not in SummaryRow.OPTIONAL or any(row[column.key] is not None for row in scores)
    ]
    differences = Contrast.read(contrasts, "table of contrasts")
    told = WORDS.say("summary_caption", scored, experiment, bag_remarks(scores))
    compared = WORDS.say("contrasts_caption", scored, experiment)
    for name, columns, found, caption, printed in (
        ("summary", summarised, scores, told, printed_summary(scores, reporting)),
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
    text = (_text, _metric)
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
    unit, scored = unit_of(metric).value, WORDS.say("scored", metric)
    ending = "" if metric == "accuracy" else f"_{metric_key(metric)}"
    sampled = any(row.binomial_se is not None for row in rows)
    names = headers("printed", "dataset", "model", "test_set", "framework", "init", "recipe", "seeds")
    interval = header("printed", "interval", level=level)
    validation = header("printed", "validation", metric=metric_name(metric))
    columns = [*names, header("printed", "collapsed"), with_unit(scored, unit)]
    columns += headers("printed", "error") if sampled else []
    columns += [with_unit(interval, unit), with_unit(validation, unit)]
    body = [
        (
            row.dataset,
            row.model,
            row.test_set,
            framework_name(row.framework),
            row.init,
            _recipe(row, reporting, _cell_of(row) in chosen),
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
    printed = Printed(
        experiment=reporting["experiment"],
        metric=metric,
        direction=direction(metric),
        level=level,
        sampled=sampled,
        in_per_cent=bool(unit_of(metric).sign),
        own_best=bool(chosen),
        collapsed=any(row["n_collapsed"] for row in rows),
        task=task_of(reporting),
    )
    caption = WORDS.say("printed_summary", printed)
    table = Table(f"summary{ending}", columns, body, caption, right=range(6, len(columns)))
    return _shorten_names(table, names)


@dataclass(frozen=True)
class Printed:
    """What the caption of a printed summary has to explain.

    Attributes:
        experiment, metric: whose summary it is, by what.
        direction: in which the metric is the better, in brackets; empty where everybody knows.
        level: of intervals, such as 95%.
        sampled: whether there is a binomial standard error.
        in_per_cent: whether the metric is a share.
        own_best: whether recipes are marked that are best on validation.
        collapsed: whether any run collapsed.
        task: what the runs were trained for.
    """

    experiment: str
    metric: str
    direction: str
    level: str
    sampled: bool
    in_per_cent: bool
    own_best: bool
    collapsed: bool
    task: Task


def _recipe(row: SummaryRow, reporting: Mapping[str, Any], own_best: bool) -> str:
    name = recipe_text(reporting["recipes"], row.recipe)
    return cell_word("own_best_in_brackets", recipe=name) if own_best else name


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
    ending = "" if metric == "accuracy" else f"_{metric_key(metric)}"
    names = [
        *headers("printed", "dataset", "model", "test_set"),
        *subject_header(family),
        *headers("printed", "recipe", "seeds"),
    ]
    difference, over_seeds = headers("printed", "difference", "over_seeds")
    interval = header("printed", "interval", level=level)
    columns = [*names, *(with_unit(text, unit) for text in (difference, interval, over_seeds))]
    columns += headers("printed", "p_value", "p_holm")
    if family == "framework":
        columns.append(with_unit(header("printed", "margin"), unit))
        columns += headers("printed", "p_equivalence_holm", "verdict")
    body = [
        (
            _both(row, "dataset"),
            _both(row, "model"),
            row["test_set"],
            *subject(row),
            contrast_recipe(reporting["recipes"], row),
            seeds_text(row),
            points_cell(row["delta"], metric=metric),
            interval_cell(row["ci_low"], row["ci_high"], metric, of_gains=family in OF_GAINS),
            interval_cell(row["t_low"], row["t_high"], metric, of_gains=family in OF_GAINS),
            p_cell(row["p_value"]),
            p_cell(row["p_holm"]),
            *(_equivalence_cells(row) if family == "framework" else ()),
        )
        for row in rows
    ]
    caption = " ".join(
        [
            WORDS.say(
                "printed_contrasts", FAMILIES[family], metric, direction(metric), reporting["experiment"]
            ),
            *_what_intervals_are(rows, level),
            *_where_no_verdict_stands(rows),
            *(_what_verdicts_are(rows, reporting) if family == "framework" else ()),
        ]
    )
    right = range(len(names), len(names) + 5)
    return _shorten_names(Table(f"contrasts_{family}{ending}", columns, body, caption, right), names)


def _what_intervals_are(rows: Sequence[Row], level: str) -> list[str]:
    """What a reader of the table alone must know of its intervals and tests."""
    told = []
    if any(row["ci_low"] is not None for row in rows):
        told.append(WORDS.say("multi_bootstrap", level))
    if any(row["selection"] == "best" for row in rows):
        told.append(WORDS.say("own_best"))
    if any(row["t_low"] is not None for row in rows):
        kinds = dict.fromkeys(WORDS.say("kind_of_t", is_over_means(row), row["paired"]) for row in rows)
        told.append(WORDS.say("over_seeds", level, kinds))
    if any(row["p_value"] is not None for row in rows):
        told.append(WORDS.say("p_of_interval"))
    return told


def _where_no_verdict_stands(rows: Sequence[Row]) -> list[str]:
    """How many rows bear no verdict, and why."""
    reasons = Counter(verdict(row) for row in rows if is_withheld(row))
    return [WORDS.say("no_verdict", reasons)] if reasons else []


def _what_verdicts_are(rows: Sequence[Row], reporting: Mapping[str, Any]) -> list[str]:
    if all(row["p_equivalence"] is None for row in rows):
        return []
    return [WORDS.say("verdicts", reporting["statistics"]["confidence"])]


def _equivalence_cells(row: Row) -> tuple[Cell | None, Cell | None, str | None]:
    return margin_cell(row["margin"], row["metric"]), p_cell(row["p_equivalence_holm"]), equivalence_word(row)


def _both(row: Row, key: str) -> str | None:
    """The dataset or model of a contrast; of the two that its contrast names, neither."""
    return row[key] if row[key] == row[f"{key}_b"] else None
