"""Blocks as one HTML page that holds all it shows: style, script, figures. It needs no network."""

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from seedbed.core.errors import SeedbedError
from seedbed.report.documents.blocks import (
    NOTHING,
    Block,
    Bullets,
    Cell,
    Code,
    Details,
    Figure,
    Heading,
    Paragraph,
    Section,
    Span,
    Table,
    cell_text,
    plain_text,
    spans,
)

PAGE = Path(__file__).with_name("page")
LONG_CELL = 40  # characters; a longer cell is broken into lines, a shorter one never
TALL_TABLE = 25  # rows; a longer table scrolls below its header
SHORT_TABLE = 12  # rows; a longer table may go on on the next page of paper
WIDE_TABLE = 8  # columns; a wider table is printed smaller
WIDEST_TABLE = 11  # columns; a wider table is printed as small as can be read
DIGITS = 10  # significant digits of a copied number: more are the rounding errors of a computer
WHOLE = re.compile(
    r"\d(?:\.\d+)?e-\d+|\d+%\s\w+(?=\s\()"
)  # 1e-5, 95% interval (points): a line never ends within
DEEPEST_LISTED = 2  # level of headings in the table of contents
KINDS = (Heading, Paragraph, Bullets, Table, Figure, Code, Details, Section)


def to_page(
    title: str,
    blocks: Sequence[Block],
    figures: Mapping[str, str | Path],
    *,
    subtitle: str = "",
    lead: Sequence[Block] = (),
    first: Sequence[Block] = (),
) -> str:
    """A document as one HTML page.

    Args:
        title: the page's only heading of level 1.
        blocks: what follows; headings begin at level 2 and leave no level out.
        figures: path of the SVG of each figure that the blocks name.
        subtitle: a text below the title.
        lead: blocks in a box at the top: the answer.
        first: figures and tables below it, beside each other where there is room.

    Raises:
        SeedbedError: for a figure without a file.
        ValueError: for headings that leave a level out; for a cell that is copied as other columns than its
            header names.
    """
    page = _Page(figures)
    headings = list(_headings([*lead, *first, *blocks]))
    _check_levels(headings)
    anchors = [page.name(plain_text(heading.text)) for heading in headings]
    script, style = ((PAGE / name).read_text(encoding="utf-8") for name in ("page.js", "style.css"))
    return page.template().render(
        title=title,
        subtitle=subtitle,
        lead=lead,
        first=first,
        blocks=blocks,
        contents=[pair for pair in zip(headings, anchors, strict=True) if pair[0].level <= DEEPEST_LISTED],
        next_anchor=iter(anchors).__next__,  # the template comes to the headings in the same order
        style=Markup(style),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


class _Page:
    """What a page needs to know while it is rendered: the anchors that are taken, the running numbers."""

    def __init__(self, figures: Mapping[str, str | Path]):
        self.figures = figures
        self.taken = {"content", "theme"}  # of the template itself
        self.counts: dict[str, int] = {}

    def template(self) -> jinja2.Template:
        """The page's template, with the filters, tests and functions that it uses."""
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(PAGE),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters |= {
            "inline": inline_html,
            "plain": plain_text,
            "cell": _cell,
            "cell_text": cell_text,
            "columns": _columns,
            "sentence": _first_sentence,
            "classes": _classes,
            "column_classes": _column_classes,
        }
        environment.tests |= {kind.__name__.lower(): _is_a(kind) for kind in KINDS}
        environment.globals |= {
            "image": self.image,
            "name": self.name,
            "number": self.number,
        }
        return environment.get_template("template.html.j2")

    def name(self, text: str) -> str:
        """An anchor made of the text, which no other part of the page has."""
        base = re.sub(r"\W+", "-", text.lower()).strip("-") or "part"
        anchor, number = base, 1
        while anchor in self.taken:
            number += 1
            anchor = f"{base}-{number}"
        self.taken.add(anchor)
        return anchor

    def number(self, kind: str) -> int:
        """The running number of tables, figures and texts that keep their lines."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return self.counts[kind]

    def image(self, name: str) -> str:
        """The SVG of a figure as a data URI."""
        path = self.figures.get(name)
        if path is None or not Path(path).is_file():
            raise SeedbedError(
                f"the report shows figure {name}, which was not drawn",
                where=str(path or ""),
                found=f"figures: {', '.join(sorted(self.figures)) or 'none'}",
            )
        return f"data:image/svg+xml;base64,{base64.b64encode(Path(path).read_bytes()).decode()}"


def _is_a(kind: type) -> Any:
    return lambda block: isinstance(block, kind)


def _headings(blocks: Sequence[Block]) -> Iterator[Heading]:
    for block in blocks:
        if isinstance(block, Heading):
            yield block
        elif isinstance(block, Section):
            yield Heading(block.title)
            yield from _headings(block.blocks)
        elif isinstance(block, Details):
            yield from _headings(block.blocks)


def _check_levels(headings: Sequence[Heading]) -> None:
    level = 1
    for heading in headings:
        if not 2 <= heading.level <= level + 1:
            raise ValueError(f"a heading of level {heading.level} follows one of {level}: {heading.text}")
        level = heading.level


# --- texts and cells ----------------------------------------------------------------------------------------


def inline_html(text: str) -> Markup:
    """A text with inline Markdown as HTML; everything else in it is shown as it is."""
    return Markup("").join(_piece(span) for span in spans(text))


def _piece(span: Span) -> Markup:
    inside = Markup("").join(_piece(piece) for piece in span.inside)
    match span.kind:
        case "code":
            return Markup("<code>{}</code>").format(span.text)
        case "bold":
            return Markup("<strong>{}</strong>").format(inside)
        case "link":
            return Markup('<a href="{}">{}</a>').format(span.address, inside)
    return Markup(WHOLE.sub(r'<span class="whole">\g<0></span>', str(escape(span.text))))


def _first_sentence(text: str) -> str:
    """The first sentence of a text, without inline Markdown and full stop."""
    return re.split(r"\.\s", plain_text(text), maxsplit=1)[0].removesuffix(".")


def _classes(table: Table) -> str:
    """Classes of a table, by which it finds room on screen and paper."""
    rows, columns = len(table.rows), len(table.header)
    found = {
        "tall": rows > TALL_TABLE,
        "short": rows <= SHORT_TABLE,
        "wide": columns > WIDE_TABLE,
        "widest": columns > WIDEST_TABLE,
        "prose": any(_is_long(cell) for row in table.rows for cell in row),
    }
    return " ".join(["table", *(name for name, holds in found.items() if holds)])


def _column_classes(table: Table, column: int) -> str:
    """Classes of the cells of a column: where it is aligned, and whether narrow screens leave it out."""
    found = {"right": table.right, "spare": table.spare}
    return " ".join(name for name, columns in found.items() if column in columns)


def _is_long(cell: Any) -> bool:
    return len(plain_text(cell_text(cell))) > LONG_CELL


def _columns(header: str | Cell) -> str | None:
    """The names of the columns that a column becomes when copied, as JSON, where it is not copied as one."""
    return json.dumps(list(header.copied)) if isinstance(header, Cell) and header.copied else None


def _cell(cell: Any, header: str | Cell) -> dict[str, Any]:
    """What the template shows of a cell: its text, its value where that is not its text (sorted by, and
    copied), and its values as JSON where its header is copied as several columns."""
    text = cell_text(cell)
    shown = plain_text(text)
    parts = _parts(cell, header)
    value = cell.value if isinstance(cell, Cell) else cell if isinstance(cell, float) else None
    if _is_missing(value) and parts:
        value = cell.copied[0]
    if _is_missing(value):
        value = "" if text == NOTHING else shown
    return {
        "text": text,
        "value": None if _exact(value) == shown else _exact(value),
        "copied": json.dumps(parts) if parts else None,
        "long": _is_long(cell),
    }


def _parts(cell: Any, header: str | Cell) -> list[str]:
    """What a cell is copied as, where its header is copied as several columns and the cell is not empty."""
    names = header.copied if isinstance(header, Cell) else ()
    parts = cell.copied if isinstance(cell, Cell) else ()
    if len(parts) == len(names) or (not parts and cell_text(cell) == NOTHING):
        return [_exact(part) for part in parts]
    raise ValueError(
        f"the cell {cell_text(cell)!r} is copied as {len(parts)} columns, its header as {len(names)}: "
        f"{cell_text(header)}"
    )


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _exact(value: Any) -> str:
    """A value as it is copied."""
    if _is_missing(value):
        return ""
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)
