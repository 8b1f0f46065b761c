"""Write all that people read of the experiment: figures, tables, summary, report (rule write_report)."""

from typing import TYPE_CHECKING, Any

from seedbed.core import script

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)

from seedbed.report import all_files  # noqa: E402  (after the log: drawing libraries are slow to load, and may warn)

all_files.write(
    dict(snakemake.input.items()),
    dict(snakemake.output.items()),
    snakemake.params.reporting,
    snakemake.params.config,
    snakemake.threads,
)
log.info("%d figures", len(snakemake.output.svg))

script.end()
