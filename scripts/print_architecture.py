"""Write a model's architecture as each framework prints it (rule print_architecture)."""

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
    from seedbed.models import architecture

architecture.write_architectures(
    Path(snakemake.input.definition).parent,
    fairseq=snakemake.output.fairseq,
    transformers=snakemake.output.transformers,
)
