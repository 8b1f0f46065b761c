"""Fine-tune the runs of a batch (rules finetune_*_batch)."""

from typing import TYPE_CHECKING, Any

from seedbed import script

if TYPE_CHECKING:
    snakemake: Any

TRAINERS = {
    "finetune_fairseq_batch": "seedbed.fairseq.trainer",
    "finetune_transformers_batch": "seedbed.transformers_trainer",
    "finetune_causal_batch": "seedbed.causal_trainer",
}
script.start(snakemake)

# only after logging stands, so that failures reach the log; PyTorch is imported by the processes that train
from seedbed import batches  # noqa: E402

batches.from_rule(snakemake, TRAINERS[snakemake.rule])
