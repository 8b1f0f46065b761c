"""Sections of summary and report: the methods side by side, what they train, and what they answer."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.analysis.experiment import Experiment
from seedbed.analysis.table_rows import RunRow, SummaryRow
from seedbed.core.files import read_jsonl, read_rows
from seedbed.core.methods import ADAPTERS, PARTIAL
from seedbed.core.rows import CELL, Row, grouped
from seedbed.core.wording import Words
from seedbed.core.words import framework_name, join, percent, recipe_text
from seedbed.report.documents.blocks import Block, Bullets, Cell, Details, Header, Heading, Paragraph, Table
from seedbed.report.method_comparisons import (
    NAMES,
    UNTRAINED,
    comparisons,
    median_of,
    method_name,
    other_settings,
)
from seedbed.report.parts import (
    MAX_LISTED,
    PLACE,
    capped,
    cell_word,
    counted_cell,
    fold,
    header,
    headers,
    heading,
    literal,
    mean_cell,
    mean_header,
    number_cell,
    percent_cell,
    place_text,
)
from seedbed.report.sections_accuracy import answer_rows, chosen_recipe, headline_rows
from seedbed.report.sources import Sources
from seedbed.report.texts import one_line, shorten

WORDS = Words("report/methods")

FIRST, CHANGED = 10, 5  # test examples that are shown: the first ones, and those whose F1 differs most
ANSWER_LENGTH, QUESTION_LENGTH = 120, 200  # characters of a cell
PARTS = ("method", "component", "modules", "formula", "expected", "counted")
WRONG = "wrong"  # how trainable_parameters.csv marks the count of packed weights


# --- side by side -------------------------------------------------------------------------------------------


def method_section(experiment: Experiment) -> list[Block]:
    """What each method trains, costs and reaches, one row a recipe; left out where there is one method."""
    rows = headline_rows(experiment)
    if len({row.method for row in rows}) < 2:
        return []
    blocks: list[Block] = [heading("methods")]
    places = grouped(rows, *PLACE)
    for number, (place, members) in enumerate(list(places.items())[:MAX_LISTED], start=1):
        if len(places) > 1:
            blocks.append(Heading(place_text(*place), 3))
        table = _method_table(experiment, members, f"methods_{number}")
        blocks += capped(table, "recipes", "summary.csv", "runs.csv")
    if len(places) > MAX_LISTED:
        blocks.append(Paragraph(WORDS.say("places_left_out", len(places) - MAX_LISTED)))
    differ = [text for one in comparisons(experiment)[:MAX_LISTED] for text in other_settings(one)]
    blocks += [Bullets(differ)] if differ else []
    devices = list(dict.fromkeys(run.device for run in experiment.runs))
    return [*blocks, Paragraph(WORDS.say("method_note", devices))]


def _method_table(experiment: Experiment, rows: Sequence[SummaryRow], name: str) -> Table:
    recipes = experiment.reporting["recipes"]
    scores = {metric: _by_group(one) for metric, one in experiment.by_metric.items()}
    kept = bool(experiment.adapter_mib)
    perplexity = any(run.measured.get("test_perplexity") is not None for run in experiment.runs)
    columns = ["framework", "init", "recipe", "method", "seeds", "trainable", "share", "parameters", "memory"]
    columns += [*(["adapter"] if kept else []), "speed", "time"]
    names: Header = [*headers("methods", *columns)]
    for metric, one in experiment.by_metric.items():
        names.append(mean_header(one.scored, metric))
        if metric == "loss" and perplexity:
            names.append(mean_header(header("methods", "perplexity"), "perplexity"))
    body = []
    for row in rows:
        runs = experiment.group(row)
        values = {key: median_of(runs, key) for key in _MEDIANS}
        trained, total = values["trainable_parameters"], values["total_parameters"]
        line: list[Any] = [
            framework_name(row.framework),
            row.init,
            chosen_recipe(experiment, row),
            NAMES[recipes[row.recipe]["method"]],
            row.n_seeds,
            number_cell(trained),
            percent_cell(None if trained is None or not total else trained / total),
            number_cell(total),
            number_cell(values["peak_memory_mib"]),
            *([number_cell(experiment.adapter_size(runs), 2)] if kept else []),
            number_cell(values["tokens_per_second"]),
            number_cell(values["train_seconds"], 1),
        ]
        for metric, groups in scores.items():
            found = groups.get(_group_of(row))
            line.append(found and mean_cell(found.mean, found.sd, metric))
            if metric == "loss" and perplexity:
                line.append(_perplexity_cell(runs))
        body.append(line)
    caption = WORDS.say("method_caption", place_text(rows[0].dataset, rows[0].model))
    right = [index for index in range(len(names)) if index > 3]
    return fold(Table(name, names, body, caption, right), range(5))


_MEDIANS = (
    "trainable_parameters",
    "total_parameters",
    "peak_memory_mib",
    "tokens_per_second",
    "train_seconds",
)


def _perplexity_cell(runs: Sequence[RunRow]) -> Cell | None:
    values = [value for run in runs if (value := run.value("test_perplexity")) is not None]
    if not values or len(values) < len(runs):
        return None
    average = sum(values) / len(values)
    spread = None
    if len(values) > 1:
        spread = (sum((value - average) ** 2 for value in values) / (len(values) - 1)) ** 0.5
    return mean_cell(average, spread, "perplexity")


def _by_group(experiment: Experiment) -> dict[tuple[str, ...], SummaryRow]:
    return {_group_of(row): row for row in experiment.summary}


def _group_of(row: SummaryRow) -> tuple[str, ...]:
    return (*row.cell, row.selection)


# --- what is trained ----------------------------------------------------------------------------------------


def trainable_section(experiment: Experiment, sources: Sources) -> list[Block]:
    """What recipes train that freeze weights: by formula, and as counted; left out where there are none."""
    rows = sources.trainable
    if not rows:
        return []
    methods = {row["method"] for row in rows}
    blocks: list[Block] = [heading("trained_parts" if methods.intersection(PARTIAL) else "trainable")]
    if methods.intersection(ADAPTERS):
        blocks.append(Paragraph(WORDS.say("adapters_note")))
    if methods.intersection(PARTIAL):
        blocks.append(Paragraph(WORDS.say("parts_note")))
    packed = [row for row in rows if WRONG in row["component"]]
    if packed:
        blocks.append(Paragraph(_packed_text(rows, packed)))
    for number, (recipes, members) in enumerate(_alike(rows), start=1):
        if number > MAX_LISTED:
            blocks.append(Paragraph(WORDS.say("adapters_left_out")))
            break
        blocks.append(_trainable_table(experiment, recipes, members, number))
    return blocks


def _alike(rows: Sequence[Row]) -> list[tuple[list[str], list[Row]]]:
    """The rows of each model and recipe, with all recipes of which the same is to be said: those of a sweep
    that does not change the adapter."""
    found: dict[tuple[Any, ...], tuple[list[str], list[Row]]] = {}
    for (model, recipe), members in grouped(rows, "model", "recipe").items():
        parts = tuple(tuple(row[key] for key in PARTS) for row in members)
        found.setdefault((model, parts), ([], members))[0].append(recipe)
    return list(found.values())


def _packed_text(rows: Sequence[Row], packed: Sequence[Row]) -> str:
    first = packed[0]
    total = next(
        row["counted"]
        for row in rows
        if (row["model"], row["recipe"], row["component"]) == (first["model"], first["recipe"], "total")
    )
    return WORDS.say("packed", first["counted"], first["model"], total)


def _trainable_table(experiment: Experiment, names: Sequence[str], rows: Sequence[Row], number: int) -> Table:
    recipes = experiment.reporting["recipes"]
    families = list(dict.fromkeys(recipes[name]["family"] for name in names))
    named = recipe_text(recipes, names[0]) if len(names) == 1 else join(families)
    several = len(names) if len(names) > len(families) else 0
    body = [
        (
            literal(row["component"]),
            number_cell(row["modules"]),
            row["formula"] or None,
            number_cell(row["expected"]),
            counted_cell(row),
        )
        for row in rows
    ]
    columns = headers("trainable", "component", "modules", "formula", "expected", "counted")
    caption = WORDS.say("adapter_caption", rows[0]["model"], named, several, NAMES[rows[0]["method"]])
    return Table(f"trainable_{number}", columns, body, caption, right=(1, 3, 4))


# --- answers ------------------------------------------------------------------------------------------------

# by place and example: question, reference, and of each cell's first run the answer with its F1
Answers = Mapping[tuple[str, str], Sequence[Row]]


def read_answers(experiment: Experiment, sources: Sources, texts: Sequence[str | Path]) -> Answers:
    """The answers that are shown, by dataset and model: the first FIRST test examples, then the CHANGED
    others whose F1 changed most, from the untrained model to any method; without an untrained model, whose
    F1 differs most between methods.

    Of each recipe in the tables only the first seed's run is read.

    Args:
        experiment: its tables.
        sources: with the run folders.
        texts: .../DATASET/test.jsonl of every dataset.

    Returns:
        Rows with `example`, `question`, `reference` and `answers`: by name of a method (`answer`, `f1`). None
        of other tasks.
    """
    if "answers" not in experiment.task.sections:
        return {}
    paths = {Path(file).parent.name: file for file in texts}
    recipes = experiment.reporting["recipes"]
    folders: dict[Any, Path] = {}
    for document, folder in zip(sources.documents, sources.folders, strict=True):
        folders.setdefault(tuple(document["run"][key] for key in CELL), folder)
    shown = {}
    for place, rows in grouped(answer_rows(experiment), *PLACE).items():
        several = len({row.init for row in rows}) > 1
        told = {
            method_name(recipes, row.recipe) + (f", {row.init}" if several else ""): _read_answers(
                folders[row.cell] / "predictions.csv"
            )
            for row in rows
        }
        untrained = [name for name in told if name.startswith(NAMES[UNTRAINED])]
        questions = {example["id"]: example for example in read_jsonl(paths[place[0]])}
        chosen = choose(told, untrained)
        shown[place] = [
            {
                "example": example,
                "question": questions[example]["question"],
                "context": questions[example].get("context"),
                "reference": questions[example]["answer"],
                "answers": {name: found[example] for name, found in told.items()},
            }
            for example in chosen
        ]
    return shown


def _read_answers(path: Path) -> dict[str, tuple[str, float]]:
    """Answer and F1 of every test example of a run, in the order of the file."""
    rows = read_rows(path)
    return {row["example"]: (row["answer"], float(row["f1"])) for row in rows if row["split"] == "test"}


def choose(told: Mapping[str, Mapping[str, tuple[str, float]]], untrained: Sequence[str]) -> list[str]:
    """The examples that are shown; of two that changed as much the earlier one.

    Args:
        told: answer and F1 by method and example.
        untrained: the methods among them that train nothing.
    """
    examples = list(next(iter(told.values())))
    others = [name for name in told if name not in untrained]

    def changed(example: str) -> float:
        scores = [told[name][example][1] for name in others]
        if untrained and scores:
            return max(abs(score - told[untrained[0]][example][1]) for score in scores)
        return max(scores) - min(scores) if scores else 0.0

    rest = sorted(examples[FIRST:], key=lambda example: -changed(example))
    return [*examples[:FIRST], *rest[:CHANGED]]


def answer_section(experiment: Experiment, answers: Answers | None) -> list[Block]:
    """Question, reference and the answers of all methods, side by side; of models that write answers.

    Args:
        experiment: its tables.
        answers: as `read_answers` gives them; None: texts are left out.
    """
    if "answers" not in experiment.task.sections:
        return []
    if answers is None:
        return [heading("answers"), Paragraph(WORDS.say("answers_left_out"))]
    untrained = any(row.method == UNTRAINED for row in experiment.summary)
    note = WORDS.say("answers_note", FIRST, CHANGED, untrained)
    blocks: list[Block] = [heading("answers"), Paragraph(note)]
    for number, (place, rows) in enumerate(list(answers.items())[:MAX_LISTED], start=1):
        if len(answers) > 1:
            blocks.append(Heading(place_text(*place), 3))
        blocks += _answer_tables(place, rows, number)
    return blocks


def _answer_tables(place: tuple[str, str], rows: Sequence[Row], number: int) -> list[Block]:
    names = list(rows[0]["answers"]) if rows else []
    columns = [*headers("answers", "example", "question", "reference"), *names]
    body = [
        (
            literal(row["example"]),
            text_cell(row["question"], QUESTION_LENGTH),
            text_cell(row["reference"], ANSWER_LENGTH),
            *(_answer_cell(*row["answers"][name]) for name in names),
        )
        for row in rows
    ]
    table = Table(f"answers_{number}", columns, body, WORDS.say("answers_caption", place_text(*place)))
    contexts = [row for row in rows if row["context"]]
    if not contexts:
        return [table]
    texts = [(literal(row["example"]), text_cell(row["context"], 600)) for row in contexts]
    caption = WORDS.say("contexts_caption", place_text(*place))
    told = WORDS.say("contexts_title", len(contexts))
    columns = headers("answers", "example", "context")
    return [table, Details(told, [Table(f"contexts_{number}", columns, texts, caption)])]


def text_cell(text: str, length: int) -> Cell:
    """A text of the data on one line, shown as it is and cut after so many characters; copied whole."""
    whole = one_line(text)
    return Cell(literal(shorten(whole, length)) if whole else cell_word("no_text"), whole)


def _answer_cell(answer: str, f1: float) -> Cell:
    cell = text_cell(answer, ANSWER_LENGTH)
    return Cell(f"{cell.text} ({percent(f1, 0)})", cell.value)
