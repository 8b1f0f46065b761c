"""Sections of summary and report: the answer, how sure it is, accuracies, sweeps, warnings."""

from collections.abc import Callable, Sequence
from typing import Any

from seedbed.answer import answer
from seedbed.document import Block, Bullets, Cell, Heading, Paragraph, Table, code
from seedbed.experiment import Experiment, Question, questions
from seedbed.findings import Findings
from seedbed.power import power_sentences, power_table
from seedbed.report_parts import MAX_LISTED, PLACE, capped, figure, percent_cell, place_text
from seedbed.rows import CELL, Row, grouped
from seedbed.words import count, percent, percent_range, percent_sd

MAX_SEEDS_SHOWN = 10


def answer_blocks(experiment: Experiment) -> list[Block]:
    """The answer in words; several questions are a list."""
    blocks: list[Block] = []
    for text in answer(experiment):
        if text.startswith("- "):
            blocks.append(Bullets(text.removeprefix("- ").split("\n- ")))
        else:
            blocks.append(Paragraph(text))
    return blocks


def power_section(experiment: Experiment) -> list[Block]:
    """What these seeds can and cannot show; left out where inits cannot be compared."""
    told, table = power_sentences(experiment), power_table(experiment)
    if not table.rows:
        return []
    title = "How sure: what these seeds can and cannot show"
    return [Heading(title), Bullets(told), *capped(table, "comparisons", "contrasts.csv")]


# --- accuracies ---------------------------------------------------------------------------------------------


def accuracy_section(experiment: Experiment) -> list[Block]:
    """Test accuracy of every group of seeds; of swept families the reference and the best recipe."""
    blocks: list[Block] = [Heading("Test accuracy")]
    places = grouped(headline_rows(experiment), *PLACE)
    for number, (place, rows) in enumerate(places.items(), start=1):
        if number > MAX_LISTED:
            blocks.append(places_left_out(len(places)))
            break
        if len(places) > 1:
            blocks.append(Heading(place_text(*place), 3))
        table = _accuracy_table(experiment, rows, f"test_accuracy_{number}")
        blocks += [Paragraph(_baselines(experiment, rows)), *capped(table, "rows", "summary.csv")]
    note = (
        "Mean ± sample standard deviation over seeds of the checkpoint that is best on validation; the "
        "interval is Student's t over seeds, cut at 0% and 100%. It does not cover the choice of test "
        "examples; the intervals of the differences do. † collapsed, ‡ not above the majority class."
    )
    if any(row["selection"] == "best" for row in experiment.summary):
        note += " Equal: the first recipe of a sweep; own best: the best recipe on validation."
    return [*blocks, Paragraph(note)]


def places_left_out(places: int) -> Paragraph:
    """How many pairs of dataset and model are not shown, of so many."""
    return Paragraph(f"{places - MAX_LISTED:,} more pairs of dataset and model stand in summary.csv.")


def headline_rows(experiment: Experiment) -> list[Row]:
    """Of every question the rows of the summary at its reference recipe, and at each side's best."""
    by_family = grouped(experiment.summary, *PLACE, "recipe_family")
    return [
        row
        for question in questions(experiment)
        for row in by_family[question.dataset, question.model, question.family]
        if row["selection"] == "best" or row["recipe"] == question.reference
    ]


def _baselines(experiment: Experiment, rows: Sequence[Row]) -> str:
    bag, majority = rows[0]["bag_of_words"], rows[0]["majority_share"]
    examples = experiment.group(rows[0])[0]["test_examples"]
    error = 100 * max(row["binomial_se"] for row in rows)
    told = f"To beat, on the {examples:,} test examples: the majority class with {percent(majority)}"
    if bag is not None:
        below = sum(row["mean"] < bag for row in rows)
        verdict = {0: "below every mean of the table", len(rows): "above every mean of the table"}.get(
            below, f"above {below} of the {len(rows)} means of the table"
        )
        told += f", and a bag of words with {percent(bag)}, which is {verdict}"
    return (
        f"{told}. So many examples give each accuracy a binomial standard error of up to {error:.1f} points."
    )


def _accuracy_table(experiment: Experiment, rows: Sequence[Row], name: str) -> Table:
    collapsed = any(row["n_collapsed"] for row in rows)
    header = ["framework", "init", "recipe", "seeds", "test accuracy (%)", f"{experiment.level} (%)"]
    header += ["every seed (%)", "validation accuracy (%)"]
    header += ["collapsed", "test without collapsed (%)"] if collapsed else []
    body = [
        (
            row["framework"],
            row["init"],
            recipe_text(row, rows),
            row["n_seeds"],
            percent_cell(row["mean"], row["sd"]),
            None if row["ci_low"] is None else percent_range(row["ci_low"], row["ci_high"]),
            _seed_cells(experiment.group(row), row["metric"]),
            percent_cell(row["validation_mean"], row["validation_sd"]),
            *(_collapsed_cells(row) if collapsed else []),
        )
        for row in rows
    ]
    place = place_text(rows[0]["dataset"], rows[0]["model"])
    caption = f"Test accuracy in per cent, mean ± sample sd over seeds: {place}"
    return Table(name, header, body, caption, right=(3,))


def _collapsed_cells(row: Row) -> list[Cell | None]:
    number = Cell(f"{row['n_collapsed']} of {row['n_seeds']}", row["n_collapsed"])
    if not row["n_collapsed"]:
        return [number, None]
    return [number, percent_cell(row["mean_without_collapsed"], row["sd_without_collapsed"])]


def recipe_text(row: Row, rows: Sequence[Row]) -> str:
    """The recipe of a row among those of a table, and where its family is swept how it was chosen."""
    swept = {other["recipe_family"] for other in rows if other["selection"] == "best"}
    if row["recipe_family"] not in swept:
        return row["recipe"]
    return f"{row['recipe']} ({'own best' if row['selection'] == 'best' else 'equal'})"


def _seed_cells(runs: Sequence[Row], metric: str) -> str:
    shown = [_seed_text(run, metric) for run in runs[:MAX_SEEDS_SHOWN]]
    more = len(runs) - len(shown)
    return ", ".join(shown) + (f" and {more} more in runs.csv" if more else "")


def _seed_text(run: Row, metric: str) -> str:
    mark = "†" if run["collapsed"] else "‡" if run["not_above_majority"] else ""
    return percent(run[f"test_{metric}"]) + mark


# --- warnings -----------------------------------------------------------------------------------------------


def warning_section(experiment: Experiment) -> list[Block]:
    """Runs that collapsed or diverged, and runs that are not above the majority class, by name."""
    collapsed = [run for run in experiment.runs if run["collapsed"]]
    weak = [run for run in experiment.runs if run["not_above_majority"] and not run["collapsed"]]
    if not collapsed and not weak:
        return []
    level = f"{100 * experiment.confidence:.4g}%"
    blocks: list[Block] = [Heading("Warnings: collapsed and weak runs")]
    if collapsed:
        blocks += [
            Paragraph(
                f"{count(len(collapsed), 'run')} collapsed: one class is predicted throughout, or a loss "
                "became infinite or NaN. They count in the means above."
            ),
            _listed(collapsed, _collapse_text),
        ]
    if weak:
        blocks += [
            Paragraph(
                f"{count(len(weak), 'run')} cannot be told from the majority class: the one-sided {level} "
                "Wilson bound of the test accuracy does not exceed its share."
            ),
            _listed(weak, _weakness_text),
        ]
    return blocks


def _collapse_text(run: Row) -> str:
    why = "diverged" if run["diverged"] else "predicts one class"
    return f"{why}, test accuracy {percent(run['test_accuracy'])}"


def _weakness_text(run: Row) -> str:
    share = percent(run["test_majority_share"])
    return f"test accuracy {percent(run['test_accuracy'])}, majority class {share}"


def _listed(runs: Sequence[Row], text: Callable[[Row], str]) -> Bullets:
    lines = [f"{code(_folder(run))}: {text(run)}" for run in runs[:MAX_LISTED]]
    if len(runs) > MAX_LISTED:
        lines.append(f"and {len(runs) - MAX_LISTED:,} more, in runs.csv")
    return Bullets(lines)


def _folder(run: Row) -> str:
    seeds = run["init_seed"], run["data_seed"]
    seed = f"seed{seeds[0]}" if seeds[0] == seeds[1] else f"seed{seeds[0]}-{seeds[1]}"
    return "/".join([*(run[key] for key in CELL), seed])


# --- sweeps -------------------------------------------------------------------------------------------------


def sweep_section(findings: Findings, *, full: bool = False) -> list[Block]:
    """Test accuracy of every recipe of the swept families, with the ones chosen on validation marked; `full`
    adds the figures."""
    experiment = findings.experiment
    swept = [question for question in questions(experiment) if question.swept]
    if not swept:
        return []
    note = (
        "Test accuracy, mean ± sample sd over seeds; in brackets the mean validation accuracy. Bold: best of "
        "its column on validation, whatever the test says. The equal recipe of the answer is the first of "
        "the sweep."
    )
    blocks: list[Block] = [Heading("Each side at its best: the sweep"), Paragraph(note)]
    by_family = grouped(experiment.summary, *PLACE, "recipe_family")
    for number, question in enumerate(swept[:MAX_LISTED], start=1):
        rows = by_family[question.dataset, question.model, question.family]
        title = f"{place_text(question.dataset, question.model)}, {question.family}"
        table = _sweep_table(experiment, question, rows, f"sweep_{number}")
        blocks += [Heading(title, 3), *capped(table, "recipes", "summary.csv")]
    if len(swept) > MAX_LISTED:
        blocks.append(Paragraph(f"{len(swept) - MAX_LISTED:,} more sweeps stand in summary.csv."))
    if full:
        blocks += figure(findings, "test_accuracy_by_recipe")
    blocks += _expected_validation(findings)
    return [*blocks, *(figure(findings, "expected_validation") if full else [])]


def _sweep_table(experiment: Experiment, question: Question, rows: Sequence[Row], name: str) -> Table:
    columns = list(dict.fromkeys((row["framework"], row["init"]) for row in rows))
    cells = {
        (row["recipe"], row["framework"], row["init"]): row for row in rows if row["selection"] == "equal"
    }
    best = {(row["recipe"], row["framework"], row["init"]) for row in rows if row["selection"] == "best"}
    body = []
    for recipe in experiment.recipes(question.family):
        values = experiment.reporting["recipes"][recipe]["swept"]
        line: list[Any] = [", ".join(f"{key} {_value(value)}" for key, value in values.items())]
        for column in columns:
            row = cells[(recipe, *column)]
            text = _sweep_text(row)
            line.append(
                Cell(f"**{text}**" if (recipe, *column) in best else text, round(100 * row["mean"], 6))
            )
        body.append(line)
    header = ["recipe", *(f"{framework}, {init} (%)" for framework, init in columns)]
    return Table(name, header, body, f"Test accuracy of the recipes of {question.family}, in per cent")


def _sweep_text(row: Row) -> str:
    collapsed = f", {row['n_collapsed']} collapsed" if row["n_collapsed"] else ""
    return f"{percent_sd(row['mean'], row['sd'])} ({percent(row['validation_mean'])}{collapsed})"


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _expected_validation(findings: Findings) -> list[Block]:
    rows = findings.tables["expected_validation"]
    if not rows:
        return []
    tables = []
    for (dataset, model, family), members in grouped(rows, *PLACE, "recipe_family").items():
        name = f"expected_validation_{len(tables) + 1}"
        caption = f"Expected best validation accuracy in per cent: {place_text(dataset, model)}, {family}"
        tables.append(_search_table(members, name, caption))
    note = (
        "What a search of a given length would find: the expected best mean validation accuracy of so many "
        "settings, drawn from the sweep with replacement, ± its standard deviation (Dodge et al. 2019)."
    )
    blocks: list[Block] = [Heading("How much a search finds", 3), Paragraph(note)]
    for table in tables[:MAX_LISTED]:
        blocks += capped(table, "numbers of settings", "expected_validation.csv")
    if len(tables) > MAX_LISTED:
        blocks.append(Paragraph(f"{len(tables) - MAX_LISTED:,} more stand in expected_validation.csv."))
    return blocks


def _search_table(rows: Sequence[Row], name: str, caption: str) -> Table:
    """One line a number of settings tried, one column a framework and init."""
    columns = list(grouped(rows, "framework", "init"))
    cells = {(row["settings"], row["framework"], row["init"]): row for row in rows}
    header = ["settings tried", *(f"{framework}, {init} (%)" for framework, init in columns)]
    body = []
    for number in dict.fromkeys(row["settings"] for row in rows):
        found = [cells.get((number, *column)) for column in columns]
        body.append([number, *(row and percent_cell(row["expected"], row["sd"]) for row in found)])
    return Table(name, header, body, caption, right=(0,))
