"""The Multi-Bootstrap: intervals of a difference over training seeds and test examples together.

After Sellam et al. (2022, arXiv:2106.16163): each replicate draws seeds and examples anew, with replacement.
The percentile interval of the replicates is the published one. It is too narrow where the variance comes from
few seeds, and too wide where it comes from the interaction of seeds and examples, which both draws count. The
primary interval scales the replicates to a half width made from the analysis of variance, see `Spread`.

Scores are one number for each seed and example: 1 for right and 0 for wrong, a difference of two such, or any
other metric that is averaged over examples. Of a metric that is not, such as F1, scores are linearised: the
analysis of variance is of these, and the replicates are of the metric itself. Results have the unit of the
scores.
"""

import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from seedbed.analysis.spread import CREDIT, Seeds, Spread, levels_of, normal, spread_of, variance_of_means
from seedbed.core.errors import SeedbedError
from seedbed.core.seeds import is_crossed

# Replicates that are drawn and multiplied at a time: what fits into a processor's cache.
CHUNK = 250
# Counts of examples that are kept between cells, in bytes; beyond it they are drawn anew for each cell.
MAX_KEPT = 512 * 2**20
# Mean validation scores that are closer than this are tied: float32 tells no smaller difference.
TIE = 1e-6
# Each purpose draws from its own stream of random numbers.
EXAMPLE_STREAM, SEED_STREAM = 0, 1
# A quantile with fewer replicates beyond it is not read off them.
REPLICATES_IN_A_TAIL = 10
SMALLEST_P = 1e-6  # tails beyond the replicates are taken for normal ones, which nobody should trust further

T = TypeVar("T")


class Draws:
    """How often each test example occurs in each replicate. Sides that share this object share the draws.

    Args:
        examples: number of test examples.
        replicates: number of replicates.
        seed: seed of the random numbers; the same numbers give the same draws.
    """

    def __init__(self, examples: int, replicates: int, seed: int):
        if examples < 1 or replicates < 2:
            raise SeedbedError(
                "a bootstrap needs an example and two replicates", found=f"{examples} and {replicates}"
            )
        self.examples, self.replicates, self.seed = examples, replicates, seed
        self._kept: list[np.ndarray] = []

    def means(self, scores: np.ndarray) -> np.ndarray:
        """The mean score of each row on each replicate's examples.

        Args:
            scores: (rows, examples), float32.

        Returns:
            float32 array of shape (replicates, rows).
        """
        return self.of_sums(scores.T, lambda sums: sums) / np.float32(self.examples)

    def of_sums(self, columns: np.ndarray, computed: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """What is computed of the sums of columns over each replicate's examples: (replicates, ...).

        Args:
            columns: (examples, columns), float32.
            computed: maps sums (some replicates, columns) to a row for each of these replicates.
        """
        columns = np.ascontiguousarray(columns)
        return self.of_counts(lambda counts: computed(counts.astype(np.float32) @ columns))

    def of_counts(self, computed: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """What is computed of how often each example occurs in each replicate: (replicates, ...).

        Args:
            computed: maps counts (some replicates, examples) to a row for each of these replicates.
        """
        return np.concatenate([computed(counts) for counts in self._counts()])

    def _counts(self) -> Iterator[np.ndarray]:
        """Counts of shape (up to CHUNK, examples); each row sums to the number of examples."""
        if self._kept:
            yield from self._kept
            return
        drawn = []
        rng = np.random.default_rng([self.seed, EXAMPLE_STREAM])
        for first in range(0, self.replicates, CHUNK):
            # no example is drawn more than 255 times: the probability is below 1e-500
            counts = _draw_counts(self.examples, min(CHUNK, self.replicates - first), rng).astype(np.uint8)
            if self.examples * self.replicates <= MAX_KEPT:
                drawn.append(counts)
            yield counts
        self._kept = drawn


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a difference.

    Args:
        scores: (seeds, examples); rows are brought into the order of their seeds.
        seeds: (init seed, data seed) of each row.
        draws: the resampled examples.
        known_means: makes `means` of what has them already, or of a metric whose scores have its mean only to
            first order; columns in the order of sorted seeds. Called each time, since most are cheap.

    Raises:
        SeedbedError: shapes that do not fit, a score that is not finite, a seed that occurs twice.
    """

    scores: np.ndarray
    seeds: Seeds
    draws: Draws
    known_means: Callable[[], np.ndarray] | None = None

    def __post_init__(self) -> None:
        scores = np.asarray(self.scores, dtype=np.float32)
        expected = (len(self.seeds), self.draws.examples)
        if scores.shape != expected or not self.seeds:
            raise SeedbedError(
                "scores do not fit the seeds and the examples",
                found=f"shape {scores.shape}, where {expected} was expected",
            )
        if not np.isfinite(scores).all():
            raise SeedbedError(
                "every score must be finite",
                found=f"{int((~np.isfinite(scores)).sum())} scores that are not",
                hint="a run without a result must be left out by name, not averaged over",
            )
        if len(set(self.seeds)) < len(self.seeds):
            raise SeedbedError("a pair of init seed and data seed occurs twice", found=sorted(self.seeds))
        order = sorted(range(len(self.seeds)), key=lambda row: self.seeds[row])
        object.__setattr__(self, "scores", scores[order])
        object.__setattr__(self, "seeds", tuple(tuple(self.seeds[row]) for row in order))

    @property
    def means(self) -> np.ndarray:
        """The mean score of each seed on each replicate's examples: (replicates, seeds), float32."""
        return self._drawn_means if self.known_means is None else self.known_means()

    @cached_property
    def _drawn_means(self) -> np.ndarray:
        return self.draws.means(self.scores)

    @cached_property
    def mean(self) -> float:
        """The mean score over all seeds and examples."""
        return float(self.scores.mean(dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Candidate:
    """A recipe that a side may choose on validation.

    Args:
        test: scores on the test examples.
        validation: scores of the selection metric on the validation examples, larger is better.
        tie_break: larger is better (the negated loss), on the same validation examples.
    """

    test: Side
    validation: Side
    tie_break: Side


def given(side: Side) -> list[Candidate]:
    """The candidates of a side whose recipe is given: one, which nothing chooses."""
    return [Candidate(side, side, side)]


@dataclass(frozen=True)
class Estimate:
    """A difference and what is known of it; whatever is not defined is None.

    Args:
        delta: mean of side a minus mean of side b; None where a side has none.
        low, high: the primary interval.
        p_value: the smallest level whose primary interval leaves zero out, two-sided.
        percentile_low, percentile_high: the interval as published (Sellam et al. 2022).
        given_low, given_high: the primary interval if the chosen recipes had been given; None where a side
            has one recipe.
        spread: where the variance comes from.
        scaled: makes the primary interval of any level.
    """

    delta: float | None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    percentile_low: float | None = None
    percentile_high: float | None = None
    given_low: float | None = None
    given_high: float | None = None
    spread: "Spread | None" = None
    scaled: "Scaled | None" = field(default=None, compare=False, repr=False)

    @property
    def standard_error(self) -> float | None:
        """Square root of the whole variance."""
        return None if self.spread is None else math.sqrt(self.spread.whole)

    @property
    def se_seeds(self) -> float | None:
        """Of `standard_error`, the part that more seeds would reduce."""
        return None if self.spread is None else math.sqrt(self.spread.of_seeds)

    @property
    def se_interaction(self) -> float | None:
        """Of `se_seeds`, the part from the interaction, which more test examples would reduce, too."""
        return None if self.spread is None else math.sqrt(self.spread.interaction)

    @property
    def se_examples(self) -> float | None:
        """The part that is left however many seeds are trained; 0 where it is estimated below that."""
        return None if self.spread is None else math.sqrt(self.spread.examples)


def choice(candidates: Sequence[Candidate]) -> int:
    """Index of the candidate that all seeds and validation examples choose, by the rule of `compare_best`."""
    validation = np.array([[candidate.validation.mean] for candidate in candidates])
    tie_break = np.array([[candidate.tie_break.mean] for candidate in candidates])
    return int(best_of(validation, tie_break)[0])


def choice_shares(candidates: Sequence[Candidate], seed: int) -> list[float]:
    """How often each candidate is the best on validation, over replicates that draw seeds and examples anew.

    A choice that replicates do not share is one that other seeds or other validation examples would not have
    made. Args and rule: see `compare_best`.
    """
    _check_candidates(candidates)
    side = candidates[0].validation
    weights = _seed_weights(side.seeds, side.draws.replicates, np.random.default_rng([seed, SEED_STREAM]))
    known = np.isfinite(weights).all(axis=1)  # the others have drawn no row of an incomplete crossing
    chosen = _chosen(candidates, weights, {side.draws: 0})[known]
    return [float(np.mean(chosen == index)) for index in range(len(candidates))]


def compare(
    a: Side, b: Side, *, paired: bool, confidence: float, seed: int, credit: float = CREDIT
) -> Estimate:
    """The difference mean(a) - mean(b) with its intervals over seeds and examples.

    The primary interval is that of the replicates' quantiles, with their deviations from their mean scaled to
    the half width of `Spread`; it always holds the difference.

    Args:
        a, b: the sides; tested on the same examples where they share their draws.
        paired: one draw of seeds serves both sides, whose rows of equal seeds belong together.
        confidence: level of both intervals, such as 0.95.
        seed: seed of the random numbers that draw seeds.
        credit: see `spread.CREDIT`.

    Returns:
        An estimate without any interval where a side has one seed or one example, which says nothing of
        others, or where nothing varies.

    Raises:
        SeedbedError: different numbers of replicates; paired sides that differ in seeds or examples.
    """
    return compare_best(given(a), given(b), paired=paired, confidence=confidence, seed=seed, credit=credit)


def describe(side: Side, *, confidence: float, seed: int) -> Estimate:
    """The mean of one side with its interval over seeds and examples, by the rule of `compare`.

    Args and what has no interval: see `compare`. There is no p, as no mean is asked to be zero.
    """
    table = side.scores.astype(np.float64)
    largest = max(1.0, float(np.abs(table).max()))
    spread = spread_of([(table, side.seeds)], variance_of_means([table.mean(axis=0)]), largest)
    if spread is None:
        return Estimate(side.mean)
    weights = _seed_weights(side.seeds, side.draws.replicates, np.random.default_rng([seed, SEED_STREAM]))
    scaled = Scaled(side.mean, _finite(_resampled(side, weights, 0)), spread)
    low, high = scaled.interval(confidence)
    return Estimate(side.mean, low, high, spread=spread, scaled=scaled)


def sd_on_new_examples(side: Side) -> float | None:
    """The standard deviation of the means of seeds if each had endless examples: sqrt(S_s^2 - S_sx^2 / m).

    What the test examples add to the differences between seeds is taken off (Jordan 2024, arXiv:2304.01910);
    0 where they explain all of it. None for one seed or one example.
    """
    if min(side.scores.shape) < 2:
        return None
    scores = side.scores.astype(np.float64)
    averaged = float(scores.mean(axis=1).var(ddof=1))
    single = float(scores.var(axis=0, ddof=1).mean())
    return math.sqrt(max(0.0, averaged - (single - averaged) / (scores.shape[1] - 1)))


def compare_best(
    a: Sequence[Candidate],
    b: Sequence[Candidate],
    *,
    paired: bool,
    confidence: float,
    seed: int,
    credit: float = CREDIT,
) -> Estimate:
    """The difference of two sides of which each has chosen its best recipe on validation.

    Each replicate draws seeds, validation examples and test examples, lets each side choose by the mean
    validation score over the drawn seeds (ties: the mean of tie_break, then the first), and takes the test
    difference of what was chosen; so the interval carries the choice. The difference itself is that of the
    choice on all data. Its spread is that of the chosen pair, plus what the choice adds.

    Args:
        a, b: at least one candidate each. Candidates of a side have the same seeds and the same examples.
        paired, confidence, seed, credit: see `compare`.

    Raises:
        SeedbedError: as `compare`, or a side whose candidates differ in seeds or examples.
    """
    sums = Sums([[a, b]] if paired else [[a], [b]], seed, credit)
    return sums.estimate((1, -1), confidence)


class Sums:
    """Weighted sums of points, each the score of the recipe that validation chooses for it.

    A difference is the sum of two points with the coefficients 1 and -1. The rule is that of `compare_best`,
    for any number of points.

    Args:
        groups: points, each with at least one candidate. The points of a group have the same seeds and the
            same examples, and one draw of seeds serves them all; each group has a draw of its own.
        seed: seed of the random numbers that draw seeds.
        credit: see `spread.CREDIT`.

    Raises:
        SeedbedError: candidates of a point, or points of a group, that differ in seeds or examples; different
            numbers of replicates.
    """

    def __init__(self, groups: Sequence[Sequence[Sequence[Candidate]]], seed: int, credit: float = CREDIT):
        self._points = [point for group in groups for point in group]
        for point in self._points:
            _check_candidates(point)
        self._chosen = [point[choice(point)].test for point in self._points]
        self._group_of_point = [place for place, group in enumerate(groups) for _ in group]
        self._seed, self._credit = seed, credit
        self._check()

    def _check(self) -> None:
        first_of_group: dict[int, Side] = {}
        for group, side in zip(self._group_of_point, self._chosen, strict=True):
            _check_pair(self._chosen[0], side, paired=False)
            _check_pair(first_of_group.setdefault(group, side), side, paired=True)

    @cached_property
    def means(self) -> np.ndarray:
        """The mean score of the chosen recipe of each point, (points,)."""
        return np.array([side.mean for side in self._chosen])

    @property
    def seeds(self) -> list[Seeds]:
        """The seeds of each point."""
        return [side.seeds for side in self._chosen]

    @property
    def replicates(self) -> np.ndarray:
        """The score of each point in each replicate, of the recipe that it chooses: (points, replicates)."""
        return np.stack([choices.replicates for choices in self._choices])

    def scaled(self, coefficients: Sequence[float]) -> "Scaled | None":
        """What makes the primary interval of a sum, at any level; None where the sum has no interval.

        Args:
            coefficients: one for each point.
        """
        spread = self._whole_spread(coefficients)
        if spread is None:
            return None
        return Scaled(self._sum_of_means(coefficients), _finite(self._resampled(coefficients)), spread)

    def estimate(self, coefficients: Sequence[float], confidence: float) -> Estimate:
        """The sum with its intervals.

        Args:
            coefficients: one for each point.
            confidence: level of the intervals.
        """
        total = self._sum_of_means(coefficients)
        spread = self._whole_spread(coefficients)
        if spread is None:
            return Estimate(total)
        found = _estimate(total, self._resampled(coefficients), spread, confidence)
        if all(len(point) == 1 for point in self._points):
            return found
        as_given = Scaled(total, _finite(self._resampled_as_given(coefficients)), replace(spread, choice=0.0))
        given_low, given_high = as_given.interval(confidence)
        return replace(found, given_low=given_low, given_high=given_high)

    def _sum_of_means(self, coefficients: Sequence[float]) -> float:
        return float(_weighted(coefficients, self._chosen, lambda side: side.mean))

    def _resampled(self, coefficients: Sequence[float]) -> np.ndarray:
        """The sum in each replicate, each point with the recipe that the replicate chooses."""
        return _weighted(coefficients, self._choices, lambda choices: choices.replicates)

    def _resampled_as_given(self, coefficients: Sequence[float]) -> np.ndarray:
        """The sum in each replicate, each point with the recipe that all data choose."""
        return _weighted(coefficients, self._as_given, lambda replicates: replicates)

    def _whole_spread(self, coefficients: Sequence[float]) -> Spread | None:
        """Where the variance of the sum comes from, the choice of recipes included."""
        spread = self._spread(coefficients)
        if spread is None or all(len(point) == 1 for point in self._points):
            return spread
        of_choice = _variance_of_choice(
            coefficients, self._choices, self._resampled_as_given(coefficients), spread
        )
        return replace(spread, choice=of_choice)

    def _spread(self, coefficients: Sequence[float]) -> Spread | None:
        """The same for the recipes as chosen."""
        counted = [place for place, coefficient in enumerate(coefficients) if coefficient]
        if not counted:
            return None
        by_group: dict[int, list[int]] = {}
        by_examples: dict[Draws, list[int]] = {}
        for place in counted:
            by_group.setdefault(self._group_of_point[place], []).append(place)
            by_examples.setdefault(self._chosen[place].draws, []).append(place)

        def summed(places: Sequence[int], values: Sequence[np.ndarray]) -> np.ndarray:
            return _weighted([coefficients[place] for place in places], places, lambda place: values[place])

        tables = [
            (summed(places, self._tables), self._chosen[places[0]].seeds) for places in by_group.values()
        ]
        means = [summed(places, self._example_means) for places in by_examples.values()]
        largest = max(1.0, *(float(np.abs(self._chosen[place].scores).max()) for place in counted))
        found = spread_of(tables, variance_of_means(means), largest)
        return None if found is None else replace(found, credit=self._credit)

    @cached_property
    def _tables(self) -> list[np.ndarray]:
        """Scores of the chosen recipe of each point, (seeds, examples) in double precision."""
        return [side.scores.astype(np.float64) for side in self._chosen]

    @cached_property
    def _example_means(self) -> list[np.ndarray]:
        return [side.scores.mean(axis=0, dtype=np.float64) for side in self._chosen]

    @cached_property
    def _weights(self) -> list[np.ndarray]:
        """The weights of the rows of each point, the same ones within a group."""
        rng = np.random.default_rng([self._seed, SEED_STREAM])
        of_group: dict[int, np.ndarray] = {}
        for group, side in zip(self._group_of_point, self._chosen, strict=True):
            if group not in of_group:
                of_group[group] = _seed_weights(side.seeds, side.draws.replicates, rng)
        return [of_group[group] for group in self._group_of_point]

    @cached_property
    def _choices(self) -> list["_Choices"]:
        firsts = [point[0] for point in self._points]
        offsets = _offsets(side.draws for first in firsts for side in (first.test, first.validation))
        return [
            _Choices.of(point, weights, offsets)
            for point, weights in zip(self._points, self._weights, strict=True)
        ]

    @cached_property
    def _as_given(self) -> list[np.ndarray]:
        """The score of each point in each replicate with the recipe that all data choose: (replicates,)."""
        offsets = _offsets(side.draws for side in self._chosen)
        return [
            _resampled(side, weights, offsets[side.draws])
            for side, weights in zip(self._chosen, self._weights, strict=True)
        ]


def _weighted(coefficients: Sequence[float], items: Sequence[T], value: Callable[[T], Any]) -> Any:
    """The sum of the values of items, each with its coefficient; those with the coefficient 0 are skipped."""
    terms = [
        coefficient * value(item)
        for coefficient, item in zip(coefficients, items, strict=True)
        if coefficient
    ]
    return functools.reduce(operator.add, terms)


# --- replicates ---------------------------------------------------------------------------------------------


def _draw_counts(size: int, replicates: int, rng: np.random.Generator) -> np.ndarray:
    """How often each of `size` things is drawn in `size` draws with replacement: (replicates, size).

    Multinomial with equal probabilities, by counting draws, which is faster than drawing counts.
    """
    drawn = rng.integers(0, size, (replicates, size), dtype=np.int32)
    drawn += (size * np.arange(replicates, dtype=np.int32))[:, None]
    return np.bincount(drawn.ravel(), minlength=replicates * size).reshape(replicates, size)


def _seed_weights(seeds: Seeds, replicates: int, rng: np.random.Generator) -> np.ndarray:
    """The weight of each row in each replicate: (replicates, rows), each row of weights sums to 1.

    Where init seeds and data seeds are crossed, both are drawn apart and a row weighs the product of its two
    counts; a replicate that draws none of the rows of an incomplete crossing is NaN.
    """
    if not is_crossed(seeds):
        counts = _draw_counts(len(seeds), replicates, rng)
    else:
        inits, init_of_row, datas, data_of_row = levels_of(seeds)
        init_counts = _draw_counts(len(inits), replicates, rng)
        data_counts = _draw_counts(len(datas), replicates, rng)
        counts = init_counts[:, init_of_row] * data_counts[:, data_of_row]
    totals = counts.sum(axis=1, keepdims=True).astype(np.float32)
    totals[totals == 0] = np.nan
    return counts.astype(np.float32) / totals


def _offsets(draws: Iterator[Draws]) -> dict[Draws, int]:
    """By how many replicates each set of draws is shifted.

    Different examples must be drawn independently, but two test sets of one size and one seed have the same
    draws; shifted, replicate k of the one meets replicate k - 1 of the other.
    """
    return {one: offset for offset, one in enumerate(dict.fromkeys(draws))}


def _resampled(side: Side, weights: np.ndarray, offset: int) -> np.ndarray:
    """Mean score of the side in each replicate: (replicates,)."""
    means = np.roll(side.means, offset, axis=0) if offset else side.means
    return np.einsum("rs,rs->r", weights, means)


@dataclass(frozen=True, eq=False)
class _Choices:
    """What one side chooses in each replicate.

    Attributes:
        chosen: index of the candidate, (replicates,).
        tested: resampled test score of each candidate, (candidates, replicates).
        means: test score of each candidate on all seeds and examples.
    """

    chosen: np.ndarray
    tested: np.ndarray
    means: np.ndarray

    @classmethod
    def of(
        cls, candidates: Sequence[Candidate], weights: np.ndarray, offsets: dict[Draws, int]
    ) -> "_Choices":
        tested = _resampled_all([candidate.test for candidate in candidates], weights, offsets)
        chosen = (
            np.zeros(tested.shape[1], dtype=int)
            if len(candidates) == 1
            else _chosen(candidates, weights, offsets)
        )
        return cls(chosen, tested, np.array([candidate.test.mean for candidate in candidates]))

    @cached_property
    def replicates(self) -> np.ndarray:
        """Test score, in each replicate, of the candidate that its validation scores choose."""
        return self._of_chosen(self.tested)

    def errors(self, shift: int) -> np.ndarray:
        """How far the score of what a replicate chose is off in another one, `shift` replicates away."""
        return self._of_chosen(np.roll(self._deviations, shift, axis=1))

    def expected_errors(self, shift: int) -> np.ndarray:
        """The mean of `errors` over the choices of all replicates, for each of the other replicates."""
        shares = np.bincount(self.chosen, minlength=len(self.means)) / len(self.chosen)
        return np.roll(shares @ self._deviations, shift)

    @cached_property
    def _deviations(self) -> np.ndarray:
        """The test score of each candidate in each replicate, less its mean: (candidates, replicates)."""
        return self.tested - np.nanmean(self.tested, axis=1, keepdims=True)

    def _of_chosen(self, values: np.ndarray) -> np.ndarray:
        """The value of the chosen candidate in each replicate; values (candidates, replicates)."""
        return np.take_along_axis(values, self.chosen[None], axis=0)[0]


def _variance_of_choice(
    coefficients: Sequence[float], points: Sequence[_Choices], fixed: np.ndarray, spread: Spread
) -> float:
    """What the choice of each point adds to the variance of a weighted sum, by the law of total variance.

    It is the variance of the true sum over the choices. That of the observed sums also holds the error of
    each, which independent replicates tell and which is taken off. Half of the rest counts: replicates vary
    around observed validation scores, which vary themselves.
    """
    observed = _weighted(coefficients, points, lambda point: point.means[point.chosen])
    if observed.min() == observed.max():
        return 0.0
    shift = len(observed) // 2
    error = _weighted(coefficients, points, lambda point: point.errors(shift))
    error = error - _weighted(coefficients, points, lambda point: point.expected_errors(shift))
    known = np.isfinite(error)
    scale = spread.whole / np.nanvar(fixed)
    return max(0.0, float(np.var(observed[known]) - scale * np.mean(error[known] ** 2))) / 2


def _chosen(candidates: Sequence[Candidate], weights: np.ndarray, offsets: dict[Draws, int]) -> np.ndarray:
    """Index of the candidate that each replicate's validation scores choose: (replicates,)."""
    return best_of(
        _resampled_all([candidate.validation for candidate in candidates], weights, offsets),
        _resampled_all([candidate.tie_break for candidate in candidates], weights, offsets),
    )


def _resampled_all(sides: list[Side], weights: np.ndarray, offsets: dict[Draws, int]) -> np.ndarray:
    """Mean score of each side in each replicate: (sides, replicates)."""
    return np.stack([_resampled(side, weights, offsets[side.draws]) for side in sides])


def best_of(validation: np.ndarray, tie_break: np.ndarray) -> np.ndarray:
    """Index of the best of the candidates in each replicate: the largest validation score, of those within
    TIE of it the largest tie-break, of equals the first. Both arguments (candidates, replicates), finite."""
    best = validation.max(axis=0)
    tied = validation >= best - TIE * np.maximum(1, np.abs(best))
    return np.where(tied, tie_break, -np.inf).argmax(axis=0)


def _estimate(delta: float, replicates: np.ndarray, spread: Spread, confidence: float) -> Estimate:
    """Both intervals, and p by inverting the primary one."""
    replicates = _finite(replicates)
    scaled = Scaled(delta, replicates, spread)
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    percentile_low, percentile_high = np.quantile(replicates, tails)
    low, high = scaled.interval(confidence)
    return Estimate(
        delta=delta,
        low=low,
        high=high,
        p_value=scaled.p_value,
        percentile_low=float(percentile_low),
        percentile_high=float(percentile_high),
        spread=spread,
        scaled=scaled,
    )


def _finite(replicates: np.ndarray) -> np.ndarray:
    """The replicates that drew a run, in order."""
    return np.sort(replicates[np.isfinite(replicates)].astype(np.float64))


@dataclass(frozen=True, eq=False)
class Scaled:
    """Replicates with their shape, scaled to the half width of a spread.

    Attributes:
        delta: the difference, which every interval holds.
        replicates: in order, finite.
        spread: see `Spread`.
    """

    delta: float
    replicates: np.ndarray
    spread: Spread

    def interval(self, confidence: float) -> tuple[float, float]:
        """The interval of this level."""
        scale = self.spread.half_width(confidence) / normal(confidence)
        low, high = (self.delta + scale * end for end in self._standard_ends(confidence))
        return min(self.delta, low), max(self.delta, high)

    def with_credit(self) -> "Scaled":
        """The same for seeds whose number was fixed before."""
        return replace(self, spread=replace(self.spread, credit=CREDIT))

    def _standard_ends(self, confidence: float) -> tuple[float, float]:
        """Both quantiles of the replicates in standard deviations from their mean; beyond the last few as far
        as a normal distribution's."""
        most = max(0.5, 1 - 2 * REPLICATES_IN_A_TAIL / len(self._standard))
        inner = min(confidence, most)
        beyond = normal(confidence) / normal(inner)
        return self._quantile((1 - inner) / 2) * beyond, self._quantile((1 + inner) / 2) * beyond

    def _quantile(self, share: float) -> float:
        """As numpy's, of values in order: p asks for it at a hundred levels."""
        place = share * (len(self._standard) - 1)
        below = int(place)
        first, second = self._standard[below], self._standard[min(below + 1, len(self._standard) - 1)]
        return float(first + (place - below) * (second - first))

    @cached_property
    def _standard(self) -> np.ndarray:
        """The replicates in standard deviations from their mean, in order; zeros where they do not vary."""
        deviations = self.replicates - self.replicates.mean()
        sd = deviations.std()
        return deviations / sd if sd else 0 * deviations

    @property
    def p_value(self) -> float:
        """The smallest level, 1 - confidence, whose interval leaves zero out."""

        def leaves_out(level: float) -> bool:
            low, high = self.interval(1 - level)
            return low > 0 or high < 0

        return _smallest_level(leaves_out, 1.0)

    def equivalence_p(self, margin: float) -> float:
        """The smallest level at which two one-sided tests reject a difference beyond ±margin: the interval of
        1 - twice the level lies within the margin (Schuirmann 1987). 1 where the difference does not."""

        def lies_within(level: float) -> bool:
            low, high = self.interval(1 - 2 * level)
            return -margin < low and high < margin

        return _smallest_level(lies_within, 0.5)


def _smallest_level(rejects: Callable[[float], bool], most: float) -> float:
    """The smallest level from SMALLEST_P to `most` that rejects; 1 where none does."""
    least, most = SMALLEST_P, most - 1e-9
    if not rejects(most):
        return 1.0
    if rejects(least):
        return least
    while most / least > 1 + 1e-6:
        middle = math.sqrt(least * most)
        least, most = (least, middle) if rejects(middle) else (middle, most)
    return most


# --- checks -------------------------------------------------------------------------------------------------


def _check_pair(a: Side, b: Side, paired: bool) -> None:
    if a.draws.replicates != b.draws.replicates:
        raise SeedbedError(
            "both sides need the same number of replicates",
            found=f"{a.draws.replicates} and {b.draws.replicates}",
        )
    if paired and (a.seeds != b.seeds or a.draws is not b.draws):
        raise SeedbedError(
            "paired sides need the same seeds and the same examples",
            found=f"seeds {list(a.seeds)} and {list(b.seeds)}",
        )


def _check_candidates(candidates: Sequence[Candidate]) -> None:
    if not candidates:
        raise SeedbedError("a side needs a candidate to choose")
    first = candidates[0]
    for candidate in candidates:
        sides = (candidate.test, candidate.validation, candidate.tie_break)
        same_draws = (
            candidate.test.draws is first.test.draws
            and candidate.validation.draws is candidate.tie_break.draws is first.validation.draws
        )
        if any(side.seeds != first.test.seeds for side in sides) or not same_draws:
            raise SeedbedError(
                "the candidates of a side need the same seeds and the same examples",
                found=[list(side.seeds) for side in sides],
            )
    if first.test.draws.replicates != first.validation.draws.replicates:
        raise SeedbedError(
            "test and validation need the same number of replicates",
            found=f"{first.test.draws.replicates} and {first.validation.draws.replicates}",
        )
