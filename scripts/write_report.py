"""Write the report of the experiment as one page, and its configuration (rule write_report)."""

from typing import TYPE_CHECKING, Any

from seedbed.core import script
from seedbed.figures.captions import read_captions
from seedbed.report import provenance, report, sources

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)
captions = read_captions(snakemake.input.captions, snakemake.input.figures)
experiment, found = sources.read(dict(snakemake.input.items()), snakemake.params.reporting, captions)
report.write_report(
    experiment,
    found,
    snakemake.input.models,
    snakemake.input.architectures,
    snakemake.input.texts,
    snakemake.params.config,
    snakemake.input.figures,
    snakemake.output.report,
)
provenance.write_config(snakemake.params.config, snakemake.output.config)
