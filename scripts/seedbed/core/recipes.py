"""What a resolved recipe says of its name in the config, and of how many texts it trains on."""

from collections.abc import Mapping
from typing import Any

ALL = "all"  # the size of all training texts
SIZE, DECLARED, EVALUATED_EVERY = "train_size", "declared", "evaluated_every"  # keys of recipes of a size


def declared(recipe: Mapping[str, Any]) -> str:
    """The name of a resolved recipe in the config, without swept values and size."""
    return recipe.get(DECLARED, recipe["family"])


def is_evaluated(recipe: Mapping[str, Any], epoch: int) -> bool:
    """Whether validation is evaluated after an epoch, counted from 1."""
    return epoch % recipe.get(EVALUATED_EVERY, 1) == 0


def without_size(name: str, recipe: Mapping[str, Any]) -> str:
    """The name that a resolved recipe would have on all training texts."""
    return name.removesuffix(f".{SIZE}={recipe.get(SIZE)}")


def train_size(recipe: Mapping[str, Any]) -> int | None:
    """On how many training texts a resolved recipe trains; None: on all."""
    return recipe.get(SIZE)
