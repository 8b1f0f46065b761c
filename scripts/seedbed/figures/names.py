"""Names as figures show them: cleaned, shortened or wrapped to fit, and still different; and their labels.

Room is counted in columns: Chinese and Japanese characters take two, marks that stand on another character
none. Nothing is cut between a character and its marks.
"""

import textwrap
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from seedbed.core import wording
from seedbed.core.characters import is_invisible
from seedbed.core.words import framework_name

LINES = 3  # of a wrapped name
LEAST = 8  # columns of a cut name
CUT = "…"
JOINERS = "\u200c\u200d"  # between letters of Persian and of Indian scripts, and in emoji
SKIN = range(0x1F3FB, 0x1F400)  # colours of an emoji's skin, which follow it


def word(name: str, /, **values: Any) -> str:
    """A text of data/labels.yaml."""
    return wording.fill(wording.data("figures/labels")[name], **values)


def series_name(name: str) -> str:
    """What people call an init or a framework of the tables: from the checkpoint; Transformers."""
    return wording.data("figures/labels")["inits"].get(name) or framework_name(name)


def clean(text: Any) -> str:
    """A name without line breaks, invisible characters and others that a figure or an SVG cannot hold."""
    signs = []
    for sign in str(text):
        if sign.isprintable() or sign in JOINERS:
            signs.append(sign)
        elif sign.isspace() or not is_invisible(sign) or unicodedata.category(sign) == "Cc":
            signs.append(" ")
    return " ".join("".join(signs).split())


def columns(text: str) -> int:
    """The width of a text in columns."""
    return sum(map(_width, text))


def _width(sign: str) -> int:
    if unicodedata.category(sign) in ("Mn", "Me") or is_invisible(sign) != sign.isspace():
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def clusters(text: str) -> list[str]:
    """The text in clusters: characters with the marks that belong to them."""
    found: list[str] = []
    for sign in text:
        follows = (
            unicodedata.category(sign).startswith("M")
            or ord(sign) in SKIN
            or (is_invisible(sign) and not sign.isspace())
        )
        if found and (follows or found[-1].endswith(JOINERS[1])):
            found[-1] += sign
        else:
            found.append(sign)
    return found


def shorten(text: Any, length: int = 18) -> str:
    """A name of at most `length` columns; a longer one loses its middle, since names differ at their ends."""
    return _cut(clean(text), length, length - 1 - (length - 1) // 2)


def _cut(name: str, length: int, head: int) -> str:
    """A name that is too long, cut to `head` columns of its start and the rest of its end."""
    if columns(name) <= length:
        return name
    pieces = clusters(name)
    start = _fitting(pieces, head)
    end = _fitting(pieces[::-1], length - 1 - head)
    return f"{''.join(pieces[:start])}{CUT}{''.join(pieces[len(pieces) - end :])}"


def _fitting(pieces: Sequence[str], room: int) -> int:
    """How many of the first pieces fit into `room` columns."""
    number = 0
    while number < len(pieces) and (room := room - columns(pieces[number])) >= 0:
        number += 1
    return number


def shorten_all(names: Sequence[Any], length: int = 18) -> list[str]:
    """Names of at most `length` columns, different where the names are.

    They are cut as `shorten` does. Those that it makes equal are cut elsewhere, where they differ; where no
    place tells all of them apart, they end with their number in the list.
    """
    different = list(dict.fromkeys(map(str, names)))
    short = {name: shorten(name, length) for name in different}
    for alike in _equal(short):
        others = {short[name] for name in different if name not in alike}
        for cuts in _other_cuts([clean(name) for name in alike], length):
            if len({*cuts}) == len(alike) and not others & {*cuts}:
                break
        else:
            numbers = [f" {different.index(name) + 1}" for name in alike]
            cuts = [
                f"{_cut(clean(name), length - len(number), length - len(number) - 1)}{number}"
                for name, number in zip(alike, numbers, strict=True)
            ]
        short |= dict(zip(alike, cuts, strict=True))
    return [short[str(name)] for name in names]


def _equal(short: dict[str, str]) -> list[list[str]]:
    """The names that have a short form in common."""
    groups: dict[str, list[str]] = {}
    for name, cut in short.items():
        groups.setdefault(cut, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _other_cuts(names: Sequence[str], length: int) -> Iterator[list[str]]:
    """Ways to cut names, those that keep both ends first, then windows about their first difference."""
    for head in sorted(range(length), key=lambda head: abs(2 * head - length)):
        yield [_cut(name, length, head) for name in names]
    pieces = [clusters(name) for name in names]
    first = next(
        (place for place, signs in enumerate(zip(*pieces, strict=False)) if len({*signs}) > 1),
        min(map(len, pieces)),
    )
    for before in (3, 1, 0):
        yield [_window(each, max(0, first - before), length) for each in pieces]


def _window(pieces: Sequence[str], start: int, length: int) -> str:
    if columns("".join(pieces)) <= length:
        return "".join(pieces)
    room = length - 1 - bool(start)
    number = _fitting(pieces[start:], room)
    ending = CUT if start + number < len(pieces) else ""
    return f"{CUT if start else ''}{''.join(pieces[start : start + number])}{ending}"


def wrap_name(text: str, width: int) -> str:
    """A name on as many lines as it needs, at most three, of `width` columns."""
    name = clean(text)
    letters = max(1, width * len(name) // max(1, columns(name)))
    return "\n".join(textwrap.wrap(name, letters, max_lines=LINES, placeholder=f" {CUT}")) or " "


def wrap_names(names: Sequence[str], width: int) -> list[str]:
    """Each name as `wrap_name` gives it; different names stay different."""
    return [wrap_name(name, width) for name in fit_names(names, width)]


def fit_names(names: Sequence[str], width: int) -> list[str]:
    """The names, shortened beforehand where `wrap_name` would make two of them equal."""
    return tell_apart(names, lambda name: wrap_name(name, width), LINES * width)


def tell_apart(names: Sequence[str], draw: Callable[[str], str], most: int) -> list[str]:
    """The names, shortened where `draw`, which shortens them, would make two of them equal.

    Args:
        names: what is to be drawn; the same name may stand twice.
        draw: what is shown of a name.
        most: columns that it shows at most.
    """
    shown = list(names)
    for room in range(most, LEAST, -1):
        if len({draw(name) for name in shown}) == len({*names}):
            break
        shown = shorten_all(names, room)
    return shown
