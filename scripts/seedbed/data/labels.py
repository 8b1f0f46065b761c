"""The class of a label: by its text, by its meaning as a number or a truth value, or by its group."""

import collections
import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from seedbed.core import spelling

# as in JSON: 01 is a code and no number
NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d*)(?:\.\d*)?(?:[eE][+-]?\d{1,3})?")
TRUTH = ("true", "false")
MISSING = frozenset({"", "nan", "null", "none", "na", "n/a", "<na>"})
# what YAML 1.1 reads as true and false without quotes, beside these words themselves
SWITCHES = frozenset({"yes", "no", "on", "off"})
OCTAL = re.compile(r"0[0-7]+")  # how YAML 1.1 reads a whole number that begins with 0
FOR_SETS = "task: multilabel"  # of a dataset whose texts have any number of labels
BOUNDS = {
    "above": lambda value, bound: value > bound,
    "at_least": lambda value, bound: value >= bound,
    "below": lambda value, bound: value < bound,
    "at_most": lambda value, bound: value <= bound,
}


class Classes:
    """Finds the class of a label.

    A label equals a declared one as text, in any form of Unicode; else as a number (1.0 is 1) or a truth
    value (True is true), if it means exactly one declared one; else it is in a group by its bounds.

    Args:
        definition: the dataset's block: `labels`, and `groups` if the values of each are listed or bounded.
    """

    def __init__(self, definition: Mapping[str, Any]):
        groups = definition.get("groups") or [[label] for label in definition["labels"]]
        self._by_text: dict[str, int] = {}
        self._by_meaning: dict[Any, set[int]] = collections.defaultdict(set)
        self._bounds = [(index, group) for index, group in enumerate(groups) if isinstance(group, Mapping)]
        for index, group in enumerate(groups):
            for text in () if isinstance(group, Mapping) else group:
                self._by_text[spelling.normal(text)] = index
                if (meant := meaning(text)) is not None:
                    self._by_meaning[meant].add(index)

    def find(self, value: Any) -> int | None:
        """The index of a value's class, or None."""
        text = spelling.normal(label_text(value))
        if text in self._by_text:
            return self._by_text[text]
        meant = meaning(text)
        if meant is None:
            return None
        found = self._by_meaning.get(meant, set())
        if not found and isinstance(meant, Decimal):
            found = {index for index, group in self._bounds if within(meant, group)}
        return next(iter(found)) if len(found) == 1 else None


def declared_values(definition: Mapping[str, Any]) -> list[str]:
    """The values that the config lists as labels or in their groups."""
    groups = definition.get("groups")
    if not groups:
        return list(definition["labels"])
    return [text for group in groups if not isinstance(group, Mapping) for text in group]


def describe(definition: Mapping[str, Any]) -> str:
    """The declared labels for messages, with their groups."""
    groups = definition.get("groups")
    if not groups:
        return ", ".join(definition["labels"])
    return "; ".join(
        f"{label}: {_described(group)}" for label, group in zip(definition["labels"], groups, strict=True)
    )


def _described(group: Mapping[str, Any] | Sequence[str]) -> str:
    if isinstance(group, Mapping):
        return " and ".join(f"{key.replace('_', ' ')} {bound:g}" for key, bound in group.items())
    return ", ".join(group)


def label_text(value: Any) -> str:
    """A label as text without spaces around it; what is no text is written as in JSON."""
    if isinstance(value, str):
        return value.strip()
    try:
        return json.dumps(value)
    except (TypeError, ValueError):  # a date
        return str(value)


def meaning(text: str) -> Any:
    """The number or truth value that a label means; None for other texts."""
    if NUMBER.fullmatch(text):
        return Decimal(text)
    lower = text.lower()
    return (lower,) if lower in TRUTH else None  # in a tuple, since True equals 1


def within(number: Decimal, bounds: Mapping[str, float]) -> bool:
    """Whether a number is within all bounds of a group."""
    return all(BOUNDS[key](number, Decimal(str(bound))) for key, bound in bounds.items())


def is_missing(value: Any) -> bool:
    """Whether there is no label: nothing, NaN, or a word for it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return isinstance(value, str) and value.strip().lower() in MISSING


def about_quotes(unknown: Sequence[str], declared: Sequence[str]) -> str:
    """A remark on what YAML may have read instead of the labels of the file; empty if that is not it."""
    switches = [text for text in unknown if text.lower() in SWITCHES]
    if switches and any(text in TRUTH for text in declared):
        return f"YAML reads {switches[0]} without quotes as a truth value: put the labels into quotes. "
    octal = [text for text in unknown if OCTAL.fullmatch(text) and str(int(text, 8)) in declared]
    if octal:
        return f"YAML reads {octal[0]} without quotes as {int(octal[0], 8)}: put the labels into quotes. "
    return ""
