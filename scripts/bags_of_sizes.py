"""Train bags of words on as many texts as the runs of each size (rule bags_of_sizes)."""

from typing import TYPE_CHECKING, Any

from seedbed.config.resolve import resolve_config
from seedbed.core import files, script
from seedbed.core.splits import SPLITS
from seedbed.core.tasks import task_of
from seedbed.data import bags_of_sizes, subsets

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)
splits = {split: files.read_jsonl(snakemake.input[split]) for split in SPLITS}
orders = dict(zip(snakemake.params.data_seeds, map(subsets.read_order, snakemake.input.orders), strict=True))
about = files.read_json(snakemake.input.labels)
labels = bags_of_sizes.Labels(
    # its metric is among params
    task_of(resolve_config(snakemake.config)),
    about.get("names", ()),
    about.get("labels", ()),
)
bags_of_sizes.write_bags(
    snakemake.output.bags,
    snakemake.output.predictions,
    splits,
    orders,
    snakemake.params.sizes,
    labels,
)
