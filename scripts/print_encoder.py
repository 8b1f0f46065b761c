"""Write a model's architecture as Transformers prints it (rule print_encoder)."""

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
    from seedbed.models import printouts

printouts.write_transformers(Path(snakemake.input.definition).parent, snakemake.output.transformers)
