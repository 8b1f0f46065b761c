"""One long table, in one or several files: a row for each system, seed and example."""

from collections.abc import Sequence
from pathlib import Path

from seedbed.outside.arrange import arrange
from seedbed.outside.results import Results
from seedbed.outside.tables import read_tables
from seedbed.outside.wanted import Wanted


def files_of(folder: Path) -> list[Path]:
    """None: a table is named by its files, since any file in a folder may be a table."""
    return []


def fits(path: Path) -> bool:
    """Any file may be a table; `read` refuses those that are none."""
    return True


def read(paths: Sequence[Path], wanted: Wanted) -> list[Results]:
    """The results of each dataset of the table.

    Raises:
        SeedbedError: see `read_tables` and `arrange`.
    """
    return arrange(read_tables(paths, wanted.columns, wanted.metric), wanted.dataset, wanted.bounds)
