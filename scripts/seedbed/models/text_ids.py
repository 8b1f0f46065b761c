"""Encode texts with a model's own fast tokenizer (format auto).

The ids are those of AutoTokenizer, which checks them on every text. As there, names of special tokens in a
text are special.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl, write_json, write_jsonl
from seedbed.core.printable import Lines
from seedbed.core.truncation import truncate
from seedbed.models import tokenization, tokenizer_probe
from seedbed.models.prompts import load_tokenizer

if TYPE_CHECKING:
    from tokenizers import Encoding

log = logging.getLogger(__name__)


def tokenize(
    texts: Mapping[str, str | Path], model: str | Path, folder: str | Path, max_unknown_share: float
) -> dict[str, dict[str, Any]]:
    """Write {split}.jsonl and statistics.json to `folder`, and return the statistics.

    A row is {"id", "label", "ids", "length"}: `ids` are cut to the model's longest text, with the special
    tokens at the end kept; `length` counts the tokens before, special ones included. Statistics are those of
    `tokenization.tokenize_texts`.

    Args:
        texts: path of each split's prepared JSON lines.
        model: results/models/MODEL.
        folder: the output folder, written to after all splits are encoded.
        max_unknown_share: largest allowed share of unknown tokens in a split.

    Raises:
        SeedbedError: the tokenizer fails, AutoTokenizer gives other ids, or too many tokens are unknown.
    """
    published, described = Path(model) / "huggingface", read_json(Path(model) / "model.json")
    examples = {split: read_jsonl(path) for split, path in texts.items()}
    everything = [example["text"] for rows in examples.values() for example in rows]
    path = published / "tokenizer.json"
    tokenizer_probe.check(path, everything)
    tokenizer, automatic = load_tokenizer(path), _automatic(published)
    rows, statistics = {}, {}
    for split, found in examples.items():
        with tokenizer_probe.explaining_panics(path):
            encodings = tokenizer.encode_batch([example["text"] for example in found])
        ids = [_cut(encoding.ids, described) for encoding in encodings]
        _check_ids(automatic, described, found, ids, str(texts[split]))
        statistics[split] = _count(
            split, str(texts[split]), found, encodings, ids, described, max_unknown_share
        )
        rows[split] = [
            {"id": example["id"], "label": example["label"], "ids": kept, "length": len(encoding.ids)}
            for example, kept, encoding in zip(found, ids, encodings, strict=True)
        ]
        log.info("%s: %s", split, statistics[split])
    for split, written in rows.items():
        write_jsonl(Path(folder) / f"{split}.jsonl", written)
    write_json(Path(folder) / "statistics.json", statistics)
    return statistics


def _cut(ids: Sequence[int], described: Mapping[str, Any]) -> list[int]:
    limit = described["max_positions"]
    return list(ids) if limit is None else truncate(ids, limit, described["ending"])


def _inner(row: Sequence[Any], described: Mapping[str, Any]) -> Sequence[Any]:
    """A text's tokens without the special ones around it."""
    return row[len(described["beginning"]) : len(row) - len(described["ending"])]


def _count(
    split: str,
    path: str,
    examples: Sequence[Mapping[str, Any]],
    encodings: "Sequence[Encoding]",
    ids: Sequence[Sequence[int]],
    described: Mapping[str, Any],
    max_share: float,
) -> dict[str, Any]:
    """Statistics of a split, whose unknown tokens are checked."""
    unknown = described["unk"]
    kept = [_inner(row, described) for row in ids]
    pieces = [
        _inner(_pieces(example["text"], encoding, unknown), described)
        for example, encoding in zip(examples, encodings, strict=True)
    ]
    special = len(described["beginning"]) + len(described["ending"])
    found = tokenization.count(pieces, kept, unknown, special)
    shown = [row[: len(left)] for row, left in zip(pieces, kept, strict=True)]
    tokenization.check_unknown(split, path, examples, shown, kept, max_share, unknown)
    return found | {"least_limit": found["unknown_share"]}


def _pieces(text: str, encoding: "Encoding", unknown: int | None) -> list[str]:
    """The tokens of a text, with its letters in place of the unknown token."""
    triples = zip(encoding.ids, encoding.tokens, encoding.offsets, strict=True)
    return [text[slice(*offsets)] if number == unknown else token for number, token, offsets in triples]


def _automatic(folder: Path) -> Any:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import transformers

    transformers.logging.set_verbosity_error()
    return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


def _check_ids(
    automatic: Any,
    described: Mapping[str, Any],
    examples: Sequence[Mapping[str, Any]],
    ids: Sequence[Sequence[int]],
    path: str,
) -> None:
    """Compare the ids of all texts with AutoTokenizer's."""
    limit = described["max_positions"]
    options = {"truncation": True, "max_length": limit} if limit is not None else {}
    found = automatic([example["text"] for example in examples], **options)["input_ids"]
    pairs = enumerate(zip(examples, ids, found, strict=True), 1)
    differing = [(line, *each) for line, each in pairs if list(each[1]) != each[2]]
    if differing:
        line, example, own, other = differing[0]
        raise SeedbedError(
            f"AutoTokenizer gives {len(differing)} of {len(ids)} texts other ids than tokenizer.json does",
            where=f"{path}, line {line} ({example['id']}): {example['text'][:200]!r}",
            found=Lines(f"\n    tokenizer.json: {list(own)}\n    AutoTokenizer:  {other}"),
            hint="remove the model's folder to make it again; if the difference remains, report it as a bug",
        )
