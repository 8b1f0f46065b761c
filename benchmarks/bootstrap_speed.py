"""How long the Multi-Bootstrap takes: one cell of 25 seeds x 2,000 examples, and 400 cells that share draws.

OMP_NUM_THREADS=1 .venv/bin/python benchmarks/bootstrap_speed.py
"""

import resource
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from seedbed.analysis.bootstrap import Candidate, Draws, Side, compare, compare_best

SEEDS, EXAMPLES, REPLICATES, CELLS = 25, 2000, 10_000, 400
PAIRS = tuple((seed, seed) for seed in range(SEEDS))


def cell(rng: np.random.Generator, draws: Draws) -> Side:
    """A cell whose runs are right about four examples in five."""
    return Side((rng.random((SEEDS, draws.examples)) < 0.8).astype(np.float32), PAIRS, draws)


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


def report(what: str, started: float) -> None:
    print(f"{time.process_time() - started:6.2f} s of processor time  {what}")


if __name__ == "__main__":
    main()
