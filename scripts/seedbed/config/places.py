"""Checks of the paths and locations in the config."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from seedbed.core.errors import SeedbedError
from seedbed.core.paths import NAME_BYTES
from seedbed.core.printable import one_line
from seedbed.sources.locations import local_path


def check_locations(config: dict[str, Any]) -> None:
    """Check the locations of the sources that the grid needs.

    Raises:
        SeedbedError: a location is neither a path nor a URL, or has invalid characters.
    """
    used = ((kind, name) for kind in ("datasets", "models") for name in config["grid"][kind])
    for source in dict.fromkeys(config[kind][name]["source"] for kind, name in used):
        for location in config["sources"][source]["locations"]:
            where = f"config, sources.{source}.locations"
            if one_line(location) != location:
                raise SeedbedError(
                    "a location has a control character",
                    where=where,
                    found=repr(location),
                    hint="remove it, probably a slip of copying; in a URL write %0A for a line end",
                )
            try:
                urlsplit(location)
                path = local_path(location)
            except ValueError as error:
                raise SeedbedError(
                    f"invalid location: {error}",
                    where=where,
                    found=location,
                    hint="give a URL, or a path; write [ and ] of a file:// URL as %5B and %5D",
                ) from None
            except RuntimeError:
                raise _no_such_user(where, location) from None
            if path is not None and set("{}") & set(str(path)):
                raise SeedbedError(
                    "a path of a source has a brace, which Snakemake reads as a wildcard",
                    where=where,
                    found=location,
                    hint="rename the file or the folder",
                )


def check_paths(config: dict[str, Any]) -> None:
    """Check the paths of results, lock and mirror.

    Raises:
        SeedbedError: a path is in the folder of an unknown user, or invalid on any file system.
    """
    for key in ("results", "lock", "mirror"):
        text = config[key] or ""
        try:
            path = Path(text).expanduser()
        except RuntimeError:
            raise _no_such_user(f"config, {key}", text) from None
        if one_line(text) != text or text.strip() != text:
            raise SeedbedError(
                "a path has a control character, or white space at an end",
                where=f"config, {key}",
                found=repr(text),
                hint="remove it, probably a slip of copying",
            )
        longest = max(map(str, path.parts), key=size_of_name, default="")
        if size_of_name(longest) > NAME_BYTES:
            raise SeedbedError(
                "a name in this path is longer than file systems allow",
                where=f"config, {key}",
                found=f"{size_of_name(longest)} bytes: {longest[:40]}...",
                hint=f"give a folder whose name has {NAME_BYTES} bytes at most",
            )


def size_of_name(name: str) -> int:
    """Bytes of a name on disk."""
    return len(os.fsencode(name))


def _no_such_user(where: str, path: str) -> SeedbedError:
    return SeedbedError(
        "unknown user in a path",
        where=where,
        found=path,
        hint="write the whole path; ~ alone is your own folder, and ./~ a folder of that name",
    )
