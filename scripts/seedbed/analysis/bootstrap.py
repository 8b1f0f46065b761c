"""The Multi-Bootstrap: intervals of a difference over training seeds and test examples together.

After Sellam et al. (2022, arXiv:2106.16163): each replicate draws seeds and examples anew, with replacement.
Two intervals come of it. The percentile interval is the published one; with few seeds it is too narrow, since
n resampled seeds have (n - 1) / n of the variance that they should have, and since quantiles do not know that
the spread itself was estimated from n seeds. The primary interval stretches the same replicates by both, and
is never narrower than the published one.

Scores are one number for each seed and example: 1 for right and 0 for wrong, a difference of two such, or any
other metric that is averaged over examples. Results have the unit of the scores.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from seedbed.analysis.statistics import t_quantile
from seedbed.core.errors import SeedbedError

# Replicates that are drawn and multiplied at a time: what fits into a processor's cache.
CHUNK = 250
# Counts of examples that are kept between cells, in bytes; beyond it they are drawn anew for each cell.
MAX_KEPT = 512 * 2**20
# Mean validation scores that are closer than this are tied: float32 tells no smaller difference.
TIE = 1e-6
# Each purpose draws from its own stream of random numbers.
EXAMPLE_STREAM, SEED_STREAM = 0, 1

Seeds = tuple[tuple[int, int], ...]
# A part of a variance, one value a column of what it was computed from, and its degrees of freedom.
Term = tuple[np.ndarray, int]


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
        columns = np.ascontiguousarray(scores.T)
        sums = [counts.astype(np.float32) @ columns for counts in self._counts()]
        return np.concatenate(sums) / np.float32(self.examples)

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
        known_means: makes `means` of what has them already, rows in the order of sorted seeds; made anew
            each time, since it is cheap and there may be many such sides.

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


@dataclass(frozen=True)
class Estimate:
    """A difference and what is known of it; whatever is not defined is None.

    Args:
        delta: mean of side a minus mean of side b; None where a side has none.
        low, high: the primary interval.
        percentile_low, percentile_high: the interval as published (Sellam et al. 2022).
        standard_error: square root of se_seeds^2 + se_examples^2.
        se_seeds: the part that more seeds would reduce.
        se_examples: the part that is left however many seeds are trained; 0 where it is estimated below that.
        se_examples_upper: the same from a variance one standard error above its estimate. Planning should not
            believe in less: few seeds tell little of this part, and an estimate of 0 does not make it 0.
        degrees: degrees of freedom of the standard error (Satterthwaite 1946).
    """

    delta: float | None
    low: float | None = None
    high: float | None = None
    percentile_low: float | None = None
    percentile_high: float | None = None
    standard_error: float | None = None
    se_seeds: float | None = None
    se_examples: float | None = None
    se_examples_upper: float | None = None
    degrees: float | None = None


@dataclass(frozen=True)
class _Error:
    """Variances of a difference, the standard error of that of examples, and the degrees of freedom of their
    sum."""

    seeds: float
    examples: float
    examples_error: float
    degrees: float

    @property
    def standard_error(self) -> float:
        return math.sqrt(self.seeds + self.examples)


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


def seed_error(values: Sequence[float], seeds: Seeds) -> tuple[float, float] | None:
    """Standard error of the mean over seeds and its degrees of freedom; None for one seed and without spread.

    Where init seeds and data seeds are crossed, runs that share one are not independent: the error is then
    that of `_seed_terms`, with degrees of freedom after Satterthwaite (1946).
    """
    if len(seeds) < 2:
        return None
    order = sorted(range(len(seeds)), key=lambda index: seeds[index])
    column = np.array([[values[index]] for index in order], dtype=np.float64)
    terms = _design_terms(column, tuple(seeds[index] for index in order))
    variance = sum(value for value, _ in terms)
    if variance <= 1e-24 * max(1.0, float(np.abs(column).max())) ** 2:
        return None
    degrees = variance**2 / sum(value**2 / degrees for value, degrees in terms)
    return math.sqrt(variance), max(degrees, min(degrees for _, degrees in terms))


def compare(a: Side, b: Side, *, paired: bool, confidence: float, seed: int) -> Estimate:
    """The difference mean(a) - mean(b) with its intervals over seeds and examples.

    The replicates' deviations from their mean are stretched by t(nu) / z * SE / sd(replicates), where that is
    more than one; the primary interval is that of their quantiles, and always holds the difference. See
    `_standard_error` for SE and nu.

    Args:
        a, b: the sides; tested on the same examples where they share their draws.
        paired: one draw of seeds serves both sides, whose rows of equal seeds belong together.
        confidence: level of both intervals, such as 0.95.
        seed: seed of the random numbers that draw seeds.

    Returns:
        An estimate without any interval where a side has one seed or one example, which says nothing of
        others, or where nothing varies.

    Raises:
        SeedbedError: different numbers of replicates; paired sides that differ in seeds or examples.
    """
    _check_pair(a, b, paired)
    delta = a.mean - b.mean
    error = _standard_error(a, b, paired)
    if error is None:
        return Estimate(delta)
    weights = _weights_of_sides(a.seeds, b.seeds, a.draws.replicates, paired, seed)
    replicates = _resampled_difference(a, b, weights)
    return _estimate(delta, replicates, replicates, error, confidence)


def compare_best(
    a: Sequence[Candidate], b: Sequence[Candidate], *, paired: bool, confidence: float, seed: int
) -> Estimate:
    """The difference of two sides of which each has chosen its best recipe on validation.

    Each replicate draws seeds, validation examples and test examples, lets each side choose by the mean
    validation score over the drawn seeds (ties: the mean of tie_break, then the first), and takes the test
    difference of what was chosen; so the interval carries the choice. The difference itself is that of the
    choice on all data. Its standard error, parts and degrees of freedom are those of that pair held fixed,
    and so is the factor by which the replicates are stretched.

    Args:
        a, b: at least one candidate each. Candidates of a side have the same seeds and the same examples.
        paired, confidence, seed: see `compare`.

    Raises:
        SeedbedError: as `compare`, or a side whose candidates differ in seeds or examples.
    """
    for candidates in (a, b):
        _check_candidates(candidates)
    chosen_a, chosen_b = (candidates[choice(candidates)].test for candidates in (a, b))
    _check_pair(chosen_a, chosen_b, paired)
    delta = chosen_a.mean - chosen_b.mean
    error = _standard_error(chosen_a, chosen_b, paired)
    if error is None:
        return Estimate(delta)
    weights = _weights_of_sides(chosen_a.seeds, chosen_b.seeds, chosen_a.draws.replicates, paired, seed)
    offsets = _offsets(side.draws for group in (a, b) for side in (group[0].test, group[0].validation))
    left, right = (
        _resampled_choice(group, side_weights, offsets)
        for group, side_weights in zip((a, b), weights, strict=True)
    )
    fixed = _resampled_difference(chosen_a, chosen_b, weights)
    return _estimate(delta, left - right, fixed, error, confidence)


# --- replicates ---------------------------------------------------------------------------------------------


def _draw_counts(size: int, replicates: int, rng: np.random.Generator) -> np.ndarray:
    """How often each of `size` things is drawn in `size` draws with replacement: (replicates, size).

    Multinomial with equal probabilities, by counting draws, which is faster than drawing counts.
    """
    drawn = rng.integers(0, size, (replicates, size), dtype=np.int32)
    drawn += (size * np.arange(replicates, dtype=np.int32))[:, None]
    return np.bincount(drawn.ravel(), minlength=replicates * size).reshape(replicates, size)


def _levels(seeds: Seeds) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Distinct init seeds, the index of each row's; the same of data seeds."""
    inits, init_of_row = np.unique([init for init, _ in seeds], return_inverse=True)
    datas, data_of_row = np.unique([data for _, data in seeds], return_inverse=True)
    return inits, init_of_row, datas, data_of_row


def is_crossed(seeds: Seeds) -> bool:
    """Whether two init seeds or more and two data seeds or more share rows, so that each varies apart."""
    inits, _, datas, _ = _levels(seeds)
    fewest, most = sorted((len(inits), len(datas)))
    return fewest > 1 and (fewest < len(seeds) or most < len(seeds))


def _seed_weights(seeds: Seeds, replicates: int, rng: np.random.Generator) -> np.ndarray:
    """The weight of each row in each replicate: (replicates, rows), each row of weights sums to 1.

    Where init seeds and data seeds are crossed, both are drawn apart and a row weighs the product of its two
    counts; a replicate that draws none of the rows of an incomplete crossing is NaN.
    """
    if not is_crossed(seeds):
        counts = _draw_counts(len(seeds), replicates, rng)
    else:
        inits, init_of_row, datas, data_of_row = _levels(seeds)
        init_counts = _draw_counts(len(inits), replicates, rng)
        data_counts = _draw_counts(len(datas), replicates, rng)
        counts = init_counts[:, init_of_row] * data_counts[:, data_of_row]
    totals = counts.sum(axis=1, keepdims=True).astype(np.float32)
    totals[totals == 0] = np.nan
    return counts.astype(np.float32) / totals


def _weights_of_sides(
    seeds_a: Seeds, seeds_b: Seeds, replicates: int, paired: bool, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the rows of both sides, the same ones where they are paired."""
    rng = np.random.default_rng([seed, SEED_STREAM])
    weights = _seed_weights(seeds_a, replicates, rng)
    return weights, weights if paired else _seed_weights(seeds_b, replicates, rng)


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


def _resampled_difference(a: Side, b: Side, weights: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The difference of the sides in each replicate: (replicates,)."""
    offsets = _offsets(iter((a.draws, b.draws)))
    return _resampled(a, weights[0], offsets[a.draws]) - _resampled(b, weights[1], offsets[b.draws])


def _resampled_choice(
    candidates: Sequence[Candidate], weights: np.ndarray, offsets: dict[Draws, int]
) -> np.ndarray:
    """Test score, in each replicate, of the candidate that the replicate's validation scores choose."""
    if len(candidates) == 1:
        return _resampled(candidates[0].test, weights, offsets[candidates[0].test.draws])
    tested = _resampled_all([candidate.test for candidate in candidates], weights, offsets)
    return np.take_along_axis(tested, _chosen(candidates, weights, offsets)[None], axis=0)[0]


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


def _estimate(
    delta: float, replicates: np.ndarray, fixed: np.ndarray, error: _Error, confidence: float
) -> Estimate:
    """Both intervals. `fixed` are the replicates without any choice, against which SE is measured."""
    replicates, fixed = (values[np.isfinite(values)].astype(np.float64) for values in (replicates, fixed))
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    factor = t_quantile(confidence, error.degrees) / special.ndtri(tails[1])
    # never narrower than what is published: with few seeds, the estimated error is sometimes far too small
    stretch = max(1.0, factor * error.standard_error / fixed.std())
    low, high = np.quantile(replicates, tails)
    centre = replicates.mean()
    return Estimate(
        delta=delta,
        low=min(delta, float(centre + stretch * (low - centre))),
        high=max(delta, float(centre + stretch * (high - centre))),
        percentile_low=float(low),
        percentile_high=float(high),
        standard_error=error.standard_error,
        se_seeds=math.sqrt(error.seeds),
        se_examples=math.sqrt(error.examples),
        se_examples_upper=math.sqrt(error.examples + error.examples_error),
        degrees=error.degrees,
    )


# --- the standard error -------------------------------------------------------------------------------------


def _standard_error(a: Side, b: Side, paired: bool) -> _Error | None:
    """The variance of the difference if both seeds and examples were drawn anew; None where it has none.

    From the random-effects analysis of the table of seeds and examples (Searle et al. 1992, ch. 4): with
    S_s^2 the variance of the seeds' means, S_x^2 that of the examples' means and S_sx^2 the mean square of
    their interaction, the variance of the mean of n seeds and m examples is
    S_s^2 / n + S_x^2 / m - S_sx^2 / (n m). The first term is the seeds' part; the other two, not less than
    zero, are the examples'. Degrees of freedom after Satterthwaite (1946).
    """
    if min(len(a.seeds), len(b.seeds), a.draws.examples, b.draws.examples) < 2:
        return None
    if paired:
        tables = [(a.scores.astype(np.float64) - b.scores, a.seeds)]
    else:
        tables = [(side.scores.astype(np.float64), side.seeds) for side in (a, b)]
    interactions = [_interaction(scores, seeds) for scores, seeds in tables]
    seed_terms = [
        term
        for (scores, seeds), interaction in zip(tables, interactions, strict=True)
        for term in _floored_terms(scores, seeds, interaction)
    ]
    example_terms = _example_terms(a, b)
    over_seeds = sum(value for value, _ in seed_terms)
    over_examples = sum(value for value, _ in example_terms) - sum(value for value, _ in interactions)
    terms = seed_terms + (example_terms + interactions if over_examples > 0 else [])
    over_examples = max(0.0, over_examples)
    total = over_seeds + over_examples
    # what rounding leaves of equal scores is no spread
    if total < 1e-18 * max(1.0, float(np.abs(a.scores).max()), float(np.abs(b.scores).max())) ** 2:
        return None
    degrees = total**2 / sum(value**2 / degrees for value, degrees in terms)
    # where terms nearly cancel, the formula falls below the degrees of every one of them, which is absurd
    degrees = max(degrees, min(degrees for _, degrees in seed_terms))
    # a mean square with d degrees of freedom has the variance 2 / d of its square
    examples_error = math.sqrt(sum(2 * value**2 / degrees for value, degrees in example_terms + interactions))
    return _Error(over_seeds, over_examples, examples_error, degrees)


def _example_terms(a: Side, b: Side) -> list[tuple[float, int]]:
    """S_x^2 / m of the difference of example means, or of each side's where the examples are not shared."""
    means = [side.scores.mean(axis=0, dtype=np.float64) for side in (a, b)]
    if a.draws is b.draws:
        means = [means[0] - means[1]]
    return [(float(values.var(ddof=1)) / len(values), len(values) - 1) for values in means]


def _seed_terms(values: np.ndarray, seeds: Seeds) -> list[Term]:
    """Terms that sum to the variance of the mean over seeds, for each column of `values` (rows, columns).

    Seeds that are not crossed: S^2 / n. Crossed, and each init seed with each data seed: the two-way analysis
    of init seeds and data seeds, by the formula of `_standard_error`. An incomplete crossing: the sum of the
    variances clustered by init seed and by data seed (Cameron, Gelbach and Miller 2011, without what they
    subtract, so too large rather than too small).
    """
    rows = len(seeds)
    if not is_crossed(seeds):
        return [(values.var(axis=0, ddof=1) / rows, rows - 1)]
    inits, init_of_row, datas, data_of_row = _levels(seeds)
    centred = values - values.mean(axis=0)
    clustered = [
        (_clustered(centred, init_of_row, len(inits)), len(inits) - 1),
        (_clustered(centred, data_of_row, len(datas)), len(datas) - 1),
    ]
    if rows < len(inits) * len(datas):
        return clustered
    degrees = (len(inits) - 1) * (len(datas) - 1)
    # rows are in the order of (init seed, data seed)
    table = centred.reshape(len(inits), len(datas), -1)
    residuals = table - table.mean(axis=0, keepdims=True) - table.mean(axis=1, keepdims=True)
    return [*clustered, (-(residuals**2).sum(axis=(0, 1)) / degrees / rows, degrees)]


def _clustered(centred: np.ndarray, cluster_of_row: np.ndarray, clusters: int) -> np.ndarray:
    """Variance of the mean of rows in clusters, for each column: S^2 / clusters if all are of one size."""
    sums = np.zeros((clusters, centred.shape[1]))
    np.add.at(sums, cluster_of_row, centred)
    return (sums**2).sum(axis=0) * clusters / (clusters - 1) / len(centred) ** 2


def _floored_terms(
    scores: np.ndarray, seeds: Seeds, interaction: tuple[float, int]
) -> list[tuple[float, int]]:
    """The terms of the seeds' part, of the means over examples.

    The part is no less than the interaction, which is in the means of seeds whether seeds differ or not:
    there the variance of seeds counts as zero, and both are pooled (Searle et al. 1992, ch. 4). Without that,
    a few seeds that agree by chance would pass for precision.
    """
    terms = _design_terms(scores.mean(axis=1, keepdims=True), seeds)
    value, degrees = interaction
    if sum(term for term, _ in terms) >= value:
        return terms
    return [(value, degrees + len(seeds) - 1)]


def _design_terms(column: np.ndarray, seeds: Seeds) -> list[tuple[float, int]]:
    """The terms of `_seed_terms` of one column (rows, 1), no less than the largest of them: a variance of
    init seeds or of data seeds that is estimated below zero counts as zero."""
    terms = [(float(value[0]), degrees) for value, degrees in _seed_terms(column, seeds)]
    largest = max(terms)
    return terms if sum(value for value, _ in terms) >= largest[0] else [largest]


def _summed(terms: Sequence[tuple[np.ndarray, int]]) -> np.ndarray:
    """The sum of the variances."""
    return np.asarray(sum(value for value, _ in terms))


def _interaction(scores: np.ndarray, seeds: Seeds) -> tuple[float, int]:
    """S_sx^2 / (n m), and its degrees of freedom.

    The variance over seeds at a single example holds the whole interaction, that of the means over m examples
    one m-th of it: their difference tells it, for any design of seeds.
    """
    examples = scores.shape[1]
    single = _summed(_seed_terms(scores, seeds)).mean()
    averaged = _summed(_seed_terms(scores.mean(axis=1, keepdims=True), seeds))[0]
    return float(single - averaged) / (examples - 1), (len(seeds) - 1) * (examples - 1)


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
