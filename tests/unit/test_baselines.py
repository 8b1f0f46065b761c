"""The bag of words: what it learns, how it chooses, what it reports."""

import pytest

from seedbed.baselines import INVERSE_REGULARISATION, bag_of_words, majority_share
from seedbed.errors import SeedbedError


def examples(*pairs):
    return [{"id": f"x-{n}", "text": text, "label": label} for n, (text, label) in enumerate(pairs)]


def values(rows):
    return {(row["split"], row["metric"]): row["value"] for row in rows}


TRAIN = examples(("très bon livre", 1), ("bon et beau", 1), ("mauvais livre", 0), ("mauvais et laid", 0))


def test_majority_share():
    assert majority_share(examples(("a", 0), ("b", 1), ("c", 1), ("d", 2))) == 0.5


def test_words_that_tell_the_classes():
    splits = {
        "train": TRAIN,
        "validation": examples(("bon", 1), ("mauvais", 0)),
        "test": examples(("BON", 1), ("très mauvais", 0), ("mauvais", 1), ("beau", 1)),
    }
    assert values(bag_of_words(splits)) == {
        ("train", "C"): INVERSE_REGULARISATION[0],  # all reach 1.0, and the smallest wins ties
        ("validation", "accuracy"): 1.0,
        ("test", "accuracy"): 0.75,
        ("train", "majority_share"): 0.5,
        ("validation", "majority_share"): 0.5,
        ("test", "majority_share"): 0.75,
    }


def test_accuracy_without_leaks():
    splits = {
        "train": TRAIN,
        "validation": examples(("bon", 1), ("mauvais", 0)),
        "test": examples(("BON", 1), ("très mauvais", 0), ("mauvais", 1), ("beau", 1)),
    }
    key = ("test", "accuracy_without_leaks")
    assert values(bag_of_words(splits, {"x-0", "train-7"}))[key] == pytest.approx(2 / 3)
    assert values(bag_of_words(splits, {"x-2"}))[key] == 1.0
    assert key not in values(bag_of_words(splits, {"x-0", "x-1", "x-2", "x-3"}))


def test_validation_chooses():
    """Nine texts of class 1 and a similar one of class 0: only weak regularisation tells it apart."""
    train = examples(*[("le livre bon", 1)] * 9, ("le livre mauvais", 0))
    held_out = examples(("le livre mauvais", 0), ("le livre bon", 1))
    found = values(bag_of_words({"train": train, "validation": held_out, "test": held_out}))
    assert found["train", "C"] == 10.0
    assert found["validation", "accuracy"] == found["test", "accuracy"] == 1.0
    assert found["train", "majority_share"] == 0.9


def test_three_classes():
    train = examples(("rouge vif", 0), ("vert vif", 1), ("bleu vif", 2))
    found = values(bag_of_words({"train": train, "validation": train, "test": train[:2]}))
    assert found["validation", "accuracy"] == found["test", "accuracy"] == 1.0


def test_word_pairs_count():
    train = examples(*[("pas bon mais mauvais", 0), ("bon mais pas mauvais", 1)] * 5)
    assert (
        values(bag_of_words({"train": train, "validation": train, "test": train}))["test", "accuracy"] == 1.0
    )


def test_texts_without_words():
    splits = {split: examples(("!", 0), ("?", 1)) for split in ("train", "validation", "test")}
    with pytest.raises(SeedbedError, match=r"no training text holds a word(.|\n)*'!'(.|\n)*columns\.text"):
        bag_of_words(splits)
