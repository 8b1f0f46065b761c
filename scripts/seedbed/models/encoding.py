"""Encode new texts as the rules tokenize_texts and tokenize_for_encoder encode those of a dataset."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core.files import read_json
from seedbed.models import text_ids, tokenization


def encode(examples: Sequence[Mapping[str, Any]], model: Path) -> list[dict[str, Any]]:
    """The rows of examples as a file of token ids has them.

    Args:
        examples: {"id", "text", "label"}, and "text_pair" in pairs; no text is empty.
        model: results/models/MODEL.

    Returns:
        {"id", "label", "ids", "length"} of each; `length` counts the tokens before any truncation. Pairs also
        have `pair`, and `types` if the model reads them.

    Raises:
        SeedbedError: the tokenizer fails.
    """
    automatic = read_json(model / "model.json")["format"] == "auto"
    return (text_ids if automatic else tokenization).encode(examples, model)
