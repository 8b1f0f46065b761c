"""Which recipe of a swept family answers speak of where both sides have the same one."""

from collections.abc import Mapping
from typing import Any


def equal_recipe(family: str, reporting: Mapping[str, Any]) -> str:
    """The equal recipe of a family: its first one; of a range that grows the one of its start.

    Args:
        family: of recipes of the experiment.
        reporting: `Plan.reporting()`.
    """
    recipes = {name: block for name, block in reporting["recipes"].items() if block["family"] == family}
    found = reporting.get("ranges", {}).get(family)
    if found is None:
        return next(iter(recipes))
    distances = {name: abs(block["swept"][found["key"]] - found["start"]) for name, block in recipes.items()}
    return min(distances, key=lambda name: distances[name])
