"""Test an untrusted tokenizer.json in a fork, within limits of memory and time.

Its normalizers, pre-tokenizers, post-processors and decoders are a program of its authors: each step may
lengthen a text, and regular expressions may take exponential time or make the library panic.
"""

import contextlib
import faulthandler
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json
from seedbed.models import isolation

if TYPE_CHECKING:
    from tokenizers import Tokenizer

GROWTH = 64  # bytes or tokens for each byte; honest normalizers make up to 11 (U+FDFA)
PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
MEMORY = isolation.GIB  # 0.45 measured for a SentencePiece model of 250,000 pieces
SECONDS = 120  # of CPU time; 3 to 6 measured for 250,000 tokens
SLOWEST = 1.0  # seconds of CPU time for a text of a hundred letters; honest ones take about 0.0001
REPEATED = 48  # equal letters in a row, with 2^48 paths through an expression of exponential time
# letters, digits, spaces and marks of many kinds, since a character class may match any of them
SAMPLE = "aéßAŽ0٣中あ한дعहก😀 \u00a0\t\n.,-_'\"!?()[]{}<>|/\\@#%&*+=~^$`▁\u0301\u200d\ufdfa\u0000"
SENTENCE = "L'été dernier, 3 500 personnes ont visité l'île d'Oléron (17) : quel monde ! Don't  you think?\n"


def check(path: str | Path, texts: Sequence[str] = ()) -> None:
    """Test a tokenizer.json in a fork, on `texts` or on texts made from its own patterns.

    Raises:
        SeedbedError: the file is invalid, crashes the library, or takes far more memory or time than a
            tokenizer needs.
    """
    size = Path(path).stat().st_size + sum(map(len, texts))
    # an example is encoded up to three times; 50 kB per second is slow for a tokenizer
    seconds = SECONDS + sum(map(len, texts)) // 50_000
    run(partial(_try, path, texts), path, size, seconds)


def run(
    work: Callable[[], None], path: str | Path, size: int, seconds: int = SECONDS, memory: int = MEMORY
) -> None:
    """Run `work`, which uses the tokenizer at `path`, in a fork within limits (`isolation.run_forked`)."""
    with tempfile.TemporaryDirectory() as folder:
        isolation.run_forked(
            partial(_quietly, work, path),
            Path(folder) / "error.json",
            size,
            what="a tokenizer",
            where=str(path),
            seconds=seconds,
            memory=memory,
        )


def _quietly(work: Callable[[], None], path: str | Path) -> None:
    faulthandler.disable()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # threads do not survive a fork
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # hide the output of a panic in Rust
        os.dup2(silent, stream)
    with explaining_panics(path):
        work()


def _try(path: str | Path, texts: Sequence[str]) -> None:
    from seedbed.models.prompts import load_tokenizer

    tokenizer = load_tokenizer(path)
    if texts:
        for text in texts:
            _encode(tokenizer, text, path)
        return
    exercise(tokenizer, read_json(path), path)


def exercise(tokenizer: "Tokenizer", content: Any, path: str | Path) -> None:
    """Encode and decode texts that are hard for a tokenizer's own patterns, and decode each token.

    Args:
        tokenizer: the tokenizer of `content`.
        content: the content of tokenizer.json.
        path: its path, for messages.

    Raises:
        SeedbedError: a result is far longer than its input, or takes too long.
    """
    for text in probes(content):
        began = time.process_time()
        if tokenizer.normalizer is not None:  # first, since the model might get a text that is far too long
            _check_growth(tokenizer.normalizer.normalize_str(text), len(text.encode()), text, path)
        ids = _encode(tokenizer, text, path)
        _check_growth(tokenizer.decode(ids), GROWTH * GROWTH * len(text.encode()), text, path)
        if time.process_time() - began > SLOWEST:
            raise _refused(
                path, f"{time.process_time() - began:.1f} s for {len(text)} letters: {text[:20]!r}"
            )
    names = tokenizer.get_vocab(with_added_tokens=True)
    for name, number in names.items():
        _check_growth(tokenizer.decode([number], skip_special_tokens=False), len(name.encode()), name, path)


def probes(content: Any) -> Iterator[str]:
    """Single letters, runs of one letter with other letters at the end, and texts from the patterns.

    The letters are a sample and all letters of the patterns. For each pattern, one text repeats the pattern's
    letters, which is hard for `(ab|a|b)+$`. Short texts come first, so that growth is found early.
    """
    parts = [content.get(part) for part in PARTS] if isinstance(content, dict) else []
    patterns = list(dict.fromkeys(_texts(parts)))
    letters = list(dict.fromkeys([*SAMPLE, *"".join(patterns)]))
    end = "!" + "".join(letters)[-REPEATED:]
    yield ""
    yield from letters
    yield SENTENCE
    for letter in letters:
        yield letter * REPEATED + (end if letter != "!" else "a")
    for pattern in patterns:
        own = "".join(letter for letter in pattern if letter.isalnum())
        for text in (pattern, *([own * (REPEATED // len(own) + 1)] if own else [])):
            yield text[: 4 * REPEATED] + end


def _texts(value: Any) -> Iterator[str]:
    """All strings in a nested description, keys excepted."""
    stack = [value]
    while stack:
        found = stack.pop()
        if isinstance(found, str):
            yield found[: 16 * REPEATED]
        stack += found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()


def _encode(tokenizer: "Tokenizer", text: str, path: str | Path) -> list[int]:
    ids = tokenizer.encode(text).ids
    if len(ids) > GROWTH * (len(text.encode()) + 1):
        raise _refused(path, f"{len(ids):,} tokens of {len(text)} letters: {text[:20]!r}")
    return ids


def _check_growth(made: str, size: int, text: str, path: str | Path) -> None:
    if len(made) > GROWTH * (size + 1):
        raise _refused(path, f"{len(made):,} letters from {text[:20]!r}")


def _refused(path: str | Path, found: str) -> SeedbedError:
    return SeedbedError(
        "the tokenizer takes far more memory or time than a tokenizer needs",
        where=str(path),
        found=found,
        hint="it may be damaged or malicious: download the file from its authors again",
    )


@contextlib.contextmanager
def explaining_panics(path: str | Path) -> Iterator[None]:
    """Turn a panic of the library tokenizers (a BaseException) into an error about the file `path`.

    Raises:
        SeedbedError: the library panicked.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise SeedbedError(
            "the library tokenizers crashes on this file or on a text",
            where=str(path),
            found=(str(error).splitlines() or [""])[0][:200],
            hint="its patterns may be damaged or malicious: download the file from its authors again",
        ) from None
