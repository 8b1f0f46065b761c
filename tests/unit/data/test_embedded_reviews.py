"""The embedded reviews: balanced classes, splits that share no text, and cards with the right sizes."""

import csv
from collections import Counter
from pathlib import Path

import pytest

RESOURCES = Path(__file__).parents[3] / "resources"
SPLITS = ("train", "validation", "test")


def read(folder):
    """The rows of every split."""
    rows = {}
    for split in SPLITS:
        with open(folder / f"{split}.csv", encoding="utf-8", newline="") as stream:
            rows[split] = list(csv.DictReader(stream))
    return rows


@pytest.mark.parametrize("name", ["reviews_fr", "reviews_hard_fr"])
def test_no_id_and_no_text_stands_twice_and_the_card_tells_the_sizes(name):
    splits = read(RESOURCES / name)
    for column in ("id", "text"):
        values = [" ".join(row[column].lower().split()) for split in SPLITS for row in splits[split]]
        assert [value for value, count in Counter(values).items() if count > 1] == []
    card = (RESOURCES / name / "README.md").read_text(encoding="utf-8")
    for split, rows in splits.items():
        classes = Counter(row["label"] for row in rows)
        assert classes.keys() == {"negative", "positive"}
        assert f"| {split}.csv | {len(rows)} | {classes['negative']} | {classes['positive']} |" in card


def test_every_split_has_a_third_of_each_part_in_each_class_and_600_reviews_to_test_on():
    splits = read(RESOURCES / "reviews_fr")
    assert len(splits["test"]) >= 600
    for rows in splits.values():
        cells = Counter((row["label"], row["part"]) for row in rows)
        assert len(cells) == 6
        assert set(cells.values()) == {len(rows) / 6}
