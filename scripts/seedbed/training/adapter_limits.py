"""What recipes may ask of an adapter, known once the models of a grid are converted."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from seedbed.core.errors import SeedbedError
from seedbed.core.methods import METHODS
from seedbed.training import adapter_parameters, adapters


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
    for recipe in recipes.values():
        where = f"config, recipes.{recipe['family']}"
        # private to a module whose bytes belong to the identity of runs, which a new name would train anew
        adapters.check_dtypes(recipe, where)
        if not METHODS[recipe["method"]].is_quantized:
            continue
        if device == "cpu":
            adapters.check_quantization(torch.device("cpu"), where)
        for model, folder in folders.items():
            _check_saved(recipe["lora"]["modules_to_save"] or (), model, folder, where)


def _check_saved(entries: Sequence[str], model: str, folder: Path, where: str) -> None:
    """Refuse modules to train in full that are stored in 4 bits."""
    if not entries:
        return
    network = adapter_parameters.without_values(folder, "generation", None)
    packed = adapter_parameters.quantized_layers(network)
    for entry in entries:
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
