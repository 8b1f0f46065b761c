"""Compare two finished experiments: python scripts/compare.py results/x results/y [--output FILE]

Runs with the same names are compared. If a dataset or model has another name in the second experiment, such
as one defined again with drop_leaks, give --same books=books_without_leaks.

Prints the answer and the differences, on one screen. FILE.md or FILE.html gets everything: also tests, and
differing recipes, software and hardware.
"""

import argparse
import shutil
import sys
from pathlib import Path

from seedbed.analysis.comparison import compare_experiments
from seedbed.core import files
from seedbed.core.errors import SeedbedError, explaining_system_errors
from seedbed.core.printable import for_terminal
from seedbed.core.screen import screen
from seedbed.report.comparison_document import check_format, facts, render

REST = "what --output FILE.html writes"


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("a", type=Path, help="folder of an experiment, such as results/x")
    parser.add_argument("b", type=Path, help="folder of the other one; differences are a minus b")
    parser.add_argument("--output", type=Path, help="write to FILE.md or FILE.html instead of printing")
    parser.add_argument(
        "--same",
        type=_pair,
        action="append",
        default=[],
        metavar="A=B",
        help="compare dataset or model A of the first with B of the second",
    )
    # missing options have the defaults of the config
    statistics = parser.add_argument_group("statistics", argument_default=argparse.SUPPRESS)
    statistics.add_argument("--confidence", type=float, help="level of intervals, such as 0.95")
    statistics.add_argument("--replicates", type=int, help="of the bootstrap")
    statistics.add_argument("--bootstrap-seed", type=int, help="of the bootstrap's draws")
    options = vars(parser.parse_args(arguments))
    a, b, output, same = (options.pop(name) for name in ("a", "b", "output", "same"))
    try:
        with explaining_system_errors():
            if output is not None:
                check_format(output)
            compared = compare_experiments(a, b, options, dict(same))
            if output is not None:
                files.write_text(output, render(compared, output.suffix))
                print(output)
            else:
                width = min(100, shutil.get_terminal_size().columns)
                print(for_terminal(screen(facts(compared), [], REST, width)))
    except SeedbedError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
    return 0


def _pair(text: str) -> tuple[str, str]:
    """A=B as two names."""
    a, equals, b = text.partition("=")
    if not (a and equals and b):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form A=B")
    return a, b


if __name__ == "__main__":
    sys.exit(main())
