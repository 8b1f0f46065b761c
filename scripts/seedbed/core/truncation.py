"""Cut token ids to a maximum length: those of a text, or of a pair of texts."""

from collections.abc import Sequence
from typing import NamedTuple

from seedbed.core.naming import EOS


def truncate(ids: Sequence[int], limit: int, ending: Sequence[int] = (EOS,)) -> list[int]:
    """At most `limit` ids, with the special tokens of the end, as AutoTokenizer's truncation leaves them."""
    return list(ids) if len(ids) <= limit else [*ids[: limit - len(ending)], *ending]


def kept_of_text(length: int, limit: int, ending: int) -> list[int]:
    """The places of the tokens that stay if a text of `length` tokens is cut as by `truncate`.

    Args:
        length: its tokens, special ones included.
        limit: the most that stay.
        ending: number of special tokens at its end.
    """
    return truncate(range(length), limit, range(length - ending, length))


class Pair(NamedTuple):
    """Numbers of tokens of a pair of texts in a row of ids, in their order there.

    Attributes:
        before: special tokens before the first text.
        first: tokens of the first text before any truncation.
        between: special tokens between the texts.
        second: tokens of the second text before any truncation.
        after: special tokens after the second text.
    """

    before: int
    first: int
    between: int
    second: int
    after: int

    @property
    def special(self) -> int:
        """The number of special tokens."""
        return self.before + self.between + self.after


def longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """How many tokens of two texts stay, as with the truncation `longest_first` of fast tokenizers.

    The longer text loses tokens at its end until both fit, or until both are as long; then each has half of
    the room. The odd token of the room goes to the text that was longer, or to the second of two texts of
    one length.

    Args:
        first, second: tokens of each text.
        room: tokens for both.
    """
    if first + second <= room:
        return first, second
    shorter = min(first, second, room // 2)
    return (room - shorter, shorter) if first > second else (shorter, room - shorter)


def kept_of_pair(pair: Pair, length: int, limit: int) -> list[int]:
    """The places of the tokens that stay if a row of a pair is cut to `limit` tokens.

    Rows may be cut twice, first to the model's limit and then to a recipe's: the result is that of one cut.

    Args:
        pair: the numbers of its tokens.
        length: tokens of the row, which may be cut already.
        limit: at least the pair's special tokens.
    """
    if length <= limit:
        return list(range(length))
    there = longest_first(pair.first, pair.second, length - pair.special)
    stay = longest_first(pair.first, pair.second, limit - pair.special)
    border = pair.before + there[0]
    return [
        *range(pair.before + stay[0]),
        *range(border, border + pair.between + stay[1]),
        *range(length - pair.after, length),
    ]
