"""Room on the disk: asked for before writing, and its lack explained."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from seedbed.core.errors import FULL, NO_ROOM, SeedbedError


class DiskFull(SeedbedError):
    """There is not enough room, so that another location would not help."""


def check_space(folder: str | Path, needed: int) -> None:
    """Make sure that `needed` bytes and 5% more are free on the disk of `folder`.

    Raises:
        DiskFull: says how much is needed and how much is free.
    """
    needed += needed // 20
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise _disk_full(folder, f"{needed:,} bytes are needed, {free:,} are free")


@contextlib.contextmanager
def explaining_full_disk(folder: str | Path) -> Iterator[None]:
    """Turn the system's error of a full disk, or of a used-up quota, into one for people.

    Raises:
        DiskFull: says how much is free.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        free = shutil.disk_usage(folder).free
        raise _disk_full(folder, f"{error.strerror}; {free:,} bytes are free") from error


def _disk_full(folder: str | Path, found: str) -> DiskFull:
    what, hint = NO_ROOM
    return DiskFull(what, where=str(folder), found=found, hint=hint)
