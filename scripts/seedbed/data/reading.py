"""Read the files of a dataset as records of named columns.

`seedbed.config.file_formats` says what each format takes, and `seedbed.data.readers` has a module for each. A
reader is called with the files of a split (two for lab, a folder for some) and the dataset's block, and
returns a `Record` for each example, in the order of the file, or None for one that the dataset leaves out.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from seedbed.core.files import read_json
from seedbed.data.readers import excel, folders, json_files, lab, parquet, saved_datasets, tables, webis
from seedbed.data.readers.files import Record
from seedbed.data.source_files import find_files

Found = tuple[int, Record]  # an example's index in its split's files, from 0, and the example

READERS: dict[str, Callable[..., list[Any]]] = {
    "lab": lab.read_lab,
    "csv": tables.read_csv,
    "tsv": tables.read_tsv,
    "jsonl": json_files.read_jsonl,
    "json": json_files.read_json,
    "parquet": parquet.read_parquet,
    "excel": excel.read_excel,
    "folders": folders.read_folders,
    "webis_cls": webis.read_webis,
    "huggingface": saved_datasets.read_huggingface,
}


def read_records(name: str, definition: Mapping[str, Any], split: str, manifest: str | Path) -> list[Found]:
    """The examples of a split's files.

    Args:
        name: the dataset's name in the config, for messages.
        definition: its resolved block.
        split: a split that has files.
        manifest: the manifest of its source.

    Raises:
        SeedbedError: a file is missing, was changed since it was fetched, or cannot be read.
    """
    manifest = Path(manifest)
    key = f"datasets.{name}.files.{split}"
    groups = find_files(definition, split, key, read_json(manifest), manifest)
    records = [record for files in groups for record in READERS[definition["format"]](*files, definition)]
    return [(index, record) for index, record in enumerate(records) if record is not None]
