"""Read tables of text: CSV and TSV, with a header or with the names of the columns in the config."""

import contextlib
import csv
import io
import itertools
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seedbed.config.file_formats import wanted_columns
from seedbed.core import spelling
from seedbed.core.errors import SeedbedError
from seedbed.data import column_names
from seedbed.data.readers.files import (
    MissingColumn,
    Place,
    Record,
    SourceFile,
    decoded,
    lines_of,
    raise_first,
)

log = logging.getLogger(__name__)

Table = Sequence[tuple[int, Sequence[Any]]]  # rows of cells, each with its line number
ABOUT_HEADER = "the first line must name the columns, or header must, in the config: header: [label, text]; "
# delimiters in a table that was read as one column, and the setting for them; those of csv are tried in turn
DELIMITERS = {
    ",": "format: csv",
    ";": 'format: csv and delimiter: ";"',
    "\t": "format: tsv",
    "|": 'format: csv and delimiter: "|"',
}
MARK = "sep="  # in the first line of a CSV file that Excel wrote
TRIED_TEXT, TRIED_ROWS = 2**20, 100  # characters and rows that a delimiter has to fit
SPACE = " "


def read_csv(file: SourceFile, definition: Mapping[str, Any]) -> list[Record]:
    """Read a CSV file; cells may have several lines.

    Raises:
        SeedbedError: quotes are unbalanced, a column is missing, a row is empty or has the wrong length.
    """
    if definition.get("quoting") == "none":
        lines = lines_of(file)
        delimiter = definition.get("delimiter") or _sniffed(file, "\n".join(lines[:TRIED_ROWS]), definition)
        return select(_split(lines, delimiter, definition), file, definition)
    text, first = decoded(file), 1
    delimiter = definition.get("delimiter")
    if text.startswith(MARK) and text[len(MARK) + 1 : len(MARK) + 3].lstrip("\r")[:1] == "\n":
        delimiter, text, first = text[len(MARK)], text.partition("\n")[2], 2
        log.info("%s: its first line sets the delimiter %r", file.path, delimiter)
    delimiter = delimiter or _sniffed(file, text, definition)
    return select(_csv_rows(file, text, delimiter, first), file, definition)


def read_tsv(file: SourceFile, definition: Mapping[str, Any]) -> list[Record]:
    """Read a file of tab-separated values, one row per line.

    Raises:
        SeedbedError: see `read_csv`.
    """
    lines = lines_of(file)
    if definition.get("quoting") == "none":
        return select(_split(lines, "\t", definition), file, definition)
    # line by line, so that a stray quote at the start of a cell does not absorb the following lines
    table = []
    with _long_cells():
        for number, line in enumerate(lines, 1):
            try:
                table.append((number, next(csv.reader([line], delimiter="\t", strict=True))))
            except csv.Error as error:
                raise _bad_quotes(file, number, str(error)) from None
    return select(table, file, definition)


def select(table: Table, file: SourceFile, definition: Mapping[str, Any]) -> list[Record]:
    """The records of a table, with the columns that the dataset names.

    Args:
        table: the rows, each with its line; the first is the header, unless the dataset gives one.
        file: their file.
        definition: the dataset's block: columns, and header if the file has none.

    Raises:
        SeedbedError: a column is missing, or a row is empty or not as long as the header.
    """
    if table and not any(cell is not None and str(cell).strip() for cell in table[-1][1]):
        log.info("%s: ignored the blank line at the end", file.path)
        table = table[:-1]
    given = definition.get("header")
    header, rows = (given, table) if given else (table[0][1] if table else [], table[1:])
    if given and table and list(table[0][1]) == list(given):
        raise SeedbedError(
            "the first line names the columns, although the config gives a header",
            where=file.at(table[0][0]),
            found=", ".join(map(repr, given)),
            hint="leave header out for this dataset",
        )
    columns = wanted_columns(definition)
    indices = {name: _column(name, header, rows, file, key, columns) for key, name in columns}
    empty = [(Place(file, line), "an empty line") for line, cells in table if not cells]
    raise_first("a line is empty", empty, "delete the line")
    raise_first(
        "a row and the header differ in the number of cells",
        [
            (Place(file, line), f"{len(cells)} cells, {len(header)} columns")
            for line, cells in table
            if len(cells) != len(header)
        ],
        "enclose cells with the delimiter in quotes"
        + (f"; header in the config names {', '.join(map(repr, given))}" if given else ""),
    )
    return [
        Record(Place(file, line), {name: cells[index] for name, index in indices.items()})
        for line, cells in rows
    ]


def _split(lines: Sequence[str], delimiter: str, definition: Mapping[str, Any]) -> Table:
    """Rows in which quotes are letters; with a space as the delimiter, the last column has the rest."""
    header = definition.get("header")
    most = len(header) - 1 if header and delimiter == SPACE else -1
    return [(number, line.split(delimiter, most)) for number, line in enumerate(lines, 1)]


def _csv_rows(file: SourceFile, text: str, delimiter: str, first: int) -> Table:
    """The rows of a text whose first line is number `first`, each with its first line."""
    table, begin = [], first
    with _long_cells():
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        try:
            for cells in reader:
                table.append((begin, cells))
                begin = reader.line_num + first
        except csv.Error as error:
            raise _bad_quotes(file, begin, str(error)) from None
    return table


def _sniffed(file: SourceFile, text: str, definition: Mapping[str, Any]) -> str:
    """The first of the usual delimiters that fits the beginning of a file; a comma if none does.

    It fits if the first row has all columns that the dataset names; without a header in the file, if all
    rows have as many cells as there are names in the config.
    """
    given, quoting = definition.get("header"), definition.get("quoting")
    names = [name for _, name in wanted_columns(definition)]

    def fits(delimiter: str) -> bool:
        style = csv.QUOTE_NONE if quoting == "none" else csv.QUOTE_MINIMAL
        reader = csv.reader(io.StringIO(text[:TRIED_TEXT], newline=""), delimiter=delimiter, quoting=style)
        rows = list(itertools.islice(reader, TRIED_ROWS if given else 1))
        if not given:
            return bool(rows) and all(spelling.find(name, rows[0]) is not None for name in names)
        complete = rows if len(text) <= TRIED_TEXT else rows[:-1]
        return all(len(row) == len(given) for row in complete)

    with _long_cells():
        delimiter = next(filter(fits, DELIMITERS), ",")
    if delimiter != ",":
        log.info("%s: read with the delimiter %r, which fits the columns", file.path, delimiter)
    return delimiter


@contextlib.contextmanager
def _long_cells() -> Iterator[None]:
    # csv's own limit is global, 131,072 characters per cell
    before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _bad_quotes(file: SourceFile, line: int, reason: str) -> SeedbedError:
    return SeedbedError(
        "a cell's quotes are not balanced",
        where=file.at(line),
        found=reason,
        hint='enclose a cell with a quote in quotes, and double the quote in it: "He said ""no"""; if quotes '
        "mean nothing in this file, set quoting: none for the dataset",
    )


def _column(
    name: str,
    header: Sequence[Any],
    rows: Table,
    file: SourceFile,
    key: str,
    named: Sequence[tuple[str, str]],
) -> int:
    header = list(map(str, header))
    there = spelling.find(name, header)
    if there is not None and header.count(there) == 1:
        return header.index(there)
    delimiter = next((mark for mark in DELIMITERS if len(header) == 1 and mark in header[0]), None)
    seen = f"the columns seem to be separated by {delimiter!r}: set " if delimiter else ""
    seen += f"{DELIMITERS[delimiter]}; " if delimiter else ""
    twice = name in header
    meant = "" if seen or twice else column_names.remedy(key, name, named, _letters(header, rows))
    raise MissingColumn(
        f"column {name!r} {'occurs more than once' if twice else 'is not'} in the header",
        where=file.at(1),
        found=f"columns {', '.join(map(repr, header)) or '(none: the file is empty)'}",
        hint=f"{meant}, or correct the header"
        if meant
        else f"{seen or ABOUT_HEADER}correct the header, or columns.{key} of the dataset in the config",
    )


def _letters(header: Sequence[str], rows: Table) -> dict[str, float]:
    """Mean letters of the cells of each column, in the first rows."""
    first = [cells for _, cells in rows[:100]]
    return {
        name: sum(len(str(cells[index])) for cells in first if index < len(cells)) / max(1, len(first))
        for index, name in enumerate(header)
    }
