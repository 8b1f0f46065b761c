"""Sections of summary and report: what the seed changes, hard examples, variance, calibration."""

from collections.abc import Mapping, Sequence
from typing import Any

from seedbed.analysis.experiment import Experiment
from seedbed.core.rows import CELL, Row, grouped
from seedbed.core.wording import Words
from seedbed.core.words import framework_name, recipe_text, unit_of, with_unit
from seedbed.report.documents.blocks import Block, Bullets, Details, Paragraph, Table
from seedbed.report.parts import (
    MAX_LISTED,
    capped,
    figures,
    header,
    headers,
    heading,
    literal,
    percent_cell,
    points_cell,
    size_cell,
    with_places,
)
from seedbed.report.sources import Sources
from seedbed.report.texts import Texts, example_cell, one_line

WORDS = Words("report/predictions")

MAX_OPEN = 4  # texts of a dataset that stand open; the others are folded away


def _names_header(experiment: Experiment) -> tuple[str, ...]:
    """The columns that tell cells apart."""
    return "framework", "init", experiment.task.told_by


def _names(experiment: Experiment, row: Row) -> list[str]:
    """The cells below them."""
    recipe = literal(recipe_text(experiment.reporting["recipes"], row["recipe"]))
    return [framework_name(row["framework"]), row["init"], recipe]


def churn_section(experiment: Experiment) -> list[Block]:
    """How many predictions depend on the seed."""
    rows = experiment.tables["churn"]
    if not rows:
        return []
    columns = headers(
        "churn", *_names_header(experiment), "seeds", "changed", "disagree", "always_right", "never_right"
    )

    def line(row: Row) -> list[Any]:
        return [
            *_names(experiment, row),
            row["n_seeds"],
            percent_cell(row["changed_share"]),
            percent_cell(row["mean_disagreement"]),
            percent_cell(row["always_right"] / row["examples"]),
            percent_cell(row["never_right_share"]),
        ]

    caption = WORDS.say("churn_caption")
    table = with_places(rows, "churn", columns, line, caption=caption, named=4)
    return [
        heading("churn"),
        Paragraph(WORDS.say("churn_note")),
        *capped(table, "rows", "churn.csv"),
    ]


def hard_examples(experiment: Experiment) -> set[tuple[str, str]]:
    """(dataset, example) of those that `never_right_section` shows."""
    return {
        (dataset, row["example"])
        for (dataset,), rows in grouped(experiment.tables["never_right"], "dataset").items()
        for row in rows[:MAX_LISTED]
    }


def never_right_section(experiment: Experiment, texts: Texts | None) -> list[Block]:
    """The examples that no run gets right.

    Args:
        experiment: its tables.
        texts: of `hard_examples`; None: texts are left out.
    """
    datasets = grouped(experiment.tables["never_right"], "dataset")
    sound = grouped([run for run in experiment.runs if not run.collapsed], "dataset")
    if not sound or not experiment.tables["churn"]:
        return []
    blocks: list[Block] = [heading("never_right")]
    told = [
        WORDS.say("never_right", dataset, len(datasets.get((dataset,), [])), runs[0].test_examples, len(runs))
        for (dataset,), runs in sound.items()
    ]
    blocks.append(Bullets(told[:MAX_LISTED]))
    if not datasets:
        return blocks
    for number, ((dataset,), rows) in enumerate(list(datasets.items())[:MAX_LISTED], start=1):
        blocks += _hard_examples(dataset, rows, texts, number)
    blocks.append(Paragraph(WORDS.say("worth_reading", texts is None)))
    return blocks


def _hard_examples(dataset: str, rows: Sequence[Row], texts: Texts | None, number: int) -> list[Block]:
    """Examples with their texts; those of one text and label share a line. Without texts each has its own."""
    shown = [{**row, "text": _lines(row, texts)} for row in rows[:MAX_LISTED]]
    columns = headers("never_right", "example", "label", "prediction")
    if texts is None:
        body = [_hard_cells([row]) for row in shown]
    else:
        columns += headers("never_right", "text")
        alike = grouped(shown, "text", "label")
        body = [[*_hard_cells(same), example_cell(text)] for (text, _), same in alike.items()]
    pairs = any(len(row["text"]) > 1 for row in shown)
    caption = WORDS.say("hard_caption", dataset, MAX_LISTED, len(rows), pairs)
    spare = () if texts is None else (0, 2)  # of a narrow screen the text needs all
    table = Table(f"never_right_{number}", columns, body[:MAX_OPEN], caption, spare=spare)
    if len(body) <= MAX_OPEN:
        return [table]
    more = Table(f"never_right_{number}_more", columns, body[MAX_OPEN:], caption, spare=spare)
    return [table, Details(WORDS.say("more_texts", len(body) - MAX_OPEN), [more])]


def _lines(row: Row, texts: Texts | None) -> tuple[str, ...]:
    """The text of an example, or both texts of a pair, each on one line; none where texts are left out."""
    return () if texts is None else tuple(map(one_line, texts[row["dataset"], row["example"]]))


def _hard_cells(alike: Sequence[Row]) -> list[Any]:
    """Ids, label and predictions of examples with one label."""
    return [
        literal(", ".join(row["example"] for row in alike)),
        literal(alike[0]["label"]),
        literal(", ".join(dict.fromkeys(row["most_common_prediction"] for row in alike))),
    ]


# --- variance -----------------------------------------------------------------------------------------------


def variance_section(experiment: Experiment) -> list[Block]:
    """What the init seed and the data seed contribute; where seeds are not crossed, that it is not known."""
    title, rows = heading("variance"), experiment.tables["variance"]
    if not rows:
        return [title, Paragraph(WORDS.say("not_crossed", len(experiment.task.frameworks)))]
    several = len(experiment.by_metric) > 1
    blocks: list[Block] = [title, Paragraph(WORDS.say("variance_note", experiment.scored, several))]
    by_metric = grouped(rows, "metric")
    for (metric,), members in by_metric.items():
        blocks += _variance_table(experiment, metric, members, f"_{metric}" * (len(by_metric) > 1))
    return blocks


def _variance_table(experiment: Experiment, metric: str, rows: Sequence[Row], ending: str) -> list[Block]:
    columns = headers("variance", *_names_header(experiment), "test_set", "component", "levels", "degrees")
    columns.append(with_unit(header("variance", "sd"), unit_of(metric).difference))
    columns.append(header("variance", "share"))

    def line(row: Row) -> list[Any]:
        spread = None if row["variance"] is None else max(row["variance"], 0.0) ** 0.5
        return [
            *_names(experiment, row),
            *(row[key] for key in ("test_set", "component", "levels", "degrees")),
            size_cell(spread, 2, metric),
            percent_cell(row["share"]),
        ]

    caption = WORDS.say("variance_caption", metric)
    table = with_places(rows, f"variance{ending}", columns, line, caption=caption, named=4)
    return capped(table, "rows", "variance.csv")


# --- calibration --------------------------------------------------------------------------------------------


def calibration_section(experiment: Experiment, sources: Sources) -> list[Block]:
    """Whether the predicted probabilities are those of being right, and which classes are confused."""
    bins = grouped(experiment.tables["calibration"], *CELL)
    rows = [
        row
        for row in experiment.summary
        if row["selection"] == "equal" and tuple(row[key] for key in CELL) in bins
    ]
    blocks: list[Block] = [heading("calibration")]
    if rows:
        blocks += _calibration_table(experiment, rows, bins)
    return [*blocks, *figures(experiment, sources, "predictions")]


def _calibration_table(
    experiment: Experiment, rows: Sequence[Row], bins: Mapping[tuple[Any, ...], Sequence[Row]]
) -> list[Block]:
    gaps = {}
    for row in rows:
        members = bins[tuple(row[key] for key in CELL)]
        total = sum(member["count"] for member in members)
        means = [
            sum(member[key] * member["count"] for member in members) / total
            for key in ("confidence", "accuracy")
        ]
        gaps[id(row)] = means
    columns = headers(
        "calibration", *_names_header(experiment), "confidence", "accuracy", "excess", "ece", "ece_of_chance"
    )

    def line(row: Row) -> list[Any]:
        confidence, accuracy = gaps[id(row)]
        return [
            *_names(experiment, row),
            percent_cell(confidence),
            percent_cell(accuracy),
            points_cell(confidence - accuracy),
            size_cell(row["ece"]),
            size_cell(row["ece_of_chance"]),
        ]

    note = WORDS.say("calibration_note")
    caption = WORDS.say("calibration_caption")
    table = with_places(rows, "calibration", columns, line, caption=caption, named=3)
    return [Paragraph(note), *capped(table, "rows", "calibration.csv")]
