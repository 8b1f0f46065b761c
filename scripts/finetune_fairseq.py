"""Fine-tune with fairseq, select, predict and publish the run folder (rule finetune_fairseq)."""

from typing import TYPE_CHECKING, Any

from seedbed import script

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)

# heavy imports only after logging stands, so that their failures reach the log
from seedbed import finetuning  # noqa: E402
from seedbed.fairseq import trainer  # noqa: E402

trainer.train(finetuning.jobs_from_rule(snakemake))
