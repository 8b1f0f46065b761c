"""Find and verify the files of a fetched source by their names in the config."""

import difflib
import fnmatch
import glob
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from seedbed.config.file_formats import FORMATS
from seedbed.core import spelling
from seedbed.core.errors import SeedbedError
from seedbed.core.spelling import nearest
from seedbed.data.readers.files import UTF8, SourceFile
from seedbed.sources.archives import AS_ARCHIVE, holds_archive
from seedbed.sources.manifest import verify

LISTED = 20  # names in a message
PACKED = ".gz"
# the files of a split in a folder as the Hugging Face hub names them, for the path of the split
ON_HUB = ("{}.parquet", "{}-[0-9]*.parquet", "{}/*.parquet")

log = logging.getLogger(__name__)


def find_files(
    definition: Mapping[str, Any], split: str, key: str, source: Mapping[str, Any], manifest: Path
) -> list[list[SourceFile]]:
    """The verified files of a split, in groups: those of one group are read together.

    Args:
        definition: the dataset's block.
        split: the split.
        key: the key of its path in the config.
        source: the content of the source's manifest.
        manifest: its path.

    Raises:
        SeedbedError: see `find_names`; or a file has changed since it was fetched.
    """
    form = FORMATS[definition["format"]]
    files = manifest.parent / "files"
    encoding = definition.get("encoding", UTF8) if form.is_text else UTF8
    groups = find_names(definition, split, key, source, files, manifest.parent.name)
    if len(groups) > 1:
        log.info("%s: %d files: %s", key, len(groups), ", ".join(name for names in groups for name in names))
    if form.is_folder:
        (found,) = (files / names[0] for names in groups)
        folder = found.parent if form.suffixes else found  # of a saved dataset, that of its state.json
        _verify_folder(folder, source, files)
        return [[SourceFile(folder, source["location"], form.unit, encoding)]]
    for name in (name for names in groups for name in names):
        verify(files / name, source["files"][name]["sha256"])
        if name.endswith(PACKED):
            log.info("%s: read %s, compressed with gzip", key, name)
    return [
        [SourceFile(files / name, source["location"], form.unit, encoding) for name in names]
        for names in groups
    ]


def find_names(
    definition: Mapping[str, Any],
    split: str,
    key: str,
    source: Mapping[str, Any],
    files: Path | None,
    name: str,
) -> list[list[str]]:
    """The names of a split's files (or of its folder) in a source, in groups; for arguments see `find_name`.

    A path may be a pattern such as `part-*.csv`; the files that it matches are read one after the other.

    Raises:
        SeedbedError: see `find_name`; or several folders have Parquet files of the split.
    """
    path, held = definition["files"][split], list(source["files"])
    form = FORMATS[definition["format"]]
    if not form.suffixes:
        return [[_folder(path, held) or find_name(path, key, source, files, name)]]
    if form.suffixes == ("",) and spelling.find(path, held) is None:
        several = sorted(fnmatch.filter(held, path))
        if definition["format"] == "parquet":
            several = several or _on_hub(path, held, key)
        if several:
            return [[each] for each in several]
    wanted = [str(PurePosixPath(path + suffix)) for suffix in form.suffixes]
    return [[_packed(each, held) or find_name(each, key, source, files, name) for each in wanted]]


def _folder(path: str, held: Sequence[str]) -> str | None:
    """The folder at a path, in the source's form of Unicode; None if no file is below it."""
    depth = len(PurePosixPath(path).parts)
    if not depth:
        return "."
    folders = {
        str(PurePosixPath(*parts[:depth])) for each in held if len(parts := PurePosixPath(each).parts) > depth
    }
    return spelling.find(str(PurePosixPath(path)), folders)


def _packed(path: str, held: Sequence[str]) -> str | None:
    """The compressed file in place of a file that is not there."""
    return None if spelling.find(path, held) is not None else spelling.find(path + PACKED, held)


def _on_hub(path: str, held: Sequence[str], key: str) -> list[str]:
    """The Parquet files of a split by the hub's names: train is data/train-00000-of-00001.parquet."""
    for pattern in ON_HUB:
        wanted = pattern.format(glob.escape(path))
        found = sorted({*fnmatch.filter(held, wanted), *fnmatch.filter(held, f"*/{wanted}")})
        folders = sorted({each[: each.rindex(PurePosixPath(path).name)] for each in found})
        if len(folders) > 1:
            raise SeedbedError(
                f"several folders of the source have Parquet files of {path!r}",
                where=f"config, {key}",
                found=", ".join(folders[:LISTED]),
                hint=f"give one of them: {folders[0]}{PurePosixPath(path).name}",
            )
        if found:
            return found
    return []


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
        hint=f"{close}{_about_parquet(path, held)}correct {key} (for the format lab without .review or "
        ".label, for huggingface the folder with state.json) or the source",
    )


def _verify_folder(folder: Path, source: Mapping[str, Any], files: Path) -> None:
    for name, listed in source["files"].items():
        if (files / name).is_relative_to(folder):
            verify(files / name, listed["sha256"])


def _nearest_path(path: str, held: Sequence[str]) -> str:
    """The nearest path, preferably of the same file name, since folders inside archives often change."""
    same = [other for other in held if PurePosixPath(other).name == PurePosixPath(path).name]
    close = difflib.get_close_matches(path, same, n=1, cutoff=0)
    return nearest(close[0], close) if close else nearest(path, held)


def _about_parquet(path: str, held: Sequence[str]) -> str:
    """A remark on a source with Parquet files that is read as another format."""
    parquet = any(name.endswith(".parquet") for name in held) and not path.endswith(".parquet")
    return "the source has Parquet files: set format: parquet; " if parquet else ""
