"""Expand sizes of training: each recipe of the grid becomes one for each size.

A recipe of a size has a name and a family of its own, `lab.train_size=28`, so that all that is compared, and
chosen on validation, is of one size. `declared` is its name in the config. The recipe of all texts is the one
that the grid would have without sizes, and its runs are the same.
"""

import math
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.core.methods import METHODS
from seedbed.core.recipes import ALL, DECLARED, EVALUATED_EVERY, SIZE

LEAST = "min_updates"


def expand_sizes(config: dict[str, Any]) -> None:
    """Add a recipe for each size and recipe of the grid, the smallest size first.

    A recipe of a size has the epochs of its recipe, or a multiple of them where `min_updates` need more, and
    as many evaluations: selection on validation has as many checkpoints to choose from. A method that trains
    nothing has no sizes.

    Raises:
        SeedbedError: nothing in the grid is trained.
    """
    least = {name: recipe.pop(LEAST, 0) for name, recipe in config["recipes"].items()}
    grid, recipes = config["grid"], config["recipes"]
    sizes = grid.pop("train_sizes")
    if sizes is None:
        return
    numbers = sorted(size for size in sizes if size != ALL)
    ordered = [*numbers, *([ALL] if ALL in sizes else [])]
    grid["train_sizes"] = ordered
    trained = [name for name in grid["recipes"] if METHODS[recipes[name]["method"]].trains]
    if not trained:
        raise SeedbedError(
            "no recipe of the grid trains, so there is nothing to train on fewer texts",
            where="config, grid.train_sizes; grid.recipes",
            found=", ".join(grid["recipes"]),
            hint="leave train_sizes out, or add a recipe with another method",
        )
    named = [name for name in grid["recipes"] if name not in trained]
    for size in ordered:
        for name in trained:
            sized = name if size == ALL else f"{name}.{SIZE}={size}"
            named.append(sized)
            if size != ALL:
                recipes[sized] = _of_size(recipes[name], size, least[name])
    grid["recipes"] = named


def _of_size(recipe: dict[str, Any], size: int, least: int) -> dict[str, Any]:
    family = recipe["family"]
    updates = math.ceil(size / recipe["batch_size"])
    times = max(1, math.ceil(least / (updates * recipe["epochs"])))
    of_size = {"family": f"{family}.{SIZE}={size}", DECLARED: family, SIZE: size}
    return {**recipe, **of_size, "epochs": times * recipe["epochs"], EVALUATED_EVERY: times}
