"""Pack a finished experiment into one archive that a reviewer can verify.

OUTPUT.tar.gz gets the resolved config, the tables, the figures, the report, the record, metrics and
predictions of every run, what describes the data and the models, the entries of the lock file, and the
SHA-256 of every file. `seedbed compare` reads it in place of a folder. The same results give the same bytes.

Texts of the data are left out, and so is what quotes them, unless --texts is given. Predictions name examples
by their ids and labels.
"""

import argparse
from pathlib import Path
from typing import Any

from seedbed import commands


def add_parser(subparsers: Any) -> None:
    """Add `seedbed bundle`."""
    parser = subparsers.add_parser(
        "bundle",
        help="pack a finished experiment into one archive",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", type=Path, help="folder of the experiment, such as results/demo")
    parser.add_argument("output", type=Path, help="the archive, a new FILE.tar.gz")
    parser.add_argument(
        "--texts", action="store_true", help="pack the texts of the data too, and what quotes them"
    )
    parser.add_argument(
        "--lock",
        type=Path,
        default=Path("sources.lock.json"),
        help="lock file of sources, see `lock` of the config (sources.lock.json)",
    )


def run(options: argparse.Namespace) -> None:
    """Write the archive.

    Raises:
        SeedbedError: the output exists, cannot be written or has another ending; see `contents.find` and
            `recount`.
    """
    from seedbed.analysis.recount import recount
    from seedbed.bundle import archive, contents

    commands.check_new(options.output, [archive.ENDING])
    found = contents.find(options.results, options.lock, options.texts)
    recount(options.results)
    number = archive.write(found, options.output)
    size = options.output.stat().st_size / 2**10
    print(f"{options.output}: {number} files, {size:,.0f} KiB; seedbed verify {options.output} checks them")
    if found.left_out:
        print(f"Left out, since they quote texts (--texts): {', '.join(found.left_out)}")
    if found.unlocked:
        print(f"Sources without an entry in {options.lock}: {', '.join(found.unlocked)}")
