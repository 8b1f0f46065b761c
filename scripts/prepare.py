"""Check a dataset and write its splits (rules prepare and prepare_questions)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core import script
from seedbed.data import preparation

if TYPE_CHECKING:
    snakemake: Any

script.start(snakemake)
preparation.prepare(
    snakemake.wildcards.dataset,
    snakemake.params.dataset,
    snakemake.input.source,
    Path(snakemake.output.train).parent,
    # the experiment is named for messages only, and not among params, as experiments share the folder
    {"experiment": snakemake.config["experiment"], **snakemake.params.stamp},
)
