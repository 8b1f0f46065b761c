"""Turn the texts of a dataset into token ids with a model's own tokenizer (rule tokenize_for_encoder)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.config.resolve import resolve_config
from seedbed.core import script

if TYPE_CHECKING:
    snakemake: Any

script.start(snakemake)

# heavy imports only after logging stands, so that their failures reach the log
from seedbed.core import imports  # noqa: E402

imports.leave_out(imports.UNUSED)
with imports.uncollected():
    from seedbed.models import text_ids

text_ids.tokenize(
    texts={split: snakemake.input[split] for split in ("train", "validation", "test")},
    model=Path(snakemake.input.definition).parent,
    folder=Path(snakemake.output.statistics).parent,
    # not among params: a limit changes no token; the plan holds to it what another experiment has made
    max_unknown_share=resolve_config(snakemake.config)["checks"]["max_unknown_share"],
)
