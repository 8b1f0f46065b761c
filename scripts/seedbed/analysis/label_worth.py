"""How many labels a score is worth: the size at which a learning curve reaches a score, with its interval.

A learning curve has the scores of runs that were trained on N_1 < ... < N_K texts. Between two sizes it is
linear in the logarithm of the size; beyond the first and the last it is not known, and sizes there are
bounds: fewer than N_1, more than N_K.

The number of labels is the smallest size at which the monotone fit of the means (isotonic regression) reaches
the score. Its interval holds every size N at which the interval of the difference of the score and the curve
at N, the primary one of `bootstrap.compare_best`, holds zero, and all between the outermost such sizes. A
difference at N is a weighted sum of the two neighbouring sizes and the score, so seeds, test examples and the
choice of recipes at each size are all in it. No monotone curve is assumed for the interval.

The ratio of this number and the number of labels behind a score is the effective data transferred relative to
the data (Hernandez et al. 2021, arXiv:2102.01293).
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy

from seedbed.analysis.bootstrap import TIE, Candidate, Scaled, Sums
from seedbed.analysis.methods import NO_SPREAD, ONE_SEED
from seedbed.analysis.spread import normal
from seedbed.analysis.verdicts import FEW_SEEDS
from seedbed.core.errors import SeedbedError
from seedbed.core.seeds import FEWEST_SEEDS, independent_seeds

# What a number of labels is where the curve does not tell it: a bound.
FEWER, MORE = "fewer than", "more than"
# Ends of intervals are found to this part of the way between two sizes.
TOLERANCE = 1e-4
# A sum without any spread that is closer to zero is zero.
ROUNDING = 1e-9

# Power laws have three parameters, which as many sizes fit exactly.
FEWEST_SIZES = 4
# Replicates to which a power law is fitted: an interval of an extrapolation is a rough thing.
FITS = 200
MOST_STEPS = 200  # of one fit
# Rates of power laws; slower ones are hardly other than logarithms, faster ones than steps.
RATES = (0.02, 5.0)
# Extrapolations that go further than this many times the largest size are not told.
FURTHEST = 100
# why there is no extrapolation
FEW_SIZES = f"a power law needs {FEWEST_SIZES} sizes"
NOT_RISING = "the scores do not improve with size"
NO_FIT = "no power law fits: the scores do not level off, or do so at once"
LEVELS_OFF = "the power law levels off before"

Point = Sequence[Candidate]


@dataclass(frozen=True, eq=False)
class Curve:
    """A learning curve.

    Args:
        sizes: numbers of labels, increasing.
        points: the recipes that may be chosen at each size. All have the same seeds and examples.

    Raises:
        SeedbedError: fewer than two sizes, sizes that do not increase, another number of points.
    """

    sizes: tuple[int, ...]
    points: Sequence[Point]

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in zip(self.sizes, self.sizes[1:], strict=False))
        if len(self.sizes) < 2 or self.sizes[0] < 1 or not rising:
            raise SeedbedError("a learning curve needs two sizes or more, in order", found=list(self.sizes))
        if len(self.points) != len(self.sizes):
            raise SeedbedError(
                "a learning curve has a score at each of its sizes",
                found=f"{len(self.points)} scores at {len(self.sizes)} sizes",
            )


@dataclass(frozen=True)
class Labels:
    """A number of labels.

    Attributes:
        number: of labels, interpolated between sizes; of a ratio, a factor.
        bound: FEWER or MORE where the true number is not known but lies beyond; None where it is known.
    """

    number: float
    bound: str | None = None

    @property
    def outermost(self) -> float:
        """The number; of a bound 0 or infinity."""
        return {FEWER: 0.0, MORE: math.inf}.get(self.bound or "", self.number)

    def relative_to(self, labels: float) -> "Labels":
        """The ratio to another number of labels."""
        return Labels(self.number / labels, self.bound)


@dataclass(frozen=True)
class Extrapolated:
    """Where a power law, fitted to all sizes, reaches what the curve itself does not.

    Attributes:
        labels: where it does; None where it does not, or cannot be fitted.
        low, high: the interval of fits to replicates; None without one.
        why_not: one of FEW_SIZES, NOT_RISING, NO_FIT, LEVELS_OFF; None where there is a number.
    """

    labels: Labels | None = None
    low: Labels | None = None
    high: Labels | None = None
    why_not: str | None = None


@dataclass(frozen=True)
class Reached:
    """The number of labels with which a curve reaches a score.

    Attributes:
        labels: the number, or a bound of it.
        low, high: the interval; an end beyond the sizes is a bound. None without an interval.
        no_interval: why there is none: methods.ONE_SEED, verdicts.FEW_SEEDS or methods.NO_SPREAD.
        extrapolated: only where `labels` is more than the largest size, and an extrapolation was asked for.
    """

    labels: Labels
    low: Labels | None = None
    high: Labels | None = None
    no_interval: str | None = None
    extrapolated: Extrapolated | None = None

    def relative_to(self, labels: float) -> Self:
        """The ratio to another number of labels, with its interval; without the extrapolation."""
        low, high = (None if end is None else end.relative_to(labels) for end in (self.low, self.high))
        return replace(self, labels=self.labels.relative_to(labels), low=low, high=high, extrapolated=None)


def worth(
    score: Point,
    reference: Curve,
    *,
    direction: int,
    paired: bool,
    confidence: float,
    seed: int,
    extrapolate: bool = False,
) -> Reached:
    """The number of labels with which the reference is as good as a score of another curve.

    Args:
        score: the recipes that may be chosen for the score.
        reference: the curve that is to reach it.
        direction: 1 if a larger score is better, -1 if a smaller one is.
        paired: one draw of seeds serves the score and the reference, whose seeds are then the same.
        confidence: level of the interval, such as 0.95.
        seed: seed of the random numbers that draw seeds.
        extrapolate: fit a power law where the reference does not reach the score.

    Raises:
        SeedbedError: points that differ in seeds or examples, see `bootstrap.Sums`.
    """
    groups = [[score, *reference.points]] if paired else [[score], list(reference.points)]
    knots = direction * np.column_stack([-np.ones(len(reference.sizes)), np.eye(len(reference.sizes))])
    line = _Line(Sums(groups, seed), reference.sizes, knots, 0.0)
    return line.reached(confidence, extrapolate=extrapolate)


def passes(a: Curve, b: Curve, *, direction: int, paired: bool, confidence: float, seed: int) -> Reached:
    """The number of labels from which curve a is at least as good as curve b, both at the same size.

    The monotone fit is that of the difference: a is taken to gain on b as labels are added. Where a is worse
    at the largest size, the number is more than that, whatever a has at smaller ones.

    Args:
        a, b: curves of the same sizes.
        direction, paired, confidence, seed: see `worth`.

    Raises:
        SeedbedError: different sizes; see `worth`.
    """
    if a.sizes != b.sizes:
        raise SeedbedError(
            "curves that may pass each other need the same sizes",
            found=f"{list(a.sizes)} and {list(b.sizes)}",
            hint="leave out the sizes that only one of them has",
        )
    groups = [[*a.points, *b.points]] if paired else [list(a.points), list(b.points)]
    each = np.eye(len(a.sizes))
    knots = direction * np.column_stack([each, -each])
    line = _Line(Sums(groups, seed), a.sizes, knots, 0.0, lasting=True)
    return line.reached(confidence, extrapolate=False)


def reaches(
    curve: Curve, target: float, *, direction: int, confidence: float, seed: int, extrapolate: bool = False
) -> Reached:
    """The number of labels with which a curve reaches a score that is given.

    Args:
        curve: of scores.
        target: in the unit of the scores.
        direction, confidence, seed, extrapolate: see `worth`.

    Raises:
        SeedbedError: see `worth`.
    """
    knots = direction * np.eye(len(curve.sizes))
    line = _Line(Sums([list(curve.points)], seed), curve.sizes, knots, direction * target)
    return line.reached(confidence, extrapolate=extrapolate)


def monotone(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """The values that do not fall and are closest to these by least squares (isotonic regression)."""
    return np.asarray(scipy.optimize.isotonic_regression(np.asarray(values, dtype=np.float64)).x)


# --- a sum along sizes --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Line:
    """A weighted sum of points that changes with size: where it rises to a level.

    Places are numbered: 0 is the first size, 1 the second, and 0.5 lies halfway between their logarithms.

    Attributes:
        sums: of the points.
        sizes: of the curve.
        knots: the coefficients at each size, (sizes, points).
        level: what is to be reached.
        lasting: whether a sum that is below it at the largest size does not count as having reached it.
    """

    sums: Sums
    sizes: Sequence[int]
    knots: np.ndarray
    level: float
    lasting: bool = False

    def reached(self, confidence: float, *, extrapolate: bool) -> Reached:
        """Where the line reaches the level, with its interval."""
        place = self._first_place()
        found = Reached(self._labels(place))
        if extrapolate and found.labels.bound == MORE:
            found = replace(found, extrapolated=self._extrapolated(confidence))
        if reason := self._no_interval():
            return replace(found, no_interval=reason)
        low, high = self._interval(confidence)
        return replace(found, low=self._labels(min(low, place)), high=self._labels(max(high, place)))

    @cached_property
    def _heights(self) -> np.ndarray:
        """How far the sum is above the level at each size, (sizes,)."""
        return self.knots @ self.sums.means - self.level

    def _labels(self, place: float) -> Labels:
        """The number of labels at a place; a bound at infinite ones."""
        if math.isinf(place):
            return Labels(self.sizes[-1], MORE) if place > 0 else Labels(self.sizes[0], FEWER)
        if place == int(place):
            return Labels(float(self.sizes[int(place)]))
        return Labels(float(2 ** np.interp(place, range(len(self.sizes)), np.log2(self.sizes))))

    def _first_place(self) -> float:
        """The first place at which the monotone fit reaches the level; infinite beyond the sizes."""
        fitted = monotone(self._heights)
        if self.lasting and self._heights[-1] < -TIE:
            return math.inf
        if fitted[0] > 0:
            return -math.inf
        if fitted[-1] < 0:
            return math.inf
        after = int(np.argmax(fitted >= 0))
        if after == 0 or fitted[after] == 0:
            return float(after)
        return _zero(after - 1, fitted[after - 1], fitted[after])

    def _no_interval(self) -> str | None:
        seeds = min(map(independent_seeds, self.sums.seeds))
        if seeds < FEWEST_SEEDS:
            return ONE_SEED if seeds == 1 else FEW_SEEDS
        return NO_SPREAD if all(self._scaled(place) is None for place in range(len(self.sizes))) else None

    def _interval(self, confidence: float) -> tuple[float, float]:
        """The outermost places where the interval of the sum holds the level; infinite beyond the sizes."""

        def outside(place: float) -> float:
            return self._outside(place, confidence)

        places = self._places()
        inside = [index for index, place in enumerate(places) if outside(place) <= 0]
        if not inside:  # nor does the line cross the level
            beyond = math.inf if self._heights[-1] < 0 else -math.inf
            return beyond, beyond
        first, last = inside[0], inside[-1]
        low, high = -math.inf, math.inf
        if first > 0:
            low = scipy.optimize.brentq(outside, places[first - 1], places[first], xtol=TOLERANCE)
        if last < len(places) - 1:
            high = scipy.optimize.brentq(outside, places[last], places[last + 1], xtol=TOLERANCE)
        return low, high

    def _places(self) -> list[float]:
        """The sizes, and where the line crosses the level between them. Between two of these neighbours the
        interval's half width is convex and the sum linear, so that it holds the level at one of them if it
        does anywhere between."""
        crossings = [
            _zero(index, before, after)
            for index, (before, after) in enumerate(zip(self._heights, self._heights[1:], strict=False))
            if before * after < 0
        ]
        return sorted([*map(float, range(len(self.sizes))), *crossings])

    def _outside(self, place: float, confidence: float) -> float:
        """How far the level lies outside the interval of the sum at a place; not above 0 where it is held."""
        scaled = self._scaled(place)
        if scaled is None:
            return abs(self._height(place)) - ROUNDING
        low, high = scaled.interval(confidence)
        return max(low - self.level, self.level - high)

    def _height(self, place: float) -> float:
        return float(np.interp(place, range(len(self.sizes)), self._heights))

    def _scaled(self, place: float) -> Scaled | None:
        before = min(int(place), len(self.sizes) - 2)
        share = place - before
        coefficients = (1 - share) * self.knots[before] + share * self.knots[before + 1]
        return self.sums.scaled(coefficients.tolist())

    # --- beyond the sizes ---

    def _extrapolated(self, confidence: float) -> Extrapolated:
        """Where a power law of the heights reaches zero, and where those of replicates do."""
        if len(self.sizes) < FEWEST_SIZES:
            return Extrapolated(why_not=FEW_SIZES)
        if self._heights[-1] <= self._heights[0]:
            return Extrapolated(why_not=NOT_RISING)
        sizes = np.array(self.sizes, dtype=np.float64)
        law = power_law(sizes, self._heights)
        if law is None:
            return Extrapolated(why_not=NO_FIT)
        labels = law.labels_at(0.0)
        if labels is None:
            return Extrapolated(why_not=LEVELS_OFF)
        found = Extrapolated(self._far(labels))
        if self._no_interval():
            return found
        fits = [power_law(sizes, heights) for heights in self._scaled_replicates(confidence)]
        # a replicate without a fit, or whose law levels off before, does not reach it
        reached = [fit.labels_at(0.0) if fit else None for fit in fits]
        tails = [(1 - confidence) / 2, (1 + confidence) / 2]
        low, high = np.quantile(
            [math.inf if number is None else number for number in reached], tails, method="inverted_cdf"
        )
        return replace(found, low=self._far(min(low, labels)), high=self._far(max(high, labels)))

    def _far(self, labels: float) -> Labels:
        furthest = FURTHEST * self.sizes[-1]
        return Labels(float(labels)) if labels <= furthest else Labels(furthest, MORE)

    def _scaled_replicates(self, confidence: float) -> np.ndarray:
        """Heights in some replicates, (FITS, sizes), whose spread at each size is that of the interval."""
        drawn = self.knots @ self.sums.replicates
        drawn = drawn[:, np.isfinite(drawn).all(axis=0)]
        drawn = drawn[:, np.linspace(0, drawn.shape[1] - 1, FITS).astype(int)]
        deviations = drawn - drawn.mean(axis=1, keepdims=True)
        for place, deviation in enumerate(deviations):
            scaled = self._scaled(place)
            sd = deviation.std()
            wanted = 0.0 if scaled is None else scaled.spread.half_width(confidence) / normal(confidence)
            deviation *= wanted / sd if sd else 0.0
        return (self._heights[:, None] + deviations).T


def _zero(place: int, before: float, after: float) -> float:
    """Where a line between two heights, at this place and at the next, is zero."""
    return place + before / (before - after)


# --- power laws ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PowerLaw:
    """height = limit - drop * (size / unit) ** -rate, with a drop and a rate above 0.

    That is the usual error = a + b * size ** -c, with any score as the negative of an error.
    """

    limit: float
    drop: float
    rate: float
    unit: float

    def labels_at(self, height: float) -> float | None:
        """The size at which it has this height; None where it levels off before."""
        if height >= self.limit:
            return None
        exponent = math.log(self.drop / (self.limit - height)) / self.rate
        return math.inf if exponent > 100 else self.unit * math.exp(exponent)


def power_law(sizes: np.ndarray, heights: np.ndarray) -> PowerLaw | None:
    """The power law that fits heights by least squares (scipy.optimize.curve_fit); None where none does, or
    only one with a rate outside RATES."""
    unit, rise = float(sizes[0]), float(np.ptp(heights))
    if rise < ROUNDING:
        return None

    logs = np.log(sizes / unit)

    def law(_: Any, limit: float, drop: float, log_rate: float) -> np.ndarray:
        return limit - drop * np.exp(-np.exp(log_rate) * logs)

    def slopes(_: Any, limit: float, drop: float, log_rate: float) -> np.ndarray:
        rate = np.exp(log_rate)
        left = np.exp(-rate * logs)
        return np.column_stack([np.ones_like(logs), -left, drop * left * rate * logs])

    least, most = np.log(RATES)
    start = (float(heights.max()), rise, (least + most) / 2)
    try:
        # of a fit that leaves a parameter open it has no covariance, which is not asked for
        unknown = warnings.catch_warnings(action="ignore", category=scipy.optimize.OptimizeWarning)
        with unknown, np.errstate(over="ignore", invalid="ignore"):
            (limit, drop, log_rate), _ = scipy.optimize.curve_fit(
                law, sizes, heights, p0=start, jac=slopes, maxfev=MOST_STEPS
            )
    except RuntimeError:
        return None
    if drop < ROUNDING or not least < log_rate < most:
        return None
    return PowerLaw(float(limit), float(drop), float(np.exp(log_rate)), unit)
