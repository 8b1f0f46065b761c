"""Locations of sources: paths, file:// and other URLs. Without a network, and light to import."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from seedbed import archives

ROOT = Path(__file__).resolve().parents[2]  # the workflow's own folder


def candidates(locations: Sequence[str], mirror: str | None) -> list[str]:
    """All places to try, in order: the mirror, then the locations.

    The mirror is a folder, searched for the file name of each location, or a single file, which stands for
    the location of its name.
    """
    names = dict.fromkeys(filter(None, map(file_name, locations)))
    if not mirror:
        return list(locations)
    if Path(mirror).expanduser().is_file():
        return [*([mirror] if Path(mirror).name in names else []), *locations]
    return [*(str(Path(mirror, name)) for name in names), *locations]


def file_name(location: str) -> str:
    """The last part of a path or URL, without query; empty where it has none.

    Of a repository on the Hugging Face hub, hf://OWNER/NAME@REVISION, it is NAME, whatever the revision.
    """
    path = location
    if "://" in location:
        split = urlsplit(location)
        path = unquote(split.path)
        if split.scheme == "hf":  # the owner, or the name of a repository without one, is in the host's place
            path = unquote(split.netloc + split.path).split("@")[0]
    name = PurePosixPath(path).name
    return "" if name == ".." else name


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
    """The files that exist at local locations: those whose change asks for fetching again."""
    files: list[Path] = []
    for path in filter(None, map(local_path, locations)):
        if path.is_dir():
            files += archives.files_below(path)
        elif path.exists():
            files.append(path)
    return [str(path) for path in files]
