"""A made-up document of every kind of block, with what breaks pages: long words, strange names."""

from pathlib import Path

from seedbed.core.words import code
from seedbed.report.documents.blocks import (
    Bullets,
    Cell,
    Code,
    Details,
    Figure,
    Heading,
    Paragraph,
    Table,
)

STRANGE = "<b>a|b</b> & $x_1$ *y* `z` \\n #%~^{}"  # a name that every format would take for markup
LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 2
ANSWER = Paragraph(
    "On `reviews_fr`, **pretraining helps with fairseq** and these runs cannot tell the inits apart with "
    "transformers: pretrained minus random test accuracy is +5.1 points with fairseq (95% interval +1.4 to "
    "+8.8, 3 seeds a side) and +2.3 points with transformers (95% interval −5.6 to +10.1, 3 seeds a side)."
)
ACCURACIES = Table(
    "accuracies",
    ["framework", "init", "test accuracy", "seeds", "note"],
    [
        ["fairseq", "pretrained", Cell("58.3% ± 2.3%", 0.583), 3, None],
        ["fairseq", "random", Cell("9.2% ± 3.8%", 0.092), 12, 'says "no", twice'],
        ["transformers", "pretrained", Cell("60.2% ± 3.4%", 0.602), 5, code(STRANGE)],
        ["transformers", "random", Cell("–", None), 1, "**bold**"],
    ],
    caption="Mean ± sample standard deviation over seeds, by `framework` and init.",
    right=[2, 3],
)
PAIRS = Table(
    "pairs",
    [
        "framework",
        Cell("test accuracy (%)", copied=("mean (%)", "sd (points)")),
        Cell("interval (points)", copied=("low (points)", "high (points)")),
        "text",
    ],
    [
        [
            "fairseq",
            Cell("58.3 ± 2.3", 58.3, (100 * 0.583, 2.34)),
            Cell("+1.2 to +4.6", copied=(1.2, 4.6)),
            "a",
        ],
        ["transformers", Cell("9.2", 9.2, (9.2, None)), None, Cell("one two…", "one two three")],
        ["another", Cell("–"), Cell("−2.0 to +0.5", copied=(-2.0, 0.5)), 100 * 0.0333],
    ],
    caption="Means with their spread. Intervals of 95%.",
    right=[1, 2],
)
NOTES = Table(
    "notes",
    ["option", "value", "default", "meaning", "one flag", "other flag", "note"],
    [
        [
            code("attention_dropout"),
            code("polynomial"),
            code("polynomial"),
            "What the option means, in a sentence that has its length. " * 2,
            ", ".join([code("--a-long-name-of-a-flag-of-one"), code("--another-long-name")]),
            code("--a_long_name_of_a_flag_of_the_other"),
            "What to know beside it, in a sentence that has its length. " * 3,
        ]
    ],
    caption="Names and sentences.",
)
WIDE = Table(
    "wide_table",
    [f"column {index} (points)" for index in range(1, 15)],
    [
        [f"row {row}", *(Cell(f"{row * step - 40:+.1f}", row * step - 40) for step in range(13))]
        for row in range(8)
    ],
    caption="Fourteen columns. "
    + "The caption is longer than a small screen is wide, and stays in sight. " * 3,
    right=range(1, 14),
)
LONG_TABLE = Table(
    "three_hundred_rows",
    ["example", "text", "wrong runs"],
    [
        [row, f"{'A review that goes on and on. ' * (row % 4)}{LONG if row == 7 else 'End.'}", row % 13]
        for row in range(300)
    ],
    caption="Three hundred rows.",
    right=[0, 2],
)
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="460pt" height="200pt" viewBox="0 0 460 200">'
    '<rect width="460" height="200" fill="white"/><path d="M20 180L440 20" stroke="black"/></svg>'
)


def make_document(folder: Path) -> tuple[list, dict[str, Path]]:
    """Blocks, and the figures that they name."""
    figure, small = folder / "a_figure.svg", folder / "small_figure.svg"
    figure.write_text(SVG, encoding="utf-8")
    small.write_text(
        SVG.replace('width="460pt" height="200pt"', 'width="115pt" height="50pt"'), encoding="utf-8"
    )
    blocks = [
        Heading("Test accuracy"),
        Paragraph(f"A [link](https://example.org/a?b=1&c=2), a name {code(STRANGE)}, and {code(LONG)}."),
        ACCURACIES,
        Heading("Details & more", 3),
        Paragraph(f"A paragraph with one long word: {LONG}"),
        Bullets(["one", "two with **bold** and `code`", f"three {LONG}"]),
        WIDE,
        Heading("A figure"),
        Figure("a_figure", "Test accuracy by seed", "Per cent; n = 3 seeds; bars: 95% Student t interval."),
        Heading(f"Strange {code(STRANGE)} {LONG}"),
        Details(
            "The configuration",
            [
                Code("key: <value>\n  long: " + "x" * 300),
                Table("one_row", ["a"], [[1]]),
                Figure("small_figure", "A folded figure"),
            ],
        ),
        PAIRS,
        NOTES,
        Heading("Test accuracy"),
        LONG_TABLE,
    ]
    return blocks, {"a_figure": figure, "small_figure": small}
