"""Which settings a sweep tries: all combinations of its values, or points that are drawn between bounds.

The values of a hyperparameter are a list, a range that grows in stages (`settings.Range`), or bounds
(`settings.Between`). Of a range, all values are made here that it may ever try; `stages` says which ones the
present stage has.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seedbed.config.settings import Recipe
from seedbed.config.validation import type_at
from seedbed.core.errors import SeedbedError

DIGITS = 3  # significant, of values that are computed, so that names are short
LOG_FROM = 10  # ratio of bounds from which points are even in the logarithm
Setting = dict[str, Any]  # a value by hyperparameter


def settings_of(
    family: str, recipe: Mapping[str, Any], is_allowed: Callable[[Setting], bool]
) -> list[Setting]:
    """The settings that a recipe's sweep may try, in the order of its lists; those of a range are rising.

    Args:
        family: the recipe's name.
        recipe: with `sweep`, `points` and `points_seed`.
        is_allowed: whether a recipe may have a setting; where it may not, a range ends.

    Raises:
        SeedbedError: values do not fit the hyperparameter or each other, or two points are the same.
    """
    sweep, number = recipe["sweep"], recipe["points"]
    _check(family, sweep, number)
    if number is not None:
        return _points(family, sweep, number, recipe["points_seed"])
    others = {key: values[0] for key, values in sweep.items() if isinstance(values, list)}
    lists = {
        key: values
        if isinstance(values, list)
        else _of_range(family, key, values, lambda value, key=key: is_allowed({**others, key: value}))
        for key, values in sweep.items()
    }
    return [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]


def range_of(recipe: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The hyperparameter of a recipe that has a range, and the range; None without one."""
    return next(((key, values) for key, values in recipe["sweep"].items() if _is_range(values)), None)


def _is_range(values: Any) -> bool:
    return isinstance(values, dict) and "start" in values


def _is_between(values: Any) -> bool:
    return isinstance(values, dict) and "low" in values


# --- ranges -------------------------------------------------------------------------------------------------


def _of_range(
    family: str, key: str, given: Mapping[str, Any], is_allowed: Callable[[Any], bool]
) -> list[Any]:
    """All values that a range may try: the first three, and on both sides those that fit below `max`."""

    def value(step: int) -> Any:
        exact = given["start"] * given["factor"] ** step
        if _is_whole(key):
            return round(exact)
        return _rounded(exact) if step else exact

    def beyond(direction: int) -> list[Any]:
        steps = range(direction, direction * (given["max"] - 1), direction)
        pairs = itertools.pairwise(map(value, steps))
        return [
            after
            for _, after in itertools.takewhile(
                lambda pair: pair[0] != pair[1] and is_allowed(pair[1]), pairs
            )
        ]

    first = [value(step) for step in (-1, 0, 1)]
    if len(set(first)) < len(first):
        raise SeedbedError(
            f"the first three values of {key} are not different",
            where=f"config, recipes.{family}.sweep.{key}",
            found=first,
            hint="give a larger factor or a larger start",
        )
    return [*reversed(beyond(-1)), *first, *beyond(1)]


# --- points -------------------------------------------------------------------------------------------------


def _points(family: str, sweep: Mapping[str, Any], number: int, seed: int) -> list[Setting]:
    """Scrambled Sobol points of the swept hyperparameters (`scipy.stats.qmc.Sobol`)."""
    from scipy.stats import qmc  # here, since every job imports this module

    sequence = qmc.Sobol(len(sweep), scramble=True, rng=seed)
    unit = sequence.random_base2(math.ceil(math.log2(number)))[:number]
    columns = [_at(key, values, unit[:, place]) for place, (key, values) in enumerate(sweep.items())]
    found = [dict(zip(sweep, point, strict=True)) for point in zip(*columns, strict=True)]
    for point, other in itertools.combinations(found, 2):
        if point == other:
            raise SeedbedError(
                f"two of {number} points are the same setting",
                where=f"config, recipes.{family}.points",
                found=point,
                hint="give fewer points, wider bounds or one hyperparameter more; without points, all "
                "combinations of lists are tried",
            )
    return found


def _at(key: str, values: Any, places: Sequence[float]) -> list[Any]:
    """The values of a hyperparameter at places from 0 to below 1."""
    if isinstance(values, list):
        return [values[int(place * len(values))] for place in places]
    low, high = values["low"], values["high"]
    if _is_log(values):
        exact = [low * (high / low) ** place for place in places]
    else:
        exact = [low + (high - low) * place for place in places]
    if _is_whole(key):
        return [round(value) for value in exact]
    return [min(max(_rounded(value), low), high) for value in exact]


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _is_log(bounds: Mapping[str, Any]) -> bool:
    if bounds["scale"] is not None:
        return bool(bounds["scale"] == "log")
    return bool(bounds["low"] > 0 and bounds["high"] / bounds["low"] >= LOG_FROM)


# --- checks -------------------------------------------------------------------------------------------------


def _is_whole(key: str) -> bool:
    return _type_of(key) is int


def _type_of(key: str) -> Any:
    return type_at(Recipe, key.split("."))[0]


def _check(family: str, sweep: Mapping[str, Any], points: int | None) -> None:
    where = f"config, recipes.{family}"
    if points is not None and not sweep:
        raise SeedbedError(
            "points are drawn from a sweep, and the recipe has none",
            where=f"{where}.points",
            found=points,
            hint="add one, such as sweep: {learning_rate: {low: 1.0e-6, high: 1.0e-3}}",
        )
    for key, values in sweep.items():
        if isinstance(values, dict):
            _check_block(f"{where}.sweep.{key}", key, values, points)
    growing = [key for key, values in sweep.items() if _is_range(values)]
    if len(growing) > 1:
        raise SeedbedError(
            "a sweep has two ranges that grow",
            where=f"{where}.sweep",
            found=", ".join(growing),
            hint="list the values of all but one; or give bounds (low, high) and points",
        )


def _check_block(where: str, key: str, values: Mapping[str, Any], points: int | None) -> None:
    """Refuse a range or bounds that do not fit the hyperparameter, or with which points do not go."""
    if _type_of(key) not in (int, float):
        raise SeedbedError(
            f"{key} is no number, so it has neither a range nor bounds",
            where=where,
            found=dict(values),
            hint=f"list its values: {key}: [...]",
        )
    if _is_range(values) and points is not None:
        raise SeedbedError(
            "a range that grows goes value by value, and points are drawn at once",
            where=where,
            found=dict(values),
            hint="give bounds instead of start and factor: {low: ..., high: ...}; or leave points out",
        )
    if _is_between(values):
        _check_bounds(where, values, points)


def _check_bounds(where: str, values: Mapping[str, Any], points: int | None) -> None:
    if points is None:
        raise SeedbedError(
            "between two bounds there are points, and the recipe does not say how many",
            where=where,
            found=dict(values),
            hint="add points to the recipe, such as points: 16; or list the values",
        )
    if values["low"] >= values["high"]:
        raise SeedbedError(
            "the lower bound is not below the upper one",
            where=where,
            found=f"low: {values['low']:g}, high: {values['high']:g}",
            hint="exchange them",
        )
    if values["scale"] == "log" and values["low"] <= 0:
        raise SeedbedError(
            "a logarithmic scale needs bounds above zero",
            where=f"{where}.low",
            found=values["low"],
            hint="give a positive low, or scale: linear",
        )
