"""Read the JSON files of other programs."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from seedbed.core.errors import SeedbedError
from seedbed.core.files import parse_json

T = TypeVar("T")
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
                    found = parse_json(text)
                except ValueError:
                    continue
                return found if isinstance(found, dict) else None
    except (OSError, UnicodeDecodeError):
        pass
    return None


def parsed(text: str, where: str) -> Any:
    """The value of a JSON text.

    Raises:
        SeedbedError: it is not JSON.
    """
    try:
        return parse_json(text)
    except ValueError as error:
        raise _fault(where, f"no JSON: {error}") from None


def field(record: Mapping[str, Any], key: str, kind: type[T], where: str, default: T | None = None) -> T:
    """The value of a key.

    Args:
        record: an object of a file.
        key: the key.
        kind: the type that the program gives it.
        where: file, and line or key, for the error.
        default: the value where the file has none, or null; None: it must have one.

    Raises:
        SeedbedError: it is missing, or of another type.
    """
    value = record.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, kind):
        found = f"{key} is {value!r}"[:200] if key in record else f"no {key}, but {', '.join(record)}"
        raise SeedbedError(
            f"a record has no {key} of the type that its program writes, {kind.__name__}",
            where=where,
            found=found,
            hint="let the program write the file anew, or leave it out",
        )
    return value


def objects(record: Mapping[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    """The list of objects that a key has; errors as in `field`."""
    items: list[Any] = field(record, key, list, where)
    return [field({key: item}, key, dict, where) for item in items]


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
    value = parsed(text, where)
    if not isinstance(value, dict):
        raise _fault(where, f"{type(value).__name__}, not an object")
    return value


def _fault(where: str, found: str) -> SeedbedError:
    return SeedbedError("a file of results cannot be read", where=where, found=found, hint=AGAIN)
