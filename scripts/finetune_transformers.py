"""Fine-tune with Transformers, select, predict and publish the run folder (rule finetune_transformers)."""

from typing import TYPE_CHECKING, Any

from seedbed import script

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)

# heavy imports only after logging stands, so that their failures reach the log
from seedbed import finetuning, transformers_trainer  # noqa: E402

transformers_trainer.train(finetuning.jobs_from_rule(snakemake))
