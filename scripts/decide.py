"""Decide which questions get more seeds, and which sweeps more values (rule decide)."""

from typing import TYPE_CHECKING, Any

from seedbed.analysis.experiment import Experiment
from seedbed.analysis.stopping import decision, told
from seedbed.core import files, script

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)
reporting = snakemake.params.reporting
found = decision(Experiment.read(dict(snakemake.input.items()), reporting), reporting)
for name, question in found["questions"].items():
    log.info(told(name, question))
files.write_json(snakemake.output.decision, found)

script.end()
