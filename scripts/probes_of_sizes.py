"""Train linear probes on as many texts as the runs of each size (rule probes_of_sizes)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.config.resolve import resolve_config
from seedbed.core import script
from seedbed.core.splits import SPLITS
from seedbed.core.tasks import task_of
from seedbed.data.baselines_of_sizes import Sizes
from seedbed.data.probes_of_sizes import write_probes

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
write_probes(snakemake.output.probes, snakemake.output.predictions, Path(snakemake.input.states), sizes)
