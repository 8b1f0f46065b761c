"""Measure what a bag of words reaches on a dataset (rule bag_of_words)."""

from typing import TYPE_CHECKING, Any

from seedbed.config.resolve import resolve_config
from seedbed.core import files, script
from seedbed.core.tasks import TASKS
from seedbed.data import baselines, duplicates

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)
splits = {split: files.read_jsonl(snakemake.input[split]) for split in ("train", "validation", "test")}
leaked = duplicates.leaked_test_examples(duplicates.read_duplicates(snakemake.input.duplicates))
# not among params: a dataset of another task has other splits
dataset = resolve_config(snakemake.config)["datasets"][snakemake.wildcards.dataset]
rows = baselines.BAGS[TASKS[dataset["task"]].outputs](splits, leaked)
for row in rows:
    log.info("%(split)s %(metric)s %(value)s", row)
files.write_rows(snakemake.output.table, ["split", "metric", "value"], rows)
