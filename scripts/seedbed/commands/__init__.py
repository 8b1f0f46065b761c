"""The command `seedbed`: a module for each subcommand.

In: files of results, and options. Out: tables, figures and documents, and one screen on the terminal.

Each module has `add_parser(subparsers)`, which describes its options, and `run(options)`, which returns the
exit code and raises SeedbedError on bad input.
"""

import argparse
import sys
from collections.abc import Sequence

from seedbed.commands import plan
from seedbed.core.errors import SeedbedError, explaining_system_errors

COMMANDS = (plan,)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0; 1 on bad input, with an error on stderr; argparse exits with 2 on wrong usage."""
    parser = argparse.ArgumentParser(prog="seedbed", description="Statistics of results over seeds.")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(subparsers)
    options = parser.parse_args(arguments)
    try:
        with explaining_system_errors():
            return int(options.run(options))
    except SeedbedError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
