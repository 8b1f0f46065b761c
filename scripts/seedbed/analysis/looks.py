"""Looks at an experiment that grows: the level of each look, so that all of them together err as one does.

Group-sequential, with alpha spending (Lan and DeMets 1983). The tables of that method are for estimates with
independent increments. Here all looks share the test examples, so estimates at different numbers of seeds
are closer to each other than that: the sum of the error rates is smaller, never larger.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

# Of alpha, a look at n of N seeds has spent (n / N)^2 (Kim and DeMets 1987). In simulations of 37 mixes of
# what varies (benchmarks/spending.py, five looks up to 25 seeds) the error rate is 5.2% at most, where that
# of one look at 25 is 5.0%, and the power is 3 points below at most. An exponent of 1 stops one seed earlier
# and costs 8 points of power; O'Brien and Fleming's way costs 1 point and takes two to three seeds more.
EXPONENT = 2.0
POINTS = 201  # of the quadrature
FAR = 8.0  # standard deviations beyond which nothing is integrated

Spending = Callable[[float, float], float]


@dataclass(frozen=True)
class Look:
    """One of several looks at a difference.

    Attributes:
        number: 1 for the first.
        of: number of planned looks.
        seeds: a side.
        level: largest p that decides at this look; the interval has the confidence 1 - level.
        alpha: error rate of all looks together.
    """

    number: int
    of: int
    seeds: int
    level: float
    alpha: float

    @property
    def confidence(self) -> float:
        """Of the interval at this look."""
        return 1 - self.level

    def adjusted(self, p_value: float) -> float:
        """p so that it decides where it is at most alpha."""
        return min(1.0, p_value * self.alpha / self.level)


def look_at(seeds: int, looks: Sequence[int], confidence: float) -> Look | None:
    """The look at so many seeds; None where none is planned.

    Args:
        seeds: a side.
        looks: numbers of seeds of all looks, rising.
        confidence: of all looks together, such as 0.95.
    """
    if seeds not in looks:
        return None
    place, alpha = list(looks).index(seeds), 1 - confidence
    fractions = tuple(number / looks[-1] for number in looks)
    return Look(place + 1, len(looks), seeds, nominal_levels(fractions, alpha)[place], alpha)


def by_power(fraction: float, alpha: float) -> float:
    """The alpha that is spent at a fraction of the information."""
    return alpha * fraction**EXPONENT


@lru_cache(maxsize=64)
def nominal_levels(
    fractions: tuple[float, ...], alpha: float, spending: Spending = by_power
) -> tuple[float, ...]:
    """The two-sided level of the test at each look, so that `spending` is spent of alpha up to each.

    The boundary of each look solves P(inside at all looks before, beyond it at this one) = what is spent
    between both, for a Brownian motion (Armitage, McPherson and Rowe 1969). The same levels serve tests with
    other distributions, such as Student's (Jennison and Turnbull 2000, ch. 3).

    Args:
        fractions: of the information, rising to 1.
        alpha: of all looks.
        spending: cumulative, of a fraction and alpha.
    """
    levels: list[float] = []
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    places, mass, before = np.zeros(1), np.ones(1), 0.0  # the motion starts at zero
    for place, fraction in enumerate(fractions):
        spent = spending(fraction, alpha) - (spending(fractions[place - 1], alpha) if place else 0.0)
        sd = math.sqrt(fraction - before)
        bound = _boundary(places, mass, sd, fraction, spent)
        levels.append(float(2 * scipy.special.ndtr(-bound)))
        most = min(bound, FAR) * math.sqrt(fraction)
        steps = (most * nodes[:, None] - places) / sd
        density = np.exp(-(steps**2) / 2) / (math.sqrt(2 * math.pi) * sd)
        places, mass, before = most * nodes, most * weights * (density @ mass), fraction
    return tuple(levels)


def _boundary(places: np.ndarray, mass: np.ndarray, sd: float, fraction: float, spent: float) -> float:
    """The standardised boundary beyond which a motion with this mass at these places has a probability."""

    def beyond(bound: float) -> float:
        edge = bound * math.sqrt(fraction)
        return float(
            mass @ (scipy.special.ndtr((places - edge) / sd) + scipy.special.ndtr((-places - edge) / sd))
        )

    return float(scipy.optimize.brentq(lambda bound: beyond(bound) - spent, 0.0, 3 * FAR))
