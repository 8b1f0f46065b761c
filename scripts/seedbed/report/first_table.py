"""The table below the opening: the test scores of every side, and of methods what they take."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seedbed.analysis.table_rows import SummaryRow
from seedbed.core import wording
from seedbed.core.wording import Words
from seedbed.core.words import (
    framework_name,
    key_text,
    metric_name,
    percent,
    short_number,
    unit_of,
    with_unit,
)
from seedbed.report.documents.blocks import Cell, Header, Table
from seedbed.report.experiment import Experiment
from seedbed.report.method_comparisons import INITS, median_of, method_name, size_text
from seedbed.report.parts import (
    header,
    headers,
    interval_header,
    mean_cell,
    mean_header,
    number_cell,
    share_interval_cell,
)
from seedbed.report.sections_accuracy import answer_rows, seed_mark, seed_text

WORDS = Words("report/accuracy")
MAX_ROWS = 12
MAX_SEEDS = 5  # whose scores are shown; of more the smallest and the largest


def first_table(experiment: Experiment) -> Table:
    """One row for each side, at its best on validation where recipes are swept; its name is `first`.

    Columns that tell no rows apart are left out.
    """
    rows = answer_rows(experiment)
    methods = len({row.method for row in rows}) > 1
    shown = rows[:MAX_ROWS]
    names = _names(experiment, rows, methods)
    scores = _scores(experiment, shown, wide=not methods)
    told = wording.data("report/columns")
    columns: Header = [told["first"].get(name) or told["any"].get(name, name) for name in names]
    columns += headers("first", "trained", "memory", "train_seconds") if methods else []
    columns += [name for name, _ in scores]
    body = [
        [
            *(name(row) for name in names.values()),
            *(_costs(experiment, row) if methods else []),
            *(cell(row) for _, cell in scores),
        ]
        for row in shown
    ]
    right = range(len(names), len(names) + 3) if methods else ()
    return Table("first", columns, body, _caption(experiment, rows), right)


Column = Callable[[SummaryRow], Any]
Rows = dict[tuple[str, ...], SummaryRow]


def _names(experiment: Experiment, rows: Sequence[SummaryRow], methods: bool) -> dict[str, Column]:
    """The columns that tell rows apart."""
    recipes = experiment.reporting["recipes"]
    columns: dict[str, Column] = {
        "dataset": lambda row: row.dataset,
        "model": lambda row: row.model,
        "framework": lambda row: framework_name(row.framework),
        "start": lambda row: INITS[row.init],
        "method": lambda row: method_name(recipes, row.recipe),
        "recipe": lambda row: recipes[row.recipe]["family"],
    }
    swept = list(dict.fromkeys(key for row in rows for key in recipes[row.recipe]["swept"]))
    columns |= {key_text(key): _swept(recipes, key) for key in swept}
    kept = {name for name, column in columns.items() if len({column(row) for row in rows}) > 1}
    if methods:
        kept -= {"recipe"}  # the method's name tells it
    elif not kept:
        kept = {"start"}
    return {name: column for name, column in columns.items() if name in kept}


def _swept(recipes: Mapping[str, Any], key: str) -> Column:
    def value(row: SummaryRow) -> str | None:
        swept = recipes[row.recipe]["swept"]
        return short_number(swept[key]) if key in swept else None

    return value


def _costs(experiment: Experiment, row: SummaryRow) -> list[Cell | None]:
    """What a method trains, and the memory and the time that it takes: medians over runs."""
    runs = experiment.group(row)
    keys = ("trainable_parameters", "total_parameters", "peak_memory_mib", "train_seconds")
    trained, total, memory, seconds = (median_of(runs, key) for key in keys)
    share = None if trained is None or not total else percent(trained / total, 0 if trained == total else 1)
    parameters = None if trained is None else WORDS.say("trained", _short(trained), share or "")
    return [
        None if parameters is None else Cell(parameters, trained),
        number_cell(memory),
        number_cell(seconds, 1),
    ]


def _short(number: float) -> str:
    """A number of parameters with three digits: 22.7 M."""
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= factor:
            return f"{number / factor:.3g} {letter}"
    return f"{number:.0f}"


def _scores(
    experiment: Experiment, rows: Sequence[SummaryRow], *, wide: bool
) -> list[tuple[str | Cell, Column]]:
    """Headers and cells of the scores: the main metric's mean, and those of the answers; `wide` adds the
    interval and every seed."""
    metric = experiment.metric
    found: list[tuple[str | Cell, Column]] = []
    for name in dict.fromkeys([metric, *experiment.task.final]):
        if name in experiment.by_metric:
            by_cell: Rows = {(*row.cell, row.selection): row for row in experiment.by_metric[name].summary}
            found.append((mean_header(metric_name(name), name), _mean_of(by_cell, name)))
    if not wide:
        return found
    unit = unit_of(metric).value
    if any(row.interval for row in rows):
        level = interval_header(experiment.level, unit)
        found.append((level, _interval_cell))
    many = any(row.n_seeds > MAX_SEEDS for row in rows)
    seeds = header("scores", "range" if many else "every_seed")
    told = interval_header(seeds, unit) if many else with_unit(seeds, unit)
    return [*found, (told, lambda row: _seeds(experiment, row, many))]


def _mean_of(by_cell: Rows, metric: str) -> Column:
    def cell(row: SummaryRow) -> Cell | None:
        found = by_cell.get((*row.cell, row.selection))
        return None if found is None else mean_cell(found.mean, found.sd, metric)

    return cell


def _interval_cell(row: SummaryRow) -> Cell | None:
    low, high = row.interval or (None, None)
    return share_interval_cell(low, high, row.metric)


def _seeds(experiment: Experiment, row: SummaryRow, many: bool) -> Cell | str | None:
    if many:
        return share_interval_cell(row.min, row.max, row.metric)
    return WORDS.say(
        "every_seed", [seed_text(experiment.task, run, row.metric) for run in experiment.group(row)], 0
    )


def _caption(experiment: Experiment, rows: Sequence[SummaryRow]) -> str:
    """What the numbers are means of, what they have to beat, and what the marks of seeds mean."""
    seeds = sorted({row.n_seeds for row in rows})
    runs = [run for row in rows for run in experiment.group(row)]
    sizes = {size_text(run, experiment.task.writes_answers) for run in runs if run.test_examples is not None}
    shares = {row.majority_share for row in rows}
    shown = [run for row in rows for run in experiment.group(row) if row.n_seeds <= MAX_SEEDS]
    marks = {mark for run in shown for mark in seed_mark(experiment.task, run)}
    return WORDS.say(
        "first_caption",
        experiment.scored,
        experiment.metric,
        seeds,
        sizes.pop() if len(sizes) == 1 else "",
        shares.pop() if len(shares) == 1 else None,
        marks,
        experiment.task.words,
        max(0, len(rows) - MAX_ROWS),
    )
