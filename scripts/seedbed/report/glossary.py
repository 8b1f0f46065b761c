"""The glossary: which terms of data/glossary.yaml a report uses, and what they mean."""

from collections.abc import Set
from dataclasses import dataclass

from seedbed.analysis.experiment import Experiment
from seedbed.analysis.records import trained_together
from seedbed.analysis.verdicts import is_withheld
from seedbed.core import wording
from seedbed.core.methods import ADAPTERS
from seedbed.core.tasks import ANSWERS, CLASSES, Task
from seedbed.core.words import metric_name
from seedbed.report import stability
from seedbed.report.documents.blocks import Table
from seedbed.report.parts import headers
from seedbed.report.power import planned
from seedbed.report.sections_contrasts import can_be_exact
from seedbed.report.sources import Sources

WORDS = wording.Words("report/report")


@dataclass(frozen=True)
class Term:
    """A term of the glossary.

    Attributes:
        term: as it is listed.
        meaning: in a sentence or two.
        source: where it comes from, with a link.
        outputs: of the tasks whose reports mean it so, such as classes; empty: of any.
        used_with: names of `parts` that use the term; empty: every report does.
    """

    term: str
    meaning: str
    source: str = ""
    outputs: str = ""
    used_with: tuple[str, ...] = ()


def terms() -> list[Term]:
    """All terms, in the order of the glossary."""
    return [
        Term(**{**row, "used_with": tuple(row.get("used_with", ()))})
        for row in wording.data("report/glossary")
    ]


def parts(experiment: Experiment, sources: Sources) -> set[str]:
    """What of a report uses terms that other reports do not."""
    contrasts = [row for one in experiment.by_metric.values() for row in one.contrasts]
    runs = experiment.runs
    methods = {run.method for run in runs}
    metric, of_classes = experiment.task.selection, experiment.task.outputs == CLASSES
    withheld = any(map(is_withheld, contrasts))
    found = {
        experiment.task.outputs: True,
        "adapters": not methods.isdisjoint(ADAPTERS),
        "packed": "qlora" in methods,
        "accuracy": metric == "accuracy",
        "metrics_of_counts": of_classes and not experiment.task.has_one_metric,
        "led_by_counts": of_classes and metric != "accuracy",
        "sweep": any(block["swept"] for block in experiment.reporting["recipes"].values()),
        "instability": bool(stability.sweeps(experiment))
        or any(run.unstable or run.diverged for run in runs),
        "quartiles": any(row.iqm is not None for row in experiment.summary),
        "differences": bool(contrasts),
        "intervals": any(row["standard_error"] is not None for row in experiment.contrasts),
        "pairs": any(row["seed_correlation"] is not None for row in contrasts),
        "exact_test": any(can_be_exact(experiment, row) for row in contrasts),
        "no_verdict": withheld,
        # by the note on verdicts
        "named_untrained": withheld and experiment.task.outputs in (CLASSES, ANSWERS),
        "mcnemar": bool(experiment.tables["pairs"]),
        "power": any(True for _ in planned(experiment)),
        "frameworks": any(row["family"] == "framework" for row in contrasts),
        "fused_seeds": any(trained_together(document) > 1 for document in sources.documents),
        "crossed_seeds": bool(experiment.tables["variance"]),
        "linear_probe": any(row.linear_probe is not None for row in experiment.summary),
        "bag_of_characters": any(row.bag_of_words_features == "characters" for row in experiment.summary),
    }
    return {part for part, used in found.items() if used}


def table(used: Set[str], task: Task) -> Table:
    """The glossary of a report that has these `parts`: term, and meaning with its source.

    Args:
        used: see `parts`.
        task: what is reported on.
    """
    values = {"rise": stability.rise(task), "metric": metric_name(task.selection)}
    rows = [
        (f"**{term.term}**", f"{wording.fill(term.meaning, **values)} {term.source}".rstrip())
        for term in terms()
        if (not term.outputs or term.outputs in used)
        and (not term.used_with or not used.isdisjoint(term.used_with))
    ]
    return Table("glossary", headers("glossary", "term", "meaning"), rows, WORDS.say("glossary_caption"))
