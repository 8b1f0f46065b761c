"""The command `seedbed`, one module for each subcommand.

In: a command line. Out: what the packages before it compute, on the terminal and in files.

A module has `add_parser(subparsers)`, which adds its parser with its options, and `run(options)`, which does
the work and returns nothing or an exit code, or raises a SeedbedError. It imports what computes only in
`run`, so that `--help` is printed at once. A new module needs no entry anywhere.

Exit codes: 0, or what `run` returns; 1 for input that is refused, with `ERROR: ...` on standard error; 2 for
a wrong command line.
"""

import argparse
import contextlib
import importlib
import importlib.util
import os
import pkgutil
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import seedbed
from seedbed.core.errors import SeedbedError, explaining_system_errors
from seedbed.core.printable import for_terminal
from seedbed.core.screen import LINES, screen

MOST_COLUMNS = 100  # of a terminal: longer lines are hard to read


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit code.

    Args:
        arguments: without the name of the program; None: those of the process.
    """
    modules = subcommands()
    parser = argparse.ArgumentParser(
        prog="seedbed", description="Which system is better, and how sure are we?"
    )
    parser.add_argument("--version", action="version", version=f"seedbed {seedbed.__version__}")
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in modules.values():
        module.add_parser(parsers)
    options = parser.parse_args(arguments)
    try:
        with explaining_system_errors():
            return modules[options.command].run(options) or 0
    except SeedbedError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 1


def subcommands() -> dict[str, ModuleType]:
    """The modules of the subcommands by name, in alphabetical order."""
    names = sorted(entry.name for entry in pkgutil.iter_modules(__path__))
    return {name: importlib.import_module(f"{__name__}.{name}") for name in names}


# --- what subcommands share ---------------------------------------------------------------------------------


def add_statistics(parser: argparse.ArgumentParser) -> None:
    """Add the options of statistics; one that is not given leaves the default of the config."""
    group = parser.add_argument_group("statistics", argument_default=argparse.SUPPRESS)
    group.add_argument("--confidence", type=float, help="level of intervals, such as 0.95")
    group.add_argument("--replicates", type=int, help="of the bootstrap")
    group.add_argument("--bootstrap-seed", type=int, help="of the bootstrap's draws")


def statistics_of(options: argparse.Namespace) -> dict[str, Any]:
    """The options of statistics that were given, by their keys in the config."""
    names = ("confidence", "replicates", "bootstrap_seed")
    return {name: getattr(options, name) for name in names if hasattr(options, name)}


def add_hardware(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that computes with a model."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="(auto)")
    parser.add_argument("--threads", type=_positive, default=cores, help="of the CPU (all cores)")


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def check_training_stack() -> None:
    """Refuse a command that computes with models where the packages for it are not installed.

    Raises:
        SeedbedError: PyTorch is missing.
    """
    if importlib.util.find_spec("torch") is None:
        raise SeedbedError(
            "this command computes with a model, and PyTorch is not installed",
            where=sys.executable,
            hint="run it with make, in the environment of make install",
        )


def check_new(output: Path, endings: Sequence[str] = ()) -> None:
    """Refuse an output that is there or cannot be written, before anything is computed.

    Args:
        output: a file, or a folder if there are no endings.
        endings: of the file.

    Raises:
        SeedbedError: it exists, has another ending, or a file stands in its way.
    """
    if output.exists():
        raise SeedbedError("the output exists already", where=str(output), hint="name a new one")
    if endings and not output.name.endswith(tuple(endings)):
        raise SeedbedError(
            "the ending of the output tells no format",
            where=str(output),
            hint=f"name a file that ends in {' or '.join(endings)}",
        )
    _check_parents(output)


def check_table(output: Path | None) -> None:
    """Refuse a table that cannot be written, before anything is computed; one that is there gives way.

    Args:
        output: the file; None: there is none to write.

    Raises:
        SeedbedError: its name does not end in .csv, or a file or folder stands in its way.
    """
    if output is None:
        return
    if output.suffix != ".csv":
        raise SeedbedError(
            "the numbers are written as CSV", where=str(output), hint="name a file that ends in .csv"
        )
    if output.is_dir():
        raise SeedbedError(
            "no file can be written there",
            where=str(output),
            found="a folder",
            hint="name a file in a folder, such as results/numbers.csv",
        )
    _check_parents(output)


def _check_parents(output: Path) -> None:
    if files := [folder for folder in output.parents if folder.is_file()]:
        raise SeedbedError(
            "the output cannot be written there",
            where=str(output),
            found=f"{files[0]} is a file",
            hint="name another folder",
        )


def tell(text: str) -> None:
    """Print a line while a command works, above a progress bar if there is one."""
    from tqdm import tqdm

    tqdm.write(for_terminal(text), file=sys.stderr)


def show(facts: Mapping[str, Any], places: Sequence[str], rest: str, lines: int | None = LINES) -> None:
    """Print what a document opens with on one screen; see `core.screen.screen`."""
    with contextlib.suppress(BrokenPipeError):  # of `| head`
        print(for_terminal(screen(facts, places, rest, columns(), lines)), flush=True)


def columns() -> int:
    """The length of a line on this terminal."""
    return min(MOST_COLUMNS, shutil.get_terminal_size().columns)
