"""Columns of Arrow tables: whether they are plain text or labels, and their rows as records."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seedbed.config.file_formats import wanted_columns
from seedbed.core import spelling
from seedbed.core.errors import SeedbedError
from seedbed.core.tasks import LABEL_SETS, TASKS
from seedbed.data import column_names
from seedbed.data.labels import FOR_SETS, declared_values
from seedbed.data.readers import json_files
from seedbed.data.readers.files import Place, Record, SourceFile

log = logging.getLogger(__name__)

BATCH = 1000  # rows
TEXTS = ("string", "large_string")
KINDS = {"label": "labels", "cluster": "clusters"}  # what columns are of that need not be text, by their keys
PLAIN = (
    *TEXTS, "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64",
)  # fmt: skip


def records_of(table: Any, features: Any, file: SourceFile, definition: Mapping[str, Any]) -> list[Record]:
    """The rows of a table as records.

    A ClassLabel is read as names if these include the declared labels, else as integers. The labels of a text
    with any number of them may be lists.

    Args:
        table: the pyarrow table, validated.
        features: the types of its columns, as `datasets.Features`.
        file: where it is from.
        definition: the dataset's block.

    Raises:
        SeedbedError: a column is missing, or neither plain text nor labels, nor lists of them.
    """
    columns, of_sets = wanted_columns(definition), TASKS[definition["task"]].outputs == LABEL_SETS
    read: dict[str, Callable[[Any], Any]] = {}
    for key, name in columns:
        feature = _checked(file, features, name, key, columns, lists=of_sets and key == "label")
        read[name] = _labels_of(file, feature, definition) if key == "label" else lambda value: value
    records = []
    for batch in table.to_batches(BATCH):
        for row in batch.to_pylist():
            cells = {name: read[name](json_files.find(row, name)[1]) for _, name in columns}
            records.append(Record(Place(file, len(records) + 1), cells))
    return records


def top_columns(names: Sequence[str], definition: Mapping[str, Any]) -> list[str]:
    """Those of a table's columns that hold what the dataset names; a struct holds `review.text`."""
    tops = (spelling.find(name, names) or name.partition(".")[0] for _, name in wanted_columns(definition))
    return [name for name in dict.fromkeys(tops) if name in names]


def _checked(
    file: SourceFile,
    features: Mapping[str, Any],
    name: str,
    key: str,
    named: Sequence[tuple[str, str]],
    *,
    lists: bool,
) -> Any:
    """The type of a column, which may be one of `lists`."""
    there, feature = json_files.find(features, name)
    if not there:
        raise SeedbedError(
            f"the dataset has no column {name!r}",
            where=file.where,
            found=f"columns {', '.join(map(repr, features))}",
            hint=column_names.remedy(key, name, named, dict.fromkeys(features, 0))
            or f"correct columns.{key} of the dataset in the config",
        )
    allowed = PLAIN if key in KINDS else TEXTS
    inside = _inside(feature)
    if not _is_plain(inside if lists and inside is not None else feature, allowed):
        of_lists = inside is not None and key == "label"
        raise SeedbedError(
            f"column {name!r} is not a column of {KINDS.get(key, 'text')}",
            where=file.where,
            found=repr(feature),
            hint=f"correct columns.{key} of the dataset in the config; it takes {', '.join(allowed)}"
            + ("" if allowed is TEXTS else " and ClassLabel: cast_column changes the type of a column")
            + (f"; for texts with any number of labels, set {FOR_SETS}" if of_lists and not lists else ""),
        )
    return feature


def _is_plain(feature: Any, allowed: Sequence[str]) -> bool:
    # a ClassLabel has the dtype int64
    return getattr(feature, "dtype", None) in allowed and type(feature).__name__ in ("Value", "ClassLabel")


def _inside(feature: Any) -> Any:
    """The type of a list's items; None of what is no list."""
    return getattr(feature, "feature", None)


def _labels_of(file: SourceFile, feature: Any, definition: Mapping[str, Any]) -> Callable[[Any], Any]:
    """A function that reads a label, or a list of labels."""
    inside = _inside(feature)
    if inside is None:
        return _names_of(file, feature, definition)
    one = _names_of(file, inside, definition)
    return lambda values: None if values is None else [one(value) for value in values]


def _names_of(file: SourceFile, feature: Any, definition: Mapping[str, Any]) -> Callable[[Any], Any]:
    """A function that turns an integer of a ClassLabel into its name, if the config declares names."""
    names = getattr(feature, "names", None)
    if names is None or "labels" not in definition:
        return lambda value: value
    declared = set(map(spelling.normal, declared_values(definition)))
    if not declared <= set(map(spelling.normal, names)):
        log.info("%s: read the labels as integers; names are %s", file.path, ", ".join(names))
        return lambda value: value
    log.info("%s: read the labels as names of the ClassLabel (%s)", file.path, ", ".join(names))
    return lambda value: names[value] if value is not None and 0 <= value < len(names) else value
