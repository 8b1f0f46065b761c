"""Fine-tune the runs of a batch with Transformers (rule finetune_transformers_batch)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed import script

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)

# only after logging stands, so that failures reach the log; PyTorch is imported by the processes that train
from seedbed import batches, files, jobs  # noqa: E402

runs = jobs.jobs_of_batch(snakemake)
batches.train(
    runs,
    "seedbed.transformers_trainer",
    snakemake.config,
    logs=Path(snakemake.log[0]).with_suffix(""),
    at_once=snakemake.config["batches"]["at_once"],
    slot=bool(snakemake.resources.get("gpu_slot", 0)),
)
files.write_json(snakemake.output.done, {"identities": {job.name: job.identity for job in runs}})
