"""Draw the order of a dataset's training texts for runs of a size (rule draw_subset)."""

from typing import TYPE_CHECKING, Any

from seedbed.config.resolve import resolve_config
from seedbed.core import files, script
from seedbed.core.tasks import TASKS
from seedbed.data import subsets

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)
examples = files.read_jsonl(snakemake.input.train)
# not among params, which would draw anew for any change of the dataset
dataset = resolve_config(snakemake.config)["datasets"][snakemake.wildcards.dataset]
seed = int(snakemake.wildcards.data_seed)
subsets.write_order(snakemake.output.order, examples, TASKS[dataset["task"]].outputs, seed)
log.info("%d training texts in the order of data seed %d", len(examples), seed)
