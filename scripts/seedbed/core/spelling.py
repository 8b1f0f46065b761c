"""Misspelt names: the probable correct name, and the difference of two names that look the same."""

import difflib
import unicodedata
from collections.abc import Iterable


def normal(name: str) -> str:
    """A name with each accented letter as one character (NFC); macOS writes some letters as two."""
    return unicodedata.normalize("NFC", name)


def find(name: str, known: Iterable[str]) -> str | None:
    """The name in `known` that equals `name` in any form of Unicode; None if there is not exactly one."""
    known = list(known)
    if name in known:
        return name
    same = [other for other in known if normal(other) == normal(name)]
    return same[0] if len(same) == 1 else None


def nearest(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """A question after the nearest name, with the difference if both look alike; empty if none is near."""
    known = list(known)
    if (close := near(name, known, cutoff)) is None:
        return ""
    how = f"({difference(name, close)}) " if close in alike(name, known) and close != name else ""
    return f"did you mean {close!r}? {how}"


def near(name: str, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The nearest name; None if none is near."""
    known = list(known)
    close = alike(name, known) or difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return close[0] if close else None


def alike(name: str, known: Iterable[str]) -> list[str]:
    """The names that differ from `name` only in case, spaces, forms of letters or invisible characters."""
    return [other for other in known if _plain(other) == _plain(name)]


def difference(found: str, meant: str) -> str:
    """The difference between two names in words, with code points, since characters may be invisible."""
    if found.casefold() == meant.casefold():
        return "capital letters differ"
    pairs = enumerate(zip(found, meant, strict=False))
    at = next((index for index, (one, other) in pairs if one != other), min(len(found), len(meant)))
    return f"character {at + 1} is {_described(found[at:])}, not {_described(meant[at:])}"


def _plain(name: str) -> str:
    """A name without invisible characters and easily overlooked differences."""
    compatible = unicodedata.normalize("NFKC", name).casefold()
    visible = (" " if char.isspace() else char for char in compatible if unicodedata.category(char) != "Cf")
    return " ".join("".join(visible).split())


def _described(rest: str) -> str:
    if not rest:
        return "missing"
    return f"U+{ord(rest[0]):04X} {unicodedata.name(rest[0], 'without a name')}"
