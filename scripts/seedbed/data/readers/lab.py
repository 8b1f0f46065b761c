"""Read the lab's layout: NAME.review and NAME.label, one example per line."""

from collections.abc import Mapping, Sequence
from typing import Any

from seedbed.core import spelling
from seedbed.core.errors import SeedbedError
from seedbed.data.readers.files import Place, Record, SourceFile, lines_of, named_columns


def read_lab(review: SourceFile, label: SourceFile, definition: Mapping[str, Any]) -> list[Record]:
    """Read a file of texts and one of labels.

    Raises:
        SeedbedError: a line is empty, or the files differ in length.
    """
    texts, labels = lines_of(review), lines_of(label)
    if len(texts) != len(labels):
        suspect = _suspect_line(review, texts, label, labels, definition["labels"])
        raise SeedbedError(
            "the files of texts and of labels differ in length",
            where=f"{review.path} and {label.where}",
            found=f"{len(texts)} texts and {len(labels)} labels{suspect}",
            hint="line k of one belongs to line k of the other: find the line that is missing or broken",
        )
    first, *others = named_columns(definition)
    empty = dict.fromkeys(others, "")
    return [
        Record(
            Place(review, number),
            {first: text, **empty, definition["columns"]["label"]: value},
            Place(label, number),
        )
        for number, (text, value) in enumerate(zip(texts, labels, strict=True), 1)
    ]


def _suspect_line(
    review: SourceFile, texts: list[str], label: SourceFile, labels: list[str], declared: Sequence[str]
) -> str:
    """The first clearly wrong line, if any: an undeclared label, a label among texts, or a CR."""
    known = set(map(spelling.normal, declared))

    def is_label(line: str) -> bool:
        return spelling.normal(line.strip()) in known

    for file, lines, wrong, what in (
        (label, labels, lambda line: not is_label(line), "is not a declared label"),
        (review, texts, is_label, "is a label, not a text"),
        (review, texts, lambda line: "\r" in line.strip(), "has a CR: it may have been two lines"),
    ):
        for number, line in enumerate(lines, 1):
            if wrong(line):
                return f"; {file.path.name}, line {number}, {what}: {line[:40]!r}"
    return ""
