"""Which system is better? From results of any program, with Seedbed's intervals, tests, figures and report.

FILE is a table (CSV or Parquet, a row for each system, seed and example, with label and prediction or with a
score), or a file or folder of lm-evaluation-harness, run_glue.py, EuroEval or MTEB. Without examples systems
are compared over seeds alone.
"""

import argparse
from pathlib import Path
from typing import Any

from seedbed import commands

FORMATS = ("auto", "lm-eval", "run_glue", "euroeval", "mteb", "table")
FOLDER = Path("analysis")


def add_parser(subparsers: Any) -> None:
    """Add `seedbed analyse`."""
    parser = subparsers.add_parser(
        "analyse",
        help="compare systems by their results, whoever trained them",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="of one format")
    parser.add_argument("--a", metavar="SYSTEM", help="compare it: differences are a minus b")
    parser.add_argument(
        "--b", metavar="SYSTEM", help="with this one; without --a and --b every two are compared"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=FOLDER,
        metavar="FOLDER",
        help=f"for tables, figures and report; default: {FOLDER}",
    )
    parser.add_argument(
        "--unpaired",
        action="store_true",
        help="take runs of one seed for independent; by default they are pairs where both systems have the "
        "same seeds",
    )
    parser.add_argument(
        "--margin",
        type=float,
        help="smallest difference of interest, in the unit of the scores; default: 2%% of their range",
    )
    _add_reading(parser)
    commands.add_statistics(parser)


def _add_reading(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reading")
    group.add_argument("--format", choices=FORMATS, default="auto", help="of the files; default: auto")
    group.add_argument("--dataset", help="take this one alone; of a table without datasets, its name")
    group.add_argument("--metric", help="of the files, or the column of a table's scores")
    group.add_argument(
        "--bounds",
        type=_bounds,
        metavar="LOW,HIGH",
        help="least and largest possible score, such as 0,100 of percentages",
    )
    group.add_argument(
        "--columns",
        type=_columns,
        metavar="ROLE=COLUMN,...",
        help="of a table: system, seed, example, label, prediction, score, dataset or cluster",
    )
    group.add_argument(
        "--labels", type=Path, metavar="FILE", help="of run_glue: a table with the labels of the test set"
    )
    group.add_argument("--folders", metavar="PATTERN", help="of run_glue: such as {system}/seed{seed}")


def run(options: argparse.Namespace) -> None:
    """Read, compare, write the folder, and print what its summary opens with.

    Raises:
        SeedbedError: see `read_results`, `analyse` and `output.check_folder`; then nothing is written.
    """
    from seedbed.outside import output
    from seedbed.outside.analysis import Question, analyse
    from seedbed.outside.read import read_results

    output.check_folder(options.output)
    results = read_results(
        options.files,
        format=options.format,
        dataset=options.dataset,
        columns=options.columns,
        metric=options.metric,
        bounds=options.bounds,
        labels=options.labels,
        folders=options.folders,
    )
    question = Question(
        a=options.a,
        b=options.b,
        paired=not options.unpaired,
        margin=options.margin,
        bounds_given=options.bounds is not None,
        statistics=commands.statistics_of(options),
    )
    facts = output.write(analyse(results, question, options.files[0].stem), question, options.output)
    places = [f"Report:  {options.output / 'report.html'} (opens in a browser)", f"Tables:  {options.output}"]
    commands.show(facts, places, "summary.md")


def _bounds(text: str) -> tuple[float, float]:
    """LOW,HIGH as two numbers."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form LOW,HIGH, such as 0,1") from None
    return low, high


def _columns(text: str) -> dict[str, str]:
    """ROLE=COLUMN,... as a mapping."""
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(role and equals and column for role, equals, column in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form ROLE=COLUMN,ROLE=COLUMN")
    return {role.strip(): column for role, _, column in pairs}
