"""Any text that a name holds comes out of Markdown and LaTeX as it went in."""

import re

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from test_documents import Text

from seedbed.core.words import code
from seedbed.report.documents.blocks import Bullets, Paragraph, Span, Table, spans
from seedbed.report.documents.latex import escape
from seedbed.report.documents.markdown import to_markdown

# what Markdown, HTML and LaTeX read as their own, between letters
SIGNS = "\\`*_{}[]()#+-.!|<>&~$%^=:;/\"'@0123456789 "
TEXTS = st.text(st.sampled_from("abcé–−…±" + SIGNS), min_size=1, max_size=24)
LATEX = {
    "textbackslash": "\\", "textasciicircum": "^", "textasciitilde": "~", "textbar": "|", "textless": "<",
    "textgreater": ">", "textendash": "–", "dots": "…", "textquotedbl": '"', "textasciigrave": "`",
}  # fmt: skip


def shown(markdown: str) -> list[str]:
    """The lines that a reader of Markdown with tables sees."""
    rendered = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown)
    return [line for line in Text(rendered).text.split("\n") if line]


@given(TEXTS)
def test_code_is_one_piece_that_holds_the_text(text):
    assert spans(f"x {code(text)} y") == (Span("text", "x "), Span("code", text), Span("text", " y"))


@given(TEXTS.filter(lambda text: text.strip()))
def test_markdown_shows_code_of_any_text(text):
    blocks = [
        Paragraph(f"x {code(text)} y"),
        Bullets([f"x {code(text)} y"]),
        Table("t", ["h"], [[code(text)]]),
    ]
    lines = shown(to_markdown(blocks))
    # Markdown's own rule: a run of spaces in a paragraph is one
    together = " ".join(f"x {text} y".split())
    assert [" ".join(line.split()) for line in lines] == [together, together, "h", " ".join(text.split())]


@given(TEXTS.filter(lambda text: text.strip() and spans(text.strip()) == (Span("text", text.strip()),)))
def test_markdown_shows_any_text_without_markup(text):
    together = " ".join(text.split())
    blocks = [Paragraph(text.strip()), Bullets([text.strip()]), Table("t", ["h"], [[text.strip()]])]
    assert shown(to_markdown(blocks)) == [together, together, "h", together]


def unescape(latex: str) -> str:
    """What TeX shows of text without macros but those of single signs."""
    text = re.sub(r"\$\\pm\$", "±", latex)
    text = re.sub(r"\$-\$", "−", text)
    text = re.sub(r"\\([a-z]+)\{\}", lambda found: f"\0{LATEX[found[1]]}", text)
    bare = re.sub(r"\0.|\\[{}$&#%_]", "", text)
    assert not set(bare) & set("\\$&#%_^~"), f"TeX would read {bare!r}"
    # a brace that is not escaped groups, and shows nothing
    parts = re.findall(r"\0(.)|\\([{}$&#%_])|([{}])|(.)", text)
    return "".join(sign or escaped or plain for sign, escaped, _, plain in parts)


@given(TEXTS)
def test_latex_shows_any_text(text):
    # TeX has two signs for a quotation mark
    assert unescape(escape(text)) == text.replace('"', "''")
