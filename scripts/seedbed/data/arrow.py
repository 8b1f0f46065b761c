"""Read datasets saved to disk by the Hugging Face library `datasets`: a folder of Arrow files per split.

Only columns of plain strings and numbers are read. No code from the folder is run: the format has no loading
scripts, formats and transforms are ignored, and data files must be in the folder itself. If a file of indices
selects rows, as in version 1 of the library, only these are read.
"""

import json
import logging
import re
from collections.abc import Sequence
from os.path import isfile  # Path.is_file raises for a name that is too long
from typing import Any

from seedbed.core import spelling
from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json
from seedbed.data import column_names
from seedbed.data.readers import (
    STATE,
    Row,
    SourceFile,
    joined,
    key_columns,
    log_empty_parts,
    named_columns,
    raise_first,
)

DATA_FILES, INDEX_FILES = ("_data_files",), ("_indices_data_files", "_indices_files")
# keys of a state that do not change rows: a format, a split's name, notes of older versions
KNOWN_STATE = frozenset(
    {*DATA_FILES, *INDEX_FILES, "_fingerprint", "_format_columns", "_format_kwargs", "_format_type"}
    | {"_output_all_columns", "_split", "_info", "_indexes", "_inplace_history"}
)
SHARD = re.compile(r"-(\d+)-of-(\d+)\.arrow$")
SAVE_AGAIN = "write the dataset again, with save_to_disk"
BATCH = 1000  # rows
TEXTS = ("string", "large_string")
KINDS = {"text": "text", "label": "labels", "cluster": "clusters"}  # what a column is of, by its key
PLAIN = (*TEXTS, "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

log = logging.getLogger(__name__)


def read_huggingface(folder: SourceFile, definition: dict[str, Any]) -> list[Row]:
    """Read a split written by `save_to_disk` of `datasets.Dataset` or `DatasetDict`.

    A label is a string, an integer, a boolean, or a ClassLabel. A ClassLabel is read as names if these
    include the declared labels, else as integers. If the text has several columns, null counts as empty.

    Args:
        folder: the split's folder, with state.json in it.
        definition: the dataset's block: columns and labels.

    Raises:
        SeedbedError: the folder cannot be read, names files outside itself, lacks a data file or a column,
            selects rows that do not exist, or a column is neither plain text nor labels.
    """
    import datasets

    state = _read_state(folder)
    columns = named_columns(definition)
    data_files, index_files = (_listed_files(folder, state, keys) for keys in (DATA_FILES, INDEX_FILES))
    if not data_files:
        raise SeedbedError(
            "a dataset on disk has no data files",
            where=f"{folder.path / STATE} (from {folder.location})",
            hint="give a split with examples",
        )
    try:
        # load_from_disk would apply the format in the state
        dataset = datasets.concatenate_datasets([_part(folder, file) for file in data_files])
        indices = [index for file in index_files for index in _part(folder, file)["indices"]]
    except Exception as error:  # the library raises errors of many kinds
        raise _unreadable(folder, error) from error
    if index_files:
        dataset = _selected(folder, dataset, indices)
    named = [*(("text", name) for name in columns), *key_columns(definition)]
    named = [(key, spelling.find(name, dataset.features) or name) for key, name in named]
    for key, name in named:
        _check_column(folder, dataset, name, key, named)
    columns, (label_column, *cluster_columns) = (
        [name for key, name in named if (key == "text") == is_text] for is_text in (True, False)
    )
    try:
        dataset = dataset.select_columns([*dict.fromkeys(name for _, name in named)])
        for name in dataset.column_names:
            dataset.data.column(name).validate(full=True)  # offsets and UTF-8, as the files are untrusted
        records = [record for batch in dataset.iter(BATCH) for record in _records(batch)]
    except Exception as error:
        raise _unreadable(folder, error) from error
    label_of = _label_reader(folder, dataset.features[label_column], definition["labels"])
    others = [
        [label_of(record[label_column]), *(_cluster(record[name]) for name in cluster_columns)]
        for record in records
    ]
    return _rows(folder, records, columns, others)


def _cluster(value: Any) -> str:
    return "" if value is None else str(value)


def _rows(
    folder: SourceFile,
    records: Sequence[dict[str, Any]],
    columns: Sequence[str],
    others: Sequence[Sequence[str]],
) -> list[Row]:
    """The rows of records; `others` are the label of each, and its cluster if there is one."""
    texts = [[record[name] for name in columns] for record in records]
    if len(columns) > 1:
        texts = [["" if part is None else part for part in parts] for parts in texts]
    null = [(number, "null") for number, parts in enumerate(texts, 1) if None in parts]
    raise_first("a text is null", folder, null, "fill in the text, or leave the row out")
    log_empty_parts(folder, texts, columns)
    pairs = zip(texts, others, strict=True)
    return [Row(index, index + 1, joined(parts), *other) for index, (parts, other) in enumerate(pairs)]


def _records(batch: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]


def _read_state(folder: SourceFile) -> dict[str, Any]:
    """The content of state.json; refuses a state with keys that might select rows."""
    path = folder.path / STATE
    try:
        state = read_json(path)
        unknown = sorted(key for key in state.keys() - KNOWN_STATE if state[key])
        unknown += ["_inplace_history"] * any(
            step["transforms"] for step in state.get("_inplace_history") or []
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(folder, error) from error
    if unknown:
        raise SeedbedError(
            "the state of a dataset on disk has unknown keys, which may select rows",
            where=f"{path} (from {folder.location})",
            found=", ".join(f"{key}: {json.dumps(state[key])[:80]}" for key in unknown),
            hint=SAVE_AGAIN,
        )
    return state


def _listed_files(folder: SourceFile, state: dict[str, Any], keys: Sequence[str]) -> list[dict[str, Any]]:
    """The files in the state: {"filename"}, and "skip" and "take" for a part of the rows.

    Refuses files outside the folder, and a list that lacks a shard.
    """
    where = f"{folder.path / STATE} (from {folder.location})"
    files = [file for key in keys for file in state.get(key) or []]
    for file in files:
        name = file.get("filename") if isinstance(file, dict) else None
        if not isinstance(name, str) or "/" in name or "\\" in name or not isfile(folder.path / name):
            raise SeedbedError(
                "a dataset on disk names a data file that is not in its folder",
                where=where,
                found=repr(name if isinstance(file, dict) else file),
                hint=SAVE_AGAIN,
            )
    shards = {match[1]: int(match[2]) for file in files if (match := SHARD.search(file["filename"]))}
    for count in set(shards.values()):
        listed = {int(number) for number, of in shards.items() if of == count}
        if missing := sorted(set(range(count)) - listed):
            raise SeedbedError(
                "a dataset on disk lacks a part",
                where=where,
                found=f"{len(listed)} of {count} data files, not number {missing[0]}",
                hint=SAVE_AGAIN,
            )
    return files


def _part(folder: SourceFile, file: dict[str, Any]) -> Any:
    """The selected rows of a listed file."""
    import datasets

    part = datasets.Dataset.from_file(str(folder.path / file["filename"]))
    skip = file.get("skip") or 0
    take = len(part) - skip if file.get("take") is None else file["take"]
    if not 0 <= skip <= skip + take <= len(part):
        raise ValueError(f"{file} of a file of {len(part)} rows")
    return part if take == len(part) else part.select(range(skip, skip + take))


def _selected(folder: SourceFile, dataset: Any, indices: Sequence[int]) -> Any:
    """The rows at the indices, in their order."""
    wrong = [index for index in indices if not isinstance(index, int) or not 0 <= index < len(dataset)]
    if wrong:
        raise SeedbedError(
            "a dataset on disk selects rows that its data files do not have",
            where=f"{folder.path} (from {folder.location})",
            found=f"row {wrong[0]} of {len(dataset)}",
            hint=SAVE_AGAIN,
        )
    log.info("%s: its file of indices selects %d of %d rows", folder.path, len(indices), len(dataset))
    return dataset.select(indices)


def _check_column(
    folder: SourceFile, dataset: Any, name: str, key: str, named: Sequence[tuple[str, str]]
) -> None:
    features = dataset.features
    where = f"{folder.path} (from {folder.location})"
    if name not in features:
        raise SeedbedError(
            f"the dataset has no column {name!r}",
            where=where,
            found=f"columns {', '.join(map(repr, features))}",
            hint=column_names.remedy(key, name, named, dict.fromkeys(features, 0))
            or f"correct columns.{key} of the dataset in the config",
        )
    # a ClassLabel has the dtype int64
    allowed = TEXTS if key == "text" else PLAIN
    if getattr(features[name], "dtype", None) not in allowed or type(features[name]).__name__ not in (
        "Value",
        "ClassLabel",
    ):
        raise SeedbedError(
            f"column {name!r} is not a column of {KINDS[key]}",
            where=where,
            found=repr(features[name]),
            hint=f"correct columns.{key} of the dataset in the config; it takes {', '.join(allowed)}"
            + ("" if key == "text" else " and ClassLabel: cast_column changes the type of a column"),
        )


def _label_reader(folder: SourceFile, feature: Any, declared: Sequence[str]) -> Any:
    """A function that turns a value of the label column into a label of the config."""
    names = getattr(feature, "names", None)
    by_name = names is not None and set(map(spelling.normal, declared)) <= set(map(spelling.normal, names))
    if names is not None and not by_name:
        log.info("%s: read the labels as integers; names are %s", folder.path, ", ".join(names))
    if not by_name:
        return lambda value: {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
    log.info("%s: read the labels as names of the ClassLabel (%s)", folder.path, ", ".join(names))
    return lambda value: names[value] if value is not None and 0 <= value < len(names) else str(value)


def _unreadable(folder: SourceFile, error: Exception) -> SeedbedError:
    return SeedbedError(
        "the folder cannot be read as a dataset on disk",
        where=f"{folder.path} (from {folder.location})",
        found=f"{type(error).__name__}: {str(error)[:300]}",
        hint="it must be complete, as datasets.save_to_disk wrote it, with state.json and dataset_info.json",
    )
