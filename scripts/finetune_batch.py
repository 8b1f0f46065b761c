"""Fine-tune the runs of a batch (rules finetune_*_batch)."""

from typing import TYPE_CHECKING, Any

from seedbed.core import script

if TYPE_CHECKING:
    snakemake: Any

TRAINERS = {
    "finetune_fairseq_batch": "seedbed.training.fairseq.trainer",
    "finetune_transformers_batch": "seedbed.training.transformers.classifier",
    "finetune_causal_batch": "seedbed.training.transformers.causal",
}
script.start(snakemake)

# only after logging stands, so that failures reach the log; PyTorch is imported by the processes that train
from seedbed.running import batches  # noqa: E402

# a module of another workflow may rename the rules
trainer = next(trainer for rule, trainer in TRAINERS.items() if rule in snakemake.rule)
batches.from_rule(snakemake, trainer)
