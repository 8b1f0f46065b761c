"""summary.md: the answer of an experiment and the main tables behind it, as text that reads well anywhere."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.documents.blocks import Block, Bullets, Heading, code
from seedbed.documents.markdown import to_markdown
from seedbed.files import write_text
from seedbed.report import (
    provenance,
    sections_accuracy,
    sections_contrasts,
    sections_data,
    sections_models,
    sections_predictions,
)
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
    return [
        Heading(title(findings.reporting), 1),
        *sections_accuracy.answer_blocks(experiment),
        *sections_accuracy.power_section(experiment),
        *sections_accuracy.accuracy_section(findings),
        *sections_accuracy.sweep_section(findings),
        *sections_contrasts.difference_section(findings),
        *sections_contrasts.equivalence_section(experiment),
        *sections_accuracy.warning_section(experiment),
        *sections_data.leak_section(findings),
        *sections_accuracy.training_section(findings),
        *sections_models.framework_section(findings.documents, findings.reporting["recipes"]),
        *sections_contrasts.pair_section(findings),
        *sections_predictions.churn_section(findings),
        *sections_predictions.variance_section(findings),
        *sections_predictions.calibration_section(findings),
        *sections_data.data_section(findings),
        *sections_models.parity_section(findings.parity),
        *sections_models.parameter_section(findings.parameters),
        *provenance.time_section(findings),
        *provenance.version_section(findings.documents, findings.commit),
        *_file_section(),
    ]


def title(reporting: Mapping[str, Any]) -> str:
    """The title of summary and report."""
    return f"Does pretraining help? Experiment {code(reporting['experiment'])}"


def _file_section() -> Sequence[Block]:
    items = [f"[{name}]({name}): {text}" for name, text in FILES.items()]
    return [Heading("Files beside this one"), Bullets(items)]
