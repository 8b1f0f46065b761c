"""Products of linear layers in bfloat16 on a CPU, the recipe's `precision: bfloat16` there.

oneDNN multiplies bfloat16 copies of tokens, weight and gradient; all else, and every sum over products of
layers, stays in float32. On a core with AVX-512 BF16 a layer's forward and backward pass takes 0.5 to 0.6 of
the time in float32. Autocast, which also converts attention and norms, makes the demo's training 1.9 times
slower than float32.
"""

import functools
import logging
import platform
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

# Layers with fewer inputs or outputs, such as heads, stay in float32: they take no time, and in bfloat16
# logits would have 8 bits.
FEWEST = 16
log = logging.getLogger(__name__)


def are_used(settings: Mapping[str, Any], device: torch.device) -> bool:
    """Whether linear layers have these products: in bfloat16, on a CPU, and if all weights are float32.

    Frozen weights of another type, or in 4 bits, need autocast to meet float32.

    Args:
        settings: a resolved recipe.
        device: the device of the model.
    """
    if device.type != "cpu" or settings["precision"] != "bfloat16":
        return False
    return "quantization" not in settings and settings.get("frozen_dtype", "float32") == "float32"


def give(model: nn.Module, settings: Mapping[str, Any], device: torch.device) -> str:
    """Give a model's linear layers these products, if they are used.

    Args:
        model: the model, perhaps with an adapter.
        settings, device: as in `are_used`.

    Returns:
        The precision for autocast: `float32` (none) with these products, else the recipe's.
    """
    if not are_used(settings, device):
        return settings["precision"]
    warn_if_slow()
    for module in model.modules():
        # not those of bitsandbytes, which compute by themselves
        if type(module) is nn.Linear and min(module.weight.shape) >= FEWEST:
            module.forward = functools.partial(_forward, module)  # type: ignore[method-assign]
    return "float32"


def warn_if_slow() -> None:
    """Log a warning if the processor has no instructions for bfloat16."""
    if not has_instructions():
        log.warning(
            "this processor has no instructions for bfloat16 (AVX-512 BF16 or AMX): "
            "precision: bfloat16 is slower than float32 here"
        )


def has_instructions() -> bool:
    """Whether the processor multiplies bfloat16 numbers."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        # oneDNN's own answer is yes for all of AVX-512, where it converts to float32
        return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """A linear layer, `x weight^T + bias`, with products in bfloat16 if it is large enough.

    Args:
        x: tokens in float32, (..., inputs), or (seeds, tokens, inputs) for stacked weights.
        weight: float32, (outputs, inputs), or (seeds, outputs, inputs).
        bias: float32, (outputs,), or (seeds, 1, outputs).

    Returns:
        float32 tensor of the shape of `x`, with the outputs in place of the inputs.
    """
    if min(weight.shape[-2:]) < FEWEST:
        found = x @ weight.mT
    elif weight.dim() == 2:
        found = _Product.apply(x.flatten(0, -2), weight).view(*x.shape[:-1], -1)
    else:
        found = _Product.apply(x, weight)
    return found if bias is None else found + bias


def _forward(layer: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    return linear(x, layer.weight, layer.bias)


class _Product(torch.autograd.Function):
    """x weight^T of (tokens, inputs) and (outputs, inputs), or of stacks of both."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        short, short_weight = x.bfloat16(), weight.bfloat16()
        ctx.save_for_backward(short, short_weight)
        return (short @ short_weight.mT).float()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        short, short_weight = ctx.saved_tensors
        of_x, of_weight = ctx.needs_input_grad
        gradient = gradient.bfloat16()
        return (
            (gradient @ short_weight).float() if of_x else None,
            (gradient.mT @ short).float() if of_weight else None,
        )
