"""Verify a bundle that `seedbed bundle` wrote.

Checks that every file has its sum, and that the predictions of every run give the metrics of the table of
runs. Nothing is trained. The sums are in the bundle itself: they find damage, and whoever changes a file can
change its sum.
"""

import argparse
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError

SPLITS = "validation and test"


def add_parser(subparsers: Any) -> None:
    """Add `seedbed verify`."""
    parser = subparsers.add_parser(
        "verify",
        help="check the files of a bundle, and count its metrics again",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("bundle", type=Path, help="a file that `seedbed bundle` wrote")


def run(options: argparse.Namespace) -> None:
    """Print what agrees.

    Raises:
        SeedbedError: the bundle is no file; see `experiment_in` and `recount`.
    """
    from seedbed.analysis.recount import recount
    from seedbed.bundle.archive import SUMS, experiment_in
    from seedbed.core.words import join, metric_name

    if not options.bundle.is_file():
        raise SeedbedError(
            "no bundle",
            where=str(options.bundle),
            found="a folder" if options.bundle.is_dir() else "no such file",
            hint="name a file that `seedbed bundle` wrote",
        )
    with experiment_in(options.bundle) as opened:
        counted = recount(opened.folder)
    metrics = join([metric_name(metric) for metric in counted.metrics])
    print(f"{options.bundle}: {opened.files} files have their sums in {SUMS}")
    print(f"{opened.folder.name}: {counted.runs} runs predict with the {metrics} of runs.csv, on {SPLITS}")
