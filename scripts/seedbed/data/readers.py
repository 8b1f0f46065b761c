"""Read the files of a dataset: the lab's layout, CSV, TSV, JSON lines and JSON.

Harmless faults (byte order mark, CRLF, one blank line at the end, an empty column beside a full one) are
corrected and logged. Other faults are errors with the first place and the number of others.
"""

import contextlib
import csv
import io
import json
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from seedbed.core import spelling
from seedbed.core.characters import is_blank
from seedbed.core.errors import SeedbedError
from seedbed.data import column_names

log = logging.getLogger(__name__)

STATE = "state.json"  # in each split's folder written by datasets.save_to_disk
# endings of the files that a path in the config stands for
ENDINGS = {"lab": (".review", ".label"), "huggingface": (f"/{STATE}",)}
BOM = b"\xef\xbb\xbf"
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
Table = list[tuple[int, list[str]]]  # rows of cells, each with its line number
# first bytes of files that are not text, the format, and the remedy
OTHER_FORMATS = (
    (b"PK", "a zip archive", "unpack it, and name the file inside; a source that is an archive is unpacked"),
    (b"\x1f\x8b", "compressed with gzip", "decompress it: gunzip"),
    (b"BZh", "compressed with bzip2", "decompress it: bunzip2"),
    (b"\xfd7zXZ\x00", "compressed with xz", "decompress it: unxz"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "decompress it: unzstd"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it, and name the file inside"),
    (b"\xd0\xcf\x11\xe0", "a document of an old Office, such as .xls", "save it as CSV in UTF-8"),
    (b"PAR1", "a Parquet file", "write it as CSV or JSON lines: pandas.read_parquet(...).to_csv(...)"),
    (b"ARROW1", "an Arrow file", "write it as CSV or JSON lines: pandas.read_feather(...).to_csv(...)"),
    (b"SQLite format 3", "a SQLite database", "export the table as CSV in UTF-8"),
    (b"%PDF", "a PDF file", "give the texts as CSV or JSON lines"),
)
ABOUT_HEADER = "the first line must name the columns; "
# delimiters in a table that was read as one column, and the setting for them
DELIMITERS = {
    ";": 'format: csv and delimiter: ";"',
    "\t": "format: tsv",
    "|": 'format: csv and delimiter: "|"',
    ",": "format: csv",
}
# names of files in a zip archive that is a spreadsheet
SHEETS = (b"[Content_Types].xml", b"xl/", b"opendocument.spreadsheet")
NUL_SHARE = 0.05  # of a file's bytes; a Latin text in UTF-16 has one in two, a faulty text a few


class Row(NamedTuple):
    """One example of a file: `index` counts examples from 0, `line` counts lines from 1.

    `cluster` is empty where the dataset has no column of clusters.
    """

    index: int
    line: int
    text: str
    label: str
    cluster: str = ""


@dataclass(frozen=True)
class SourceFile:
    """A file of a source, with the source's location and the unit of places (a line) for messages."""

    path: Path
    location: str = ""
    unit: str = "line"

    def at(self, line: int) -> str:
        """The place of a line, for messages."""
        return f"{self.path}, {self.unit} {line}" + (f" (from {self.location})" if self.location else "")


# --- messages ---------------------------------------------------------------------------------------------


def describe_blank(text: str) -> str:
    """The content of a blank text, for messages: spaces, and invisible characters by their code points."""
    found = sorted({character for character in text if not character.isspace()})
    named = [f"U+{ord(character):04X}" for character in found[:5]]
    return f"nothing but {', '.join(['spaces', *named])}{', ...' if len(found) > 5 else ''}"


def raise_first(what: str, file: SourceFile, places: Sequence[tuple[int, object]], hint: str) -> None:
    """Raise an error for the first of `places`, if any: pairs of a line and the text found there.

    Raises:
        SeedbedError: `places` is not empty; the message has the number of others.
    """
    if places:
        line, found = places[0]
        raise SeedbedError(what + and_more(len(places)), where=file.at(line), found=found, hint=hint)


def and_more(count: int) -> str:
    """The end of a message on the first of `count` equal faults."""
    return f" (and {count - 1:,} more like it)" if count > 1 else ""


def named_columns(definition: dict[str, Any]) -> list[str]:
    """The columns of the text, in order."""
    text = definition["columns"]["text"]
    return [text] if isinstance(text, str) else list(text)


def key_columns(definition: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The columns of a labelled text beside the text, by their keys: its label, and its cluster if any."""
    columns = definition["columns"]
    return [(key, columns[key]) for key in ("label", "cluster") if key in columns]


def files_of_split(definition: Mapping[str, Any], split: str) -> list[str]:
    """The source's files of a split; in the format huggingface, its state.json."""
    endings = ENDINGS.get(definition["format"], ("",))
    return [str(PurePosixPath(definition["files"][split] + ending)) for ending in endings]


def joined(parts: Sequence[str]) -> str:
    """The columns of a text as one text: stripped, without empty ones, joined by a space."""
    if len(parts) == 1:
        return parts[0]
    return " ".join(part.strip() for part in parts if not is_blank(part))


def log_empty_parts(file: SourceFile, texts: Sequence[Sequence[str]], columns: Sequence[str]) -> None:
    """Log the number of empty texts in each of several columns."""
    for index, column in enumerate(columns if len(columns) > 1 else ()):
        if count := sum(is_blank(parts[index]) for parts in texts):
            log.info("%s: %r is empty in %d of %d examples", file.path, column, count, len(texts))


# --- from bytes to lines ----------------------------------------------------------------------------------


def decoded(file: SourceFile) -> str:
    """The text of a file in UTF-8, without a byte order mark.

    Raises:
        SeedbedError: the file is not UTF-8, or more than 5% are NUL bytes, as in UTF-16 or a binary file.
    """
    data = file.path.read_bytes()
    _refuse_other_formats(file, data)
    skipped = 0
    if data.startswith(BOM):
        log.info("%s: skipped the byte order mark", file.path)
        skipped, data = len(BOM), data.removeprefix(BOM)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(file, data, error.start, skipped) from None
    if data.count(0) > NUL_SHARE * len(data):
        guess = "UTF-16LE" if data.index(0) % 2 else "UTF-16BE"
        raise SeedbedError(
            "the file is not UTF-8 text",
            where=file.at(data.count(b"\n", 0, data.index(0)) + 1),
            found=f"{data.count(0):,} NUL bytes among {len(data):,}; it begins with {data[:12]!r}",
            hint=f"if it is UTF-16 without a mark, convert it: iconv -f {guess} -t UTF-8",
        )
    if ends := text.count("\r\n"):
        log.info("%s: read %d CRLF line ends as LF", file.path, ends)
    return text


def _refuse_other_formats(file: SourceFile, data: bytes) -> None:
    for begins, what, remedy in OTHER_FORMATS:
        # a text may begin with these letters, too, but is valid UTF-8 without NUL
        if data.startswith(begins) and not (b"\0" not in data and _is_utf8(data)):
            if begins == b"PK" and any(name in data[:4096] for name in SHEETS):
                what, remedy = "a spreadsheet, such as .xlsx", "save it as CSV in UTF-8"
            raise SeedbedError(
                f"the file is not text: it is {what}",
                where=f"{file.path} (from {file.location})",
                found=f"it begins with {data[:8]!r}",
                hint=f"{remedy}; then add the new file to the source, and name it under files",
            )


def _not_utf8(file: SourceFile, data: bytes, start: int, skipped: int) -> SeedbedError:
    bad = sum(not _is_utf8(line) for line in data.split(b"\n"))
    utf16 = data.startswith(UTF16_BOMS)
    line = data.count(b"\n", 0, start) + 1
    shown = data[start : start + 8].split(b"\n")[0]
    return SeedbedError(
        "the file is not UTF-8" + and_more(bad),
        where=f"{file.at(line)}, byte offset {start + skipped}",
        found=f"{shown!r}; it begins as UTF-16" if utf16 else f"{shown!r}",
        hint=f"convert it: iconv -f {'UTF-16' if utf16 else 'WINDOWS-1252'} -t UTF-8 (or its own encoding)",
    )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _lines(file: SourceFile) -> list[str]:
    """The lines of a file without their ends, which are "\\n" or "\\r\\n".

    Raises:
        SeedbedError: a line is empty, other than one blank line at the end.
    """
    lines = [line.removesuffix("\r") for line in decoded(file).split("\n")]
    if lines[-1] == "":
        lines.pop()
    if lines and not lines[-1].strip():
        log.info("%s: ignored the blank line at the end", file.path)
        lines.pop()
    empty = [(number, "an empty line") for number, line in enumerate(lines, 1) if not line.strip()]
    raise_first("a line is empty", file, empty, "fill in or delete the line (also in the file of labels)")
    return lines


# --- the lab's layout -------------------------------------------------------------------------------------


def read_lab(review: SourceFile, label: SourceFile, definition: dict[str, Any]) -> list[Row]:
    """Read NAME.review and NAME.label, one example per line.

    Raises:
        SeedbedError: a line is empty, or the files differ in length.
    """
    texts, labels = _lines(review), _lines(label)
    if len(texts) != len(labels):
        suspect = _suspect_line(review, texts, label, labels, definition["labels"])
        raise SeedbedError(
            "the files of texts and of labels differ in length",
            where=f"{review.path} and {label.path} (from {review.location})",
            found=f"{len(texts)} texts and {len(labels)} labels{suspect}",
            hint="line k of one belongs to line k of the other: find the line that is missing or broken",
        )
    pairs = zip(texts, labels, strict=True)
    return [Row(index, index + 1, text, value) for index, (text, value) in enumerate(pairs)]


def _suspect_line(
    review: SourceFile, texts: list[str], label: SourceFile, labels: list[str], declared: Sequence[str]
) -> str:
    """The first clearly wrong line, if any: an undeclared label, a label among texts, or a CR."""
    known = set(map(spelling.normal, declared))

    def is_label(line: str) -> bool:
        return spelling.normal(line.strip()) in known

    for file, lines, wrong, what in (
        (label, labels, lambda line: not is_label(line), "is not a declared label"),
        (review, texts, is_label, "is a label, not a text"),
        (review, texts, lambda line: "\r" in line.strip(), "has a CR: it may have been two lines"),
    ):
        for number, line in enumerate(lines, 1):
            if wrong(line):
                return f"; {file.path.name}, line {number}, {what}: {line[:40]!r}"
    return ""


# --- tables -----------------------------------------------------------------------------------------------


def read_csv(file: SourceFile, definition: dict[str, Any]) -> list[Row]:
    """Read a CSV file with a header; cells may have several lines.

    Raises:
        SeedbedError: quotes are unbalanced, a column is missing, a row is empty or has the wrong length.
    """
    return _from_table(csv_table(file, definition.get("delimiter", ",")), file, definition)


def read_tsv(file: SourceFile, definition: dict[str, Any]) -> list[Row]:
    """Read a file of tab-separated values with a header, one row per line.

    Raises:
        SeedbedError: see `read_csv`.
    """
    return _from_table(tsv_table(file), file, definition)


def csv_table(file: SourceFile, delimiter: str = ",") -> Table:
    """The rows of a CSV file, each with its first line; the first row is the header.

    Args:
        file: the file.
        delimiter: the character between two cells.

    Raises:
        SeedbedError: quotes are not balanced.
    """
    text = decoded(file)
    table, begin = [], 1
    with _long_cells():
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        try:
            for cells in reader:
                table.append((begin, cells))
                begin = reader.line_num + 1
        except csv.Error as error:
            raise _bad_quotes(file, begin, str(error)) from None
    return table


def tsv_table(file: SourceFile) -> Table:
    """The rows of a file of tab-separated values, each with its line; the first row is the header.

    Raises:
        SeedbedError: quotes are not balanced, or a line is empty.
    """
    # line by line, so that a stray quote at the start of a cell does not absorb the following lines
    table = []
    with _long_cells():
        for number, line in enumerate(_lines(file), 1):
            try:
                table.append((number, next(csv.reader([line], delimiter="\t", strict=True))))
            except csv.Error as error:
                raise _bad_quotes(file, number, str(error)) from None
    return table


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
        hint='enclose a cell with a quote in quotes, and double the quote in it: "He said ""no"""',
    )


def _from_table(table: Table, file: SourceFile, definition: dict[str, Any]) -> list[Row]:
    columns = named_columns(definition)
    rows = select_cells(table, file, [*(("text", name) for name in columns), *key_columns(definition)])
    texts = [cells[: len(columns)] for _, cells in rows]
    log_empty_parts(file, texts, columns)
    return [
        Row(index, line, joined(parts), *cells[len(columns) :])
        for index, ((line, cells), parts) in enumerate(zip(rows, texts, strict=True))
    ]


def select_cells(table: Table, file: SourceFile, named: Sequence[tuple[str, str]]) -> Table:
    """The cells of some columns, for each row below the header.

    Args:
        table: the header and the rows, each with its line.
        file: their file.
        named: for each column, its key under `columns` in the config and its name in the header.

    Raises:
        SeedbedError: a column is missing, or a row is empty or not as long as the header.
    """
    if table and not "".join(table[-1][1]).strip():
        log.info("%s: ignored the blank line at the end", file.path)
        table = table[:-1]
    header = table[0][1] if table else []
    indices = [_column(name, table, file, key, named) for key, name in named]
    empty = [(line, "an empty line") for line, cells in table if not cells]
    raise_first("a line is empty", file, empty, "delete the line")
    raise_first(
        "a row and the header differ in the number of cells",
        file,
        [
            (line, f"{len(cells)} cells, {len(header)} columns")
            for line, cells in table
            if len(cells) != len(header)
        ],
        "enclose cells with the delimiter in quotes",
    )
    return [(line, [cells[index] for index in indices]) for line, cells in table[1:]]


def _column(name: str, table: Table, file: SourceFile, key: str, named: Sequence[tuple[str, str]]) -> int:
    header = table[0][1] if table else []
    there = spelling.find(name, header)
    if there is not None and header.count(there) == 1:
        return header.index(there)
    delimiter = next((mark for mark in DELIMITERS if len(header) == 1 and mark in header[0]), None)
    seen = f"the columns seem to be separated by {delimiter!r}: set " if delimiter else ""
    seen += f"{DELIMITERS[delimiter]}; " if delimiter else ""
    if header and header[0].startswith("sep="):
        seen = "delete the line sep=, which only Excel reads; "
    twice = name in header
    meant = "" if seen or twice else column_names.remedy(key, name, named, _letters(table))
    raise SeedbedError(
        f"column {name!r} {'occurs more than once' if twice else 'is not'} in the header",
        where=file.at(1),
        found=f"columns {', '.join(map(repr, header)) or '(none: the file is empty)'}",
        hint=f"{meant}, or correct the header"
        if meant
        else f"{seen or ABOUT_HEADER}correct the header, or columns.{key} of the dataset in the config",
    )


def _letters(table: Table) -> dict[str, float]:
    """Mean letters of the cells of each column, in the first rows."""
    rows = [cells for _, cells in table[1:100]]
    return {
        name: sum(len(cells[index]) for cells in rows if index < len(cells)) / max(1, len(rows))
        for index, name in enumerate(table[0][1] if table else [])
    }


# --- JSON lines -------------------------------------------------------------------------------------------


def read_jsonl(file: SourceFile, definition: dict[str, Any]) -> list[Row]:
    """Read one JSON object per line; labels and clusters may be strings, numbers or booleans.

    If the text has several columns, null counts as empty.

    Raises:
        SeedbedError: a line is not an object, a key is missing, a text is not a string.
    """
    columns = named_columns(definition)
    named = [*(("text", name) for name in columns), *key_columns(definition)]
    others, texts, wrong = [], [], []
    for number, record in json_lines(file):
        values = pick(record, file, number, named)
        parts, (label, *cluster) = values[: len(columns)], values[len(columns) :]
        if len(parts) > 1:
            parts = ["" if part is None else part for part in parts]
        wrong += [
            (number, json.dumps(part, ensure_ascii=False)) for part in parts if not isinstance(part, str)
        ]
        texts.append(parts)
        # null is a label like any other, but no cluster
        others.append([_json_text(label), *("" if each is None else _json_text(each) for each in cluster)])
    raise_first("a text is not a string", file, wrong, "give every text as a JSON string")
    log_empty_parts(file, texts, columns)
    pairs = zip(texts, others, strict=True)
    return [Row(index, index + 1, joined(parts), *other) for index, (parts, other) in enumerate(pairs)]


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def json_lines(file: SourceFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with one JSON object per line, each with its line.

    Raises:
        SeedbedError: a line is empty or not an object.
    """
    for number, line in enumerate(_lines(file), 1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise SeedbedError(
                "a line is not JSON",
                where=file.at(number),
                found=str(error),
                hint="write one JSON object per line",
            ) from None
        if not isinstance(record, dict):
            raise SeedbedError(
                "a line is not a JSON object",
                where=file.at(number),
                found=line[:80],
                hint='write one object per line, with the keys under columns in the config: {"...": "..."}',
            )
        yield number, record


def json_items(file: SourceFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON file, a list or {"data": a list}, each with its number from 1 (unit `item`).

    Raises:
        SeedbedError: the file is not JSON or not such a list, or an item is not an object.
    """
    try:
        content = json.loads(decoded(file))
    except json.JSONDecodeError as error:
        raise SeedbedError(
            "the file is not JSON",
            where=file.at(error.lineno),
            found=f"{error.msg}, column {error.colno}",
            hint="for one object per line, set format: jsonl; else correct the file",
        ) from None
    except RecursionError:
        raise SeedbedError("the file is nested too deeply", where=str(file.path)) from None
    except ValueError as error:  # a number has too many digits for Python
        raise SeedbedError("the file cannot be read as JSON", where=str(file.path), found=error) from None
    items = content.get("data") if isinstance(content, dict) else content
    if not isinstance(items, list):
        shown = f"keys {', '.join(map(repr, content))}" if isinstance(content, dict) else repr(content)[:80]
        raise SeedbedError(
            "the file is not a list of examples",
            where=str(file.path),
            found=f"{type(content).__name__}: {shown[:200]}",
            hint='write a list of objects, [{...}, {...}], or {"data": [{...}, {...}]}',
        )
    for number, record in enumerate(items, 1):
        if not isinstance(record, dict):
            raise SeedbedError(
                "an item is not a JSON object",
                where=replace(file, unit="item").at(number),
                found=json.dumps(record, ensure_ascii=False)[:80],
                hint="write an object for every example",
            )
        yield number, record


def pick(
    record: Mapping[str, Any], file: SourceFile, number: int, named: Sequence[tuple[str, str]]
) -> list[Any]:
    """The values of an object at the keys in `named` (see `select_cells`).

    Raises:
        SeedbedError: a key is missing; the error names the probable one.
    """
    values = []
    for key, name in named:
        there = spelling.find(name, record)
        if there is not None:
            values.append(record[there])
        else:
            meant = column_names.remedy(key, name, named, {each: len(str(record[each])) for each in record})
            raise SeedbedError(
                f"key {name!r} is missing",
                where=file.at(number),
                found=f"keys {', '.join(map(repr, record)) or '(none)'}",
                hint=f"{meant or f'correct columns.{key} of the dataset in the config'}, or correct the line",
            )
    return values
