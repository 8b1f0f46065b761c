"""Check that both frameworks start from the same ids and states (rule check_parity)."""

from typing import TYPE_CHECKING, Any

from seedbed.core import script

if TYPE_CHECKING:
    snakemake: Any

script.start(snakemake)

# heavy imports only after logging stands, so that their failures reach the log
from pathlib import Path  # noqa: E402

from seedbed.core import imports  # noqa: E402

imports.leave_out(imports.UNUSED)
with imports.uncollected():
    import torch

    from seedbed.models import parity

torch.set_num_threads(snakemake.threads)
splits = ("train", "validation", "test")
parity.check_parity(
    texts=dict(zip(splits, snakemake.input.texts, strict=True)),
    tokens=dict(zip(splits, snakemake.input.tokens, strict=True)),
    model=Path(snakemake.input.definition).parent,
    reviews=snakemake.params.reviews,
    tolerance=snakemake.params.tolerance,
    output=snakemake.output.parity,
)
