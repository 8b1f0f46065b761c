"""Read JSON: one object per line, or one list of objects, perhaps inside other objects."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seedbed.config.file_formats import wanted_columns
from seedbed.core import spelling
from seedbed.core.errors import SeedbedError
from seedbed.data import column_names
from seedbed.data.readers.files import MissingColumn, Place, Record, SourceFile, decoded, lines_of

USUAL = "data"  # the key of the list, where the config names none
SQUAD = "paragraphs"  # a key of SQuAD's articles, which have questions inside


def read_jsonl(file: SourceFile, definition: Mapping[str, Any]) -> list[Record]:
    """Read one JSON object per line.

    Raises:
        SeedbedError: a line is empty or not an object, or a key is missing.
    """
    return [_picked(Place(file, number), record, definition) for number, record in _objects(file)]


def read_json(file: SourceFile, definition: Mapping[str, Any]) -> list[Record]:
    """Read a list of objects: the whole file, or what is at the path `records` of the dataset.

    Raises:
        SeedbedError: the file is not JSON or has no such list, an item is not an object, or a key is missing.
    """
    items = _items(file, _parsed(file), definition.get("records"))
    records = []
    for number, record in enumerate(items, 1):
        place = Place(file.counting("item"), number)
        if not isinstance(record, dict):
            raise SeedbedError(
                "an item is not a JSON object",
                where=str(place),
                found=json.dumps(record, ensure_ascii=False)[:80],
                hint="write an object for every example",
            )
        records.append(_picked(place, record, definition))
    return records


def find(record: Any, name: str) -> tuple[bool, Any]:
    """Whether a record has a value of this name, a key or a path such as review.text, and the value."""
    if not isinstance(record, Mapping):
        return False, None
    there = spelling.find(name, record)
    if there is not None:
        return True, record[there]
    first, dot, rest = name.partition(".")
    while dot:
        there = spelling.find(first, record)
        if there is not None and (found := find(record[there], rest))[0]:
            return found
        step, dot, rest = rest.partition(".")
        first = f"{first}.{step}"
    return False, None


def _picked(place: Place, record: Mapping[str, Any], definition: Mapping[str, Any]) -> Record:
    cells = {}
    for key, name in wanted_columns(definition):
        there, cells[name] = find(record, name)
        if there:
            continue
        if SQUAD in record:
            raise SeedbedError(
                "the file is nested like SQuAD's",
                where=str(place),
                found=f"keys {', '.join(map(repr, record))}",
                hint="write one object per question, with its answer and its context",
            )
        letters = {path: len(str(find(record, path)[1])) for path in _paths(record)}
        meant = column_names.remedy(key, name, wanted_columns(definition), letters)
        raise MissingColumn(
            f"key {name!r} is missing",
            where=str(place),
            found=f"keys {', '.join(map(repr, letters)) or '(none)'}",
            hint=f"{meant or f'correct columns.{key} of the dataset in the config'}, or correct the file; a "
            "key inside another one is written OUTER.INNER",
        )
    return Record(place, cells)


def _paths(record: Mapping[str, Any]) -> Iterator[str]:
    """The keys of a record, with those one level inside."""
    for key, value in record.items():
        if isinstance(value, Mapping) and value:
            yield from (f"{key}.{inner}" for inner in value)
        else:
            yield key


def _objects(file: SourceFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with one JSON object per line, each with its line."""
    for number, line in enumerate(lines_of(file), 1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            several = "; for one list of objects, set format: json" if line.lstrip()[:1] == "[" else ""
            raise SeedbedError(
                "a line is not JSON",
                where=file.at(number),
                found=str(error),
                hint=f"write one JSON object per line{several}",
            ) from None
        if not isinstance(record, dict):
            raise SeedbedError(
                "a line is not a JSON object",
                where=file.at(number),
                found=line[:80],
                hint='write one object per line, with the keys under columns in the config: {"...": "..."}; '
                "for one list of objects, set format: json",
            )
        yield number, record


def _parsed(file: SourceFile) -> Any:
    try:
        return json.loads(decoded(file))
    except json.JSONDecodeError as error:
        raise SeedbedError(
            "the file is not JSON",
            where=file.counting("line").at(error.lineno),
            found=f"{error.msg}, column {error.colno}",
            hint="for one object per line, set format: jsonl; else correct the file",
        ) from None
    except RecursionError:
        raise SeedbedError("the file is nested too deeply", where=file.where) from None
    except ValueError as error:  # a number has too many digits for Python
        raise SeedbedError("the file cannot be read as JSON", where=file.where, found=error) from None


def _items(file: SourceFile, content: Any, path: str | None) -> Sequence[Any]:
    """The list of examples in a file."""
    if path is not None:
        there, items = find(content, path)
    else:
        there, items = True, content.get(USUAL) if isinstance(content, dict) else content
    if isinstance(items, list):
        return items
    shown = f"keys {', '.join(_paths(content))}" if isinstance(content, dict) else repr(content)[:80]
    raise SeedbedError(
        "the file is not a list of examples" if path is None else f"no list of examples is at {path!r}",
        where=file.where if path is None else f"{file.where}; records of the dataset in the config",
        found=f"{type(content).__name__}: {shown[:200]}"
        + (f"; at {path!r} is {type(items).__name__}" if path is not None and there else ""),
        hint='write a list of objects, [{...}, {...}], or {"data": [{...}, {...}]}; for a list inside other '
        "objects give its path: records: OUTER.INNER",
    )
