"""The bag of words: what it learns, how it chooses, what it reports."""

import random

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

from seedbed.core import value_metrics
from seedbed.data.bags import INVERSE_REGULARISATION, PENALTIES, features_of
from seedbed.data.baselines import (
    bag_of_words,
    bag_of_words_for_numbers,
    bag_of_words_for_sets,
    majority_share,
)


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
    found = values(bag_of_words(splits))
    # rows are labels: "mauvais" of class 1 is taken for class 0
    counts = {"validation": "[[1, 0], [0, 1]]", "test": "[[1, 0], [1, 2]]"}
    for split, table in counts.items():
        assert {found.pop((split, f"counts C={c:g}")) for c in INVERSE_REGULARISATION} == {table}
    assert found == {
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
    assert values(bag_of_words(splits, {"x-2"}))["test", "counts_without_leaks C=10"] == "[[1, 0], [0, 2]]"
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


def decided(texts: dict[int, list[str]]) -> dict[str, list]:
    """Splits of these texts by class, each text in all of them."""
    rows = examples(*[(text, label) for label, group in texts.items() for text in group])
    return dict.fromkeys(("train", "validation", "test"), rows)


@pytest.mark.parametrize(
    "texts",
    [
        {0: ["这部电影很差，不值得看。", "我觉得很差。"], 1: ["这部电影很好，值得看。", "我觉得很好。"]},
        {0: ["この映画は悪かった", "とても悪い 作品"], 1: ["この映画は良かった", "とても良い 作品"]},
        {0: ["a b c", "b a d"], 1: ["a e c", "e a d"]},
        {0: ["很 差", "差"], 1: ["很 好", "好"]},
        {0: ["1", "1 1"], 1: ["2", "2 2"]},
        {0: ["🙁", "🙁!"], 1: ["🙂", "🙂!"]},
        {0: ["!", "!!"], 1: ["?", "??"]},
        {0: ["nul", "nulle"], 1: ["bon", "bonne"]},
    ],
    ids=["Chinese", "Japanese", "letters", "one character", "digits", "emoji", "punctuation", "one word"],
)
def test_where_words_fail_the_bag_is_of_characters(texts):
    found = values(bag_of_words(decided(texts)))
    assert found["train", "features"] == "characters"
    assert found["test", "accuracy"] == 1.0


@pytest.mark.parametrize(
    "texts",
    [
        ["这部 电影 很 差 不 值得 看", "我 觉得 很 差"],
        ["un livre qui cite 这部电影很差 dans son titre"],
        ["très bon livre", "mauvais", "bon et beau"],
        ["इस फिल्म में बहुत मज़ा आया"],
    ],
)
def test_texts_with_words_between_spaces_have_a_bag_of_words(texts):
    assert features_of([{"text": text} for text in texts]) == "words"


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ({0: ["", ""], 1: ["", ""]}, "all training texts are empty"),
        ({1: ["bon livre", "beau livre"]}, "all training texts are of one class"),
    ],
)
def test_a_bag_that_cannot_be_made_is_left_out_with_the_reason(texts, reason, caplog):
    splits = decided(texts)
    assert bag_of_words(splits) == [
        {"split": "train", "metric": "left_out", "value": reason},
        *(
            {"split": split, "metric": "majority_share", "value": majority_share(splits[split])}
            for split in splits
        ),
    ]
    assert caplog.messages == [f"no bag of words: {reason}"]


def numbered_texts(size, seed):
    rng = np.random.default_rng(seed)
    words = ["bon", "beau", "nul", "laid", "livre", "roman", "texte"]
    worth = {"bon": 2, "beau": 1, "nul": -2, "laid": -1}
    texts = [" ".join(rng.choice(words, 8)) for _ in range(size)]
    return examples(*((text, sum(worth.get(word, 0) for word in text.split()) + 10.0) for text in texts))


def test_numbers_are_predicted_by_ridge_regression_of_each_penalty():
    splits = {
        "train": numbered_texts(60, 0),
        "validation": numbered_texts(20, 1),
        "test": numbered_texts(30, 2),
    }
    found = values(bag_of_words_for_numbers(splits, {"x-0", "x-5"}))
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    inputs = vectorizer.fit_transform([row["text"] for row in splits["train"]])
    labels = {split: np.array([row["label"] for row in of]) for split, of in splits.items()}
    tested = vectorizer.transform([row["text"] for row in splits["test"]])
    clean = np.array([index not in (0, 5) for index in range(30)])
    for alpha in PENALTIES:
        model = Ridge(alpha=alpha, solver="cholesky").fit(inputs.toarray(), labels["train"])
        predicted = model.predict(tested).round(9)
        for metric in ("pearson", "spearman", "mse"):
            for ending, kept in (("", slice(None)), ("_without_leaks", clean)):
                expected = value_metrics.value(metric, labels["test"][kept], predicted[None, kept])[0]
                told = found["test", f"{metric}{ending} alpha={alpha:g}"]
                assert told == pytest.approx(expected, abs=1e-3)
    assert len(found) == 9 * len(PENALTIES)  # three metrics on validation, on test, and without leaks


def test_numbers_without_a_word_leave_the_bag_out():
    texts = examples(("", 1.0), ("", 2.0), ("", 3.0))
    (row,) = bag_of_words_for_numbers(dict.fromkeys(("train", "validation", "test"), texts))
    assert (row["split"], row["metric"], row["value"]) == (
        "train",
        "left_out",
        "all training texts are empty",
    )


# --- sets of labels -----------------------------------------------------------------------------------------


def label_sets(size, seed=0):
    """Texts with a word for each label that they have; nobody has the third label."""
    draw = random.Random(seed)
    rows = []
    for index in range(size):
        held = [draw.randrange(2), draw.randrange(2), 0]
        words = [word for word, one in zip(("amour", "crime"), held, strict=False) if one]
        rows.append({"id": f"{seed}-{index}", "text": " ".join([*words, "un livre"]), "label": held})
    return rows


def test_a_bag_for_sets_has_the_metrics_of_a_regression_for_each_label():
    splits = {split: label_sets(60, seed) for seed, split in enumerate(("train", "validation", "test"))}
    rows = bag_of_words_for_sets(splits, {"2-0", "2-1"})
    found = {(row["split"], row["metric"]): row["value"] for row in rows}
    endings = [("validation", ""), ("test", ""), ("test", "_without_leaks")]
    names = [f"C={c:g}" for c in INVERSE_REGULARISATION]
    assert set(found) == {
        (split, f"{metric}{ending} {name}")
        for split, ending in endings
        for metric in ("micro_f1", "macro_f1", "subset_accuracy")
        for name in names
    }
    assert found["test", "micro_f1 C=100"] == found["test", "subset_accuracy C=100"] == 1.0
    assert found["test", "macro_f1 C=100"] == pytest.approx(2 / 3)


def test_there_is_no_bag_of_sets_where_texts_are_empty():
    rows = [{"id": f"{index}", "text": "", "label": [index % 2, 0]} for index in range(9)]
    (row,) = bag_of_words_for_sets(dict.fromkeys(("train", "validation", "test"), rows))
    assert row == {"split": "train", "metric": "left_out", "value": "all training texts are empty"}
