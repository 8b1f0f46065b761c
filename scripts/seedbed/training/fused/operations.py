"""The operations of RoBERTa's classifier on weights, (seeds, ...), and tokens, (seeds, tokens, width).

Each product of the separate models becomes one batched product. `kernels.Kernels` has the same operations in
fewer steps for a GPU.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F

from seedbed.models.roberta import LAYER_NORM_EPSILON
from seedbed.training import products

Weights = dict[str, torch.Tensor]
ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": F.gelu,
    "relu": F.relu,
    "gelu_accurate": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_fast": lambda x: F.gelu(x, approximate="tanh"),
}
ALL = slice(None)


class Operations:
    """The operations as PyTorch has them.

    Args:
        weights: the stacked weights, in float32.
        activation: name of the activation in fairseq.
        dtype: of all tokens; weights are converted to it at each use.
        short_products: whether linear layers have the products of `products`, between float32 tokens.

    Attributes:
        adapter_dropout: dropout of the inputs of adapters in the present pass.
    """

    adapter_dropout = 0.0

    def __init__(
        self,
        weights: Weights,
        activation: str,
        dtype: torch.dtype = torch.float32,
        short_products: bool = False,
    ):
        self.weights, self.activation, self.dtype = weights, activation, dtype
        self.short_products = short_products

    def refresh(self, update: int) -> None:
        """Take over the weights after an update; call it after each."""

    def embed(self, name: str, ids: torch.Tensor) -> torch.Tensor:
        """Rows of the table of this name, (seeds, tokens, width)."""
        table = self.weights[name]
        return F.embedding(in_stack(table, ids), table.flatten(0, 1)).to(self.dtype)

    def project(self, name: str, x: torch.Tensor, outputs: slice = ALL) -> torch.Tensor:
        """A linear layer, or some of its outputs."""
        weight, bias = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        weight, bias = weight[:, outputs], bias[:, None, outputs]
        if self.short_products:
            return products.linear(x, weight, bias)
        return torch.baddbmm(bias, x, weight.transpose(1, 2))

    def activate(self, name: str, x: torch.Tensor) -> torch.Tensor:
        """A linear layer and the activation."""
        return ACTIVATIONS[self.activation](self.project(name, x))

    def add(
        self, residual: torch.Tensor, name: str, x: torch.Tensor, dropout: float, norm: str
    ) -> torch.Tensor:
        """A linear layer and dropout, added to the residual stream and normalised."""
        return self.norm(norm, residual + self.drop(self.project(name, x), dropout))

    def norm(self, name: str, x: torch.Tensor) -> torch.Tensor:
        """Layer normalisation."""
        weight, bias = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        normal = F.layer_norm(x, x.shape[-1:], eps=LAYER_NORM_EPSILON)
        return torch.addcmul(bias[:, None], normal, weight[:, None])

    def drop(self, x: torch.Tensor, probability: float) -> torch.Tensor:
        """Dropout; a probability of 0 outside training."""
        return F.dropout(x, probability) if probability > 0 else x

    def _weight(self, name: str) -> torch.Tensor:
        return self.weights[name].to(self.dtype)


def in_stack(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """The places of rows, (seeds, tokens), among the rows of all seeds' tables, (seeds, rows, width)."""
    return ids + torch.arange(len(table), device=ids.device)[:, None] * table.shape[1]
