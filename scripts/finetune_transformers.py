"""Fine-tune with Transformers, select, predict and publish the run folder (rule finetune_transformers)."""

from typing import TYPE_CHECKING, Any

from seedbed import jobs, script

if TYPE_CHECKING:
    snakemake: Any

# what a batch has trained is only adopted here, and keeps its log; a run folder brings its own record
batched = jobs.in_batches(snakemake.config)
script.start(snakemake, append=batched, compare=not batched, record=False)

# only after logging stands, so that failures reach the log; PyTorch is imported if this process trains
from seedbed import running  # noqa: E402

running.from_rule(snakemake, "seedbed.transformers_trainer")

script.end()
