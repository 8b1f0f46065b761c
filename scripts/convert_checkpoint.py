"""Make the files of a model from its checkpoint (rules convert_checkpoint, convert_*)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core import script

if TYPE_CHECKING:
    snakemake: Any

script.start(snakemake)

# heavy imports only after logging stands, so that their failures reach the log
from seedbed.core.files import write_json  # noqa: E402
from seedbed.models import intake  # noqa: E402

intake.convert_checkpoint(
    snakemake.input.source, snakemake.params.model, Path(snakemake.output.definition).parent
)
# the experiment is named for messages only, and not among params, as experiments share the folder
stamp = {"experiment": snakemake.config["experiment"], **snakemake.params.stamp}
write_json(snakemake.output.fingerprint, stamp)
