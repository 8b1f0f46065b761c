"""The files of a dataset as text: decompressed, decoded, divided into lines, with places for messages.

Harmless faults (byte order mark, CRLF, one blank line at the end) are corrected and logged.
"""

import contextlib
import gzip
import logging
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, NamedTuple

from seedbed.config.file_formats import wanted_columns
from seedbed.core.characters import is_blank
from seedbed.core.errors import SeedbedError
from seedbed.sources.archives import MAX_BYTES, MAX_RATIO, RATIO_FROM

log = logging.getLogger(__name__)

UTF8 = "utf-8"
BOM = b"\xef\xbb\xbf"
GZIP = b"\x1f\x8b"
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
BLOCK = 2**20
# first bytes of files that are not text, the format, and the remedy
OTHER_FORMATS = (
    (b"PK", "a zip archive", "unpack it, and name the file inside; a source that is an archive is unpacked"),
    (b"BZh", "compressed with bzip2", "decompress it: bunzip2"),
    (b"\xfd7zXZ\x00", "compressed with xz", "decompress it: unxz"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "decompress it: unzstd"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it, and name the file inside"),
    (b"\xd0\xcf\x11\xe0", "a document of an old Office, such as .xls", "save it as .xlsx or CSV in UTF-8"),
    (b"ARROW1", "an Arrow file", "write it as Parquet: pandas.read_feather(...).to_parquet(...)"),
    (b"SQLite format 3", "a SQLite database", "export the table as CSV in UTF-8"),
    (b"%PDF", "a PDF file", "give the texts as CSV or JSON lines"),
)
# the same, of files that another format reads
READABLE = ((b"PAR1", "a Parquet file", "set format: parquet"),)
# names of files in a zip archive that is a spreadsheet
SHEETS = (b"[Content_Types].xml", b"xl/", b"opendocument.spreadsheet")
NUL_SHARE = 0.05  # of a file's bytes; a Latin text in UTF-16 has one in two, a faulty text a few


@contextlib.contextmanager
def explaining(file: "SourceFile", what: str, hint: str) -> Iterator[None]:
    """Any error of a library that reads a file as a `SeedbedError` with this text and remedy."""
    try:
        yield
    except SeedbedError:
        raise
    except Exception as error:  # the libraries raise errors of many kinds
        raise SeedbedError(
            what, where=file.where, found=f"{type(error).__name__}: {str(error)[:300]}", hint=hint
        ) from error


@dataclass(frozen=True)
class SourceFile:
    """A file of a source.

    Attributes:
        path: where it is.
        location: the source's location, for messages.
        unit: what its places count: a line, an item or a row.
        encoding: of a dataset's text; None: UTF-8, and the config has no key for another one.
    """

    path: Path
    location: str = ""
    unit: str = "line"
    encoding: str | None = None

    @property
    def where(self) -> str:
        """The file, for messages."""
        return f"{self.path}{self._origin}"

    def at(self, line: int) -> str:
        """The place of a line, for messages."""
        return f"{self.path}, {self.unit} {line}{self._origin}"

    def counting(self, unit: str) -> "SourceFile":
        """The same file, whose places count something else."""
        return replace(self, unit=unit)

    @property
    def _origin(self) -> str:
        return f" (from {self.location})" if self.location else ""

    def read_bytes(self) -> bytes:
        """The content, decompressed if it is gzip.

        Raises:
            SeedbedError: the compressed data are damaged, or a bomb.
        """
        with self.open() as stream:
            return stream.read()

    @contextlib.contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The content as a stream, decompressed if it is gzip; for errors see `read_bytes`."""
        with open(self.path, "rb") as stream:
            packed = stream.read(len(GZIP)) == GZIP
            stream.seek(0)
            if not packed:
                yield stream
                return
            _refuse_bomb(self)
            with gzip.open(stream) as unpacked, _explaining_damage(self):
                yield unpacked


def _refuse_bomb(file: SourceFile) -> None:
    size, packed = 0, file.path.stat().st_size
    with gzip.open(file.path) as stream, _explaining_damage(file):
        while block := stream.read(BLOCK):
            size += len(block)
            if size > MAX_BYTES or (size > RATIO_FROM and size > MAX_RATIO * packed):
                raise SeedbedError(
                    "refused to decompress the file",
                    where=file.where,
                    found=f"a bomb: at least {size:,} bytes from {packed:,} compressed ones",
                    hint="check the source; decompress the file yourself if you trust it: gunzip",
                )


@contextlib.contextmanager
def _explaining_damage(file: SourceFile) -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise SeedbedError(
            "the compressed file is damaged or truncated",
            where=file.where,
            found=f"{type(error).__name__}: {error}",
            hint="fetch it again, and test it: gzip -t",
        ) from None


class MissingColumn(SeedbedError):
    """A file lacks a column or key of the texts; its hint is for a dataset of the config."""


class Place(NamedTuple):
    """A line, item or row of a file, from 1."""

    file: SourceFile
    line: int

    def __str__(self) -> str:
        return self.file.at(self.line)


class Record(NamedTuple):
    """One example of a file.

    Attributes:
        place: where it stands.
        cells: its values by the names that the config gives to their columns: text, or what the format has.
        label_place: where its label stands, if that is in another file.
    """

    place: Place
    cells: Mapping[str, Any]
    label_place: Place | None = None


# --- what is asked of readers -----------------------------------------------------------------------------


def named_columns(definition: Mapping[str, Any], part: str = "text") -> list[str]:
    """The columns of the text, in order, or those of another key under `columns`."""
    return [name for key, name in wanted_columns(definition) if key == part]


# --- messages ---------------------------------------------------------------------------------------------


def describe_blank(text: str) -> str:
    """The content of a blank text, for messages: spaces, and invisible characters by their code points."""
    found = sorted({character for character in text if not character.isspace()})
    named = [f"U+{ord(character):04X}" for character in found[:5]]
    return f"nothing but {', '.join(['spaces', *named])}{', ...' if len(found) > 5 else ''}"


def raise_first(what: str, places: Sequence[tuple[Place, object]], hint: str) -> None:
    """Raise an error for the first of `places`, if any: pairs of a place and what was found there.

    Raises:
        SeedbedError: `places` is not empty; the message has the number of others.
    """
    if places:
        place, found = places[0]
        raise SeedbedError(what + and_more(len(places)), where=str(place), found=found, hint=hint)


def and_more(count: int) -> str:
    """The end of a message on the first of `count` equal faults."""
    return f" (and {count - 1:,} more like it)" if count > 1 else ""


def joined(parts: Sequence[str]) -> str:
    """The columns of a text as one text: stripped, without empty ones, joined by a space."""
    if len(parts) == 1:
        return parts[0]
    return " ".join(part.strip() for part in parts if not is_blank(part))


# --- from bytes to lines ----------------------------------------------------------------------------------


def decoded(file: SourceFile, quiet: bool = False) -> str:
    """The text of a file, without a byte order mark.

    Args:
        file: the file.
        quiet: whether harmless faults are not logged, as for one of very many files.

    Raises:
        SeedbedError: the file is not text in its encoding; it is UTF-8 although another encoding was given;
            or more than 5% are NUL bytes, as in UTF-16 or a binary file.
    """
    data = file.read_bytes()
    _refuse_other_formats(file, data)
    encoding = file.encoding or UTF8
    text = _decoded_utf8(file, data, quiet) if encoding == UTF8 else _decoded_as(file, data, encoding)
    if not quiet and encoding != UTF8:
        log.info("%s: read as %s", file.path, encoding)
    if not quiet and (ends := text.count("\r\n")):
        log.info("%s: read %d CRLF line ends as LF", file.path, ends)
    return text


def lines_of(file: SourceFile) -> list[str]:
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
    empty = [
        (Place(file, number), "an empty line") for number, line in enumerate(lines, 1) if not line.strip()
    ]
    raise_first("a line is empty", empty, "fill in or delete the line (also in the file of labels)")
    return lines


def _refuse_other_formats(file: SourceFile, data: bytes) -> None:
    for begins, what, remedy in (*READABLE, *OTHER_FORMATS):
        # a text may begin with these letters, too, but is valid UTF-8 without NUL
        if data.startswith(begins) and not (b"\0" not in data and _is_utf8(data)):
            if begins == b"PK" and any(name in data[:4096] for name in SHEETS):
                what, remedy = "a spreadsheet", "set format: excel for .xlsx, else save it as CSV in UTF-8"
            elif (begins, what, remedy) in OTHER_FORMATS:
                remedy += "; then add the new file to the source, and name it under files"
            raise SeedbedError(
                f"the file is not text: it is {what}",
                where=file.where,
                found=f"it begins with {data[:8]!r}",
                hint=remedy,
            )


def _decoded_utf8(file: SourceFile, data: bytes, quiet: bool) -> str:
    skipped = 0
    if data.startswith(BOM):
        if not quiet:
            log.info("%s: skipped the byte order mark", file.path)
        skipped, data = len(BOM), data.removeprefix(BOM)
    try:
        text = data.decode(UTF8)
    except UnicodeDecodeError as error:
        raise _not_utf8(file, data, error.start, skipped) from None
    if data.count(0) > NUL_SHARE * len(data):
        guess = "utf-16-le" if data.index(0) % 2 else "utf-16-be"
        raise SeedbedError(
            "the file is not UTF-8 text",
            where=_place(file, data, data.index(0)),
            found=f"{data.count(0):,} NUL bytes among {len(data):,}; it begins with {data[:12]!r}",
            hint=f"if it is UTF-16 without a mark, {_remedy(file, guess)}",
        )
    return text


def _decoded_as(file: SourceFile, data: bytes, encoding: str) -> str:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise SeedbedError(
            f"the file is not {encoding}",
            where=f"{_place(file, data, error.start)}, byte offset {error.start}",
            found=f"{_shown(data, error.start)}: {error.reason}",
            hint=_other_encoding(data),
        ) from None
    # UTF-16 has NUL bytes; a text of another encoding is hardly ever valid UTF-8 beyond ASCII
    if b"\0" not in data and _is_utf8(data) and text != data.decode(UTF8):
        first = next((place for place, byte in enumerate(data) if byte > 127), 0)
        raise SeedbedError(
            f"the file is UTF-8, not {encoding}",
            where=_place(file, data, first),
            found=f"{_shown(data, first)}, which is UTF-8 as is all of the file",
            hint="leave encoding out for this dataset",
        )
    return text.removeprefix("\ufeff")


def _not_utf8(file: SourceFile, data: bytes, start: int, skipped: int) -> SeedbedError:
    bad = sum(not _is_utf8(line) for line in data.split(b"\n"))
    utf16 = data.startswith(UTF16_BOMS)
    remedy = _other_encoding(data) if file.encoding else _remedy(file, "utf-16" if utf16 else "windows-1252")
    return SeedbedError(
        "the file is not UTF-8" + and_more(bad),
        where=f"{_place(file, data, start)}, byte offset {start + skipped}",
        found=_shown(data, start) + ("; it begins as UTF-16" if utf16 else ""),
        hint=remedy,
    )


def _place(file: SourceFile, data: bytes, offset: int) -> str:
    return file.at(data.count(b"\n", 0, offset) + 1)


def _shown(data: bytes, offset: int) -> str:
    return repr(data[offset : offset + 8].split(b"\n")[0])


def _remedy(file: SourceFile, encoding: str) -> str:
    if file.encoding:
        return f"set encoding: {encoding} for this dataset"
    return f"convert it: iconv -f {encoding.upper()} -t UTF-8 (or its own encoding)"


def _other_encoding(data: bytes) -> str:
    """The encodings to try."""
    if data.startswith(UTF16_BOMS):
        return "set encoding: utf-16 for this dataset"
    if _is_utf8(data):
        return "leave encoding out for this dataset: the file is UTF-8"
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:  # five bytes mean nothing in it
        return "set encoding: latin-1 for this dataset, or the encoding that the file was written in"
    return (
        "set encoding: cp1252 (Windows in western Europe) or latin-1 for this dataset, then look at letters "
        "with accents in the texts"
    )


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode(UTF8)
    except UnicodeDecodeError:
        return False
    return True
