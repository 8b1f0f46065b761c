"""Turn prompts and answers into a causal model's token ids (rule tokenize_prompts)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.config.resolve import resolve_config
from seedbed.core import script
from seedbed.models import prompts

if TYPE_CHECKING:
    snakemake: Any

script.start(snakemake)
prompts.tokenize(
    snakemake.wildcards.dataset,
    snakemake.params.dataset,
    {split: snakemake.input[split] for split in ("train", "validation", "test")},
    {key: snakemake.input[key] for key in ("tokenizer", "definition")},
    Path(snakemake.output.statistics).parent,
    # not among params: a limit changes no token; the plan holds to it what another experiment has made
    resolve_config(snakemake.config)["checks"]["max_unknown_share"],
)
