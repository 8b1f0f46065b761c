"""Statistics over seeds and over examples: pure functions, without any file or framework.

Values are fractions (accuracy 0.794) or in any other unit; results have the unit of what was given. What is
not defined, such as the spread of one value, is None and never zero. NaN and infinity among the values are
errors: nothing here averages around a hole. Only NumPy and scipy.special are imported, as they load fast.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
import scipy

from seedbed.core.errors import SeedbedError

# Largest number of subsets that is enumerated one by one, and of cells in the table that counts subset sums.
MAX_SUBSETS = 1 << 20
MAX_CELLS = 50_000_000
# Accuracies are k / (number of examples): a denominator up to this is recognised in a float.
MAX_DENOMINATOR = 100_000
# Confidences are float32: one printed as 0.6 may be this much above it.
FLOAT32 = 1e-6
# Examples of a bin of confidences up to which chance is counted exactly.
EXACT_BIN = 200

Bounds = tuple[float, float]


# --- one group of values ------------------------------------------------------------------------------------


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean of at least one finite value.

    Raises:
        SeedbedError: no value, or one that is not finite.
    """
    return float(np.mean(finite_values(values)))


def median(values: Sequence[float]) -> float:
    """Median; the mean of the two middle values where their number is even."""
    return float(np.median(finite_values(values)))


def sample_sd(values: Sequence[float]) -> float | None:
    """Sample standard deviation (divisor n - 1); None for a single value."""
    checked = finite_values(values)
    if len(checked) < 2:
        return None
    spread = float(np.std(checked, ddof=1))
    # what rounding leaves of equal values is no spread
    return spread if spread > 1e-12 * max(1.0, float(np.abs(checked).max())) else 0.0


def iqm(values: Sequence[float]) -> float | None:
    """Interquartile mean: the mean without the floor(n / 4) smallest and the floor(n / 4) largest values.

    This is scipy.stats.trim_mean(values, 0.25), whole values and no weights. Recommended for few runs by
    Agarwal et al. (2021, arXiv:2108.13264). None for fewer than 4 values, of which it is the mean.
    """
    ordered = np.sort(finite_values(values))
    cut = len(ordered) // 4
    return float(np.mean(ordered[cut : len(ordered) - cut])) if cut else None


def t_interval(values: Sequence[float], confidence: float) -> Bounds | None:
    """Student's t interval of the mean: mean ± t(n - 1) sd / sqrt(n); None for a single value, and
    for values without spread, which say nothing of how far another would lie.

    Given the differences of pairs it is the interval of a paired t test (Student 1908).
    """
    spread = sample_sd(values)
    if not spread:
        return None
    half = t_quantile(confidence, len(values) - 1) * spread / math.sqrt(len(values))
    centre = mean(values)
    return centre - half, centre + half


def t_quantile(confidence: float, degrees: float) -> float:
    """The two-sided critical value of Student's t: P(|T| <= value) = confidence."""
    return float(scipy.special.stdtrit(degrees, 0.5 + confidence / 2))


def expected_best(values: Sequence[float], n: int) -> float:
    """Expected maximum of n of the values, drawn without replacement: an unbiased estimate of that of n new
    draws (Tang et al. 2020, arXiv:2004.13990; Dodge et al. 2021, arXiv:2110.00613). Of all values it is the
    maximum.

    Raises:
        SeedbedError: n is below 1, or above the number of values, whose best they do not tell.
    """
    ordered = np.sort(finite_values(values))
    return float(ordered @ _maximum_probabilities(len(ordered), n))


def expected_best_sd(values: Sequence[float], n: int) -> float:
    """Standard deviation of the maximum of n of the values; see `expected_best`."""
    ordered = np.sort(finite_values(values))
    deviations = ordered - expected_best(values, n)
    return float(math.sqrt(deviations**2 @ _maximum_probabilities(len(ordered), n)))


def _maximum_probabilities(count: int, n: int) -> np.ndarray:
    """Probability that the k-th smallest of `count` values is the maximum of n of them, for each k."""
    if not 1 <= n <= count:
        raise SeedbedError(f"the best of n needs n values, and n of 1 or more, of {count}", found=n)
    below = np.arange(count)  # values smaller than the k-th, of which the others are drawn
    return scipy.special.comb(below, n - 1) / scipy.special.comb(count, n)


# --- two groups ---------------------------------------------------------------------------------------------


def welch_interval(a: Sequence[float], b: Sequence[float], confidence: float) -> Bounds | None:
    """Welch's t interval of mean(a) - mean(b), variances unequal; None unless both have two values or
    more, and where neither side has any spread.

    Degrees of freedom after Welch (1947) and Satterthwaite (1946).
    """
    error = _welch_error(a, b)
    if error is None:
        return None
    standard_error, degrees = error
    difference = mean(a) - mean(b)
    half = t_quantile(confidence, degrees) * standard_error
    return difference - half, difference + half


def t_p(difference: float, standard_error: float, degrees: float) -> float:
    """Two-sided p of Student's t test of no difference, of this error and its degrees of freedom."""
    return 2 * float(scipy.special.stdtr(degrees, -abs(difference) / standard_error))


def equivalence_p(difference: float, standard_error: float, degrees: float, margin: float) -> float:
    """p of two one-sided t tests that the true one lies within ±margin: the larger one (Schuirmann 1987).

    Args:
        difference: what was observed.
        standard_error: its standard error, over whatever it is meant to hold for.
        degrees: degrees of freedom of that error.
        margin: in the unit of the difference.
    """
    above_lower = float(scipy.special.stdtr(degrees, -(difference + margin) / standard_error))
    below_upper = float(scipy.special.stdtr(degrees, (difference - margin) / standard_error))
    return max(above_lower, below_upper)


def _welch_error(a: Sequence[float], b: Sequence[float]) -> tuple[float, float] | None:
    """Standard error of mean(a) - mean(b) and its degrees of freedom."""
    spread_a, spread_b = sample_sd(a), sample_sd(b)
    if spread_a is None or spread_b is None or spread_a == spread_b == 0:
        return None
    part_a, part_b = spread_a**2 / len(a), spread_b**2 / len(b)
    variance = part_a + part_b
    return math.sqrt(variance), variance**2 / (part_a**2 / (len(a) - 1) + part_b**2 / (len(b) - 1))


# --- examples of one test set -------------------------------------------------------------------------------


def binomial_se(share: float, examples: int) -> float:
    """Standard error of a share over independent examples: sqrt(p (1 - p) / n)."""
    return math.sqrt(share * (1 - share) / examples)


def one_sided_normal(confidence: float) -> float:
    """The quantile of the normal distribution for a one-sided bound, 1.64 at 0.95."""
    return float(scipy.special.ndtri(confidence))


def bound_of_mean(scores: np.ndarray, confidence: float) -> float:
    """The one-sided lower bound of a mean: less its standard error times the quantile of the normal one.

    Args:
        scores: (examples,), computed in float64.
        confidence: of the bound.
    """
    scores = scores.astype(np.float64)
    error = float(scores.std()) / np.sqrt(len(scores))
    return float(scores.mean()) - one_sided_normal(confidence) * error


def wilson_lower(successes: int, examples: int, confidence: float) -> float:
    """One-sided lower Wilson bound: with the given confidence the true share is larger."""
    centre, half = _wilson(successes, examples, float(scipy.special.ndtri(confidence)))
    return max(0.0, centre - half)


def _wilson(successes: int, examples: int, z: float) -> tuple[float, float]:
    share = successes / examples
    scale = 1 + z * z / examples
    centre = (share + z * z / (2 * examples)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / examples + z * z / (4 * examples**2))
    return centre, half


def mcnemar_p(only_a: int, only_b: int) -> float:
    """Two-sided p of the exact McNemar test (McNemar 1947): of the examples that one side alone gets right,
    each side has half under equality. 1 where there are none.
    """
    fewer, total = min(only_a, only_b), only_a + only_b
    # half of the ways or more are no more extreme: 1, which rounding would miss
    return 1.0 if 2 * fewer + 1 >= total else 2 * float(scipy.special.bdtr(fewer, total, 0.5))


def rate_interval(events: int, trials: int, confidence: float) -> Bounds:
    """Exact interval of a rate (Clopper and Pearson 1934)."""
    tail = (1 - confidence) / 2
    low = float(scipy.special.betaincinv(events, trials - events + 1, tail)) if events else 0.0
    high = float(scipy.special.betaincinv(events + 1, trials - events, 1 - tail)) if events < trials else 1.0
    return low, high


def calibration_bins(
    confidence: Sequence[float], correct: Sequence[bool], bins: int = 10
) -> list[dict[str, float | int]]:
    """How often predictions of like confidence are right, in bins of equal width that hold their upper edge.

    Args:
        confidence: probability of the predicted class, one an example, from 0 to 1.
        correct: whether the prediction is right.
        bins: number of bins between 0 and 1.

    Returns:
        For each bin that is not empty: bin_low, bin_high, count, confidence (mean) and accuracy.

    Raises:
        SeedbedError: no example, lengths that differ, or a confidence that is no probability.
    """
    told, outcomes = finite_values(confidence), np.asarray(correct, dtype=float)
    if outcomes.shape != told.shape or told.min() < 0 or told.max() > 1:
        raise SeedbedError(
            "calibration needs a probability and an outcome for each example",
            found=f"{told.size} probabilities from {told.min():g} to {told.max():g}, "
            f"{outcomes.size} outcomes",
        )
    edges = np.arange(bins + 1) / bins
    index = np.searchsorted(edges[1:-1] + FLOAT32, told, side="left")
    counts = np.bincount(index, minlength=bins)
    sure, right = (np.bincount(index, values, minlength=bins) for values in (told, outcomes))
    return [
        {
            "bin_low": float(edges[k]),
            "bin_high": float(edges[k + 1]),
            "count": int(counts[k]),
            "confidence": float(sure[k] / counts[k]),
            "accuracy": float(right[k] / counts[k]),
        }
        for k in np.flatnonzero(counts)
    ]


def calibration_error(confidence: Sequence[float], correct: Sequence[bool], bins: int = 10) -> float:
    """Expected calibration error (Naeini et al. 2015; Guo et al. 2017, equation 3): the mean over examples of
    |accuracy - confidence| of their bin. See `calibration_bins`.
    """
    rows = calibration_bins(confidence, correct, bins)
    gaps = sum(row["count"] * abs(row["accuracy"] - row["confidence"]) for row in rows)
    return gaps / sum(row["count"] for row in rows)


def calibration_error_of_chance(confidence: Sequence[float], bins: int = 10) -> float:
    """The expected calibration error of a perfectly calibrated model with these confidences.

    Outcomes are then independent and right with the probability that they claim, and each bin's accuracy
    differs from its confidence by chance. The mean of |difference| is that of a Poisson binomial distribution
    (exact up to EXACT_BIN examples a bin, beyond that of the normal distribution with its variance).
    """
    told = finite_values(confidence)
    index = np.searchsorted(np.arange(1, bins) / bins + FLOAT32, told, side="left")
    gaps = (_mean_deviation(told[index == k]) for k in np.unique(index))
    return sum(gaps) / len(told)


def _mean_deviation(probabilities: np.ndarray) -> float:
    """Mean absolute deviation of the number of independent events with these probabilities.

    Exactly by the Fourier transform of the distribution, a product over events (Hong 2013), in less
    than half the time of convolving them one by one.
    """
    mean, variance = float(probabilities.sum()), float((probabilities * (1 - probabilities)).sum())
    if len(probabilities) > EXACT_BIN:
        return math.sqrt(2 / math.pi * variance)
    counts = np.arange(len(probabilities) + 1)
    turns = np.exp(-2j * np.pi / len(counts) * counts[: len(counts) // 2 + 1, None])
    chances = np.fft.irfft(np.prod(1 - probabilities + turns * probabilities, axis=1), len(counts))
    return float(chances @ np.abs(counts - mean))


# --- exact permutation tests --------------------------------------------------------------------------------


def sign_flip_p(differences: Sequence[float]) -> float | None:
    """Two-sided p of the exact paired permutation test (Fisher 1935): the share of all 2^n ways to flip the
    signs of the differences of pairs whose |sum| is at least the observed one.

    None where it can be had neither by counting sums on a grid nor by listing all ways (see MAX_SUBSETS).
    """
    checked = finite_values(differences)
    whole = _as_integers(checked)
    if whole is not None and sum(map(abs, whole)) <= MAX_CELLS:
        sizes = [abs(value) for value in whole]
        total, observed = sum(sizes), abs(sum(whole))
        ways = _count_sums(sizes)
        # flipping a set of signs to minus leaves total - 2 (sum of the set)
        extreme = np.abs(total - 2 * np.arange(total + 1)) >= observed
        return float(ways[extreme].sum() / ways.sum())
    if 2 ** len(checked) > MAX_SUBSETS:
        return None
    codes = np.arange(2 ** len(checked))
    signs = 1 - 2 * ((codes[:, None] >> np.arange(len(checked))) & 1)
    return _share_as_extreme(signs @ checked, float(np.sum(checked)))


def permutation_p(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Two-sided p of the exact unpaired permutation test: the share of all ways to deal the pooled values
    into groups of these sizes whose |difference of means| is at least the observed one.

    None where it can be had neither by counting sums on a grid nor by listing all ways (see MAX_SUBSETS).
    """
    pooled = np.concatenate([finite_values(a), finite_values(b)])
    whole = _as_integers(pooled)
    if whole is not None and (len(a) + 1) * (sum(whole) - len(whole) * min(whole) + 1) <= MAX_CELLS:
        return _counted_permutation_p([value - min(whole) for value in whole], len(a))
    if math.comb(len(pooled), len(a)) > MAX_SUBSETS:
        return None
    chosen = np.array(list(combinations(range(len(pooled)), len(a))))
    sums = pooled[chosen].sum(axis=1)
    differences = sums / len(a) - (pooled.sum() - sums) / len(b)
    return _share_as_extreme(differences, mean(a) - mean(b))


def smallest_p(n_a: int, n_b: int, *, paired: bool) -> float:
    """The smallest two-sided p that an exact test can reach with these numbers of seeds."""
    if paired:
        return 2 / 2**n_a
    return (2 if n_a == n_b else 1) / math.comb(n_a + n_b, n_a)


def _counted_permutation_p(pooled: list[int], size: int) -> float:
    """The unpaired test on non-negative integers, of which the first `size` are the first group.

    With T the sum of the first group and S the sum of all, the difference of means is proportional to
    (number of all) T - size S: all in integers, so that ties are exact.
    """
    total, count = sum(pooled), len(pooled)
    ways = _count_sums_of_size(pooled, size)
    statistic = np.abs(count * np.arange(total + 1) - size * total)
    observed = abs(count * sum(pooled[:size]) - size * total)
    return float(ways[statistic >= observed].sum() / ways.sum())


def _count_sums(values: list[int]) -> np.ndarray:
    """How many subsets of non-negative integers have the sum s, for s = 0 .. their total."""
    ways = np.zeros(sum(values) + 1)
    ways[0] = 1
    for value in values:
        ways[value:] += ways[: len(ways) - value].copy()
    return ways


def _count_sums_of_size(values: list[int], size: int) -> np.ndarray:
    """As `_count_sums`, for subsets of `size` values (the shift algorithm of Streitberg and Röhmel 1986)."""
    ways = np.zeros((size + 1, sum(values) + 1))
    ways[0, 0] = 1
    for value in values:
        ways[1:, value:] += ways[:-1, : ways.shape[1] - value].copy()
    return ways[size]


def _as_integers(values: np.ndarray) -> list[int] | None:
    """The values times their common denominator, or None where they lie on no such grid."""
    parts = [Fraction(float(value)).limit_denominator(MAX_DENOMINATOR) for value in values]
    if any(abs(float(part) - value) > 1e-12 for part, value in zip(parts, values, strict=True)):
        return None
    common = math.lcm(*(part.denominator for part in parts))
    return [int(part * common) for part in parts]


def _share_as_extreme(statistics: np.ndarray, observed: float) -> float:
    # equal in exact arithmetic may differ in the last bits
    tolerance = 1e-9 * max(1e-300, float(np.max(np.abs(statistics))))
    return float(np.mean(np.abs(statistics) >= abs(observed) - tolerance))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p-values (Holm 1979), in the given order; None stays None and does not count."""
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, index) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[index] = largest
    return adjusted


# --- init seeds and data seeds apart ------------------------------------------------------------------------


def two_way_variance(table: np.ndarray) -> list[dict[str, str | int | float | None]]:
    """Where the variance between runs comes from: the init seed, the data seed, or the rest.

    Two-way random-effects analysis of variance with one value a cell, by the method of moments (Searle et
    al. 1992, ch. 4), for the question of Dodge et al. (2020, arXiv:2002.06305). The rest holds the
    interaction and whatever else differs between runs. A variance that is estimated below zero is given as
    zero, as is usual.

    Args:
        table: (init seeds, data seeds), two or more of each.

    Returns:
        Rows `init seed`, `data seed` and `residual`: component, levels (of the residual: cells), degrees,
        mean_square, variance (in the squared unit of the values), share (of the sum of the three variances;
        None where all are zero).

    Raises:
        SeedbedError: a table with fewer than two rows or columns, or a value that is not finite.
    """
    table = np.asarray(table, dtype=float)
    if table.ndim != 2 or min(table.shape) < 2 or not np.isfinite(table).all():
        raise SeedbedError(
            "variances of init seeds and data seeds need a full table of finite values, two or more of each",
            found=f"shape {table.shape}, {int((~np.isfinite(table)).sum())} values that are not finite",
        )
    inits, datas = table.shape
    by_init, by_data = table.mean(axis=1, keepdims=True), table.mean(axis=0, keepdims=True)
    degrees = [inits - 1, datas - 1, (inits - 1) * (datas - 1)]
    squares = [
        datas * float(((by_init - table.mean()) ** 2).sum()),
        inits * float(((by_data - table.mean()) ** 2).sum()),
        float(((table - by_init - by_data + table.mean()) ** 2).sum()),
    ]
    # what rounding leaves of equal values is no variance
    rounding = table.size * (1e-12 * max(1.0, float(np.abs(table).max()))) ** 2
    mean_squares = [
        square / free if square > rounding else 0.0 for square, free in zip(squares, degrees, strict=True)
    ]
    variances = [
        max(0.0, (mean_squares[0] - mean_squares[2]) / datas),
        max(0.0, (mean_squares[1] - mean_squares[2]) / inits),
        mean_squares[2],
    ]
    total = sum(variances)
    return [
        {
            "component": component,
            "levels": levels,
            "degrees": free,
            "mean_square": mean_square,
            "variance": variance,
            "share": variance / total if total else None,
        }
        for component, levels, free, mean_square, variance in zip(
            ("init seed", "data seed", "residual"),
            (inits, datas, inits * datas),
            degrees,
            mean_squares,
            variances,
            strict=True,
        )
    ]


def finite_values(values: Sequence[float]) -> np.ndarray:
    """The values as a float64 vector.

    Raises:
        SeedbedError: no value, one that is not finite, or values that are no vector.
    """
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise SeedbedError(
            "a statistic needs at least one value, and every value finite",
            found=list(values),
            hint="a run without a result must be left out by name, not averaged over",
        )
    return array
