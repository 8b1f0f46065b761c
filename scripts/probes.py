"""Gather the accuracies of an experiment's probes (rule probes)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core import files, script
from seedbed.data import probes

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)
paths = [Path(path) for path in snakemake.input.accuracies]  # .../DATASET/MODEL/probes/ENCODER_accuracy.csv
places = [
    {
        "dataset": path.parents[2].name,
        "model": path.parents[1].name,
        "encoder": path.stem.removesuffix("_accuracy"),
    }
    for path in paths
]
rows = probes.table(places, [files.read_rows(path) for path in paths])
for row in rows:
    log.info("%(dataset)s %(model)s, %(states)s: %(test_accuracy)s on test", row)
files.write_rows(snakemake.output.table, probes.TABLE_COLUMNS, rows)
