"""Build a fast tokenizer that gives the ids of fairseq's numbering."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core.files import write_json, write_text
from seedbed.core.naming import BOS, EOS, UNK
from seedbed.models import tokenizer_probe
from seedbed.models.dictionaries import MASK, SPECIALS
from seedbed.models.subwords import Subwords, match_vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WRITTEN = ("tokenizer.json", "tokenizer_config.json")


def build_tokenizer(subwords: Subwords, dictionary: str | Path) -> "Tokenizer":
    """A fast tokenizer that splits texts like a model's own, with fairseq's ids between `<s>` and `</s>`.

    A fast tokenizer cannot give two pieces one id, so pieces that dict.txt lacks get ids after `<mask>`;
    `dictionary_ids` turns them into `<unk>`, as fairseq does. Names of special tokens in a text are plain
    text, as in fairseq.

    Raises:
        SeedbedError: a file is invalid, or the model has features that a fast tokenizer cannot express.
    """
    from tokenizers import Tokenizer

    with tokenizer_probe.explaining_panics(subwords.where):  # an invalid charsmap makes the library panic
        tokenizer = Tokenizer.from_str(json.dumps(_describe(subwords, dictionary)))
    tokenizer.encode_special_tokens = True
    return tokenizer


def write_tokenizer(folder: str | Path, subwords: Subwords, dictionary: str | Path, max_tokens: int) -> None:
    """Write tokenizer.json and tokenizer_config.json for AutoTokenizer to `folder`.

    `max_tokens` includes `<s>` and `</s>`. For texts with `<mask>`, as in a fill-mask pipeline, load the
    tokenizer with `split_special_tokens=False`.
    """
    tokenizer = build_tokenizer(subwords, dictionary)
    write_text(Path(folder) / "tokenizer.json", tokenizer.to_str(pretty=False) + "\n")
    names = {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>"}
    names |= {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": MASK}
    write_json(
        Path(folder) / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            **names,
            "model_max_length": max_tokens,
            "model_input_names": ["input_ids", "attention_mask"],
            "clean_up_tokenization_spaces": False,
            "split_special_tokens": True,
        },
    )


def dictionary_ids(ids: Sequence[int], vocabulary: int) -> list[int]:
    """The fast tokenizer's ids, with `<unk>` for pieces that dict.txt lacks (ids from `vocabulary` on)."""
    return [number if number < vocabulary else UNK for number in ids]


def _describe(subwords: Subwords, dictionary: str | Path) -> dict[str, Any]:
    vocabulary = match_vocabulary(subwords, dictionary)
    tokens = subwords.tokens([*vocabulary.names(), *vocabulary.outside])
    index = {token: number for number, token in enumerate(tokens)}
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    added = [{"id": index[word], "content": word, **special} for word in (*SPECIALS, MASK)]
    parts = subwords.describe(index)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": sorted(added, key=lambda token: token["id"]),
        "normalizer": parts["normalizer"],
        "pre_tokenizer": parts["pre_tokenizer"],
        "post_processor": _template(),
        "decoder": parts["decoder"],
        "model": parts["model"],
    }


def _template() -> dict[str, Any]:
    def token(name: str) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": 0}}

    def text(name: str) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": 0}}

    bos, eos = token("<s>"), token("</s>")
    return {
        "type": "TemplateProcessing",
        "single": [bos, text("A"), eos],
        "pair": [bos, text("A"), eos, eos, text("B"), eos],
        "special_tokens": {
            "<s>": {"id": "<s>", "ids": [BOS], "tokens": ["<s>"]},
            "</s>": {"id": "</s>", "ids": [EOS], "tokens": ["</s>"]},
        },
    }
