"""What the learning curves of an experiment are worth in labels: label_worth.csv.

The statistics are those of `label_worth`; here it is decided which curves are compared, and what bears a
verdict.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from seedbed.analysis import label_worth
from seedbed.analysis.baselines_of_sizes import BaselinesOfSizes
from seedbed.analysis.contrasts import METHOD_PAIRS, Sides
from seedbed.analysis.label_questions import Counted, Part, Points, Question, part_of_bags, part_of_runs
from seedbed.analysis.label_worth import FURTHEST, MORE, Curve, Extrapolated, Labels, Reached
from seedbed.analysis.learning_curves import LearningCurve
from seedbed.analysis.sides import named_seed
from seedbed.analysis.table_rows import RunRow
from seedbed.core.known import known
from seedbed.core.rows import CELL, TypedRow, grouped
from seedbed.core.tasks import METRICS

WORTH, PASSES, PASSED = "worth", "passes", "passed"
BASELINE = "baseline"  # the family of runs beside bags of words
TOO_FAR = f"the power law goes beyond {FURTHEST} times the largest size"


@dataclass(frozen=True, kw_only=True)
class WorthRow(TypedRow):
    """A row of label_worth.csv: a number of labels of curve b, or of both curves.

    Of kind worth, curve b reaches with `labels` what curve a has with `train_size`. Of kind passes, curve a
    is at least as good as curve b from `labels` on; a is the one that is better at the largest size. A bound
    says that the number is not known, but lies beyond: `fewer than` the smallest size or `more than` the
    largest.

    Of family baseline, a is always a curve of runs, and b the bag of words on as many texts. Where a is worse
    at the largest size, passes is `more than` that; then a row of kind passed tells from how many labels on b
    is at least as good as a.

    Attributes:
        kind: worth, passes or passed.
        family: in what the curves differ: init, framework, model or method; or baseline.
        dataset: of both curves.
        model, model_b: of both curves; model_b is None of a bag of words.
        metric: of the test values.
        test_set: all, or without leaks.
        a, b: FRAMEWORK/INIT of a curve, or bag_of_words.
        recipe_a, recipe_b: their names in the config; recipe_b is None of a bag of words.
        method_a, method_b: of the recipes; method_b is None of a bag of words.
        train_size: of the score of a; None of passes and passed.
        score: what a has with it; None of passes and passed.
        paired: whether both curves have the same seeds.
        n_a, n_b: seeds of each size; of bags of words data seeds.
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
    model_b: str | None
    metric: str
    test_set: str
    a: str
    b: str
    recipe_a: str
    recipe_b: str | None
    method_a: str
    method_b: str | None
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
    curves: Sequence[LearningCurve],
    runs: Sequence[RunRow],
    sides: Sides,
    bags: Mapping[str, BaselinesOfSizes],
    settings: Mapping[str, Any],
) -> list[WorthRow]:
    """The rows of label_worth.csv: of each pair what every score of a is worth on b, and where one passes the
    other; then the same of each curve beside the bag of words. Of a curve with a score at one size alone,
    neither is known.

    Args:
        curves: of the experiment.
        runs: rows of runs.csv.
        sides: the cells with their predictions.
        bags: the bags of words of each size, by dataset; none of generation.
        settings: the config's `statistics`.

    Raises:
        SeedbedError: there is no bag of words of a data seed of the runs.
    """
    counted = Counted(grouped(runs, *CELL), sides, settings)
    rows = []
    for pair in list_pairs(curves):
        if len(pair.b.sizes) > 1:
            reference = part_of_runs(pair.b, pair.b.sizes, counted)
            rows += [_worth(pair.family, pair.a, size, reference, counted) for size in pair.a.sizes]
        common = [size for size in pair.a.sizes if size in pair.b.sizes]
        if len(common) > 1:
            a, b = (part_of_runs(curve, common, counted) for curve in _better_last(pair, common[-1]))
            rows.append(_passes(PASSES, pair.family, pair.a, a, b, settings))
    for curve in curves:
        if curve.dataset in bags:
            rows += _beside_bags(curve, bags[curve.dataset], counted)
    return rows


def _beside_bags(curve: LearningCurve, bags: BaselinesOfSizes, counted: Counted) -> Iterator[WorthRow]:
    """What every score of a curve of runs is worth on the bag of words, and where one passes the other."""
    if curve.sizes and len(bags.sizes) > 1:
        reference = part_of_bags(bags, bags.sizes, curve, counted)
        for size in curve.sizes:
            yield _worth(BASELINE, curve, size, reference, counted)
    common = [size for size in curve.sizes if size in bags.sizes]
    if len(common) > 1:
        a, b = part_of_runs(curve, common, counted), part_of_bags(bags, common, curve, counted)
        passes = _passes(PASSES, BASELINE, curve, a, b, counted.settings)
        yield passes
        if passes.labels_bound == MORE:
            yield _passes(PASSED, BASELINE, curve, a, b, counted.settings)


def _better_last(pair: CurvePair, size: int) -> tuple[LearningCurve, LearningCurve]:
    """Both curves, the one that is better at a size first; of equals the first of the pair."""
    a, b = (known(curve.chosen[size].mean) for curve in (pair.a, pair.b))
    return (pair.b, pair.a) if METRICS[pair.a.metric].direction * (a - b) < 0 else (pair.a, pair.b)


def _worth(family: str, curve: LearningCurve, size: int, reference: Part, counted: Counted) -> WorthRow:
    """What the score of a curve at a size is worth on a reference."""
    scored = part_of_runs(curve, [size], counted)
    how = _how([WORTH, size], curve, scored, reference, counted.settings)

    def answer(points: Sequence[Points], paired: bool) -> Reached:
        (score,), others = points
        return label_worth.worth(
            score, Curve(reference.sizes, others), paired=paired, extrapolate=True, **how
        )

    asked = Question([scored, reference], answer, learning=[scored], test_set=curve.test_set)
    ratio = asked.found.relative_to(size)
    return WorthRow(
        kind=WORTH,
        family=family,
        **_columns(asked, curve),
        train_size=size,
        score=curve.chosen[size].mean,
        ratio=ratio.labels.number,
        ratio_low=_number(ratio.low),
        ratio_high=_number(ratio.high),
        **extrapolated_columns(asked.found.extrapolated),
    )


def _passes(
    kind: str, family: str, curve: LearningCurve, a: Part, b: Part, settings: Mapping[str, Any]
) -> WorthRow:
    """From how many labels on a passes b, or of kind PASSED b passes a: two parts of the same sizes, one of
    them of the curve."""
    how = _how([kind], curve, a, b, settings)

    def answer(points: Sequence[Points], paired: bool) -> Reached:
        passing, other = (Curve(a.sizes, each) for each in points)
        if kind == PASSED:
            passing, other = other, passing
        return label_worth.passes(passing, other, paired=paired, **how)

    asked = Question([a, b], answer, learning=[a, b], test_set=curve.test_set)
    return WorthRow(kind=kind, family=family, **_columns(asked, curve))


def _how(
    name: list[Any], curve: LearningCurve, a: Part, b: Part, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments of `label_worth` beside the scores."""
    return {
        "direction": METRICS[curve.metric].direction,
        "confidence": settings["confidence"],
        "seed": named_seed(settings, [*name, a.names, b.names, curve.metric, curve.test_set]),
    }


def _columns(asked: Question, curve: LearningCurve) -> dict[str, Any]:
    """The columns of a row that every kind has; `curve` is one of both."""
    a, b = asked.parts
    return {
        "dataset": curve.dataset,
        "model": a.model,
        "model_b": b.model,
        "metric": curve.metric,
        "test_set": curve.test_set,
        "a": a.label,
        "b": b.label,
        "recipe_a": a.recipe,
        "recipe_b": b.recipe,
        "method_a": a.method,
        "method_b": b.method,
        "paired": asked.paired,
        "n_a": a.number,
        "n_b": b.number,
        "n_collapsed_a": a.collapsed,
        "n_collapsed_b": b.collapsed,
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
