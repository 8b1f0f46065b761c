"""Which combinations of the grid have runs."""

from collections.abc import Mapping
from typing import Any

from seedbed.core.methods import METHODS


def is_trained(config: Mapping[str, Any], model: str, framework: str, recipe: str) -> bool:
    """Whether a framework of the grid trains a model with a recipe, both of a resolved config."""
    left_out = config["grid"].get("left_out", {}).get(model, ())
    return framework not in left_out and framework in METHODS[config["recipes"][recipe]["method"]].frameworks
