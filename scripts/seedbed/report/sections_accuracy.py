"""Sections of summary and report: the answer, how sure it is, test scores, sweeps, warnings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seedbed.analysis.experiment import Experiment
from seedbed.analysis.table_rows import RunRow, SummaryRow
from seedbed.core import wording
from seedbed.core.bag_of_words import bag_name, bag_remarks
from seedbed.core.known import known
from seedbed.core.rows import Row, grouped
from seedbed.core.tasks import METRICS, Task
from seedbed.core.wording import Words
from seedbed.core.words import (
    NOTHING,
    capital,
    framework_name,
    metric_key,
    metric_name,
    recipe_text,
    swept_text,
    unit_of,
    value_text,
    with_unit,
)
from seedbed.report import undecided
from seedbed.report.documents.blocks import Block, Bullets, Cell, Details, Header, Heading, Paragraph, Table
from seedbed.report.experiment import Question, questions
from seedbed.report.grounds import grounds
from seedbed.report.method_comparisons import examples_text, small_test_sets
from seedbed.report.opening import Line, Opening
from seedbed.report.parts import (
    MAX_LISTED,
    PLACE,
    capped,
    cell_word,
    figures,
    fold,
    header,
    headers,
    heading,
    interval_header,
    mean_cell,
    mean_header,
    part_cell,
    percent_cell,
    place_text,
    share_interval_cell,
    size_cell,
    value_cell,
)
from seedbed.report.power import power_table
from seedbed.report.recipe_effects import recipe_effects
from seedbed.report.sections_contrasts import direction
from seedbed.report.sources import Sources
from seedbed.report.stability import rise, stability_blocks
from seedbed.report.undecided import collapsed_how

WORDS = Words("report/accuracy")
KEYS = ("framework", "init", "recipe", "seeds")  # columns that tell groups of seeds apart
MAX_SEEDS_SHOWN = 10
MAX_OPEN = 3  # runs that a warning names; more are folded away


def opening_blocks(found: Opening) -> list[Block]:
    """The opening: a list for each question, after what they have in common."""
    blocks: list[Block] = [Paragraph(found.lead)] if found.lead else []
    for group in found.groups:
        blocks += [Paragraph(f"**{capital(group.place)}**")] if group.place else []
        blocks.append(Bullets([labelled(line) for line in group.lines]))
    return [*blocks, *([Bullets([labelled(line) for line in found.others])] if found.others else [])]


def labelled(line: Line) -> str:
    """A line of the opening behind its label."""
    return WORDS.say("labelled", line.label, line.text)


def power_section(experiment: Experiment) -> list[Block]:
    """What verdicts rest on, and what these seeds can and cannot show; left out where nothing is compared."""
    told, table = grounds(experiment), power_table(experiment)
    if not told:
        return []
    blocks: list[Block] = [heading("power"), Bullets(told)]
    return [*blocks, *(capped(table, "comparisons", "contrasts.csv") if table.rows else [])]


def answer_rows(experiment: Experiment) -> list[SummaryRow]:
    """One row of the summary for each family on each side: its best on validation, or its only recipe."""
    rows = headline_rows(experiment)
    return [row for row in rows if row.selection == "best" or len(experiment.recipes(row.recipe_family)) == 1]


# --- test scores --------------------------------------------------------------------------------------------


def accuracy_section(experiment: Experiment, sources: Sources) -> list[Block]:
    """Test scores by each metric that the task reports, of every group of seeds: of swept families at the
    equal recipe and at each side's best; then more statistics of every recipe."""
    blocks: list[Block] = []
    for one in experiment.by_metric.values():
        blocks += [Heading(capital(one.scored)), *_scores(one)]
    return [*blocks, *_score_note(experiment), *figures(experiment, sources, "scores")]


def _scores(experiment: Experiment) -> list[Block]:
    """The tables of one metric, by dataset and model."""
    blocks: list[Block] = []
    places = grouped(headline_rows(experiment), *PLACE)
    scored = table_name(experiment, "test")
    for number, (place, rows) in enumerate(places.items(), start=1):
        if number > MAX_LISTED:
            blocks.append(places_left_out(len(places)))
            break
        if len(places) > 1:
            blocks.append(Heading(place_text(*place), 3))
        table = _accuracy_table(experiment, rows, f"{scored}_{number}")
        blocks += [*_baselines(experiment, rows), *capped(table, "rows", "summary.csv")]
        metric = "" if experiment.metric == "accuracy" else f"_{metric_key(experiment.metric)}"
        blocks.append(_statistics(experiment, place, f"statistics{metric}_{number}"))
    return blocks


def table_name(experiment: Experiment, what: str) -> str:
    """A table's name by its metric: test_accuracy."""
    return f"{what}_{metric_key(experiment.metric)}"


def _score_note(experiment: Experiment) -> list[Block]:
    own_best = any(row.selection == "best" for row in experiment.summary)
    in_per_cent = all(unit_of(metric).sign for metric in experiment.by_metric)
    return [Paragraph(WORDS.say("score_note", experiment.task, own_best, in_per_cent))]


def places_left_out(places: int) -> Paragraph:
    """How many pairs of dataset and model are not shown, of so many."""
    return Paragraph(WORDS.say("places_left_out", places - MAX_LISTED))


def headline_rows(experiment: Experiment) -> list[SummaryRow]:
    """Of every question the rows of the summary at its reference recipe, and at each side's best."""
    by_family = grouped(experiment.summary, *PLACE, "recipe_family")
    return [
        row
        for question in questions(experiment)
        for row in by_family[question.dataset, question.model, question.family]
        if row.selection == "best" or row.recipe == question.reference
    ]


@dataclass(frozen=True)
class Baselines:
    """What the runs of one dataset and model have to beat on test.

    Attributes:
        metric: by which they have to.
        examples: of the test split.
        constant: the answer that needs no text, such as the majority class.
        lower: whether less of the metric is better.
        majority, bag: what that answer and the bag have of it; None without a bag, or with several.
        bags: by size of training, what the bags on as many texts have; empty unless sizes are swept.
        bag_name: bag of words, or of characters.
        means, below: means over seeds, of every recipe, where defined; and those that the bag is better than.
            Of several bags that of the same size counts, and where there is none, neither does the mean.
    """

    metric: str
    constant: str
    lower: bool
    examples: int
    majority: float
    bag: float | None
    bags: Mapping[int, float]
    bag_name: str
    means: int
    below: int


def baselines(experiment: Experiment, rows: Sequence[SummaryRow]) -> Baselines | None:
    """What to beat, and whether the means of any recipe do, also of those that the table leaves out; None for
    a task without baselines, whose table has a line for the untrained model.

    Args:
        experiment: by one metric.
        rows: of the summary, of one dataset and model.
    """
    first = rows[0]
    if first.majority_share is None:
        return None
    better = METRICS[first.metric].direction
    cells = _cells_of(experiment, (first.dataset, first.model))
    bags = _bags_of_sizes(cells)
    beside = [
        (row.mean, row.bag_of_words)
        for row in cells
        if row.mean is not None and not (bags and row.bag_of_words is None)
    ]
    return Baselines(
        metric=first.metric,
        constant=experiment.task.words.constant,
        lower=METRICS[first.metric].direction < 0,
        examples=known(experiment.group(first)[0].test_examples),
        majority=first.majority_share,
        bag=None if bags else first.bag_of_words,
        bags=bags,
        bag_name=bag_name(first),
        means=len(beside),
        below=sum(bag is not None and better * mean < better * bag for mean, bag in beside),
    )


def _bags_of_sizes(rows: Sequence[SummaryRow]) -> dict[int, float]:
    """What the bags of words have by size of training, the smallest first; empty unless sizes are swept."""
    found = {
        row.train_size: row.bag_of_words
        for row in rows
        if row.train_size is not None and row.bag_of_words is not None
    }
    return dict(sorted(found.items()))


def _baselines(experiment: Experiment, rows: Sequence[SummaryRow]) -> list[Block]:
    found = baselines(experiment, rows)
    if found is None:
        run = experiment.group(rows[0])[0]
        if run.test_examples is None:
            return []
        return [Paragraph(WORDS.say("size", examples_text(run, experiment.task.example)))]
    return [Paragraph(" ".join([WORDS.say("baselines", found), *bag_remarks(rows)]))]


def _cells_of(experiment: Experiment, place: tuple[str, str]) -> list[SummaryRow]:
    """The rows of the summary of one dataset and model, each recipe once."""
    return [
        row for row in experiment.summary if row.selection == "equal" and (row.dataset, row.model) == place
    ]


def _accuracy_table(experiment: Experiment, rows: Sequence[SummaryRow], name: str) -> Table:
    metric, scored = experiment.metric, experiment.scored
    collapsed = any(row.n_collapsed for row in rows)
    sampled = any(row.binomial_se is not None for row in rows)
    unit = unit_of(metric).value
    names: Header = [*headers("scores", *KEYS), mean_header(scored, metric)]
    names += headers("scores", "error") if sampled else []
    both = any(row.both_low is not None for row in rows)
    over = ["over_both"] * both + ["over_seeds"]
    names += [interval_header(header("scores", name, level=experiment.level), unit) for name in over]
    names += [mean_header(header("scores", "validation", metric=metric_name(metric)), metric)]
    names += [header("scores", "collapsed"), _without_header(experiment)] if collapsed else []
    names.append(with_unit(header("scores", "every_seed"), unit))
    body = [
        (
            framework_name(row.framework),
            row.init,
            chosen_recipe(experiment, row),
            row.n_seeds,
            mean_cell(row.mean, row.sd, metric),
            *([size_cell(row.binomial_se)] if sampled else []),
            *([share_interval_cell(row.both_low, row.both_high, metric)] if both else []),
            share_interval_cell(row.ci_low, row.ci_high, metric),
            mean_cell(row.validation_mean, row.validation_sd, metric),
            *(_collapsed_cells(row, experiment.group(row)) if collapsed else []),
            _seed_cells(experiment.task, experiment.group(row), metric),
        )
        for row in rows
    ]
    place = place_text(rows[0].dataset, rows[0].model)
    caption = WORDS.say("score_caption", scored, place, in_units(metric))
    return fold(Table(name, names, body, caption, right=(3,)), range(4))


def in_units(metric: str) -> str:
    """In per cent, or in nats, of which fewer are better."""
    unit = wording.data("report/titles")["units"][unit_of(metric).value or "none"]
    return f"{unit}{direction(metric)}"


def _without_header(experiment: Experiment) -> Cell:
    text = header("scores", "without_collapsed", scored=experiment.scored)
    return mean_header(text, experiment.metric)


def _collapsed_cells(row: SummaryRow, runs: Sequence[RunRow]) -> list[Cell | None]:
    alone = sum(bool(run.collapsed) and undecided.on_validation_alone(run) for run in runs)
    text = WORDS.say("collapsed_seeds", row.n_collapsed, row.n_seeds, alone)
    number = Cell(text, row.n_collapsed)
    if not row.n_collapsed:
        return [number, None]
    return [number, _without_collapsed(row)]


def _without_collapsed(row: SummaryRow) -> Cell | None:
    return mean_cell(row.mean_without_collapsed, row.sd_without_collapsed, row.metric)


def chosen_recipe(experiment: Experiment, row: SummaryRow) -> str:
    """The recipe of a row of the summary, and where its family is swept how it was chosen."""
    name = recipe_text(experiment.reporting["recipes"], row.recipe)
    if len(experiment.recipes(row.recipe_family)) == 1:
        return name
    best = row.selection == "best"
    return cell_word("own_best_in_brackets" if best else "equal_in_brackets", recipe=name)


def _seed_cells(task: Task, runs: Sequence[RunRow], metric: str) -> str:
    shown = [seed_text(task, run, metric) for run in runs[:MAX_SEEDS_SHOWN]]
    more = len(runs) - len(shown)
    return WORDS.say("every_seed", shown, more)


def seed_text(task: Task, run: RunRow, metric: str) -> str:
    """The score of a run without its unit, with its marks."""
    return value_text(metric, run.value(f"test_{metric}")).removesuffix("%") + seed_mark(task, run)


def seed_mark(task: Task, run: RunRow) -> str:
    """The signs of a run that went wrong, as the note below the tables explains them."""
    on_validation = undecided.on_validation_alone(run)
    if run.collapsed and not on_validation:
        return "†"
    weak = run.not_above_majority or run.not_above_untrained
    # elsewhere the warnings alone tell of unstable runs, and the learning rates of sweeps
    unstable = run.unstable and task.from_untrained
    return "†v" * bool(run.collapsed) + "‡" * bool(weak) + "§" * bool(unstable)


def _statistics(experiment: Experiment, place: tuple[str, str], name: str) -> Details:
    """More statistics of every recipe, folded away."""
    rows = _cells_of(experiment, place)
    metric, scored = experiment.metric, experiment.scored
    unit = unit_of(metric).value
    collapsed = any(row.n_collapsed for row in rows)
    calibrated = "calibration" in experiment.task.sections
    quartiles = any(row.iqm is not None for row in rows)
    median, mean, least, most, both = (
        with_unit(text, unit) for text in headers("scores", "median", "iqm", "min", "max", "range")
    )
    names: Header = [*headers("scores", *KEYS), mean_header(scored, metric), median]
    names += [with_unit(header("scores", "sd_new_examples"), unit_of(metric).difference)]
    names += [mean] if quartiles else []
    names += [Cell(both, copied=(least, most))]
    names += [_without_header(experiment)] if collapsed else []
    names += [with_unit(header("scores", "validation_best", metric=metric_name(metric)), unit)]
    names += headers("scores", "ece") if calibrated else []
    body = [
        (
            framework_name(row.framework),
            row.init,
            recipe_text(experiment.reporting["recipes"], row.recipe),
            row.n_seeds,
            mean_cell(row.mean, row.sd, metric),
            value_cell(metric, row.median),
            part_cell(row.sd_new_examples, metric),
            *([value_cell(metric, row.iqm)] if quartiles else []),
            share_interval_cell(row.min, row.max, metric),
            *([_without_collapsed(row)] if collapsed else []),
            value_cell(metric, row.validation_best),
            *([size_cell(row.ece)] if calibrated else []),
        )
        for row in rows
    ]
    caption = WORDS.say("statistics_caption", scored, place_text(*place))
    table = fold(Table(name, names, body, caption, right=(3,)), range(4))
    return Details(WORDS.say("statistics_title", quartiles, calibrated), capped(table, "rows", "summary.csv"))


# --- warnings -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Warned:
    """Runs that went wrong in the same way.

    Attributes:
        text: what they did, and what to try.
        lines: one for each run, by name.
    """

    text: str
    lines: Sequence[str]


def run_warnings(experiment: Experiment) -> list[Warned]:
    """Runs that collapsed or diverged, runs that are not above the majority class or not better than the
    untrained model, and unstable ones.

    Where runs are held to the untrained model, a run counts in each state that it is in; elsewhere a
    collapsed one, not above the majority class either, is named once.
    """
    from_untrained = experiment.task.from_untrained
    collapsed = [run for run in experiment.runs if run.collapsed]
    others = [run for run in experiment.runs if from_untrained or not run.collapsed]
    weak = [run for run in others if run.not_above_majority]
    useless = [run for run in others if run.not_above_untrained]
    unstable = [run for run in others if run.unstable]
    task, found = experiment.task, []
    if collapsed:
        ways = undecided.splits_of_collapses(task, collapsed)
        text = WORDS.say("collapsed", len(collapsed), ways, undecided.remedy_text(experiment, collapsed))
        lines = [_scored(experiment, run, collapsed_how(task, run)) for run in collapsed]
        found.append(Warned(text, lines))
    if weak:
        text = WORDS.say(
            "not_above_majority",
            len(weak),
            experiment.confidence,
            experiment.metric,
            undecided.remedy_text(experiment, weak),
            task,
        )
        found.append(Warned(text, [_weak(experiment, run) for run in weak]))
    if useless:
        text = WORDS.say("not_above_untrained", len(useless), undecided.remedy_text(experiment, useless))
        found.append(Warned(text, [_useless(run) for run in useless]))
    if unstable:
        text = WORDS.say("unstable", len(unstable), rise(task))
        found.append(Warned(text, [_scored(experiment, run) for run in unstable]))
    return found


def warning_section(experiment: Experiment) -> list[Block]:
    """Runs that went wrong, by name, and test sets of few questions."""
    small, wrong = small_test_sets(experiment), run_warnings(experiment)
    if not (wrong or small):
        return []
    from_untrained = experiment.task.from_untrained
    unstable = any(run.unstable and not run.collapsed for run in experiment.runs)
    of_what = WORDS.say("warned_of", bool(wrong), unstable or from_untrained)
    blocks: list[Block] = [heading("warnings", of_what=of_what)]
    blocks += [Bullets(small)] if small else []
    for one in wrong:
        runs: Block = _listed(one.lines)
        if len(one.lines) > MAX_OPEN:
            runs = Details(WORDS.say("which_runs", len(one.lines)), [runs])
        blocks += [Paragraph(one.text), runs]
    return blocks


def _scored(experiment: Experiment, run: RunRow, how: str = "") -> str:
    metric = experiment.metric
    unit = "" if unit_of(metric).sign else unit_of(metric).value
    value = run.value(f"test_{metric}")
    return WORDS.say("scored_run", _folder(run), experiment.scored, metric, value, unit, how)


def _weak(experiment: Experiment, run: RunRow) -> str:
    metric, majority = experiment.metric, undecided.majority_of(experiment, run, "all")
    constant = experiment.task.words.constant
    return WORDS.say("weak_run", _folder(run), metric, run.value(f"test_{metric}"), majority, constant)


def _useless(run: RunRow) -> str:
    return WORDS.say("useless_run", _folder(run), run.value("validation_loss"), run.untrained_validation_loss)


def _listed(lines: Sequence[str]) -> Bullets:
    more = [WORDS.say("runs_left_out", len(lines) - MAX_LISTED)] if len(lines) > MAX_LISTED else []
    return Bullets([*lines[:MAX_LISTED], *more])


def _folder(run: RunRow) -> str:
    return run.folder


# --- sweeps -------------------------------------------------------------------------------------------------


def sweep_section(experiment: Experiment, sources: Sources) -> list[Block]:
    """Test scores of every recipe of the swept families, with the ones chosen on validation marked; at which
    learning rates runs are unstable."""
    swept = [question for question in questions(experiment) if question.swept]
    if not swept:
        return []
    collapsed = any(row.n_collapsed for row in experiment.summary)
    ranges = "ranges" in experiment.reporting
    note = WORDS.say("sweep_note", experiment.scored, experiment.metric, collapsed, experiment.task, ranges)
    blocks: list[Block] = [heading("sweep"), Paragraph(note)]
    by_family = grouped(experiment.summary, *PLACE, "recipe_family")
    for number, question in enumerate(swept[:MAX_LISTED], start=1):
        told = recipe_effects(question)
        rows = by_family[question.dataset, question.model, question.family]
        title = f"{place_text(question.dataset, question.model)}, {question.family}"
        table = _sweep_table(experiment, question, rows, f"sweep_{number}")
        blocks += [Heading(title, 3)] if len(swept) > 1 else []
        blocks += [Bullets(told)] if told else []
        blocks += capped(table, "recipes", "summary.csv")
        if any(row.chosen_share is not None for row in rows):
            chosen = _choice_table(experiment, question, rows, f"chosen_{number}")
            blocks += capped(chosen, "recipes", "summary.csv")
    if len(swept) > MAX_LISTED:
        blocks.append(Paragraph(WORDS.say("sweeps_left_out", len(swept) - MAX_LISTED)))
    return [
        *blocks,
        *stability_blocks(experiment),
        *figures(experiment, sources, "sweep"),
        *_expected_validation(experiment),
        *figures(experiment, sources, "search"),
    ]


NOT_TRIED = Cell(NOTHING, None, (None, None, None))  # by a side whose range did not grow so far


def _sweep_table(experiment: Experiment, question: Question, rows: Sequence[SummaryRow], name: str) -> Table:
    columns, cells = _sweep_cells(rows)
    best = {(row.recipe, row.framework, row.init) for row in rows if row.selection == "best"}
    body = []
    for recipe in experiment.recipes(question.family):
        line: list[Any] = [swept_text(experiment.reporting["recipes"][recipe]["swept"])]
        for column in columns:
            row = cells.get((recipe, *column))
            cell = NOT_TRIED if row is None else _sweep_cell(row)
            chosen = (recipe, *column) in best
            line.append(replace(cell, text=f"**{cell.text}**") if chosen else cell)
        body.append(line)
    names: Header = [header("sweep", "recipe"), *(_sweep_header(experiment, *column) for column in columns)]
    place = place_text(question.dataset, question.model)
    units = in_units(experiment.metric)
    caption = WORDS.say("sweep_caption", experiment.scored, question.family, place, units)
    return Table(name, names, body, caption)


def _choice_table(experiment: Experiment, question: Question, rows: Sequence[SummaryRow], name: str) -> Table:
    columns, cells = _sweep_cells(rows)
    body = [
        [
            swept_text(experiment.reporting["recipes"][recipe]["swept"]),
            *(
                percent_cell(row.chosen_share) if (row := cells.get((recipe, *column))) else None
                for column in columns
            ),
        ]
        for recipe in experiment.recipes(question.family)
    ]
    sides = (with_unit(f"{framework_name(framework)}, {init}", "%") for framework, init in columns)
    names = [header("sweep", "recipe"), *sides]
    caption = WORDS.say("choice_caption", place_text(question.dataset, question.model))
    return Table(name, names, body, caption, right=range(1, len(names)))


def _sweep_cells(
    rows: Sequence[SummaryRow],
) -> tuple[list[tuple[str, str]], dict[tuple[str, str, str], SummaryRow]]:
    """Framework and init of each column, and the rows of the summary by recipe, framework and init."""
    columns = list(dict.fromkeys((row.framework, row.init) for row in rows))
    equal = [row for row in rows if row.selection == "equal"]
    return columns, {(row.recipe, row.framework, row.init): row for row in equal}


def _sweep_header(experiment: Experiment, framework: str, init: str) -> Cell:
    column = f"{framework_name(framework)}, {init}"
    unit, name = unit_of(experiment.metric), metric_name(experiment.metric)
    parts = (
        with_unit(header("sweep", "test_mean", metric=name), unit.value),
        with_unit(header("sweep", "test_sd", metric=name), unit.difference),
        with_unit(header("sweep", "validation_mean", metric=name), unit.value),
    )
    return Cell(with_unit(column, unit.value), copied=tuple(f"{column}: {part}" for part in parts))


def _sweep_cell(row: SummaryRow) -> Cell:
    metric = row.metric
    mean = mean_cell(row.mean, row.sd, metric) or Cell(NOTHING, None, (None, None))
    validation = value_cell(metric, row.validation_mean) or Cell(NOTHING, None)
    text = WORDS.say("sweep_cell", mean.text, validation.text, row.n_collapsed)
    return Cell(text, mean.value, (*mean.copied, validation.value))


def _expected_validation(experiment: Experiment) -> list[Block]:
    rows = experiment.tables["expected_validation"]
    if not rows:
        return []
    metric = experiment.task.selection
    selected = metric_name(metric)
    tables: list[Table] = []
    for (dataset, model, family), members in grouped(rows, *PLACE, "recipe_family").items():
        name = f"expected_validation_{len(tables) + 1}"
        place = place_text(dataset, model)
        caption = WORDS.say("search_caption", selected, place, family, in_units(metric))
        tables.append(_search_table(members, name, caption, metric))
    note = WORDS.say("search_note", selected)
    blocks: list[Block] = [heading("search", 3), Paragraph(note)]
    for table in tables[:MAX_LISTED]:
        blocks += capped(table, "numbers_of_settings", "expected_validation.csv")
    if len(tables) > MAX_LISTED:
        blocks.append(Paragraph(WORDS.say("searches_left_out", len(tables) - MAX_LISTED)))
    return blocks


def _search_table(rows: Sequence[Row], name: str, caption: str, metric: str) -> Table:
    """One line a number of settings tried, one column a framework and init."""
    columns = list(grouped(rows, "framework", "init"))
    cells = {(row["settings"], row["framework"], row["init"]): row for row in rows}
    names: Header = [header("search", "settings"), *(_search_header(metric, *column) for column in columns)]
    body = []
    for number in dict.fromkeys(row["settings"] for row in rows):
        found = [cells.get((number, *column)) for column in columns]
        body.append([number, *(row and mean_cell(row["expected"], row["sd"], metric) for row in found)])
    return Table(name, names, body, caption, right=(0,))


def _search_header(metric: str, framework: str, init: str) -> Cell:
    column, unit = f"{framework_name(framework)}, {init}", unit_of(metric)
    expected, sd = (f"{column}: {part}" for part in headers("search", "expected", "sd"))
    copied = with_unit(expected, unit.value), with_unit(sd, unit.difference)
    return Cell(with_unit(column, unit.value), copied=copied)


# --- while training -----------------------------------------------------------------------------------------


def training_section(experiment: Experiment, sources: Sources) -> list[Block]:
    """How the metrics went while training: figures alone."""
    shown = figures(experiment, sources, "training")
    return [heading("training"), *shown] if shown else []
