"""Read CSV in blocks with pyarrow: texts become codes at once, so that they take four bytes a cell."""

import contextlib
import csv
import re
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from seedbed.core.errors import SeedbedError
from seedbed.outside.table_files import (
    CODES,
    GZIP,
    SAMPLE,
    Batches,
    TableFile,
    explaining_damage,
    opened,
    truths,
    unreadable,
)

BOM = b"\xef\xbb\xbf"
DELIMITERS = ",;\t|"
ROW = re.compile(r"Row #(\d+)")
BLOCK = 2**23  # bytes that are parsed at once


def open_csv(path: Path, sample: bytes) -> TableFile:
    """A CSV file with any of `DELIMITERS`, also compressed by gzip.

    Args:
        path: the file.
        sample: its first bytes, see `table_files.first_bytes`.

    Raises:
        SeedbedError: the header is not UTF-8, or names a column twice; of `batches`: a row cannot be read.
    """
    header, delimiter = _header(path, sample)
    batches = partial(_batches, path, sample, header, delimiter)
    return TableFile(header, _estimated_rows(path, sample), 2, batches)


def _header(path: Path, sample: bytes) -> tuple[list[str], str]:
    """The names of the columns, and the delimiter that gives most of them."""
    line = sample.removeprefix(BOM).splitlines()[0]
    if b"\0" in line:
        raise unreadable(path, "a spreadsheet, an archive, or text in UTF-16", "save it as CSV in UTF-8")
    if not line.strip():
        raise unreadable(path, "a blank first line", "begin the file with the names of its columns")
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(path, 1, error) from None
    delimiter = max(DELIMITERS, key=text.count)
    header = next(csv.reader([text], delimiter=delimiter), [])
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise SeedbedError(
            "two columns have the same name",
            where=f"{path}, line 1",
            found=", ".join(twice),
            hint="give each column a name of its own",
        )
    return header, delimiter


def _estimated_rows(path: Path, sample: bytes) -> int:
    """From the length of the first rows, and for gzip from how far the first bytes were compressed."""
    size = path.stat().st_size
    with open(path, "rb") as stream:
        packed = stream.read(SAMPLE)
    if packed.startswith(GZIP):
        size = size * len(zlib.decompressobj(31).decompress(packed)) // len(packed)
    return round(size * max(1, sample.count(b"\n")) / len(sample))


def _batches(
    path: Path,
    sample: bytes,
    header: Sequence[str],
    delimiter: str,
    columns: Sequence[str],
    score: str | None,
) -> Batches:
    types = dict.fromkeys(columns, CODES)
    has_truths = score is not None and _has_truths(sample, header, delimiter, score)
    if score is not None and not has_truths:
        types[score] = pa.float32()
    with _explaining_rows(path), opened(path) as stream:
        reader = pyarrow.csv.open_csv(
            stream,
            read_options=pyarrow.csv.ReadOptions(block_size=BLOCK, use_threads=False),
            parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=types, include_columns=columns, null_values=[""], strings_can_be_null=True
            ),
        )
        for batch in reader:
            arrays = dict(zip(columns, batch.columns, strict=True))
            if has_truths and score is not None:
                arrays[score] = truths(arrays[score])
            yield arrays


def _has_truths(sample: bytes, header: Sequence[str], delimiter: str, score: str) -> bool:
    """Whether the first score is written as a word, true or false."""
    lines = sample.removeprefix(BOM).decode(errors="replace").splitlines()[1:]
    row, place = next(csv.reader(lines, delimiter=delimiter), []), header.index(score)
    return len(row) > place and row[place].strip().casefold() in ("true", "false", "yes", "no")


@contextlib.contextmanager
def _explaining_rows(path: Path) -> Iterator[None]:
    """Errors of pyarrow's reader as SeedbedError; it counts the header as row 1, too."""
    try:
        with explaining_damage(path):
            yield
    except pa.ArrowInvalid as error:
        message = str(error).partition("\n")[0]
        if "invalid UTF8" in message:
            raise _first_not_utf8(path) from None
        row = ROW.search(message)
        raise SeedbedError(
            "a row of the table cannot be read",
            where=f"{path}, row {row[1]}" if row else str(path),
            found=ROW.split(message)[-1].lstrip(": "),
            hint="write scores as numbers, with a decimal point"
            if "conversion" in message
            else "give each row as many cells as the header, and put cells with the delimiter in quotes",
        ) from None


def _first_not_utf8(path: Path) -> SeedbedError:
    with opened(path) as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return _not_utf8(path, number, error)
    return unreadable(path, "bytes that are not UTF-8")


def _not_utf8(path: Path, line: int, error: UnicodeDecodeError) -> SeedbedError:
    return SeedbedError(
        "the file is not in UTF-8",
        where=f"{path}, line {line}",
        found=repr(error.object[max(0, error.start - 10) : error.start + 10]),
        hint=f"convert it, such as with iconv -f latin1 -t utf-8 {path.name} > utf8_{path.name}",
    )
