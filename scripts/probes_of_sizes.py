"""Train linear probes on as many texts as the runs of each size (rule probes_of_sizes)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core import script
from seedbed.data.baselines_of_sizes import Sizes
from seedbed.data.probes_of_sizes import write_probes_of_sizes

if TYPE_CHECKING:
    snakemake: Any

script.start(snakemake)
sizes = Sizes.from_rule(snakemake)
write_probes_of_sizes(
    snakemake.output.probes, snakemake.output.predictions, Path(snakemake.input.states), sizes
)
