"""Write the summary of the experiment in words and tables (rule write_summary)."""

from typing import TYPE_CHECKING, Any

from seedbed import script, summary

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)
summary.write_summary(
    {name: snakemake.input[name] for name in ("runs", "summary", "contrasts")},
    snakemake.input.audit,
    snakemake.input.run_json,
    snakemake.input.parity,
    snakemake.input.parameters,
    snakemake.params.reporting,
    snakemake.params.figures,
    snakemake.output.summary,
)
