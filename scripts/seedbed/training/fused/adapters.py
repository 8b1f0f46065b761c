"""LoRA for several seeds at once: an adapter and a head for each, beside frozen weights.

Seeds from the checkpoint share its weights, so a frozen layer is one product of the tokens of all seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from seedbed.core.naming import fairseq_name
from seedbed.running.jobs import Job
from seedbed.training import adapter_parameters, products
from seedbed.training.fused.model import HEAD, stack
from seedbed.training.fused.operations import ALL, Operations, Weights

ENCODER = "base_model.model.roberta."  # peft's name of the encoder
TRAINED_HEAD = "base_model.model.classifier.modules_to_save.default"  # and of the head that it trains


class Adapted(Operations):
    """The operations with an adapter beside some linear layers: x W^T + b + s drop(x) A^T B^T.

    The formula is that of Hu et al. (2021, section 4.1), with dropout as in peft.

    Args:
        weights: of the model; the first dimension is 1 for weights that all seeds share.
        adapters: A, (seeds, rank, inputs), and B, (seeds, outputs, rank), by fairseq's name of the layer.
        scale: s, the recipe's lora_alpha / r.
        activation, dtype, short_products: as of `Operations`.
    """

    def __init__(
        self,
        weights: Weights,
        adapters: Mapping[str, tuple[torch.Tensor, torch.Tensor]],
        scale: float,
        activation: str,
        dtype: torch.dtype,
        short_products: bool,
    ):
        super().__init__(weights, activation, dtype, short_products)
        self._adapters, self._scale = adapters, scale

    def project(self, name: str, x: torch.Tensor, outputs: slice = ALL) -> torch.Tensor:
        weight = self._weight(f"{name}.weight")[:, outputs]
        rest = self._all_but_product(name, x, outputs)
        if self.short_products:
            return products.linear(x, weight if len(weight) == len(x) else weight[0], rest)
        if len(weight) == len(x):
            return torch.baddbmm(rest, x, weight.transpose(1, 2))
        rows = torch.addmm(rest.flatten(0, 1), x.flatten(0, 1), weight[0].T)
        return rows.view(*x.shape[:2], -1)

    def _all_but_product(self, name: str, x: torch.Tensor, outputs: slice) -> torch.Tensor:
        """Bias and adapter: (seeds, tokens, outputs), or (1 or seeds, 1, outputs) without an adapter."""
        bias = self._weight(f"{name}.bias")[:, None]
        joined = [name.replace(".qkv_proj", f".{part}_proj") for part in "qkv"] if "qkv" in name else [name]
        if not any(layer in self._adapters for layer in joined):
            return bias[..., outputs]
        chosen = range(bias.shape[-1])[outputs]
        size = bias.shape[-1] // len(joined)
        places = ((layer, number * size) for number, layer in enumerate(joined) if number * size in chosen)
        return torch.cat([self._of_layer(layer, x, bias[..., at : at + size]) for layer, at in places], -1)

    def _of_layer(self, layer: str, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Bias and adapter of a layer that is not joined to others, (seeds, tokens, outputs)."""
        if layer not in self._adapters:
            return bias.expand(*x.shape[:2], -1)
        a, b = (weight.to(self.dtype).transpose(1, 2) for weight in self._adapters[layer])
        inner = torch.bmm(self.drop(x, self.adapter_dropout), a)
        return torch.baddbmm(bias, inner, b, alpha=self._scale)


class Adapters:
    """The trained weights of a group's runs, drawn and written by the code of separate runs.

    Args:
        job: a run of the group.
        members: init, init seed and data seed of all runs of the group.
        device: the device of training.

    Attributes:
        weights: adapters and heads, (seeds, ...), by peft's names.

    Raises:
        SeedbedError: see `adapters.apply`.
    """

    def __init__(self, job: Job, members: Sequence[Sequence[Any]], device: torch.device):
        from seedbed.training import methods  # it imports Transformers, which other groups do without
        from seedbed.training.transformers import be_quiet

        be_quiet()
        self._job, drawn = job, []
        for init, init_seed, _ in members:
            member = replace(job, run={**job.run, "init": init, "init_seed": init_seed})
            self._model: Any = methods.of(member).classifier()
            trained = (item for item in self._model.named_parameters() if item[1].requires_grad)
            drawn.append({name: weight.detach() for name, weight in trained})
        self.weights = stack(drawn, device)

    def operations(
        self, seeds: Sequence[Weights], activation: str, dtype: torch.dtype, short_products: bool
    ) -> Adapted:
        """The operations on the trained weights and the frozen ones.

        Args:
            seeds: initial weights of each seed, or of one if all have the same encoder.
            activation, dtype, short_products: as of `Operations`.
        """
        from seedbed.training.adapters import DTYPES

        lora, stored = self._job.settings["lora"], DTYPES[self._job.settings["frozen_dtype"]]
        device = next(iter(self.weights.values())).device
        encoders = [
            {name: tensor.to(stored).to(dtype) for name, tensor in weights.items() if HEAD not in name}
            for weights in seeds
        ]
        head = {
            name.replace(TRAINED_HEAD, HEAD): tensor
            for name, tensor in self.weights.items()
            if name.startswith(TRAINED_HEAD)
        }
        scale = lora["lora_alpha"] / lora["r"]
        weights = stack(encoders, device) | head
        return Adapted(weights, self._by_layer(), scale, activation, dtype, short_products)

    def _by_layer(self) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        found = {}
        for name, a in self.weights.items():
            module, is_a, rest = name.removeprefix(ENCODER).partition("lora_A.")
            if is_a:
                layer = str(fairseq_name(module)).removesuffix(".")
                found[layer] = a, self.weights[f"{ENCODER}{module}lora_B.{rest}"]
        return found

    def parameters(self) -> dict[str, Any]:
        """The parameters of each run."""
        return adapter_parameters.describe(self._model, self._job.method.name, self._job.settings["lora"])

    def save(self, own: Weights, job: Job, ready: Path) -> dict[str, Any]:
        """Write a run's adapter into the run folder `ready`; returns entries for run.json."""
        from seedbed.training import adapters

        self._model.load_state_dict(own, strict=False)
        return adapters.keep(self._model, job, ready)
