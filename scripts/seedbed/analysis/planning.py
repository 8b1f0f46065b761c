"""Plans: what difference some number of seeds detects, by simulating the rule that makes the interval.

The model is that of `spread.Spread`: a difference of n seeds and m examples is normal, and its mean
squares are chi-squared. Each simulated experiment estimates its own mean squares, as a real one does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self, TypeVar

import numpy as np
import scipy

from seedbed.analysis.spread import excess_of_few_seeds, normal

SIMULATIONS = 4000  # the standard error of a power of 80% is 0.6 points
WORLDS = 100  # variances drawn from what the data leave open
MOST_SEEDS = 1000

T = TypeVar("T")


@dataclass(frozen=True)
class Variances:
    """Variances of the difference of one seed a side on one example.

    Attributes:
        seeds: between the means of seeds over endless examples.
        examples: between the means of examples over endless seeds.
        interaction: of one seed on one example beside these.
        degrees: degrees of freedom a seed adds: 1 for pairs, 2 where both sides have as many seeds of their
            own.
    """

    seeds: float
    examples: float
    interaction: float
    degrees: int

    def parts(self, seeds: int, examples: int) -> tuple[float, float, float]:
        """What seeds, examples and interaction add to the variance of the mean difference."""
        return self.seeds / seeds, self.examples / examples, self.interaction / (seeds * examples)


@lru_cache(maxsize=64)
def _draws(degrees: int, others: int, seed: int) -> list[np.ndarray]:
    """A standard normal number and three mean squares of expectation 1 for each simulation."""
    rng = np.random.default_rng([seed, degrees, others])
    squares = [rng.chisquare(free, SIMULATIONS) / free for free in (degrees, others, degrees * others)]
    return [rng.standard_normal(SIMULATIONS), *squares]


@dataclass(frozen=True)
class Design:
    """An experiment that is planned.

    Attributes:
        variances: assumed true.
        examples: test examples.
        confidence: level of the interval that leaves zero out.
        power: probability that it does.
        seed: of the random numbers.
    """

    variances: Variances
    examples: int
    confidence: float
    power: float
    seed: int = 0

    def detectable(self, seeds: int) -> float:
        """The smallest true difference whose interval leaves zero out, on its side, with the power."""
        of_seeds, of_examples, both = self.variances.parts(seeds, self.examples)
        degrees, others = self.variances.degrees * (seeds - 1), self.examples - 1
        noise, seeds_drawn, examples_drawn, both_drawn = _draws(degrees, others, self.seed)
        seed_squares = (of_seeds + both) * seeds_drawn
        example_squares = (of_examples + both) * examples_drawn
        interaction = both * both_drawn
        steady = np.maximum(0.0, example_squares - interaction) + interaction
        excess = excess_of_few_seeds(seed_squares, interaction, degrees, self.confidence)
        half = np.sqrt(normal(self.confidence) ** 2 * steady + excess)
        # a difference d is detected where d + noise > half
        return float(np.quantile(half - math.sqrt(of_seeds + of_examples + both) * noise, self.power))

    @property
    def floor(self) -> float:
        """What endless seeds detect on these test examples."""
        quantiles = normal(self.confidence) + float(scipy.special.ndtri(self.power))
        return quantiles * math.sqrt(self.variances.examples / self.examples)

    def seeds_for(self, difference: float) -> int | None:
        """The fewest seeds a side, three or more, that detect a difference; None beyond MOST_SEEDS."""
        if self.floor >= abs(difference):
            return None
        low, high = 2, 3
        while self.detectable(high) > abs(difference):
            low, high = high, 2 * high
            if low > MOST_SEEDS:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.detectable(middle) > abs(difference) else (low, middle)
        return high

    def power_of_endless_seeds(self, difference: float) -> float:
        """Probability that endless seeds on these test examples detect a difference."""
        error = math.sqrt(self.variances.examples / self.examples)
        if not error:
            return 1.0
        return float(scipy.special.ndtr(abs(difference) / error - normal(self.confidence)))

    def examples_for(self, difference: float) -> int:
        """Test examples, two or more, with which endless seeds detect a difference: a lower bound of what is
        needed."""
        return max(2, math.ceil(self.examples * (self.floor / difference) ** 2))


Range = tuple[float, float, float]  # as estimated, and the ends of what the variances leave open
Number = tuple[int | None, int | None, int | None]  # the same of a number; None where no number does


@dataclass(frozen=True)
class Plan:
    """A design with the range that its variances leave open.

    Attributes:
        design: with its variances as estimated.
        worlds: designs whose variances may be the true ones, each as probable as any other.
    """

    design: Design
    worlds: tuple[Design, ...]

    @classmethod
    def estimated(cls, seeds: int, design: Design) -> Self:
        """A plan whose variances an experiment of so many seeds, on the design's examples, has estimated."""
        return cls(design, _worlds(seeds, design))

    def on(self, examples: int) -> Self:
        """The same variances on another number of test examples."""
        first, *others = (replace(each, examples=examples) for each in (self.design, *self.worlds))
        return replace(self, design=first, worlds=tuple(others))

    def detectable(self, seeds: int) -> Range:
        """The smallest difference that so many seeds detect: as estimated, and the range that holds 80% of
        what the variances leave open."""
        return _range(self.design.detectable(seeds), [world.detectable(seeds) for world in self.worlds])

    @property
    def floor(self) -> Range:
        """What endless seeds detect on these test examples, likewise."""
        return _range(self.design.floor, [world.floor for world in self.worlds])

    def seeds_for(self, difference: float) -> Number:
        """The fewest seeds that detect a difference, and a range; None where no number does."""
        return _seeds_for(self, difference)

    def examples_for(self, difference: float) -> tuple[int, int, int]:
        """Test examples with which endless seeds detect a difference, and a range: lower bounds of what is
        needed."""
        worlds = sorted(world.examples_for(difference) for world in self.worlds)
        low, high = _inner(worlds)
        estimate = self.design.examples_for(difference)
        return estimate, min(estimate, low), max(estimate, high)


def _worlds(seeds: int, design: Design) -> tuple[Design, ...]:
    """Designs with variances that could have given an experiment's mean squares.

    Each mean square is multiplied by d / chi-squared(d), its distribution given a flat prior on the logarithm
    of its expectation.
    """
    variances, examples = design.variances, design.examples
    of_seeds, of_examples, both = variances.parts(seeds, examples)
    free = variances.degrees * (seeds - 1)
    rng = np.random.default_rng([design.seed, seeds, examples])
    factors = [count / rng.chisquare(count, WORLDS) for count in (free, examples - 1, free * (examples - 1))]
    squares = zip(
        (of_seeds + both) * factors[0], (of_examples + both) * factors[1], both * factors[2], strict=True
    )
    return tuple(
        replace(
            design,
            variances=Variances(
                seeds * max(0.0, a - c), examples * max(0.0, b - c), seeds * examples * c, variances.degrees
            ),
        )
        for a, b, c in squares
    )


def _range(estimate: float, worlds: Sequence[float]) -> Range:
    low, high = np.quantile(worlds, (0.1, 0.9))
    # where a variance is estimated at zero, most of what could have given it is larger
    return estimate, min(estimate, float(low)), max(estimate, float(high))


def _inner(ordered: Sequence[T]) -> tuple[T, T]:
    """The ends of the inner 80% of what is in order."""
    low, high = (ordered[int(share * (len(ordered) - 1))] for share in (0.1, 0.9))
    return low, high


@lru_cache(maxsize=256)  # the answer, a section and a table ask the same
def _seeds_for(plan: Plan, difference: float) -> Number:
    found: Sequence[float] = sorted(
        math.inf if (number := world.seeds_for(difference)) is None else number for world in plan.worlds
    )
    low, high = _inner(found)
    estimate = plan.design.seeds_for(difference)
    as_number = math.inf if estimate is None else estimate
    return estimate, _number(min(as_number, low)), _number(max(as_number, high))


def _number(seeds: float) -> int | None:
    return None if seeds == math.inf else int(seeds)
