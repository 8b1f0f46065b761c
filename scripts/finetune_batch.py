"""Fine-tune the runs of a batch (rules finetune_*_batch)."""

from typing import TYPE_CHECKING, Any

from seedbed.core import script

if TYPE_CHECKING:
    snakemake: Any

script.start(snakemake)

# only after logging stands, so that failures reach the log; PyTorch is imported by the processes that train
from seedbed.running import batches  # noqa: E402

batches.from_rule(snakemake)
