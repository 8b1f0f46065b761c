"""List the files of local folders, following links and recognising macOS's own. Light to import."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

MACOS = frozenset({"__MACOSX", ".DS_Store"})
APPLE_DOUBLE = "._"  # prefix of macOS's files with another file's attributes


def files_below(folder: str | Path) -> list[Path]:
    """All files below a folder, sorted, without macOS's own; links are followed."""
    return [path for path in walk(folder) if not is_left_by_macos(path.relative_to(folder).parts)]


def walk(folder: str | Path) -> list[Path]:
    """All files below a folder, sorted; links are followed. Empty if the folder does not exist.

    Raises:
        OSError: a folder cannot be read.
    """
    paths: list[Path] = []
    if not Path(folder).exists():
        return paths
    for root, folders, names in os.walk(folder, followlinks=True, onerror=_raise):
        paths += [Path(root, name) for name in names]
        # a link to a parent folder would lead back here for ever
        here = Path(root).resolve()
        folders[:] = [name for name in folders if not here.is_relative_to(Path(root, name).resolve())]
    return sorted(paths)


def _raise(error: OSError) -> NoReturn:
    raise error


def is_left_by_macos(parts: Sequence[str]) -> bool:
    """Whether macOS adds a file with this path (given by its parts) to folders and archives."""
    return any(part in MACOS or part.startswith(APPLE_DOUBLE) for part in parts)
