"""Formats of models: the files of each, what converts it, and the frameworks that can train it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

TRANSFORMERS = ("transformers",)
BOTH = ("fairseq", *TRANSFORMERS)


@dataclass(frozen=True)
class Format:
    """A format of models.

    Attributes:
        name: its name in the config.
        files: the config's keys of paths, and the default of each, beside the weights; the first is the
            weights' own.
        subwords: the same for what splits texts into pieces, one of these alternatives; the first is the
            default.
        beside: names of optional files beside config.json.
        converter: the module that converts it, in a separate process.
        frameworks: the frameworks that can train it.
    """

    name: str
    files: Mapping[str, str] = field(hash=False)
    subwords: tuple[Mapping[str, str], ...] = field(hash=False)
    beside: tuple[str, ...]
    converter: str
    frameworks: tuple[str, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys of paths in the config."""
        return tuple(key for each in (self.files, *self.subwords) for key in each)


SENTENCEPIECE = {"sentencepiece": "sentencepiece.bpe.model"}
GPT2_BPE = {"encoder": "encoder.json", "bpe": "vocab.bpe"}
MODEL_FORMATS = {
    each.name: each
    for each in (
        Format(
            "fairseq",
            {"checkpoint": "model.pt", "dictionary": "dict.txt"},
            (SENTENCEPIECE, GPT2_BPE),
            (),
            "seedbed.models.conversion",
            BOTH,
        ),
        Format(
            "huggingface",
            {"checkpoint": "model.safetensors", "config": "config.json"},
            (SENTENCEPIECE,),
            ("tokenizer.json", "tokenizer_config.json", "added_tokens.json"),
            "seedbed.models.conversion",
            BOTH,
        ),
        Format(
            "causal",
            {"checkpoint": "model.safetensors", "config": "config.json", "tokenizer": "tokenizer.json"},
            (),
            ("tokenizer_config.json", "special_tokens_map.json"),
            "seedbed.models.causal_models",
            TRANSFORMERS,
        ),
        Format(
            "auto",
            {"checkpoint": "model.safetensors", "config": "config.json"},
            (),
            (
                *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
                # of tokenizers without tokenizer.json
                *("vocab.txt", "vocab.json", "merges.txt"),
                *("spm.model", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
            ),
            "seedbed.models.auto_models",
            TRANSFORMERS,
        ),
    )
}
