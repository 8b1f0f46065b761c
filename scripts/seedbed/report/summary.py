"""summary.md: the answer of an experiment and the main tables behind it, as text that reads well anywhere."""

from collections.abc import Sequence
from pathlib import Path

from seedbed.analysis.experiment import Experiment
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
from seedbed.report.parts import heading
from seedbed.report.sources import Sources

WORDS = wording.Words("report/report")


def write_summary(experiment: Experiment, sources: Sources, path: str | Path) -> None:
    """Write the summary of an experiment as Markdown."""
    write_text(path, to_markdown(summary_blocks(experiment, sources)))


def write_facts(experiment: Experiment, path: str | Path) -> None:
    """Write what `scripts/show.py` prints beside the tables, as JSON.

    `answer` has a text for each paragraph and a list of texts for each list; `recipes` has family and swept
    values of each recipe.
    """
    answer = [
        plain_text(block.text) if isinstance(block, Paragraph) else [plain_text(item) for item in block.items]
        for block in sections_accuracy.answer_blocks(experiment)
    ]
    recipes = {
        name: {key: block[key] for key in ("family", "swept")}
        for name, block in experiment.reporting["recipes"].items()
    }
    write_json(path, {"answer": answer, "recipes": recipes})


def summary_blocks(experiment: Experiment, sources: Sources) -> list[Block]:
    """The summary: what the report says, without what only a page can show."""
    compared, calibrated = (name in experiment.task.sections for name in ("frameworks", "calibration"))
    return [
        Heading(title(experiment), 1),
        *sections_accuracy.answer_blocks(experiment),
        *sections_accuracy.power_section(experiment),
        *sections_methods.method_section(experiment),
        *sections_accuracy.accuracy_section(experiment, sources),
        *sections_accuracy.sweep_section(experiment, sources),
        *sections_contrasts.difference_section(experiment, sources),
        *sections_contrasts.equivalence_section(experiment),
        *sections_accuracy.warning_section(experiment),
        *sections_data.leak_section(experiment, sources),
        *sections_accuracy.training_section(experiment, sources),
        *(sections_models.framework_section(sources.documents, experiment.reporting["recipes"]) * compared),
        *sections_contrasts.pair_section(experiment),
        *sections_predictions.churn_section(experiment),
        *sections_predictions.variance_section(experiment),
        *(sections_predictions.calibration_section(experiment, sources) * calibrated),
        *sections_data.data_section(experiment, sources),
        *sections_models.parity_section(sources.parity),
        *sections_models.parameter_section(sources.parameters),
        *sections_methods.trainable_section(experiment, sources),
        *provenance.time_section(experiment, sources),
        *provenance.version_section(sources.documents, sources.commit),
        *_file_section(experiment, sources),
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
