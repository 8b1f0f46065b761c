"""Draw the same random weights in both frameworks, and check that pretrained weights were loaded.

Each tensor has its own generator, seeded by the run's init seed and the tensor's name in fairseq. So the draw
does not depend on the order in which a framework builds its modules, and both frameworks start a seed from
the same weights.
"""

import contextlib
import hashlib
import logging
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from seedbed.core.errors import SeedbedError


def generator(init_seed: int, name: str) -> torch.Generator:
    """A CPU generator for the tensor `name` of a run with `init_seed`."""
    digest = hashlib.sha256(f"{init_seed}:{name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little", signed=True))


@torch.no_grad()
def draw_encoder(
    encoder: nn.Module, init_seed: int, sd: float, canonical: Callable[[str], str | None]
) -> None:
    """Draw an encoder's weights as in BERT: normal with mean 0, biases 0, layer norms 1 and 0.

    The row of an embedding's padding index is 0 (Devlin et al. 2019; `init_bert_params` of fairseq).

    Args:
        encoder: the module to overwrite, on the CPU.
        init_seed: the run's init seed.
        sd: standard deviation of weight matrices and embeddings.
        canonical: maps a parameter's name to fairseq's, or to None if fairseq lacks it: it is set to 0.
    """
    modules = dict(encoder.named_modules())
    for name, parameter in encoder.named_parameters():
        module = modules[name.rpartition(".")[0]]
        fairseq_name = canonical(name)
        if fairseq_name is None or name.endswith("bias"):
            parameter.zero_()
        elif isinstance(module, nn.LayerNorm):
            parameter.fill_(1.0)
        else:
            parameter.normal_(0.0, sd, generator=generator(init_seed, fairseq_name))
            padding = getattr(module, "padding_idx", None)
            if padding is not None:
                parameter[padding].zero_()


@torch.no_grad()
def draw_head(dense: nn.Linear, out_proj: nn.Linear, init_seed: int, init: dict[str, Any]) -> None:
    """Draw the classification head.

    Args:
        dense: the head's hidden layer.
        out_proj: the head's last layer.
        init_seed: the run's init seed.
        init: `{"distribution": "normal" | "torch", "sd": float}`. `torch` is the default of torch.nn.Linear:
            weight and bias uniform within 1 / sqrt(fan-in).
    """
    for layer_name, layer in (("dense", dense), ("out_proj", out_proj)):
        for tensor_name in ("weight", "bias"):
            source = generator(init_seed, f"classification_head.{layer_name}.{tensor_name}")
            draw_linear(layer, tensor_name, source, init)


@torch.no_grad()
def draw_linear(layer: nn.Linear, tensor_name: str, source: torch.Generator, init: Mapping[str, Any]) -> None:
    """Draw the weight or the bias of a linear layer; `init` is described at `draw_head`."""
    tensor = getattr(layer, tensor_name)
    if init["distribution"] == "torch":
        bound = 1 / math.sqrt(layer.in_features)
        tensor.uniform_(-bound, bound, generator=source)
    elif tensor_name == "weight":
        tensor.normal_(0.0, init["sd"], generator=source)
    else:
        tensor.zero_()


def check_loaded(expected: dict[str, torch.Tensor], found: dict[str, torch.Tensor], checkpoint: Path) -> None:
    """Check that a pretrained run starts from its checkpoint: a silent start from scratch is an error.

    Args:
        expected: the checkpoint's tensors.
        found: the model's tensors, under the same names.
        checkpoint: the file, for the message.

    Raises:
        SeedbedError: a tensor is missing or differs.
    """
    for name, tensor in expected.items():
        if name not in found:
            raise SeedbedError(
                "the model lacks a tensor of its checkpoint", where=str(checkpoint), found=name
            )
        here = found[name].detach().cpu()
        if not torch.equal(here, tensor.to(here.dtype)):
            raise SeedbedError(
                "the model did not start from its checkpoint",
                where=str(checkpoint),
                found=f"{name} differs",
                hint="the run would have trained from other weights; this is a bug of the workflow",
            )


@contextlib.contextmanager
def without_load_report() -> Iterator[None]:
    """Suppress Transformers' table of the head's weights, which the checkpoint never has, on the terminal."""

    def is_other(record: logging.LogRecord) -> bool:
        return "LOAD REPORT" not in record.getMessage()

    # a higher level would make it check other things
    loader = logging.getLogger("transformers.modeling_utils")
    loader.addFilter(is_other)
    try:
        yield
    finally:
        loader.removeFilter(is_other)
