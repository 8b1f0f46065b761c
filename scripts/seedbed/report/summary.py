"""summary.md: the answer of an experiment and the main tables behind it, as text that reads well anywhere."""

from collections.abc import Sequence
from pathlib import Path

from seedbed.core import wording
from seedbed.core.files import write_json, write_text
from seedbed.core.words import code
from seedbed.report import (
    method_comparisons,
    provenance,
    sections_accuracy,
    sections_contrasts,
    sections_data,
    sections_methods,
    sections_models,
    sections_predictions,
)
from seedbed.report.documents.blocks import Block, Bullets, Heading, Paragraph, plain_text
from seedbed.report.documents.markdown import to_markdown
from seedbed.report.findings import Findings
from seedbed.report.parts import heading

WORDS = wording.Words("report/report")


def write_summary(findings: Findings, path: str | Path) -> None:
    """Write the summary of an experiment as Markdown."""
    write_text(path, to_markdown(summary_blocks(findings)))


def write_facts(findings: Findings, path: str | Path) -> None:
    """Write what `scripts/show.py` prints beside the tables, as JSON.

    `answer` has a text for each paragraph and a list of texts for each list; `recipes` has family and swept
    values of each recipe.
    """
    answer = [
        plain_text(block.text) if isinstance(block, Paragraph) else [plain_text(item) for item in block.items]
        for block in sections_accuracy.answer_blocks(findings.experiment)
    ]
    recipes = {
        name: {key: block[key] for key in ("family", "swept")}
        for name, block in findings.reporting["recipes"].items()
    }
    write_json(path, {"answer": answer, "recipes": recipes})


def summary_blocks(findings: Findings) -> list[Block]:
    """The summary: what the report says, without what only a page can show."""
    experiment = findings.experiment
    compared, calibrated = (name in experiment.task.sections for name in ("frameworks", "calibration"))
    return [
        Heading(title(findings), 1),
        *sections_accuracy.answer_blocks(experiment),
        *sections_accuracy.power_section(experiment),
        *sections_methods.method_section(findings),
        *sections_accuracy.accuracy_section(findings),
        *sections_accuracy.sweep_section(findings),
        *sections_contrasts.difference_section(findings),
        *sections_contrasts.equivalence_section(experiment),
        *sections_accuracy.warning_section(experiment),
        *sections_data.leak_section(findings),
        *sections_accuracy.training_section(findings),
        *(sections_models.framework_section(findings.documents, findings.reporting["recipes"]) * compared),
        *sections_contrasts.pair_section(findings),
        *sections_predictions.churn_section(findings),
        *sections_predictions.variance_section(findings),
        *(sections_predictions.calibration_section(findings) * calibrated),
        *sections_data.data_section(findings),
        *sections_models.parity_section(findings.parity),
        *sections_models.parameter_section(findings.parameters),
        *sections_methods.trainable_section(findings),
        *provenance.time_section(findings),
        *provenance.version_section(findings.documents, findings.commit),
        *_file_section(findings),
    ]


def title(findings: Findings) -> str:
    """The title of the summary."""
    return WORDS.say("title", question(findings), code(findings.reporting["experiment"]))


def question(findings: Findings) -> str:
    """What an experiment asks first: of its task, or where there is one init and several methods of these."""
    task = findings.experiment.task
    families = {row["family"] for row in findings.experiment.contrasts}
    if "method" in families and "init" not in families and not method_comparisons.leads(findings.experiment):
        return wording.data("report/titles")["question_of_methods"]
    return task.words.question


def _file_section(findings: Findings) -> Sequence[Block]:
    files = wording.data("report/files") | findings.experiment.task.files
    if not findings.trainable:
        del files["trainable_parameters.csv"]
    items = [f"[{name}]({name}): {text}" for name, text in files.items() if text]
    return [heading("files"), Bullets(items)]
