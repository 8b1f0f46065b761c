"""Files that are either whole or absent: atomic writes, atomic publication of folders, hashes."""

import contextlib
import csv
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from seedbed.core.interruption import unwinding

# beginnings of a cell that spreadsheets read as a formula (OWASP, "CSV injection")
FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@contextlib.contextmanager
def atomic_open(path: str | Path, mode: str = "w") -> Iterator[Any]:
    """Open a temporary file beside `path` and rename it there when the block ends without error.

    Text is UTF-8 with "\\n" line ends on every system. After an error, or a signal that ends the process, no
    temporary file remains and `path` is unchanged.

    Args:
        path: the file.
        mode: "w" for text, "wb" for bytes.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # the name is chosen first, so that a signal at any point finds the file to remove
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    with unwinding():
        try:
            with open(part, mode.replace("w", "x"), **text) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def follow_umask(path: str | Path) -> None:
    """Give a file the permissions of a new one: safetensors lets only its owner read it."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(path, 0o666 & ~mask)


@contextlib.contextmanager
def without_umask() -> Iterator[None]:
    """Create files and folders in the block with exactly the requested mode."""
    mask = os.umask(0)
    try:
        yield
    finally:
        os.umask(mask)


def write_text(path: str | Path, text: str) -> None:
    """Write `text` to `path` atomically."""
    with atomic_open(path) as stream:
        stream.write(text)


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically; NaN and infinity, which JSON lacks, become null."""
    write_text(path, json.dumps(_finite(value), ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def read_json(path: str | Path) -> Any:
    """Read a JSON file; errors as `parse_json`."""
    return parse_json(Path(path).read_text(encoding="utf-8"))


def parse_json(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: the text is not JSON, or nested too deeply for Python.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def write_rows(path: str | Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write mappings as CSV with a header, atomically; a missing key or None is an empty cell.

    A text that a spreadsheet would run as a formula gets an apostrophe, which `read_rows` removes.
    """
    with atomic_open(path) as stream:
        write_csv(stream, columns, rows)


def write_csv(stream: TextIO, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Do the same as `write_rows` in an open stream."""
    writer = csv.DictWriter(_Lines(stream), columns, lineterminator="\r\n", extrasaction="raise")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: guarded(value) for key, value in row.items()})


class _Lines:
    """Writes lines with "\\n" for a writer with "\\r\\n", which also quotes cells that contain "\\r"."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def write(self, line: str) -> None:
        """Write one row."""
        self._stream.write(line.removesuffix("\r\n") + "\n")


def read_rows(path: str | Path) -> list[dict[str, str]]:
    """The rows of a file of `write_rows`, as text."""
    with open(path, encoding="utf-8", newline="") as stream:
        return [{key: unguarded(value) for key, value in row.items()} for row in csv.DictReader(stream)]


def guarded(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would run as a formula; leave anything else.

    A text with apostrophes before a formula gets one more, so that `unguarded` restores every text.
    """
    if isinstance(value, str) and FORMULA.match(value) and not NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def unguarded(text: str) -> str:
    """The text before `guarded`."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def write_jsonl(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object per line, atomically."""
    with atomic_open(path) as stream:
        for row in rows:
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_jsonl(path: str | Path) -> list[dict[str, Any]]:
    """Read a file with one JSON object per line."""
    with open(path, encoding="utf-8") as stream:
        return [parse_json(line) for line in stream]


def sha256(path: str | Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def fingerprint(value: Any) -> str:
    """A short hash of a JSON-like value that does not depend on the order of keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def publish_folder(ready: str | Path, target: str | Path) -> None:
    """Move the finished folder `ready` to `target` in one rename, on one file system.

    An older folder at `target`, or one that another process puts there meanwhile, is moved aside first and
    removed afterwards, so that `target` never has files of both.
    """
    ready, target = Path(ready), Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = ready.with_name(ready.name + ".old")
    while True:
        try:
            os.rename(ready, target)  # also over an empty folder
            break
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        shutil.rmtree(aside, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.rename(target, aside)
    sync(target.parent)
    shutil.rmtree(aside, ignore_errors=True)


def sync(path: str | Path) -> None:
    """Flush a file, or the names in a folder, to disk; some file systems cannot flush folders."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
