"""Untrusted names of files: in archives, repositories of the hub, indexes of weights.

Only `outside` and `inside` turn such a name into a path. Names that some system reads as a drive, a device or
another file are refused on every system, so that a source that works on one works on all.
"""

import re
import unicodedata
from pathlib import Path, PurePosixPath, PureWindowsPath

from seedbed.core.errors import SeedbedError

NAME_BYTES = 255  # of a file's or folder's name, the limit of file systems
PATH_BYTES = 2000  # half of Linux's limit, leaving room for the folders before it
LEAVES = "its path leaves the folder it is unpacked into"
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def outside(name: str) -> PurePosixPath:
    """The relative path of an untrusted name; `\\` counts as `/`.

    Raises:
        ValueError: the name is not a safe relative path; the message gives the reason.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(LEAVES)
    check_characters(name)
    if PureWindowsPath(path).drive:
        raise ValueError("its path begins with the letter of a drive")
    if device := next((part for part in path.parts if PureWindowsPath(part).is_reserved()), None):
        raise ValueError(f"{device} is a device on Windows")
    longest = max((len(part.encode()) for part in path.parts), default=0)
    if longest > NAME_BYTES or len(name.encode()) > PATH_BYTES:
        raise ValueError(
            f"its name is too long: at most {NAME_BYTES} bytes are possible, {PATH_BYTES} with its folders"
        )
    return path


def check_characters(name: str) -> None:
    """Refuse a name that cannot be written in UTF-8 or shown on one line.

    Raises:
        ValueError: the message gives the reason.
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError("its name is not UTF-8") from None
    if CONTROL.search(name):
        raise ValueError("its name contains a control character")


def inside(folder: str | Path, name: object, what: str = "a file from outside") -> Path:
    """The path of an untrusted name below `folder`.

    Args:
        folder: the folder of the file.
        name: the untrusted name, relative to the folder.
        what: the file, for messages.

    Raises:
        SeedbedError: the name is invalid, or leads out of the folder, also by a link.
    """
    try:
        if not isinstance(name, str):
            raise ValueError("its name is not a text")
        path = outside(name)
        if not path.parts:
            raise ValueError("it has no name")
    except ValueError as error:
        shown = str(name)[:300]
        if str(error) != LEAVES:
            raise SeedbedError(f"{what} has an invalid name: {error}", found=shown) from None
        raise SeedbedError(f"{what} would leave its folder", found=shown) from None
    found = Path(folder).joinpath(*path.parts)
    if not found.resolve().is_relative_to(Path(folder).resolve()):
        raise SeedbedError(f"{what} would leave its folder by a link", found=name)
    return found


def folded(path: PurePosixPath) -> str:
    """A path normalised as some systems do: without case, Unicode's forms, and final dots and spaces."""
    parts = (part.rstrip(". ") for part in path.parts)
    return unicodedata.normalize("NFC", "/".join(parts)).casefold()
