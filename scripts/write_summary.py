"""Write the summary of the experiment in words and tables (rule write_summary)."""

from typing import TYPE_CHECKING, Any

from seedbed.core import script
from seedbed.figures.captions import read_captions
from seedbed.report import sources, summary

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)
captions = read_captions(snakemake.input.captions, snakemake.input.figures)
experiment, found = sources.read(dict(snakemake.input.items()), snakemake.params.reporting, captions)
summary.write_summary(experiment, found, snakemake.output.summary, snakemake.output.facts)
