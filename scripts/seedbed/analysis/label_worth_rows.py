"""What the learning curves of an experiment are worth in labels: label_worth.csv.

The statistics are those of `label_worth`; here it is decided which curves are compared, and what bears a
verdict.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from seedbed.analysis import bootstrap, label_worth, verdicts
from seedbed.analysis.bootstrap import Candidate
from seedbed.analysis.contrasts import METHOD_PAIRS, Sides
from seedbed.analysis.label_worth import FURTHEST, Curve, Extrapolated, Labels, Reached
from seedbed.analysis.learning_curves import LearningCurve
from seedbed.analysis.methods import OTHER_CHOICE
from seedbed.analysis.sides import Seed, named_seed, only_seeds
from seedbed.analysis.table_rows import RunRow
from seedbed.core.known import known
from seedbed.core.rows import CELL, TypedRow, grouped
from seedbed.core.seeds import FEWEST_SEEDS, independent_seeds
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
    counted = _Counted(grouped(runs, *CELL), sides, settings)
    rows = []
    for pair in list_pairs(curves):
        if len(pair.b.sizes) > 1:
            rows += [_worth(pair, size, counted) for size in pair.a.sizes]
        common = tuple(size for size in pair.a.sizes if size in pair.b.sizes)
        if len(common) > 1:
            rows.append(_passes(pair, common, counted))
    return rows


def _worth(pair: CurvePair, size: int, counted: "_Counted") -> WorthRow:
    sides = _Part(pair.a, (size,), counted), _Part(pair.b, pair.b.sizes, counted)
    how = _how([WORTH, size], pair, counted.settings)

    def answer(a: Points, b: Points, paired: bool) -> Reached:
        reference = Curve(pair.b.sizes, b)
        return label_worth.worth(a[0], reference, paired=paired, extrapolate=True, **how)

    asked = _Asked(*sides, answer, learning=sides[:1])
    ratio = asked.found.relative_to(size)
    return WorthRow(
        kind=WORTH,
        family=pair.family,
        **asked.columns,
        train_size=size,
        score=pair.a.chosen[size].mean,
        ratio=ratio.labels.number,
        ratio_low=_number(ratio.low),
        ratio_high=_number(ratio.high),
        **_extrapolated(asked.found.extrapolated),
    )


def _passes(pair: CurvePair, sizes: tuple[int, ...], counted: "_Counted") -> WorthRow:
    last = [known(curve.chosen[sizes[-1]].mean) for curve in (pair.a, pair.b)]
    if METRICS[pair.a.metric].direction * (last[0] - last[1]) < 0:
        pair = CurvePair(pair.family, pair.b, pair.a)
    sides = _Part(pair.a, sizes, counted), _Part(pair.b, sizes, counted)
    how = _how([PASSES], pair, counted.settings)

    def answer(a: Points, b: Points, paired: bool) -> Reached:
        return label_worth.passes(Curve(sizes, a), Curve(sizes, b), paired=paired, **how)

    return WorthRow(kind=PASSES, family=pair.family, **_Asked(*sides, answer, learning=sides).columns)


def _how(name: list[Any], pair: CurvePair, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `label_worth` beside the scores."""
    a, b = pair.a, pair.b
    names = [[each.dataset, each.model, each.framework, each.init, each.recipe] for each in (a, b)]
    return {
        "direction": METRICS[a.metric].direction,
        "confidence": settings["confidence"],
        "seed": named_seed(settings, [*name, *names, a.metric, a.test_set]),
    }


def _number(labels: Labels | None) -> float | None:
    return None if labels is None else labels.number


def _extrapolated(found: Extrapolated | None) -> dict[str, Any]:
    """The columns of an extrapolation; what goes too far is empty."""
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


# --- what is asked ------------------------------------------------------------------------------------------

Points = Sequence[Sequence[Candidate]]


@dataclass(frozen=True)
class _Counted:
    """What numbers of labels are computed of: runs by cell, predictions, and the config's `statistics`."""

    by_cell: Mapping[tuple[Any, ...], Sequence[RunRow]]
    sides: Sides
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class _Part:
    """Some sizes of a curve."""

    curve: LearningCurve
    sizes: tuple[int, ...]
    counted: _Counted

    @cached_property
    def runs(self) -> list[Sequence[RunRow]]:
        """The runs of the chosen recipe at each size."""
        return [self.counted.by_cell[self.curve.chosen[size].cell] for size in self.sizes]

    @cached_property
    def points(self) -> Points:
        """The recipes that may be chosen at each size."""
        candidate = self.counted.sides.candidate
        return [
            [candidate(row.cell, row.test_set, row.metric) for row in self.curve.candidates[size]]
            for size in self.sizes
        ]

    @property
    def agrees(self) -> bool:
        """Whether predictions choose the recipes that the losses of runs did."""
        return all(
            self.curve.candidates[size][bootstrap.choice(point)].recipe == self.curve.chosen[size].recipe
            for size, point in zip(self.sizes, self.points, strict=True)
        )

    @property
    def collapsed(self) -> int:
        """How many of the runs collapsed."""
        return sum(bool(run.collapsed) for runs in self.runs for run in runs)

    def near(self, found: Reached) -> list[Sequence[RunRow]]:
        """The runs at the sizes that an interval spans, and at the next on both sides."""
        low, high = (known(end).outermost for end in (found.low, found.high))
        first = max((size for size in self.sizes if size <= low), default=self.sizes[0])
        last = min((size for size in self.sizes if size >= high), default=self.sizes[-1])
        return [runs for size, runs in zip(self.sizes, self.runs, strict=True) if first <= size <= last]

    def with_seeds(self, seeds: Sequence[Seed]) -> Points:
        """The chosen recipe at each size, with some of its seeds alone."""
        return [
            bootstrap.given(only_seeds(point[bootstrap.choice(point)].test, seeds)) for point in self.points
        ]


@dataclass(frozen=True)
class _Asked:
    """A question about parts of two curves, and its answer.

    Attributes:
        a, b: the parts.
        answer: the number of labels, of the points of both and of whether their seeds are pairs.
        learning: the parts of which a run must have learned something.
    """

    a: _Part
    b: _Part
    answer: Callable[[Points, Points, bool], Reached]
    learning: Sequence[_Part]

    @cached_property
    def found(self) -> Reached:
        """The number of labels."""
        return self.answer(self.a.points, self.b.points, self.paired)

    @property
    def paired(self) -> bool:
        """Whether all runs have the same seeds."""
        cells = [*self.a.runs, *self.b.runs]
        return len({frozenset(run.seeds for run in runs) for runs in cells}) == 1

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of a row that every kind has."""
        a, b, found = self.a.curve, self.b.curve, self.found
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
            "paired": self.paired,
            "n_a": min(map(len, self.a.runs)),
            "n_b": min(map(len, self.b.runs)),
            "n_collapsed_a": self.a.collapsed,
            "n_collapsed_b": self.b.collapsed,
            "labels": found.labels.number,
            "labels_bound": found.labels.bound,
            "low": _number(found.low),
            "low_bound": found.low and found.low.bound,
            "high": _number(found.high),
            "high_bound": found.high and found.high.bound,
            "no_verdict": self.no_verdict,
        }

    @property
    def no_verdict(self) -> str | None:
        """Why the number bears no verdict: one of verdicts.WITHHELD, or of `methods`; None where it does."""
        runs = [run for part in self.learning for of_size in part.runs for run in of_size]
        if unlearned := verdicts.unlearned(runs, self.a.curve.test_set):
            return unlearned
        if not (self.a.agrees and self.b.agrees):
            return OTHER_CHOICE
        return self.found.no_interval or (verdicts.COLLAPSE if self._hangs_on_a_collapse else None)

    @property
    def _hangs_on_a_collapse(self) -> bool:
        """Whether the number without collapsed runs lies outside the interval, or rests on too few seeds.

        Only runs at the sizes that decide are left out, with all runs of their seeds."""
        near = [part.near(self.found) for part in (self.a, self.b)]
        if not any(map(verdicts.partly_collapsed, near)):
            return False
        kept = [verdicts.sound_seeds(cells) for cells in near]
        if min(map(independent_seeds, kept)) < FEWEST_SEEDS:
            return True
        paired = self.paired and set(kept[0]) == set(kept[1])
        points = self.a.with_seeds(kept[0]), self.b.with_seeds(kept[1])
        labels = self.answer(*points, paired).labels.outermost
        low, high = (known(end).outermost for end in (self.found.low, self.found.high))
        return not low <= labels <= high
