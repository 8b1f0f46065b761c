"""Locations of sources: paths, file:// and other URLs. Without a network, and light to import."""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from seedbed.core.printable import one_line
from seedbed.sources.folders import files_below

ROOT = Path(__file__).resolve().parents[3]  # the workflow's own folder


def candidates(locations: Sequence[str], mirror: str | None) -> list[str]:
    """All places to try, in order: the mirror, then the locations.

    The mirror is a folder, searched for the file name of each location, or a single file, which stands for
    the location of its name.
    """
    names = dict.fromkeys(filter(None, map(file_name, locations)))
    if not mirror:
        return list(locations)
    if os.path.isfile(Path(mirror).expanduser()):
        return [*([mirror] if Path(mirror).name in names else []), *locations]
    return [*(str(Path(mirror, name)) for name in names), *locations]


def file_name(location: str) -> str:
    """The last part of a path or URL, without query; empty where it has none, or the URL is none.

    Of a repository on the Hugging Face hub, hf://OWNER/NAME@REVISION, it is NAME, whatever the revision.
    """
    path = location
    if "://" in location:
        try:
            split = urlsplit(location)
        except ValueError:
            return ""
        path = unquote(split.path)
        if split.scheme == "hf":  # the owner, or the name of a repository without one, is in the host's place
            path = unquote(split.netloc + split.path).split("@")[0]
    name = PurePosixPath(path).name
    return "" if name == ".." else name


def is_local(location: str) -> bool:
    """Whether a location is a path or a file:// URL."""
    return "://" not in location or location.startswith("file://")


def local_path(location: str) -> Path | None:
    """The path that a local location means; None for other URLs.

    A path is relative to the working directory. Where nothing is there, one below resources/ is relative to
    the workflow's own folder: what comes with Seedbed is found from any working directory.
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
    """The files that exist at local locations: those whose change asks for fetching again.

    Files of unprintable names are left out: Snakemake would print these, and fetching refuses them.
    """
    files: list[Path] = []
    for path in map(local_path, filter(is_local, locations)):
        # not by the methods of Path, which raise for a name that is too long
        if os.path.isdir(path):
            files += files_below(path)
        elif os.path.exists(path):
            files.append(path)
    return [str(path) for path in files if one_line(path) == str(path)]
