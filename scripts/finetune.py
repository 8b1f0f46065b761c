"""Fine-tune, select, predict and publish a run folder (rules finetune_*)."""

from typing import TYPE_CHECKING, Any

from seedbed.config import plan
from seedbed.core import script

if TYPE_CHECKING:
    snakemake: Any

TRAINERS = {
    "finetune_fairseq": "seedbed.training.fairseq.trainer",
    "finetune_transformers": "seedbed.training.transformers.classifier",
    "finetune_causal": "seedbed.training.transformers.causal",
}
script.start(snakemake, append=plan.in_batches(snakemake.config))

from seedbed.running import runner  # noqa: E402

# a module of another workflow may rename the rules
trainer = next(trainer for rule, trainer in TRAINERS.items() if rule in snakemake.rule)
runner.from_rule(snakemake, trainer)

script.end()
