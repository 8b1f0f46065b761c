"""Rows of an experiment's tables: mappings, and typed dataclasses for the tables with most uses."""

import csv
import dataclasses
import functools
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, Self, TypeVar, get_args, get_type_hints

from seedbed.core.errors import SeedbedError
from seedbed.core.files import unguarded, write_rows

Row = Mapping[str, Any]
R = TypeVar("R", bound=Row)

CELL = ("dataset", "model", "framework", "init", "recipe")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
ANEW = "remove the file, if it exists, and let Snakemake make it again"
# endings of each test set's columns in runs.csv; a leak is a test example that is also in another split
TEST_SETS = {"all": "", "without leaks": "_without_leaks"}
TEXT_COLUMNS = frozenset(
    {*CELL, "recipe_family", "method", "metric", "test_set", "selection", "ci_method", "family", "contrast"}
    | {"dataset_b", "model_b", "a", "b", "recipe_a", "recipe_b", "equivalence", "device", "split"}
    | {"component", "formula", "example", "label", "prediction", "most_common_prediction"}
    | {"prediction_pretrained", "prediction_random"}
)


# --- reading ------------------------------------------------------------------------------------------------


def read_table(path: str | Path, columns: Collection[str] = ()) -> list[dict[str, Any]]:
    """Rows of a table with numbers as numbers, true and false as bool, empty cells as None.

    Args:
        path: the table.
        columns: the columns that it must have, among others.

    Raises:
        SeedbedError: see `read_csv`.
    """
    header, rows = read_csv(path, columns)
    return [{key: _parse(key, text) for key, text in zip(header, row, strict=True)} for row in rows]


def _parse(column: str, text: str) -> Any:
    return text if column in TEXT_COLUMNS else guessed(text)


def guessed(text: str) -> Any:
    """A cell's value by its looks: true and false as bool, numbers as numbers, empty as None, else text."""
    if text == "":
        return None
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def read_csv(
    path: str | Path, columns: Collection[str] = (), *, what: str = "table", hint: str = ANEW
) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a CSV file that this project wrote, as text.

    Args:
        path: the file.
        columns: the columns that it must have.
        what: the kind of file, for errors.
        hint: the remedy, for errors.

    Raises:
        SeedbedError: see `read_whole`; a column is missing or repeated; a row is not as long as the header.
    """
    text = decode(read_whole(path, what, hint), path, what, hint)
    guards = "'" in text
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        header = next(reader)
        missing = [name for name in columns if name not in header]
        if missing or len(set(header)) < len(header):
            lacking = f"it lacks {', '.join(missing)}; " if missing else "a column stands twice; "
            raise _fault(f"not a {what}", f"{path}, line 1", ", ".join(header), lacking + hint)
        rows = []
        for row in reader:
            if len(row) != len(header):
                found = f"a row of {len(row)} cells, not {len(header)}: {','.join(row)[:80]}"
                raise _fault(f"not a whole {what}", f"{path}, line {reader.line_num}", found, hint)
            rows.append(list(map(unguarded, row)) if guards else row)
    except csv.Error as error:
        raise _fault(f"not a {what}", f"{path}, line {reader.line_num}", error, hint) from None
    return header, rows


def read_whole(path: str | Path, what: str, hint: str) -> bytes:
    """The bytes of a text file that this project wrote.

    Raises:
        SeedbedError: the file is missing or empty, begins with a byte order mark, or its last line is cut.
    """
    try:
        with open(path, "rb") as stream:
            content = stream.read()
    except FileNotFoundError:
        raise _fault(f"no {what}", path, None, hint) from None
    if not content:
        raise _fault(f"not a {what}", path, "an empty file", hint)
    if content.startswith(BYTE_ORDER_MARK):
        found = "a byte order mark before the first column"
        raise _fault(f"not a {what}", f"{path}, line 1", found, hint)
    if not content.endswith(b"\n"):
        last = content.rsplit(b"\n", 1)[-1][:80].decode(errors="replace")
        found = f"the file was cut: its last line has no end, {last!r}"
        raise _fault(f"not a whole {what}", _place(path, content, len(content)), found, hint)
    return content


def decode(content: bytes, path: str | Path, what: str, hint: str) -> str:
    """The text of a file.

    Raises:
        SeedbedError: the file is not UTF-8.
    """
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        found = f"bytes that are not UTF-8: {error.reason}"
        raise _fault(f"not a {what}", _place(path, content, error.start), found, hint) from None


def _place(path: str | Path, content: bytes, offset: int) -> str:
    newlines = content.count(b"\n", 0, offset)
    return f"{path}, line {newlines + 1}"


def _fault(what: str, where: str | Path, found: Any, hint: str) -> SeedbedError:
    return SeedbedError(what, where=str(where), found=found, hint=hint)


# --- typed rows ---------------------------------------------------------------------------------------------


class TypedRow(Mapping[str, Any]):
    """A row whose columns are the typed attributes of its subclass, a frozen dataclass.

    It is also a mapping, for code that works on any table, such as `grouped` and `write_table`.
    """

    OPTIONAL: ClassVar[Collection[str]] = ()  # columns with a default, which a table may lack

    def __getitem__(self, column: str) -> Any:
        if column not in self._types():
            raise KeyError(column)
        return getattr(self, column)

    def __iter__(self) -> Iterator[str]:
        return iter(self._types())

    def __len__(self) -> int:
        return len(self._types())

    @classmethod
    @functools.cache
    def _types(cls) -> dict[str, Any]:
        """The types of the columns."""
        return {field.name: hint for field, hint in zip(*_fields_and_hints(cls), strict=True)}

    @classmethod
    def read(cls, path: str | Path, what: str) -> list[Self]:
        """The rows of a table; columns that the class lacks are ignored.

        Args:
            path: the table.
            what: the kind of table, for errors.

        Raises:
            SeedbedError: see `read_csv`; a column is missing; a cell is not of its column's type.
        """
        types = cls._types()
        header, rows = read_csv(path, [name for name in types if name not in cls.OPTIONAL], what=what)
        return [cls(**cells) for cells in typed_cells(types, header, rows, path, what)]


def typed_cells(
    types: Mapping[str, Any],
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    path: str | Path,
    what: str,
) -> Iterator[dict[str, Any]]:
    """The cells of each row by column, of those columns that the table has.

    Args:
        types: of columns, see `reader_of`.
        header, rows: as `read_csv` gives them.
        path: the table, for errors.
        what: what it should be, for errors.

    Raises:
        SeedbedError: a cell is not of its column's type.
    """
    columns = [(name, header.index(name), reader_of(kind)) for name, kind in types.items() if name in header]
    for line, row in enumerate(rows, 2):
        yield _cells_of(columns, row, f"{path}, line {line}", what)


def _fields_and_hints(cls: Any) -> tuple[list[Any], list[Any]]:
    fields, hints = dataclasses.fields(cls), get_type_hints(cls)
    return list(fields), [hints[field.name] for field in fields]


def _cells_of(
    columns: Sequence[tuple[str, int, Callable[[str], Any]]], row: Sequence[str], where: str, what: str
) -> dict[str, Any]:
    found = {}
    for name, index, reader in columns:
        try:
            found[name] = reader(row[index])
        except ValueError:
            raise _fault(f"not a {what}", f"{where}, column {name}", repr(row[index]), ANEW) from None
    return found


@functools.cache
def reader_of(kind: Any) -> Callable[[str], Any]:
    """A function that turns a cell's text into a value of a type: str, bool, int or float, or one or None.

    An empty cell becomes None if the type allows it. With Any, see `guessed`.
    """
    if kind is Any:
        return guessed
    kinds = get_args(kind) or (kind,)
    (own,) = (each for each in kinds if each is not NoneType)
    parse = _bool if own is bool else own
    return (lambda text: parse(text) if text else None) if NoneType in kinds else parse


def _bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


# --- writing and grouping -----------------------------------------------------------------------------------


def write_table(path: str | Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Write rows for `read_table`; a missing key or None is an empty cell."""
    write_rows(path, columns, map(_cells, rows))


def write_typed(path: str | Path, columns: Sequence[str], rows: Sequence[TypedRow]) -> None:
    """Write rows of one class; of its OPTIONAL columns, behind `columns`, those that say something."""
    said = [name for name in rows[0].OPTIONAL if any(row[name] is not None for row in rows)] if rows else []
    columns = (*columns, *said)
    write_table(path, columns, ({name: row[name] for name in columns} for row in rows))


def _cells(row: Row) -> dict[str, Any]:
    return {key: str(value).lower() if isinstance(value, bool) else value for key, value in row.items()}


def grouped(rows: Iterable[R], *keys: str) -> dict[tuple[Any, ...], list[R]]:
    """Rows by their values of `keys`, in the order of appearance."""
    groups: dict[tuple[Any, ...], list[R]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def on_test_set(rows: Iterable[R], test_set: str = "all") -> list[R]:
    """The rows of summary.csv or contrasts.csv of one test set."""
    return [row for row in rows if row["test_set"] == test_set]
