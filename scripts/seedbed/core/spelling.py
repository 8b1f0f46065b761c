"""Names that people write: which one was meant, and how two names differ that look the same."""

import difflib
import unicodedata
from collections.abc import Iterable


def normal(name: str) -> str:
    """A name with each accented letter as one character (NFC): macOS writes some of them as two."""
    return unicodedata.normalize("NFC", name)


def find(name: str, known: Iterable[str]) -> str | None:
    """The one of `known` that is `name`, in whichever form of Unicode; None: there is none, or several."""
    known = list(known)
    if name in known:
        return name
    same = [other for other in known if normal(other) == normal(name)]
    return same[0] if len(same) == 1 else None


def nearest(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """A question that names what may have been meant, or nothing; names that look alike with what differs."""
    known = list(known)
    same = alike(name, known)
    close = same or difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    if not close:
        return ""
    how = f"({difference(name, close[0])}) " if same and close[0] != name else ""
    return f"did you mean {close[0]!r}? {how}"


def alike(name: str, known: Iterable[str]) -> list[str]:
    """Those of `known` that differ from a name only in case, spaces, forms of letters or what is unseen."""
    return [other for other in known if _plain(other) == _plain(name)]


def difference(found: str, meant: str) -> str:
    """In words, what differs between two names that are not the same.

    Characters are named with their code points, since what differs may be invisible.
    """
    if found.casefold() == meant.casefold():
        return "capital letters differ"
    pairs = enumerate(zip(found, meant, strict=False))
    at = next((index for index, (one, other) in pairs if one != other), min(len(found), len(meant)))
    return f"character {at + 1} is {_described(found[at:])}, not {_described(meant[at:])}"


def _plain(name: str) -> str:
    """A name without what a reader does not see, or easily overlooks."""
    compatible = unicodedata.normalize("NFKC", name).casefold()
    visible = (" " if char.isspace() else char for char in compatible if unicodedata.category(char) != "Cf")
    return " ".join("".join(visible).split())


def _described(rest: str) -> str:
    if not rest:
        return "missing"
    return f"U+{ord(rest[0]):04X} {unicodedata.name(rest[0], 'without a name')}"
