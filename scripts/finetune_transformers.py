"""Fine-tune with Transformers, select, predict and publish the run folder (rule finetune_transformers)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed import script

if TYPE_CHECKING:
    snakemake: Any

in_batch = snakemake.config["batches"]["runs"] > 1
log = script.start(snakemake, append=in_batch)  # a run that was trained here before keeps its log

# only after logging stands, so that failures reach the log; PyTorch is imported if this process trains
from seedbed import jobs, running  # noqa: E402

runs = jobs.jobs_from_rule(snakemake)
if in_batch:
    running.adopt(runs, Path(snakemake.input.batch[0]))
else:
    running.leave_out_unused(runs)
    slot = bool(snakemake.resources.get("gpu_slot", 0))
    running.run(runs, "seedbed.transformers_trainer", snakemake.config, slot)
