"""What a report says, before it is Markdown, HTML or LaTeX: a sequence of plain blocks.

Texts may hold inline Markdown: **bold**, `code` and [text](address); nothing else has a meaning, and line
ends are spaces. Whoever puts a name from the configuration or a text of the data into a text wraps it by
`code()`. Addresses begin with http:// or https://, or are relative; what looks like another link is no link.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seedbed.core.words import NOTHING


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the title of the whole."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """One paragraph."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list; each item is a text."""

    items: Sequence[str]


@dataclass(frozen=True)
class Cell:
    """A cell whose text is not what it is sorted by, or copied as: 79.4% ± 0.8% has the value 0.794.

    A header that names a unit holds for the values, too: 79.4 below `accuracy (%)`, 0.794 below `accuracy`.

    One column that people see may be several when copied. Then its header is a cell, whose `copied` names
    them, and each cell below has a value for each name; such a cell without a value of its own is sorted by
    the first of them. An empty cell is empty in all.
    """

    text: str
    value: float | int | str | None = None
    copied: Sequence[float | int | str | None] = ()


Header = list[str | Cell]


@dataclass(frozen=True)
class Table:
    """A table. A cell is a Cell, or anything that str() shows; None is an empty one.

    The first sentence of the caption says what the table is: it names it to those who cannot see it.
    """

    name: str  # letters, digits and underscores: names files and anchors
    header: Sequence[str | Cell]
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    right: Sequence[int] = ()  # right-aligned columns
    spare: Sequence[int] = ()  # columns that a narrow screen leaves out, as they stand elsewhere, too


@dataclass(frozen=True)
class Figure:
    """A figure of the experiment by its name: figures/NAME.svg and .png."""

    name: str
    title: str
    caption: str = ""  # says what is shown, its unit and n
    details: str = ""  # what marks and bars mean; the page folds them away, others leave them out


@dataclass(frozen=True)
class Code:
    """Text that keeps its lines and spaces."""

    text: str


@dataclass(frozen=True)
class Details:
    """Blocks that a reader opens; Markdown shows them as they are."""

    summary: str
    blocks: Sequence["Block"]


@dataclass(frozen=True)
class Section:
    """A section of level 2 that a reader opens by its heading; headings inside begin at level 3."""

    title: str
    blocks: Sequence["Block"]


Block = Heading | Paragraph | Bullets | Table | Figure | Code | Details | Section


def section(title: str, blocks: Sequence[Block]) -> list[Section]:
    """Blocks with headings from level 2 on as one section; none where there are no blocks."""
    return [Section(title, [_lower(block) for block in blocks])] if blocks else []


def _lower(block: Block) -> Block:
    match block:
        case Heading(text, level):
            return Heading(text, level + 1)
        case Details(summary, inside):
            return Details(summary, [_lower(each) for each in inside])
    return block


@dataclass(frozen=True)
class Span:
    """A piece of a text: kind is text, code, bold or link. Bold and links have spans inside, and no text."""

    kind: str
    text: str = ""
    inside: tuple["Span", ...] = ()
    address: str = ""


# Bold text passes over code, so that ** in a name does not end it.
_INLINE = re.compile(
    r"(?<!`)(?P<ticks>`++)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
    r"|\*\*(?=\S)(?P<bold>(?:`[^`]*`|[^`*]|\*(?!\*))+)(?<=\S)\*\*"
    r"|\[(?P<label>[^\[\]]+)\]\((?P<address>https?://[^\s()]+|(?!//)[^\s():]+)\)"
)


def spans(text: str) -> tuple[Span, ...]:
    """The pieces of a text with inline Markdown, in their order."""
    text = " ".join(text.split("\n"))
    found, end = [], 0
    for match in _INLINE.finditer(text):
        if match.start() > end:
            found.append(Span("text", text[end : match.start()]))
        found.append(_span(match))
        end = match.end()
    if end < len(text):
        found.append(Span("text", text[end:]))
    return tuple(found)


def _span(match: re.Match[str]) -> Span:
    if match["code"]:
        content = match["code"]
        padded = content.startswith(" ") and content.endswith(" ") and content.strip(" ")
        return Span("code", content[1:-1] if padded else content)
    if match["bold"]:
        return Span("bold", inside=spans(match["bold"]))
    return Span("link", inside=spans(match["label"]), address=match["address"])


def plain_text(text: str) -> str:
    """A text without its inline Markdown."""
    return _plain(spans(text))


def _plain(pieces: Sequence[Span]) -> str:
    return "".join(piece.text + _plain(piece.inside) for piece in pieces)


def cell_text(cell: Any) -> str:
    """What people read in a cell."""
    if cell is None:
        return NOTHING
    return cell.text if isinstance(cell, Cell) else str(cell)
