"""Train bags of words on as many texts as the runs of each size (rule bags_of_sizes)."""

from typing import TYPE_CHECKING, Any

from seedbed.config.resolve import resolve_config
from seedbed.core import script
from seedbed.core.splits import SPLITS
from seedbed.core.tasks import task_of
from seedbed.data.bags_of_sizes import write_bags
from seedbed.data.baselines_of_sizes import Sizes

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)
sizes = Sizes.read(
    {split: snakemake.input[split] for split in SPLITS},
    dict(zip(snakemake.params.data_seeds, snakemake.input.orders, strict=True)),
    snakemake.params.sizes,
    snakemake.input.labels,
    # its metric is among params
    task_of(resolve_config(snakemake.config)),
)
write_bags(snakemake.output.bags, snakemake.output.predictions, sizes)
