"""Check for free disk space before writing, and explain a full disk."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from seedbed.core.errors import FULL, NO_ROOM, SeedbedError


class DiskFull(SeedbedError):
    """The disk is full, so another location would not help."""


def check_space(folder: str | Path, needed: int) -> None:
    """Check that `needed` bytes and 5% more are free on the disk of `folder`.

    Raises:
        DiskFull: less is free; the message gives both numbers.
    """
    needed += needed // 20
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise _disk_full(folder, f"{needed:,} bytes are needed, {free:,} are free")


@contextlib.contextmanager
def explaining_full_disk(folder: str | Path) -> Iterator[None]:
    """Turn the system's error for a full disk or an exhausted quota into one for users.

    Raises:
        DiskFull: the disk is full; the message gives the free bytes.
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
