"""Find and verify the files of a fetched source by their names in the config."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from seedbed.core import spelling
from seedbed.core.errors import SeedbedError
from seedbed.core.spelling import nearest
from seedbed.data.readers import SourceFile
from seedbed.sources.archives import AS_ARCHIVE, holds_archive
from seedbed.sources.manifest import verify

LISTED = 20  # names in a message


def find_file(path: str, key: str, source: dict[str, Any], manifest: Path) -> SourceFile:
    """The file of a source at `path`, the value of the config's `key`.

    Raises:
        SeedbedError: see `find_name`; or the file has changed since it was fetched.
    """
    files = manifest.parent / "files"
    there = find_name(path, key, source, files, manifest.parent.name)
    verify(files / there, source["files"][there]["sha256"])
    return SourceFile(files / there, source["location"])


def find_name(path: str, key: str, source: Mapping[str, Any], files: Path | None, name: str) -> str:
    """The name of a file in a source.

    Args:
        path: its path inside the source, in any form of Unicode.
        key: the key of `path` in the config.
        source: `location`, and `files`, the names of the source's files.
        files: the folder of these files; None if they are in an archive.
        name: the source's name.

    Raises:
        SeedbedError: the source has no such file; the error lists its files and the nearest name.
    """
    held = list(source["files"])
    there = spelling.find(path, held)
    if there is not None:
        return there
    more = f" and {len(held) - LISTED} more" if len(held) > LISTED else ""
    close = _nearest_path(path, held)
    if files is not None and len(held) == 1 and holds_archive(files / held[0]):
        close = f"{held[0]} is an archive without the suffix of one: {AS_ARCHIVE.format(name)}; "
    raise SeedbedError(
        f"the source has no file {path!r}",
        where=f"config, {key}; source fetched from {source['location']}",
        found=f"the source has {', '.join(held[:LISTED])}{more}",
        hint=f"{close}correct {key} (for the format lab without .review or .label, for "
        "huggingface the folder with state.json) or the source",
    )


def whole_folder(folder: Path, source: Mapping[str, Any], files: Path) -> SourceFile:
    """The folder of a split, with all files verified."""
    for name, listed in source["files"].items():
        if (files / name).is_relative_to(folder):
            verify(files / name, listed["sha256"])
    return SourceFile(folder, source["location"], unit="row")


def _nearest_path(path: str, held: Sequence[str]) -> str:
    """The nearest path, preferably of the same file name, since folders inside archives often change."""
    same = [other for other in held if PurePosixPath(other).name == PurePosixPath(path).name]
    close = difflib.get_close_matches(path, same, n=1, cutoff=0)
    return nearest(close[0], close) if close else nearest(path, held)
