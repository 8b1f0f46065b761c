"""Labels in groups of values or bounds: taken apart, and checked for values of two groups."""

import functools
import itertools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from seedbed.config.values import read_number
from seedbed.core.errors import SeedbedError

Group = list[str] | dict[str, float]


class _Range(NamedTuple):
    """Numbers from `low` to `high`, which belong to it or not."""

    low: float
    with_low: bool
    high: float
    with_high: bool

    def is_empty(self) -> bool:
        return self.low > self.high or (self.low == self.high and not (self.with_low and self.with_high))


def divide(name: str, dataset: dict[str, Any]) -> None:
    """Replace a mapping under `labels` by the names of the groups, and add their values under `groups`.

    The values are lists, in the order of the labels, since the order of a mapping's keys is not kept.

    Raises:
        SeedbedError: a group has no bound, no number is in its bounds, or a value is in two groups.
    """
    given = dataset["labels"]
    if not isinstance(given, dict):
        return
    where = f"config, datasets.{name}.labels"
    groups = {label: _without_null(group) for label, group in given.items()}
    for label, group in groups.items():
        if not group or (isinstance(group, dict) and _range(group).is_empty()):
            raise SeedbedError(
                "no label is in this group",
                where=f"{where}.{label}",
                found=group,
                hint="give a list of values, or bounds: {above: 3}, {at_least: 2, below: 4}",
            )
    for (one, first), (other, second) in itertools.combinations(groups.items(), 2):
        if (shared := _shared(first, second)) is not None:
            raise SeedbedError(
                "a label is in two groups",
                where=where,
                found=f"{shared} in {one} and {other}",
                hint="above and below leave their number out, at_least and at_most take it",
            )
    dataset["labels"], dataset["groups"] = list(groups), list(groups.values())


def _without_null(group: Any) -> Group:
    if isinstance(group, list):
        return group
    return {key: bound for key, bound in group.items() if bound is not None}


def _shared(one: Group, other: Group) -> str | None:
    """What is in both groups, or None."""
    if isinstance(one, list) and isinstance(other, list):
        return next((value for value in one if value in other), None)
    for first in _ranges(one):
        for second in _ranges(other):
            both = _both(first, second)
            if not both.is_empty():
                return (
                    f"{both.low:g}"
                    if both.low == both.high
                    else f"numbers from {both.low:g} to {both.high:g}"
                )
    return None


def _ranges(group: Group) -> list[_Range]:
    """The range of bounds, or each listed number as a range."""
    if isinstance(group, dict):
        return [_range(group)]
    numbers = (read_number(value) for value in group)
    return [_Range(number, True, number, True) for number in numbers if not isinstance(number, str)]


def _range(bounds: Mapping[str, float]) -> _Range:
    return functools.reduce(_both, (BOUNDS[key](bound) for key, bound in bounds.items()), ALL)


def _both(one: _Range, other: _Range) -> _Range:
    """The numbers of both ranges; of two equal bounds, the one that leaves the number out counts."""
    low, within_low = max((one[:2], other[:2]), key=lambda bound: (bound[0], not bound[1]))
    high, within_high = min((one[2:], other[2:]))
    return _Range(low, within_low, high, within_high)


ALL = _Range(-math.inf, False, math.inf, False)
BOUNDS = {
    "above": lambda bound: ALL._replace(low=bound),
    "at_least": lambda bound: ALL._replace(low=bound, with_low=True),
    "below": lambda bound: ALL._replace(high=bound),
    "at_most": lambda bound: ALL._replace(high=bound, with_high=True),
}
