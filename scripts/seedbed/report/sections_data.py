"""Sections of summary and report: the audit of the data, and what its leaks do to the numbers."""

from collections.abc import Sequence

from seedbed.core.rows import CELL, Row, grouped
from seedbed.core.words import (
    capital,
    count,
    difference_range,
    framework_name,
    metric_name,
    unit_of,
    with_unit,
)
from seedbed.data.audit import warnings as audit_warnings
from seedbed.report.documents.blocks import Block, Bullets, Details, Header, Heading, Paragraph, Table
from seedbed.report.experiment import Experiment, Question, difference, questions
from seedbed.report.findings import Findings
from seedbed.report.parts import (
    MAX_LISTED,
    PLACE,
    capped,
    figures,
    fold,
    literal,
    mean_cell,
    mean_header,
    number_cell,
    percent_cell,
    place_text,
    points_cell,
)
from seedbed.report.sections_accuracy import chosen_recipe, headline_rows, places_left_out
from seedbed.report.sections_contrasts import contrast_recipe


def data_section(findings: Findings, *, full: bool = False) -> list[Block]:
    """What the audit of the data found that a reader should know; `full` adds every check."""
    if not findings.audit:
        return []
    told = audit_warnings(findings.audit) or ["Nothing that calls for a warning."]
    blocks: list[Block] = [Heading("The data"), Bullets([literal(text) for text in told[:MAX_LISTED]])]
    if len(told) > MAX_LISTED:
        blocks.append(Paragraph(f"{len(told) - MAX_LISTED:,} more warnings stand in the log of rule audit."))
    blocks += figures(findings, "data")
    if full:
        return [*blocks, Details("Every check, with its count", _audit_table(findings.audit))]
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
    table = fold(Table("data_audit", header, body, "What was looked for in the data.", right=(4, 5)), (0,))
    return capped(table, "checks", "data_audit.csv")


# --- leaks --------------------------------------------------------------------------------------------------


def leak_section(findings: Findings) -> list[Block]:
    """Test accuracy and differences with and without the leaked test examples; left out where none leaked."""
    experiment, without_leaks = findings.experiment, findings.without_leaks
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
        Bullets([_leak_sentence(findings, run) for run in leaked.values()]),
    ]
    several = len(grouped(experiment.summary, *PLACE)) > 1
    for number, place in enumerate(places, start=1):
        if number > MAX_LISTED:
            blocks.append(places_left_out(len(places)))
            break
        if several:
            blocks.append(Heading(place_text(*place), 3))
        for metric, one in without_leaks.by_metric.items():
            same = [row for row in headline_rows(one) if (row["dataset"], row["model"]) == place]
            ending = "" if one is without_leaks else f"_{metric}"
            table = _leak_table(experiment.by_metric[metric], same, f"leaks_{number}{ending}")
            blocks += capped(table, "rows", "summary.csv")
        differences = _leak_differences(experiment, without_leaks, place)
        blocks += [Bullets(differences)] if differences else []
    return blocks


def _leak_sentence(findings: Findings, run: Row) -> str:
    leaked, tested = run["leaked_test_examples"], run["test_examples"]
    dropped = findings.reporting["datasets"][run["dataset"]]["drop_leaks"]
    trained = "was left out of training (drop_leaks)" if dropped else "was trained on"
    told = (
        f"{run['dataset']}: {count(leaked, 'test example')} of {tested:,} leaked"
        f"{leaks_by_split(findings.audit, run['dataset'], leaked)}; what resembles them in the training "
        f"split {trained}."
    )
    return told if leaked < tested else f"{told} So nothing is left to measure without leaks."


def leaks_by_split(audit: Sequence[Row], dataset: str, leaked: int) -> str:
    """How many of the leaked examples stand in which split, where they stand in several, for brackets."""
    found = {
        split: sum(
            row["count"]
            for row in audit
            if (row["dataset"], row["split"]) == (dataset, "test")
            and row["check"] in (f"also in {split}: exact", f"also in {split}: near")
        )
        for split in ("train", "validation")
    }
    if not all(found.values()):
        return ""
    both = sum(found.values()) - leaked
    told = f" ({found['train']:,} from training, {found['validation']:,} from validation"
    return f"{told}, of which {both:,} from both)" if both > 0 else f"{told})"


def _leak_table(experiment: Experiment, rows: Sequence[Row], name: str) -> Table:
    whole = {_group_key(row): row for row in experiment.summary}
    metric = experiment.metric
    name_of = metric_name(metric)
    header: Header = ["framework", "init", "recipe", mean_header(f"{name_of} on all test examples", metric)]
    header += [mean_header(f"{name_of} without leaks", metric)]
    header += [with_unit("change", unit_of(metric).difference)]
    body = [
        (
            framework_name(row["framework"]),
            row["init"],
            chosen_recipe(experiment, row),
            mean_cell(whole[_group_key(row)]["mean"], whole[_group_key(row)]["sd"], metric),
            mean_cell(row["mean"], row["sd"], metric),
            points_cell(_change(whole[_group_key(row)]["mean"], row["mean"]), 2, metric),
        )
        for row in rows
    ]
    caption = (
        f"{capital(experiment.scored)} with and without leaked test examples. Mean ± sample sd over seeds."
    )
    return fold(Table(name, header, body, caption), range(3))


def _change(before: float | None, after: float | None) -> float | None:
    """None where a run has no finite loss, and so no mean."""
    return None if before is None or after is None else after - before


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
                f"pretrained minus random with {framework_name(framework)}, "
                f"{contrast_recipe(experiment.reporting['recipes'], row)}: "
                f"{_difference(whole[framework])} on all, {_difference(row)} without leaks"
            )
    return lines


def _difference(row: Row) -> str:
    told = difference(row)
    if row["ci_low"] is None:
        return told
    return f"{told} ({difference_range(row['metric'], row['ci_low'], row['ci_high'])})"
