"""Split texts with GPT-2's byte-level BPE, as roberta.base does, and describe it for a fast tokenizer.

fairseq's own encoder is the reference. encoder.json gives each token a number, vocab.bpe lists the merges,
and the words of dict.txt are the numbers.
"""

import functools
import importlib.util
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.data.readers.files import SourceFile, decoded
from seedbed.models.dictionaries import MASK, SPECIALS

BYTES = 256
VERSION = "#version"  # begins the first line of vocab.bpe, which fairseq skips
FOLDER = "https://dl.fbaipublicfiles.com/fairseq/gpt2_bpe"
ORIGIN = f"take encoder.json and vocab.bpe as GPT-2 has them: {FOLDER}/encoder.json and {FOLDER}/vocab.bpe"


@dataclass(frozen=True)
class Gpt2Bpe:
    """The BPE in the files encoder.json and vocab.bpe, as one kind of `subwords.Subwords`."""

    encoder: Path
    bpe: Path
    title = "GPT-2's BPE"
    remedy = f"take dict.txt, unaltered, from the checkpoint's own archive; {ORIGIN}"

    @property
    def where(self) -> str:
        """Both paths, for messages."""
        return f"{self.encoder} and {self.bpe}"

    @property
    def files(self) -> dict[str, Path]:
        """Both files, by the keys of the config."""
        return {"encoder": self.encoder, "bpe": self.bpe}

    def pieces(self) -> list[str]:
        """The numbers of all tokens, as words of dict.txt."""
        return list(map(str, self._read[0].values()))

    def encode(self, texts: Sequence[str]) -> list[list[str]]:
        """The numbers of each text's tokens, as words of dict.txt."""
        return [list(map(str, self._encoder.encode(text))) for text in texts]

    def described(self) -> dict[str, Any]:
        """What model.json tells of it."""
        return {"byte_level_bpe_merges": len(self._read[1])}

    def tokens(self, names: Sequence[str]) -> list[str]:
        """Names in a fast tokenizer of words of dict.txt: the tokens of their numbers.

        Raises:
            SeedbedError: a token is named like a special token.
        """
        numbers, _ = self._read
        taken = [name for name in (*SPECIALS, MASK) if name in numbers]
        if taken:
            raise SeedbedError(
                "a token of the BPE has the name of a special token, and a fast tokenizer cannot part them",
                where=str(self.encoder),
                found=", ".join(taken),
                hint=ORIGIN,
            )
        tokens = {str(number): token for token, number in numbers.items()}
        # no token has a space, so another word cannot be taken for one
        others = (name if name not in numbers else f"{name} of dict.txt" for name in names)
        return [tokens.get(name, other) for name, other in zip(names, others, strict=True)]

    def try_out(self, texts: Iterable[str]) -> None:
        """Encode texts; `read` has checked that every text can be encoded."""
        self.encode(list(texts))

    def describe(self, index: Mapping[str, int]) -> dict[str, Any]:
        """The parts of tokenizer.json that split like fairseq's encoder, with the ids of `index`.

        Of all characters, 17,480 letters and digits are treated differently, which are newer than the Unicode
        16 of the library tokenizers (of 0.23.3, with regex 2026.11.19).
        """
        # the same expression as fairseq's cuts texts into words; spaces stay parts of words
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        return {
            "normalizer": None,
            "pre_tokenizer": level,
            "decoder": level,
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": "<unk>",
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": False,
                "vocab": dict(index),
                "merges": [list(merge) for merge in self._read[1]],
            },
        }

    @functools.cached_property
    def _read(self) -> tuple[dict[str, int], list[tuple[str, str]]]:
        return read(self.encoder, self.bpe)

    @functools.cached_property
    def _encoder(self) -> Any:
        return fairseq_module().Encoder(*self._read)


@functools.cache
def fairseq_module() -> Any:
    """fairseq.data.encoders.gpt2_bpe_utils, loaded alone, since fairseq would import PyTorch."""
    package = importlib.util.find_spec("fairseq")
    assert package is not None
    assert package.submodule_search_locations is not None
    path = Path(package.submodule_search_locations[0], "data", "encoders", "gpt2_bpe_utils.py")
    spec = importlib.util.spec_from_file_location("fairseq_gpt2_bpe_utils", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(encoder: Path, bpe: Path) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """The number of each token, and the merges in order.

    Raises:
        SeedbedError: a file is damaged, or a text could have a token without a number.
    """
    numbers, merges = _read_numbers(encoder), _read_merges(bpe)
    needed = list(fairseq_module().bytes_to_unicode().values())
    needed += [token for left, right in merges for token in (left, right, left + right)]
    missing = list(dict.fromkeys(token for token in needed if token not in numbers))
    if missing:
        raise SeedbedError(
            "encoder.json and vocab.bpe belong to different models",
            where=f"{encoder} and {bpe}",
            found=f"{len(missing)} bytes or merged tokens have no number, first {missing[:5]}",
            hint=ORIGIN,
        )
    return numbers, merges


def _read_numbers(path: Path) -> dict[str, int]:
    try:
        content = json.loads(decoded(SourceFile(path)))
        "".join(content).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise _no_encoder(path, f"{type(error).__name__}: {error}"[:200]) from None
    if not isinstance(content, dict) or not content:
        raise _no_encoder(path, f"a JSON {type(content).__name__}" if content else "nothing in it")
    wrong = {token: number for token, number in content.items() if type(number) is not int or number < 0}
    if wrong:
        raise _no_encoder(
            path, f"{len(wrong)} values are no numbers, first {str(next(iter(wrong.items())))[:200]}"
        )
    if len(set(content.values())) < len(content):
        raise _no_encoder(path, f"{len(content) - len(set(content.values()))} numbers are given twice")
    return content


def _no_encoder(path: Path, found: str) -> SeedbedError:
    return SeedbedError(
        "this file does not give each token of a BPE a number, as encoder.json does",
        where=str(path),
        found=found,
        hint=ORIGIN,
    )


def _read_merges(path: Path) -> list[tuple[str, str]]:
    first, *lines = decoded(SourceFile(path)).replace("\r\n", "\n").split("\n")
    if not first.startswith(VERSION):
        raise _no_merges(path, 1, first, f"the first line begins with {VERSION}, and fairseq skips it")
    merges = []
    for number, line in enumerate(lines[:-1], 2):  # as fairseq, which needs the last line's end
        left, *right = line.split()[:3] or [""]
        if len(right) != 1:
            raise _no_merges(
                path, number, line, "each further line has two tokens, with a space between them"
            )
        merges.append((left, right[0]))
    return merges


def _no_merges(path: Path, line: int, found: str, hint: str) -> SeedbedError:
    return SeedbedError(
        "this is not a line of a vocab.bpe with the merges of a BPE",
        where=f"{path}, line {line}",
        found=found[:200],
        hint=f"{hint}; {ORIGIN}",
    )
