"""Look for what is odd in the data of the experiment (rule audit)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core import script

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)

from seedbed.data import audit  # noqa: E402  (after the log: drawing libraries are slow to load)
from seedbed.figures import audit_figure  # noqa: E402

datasets = audit.audit(
    [Path(path).parent for path in snakemake.input.splits],
    {Path(path).parent.name: path for path in snakemake.input.models},
    snakemake.params.recipes,
    snakemake.output.table,
    snakemake.params.label_names,
)
audit_figure.plot_audit(datasets, snakemake.output.svg, snakemake.output.png, snakemake.output.caption)
log.info("audited: %s", ", ".join(dataset.name for dataset in datasets))
