"""The baseline of a row of the summary in words: a bag of words, or of characters."""

from collections.abc import Mapping, Sequence
from typing import Any

from seedbed.core.bag_features import CHARACTERS
from seedbed.core.wording import Words
from seedbed.core.words import count

WORDS = Words("core/bag_of_words")


def bag_name(row: Mapping[str, Any]) -> str:
    """The baseline of a row of the summary: bag of words, or of characters."""
    return WORDS.say("name", _is_of_characters(row))


def bag_remarks(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence for each dataset or size of the summary whose baseline is not a bag of words."""
    of_characters = dict.fromkeys(row["dataset"] for row in rows if _is_of_characters(row))
    left_out = dict.fromkeys(
        (row["dataset"], row["bag_of_words_left_out"], _size(row))
        for row in rows
        if row.get("bag_of_words_left_out")
    )
    return [
        *(WORDS.say("of_characters", name) for name in of_characters),
        *(WORDS.say("left_out", *found) for found in left_out),
    ]


def _size(row: Mapping[str, Any]) -> str:
    """The size of training of a row; empty where sizes are not swept."""
    size = row.get("train_size")
    return "" if size is None else count(size, "training text")


def _is_of_characters(row: Mapping[str, Any]) -> bool:
    return row.get("bag_of_words_features") == CHARACTERS
