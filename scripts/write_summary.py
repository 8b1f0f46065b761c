"""Write the summary of the experiment in words and tables (rule write_summary)."""

from typing import TYPE_CHECKING, Any

from seedbed import findings, script, summary

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)
found = findings.read_findings(
    {name: snakemake.input[name] for name in findings.TABLES},
    snakemake.input.audit,
    snakemake.input.run_json,
    snakemake.input.parity,
    snakemake.input.parameters,
    snakemake.params.reporting,
    snakemake.params.figures,
)
summary.write_summary(found, snakemake.output.summary)
