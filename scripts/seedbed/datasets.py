"""Datasets: read in the layouts that people have, checked without mercy, written in one layout.

Whatever is wrong with a file is an error that names the first place and says how many more there are;
what is harmless (byte order mark, CRLF, one blank line at the end, line separators inside a text) is
mended and logged.
"""

import collections
import csv
import difflib
import io
import json
import logging
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from seedbed.errors import SeedbedError
from seedbed.files import atomic_open, read_json, write_json, write_jsonl
from seedbed.plan import SPLITS

log = logging.getLogger(__name__)

BOM = b"\xef\xbb\xbf"
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
# fairseq's text files hold one text a line, and Python itself ends lines at more characters than "\n"
SEPARATORS = re.compile("[\x00\t\n\x0b\x0c\r\x1c-\x1e\x85\u2028\u2029]")
SEPARATOR_RUNS = re.compile(f" *(?:{SEPARATORS.pattern} *)+")
LISTED = 20  # names in a message


class Row(NamedTuple):
    """One example as it stands in a file; `line` counts from 1."""

    line: int
    text: str
    label: str


@dataclass(frozen=True)
class SourceFile:
    """A file of a source; messages name it and where the source came from."""

    path: Path
    location: str

    def at(self, line: int) -> str:
        """The place of a line, for messages."""
        return f"{self.path}, line {line} (from {self.location})"


def prepare(
    name: str, definition: dict[str, Any], manifest: str | Path, folder: str | Path, stamp: dict[str, Any]
) -> None:
    """Check a dataset and write its splits into `folder`.

    Writes, for each split, SPLIT.jsonl ({"id", "text", "label": class index}), SPLIT.text and SPLIT.label
    (one a line), and labels.json and fingerprint.json (`stamp`, as it is). The order is the file's.

    Args:
        name: the dataset's name in the config, for messages.
        definition: the resolved block of the config.
        manifest: the manifest of its source; the source's files lie in `files` beside it.

    Raises:
        SeedbedError: a file is missing or anything in it is not as declared.
    """
    splits = {split: read_split(name, definition, split, manifest) for split in SPLITS}
    for split, rows in splits.items():
        _check_size(name, definition, split, rows)
    _check_classes(name, definition, splits)
    folder = Path(folder)
    for split, rows in splits.items():
        _write_split(folder, split, rows, definition["labels"])
        log.info("%s, %s: %s", name, split, _described(rows))
    write_json(folder / "labels.json", {"labels": definition["labels"], "names": definition["label_names"]})
    write_json(folder / "fingerprint.json", stamp)


def read_split(name: str, definition: dict[str, Any], split: str, manifest: str | Path) -> list[Row]:
    """Read and check the rows of one split; texts are clean and labels are declared ones.

    Raises:
        SeedbedError: as `prepare`.
    """
    manifest = Path(manifest)
    source = read_json(manifest)
    path = definition["files"][split]
    endings = (".review", ".label") if definition["format"] == "lab" else ("",)
    files = []
    for ending in endings:
        if path + ending not in source["files"]:
            raise _missing_file(f"datasets.{name}.files.{split}", path + ending, source)
        files.append(SourceFile(manifest.parent / "files" / (path + ending), source["location"]))
    rows = READERS[definition["format"]](*files, definition["columns"])
    _check_labels(rows, files[-1], f"datasets.{name}.labels", definition)
    return _clean_rows(rows, files[0])


def _missing_file(key: str, path: str, source: dict[str, Any]) -> SeedbedError:
    held = list(source["files"])
    more = f" and {len(held) - LISTED} more" if len(held) > LISTED else ""
    return SeedbedError(
        f"the source has no file {path!r}",
        where=f"config, {key}; source fetched from {source['location']}",
        found=f"the source holds {', '.join(held[:LISTED])}{more}",
        hint=_nearest(path, held)
        + f"mend {key} (for the format lab without .review or .label) or the source",
    )


# --- from bytes to lines ----------------------------------------------------------------------------------


def _decoded(file: SourceFile) -> str:
    data = file.path.read_bytes()
    skipped = 0
    if data.startswith(BOM):
        log.info("%s: skipped the byte order mark", file.path)
        skipped, data = len(BOM), data.removeprefix(BOM)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(file, data, error.start, skipped) from None
    if ends := text.count("\r\n"):
        log.info("%s: read %d CRLF line ends as LF", file.path, ends)
    return text


def _not_utf8(file: SourceFile, data: bytes, start: int, skipped: int) -> SeedbedError:
    bad = sum(not _is_utf8(line) for line in data.split(b"\n"))
    utf16 = data.startswith(UTF16_BOMS)
    line = data.count(b"\n", 0, start) + 1
    shown = data[start : start + 8].split(b"\n")[0]
    return SeedbedError(
        "the file is not UTF-8" + _and_more(bad),
        where=f"{file.at(line)}, byte offset {start + skipped}",
        found=f"{shown!r}; it begins as UTF-16" if utf16 else f"{shown!r}",
        hint=f"convert it: iconv -f {'UTF-16' if utf16 else 'WINDOWS-1252'} -t UTF-8 (or what it is in)",
    )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _lines(file: SourceFile) -> list[str]:
    """The lines of a file, without their ends; only "\\n" and "\\r\\n" end a line.

    Raises:
        SeedbedError: a line is empty, other than one blank line at the end.
    """
    lines = [line.removesuffix("\r") for line in _decoded(file).split("\n")]
    if lines[-1] == "":
        lines.pop()
    if lines and not lines[-1].strip():
        log.info("%s: ignored the blank line at the end", file.path)
        lines.pop()
    empty = [(number, "an empty line") for number, line in enumerate(lines, 1) if not line.strip()]
    _raise_first("a line is empty", file, empty, "fill in or delete the line (in the file of labels too)")
    return lines


# --- the formats ------------------------------------------------------------------------------------------


def _read_lab(review: SourceFile, label: SourceFile, columns: dict[str, str]) -> list[Row]:
    texts, labels = _lines(review), _lines(label)
    if len(texts) != len(labels):
        raise SeedbedError(
            "the files of texts and of labels differ in length",
            where=f"{review.path} and {label.path} (from {review.location})",
            found=f"{len(texts)} texts and {len(labels)} labels",
            hint="line k of one belongs to line k of the other: find the line that is missing or broken",
        )
    return [Row(line, text, value) for line, (text, value) in enumerate(zip(texts, labels, strict=True), 1)]


def _read_csv(file: SourceFile, columns: dict[str, str]) -> list[Row]:
    text = _decoded(file)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    records, begin = [], 1
    try:
        for cells in reader:
            records.append((begin, cells))
            begin = reader.line_num + 1
    except csv.Error as error:
        raise _bad_quotes(file, begin, str(error)) from None
    return _from_table(records, file, columns)


def _read_tsv(file: SourceFile, columns: dict[str, str]) -> list[Row]:
    # line by line: a stray quote at the start of a cell must not swallow the lines below
    records = []
    for number, line in enumerate(_lines(file), 1):
        try:
            records.append((number, next(csv.reader([line], delimiter="\t", strict=True))))
        except csv.Error as error:
            raise _bad_quotes(file, number, str(error)) from None
    return _from_table(records, file, columns)


def _bad_quotes(file: SourceFile, line: int, reason: str) -> SeedbedError:
    return SeedbedError(
        "a cell's quotes are not balanced",
        where=file.at(line),
        found=reason,
        hint='a cell that holds a quote is enclosed in quotes, and the quote in it doubled: "He said ""no"""',
    )


def _from_table(records: list[tuple[int, list[str]]], file: SourceFile, columns: dict[str, str]) -> list[Row]:
    if records and records[-1][1] == []:
        log.info("%s: ignored the blank line at the end", file.path)
        records = records[:-1]
    header = records[0][1] if records else []
    indices = [_column(columns[key], header, file, key) for key in ("text", "label")]
    _raise_first(
        "a line is empty",
        file,
        [(line, "an empty line") for line, cells in records if not cells],
        "delete the line",
    )
    _raise_first(
        "a row has another number of cells than the header",
        file,
        [
            (line, f"{len(cells)} cells, {len(header)} columns")
            for line, cells in records
            if len(cells) != len(header)
        ],
        "enclose cells that hold the delimiter in quotes",
    )
    return [Row(line, *(cells[index] for index in indices)) for line, cells in records[1:]]


def _column(name: str, header: Sequence[str], file: SourceFile, key: str) -> int:
    if header.count(name) == 1:
        return header.index(name)
    delimiter = next((mark for mark in ";\t," if len(header) == 1 and mark in header[0]), None)
    seen = f"the columns seem to be separated by {delimiter!r}; " if delimiter else ""
    stands = "stands twice or more" if name in header else "is not"
    raise SeedbedError(
        f"column {name!r} {stands} in the header",
        where=file.at(1),
        found=f"columns {', '.join(map(repr, header)) or '(none: the file is empty)'}",
        hint=f"{seen}{_nearest(name, header)}mend the header, or columns.{key} of the dataset in the config",
    )


def _read_jsonl(file: SourceFile, columns: dict[str, str]) -> list[Row]:
    rows, texts = [], []
    for number, line in enumerate(_lines(file), 1):
        record = _json_object(line, file, number)
        for key in ("text", "label"):
            if columns[key] not in record:
                raise _missing_key(columns[key], record, file, number, key)
        text, label = record[columns["text"]], record[columns["label"]]
        if not isinstance(text, str):
            texts.append((number, json.dumps(text, ensure_ascii=False)))
        rows.append(Row(number, text, label if isinstance(label, str) else json.dumps(label)))
    _raise_first("a text is not a string", file, texts, "give every text as a JSON string")
    return rows


def _json_object(line: str, file: SourceFile, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise SeedbedError(
            "a line is not JSON", where=file.at(number), found=str(error), hint="write one JSON object a line"
        ) from None
    if not isinstance(record, dict):
        raise SeedbedError(
            "a line is not a JSON object",
            where=file.at(number),
            found=line[:80],
            hint='write one object a line: {"text": "...", "label": "..."}',
        )
    return record


def _missing_key(name: str, record: dict[str, Any], file: SourceFile, number: int, key: str) -> SeedbedError:
    return SeedbedError(
        f"key {name!r} is missing",
        where=file.at(number),
        found=f"keys {', '.join(map(repr, record)) or '(none)'}",
        hint=f"{_nearest(name, list(record))}mend the line, or columns.{key} of the dataset in the config",
    )


READERS: dict[str, Callable[..., list[Row]]] = {
    "lab": _read_lab,
    "csv": _read_csv,
    "tsv": _read_tsv,
    "jsonl": _read_jsonl,
}


# --- checks -----------------------------------------------------------------------------------------------


def _check_labels(rows: list[Row], file: SourceFile, key: str, definition: dict[str, Any]) -> None:
    declared = definition["labels"]
    wrong = [(row.line, row.label) for row in rows if row.label.strip() not in declared]
    if not wrong:
        return
    close = _nearest(wrong[0][1].strip(), declared)
    _raise_first(
        "a label is not among the declared ones",
        file,
        [(line, repr(label)) for line, label in wrong],
        f"{close}declared labels: {', '.join(declared)}; mend the file or {key}",
    )


def _clean_rows(rows: list[Row], file: SourceFile) -> list[Row]:
    replaced = sum(len(SEPARATORS.findall(row.text.strip())) for row in rows)
    if replaced:
        log.info("%s: %d tabs, line ends and line separators inside texts became spaces", file.path, replaced)
    clean = [Row(row.line, clean_text(row.text), row.label.strip()) for row in rows]
    empty = [(row.line, "nothing but spaces") for row in clean if not row.text]
    _raise_first("a text is empty", file, empty, "fill in the text, or delete the example with its label")
    lone = [(row.line, ascii(row.text)[:80]) for row in clean if not _is_encodable(row.text)]
    _raise_first("a text holds half a surrogate pair", file, lone, "write the character whole")
    return clean


def clean_text(text: str) -> str:
    """A text on one line: each run of tabs, line ends and line separators becomes a space; stripped.

    A byte order mark at either end goes too: files joined end to end carry them inside.
    """
    return SEPARATOR_RUNS.sub(" ", text).strip().strip("\ufeff").strip()


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_size(name: str, definition: dict[str, Any], split: str, rows: list[Row]) -> None:
    if len(rows) < 2:
        raise SeedbedError(
            f"the {split} split of {name!r} has fewer than two examples",
            where=f"config, datasets.{name}.files.{split}: {definition['files'][split]}",
            found=f"{len(rows)} examples",
            hint="give every split examples of each class",
        )


def _check_classes(name: str, definition: dict[str, Any], splits: dict[str, list[Row]]) -> None:
    for split, rows in splits.items():
        counts = collections.Counter(row.label for row in rows)
        absent = [label for label in definition["labels"] if not counts[label]]
        if absent and split == "train":
            raise SeedbedError(
                f"a class has no training example in {name!r}",
                where=f"config, datasets.{name}.files.train: {definition['files']['train']}",
                found=f"none of {', '.join(absent)}; {_counted(counts)}",
                hint=f"add examples, or take the label out of datasets.{name}.labels",
            )
        if absent:
            log.warning("%s, %s: no example of %s", name, split, ", ".join(absent))


def _raise_first(what: str, file: SourceFile, places: list[tuple[int, object]], hint: str) -> None:
    """Raise an error for the first of `places` (line, what was found), if there is any."""
    if places:
        line, found = places[0]
        raise SeedbedError(what + _and_more(len(places)), where=file.at(line), found=found, hint=hint)


def _and_more(count: int) -> str:
    return f" (and {count - 1:,} more like it)" if count > 1 else ""


def _nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}? " if close else ""


# --- writing ----------------------------------------------------------------------------------------------


def _write_split(folder: Path, split: str, rows: list[Row], labels: list[str]) -> None:
    index = {label: number for number, label in enumerate(labels)}
    examples = [
        {"id": f"{split}-{number}", "text": row.text, "label": index[row.label]}
        for number, row in enumerate(rows)
    ]
    with atomic_open(folder / f"{split}.text") as texts, atomic_open(folder / f"{split}.label") as classes:
        for example in examples:
            texts.write(f"{example['text']}\n")
            classes.write(f"{example['label']}\n")
    write_jsonl(folder / f"{split}.jsonl", examples)


def _described(rows: list[Row]) -> str:
    words = [len(row.text.split()) for row in rows]
    classes = _counted(collections.Counter(row.label for row in rows))
    return (
        f"{len(rows)} examples ({classes}); "
        f"words: {min(words)} to {max(words)}, median {statistics.median(words):g}"
    )


def _counted(counts: collections.Counter[str]) -> str:
    return ", ".join(f"{label}: {count}" for label, count in sorted(counts.items()))
