"""Blocks become Markdown, LaTeX and HTML; whatever a name holds comes out as it is."""

import base64
import html.parser
import re
import xml.etree.ElementTree

import pytest
from builders_documents import ACCURACIES, STRANGE, SVG, make_document
from markdown_it import MarkdownIt

from seedbed.core.errors import SeedbedError
from seedbed.core.words import code
from seedbed.report.documents.blocks import (
    Bullets,
    Cell,
    Code,
    Details,
    Figure,
    Heading,
    Paragraph,
    Span,
    Table,
    cell_text,
    spans,
)
from seedbed.report.documents.html import inline_html, to_page
from seedbed.report.documents.latex import to_latex
from seedbed.report.documents.markdown import to_markdown

NASTY = [
    STRANGE,
    "reviews_fr",
    "_x_ and __y__ *z* **",
    "a < b <i> & &amp; &copy",
    "$x$ costs $5",
    "~~gone~~ ~20 s",
    "[x](javascript:alert(1)) [y] (z)",
    "\\*kept\\* C:\\dir \\| \\",
    "a | b || c",
    "# no heading",
    "1. no list",
    "12) no list",
    "- no list",
    "+ no list",
    "> no quotation",
    "---",
    "===",
    "+5.1 points, −3.2 points",
]


class Text(html.parser.HTMLParser):
    """The text of HTML, and the tags that it holds."""

    def __init__(self, markup: str):
        super().__init__()
        self.text, self.tags = "", []
        self.feed(markup)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def shown(markdown: str) -> Text:
    """What a reader of Markdown with tables sees."""
    return Text(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown))


def page(*blocks, figures=None, **more) -> str:
    return to_page("Title", blocks, figures or {}, **more)


def body(markup: str) -> Text:
    """The content of a page, without its head and script."""
    return Text(re.search(r"<main.*</main>", markup, re.DOTALL)[0])


# --- inline texts -------------------------------------------------------------------------------------------


def test_the_pieces_of_a_text():
    assert spans("a **b `c` d** [e `f`](runs.csv) `` g`h `` i") == (
        Span("text", "a "),
        Span("bold", inside=(Span("text", "b "), Span("code", "c"), Span("text", " d"))),
        Span("text", " "),
        Span("link", inside=(Span("text", "e "), Span("code", "f")), address="runs.csv"),
        Span("text", " "),
        Span("code", "g`h"),
        Span("text", " i"),
    )


@pytest.mark.parametrize("text", ["2 ** 3 ** 4", "a ` b", "** a**", "[a] (b)", "``a`", "_a_", "<b>", "[](x)"])
def test_what_is_no_markup_is_text(text):
    assert spans(text) == (Span("text", text),)


@pytest.mark.parametrize("address", ["javascript:alert(1)", "data:text/html,x", "//example.org", "ftp://x"])
def test_an_address_that_is_neither_http_nor_relative_makes_no_link(address):
    assert "link" not in {span.kind for span in spans(f"[a]({address})")}


def test_code_in_bold_may_hold_what_ends_bold():
    assert spans(f"**{code('a**b')}**") == (Span("bold", inside=(Span("code", "a**b"),)),)


def test_code_of_nothing_is_nothing_and_of_lines_one_line():
    assert (code(""), code("a\nb"), code(3)) == ("", "`a b`", "`3`")


def test_the_text_of_a_cell():
    assert [cell_text(cell) for cell in (None, "a", 3, 0, Cell("79.4%", 0.794))] == [
        "–",
        "a",
        "3",
        "0",
        "79.4%",
    ]


# --- Markdown -----------------------------------------------------------------------------------------------


def test_markdown_of_every_block():
    blocks = [
        Heading("Title", 1),
        Paragraph("A **b** `c` [d](runs.csv)."),
        Bullets(["one", "two"]),
        Table("t", ["a", "b"], [["x|y", Cell("5%", 0.05)], [None, 2]], caption="Caption.", right=[1]),
        Figure("f", "A figure", "Says n = 3."),
        Code("x\n  ``` y\n"),
        Details("More", [Heading("Inside", 3), Paragraph("p")]),
    ]
    assert to_markdown(blocks) == (
        "# Title\n\nA **b** `c` [d](runs.csv).\n\n- one\n- two\n\n"
        "Caption.\n\n| a | b |\n| --- | ---: |\n| x\\|y | 5% |\n| – | 2 |\n\n"
        "![A figure](figures/f.svg)\n\n**A figure.** Says n = 3.\n\n"
        "````text\nx\n  ``` y\n````\n\n**More**\n\n### Inside\n\np\n"
    )


@pytest.mark.parametrize("text", NASTY)
def test_markdown_adds_no_markup_to_a_text(text):
    text = text.replace("`", "'")  # backticks are markup
    seen = shown(to_markdown([Paragraph(text), Bullets([text]), Table("t", ["h"], [[text], ["last"]])]))
    assert [line for line in seen.text.split("\n") if line] == [text, text, "h", text, "last"]
    assert {tag for tag, _ in seen.tags} == {"p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"}


def test_markdown_leaves_ordinary_names_and_signs_alone():
    text = "reviews_fr: +5.1 points (95% interval −5.6 to +10.1), a * b, x < 3 & y, [see]"
    assert to_markdown([Paragraph(text)]) == text + "\n"


def test_a_line_end_in_a_cell_or_paragraph_is_a_space():
    assert to_markdown([Table("t", ["h"], [["a\nb"]]), Paragraph("c\n\nd")]).endswith("| a b |\n\nc d\n")


# --- LaTeX --------------------------------------------------------------------------------------------------


def test_latex_of_a_table():
    table = Table(
        "main_result",
        ["init", "test accuracy (%)", "p"],
        [["pretrained", Cell("79.4 ± 0.8", 79.4), None], ["random", "−3.2", "[0.1]"]],
        caption="Accuracy in %, `reviews_fr`; **n** = 3, see [the runs](runs.csv).",
        right=[1, 2],
    )
    assert to_latex(table).split("\n") == [
        r"\begin{table}",
        r"  \centering",
        r"  \caption{Accuracy in \%, \texttt{reviews\_fr}; \textbf{n} = 3, see the runs.}",
        r"  \label{tab:main_result}",
        r"  \begin{tabular}{lrr}",
        r"    \toprule",
        r"    init & test accuracy (\%) & p \\",
        r"    \midrule",
        r"    pretrained & 79.4 $\pm$ 0.8 & \textendash{} \\",
        r"    random & $-$3.2 & {[}0.1{]} \\",
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
        "",
    ]


def test_latex_of_a_table_without_a_caption_has_none():
    assert "caption" not in to_latex(Table("t", ["h"], [[1]]))


# --- HTML ---------------------------------------------------------------------------------------------------


def test_a_page_shows_any_name_as_it_is():
    markup = page(
        Heading(code(STRANGE)),
        Paragraph(code(STRANGE)),
        Code(STRANGE),
        Table("t", [code(STRANGE)], [[code(STRANGE)]], caption=code(STRANGE)),
        Details(code(STRANGE), []),
        subtitle=code(STRANGE),
        lead=[Paragraph(code(STRANGE))],
    )
    assert body(markup).text.count(STRANGE) == 8
    assert not {"b", "i", "em"} & {tag for tag, _ in Text(markup).tags}


def test_a_page_has_one_title_and_a_table_of_contents_that_leads_to_its_sections():
    markup = page(Heading("A `b`"), Heading("C", 3), Heading("D", 4), Heading("A b"), lead=[Heading("First")])
    tags = Text(markup).tags
    assert [tag for tag, _ in tags if tag == "h1"] == ["h1"]
    targets = [values["href"] for tag, values in tags if tag == "a" and values.get("class") != "skip"]
    assert targets == ["#first", "#a-b", "#a-b-2"]
    assert {values.get("id") for _, values in tags} >= {target[1:] for target in targets}


@pytest.mark.parametrize("levels", [[1], [3], [2, 4]])
def test_a_page_refuses_headings_out_of_order(levels):
    with pytest.raises(ValueError, match="a heading of level"):
        page(*(Heading("h", level) for level in levels))


def test_no_two_parts_of_a_page_have_one_anchor():
    table = Table("a", ["h"], [])
    markup = page(*map(Heading, ["A", "A", "?", "!", "Content", "Theme"]), table, table)
    anchors = [values["id"] for _, values in Text(markup).tags if "id" in values]
    assert len(anchors) == len(set(anchors))


def test_the_cells_of_a_page_carry_what_is_sorted_and_copied():
    rows = [[Cell("79.4% ± 0.8%", 0.794), 3, None, "text", "`code`", float("nan"), Cell("–"), Cell("–", 1)]]
    tags = body(page(Table("t", "abcdefgh", rows))).tags
    cells = [values for tag, values in tags if tag in ("th", "td")][8:]
    assert [cell.get("data-value") for cell in cells] == ["0.794", None, "", None, None, None, "", "1"]


def test_what_is_copied_has_at_most_ten_digits():
    rows = [
        [Cell("3.33", 100 * 0.0333), Cell("a", 1 / 3), 0.1 + 0.2, Cell("2", 2.0), Cell("x", 123456789012)]
    ]
    cells = [values for tag, values in body(page(Table("t", "abcde", rows))).tags if tag in ("th", "td")][5:]
    assert [cell.get("data-value") for cell in cells] == [None, "0.3333333333", "0.3", None, "123456789012"]


def test_a_cell_is_copied_as_the_columns_that_its_header_names():
    table = Table(
        "t",
        ["name", Cell("mean (%)", copied=("mean (%)", "sd (points)"))],
        [
            ["a", Cell("58.3 ± 2.3", 58.31, (58.31, 100 * 0.0234))],
            ["b", Cell("9.2", copied=(9.2, None))],
            ["c", None],
        ],
    )
    cells = [values for tag, values in body(page(table)).tags if tag in ("th", "td")]
    assert [cell.get("data-copied") for cell in cells[1::2]] == [
        '["mean (%)", "sd (points)"]',
        '["58.31", "2.34"]',
        '["9.2", ""]',
        None,
    ]
    assert [cell.get("data-value") for cell in cells[1::2]] == [None, "58.31", None, ""]
    assert "| name | mean (%) |\n| --- | --- |\n| a | 58.3 ± 2.3 |" in to_markdown([table])
    assert r"name & mean (\%) \\" in to_latex(table)


@pytest.mark.parametrize("names", [(), ("mean",), ("mean", "sd", "n")])
def test_a_cell_that_is_copied_as_other_columns_than_its_header_names_is_refused(names):
    table = Table("t", [Cell("accuracy", copied=names)], [[Cell("1 ± 2", copied=(1, 2))]])
    with pytest.raises(
        ValueError, match=f"'1 ± 2' is copied as 2 columns, its header as {len(names)}: accuracy"
    ):
        page(table)


def test_a_text_below_a_header_of_several_columns_is_refused():
    with pytest.raises(ValueError, match="'1' is copied as 0 columns, its header as 2: a"):
        page(Table("t", [Cell("a", copied=("b", "c"))], [[1]]))


def test_regions_are_named_by_what_they_hold():
    blocks = [
        Table("internal_name", ["a"], [], caption="Accuracies in `summary.csv`. One row a cell."),
        Table("no_caption", ["a"], []),
        Details("The `configuration`", [Code("x")]),
        Code("y"),
    ]
    tags = body(page(*blocks)).tags
    assert [values["aria-label"] for _, values in tags if values.get("role") == "region"] == [
        "Table 1: Accuracies in summary.csv",
        "Table 2: no caption",
        "Text 1: The configuration",
        "Text 2",
    ]


def test_a_page_marks_headers_of_columns_and_rows():
    tags = body(page(Table("t", ["a", "b"], [[1, 2]], right=[1]))).tags
    assert [values.get("scope") for tag, values in tags if tag == "th"] == ["col", "col", "row"]
    assert [values.get("class") for tag, values in tags if tag in ("th", "td")] == [
        None,
        "right",
        None,
        "right",
    ]


def test_tables_and_figures_are_numbered_in_their_order(tmp_path):
    blocks, figures = make_document(tmp_path)
    text = body(page(*blocks, figures=figures)).text
    assert re.findall(r"(?:Table|Figure) \d\.", text) == [
        "Table 1.",
        "Table 2.",
        "Figure 1.",
        "Table 3.",
        "Figure 2.",
        "Table 4.",
        "Table 5.",
        "Table 6.",
    ]


def test_a_figure_lies_in_the_page(tmp_path):
    blocks, figures = make_document(tmp_path)
    image, folded = (values for tag, values in body(page(*blocks, figures=figures)).tags if tag == "img")
    kind, content = image["src"].split(",")
    assert kind == "data:image/svg+xml;base64"
    assert base64.b64decode(content).decode() == SVG
    assert image["alt"] == ("Test accuracy by seed. Per cent; n = 3 seeds; bars: 95% Student t interval.")
    assert folded["alt"] == "A folded figure"
    assert xml.etree.ElementTree.fromstring(SVG).tag.endswith("svg")


def test_a_figure_that_was_not_drawn_is_named():
    with pytest.raises(SeedbedError, match="figure lost, which was not drawn"):
        page(Figure("lost", "Lost"))


def test_the_same_blocks_make_the_same_page():
    assert page(ACCURACIES) == page(ACCURACIES)


def test_a_power_of_ten_is_never_broken_and_nothing_else_is_marked():
    found = str(inline_html("learning rate 1e-5 & <b>"))
    assert found == 'learning rate <span class="whole">1e-5</span> &amp; &lt;b&gt;'
    assert "whole" not in str(inline_html("re-run the e-mail of 2-3 seeds"))
