"""What a model has to beat: the most frequent class, and a bag of words."""

import collections
from collections.abc import Container, Mapping, Sequence
from typing import Any

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from seedbed.errors import SeedbedError

INVERSE_REGULARISATION = (0.1, 1.0, 10.0, 100.0)  # C, two decades about scikit-learn's default
MAX_ITERATIONS = 2000

Examples = Sequence[Mapping[str, Any]]


def majority_share(examples: Examples) -> float:
    """Share of the most frequent class: the accuracy of always answering it."""
    counts = collections.Counter(example["label"] for example in examples)
    return max(counts.values()) / len(examples)


def bag_of_words(splits: Mapping[str, Examples], leaked: Container[str] = ()) -> list[dict[str, Any]]:
    """Accuracy of a logistic regression on TF-IDF of words and word pairs.

    Trained on train alone, for each C of INVERSE_REGULARISATION; the C with the best validation accuracy is
    taken, the smaller one where several tie.

    Args:
        splits: train, validation and test, each a list of {"id", "text", "label": class index}.
        leaked: ids of the test examples that stand in train or validation, too.

    Returns:
        Rows {"split", "metric", "value"}: accuracy (a fraction) of validation and test, where test examples
        leaked accuracy_without_leaks of the others, majority_share of each split, and the chosen C with split
        train.

    Raises:
        SeedbedError: no training text holds a word of two letters or more.
    """
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), lowercase=True, min_df=1, sublinear_tf=True)
    _learn_vocabulary(vectorizer, splits["train"])
    features = {split: vectorizer.transform(_column(splits, split, "text")) for split in splits}
    labels = {split: _column(splits, split, "label") for split in splits}
    models = {
        c: LogisticRegression(C=c, max_iter=MAX_ITERATIONS).fit(features["train"], labels["train"])
        for c in INVERSE_REGULARISATION
    }
    validation = {c: model.score(features["validation"], labels["validation"]) for c, model in models.items()}
    chosen = max(validation, key=validation.get)  # the first of ties, and C rises
    right = models[chosen].predict(features["test"]) == labels["test"]
    rows = [
        {"split": "train", "metric": "C", "value": chosen},
        {"split": "validation", "metric": "accuracy", "value": float(validation[chosen])},
        {"split": "test", "metric": "accuracy", "value": float(right.mean())},
    ]
    clean = [index for index, example in enumerate(splits["test"]) if example["id"] not in leaked]
    if 0 < len(clean) < len(right):
        rows.append(
            {"split": "test", "metric": "accuracy_without_leaks", "value": float(right[clean].mean())}
        )
    for split, examples in splits.items():
        rows.append({"split": split, "metric": "majority_share", "value": majority_share(examples)})
    return rows


def _column(splits: Mapping[str, Examples], split: str, key: str) -> list[Any]:
    return [example[key] for example in splits[split]]


def _learn_vocabulary(vectorizer: TfidfVectorizer, examples: Examples) -> None:
    try:
        vectorizer.fit([example["text"] for example in examples])
    except ValueError as error:
        if "empty vocabulary" not in str(error):
            raise
        raise SeedbedError(
            "no training text holds a word, so there is no bag of words",
            where="train split",
            found=f"the first text is {examples[0]['text'][:80]!r}",
            hint="check columns.text of the dataset; a word has two letters or more",
        ) from None
