"""Count a model's parameters and compare them with the formula (rule count_parameters)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core import script
from seedbed.models import parameters

if TYPE_CHECKING:
    snakemake: Any

script.start(snakemake)
parameters.write_parameters(
    snakemake.wildcards.model,
    Path(snakemake.input.definition).parent,
    snakemake.output.table,
)
