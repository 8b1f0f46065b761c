"""The speed of Seedbed beside the lab's way: python benchmarks/bench COMMAND --help

    run             the lab's way and Seedbed in alternation on one machine: tables of both (make bench)
    equivalence     N seeds of the lab's way, their test accuracies in a CSV
    compare         the test whether the runs of an experiment are equivalent to such a CSV
    ablate          runs of Seedbed without each of its savings
    measure         one timed grid of Seedbed, as a row of a CSV
    scaling         plots and a page of such a CSV

The lab's way is plain `fairseq-train` with the lab's flags, test set read every epoch, nothing saved; and
plain Transformers' Trainer as run_glue.py sets it up: float32, every input padded to the longest allowed,
evaluation at batch size 8, nothing saved; with --lab-lean the recipe's precision, every batch padded to its
own longest input, evaluation at Seedbed's batch size. Both have the recipe's hyperparameters, the token ids,
binarized data and converted checkpoint that Seedbed's preparation made, and as many threads as a run of
Seedbed; each run is a process of its own. Seedbed runs as its user runs it, through Snakemake.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import ablation, equivalence, scaling, sidebyside, without
from bench.processes import BenchError, end_on_signals
from bench.tables import FRAMEWORKS
from bench.workload import cores_of_machine
from seedbed.analysis.comparison import INITS
from seedbed.core.errors import SeedbedError

RECORD = "add the grid to benchmarks/results/speed/records.csv"


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    asked = parser().parse_args(arguments)
    end_on_signals()
    try:
        asked.function(asked)
    except (BenchError, SeedbedError) as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    """All commands."""
    whole = argparse.ArgumentParser(
        prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = whole.add_subparsers(required=True, metavar="COMMAND")

    one = _kind(kinds, "run", sidebyside.command)
    one.add_argument("--mode", choices=("auto", "slice", "grid"), default="auto",
                     help="auto: a slice on a CPU, the whole grid on a GPU")  # fmt: skip
    one.add_argument("--repeats", type=int, default=None, help="of Seedbed (slice: of both); 3, in a grid 1")
    one.add_argument("--runs", type=int, default=3, help="grid: timed runs a framework of the lab's way")
    one.add_argument("--slice", type=int, nargs=3, default=list(sidebyside.SLICE.values()),
                     metavar=("TRAIN", "VALIDATION", "TEST"), help="examples of a slice")  # fmt: skip
    one.add_argument("--resume", action="store_true", help="keep what a run that was stopped has measured")
    one.add_argument("--keep", type=Path, help="copy the tables into this folder, too")
    one.add_argument("--record", action="store_true", help=RECORD)

    one = _kind(kinds, "equivalence", equivalence.train)
    one.add_argument("csv", type=Path, help="rows that are there are not trained again")
    one.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    one.add_argument("--at-once", type=int, default=1, help="runs at a time, which may share a GPU")
    one.add_argument("--recipe-weights", action="store_true",
                     help="Transformers from the initial weights of Seedbed's runs, not its own")  # fmt: skip

    one = kinds.add_parser("compare", help="test equivalence")
    one.add_argument("csv", type=Path, help="what `equivalence` wrote")
    one.add_argument("runs", type=Path, help="runs.csv of an experiment")
    one.add_argument("--frameworks", nargs="+", default=list(FRAMEWORKS), help="of both files, no others")
    one.add_argument("--inits", nargs="+", default=list(INITS), help="of both files, no others")
    one.add_argument(
        "--configfile", type=Path, nargs="*", default=[], help="of the experiment, for its margins"
    )
    one.add_argument("--output", type=Path, help="write the result as .csv and .md, too")
    one.set_defaults(function=equivalence.command)

    one = _kind(kinds, "ablate", ablation.command)
    one.add_argument("csv", type=Path, help="rows of all runs; the table lies beside it")
    one.add_argument("--repeats", type=int, default=3, help="of each")
    one.add_argument("--slice", type=int, nargs=3, default=list(sidebyside.SLICE.values()),
                     metavar=("TRAIN", "VALIDATION", "TEST"), help="examples of a slice")  # fmt: skip
    one.add_argument("--only", nargs="+", choices=[*without.SAVINGS], help="these savings, no others")

    one = _kind(kinds, "measure", scaling.measure)
    one.add_argument("csv", type=Path, help="a row is added")
    one.add_argument(
        "--kind", choices=scaling.MODES, default="separate", help="how the seeds share processes"
    )
    one.add_argument("--seeds", type=int, default=3, help="so many, from 0")
    one.add_argument("--gpus", type=int, default=0, help="GPUs in use; 0: the CPU")
    one.add_argument("--runs-per-gpu", type=int, default=1, help="runs that share a GPU")
    one.add_argument("--batch-size", type=int, help="in place of the recipe's")
    one.add_argument(
        "--batch-runs", type=int, default=0, help="batches: runs of one job; fused: seeds of one model"
    )
    one.add_argument("--at-once", type=int, default=1, help="batches: runs at a time of one job")
    one.add_argument("--note", default="", help="free text, for the page")
    one.add_argument("--record", action="store_true", help=RECORD)

    one = kinds.add_parser("scaling", help="plots and a page")
    one.add_argument("csv", type=Path, help="what `measure` wrote")
    one.add_argument("page", type=Path, help="FILE.md; plots lie beside it")
    one.set_defaults(function=scaling.command)
    return whole


def _kind(kinds: argparse._SubParsersAction, name: str, function: object) -> argparse.ArgumentParser:
    """A command that works on an experiment."""
    one = kinds.add_parser(name, description=function.__doc__)
    one.add_argument("--folder", type=Path, default=Path("results/bench"), help="where everything lies")
    one.add_argument(
        "--configfile", type=Path, nargs="*", default=[], help="of the experiment; default: the demo"
    )
    one.add_argument("--mirror", help="a folder with archives, as in the config")
    one.add_argument("--set", action="append", default=[], metavar="KEY.KEY=VALUE",
                     help="a setting of the config, such as gpus.runs_per_gpu=6; repeatable")  # fmt: skip
    one.add_argument("--cores", type=int, default=cores_of_machine(), help="for Snakemake")
    one.add_argument("--lab-workers", type=int, default=0, help="--num-workers of plain fairseq-train")
    one.add_argument("--lab-lean", action="store_true", help="plain Trainer in the recipe's precision, every "
                     "batch padded to its own longest text, evaluation at Seedbed's batch size")  # fmt: skip
    one.add_argument("--profile", help="of Snakemake; on a GPU profiles/local-gpu, '' for none")
    one.set_defaults(function=function)
    return one


if __name__ == "__main__":
    sys.exit(main())
