"""The files of a fetched source are those that its manifest.json lists."""

from pathlib import Path

from seedbed.core.errors import SeedbedError
from seedbed.core.files import sha256


def verify(path: str | Path, digest: str) -> None:
    """Check that a file has the SHA-256 `digest`.

    Raises:
        SeedbedError: it has another.
    """
    found = sha256(path)
    if found != digest:
        raise another_file(path, digest, found)


def another_file(path: str | Path, expected: str, found: str) -> SeedbedError:
    """The error of a file that is not the one that its manifest lists."""
    return SeedbedError(
        "this file is not the one that was fetched",
        where=str(path),
        found=f"SHA-256 {found}, but manifest.json says {expected}",
        hint="remove the source's folder, so that it is fetched again",
    )
