"""Time and memory of aggregation at scale: 10,000 runs, that is 400 cells of 25 seeds.

    PYTHONPATH=scripts:tests python benchmarks/aggregate.py FOLDER [--test 2000 --validation 200]

makes up the runs of 5 datasets, 2 models, 2 frameworks, 2 inits and 10 learning rates below FOLDER, unless
they are there, aggregates them in a process of its own, and prints the seconds that took and its peak memory.
"""

import argparse
import multiprocessing
import resource
import sys
import time
from pathlib import Path

from synthetic import Synthetic, config_of, make_experiment

from seedbed.config.plan import Plan
from seedbed.config.runs import Run

MODELS = ("small", "base")
RATES = [1e-5, 2e-5, 3e-5, 5e-5, 7e-5, 1e-4, 2e-4, 3e-4, 5e-4, 1e-3]
LABELS = ("negative", "positive")
RECIPE = {"sweep": {"learning_rate": RATES}}
GRID = {"seeds": list(range(25))}


def accuracy(run: Run) -> float:
    """A level that rises with the learning rate and falls again; the random init peaks later and lower."""
    place = RATES.index(dict(run.swept)["learning_rate"])
    peak, top = (5, 0.85) if run.init == "pretrained" else (7, 0.80)
    return top - 0.004 * (place - peak) ** 2


def names_of(datasets: int) -> tuple[str, ...]:
    """Names of as many datasets."""
    return tuple(f"dataset{number}" for number in range(datasets))


def make(folder: Path, datasets: int, sizes: dict[str, int], metric: str | None) -> None:
    """Write all runs."""
    make_experiment(
        folder, accuracy=accuracy, labels=LABELS, datasets=names_of(datasets), models=MODELS, recipe=RECIPE,
        sizes=sizes, metric=metric, **GRID,
    )  # fmt: skip


def aggregate(folder: Path, datasets: int, metric: str | None) -> None:
    """Aggregate them, and print what it took."""
    config = config_of(folder, LABELS, names_of(datasets), MODELS, RECIPE, False, GRID)
    for block in config["datasets"].values():
        block["metric"] = metric
    made = Synthetic(Plan(config))
    start, worked = time.perf_counter(), time.process_time()
    made.aggregate()
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    took = f"{seconds:.1f} s ({worked:.1f} s of one core), peak memory {peak:,.0f} MiB"
    print(f"{len(made.plan.runs):,} runs: {took}")


def main() -> None:
    """Make what is missing, then measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--test", type=int, default=400, help="test examples (400)")
    parser.add_argument("--validation", type=int, default=100, help="validation examples (100)")
    parser.add_argument("--datasets", type=int, default=5, help="datasets of 2,000 runs each (5)")
    parser.add_argument("--metric", help="of every dataset, beside which the others are reported")
    asked = parser.parse_args()
    if not (asked.folder / "synthetic" / "data_audit.csv").exists():  # it is written last
        sizes = {"validation": asked.validation, "test": asked.test}
        make(asked.folder, asked.datasets, sizes, asked.metric)
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=aggregate, args=(asked.folder, asked.datasets, asked.metric))
    process.start()
    process.join()
    sys.exit(process.exitcode)


if __name__ == "__main__":
    main()
