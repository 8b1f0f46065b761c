"""Fine-tune with Transformers, select, predict and publish the run folder (rule finetune_transformers)."""

from typing import TYPE_CHECKING, Any

from seedbed import jobs, script

if TYPE_CHECKING:
    snakemake: Any

# a run that was trained in a batch before keeps its log
script.start(snakemake, append=jobs.in_batches(snakemake.config))

# only after logging stands, so that failures reach the log; PyTorch is imported if this process trains
from seedbed import running  # noqa: E402

running.from_rule(snakemake, "seedbed.transformers_trainer")

script.end()
