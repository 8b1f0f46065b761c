"""What recipes and datasets may ask of the models of a grid, known once these are converted."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.errors import SeedbedError


def check(
    models: Mapping[str, Mapping[str, Any]],
    recipes: Mapping[str, Mapping[str, Any]],
    datasets: Mapping[str, int | None],
) -> None:
    """Refuse longer inputs than a model of the grid has positions.

    Args:
        models: what model.json says of each model.
        recipes: `family` and `max_positions` of each recipe, as `Plan.recipe_limits` gives them.
        datasets: `max_tokens` of each dataset; None where it has none.

    Raises:
        SeedbedError: there is such a recipe or dataset.
    """
    limited = {name: shape["max_positions"] for name, shape in models.items() if shape["max_positions"]}
    if not limited:
        return
    shortest = min(limited, key=lambda name: limited[name])
    for name, recipe in recipes.items():
        asked = recipe["max_positions"]
        if asked is not None and asked > limited[shortest]:
            raise SeedbedError(
                f"recipe {name!r} asks for longer inputs than the model {shortest!r} has positions",
                where=f"config, recipes.{recipe['family']}.max_positions",
                found=f"{asked}; the model has {limited[shortest]}",
                hint=f"give at most {limited[shortest]}, or null for each model's own limit",
            )
    for name, asked in datasets.items():
        check_tokens(name, asked, limited[shortest])


def check_adapters(
    recipes: Mapping[str, Mapping[str, Any]], folders: Mapping[str, Path], device: str
) -> None:
    """Refuse types of weights that no run of a recipe with an adapter could train.

    Args:
        recipes: resolved recipes with an adapter, by name.
        folders: of each model in Hugging Face format.
        device: `device` of the config. Only for the CPU it is tried whether weights in 4 bits work: another
            host may have the GPU.

    Raises:
        SeedbedError: there is one.
    """
    import torch

    from seedbed import adapters

    for recipe in recipes.values():
        where = f"config, recipes.{recipe['family']}"
        # private to a module whose bytes belong to the identity of runs, which a new name would train anew
        adapters._check_dtypes(recipe, where)
        if recipe["method"] == "qlora" and device == "cpu":
            adapters.check_quantization(torch.device("cpu"), where)
        if recipe["method"] == "qlora":
            for model, folder in folders.items():
                _check_saved(recipe["lora"]["modules_to_save"] or (), model, folder, where)


def _check_saved(entries: Sequence[str], model: str, folder: Path, where: str) -> None:
    """Refuse modules to train in full that are stored in 4 bits."""
    from seedbed import adapter_parameters  # as above, private for the sake of the identity of runs

    network = adapter_parameters._build(folder, "generation", None) if entries else None
    for entry in entries:
        packed = list(adapter_parameters._linear_layers(network))
        named = [name for name, _ in network.named_modules() if name.endswith(entry)]
        for name in named:
            inside = [layer for layer in packed if layer == name or layer.startswith(f"{name}.")]
            if inside:
                raise SeedbedError(
                    f"weights of {model!r} in 4 bits cannot be trained",
                    where=f"{where}.lora.modules_to_save",
                    found=f"{entry}: {inside[0]}",
                    hint="adapt this module by target_modules instead, or use the method lora",
                )


def check_tokens(dataset: str, asked: int | None, positions: int | None) -> None:
    """Refuse a dataset whose `max_tokens` is more than a model's positions (None: any).

    Raises:
        SeedbedError: it is.
    """
    if asked is not None and positions is not None and asked > positions:
        raise SeedbedError(
            "max_tokens is more than the model's positions",
            where=f"config, datasets.{dataset}.max_tokens",
            found=f"{asked}, and the model has {positions}",
            hint=f"give {positions} or less, or null for the model's own limit",
        )
