"""Read datasets saved to disk by the Hugging Face library `datasets`: a folder of Arrow files per split.

Only columns of plain strings and numbers are read. No code from the folder is run: the format has no loading
scripts, formats and transforms are ignored, and data files must be in the folder itself. If a file of indices
selects rows, as in version 1 of the library, only these are read.
"""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from os.path import isfile  # Path.is_file raises for a name that is too long
from typing import Any

from seedbed.config.file_formats import STATE
from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json
from seedbed.data.readers.arrow_columns import records_of, top_columns
from seedbed.data.readers.files import Record, SourceFile

DATA_FILES, INDEX_FILES = ("_data_files",), ("_indices_data_files", "_indices_files")
# keys of a state that do not change rows: a format, a split's name, notes of older versions
KNOWN_STATE = frozenset(
    {*DATA_FILES, *INDEX_FILES, "_fingerprint", "_format_columns", "_format_kwargs", "_format_type"}
    | {"_output_all_columns", "_split", "_info", "_indexes", "_inplace_history"}
)
SHARD = re.compile(r"-(\d+)-of-(\d+)\.arrow$")
SAVE_AGAIN = "write the dataset again, with save_to_disk"

log = logging.getLogger(__name__)


def read_huggingface(folder: SourceFile, definition: Mapping[str, Any]) -> list[Record]:
    """Read a split written by `save_to_disk` of `datasets.Dataset` or `DatasetDict`.

    A label is a string, a number, a boolean, or a ClassLabel.

    Args:
        folder: the split's folder, with state.json in it.
        definition: the dataset's block: columns and labels.

    Raises:
        SeedbedError: the folder cannot be read, names files outside itself, lacks a data file or a column,
            selects rows that do not exist, or a column is neither plain text nor labels.
    """
    import datasets

    state = _read_state(folder)
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
    features = dataset.features
    try:
        dataset = dataset.select_columns(top_columns(dataset.column_names, definition))
        for name in dataset.column_names:
            dataset.data.column(name).validate(full=True)  # offsets and UTF-8, as the files are untrusted
        table = dataset.with_format("arrow")[:]
    except Exception as error:
        raise _unreadable(folder, error) from error
    return records_of(table, features, folder, definition)


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


def _unreadable(folder: SourceFile, error: Exception) -> SeedbedError:
    return SeedbedError(
        "the folder cannot be read as a dataset on disk",
        where=f"{folder.path} (from {folder.location})",
        found=f"{type(error).__name__}: {str(error)[:300]}",
        hint="it must be complete, as datasets.save_to_disk wrote it, with state.json and dataset_info.json",
    )
