"""The baseline of a row of the summary in words: a bag of words, or of characters."""

from collections.abc import Mapping, Sequence
from typing import Any

from seedbed.core.wording import Words

WORDS = Words("core/bag_of_words")


def bag_name(row: Mapping[str, Any]) -> str:
    """The baseline of a row of the summary: bag of words, or of characters."""
    return WORDS.say("name", _is_of_characters(row))


def bag_remarks(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence for each dataset of the summary whose baseline is not a bag of words."""
    by_dataset = {row["dataset"]: row for row in rows}
    return [
        *(WORDS.say("of_characters", name) for name, row in by_dataset.items() if _is_of_characters(row)),
        *(
            WORDS.say("left_out", name, row["bag_of_words_left_out"])
            for name, row in by_dataset.items()
            if row.get("bag_of_words_left_out")
        ),
    ]


def _is_of_characters(row: Mapping[str, Any]) -> bool:
    return row.get("bag_of_words_features") == "characters"
