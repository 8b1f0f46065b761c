"""summary.md: one page with the answer of an experiment, its scores and warnings; summary.json: the same."""

from collections.abc import Sequence
from pathlib import Path

from seedbed.analysis.experiment import Experiment
from seedbed.core import wording
from seedbed.core.files import write_json, write_text
from seedbed.core.words import code
from seedbed.report import method_comparisons, sections_accuracy, sections_data
from seedbed.report.documents.blocks import Block, Bullets, Heading, cell_text, plain_text
from seedbed.report.documents.markdown import to_markdown
from seedbed.report.first_table import first_table
from seedbed.report.opening import Line, opening
from seedbed.report.parts import heading
from seedbed.report.sources import Sources

WORDS = wording.Words("report/report")


def write_summary(experiment: Experiment, sources: Sources, path: str | Path) -> None:
    """Write the summary of an experiment as Markdown."""
    write_text(path, to_markdown(summary_blocks(experiment, sources)))


def write_facts(experiment: Experiment, path: str | Path) -> None:
    """Write what `scripts/show.py` prints, as JSON, all texts without markup.

    `lead`, `groups` (with `place` and `lines`) and `others` are those of `opening.Opening`, each line with
    its `label` and `text`; `table` has the `caption`, the `header` and the `rows` of `first_table`.
    """
    found, table = opening(experiment), first_table(experiment)
    facts = {
        "lead": plain_text(found.lead),
        "groups": [{"place": plain_text(one.place), "lines": _plain(one.lines)} for one in found.groups],
        "others": _plain(found.others),
        "table": {
            "caption": plain_text(table.caption),
            "header": [plain_text(cell_text(cell)) for cell in table.header],
            "rows": [[plain_text(cell_text(cell)) for cell in row] for row in table.rows],
        },
    }
    write_json(path, facts)


def _plain(lines: Sequence[Line]) -> list[dict[str, str]]:
    return [{"label": line.label, "text": plain_text(line.text)} for line in lines]


def summary_blocks(experiment: Experiment, sources: Sources) -> list[Block]:
    """The summary: one page of what the report opens with, and the files beside it."""
    return [*findings(experiment, sources), *_file_section(experiment, sources)]


def findings(experiment: Experiment, sources: Sources) -> list[Block]:
    """Title, opening, table of scores and warnings."""
    warned: list[str] = [
        *(one.text for one in sections_accuracy.run_warnings(experiment)),
        *method_comparisons.small_test_sets(experiment),
        *sections_data.short_warnings(sources),
    ]
    section: list[Block] = [heading("short_warnings"), Bullets(warned)] if warned else []
    return [
        Heading(title(experiment), 1),
        *sections_accuracy.answer_blocks(experiment),
        first_table(experiment),
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
        return wording.data("report/titles")["question_of_methods"]
    return task.words.question


def _file_section(experiment: Experiment, sources: Sources) -> Sequence[Block]:
    files = wording.data("report/files") | experiment.task.files
    if not sources.trainable:
        del files["trainable_parameters.csv"]
    items = [f"[{name}]({name}): {text}" for name, text in files.items() if text]
    return [heading("files"), Bullets(items)]
