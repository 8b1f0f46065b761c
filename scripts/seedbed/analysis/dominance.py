"""How often, and how nearly always, one group of runs is better than another: pure functions of values.

Larger values are better. Both measures compare distributions over seeds; neither knows of test examples.
"""

from collections.abc import Sequence

import numpy as np
import scipy

from seedbed.analysis.statistics import finite_values


def probability_of_improvement(a: Sequence[float], b: Sequence[float]) -> float:
    """Probability that a run of a is better than a run of b, ties counted half.

    Mann and Whitney's U / (n_a n_b); the measure that Agarwal et al. (2021, arXiv:2108.13264) recommend.

    Raises:
        SeedbedError: no value on a side, or one that is not finite.
    """
    left, right = finite_values(a)[:, None], finite_values(b)[None, :]
    return float(np.mean((left > right) + 0.5 * (left == right)))


def aso_eps_min(
    a: Sequence[float], b: Sequence[float], *, confidence: float, comparisons: int, replicates: int, seed: int
) -> float | None:
    """Almost Stochastic Order: an upper confidence bound of how far a is from dominating b.

    The violation ratio is 0 where every quantile of a is at least that of b, 1 in the reverse case, and 1/2
    where neither dominates (del Barrio et al. 2018; Dror et al. 2019):

        eps_min = eps + z(level) sqrt((n + m) / (n m)) sigma,

    sigma by bootstrap, cut to [0, 1]. A value below 1/2 says that a is almost stochastically larger. For
    several comparisons the level is 1 - (1 - confidence) / comparisons (Bonferroni), which raises the bound.

    Args:
        a, b: one value a seed, larger is better.
        confidence: confidence of all comparisons together.
        comparisons: how many there are.
        replicates: bootstrap replicates.
        seed: seed of the random numbers.

    Returns:
        The bound; None below two values on a side, and where both sides have the same distribution, for
        which the ratio is not defined.

    Raises:
        SeedbedError: no value on a side, or one that is not finite.
    """
    left, right = np.sort(finite_values(a)), np.sort(finite_values(b))
    if min(len(left), len(right)) < 2:
        return None
    observed = _violation_ratio(left[None], right[None])[0]
    if np.isnan(observed):
        return None
    rng = np.random.default_rng(seed)
    drawn_a, drawn_b = (np.sort(rng.choice(side, (replicates, len(side))), axis=1) for side in (left, right))
    # a replicate in which both sides are the same shows no dominance either way
    ratios = np.nan_to_num(_violation_ratio(drawn_a, drawn_b), nan=0.5)
    level = 1 - (1 - confidence) / comparisons
    # sigma is the spread of sqrt(n m / (n + m)) times the ratio, so that the factors cancel
    return float(np.clip(observed + scipy.special.ndtri(level) * ratios.std(ddof=1), 0.0, 1.0))


def _violation_ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The share of the squared 2-Wasserstein distance where a quantile of a is below that of b.

    Args:
        a: (replicates, n), each row sorted.
        b: (replicates, m), likewise.

    Returns:
        Array of shape (replicates,); NaN where the distance is zero.
    """
    n, m = a.shape[1], b.shape[1]
    # both quantile functions are constant between neighbouring multiples of 1/n and 1/m; in units of 1/(n m)
    edges = np.union1d(np.arange(n + 1) * m, np.arange(m + 1) * n)
    starts, widths = edges[:-1], np.diff(edges)
    gaps = a[:, starts // m] - b[:, starts // n]
    distance = gaps**2 @ widths
    violation = np.minimum(gaps, 0) ** 2 @ widths
    return np.divide(violation, distance, out=np.full(len(a), np.nan), where=distance > 0)
