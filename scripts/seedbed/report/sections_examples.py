"""Section of the report: what pretraining bought, text by text."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from seedbed.analysis.example_errors import MOST, PLACE
from seedbed.analysis.experiment import Experiment
from seedbed.core.recipes import train_size
from seedbed.core.rows import Row, grouped
from seedbed.core.wording import Words
from seedbed.report.documents.blocks import Block, Bullets, Heading, Paragraph, Table
from seedbed.report.parts import (
    MAX_LISTED,
    cell_word,
    headers,
    literal,
    percent_cell,
)
from seedbed.report.texts import Texts, example_cell

WORDS = Words("report/examples")

SHOWN = 10  # examples of a list
SHARES = ("right_pretrained", "right_random", "label_probability_pretrained", "label_probability_random")
NARROW = ("label", "wrong_confidence_pretrained", "text")  # what narrow screens have room for


@dataclass(frozen=True)
class Listing:
    """One kind of examples that are shown.

    Attributes:
        name: of its table, and of what templates say of it.
        columns: of example_errors.csv, as they are shown before the text.
        belongs: whether a row is of this kind.
        order: sorts the rows, the first one first.
    """

    name: str
    columns: tuple[str, ...]
    belongs: Callable[[Row], bool]
    order: Callable[[Row], Any]

    def of(self, rows: Sequence[Row]) -> list[Row]:
        """The rows of this kind, in their order."""
        return sorted(filter(self.belongs, rows), key=self.order)


def _is_surely_wrong(row: Row) -> bool:
    return row["right_pretrained"] == 0 and row["wrong_confidence_pretrained"] is not None


def _is_right_alone(init: str, other: str) -> Callable[[Row], bool]:
    """Whether most runs of an init get an example right, and most of the other wrong."""

    def holds(row: Row) -> bool:
        right, of_other = row[f"right_{init}"], row[f"right_{other}"]
        return None not in (right, of_other) and right > MOST > of_other

    return holds


def _by_difference(loser: str) -> Callable[[Row], Any]:
    """The largest difference first; of equal ones that where the losing side is surest."""
    return lambda row: (-abs(row["right_difference"]), row[f"label_probability_{loser}"] or 0)


LISTINGS = (
    Listing(
        "surely_wrong",
        ("prediction_pretrained", "wrong_confidence_pretrained", "right_random"),
        _is_surely_wrong,
        lambda row: -row["wrong_confidence_pretrained"],
    ),
    Listing(
        "only_pretrained",
        ("prediction_random", *SHARES),
        _is_right_alone("pretrained", "random"),
        _by_difference("random"),
    ),
    Listing(
        "only_random",
        ("prediction_pretrained", *SHARES),
        _is_right_alone("random", "pretrained"),
        _by_difference("pretrained"),
    ),
)


def shown_examples(experiment: Experiment) -> set[tuple[str, str]]:
    """(dataset, example) of those that `example_section` shows."""
    rows = grouped(experiment.tables.get("example_errors", ()), *PLACE)
    return {
        (row["dataset"], row["example"])
        for gain in _places(experiment)[:MAX_LISTED]
        for listing in LISTINGS
        for row in listing.of(rows.get(_place(gain), ()))[:SHOWN]
    }


def example_section(experiment: Experiment, texts: Texts | None) -> list[Block]:
    """How many texts one init gets right and the other wrong, and the first of them, with their texts.

    Args:
        experiment: its tables.
        texts: of `shown_examples`; None: texts are left out.
    """
    places = _places(experiment)
    rows = grouped(experiment.tables.get("example_errors", ()), *PLACE)
    blocks: list[Block] = []
    for number, gain in enumerate(places[:MAX_LISTED], start=1):
        if len(places) > 1:
            blocks.append(Heading(WORDS.say("place", *_place(gain))))
        blocks.append(Bullets(_counts(gain, rows.get(_place(gain), ()))))
        for listing in LISTINGS:
            blocks += _listed(listing, gain, rows.get(_place(gain), ()), texts, number)
    if blocks:
        note = WORDS.say("note", len(places) - MAX_LISTED, _is_compared(experiment), texts is None)
        blocks.append(Paragraph(note))
    return blocks


def section_name(experiment: Experiment) -> str:
    """The section's heading in data/headings.yaml: runs of one init say nothing of pretraining."""
    return "examples" if _is_compared(experiment) else "examples_of_one_init"


def _is_compared(experiment: Experiment) -> bool:
    """Whether any runs of both inits are there to be compared."""
    return any(gain["gained"] is not None for gain in _places(experiment))


def _places(experiment: Experiment) -> list[Row]:
    """The rows of example_gains.csv that are shown: where sizes of training are swept, of the largest one."""
    families = {
        block["family"]: train_size(block) or math.inf for block in experiment.reporting["recipes"].values()
    }
    largest = max(families.values())
    return [
        row
        for row in experiment.tables.get("example_gains", ())
        if families[row["recipe_family"]] == largest and row["runs_pretrained"]
    ]


def _place(gain: Row) -> tuple[str, ...]:
    return tuple(gain[key] for key in PLACE)


def _counts(gain: Row, rows: Sequence[Row]) -> list[str]:
    """How many texts there are of each kind, beside what the seed alone changes."""
    never = sum(row["right_pretrained"] == 0 for row in rows)
    return WORDS.items("counts", gain, never, gain["gained"] is not None)


def _listed(
    listing: Listing, gain: Row, rows: Sequence[Row], texts: Texts | None, number: int
) -> list[Block]:
    """The table of a kind of examples; none where there are no such examples."""
    found = listing.of(rows)
    if not found:
        return []
    shown = found[:SHOWN]
    named = ("example", "label", *listing.columns, "leaked")
    columns = [name for name in named if any(_cell(row, name) is not None for row in shown)]
    body = [[_cell(row, name) for name in columns] for row in shown]
    pairs = False
    spare: list[int] = []
    if texts is not None:
        columns.append("text")
        for row, cells in zip(shown, body, strict=True):
            cells.append(example_cell(texts[_key(row)]))
        pairs = any(len(texts[_key(row)]) > 1 for row in shown)
        spare = [index for index, name in enumerate(columns) if name not in NARROW]
    probable = any(name.startswith("label_probability") for name in columns)
    caption = WORDS.say("caption", listing.name, gain["dataset"], SHOWN, len(found), pairs, probable)
    header = headers("examples", *columns)
    return [Table(f"{listing.name}_{number}", header, body, caption, spare=spare)]


def _key(row: Row) -> tuple[str, str]:
    return row["dataset"], row["example"]


def _cell(row: Row, column: str) -> Any:
    """What is shown of a column; None of a text that did not leak."""
    value = row[column]
    if column == "leaked":
        return cell_word("yes") if value else None
    return literal(value) if isinstance(value, str) else percent_cell(value)
