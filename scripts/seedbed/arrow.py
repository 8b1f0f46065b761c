"""Datasets that the Hugging Face library `datasets` saved to disk: a folder of Arrow files a split.

Only columns of plain strings and numbers are read. Nothing of the folder is run: loading scripts are no part
of this format, formats and transforms that it names are put aside, and data files must lie in the folder.
"""

import logging
from collections.abc import Sequence
from os.path import isfile  # which Path.is_file is not for a name that is too long
from typing import Any

from seedbed.errors import SeedbedError
from seedbed.files import read_json
from seedbed.readers import Row, SourceFile, joined, log_empty_parts, named_columns, nearest, raise_first

STATE = "state.json"  # every folder that save_to_disk wrote a split into has one
BATCH = 1000  # rows
TEXTS = ("string", "large_string")
PLAIN = (*TEXTS, "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

log = logging.getLogger(__name__)


def read_huggingface(folder: SourceFile, definition: dict[str, Any]) -> list[Row]:
    """Read a split that `datasets.Dataset.save_to_disk` (or DatasetDict's) wrote.

    A label is a string, an integer, a boolean, or a ClassLabel, whose names are taken if the declared labels
    are among them, else its integers. Where the text has several columns, null counts as empty.

    Args:
        folder: the split's folder, with state.json in it.
        definition: the dataset's block: columns and labels.

    Raises:
        SeedbedError: the folder cannot be read, names files outside itself, lacks a column, or a column holds
            something else than plain text or labels.
    """
    import datasets

    names = _data_files(folder)
    columns, label_column = named_columns(definition), definition["columns"]["label"]
    try:
        # file by file: load_from_disk would apply the format that the state names
        parts = [datasets.Dataset.from_file(str(folder.path / name)) for name in names]
        dataset = datasets.concatenate_datasets(parts)
    except Exception as error:  # the library raises what its parts raise, of many kinds
        raise _unreadable(folder, error) from error
    for key, name in [*(("text", name) for name in columns), ("label", label_column)]:
        _check_column(folder, dataset, name, key)
    try:
        dataset = dataset.select_columns([*dict.fromkeys([*columns, label_column])])
        for name in dataset.column_names:
            dataset.data.column(name).validate(full=True)  # offsets and UTF-8: the files come from outside
        records = [record for batch in dataset.iter(BATCH) for record in _records(batch)]
    except Exception as error:
        raise _unreadable(folder, error) from error
    label_of = _label_reader(folder, dataset.features[label_column], definition["labels"])
    return _rows(folder, records, columns, [label_of(record[label_column]) for record in records])


def _rows(
    folder: SourceFile, records: Sequence[dict[str, Any]], columns: Sequence[str], labels: Sequence[str]
) -> list[Row]:
    texts = [[record[name] for name in columns] for record in records]
    if len(columns) > 1:
        texts = [["" if part is None else part for part in parts] for parts in texts]
    null = [(number, "null") for number, parts in enumerate(texts, 1) if None in parts]
    raise_first("a text is null", folder, null, "fill in the text, or leave the row out")
    log_empty_parts(folder, texts, columns)
    pairs = zip(texts, labels, strict=True)
    return [Row(index, index + 1, joined(parts), label) for index, (parts, label) in enumerate(pairs)]


def _records(batch: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]


def _data_files(folder: SourceFile) -> list[str]:
    """The names of the data files; refuses those that lie anywhere but in the folder itself."""
    try:
        state = read_json(folder.path / STATE)
        names = [file["filename"] for file in state["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unreadable(folder, error) from error
    for name in names:
        if not isinstance(name, str) or "/" in name or "\\" in name or not isfile(folder.path / name):
            raise SeedbedError(
                "a dataset on disk names a data file that is not in its folder",
                where=f"{folder.path / STATE} (from {folder.location})",
                found=repr(name),
                hint="write the dataset again, with save_to_disk",
            )
    if not names:
        raise SeedbedError(
            "a dataset on disk has no data files",
            where=f"{folder.path / STATE} (from {folder.location})",
            hint="give a split with examples",
        )
    return names


def _check_column(folder: SourceFile, dataset: Any, name: str, key: str) -> None:
    features = dataset.features
    where = f"{folder.path} (from {folder.location})"
    if name not in features:
        raise SeedbedError(
            f"the dataset has no column {name!r}",
            where=where,
            found=f"columns {', '.join(map(repr, features))}",
            hint=f"{nearest(name, features)}mend columns.{key} of the dataset in the config",
        )
    # a ClassLabel has the dtype int64
    allowed = TEXTS if key == "text" else PLAIN
    if getattr(features[name], "dtype", None) not in allowed or type(features[name]).__name__ not in (
        "Value",
        "ClassLabel",
    ):
        raise SeedbedError(
            f"column {name!r} holds no {'text' if key == 'text' else 'labels'}",
            where=where,
            found=repr(features[name]),
            hint=f"mend columns.{key} of the dataset in the config; it takes {', '.join(allowed)}"
            + ("" if key == "text" else " and ClassLabel"),
        )


def _label_reader(folder: SourceFile, feature: Any, declared: Sequence[str]) -> Any:
    """A function from a value of the label's column to a label of the config."""
    names = getattr(feature, "names", None)
    if names is not None and not set(declared) <= set(names):
        log.info("%s: read the labels as integers; names are %s", folder.path, ", ".join(names))
    if names is None or not set(declared) <= set(names):
        return lambda value: {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
    log.info("%s: read the labels as names of the ClassLabel (%s)", folder.path, ", ".join(names))
    return lambda value: names[value] if value is not None and 0 <= value < len(names) else str(value)


def _unreadable(folder: SourceFile, error: Exception) -> SeedbedError:
    return SeedbedError(
        "the folder cannot be read as a dataset on disk",
        where=f"{folder.path} (from {folder.location})",
        found=f"{type(error).__name__}: {str(error)[:300]}",
        hint="it has to be whole, as datasets.save_to_disk wrote it, with state.json and dataset_info.json",
    )
