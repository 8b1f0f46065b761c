"""The learning-rate schedule of a recipe: one arithmetic for both frameworks."""

import math
from typing import Any


def updates_per_epoch(examples: int, batch_size: int) -> int:
    """Updates in one pass over the training split; the last batch may be smaller."""
    return math.ceil(examples / batch_size)


def warmup_updates(total: int, ratio: float) -> int:
    """Number of warm-up updates: the ratio of all updates, rounded down as the lab did."""
    return int(total * ratio)


def learning_rate(done: int, total: int, settings: dict[str, Any]) -> float:
    """The learning rate of the update after `done` updates.

    It rises linearly from 0 over the warm-up, then falls as a polynomial to `end_learning_rate`:
    end + (peak - end) * (1 - (done - warmup) / (total - warmup)) ** power, which is fairseq's
    polynomial_decay and, at power 1 and end 0, Transformers' linear schedule. The first update of a
    schedule with warm-up therefore has a rate of 0 in both.

    Args:
        done: number of updates so far, from 0.
        total: number of updates of the whole run.
        settings: a resolved recipe.
    """
    peak = settings["learning_rate"]
    warmup = warmup_updates(total, settings["warmup_ratio"])
    if warmup > 0 and done <= warmup:
        return peak * done / warmup
    end = end_learning_rate(settings)
    if done >= total:
        return end
    remaining = 1 - (done - warmup) / (total - warmup)
    return (peak - end) * remaining ** settings["schedule_power"] + end


def end_learning_rate(settings: dict[str, Any]) -> float:
    """The last learning rate of a schedule; a constant schedule is a polynomial that ends at its peak."""
    return settings["learning_rate"] if settings["schedule"] == "constant" else settings["end_learning_rate"]
