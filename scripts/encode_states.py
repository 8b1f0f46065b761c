"""Compute the states of a dataset's texts (rule encode_states)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core import script
from seedbed.core.states import EncoderOfStates

if TYPE_CHECKING:
    snakemake: Any

script.start(snakemake)

# heavy imports only after logging stands, so that their failures reach the log
from seedbed.core import imports  # noqa: E402

imports.leave_out(imports.UNUSED)
with imports.uncollected():
    import torch

    from seedbed.training import states

torch.set_num_threads(snakemake.threads)
states.write_states(
    EncoderOfStates.named(snakemake.wildcards.states),
    weights=Path(snakemake.input.weights).parent,
    tokens=Path(snakemake.input.tokens[0]).parent,
    definition=Path(snakemake.input.model),
    labels=Path(snakemake.input.labels),
    output=Path(snakemake.output.states),
)
