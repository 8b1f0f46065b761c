"""How many labels a target takes: for each learning curve of a finished experiment.

`label_worth.reaches` has the statistics, and `label_questions` decides what bears a verdict. The interval of
how far the needs of both inits differ is by Bonferroni's inequality: its ends are differences of the ends of
both intervals, each at a level at which both hold at once with the confidence asked for.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from seedbed.analysis import label_worth
from seedbed.analysis.contrasts import Sides
from seedbed.analysis.experiment import INITS
from seedbed.analysis.finished import Finished, read_finished, read_group
from seedbed.analysis.label_questions import Counted, Part, Points, Question, part_of_runs
from seedbed.analysis.label_worth import FEWER, MORE, Curve, Labels, Reached
from seedbed.analysis.label_worth_rows import extrapolated_columns, number_columns
from seedbed.analysis.learning_curves import LearningCurve, list_curves
from seedbed.analysis.outputs import CellOutputs
from seedbed.analysis.sides import named_seed
from seedbed.analysis.tables import summarise
from seedbed.core.errors import SeedbedError
from seedbed.core.known import known
from seedbed.core.methods import METHODS
from seedbed.core.recipes import train_size
from seedbed.core.rows import CELL, TypedRow, grouped
from seedbed.core.run_folder import subset_file
from seedbed.core.splits import PREDICTED
from seedbed.core.statistics_settings import complete_settings
from seedbed.core.subsets import read_order
from seedbed.core.tasks import FRACTION, METRICS
from seedbed.core.words import bounds_of, metric_name, unit_of

ONE_SIZE = "scores at fewer than two sizes"  # why a curve has no number of labels
PLACE = ("dataset", "model", "framework", "recipe")  # of the curves of both inits


@dataclass(frozen=True, kw_only=True)
class NeedRow(TypedRow):
    """How many labels the target takes by one learning curve. None means undefined or unknown.

    Attributes:
        dataset, model, framework, init, recipe, method: of the curve; the recipe by its name in the config.
        metric: of the target, on all test texts.
        target: the score to reach.
        smallest: of the sizes tried that have a score.
        largest: of these sizes.
        dataset_size: training texts that the dataset has; None where its folder is not there to say.
        n_seeds: seeds of each size.
        n_collapsed: collapsed runs at all sizes.
        labels, labels_bound: with so many training texts the curve reaches the target; a bound says that the
            number is not known, but lies beyond: `fewer than` the smallest size or `more than` the largest.
        low, low_bound, high, high_bound: its interval over seeds, test examples and the choice of recipes.
        no_verdict: why the number bears no verdict, or has no interval; or why there is no number.
        extrapolated, extrapolated_low, extrapolated_high: where a power law through all sizes reaches the
            target; only where labels is more than the largest size. It is a guess.
        not_extrapolated: why there is no such number.
        lacking: how many training texts the dataset lacks for it; None where labels is beyond what it has.
        lacking_extrapolated: how many it lacks by the power law.
        saved: of the pretrained init, how many fewer texts it takes than random weights; negative where it
            takes more. None where that is not known.
        saved_bound: `more than` or `fewer than`, where saved is a bound.
        saved_low: lower end of its interval; None where it has no such end.
        saved_high: upper end, likewise.
    """

    dataset: str
    model: str
    framework: str
    init: str
    recipe: str
    method: str
    metric: str
    target: float
    smallest: int | None = None
    largest: int | None = None
    dataset_size: int | None = None
    n_seeds: int | None = None
    n_collapsed: int | None = None
    labels: float | None = None
    labels_bound: str | None = None
    low: float | None = None
    low_bound: str | None = None
    high: float | None = None
    high_bound: str | None = None
    no_verdict: str | None = None
    extrapolated: float | None = None
    extrapolated_low: float | None = None
    extrapolated_high: float | None = None
    not_extrapolated: str | None = None
    lacking: float | None = None
    lacking_extrapolated: float | None = None
    saved: float | None = None
    saved_bound: str | None = None
    saved_low: float | None = None
    saved_high: float | None = None


NEED_COLUMNS = tuple(each.name for each in fields(NeedRow))


@dataclass(frozen=True)
class LabelPlan:
    """What a target takes in a finished experiment.

    Attributes:
        experiment: whose curves these are.
        metric: of the target.
        target: in the unit of the metric.
        rows: one for each learning curve.
    """

    experiment: Finished
    metric: str
    target: float
    rows: Sequence[NeedRow]


def plan_labels(
    folder: str | Path, target: str, metric: str | None, settings: Mapping[str, Any]
) -> LabelPlan:
    """How many labels a target takes by each learning curve of a finished experiment.

    Args:
        folder: of the experiment, such as results/demo_sizes.
        target: a number in the unit of the metric, as text: a fraction of an accuracy, nats of a loss.
        metric: one that the experiment reports; None for its main one.
        settings: see `complete_settings`.

    Raises:
        SeedbedError: a folder that holds no finished experiment, or one without sizes of training; a metric
            that it does not report; a target that is not a number, or that the metric cannot have; settings
            out of bounds; runs whose files do not fit together.
    """
    settings = complete_settings(settings)
    experiment = read_finished(Path(folder), settings, Path(folder).resolve().name)
    _check_sizes(experiment)
    metric = _metric(experiment, metric)
    level = target_of(target, metric)
    curves = _curves(experiment, metric)
    cells = [row.cell for curve in curves for rows in curve.candidates.values() for row in rows]
    counted = Counted(experiment.cells, read_sides(experiment, cells), settings)
    asked = [_Asked(curve, level, counted) for curve in curves]
    sizes = {curve.dataset: _dataset_size(experiment, curve.dataset) for curve in curves}
    rows = [_need(one, sizes[one.curve.dataset]) for one in asked]
    return LabelPlan(experiment, metric, level, _with_saved(asked, rows))


# --- what is asked ------------------------------------------------------------------------------------------


def _check_sizes(experiment: Finished) -> None:
    """Refuse an experiment that trained on one number of texts alone."""
    sizes = {run.train_size for run in experiment.runs if METHODS[run.method].trains} - {None}
    if len(sizes) < 2:
        raise SeedbedError(
            "this experiment has no learning curve",
            where=str(experiment.folder / "runs.csv"),
            found=f"training on {sizes.pop():,} texts alone" if sizes else "no sizes of training",
            hint="add sizes to its config, such as grid.train_sizes: [100, 200, 400, 800, all], and run it",
        )


def _metric(experiment: Finished, asked: str | None) -> str:
    """The metric asked for, or the main one of the experiment."""
    reported = experiment.task.reported
    if asked is None or asked in reported:
        return asked or reported[0]
    hint = f"name one of {', '.join(reported)}"
    if asked in experiment.task.choices:
        hint += f"; or give its datasets metric: {asked} in the config, and run it"
    raise SeedbedError(
        "a metric that this experiment does not report", where="METRIC", found=repr(asked), hint=hint
    )


def _curves(experiment: Finished, metric: str) -> list[LearningCurve]:
    """The learning curves by a metric on all test texts, of what is trained."""
    summary = summarise(experiment.runs, {}, experiment.reporting)
    found = [
        curve
        for curve in list_curves(summary, experiment.reporting)
        if curve.metric == metric and curve.test_set == "all" and METHODS[curve.method].trains
    ]
    if not found:
        raise SeedbedError(
            f"runs without a test {metric_name(metric)}",
            where=str(experiment.folder / "runs.csv"),
            hint="let Snakemake make the table anew",
        )
    return found


def target_of(text: str, metric: str) -> float:
    """A target in the unit of its metric.

    Raises:
        SeedbedError: the text is not a number, or not a value that the metric can have.
    """
    least, most = bounds_of(metric)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isfinite(value) and least <= value <= most:
        return value
    raise SeedbedError(
        f"not a value that {metric_name(metric)} can have",
        where="TARGET",
        found=repr(text),
        hint=f"{_range_text(metric)}{_instead(text, metric)}",
    )


def _range_text(metric: str) -> str:
    least, most = bounds_of(metric)
    unit = "a fraction" if METRICS[metric].unit == FRACTION else unit_of(metric).value
    told = f"from {least:g} to {most:g}" if math.isfinite(most) else f"of {least:g} or more"
    return f"give a number {told}{', ' if unit else ''}{unit}"


def _instead(text: str, metric: str) -> str:
    """What was meant, where the text tells it: 0.85 by 85, 85% and 0,85."""
    least, most = bounds_of(metric)
    number = text.strip().replace(",", ".")
    percents = number.endswith("%")
    try:
        value = float(number.removesuffix("%"))
    except ValueError:
        return ""
    if METRICS[metric].unit == FRACTION and (percents or value > most):
        value /= 100
    elif percents:
        return ""
    return f": TARGET={value:g}" if math.isfinite(value) and least <= value <= most else ""


def _dataset_size(experiment: Finished, dataset: str) -> int | None:
    """The number of training texts that a dataset has: that of runs on all of them, else that of an order of
    them in the dataset's folder, if it is there."""
    runs = [run for run in experiment.runs if run.dataset == dataset]
    whole = [run for run in runs if train_size(experiment.reporting["recipes"][run.recipe]) is None]
    if whole:
        return whole[0].train_size
    path = subset_file(experiment.folder.parent / "data" / dataset, runs[0].data_seed)
    return len(read_order(path)) if path.is_file() else None


# --- the answer for a curve ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Asked:
    """A learning curve that is to reach a target."""

    curve: LearningCurve
    target: float
    counted: Counted

    @property
    def place(self) -> tuple[str, ...]:
        """What the curves of both inits have in common."""
        return tuple(getattr(self.curve, name) for name in PLACE)

    @cached_property
    def part(self) -> Part:
        """The whole curve."""
        return part_of_runs(self.curve, self.curve.sizes, self.counted)

    def question(self, confidence: float, *, extrapolate: bool = False) -> Question:
        """The question for the number of labels, with an interval of this level."""
        curve = self.curve
        names = [curve.dataset, curve.model, curve.framework, curve.init, curve.recipe, curve.metric]

        def answer(points: Sequence[Points], _: bool) -> Reached:
            return label_worth.reaches(
                Curve(curve.sizes, points[0]),
                self.target,
                direction=METRICS[curve.metric].direction,
                confidence=confidence,
                seed=named_seed(self.counted.settings, ["reaches", *names]),
                extrapolate=extrapolate,
            )

        return Question([self.part], answer, learning=[self.part], test_set=curve.test_set)


def _need(asked: _Asked, dataset_size: int | None) -> NeedRow:
    curve = asked.curve
    row = NeedRow(
        dataset=curve.dataset,
        model=curve.model,
        framework=curve.framework,
        init=curve.init,
        recipe=curve.recipe,
        method=curve.method,
        metric=curve.metric,
        target=asked.target,
        smallest=min(curve.sizes, default=None),
        largest=max(curve.sizes, default=None),
        dataset_size=dataset_size,
    )
    if len(curve.sizes) < 2:
        return replace(row, no_verdict=ONE_SIZE)
    question = asked.question(asked.counted.settings["confidence"], extrapolate=True)
    found = replace(
        row,
        n_seeds=asked.part.number,
        n_collapsed=asked.part.collapsed,
        **number_columns(question.found),
        no_verdict=question.no_verdict,
        **extrapolated_columns(question.found.extrapolated),
    )
    return replace(found, **_lacking(found))


def _lacking(row: NeedRow) -> dict[str, Any]:
    """How many texts the dataset lacks for the number of labels, and for the extrapolated one."""
    if row.dataset_size is None:
        return {}
    beyond = row.extrapolated
    return {
        "lacking": None if row.labels_bound == MORE else max(0.0, known(row.labels) - row.dataset_size),
        "lacking_extrapolated": None if beyond is None else max(0.0, beyond - row.dataset_size),
    }


# --- both inits ---------------------------------------------------------------------------------------------


def _with_saved(asked: Sequence[_Asked], rows: Sequence[NeedRow]) -> list[NeedRow]:
    """The rows, with how many fewer texts the pretrained init takes."""
    told = [(one.place, row) for one, row in zip(asked, rows, strict=True)]
    at = {(place, row.init): index for index, (place, row) in enumerate(told)}
    found = list(rows)
    for place, row in told:
        pair = [at.get((place, init)) for init in INITS]
        if row.init == INITS[0] and None not in pair:
            of_pretrained, of_random = (index for index in pair if index is not None)
            if rows[of_pretrained].no_verdict is None and rows[of_random].no_verdict is None:
                found[of_pretrained] = replace(row, **_saved(asked[of_pretrained], asked[of_random]))
    return found


def _saved(pretrained: _Asked, random: _Asked) -> dict[str, Any]:
    """The columns of how many fewer texts the pretrained init takes."""
    both = (1 + pretrained.counted.settings["confidence"]) / 2  # Bonferroni: each misses half as often
    a, b = (one.question(both).found for one in (random, pretrained))
    number, bound = _difference(a.labels, b.labels)
    return {
        "saved": number,
        "saved_bound": bound,
        "saved_low": _finite(_least(known(a.low)) - _most(known(b.high))),
        "saved_high": _finite(_most(known(a.high)) - _least(known(b.low))),
    }


def _difference(a: Labels, b: Labels) -> tuple[float | None, str | None]:
    """The difference of two numbers of labels, or a bound of it; None where both lie beyond on one side."""
    bounds = {a.bound, {FEWER: MORE, MORE: FEWER}.get(b.bound or "")} - {None}
    if len(bounds) > 1:
        return None, None
    return a.number - b.number, bounds.pop() if bounds else None


def _least(end: Labels) -> float:
    """The smallest number of labels that an end may be."""
    return 0.0 if end.bound == FEWER else end.number


def _most(end: Labels) -> float:
    """The largest number of labels that an end may be."""
    return math.inf if end.bound == MORE else end.number


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# --- predictions --------------------------------------------------------------------------------------------


def read_sides(experiment: Finished, cells: Sequence[tuple[str, ...]]) -> Sides:
    """The predictions of some cells of an experiment, on all test texts.

    Raises:
        SeedbedError: see `read_group`; cells of one dataset that were evaluated on different examples.
    """
    outputs: dict[str, dict[tuple[str, ...], CellOutputs]] = {split: {} for split in PREDICTED}
    first: dict[tuple[str, str], CellOutputs] = {}
    for cell in dict.fromkeys(cells):
        for split, found in read_group(experiment, experiment.cells[cell]).splits.items():
            shared = first.setdefault((cell[0], split), found)
            if not shared.same_examples(found):
                raise SeedbedError(
                    "runs of one dataset were not evaluated on the same examples",
                    where=f"{experiment.folder}/runs/{'/'.join(cell)}",
                    hint="let Snakemake bring the experiment up to date",
                )
            outputs[split][cell] = found.sharing(shared)
    return Sides(grouped(experiment.runs, *CELL), outputs, {}, experiment.reporting["statistics"])
