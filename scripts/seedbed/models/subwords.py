"""What splits a model's texts into pieces, and its pieces as words of dict.txt.

dict.txt maps pieces to ids by their strings; their position in the model plays no role.
"""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from seedbed.core.errors import SeedbedError
from seedbed.core.naming import UNK
from seedbed.models.dictionaries import MASK, SPECIALS, read_words
from seedbed.models.gpt2_bpe import Gpt2Bpe
from seedbed.models.sentencepiece_models import SentencePiece

# fairseq pads a dictionary to a multiple of eight with madeupwords; CamemBERT has <s>NOTUSED and the like
FILLER = re.compile(r"madeupword\d+|<[^<>]+>NOTUSED")
# names of a converted model's files, by the keys of the config
PUBLISHED = {"sentencepiece": "sentencepiece.model", "encoder": "encoder.json", "bpe": "vocab.bpe"}
MAX_FOREIGN_SHARE = 0.01  # of dict.txt's words; with more words that are not pieces, it is another model's


class Subwords(Protocol):
    """A kind of what splits texts into pieces.

    Attributes:
        title: its name, for messages.
        remedy: where its files and dict.txt are to be had, for messages.
        where: the paths of its files, for messages.
        files: its files, by the keys of the config.
    """

    title: str
    remedy: str

    @property
    def where(self) -> str: ...

    @property
    def files(self) -> dict[str, Path]: ...

    def pieces(self) -> list[str]:
        """The pieces that it can produce, as dict.txt names them."""

    def encode(self, texts: Sequence[str]) -> list[list[str]]:
        """The pieces of each text."""

    def described(self) -> dict[str, Any]:
        """What model.json tells of it."""

    def tokens(self, names: Sequence[str]) -> list[str]:
        """The names in a fast tokenizer of words of dict.txt."""

    def try_out(self, texts: Iterable[str]) -> None:
        """Encode texts, and raise a SeedbedError if this fails."""

    def describe(self, index: Mapping[str, int]) -> dict[str, Any]:
        """Normalizer, pre_tokenizer, decoder and model of tokenizer.json, with the ids of `index`."""


def of(files: Mapping[str, Path]) -> Subwords:
    """What splits a model's texts, of its files by the keys of the config."""
    if "encoder" in files:
        return Gpt2Bpe(files["encoder"], files["bpe"])
    return SentencePiece(files["sentencepiece"])


def published(folder: str | Path) -> Subwords:
    """The same, of the folder that the conversion wrote: results/models/MODEL/subwords."""
    paths = {key: Path(folder) / name for key, name in PUBLISHED.items()}
    return of({key: path for key, path in paths.items() if path.exists()})


@dataclass(frozen=True)
class Vocabulary:
    """The words of dict.txt matched with the pieces of a model, by their strings.

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


def match_vocabulary(subwords: Subwords, dictionary: str | Path, where: str | None = None) -> Vocabulary:
    """Match the pieces of a model with the words of dict.txt, by their strings.

    `where` names the origin of the words in errors; by default dict.txt.

    Raises:
        SeedbedError: more than 1% of the words are not pieces, so the files belong to different models.
    """
    words, holds_mask = read_words(dictionary)
    words = words if holds_mask else [*words, MASK]
    producible = subwords.pieces()
    # of a repeated word fairseq uses the last line; but <s> and </s> around a text are always 0 and 2
    index = {word: number for number, word in enumerate(words)}
    index |= {word: number for number, word in enumerate(SPECIALS)}
    pieces, reserved = set(producible), {*SPECIALS, MASK}
    own = [word for word in words[len(SPECIALS) :] if word not in reserved and not FILLER.fullmatch(word)]
    foreign = [word for word in own if word not in pieces]
    if len(foreign) > MAX_FOREIGN_SHARE * len(own):
        raise SeedbedError(
            f"the dictionary and {subwords.title} belong to different models",
            where=f"{where or dictionary} and {subwords.where}",
            found=f"{len(foreign)} of {len(own)} words of the dictionary are not pieces, first {foreign[:5]}",
            hint=subwords.remedy,
        )
    outside = [piece for piece in producible if piece not in index]
    return Vocabulary(words, foreign, outside, holds_mask, index)
