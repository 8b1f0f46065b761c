"""Check the maximum lengths of recipes and datasets against the positions of converted models."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.core.recipes import declared
from seedbed.core.run_folder import dataset_of_subset
from seedbed.core.subsets import read_order


def check(
    models: Mapping[str, Mapping[str, Any]],
    recipes: Mapping[str, Mapping[str, Any]],
    datasets: Mapping[str, int | None],
) -> None:
    """Check that no recipe or dataset allows inputs longer than a model's positions.

    Args:
        models: the content of each model's model.json.
        recipes: `family` and `max_positions` of each recipe, from `Plan.recipe_limits`.
        datasets: `max_tokens` of each dataset, or None.

    Raises:
        SeedbedError: a recipe or dataset allows longer inputs; or neither a recipe nor a classifier has a
            limit.
    """
    for name, shape in models.items():
        if shape["max_positions"] is None and "ending" in shape:  # questions have max_tokens
            _check_limited(name, recipes)
    limited = {name: shape["max_positions"] for name, shape in models.items() if shape["max_positions"]}
    if not limited:
        return
    shortest = min(limited, key=lambda name: limited[name])
    for name, recipe in recipes.items():
        asked = recipe["max_positions"]
        if asked is not None and asked > limited[shortest]:
            raise SeedbedError(
                f"recipe {name!r} asks for longer inputs than the model {shortest!r} has positions",
                where=f"config, recipes.{declared(recipe)}.max_positions",
                found=f"{asked}; the model has {limited[shortest]}",
                hint=f"give at most {limited[shortest]}, or null for each model's own limit",
            )
    for name, asked in datasets.items():
        check_tokens(name, asked, limited[shortest])


def check_sizes(sizes: Sequence[int], orders: Sequence[str | Path]) -> None:
    """Check that every dataset has more training texts than the sizes of training ask for.

    Args:
        sizes: numbers of training texts below all.
        orders: .../DATASET/subsets/seedN/order.csv, the ordered training texts of each dataset and data seed.

    Raises:
        SeedbedError: a dataset has as many or fewer.
    """
    for path in map(Path, orders):
        texts = len(read_order(path))
        if sizes and max(sizes) >= texts:
            raise SeedbedError(
                "a size of training is not below the number of training texts",
                where="config, grid.train_sizes",
                found=f"{max(sizes):,}; the dataset {dataset_of_subset(path)!r} has {texts:,}",
                hint=f"give numbers below {texts:,}, and all for the whole training split",
            )


def _check_limited(model: str, recipes: Mapping[str, Mapping[str, Any]]) -> None:
    """Check that all recipes limit the length of texts."""
    for name, recipe in recipes.items():
        if recipe["max_positions"] is None:
            raise SeedbedError(
                f"nothing limits the length of texts: neither the model {model!r} nor recipe {name!r}",
                where=f"config, recipes.{declared(recipe)}.max_positions",
                found="null; neither config.json nor the tokenizer has a number of positions",
                hint="give a number of tokens, such as 512",
            )


def check_tokens(dataset: str, asked: int | None, positions: int | None) -> None:
    """Check that a dataset's `max_tokens` is at most a model's positions (None: no limit).

    Raises:
        SeedbedError: it exceeds them.
    """
    if asked is not None and positions is not None and asked > positions:
        raise SeedbedError(
            "max_tokens exceeds the model's positions",
            where=f"config, datasets.{dataset}.max_tokens",
            found=f"{asked}; the model has {positions}",
            hint=f"give {positions} or less, or null for the model's own limit",
        )
