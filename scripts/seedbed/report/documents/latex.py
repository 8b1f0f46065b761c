"""Tables as LaTeX, for documents that load booktabs and are written in UTF-8."""

import re
from collections.abc import Sequence
from typing import Any

from seedbed.report.documents.blocks import Span, Table, cell_text, spans

# What LaTeX would take for markup, and signs of the tables that its default fonts lack. Without the braces
# around [ and *, the \\ before a row that begins with one would take it for its own.
_SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    '"': "''",
    "`": r"\textasciigrave{}",
    "\N{NO-BREAK SPACE}": "~",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "†": r"\textdagger{}",
    "‡": r"\textdaggerdbl{}",
    "…": r"\dots{}",
}
_SIGN = re.compile("|".join(re.escape(sign) for sign in _SIGNS))


def to_latex(table: Table) -> str:
    """A table as LaTeX: a float with caption and label `tab:NAME`, its rules by booktabs, a row a line.

    A document that uses it says \\usepackage{booktabs}.
    """
    columns = "".join("r" if index in table.right else "l" for index in range(len(table.header)))
    lines = [r"\begin{table}", r"  \centering"]
    lines += [rf"  \caption{{{_inline(table.caption)}}}"] if table.caption else []
    lines += [rf"  \label{{tab:{table.name}}}", rf"  \begin{{tabular}}{{{columns}}}", r"    \toprule"]
    lines += [_row(table.header), r"    \midrule", *(_row(row) for row in table.rows)]
    lines += [r"    \bottomrule", r"  \end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[Any]) -> str:
    return f"    {' & '.join(_inline(cell_text(cell)) for cell in cells)} \\\\"


def _inline(text: str) -> str:
    return "".join(_piece(span) for span in spans(text))


def _piece(span: Span) -> str:
    inside = "".join(_piece(piece) for piece in span.inside)
    match span.kind:
        case "code":
            return rf"\texttt{{{escape(span.text)}}}"
        case "bold":
            return rf"\textbf{{{inside}}}"
        case "link":
            return inside
    return escape(span.text)


def escape(text: str) -> str:
    """A text as LaTeX shows it unchanged."""
    return _SIGN.sub(lambda match: _SIGNS[match[0]], text)
