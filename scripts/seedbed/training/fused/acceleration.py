"""Use Triton's kernels where they work."""

import logging
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from seedbed.training.fused.operations import Operations, Weights
from seedbed.training.fused.optimizer import epsilon_of
from seedbed.training.schedule import learning_rate

if TYPE_CHECKING:
    from seedbed.training.fused.tables import Table

ACTIVATION = "gelu"  # the kernels have no other
TABLES = ("embed_tokens.weight", "embed_positions.weight")
log = logging.getLogger(__name__)


def kernels(
    weights: Weights, schedule: torch.Tensor, settings: Mapping[str, Any], draw: int
) -> "tuple[Operations, dict[str, Table]] | None":
    """The operations in few kernels, and the embedding tables by name; None where Triton does not work.

    Triton needs a C compiler at its first use on a machine.

    Args:
        weights: the stacked weights.
        schedule: see `schedule`.
        settings: a resolved recipe.
        draw: what dropout's random numbers depend on.
    """
    try:
        from seedbed.training.fused.kernels import Kernels
        from seedbed.training.fused.tables import Table

        betas, decay = settings["adam_betas"], settings["weight_decay"]
        tables = {name: Table(weights[name], schedule, betas, decay) for name in TABLES}
        for table in tables.values():
            table.catch_up(0)
        return Kernels(weights, {name: table.gradient for name, table in tables.items()}, draw), tables
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # whatever a missing or unfit compiler leads to
        log.warning(
            "training goes on without Triton's kernels, more slowly: %s: %s", type(error).__name__, error
        )
        return None


def schedule(total: int, settings: Mapping[str, Any], framework: str, device: torch.device) -> torch.Tensor:
    """Learning rate, corrections of both moments' biases, and epsilon of each update, (total + 1, 4).

    Row 0 is not used. The corrections are 1 - beta1^t and sqrt(1 - beta2^t); for epsilon see
    `optimizer.epsilon_of`.
    """
    beta1, beta2 = settings["adam_betas"]
    rows = [[0.0, 1.0, 1.0, 1.0]]
    for update in range(1, total + 1):
        one, two = 1 - beta1**update, math.sqrt(1 - beta2**update)
        epsilon = epsilon_of(settings, framework == "fairseq", update)
        rows.append([learning_rate(update - 1, total, dict(settings)), one, two, epsilon])
    return torch.tensor(rows, dtype=torch.float32, device=device)
