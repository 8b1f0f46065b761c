"""summary.md: the answer of an experiment and the main tables behind it, as text that reads well anywhere."""

from collections.abc import Sequence
from pathlib import Path

from seedbed.core.files import write_text
from seedbed.report import (
    provenance,
    sections_accuracy,
    sections_contrasts,
    sections_data,
    sections_methods,
    sections_models,
    sections_predictions,
)
from seedbed.report.documents.blocks import Block, Bullets, Heading, code
from seedbed.report.documents.markdown import to_markdown
from seedbed.report.findings import Findings

FILES = {
    "report.html": "the same and more, as one page that opens offline",
    "runs.csv": "one row a run",
    "summary.csv": "one row for each group of seeds",
    "contrasts.csv": "differences with intervals and exact tests",
    "figures/": "the figures, each as SVG and PNG",
    "tables/": "summary and contrasts in per cent and points, as CSV, Markdown and LaTeX",
    "curves.csv": "the metrics of all runs while training",
    "pairs.csv": "McNemar's test of every two runs of the same seed",
    "churn.csv": "how many predictions depend on the seed",
    "never_right.csv": "test examples that no run gets right",
    "calibration.csv": "predicted probabilities against accuracies",
    "confusion.csv": "predictions against labels",
    "variance.csv": "what init seeds and data seeds contribute, where they are crossed",
    "expected_validation.csv": "what a search over the sweep would find",
    "data_audit.csv": "what was looked for in the data, with counts, shares and examples",
    "runs/": "predictions, metrics and description of every run; `tensorboard --logdir` reads it",
}


def write_summary(findings: Findings, path: str | Path) -> None:
    """Write the summary of an experiment as Markdown."""
    write_text(path, to_markdown(summary_blocks(findings)))


def summary_blocks(findings: Findings) -> list[Block]:
    """The summary: what the report says, without what only a page can show."""
    experiment = findings.experiment
    compared = experiment.task.name == "classification"  # two frameworks, and classes
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
        *(sections_predictions.calibration_section(findings) * compared),
        *sections_data.data_section(findings),
        *sections_models.parity_section(findings.parity),
        *sections_models.parameter_section(findings.parameters),
        *sections_methods.trainable_section(findings),
        *provenance.time_section(findings),
        *provenance.version_section(findings.documents, findings.commit),
        *_file_section(findings),
    ]


TITLES = {"classification": "Does pretraining help?", "generation": "What does fine-tuning bring?"}


def title(findings: Findings) -> str:
    """The title of the summary."""
    return f"{question(findings)} Experiment {code(findings.reporting['experiment'])}"


def question(findings: Findings) -> str:
    """What an experiment asks first: of its task, or where there is one init and several methods of these."""
    families = {row["family"] for row in findings.experiment.contrasts}
    if "method" in families and "init" not in families and findings.experiment.task.name == "classification":
        return "What does an adapter cost?"
    return TITLES[findings.experiment.task.name]


def _file_section(findings: Findings) -> Sequence[Block]:
    files = dict(FILES)
    if findings.experiment.task.name == "generation":
        for name in ("churn", "never_right", "calibration", "confusion"):  # of classes
            del files[f"{name}.csv"]
        files["report.html"] = "the same, and answers side by side, as one page that opens offline"
        files["runs/"] = "answers, metrics and description of every run; `tensorboard --logdir` reads it"
    if findings.trainable:
        files["trainable_parameters.csv"] = "what the adapters train, by formula and as counted"
    items = [f"[{name}]({name}): {text}" for name, text in files.items()]
    return [Heading("Files beside this one"), Bullets(items)]
