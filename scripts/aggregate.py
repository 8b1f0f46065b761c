"""Gather all runs of the experiment into its tables (rule aggregate)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.analysis import tables
from seedbed.core import script

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)
folders = [Path(path).parent for path in snakemake.input.run_json]
log.info("%d runs", len(folders))
tables.aggregate(
    folders,
    snakemake.input.bag_of_words,
    snakemake.input.duplicates,
    snakemake.params.reporting,
    dict(snakemake.output.items()),
    snakemake.input.splits,
    snakemake.input.subsets,
    # each has two files
    *(
        list(dict.fromkeys(Path(path).parent for path in paths))
        for paths in (snakemake.input.bags_of_sizes, snakemake.input.probes_of_sizes)
    ),
)

script.end()
