"""AdamW on embedding tables that touches only the rows of a batch, with the numbers of a dense update.

A row without a gradient still moves, by its moments and weight decay. Nobody reads it until its token occurs
again, so its missed updates are made then, one after another in registers: the same arithmetic as that of a
dense update, without its memory traffic. Before anything else reads the table, `catch_up` brings all rows up
to date.
"""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl


class Table:
    """A table of all seeds, and its moments.

    Args:
        weight: (seeds, rows, width), float32.
        schedule: learning rate, corrections of both moments' biases and epsilon by update, (updates + 1, 4).
        betas: of both moments.
        decay: weight decay.

    Attributes:
        gradient: of the shape of the table; only rows of the latest batch are read.
    """

    def __init__(self, weight: torch.Tensor, schedule: torch.Tensor, betas: Sequence[float], decay: float):
        self.weight, self.gradient = weight.detach(), torch.zeros_like(weight)
        self.moments = [torch.zeros_like(self.weight) for _ in range(2)]
        # how many updates each row has had
        self.made = torch.zeros(weight.shape[:2], dtype=torch.int32, device=weight.device)
        self._schedule, self._betas, self._decay = schedule, betas, decay
        self._ones = torch.ones(len(weight), device=weight.device)

    def prepare(self, ids: torch.Tensor, update: int) -> None:
        """Bring the rows of a batch, (seeds, tokens), to the state before an update, counted from 1."""
        self._advance(ids, update - 1, None)

    def step(self, ids: torch.Tensor, update: int, factors: torch.Tensor | None = None) -> None:
        """Make an update of the rows of a batch.

        Args:
            ids: the rows, (seeds, tokens).
            update: the update's number, from 1.
            factors: of each seed's gradients, (seeds,); None: 1.
        """
        self._advance(ids, update, self._ones if factors is None else factors)

    def catch_up(self, update: int) -> None:
        """Bring all rows to the state after an update."""
        rows = torch.arange(self.weight.shape[1], device=self.weight.device)
        self._advance(rows.expand(len(self.weight), -1).contiguous(), update, None)

    def restore(self, moments: Sequence[torch.Tensor], update: int) -> None:
        """Continue with moments after an update; the weights are restored by others."""
        for own, moment in zip(self.moments, moments, strict=True):
            own.copy_(moment)
        self.made.fill_(update)

    def _advance(self, ids: torch.Tensor, update: int, factors: torch.Tensor | None) -> None:
        _, rows, width = self.weight.shape
        seeds, tokens = ids.shape
        _advance[(seeds, tokens)](
            *(self.weight, *self.moments, self.gradient, self.made, self._schedule, ids),
            *(factors if factors is not None else self._ones, update, rows, width, *self._betas, self._decay),
            HAS_GRADIENT=factors is not None,
            BLOCK=triton.next_power_of_2(width),
        )


@triton.jit(do_not_specialize=["update"])
def _advance(weight, first, second, gradient, made, schedule, ids, factors, update, rows, width, beta1, beta2,
             decay, HAS_GRADIENT: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    seed = tl.program_id(0)
    row = seed * rows + tl.load(ids + seed * tl.num_programs(1) + tl.program_id(1)).to(tl.int32)
    # a token that occurs twice is taken by the program that comes first
    done = tl.atomic_max(made + row, update)
    if done < update:
        column = tl.arange(0, BLOCK)
        inside = column < width
        at = row.to(tl.int64) * width + column
        w, m, v = tl.load(weight + at, inside), tl.load(first + at, inside), tl.load(second + at, inside)
        last = update - 1 if HAS_GRADIENT else update
        for k in range(done + 1, last + 1):
            m = m * beta1
            v = v * beta2
            w = _moved(w, m, v, schedule + 4 * k, decay)
        if HAS_GRADIENT:
            g = tl.load(gradient + at, inside) * tl.load(factors + seed)
            m = m * beta1 + (1 - beta1) * g
            v = v * beta2 + (1 - beta2) * g * g
            w = _moved(w, m, v, schedule + 4 * update, decay)
        tl.store(weight + at, w, inside)
        tl.store(first + at, m, inside)
        tl.store(second + at, v, inside)


@triton.jit
def _moved(w, m, v, schedule, decay):
    """Weights after an update, from their moments."""
    rate, one = tl.load(schedule), tl.load(schedule + 1)
    two, epsilon = tl.load(schedule + 2), tl.load(schedule + 3)
    return w * (1 - rate * decay) - rate / one * m / (tl.sqrt(v) / two + epsilon)
