"""Sections of summary and report: the audit of the data, and what its leaks do to the numbers."""

from collections.abc import Sequence

from seedbed.audit import warnings as audit_warnings
from seedbed.document import Block, Bullets, Details, Heading, Paragraph, Table
from seedbed.experiment import Experiment, Question, questions
from seedbed.findings import Findings
from seedbed.report_parts import (
    MAX_LISTED,
    PLACE,
    capped,
    figure,
    literal,
    number_cell,
    percent_cell,
    place_text,
    points_cell,
)
from seedbed.rows import CELL, Row, grouped
from seedbed.sections_accuracy import headline_rows, places_left_out, recipe_text
from seedbed.sections_contrasts import contrast_recipe
from seedbed.words import count, points, points_range


def data_section(findings: Findings, *, full: bool = False) -> list[Block]:
    """What the audit of the data found that a reader should know; `full` adds its figure and every check."""
    told = audit_warnings(findings.audit) or ["Nothing that calls for a warning."]
    blocks: list[Block] = [Heading("The data"), Bullets(told[:MAX_LISTED])]
    if len(told) > MAX_LISTED:
        blocks.append(Paragraph(f"{len(told) - MAX_LISTED:,} more warnings stand in the log of rule audit."))
    if full:
        table = Details("Every check, with its count", _audit_table(findings.audit))
        return [*blocks, *figure(findings, "data_audit"), table]
    return [*blocks, Paragraph("Every check with its counts stands in data_audit.csv.")]


def _audit_table(audit: Sequence[Row]) -> list[Block]:
    header = ["dataset", "split", "model", "check", "count", "share (%)", "examples"]
    body = [
        (
            row["dataset"],
            row["split"],
            row["model"],
            literal(row["check"]),
            number_cell(row["count"]),
            percent_cell(row["share"]),
            literal(row["examples"]),
        )
        for row in audit
    ]
    table = Table("data_audit", header, body, "What was looked for in the data", right=(4, 5))
    return capped(table, "checks", "data_audit.csv")


# --- leaks --------------------------------------------------------------------------------------------------


def leak_section(experiment: Experiment, without_leaks: Experiment) -> list[Block]:
    """Test accuracy and differences with and without the leaked test examples; left out where none leaked."""
    places = grouped(headline_rows(without_leaks), *PLACE)
    leaked = {run["dataset"]: run for run in experiment.runs if run["leaked_test_examples"]}
    if not leaked:
        return []
    blocks: list[Block] = [
        Heading("With and without leaked test examples"),
        Paragraph(
            "A test example leaked if its text, or a near-duplicate of it, stands in training or validation. "
            "The whole test split is the one that others report; the smaller one asks the question that was "
            "meant."
        ),
        Bullets([_leak_sentence(experiment, run) for run in leaked.values()]),
    ]
    several = len(grouped(experiment.summary, *PLACE)) > 1
    for number, (place, rows) in enumerate(places.items(), start=1):
        if number > MAX_LISTED:
            blocks.append(places_left_out(len(places)))
            break
        if several:
            blocks.append(Heading(place_text(*place), 3))
        blocks += capped(_leak_table(experiment, rows, f"leaks_{number}"), "rows", "summary.csv")
        differences = _leak_differences(experiment, without_leaks, place)
        blocks += [Bullets(differences)] if differences else []
    return blocks


def _leak_sentence(experiment: Experiment, run: Row) -> str:
    leaked, tested = run["leaked_test_examples"], run["test_examples"]
    dropped = experiment.reporting["datasets"][run["dataset"]]["drop_leaks"]
    trained = "was left out of training (drop_leaks)" if dropped else "was trained on"
    told = (
        f"{run['dataset']}: {count(leaked, 'test example')} of {tested:,} leaked; what resembles them in the "
        f"training split {trained}."
    )
    return told if leaked < tested else f"{told} So nothing is left to measure without leaks."


def _leak_table(experiment: Experiment, rows: Sequence[Row], name: str) -> Table:
    whole = {_group_key(row): row for row in experiment.summary}
    header = ["framework", "init", "recipe", "all test examples (%)", "without leaks (%)", "change (points)"]
    body = [
        (
            row["framework"],
            row["init"],
            recipe_text(row, rows),
            percent_cell(whole[_group_key(row)]["mean"], whole[_group_key(row)]["sd"]),
            percent_cell(row["mean"], row["sd"]),
            points_cell(row["mean"] - whole[_group_key(row)]["mean"]),
        )
        for row in rows
    ]
    return Table(name, header, body, "Test accuracy in per cent with and without leaked test examples")


def _group_key(row: Row) -> tuple[str, ...]:
    return tuple(row[key] for key in (*CELL, "selection"))


def _leak_differences(experiment: Experiment, without_leaks: Experiment, place: tuple[str, str]) -> list[str]:
    """One line a contrast of the inits: on all test examples, and without leaks."""
    lines = []
    for question in questions(without_leaks):
        if (question.dataset, question.model) != place:
            continue
        whole = Question(experiment, question.dataset, question.model, question.family).headline()
        for framework, row in question.headline().items():
            lines.append(
                f"pretrained minus random with {framework}, {contrast_recipe(row)}: "
                f"{_difference(whole[framework])} on all, {_difference(row)} without leaks"
            )
    return lines


def _difference(row: Row) -> str:
    if row["ci_low"] is None:
        return f"{points(row['delta'])} points"
    return f"{points(row['delta'])} points ({points_range(row['ci_low'], row['ci_high'])})"
