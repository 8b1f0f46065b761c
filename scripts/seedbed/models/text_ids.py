"""Encode texts, or pairs of texts, with a model's own fast tokenizer (format auto).

The ids are those of AutoTokenizer, which checks them on every text. As there, names of special tokens in a
text are special.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl, write_json, write_jsonl
from seedbed.core.printable import Lines
from seedbed.core.truncation import Pair, kept_of_pair, kept_of_text
from seedbed.data.texts import are_pairs, parts, whole
from seedbed.models import tokenization, tokenizer_probe
from seedbed.models.auto_classifiers import reads_types
from seedbed.models.prompts import load_tokenizer

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Encoded:
    """An example's tokens.

    Attributes:
        encoding: all tokens, with special ones.
        inner: places of the tokens of the text, or of both texts of a pair.
        kept: places of the tokens that stay, special ones among them.
        pair: the numbers of tokens of a pair; None for a text.
    """

    encoding: "Encoding"
    inner: list[int]
    kept: list[int]
    pair: Pair | None = None

    @property
    def ids(self) -> list[int]:
        """The ids that stay."""
        return [self.encoding.ids[place] for place in self.kept]

    @property
    def types(self) -> list[int]:
        """The types of the tokens that stay: 0 for the first text, as a rule, and 1 for the second."""
        return [self.encoding.type_ids[place] for place in self.kept]

    @property
    def inner_kept(self) -> list[int]:
        """Places of the texts' tokens that stay."""
        return sorted({*self.inner} & {*self.kept})


def tokenize(
    texts: Mapping[str, str | Path], model: str | Path, folder: str | Path, max_unknown_share: float
) -> dict[str, dict[str, Any]]:
    """Write {split}.jsonl and statistics.json to `folder`, and return the statistics.

    A row is {"id", "label", "ids", "length"}: `ids` are cut to the model's longest text, with the special
    tokens at the end kept; `length` counts the tokens before, special ones included. The row of a pair also
    has `pair`, a `truncation.Pair` as a list, and, if the model reads them, `types`, the type of each token.
    Statistics are those of `tokenization.tokenize_texts`.

    Args:
        texts: path of each split's prepared JSON lines.
        model: results/models/MODEL.
        folder: the output folder, written to after all splits are encoded.
        max_unknown_share: largest allowed share of unknown tokens in a split.

    Raises:
        SeedbedError: the tokenizer fails, puts nothing between two texts, gives types that the model lacks,
            or other ids than AutoTokenizer; or too many tokens are unknown.
    """
    published, described = Path(model) / "huggingface", read_json(Path(model) / "model.json")
    examples = {split: read_jsonl(path) for split, path in texts.items()}
    path = published / "tokenizer.json"
    tokenizer_probe.check(path, [text for rows in examples.values() for row in rows for text in parts(row)])
    tokenizer, automatic = load_tokenizer(path), _automatic(published)
    pairs = any(map(are_pairs, examples.values()))
    around = _around_pairs(tokenizer, path) if pairs else None
    typed = pairs and _reads_types(published, described, tokenizer)
    rows, statistics = {}, {}
    for split, found in examples.items():
        with tokenizer_probe.explaining_panics(path):
            encodings = tokenizer.encode_batch([_input(example) for example in found])
        encoded = [_encoded(encoding, described, around) for encoding in encodings]
        _check_ids(automatic, described, found, encoded, str(texts[split]))
        statistics[split] = _count(split, str(texts[split]), found, encoded, described, max_unknown_share)
        rows[split] = [_row(*each, typed) for each in zip(found, encoded, strict=True)]
        log.info("%s: %s", split, statistics[split])
    for split, written in rows.items():
        write_jsonl(Path(folder) / f"{split}.jsonl", written)
    write_json(Path(folder) / "statistics.json", statistics)
    return statistics


def encode(examples: Sequence[Mapping[str, Any]], model: str | Path) -> list[dict[str, Any]]:
    """The rows of examples as in {split}.jsonl, without checks; see `tokenize`.

    Args:
        examples: {"id", "text", "label"}, and "text_pair" in pairs.
        model: results/models/MODEL.

    Raises:
        SeedbedError: the tokenizer fails.
    """
    published, described = Path(model) / "huggingface", read_json(Path(model) / "model.json")
    path = published / "tokenizer.json"
    tokenizer = load_tokenizer(path)
    around = _around_pairs(tokenizer, path) if are_pairs(examples) else None
    typed = around is not None and _reads_types(published, described, tokenizer)
    with tokenizer_probe.explaining_panics(path):
        encodings = tokenizer.encode_batch([_input(example) for example in examples])
    rows = zip(examples, encodings, strict=True)
    return [_row(example, _encoded(encoding, described, around), typed) for example, encoding in rows]


def _input(example: Mapping[str, Any]) -> str | tuple[str, ...]:
    """What a fast tokenizer encodes: a text, or both texts of a pair."""
    found = parts(example)
    return found[0] if len(found) == 1 else tuple(found)


def _encoded(encoding: "Encoding", described: Mapping[str, Any], around: Pair | None) -> Encoded:
    """The tokens of an example; `around` has the special tokens of a pair."""
    limit, length = described["max_positions"] or len(encoding.ids), len(encoding.ids)
    if around is None:
        before, after = len(described["beginning"]), len(described["ending"])
        return Encoded(encoding, [*range(before, length - after)], kept_of_text(length, limit, after))
    whose = encoding.sequence_ids
    inner = [place for place, text in enumerate(whose) if text is not None]
    pair = around._replace(first=whose.count(0), second=whose.count(1))
    return Encoded(encoding, inner, kept_of_pair(pair, length, limit), pair)


def _row(example: Mapping[str, Any], encoded: Encoded, typed: bool) -> dict[str, Any]:
    length = len(encoded.encoding.ids)
    row = {"id": example["id"], "label": example["label"], "ids": encoded.ids, "length": length}
    if encoded.pair is not None:
        row["pair"] = list(encoded.pair)
    return row | ({"types": encoded.types} if typed else {})


# --- pairs --------------------------------------------------------------------------------------------------


def _around_pairs(tokenizer: "Tokenizer", path: Path) -> Pair:
    """The numbers of special tokens that a tokenizer puts around two texts.

    Raises:
        SeedbedError: it puts none between them, or the second text first.
    """
    encoding = tokenizer.encode("a", "b")
    whose = encoding.sequence_ids
    first, second = ([place for place, text in enumerate(whose) if text == number] for number in (0, 1))
    if not first or not second or second[0] - first[-1] < 2:
        raise SeedbedError(
            "the tokenizer puts no special token between two texts, so a model could not tell them apart",
            where=str(path),
            found=f"{encoding.tokens} for the texts 'a' and 'b'",
            hint="take the model's complete tokenizer.json, with its post_processor, or another model",
        )
    around = first[0], second[0] - first[-1] - 1, len(whose) - second[-1] - 1
    return Pair(around[0], len(first), around[1], len(second), around[2])


def _reads_types(folder: Path, described: Mapping[str, Any], tokenizer: "Tokenizer") -> bool:
    """Whether the model reads types of tokens.

    Raises:
        SeedbedError: the tokenizer gives a type that the model lacks.
    """
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    if not reads_types(getattr(transformers, described["class"]), config):
        return False
    largest, known = max(tokenizer.encode("a", "b").type_ids), getattr(config, "type_vocab_size", None)
    if known is not None and largest >= known:
        raise SeedbedError(
            "the tokenizer gives the tokens of pairs a type that the model lacks",
            where=f"{folder / 'tokenizer.json'} and {folder / 'config.json'}, type_vocab_size",
            found=f"type {largest}; type_vocab_size {known}",
            hint="take both files from one model",
        )
    return True


# --- checks and counts --------------------------------------------------------------------------------------


def _count(
    split: str,
    path: str,
    examples: Sequence[Mapping[str, Any]],
    encoded: Sequence[Encoded],
    described: Mapping[str, Any],
    max_share: float,
) -> dict[str, Any]:
    """Statistics of a split, whose unknown tokens are checked."""
    unknown = described["unk"]
    kept = [[each.encoding.ids[place] for place in each.inner_kept] for each in encoded]
    shown = [_pieces(*each, unknown) for each in zip(examples, encoded, strict=True)]
    pieces = [[row[place] for place in each.inner] for row, each in zip(shown, encoded, strict=True)]
    special = max((len(each.encoding.ids) - len(each.inner) for each in encoded), default=0)
    found = tokenization.count(pieces, kept, unknown, special)
    left = [[row[place] for place in each.inner_kept] for row, each in zip(shown, encoded, strict=True)]
    tokenization.check_unknown(split, path, examples, left, kept, max_share, unknown)
    return found | {"least_limit": found["unknown_share"]}


def _pieces(example: Mapping[str, Any], encoded: Encoded, unknown: int | None) -> list[str]:
    """All tokens of an example, with the text's letters in place of the unknown token."""
    texts, encoding = parts(example), encoded.encoding
    rows = zip(encoding.ids, encoding.tokens, encoding.offsets, encoding.sequence_ids, strict=True)
    return [
        texts[whose or 0][slice(*offsets)] if number == unknown else token
        for number, token, offsets, whose in rows
    ]


def _automatic(folder: Path) -> Any:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import transformers

    transformers.logging.set_verbosity_error()
    return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


def _check_ids(
    automatic: Any,
    described: Mapping[str, Any],
    examples: Sequence[Mapping[str, Any]],
    encoded: Sequence[Encoded],
    path: str,
) -> None:
    """Compare the ids of all texts with AutoTokenizer's."""
    limit = described["max_positions"]
    options = {"truncation": "longest_first", "max_length": limit} if limit is not None else {}
    columns = map(list, zip(*map(parts, examples), strict=True))
    found = automatic(*columns, **options)["input_ids"]
    rows = enumerate(zip(examples, (each.ids for each in encoded), found, strict=True), 1)
    differing = [(line, *each) for line, each in rows if each[1] != each[2]]
    if differing:
        line, example, own, other = differing[0]
        raise SeedbedError(
            f"AutoTokenizer gives {len(differing)} of {len(found)} texts other ids than tokenizer.json does",
            where=f"{path}, line {line} ({example['id']}): {whole(example)[:200]!r}",
            found=Lines(f"\n    tokenizer.json: {own}\n    AutoTokenizer:  {other}"),
            hint="remove the model's folder to make it again; if the difference remains, report it as a bug",
        )
