"""Sections of summary and report: what the seed changes, hard examples, variance, calibration."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core.files import read_jsonl
from seedbed.core.rows import CELL, Row, grouped
from seedbed.core.words import count, framework_name, metric_name, recipe_text, unit_of, with_unit
from seedbed.report.documents.blocks import Block, Bullets, Cell, Heading, Paragraph, Table
from seedbed.report.findings import Findings
from seedbed.report.parts import (
    MAX_LISTED,
    capped,
    figures,
    literal,
    percent_cell,
    points_cell,
    size_cell,
    with_places,
)

TEXT_LENGTH = 240  # characters of a test example that are shown
NAMES = ("framework", "init", "recipe")
NOT_CROSSED = (
    "What each contributes is not told apart here: it takes init seeds that are crossed with data seeds, as "
    "`grid.seeds` with a list of each does."
)
APART = "the init seed draws weights, the data seed the order of examples and dropout."
BOTH_APART = f"Both frameworks keep them apart, fairseq by Seedbed's plugin: {APART}"
ONE_APART = APART.capitalize()


def _names(findings: Findings, row: Row) -> list[str]:
    """The cells below NAMES."""
    recipe = recipe_text(findings.reporting["recipes"], row["recipe"])
    return [framework_name(row["framework"]), row["init"], recipe]


def churn_section(findings: Findings, texts: Mapping[tuple[str, str], str] | None = None) -> list[Block]:
    """How many predictions depend on the seed, and the examples that no run gets right.

    Args:
        findings: all that was found.
        texts: texts of test examples by (dataset, example), as far as they are to be shown.
    """
    rows = findings.tables["churn"]
    if not rows:
        return []
    header = [*NAMES, "seeds", "changed (%)", "two seeds disagree (%)"]
    header += ["always right (%)", "never right (%)"]

    def line(row: Row) -> list[Any]:
        return [
            *_names(findings, row),
            row["n_seeds"],
            percent_cell(row["changed_share"]),
            percent_cell(row["mean_disagreement"]),
            percent_cell(row["always_right"] / row["examples"]),
            percent_cell(row["never_right_share"]),
        ]

    note = (
        "Changed: test examples whose prediction is not the same in all seeds. Two seeds disagree: the mean "
        "share of test examples that two seeds predict differently, over all pairs of seeds. More seeds find "
        "more changed examples, and fewer that are never right; the disagreement of two does not depend on "
        "their number."
    )
    caption = "Predictions over the seeds of each row, in per cent of the test examples."
    table = with_places(rows, "churn", header, line, caption=caption, named=4)
    return [
        Heading("What the seed changes"),
        Paragraph(note),
        *capped(table, "rows", "churn.csv"),
        *_never_right(findings, texts),
    ]


def _never_right(findings: Findings, texts: Mapping[tuple[str, str], str] | None) -> list[Block]:
    datasets = grouped(findings.tables["never_right"], "dataset")
    sound = grouped([run for run in findings.experiment.runs if not run["collapsed"]], "dataset")
    if not sound:
        return []
    blocks: list[Block] = [Heading("Test examples that no run gets right", 3)]
    told = [
        f"{dataset}: {len(datasets.get((dataset,), [])):,} of {runs[0]['test_examples']:,} test examples are "
        f"wrong in every run that did not collapse ({count(len(runs), 'run')})"
        for (dataset,), runs in sound.items()
    ]
    blocks.append(Bullets(told[:MAX_LISTED]))
    if not datasets:
        return blocks
    if texts is not None:
        for number, ((dataset,), rows) in enumerate(list(datasets.items())[:MAX_LISTED], start=1):
            blocks += _hard_examples(dataset, rows, texts, number)
    blocks.append(
        Paragraph(
            "They are worth reading: a wrong label, a text without a verdict, or what none of these models "
            "has learnt. All of them stand in never_right.csv."
        )
    )
    return blocks


def _hard_examples(
    dataset: str, rows: Sequence[Row], texts: Mapping[tuple[str, str], str], number: int
) -> list[Block]:
    """Examples with their texts; those of one text and label share a line."""
    shown = [{**row, "text": _one_line(texts[dataset, row["example"]])} for row in rows[:MAX_LISTED]]
    body = [
        (
            literal(", ".join(row["example"] for row in alike)),
            literal(label),
            literal(", ".join(dict.fromkeys(row["most_common_prediction"] for row in alike))),
            Cell(literal(shorten(text)), text),
        )
        for (text, label), alike in grouped(shown, "text", "label").items()
    ]
    told = f"the first {MAX_LISTED} of {len(rows):,}" if len(rows) > MAX_LISTED else "all"
    caption = f"Test examples of {dataset} that no run gets right: {told}."
    return [Table(f"never_right_{number}", ["example", "label", "mostly predicted", "text"], body, caption)]


def read_hard_texts(never_right: Sequence[Row], files: Sequence[str | Path]) -> dict[tuple[str, str], str]:
    """The texts of the test examples that are shown because no run gets them right."""
    paths = {Path(file).parent.name: file for file in files}
    texts = {}
    for (dataset,), rows in grouped(never_right, "dataset").items():
        wanted = {row["example"] for row in rows[:MAX_LISTED]}
        for example in read_jsonl(paths[dataset]):
            if example["id"] in wanted:
                texts[dataset, example["id"]] = example["text"]
    return texts


def _one_line(text: str) -> str:
    return " ".join(text.split())


def shorten(text: str, length: int = TEXT_LENGTH) -> str:
    """A text on one line of so many characters at most, cut between words where the language has spaces."""
    text = _one_line(text)
    if len(text) <= length:
        return text
    start = text[: length - 1]  # one for the sign
    words, _, last = start.rpartition(" ")
    return f"{words if words and len(last) < length // 2 else start}…"


# --- variance -----------------------------------------------------------------------------------------------


def variance_section(findings: Findings) -> list[Block]:
    """What the init seed and the data seed contribute; where seeds are not crossed, that it is not known."""
    title, rows = Heading("Init seed or order of the data?"), findings.tables["variance"]
    if not rows:
        compared = len(findings.experiment.task.frameworks) > 1
        return [title, Paragraph(f"{NOT_CROSSED} {BOTH_APART if compared else ONE_APART}")]
    blocks: list[Block] = [title, Paragraph(_variance_note(findings))]
    by_metric = grouped(rows, "metric")
    for (metric,), members in by_metric.items():
        blocks += _variance_table(findings, metric, members, f"_{metric}" * (len(by_metric) > 1))
    return blocks


def _variance_note(findings: Findings) -> str:
    several = len(findings.experiment.by_metric) > 1
    scored = "of the test scores" if several else f"of {findings.experiment.scored}"
    return (
        f"Init seeds and data seeds are crossed here, so that the variance {scored} over seeds can be "
        "split: what the init seed brings (the weights drawn), what the data seed brings (order of examples "
        "and dropout), and the rest. With so few levels these are rough estimates."
    )


def _variance_table(findings: Findings, metric: str, rows: Sequence[Row], ending: str) -> list[Block]:
    header = [*NAMES, "test set", "component", "levels", "degrees of freedom"]
    header += [with_unit("sd", unit_of(metric).difference), "share of variance (%)"]

    def line(row: Row) -> list[Any]:
        spread = None if row["variance"] is None else max(row["variance"], 0.0) ** 0.5
        return [
            *_names(findings, row),
            *(row[key] for key in ("test_set", "component", "levels", "degrees")),
            size_cell(spread, 2, metric),
            percent_cell(row["share"]),
        ]

    caption = f"Two-way analysis of variance of test {metric_name(metric)} over seeds."
    table = with_places(rows, f"variance{ending}", header, line, caption=caption, named=4)
    return capped(table, "rows", "variance.csv")


# --- calibration --------------------------------------------------------------------------------------------


def calibration_section(findings: Findings) -> list[Block]:
    """Whether the predicted probabilities are those of being right, and which classes are confused."""
    bins = grouped(findings.tables["calibration"], *CELL)
    rows = [
        row
        for row in findings.experiment.summary
        if row["selection"] == "equal" and tuple(row[key] for key in CELL) in bins
    ]
    blocks: list[Block] = [Heading("Calibration and confusion")]
    if rows:
        blocks += _calibration_table(findings, rows, bins)
    return [*blocks, *figures(findings, "predictions")]


def _calibration_table(
    findings: Findings, rows: Sequence[Row], bins: Mapping[tuple[Any, ...], Sequence[Row]]
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
    header = [*NAMES, "mean probability (%)", "accuracy (%)", "excess (points)", "ECE (points)"]

    def line(row: Row) -> list[Any]:
        confidence, accuracy = gaps[id(row)]
        return [
            *_names(findings, row),
            percent_cell(confidence),
            percent_cell(accuracy),
            points_cell(confidence - accuracy),
            size_cell(row["ece"]),
        ]

    over = sum(confidence > accuracy for confidence, accuracy in gaps.values())
    note = (
        f"The probability that a model gives to its prediction is larger than its accuracy in {over} of "
        f"{count(len(rows), 'row')}: on average it is then too sure. ECE is the mean over seeds; the other "
        "columns pool the seeds."
    )
    caption = "Probability of the predicted class against accuracy, on the test examples with probabilities."
    table = with_places(rows, "calibration", header, line, caption=caption, named=3)
    return [Paragraph(note), *capped(table, "rows", "calibration.csv")]
