"""Which system is better: results from outside as an experiment whose recipes are the systems.

The tables, tests and intervals are those of an experiment of Seedbed. What its rows lack (model, framework,
init, validation, training) is empty, and what rests on it is left out.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from seedbed.analysis import diagnostics
from seedbed.analysis.contrasts import SYSTEM, Pair, Sides, contrast_pairs
from seedbed.analysis.experiment import Experiment
from seedbed.analysis.majority import not_above_majority
from seedbed.analysis.predictions import ARRAYS, CellPredictions, numbered
from seedbed.analysis.table_rows import RunRow, SummaryRow
from seedbed.analysis.tables import over_seeds_and_examples, summarise
from seedbed.core.errors import SeedbedError
from seedbed.core.rows import CELL, Row, grouped
from seedbed.core.spelling import nearest
from seedbed.core.statistics_settings import complete_settings
from seedbed.core.tasks import Task
from seedbed.core.tasks.outside import OF_CLASSES, OF_SCORES
from seedbed.outside.results import Results
from seedbed.outside.scores import CellScores, Measure, measure_of

INTEREST = 0.02  # of the range of scores: the difference of interest, unless another one is asked for
MOST_CLASSES = 2**15 - 1  # that codes of predictions can tell apart

# CellPredictions, or CellScores, which are resampled like these; by the columns of `CELL`
Cells = dict[tuple[str, ...], Any]


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of results.

    Attributes:
        a, b: systems to compare, a minus b. Of one alone, it is compared with every other system; of none,
            every two are.
        paired: whether runs of one seed are pairs, where both systems have the same seeds.
        margin: the smallest difference of interest, in the unit of the files; None: 0.02 of the range of
            possible scores, or none where that is endless.
        bounds_given: whether the user said which scores are possible.
        statistics: keys of the config's `statistics` that are not the default.
    """

    a: str | None = None
    b: str | None = None
    paired: bool = True
    margin: float | None = None
    bounds_given: bool = False
    statistics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """The answer in tables.

    Attributes:
        experiment: its recipes are the systems; its contrasts are of the family `SYSTEM`.
        results: what was read, of the systems that are compared.
        cells: what the systems returned, of datasets whose examples are known; others are compared over seeds
            alone.
    """

    experiment: Experiment
    results: Sequence[Results]
    cells: Cells

    @property
    def by_example(self) -> frozenset[str]:
        """The datasets whose examples are known."""
        return frozenset(one.dataset for one in self.results if one.examples)

    @property
    def has_interest(self) -> bool:
        """Whether there is a difference of interest, for which seeds are planned."""
        return self.experiment.reporting["statistics"]["difference_of_interest"] > 0


def analyse(results: Sequence[Results], question: Question, name: str = "results") -> Analysis:
    """Compare systems on each dataset.

    p-values are adjusted by Holm's method over all comparisons of all datasets.

    Args:
        results: one for each dataset.
        question: what is compared, and how.
        name: of the analysis, for titles.

    Raises:
        SeedbedError: a system that no dataset has, or that is compared with itself; settings out of bounds;
            see `scores.measure_of`.
    """
    pairs = _pairs_of_systems(results, question)
    measure = measure_of(results, bounds_given=question.bounds_given)
    settings = complete_settings(question.statistics)
    settings["difference_of_interest"] = _interest(results[0], question, measure)
    chosen = [_only(one, set(itertools.chain(*pairs[one.dataset]))) for one in results if pairs[one.dataset]]
    task = OF_CLASSES if all(map(_has_classes, chosen)) else OF_SCORES
    reporting = _reporting(name, chosen, task, measure, settings)
    task = task.measured_by(measure.metric)
    cells = {key: cell for one in chosen for key, cell in _cells(one, task, measure).items()}
    runs = [run for one in chosen for run in _runs(one, cells, measure, settings["confidence"])]
    sides = Sides(grouped(runs, *CELL), {"test": cells}, {}, settings)
    summary = [
        over_seeds_and_examples(row, sides, settings) if row.cell in cells else row
        for row in summarise(runs, {}, reporting)
    ]
    rows = {row.cell: row for row in summary}
    asked = [
        Pair(SYSTEM, (rows[_key(one, a)],), (rows[_key(one, b)],), question.paired)
        for one in chosen
        for a, b in pairs[one.dataset]
    ]
    contrasts = contrast_pairs(asked, runs, summary, settings, sides)
    tables = _diagnosed(runs, cells, contrasts, summary, reporting)
    experiment = Experiment(runs, summary, contrasts, reporting, tables=tables)
    return Analysis(experiment=experiment, results=chosen, cells=cells)


# --- what is compared ---------------------------------------------------------------------------------------


def _pairs_of_systems(results: Sequence[Results], question: Question) -> dict[str, list[tuple[str, str]]]:
    """By dataset the systems that are compared, in the order of the files; none where it lacks one."""
    known = list(dict.fromkeys(system for one in results for system in one.systems))
    for option, name in (("--a", question.a), ("--b", question.b)):
        if name is not None and name not in known:
            raise SeedbedError(
                f"the results have no system {name!r}",
                where=f"{option} {name}",
                found=f"the systems {', '.join(known)}",
                hint=f"{nearest(name, known)}name one of them",
            )
    if question.a is not None and question.a == question.b:
        raise SeedbedError(
            "a system is not compared with itself",
            where=f"--a {question.a} --b {question.b}",
            hint="name two systems",
        )
    pairs = {one.dataset: _of_dataset(one.systems, question) for one in results}
    if not any(pairs.values()):
        raise SeedbedError(
            "no dataset has both systems",
            where=f"--a {question.a} --b {question.b}",
            found="; ".join(f"{one.dataset}: {', '.join(one.systems)}" for one in results[:3]),
            hint="name two systems of one dataset",
        )
    return pairs


def _of_dataset(systems: Sequence[str], question: Question) -> list[tuple[str, str]]:
    a, b = question.a, question.b
    if a is None and b is None:
        return list(itertools.combinations(systems, 2))
    firsts, seconds = ([name] if name is not None else systems for name in (a, b))
    return [
        pair for pair in itertools.product(firsts, seconds) if len(set(pair)) == 2 and {*pair} <= {*systems}
    ]


def _only(one: Results, systems: set[str]) -> Results:
    """The results of some systems."""
    kept = tuple(name for name in one.systems if name in systems)

    def of(values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: values[name] for name in kept}

    predictions = None if one.predictions is None else of(one.predictions)
    return replace(
        one,
        systems=kept,
        seeds=of(one.seeds),
        scores=of(one.scores),
        values=of(one.values),
        predictions=predictions,
    )


def _interest(one: Results, question: Question, measure: Measure) -> float:
    """The smallest difference of interest in the unit of the tables; 0 for none."""
    if question.margin is not None:
        if not (math.isfinite(question.margin) and question.margin > 0):
            raise SeedbedError(
                "a difference of interest is above 0",
                where="--margin",
                found=f"{question.margin:g}",
                hint="give the smallest difference worth finding, in the unit of the scores: 0.02, or 2 of "
                "percentages",
            )
        return measure.factor * question.margin
    least, most = one.bounds
    return measure.factor * INTEREST * (most - least) if math.isfinite(most - least) else 0.0


# --- as an experiment ---------------------------------------------------------------------------------------


def _has_classes(one: Results) -> bool:
    return one.predictions is not None and one.labels is not None and len(one.classes) <= MOST_CLASSES


def _key(one: Results, system: str) -> tuple[str, str, str, str, str]:
    """Dataset, model, framework, init and recipe: the recipe is the system."""
    return one.dataset, "", "", "", system


def _reporting(
    name: str, results: Sequence[Results], task: Task, measure: Measure, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """What `Plan.reporting()` says of an experiment, as far as there is anything to say."""
    systems = list(dict.fromkeys(system for one in results for system in one.systems))
    datasets = [one.dataset for one in results]
    return {
        "experiment": name,
        "grid": {"datasets": datasets, "models": [""], "inits": [], "recipes": systems},
        "datasets": {dataset: {"task": task.name, "metric": measure.metric} for dataset in datasets},
        "recipes": {system: {"family": system, "method": "", "swept": {}} for system in systems},
        "statistics": settings,
    }


def _cells(one: Results, task: Task, measure: Measure) -> Cells:
    """The outputs of each system; none where examples are not known."""
    if not one.examples:
        return {}
    clusters = None if one.clusters is None else numbered(one.clusters)
    if task.name == OF_CLASSES.name:
        return {_key(one, system): _predicted(one, system, task, clusters) for system in one.systems}
    return {
        _key(one, system): CellScores(one.examples, measure.factor * one.scores[system], task, clusters)
        for system in one.systems
    }


def _predicted(one: Results, system: str, task: Task, clusters: np.ndarray | None) -> CellPredictions:
    """The predictions of a system; nothing is known of their probabilities."""
    assert one.predictions is not None
    assert one.labels is not None
    predicted = one.predictions[system].astype(np.int16)
    unknown = np.full(predicted.shape, np.nan, dtype=np.float32)
    return CellPredictions(
        one.classes, one.examples, one.labels.astype(np.int16), predicted, unknown, unknown, task, clusters
    )


def _runs(one: Results, cells: Cells, measure: Measure, confidence: float) -> list[RunRow]:
    """A row for each system and seed, with what its predictions tell."""
    return [
        RunRow(
            dataset=one.dataset,
            model="",
            framework="",
            init="",
            recipe=system,
            recipe_family=system,
            method="",
            init_seed=seed,
            data_seed=seed,
            test_examples=len(one.examples) or None,
            measured={f"test_{measure.metric}": measure.factor * float(value)},
            **_told(cells.get(_key(one, system)), place, confidence),
        )
        for system in one.systems
        for place, (seed, value) in enumerate(zip(one.seeds[system], one.values[system], strict=True))
    ]


def _told(cell: CellPredictions | CellScores | None, place: int, confidence: float) -> dict[str, Any]:
    """What the predictions of one run tell: whether it collapsed, and whether it beats the largest class.

    Not known of scores.
    """
    if not isinstance(cell, CellPredictions):
        return {}
    run = replace(cell, **{name: getattr(cell, name)[place : place + 1] for name in ARRAYS})
    same = bool(run.all_same[0]) if cell.tells_collapse else None
    return {
        "test_majority_share": run.majority_share,
        "collapsed": bool(same),
        "test_all_same": same,
        "not_above_majority": not_above_majority(run, confidence),
    }


def _diagnosed(
    runs: Sequence[RunRow],
    cells: Cells,
    contrasts: Sequence[Any],
    summary: Sequence[SummaryRow],
    reporting: Mapping[str, Any],
) -> dict[str, Sequence[Row]]:
    """Pairs of runs, what the seed changes, examples that no run gets right, and confusions of classes."""
    classes = {key: cell for key, cell in cells.items() if isinstance(cell, CellPredictions)}
    found = diagnostics.tabulate(runs, classes, contrasts, summary, reporting)
    return {name: found[name] for name in ("pairs", "churn", "never_right", "confusion")}
