"""The settings of statistics: their defaults, meanings and limits, which config and commands share.

No pydantic here: the commands that only read results run without it.
"""

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seedbed.core.errors import SeedbedError


@dataclass(frozen=True)
class Setting:
    """A number that statistics depend on.

    Attributes:
        default: its value where none is given; a whole number where the setting is one.
        meaning: what it is, as a sentence.
        limits: what the value has to be, by the names of pydantic's `Field`: ge, le, gt, lt.
        unit: of the value; empty for none.
    """

    default: float
    meaning: str
    limits: Mapping[str, float]
    unit: str = ""


SETTINGS = {
    "confidence": Setting(0.95, "Level of intervals.", {"gt": 0, "lt": 1}, "fraction"),
    "power": Setting(0.8, "Power for the number of seeds in the tables.", {"gt": 0, "lt": 1}, "fraction"),
    "replicates": Setting(
        10_000,
        "Bootstrap replicates of seeds and test examples behind each interval.",
        {"ge": 100, "le": 1_000_000},
        "replicates",
    ),
    "bootstrap_seed": Setting(0, "Seed of the bootstrap, for reproducible tables.", {"ge": 0}),
    "difference_of_interest": Setting(
        0.02,
        "The smallest difference worth finding; numbers of seeds are planned for it, not for the difference "
        "seen.",
        {"gt": 0},
        "of the metric: fraction, correlation, or nats of a loss",
    ),
}
# the largest difference at which the frameworks count as equivalent, by init
EQUIVALENCE_MARGIN = {
    "pretrained": Setting(
        0.01,
        "Margin for runs from the checkpoint: 0.01 is one point of accuracy or F1, and 0.01 of a Matthews "
        "correlation.",
        {"gt": 0, "le": 1},
        "of the metric",
    ),
    "random": Setting(0.02, "Margin for runs from random weights.", {"gt": 0, "le": 1}, "of the metric"),
}
# a value that a limit refuses, in words
_BEYOND: dict[str, tuple[Callable[[float, float], bool], str]] = {
    "ge": (operator.ge, "less than the minimum of"),
    "le": (operator.le, "greater than the maximum of"),
    "gt": (operator.gt, "less than or equal to the minimum of"),
    "lt": (operator.lt, "greater than or equal to the maximum of"),
}


def complete_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Some keys of the config's `statistics`, such as confidence, with the defaults of all others.

    Raises:
        SeedbedError: a key that is none of them, or a value that the config does not allow.
    """
    margins = {**_defaults(EQUIVALENCE_MARGIN), **given.get("equivalence_margin", {})}
    values = {**_defaults(SETTINGS), "equivalence_margin": margins, **given}
    known = {**SETTINGS, "equivalence_margin": None}
    for name, value in values.items():
        if name not in known:
            raise SeedbedError(
                "unknown setting of statistics",
                where=f"statistics.{name}",
                found=value,
                hint=f"settings are {', '.join(known)}",
            )
        if name in SETTINGS:
            _check(name, value, SETTINGS[name])
    for name, value in margins.items():
        _check(f"equivalence_margin.{name}", value, EQUIVALENCE_MARGIN[name])
    return {**values, "equivalence_margin": margins}


def _defaults(settings: Mapping[str, Setting]) -> dict[str, float]:
    return {name: setting.default for name, setting in settings.items()}


def _check(name: str, value: Any, setting: Setting) -> None:
    """Refuse a value that is no number, not finite, not whole where it has to be, or beyond a limit."""
    where = f"statistics.{name}"
    whole = isinstance(setting.default, int)
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise SeedbedError(
            f"statistics: {value!r} is not a {'whole ' * whole}number",
            where=where,
            found=value,
            hint=setting.meaning,
        )
    if not math.isfinite(value):
        raise SeedbedError(
            "a number that is not finite", where=where, found=value, hint="give a finite number"
        )
    for limit, bound in setting.limits.items():
        holds, beyond = _BEYOND[limit]
        if not holds(value, bound):
            raise SeedbedError(
                f"statistics: {value!r} is {beyond} {bound}", where=where, found=value, hint=setting.meaning
            )
