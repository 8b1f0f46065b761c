"""Classes of labels and predictions, with a check that each is written in one way."""

import re
from typing import NamedTuple

import numpy as np

from seedbed.core.errors import SeedbedError
from seedbed.outside.long_table import Column, LongTable

# kinds of classes by their looks; where two stand in one dataset, a class is probably written in two ways
KINDS = (
    ("whole number", re.compile(r"[+-]?\d+")),
    ("decimal number", re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?")),
    ("truth value", re.compile("true|false", re.IGNORECASE)),
)


class Found(NamedTuple):
    """A class as a cell has it, with the first row of that cell in the table."""

    name: str
    row: int

    @property
    def kind(self) -> str:
        """Its kind, see `KINDS`."""
        return next((kind for kind, pattern in KINDS if pattern.fullmatch(self.name.strip())), "word")


def numbered(labels: Column, predictions: Column) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Classes in sorted order, and their numbers of each name of labels and of predictions, int32."""
    classes = tuple(sorted({*labels.names, *predictions.names}))
    number = {name: place for place, name in enumerate(classes)}
    of_labels, of_predictions = (
        np.array([number[name] for name in column.names], np.int32) for column in (labels, predictions)
    )
    return classes, of_labels, of_predictions


def require_one_way(table: LongTable, rows: np.ndarray, labels: Column, predictions: Column) -> None:
    """Refuse classes that are probably the same, but are written in two ways.

    Args:
        table: all rows, for errors.
        rows: the rows that the columns have.
        labels, predictions: of one dataset.

    Raises:
        SeedbedError: numbers and words, 1 and 1.0, or Yes and yes stand side by side; or the labels are
            measurements.
    """
    of_labels, of_predictions = _found(rows, labels), _found(rows, predictions)
    of_kind: dict[str, Found] = {}
    of_letters: dict[str, Found] = {}
    for found in (*of_labels, *of_predictions):
        of_kind.setdefault(found.kind, found)
        same = of_letters.setdefault(found.name.strip().casefold(), found)
        if same.name != found.name:
            raise _two_ways("two classes differ in capital letters or spaces alone", table, same, found)
    if len(of_kind) > 1:
        raise _two_ways("classes are of two kinds", table, *list(of_kind.values())[:2])
    if "decimal number" in of_kind and not all(float(label.name).is_integer() for label in of_labels):
        raise SeedbedError(
            "the labels are measurements, which a prediction hardly ever equals",
            where=table.place(of_labels[0].row),
            found=of_labels[0].name,
            hint="write a score for each example, such as the negative squared error, and name its column: "
            "score=NAME in columns",
        )


def _found(rows: np.ndarray, column: Column) -> list[Found]:
    """Each name with its first row; the names stand in the order of their first rows (`Column.at`)."""
    _, first = np.unique(column.codes, return_index=True)
    return [Found(name, int(rows[place])) for name, place in zip(column.names, first, strict=True)]


def _two_ways(what: str, table: LongTable, one: Found, other: Found) -> SeedbedError:
    return SeedbedError(
        what,
        where=f"{table.place(one.row)}, and {table.place(other.row)}",
        found=f"{one.name!r} ({one.kind}) and {other.name!r} ({other.kind})",
        hint="write each class in the same way in all rows, as label and as prediction; if both are meant, "
        "put a word before numbers (class 1)",
    )
