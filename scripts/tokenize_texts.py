"""Turn the texts of a dataset into a model's token ids (rule tokenize_texts)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.config.resolve import resolve_config
from seedbed.core import script
from seedbed.models import tokenization

if TYPE_CHECKING:
    snakemake: Any

script.start(snakemake)
tokenization.tokenize_texts(
    texts={split: snakemake.input[split] for split in ("train", "validation", "test")},
    model={key: snakemake.input[key] for key in ("subwords", "dictionary", "definition")},
    folder=Path(snakemake.output.statistics).parent,
    # not among params: a limit changes no token; the plan holds to it what another experiment has made
    max_unknown_share=resolve_config(snakemake.config)["checks"]["max_unknown_share"],
)
