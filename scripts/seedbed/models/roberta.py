"""A RoBERTa independent of its file format: weights under fairseq's names, dimensions, and notes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from seedbed.core.errors import SeedbedError
from seedbed.core.naming import ENCODER, HEAD, UNK, huggingface_names

EMBEDDINGS, POSITIONS = f"{ENCODER}.embed_tokens.weight", f"{ENCODER}.embed_positions.weight"
HEAD_MATRIX, HEAD_BIAS = f"{HEAD}.weight", f"{HEAD}.bias"
# fairseq's activation -> transformers'; both call the exact one (erf) gelu
ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "gelu_accurate": "gelu_new", "gelu_fast": "gelu_new"}
# fairseq keeps torch.nn.LayerNorm's default; transformers' default is 1e-12
LAYER_NORM_EPSILON = 1e-5
POSITION_OFFSET = 2  # both frameworks number positions from the id of <pad>, 1, plus one


@dataclass
class Network:
    """Weights in fp32 under fairseq 0.12's names, dimensions, and notes for model.json.

    `words`: the word of each embedding row in fairseq's numbering, `<mask>` included; None if a dict.txt of
    fairseq lists them.
    """

    weights: dict[str, torch.Tensor]
    layers: int
    embed_dim: int
    ffn_dim: int
    attention_heads: int
    activation: str
    words: list[str] | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows of the token embedding."""
        return len(self.weights[EMBEDDINGS])

    @property
    def max_positions(self) -> int:
        """The longest input in tokens, `<s>` and `</s>` included."""
        return len(self.weights[POSITIONS]) - POSITION_OFFSET


def finite_fp32(name: str, tensor: torch.Tensor, where: str) -> torch.Tensor:
    """A copy of a weight in fp32.

    Raises:
        SeedbedError: a number is not finite or not of floating point.
    """
    if not tensor.is_floating_point():
        raise SeedbedError(
            "the checkpoint holds weights that are not floating-point numbers",
            where=f"{where}, {name}",
            found=str(tensor.dtype).removeprefix("torch."),
            hint="a quantised model cannot be fine-tuned: take the model before quantisation",
        )
    tensor = tensor.detach().float().clone()
    check_finite(name, tensor, where)
    return tensor


def check_finite(name: str, tensor: torch.Tensor, where: str) -> None:
    """Check that all numbers of a weight are finite.

    Raises:
        SeedbedError: some are not.
    """
    if not torch.isfinite(tensor).all():
        raise SeedbedError(
            "the checkpoint holds weights that are not finite numbers",
            where=f"{where}, {name}",
            found=f"{int((~torch.isfinite(tensor)).sum())} of {tensor.numel()}",
            hint="the file is damaged, or the pretraining diverged: take another checkpoint",
        )


def dtypes(tensors: Mapping[str, torch.Tensor]) -> list[str]:
    """The names of the tensors' types, such as float16."""
    return sorted({str(tensor.dtype).removeprefix("torch.") for tensor in tensors.values()})


def check_weights(network: Network, where: str) -> None:
    """Check that weights and settings of a network fit.

    Raises:
        SeedbedError: a key is unexpected or missing, a shape is wrong, or the output matrix is not tied.
    """
    weights, expected = network.weights, _shapes(network, where)
    missing, unexpected = sorted(set(expected) - set(weights)), sorted(set(weights) - set(expected))
    if missing or unexpected:
        raise SeedbedError(
            "the weights do not fit the network of the settings",
            where=f"{where}, {network.layers} layers",
            found=f"missing: {listed(missing)}; unexpected: {listed(unexpected)}",
            hint="the model must be a RoBERTa with its language-model head",
        )
    for name, shape in expected.items():
        if tuple(weights[name].shape) != shape:
            raise SeedbedError(
                "the shape of a weight differs from the settings",
                where=f"{where}, {name}",
                found=f"{tuple(weights[name].shape)}, expected {shape}",
                hint="settings and weights are of different models: take another checkpoint",
            )
    if not torch.equal(weights[HEAD_MATRIX], weights[EMBEDDINGS]):
        raise SeedbedError(
            "the language-model head's matrix differs from the embeddings",
            where=f"{where}, {HEAD_MATRIX}",
            hint="both must be tied, as in RoBERTa; an untied head would be lost silently",
        )


def listed(names: list[str]) -> str:
    """The first five names, and the number of the others."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return (", ".join(names[:5]) or "none") + more


def _shapes(network: Network, where: str) -> dict[str, tuple[int, ...]]:
    d, f, heads = network.embed_dim, network.ffn_dim, network.attention_heads
    if d % heads:
        raise SeedbedError(
            "the width is not a multiple of the number of heads",
            where=where,
            found=f"encoder_embed_dim {d}, encoder_attention_heads {heads}",
            hint="the settings are not those of the weights: take another checkpoint",
        )
    if network.layers > len(network.weights):  # below, so many names would fill the memory
        raise SeedbedError(
            "the settings have more layers than there are weights",
            where=where,
            found=f"{network.layers:,} layers, {len(network.weights):,} weights",
            hint="the settings are not those of the weights: take another checkpoint",
        )
    found = [network.weights.get(name) for name in (EMBEDDINGS, POSITIONS)]
    rows, positions = (0 if tensor is None or not tensor.ndim else len(tensor) for tensor in found)
    special = {EMBEDDINGS: (rows, d), POSITIONS: (positions, d), HEAD_MATRIX: (rows, d), HEAD_BIAS: (rows,)}
    shapes = {}
    for name in huggingface_names(network.layers):
        norm = "norm" in name
        columns, size = (f if ".fc2." in name else d), (f if ".fc1." in name else d)
        shapes[name] = (size,) if norm or name.endswith(".bias") else (size, columns)
    return shapes | special


def add_mask(network: Network) -> None:
    """Append a row for `<mask>` to a network without one, as fairseq's tasks do.

    No text contains `<mask>`. Its row is the mean of the words' rows, the least informative value; its bias
    is the smallest, so that the head hardly ever predicts it.
    """
    embeddings, bias = network.weights[EMBEDDINGS], network.weights[HEAD_BIAS]
    first = min(UNK + 1, len(embeddings) - 1)
    embeddings = torch.cat([embeddings, embeddings[first:].mean(dim=0, keepdim=True)])
    network.weights |= {EMBEDDINGS: embeddings, HEAD_MATRIX: embeddings}
    network.weights[HEAD_BIAS] = torch.cat([bias, bias[first:].min().reshape(1)])
    network.notes["mask_row"] = "added"
