"""Check that the models of the grid can do what every recipe and dataset asks (rule check_limits)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core import script
from seedbed.core.files import read_json, write_json
from seedbed.core.tasks import TASKS
from seedbed.models import limits

if TYPE_CHECKING:
    snakemake: Any

log = script.start(snakemake)
models = {Path(path).parent.name: read_json(path) for path in snakemake.input.models}
asked = snakemake.params.asked
limits.check(models, **asked)
limits.check_sizes(snakemake.params.sizes, snakemake.input.subsets)
if snakemake.params.adapters:
    folders = {Path(path).parent.name: Path(path).with_name("huggingface") for path in snakemake.input.models}
    from seedbed.training import adapter_limits  # PyTorch takes seconds

    task = TASKS[snakemake.params.task]
    adapter_limits.check_adapters(
        snakemake.params.adapters, folders, snakemake.params.device, task, snakemake.params.classes
    )
write_json(
    snakemake.output.limits,
    {"positions": {name: model["max_positions"] for name, model in models.items()}, **asked},
)
