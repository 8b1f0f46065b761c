"""Baselines of a model: the most frequent class, and a bag of words of classes, of sets of labels or of
numbers.

If no bag can be trained, the experiment continues, and the reason is recorded.
"""

import collections
import logging
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from seedbed.core import set_metrics, value_metrics
from seedbed.core.bag_features import WORDS
from seedbed.core.tasks import CLASSES, LABEL_SETS, VALUES
from seedbed.data.bags import FAULTS, KINDS, features_of, inputs_of, reason

log = logging.getLogger(__name__)

Examples = Sequence[Mapping[str, Any]]


def majority_share(examples: Examples) -> float:
    """Share of the most frequent class: the accuracy of always predicting it."""
    counts = collections.Counter(example["label"] for example in examples)
    return max(counts.values()) / len(examples)


def bag_of_words(splits: Mapping[str, Examples], leaked: Container[str] = ()) -> list[dict[str, Any]]:
    """Accuracy of a logistic regression on TF-IDF of words and word pairs.

    If the training texts are not divided into words, features are characters and their pairs
    (`bags.features_of`). The regression is trained on train, for each C in `bags.INVERSE_REGULARISATION`.
    Validation accuracy selects C, the smallest of several.

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
    rows = _scored(splits, leaked, _scores_of_classes)
    for split, examples in splits.items():
        rows.append({"split": split, "metric": "majority_share", "value": majority_share(examples)})
    return rows


def _scores_of_classes(
    splits: Mapping[str, Examples], leaked: Container[str], features: str
) -> list[dict[str, Any]]:
    """The rows for C, the accuracies and the counts."""
    inputs, kind = inputs_of(splits, features), KINDS[CLASSES]
    labels = {split: kind.labels(examples) for split, examples in splits.items()}
    models = kind.models(inputs["train"], splits["train"])
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
    classes = 1 + max(int(codes.max()) for codes in labels.values())
    counted = [(split, "", list(range(len(labels[split])))) for split in ("validation", "test")]
    if 0 < len(clean) < len(right):
        counted.append(("test", "_without_leaks", clean))
    for split, ending, kept in counted:
        for c, codes in predicted[split].items():
            table = confusion_matrix(labels[split][kept], codes[kept], labels=range(classes))
            rows.append({"split": split, "metric": f"counts{ending} C={c:g}", "value": str(table.tolist())})
    return rows


# --- sets of labels -----------------------------------------------------------------------------------------


def bag_of_words_for_sets(
    splits: Mapping[str, Examples], leaked: Container[str] = ()
) -> list[dict[str, Any]]:
    """Metrics of a logistic regression for each label on TF-IDF of words and word pairs, or of characters.

    The regressions are trained on train, for each C in `bags.INVERSE_REGULARISATION`; the main metric on
    validation selects one C for all labels when tables are made.

    Args:
        splits: train, validation and test, each a list of {"id", "text", "label": 0 or 1 for each label}.
        leaked: ids of the test examples that are also in train or validation.

    Returns: Rows {"split", "metric", "value"}. Validation and test have `METRIC C=...` of each metric of sets
        of labels and C; test has `METRIC_without_leaks C=...` if some of its examples leaked. Train has
        `features` unless these are words. Without a bag, `left_out` gives the reason.
    """
    return _scored(splits, leaked, _scores_of_sets)


def _scores_of_sets(
    splits: Mapping[str, Examples], leaked: Container[str], features: str
) -> list[dict[str, Any]]:
    return _scores(splits, leaked, features, LABEL_SETS, set_metrics.VALUES)


# --- numbers ------------------------------------------------------------------------------------------------


def bag_of_words_for_numbers(
    splits: Mapping[str, Examples], leaked: Container[str] = ()
) -> list[dict[str, Any]]:
    """Metrics of a ridge regression on TF-IDF of words and word pairs, or of characters (`bags.features_of`).

    The regression is trained on train, for each penalty in `bags.PENALTIES`; the main metric on validation
    selects one when tables are made.

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
    return _scores(splits, leaked, features, VALUES, value_metrics.FUNCTIONS)


# --- of every task ------------------------------------------------------------------------------------------


def _scored(
    splits: Mapping[str, Examples], leaked: Container[str], scores: Callable[..., list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Scores of a bag, and what it is of; or why there is none."""
    features = features_of(splits["train"])
    try:
        rows = scores(splits, leaked, features)
    except FAULTS as error:
        why = reason(splits["train"], error)
        log.warning("no bag of words: %s", why)
        return [{"split": "train", "metric": "left_out", "value": why}]
    if features != WORDS:
        log.info("the training texts are not divided into words: using a bag of characters")
        rows.append({"split": "train", "metric": "features", "value": features})
    return rows


def _scores(
    splits: Mapping[str, Examples],
    leaked: Container[str],
    features: str,
    outputs: str,
    metrics: Iterable[str],
) -> list[dict[str, Any]]:
    """The rows of each metric, setting and part of the predicted splits."""
    inputs, kind = inputs_of(splits, features), KINDS[outputs]
    labels = {split: kind.labels(examples) for split, examples in splits.items()}
    clean = np.array([example["id"] not in leaked for example in splits["test"]])
    measured = [("validation", "", np.full(len(labels["validation"]), True))]
    measured.append(("test", "", np.full(len(clean), True)))
    if clean.any() and not clean.all():
        measured.append(("test", "_without_leaks", clean))
    rows = []
    for value, model in kind.models(inputs["train"], splits["train"]).items():
        for split, ending, kept in measured:
            predicted = model.predict(inputs[split])[kept]
            for metric in metrics:
                score = kind.score(metric, labels[split][kept], predicted, ())
                name = f"{metric}{ending} {kind.setting}={value:g}"
                rows.append({"split": split, "metric": name, "value": score})
    return rows


# by a task's outputs
BAGS: dict[str, Callable[..., list[dict[str, Any]]]] = {
    CLASSES: bag_of_words,
    LABEL_SETS: bag_of_words_for_sets,
    VALUES: bag_of_words_for_numbers,
}
