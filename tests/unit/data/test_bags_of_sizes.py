"""Bags of words of each size of training: what they train on, what selects them, and their two tables."""

import csv
import json
import random

import numpy as np
import pytest
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import f1_score, mean_squared_error
from sklearn.multiclass import OneVsRestClassifier

from seedbed.core.tasks import TASKS
from seedbed.data.bags import INVERSE_REGULARISATION, PENALTIES
from seedbed.data.bags_of_sizes import COLUMNS, write_bags
from seedbed.data.baselines import bag_of_words
from seedbed.data.baselines_of_sizes import Labels, Sizes

NAMES = ("bad", "fair", "good")
VOCABULARY = [f"word{index}" for index in range(40)]
NUMBERS = {"train": 60, "validation": 20, "test": 30}


def splits_of(label_of, pairs=False):
    """Splits of random texts; `label_of` maps a text to its label."""
    draw = random.Random(0)
    splits = {}
    for split, number in NUMBERS.items():
        texts = [" ".join(draw.choices(VOCABULARY, k=6)) for _ in range(number)]
        splits[split] = [
            {"id": f"{split}-{index}", "text": text, "label": label_of(text)}
            for index, text in enumerate(texts)
        ]
        for example in splits[split] if pairs else ():
            example["text_pair"] = " ".join(draw.choices(VOCABULARY, k=4))
    return splits


def number_of(text):
    return sum(int(word.removeprefix("word")) for word in text.split())


def class_of(text):
    return int(np.digitize(number_of(text), [105, 130]))


def set_of(text):
    return [int("word1" in text), int(number_of(text) > 120), int("word3" in text)]


def shuffled(splits, seed):
    ids = [example["id"] for example in splits["train"]]
    random.Random(seed).shuffle(ids)
    return ids


def made(folder, splits, orders, sizes, labels):
    """The tables of bags and predictions, as rows of text."""
    paths = folder / "bags.csv", folder / "predictions.csv"
    write_bags(*paths, Sizes(splits, orders, sizes, labels))
    found = []
    for path in paths:
        with open(path, encoding="utf-8", newline="") as stream:
            found.append(list(csv.DictReader(stream)))
    return found


def predicted(rows, size, seed, split, column="prediction"):
    key = {"train_size": str(size), "data_seed": str(seed), "split": split}
    return [row[column] for row in rows if key.items() <= row.items()]


def trained(splits, ids, model, parts=("text",)):
    """The model and the features of validation and test, by scikit-learn alone."""
    train = [example for example in splits["train"] if example["id"] in ids]
    vectorizers = [
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True).fit([example[part] for example in train])
        for part in parts
    ]

    def features(examples):
        return hstack(
            [
                vectorizer.transform([example[part] for example in examples])
                for part, vectorizer in zip(parts, vectorizers, strict=True)
            ],
            format="csr",
        )

    model.fit(features(train), [example["label"] for example in train])
    return model, features(splits["validation"]), features(splits["test"])


@pytest.mark.parametrize("pairs", [False, True], ids=["texts", "pairs"])
@pytest.mark.parametrize("metric", [None, "macro_f1"])
def test_a_bag_of_a_size_is_trained_on_the_first_texts_and_chosen_by_the_main_metric(tmp_path, pairs, metric):
    splits = splits_of(class_of, pairs)
    orders = {seed: shuffled(splits, seed) for seed in (0, 3)}
    task = TASKS["classification"].measured_by(metric)
    bags, rows = made(tmp_path, splits, orders, [20, 40], Labels(task, NAMES, ("0", "1", "2")))
    assert [(bag["train_size"], bag["data_seed"]) for bag in bags] == [
        ("20", "0"), ("20", "3"), ("40", "0"), ("40", "3"), ("60", ""),
    ]  # fmt: skip
    assert tuple(bags[0]) == COLUMNS
    actual = [example["label"] for example in splits["validation"]]
    for bag in bags:
        size, seed = int(bag["train_size"]), bag["data_seed"]
        ids = set(orders[int(seed)][:size] if seed else shuffled(splits, 0))
        candidates = []
        for c in INVERSE_REGULARISATION:
            model = LogisticRegression(C=c, max_iter=2000)
            model, validation, test = trained(splits, ids, model, ("text", "text_pair")[: 1 + pairs])
            score = (
                f1_score(actual, model.predict(validation), average="macro", labels=range(3), zero_division=0)
                if metric
                else model.score(validation, actual)
            )
            candidates.append((round(score, 9), model, test, c))
        _, model, test, c = max(candidates, key=lambda candidate: candidate[0])  # the smallest of several
        assert (bag["setting"], float(bag["selected"]), bag["left_out"]) == ("C", c, "")
        assert predicted(rows, size, seed, "test") == [NAMES[code] for code in model.predict(test)]
        probabilities = [
            [float(cell) for cell in predicted(rows, size, seed, "test", f"probability_{NAMES[code]}")]
            for code in model.classes_
        ]
        assert np.allclose(np.transpose(probabilities), model.predict_proba(test), atol=1e-6)


def test_the_bag_of_all_texts_is_the_one_of_the_dataset(tmp_path):
    splits = splits_of(class_of)
    labels = Labels(TASKS["classification"], NAMES, ("0", "1", "2"))
    bags, rows = made(tmp_path, splits, {0: shuffled(splits, 0)}, [20], labels)
    found = {(row["split"], row["metric"]): row["value"] for row in bag_of_words(splits)}
    right = [row["prediction"] == row["label"] for row in rows if not row["data_seed"]]
    assert float(bags[-1]["selected"]) == found["train", "C"]
    assert np.mean(right[:20]) == found["validation", "accuracy"]
    assert np.mean(right[20:]) == found["test", "accuracy"]


def test_bags_of_sets_of_labels(tmp_path):
    splits = splits_of(set_of)
    order = shuffled(splits, 1)
    labels = Labels(TASKS["multilabel"], NAMES, NAMES)
    bags, rows = made(tmp_path, splits, {1: order}, [30], labels)
    model = OneVsRestClassifier(LogisticRegression(C=float(bags[0]["selected"]), max_iter=2000))
    model, _, test = trained(splits, set(order[:30]), model)
    actual = np.array([example["label"] for example in splits["test"]])
    told = [
        np.isin(NAMES, json.loads(cell)).astype(int).tolist()
        for cell in predicted(rows, 30, 1, "test", "label")
    ]
    assert told == actual.tolist()
    sets = [np.isin(NAMES, json.loads(cell)).astype(int) for cell in predicted(rows, 30, 1, "test")]
    assert np.array_equal(sets, model.predict(test))
    probabilities = [
        [float(cell) for cell in predicted(rows, 30, 1, "test", f"probability_{name}")] for name in NAMES
    ]
    assert np.allclose(np.transpose(probabilities), model.predict_proba(test), atol=1e-6)


@pytest.mark.parametrize("metric", ["pearson", "mse"])
def test_bags_of_numbers(tmp_path, metric):
    splits = splits_of(lambda text: number_of(text) / 10)
    order = shuffled(splits, 1)
    labels = Labels(TASKS["regression"].measured_by(metric))
    bags, rows = made(tmp_path, splits, {1: order}, [30], labels)
    actual = np.array([example["label"] for example in splits["validation"]])
    scores = {}
    for alpha in PENALTIES:
        model, validation, test = trained(
            splits, set(order[:30]), Ridge(alpha=alpha, solver="sparse_cg", tol=1e-9)
        )
        guess = model.predict(validation)
        pearson = np.corrcoef(actual, guess)[0, 1]
        scores[alpha] = -mean_squared_error(actual, guess) if metric == "mse" else pearson
        if alpha == float(bags[0]["selected"]):
            assert np.allclose(np.array(predicted(rows, 30, 1, "test"), float), model.predict(test))
    assert float(bags[0]["selected"]) == max(scores, key=scores.get)
    assert bags[0]["setting"] == "alpha"


def test_a_bag_of_one_class_is_left_out_with_its_reason(tmp_path):
    splits = splits_of(class_of)
    of_one = [example["id"] for example in splits["train"] if example["label"] == 1]
    rest = [example["id"] for example in splits["train"] if example["label"] != 1]
    labels = Labels(TASKS["classification"], NAMES, ("0", "1", "2"))
    bags, rows = made(tmp_path, splits, {0: of_one + rest}, [2, len(of_one) + 5], labels)
    assert [bag["left_out"] for bag in bags] == ["all training texts are of one class", "", ""]
    assert bags[0]["selected"] == ""
    assert {row["train_size"] for row in rows} == {str(len(of_one) + 5), "60"}


def test_a_class_that_a_subset_lacks_has_the_probability_zero(tmp_path):
    splits = splits_of(class_of)
    order = sorted(
        (example["id"] for example in splits["train"]),
        key=lambda name: next(each["label"] for each in splits["train"] if each["id"] == name) == 0,
    )
    labels = Labels(TASKS["classification"], NAMES, ("0", "1", "2"))
    _, rows = made(tmp_path, splits, {0: order}, [10], labels)
    assert set(predicted(rows, 10, 0, "test", "probability_bad")) == {"0"}
    assert "bad" in predicted(rows, 10, 0, "test", "label")


def test_all_training_texts_tell_whether_the_features_are_words(tmp_path):
    splits = splits_of(class_of)
    for example in splits["train"][:10]:
        example["text"] = "mot"
    order = [example["id"] for example in splits["train"]]
    labels = Labels(TASKS["classification"], NAMES, ("0", "1", "2"))
    bags, _ = made(tmp_path, splits, {0: order}, [10], labels)
    assert {bag["features"] for bag in bags} == {""}
    for example in splits["train"]:
        example["text"] = example["text"].replace(" ", "")
    bags, _ = made(tmp_path, splits, {0: order}, [10], labels)
    assert {bag["features"] for bag in bags} == {"characters"}
