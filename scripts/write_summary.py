"""Write the summary of the experiment in words and tables (rule write_summary)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core import script
from seedbed.figures.captions import read_caption
from seedbed.report import findings, summary

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)
captions = {Path(figure).stem: read_caption(figure) for figure in snakemake.input.figures}
found = findings.read_findings(dict(snakemake.input.items()), snakemake.params.reporting, captions)
summary.write_summary(found, snakemake.output.summary)
