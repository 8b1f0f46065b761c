"""Fit linear probes on the states of an encoder (rule probe)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core import files, script
from seedbed.data import duplicates, probes

if TYPE_CHECKING:
    snakemake: Any

script.start(snakemake)
splits = {split: files.read_jsonl(snakemake.input[split]) for split in ("train", "validation", "test")}
probes.write_probes(
    Path(snakemake.input.states),
    splits,
    files.read_json(snakemake.input.labels)["names"],
    duplicates.leaked_test_examples(duplicates.read_duplicates(snakemake.input.duplicates)),
    snakemake.output.predictions,
    snakemake.output.accuracy,
)
