"""Encode texts as token ids in fairseq's numbering (rule tokenize_texts), and count unknown pieces."""

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from seedbed.core.errors import UNKNOWN_HINT, SeedbedError
from seedbed.core.files import atomic_open, read_json, read_jsonl, write_json, write_jsonl
from seedbed.core.naming import BOS, EOS, UNK
from seedbed.core.truncation import Pair, longest_first
from seedbed.data.texts import are_pairs, parts, whole
from seedbed.models import subwords
from seedbed.models.subwords import Subwords, Vocabulary, match_vocabulary

log = logging.getLogger(__name__)

# A piece that is frequent in texts was frequent in pretraining, too, so a dict.txt without it is damaged.
# A missing piece is an error if it occurs more than FEW times in a split, and its share of the split's pieces
# exceeds ONE_PIECE times max_unknown_share.
ONE_PIECE, FEW = 0.1, 4
BETWEEN = (EOS, EOS)  # RoBERTa has <s> A </s></s> B </s>
TAB = "\t"  # between the pieces of both texts of a pair

Parts = Sequence[list[str]]  # the pieces of a text, or of both texts of a pair


def tokenize_texts(
    texts: Mapping[str, str | Path],
    model: Mapping[str, str | Path],
    folder: str | Path,
    max_unknown_share: float,
) -> dict[str, dict[str, Any]]:
    """Write {split}.jsonl (ids), {split}.pieces (for fairseq-preprocess) and statistics.json to `folder`.

    Args:
        texts: path of each split's prepared JSON lines, {"id", "text", "label"} per line, and "text_pair" if
            the texts are pairs.
        model: paths `subwords` (a folder), `dictionary` and `definition` (model.json, for `max_positions`).
        folder: the output folder.
        max_unknown_share: largest allowed share of `<unk>` among the pieces of a split.

    A text is truncated to max_positions - 2 pieces between `<s>` and `</s>`, a pair to max_positions - 4
    pieces by `longest_first`; `length` in its row counts the tokens before truncation, special ones
    included. The row of a pair also has `pair`, a `truncation.Pair` as a list. In {split}.pieces, `<unk>`
    replaces pieces that dict.txt lacks, since fairseq might split them; a tab parts the texts of a pair.

    Returns the statistics of each split: texts, tokens (with special ones), longest (tokens before
    truncation), truncated and unknown (counts and shares; unknown among pieces), and least_limit (the least
    `max_unknown_share` that would accept the split).

    Raises:
        SeedbedError: too many pieces are unknown, dict.txt lacks a frequent piece, or the files do not belong
            together.
    """
    splitter = subwords.published(model["subwords"])
    dictionary = model["dictionary"]
    vocabulary = match_vocabulary(splitter, dictionary)
    limit = read_json(model["definition"])["max_positions"]
    outside = set(vocabulary.outside)
    statistics = {}
    for split, path in texts.items():
        examples = read_jsonl(path)
        pieces = _split(splitter, examples)
        kept = [_cut(row, limit) for row in pieces]
        inside = [list(chain(*row)) for row in kept]
        ids = [vocabulary.ids(row) for row in inside]
        special = _special(2 if are_pairs(examples) else 1)
        statistics[split] = count([list(chain(*row)) for row in pieces], ids, special=special)
        check_unknown(split, path, examples, inside, ids, max_unknown_share)
        needed = _check_missing(split, path, inside, outside, max_unknown_share, dictionary, splitter)
        statistics[split]["least_limit"] = max(needed, statistics[split]["unknown_share"])
        _write_pieces(Path(folder) / f"{split}.pieces", kept, vocabulary)
        rows = zip(examples, pieces, kept, strict=True)
        write_jsonl(Path(folder) / f"{split}.jsonl", (_row(*row, vocabulary) for row in rows))
        log.info("%s: %s", split, statistics[split])
    write_json(Path(folder) / "statistics.json", statistics)
    return statistics


def encode(examples: Sequence[Mapping[str, Any]], model: str | Path) -> list[dict[str, Any]]:
    """The rows of examples as in {split}.jsonl, without checks of unknown pieces; see `tokenize_texts`.

    Args:
        examples: {"id", "text", "label"}, and "text_pair" in pairs.
        model: results/models/MODEL.
    """
    model = Path(model)
    splitter = subwords.published(model / "subwords")
    vocabulary = match_vocabulary(splitter, model / "fairseq" / "dict.txt")
    limit = read_json(model / "model.json")["max_positions"]
    rows = zip(examples, _split(splitter, examples), strict=True)
    return [_row(example, pieces, _cut(pieces, limit), vocabulary) for example, pieces in rows]


def count(
    pieces: Sequence[Sequence[Any]],
    ids: Sequence[Sequence[int]],
    unknown_id: int | None = UNK,
    special: int = 2,
) -> dict[str, Any]:
    """Statistics of a split; see `tokenize_texts`.

    Args:
        pieces: those of each text before truncation, without special tokens.
        ids: of each text after truncation, without special tokens.
        unknown_id: the id of the unknown token, if there is one.
        special: number of special tokens around each text.
    """
    total = sum(map(len, ids))
    truncated = sum(len(before) > len(after) for before, after in zip(pieces, ids, strict=True))
    unknown = sum(row.count(unknown_id) for row in ids)
    return {
        "texts": len(ids),
        "tokens": total + special * len(ids),
        "longest": max(map(len, pieces), default=0) + special,
        "truncated": truncated,
        "truncated_share": truncated / max(1, len(ids)),
        "unknown": unknown,
        "unknown_share": unknown / max(1, total),
    }


def check_unknown(
    split: str,
    path: str | Path,
    examples: Sequence[Mapping[str, Any]],
    pieces: Sequence[Sequence[str]],
    ids: Sequence[Sequence[int]],
    max_share: float,
    unknown_id: int | None = UNK,
) -> None:
    """Check the share of unknown tokens among the pieces of a split, both without special tokens.

    Raises:
        SeedbedError: it exceeds `max_share`.
    """
    unknown = Counter(
        piece
        for row, numbers in zip(pieces, ids, strict=True)
        for piece, n in zip(row, numbers, strict=True)
        if n == unknown_id
    )
    share = unknown.total() / max(1, sum(map(len, ids)))
    if share <= max_share:
        return
    line, text = next(
        (i, whole(e)) for i, (e, row) in enumerate(zip(examples, ids, strict=True), 1) if unknown_id in row
    )
    frequent = ", ".join(f"{piece!r} ({count} times)" for piece, count in unknown.most_common(10))
    raise SeedbedError(
        f"{share:.1%} of the pieces in the split {split!r} are unknown, more than {max_share:.1%}",
        where=f"{path}, first on line {line}: {text[:80]!r}",
        found=frequent,
        hint=UNKNOWN_HINT,
    )


def _check_missing(
    split: str,
    path: str | Path,
    pieces: list[list[str]],
    outside: set[str],
    max_share: float,
    dictionary: str | Path,
    splitter: Subwords,
) -> float:
    """Refuse a dict.txt that lacks a frequent piece; return the least `max_share` that would accept it."""
    counts = Counter(piece for row in pieces for piece in row)
    missing = Counter({piece: count for piece, count in counts.items() if piece in outside})
    if not missing:
        return 0.0
    shown = ", ".join(f"{piece!r} ({count} times)" for piece, count in missing.most_common(10))
    most = max(missing.values())
    needed = most / counts.total() / ONE_PIECE if most > FEW else 0.0
    is_first = most > 1 and most == max(counts.values())
    if is_first or needed > max_share:
        rounded = math.ceil(1000 * needed) / 1000
        raised = f"; if this is intended, set checks.max_unknown_share to {rounded} or more"
        raise SeedbedError(
            f"the dictionary lacks a frequent piece of the split {split!r}",
            where=f"{path}; {dictionary} and {splitter.where}",
            found=f"{shown}; the first is {most / counts.total():.2%} of all pieces",
            hint=splitter.remedy + raised * (not is_first and needed <= 1),
        )
    log.warning("%s: pieces that the dictionary lacks are <unk>: %s", split, shown)
    return needed


def _split(splitter: Subwords, examples: Sequence[Mapping[str, Any]]) -> list[Parts]:
    """The pieces of each example's text, or of both texts of a pair."""
    columns = zip(*map(parts, examples), strict=True)
    return list(zip(*(splitter.encode(list(column)) for column in columns), strict=True))


def _cut(pieces: Parts, limit: int) -> Parts:
    """The pieces that stay, so that they have at most `limit` tokens with the special ones."""
    room = limit - _special(len(pieces))
    if len(pieces) == 1:
        return [pieces[0][:room]]
    stay = longest_first(*map(len, pieces), room)
    return [part[:number] for part, number in zip(pieces, stay, strict=True)]


def _special(texts: int) -> int:
    """How many special tokens a row of one text or of two has."""
    return len((BOS, EOS)) + (texts - 1) * len(BETWEEN)


def _row(example: Mapping[str, Any], pieces: Parts, kept: Parts, vocabulary: Vocabulary) -> dict[str, Any]:
    """The row of an example in {split}.jsonl."""
    first, *second = map(vocabulary.ids, kept)
    ids = [BOS, *first, *(number for part in second for number in (*BETWEEN, *part)), EOS]
    length = sum(map(len, pieces)) + _special(len(pieces))
    row = {"id": example["id"], "label": example["label"], "ids": ids, "length": length}
    if second:
        row["pair"] = list(Pair(1, len(pieces[0]), len(BETWEEN), len(pieces[1]), 1))
    return row


def _write_pieces(path: Path, kept: Sequence[Parts], vocabulary: Vocabulary) -> None:
    with atomic_open(path) as stream:
        for row in kept:
            shown = [[piece if piece in vocabulary.index else "<unk>" for piece in part] for part in row]
            _check_spaces(list(chain(*shown)), path)
            stream.write(TAB.join(" ".join(part) for part in shown) + "\n")


def _check_spaces(pieces: list[str], where: Path) -> None:
    for piece in pieces:
        if len(piece.split()) != 1:
            raise SeedbedError(
                "a piece contains white space, where fairseq would split it",
                where=str(where),
                found=piece,
                hint="the SentencePiece model must escape spaces and normalise other white space",
            )
