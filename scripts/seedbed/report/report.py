"""report.html: the whole experiment as one page, for a reader who opens nothing else.

Unfolded: the answer, the figure and the table of scores, warnings, the data, examples that no run gets right.
The rest is folded by question. Every sentence with a number is made from the tables.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seedbed.analysis.experiment import Experiment
from seedbed.core.files import read_json, write_text
from seedbed.core.known import known
from seedbed.core.recipes import without_size
from seedbed.core.wording import Words
from seedbed.data.audit import without_texts
from seedbed.report import (
    glossary,
    provenance,
    sections_accuracy,
    sections_contrasts,
    sections_data,
    sections_examples,
    sections_methods,
    sections_models,
    sections_predictions,
)
from seedbed.report.documents.blocks import Block, Bullets, section
from seedbed.report.documents.html import to_page
from seedbed.report.first_table import first_tables
from seedbed.report.limits import limits
from seedbed.report.opening import opening
from seedbed.report.parts import figures, heading, heading_text
from seedbed.report.sources import Sources
from seedbed.report.summary import question
from seedbed.report.texts import Texts, read_texts

WORDS = Words("report/report")


def write_report(
    experiment: Experiment,
    sources: Sources,
    models: Sequence[str | Path],
    architectures: Sequence[str | Path],
    texts: Sequence[str | Path],
    config: Mapping[str, Any],
    figures: Sequence[str | Path],
    path: str | Path,
    wait: Callable[[], None] = lambda: None,
) -> None:
    """Write the report of an experiment as one HTML page.

    Args:
        experiment: its tables.
        sources: the other files that the report tells of, with the captions of the figures.
        models: model.json of every model, .../MODEL/model.json.
        architectures: .../MODEL/architecture_FRAMEWORK.txt of every model and framework.
        texts: prepared test split of every dataset, .../DATASET/test.jsonl.
        config: the resolved configuration.
        figures: the SVG of every figure, .../NAME.svg.
        path: the file to write.
        wait: returns when the figures are there, which are needed last.
    """
    shows_texts = config["report"]["texts"]
    shown = sections_predictions.hard_examples(experiment) | sections_examples.shown_examples(experiment)
    if not shows_texts:
        sources = replace(sources, audit=without_texts(sources.audit))
    blocks = report_blocks(
        experiment,
        sources,
        {Path(file).parent.name: read_json(file) for file in models},
        {(Path(file).parent.name, _framework(file)): _read(file) for file in architectures},
        read_texts(shown, texts) if shows_texts else None,
        config,
        sections_methods.read_answers(experiment, sources, texts) if shows_texts else None,
    )
    wait()
    page = to_page(
        question(experiment),
        blocks,
        {Path(file).stem: Path(file) for file in figures},
        subtitle=subtitle(experiment),
        lead=sections_accuracy.opening_blocks(opening(experiment)),
        first=first_blocks(experiment, sources),
    )
    write_text(path, page)


def first_blocks(experiment: Experiment, sources: Sources) -> list[Block]:
    """The figure and the tables below the opening."""
    return [*figures(experiment, sources, "first"), *first_tables(experiment)]


def _framework(file: str | Path) -> str:
    return Path(file).stem.removeprefix("architecture_")


def _read(file: str | Path) -> str:
    return Path(file).read_text(encoding="utf-8")


def report_blocks(
    experiment: Experiment,
    sources: Sources,
    models: Mapping[str, Mapping[str, Any]],
    architectures: Mapping[tuple[str, str], str],
    texts: Texts | None,
    config: Mapping[str, Any],
    answers: sections_methods.Answers | None,
) -> list[Block]:
    """Everything below the first figure and table: what everybody reads, then sections that a reader opens.

    Args:
        experiment: its tables.
        sources: the other files that the report tells of.
        models: content of model.json, by model.
        architectures: as printed, by model and framework.
        texts: of the examples that are shown; None: texts are left out.
        config: the resolved configuration.
        answers: those that are shown, as `read_answers` gives them; None: texts are left out.
    """
    compared, calibrated = (name in experiment.task.sections for name in ("frameworks", "calibration"))
    recipes, left_out = experiment.reporting["recipes"], experiment.reporting["grid"].get("left_out")
    seen = [
        *sections_accuracy.warning_section(experiment),
        *sections_data.data_section(experiment, sources),
        *sections_methods.answer_section(experiment, answers),
        *sections_predictions.never_right_section(experiment, texts),
    ]
    folded: dict[str, list[Block]] = {
        "every_score": [
            *sections_methods.method_section(experiment),
            *sections_accuracy.accuracy_section(experiment, sources),
            *sections_accuracy.sweep_section(experiment, sources),
            *sections_contrasts.difference_section(experiment, sources, full=True),
            *sections_data.leak_section(experiment, sources),
        ],
        sections_examples.section_name(experiment): sections_examples.example_section(experiment, texts),
        "how_sure": [
            *sections_accuracy.power_section(experiment),
            *sections_contrasts.pair_section(experiment),
            *sections_predictions.churn_section(experiment),
            *sections_predictions.variance_section(experiment),
            *(sections_predictions.calibration_section(experiment, sources) * calibrated),
            heading("limits"),
            Bullets(limits(experiment, sources)),
        ],
        "trained": sections_accuracy.training_section(experiment, sources),
        "frameworks": [
            *sections_contrasts.equivalence_section(experiment),
            *(
                sections_models.framework_section(sources.documents, recipes, left_out, experiment.task)
                * compared
            ),
            *sections_models.parity_section(sources.parity),
        ],
        "methods_section": [
            *sections_models.parameter_section(sources.parameters, models),
            *sections_methods.trainable_section(experiment, sources),
            *sections_models.architecture_section(architectures),
            *sections_models.flag_section(experiment.reporting),
            *provenance.provenance_section(experiment, sources, config),
        ],
        "glossary": [glossary.table(glossary.parts(experiment, sources), experiment.task)],
    }
    sections = [one for name, blocks in folded.items() for one in section(heading_text(name), blocks)]
    return [*seen, *sections]


def subtitle(experiment: Experiment) -> str:
    """The experiment's name, and how large it is, in one line."""
    seconds = [run.total_seconds for run in experiment.runs]
    grid, recipes = experiment.reporting["grid"], experiment.reporting["recipes"]
    counts = {noun: len(grid[noun]) for noun in ("datasets", "models")}
    counts["recipes"] = len({without_size(name, recipes[name]) for name in grid["recipes"]})
    counts["sizes"] = len(grid.get("train_sizes", ()))
    return WORDS.say(
        "subtitle",
        experiment.reporting["experiment"],
        counts,
        len(experiment.runs),
        sorted({row.n_seeds for row in experiment.summary}),
        None if None in seconds else sum(known(one) for one in seconds) / 60,
    )
