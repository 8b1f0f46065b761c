"""AdamW on the stacked weights of all seeds; being elementwise, it updates each seed like a separate run."""

import math
from collections.abc import Mapping
from typing import Any

import torch

from seedbed.training.fused.model import Weights


class StackedAdamW:
    """Each framework's AdamW, with gradients clipped for each seed separately.

    fairseq adds epsilon to the root of the second moment before its bias correction, PyTorch after it.
    Dividing fairseq's epsilon by the correction sqrt(1 - beta2^t) of update t gives the same update.

    Args:
        weights: the stacked weights to train.
        settings: a resolved recipe.
        framework: `fairseq` or `transformers`.
    """

    def __init__(self, weights: Weights, settings: Mapping[str, Any], framework: str):
        self._weights, self._settings = weights, settings
        self._is_fairseq = framework == "fairseq"
        skipped = () if self._is_fairseq else settings["weight_decay_skip"]  # fairseq skips nothing
        kept = [tensor for name, tensor in weights.items() if not _is_skipped(name, skipped)]
        rest = [tensor for name, tensor in weights.items() if _is_skipped(name, skipped)]
        decay = settings["weight_decay"]
        groups = [{"params": kept, "weight_decay": decay}, {"params": rest, "weight_decay": 0.0}]
        self._optimizer = torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=0.0,
            betas=tuple(settings["adam_betas"]),
            eps=settings["adam_epsilon"],
            fused=True,
        )

    def step(self, learning_rate: float, update: int) -> None:
        """Update all weights, then drop the gradients.

        Args:
            learning_rate: the learning rate of this update.
            update: its number, from 1.
        """
        self._clip()
        epsilon = self._settings["adam_epsilon"]
        if self._is_fairseq:
            epsilon /= math.sqrt(1 - self._settings["adam_betas"][1] ** update)
        for group in self._optimizer.param_groups:
            group["lr"], group["eps"] = learning_rate, epsilon
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def _clip(self) -> None:
        limit = self._settings["clip_norm"]
        if limit <= 0:
            return
        gradients = [tensor.grad for tensor in self._weights.values()]
        parts = [torch.linalg.vector_norm(gradient.flatten(1), dim=1) for gradient in gradients]
        norms = torch.linalg.vector_norm(torch.stack(parts), dim=0)  # of each seed
        factors = (limit / (norms + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(factors.view(-1, *[1] * (gradient.dim() - 1)))

    def state_dict(self) -> dict[str, Any]:
        """The moments; not copied."""
        return self._optimizer.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the moments from `state_dict`."""
        self._optimizer.load_state_dict(state)


def _is_skipped(name: str, skipped: list[str] | tuple[()]) -> bool:
    """Whether a weight has no weight decay; a bias of a layer norm counts as norm."""
    in_norm = "norm" in name
    return (in_norm and "norm" in skipped) or (name.endswith("bias") and not in_norm and "bias" in skipped)
