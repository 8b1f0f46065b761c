"""Compare two finished experiments: python scripts/compare.py results/x results/y [--output FILE]

Runs with the same names are compared. If a dataset or model has another name in the second experiment, such
as one defined again with drop_leaks, give --same books=books_without_leaks.

Prints Markdown, or writes it to FILE.md or as a page to FILE.html: differences with their intervals, and
differing recipes, software and hardware.
"""

import argparse
import sys
from pathlib import Path

from seedbed.analysis.comparison import compare_experiments
from seedbed.core import files
from seedbed.core.errors import SeedbedError, explaining_system_errors
from seedbed.core.printable import for_terminal
from seedbed.report.comparison_document import check_format, render


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
            text = render(compared, ".md" if output is None else output.suffix)
            if output is not None:
                files.write_text(output, text)
    except SeedbedError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
    print(for_terminal(text) if output is None else f"{output}\n", end="")
    return 0


def _pair(text: str) -> tuple[str, str]:
    """A=B as two names."""
    a, equals, b = text.partition("=")
    if not (a and equals and b):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form A=B")
    return a, b


if __name__ == "__main__":
    sys.exit(main())
