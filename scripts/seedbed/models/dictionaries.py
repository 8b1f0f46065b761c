"""Read and write fairseq's dict.txt, which gives each piece of a text its id.

fairseq's numbering: `<s>` 0, `<pad>` 1, `</s>` 2, `<unk>` 3, the lines of dict.txt from 4 on, `<mask>` last.
"""

import io
from collections.abc import Sequence
from pathlib import Path

from seedbed.core.errors import SeedbedError
from seedbed.core.files import write_text
from seedbed.data.readers.files import SourceFile, decoded

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
MASK = "<mask>"


def read_dictionary(path: str | Path) -> list[str]:
    """Words of a fairseq dict.txt by id, special tokens and `<mask>` included.

    Raises:
        SeedbedError: the file is not UTF-8, a line is not "<word> <count>", or a word is listed twice.
    """
    words, holds_mask = read_words(path)
    return words if holds_mask else [*words, MASK]


def read_words(path: str | Path) -> tuple[list[str], bool]:
    """Words of a fairseq dict.txt by id, special tokens included, and whether `<mask>` is listed.

    Raises:
        SeedbedError: as `read_dictionary`.
    """
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
