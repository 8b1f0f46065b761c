"""How long the Multi-Bootstrap takes: cells of 25 seeds x 2,000 examples, 400 that share draws, and curves.

OMP_NUM_THREADS=1 .venv/bin/python benchmarks/bootstrap_speed.py
"""

import resource
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from seedbed.analysis.bootstrap import Candidate, Draws, Side, compare, compare_best, given
from seedbed.analysis.label_worth import Curve, worth

SEEDS, EXAMPLES, REPLICATES, CELLS = 25, 2000, 10_000, 400
PAIRS = tuple((seed, seed) for seed in range(SEEDS))


def cell(rng: np.random.Generator, draws: Draws, seeds: int = SEEDS, accuracy: float = 0.8) -> Side:
    """A cell whose runs are right about four examples in five."""
    right = rng.random((seeds, draws.examples)) < accuracy
    return Side(right.astype(np.float32), PAIRS[:seeds], draws)


def labels(rng: np.random.Generator) -> None:
    """What a score of a learning curve is worth on another, of five seeds, and another score of it."""
    draws = Draws(EXAMPLES, REPLICATES, 1)
    points = [given(cell(rng, draws, 5, accuracy)) for accuracy in (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8)]
    curve = Curve((28, 56, 112, 225, 450, 900, 1800), points)
    for what in ("with its interval, drawing included", "another on the same curve"):
        score = given(cell(rng, draws, 5, 0.72))
        started = time.process_time()
        worth(score, curve, direction=1, paired=True, confidence=0.95, seed=0)
        report(f"number of labels, {what}", started)


def main() -> None:
    rng = np.random.default_rng(0)
    draws, validation = Draws(EXAMPLES, REPLICATES, 0), Draws(EXAMPLES // 10, REPLICATES, 0)
    left, right = cell(rng, draws), cell(rng, draws)
    started = time.process_time()
    compare(left, right, paired=True, confidence=0.95, seed=0)
    report("first contrast, drawing included", started)
    started = time.process_time()
    compare(left, right, paired=False, confidence=0.95, seed=0)
    report("another contrast of the same cells", started)
    candidates = [Candidate(cell(rng, draws), cell(rng, validation), cell(rng, validation)) for _ in range(8)]
    started = time.process_time()
    compare_best(candidates[:4], candidates[4:], paired=True, confidence=0.95, seed=0)
    report("choice among 4 recipes a side, their cells included", started)
    cells = [cell(rng, draws) for _ in range(CELLS)]
    started = time.process_time()
    for a, b in pairwise(cells):
        compare(a, b, paired=False, confidence=0.95, seed=0)
    report(f"{CELLS - 1} contrasts of {CELLS} cells", started)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    labels(rng)


def report(what: str, started: float) -> None:
    print(f"{time.process_time() - started:6.2f} s of processor time  {what}")


if __name__ == "__main__":
    main()
