"""The tables below the opening: the test scores of every side; of methods what they take and differ by."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seedbed.analysis.sizes import sized
from seedbed.analysis.table_rows import SummaryRow
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
from seedbed.report import sizes
from seedbed.report.documents.blocks import Cell, Header, Table
from seedbed.report.experiment import Experiment, interval
from seedbed.report.method_comparisons import (
    INITS,
    UNTRAINED,
    Comparison,
    comparisons,
    median_of,
    method_name,
    tabled,
    tested_on,
)
from seedbed.report.parts import (
    header,
    headers,
    interval_cell,
    interval_header,
    mean_cell,
    mean_header,
    number_cell,
    p_cell,
    points_cell,
    share_interval_cell,
)
from seedbed.report.sections_accuracy import answer_rows, seed_mark, seed_text
from seedbed.report.sections_contrasts import direction
from seedbed.report.undecided import is_before_holm

WORDS = Words("report/accuracy")
MAX_ROWS = 12
MAX_SEEDS = 5  # whose scores are shown; of more the smallest and the largest


def first_tables(experiment: Experiment) -> list[Table]:
    """The table of scores, and that of the differences of methods where sentences leave them to it."""
    if sized(experiment):
        return [sizes.table(experiment)]
    found = [first_table(experiment)]
    return [*found, _difference_table(experiment)] if tabled(experiment) else found


def first_table(experiment: Experiment) -> Table:
    """One row for each side, at its best on validation where recipes are swept; its name is `first`.

    Columns that tell no rows apart are left out.
    """
    rows = answer_rows(experiment)
    methods = len({row.method for row in rows}) > 1
    shown = rows[:MAX_ROWS]
    names = _names(experiment, rows, methods)
    scores = _scores(experiment, shown, wide=not methods)
    columns: Header = [name for name, _ in names]
    columns += headers("first", "trained", "memory", "train_seconds") if methods else []
    columns += [name for name, _ in scores]
    body = [
        [
            *(cell(row) for _, cell in names),
            *(_costs(experiment, row) if methods else []),
            *(cell(row) for _, cell in scores),
        ]
        for row in shown
    ]
    right = range(len(names), len(columns) if methods else len(columns) - 1)
    # on a narrow screen: of methods what they train and the main score, of others all but every seed
    costs = [len(names) + 1, len(names) + 2] if methods else []
    spare = [*costs, *range(len(names) + 4 if methods else len(columns) - 1, len(columns))]
    return Table("first", columns, body, _caption(experiment, rows), right, spare)


Column = Callable[[SummaryRow], Any]
Columns = list[tuple[str | Cell, Column]]  # headers with what makes the cells below them
Rows = dict[tuple[str, ...], SummaryRow]


def _names(experiment: Experiment, rows: Sequence[SummaryRow], methods: bool) -> Columns:
    """The columns that tell rows apart; that of the start where none does."""
    recipes = experiment.reporting["recipes"]
    columns: dict[str, Column] = {
        "dataset": lambda row: row.dataset,
        "model": lambda row: row.model,
        "framework": lambda row: framework_name(row.framework),
        "start": lambda row: INITS[row.init],
        "method": lambda row: method_name(recipes, row.recipe),
        "recipe": lambda row: recipes[row.recipe]["family"],
    }
    if methods:
        del columns["recipe"]  # the method's name tells it
    swept = dict.fromkeys(key for row in rows for key in recipes[row.recipe]["swept"])
    found: Columns = [(header("first", name), column) for name, column in columns.items()]
    found += [(key_text(key), _swept(recipes, key)) for key in swept]
    kept = [one for one in found if len({one[1](row) for row in rows}) > 1]
    return kept or [(header("first", "start"), columns["start"])]


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


def _scores(experiment: Experiment, rows: Sequence[SummaryRow], *, wide: bool) -> Columns:
    """Headers and cells of the scores: the main metric's mean, and those of the answers; `wide` adds the
    interval and every seed."""
    metric = experiment.metric
    found: Columns = []
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


def _difference_table(experiment: Experiment) -> Table:
    """Every two methods: the difference and its interval, one row a comparison, those that answer first."""
    found = sorted(comparisons(experiment), key=lambda one: one.method("b") != UNTRAINED)
    unit = unit_of(experiment.metric).difference
    columns: list[tuple[str | Cell, Callable[[Comparison], Any]]] = [
        (header("any", "dataset"), lambda one: one.row["dataset"]),
        (header("any", "model"), lambda one: one.row["model"]),
        (header("any", "framework"), lambda one: framework_name(one.row["a"].split("/")[0])),
        (header("first", "start"), lambda one: INITS[one.row["a"].split("/")[1]]),
    ]
    columns = [column for column in columns if len({column[1](one) for one in found}) > 1]
    columns += [
        (header("any", "method"), lambda one: one.name("a")),
        (header("first", "other"), lambda one: one.name("b")),
        (with_unit(header("any", "difference"), unit), _difference_cell),
        (interval_header(experiment.level, unit), _bounds_cell),
    ]
    if any(is_before_holm(one.row) for one in found):
        columns.append((header("any", "p_holm"), lambda one: p_cell(one.row["p_holm"])))
    caption = WORDS.say(
        "differences_caption",
        experiment.scored,
        direction(experiment.metric),
        any(one.row["ci_low"] is None and interval(one.row) for one in found),
        max(0, len(found) - MAX_ROWS),
    )
    rows = [[cell(one) for _, cell in columns] for one in found[:MAX_ROWS]]
    names = [name for name, _ in columns]
    numbers = range(names.index(header("first", "other")) + 1, len(names))
    return Table("first_differences", names, rows, caption, numbers)


def _difference_cell(one: Comparison) -> Cell | None:
    return points_cell(one.row["delta"], metric=one.row["metric"])


def _bounds_cell(one: Comparison) -> Cell | None:
    bounds = interval(one.row)
    return None if bounds is None else interval_cell(bounds.low, bounds.high, one.row["metric"])


def _caption(experiment: Experiment, rows: Sequence[SummaryRow]) -> str:
    """What the numbers are means of, what they have to beat, and what the marks of seeds mean."""
    seeds = sorted({row.n_seeds for row in rows})
    runs = [run for row in rows for run in experiment.group(row)]
    sizes = {tested_on(run, experiment.task.writes_answers) for run in runs if run.test_examples is not None}
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
