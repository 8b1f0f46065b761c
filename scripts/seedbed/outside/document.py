"""Summary and report of an analysis of results from outside, of the same parts as those of an experiment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import seedbed
from seedbed.analysis.contrasts import SYSTEM
from seedbed.analysis.experiment import Experiment
from seedbed.analysis.table_rows import SummaryRow
from seedbed.analysis.verdicts import is_withheld
from seedbed.core import wording
from seedbed.core.checksums import sha256
from seedbed.core.rows import grouped
from seedbed.core.wording import Words
from seedbed.core.words import metric_name, unit_of
from seedbed.figures.captions import Caption
from seedbed.outside.analysis import Analysis, Question
from seedbed.outside.opening import Comparison, comparisons, opening
from seedbed.outside.results import Results
from seedbed.report import limits as report_limits
from seedbed.report.documents.blocks import (
    Block,
    Bullets,
    Figure,
    Header,
    Heading,
    Paragraph,
    Table,
    section,
)
from seedbed.report.documents.html import to_page
from seedbed.report.documents.markdown import to_markdown
from seedbed.report.experiment import interval, narrower_than_over_seeds, seeds_of
from seedbed.report.first_table import first_tables
from seedbed.report.parts import (
    capped,
    header,
    heading_text,
    interval_header,
    literal,
    mean_cell,
    mean_header,
    number_cell,
    share_interval_cell,
    size_cell,
    value_cell,
)
from seedbed.report.power import outcome_text
from seedbed.report.sections_accuracy import opening_blocks
from seedbed.report.sections_contrasts import (
    contrast_table,
    direction,
    error_note,
    error_table,
    pair_section,
)
from seedbed.report.sections_predictions import churn_section
from seedbed.report.summary import facts_of

WORDS = Words("outside/document")
TITLES = wording.data("outside/titles")
MOST_GROUNDS = 12  # comparisons whose footing is told; more are in contrasts.csv


def summary(analysis: Analysis, files: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """summary.md, and what the terminal shows of it (see `summary.facts_of`).

    Args:
        analysis: of the systems.
        files: names of the files beside it.
    """
    found, tables, warned = opening(analysis), first_tables(analysis.experiment), warnings(analysis)
    items = [f"[{name}]({name}): {text}" for name, text in TITLES["files"].items() if name in files]
    blocks = [
        Heading(title(analysis), 1),
        *opening_blocks(found),
        *tables,
        *_warning_section(warned),
        Heading(heading_text("files")),
        Bullets(items),
    ]
    return to_markdown(blocks), facts_of(found, tables[0], warned)


def warnings(analysis: Analysis) -> list[str]:
    """What a reader has to know of how results were read, each once."""
    return list(dict.fromkeys(note for one in analysis.results for note in one.notes))


def _warning_section(warned: Sequence[str]) -> list[Block]:
    return [Heading(heading_text("short_warnings")), Bullets(warned)] if warned else []


def report(
    analysis: Analysis, question: Question, figures: Mapping[str, Path], captions: Mapping[str, Caption]
) -> str:
    """report.html: everything on one page.

    Args:
        analysis, question: what was found, and what was asked.
        figures: the SVG of each figure, by name.
        captions: by the names of figures.
    """
    drawn = {name: _figure(name, analysis, caption) for name, caption in captions.items()}
    experiment = analysis.experiment
    folded = {
        "differences": _differences(analysis, drawn["contrasts"]),
        "scores": _scores(experiment),
        "how_sure": _how_sure(analysis),
        "read": _read(analysis, question),
    }
    return to_page(
        title(analysis),
        [
            *_warning_section(warnings(analysis)),
            *(one for name, blocks in folded.items() for one in section(TITLES["headings"][name], blocks)),
        ],
        figures,
        subtitle=_subtitle(analysis),
        lead=opening_blocks(opening(analysis)),
        first=[drawn["scores"], *first_tables(experiment)],
    )


def title(analysis: Analysis) -> str:
    """What is asked of which systems."""
    recipes = analysis.experiment.reporting["recipes"]
    return WORDS.say("title", analysis.experiment.task.words.question, list(recipes))


def _subtitle(analysis: Analysis) -> str:
    experiment = analysis.experiment
    seeds = sorted({row.n_seeds for row in experiment.summary})
    sizes = sorted({len(one.examples) for one in analysis.results if one.examples})
    return WORDS.say("subtitle", len(analysis.results), len(experiment.runs), seeds, sizes)


def _figure(name: str, analysis: Analysis, caption: Caption) -> Figure:
    metric = metric_name(analysis.experiment.metric)
    return Figure(name, wording.fill(TITLES["figures"][name], metric=metric), caption.text, caption.details)


# --- differences and scores ---------------------------------------------------------------------------------


def _differences(analysis: Analysis, figure: Figure) -> list[Block]:
    experiment = analysis.experiment
    rows = experiment.contrasts
    settings = experiment.reporting["statistics"]
    note = WORDS.say(
        "differences_note",
        settings["replicates"] if analysis.by_example else 0,
        any(one.clusters is not None for one in analysis.results),
        any(map(narrower_than_over_seeds, rows)),
        any(row.paired and row.n_a > 1 for row in rows),
        any(map(is_withheld, rows)),
    )
    blocks: list[Block] = [
        Paragraph(note),
        *capped(contrast_table(experiment, SYSTEM, rows), "differences", "contrasts.csv"),
    ]
    if analysis.by_example:
        blocks += capped(error_table(experiment, SYSTEM, rows), "differences", "contrasts.csv")
        blocks.append(error_note(experiment))
    return [*blocks, figure]


def _scores(experiment: Experiment) -> list[Block]:
    """A table for each dataset."""
    places = grouped(experiment.summary, "dataset")
    several = len(places) > 1
    blocks: list[Block] = []
    for number, ((dataset,), rows) in enumerate(places.items(), start=1):
        table = _score_table(experiment, rows, dataset if several else "", number)
        blocks += capped(table, "rows", "summary.csv")
    return blocks


def _score_table(experiment: Experiment, rows: Sequence[SummaryRow], dataset: str, number: int) -> Table:
    metric, unit = experiment.metric, unit_of(experiment.metric)
    headers = {name: wording.fill(text, level=experiment.level) for name, text in TITLES["scores"].items()}
    names: Header = [header("any", experiment.task.told_by), header("any", "seeds")]
    names.append(mean_header(experiment.scored, metric))
    over = [name for name in ("both", "ci") if any(row[f"{name}_low"] is not None for row in rows)]
    names += [
        interval_header(headers["over_both" if name == "both" else "over_seeds"], unit.value) for name in over
    ]
    sampled = any(row.binomial_se is not None for row in rows)
    names += [f"{headers['binomial_se']} ({unit.difference})"] if sampled else []
    names += [headers["median"], interval_header(headers["range"], unit.value)]
    body = [
        (
            literal(row.recipe),
            number_cell(row.n_seeds),
            mean_cell(row.mean, row.sd, metric),
            *(share_interval_cell(row[f"{name}_low"], row[f"{name}_high"], metric) for name in over),
            *([size_cell(row.binomial_se)] if sampled else []),
            value_cell(metric, row.median),
            share_interval_cell(row.min, row.max, metric),
        )
        for row in rows
    ]
    caption = WORDS.say("score_caption", experiment.scored, direction(metric), dataset)
    return Table(f"scores_{number}", names, body, caption, right=range(1, len(names)))


# --- how sure -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """What limits the numbers of an analysis.

    Attributes:
        sizes: numbers of examples, each once, in words.
        clusters: numbers of clusters, by dataset.
        few_clusters: fewer make intervals too narrow.
        coverage: of simulations with as few seeds; None without.
        looks: see `report.limits.Limits`.
        confidence: level of intervals.
    """

    sizes: Sequence[str]
    clusters: Mapping[str, int]
    few_clusters: int
    coverage: report_limits.Coverage | None
    looks: report_limits.Bounds | None
    confidence: float


def _how_sure(analysis: Analysis) -> list[Block]:
    asked = comparisons(analysis)[:MOST_GROUNDS]
    blocks: list[Block] = [Bullets([_grounds(analysis, one) for one in asked])]
    blocks += pair_section(analysis.experiment)
    blocks += churn_section(analysis.experiment)
    blocks += [Heading(heading_text("limits")), Bullets(WORDS.items("limits", _limits(analysis)))]
    return blocks


def _grounds(analysis: Analysis, one: Comparison) -> str:
    """What a comparison rests on, and whether it is decided or what would decide it."""
    bounds = interval(one.row)
    told = outcome_text(analysis.experiment, one.row) if analysis.has_interest else WORDS.say("no_interest")
    over = bounds.over if bounds else ""
    return WORDS.say("grounds", *one.systems, one.place, over, seeds_of(one.row), told)


def _limits(analysis: Analysis) -> Limits:
    experiment = analysis.experiment
    seeds = min((min(row.n_a, row.n_b) for row in experiment.contrasts if row.ci_low is not None), default=0)
    sizes = dict.fromkeys(f"{len(one.examples):,}" for one in analysis.results if one.examples)
    clusters = {
        one.dataset: int(one.clusters.max()) + 1 for one in analysis.results if one.clusters is not None
    }
    return Limits(
        sizes=list(sizes),
        clusters=clusters,
        few_clusters=report_limits.FEW_CLUSTERS,
        coverage=report_limits.simulated(seeds, experiment.confidence, "coverage"),
        looks=report_limits.told_apart(experiment.confidence),
        confidence=experiment.confidence,
    )


# --- what was read ------------------------------------------------------------------------------------------


def record(analysis: Analysis, question: Question) -> dict[str, Any]:
    """analysis.json: what was read and asked, so that the analysis can be made again."""
    return {
        "version": seedbed.__version__,
        "datasets": [
            {
                "dataset": one.dataset,
                "systems": {name: list(one.seeds[name]) for name in one.systems},
                "examples": len(one.examples),
                "metric": one.metric,
                "bounds": [f"{bound:g}" for bound in one.bounds],  # JSON has no infinity
                "format": one.format,
                "columns": dict(one.taken),
                "notes": list(one.notes),
                "files": {str(path): sha256(path) for path in one.files},
            }
            for one in analysis.results
        ],
        "asked": {"a": question.a, "b": question.b, "paired": question.paired, "margin": question.margin},
        "statistics": dict(analysis.experiment.reporting["statistics"]),
    }


def _read(analysis: Analysis, question: Question) -> list[Block]:
    told = [_told_of(one) for one in analysis.results]
    asked = WORDS.say(
        "asked", analysis.experiment.reporting["statistics"], question.paired, seedbed.__version__
    )
    return [Bullets(told), Paragraph(asked)]


def _told_of(one: Results) -> str:
    files = [WORDS.say("file", path.name, sha256(path)) for path in one.files]
    bounds = [f"{bound:g}" for bound in one.bounds]
    return WORDS.say("read", one.dataset, one.metric, *bounds, one.format, files, dict(one.taken))
