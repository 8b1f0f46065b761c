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
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from scipy import special

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from seedbed.analysis import bootstrap, dominance, statistics
from seedbed.core.files import write_rows

ACCURACIES = (0.80, 0.79)
EASE_SD, EASE_CORRELATION = 1.0, 0.8
# two seeds then disagree on about 12% of the examples
SEED_ON_EXAMPLE_SD = 0.4
SEED_CORRELATION_IF_PAIRED = 0.5
# expected accuracies of the recipes among which a side chooses, on that many validation examples
RECIPES = ((0.80, 0.795, 0.785, 0.76), (0.77, 0.785, 0.79, 0.75))
VALIDATION_EXAMPLES = 200
SEEDS = (3, 5, 10, 25)
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Setting:
    """One simulated experiment: seed_sd is the standard deviation of a run's accuracy by its seed alone."""

    examples: int
    paired: bool
    seed_sd: float
    seeds: int


def luck_sd(setting: Setting) -> float:
    """Standard deviation of the seed's luck that moves an accuracy of ACCURACIES[0] by seed_sd."""
    others = EASE_SD**2 + SEED_ON_EXAMPLE_SD**2
    # accuracy is Phi(level / total sd), with slope phi(...) / total sd; the seed's own part of it is small
    slope = math.exp(-(special.ndtri(ACCURACIES[0]) ** 2) / 2) / math.sqrt(2 * math.pi * others)
    return setting.seed_sd / slope


def simulate(setting: Setting, rng: np.random.Generator) -> list[np.ndarray]:
    """Scores of both sides, (seeds, examples)."""
    ease = EASE_SD * correlated(EASE_CORRELATION, setting.examples, rng)
    correlation = SEED_CORRELATION_IF_PAIRED if setting.paired else 0.0
    luck = luck_sd(setting) * correlated(correlation, setting.seeds, rng)
    return [
        right(accuracy, ease[side], luck[side], luck_sd(setting), rng)
        for side, accuracy in enumerate(ACCURACIES)
    ]


def right(
    accuracy: float, ease: np.ndarray, luck: np.ndarray, seed_sd: float, rng: np.random.Generator
) -> np.ndarray:
    """Which examples each seed gets right, (seeds, examples), where the expected accuracy is given."""
    noise = SEED_ON_EXAMPLE_SD * rng.standard_normal((len(luck), len(ease)))
    level = special.ndtri(accuracy) * math.sqrt(EASE_SD**2 + SEED_ON_EXAMPLE_SD**2 + seed_sd**2)
    return (level + ease + luck[:, None] + noise > 0).astype(np.float32)


def correlated(correlation: float, size: int, rng: np.random.Generator) -> np.ndarray:
    """Standard normal numbers of both sides, (2, size)."""
    shared, own = rng.standard_normal(size), rng.standard_normal((2, size))
    return math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * own


def over_seeds(scores: list[np.ndarray], paired: bool) -> statistics.Bounds:
    """Student's t interval over seeds alone: of pairs, or Welch's."""
    a, b = (side.mean(axis=1, dtype=np.float64) for side in scores)
    interval = (
        statistics.t_interval(a - b, CONFIDENCE) if paired else statistics.welch_interval(a, b, CONFIDENCE)
    )
    return interval or (math.nan, math.nan)


def coverage(setting: Setting, simulations: int, replicates: int, seed: int) -> dict[str, object]:
    """Coverage, in percent, and mean width, in points, of each interval."""
    rng = np.random.default_rng([seed, setting.examples, setting.seeds, setting.paired])
    draws = bootstrap.Draws(setting.examples, replicates, seed)
    seeds = tuple((k, k) for k in range(setting.seeds))
    truth = ACCURACIES[0] - ACCURACIES[1]
    bounds: dict[str, list[tuple[float, float]]] = {"percentile": [], "primary": [], "symmetric": [], "t": []}
    for simulation in range(simulations):
        scores = simulate(setting, rng)
        sides = [bootstrap.Side(side, seeds, draws) for side in scores]
        found = bootstrap.compare(*sides, paired=setting.paired, confidence=CONFIDENCE, seed=simulation)
        half = statistics.t_quantile(CONFIDENCE, found.degrees) * found.standard_error
        bounds["percentile"].append((found.percentile_low, found.percentile_high))
        bounds["primary"].append((found.low, found.high))
        bounds["symmetric"].append((found.delta - half, found.delta + half))
        bounds["t"].append(over_seeds(scores, setting.paired))
    return describe(setting, simulations) | measured(bounds, truth)


def candidates(
    setting: Setting, side: int, ease: np.ndarray, draws: list[bootstrap.Draws], rng: np.random.Generator
) -> list[bootstrap.Candidate]:
    """The recipes of one side: each with its own seeds' luck, which test and validation share."""
    seeds, seed_sd = tuple((k, k) for k in range(setting.seeds)), luck_sd(setting)
    validation_ease = EASE_SD * rng.standard_normal(draws[1].examples)
    found = []
    for accuracy in RECIPES[side]:
        luck = seed_sd * rng.standard_normal(setting.seeds)
        test, validation = (
            bootstrap.Side(right(accuracy, known, luck, seed_sd, rng), seeds, one)
            for known, one in zip((ease, validation_ease), draws, strict=True)
        )
        found.append(bootstrap.Candidate(test, validation, validation))
    return found


def selection(setting: Setting, simulations: int, replicates: int, seed: int) -> dict[str, object]:
    """Coverage, in percent, where each side chooses among RECIPES on validation.

    The true value is what the procedure gives on average, choice included, estimated by the mean over all
    simulations. `fixed` is the primary interval of the chosen pair, as if it had been given.
    """
    rng = np.random.default_rng([seed, setting.examples, setting.seeds])
    draws = [bootstrap.Draws(size, replicates, seed) for size in (setting.examples, VALIDATION_EXAMPLES)]
    found = {"primary": [], "percentile": [], "fixed": []}
    deltas = []
    for simulation in range(simulations):
        ease = EASE_SD * correlated(EASE_CORRELATION, setting.examples, rng)
        groups = [candidates(setting, side, ease[side], draws, rng) for side in range(2)]
        settings = {"paired": False, "confidence": CONFIDENCE, "seed": simulation}
        best = bootstrap.compare_best(*groups, **settings)
        chosen = [max(group, key=lambda candidate: candidate.validation.mean).test for group in groups]
        fixed = bootstrap.compare(*chosen, **settings)
        deltas.append(best.delta)
        found["primary"].append((best.low, best.high))
        found["percentile"].append((best.percentile_low, best.percentile_high))
        found["fixed"].append((fixed.low, fixed.high))
    row = describe(setting, simulations)
    row["true_points"] = round(100 * float(np.mean(deltas)), 2)
    return row | measured(found, float(np.mean(deltas)))


def describe(setting: Setting, simulations: int) -> dict[str, object]:
    return {
        "examples": setting.examples,
        "seed_sd_points": 100 * setting.seed_sd,
        "paired": setting.paired,
        "seeds": setting.seeds,
        "simulations": simulations,
    }


def measured(bounds: dict[str, list[tuple[float, float]]], truth: float) -> dict[str, float]:
    """Coverage, in percent, and mean width, in points, of each kind of interval."""
    row = {}
    for name, pairs in bounds.items():
        low, high = np.array(pairs).T
        row[f"{name}_coverage_percent"] = round(100 * float(np.mean((low <= truth) & (truth <= high))), 1)
        row[f"{name}_width_points"] = round(100 * float(np.nanmean(high - low)), 2)
    return row


def false_order(seeds: int, simulations: int, replicates: int, seed: int) -> dict[str, object]:
    """Share, in percent, of comparisons of equal sides in which eps_min lies below 0.5 and below 0.2."""
    rng = np.random.default_rng([seed, seeds])
    row: dict[str, object] = {"seeds": seeds, "simulations": simulations}
    for comparisons in (1, 4):
        bounds = [
            dominance.aso_eps_min(
                *rng.standard_normal((2, seeds)),
                confidence=CONFIDENCE,
                comparisons=comparisons,
                replicates=replicates,
                seed=simulation,
            )
            for simulation in range(simulations)
        ]
        for limit in (0.5, 0.2):
            share = float(np.mean(np.array(bounds) < limit))
            row[f"below_{limit}_of_{comparisons}_percent"] = round(100 * share, 1)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where coverage.csv, selection.csv and aso.csv go")
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    started = time.monotonic()
    settings = [Setting(*values) for values in product((2000, 200), (True, False), (0.01, 0.03), SEEDS)]
    rows = [coverage(setting, given.simulations, given.replicates, given.seed) for setting in settings]
    write_rows(given.folder / "coverage.csv", list(rows[0]), rows)
    choices = [
        selection(Setting(2000, False, 0.01, seeds), given.simulations // 4, given.replicates, given.seed)
        for seeds in SEEDS
    ]
    write_rows(given.folder / "selection.csv", list(choices[0]), choices)
    orders = [false_order(seeds, given.simulations, given.replicates, given.seed) for seeds in SEEDS]
    write_rows(given.folder / "aso.csv", list(orders[0]), orders)
    print(f"{len(settings)} settings in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
