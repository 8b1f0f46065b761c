"""What a resolved recipe says of its name in the config, of its texts, and of what fairseq cannot do."""

from collections.abc import Mapping
from typing import Any

from seedbed.core.errors import SeedbedError

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


def refuse_bfloat16(recipe: Mapping[str, Any], device: str) -> None:
    """Refuse bfloat16 of a resolved recipe that fairseq trains on a GPU, where it has none.

    Args:
        recipe: the recipe.
        device: how the GPU is known, for the message.

    Raises:
        SeedbedError: the recipe's precision is bfloat16.
    """
    if recipe["precision"] == "bfloat16":
        raise SeedbedError(
            "fairseq 0.12 has no bfloat16 on a GPU, so the frameworks would differ",
            where=f"config, recipes.{declared(recipe)}.precision; device",
            found=f"bfloat16; {device}",
            hint="set device to cpu or fused_seeds to true, use float32 or float16, or leave fairseq out of "
            "grid.frameworks",
        )
