"""Count what each adapter trains and compare with the formula (rule count_trainable)."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core import script
from seedbed.training import adapter_parameters

if TYPE_CHECKING:
    snakemake: Any

script.start(snakemake)
# peft imports it wherever it is installed, even broken; here nothing is in 4 bits
sys.modules["bitsandbytes"] = None
configs = [Path(path) for path in snakemake.input.models]  # .../MODEL/huggingface/config.json
adapter_parameters.write_trainable(
    {path.parent.parent.name: path.parent for path in configs},
    snakemake.params.recipes,
    snakemake.params.task,
    snakemake.params.labels,
    snakemake.output.table,
)
