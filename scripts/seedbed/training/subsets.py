"""The training texts of a run of a size: the first of the order that its data seed draws (`data.subsets`)."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.core.recipes import train_size
from seedbed.core.rows import read_csv
from seedbed.running.jobs import Job

Rows = Sequence[Mapping[str, Any]]


def of(job: Job) -> set[str] | None:
    """The ids of a run's training examples; None if it trains on all.

    Raises:
        SeedbedError: the dataset has fewer training examples.
    """
    if job.subset is None:
        return None
    size = train_size(job.settings) or 0
    header, rows = read_csv(job.subset, ["example"], what="order of training texts")
    if len(rows) < size:
        raise SeedbedError(
            "the dataset has fewer training texts than a size asks for",
            where="config, grid.train_sizes",
            found=f"{size}; {job.subset} has {len(rows)}",
            hint="leave the size out, or write all",
        )
    place = header.index("example")
    return {row[place] for row in itertools.islice(rows, size)}


def taken(rows: Rows, chosen: Collection[str] | None) -> tuple[Rows, list[int] | None]:
    """The rows of the chosen examples in the order of the file, and their places in it; all rows and None
    where none are chosen."""
    if chosen is None:
        return rows, None
    places = [place for place, row in enumerate(rows) if row["id"] in chosen]
    return [rows[place] for place in places], places
