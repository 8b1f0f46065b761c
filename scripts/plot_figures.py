"""Draw the figures of the experiment (rule plot_figures)."""

from typing import TYPE_CHECKING, Any

from seedbed.core import script

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)

from seedbed.figures import plot  # noqa: E402  (after the log: drawing libraries are slow to load, and may warn)

plot.plot_figures(
    dict(snakemake.input.items()),
    snakemake.params.reporting,
    snakemake.output.svg,
    snakemake.output.png,
    snakemake.output.captions,
    snakemake.threads,
)
log.info("%d figures", len(snakemake.output.svg))
