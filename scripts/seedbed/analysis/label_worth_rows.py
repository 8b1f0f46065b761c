"""What the learning curves of an experiment are worth in labels: label_worth.csv.

`label_worth` has the statistics, and `label_questions` decides what bears a verdict; here it is decided which
curves are compared.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from seedbed.analysis import label_worth
from seedbed.analysis.contrasts import METHOD_PAIRS, Sides
from seedbed.analysis.label_questions import Counted, Part, Points, Question
from seedbed.analysis.label_worth import FURTHEST, Curve, Extrapolated, Labels, Reached
from seedbed.analysis.learning_curves import LearningCurve
from seedbed.analysis.sides import named_seed
from seedbed.analysis.table_rows import RunRow
from seedbed.core.known import known
from seedbed.core.rows import CELL, TypedRow, grouped
from seedbed.core.tasks import METRICS

WORTH, PASSES = "worth", "passes"
TOO_FAR = f"the power law goes beyond {FURTHEST} times the largest size"


@dataclass(frozen=True, kw_only=True)
class WorthRow(TypedRow):
    """A row of label_worth.csv: a number of labels of curve b, or of both curves.

    Of kind worth, curve b reaches with `labels` what curve a has with `train_size`. Of kind passes, curve a
    is at least as good as curve b from `labels` on; a is the one that is better at the largest size. A bound
    says that the number is not known, but lies beyond: `fewer than` the smallest size or `more than` the
    largest.

    Attributes:
        kind: worth or passes.
        family: in what the curves differ: init, framework, model or method.
        dataset: of both curves.
        model, model_b: of both curves.
        metric: of the test values.
        test_set: all, or without leaks.
        a, b: FRAMEWORK/INIT of a curve.
        recipe_a, recipe_b: their names in the config.
        method_a, method_b: of the recipes.
        train_size: of the score of a; None of passes.
        score: what a has with it; None of passes.
        paired: whether both curves have the same seeds.
        n_a, n_b: seeds of each size.
        n_collapsed_a, n_collapsed_b: collapsed runs of a at the size, or at all sizes of a curve.
        labels, labels_bound: the number of labels.
        low, low_bound, high, high_bound: its interval over seeds, test examples and the choice of recipes.
        ratio, ratio_low, ratio_high: labels, low and high in units of train_size, with the same bounds.
        no_verdict: why the number bears no verdict, or has no interval.
        extrapolated, extrapolated_low, extrapolated_high: where a power law through all sizes of b reaches
            the score; only where labels is more than the largest size.
        not_extrapolated: why it does not.
    """

    kind: str
    family: str
    dataset: str
    model: str
    model_b: str
    metric: str
    test_set: str
    a: str
    b: str
    recipe_a: str
    recipe_b: str
    method_a: str
    method_b: str
    train_size: int | None = None
    score: float | None = None
    paired: bool
    n_a: int
    n_b: int
    n_collapsed_a: int
    n_collapsed_b: int
    labels: float
    labels_bound: str | None = None
    low: float | None = None
    low_bound: str | None = None
    high: float | None = None
    high_bound: str | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    no_verdict: str | None = None
    extrapolated: float | None = None
    extrapolated_low: float | None = None
    extrapolated_high: float | None = None
    not_extrapolated: str | None = None


WORTH_COLUMNS = tuple(each.name for each in fields(WorthRow))


# --- pairs of curves ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CurvePair:
    """Two curves that differ in one thing: the family."""

    family: str
    a: LearningCurve
    b: LearningCurve


def list_pairs(curves: Sequence[LearningCurve]) -> list[CurvePair]:
    """The pairs whose labels are compared, by family, in the order of contrasts.csv: pretrained and random
    init, both frameworks, every two models, and METHOD_PAIRS."""
    found = list(_pairs("init", curves, lambda each: each.init, [("pretrained", "random")]))
    found += _pairs("framework", curves, lambda each: each.framework, [("fairseq", "transformers")])
    models = list(dict.fromkeys(curve.model for curve in curves))
    found += _pairs("model", curves, lambda each: each.model, itertools.combinations(models, 2))
    return [*found, *_pairs("method", curves, lambda each: each.method, METHOD_PAIRS)]


def _pairs(
    family: str,
    curves: Sequence[LearningCurve],
    value: Callable[[LearningCurve], str],
    wanted: Iterable[tuple[str, str]],
) -> Iterator[CurvePair]:
    """Pairs of curves of these values that agree in all else; two methods have recipes of different names."""
    same = [name for name in ("dataset", "model", "framework", "init", "recipe") if name != family]
    if family == "method":
        same.remove("recipe")
    pairs = list(wanted)
    groups: dict[tuple[str, ...], list[LearningCurve]] = {}
    for curve in curves:
        place = tuple(getattr(curve, name) for name in (*same, "metric", "test_set"))
        groups.setdefault(place, []).append(curve)
    for group in groups.values():
        for first, second in pairs:
            sides = ([curve for curve in group if value(curve) == one] for one in (first, second))
            yield from (CurvePair(family, a, b) for a, b in itertools.product(*sides))


# --- rows ---------------------------------------------------------------------------------------------------


def worth_rows(
    curves: Sequence[LearningCurve], runs: Sequence[RunRow], sides: Sides, settings: Mapping[str, Any]
) -> list[WorthRow]:
    """The rows of label_worth.csv: of each pair what every score of a is worth on b, and where one passes the
    other. Of a curve with a score at one size alone, neither is known.

    Args:
        curves: of the experiment.
        runs: rows of runs.csv.
        sides: the cells with their predictions.
        settings: the config's `statistics`.
    """
    counted = Counted(grouped(runs, *CELL), sides, settings)
    rows = []
    for pair in list_pairs(curves):
        if len(pair.b.sizes) > 1:
            rows += [_worth(pair, size, counted) for size in pair.a.sizes]
        common = tuple(size for size in pair.a.sizes if size in pair.b.sizes)
        if len(common) > 1:
            rows.append(_passes(pair, common, counted))
    return rows


def _worth(pair: CurvePair, size: int, counted: Counted) -> WorthRow:
    parts = Part(pair.a, (size,), counted), Part(pair.b, pair.b.sizes, counted)
    how = _how([WORTH, size], pair, counted.settings)

    def answer(points: Sequence[Points], paired: bool) -> Reached:
        (score,), reference = points
        curve = Curve(pair.b.sizes, reference)
        return label_worth.worth(score, curve, paired=paired, extrapolate=True, **how)

    asked = Question(parts, answer, learning=parts[:1])
    ratio = asked.found.relative_to(size)
    return WorthRow(
        kind=WORTH,
        family=pair.family,
        **_columns(asked),
        train_size=size,
        score=pair.a.chosen[size].mean,
        ratio=ratio.labels.number,
        ratio_low=_number(ratio.low),
        ratio_high=_number(ratio.high),
        **extrapolated_columns(asked.found.extrapolated),
    )


def _passes(pair: CurvePair, sizes: tuple[int, ...], counted: Counted) -> WorthRow:
    last = [known(curve.chosen[sizes[-1]].mean) for curve in (pair.a, pair.b)]
    if METRICS[pair.a.metric].direction * (last[0] - last[1]) < 0:
        pair = CurvePair(pair.family, pair.b, pair.a)
    parts = Part(pair.a, sizes, counted), Part(pair.b, sizes, counted)
    how = _how([PASSES], pair, counted.settings)

    def answer(points: Sequence[Points], paired: bool) -> Reached:
        a, b = (Curve(sizes, each) for each in points)
        return label_worth.passes(a, b, paired=paired, **how)

    return WorthRow(kind=PASSES, family=pair.family, **_columns(Question(parts, answer, learning=parts)))


def _how(name: list[Any], pair: CurvePair, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `label_worth` beside the scores."""
    a, b = pair.a, pair.b
    names = [[each.dataset, each.model, each.framework, each.init, each.recipe] for each in (a, b)]
    return {
        "direction": METRICS[a.metric].direction,
        "confidence": settings["confidence"],
        "seed": named_seed(settings, [*name, *names, a.metric, a.test_set]),
    }


def _columns(asked: Question) -> dict[str, Any]:
    """The columns of a row that every kind has."""
    of_a, of_b = asked.parts
    a, b = of_a.curve, of_b.curve
    return {
        "dataset": a.dataset,
        "model": a.model,
        "model_b": b.model,
        "metric": a.metric,
        "test_set": a.test_set,
        "a": f"{a.framework}/{a.init}",
        "b": f"{b.framework}/{b.init}",
        "recipe_a": a.recipe,
        "recipe_b": b.recipe,
        "method_a": a.method,
        "method_b": b.method,
        "paired": asked.paired,
        "n_a": of_a.seeds,
        "n_b": of_b.seeds,
        "n_collapsed_a": of_a.collapsed,
        "n_collapsed_b": of_b.collapsed,
        **number_columns(asked.found),
        "no_verdict": asked.no_verdict,
    }


def number_columns(found: Reached) -> dict[str, Any]:
    """The columns of a number of labels and its interval."""
    return {
        "labels": found.labels.number,
        "labels_bound": found.labels.bound,
        "low": _number(found.low),
        "low_bound": found.low and found.low.bound,
        "high": _number(found.high),
        "high_bound": found.high and found.high.bound,
    }


def _number(labels: Labels | None) -> float | None:
    return None if labels is None else labels.number


def extrapolated_columns(found: Extrapolated | None) -> dict[str, Any]:
    """The columns of an extrapolation; what goes too far is empty, and so is all where there is none."""
    if found is None:
        return {}
    labels, low, high = (
        None if each is None or each.bound else each.number for each in (found.labels, found.low, found.high)
    )
    too_far = found.labels is not None and found.labels.bound is not None
    return {
        "extrapolated": labels,
        "extrapolated_low": low,
        "extrapolated_high": high,
        "not_extrapolated": TOO_FAR if too_far else found.why_not,
    }
