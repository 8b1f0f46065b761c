"""Write the summary and the contrasts as tables for people (rule write_tables)."""

from typing import TYPE_CHECKING, Any

from seedbed.core import script
from seedbed.report import export

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)
export.write_tables(
    snakemake.input.summary,
    snakemake.input.contrasts,
    snakemake.params.reporting,
    dict(snakemake.output.items()),
)
