"""Fine-tune the causal models of a batch (rule finetune_causal_batch)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed import script

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)

# only after logging stands, so that failures reach the log; PyTorch is imported by the processes that train
from seedbed import batches, jobs  # noqa: E402

runs = jobs.jobs_of_batch(snakemake)
logs = Path(snakemake.log[0]).with_suffix("")
batches.train(
    runs,
    "seedbed.causal_trainer",
    snakemake.config,
    logs,
    at_once=snakemake.config["batches"]["at_once"],
    slot=bool(snakemake.resources.get("gpu_slot", 0)),
)
batches.write_results(snakemake.output.done, runs, logs)
