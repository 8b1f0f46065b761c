"""Encode texts as token ids in fairseq's numbering, and build a fast tokenizer with the same ids.

The SentencePiece library is the reference. dict.txt maps its pieces to ids by their strings; their position
in the SentencePiece model plays no role. fairseq's numbering: `<s>` 0, `<pad>` 1, `</s>` 2, `<unk>` 3, the
lines of dict.txt from 4 on, `<mask>` last.
"""

import base64
import io
import itertools
import json
import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core.errors import UNKNOWN_HINT, SeedbedError
from seedbed.core.files import atomic_open, read_json, read_jsonl, write_json, write_jsonl, write_text
from seedbed.core.naming import BOS, EOS, UNK
from seedbed.data.readers.files import SourceFile, decoded
from seedbed.models import tokenizer_probe

if TYPE_CHECKING:
    from tokenizers import Tokenizer

log = logging.getLogger(__name__)

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
MASK = "<mask>"
SPACE = "▁"
# fairseq pads a dictionary to a multiple of eight with madeupwords; CamemBERT has <s>NOTUSED and the like
FILLER = re.compile(r"madeupword\d+|<[^<>]+>NOTUSED")
NORMAL, BYTE = 1, 6  # the types of pieces that SentencePiece produces when encoding
MODEL_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
# characters; SentencePiece trains pieces of at most 16, but some are runs of spaces
LONGEST_PIECE = 2000
LONGEST_NORMAL = 200  # bytes of one character after normalisation; NFKC needs at most 33
WRITTEN = ("tokenizer.json", "tokenizer_config.json")
MAX_FOREIGN_SHARE = 0.01  # of dict.txt's words; with more words that are not pieces, it is another model's
# A piece that is frequent in texts was frequent in pretraining, too, so a dict.txt without it is damaged.
# A missing piece is an error if it occurs more than FEW times in a split, and its share of the split's pieces
# exceeds ONE_PIECE times max_unknown_share.
ONE_PIECE, FEW = 0.1, 4


def read_dictionary(path: str | Path) -> list[str]:
    """Words of a fairseq dict.txt by id, special tokens and `<mask>` included.

    Raises:
        SeedbedError: the file is not UTF-8, a line is not "<word> <count>", or a word is listed twice.
    """
    words, holds_mask = _read_words(path)
    return words if holds_mask else [*words, MASK]


def _read_words(path: str | Path) -> tuple[list[str], bool]:
    """The words, and whether `<mask>` is listed."""
    words = list(SPECIALS)
    seen = set(words)
    for number, line in enumerate(io.StringIO(dictionary_text(path)), 1):
        word, overwrite = _parse_line(line, f"{path}, line {number}")
        if word in seen and not overwrite:
            raise SeedbedError(
                "a word is listed twice in the dictionary",
                where=f"{path}, line {number}",
                found=word,
                hint="mark the later line with #fairseq:overwrite, or take an unaltered dict.txt",
            )
        seen.add(word)
        words.append(word)
    return words, MASK in seen


def dictionary_text(path: str | Path) -> str:
    """The content of a dict.txt without a byte order mark; its lines end in "\\n".

    Raises:
        SeedbedError: the file is not UTF-8.
    """
    return decoded(SourceFile(Path(path))).replace("\r\n", "\n").replace("\r", "\n")


def write_dictionary(path: str | Path, words: Sequence[str]) -> None:
    """Write a fairseq dict.txt of `words`, which begin with the special tokens.

    Raises:
        SeedbedError: a word is empty or contains white space, where fairseq would cut it.
    """
    faulty = [word for word in words if word.split() != [word]]
    if faulty:
        raise SeedbedError(
            "a token is empty or contains white space, which fairseq's dict.txt cannot express",
            where=str(path),
            found=faulty[:5],
            hint="the tokenizer must escape spaces and normalise other white space",
        )
    write_text(path, "".join(f"{word} 1\n" for word in words[len(SPECIALS) :]))


def _parse_line(line: str, where: str) -> tuple[str, bool]:
    # follows fairseq's Dictionary.add_from_file
    text = line.rstrip()
    overwrite = text.endswith(" #fairseq:overwrite")
    word, space, count = text.removesuffix(" #fairseq:overwrite").rpartition(" ")
    if not space or not count.lstrip("-").isdigit():
        raise SeedbedError(
            "this is not a line of a fairseq dictionary",
            where=where,
            found=line.rstrip("\n"),
            hint="each line consists of a word, a space and a count",
        )
    return word, overwrite


def read_sentencepiece(path: str | Path) -> Any:
    """The protocol buffer of a SentencePiece file (pieces, trainer_spec, normalizer_spec).

    Raises:
        SeedbedError: the file is not a SentencePiece model, or its type is neither BPE nor unigram.
    """
    from google.protobuf.message import DecodeError
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto()
    try:
        model.ParseFromString(Path(path).read_bytes())
    except DecodeError:
        model.Clear()
    if not model.pieces:
        raise SeedbedError(
            "this file is not a SentencePiece model",
            where=str(path),
            found=f"{Path(path).stat().st_size} bytes without a piece",
            hint="give the binary model (often *.model), not its vocabulary list",
        )
    kind = model_type(model)
    if kind not in ("bpe", "unigram"):
        raise SeedbedError(
            f"SentencePiece models of type {kind!r} are not supported",
            where=str(path),
            found=kind,
            hint="the type must be bpe or unigram",
        )
    _check_lengths(model, path)
    return model


def _check_lengths(model: Any, path: str | Path) -> None:
    """Refuse pieces and normalisations so long that merges or texts would fill the memory."""
    # protobuf gives bytes for invalid UTF-8
    if not all(isinstance(piece.piece, str) for piece in model.pieces):
        raise SeedbedError(
            "the SentencePiece model has a piece that is not valid UTF-8",
            where=str(path),
            hint="it is damaged: download the file from its authors again",
        )
    charsmap = model.normalizer_spec.precompiled_charsmap
    # the charsmap is the trie's size, the trie, and the replacement texts, each with a NUL at its end
    normal = charsmap[4 + int.from_bytes(charsmap[:4], "little") :].split(b"\0")
    longest = max((len(piece.piece) for piece in model.pieces), default=0)
    for found, most, what in (
        (longest, LONGEST_PIECE, "characters in a piece"),
        (max(map(len, normal)), LONGEST_NORMAL, "bytes in place of a character"),
    ):
        if found > most:
            raise SeedbedError(
                "the SentencePiece model has an entry far longer than any piece of a text",
                where=str(path),
                found=f"{found:,} {what}, {most:,} at most",
                hint="it may be damaged, or made to use up memory: download the file from its authors again",
            )


def try_sentencepiece(path: str | Path, texts: Iterable[str]) -> None:
    """Encode texts with a SentencePiece model, as `tokenize_texts` will.

    Raises:
        SeedbedError: the library cannot load the model, or cannot encode a text.
    """
    import sentencepiece

    try:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        processor.encode(list(texts), out_type=str, num_threads=1)
    except Exception as error:  # the library raises errors of many kinds
        raise SeedbedError(
            "the library SentencePiece cannot use this model",
            where=str(path),
            found=f"{type(error).__name__}: {error}"[:300],
            hint="the file may be damaged: download it from its authors again",
        ) from None


def model_type(model: Any) -> str:
    """The type of a SentencePiece model: `bpe`, `unigram`, `word` or `char`."""
    return MODEL_TYPES.get(model.trainer_spec.model_type, str(model.trainer_spec.model_type))


@dataclass(frozen=True)
class Vocabulary:
    """The words of dict.txt matched with the pieces of a SentencePiece model, by their strings.

    `words[i]` is the word with id i. `foreign`: words that are not pieces. `outside`: producible pieces that
    dict.txt lacks; they become `<unk>`. `holds_mask`: whether dict.txt lists `<mask>`.
    """

    words: list[str]
    foreign: list[str]
    outside: list[str]
    holds_mask: bool
    index: dict[str, int] = field(repr=False)

    def ids(self, pieces: Iterable[str]) -> list[int]:
        """Token ids of pieces, the same as fairseq-preprocess's."""
        return [self.index.get(piece, UNK) for piece in pieces]

    def names(self) -> list[str]:
        """`words` without repetitions: a repeated word's unused rows get fillers as names."""
        unused = (f"madeupword{number:04d}" for number in itertools.count())
        fillers = (word for word in unused if word not in self.index)
        return [
            word if self.index[word] == number else next(fillers) for number, word in enumerate(self.words)
        ]


def match_vocabulary(
    sentencepiece: str | Path, dictionary: str | Path, where: str | None = None
) -> Vocabulary:
    """Match the pieces of a SentencePiece model with the words of dict.txt, by their strings.

    `where` names the origin of the words in errors; by default dict.txt.

    Raises:
        SeedbedError: more than 1% of the words are not pieces, so the files belong to different models.
    """
    words, holds_mask = _read_words(dictionary)
    words = words if holds_mask else [*words, MASK]
    producible = [
        piece.piece for piece in read_sentencepiece(sentencepiece).pieces if piece.type in (NORMAL, BYTE)
    ]
    # of a repeated word fairseq uses the last line; but <s> and </s> around a text are always 0 and 2
    index = {word: number for number, word in enumerate(words)}
    index |= {word: number for number, word in enumerate(SPECIALS)}
    pieces, reserved = set(producible), {*SPECIALS, MASK}
    own = [word for word in words[len(SPECIALS) :] if word not in reserved and not FILLER.fullmatch(word)]
    foreign = [word for word in own if word not in pieces]
    if len(foreign) > MAX_FOREIGN_SHARE * len(own):
        raise SeedbedError(
            "the dictionary and the SentencePiece model belong to different models",
            where=f"{where or dictionary} and {sentencepiece}",
            found=f"{len(foreign)} of {len(own)} words of the dictionary are not pieces, first {foreign[:5]}",
            hint="take both files from the checkpoint's own archive",
        )
    outside = [piece for piece in producible if piece not in index]
    return Vocabulary(words, foreign, outside, holds_mask, index)


# --- the fast tokenizer ---


def build_tokenizer(sentencepiece: str | Path, dictionary: str | Path) -> "Tokenizer":
    """A fast tokenizer that splits texts like SentencePiece, with fairseq's ids between `<s>` and `</s>`.

    It follows the type in the SentencePiece file: a BPE model read as a unigram model would split nearly
    every text differently, without a warning. A fast tokenizer cannot give two pieces one id, so pieces that
    dict.txt lacks get ids after `<mask>`; `dictionary_ids` turns them into `<unk>`, as fairseq does. Names of
    special tokens in a text are encoded as plain text, as in SentencePiece.

    Raises:
        SeedbedError: a file is invalid, or the model has features that a fast tokenizer cannot express.
    """
    from tokenizers import Tokenizer

    with tokenizer_probe.explaining_panics(sentencepiece):  # an invalid charsmap makes the library panic
        tokenizer = Tokenizer.from_str(json.dumps(_describe(sentencepiece, dictionary)))
    tokenizer.encode_special_tokens = True
    return tokenizer


def write_tokenizer(
    folder: str | Path, sentencepiece: str | Path, dictionary: str | Path, max_tokens: int
) -> None:
    """Write tokenizer.json and tokenizer_config.json for AutoTokenizer to `folder`.

    `max_tokens` includes `<s>` and `</s>`. For texts with `<mask>`, as in a fill-mask pipeline, load the
    tokenizer with `split_special_tokens=False`.
    """
    tokenizer = build_tokenizer(sentencepiece, dictionary)
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


def _describe(sentencepiece: str | Path, dictionary: str | Path) -> dict[str, Any]:
    model = read_sentencepiece(sentencepiece)
    vocabulary = match_vocabulary(sentencepiece, dictionary)
    _check_expressible(model, sentencepiece)
    index = {name: number for number, name in enumerate([*vocabulary.names(), *vocabulary.outside])}
    describe = _describe_bpe if model_type(model) == "bpe" else _describe_unigram
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokens = [{"id": index[word], "content": word, **special} for word in (*SPECIALS, MASK)]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": sorted(tokens, key=lambda token: token["id"]),
        "normalizer": {"type": "Sequence", "normalizers": _normalizers(model.normalizer_spec)},
        "pre_tokenizer": _splitter(model) if model_type(model) == "unigram" else None,
        "post_processor": _template(),
        "decoder": _decoder(model),
        "model": describe(model, index),
    }


def _check_expressible(model: Any, path: str | Path) -> None:
    if model.trainer_spec.treat_whitespace_as_suffix:
        raise SeedbedError(
            "the SentencePiece model puts spaces after words (treat_whitespace_as_suffix)",
            where=str(path),
            hint="a fast tokenizer cannot do this; use a model with the usual spaces before words",
        )
    unusual = [piece.piece for piece in model.pieces if piece.type in (4, 5)]
    if unusual:
        log.warning("%d user-defined or unused pieces are never produced: %s", len(unusual), unusual[:10])


def _normalizers(spec: Any) -> list[dict[str, Any]]:
    # follows SentencePiece's Normalizer::Normalize in order and corner cases
    def replace(pattern: dict[str, str], content: str) -> dict[str, Any]:
        return {"type": "Replace", "pattern": pattern, "content": content}

    space = SPACE if spec.escape_whitespaces else " "
    steps: list[dict[str, Any]] = []
    if spec.precompiled_charsmap:
        charsmap = base64.b64encode(spec.precompiled_charsmap).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": charsmap})
    if spec.remove_extra_whitespaces:
        steps += [replace({"Regex": r"\A +"}, ""), replace({"Regex": " {2,}"}, " ")]
    if spec.add_dummy_prefix:
        steps.append({"type": "Prepend", "prepend": space})  # leaves an empty text empty
    if spec.escape_whitespaces:
        steps.append(replace({"String": " "}, SPACE))
    if spec.remove_extra_whitespaces:
        # after escaping, so that a final "▁" of the text is removed, too
        steps.append(replace({"Regex": rf"{space}+\z"}, ""))
    return steps


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


def _decoder(model: Any) -> dict[str, Any]:
    metaspace = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": False}
    if not model.trainer_spec.byte_fallback:
        return metaspace
    return {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, metaspace]}


def _describe_bpe(model: Any, index: Mapping[str, int]) -> dict[str, Any]:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": "<unk>",
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,  # SentencePiece joins neighbouring unknown characters into one piece
        "byte_fallback": model.trainer_spec.byte_fallback,
        "ignore_merges": False,
        "vocab": dict(index),
        "merges": _merges(model),
    }


def _merges(model: Any) -> list[list[str]]:
    # SentencePiece stores pieces with scores instead of merges, and joins the neighbours whose union scores
    # best. So each split of a piece into two pieces is a merge, and merges are ordered by the piece's score.
    scores = _scores(model)
    merges = []
    for piece in sorted(scores, key=lambda piece: -scores[piece]):
        cuts = [(piece[:cut], piece[cut:]) for cut in range(1, len(piece))]
        merges += [[left, right] for left, right in cuts if left in scores and right in scores]
    return merges


def _describe_unigram(model: Any, index: Mapping[str, int]) -> dict[str, Any]:
    scores = _scores(model)
    never = _unreachable_score(scores)
    ordered = sorted(index, key=lambda word: index[word])
    return {
        "type": "Unigram",
        "unk_id": UNK,
        "vocab": [[word, scores.get(word, never)] for word in ordered],
        "byte_fallback": model.trainer_spec.byte_fallback,
    }


def _scores(model: Any) -> dict[str, float]:
    return {piece.piece: piece.score for piece in model.pieces if piece.type == NORMAL}


def _is_complete(scores: Mapping[str, float]) -> bool:
    """Whether each character of a piece is a piece, too, which SentencePiece's trainer ensures."""
    return all(character in scores for piece in scores for character in piece)


def _unreachable_score(scores: Mapping[str, float]) -> float:
    """A score for entries that SentencePiece never produces, such as `<s>` written out in a text.

    It is lower than the summed scores of such an entry's characters. The fast tokenizer derives the cost of
    an unknown character from the lowest score, so unknown characters cost more than in SentencePiece. In a
    complete model this changes nothing, since all splits of a text have the same unknown characters.
    """
    lowest = min(scores.values())
    return 100 * (lowest - 10) if _is_complete(scores) else lowest


def _splitter(model: Any) -> dict[str, Any] | None:
    # Without this splitter, "<s>" would win over its characters where "<" is unknown. Cutting around unknown
    # characters is exact, since no piece of a complete model contains one.
    scores = _scores(model)
    if not _is_complete(scores):
        return None
    known = "".join(f"\\x{{{ord(piece):x}}}" for piece in scores if len(piece) == 1)
    return {"type": "Split", "pattern": {"Regex": f"[^{known}]+"}, "behavior": "Isolated", "invert": False}


# --- the rule tokenize_texts ---


def tokenize_texts(
    texts: Mapping[str, str | Path],
    model: Mapping[str, str | Path],
    folder: str | Path,
    max_unknown_share: float,
) -> dict[str, dict[str, Any]]:
    """Write {split}.jsonl (ids), {split}.pieces (for fairseq-preprocess) and statistics.json to `folder`.

    Args:
        texts: path of each split's prepared JSON lines, {"id", "text", "label"} per line.
        model: paths `sentencepiece`, `dictionary` and `definition` (model.json, for `max_positions`).
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
    import sentencepiece

    vocabulary = match_vocabulary(model["sentencepiece"], model["dictionary"])
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model["sentencepiece"]))
    limit = read_json(model["definition"])["max_positions"] - 2
    outside = set(vocabulary.outside)
    statistics = {}
    for split, path in texts.items():
        examples = read_jsonl(path)
        pieces = processor.encode([example["text"] for example in examples], out_type=str, num_threads=1)
        kept = [row[:limit] for row in pieces]
        ids = [vocabulary.ids(row) for row in kept]
        statistics[split] = count(pieces, ids)
        check_unknown(split, path, examples, kept, ids, max_unknown_share)
        needed = _check_missing(split, path, kept, outside, max_unknown_share, model)
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
    model: Mapping[str, str | Path],
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
            where=f"{path}; {model['dictionary']} and {model['sentencepiece']}",
            found=f"{shown}; the first is {most / counts.total():.2%} of all pieces",
            hint="take both files, unaltered, from the checkpoint's own archive"
            + raised * (not is_first and needed <= 1),
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
