"""Where the variance of a mean over seeds and test examples comes from, and the half width that it gives.

After the random-effects analysis of the table of seeds and examples (Searle et al. 1992), see `Spread`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from seedbed.analysis.statistics import t_quantile
from seedbed.core.seeds import is_crossed

Seeds = tuple[tuple[int, int], ...]
# A part of a variance, one value a column of what it was computed from, and its degrees of freedom.
Term = tuple[np.ndarray, int]

# The share of the interaction that is taken off what the seeds vary by, before Student's t counts it. With
# all of it, three seeds cover 91% of a nominal 95% where seeds hold 70% of the variance; with none, up to 99%
# where the interaction holds all.
CREDIT = 0.5
# At one of several looks none is: their levels are far below 5%, where a variance of seeds that is estimated
# too low by chance decides too much. With half, five looks tell up to 7.2% of equal sides apart, with none
# 5.2% (benchmarks/spending.py).
NO_CREDIT = 0.0


@dataclass(frozen=True)
class SeedPart:
    """What seeds add to the variance of a difference.

    Attributes:
        terms: variances that sum to S_s^2 / n, that of the means of n seeds over the examples, each with its
            degrees of freedom: of pairs one; of two sides one each; more where seeds are crossed.
        interaction: S_sx^2 / (n m), of seeds and examples, which is in that sum too.
    """

    terms: tuple[tuple[float, int], ...]
    interaction: float

    @property
    def variance(self) -> float:
        """S_s^2 / n."""
        return sum(value for value, _ in self.terms)

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the variance (Satterthwaite 1946), no fewer than those of any term."""
        fewest = min(degrees for _, degrees in self.terms)
        squares = sum(value**2 / degrees for value, degrees in self.terms)
        return max(fewest, self.variance**2 / squares) if squares else fewest


@dataclass(frozen=True)
class Spread:
    """The variance of a difference if seeds and examples were drawn anew, by where it comes from.

    From the random-effects analysis of the table of seeds and examples (Searle et al. 1992, ch. 4): with
    S_s^2 the variance of the seeds' means, S_x^2 that of the examples' means and S_sx^2 the mean square of
    their interaction, the mean of n seeds and m examples has the variance
    S_s^2 / n + S_x^2 / m - S_sx^2 / (n m), in which S_s^2 / n and S_x^2 / m hold the interaction once each.

    Attributes:
        seeds: one part; or one for each side where these have different numbers of seeds: three of one side
            and ten of another cover 92% of a nominal 95% together, 94% apart.
        examples: S_x^2 / m - S_sx^2 / (n m), not below 0: what is left however many seeds are trained.
        choice: what the choice of recipes on validation adds.
        credit: the share of the interaction that is no variance of the seeds, see `CREDIT`.
    """

    seeds: tuple[SeedPart, ...]
    examples: float
    choice: float = 0.0
    credit: float = CREDIT

    @property
    def interaction(self) -> float:
        """S_sx^2 / (n m), of both sides together."""
        return sum(part.interaction for part in self.seeds)

    @property
    def of_seeds(self) -> float:
        """The variance that more seeds would reduce: no less than the interaction, which is in it."""
        return sum(max(part.variance, part.interaction) for part in self.seeds)

    @property
    def whole(self) -> float:
        """The variance of the difference."""
        return self.of_seeds + self.examples + self.choice

    def half_width(self, confidence: float) -> float:
        """Half the width of a symmetric interval.

        Its square is z^2 times the variance from examples, interaction and choice, which have many degrees of
        freedom, plus `excess_of_few_seeds`.
        """
        steady = self.examples + self.interaction + self.choice
        excess = sum(
            excess_of_few_seeds(part.variance, part.interaction, part.degrees, confidence, self.credit)
            for part in self.seeds
        )
        return math.sqrt(normal(confidence) ** 2 * steady + excess)


def excess_of_few_seeds(
    variance: Any, interaction: Any, degrees: float, confidence: float, credit: float = CREDIT
) -> Any:
    """What few seeds add to the squared half width of an interval of the normal distribution.

    The variance of the seeds beyond a share of the interaction counts as the seeds' own, with their few
    degrees of freedom.

    Args:
        variance: S_s^2 / n; a number or an array.
        interaction: S_sx^2 / (n m), likewise.
        degrees: of freedom of the variance.
        confidence: level of the interval.
        credit: that share, see `CREDIT`.
    """
    t = t_quantile(confidence, degrees)
    own, shared = variance - credit * interaction, (1 - credit) * interaction
    return np.maximum(0.0, t**2 * own - normal(confidence) ** 2 * shared)


def normal(confidence: float) -> float:
    """The quantile of the normal distribution for a two-sided interval, 1.96 at 0.95."""
    return float(scipy.special.ndtri((1 + confidence) / 2))


def seed_error(values: Sequence[float], seeds: Seeds) -> tuple[float, float] | None:
    """Standard error of the mean over seeds and its degrees of freedom; None for one seed and without spread.

    Where init seeds and data seeds are crossed, runs that share one are not independent: the error is then
    that of `_seed_terms`, with degrees of freedom after Satterthwaite (1946).
    """
    if len(seeds) < 2:
        return None
    order = sorted(range(len(seeds)), key=lambda index: seeds[index])
    column = np.array([[values[index]] for index in order], dtype=np.float64)
    part = SeedPart(tuple(_design_terms(column, tuple(seeds[index] for index in order))), interaction=0.0)
    if part.variance <= 1e-24 * max(1.0, float(np.abs(column).max())) ** 2:
        return None
    return math.sqrt(part.variance), part.degrees


def spread_of(
    tables: Sequence[tuple[np.ndarray, Seeds]], over_examples: float, largest: float
) -> Spread | None:
    """The variances of the sum of the means of independent tables; None where there is none.

    Args:
        tables: (seeds, examples) each, with their seeds.
        over_examples: S_x^2 / m, of all.
        largest: score, no less than 1.
    """
    if any(min(scores.shape) < 2 for scores, _ in tables):
        return None
    parts = [
        SeedPart(tuple(_design_terms(scores.mean(axis=1, keepdims=True), seeds)), _interaction(scores, seeds))
        for scores, seeds in tables
    ]
    interaction = sum(part.interaction for part in parts)
    if len({len(seeds) for _, seeds in tables}) == 1:
        parts = [SeedPart(tuple(term for part in parts for term in part.terms), interaction)]
    spread = Spread(tuple(parts), max(0.0, over_examples - interaction))
    # what rounding leaves of equal scores is no spread
    return None if spread.whole < (1e-9 * largest) ** 2 else spread


def variance_of_means(means: Sequence[np.ndarray]) -> float:
    """The variance of the sum of the means of independent examples; none of a single example."""
    return sum(float(values.var(ddof=1)) / len(values) for values in means if len(values) > 1)


def _seed_terms(values: np.ndarray, seeds: Seeds) -> list[Term]:
    """Terms that sum to the variance of the mean over seeds, for each column of `values` (rows, columns).

    Seeds that are not crossed: S^2 / n. Crossed, and each init seed with each data seed: the two-way analysis
    of init seeds and data seeds, by the formula of `Spread`. An incomplete crossing: the sum of the
    variances clustered by init seed and by data seed (Cameron, Gelbach and Miller 2011, without what they
    subtract, so too large rather than too small).
    """
    rows = len(seeds)
    if not is_crossed(seeds):
        return [(values.var(axis=0, ddof=1) / rows, rows - 1)]
    inits, init_of_row, datas, data_of_row = levels_of(seeds)
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


def _design_terms(column: np.ndarray, seeds: Seeds) -> list[tuple[float, int]]:
    """The terms of `_seed_terms` of one column (rows, 1), no less than the largest of them: a variance of
    init seeds or of data seeds that is estimated below zero counts as zero."""
    terms = [(float(value[0]), degrees) for value, degrees in _seed_terms(column, seeds)]
    largest = max(terms)
    return terms if sum(value for value, _ in terms) >= largest[0] else [largest]


def _summed(terms: Sequence[tuple[np.ndarray, int]]) -> np.ndarray:
    """The sum of the variances."""
    return np.asarray(sum(value for value, _ in terms))


def _interaction(scores: np.ndarray, seeds: Seeds) -> float:
    """S_sx^2 / (n m).

    The variance over seeds at a single example holds the whole interaction, that of the means over m examples
    one m-th of it: their difference tells it, for any design of seeds. Not below zero.
    """
    single = _summed(_seed_terms(scores, seeds)).mean()
    averaged = _summed(_seed_terms(scores.mean(axis=1, keepdims=True), seeds))[0]
    return max(0.0, float(single - averaged) / (scores.shape[1] - 1))


def levels_of(seeds: Seeds) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Distinct init seeds, the index of each row's; the same of data seeds."""
    inits, init_of_row = np.unique([init for init, _ in seeds], return_inverse=True)
    datas, data_of_row = np.unique([data for _, data in seeds], return_inverse=True)
    return inits, init_of_row, datas, data_of_row
