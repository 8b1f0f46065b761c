"""summary.md: one page with the answer of an experiment, its scores and warnings; summary.json: the same."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seedbed.analysis.experiment import Experiment
from seedbed.core import wording
from seedbed.core.files import write_json, write_text
from seedbed.core.methods import PARTIAL
from seedbed.core.words import code
from seedbed.report import method_comparisons, sections_accuracy, sections_data
from seedbed.report.documents.blocks import Block, Bullets, Heading, Table, cell_text, plain_text
from seedbed.report.documents.markdown import to_markdown
from seedbed.report.first_table import first_tables
from seedbed.report.opening import Line, Opening, opening
from seedbed.report.parts import heading
from seedbed.report.sources import Sources

WORDS = wording.Words("report/report")


def write_summary(experiment: Experiment, sources: Sources, summary: str | Path, facts: str | Path) -> None:
    """Write the summary of an experiment as Markdown, and as JSON what `scripts/show.py` prints of it."""
    found, tables, warned = opening(experiment), first_tables(experiment), warnings(experiment, sources)
    blocks = [*findings(experiment, found, tables, warned), *_file_section(experiment, sources)]
    write_text(summary, to_markdown(blocks))
    write_json(facts, facts_of(found, tables[0], warned))


def facts_of(found: Opening, table: Table, warned: Sequence[str] = ()) -> dict[str, Any]:
    """An opening, the first of the warnings, and a table, all texts without markup.

    `lead`, `groups` (with `place` and `lines`) and `others` are those of `opening.Opening`, each line with
    its `label` and `text`; the warning is the last of the others. `table` has its `caption`, `header` and
    `rows`.
    """
    first = [Line("warning", WORDS.say("first_warning", warned[0], len(warned) - 1))] if warned else []
    return {
        "lead": plain_text(found.lead),
        "groups": [{"place": plain_text(one.place), "lines": _plain(one.lines)} for one in found.groups],
        "others": _plain([*found.others, *first]),
        "table": {
            "caption": plain_text(table.caption),
            "header": [plain_text(cell_text(cell)) for cell in table.header],
            "rows": [[plain_text(cell_text(cell)) for cell in row] for row in table.rows],
        },
    }


def _plain(lines: Sequence[Line]) -> list[dict[str, str]]:
    return [{"label": line.label, "text": plain_text(line.text)} for line in lines]


def warnings(experiment: Experiment, sources: Sources) -> list[str]:
    """On runs, on small test sets, and the first on the data."""
    return [
        *(one.text for one in sections_accuracy.run_warnings(experiment)),
        *method_comparisons.small_test_sets(experiment),
        *sections_data.short_warnings(sources),
    ]


def findings(
    experiment: Experiment, found: Opening, tables: Sequence[Table], warned: Sequence[str]
) -> list[Block]:
    """Title, opening, first tables and warnings."""
    section: list[Block] = [heading("short_warnings"), Bullets(warned)] if warned else []
    return [
        Heading(title(experiment), 1),
        *sections_accuracy.opening_blocks(found),
        *tables,
        *section,
    ]


def title(experiment: Experiment) -> str:
    """The title of the summary."""
    return WORDS.say("title", question(experiment), code(experiment.reporting["experiment"]))


def question(experiment: Experiment) -> str:
    """What an experiment asks first: of its task, or where there is one init and several methods of these."""
    task = experiment.task
    families = {row["family"] for row in experiment.contrasts}
    if "method" in families and "init" not in families and not method_comparisons.leads(experiment):
        partly = any(run.method in PARTIAL for run in experiment.runs)
        return wording.data("report/titles")["question_of_parts" if partly else "question_of_methods"]
    return task.words.question


def _file_section(experiment: Experiment, sources: Sources) -> Sequence[Block]:
    files = wording.data("report/files") | experiment.task.files
    if not sources.trainable:
        del files["trainable_parameters.csv"]
    elif any(row["method"] in PARTIAL for row in sources.trainable):
        files["trainable_parameters.csv"] = wording.data("report/titles")["file_of_parts"]
    if not any(row.train_size for row in experiment.summary):
        del files["learning_curves.csv"], files["label_worth.csv"]
    items = [f"[{name}]({name}): {text}" for name, text in files.items() if text]
    return [heading("files"), Bullets(items)]
