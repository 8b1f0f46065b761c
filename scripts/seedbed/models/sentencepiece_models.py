"""Split texts with a SentencePiece model, and describe it for a fast tokenizer.

The SentencePiece library is the reference.
"""

import base64
import functools
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.core.naming import UNK

log = logging.getLogger(__name__)

SPACE = "▁"
NORMAL, BYTE = 1, 6  # the types of pieces that SentencePiece produces when encoding
MODEL_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
# characters; SentencePiece trains pieces of at most 16, but some are runs of spaces
LONGEST_PIECE = 2000
LONGEST_NORMAL = 200  # bytes of one character after normalisation; NFKC needs at most 33


@dataclass(frozen=True)
class SentencePiece:
    """The SentencePiece model in a file, as one kind of `subwords.Subwords`."""

    path: Path
    title = "the SentencePiece model"
    remedy = "take both files, unaltered, from the checkpoint's own archive"

    @property
    def where(self) -> str:
        """The path, for messages."""
        return str(self.path)

    @property
    def files(self) -> dict[str, Path]:
        """The file, by the key of the config."""
        return {"sentencepiece": self.path}

    def pieces(self) -> list[str]:
        """The pieces that it can produce."""
        return [piece.piece for piece in read_sentencepiece(self.path).pieces if piece.type in (NORMAL, BYTE)]

    def encode(self, texts: Sequence[str]) -> list[list[str]]:
        """The pieces of each text."""
        return self._processor.encode(list(texts), out_type=str, num_threads=1)

    @functools.cached_property
    def _processor(self) -> Any:
        import sentencepiece

        return sentencepiece.SentencePieceProcessor(model_file=str(self.path))

    def described(self) -> dict[str, Any]:
        """What model.json tells of it."""
        return {"sentencepiece_type": model_type(read_sentencepiece(self.path))}

    def tokens(self, names: Sequence[str]) -> list[str]:
        """Names in a fast tokenizer of words of dict.txt: the same."""
        return list(names)

    def try_out(self, texts: Iterable[str]) -> None:
        """Encode texts, as `tokenization.tokenize_texts` will.

        Raises:
            SeedbedError: the library cannot load the model, or cannot encode a text.
        """
        try:
            self.encode(list(texts))
        except Exception as error:  # the library raises errors of many kinds
            raise SeedbedError(
                "the library SentencePiece cannot use this model",
                where=str(self.path),
                found=f"{type(error).__name__}: {error}"[:300],
                hint="the file may be damaged: download it from its authors again",
            ) from None

    def describe(self, index: Mapping[str, int]) -> dict[str, Any]:
        """The parts of tokenizer.json that split like the model, which gives its pieces the ids of `index`.

        They follow the type in the file: a BPE model read as a unigram model would split nearly every text
        differently, without a warning.

        Raises:
            SeedbedError: the model has features that a fast tokenizer cannot express.
        """
        model = read_sentencepiece(self.path)
        _check_expressible(model, self.path)
        bpe = model_type(model) == "bpe"
        return {
            "normalizer": {"type": "Sequence", "normalizers": _normalizers(model.normalizer_spec)},
            "pre_tokenizer": None if bpe else _splitter(model),
            "decoder": _decoder(model),
            "model": (_describe_bpe if bpe else _describe_unigram)(model, index),
        }


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


def model_type(model: Any) -> str:
    """The type of a SentencePiece model: `bpe`, `unigram`, `word` or `char`."""
    return MODEL_TYPES.get(model.trainer_spec.model_type, str(model.trainer_spec.model_type))


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
