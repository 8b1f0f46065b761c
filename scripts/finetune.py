"""Fine-tune, select, predict and publish a run folder (rules finetune_*)."""

from typing import TYPE_CHECKING, Any

from seedbed.core import script

if TYPE_CHECKING:
    snakemake: Any

script.start(snakemake, append=bool(snakemake.input.get("batch")))

from seedbed.running import runner  # noqa: E402

runner.from_rule(snakemake)

script.end()
