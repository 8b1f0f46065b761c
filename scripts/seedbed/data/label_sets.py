"""The labels of texts that may have any number of them: read from lists, from divided cells, or from columns.

A set of labels is a tuple with 1 for each label that a text has and 0 for the others, in the declared order.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from seedbed.core.spelling import nearest
from seedbed.data import labels
from seedbed.data.readers.files import Place, Record, raise_first

LabelSet = tuple[int, ...]
Cells = Sequence[tuple[Place, Any]]

SEPARATORS = (";", "|", ",", "\t", " ")  # that a message proposes
# what a cell means in a column of one label
HELD = {Decimal(1): 1, Decimal(0): 0, ("true",): 1, ("false",): 0}


def read(records: Sequence[Record], definition: Mapping[str, Any], key: str) -> list[LabelSet]:
    """The set of labels of each record.

    Args:
        records: with the cells of the dataset's columns.
        definition: the dataset's block: columns.label, labels, and label_separator if cells are divided.
        key: the dataset's key of labels in the config, for messages.

    Raises:
        SeedbedError: labels are missing, of a wrong type, undeclared or repeated; or a cell is text although
            the dataset has no separator.
    """
    column = definition["columns"]["label"]
    if isinstance(column, list):
        return _of_columns(records, column)
    cells = [(record.label_place or record.place, record.cells[column]) for record in records]
    listed = _listed(cells, definition.get("label_separator"))
    _refuse_other_types(listed)
    return _of_lists(listed, definition, key)


def spelled(label_set: Sequence[int], names: Sequence[str]) -> list[str]:
    """The names of the labels in a set, in the declared order."""
    return [name for name, held in zip(names, label_set, strict=True) if held]


# --- a column for each label --------------------------------------------------------------------------------


def _of_columns(records: Sequence[Record], columns: Sequence[str]) -> list[LabelSet]:
    wrong = [
        (record.place, f"{labels.label_text(record.cells[column])!r} in column {column!r}")
        for record in records
        for column in columns
        if _held(record.cells[column]) is None
    ]
    raise_first(
        "a cell in the column of a label is neither 1 nor 0",
        wrong,
        "give 1 or true where a text has the label, and 0 or false where it has not",
    )
    return [tuple(_held(record.cells[column]) or 0 for column in columns) for record in records]


def _held(value: Any) -> int | None:
    return HELD.get(labels.meaning(labels.label_text(value)))


# --- one column of labels -----------------------------------------------------------------------------------


def _listed(cells: Cells, separator: str | None) -> list[tuple[Place, list[Any]]]:
    """Each cell as a list of labels."""
    if separator is None:
        missing = [(place, repr(labels.label_text(value))) for place, value in cells if _is_nothing(value)]
        raise_first(
            "the labels of a text are missing", missing, "write an empty list for a text without labels: []"
        )
        text = [(place, value) for place, value in cells if isinstance(value, str)]
        proposed = next((mark for mark in SEPARATORS for _, value in text if mark in value), SEPARATORS[0])
        raise_first(
            "labels are text, and the dataset has no label_separator",
            [(place, repr(value)) for place, value in text],
            f'say what divides the labels of a cell: label_separator: "{proposed}"; or give lists, as jsonl, '
            "json and Parquet files can",
        )
        single = [(place, labels.label_text(value)) for place, value in cells if not isinstance(value, list)]
        raise_first("the labels of a text are not a list", single, 'give a list of labels: ["a", "b"], or []')
    return [(place, _divided(value, separator)) for place, value in cells]


def _divided(value: Any, separator: str | None) -> list[Any]:
    if isinstance(value, list):
        return value
    if _is_nothing(value):
        return []
    if isinstance(value, str) and separator is not None:
        return [part.strip() for part in value.split(separator)]
    return [value]


def _is_nothing(value: Any) -> bool:
    return value is None or value != value or (isinstance(value, str) and not value.strip())


def _refuse_other_types(listed: Sequence[tuple[Place, list[Any]]]) -> None:
    wrong = [
        (place, f"{labels.label_text(value)} among {labels.label_text(values)}")
        for place, values in listed
        for value in values
        if not isinstance(value, str | int | float)
    ]
    raise_first(
        "a label is neither text nor a number", wrong, "give each label as text, a number or true or false"
    )


def _of_lists(
    listed: Sequence[tuple[Place, list[Any]]], definition: Mapping[str, Any], key: str
) -> list[LabelSet]:
    classes, number = labels.Classes(definition), len(definition["labels"])
    found = [(place, values, [classes.find(value) for value in values]) for place, values in listed]
    _refuse_undeclared(found, definition, key)
    repeated = [
        (place, labels.label_text(values)) for place, values, codes in found if len(set(codes)) < len(codes)
    ]
    raise_first("a text has a label twice", repeated, "name each label of a text once")
    return [tuple(int(code in codes) for code in range(number)) for _, _, codes in found]


def _refuse_undeclared(
    found: Sequence[tuple[Place, list[Any], list[int | None]]], definition: Mapping[str, Any], key: str
) -> None:
    unknown = [
        (place, labels.label_text(value))
        for place, values, codes in found
        for value, code in zip(values, codes, strict=True)
        if code is None
    ]
    if not unknown:
        return
    declared = labels.declared_values(definition)
    names = sorted({label for _, label in unknown})
    raise_first(
        "a label is not among the declared ones",
        [(place, repr(label)) for place, label in unknown],
        f"{nearest(unknown[0][1], declared, 0.5)}{labels.about_quotes(names, declared)}declared labels: "
        f"{labels.describe(definition)}; correct the file or {key}",
    )
