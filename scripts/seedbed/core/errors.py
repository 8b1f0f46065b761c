"""The error type for users: what is wrong, where, what was found, what to do."""

import contextlib
import errno
import os
import re
from collections.abc import Iterator

from seedbed.core.printable import Lines, one_line

LONGEST = 3000  # letters of a part of an error
UNKNOWN_HINT = (  # for a split with too many unknown tokens
    "check the encoding of the texts (UTF-8?), and that they are in the model's language; if both are "
    "right, raise checks.max_unknown_share in the config"
)


class SeedbedError(Exception):
    """Bad input, described so that a user can correct it.

    Each part is printed on one line, with control characters escaped, since it may quote text from outside;
    `Lines` may have several.

    Args:
        what: the fault, in one sentence.
        where: file and line, or config key.
        found: the offending value.
        hint: the remedy.
    """

    def __init__(self, what: str, *, where: str = "", found: object = None, hint: str = ""):
        self.what, self.where, self.hint = map(_part, (what, where, hint))
        self.found = _part(found) if isinstance(found, str) else found
        super().__init__(str(self))

    def __str__(self) -> str:
        lines = [self.what]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.found is not None:
            lines.append(f"  found: {_part(self.found)}")
        if self.hint:
            lines.append(f"  hint:  {self.hint}")
        return Lines("\n".join(lines))

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.what, self.where, self.found, self.hint))


def _part(text: object) -> str:
    """A part of an error, made printable, with the middle of a long one left out."""
    line = one_line(text)
    if len(line) <= LONGEST or isinstance(line, Lines):
        return line
    return f"{line[: LONGEST - 500]} ... ({len(line) - LONGEST + 100:,} letters left out) ... {line[-400:]}"


def _rebuild(what: str, where: str, found: object, hint: str) -> SeedbedError:
    return SeedbedError(what, where=where, found=found, hint=hint)


FULL = (errno.ENOSPC, errno.EDQUOT)
NO_ROOM = (
    "there is not enough room on the disk",
    "make room there, or give another folder as `results` in the config, and run again",
)
MAY_NOT = ("a file or folder may not be read or written", "change its permissions, or take another folder")
TOO_MANY_OPEN = ("too many files are open", "raise the limit (ulimit -n), or run fewer jobs at once")
FAILS = ("the disk, or the network to it, fails", "see what the system's log says of the disk, and run again")
REFUSALS = {  # errors of the system, with `what` and `hint`
    **dict.fromkeys(FULL, NO_ROOM),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), MAY_NOT),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), TOO_MANY_OPEN),
    **dict.fromkeys((errno.EIO, errno.ESTALE), FAILS),
    errno.EFBIG: ("a file is larger than a process may write", "raise the limit: ulimit -f unlimited"),
    errno.ENAMETOOLONG: ("a name is too long for the file system", "give shorter names to files and folders"),
    errno.ENOMEM: ("there is too little memory", "let fewer jobs run at once, or take a host with more"),
}
_OF_RUST = re.compile(r"\(os error (\d+)\)")  # how libraries in Rust quote the system


def from_system(error: BaseException) -> SeedbedError | None:
    """A SeedbedError for an error of the system or a panic of a library; None for other errors."""
    if type(error).__name__ == "PanicException":  # of libraries in Rust, above all tokenizers
        return SeedbedError(
            "a library in Rust panicked",
            found=_short(error),
            hint="a model's tokenizer may be damaged: take its files from their authors again",
        )
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError):
        number = errno.ENOMEM
    elif not isinstance(error, (OSError, SeedbedError)) and (quoted := _OF_RUST.search(str(error))):
        number = int(quoted[1])
    if number == errno.ENOENT and not _has_working_folder():
        return SeedbedError(
            "the current working directory no longer exists",
            found=_short(error),
            hint="change to an existing directory, and run again",
        )
    if number not in REFUSALS:
        return None
    what, hint = REFUSALS[number]
    where = getattr(error, "filename", None)
    found = getattr(error, "strerror", None) or _short(error) or None
    return SeedbedError(what, where=_short(where) if where else "", found=found, hint=hint)


@contextlib.contextmanager
def explaining_system_errors() -> Iterator[None]:
    """Turn errors of the system into errors for users.

    Raises:
        SeedbedError: made by `from_system`; other errors pass unchanged.
    """
    try:
        yield
    except (OSError, MemoryError) as error:
        explained = from_system(error)
        if explained is None:
            raise
        raise explained from error


def _has_working_folder() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _short(text: object) -> str:
    """The first line, with the middle of a long one left out."""
    line = (str(text).splitlines() or [""])[0]
    return line if len(line) <= 300 else f"{line[:200]} ... {line[-90:]}"
