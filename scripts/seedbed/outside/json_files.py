"""Read the JSON files of other programs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from seedbed.core.errors import SeedbedError

AGAIN = "copy the file again; if it is damaged there, too, let the program write it anew"


def json_object(path: Path) -> dict[str, Any]:
    """The object that a JSON file has.

    Raises:
        SeedbedError: the file is missing, empty, damaged, not UTF-8, or has something else.
    """
    with _opened(path) as stream:
        content = stream.read()
    if not content.strip():
        raise _fault(str(path), "an empty file")
    return _object(_decoded(content, str(path)), str(path))


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with one per line, each with its line; blank lines are left out.

    Raises:
        SeedbedError: see `json_object`.
    """
    empty = True
    with _opened(path) as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                empty = False
                where = f"{path}, line {number}"
                yield number, _object(_decoded(line, where), where)
    if empty:
        raise _fault(str(path), "an empty file")


def first_object(path: Path) -> dict[str, Any] | None:
    """The object in the first line that is not blank, or in the whole file; None if it has none."""
    try:
        with open(path, encoding="utf-8") as stream:
            line = next((line for line in stream if line.strip()), "")
            for text in (line, line + stream.read() if path.suffix == ".json" else ""):
                try:
                    found = json.loads(text)
                except (ValueError, RecursionError):
                    continue
                return found if isinstance(found, dict) else None
    except (OSError, UnicodeDecodeError):
        pass
    return None


def _opened(path: Path) -> BinaryIO:
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise SeedbedError("there is no such file", where=str(path), hint="correct its path") from None


def _decoded(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _fault(
            where, f"bytes that are not UTF-8: {content[error.start : error.start + 10]!r}"
        ) from None


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _fault(where, f"no JSON: {error}") from None
    if not isinstance(value, dict):
        raise _fault(where, f"{type(value).__name__}, not an object")
    return value


def _fault(where: str, found: str) -> SeedbedError:
    return SeedbedError("a file of results cannot be read", where=where, found=found, hint=AGAIN)
