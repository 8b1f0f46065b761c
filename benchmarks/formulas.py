"""How often tests and bounds beside the Multi-Bootstrap are wrong where the truth is known.

    python benchmarks/formulas.py FILE.csv [--simulations 20000]

Two equal systems: of each seed an accuracy on 400 examples, with 80% on average and a standard deviation of
one point between seeds. A test is wrong where it tells the systems apart at 5%; an interval, where it misses
the truth. The Multi-Bootstrap itself is simulated by coverage.py.
"""

import argparse
import csv
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from seedbed.analysis import dominance, statistics

EXAMPLES, MEAN, SPREAD = 400, 0.8, 0.01
LEVEL, SEEDS = 0.05, (3, 5, 10)
MARGIN = 0.02
SYSTEMS = 10  # of Holm's correction: 45 comparisons
RATE, BETTER = 0.1, 0.5  # of collapsed runs, and of the majority class

Wrong = Callable[[np.random.Generator, int], bool]


def accuracies(
    rng: np.random.Generator, seeds: int, mean: float = MEAN, spread: float = SPREAD
) -> list[float]:
    """The accuracy of each seed."""
    shares = np.clip(rng.normal(mean, spread, seeds), 0, 1)
    return (rng.binomial(EXAMPLES, shares) / EXAMPLES).tolist()


def paired_error(a: list[float], b: list[float]) -> tuple[float, float, int] | None:
    """The difference of pairs, its standard error and degrees of freedom; None without spread."""
    differences = np.subtract(a, b)
    error = float(differences.std(ddof=1) / np.sqrt(len(a)))
    return (float(differences.mean()), error, len(a) - 1) if error else None


def paired_t(rng: np.random.Generator, seeds: int) -> bool:
    found = paired_error(accuracies(rng, seeds), accuracies(rng, seeds))
    return found is not None and statistics.t_p(*found) < LEVEL


def welch(rng: np.random.Generator, seeds: int) -> bool:
    """One side varies three times as much."""
    bounds = statistics.welch_interval(
        accuracies(rng, seeds), accuracies(rng, seeds, spread=3 * SPREAD), 1 - LEVEL
    )
    return bounds is not None and not bounds[0] <= 0 <= bounds[1]


def sign_flip(rng: np.random.Generator, seeds: int) -> bool:
    differences = np.subtract(accuracies(rng, seeds), accuracies(rng, seeds)).tolist()
    p_value = statistics.sign_flip_p(differences)
    return p_value is not None and p_value < LEVEL


def permutation(rng: np.random.Generator, seeds: int) -> bool:
    p_value = statistics.permutation_p(accuracies(rng, seeds), accuracies(rng, seeds))
    return p_value is not None and p_value < LEVEL


def holm(rng: np.random.Generator, seeds: int) -> bool:
    """Any of 45 comparisons of ten equal systems."""
    systems = [accuracies(rng, seeds) for _ in range(SYSTEMS)]
    found = [paired_error(a, b) for a, b in itertools.combinations(systems, 2)]
    adjusted = statistics.holm([statistics.t_p(*one) for one in found if one is not None])
    return any(p_value is not None and p_value < LEVEL for p_value in adjusted)


def equivalence(rng: np.random.Generator, seeds: int) -> bool:
    """The systems differ by the margin."""
    found = paired_error(accuracies(rng, seeds, MEAN + MARGIN), accuracies(rng, seeds))
    return found is not None and statistics.equivalence_p(*found, MARGIN) < LEVEL


def mcnemar(rng: np.random.Generator, _: int) -> bool:
    """Two models that are right on each example with the same probability, which varies."""
    shares = rng.beta(4, 1, EXAMPLES)
    a, b = (rng.random(EXAMPLES) < shares for _ in range(2))
    return statistics.mcnemar_p(int((a & ~b).sum()), int((b & ~a).sum())) < LEVEL


def mean_of_seeds(rng: np.random.Generator, seeds: int) -> bool:
    bounds = statistics.t_interval(accuracies(rng, seeds), 1 - LEVEL)
    return bounds is not None and not bounds[0] <= MEAN <= bounds[1]


def collapse_rate(rng: np.random.Generator, seeds: int) -> bool:
    low, high = statistics.rate_interval(int(rng.binomial(seeds, RATE)), seeds, 1 - LEVEL)
    return not low <= RATE <= high


def above_majority(rng: np.random.Generator, _: int) -> bool:
    """A run that guesses is called better than the majority class."""
    return statistics.wilson_lower(int(rng.binomial(EXAMPLES, BETTER)), EXAMPLES, 1 - LEVEL) > BETTER


def improvement(rng: np.random.Generator, seeds: int) -> bool:
    """The probability of improvement is 0.75 or more, which is no test."""
    return dominance.probability_of_improvement(accuracies(rng, seeds), accuracies(rng, seeds)) >= 0.75


OVER_SEEDS: tuple[Wrong, ...] = (
    paired_t, welch, sign_flip, permutation, holm, equivalence, mean_of_seeds, collapse_rate, improvement,
)  # fmt: skip
OF_RUNS: tuple[Wrong, ...] = (mcnemar, above_majority)


def rates(simulations: int) -> Iterator[tuple[str, int, float]]:
    """Name, seeds a side, and how often it is wrong, in per cent."""
    for wrong in (*OVER_SEEDS, *OF_RUNS):
        for seeds in SEEDS if wrong in OVER_SEEDS else (1,):
            rng = np.random.default_rng([seeds, len(wrong.__name__)])
            count = sum(wrong(rng, seeds) for _ in range(simulations))
            yield wrong.__name__, seeds, round(100 * count / simulations, 2)


def main() -> None:
    """Write the table, and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--simulations", type=int, default=20_000)
    asked = parser.parse_args()
    with open(asked.file, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("formula", "seeds", "wrong_percent"))
        for row in rates(asked.simulations):
            print(*row)
            writer.writerow(row)


if __name__ == "__main__":
    main()
