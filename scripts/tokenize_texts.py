"""Turn the texts of a dataset into a model's token ids (rule tokenize_texts)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed import script, tokenization

if TYPE_CHECKING:
    snakemake: Any

script.start(snakemake)
tokenization.tokenize_texts(
    texts={split: snakemake.input[split] for split in ("train", "validation", "test")},
    model={key: snakemake.input[key] for key in ("sentencepiece", "dictionary", "definition")},
    folder=Path(snakemake.output.statistics).parent,
    max_unknown_share=snakemake.params.max_unknown_share,
)
