"""The texts of test examples that the report shows: how they are read, and how they are cut."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from seedbed.core.files import read_jsonl
from seedbed.data.texts import parts
from seedbed.report.documents.blocks import Cell
from seedbed.report.parts import literal

TEXT_LENGTH = 240  # characters of a test example that are shown
BETWEEN = " ‖ "  # the texts of a pair

# the text of each example, or both texts of a pair, by (dataset, example)
Texts = Mapping[tuple[str, str], Sequence[str]]


def read_texts(wanted: Collection[tuple[str, str]], files: Iterable[str | Path]) -> Texts:
    """The texts of some test examples.

    Args:
        wanted: (dataset, example) of each.
        files: prepared test split of every dataset, .../DATASET/test.jsonl.
    """
    datasets = {dataset for dataset, _ in wanted}
    texts: dict[tuple[str, str], Sequence[str]] = {}
    for file in files:
        dataset = Path(file).parent.name
        if dataset in datasets:
            keyed = (((dataset, example["id"]), example) for example in read_jsonl(file))
            texts |= {key: parts(example) for key, example in keyed if key in wanted}
    return texts


def example_cell(texts: Sequence[str]) -> Cell:
    """A text, or both texts of a pair, with as many letters together; copied whole."""
    whole = [one_line(text) for text in texts]
    shown = [literal(shorten(text, TEXT_LENGTH // len(whole))) for text in whole]
    return Cell(BETWEEN.join(shown), BETWEEN.join(whole))


def one_line(text: str) -> str:
    """A text with one space in place of each line end and run of white space."""
    return " ".join(text.split())


def shorten(text: str, length: int = TEXT_LENGTH) -> str:
    """A text on one line of so many characters at most, cut between words where the language has spaces."""
    text = one_line(text)
    if len(text) <= length:
        return text
    start = text[: length - 1]  # one for the sign
    words, _, last = start.rpartition(" ")
    return f"{words if words and len(last) < length // 2 else start}…"
