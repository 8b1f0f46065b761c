"""How often intervals of a difference hold the true one, and how often ASO sees an order where none is.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/coverage.py benchmarks/results/statistics

A run is right about an example where

    level of the side + ease of the example + luck of the seed + luck of the seed on this example > 0,

all but the first normal: over new examples and new seeds the accuracy is known exactly. Both sides know the
same examples, with correlated ease. Paired sides have correlated luck of the seed, others independent luck.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from seedbed.analysis import bootstrap, dominance, label_worth, spread, statistics, stopping
from seedbed.analysis import looks as looks_at
from seedbed.analysis.predictions import CellPredictions
from seedbed.analysis.sides import SideMaker
from seedbed.core import class_metrics
from seedbed.core.files import write_rows

EASE_CORRELATION = 0.8
SEED_CORRELATION_IF_PAIRED = 0.5
CHANCE = 0.5  # accuracy of a collapsed run
SEEDS = (2, 3, 5, 10, 25)
EXAMPLES = (200, 2000)
VALIDATION = 200
TRUTHS_BEYOND = {0.0: "fewer", math.inf: "more"}  # than the sizes
LOOKS = (3, 5, 10, 25)
PLANNED = (3, 5, 10, 17, 25)  # the looks of `until`
INTEREST = 0.02  # its difference of interest
DIFFERENCES = (0.0, 0.02, 0.05)
CONFIDENCE = 0.95
STUDIES = (
    "coverage", "crossed", "selection", "looks", "sequential", "aso", "sizes", "counted",
    "again", "sizes_again",
)  # fmt: skip


@dataclass(frozen=True)
class World:
    """How runs of two sides are right or wrong.

    Attributes:
        name: in tables.
        accuracies: expected, of both sides.
        seed_sds: standard deviation of a run's accuracy by its seed alone, of both sides.
        ease_sd: how much examples differ in ease; 0: the errors of two seeds are independent.
        luck_on_example_sd: at 0.4 two seeds disagree on about 12% of the examples.
        collapse: probability that a run of the second side collapses to chance.
    """

    name: str
    accuracies: tuple[float, float] = (0.80, 0.79)
    seed_sds: tuple[float, float] = (0.01, 0.01)
    ease_sd: float = 1.0
    luck_on_example_sd: float = 0.4
    collapse: float = 0.0

    @property
    def truth(self) -> float:
        """The true difference of the accuracies."""
        a, b = self.accuracies
        return a - (self.collapse * CHANCE + (1 - self.collapse) * b)

    def luck_sd(self, side: int) -> float:
        """Standard deviation of the seed's luck that moves the accuracy by `seed_sds`."""
        others = self.ease_sd**2 + self.luck_on_example_sd**2
        # accuracy is Phi(level / total sd), with slope phi(...) / total sd, of which the seed's part is small
        slope = math.exp(-(special.ndtri(self.accuracies[side]) ** 2) / 2) / math.sqrt(2 * math.pi * others)
        return self.seed_sds[side] / slope

    def ease(self, examples: int, rng: np.random.Generator) -> np.ndarray:
        """Ease of the examples for both sides, (2, examples)."""
        return self.ease_sd * correlated(EASE_CORRELATION, examples, rng)

    def right(
        self,
        side: int,
        ease: np.ndarray,
        luck: np.ndarray,
        rng: np.random.Generator,
        accuracy: float | None = None,
    ) -> np.ndarray:
        """Which examples each seed gets right, (seeds, examples).

        Args:
            side: 0 or 1.
            ease: of the examples for this side.
            luck: of the seeds.
            rng: for the seeds' luck on single examples, and for collapses.
            accuracy: expected; that of the side where not given.
        """
        noise = self.luck_on_example_sd * rng.standard_normal((len(luck), len(ease)))
        total = math.sqrt(self.ease_sd**2 + self.luck_on_example_sd**2 + self.luck_sd(side) ** 2)
        level = special.ndtri(accuracy or self.accuracies[side]) * total
        scores = level + ease + luck[:, None] + noise > 0
        if self.collapse and side == 1:
            collapsed = rng.random(len(luck)) < self.collapse
            scores[collapsed] = rng.random(len(ease)) < CHANCE
        return scores.astype(np.float32)


WORLDS = (
    World("seeds differ little"),
    World("seeds differ much", seed_sds=(0.03, 0.03)),
    World("sides differ in spread", seed_sds=(0.01, 0.05)),
    World("high accuracy", accuracies=(0.97, 0.965), seed_sds=(0.005, 0.005)),
    World("near chance", accuracies=(0.5, 0.5), seed_sds=(1e-4, 1e-4), ease_sd=0.3, luck_on_example_sd=1.0),
    World("independent errors", seed_sds=(1e-4, 1e-4), ease_sd=0.0, luck_on_example_sd=1.0),
    World("collapses", collapse=1 / 3),
)
# outside 93 to 98% with 1,000 simulations: again, five times as often and with other random numbers
AGAIN = (
    (WORLDS[2], 2000, False, 3),
    (WORLDS[2], 2000, False, 25),
    (WORLDS[4], 200, True, 3),
    (WORLDS[5], 200, True, 3),
)
# crossed init seeds and data seeds, and the share of the seeds' variance that comes from the init
CROSSINGS = ((2, 2), (2, 5), (3, 3), (3, 5), (5, 5))
SHARES_OF_INIT = (1.0, 0.5, 0.0)


@dataclass(frozen=True)
class Sweep:
    """Recipes among which each side chooses on validation.

    Attributes:
        name: in tables.
        recipes: their expected accuracies, of both sides.
        validation: validation examples.
    """

    name: str
    recipes: tuple[tuple[float, ...], tuple[float, ...]]
    validation: int = 200


# metrics of counts, with classes of one size and with a rare one
CLASSES = ("often", "rare")
COUNTED = product(("macro_f1", "mcc"), (0.5, 0.1), (400, 2000), (True, False), (3, 5, 10))


@dataclass(frozen=True)
class Growth:
    """A learning curve, and a score of another curve that it may reach.

    Between SIZES its accuracies are linear in the logarithm of the size, unless `labels` says otherwise.

    Attributes:
        name: in tables.
        accuracies: expected at each of SIZES.
        score: expected accuracy of the other curve.
        seed_sd: standard deviation of a run's accuracy by its seed alone.
        ease_sd, luck_on_example_sd: see `World`.
        paired: whether the score has the seeds of the curve.
        worse: by how much a second recipe is worse, on each side; None without a second one.
        labels: the number with which it reaches the score; None where SIZES tell it.
    """

    name: str
    accuracies: tuple[float, ...]
    score: float
    seed_sd: float = 0.01
    ease_sd: float = 1.0
    luck_on_example_sd: float = 0.4
    paired: bool = True
    worse: float | None = None
    labels: float | None = None

    @property
    def world(self) -> World:
        """How its runs are right or wrong."""
        return World(
            self.name, (0.7, 0.7), (self.seed_sd, self.seed_sd), self.ease_sd, self.luck_on_example_sd
        )

    @property
    def truth(self) -> float:
        """The number of labels with which it reaches the score; infinite, or 0, beyond the sizes."""
        if self.labels is not None:
            return self.labels
        if self.score > self.accuracies[-1]:
            return math.inf
        if self.score < self.accuracies[0]:
            return 0.0
        return float(2 ** np.interp(self.score, self.accuracies, np.log2(SIZES)))


SIZES = (28, 56, 112, 225, 450, 900, 1800)
SEED_CORRELATION_OF_SIZES = 0.5  # a seed draws nested texts and the same weights at every size


def power_law(*labels: int) -> tuple[float, ...]:
    """Accuracies that are not linear between sizes."""
    return tuple(0.82 - 0.27 * (number / SIZES[0]) ** -0.5 for number in labels)


STEEP = (0.55, 0.60, 0.65, 0.70, 0.75, 0.80, 0.85)
FLATTENING = (0.55, 0.66, 0.73, 0.77, 0.79, 0.80, 0.805)
FLAT = (0.70, 0.705, 0.71, 0.715, 0.72, 0.725, 0.73)
GROWTHS = (
    Growth("steep", STEEP, 0.72),
    Growth("steep, not paired", STEEP, 0.72, paired=False),
    Growth("flattening", FLATTENING, 0.78),
    Growth("power law", power_law(*SIZES), *power_law(640), labels=640),
    Growth("flat", FLAT, 0.7125),
    Growth("seeds differ much", STEEP, 0.72, seed_sd=0.03),
    Growth("seeds differ much, not paired", STEEP, 0.72, seed_sd=0.03, paired=False),
    Growth("interaction dominates", STEEP, 0.72, seed_sd=1e-4, ease_sd=0.3, luck_on_example_sd=1.0),
    Growth("score below all sizes", FLATTENING, 0.54),
    Growth("score above all sizes", FLATTENING, 0.81),
    Growth("two recipes", STEEP, 0.72, worse=0.01),
)
SIZES_AGAIN = ((GROWTHS[6], 200, 10),)  # as AGAIN

SWEEPS = (
    Sweep("equal recipes", ((0.80,) * 4, (0.80,) * 4)),
    Sweep("one far better", ((0.80, 0.70, 0.70, 0.70), (0.80, 0.70, 0.70, 0.70))),
    Sweep("near and far", ((0.80, 0.795, 0.785, 0.76), (0.77, 0.785, 0.79, 0.75))),
    Sweep("ridge of a rate", ((0.80, 0.79, 0.77, 0.70), (0.67, 0.70, 0.72, 0.73)), validation=100),
)


# --- simulated sides ----------------------------------------------------------------------------------------


def correlated(correlation: float, size: int, rng: np.random.Generator) -> np.ndarray:
    """Standard normal numbers of both sides, (2, size)."""
    shared, own = rng.standard_normal(size), rng.standard_normal((2, size))
    return math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * own


def lucks(world: World, seeds: int, paired: bool, rng: np.random.Generator) -> list[np.ndarray]:
    """The luck of the seeds of both sides."""
    drawn = correlated(SEED_CORRELATION_IF_PAIRED if paired else 0.0, seeds, rng)
    return [world.luck_sd(side) * drawn[side] for side in range(2)]


def crossed_luck(
    world: World, inits: int, datas: int, of_init: float, rng: np.random.Generator
) -> np.ndarray:
    """The luck of every init seed with every data seed of one side, in the order of their seeds."""
    init, data = rng.standard_normal((inits, 1)), rng.standard_normal((1, datas))
    return world.luck_sd(0) * (math.sqrt(of_init) * init + math.sqrt(1 - of_init) * data).ravel()


def over_seeds(scores: list[np.ndarray], paired: bool) -> statistics.Bounds:
    """Student's t interval over seeds alone: of pairs, or Welch's."""
    a, b = (side.mean(axis=1, dtype=np.float64) for side in scores)
    interval = (
        statistics.t_interval(a - b, CONFIDENCE) if paired else statistics.welch_interval(a, b, CONFIDENCE)
    )
    return interval or (math.nan, math.nan)


# --- studies ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """What a study is asked: simulations, replicates of each, and the seed of the random numbers."""

    simulations: int
    replicates: int
    seed: int

    def rng(self, *names: object) -> np.random.Generator:
        """Random numbers of a setting of its own."""
        return np.random.default_rng([self.seed, *(abs(hash_of(name)) for name in names)])


def hash_of(name: object) -> int:
    """The same number for a name in every process."""
    return int.from_bytes(str(name).encode(), "little") % 2**63


def coverage(world: World, examples: int, paired: bool, seeds: int, asked: Asked) -> dict[str, object]:
    """Coverage, in percent, and mean width, in points, of each interval."""
    rng = asked.rng(world.name, examples, seeds, paired)
    draws = bootstrap.Draws(examples, asked.replicates, asked.seed)
    named = tuple((k, k) for k in range(seeds))
    bounds: dict[str, list[tuple[float, float]]] = {"primary": [], "percentile": [], "t": []}
    for simulation in range(asked.simulations):
        ease, luck = world.ease(examples, rng), lucks(world, seeds, paired, rng)
        scores = [world.right(side, ease[side], luck[side], rng) for side in range(2)]
        sides = [bootstrap.Side(side, named, draws) for side in scores]
        found = bootstrap.compare(*sides, paired=paired, confidence=CONFIDENCE, seed=simulation)
        bounds["primary"].append((found.low, found.high))
        bounds["percentile"].append((found.percentile_low, found.percentile_high))
        bounds["t"].append(over_seeds(scores, paired))
    row = {"world": world.name, "examples": examples, "paired": paired, "seeds": seeds}
    return row | {"simulations": asked.simulations} | measured(bounds, world.truth)


def counted(
    metric: str, rare: float, examples: int, paired: bool, seeds: int, asked: Asked
) -> dict[str, object]:
    """The same of a metric of counts, of two classes of which one has the share `rare` of the examples.

    A wrong answer is the other class. The true value is the mean over seeds of that on endless examples.
    """
    world = World("two classes", seed_sds=(0.02, 0.02))
    rng = asked.rng(metric, rare, examples, seeds, paired)
    maker = SideMaker({"replicates": asked.replicates, "bootstrap_seed": asked.seed})
    named = tuple((k, k) for k in range(seeds))
    bounds: dict[str, list[tuple[float, float]]] = {"primary": [], "percentile": [], "t": []}
    for simulation in range(asked.simulations):
        ease, luck = world.ease(examples, rng), lucks(world, seeds, paired, rng)
        labels = (rng.random(examples) < rare).astype(np.int16)
        cells = [
            cell_of(labels, world.right(side, ease[side], luck[side], rng).astype(bool)) for side in range(2)
        ]
        sides = [maker.side(cell, metric, named, "test") for cell in cells]
        found = bootstrap.compare(*sides, paired=paired, confidence=CONFIDENCE, seed=simulation)
        bounds["primary"].append((found.low, found.high))
        bounds["percentile"].append((found.percentile_low, found.percentile_high))
        bounds["t"].append(over_seeds([side.scores for side in sides], paired))
    truths = [expected(world, side, metric, rare) for side in range(2)]
    row = {"metric": metric, "rare_share": rare, "examples": examples, "paired": paired, "seeds": seeds}
    row |= {"true_points": round(100 * (truths[0] - truths[1]), 2), "simulations": asked.simulations}
    return row | measured(bounds, truths[0] - truths[1])


def cell_of(labels: np.ndarray, right: np.ndarray) -> CellPredictions:
    """Predictions of two classes, by which of them are right."""
    predicted = np.where(right, labels, 1 - labels).astype(np.int16)
    ids = tuple(map(str, range(len(labels))))
    return CellPredictions(CLASSES, ids, labels, predicted, np.ones(right.shape), np.ones(right.shape))


def expected(world: World, side: int, metric: str, rare: float) -> float:
    """The mean over seeds of a metric on endless examples."""
    lucks, weights = np.polynomial.hermite_e.hermegauss(41)
    others = math.sqrt(world.ease_sd**2 + world.luck_on_example_sd**2)
    total = math.sqrt(others**2 + world.luck_sd(side) ** 2)
    level = special.ndtri(world.accuracies[side]) * total
    right = special.ndtr((level + world.luck_sd(side) * lucks) / others)[:, None]
    shares = np.array([1 - rare, rare])
    predicted = right * shares + (1 - right) * shares[::-1]
    counts = class_metrics.Counts(right * shares, predicted, shares, np.zeros(len(lucks)))
    return float(class_metrics.value(metric, counts, CLASSES) @ weights / weights.sum())


def crossing(inits: int, datas: int, of_init: float, examples: int, asked: Asked) -> dict[str, object]:
    """The same where every init seed was run with every data seed, unpaired."""
    world = World("crossed", accuracies=(0.80, 0.80), seed_sds=(0.02, 0.02))
    rng = asked.rng(inits, datas, of_init, examples)
    draws = bootstrap.Draws(examples, asked.replicates, asked.seed)
    named = tuple(product(range(inits), range(datas)))
    bounds = []
    for simulation in range(asked.simulations):
        ease = world.ease(examples, rng)
        sides = [
            bootstrap.Side(
                world.right(side, ease[side], crossed_luck(world, inits, datas, of_init, rng), rng),
                named,
                draws,
            )
            for side in range(2)
        ]
        found = bootstrap.compare(*sides, paired=False, confidence=CONFIDENCE, seed=simulation)
        bounds.append((found.low, found.high))
    row = {"init_seeds": inits, "data_seeds": datas, "share_of_init": of_init, "examples": examples}
    return row | {"simulations": asked.simulations} | measured({"primary": bounds}, world.truth)


def selection(sweep: Sweep, seed_sd: float, seeds: int, asked: Asked) -> dict[str, object]:
    """Coverage where each side chooses among recipes on validation, on 2,000 test examples, unpaired.

    The true value is what the procedure gives on average, choice included, estimated by the mean over all
    simulations. `fixed` is the primary interval of the chosen pair, as if it had been given.
    """
    world = World(sweep.name, accuracies=(0.80, 0.80), seed_sds=(seed_sd, seed_sd))
    rng, test = asked.rng(sweep.name, seed_sd, seeds), EXAMPLES[-1]
    draws = [bootstrap.Draws(size, asked.replicates, asked.seed) for size in (test, sweep.validation)]
    found: dict[str, list[tuple[float, float]]] = {"primary": [], "percentile": [], "fixed": []}
    deltas = []
    for simulation in range(asked.simulations):
        eases = world.ease(test, rng), world.ease(sweep.validation, rng)
        groups = [candidates(world, sweep, side, seeds, eases, draws, rng) for side in range(2)]
        best = bootstrap.compare_best(*groups, paired=False, confidence=CONFIDENCE, seed=simulation)
        chosen = [group[bootstrap.choice(group)].test for group in groups]
        fixed = bootstrap.compare(*chosen, paired=False, confidence=CONFIDENCE, seed=simulation)
        deltas.append(best.delta)
        found["primary"].append((best.low, best.high))
        found["percentile"].append((best.percentile_low, best.percentile_high))
        found["fixed"].append((fixed.low, fixed.high))
    truth = float(np.mean(deltas))
    row = {
        "sweep": sweep.name,
        "seed_sd_points": 100 * seed_sd,
        "seeds": seeds,
        "simulations": asked.simulations,
    }
    return row | {"true_points": round(100 * truth, 2)} | measured(found, truth)


def candidates(
    world: World,
    sweep: Sweep,
    side: int,
    seeds: int,
    eases: tuple[np.ndarray, np.ndarray],
    draws: list[bootstrap.Draws],
    rng: np.random.Generator,
) -> list[bootstrap.Candidate]:
    """The recipes of one side: each with its own seeds' luck, which test and validation share."""
    named = tuple((k, k) for k in range(seeds))
    found = []
    for accuracy in sweep.recipes[side]:
        luck = world.luck_sd(side) * rng.standard_normal(seeds)
        test, validation = (
            bootstrap.Side(world.right(side, ease[side], luck, rng, accuracy), named, one)
            for ease, one in zip(eases, draws, strict=True)
        )
        found.append(bootstrap.Candidate(test, validation, validation))
    return found


def sizes(growth: Growth, examples: int, seeds: int, asked: Asked) -> dict[str, object]:
    """Coverage of the interval of a number of labels, its mean width in doublings, and its open ends.

    A true number beyond the sizes is covered where the interval is open on that side.
    """
    rng = asked.rng("sizes", growth.name, examples, seeds)
    draws = [bootstrap.Draws(size, asked.replicates, asked.seed) for size in (examples, VALIDATION)]
    covered, widths, closed, errors = 0, [], 0, []
    for simulation in range(asked.simulations):
        score, points = growing(growth, seeds, draws, rng)
        found = label_worth.worth(
            score,
            label_worth.Curve(SIZES, points),
            direction=1,
            paired=growth.paired,
            confidence=CONFIDENCE,
            seed=simulation,
        )
        low, high = (end.outermost for end in (found.low, found.high))
        covered += low <= growth.truth <= high
        if low > 0 and high < math.inf:
            closed += 1
            widths.append(math.log2(high / low))
        if found.labels.bound is None and 0 < growth.truth < math.inf:
            errors.append(math.log2(found.labels.number / growth.truth))
    share = 100 / asked.simulations
    return {
        "curve": growth.name,
        "examples": examples,
        "seeds": seeds,
        "true_labels": TRUTHS_BEYOND.get(growth.truth) or round(growth.truth),
        "simulations": asked.simulations,
        "coverage_percent": round(share * covered, 1),
        "closed_percent": round(share * closed, 1),
        "closed_width_doublings": round(float(np.mean(widths)), 2) if widths else None,
        "bounded_estimates_percent": round(100 - share * len(errors), 1) if errors else None,
        "mean_error_doublings": round(float(np.mean(errors)), 2) if errors else None,
    }


def growing(
    growth: Growth, seeds: int, draws: list[bootstrap.Draws], rng: np.random.Generator
) -> tuple[list[bootstrap.Candidate], list[list[bootstrap.Candidate]]]:
    """The score and the points of the curve. Runs of one seed are correlated over sizes and, where they are
    paired, with the score."""
    world = growth.world
    eases = [world.ease(one.examples, rng) for one in draws]
    named = tuple((k, k) for k in range(seeds))
    shared = rng.standard_normal((2, seeds))
    if growth.paired:
        shared[1] = shared[0]

    def point(side: int, accuracy: float) -> list[bootstrap.Candidate]:
        own = rng.standard_normal(seeds)
        together, apart = SEED_CORRELATION_OF_SIZES, 1 - SEED_CORRELATION_OF_SIZES
        luck = world.luck_sd(side) * (math.sqrt(together) * shared[side] + math.sqrt(apart) * own)
        recipes = [accuracy] if growth.worse is None else [accuracy, accuracy - growth.worse]
        # without a second recipe nothing is validated
        parts = list(zip(eases, draws, strict=True))[: len(recipes)]
        found = []
        for expected_accuracy in recipes:
            of_parts = [
                bootstrap.Side(world.right(side, ease[side], luck, rng, expected_accuracy), named, one)
                for ease, one in parts
            ]
            found.append(bootstrap.Candidate(of_parts[0], of_parts[-1], of_parts[-1]))
        return found

    return point(0, growth.score), [point(1, accuracy) for accuracy in growth.accuracies]


def looks(world: World, examples: int, asked: Asked) -> dict[str, object]:
    """How often, in percent, an interval of equal sides leaves zero out: at each look, and at any of them.

    The latter is the error rate of who adds seeds until the difference is decided. Paired.
    """
    world = replace(world, accuracies=(world.accuracies[0],) * 2, collapse=0.0)
    rng = asked.rng("looks", world.name, examples)
    draws = bootstrap.Draws(examples, asked.replicates, asked.seed)
    said = np.zeros((asked.simulations, len(LOOKS)), dtype=bool)
    for simulation in range(asked.simulations):
        ease, luck = world.ease(examples, rng), lucks(world, LOOKS[-1], True, rng)
        scores = [world.right(side, ease[side], luck[side], rng) for side in range(2)]
        for place, seeds in enumerate(LOOKS):
            named = tuple((k, k) for k in range(seeds))
            sides = [bootstrap.Side(each[:seeds], named, draws) for each in scores]
            found = bootstrap.compare(*sides, paired=True, confidence=CONFIDENCE, seed=simulation)
            said[simulation, place] = found.p_value < 1 - CONFIDENCE
    row: dict[str, object] = {"world": world.name, "examples": examples, "simulations": asked.simulations}
    for place, seeds in enumerate(LOOKS):
        row[f"at_{seeds}_percent"] = round(100 * float(said[:, place].mean()), 1)
    return row | {"ever_percent": round(100 * float(said.any(axis=1).mean()), 1)}


def sequential(world: World, examples: int, difference: float, asked: Asked) -> dict[str, object]:
    """Seeds added until a question is decided, by the looks of `until`, beside 25 seeds at once. Paired.

    Shares of simulations, in percent: what the looks decide and how they end, whether the interval at the end
    holds the true difference; and what one look at 25 seeds decides.
    """
    level = world.accuracies[0]
    world = replace(world, accuracies=(level, level - difference), collapse=0.0)
    rng = asked.rng("sequential", world.name, examples, difference)
    draws = bootstrap.Draws(examples, asked.replicates, asked.seed)
    ends: dict[str, list[bool | int]] = {}
    for simulation in range(asked.simulations):
        ease, luck = world.ease(examples, rng), lucks(world, PLANNED[-1], True, rng)
        scores = [world.right(side, ease[side], luck[side], rng) for side in range(2)]
        compared = partial(_compared, scores, draws, simulation)
        told, (low, high) = _looked_at(compared)
        told |= _at_once(compared(PLANNED[-1], CONFIDENCE, spread.CREDIT))
        told["covered"] = low <= difference <= high
        for name, value in told.items():
            ends.setdefault(name, []).append(value)
    shares = {
        f"{name}_percent": round(100 * float(np.mean(values)), 1)
        for name, values in ends.items()
        if name != "seeds"
    }
    return {
        "world": world.name,
        "examples": examples,
        "difference": difference,
        "simulations": asked.simulations,
        "mean_seeds": round(float(np.mean(ends["seeds"])), 1),
        **shares,
    }


def _compared(
    scores: list[np.ndarray],
    draws: bootstrap.Draws,
    seed: int,
    seeds: int,
    confidence: float,
    credit: float,
) -> bootstrap.Estimate:
    """The difference over the first of paired seeds."""
    named = tuple((k, k) for k in range(seeds))
    sides = [bootstrap.Side(each[:seeds], named, draws) for each in scores]
    return bootstrap.compare(*sides, paired=True, confidence=confidence, seed=seed, credit=credit)


def _looked_at(
    compared: Callable[[int, float, float], bootstrap.Estimate],
) -> tuple[dict[str, Any], tuple[float, float]]:
    """How the looks at one experiment end, and the interval at the last of them."""
    last = looks_at.look_at(PLANNED[-1], PLANNED, CONFIDENCE).confidence
    for seeds in PLANNED:
        look = looks_at.look_at(seeds, PLANNED, CONFIDENCE)
        found = compared(seeds, look.confidence, spread.NO_CREDIT)
        small = found.low > -INTEREST and found.high < INTEREST
        apart = found.low > 0 or found.high < 0
        chance = stopping.chance_of_endless_seeds(
            found.delta,
            found.se_seeds,
            found.se_examples,
            degrees=seeds - 1,
            interest=INTEREST,
            confidence=last,
        )
        futile = not small and not apart and chance < stopping.LEAST_CHANCE
        if small or apart or futile or seeds == PLANNED[-1]:
            break
    told = {
        "seeds": seeds,
        "apart": apart,
        "reversed": apart and found.high < 0,
        "small": small and not apart,
        "futile": futile,
    }
    return told, (found.low, found.high)


def _at_once(found: bootstrap.Estimate) -> dict[str, Any]:
    """What one look at all seeds decides."""
    apart = found.low > 0 or found.high < 0
    return {
        "apart_at_once": apart,
        "small_at_once": not apart and found.low > -INTEREST and found.high < INTEREST,
    }


def measured(bounds: dict[str, list[tuple[float, float]]], truth: float) -> dict[str, float]:
    """Coverage, in percent, and mean width, in points, of each kind of interval."""
    row = {}
    for name, pairs in bounds.items():
        low, high = np.array(pairs).T
        row[f"{name}_coverage_percent"] = round(100 * float(np.mean((low <= truth) & (truth <= high))), 1)
        row[f"{name}_width_points"] = round(100 * float(np.nanmean(high - low)), 2)
    return row


def false_order(seeds: int, asked: Asked) -> dict[str, object]:
    """Share, in percent, of comparisons of equal sides in which eps_min lies below 0.5 and below 0.2."""
    rng = asked.rng("aso", seeds)
    row: dict[str, object] = {"seeds": seeds, "simulations": asked.simulations}
    for comparisons in (1, 4):
        bounds = [
            dominance.aso_eps_min(
                *rng.standard_normal((2, seeds)),
                confidence=CONFIDENCE,
                comparisons=comparisons,
                replicates=asked.replicates,
                seed=simulation,
            )
            for simulation in range(asked.simulations)
        ]
        for limit in (0.5, 0.2):
            share = float(np.mean(np.array(bounds) < limit))
            row[f"below_{limit}_of_{comparisons}_percent"] = round(100 * share, 1)
    return row


# --- all of them --------------------------------------------------------------------------------------------


def studies(asked: Asked) -> Iterator[tuple[str, list[tuple]]]:
    """Each table with the calls that make its rows: function and arguments."""
    half, fewer = (replace(asked, simulations=asked.simulations // share) for share in (2, 4))
    pairs = (True, False)
    yield "coverage", [(coverage, *each, asked) for each in product(WORLDS, EXAMPLES, pairs, SEEDS)]
    crossed = product(CROSSINGS, SHARES_OF_INIT, EXAMPLES)
    yield "crossed", [(crossing, *shape, share, size, asked) for shape, share, size in crossed]
    yield "selection", [(selection, *each, fewer) for each in product(SWEEPS, (0.01, 0.03), SEEDS[1:4])]
    yield "looks", [(looks, *each, fewer) for each in product(WORLDS[:-1], EXAMPLES)]
    planned = product(WORLDS[:-1], EXAMPLES, DIFFERENCES)
    yield "sequential", [(sequential, *each, half) for each in planned]
    yield "aso", [(false_order, seeds, asked) for seeds in SEEDS[1:]]
    yield "sizes", [(sizes, *each, half) for each in product(GROWTHS, EXAMPLES, SEEDS[1:4])]
    yield "counted", [(counted, *each, asked) for each in COUNTED]
    more = replace(asked, simulations=5 * asked.simulations, seed=asked.seed + 1)
    yield "again", [(coverage, *each, more) for each in AGAIN]
    yield "sizes_again", [(sizes, *each, more) for each in SIZES_AGAIN]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the tables go")
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--only",
        choices=STUDIES,
        action="append",
    )
    given = parser.parse_args()
    asked = Asked(given.simulations, given.replicates, given.seed)
    given.folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(given.processes) as pool:
        for name, calls in studies(asked):
            if given.only and name not in given.only:
                continue
            started = time.monotonic()
            rows = [one.result() for one in [pool.submit(*call) for call in calls]]
            write_rows(given.folder / f"{name}.csv", list(rows[0]), rows)
            print(f"{name}: {len(rows)} settings in {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
