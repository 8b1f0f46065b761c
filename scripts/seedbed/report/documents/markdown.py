"""Blocks as Markdown that GitHub shows as meant and that can be read as it is."""

import re
from collections.abc import Sequence

from seedbed.core.words import code
from seedbed.report.documents.blocks import (
    Block,
    Bullets,
    Code,
    Details,
    Figure,
    Heading,
    Paragraph,
    Section,
    Span,
    Table,
    cell_text,
    spans,
)

# Punctuation that Markdown would take for markup where it stands; `reviews_fr` and `a * b` need no backslash.
_MARKUP = re.compile(
    r"\\(?=[!-/:-@\[-`{-~])"  # a backslash that would escape what follows
    r"|[`~$]"
    r"|(?<!\s)\*|\*(?!\s)"
    r"|(?<![^\W_])_|_(?![^\W_])"
    r"|<(?=[A-Za-z/!?])"
    r"|&(?=#?\w+;)"
    r"|\](?=\()"
)
# What would make a paragraph a list, a heading or a quotation; the number of a list comes first.
_LINE_START = re.compile(r"(\d+)(?=[.)](?:\s|$))|(?=[-+*](?:\s|$)|#{1,6}(?:\s|$)|>|=+\s*$|-{3,})")


def to_markdown(blocks: Sequence[Block]) -> str:
    """A document as Markdown, with a line end at its end.

    Tables have their caption above them, figures lie in figures/ beside the file. Details are shown open.
    """
    return "\n\n".join(part for block in blocks for part in _parts(block)) + "\n"


def _parts(block: Block) -> list[str]:
    match block:
        case Heading(text, level):
            return [f"{'#' * level} {_inline(text)}"]
        case Paragraph(text):
            return [_paragraph(text)]
        case Bullets(items):
            return ["\n".join(f"- {_paragraph(item)}" for item in items)]
        case Table():
            return [*([_paragraph(block.caption)] if block.caption else []), _table(block)]
        case Figure(name, title, caption):
            image = f"![{_inline(title)}](figures/{name}.svg)"
            return [image, f"**{_inline(title)}.** {_inline(caption)}".rstrip()]
        case Code(text):
            return [_fenced(text)]
        case Section(title, inside):
            return [f"## {_inline(title)}", *(part for each in inside for part in _parts(each))]
        case Details(summary, inside):
            return [f"**{_inline(summary)}**", *(part for each in inside for part in _parts(each))]


def _paragraph(text: str) -> str:
    shown = _inline(" ".join(text.split()))
    start = _LINE_START.match(shown)
    return f"{shown[: start.end()]}\\{shown[start.end() :]}" if start else shown


def _inline(text: str) -> str:
    return "".join(_piece(span) for span in spans(text))


def _piece(span: Span) -> str:
    inside = "".join(_piece(piece) for piece in span.inside)
    match span.kind:
        case "code":
            return code(span.text)
        case "bold":
            return f"**{inside}**"
        case "link":
            return f"[{inside}]({span.address})"
    return _MARKUP.sub(lambda match: "\\" + match[0], span.text)


def _table(table: Table) -> str:
    rule = ["---:" if index in table.right else "---" for index in range(len(table.header))]
    rows = [[_cell(cell_text(cell)) for cell in row] for row in (table.header, *table.rows)]
    lines = [rows[0], rule, *rows[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    """A cell on one line; within a table a backslash before | holds in code, too."""
    return _inline(" ".join(text.split())).replace("|", "\\|")


def _fenced(text: str) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"
