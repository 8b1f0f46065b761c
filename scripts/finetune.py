"""Fine-tune, select, predict and publish a run folder (rules finetune_*)."""

from typing import TYPE_CHECKING, Any

from seedbed import jobs, script

if TYPE_CHECKING:
    snakemake: Any

TRAINERS = {
    "finetune_fairseq": "seedbed.fairseq.trainer",
    "finetune_transformers": "seedbed.transformers_trainer",
    "finetune_causal": "seedbed.causal_trainer",
}
script.start(snakemake, append=jobs.in_batches(snakemake.config))

from seedbed import running  # noqa: E402

running.from_rule(snakemake, TRAINERS[snakemake.rule])

script.end()
