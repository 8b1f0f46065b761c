"""Binarize token pieces and labels for fairseq, and read them back (rule binarize)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core import script

if TYPE_CHECKING:
    snakemake: Any

script.start(snakemake)

# heavy imports only after logging stands, so that their failures reach the log
from seedbed.running import claims  # noqa: E402
from seedbed.training.fairseq import binarization  # noqa: E402

output = Path(snakemake.output.summary).parent
splits = ("train", "validation", "test")
# one at a time, where two workflows share the results, or a killed one left this rule running
with claims.claim(output.with_name(".binarizing"), what="this folder"):
    binarization.binarize(
        pieces=dict(zip(splits, snakemake.input.pieces, strict=True)),
        labels=dict(zip(splits, snakemake.input.labels, strict=True)),
        tokens=dict(zip(splits, snakemake.input.tokens, strict=True)),
        dictionary=snakemake.input.dictionary,
        classes=snakemake.input.classes,
        output=output,
    )
