"""Encode texts as token ids in fairseq's numbering (rule tokenize_texts), and count unknown pieces."""

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core.errors import UNKNOWN_HINT, SeedbedError
from seedbed.core.files import atomic_open, read_json, read_jsonl, write_json, write_jsonl
from seedbed.core.naming import BOS, EOS, UNK
from seedbed.models import subwords
from seedbed.models.subwords import Subwords, match_vocabulary

log = logging.getLogger(__name__)

# A piece that is frequent in texts was frequent in pretraining, too, so a dict.txt without it is damaged.
# A missing piece is an error if it occurs more than FEW times in a split, and its share of the split's pieces
# exceeds ONE_PIECE times max_unknown_share.
ONE_PIECE, FEW = 0.1, 4


def tokenize_texts(
    texts: Mapping[str, str | Path],
    model: Mapping[str, str | Path],
    folder: str | Path,
    max_unknown_share: float,
) -> dict[str, dict[str, Any]]:
    """Write {split}.jsonl (ids), {split}.pieces (for fairseq-preprocess) and statistics.json to `folder`.

    Args:
        texts: path of each split's prepared JSON lines, {"id", "text", "label"} per line.
        model: paths `subwords` (a folder), `dictionary` and `definition` (model.json, for `max_positions`).
        folder: the output folder.
        max_unknown_share: largest allowed share of `<unk>` among the pieces of a split.

    A text is truncated to max_positions - 2 pieces between `<s>` and `</s>`; `length` in its row counts the
    tokens before truncation, `<s>` and `</s>` included. In {split}.pieces, `<unk>` replaces pieces that
    dict.txt lacks, since fairseq might split them.

    Returns the statistics of each split: texts, tokens (with `<s>` and `</s>`), longest (tokens before
    truncation), truncated and unknown (counts and shares; unknown among pieces), and least_limit (the least
    `max_unknown_share` that would accept the split).

    Raises:
        SeedbedError: too many pieces are unknown, dict.txt lacks a frequent piece, or the files do not belong
            together.
    """
    splitter = subwords.published(model["subwords"])
    dictionary = model["dictionary"]
    vocabulary = match_vocabulary(splitter, dictionary)
    limit = read_json(model["definition"])["max_positions"] - 2
    outside = set(vocabulary.outside)
    statistics = {}
    for split, path in texts.items():
        examples = read_jsonl(path)
        pieces = splitter.encode([example["text"] for example in examples])
        kept = [row[:limit] for row in pieces]
        ids = [vocabulary.ids(row) for row in kept]
        statistics[split] = count(pieces, ids)
        check_unknown(split, path, examples, kept, ids, max_unknown_share)
        needed = _check_missing(split, path, kept, outside, max_unknown_share, dictionary, splitter)
        statistics[split]["least_limit"] = max(needed, statistics[split]["unknown_share"])
        lengths = [len(row) + 2 for row in pieces]
        _write_split(Path(folder), split, examples, kept, ids, lengths)
        log.info("%s: %s", split, statistics[split])
    write_json(Path(folder) / "statistics.json", statistics)
    return statistics


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
        (i, e["text"]) for i, (e, row) in enumerate(zip(examples, ids, strict=True), 1) if unknown_id in row
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


def _write_split(
    folder: Path,
    split: str,
    examples: list[dict[str, Any]],
    pieces: list[list[str]],
    ids: list[list[int]],
    lengths: list[int],
) -> None:
    with atomic_open(folder / f"{split}.pieces") as stream:
        for row, numbers in zip(pieces, ids, strict=True):
            shown = [piece if number != UNK else "<unk>" for piece, number in zip(row, numbers, strict=True)]
            _check_spaces(shown, folder / f"{split}.pieces")
            stream.write(" ".join(shown) + "\n")
    rows = zip(examples, ids, lengths, strict=True)
    write_jsonl(
        folder / f"{split}.jsonl",
        (
            {"id": example["id"], "label": example["label"], "ids": [BOS, *numbers, EOS], "length": length}
            for example, numbers, length in rows
        ),
    )


def _check_spaces(pieces: list[str], where: Path) -> None:
    for piece in pieces:
        if len(piece.split()) != 1:
            raise SeedbedError(
                "a piece contains white space, where fairseq would split it",
                where=str(where),
                found=piece,
                hint="the SentencePiece model must escape spaces and normalise other white space",
            )
