"""Fine-tune with fairseq, select, predict and publish the run folder (rule finetune_fairseq)."""

from typing import TYPE_CHECKING, Any

from seedbed import script

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)

# only after logging stands, so that failures reach the log; PyTorch is imported if this process trains
from seedbed import files, jobs, running  # noqa: E402

runs = jobs.jobs_from_rule(snakemake)
if snakemake.config["batches"]["runs"] > 1:
    running.adopt(runs, files.read_json(snakemake.input.batch[0])["identities"])
else:
    slot = bool(snakemake.resources.get("gpu_slot", 0))
    running.run(runs, "seedbed.fairseq.trainer", snakemake.config, slot)
