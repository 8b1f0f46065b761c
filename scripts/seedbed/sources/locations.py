"""Locations of sources: paths, file:// and other URLs. No network is needed; light to import."""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from seedbed.core.printable import one_line
from seedbed.sources.folders import files_below

ROOT = Path(__file__).resolve().parents[3]  # the workflow's own folder


def candidates(locations: Sequence[str], mirror: str | None) -> list[str]:
    """All places to try, in order: the mirror, then the locations.

    The mirror is a folder, which is searched for the file name of each location, or a single file, which
    replaces the location with the same file name.
    """
    names = dict.fromkeys(filter(None, map(file_name, locations)))
    if not mirror:
        return list(locations)
    if os.path.isfile(Path(mirror).expanduser()):
        return [*([mirror] if Path(mirror).name in names else []), *locations]
    return [*(str(Path(mirror, name)) for name in names), *locations]


def file_name(location: str) -> str:
    """The last part of a path or URL, without query; empty if it is missing or the URL is invalid.

    For a repository on the Hugging Face hub, hf://OWNER/NAME@REVISION, it is NAME.
    """
    path = location
    if "://" in location:
        try:
            split = urlsplit(location)
        except ValueError:
            return ""
        path = unquote(split.path)
        if split.scheme == "hf":  # the host is the owner, or the name of a repository without owner
            path = unquote(split.netloc + split.path).split("@")[0]
    name = PurePosixPath(path).name
    return "" if name == ".." else name


def is_local(location: str) -> bool:
    """Whether a location is a path or a file:// URL."""
    return "://" not in location or location.startswith("file://")


def local_path(location: str) -> Path | None:
    """The path of a local location; None for other URLs.

    A path is relative to the working directory. If it does not exist there, a path below resources/ is
    relative to the workflow's folder, so that Seedbed's own data are found from any working directory.
    """
    if location.startswith("file://"):
        return Path(unquote(urlsplit(location).path))
    if "://" in location:
        return None
    path = Path(location).expanduser()
    if path.parts[:1] == ("resources",) and not path.exists() and (ROOT / path).exists():
        return ROOT / path
    return path


def local_files(locations: Sequence[str]) -> list[str]:
    """The files at local locations; if one changes, Snakemake fetches the source again.

    Files with unprintable names are omitted: Snakemake would print them, and fetching refuses them.
    """
    files: list[Path] = []
    for path in map(local_path, filter(is_local, locations)):
        # the methods of Path raise for a name that is too long
        if os.path.isdir(path):
            files += files_below(path)
        elif os.path.exists(path):
            files.append(path)
    return [str(path) for path in files if one_line(path) == str(path)]
