"""fairseq's Adam with PyTorch's fused kernel: one pass over the weights instead of a dozen.

fairseq's update number t of a weight p, with the moments m and v, is

    p -= lr * decay * p
    p -= lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + eps)

and that of PyTorch's AdamW (Loshchilov and Hutter 2019),

    p -= lr * decay * p
    p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps')

Both are the same if eps' = eps / sqrt(1 - beta2^t).
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from fairseq.optim.adam import FairseqAdam

FUSED = ("cpu", "cuda")  # devices with PyTorch's kernel


class FusedAdam(torch.optim.AdamW):
    """The inner optimizer, with the arguments of fairseq's.

    All parameters share one count of updates, so a parameter must have a gradient in all updates or in none.
    """

    supports_flat_params = True  # fairseq asks

    def __init__(self, params: Sequence[torch.Tensor], *, eps: float, **options: Any):
        super().__init__(params, eps=eps, fused=True, **options)
        for group in self.param_groups:
            group.update(updates=0, fairseq_eps=eps)

    def step(self, closure: Any = None) -> Any:
        """One update of all parameters with a gradient."""
        for group in self.param_groups:
            group["updates"] += 1
            correction = 1 - group["betas"][1] ** group["updates"]
            group["eps"] = group["fairseq_eps"] / math.sqrt(correction)
        return super().step(closure)


class SeedbedAdam(FairseqAdam):
    """fairseq's `adam`, with the fused kernel if there is one for the weights."""

    def __init__(self, cfg: Any, params: Any):
        params = list(params)
        super().__init__(cfg, params)
        if all(weight.dtype == torch.float32 and weight.device.type in FUSED for weight in params):
            self._optimizer = FusedAdam(params, **self.optimizer_config)

    def multiply_grads(self, c: Any) -> None:
        """Multiply all gradients by a number, in one kernel instead of one for each."""
        gradients = [weight.grad for weight in self.params if weight.grad is not None]
        if gradients:
            torch._foreach_mul_(gradients, c.to(gradients[0].device) if torch.is_tensor(c) else c)
