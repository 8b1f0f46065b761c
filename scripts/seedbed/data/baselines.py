"""Baselines of a model: the most frequent class, and a bag of words of classes of sets of labels
or of numbers.

Texts without spaces between words, as in Chinese, get a bag of characters. If no bag can be trained, the
experiment continues, and the reason is recorded.
"""

import collections
import logging
import re
import warnings
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import confusion_matrix
from sklearn.multiclass import OneVsRestClassifier

from seedbed.core import set_metrics, value_metrics
from seedbed.core.characters import UNSPACED
from seedbed.core.set_metrics import Counts, exact_sets
from seedbed.core.tasks import CLASSES, LABEL_SETS, VALUES
from seedbed.data.texts import PARTS, are_pairs, parts

log = logging.getLogger(__name__)

INVERSE_REGULARISATION = (0.1, 1.0, 10.0, 100.0)  # C, from a decade below scikit-learn's default to two above
PENALTIES = (0.01, 0.1, 1.0, 10.0)  # alpha of ridge regression, the same range
MAX_ITERATIONS = 2000
WORD = re.compile(r"\b\w\w+\b")  # scikit-learn's definition of a word
SPACE = re.compile(r"\s+")
FEW_WORDS = 0.5  # share of training texts with fewer than two words, above which characters are used
FEW_SPACES = 0.1  # spaces per letter of such a script; texts divided into words have more
WORDS, CHARACTERS = "words", "characters"

Examples = Sequence[Mapping[str, Any]]


def majority_share(examples: Examples) -> float:
    """Share of the most frequent class: the accuracy of always predicting it."""
    counts = collections.Counter(example["label"] for example in examples)
    return max(counts.values()) / len(examples)


def bag_of_words(splits: Mapping[str, Examples], leaked: Container[str] = ()) -> list[dict[str, Any]]:
    """Accuracy of a logistic regression on TF-IDF of words and word pairs.

    Both texts of a pair have features of their own: a word may tell something else in a premise than in a
    hypothesis.

    If the training texts are not divided into words, features are characters and their pairs (`features_of`).
    The regression is trained on train, for each C in INVERSE_REGULARISATION. Validation accuracy selects C,
    the smallest of several.

    Args:
        splits: train, validation and test, each a list of {"id", "text", "label": class index}, and
            "text_pair" of pairs.
        leaked: ids of the test examples that are also in train or validation.

    Returns: Rows {"split", "metric", "value"}. Each split has majority_share (a fraction). Validation and
        test have accuracy (a fraction); test has accuracy_without_leaks if some of its examples leaked. Train
        has the selected C, and `features` unless these are words. Without a bag, `left_out` gives the reason.
        For other metrics than accuracy, validation and test have `counts C=...` of each C: how many examples
        of each class (rows) were taken for each (columns), as JSON; and likewise without leaks.
    """
    features = features_of([text for example in splits["train"] for text in parts(example)])
    try:
        rows = _measured(splits, leaked, features)
    except (ValueError, ArithmeticError, MemoryError) as error:  # includes scikit-learn's own errors
        reason = _reason(splits["train"], error)
        log.warning("no bag of words: %s", reason)
        rows = [{"split": "train", "metric": "left_out", "value": reason}]
    else:
        if features != WORDS:
            log.info("the training texts are not divided into words: using a bag of characters")
            rows.append({"split": "train", "metric": "features", "value": features})
    for split, examples in splits.items():
        rows.append({"split": split, "metric": "majority_share", "value": majority_share(examples)})
    return rows


def features_of(texts: Sequence[str]) -> str:
    """The features of a bag: WORDS, or CHARACTERS for texts that are not divided into words.

    These are texts most of which have fewer than two words of at least two letters, or texts whose letters
    mostly belong to scripts without spaces and are not divided by spaces.
    """
    few = sum(len(WORD.findall(text)) < 2 for text in texts)
    if few > FEW_WORDS * len(texts):
        return CHARACTERS
    unspaced = sum(len(UNSPACED.findall(text)) for text in texts)
    spaces = sum(len(SPACE.findall(text)) for text in texts)
    if not unspaced or spaces >= FEW_SPACES * unspaced:
        return WORDS
    letters = sum(sum(map(str.isalpha, text)) for text in texts)
    return CHARACTERS if unspaced > letters / 2 else WORDS


def _measured(splits: Mapping[str, Examples], leaked: Container[str], features: str) -> list[dict[str, Any]]:
    """The rows for C and the accuracies."""
    inputs = _inputs(splits, features)
    labels = {split: _column(splits, split, "label") for split in splits}
    models = {
        c: LogisticRegression(C=c, max_iter=MAX_ITERATIONS).fit(inputs["train"], labels["train"])
        for c in INVERSE_REGULARISATION
    }
    validation = {c: model.score(inputs["validation"], labels["validation"]) for c, model in models.items()}
    chosen = max(validation, key=validation.get)  # the first of several, hence the smallest
    predicted = {
        split: {c: model.predict(inputs[split]) for c, model in models.items()}
        for split in ("validation", "test")
    }
    right = predicted["test"][chosen] == labels["test"]
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
    classes = 1 + max(map(max, labels.values()))
    counted = [(split, "", range(len(labels[split]))) for split in ("validation", "test")]
    if 0 < len(clean) < len(right):
        counted.append(("test", "_without_leaks", clean))
    for split, ending, kept in counted:
        for c, codes in predicted[split].items():
            pairs = [labels[split][index] for index in kept], [codes[index] for index in kept]
            table = confusion_matrix(*pairs, labels=range(classes))
            rows.append({"split": split, "metric": f"counts{ending} C={c:g}", "value": str(table.tolist())})
    return rows


def _inputs(splits: Mapping[str, Examples], features: str) -> dict[str, Any]:
    """The features of each split, (examples, features), those of a second text behind those of the first."""
    analyzer = {WORDS: "word", CHARACTERS: "char"}[features]
    blocks = []
    for part in PARTS if are_pairs(splits["train"]) else PARTS[:1]:
        vectorizer = TfidfVectorizer(
            analyzer=analyzer, ngram_range=(1, 2), lowercase=True, min_df=1, sublinear_tf=True
        )
        vectorizer.fit(_column(splits, "train", part))
        blocks.append({split: vectorizer.transform(_column(splits, split, part)) for split in splits})
    return {split: hstack([block[split] for block in blocks], format="csr") for split in splits}


# --- sets of labels -----------------------------------------------------------------------------------------


def bag_of_words_for_sets(
    splits: Mapping[str, Examples], leaked: Container[str] = ()
) -> list[dict[str, Any]]:
    """Metrics of a logistic regression for each label on TF-IDF of words and word pairs, or of characters.

    The regressions are trained on train, for each C in INVERSE_REGULARISATION; the main metric on validation
    selects one C for all labels when tables are made.

    Args:
        splits: train, validation and test, each a list of {"id", "text", "label": 0 or 1 for each label}.
        leaked: ids of the test examples that are also in train or validation.

    Returns: Rows {"split", "metric", "value"}. Validation and test have `METRIC C=...` of each metric of sets
        of labels and C; test has `METRIC_without_leaks C=...` if some of its examples leaked. Train has
        `features` unless these are words. Without a bag, `left_out` gives the reason.
    """
    return _scored(splits, leaked, _scores_of_sets)


def _scored(
    splits: Mapping[str, Examples], leaked: Container[str], scores: Callable[..., list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Scores of a bag, and what it is of; or why there is none."""
    features = features_of([example["text"] for example in splits["train"]])
    try:
        rows = scores(splits, leaked, features)
    except (ValueError, ArithmeticError, MemoryError) as error:  # includes scikit-learn's own errors
        reason = _reason(splits["train"], error)
        log.warning("no bag of words: %s", reason)
        return [{"split": "train", "metric": "left_out", "value": reason}]
    if features != WORDS:
        rows.append({"split": "train", "metric": "features", "value": features})
    return rows


def _scores_of_sets(
    splits: Mapping[str, Examples], leaked: Container[str], features: str
) -> list[dict[str, Any]]:
    inputs = _inputs(splits, features)
    actual = {split: np.array(_column(splits, split, "label"), dtype=bool) for split in splits}
    clean = np.array([example["id"] not in leaked for example in splits["test"]])
    measured = [("validation", "", np.full(len(actual["validation"]), True))]
    measured.append(("test", "", np.full(len(clean), True)))
    if clean.any() and not clean.all():
        measured.append(("test", "_without_leaks", clean))
    rows = []
    for c in INVERSE_REGULARISATION:
        model = OneVsRestClassifier(LogisticRegression(C=c, max_iter=MAX_ITERATIONS))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Label .* is present in all training examples")
            model.fit(inputs["train"], actual["train"].astype(int))
        for split, ending, kept in measured:
            truth, predicted = actual[split][kept], model.predict(inputs[split]).astype(bool)[kept]
            counts = Counts.of(truth, predicted, exact_sets(truth, predicted, np.zeros(len(truth), bool)))
            for metric in set_metrics.VALUES:
                score = float(set_metrics.value(metric, counts))
                rows.append({"split": split, "metric": f"{metric}{ending} C={c:g}", "value": score})
    return rows


# --- numbers ------------------------------------------------------------------------------------------------


def bag_of_words_for_numbers(
    splits: Mapping[str, Examples], leaked: Container[str] = ()
) -> list[dict[str, Any]]:
    """Metrics of a ridge regression on TF-IDF of words and word pairs, or of characters (`features_of`).

    The regression is trained on train, for each penalty in PENALTIES; the main metric on validation selects
    one when tables are made.

    Args:
        splits: train, validation and test, each a list of {"id", "text", "label": a number}.
        leaked: ids of the test examples that are also in train or validation.

    Returns: Rows {"split", "metric", "value"}. Validation and test have `METRIC alpha=...` of each metric of
        numbers and penalty; test has `METRIC_without_leaks alpha=...` if some of its examples leaked. Train
        has `features` unless these are words. Without a bag, `left_out` gives the reason.
    """
    return _scored(splits, leaked, _scores_of_numbers)


def _scores_of_numbers(
    splits: Mapping[str, Examples], leaked: Container[str], features: str
) -> list[dict[str, Any]]:
    inputs = _inputs(splits, features)
    labels = {split: np.array(_column(splits, split, "label"), dtype=np.float64) for split in splits}
    clean = np.array([example["id"] not in leaked for example in splits["test"]])
    measured = [("validation", "", np.full(len(labels["validation"]), True))]
    measured.append(("test", "", np.full(len(clean), True)))
    if clean.any() and not clean.all():
        measured.append(("test", "_without_leaks", clean))
    rows = []
    for alpha in PENALTIES:
        model = Ridge(alpha=alpha, solver="sparse_cg", tol=1e-9).fit(inputs["train"], labels["train"])
        for split, ending, kept in measured:
            predicted = model.predict(inputs[split])[None, kept]
            for metric in value_metrics.FUNCTIONS:
                score = value_metrics.value(metric, labels[split][kept], predicted)[0]
                name = f"{metric}{ending} alpha={alpha:g}"
                rows.append({"split": split, "metric": name, "value": float(score)})
    return rows


# by a task's outputs
BAGS: dict[str, Callable[..., list[dict[str, Any]]]] = {
    CLASSES: bag_of_words,
    LABEL_SETS: bag_of_words_for_sets,
    VALUES: bag_of_words_for_numbers,
}


def _column(splits: Mapping[str, Examples], split: str, key: str) -> list[Any]:
    return [example[key] for example in splits[split]]


def _reason(train: Examples, error: Exception) -> str:
    """A short reason why no bag of words could be trained."""
    if len({str(example["label"]) for example in train}) < 2:
        return "all training texts are of one class"
    if not any(text.strip() for example in train for text in parts(example)):
        return "all training texts are empty"
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
