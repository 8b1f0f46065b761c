"""Find long strings that many texts share: a leftover script, a signature, a banner.

Candidates are pieces of PIECE characters in a sample of the texts, beginning at a word or a sign. The
commonest piece is extended on both sides as long as its texts agree. A string with a date or a number at an
end stands in many forms, so it loses that end if many more texts have the rest. Shorter strings, from
LEAST_PIECE characters, count if many texts have them. The string is then counted in all texts, so its share
is exact. The time is linear in the length of the texts: 100,000 reviews take a few seconds.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seedbed.core.characters import UNSPACED

PIECE = 24  # characters of a long string; shorter ones are common in any language
LEAST_PIECE = 16  # characters of a string in a share MANY of the texts; "is one of the" is in 4% of IMDB's
SHORT_PIECE = 12  # for scripts without spaces, whose characters are syllables or words
LONGEST = 2000  # characters of a string
SAMPLED = 400_000  # pieces in the sample
AGREED = 0.95  # share of a piece's texts that must agree to extend it
LEAST = 2  # texts with a shared string
LONGEST_END = 40  # characters of a date, number or name that a string loses
MORE = 1.25  # times as many texts must have a part of a string that takes its place
START = re.compile(rf"{UNSPACED.pattern}|\w+|[^\w\s]")
MANY = 0.1  # least share of texts for a second string, or least difference between labels or splits
LISTED = 5  # maximum number of strings
SEED = 1  # of the sample, so that the same texts give the same strings
PARTIAL = re.compile(r"\w+$")  # the beginning of a word that ends differently elsewhere

Group = tuple[str, Any]  # a split and a label


def one_line(text: str) -> str:
    """The text with each run of white space as one space, the form for comparisons."""
    return " ".join(text.split())


def shared_strings(texts: Mapping[Group, Sequence[str]]) -> list[str]:
    """Long strings of several texts, at most LISTED: first the commonest of at least two texts.

    Then follow others in at least a share MANY of the texts, the shorter ones last, then strings whose share
    among the texts of one label or split exceeds their share elsewhere by MANY.

    Args:
        texts: by split and label, in the form of `one_line`.
    """
    sample = list(_sample(texts))
    total = _counted(sample)
    found: list[str] = []
    while len(found) < LISTED and (piece := _commonest(total, found)):
        if found and total[piece] < MANY * len(sample):
            break
        found.append(_string(piece, sample, found))
    shorter = _counted([(group, text, _pieces(text, LEAST_PIECE)) for group, text, _ in sample])
    while len(found) < LISTED and (piece := _commonest(shorter, found)):
        if shorter[piece] < MANY * len(sample):
            break
        found.append(_string(piece, sample, found))
    for place in (1, 0):  # of the label, then of the split in a group
        for value in sorted({group[place] for group in texts}, key=str):
            members = [row for row in sample if row[0][place] == value]
            if len(found) < LISTED and 0 < len(members) < len(sample):
                piece = _telling(_counted(members), total, len(members), len(sample), found)
                if piece:
                    found.append(_string(piece, members, found))
    return found


def _counted(sample: Sequence[tuple[Group, str, set[str]]]) -> Counter[str]:
    """The number of texts with each piece."""
    counts: Counter[str] = Counter()
    for _, _, pieces in sample:
        counts.update(pieces)
    return counts


def _commonest(counts: Mapping[str, int], found: Sequence[str]) -> str | None:
    """The commonest piece outside the found strings; the last in order among equals."""
    return _best({piece: number for piece, number in counts.items() if number >= LEAST}, found)


def _telling(
    counts: Mapping[str, int], total: Mapping[str, int], size: int, of: int, found: Sequence[str]
) -> str | None:
    """The piece whose share in one part of the texts exceeds its share elsewhere most, if by MANY or more.

    Args:
        counts, total: number of texts with each piece, in the part and in all.
        size, of: number of texts, in the part and in all.
        found: the strings found so far.
    """
    excess = {
        piece: number / size - (total[piece] - number) / (of - size)
        for piece, number in counts.items()
        if number >= LEAST
    }
    return _best({piece: share for piece, share in excess.items() if share >= MANY}, found)


def _best(merits: Mapping[str, float], found: Sequence[str]) -> str | None:
    """The piece with the largest merit, among those with neither half in a string found so far."""
    known = "\n".join(found)
    left = (
        piece
        for piece in merits
        if piece[: len(piece) // 2] not in known and piece[len(piece) // 2 :] not in known
    )
    return max(left, key=lambda piece: (merits[piece], piece), default=None)


def _sample(texts: Mapping[Group, Sequence[str]]) -> Iterator[tuple[Group, str, set[str]]]:
    """Texts with their pieces, each once, from all groups in turn, up to SAMPLED pieces."""
    draw = random.Random(SEED)
    waiting = {}
    for group, members in texts.items():
        different = list(dict.fromkeys(members))
        draw.shuffle(different)
        waiting[group] = different
    left, seen = SAMPLED, set()
    while left > 0 and any(waiting.values()):
        for group, members in waiting.items():
            if members and (text := members.pop()) not in seen:
                seen.add(text)
                pieces = _pieces(text)
                left -= len(pieces)
                yield group, text, pieces


def _pieces(text: str, longest: int = PIECE) -> set[str]:
    pieces = set()
    for match in START.finditer(text):
        start = match.start()
        length = SHORT_PIECE if UNSPACED.match(text, start) else longest
        if start + length > len(text):
            continue
        pieces.add(text[start : start + length])
    return pieces


def _string(piece: str, sample: Sequence[tuple[Group, str, set[str]]], found: Sequence[str]) -> str:
    """The string around a piece, without the strings found so far."""
    texts = [text for _, text, _ in sample]
    string = _extended(piece, [text for text in texts if piece in text])
    if part := _commoner_part(string, texts):
        string = _extended(part, [text for text in texts if part in text])
    for known in found:
        string = max(string.split(known), key=len).strip()
    return string or piece  # nothing is left of what known strings hold


def _commoner_part(string: str, texts: Sequence[str]) -> str | None:
    """The longest beginning or end of a string, of whole words, that is in many more and in many texts."""
    words = [match.start() for match in START.finditer(string)][1:]
    parts = [part for word in words for part in (string[:word].rstrip(), string[word:])]
    parts = [part for part in parts if len(part) >= max(LEAST_PIECE, len(string) - LONGEST_END)]
    needed = max(MANY * len(texts), MORE * sum(string in text for text in texts))
    for part in sorted(parts, key=len, reverse=True):
        if sum(part in text for text in texts) >= needed:
            return part
    return None


def _extended(piece: str, texts: Sequence[str]) -> str:
    """The piece with the text before and after it that nearly all texts share."""
    places = [text.index(piece) for text in texts]
    before = [text[max(0, place - LONGEST) : place][::-1] for text, place in zip(texts, places, strict=True)]
    after = [text[place + len(piece) :][:LONGEST] for text, place in zip(texts, places, strict=True)]
    start, end = _common(before), _common(after)
    return f"{_whole_words(start, before)[::-1]}{piece}{_whole_words(end, after)}".strip()


def _whole_words(common: str, texts: Sequence[str]) -> str:
    """The common beginning, without an incomplete last word."""
    following = {text[len(common) : len(common) + 1] for text in texts}
    broken = any(sign.isalnum() and not UNSPACED.match(sign) for sign in following)
    return PARTIAL.sub("", common) if broken else common


def _common(texts: Sequence[str]) -> str:
    """The beginning that nearly all texts share."""
    needed, prefix = AGREED * len(texts), []
    agreeing = list(texts)
    while True:
        place = len(prefix)
        signs = Counter(text[place] for text in agreeing if len(text) > place)
        if not signs:
            break
        sign, number = max(signs.items(), key=lambda item: (item[1], item[0]))
        if number < needed:
            break
        prefix.append(sign)
        agreeing = [text for text in agreeing if text[place : place + 1] == sign]
    return "".join(prefix)
