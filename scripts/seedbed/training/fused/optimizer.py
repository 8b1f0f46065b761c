"""AdamW on the stacked weights of all seeds; being elementwise, it updates each seed like a separate run."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from seedbed.training.fused.operations import Weights

if TYPE_CHECKING:
    from seedbed.training.fused.tables import Table


class StackedAdamW:
    """Each framework's AdamW, with gradients clipped for each seed separately.

    Args:
        weights: the stacked weights to train.
        settings: a resolved recipe.
        framework: `fairseq` or `transformers`.
        tables: those of the weights, by name, whose rows are updated when they are read.
    """

    def __init__(
        self,
        weights: Weights,
        settings: Mapping[str, Any],
        framework: str,
        tables: "Mapping[str, Table] | None" = None,
    ):
        self._settings, self._is_fairseq = settings, framework == "fairseq"
        self._tables = tables or {}
        self._weights = {name: tensor for name, tensor in weights.items() if name not in self._tables}
        skipped = () if self._is_fairseq else settings["weight_decay_skip"]  # fairseq skips nothing
        kept = [tensor for name, tensor in self._weights.items() if not _is_skipped(name, skipped)]
        rest = [tensor for name, tensor in self._weights.items() if _is_skipped(name, skipped)]
        decay = settings["weight_decay"]
        groups = [{"params": kept, "weight_decay": decay}, {"params": rest, "weight_decay": 0.0}]
        self._optimizer = torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=0.0,
            betas=tuple(settings["adam_betas"]),
            eps=settings["adam_epsilon"],
            fused=True,
        )

    @property
    def dense(self) -> list[torch.Tensor]:
        """The weights that are not tables, whose gradients PyTorch keeps."""
        return list(self._weights.values())

    @property
    def has_tables(self) -> bool:
        """Whether there are tables whose rows are updated when they are read."""
        return bool(self._tables)

    def prepare(self, rows: Mapping[str, torch.Tensor], update: int) -> None:
        """Bring the tables' rows that an update reads up to date.

        Args:
            rows: of each table, (seeds, tokens).
            update: the update's number, from 1.
        """
        for name, table in self._tables.items():
            table.prepare(rows[name], update)

    def step(self, learning_rate: float, update: int, rows: Mapping[str, torch.Tensor]) -> None:
        """Update all weights, then drop the gradients.

        Args:
            learning_rate: the learning rate of this update.
            update: its number, from 1.
            rows: as for `prepare`.
        """
        factors = self._clip()
        epsilon = epsilon_of(self._settings, self._is_fairseq, update)
        for group in self._optimizer.param_groups:
            group["lr"], group["eps"] = learning_rate, epsilon
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        for name, table in self._tables.items():
            table.step(rows[name], update, factors)

    def catch_up(self, update: int) -> None:
        """Bring the tables to the state after an update; call it before anything but an update reads them."""
        for table in self._tables.values():
            table.catch_up(update)

    def _clip(self) -> torch.Tensor | None:
        """Scale gradients; those of tables are scaled by what this returns, (seeds,)."""
        limit = self._settings["clip_norm"]
        if limit <= 0:
            return None
        gradients = [tensor.grad for tensor in self._weights.values()]
        of_tables = [table.gradient for table in self._tables.values()]
        parts = [torch.linalg.vector_norm(each.flatten(1), dim=1) for each in [*gradients, *of_tables]]
        norms = torch.linalg.vector_norm(torch.stack(parts), dim=0)  # of each seed
        factors = (limit / (norms + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(factors.view(-1, *[1] * (gradient.dim() - 1)))
        return factors

    def state_dict(self) -> dict[str, Any]:
        """The moments; not copied. The tables must be up to date."""
        tables = {name: table.moments for name, table in self._tables.items()}
        return {"dense": self._optimizer.state_dict(), "tables": tables}

    def load_state_dict(self, state: dict[str, Any], update: int) -> None:
        """Restore the moments from `state_dict`, after the given update."""
        self._optimizer.load_state_dict(state["dense"])
        for name, table in self._tables.items():
            table.restore(state["tables"][name], update)


def epsilon_of(settings: Mapping[str, Any], is_fairseq: bool, update: int) -> float:
    """Epsilon of an update, from 1, that gives each framework's update in PyTorch's AdamW.

    fairseq adds epsilon to the root of the second moment before its bias correction, PyTorch after it. So
    fairseq's epsilon is divided by the correction sqrt(1 - beta2^t) of update t.
    """
    epsilon = settings["adam_epsilon"]
    return epsilon / math.sqrt(1 - settings["adam_betas"][1] ** update) if is_fairseq else epsilon


def _is_skipped(name: str, skipped: list[str] | tuple[()]) -> bool:
    """Whether a weight has no weight decay; a bias of a layer norm counts as norm."""
    in_norm = "norm" in name
    return (in_norm and "norm" in skipped) or (name.endswith("bias") and not in_norm and "bias" in skipped)
