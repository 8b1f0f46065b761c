"""Check adapters of recipes against the converted models of a grid."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from seedbed.core.errors import SeedbedError
from seedbed.core.methods import METHODS
from seedbed.core.recipes import declared
from seedbed.core.tasks import Task
from seedbed.training import adapter_parameters, adapters


def check_adapters(
    recipes: Mapping[str, Mapping[str, Any]],
    folders: Mapping[str, Path],
    device: str,
    task: Task,
    classes: int | None,
) -> None:
    """Refuse recipes whose adapter cannot be trained, because of types of weights or missing 4-bit support.

    Args:
        recipes: resolved recipes with an adapter, by name.
        folders: folder of each model in Hugging Face format.
        device: `device` of the config. 4-bit weights are only tested on the CPU: another host may have the
            GPU.
        task: what the models are trained for.
        classes: number of classes of a head; None for a task without classes.

    Raises:
        SeedbedError: a recipe's adapter cannot be trained.
    """
    for recipe in recipes.values():
        where = f"config, recipes.{declared(recipe)}"
        # private, since renaming it would change the identity of runs
        adapters.check_dtypes(recipe, where)
        if not METHODS[recipe["method"]].is_quantized:
            continue
        if device == "cpu":
            adapters.check_quantization(torch.device("cpu"), where)
        for model, folder in folders.items():
            if entries := recipe["lora"]["modules_to_save"]:
                network = adapter_parameters.without_values(folder, task.name, classes)
                _check_saved(entries, model, network, where)


def _check_saved(entries: Sequence[str], model: str, network: torch.nn.Module, where: str) -> None:
    """Refuse modules_to_save that are stored in 4 bits."""
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
