"""A table with a row for each system, seed and example, as integer codes."""

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True)
class Column:
    """A column of names.

    Attributes:
        codes: (rows,) int32, places in `names`.
        names: the different names; some may have no row.
    """

    codes: np.ndarray
    names: Sequence[str]

    def of(self, row: int) -> str:
        """The name in a row."""
        return self.names[self.codes[row]]

    def at(self, rows: np.ndarray) -> "Column":
        """The column of these rows, its names in the order in which they first occur."""
        codes = self.codes[rows]
        first = np.full(len(self.names), len(codes), np.int64)
        first[codes[::-1]] = np.arange(len(codes))[::-1]  # of a repeated index the last value stays
        order = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(codes))]
        place = np.zeros(len(self.names), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        return Column(place[codes], [self.names[index] for index in order])


class Part(NamedTuple):
    """A file of a table.

    Attributes:
        path: where it is.
        first: its first row in the table, from 0.
        number: what people call that row: 2 below a header, as spreadsheets do, else 1.
    """

    path: Path
    first: int
    number: int


@dataclass(frozen=True, kw_only=True)
class LongTable:
    """What one or several files have, a row for each system, seed and example.

    Attributes:
        columns: by role, see `columns.NAMES`; system is always there, example except where a row is a run.
        scores: (rows,) float32, more is better; None where label and prediction are known.
        metric: the name of the scores.
        parts: its files.
        unit: what is counted in a file.
        format: a key of `read.FORMATS`.
        taken: by role the column that was taken for it.
        notes: for `Results.notes`.
    """

    columns: Mapping[str, Column]
    scores: np.ndarray | None
    metric: str
    parts: Sequence[Part]
    unit: str = "row"
    format: str = "table"
    taken: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def place(self, row: int) -> str:
        """The file of a row, and the row in it, for errors."""
        return place_in(self.parts, row, self.unit)


def place_in(parts: Sequence[Part], row: int, unit: str = "row") -> str:
    """The file of a row, and the row in it, for errors."""
    part = parts[bisect.bisect_right([part.first for part in parts], row) - 1]
    return f"{part.path}, {unit} {row - part.first + part.number}"


def column_of(names: Sequence[str]) -> Column:
    """A column of these names, a row each."""
    known = {name: code for code, name in enumerate(dict.fromkeys(names))}
    return Column(np.fromiter((known[name] for name in names), np.int32, len(names)), list(known))
