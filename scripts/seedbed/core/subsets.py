"""Orders of training texts, which `data.subsets` draws: a run of size n trains on the first n."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.core.rows import read_csv

COLUMNS = ("rank", "example")

Rows = Sequence[Mapping[str, Any]]


def read_order(path: str | Path) -> list[str]:
    """The ids of the training texts in their order.

    Raises:
        SeedbedError: see `rows.read_csv`.
    """
    header, rows = read_csv(path, COLUMNS, what="order of training texts")
    place = header.index("example")
    return [row[place] for row in rows]


def first_of(path: str | Path, size: int) -> set[str]:
    """The ids of the first training texts of an order.

    Raises:
        SeedbedError: it has fewer texts; or see `read_order`.
    """
    order = read_order(path)
    if len(order) < size:
        raise SeedbedError(
            "the dataset has fewer training texts than a size asks for",
            where="config, grid.train_sizes",
            found=f"{size}; {path} has {len(order)}",
            hint="leave the size out, or write all",
        )
    return set(order[:size])


def taken(rows: Rows, chosen: Collection[str] | None) -> tuple[Rows, list[int] | None]:
    """The rows of the chosen examples in the order of the file, and their places in it; all rows and None
    if all are taken.

    Args:
        rows: of a split, each with its "id".
        chosen: ids of examples; None: all.
    """
    if chosen is None:
        return rows, None
    places = [place for place, row in enumerate(rows) if row["id"] in chosen]
    return [rows[place] for place in places], places
