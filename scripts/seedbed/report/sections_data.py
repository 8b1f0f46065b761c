"""Sections of summary and report: the audit of the data, and what its leaks do to the numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seedbed.analysis.experiment import Experiment
from seedbed.analysis.table_rows import RunRow, SummaryRow
from seedbed.core.known import known
from seedbed.core.rows import CELL, Row, grouped
from seedbed.core.wording import Words
from seedbed.core.words import (
    framework_name,
    metric_name,
    unit_of,
    with_unit,
)
from seedbed.data.audit import duplicate_check
from seedbed.data.audit import warnings as audit_warnings
from seedbed.report.documents.blocks import Block, Bullets, Details, Header, Heading, Paragraph, Table
from seedbed.report.experiment import Question, difference, questions
from seedbed.report.parts import (
    MAX_LISTED,
    PLACE,
    capped,
    figures,
    fold,
    header,
    headers,
    heading,
    heading_text,
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
from seedbed.report.sources import Sources

WORDS = Words("report/data")
MAX_CLASSES = 4  # whose shares are told
MAX_SHORT = 4  # warnings of the summary; the report has more


def data_section(experiment: Experiment, sources: Sources) -> list[Block]:
    """Sizes and classes of each dataset, what a reader should know of it, and folded away every check."""
    if not sources.audit:
        return []
    sizes = [size_text(dataset, rows) for (dataset,), rows in grouped(sources.audit, "dataset").items()]
    told = audit_warnings(sources.audit) or [WORDS.say("no_warning")]
    left_out = len(told) - MAX_LISTED
    more = [WORDS.say("warnings_left_out", left_out)] if left_out > 0 else []
    checks = [*figures(experiment, sources, "data"), *_audit_table(sources.audit)]
    return [
        heading("data"),
        Bullets([*sizes[:MAX_LISTED], *(literal(text) for text in told[:MAX_LISTED]), *more]),
        Details(heading_text("every_check"), checks),
    ]


def size_text(dataset: str, audit: Sequence[Row]) -> str:
    """Examples by split, and the shares of the classes in training."""
    sizes = {row["split"]: row["count"] for row in audit if row["check"] == "examples"}
    shares = {
        row["label"]: row["share"] for row in audit if (row["split"], row["kind"]) == ("train", "class")
    }
    return WORDS.say("size", dataset, sizes, dict(list(shares.items())[:MAX_CLASSES]), len(shares))


def short_warnings(sources: Sources) -> list[str]:
    """The first warnings about the data, and how many more there are."""
    told = [literal(text) for text in audit_warnings(sources.audit)]
    more = [WORDS.say("warnings_left_out", len(told) - MAX_SHORT)] if len(told) > MAX_SHORT else []
    return [*told[:MAX_SHORT], *more]


def _audit_table(audit: Sequence[Row]) -> list[Block]:
    """Every check that found something in any split, and in a sentence those that found nothing."""
    several = len({row["model"] for row in audit if row["model"]}) > 1
    keys = ("dataset", "split", *(["model"] if several else []), "check", "count", "share", "examples")
    found = {row["check"] for row in audit if row["count"] != 0}
    nothing = dict.fromkeys(literal(row["check"]) for row in audit if row["check"] not in found)
    body = [
        (
            row["dataset"],
            row["split"],
            *([row["model"]] if several else []),
            literal(row["check"]),
            number_cell(row["count"]),
            percent_cell(row["share"]),
            # any examples of a class are as good as others
            None if row["kind"] == "class" else literal(row["examples"]),
        )
        for row in audit
        if row["check"] in found
    ]
    table = Table(
        "data_audit",
        headers("data_audit", *keys),
        body,
        WORDS.say("audit_caption"),
        right=(3 + several, 4 + several),
    )
    none = [Paragraph(WORDS.say("not_found", list(nothing)))] if nothing else []
    return [*capped(fold(table, (0,)), "checks", "data_audit.csv"), *none]


# --- leaks --------------------------------------------------------------------------------------------------


def leak_section(experiment: Experiment, sources: Sources) -> list[Block]:
    """Test accuracy and differences with and without the leaked test examples; left out where none leaked."""
    without_leaks = known(experiment.without_leaks)
    places = grouped(headline_rows(without_leaks), *PLACE)
    leaked = {run.dataset: run for run in experiment.runs if run.leaked_test_examples}
    if not leaked:
        return []
    blocks: list[Block] = [
        heading("leaks"),
        Paragraph(WORDS.say("leak_note")),
        Bullets([WORDS.say("leak", leak(experiment, sources, run)) for run in leaked.values()]),
    ]
    several = len(grouped(experiment.summary, *PLACE)) > 1
    for number, place in enumerate(places, start=1):
        if number > MAX_LISTED:
            blocks.append(places_left_out(len(places)))
            break
        if several:
            blocks.append(Heading(place_text(*place), 3))
        for metric, one in without_leaks.by_metric.items():
            same = [row for row in headline_rows(one) if (row.dataset, row.model) == place]
            ending = "" if one is without_leaks else f"_{metric}"
            table = _leak_table(experiment.by_metric[metric], same, f"leaks_{number}{ending}")
            blocks += capped(table, "rows", "summary.csv")
        differences = _leak_differences(experiment, without_leaks, place)
        blocks += [Bullets(differences)] if differences else []
    return blocks


@dataclass(frozen=True)
class Leak:
    """The leaked test examples of a dataset.

    Attributes:
        dataset: its name.
        leaked, tested: test examples that leaked, and all of them.
        by_split: how many of the leaked ones stand in which split, where they stand in several; else empty.
        dropped: whether what resembles them was left out of training.
    """

    dataset: str
    leaked: int
    tested: int
    by_split: Mapping[str, int]
    dropped: bool


def leak(experiment: Experiment, sources: Sources, run: RunRow) -> Leak:
    """The leaks of a run's dataset."""
    name = run.dataset
    return Leak(
        dataset=name,
        leaked=known(run.leaked_test_examples),
        tested=known(run.test_examples),
        by_split=leaks_by_split(sources.audit, name),
        dropped=bool(experiment.reporting["datasets"][name]["drop_leaks"]),
    )


def leaks_by_split(audit: Sequence[Row], dataset: str) -> dict[str, int]:
    """How many of the leaked examples stand in which split; empty where all stand in one."""
    found = {
        split: sum(
            row["count"]
            for row in audit
            if (row["dataset"], row["split"]) == (dataset, "test")
            and row["check"] in [duplicate_check("test", split, kind) for kind in ("exact", "near")]
        )
        for split in ("train", "validation")
    }
    return found if all(found.values()) else {}


def _leak_table(experiment: Experiment, rows: Sequence[SummaryRow], name: str) -> Table:
    whole = {_group_key(row): row for row in experiment.summary}
    metric = experiment.metric
    names: Header = [*headers("leaks", "framework", "init", "recipe")]
    names += [
        mean_header(header("leaks", column, metric=metric_name(metric)), metric)
        for column in ("all", "without_leaks")
    ]
    names += [with_unit(header("leaks", "change"), unit_of(metric).difference)]
    body = [
        (
            framework_name(row.framework),
            row.init,
            chosen_recipe(experiment, row),
            mean_cell(whole[_group_key(row)].mean, whole[_group_key(row)].sd, metric),
            mean_cell(row.mean, row.sd, metric),
            points_cell(_change(whole[_group_key(row)].mean, row.mean), 2, metric),
        )
        for row in rows
    ]
    caption = WORDS.say("leak_caption", experiment.scored)
    return fold(Table(name, names, body, caption), range(3))


def _change(before: float | None, after: float | None) -> float | None:
    """None where a run has no finite loss, and so no mean."""
    return None if before is None or after is None else after - before


def _group_key(row: SummaryRow) -> tuple[str, ...]:
    return tuple(row[key] for key in (*CELL, "selection"))


def _leak_differences(experiment: Experiment, without_leaks: Experiment, place: tuple[str, str]) -> list[str]:
    """One line a contrast of the inits: on all test examples, and without leaks."""
    lines = []
    for question in questions(without_leaks):
        if (question.dataset, question.model) != place:
            continue
        whole = Question(experiment, question.dataset, question.model, question.family).headline()
        for framework, row in question.headline().items():
            recipe = contrast_recipe(experiment.reporting["recipes"], row)
            both = (_difference(one) for one in (whole[framework], row))
            lines.append(WORDS.say("leak_difference", framework, recipe, row["metric"], *both))
    return lines


def _difference(row: Row) -> tuple[str, tuple[float, float] | None]:
    """A difference in words, and its interval."""
    return difference(row), None if row["ci_low"] is None else (row["ci_low"], row["ci_high"])
