"""Read new texts without labels, for a finished run to predict: CSV, TSV, JSON lines, plain lines."""

import contextlib
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from seedbed.core.errors import SeedbedError
from seedbed.data.labelled_texts import NOUNS, clean_texts
from seedbed.data.readers import json_files, tables
from seedbed.data.readers.files import MissingColumn, Place, Record, SourceFile, decoded
from seedbed.data.texts import TEXT, TEXT_PAIR

READERS = {
    ".csv": tables.read_csv,
    ".tsv": tables.read_tsv,
    ".jsonl": json_files.read_jsonl,
    ".ndjson": json_files.read_jsonl,
}
PLAIN = ".txt"
STDIN = "-"  # stands for standard input, of plain lines
REMEDY = "fill in the text, or delete the line"


class StandardInput(SourceFile):
    """Standard input, which can be read once."""

    @contextlib.contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Its content as a stream."""
        yield io.BytesIO(sys.stdin.buffer.read())


def read(source: str, columns: Sequence[str] = (TEXT,), pair: str | None = None) -> list[dict[str, Any]]:
    """The examples of a file: {"id": its line, "text"}, and "text_pair" of a pair.

    Texts are cleaned as those of a dataset. The ending of the file tells its format, also before .gz.

    Args:
        source: the path, or STDIN.
        columns: of the text; several are joined by a space. Plain lines have none.
        pair: the column of the second text; None: the texts are no pairs.

    Raises:
        SeedbedError: the file is missing, empty, not UTF-8 or of an unknown format; a column is missing; a
            text is missing, no string, or blank.
    """
    file, ending = _file(source)
    named = {TEXT: list(columns), **({TEXT_PAIR: [pair]} if pair else {})}
    if ending == PLAIN:
        records, named = _lines(file, pair), {TEXT: [TEXT]}
    else:
        records = _records(file, ending, named)
    if not records:
        raise SeedbedError("there are no texts", where=file.where, hint="give one text or more")
    texts = {part: clean_texts(records, names, NOUNS[part], REMEDY) for part, names in named.items()}
    rows = zip(records, *texts.values(), strict=True)
    return [{"id": str(record.place.line), **dict(zip(texts, row, strict=True))} for record, *row in rows]


def _file(source: str) -> tuple[SourceFile, str]:
    """The file, and the ending that tells its format."""
    if source == STDIN:
        return StandardInput(Path("standard input")), PLAIN
    path, ending = Path(source), Path(source.removesuffix(".gz")).suffix.lower()
    if not path.is_file():
        raise SeedbedError(
            "there is no such file of texts",
            where=source,
            found="a folder" if path.is_dir() else None,
            hint=f"name a file, or {STDIN} for standard input",
        )
    if ending not in (*READERS, PLAIN):
        raise SeedbedError(
            "the ending of the file tells no known format",
            where=source,
            found=ending or "no ending",
            hint=f"write the texts as {', '.join((*READERS, PLAIN))}, or give plain lines on standard input",
        )
    return SourceFile(path), ending


def _records(file: SourceFile, ending: str, named: Mapping[str, list[str]]) -> list[Record]:
    try:
        return READERS[ending](file, {"columns": named})
    except MissingColumn as error:
        raise SeedbedError(
            error.what,
            where=error.where,
            found=error.found,
            hint="name the column of the texts: COLUMN=NAME with make, --column NAME with the command; that "
            "of the second texts of pairs: PAIR=NAME, --pair NAME",
        ) from None


def _lines(file: SourceFile, pair: str | None) -> list[Record]:
    """One text a line."""
    if pair:
        raise SeedbedError(
            "the run takes pairs of texts, and plain lines have one text each",
            where=file.where,
            hint="write the pairs as .csv, .tsv or .jsonl with two columns",
        )
    lines = decoded(file).split("\n")
    if lines[-1] == "":
        lines.pop()
    return [Record(Place(file, number), {TEXT: line}) for number, line in enumerate(lines, 1)]
