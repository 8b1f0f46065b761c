"""A document on one screen of a terminal: the lines that it opens with, its first table, where more is."""

import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

LINES = 25  # of a screen
FEWEST_ROWS = 4  # of the table, however much stands above it


def screen(
    found: Mapping[str, Any], places: Sequence[str], rest: str, width: int, lines: int | None = LINES
) -> str:
    """The opening, the table and the places of more, in so many lines unless one question alone takes more.

    Args:
        found: as `report.summary.facts_of` makes it.
        places: the last lines.
        rest: the file with what finds no room, in words.
        width: columns of the terminal.
        lines: of the terminal; None: as many as it takes.
    """
    head, rows, caption = _table(found["table"], width)
    below = ["", *places] if places else []
    room = (sys.maxsize if lines is None else lines) - 1 - len(head) - len(caption) - len(below)
    opening = _opening(found, width, room - min(len(rows), FEWEST_ROWS), rest)
    rows = _cut([[row] for row in rows], room - len(opening), rest)
    return "\n".join([*opening, "", *head, *rows, *caption, *below])


def _opening(found: Mapping[str, Any], width: int, room: int, rest: str) -> list[str]:
    """The lines of the opening behind their labels; where they are too many the answers alone."""
    lead = textwrap.wrap(found["lead"], width)
    groups, others = found["groups"], labelled(_pairs(found["others"]), width)
    whole = [
        [*([one["place"]] if one["place"] else []), *labelled(_pairs(one["lines"]), width)] for one in groups
    ]
    room -= len(lead) + len(others)
    if len(groups) > 1 and sum(map(len, whole)) > room:
        answers = [(one["place"], one["lines"][0]["text"]) for one in groups]
        indent = _indent(answers)
        whole = [labelled([answer], width, indent) for answer in answers]
    told = whole[0] if len(whole) == 1 else _cut(whole, room, rest)
    return [*lead, *told, *others]


def _cut(items: Sequence[Sequence[str]], room: int, rest: str) -> list[str]:
    """The lines of the items that find room; where some do not, the last line counts them."""
    lines = [line for item in items for line in item]
    if len(lines) <= room:
        return lines
    shown: list[str] = []
    for number, item in enumerate(items):
        if number and len(shown) + len(item) > room - 1:
            return [*shown, f"and {len(items) - number} more in {rest}"]
        shown += item
    return shown


def _pairs(lines: Sequence[Mapping[str, str]]) -> list[tuple[str, str]]:
    return [(line["label"], line["text"]) for line in lines]


def _indent(lines: Sequence[tuple[str, str]]) -> int:
    return max((len(label) for label, _ in lines), default=0) + 2


def labelled(lines: Sequence[tuple[str, str]], width: int, indent: int | None = None) -> list[str]:
    """Texts behind their labels, wrapped."""
    indents = dict.fromkeys(("initial_indent", "subsequent_indent"), " " * (indent or _indent(lines)))
    told = []
    for label, text in lines:
        first, *more = textwrap.wrap(text, width, break_on_hyphens=False, **indents)
        told += [label + first[len(label) :], *more]
    return told


def _table(found: Mapping[str, Any], width: int) -> tuple[list[str], list[str], list[str]]:
    """Header, rows and caption of a table, aligned; headers are as wide as their columns."""
    columns = list(zip(found["header"], *found["rows"], strict=True))
    widths = [max(map(len, [*name.split(), *cells])) for name, *cells in columns]
    names = [textwrap.wrap(name, size) for (name, *_), size in zip(columns, widths, strict=True)]
    deepest = max(map(len, names))
    header = zip(*([""] * (deepest - len(name)) + name for name in names), strict=True)
    head, rows = (
        ["  ".join(map(str.ljust, row, widths)).rstrip() for row in lines]
        for lines in ([*header, ["-" * size for size in widths]], found["rows"])
    )
    return head, rows, textwrap.wrap(found["caption"], width)
