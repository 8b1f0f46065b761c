"""Read folders of text files, one folder per class, as IMDB has them: train/pos/0_9.txt."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.data.readers.files import Place, Record, SourceFile, decoded, named_columns

log = logging.getLogger(__name__)

ENDINGS = (".txt", ".txt.gz")


def read_folders(folder: SourceFile, definition: Mapping[str, Any]) -> list[Record]:
    """Read the text files below the folders of a split, in the order of their paths.

    The label of a text is the name of the split's folder that it is in. Other files, and text files beside
    these folders, are counted in the log.

    Raises:
        SeedbedError: no folder has a text file, or one is not text.
    """
    paths = sorted(path for path in folder.path.rglob("*") if path.is_file())
    inside = {path: path.relative_to(folder.path).parts for path in paths}
    texts = [path for path in paths if len(inside[path]) > 1 and path.name.lower().endswith(ENDINGS)]
    if not texts:
        raise SeedbedError(
            "the split has no folder with text files",
            where=folder.where,
            found=f"{len(paths)} files, such as {'/'.join(inside[paths[0]]) if paths else '(none)'}",
            hint=f"each text of a class is a file in its folder, CLASS/NAME{ENDINGS[0]}",
        )
    if others := len(paths) - len(texts):
        log.info("%s: left out %d files that are no texts of a class", folder.path, others)
    text, *more = named_columns(definition)
    label, empty = definition["columns"]["label"], dict.fromkeys(more, "")
    return [
        Record(Place(_file(folder, path), 1), {text: _content(folder, path), **empty, label: inside[path][0]})
        for path in texts
    ]


def _content(folder: SourceFile, path: Path) -> str:
    return decoded(_file(folder, path), quiet=True)


def _file(folder: SourceFile, path: Path) -> SourceFile:
    return replace(folder, path=path)
