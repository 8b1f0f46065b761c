"""Compare two finished experiments, each in its folder or in a bundle (`seedbed bundle`).

Runs with the same names are compared. If a dataset or model has another name in the second experiment, such
as one defined again with drop_leaks, give --same books=books_without_leaks.

Prints the answer and the differences, on one screen. FILE.md or FILE.html gets everything: also tests, and
differing recipes, software and hardware.
"""

import argparse
from pathlib import Path
from typing import Any

from seedbed import commands

REST = "what --output FILE.html writes"


def add_parser(subparsers: Any) -> None:
    """Add `seedbed compare`."""
    parser = subparsers.add_parser(
        "compare",
        help="compare two finished experiments of Seedbed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("a", type=Path, help="an experiment, such as results/x or x.tar.gz")
    parser.add_argument("b", type=Path, help="the other one; differences are a minus b")
    parser.add_argument("--output", type=Path, help="write to FILE.md or FILE.html instead of printing")
    parser.add_argument(
        "--same",
        type=_pair,
        action="append",
        default=[],
        metavar="A=B",
        help="compare dataset or model A of the first with B of the second",
    )
    commands.add_statistics(parser)


def run(options: argparse.Namespace) -> None:
    """Print the comparison, or write it.

    Raises:
        SeedbedError: see `compare_experiments` and `experiment_in`; an output that is neither Markdown nor
            HTML.
    """
    from seedbed.analysis.comparison import compare_experiments
    from seedbed.bundle.archive import experiment_in
    from seedbed.core import files
    from seedbed.report.comparison_document import check_format, facts, render

    if options.output is not None:
        check_format(options.output)
    given = options.a, options.b
    with experiment_in(options.a) as a, experiment_in(options.b) as b:
        settings, same = commands.statistics_of(options), dict(options.same)
        compared = compare_experiments(a.folder, b.folder, settings, same, given)
    if options.output is None:
        commands.show(facts(compared), [], REST)
        return
    files.write_text(options.output, render(compared, options.output.suffix))
    print(options.output)


def _pair(text: str) -> tuple[str, str]:
    """A=B as two names."""
    a, equals, b = text.partition("=")
    if not (a and equals and b):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form A=B")
    return a, b
