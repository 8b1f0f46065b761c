"""Bags of words whose metrics a bag_of_words.csv tells, in rows `METRIC SETTING` of each tried setting."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.core.known import known
from seedbed.core.rows import ANEW, TEST_SETS
from seedbed.core.tasks import task_of
from seedbed.core.words import bounds_of


def values_of_best(
    found: Mapping[tuple[str, str], tuple[str, int]],
    reporting: Mapping[str, Any],
    dataset: str,
    path: str | Path,
) -> dict[tuple[str, str], float]:
    """The metrics, by metric and test set, of the setting that is the best on validation by the task's.

    Args:
        found: values by split and name, each with its line; of several best settings the first counts.
        reporting: `Plan.reporting()`.
        dataset: its name.
        path: the table, for errors.

    Raises:
        SeedbedError: there are no scores, or one that cannot be.
    """
    task = task_of(reporting)

    def value(split: str, metric: str, test_set: str, setting: str) -> float | None:
        told = found.get((split, f"{metric}{TEST_SETS[test_set]} {setting}"))
        return None if told is None else _number(metric, *told, path)

    beginning = f"{task.selection} "
    settings = [
        name.removeprefix(beginning)
        for split, name in found
        if split == "validation" and name.startswith(beginning)
    ]
    if not settings:
        raise SeedbedError("no scores of the bag-of-words baseline", where=str(path), hint=ANEW)
    best = max(
        settings, key=lambda each: task.direction * known(value("validation", task.selection, "all", each))
    )
    told = {
        (metric, test_set): value("test", metric, test_set, best)
        for test_set in TEST_SETS
        for metric in task.reported
    }
    return {key: score for key, score in told.items() if score is not None}


def _number(metric: str, text: str, line: int, path: str | Path) -> float:
    """A score within the bounds of its metric."""
    least, most = bounds_of(metric)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most or math.isinf(value):
        raise SeedbedError(
            "a score of the bag-of-words baseline that cannot be",
            where=f"{path}, line {line}",
            found=repr(text),
            hint=ANEW,
        )
    return value
