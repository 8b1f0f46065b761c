"""report.html: the whole experiment as one page, for a reader who opens nothing else.

It says what summary.md says, and beside it what needs a page: figures with captions, examples with texts,
architectures, the configuration. Every sentence with a number is made from the tables.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core.files import read_json, write_text
from seedbed.core.wording import Words
from seedbed.core.words import count
from seedbed.report import (
    glossary,
    provenance,
    sections_accuracy,
    sections_contrasts,
    sections_data,
    sections_methods,
    sections_models,
    sections_predictions,
)
from seedbed.report.documents.blocks import Block, Bullets, Paragraph
from seedbed.report.documents.html import to_page
from seedbed.report.findings import Findings
from seedbed.report.limits import limits
from seedbed.report.parts import heading
from seedbed.report.summary import question

WORDS = Words("report/report")
AXES = ("datasets", "models", "recipes", "frameworks", "inits", "seeds")


def write_report(
    findings: Findings,
    models: Sequence[str | Path],
    architectures: Sequence[str | Path],
    texts: Sequence[str | Path],
    config: Mapping[str, Any],
    figures: Sequence[str | Path],
    path: str | Path,
) -> None:
    """Write the report of an experiment as one HTML page.

    Args:
        findings: all that was found, with the captions of the figures.
        models: model.json of every model, .../MODEL/model.json.
        architectures: .../MODEL/architecture_FRAMEWORK.txt of every model and framework.
        texts: prepared test split of every dataset, .../DATASET/test.jsonl.
        config: the resolved configuration.
        figures: the SVG of every figure, .../NAME.svg.
        path: the file to write.
    """
    blocks = report_blocks(
        findings,
        {Path(file).parent.name: read_json(file) for file in models},
        {(Path(file).parent.name, _framework(file)): _read(file) for file in architectures},
        sections_predictions.read_hard_texts(findings.experiment.tables["never_right"], texts),
        config,
        sections_methods.read_answers(findings, texts)
        if "answers" in findings.experiment.task.sections
        else {},
    )
    page = to_page(
        WORDS.say("title", question(findings), findings.reporting["experiment"]),
        blocks,
        {Path(file).stem: Path(file) for file in figures},
        subtitle=subtitle(findings),
        lead=sections_accuracy.answer_blocks(findings.experiment),
    )
    write_text(path, page)


def _framework(file: str | Path) -> str:
    return Path(file).stem.removeprefix("architecture_")


def _read(file: str | Path) -> str:
    return Path(file).read_text(encoding="utf-8")


def report_blocks(
    findings: Findings,
    models: Mapping[str, Mapping[str, Any]],
    architectures: Mapping[tuple[str, str], str],
    texts: Mapping[tuple[str, str], str],
    config: Mapping[str, Any],
    answers: sections_methods.Answers | None = None,
) -> list[Block]:
    """Everything below the answer.

    Args:
        findings: all that was found.
        models: content of model.json, by model.
        architectures: as printed, by model and framework.
        texts: texts of the examples that no run gets right, by dataset and example.
        config: the resolved configuration.
        answers: those that are shown, as `read_answers` gives them.
    """
    experiment = findings.experiment
    compared, calibrated = (name in experiment.task.sections for name in ("frameworks", "calibration"))
    blocks = [
        *sections_accuracy.power_section(experiment),
        *sections_methods.method_section(findings),
        *sections_methods.answer_section(findings, answers or {}),
        *sections_accuracy.accuracy_section(findings),
        *sections_accuracy.sweep_section(findings),
        *sections_contrasts.difference_section(findings, full=True),
        *sections_contrasts.equivalence_section(experiment),
        *sections_accuracy.warning_section(experiment),
        *sections_data.leak_section(findings),
        *sections_accuracy.training_section(findings),
        *(sections_models.framework_section(findings.documents, findings.reporting["recipes"]) * compared),
        *sections_contrasts.pair_section(findings),
        *sections_predictions.churn_section(findings, texts),
        *sections_predictions.variance_section(findings),
        *(sections_predictions.calibration_section(findings) * calibrated),
        *sections_data.data_section(findings, full=True),
        *sections_models.parity_section(findings.parity),
        *sections_models.parameter_section(findings.parameters, models),
        *sections_methods.trainable_section(findings),
        *sections_models.architecture_section(architectures),
        *sections_models.flag_section(findings.reporting),
        *provenance.provenance_section(findings, config),
        heading("limits"),
        Bullets(limits(findings)),
    ]
    terms = glossary.table(glossary.parts(findings))
    return [Paragraph(WORDS.say("glossary_link")), *blocks, heading("glossary"), terms]


def subtitle(findings: Findings) -> str:
    """What was combined, in one line."""
    grid = findings.reporting["grid"]
    parts = [
        count(len(grid[key]), noun)
        for key, noun in (
            ("datasets", "dataset"),
            ("models", "model"),
            ("recipes", "recipe"),
            ("frameworks", "framework"),
            ("inits", "init"),
            ("seeds", "seed"),
        )
        if key != "frameworks" or len(findings.experiment.task.frameworks) > 1
    ]
    whole = math.prod(len(grid[key]) for key in AXES) == len(findings.experiment.runs)
    return f"{' × '.join(parts)} {'=' if whole else '→'} {count(len(findings.experiment.runs), 'run')}"
