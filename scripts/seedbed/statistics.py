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
from scipy import special

from seedbed.errors import SeedbedError

# Largest number of subsets that is enumerated one by one, and of cells in the table that counts subset sums.
MAX_SUBSETS = 1 << 20
MAX_CELLS = 50_000_000
# Accuracies are k / (number of examples): a denominator up to this is recognised in a float.
MAX_DENOMINATOR = 100_000
# No one trains more seeds than this, so no larger number is searched for.
MAX_SEEDS = 10_000

Bounds = tuple[float, float]


# --- one group of values ------------------------------------------------------------------------------------


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean of at least one finite value.

    Raises:
        SeedbedError: no value, or one that is not finite.
    """
    return float(np.mean(_checked(values)))


def median(values: Sequence[float]) -> float:
    """Median; the mean of the two middle values where their number is even."""
    return float(np.median(_checked(values)))


def sample_sd(values: Sequence[float]) -> float | None:
    """Sample standard deviation (divisor n - 1); None for a single value."""
    checked = _checked(values)
    if len(checked) < 2:
        return None
    spread = float(np.std(checked, ddof=1))
    # what rounding leaves of equal values is no spread
    return spread if spread > 1e-12 * max(1.0, float(np.abs(checked).max())) else 0.0


def iqm(values: Sequence[float]) -> float:
    """Interquartile mean: the mean without the floor(n / 4) smallest and the floor(n / 4) largest values.

    This is scipy.stats.trim_mean(values, 0.25), whole values and no weights; with fewer than 4 values it is
    the mean. Recommended for few runs by Agarwal et al. (2021, arXiv:2108.13264).
    """
    ordered = np.sort(_checked(values))
    cut = len(ordered) // 4
    return float(np.mean(ordered[cut : len(ordered) - cut]))


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
    return float(special.stdtrit(degrees, 0.5 + confidence / 2))


# --- two groups ---------------------------------------------------------------------------------------------


def welch_interval(a: Sequence[float], b: Sequence[float], confidence: float) -> Bounds | None:
    """Welch's t interval of mean(a) - mean(b), variances unequal; None unless both have two values or
    more, and where neither side has any spread.

    Degrees of freedom after Welch (1947) and Satterthwaite (1946).
    """
    spread_a, spread_b = sample_sd(a), sample_sd(b)
    if spread_a is None or spread_b is None:
        return None
    part_a, part_b = spread_a**2 / len(a), spread_b**2 / len(b)
    difference, variance = mean(a) - mean(b), part_a + part_b
    if variance == 0:
        return None
    degrees = variance**2 / (part_a**2 / (len(a) - 1) + part_b**2 / (len(b) - 1))
    half = t_quantile(confidence, degrees) * math.sqrt(variance)
    return difference - half, difference + half


def pooled_sd(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Root mean square of two sample standard deviations, each weighted by n - 1; None without any spread."""
    groups = [(len(group) - 1, sample_sd(group)) for group in (a, b)]
    known = [(degrees, spread) for degrees, spread in groups if spread is not None]
    if not known:
        return None
    total = sum(degrees for degrees, _ in known)
    return math.sqrt(sum(degrees * spread**2 for degrees, spread in known) / total)


# --- examples of one test set -------------------------------------------------------------------------------


def binomial_se(share: float, examples: int) -> float:
    """Standard error of a share over independent examples: sqrt(p (1 - p) / n)."""
    return math.sqrt(share * (1 - share) / examples)


def wilson_interval(successes: int, examples: int, confidence: float) -> Bounds:
    """Two-sided Wilson score interval of a share (Wilson 1927)."""
    z = float(special.ndtri(0.5 + confidence / 2))
    centre, half = _wilson(successes, examples, z)
    return max(0.0, centre - half), min(1.0, centre + half)


def wilson_lower(successes: int, examples: int, confidence: float) -> float:
    """One-sided lower Wilson bound: with the given confidence the true share is larger."""
    centre, half = _wilson(successes, examples, float(special.ndtri(confidence)))
    return max(0.0, centre - half)


def _wilson(successes: int, examples: int, z: float) -> tuple[float, float]:
    share = successes / examples
    scale = 1 + z * z / examples
    centre = (share + z * z / (2 * examples)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / examples + z * z / (4 * examples**2))
    return centre, half


# --- exact permutation tests --------------------------------------------------------------------------------


def sign_flip_p(differences: Sequence[float]) -> float | None:
    """Two-sided p of the exact paired permutation test (Fisher 1935): the share of all 2^n ways to flip the
    signs of the differences of pairs whose |sum| is at least the observed one.

    None where it can be had neither by counting sums on a grid nor by listing all ways (see MAX_SUBSETS).
    """
    checked = _checked(differences)
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
    pooled = np.concatenate([_checked(a), _checked(b)])
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


# --- planning: how many seeds -------------------------------------------------------------------------------


def t_power(difference: float, sd: float, n: int, level: float, *, paired: bool = False) -> float:
    """Power of a two-sided t test at significance `level` for a true difference.

    Unpaired: n seeds a side, `sd` within a side, 2n - 2 degrees of freedom. Paired: n pairs, `sd` of the
    differences of pairs, n - 1 degrees of freedom. From the noncentral t distribution (Cohen 1988, ch. 2).
    """
    if sd == 0:
        return 1.0 if difference else level
    degrees = n - 1 if paired else 2 * n - 2
    centre = abs(difference) / (sd * math.sqrt((1 if paired else 2) / n))
    critical = t_quantile(1 - level, degrees)
    tails = 1 - special.nctdtr(degrees, centre, critical), special.nctdtr(degrees, centre, -critical)
    # SciPy gives NaN for some tails, all of them far out, where they are 1 and 0 to the last digit
    upper, lower = (
        float(np.nan_to_num(tail, nan=limit)) for tail, limit in zip(tails, (1.0, 0.0), strict=True)
    )
    return upper + lower


def seeds_needed(
    difference: float, sd: float, level: float, power: float, *, paired: bool = False
) -> int | None:
    """The smallest number of seeds a side (or of pairs) whose t test reaches `power` for this difference.

    None where MAX_SEEDS are not enough, as for a difference of zero. See `t_power`.
    """
    if not difference or t_power(difference, sd, MAX_SEEDS, level, paired=paired) < power:
        return None
    low, high = 1, MAX_SEEDS  # `low` is too few (one seed has no spread), `high` is enough
    while high - low > 1:
        middle = (low + high) // 2
        if t_power(difference, sd, middle, level, paired=paired) >= power:
            high = middle
        else:
            low = middle
    return high


def smallest_difference(
    sd: float, n: int, level: float, power: float, *, paired: bool = False
) -> float | None:
    """The smallest true difference that n seeds a side (or n pairs) detect with `power`; None for n = 1."""
    if n < 2:
        return None
    if sd == 0:
        return 0.0
    low, high = 0.0, sd
    while t_power(high, sd, n, level, paired=paired) < power:
        high *= 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if t_power(middle, sd, n, level, paired=paired) >= power:
            high = middle
        else:
            low = middle
    return high


def _checked(values: Sequence[float]) -> np.ndarray:
    """The values as a vector of at least one finite number."""
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise SeedbedError(
            "a statistic needs at least one value, and every value finite",
            found=list(values),
            hint="a run without a result must be left out by name, not averaged over",
        )
    return array
