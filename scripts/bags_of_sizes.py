"""Train bags of words on as many texts as the runs of each size (rule bags_of_sizes)."""

from typing import TYPE_CHECKING, Any

from seedbed.core import script
from seedbed.data.bags_of_sizes import write_bags
from seedbed.data.baselines_of_sizes import Sizes

if TYPE_CHECKING:
    snakemake: Any

script.start(snakemake)
sizes = Sizes.from_rule(snakemake)
write_bags(snakemake.output.bags, snakemake.output.predictions, sizes)
