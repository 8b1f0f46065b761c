"""Verify the files of a fetched source against its manifest.json."""

from pathlib import Path

from seedbed.core.errors import SeedbedError
from seedbed.core.files import sha256


def verify(path: str | Path, digest: str) -> None:
    """Check that a file has the SHA-256 `digest`.

    Raises:
        SeedbedError: it has another SHA-256.
    """
    found = sha256(path)
    if found != digest:
        raise another_file(path, digest, found)


def another_file(path: str | Path, expected: str, found: str) -> SeedbedError:
    """The error for a file that differs from its manifest."""
    return SeedbedError(
        "this file has changed since it was fetched",
        where=str(path),
        found=f"SHA-256 {found}, but manifest.json says {expected}",
        hint="remove the source's folder to fetch it again",
    )
