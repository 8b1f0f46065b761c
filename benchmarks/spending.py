"""How looks at a growing experiment may spend alpha: error rate, power and seeds of each way.

    .venv/bin/python benchmarks/spending.py benchmarks/results/statistics/spending.csv

The model is that of `analysis.planning`: paired seeds, whose difference is normal, with variances of seeds,
examples and interaction in 37 shares. The mean squares of examples and of the interaction are known, as they
nearly are with hundreds of examples; that of the seeds is estimated. Looks at 3, 5, 10, 17 and 25 seeds,
20,000 experiments a share. `credit` is that of `analysis.spread`.
"""

import argparse
import math
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from seedbed.analysis.looks import nominal_levels
from seedbed.analysis.spread import CREDIT, NO_CREDIT, excess_of_few_seeds, normal
from seedbed.core.files import write_rows

LOOKS = (3, 5, 10, 17, 25)
ALPHA = 0.05
SIMULATIONS = 20_000
POWERS = (0.8, 0.95, 0.999)  # of one look at 25 seeds, if the variances were known
SHARES = [
    (seeds / 100, examples / 100)
    for seeds, examples in product((0, 10, 20, 35, 50, 70, 80, 95, 100), (0, 10, 20, 35, 50, 70, 95))
    if seeds + examples <= 100
]  # of the variance with five seeds; the rest is interaction


def by_power(exponent: float) -> Callable[[float, float], float]:
    """The spending of Kim and DeMets (1987)."""
    return lambda fraction, alpha: alpha * fraction**exponent


def pocock(fraction: float, alpha: float) -> float:
    """The spending of Lan and DeMets (1983) after Pocock."""
    return alpha * math.log(1 + (math.e - 1) * fraction)


def obrien_fleming(fraction: float, alpha: float) -> float:
    """The spending of Lan and DeMets (1983) after O'Brien and Fleming."""
    return float(4 * stats.norm.sf(stats.norm.isf(alpha / 4) / math.sqrt(fraction)))


def levels() -> dict[str, tuple[float, ...]]:
    """The level of each look by the way to spend; 0: no look."""
    fractions = tuple(seeds / LOOKS[-1] for seeds in LOOKS)
    ways = {f"power {each:g}": by_power(each) for each in (1, 1.5, 2, 3)}
    ways |= {"Pocock": pocock, "O'Brien-Fleming": obrien_fleming}
    spent = {name: nominal_levels(fractions, ALPHA, way) for name, way in ways.items()}
    every, last = (ALPHA,) * len(LOOKS), (0.0,) * (len(LOOKS) - 1) + (ALPHA,)
    bonferroni = (ALPHA / len(LOOKS),) * len(LOOKS)
    return {"5% at each look": every, "Bonferroni": bonferroni, **spent, "25 seeds at once": last}


def simulate(
    share: tuple[float, float], difference: float, credit: float, rng: np.random.Generator
) -> dict[str, tuple[float, float]]:
    """By the way to spend: how often a look decides, a fraction, and the mean number of seeds."""
    of_seeds, examples = 5 * share[0], share[1]
    interaction = max(0.0, 5 * (1 - share[0] - share[1]))  # of one seed
    seeds = rng.normal(0, math.sqrt(of_seeds + interaction), (SIMULATIONS, LOOKS[-1]))
    shown = seeds + rng.normal(0, math.sqrt(examples), (SIMULATIONS, 1)) + difference
    found = {}
    for name, of_looks in levels().items():
        stopped = np.full(SIMULATIONS, LOOKS[-1])
        decided = np.zeros(SIMULATIONS, dtype=bool)
        for number, level in zip(LOOKS, of_looks, strict=True):
            if not level:
                continue
            means, squares = shown[:, :number].mean(axis=1), shown[:, :number].var(axis=1, ddof=1) / number
            both = interaction / number
            excess = excess_of_few_seeds(squares, both, number - 1, 1 - level, credit)
            half = np.sqrt(normal(1 - level) ** 2 * (examples + both) + excess)
            now = (np.abs(means) > half) & ~decided
            stopped[now] = number
            decided |= now
        found[name] = float(decided.mean()), float(stopped.mean())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, help="the table to write")
    path = parser.parse_args().path
    rng = np.random.default_rng(0)
    rows = []
    for credit in (CREDIT, NO_CREDIT):
        errors = [simulate(share, 0.0, credit, rng) for share in SHARES]
        found: dict[float, list[dict[str, tuple[float, float]]]] = {power: [] for power in POWERS}
        for share, power in product(SHARES, POWERS):
            variance = share[1] + 5 * (1 - share[1]) / LOOKS[-1]
            difference = (normal(1 - ALPHA) + stats.norm.ppf(power)) * math.sqrt(variance)
            found[power].append(simulate(share, float(difference), credit, rng))
        for name in levels():
            row: dict[str, object] = {"spending": name, "credit": credit}
            row["most_error_percent"] = round(100 * max(one[name][0] for one in errors), 1)
            row["least_error_percent"] = round(100 * min(one[name][0] for one in errors), 1)
            for power in POWERS:
                losses = [one["25 seeds at once"][0] - one[name][0] for one in found[power]]
                row[f"most_power_lost_at_{100 * power:g}_points"] = round(100 * max(losses), 1)
                row[f"mean_seeds_at_{100 * power:g}"] = round(
                    float(np.mean([one[name][1] for one in found[power]])), 1
                )
            rows.append(row)
    write_rows(path, list(rows[0]), rows)


if __name__ == "__main__":
    main()
