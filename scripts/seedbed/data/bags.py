"""Bags of words: the features of texts, and the models of them, by what a task predicts.

Texts without spaces between words, as in Chinese, get a bag of characters.
"""

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier

from seedbed.core import class_metrics, set_metrics, value_metrics
from seedbed.core.bag_features import CHARACTERS, WORDS
from seedbed.core.characters import UNSPACED
from seedbed.core.set_metrics import exact_sets
from seedbed.core.tasks import CLASSES, LABEL_SETS, VALUES
from seedbed.data.label_sets import spelled
from seedbed.data.texts import PARTS, are_pairs, parts

INVERSE_REGULARISATION = (0.1, 1.0, 10.0, 100.0)  # C, from a decade below scikit-learn's default to two above
PENALTIES = (0.01, 0.1, 1.0, 10.0)  # alpha of ridge regression, the same range
MAX_ITERATIONS = 2000
WORD = re.compile(r"\b\w\w+\b")  # scikit-learn's definition of a word
SPACE = re.compile(r"\s+")
FEW_WORDS = 0.5  # share of training texts with fewer than two words, above which characters are used
FEW_SPACES = 0.1  # spaces per letter of such a script; texts divided into words have more
PROBABILITY = "probability_"  # begins the column of a class's probability

FAULTS = (
    ValueError,
    ArithmeticError,
    MemoryError,
)  # of training a baseline; scikit-learn's among them

Examples = Sequence[Mapping[str, Any]]


# --- features -----------------------------------------------------------------------------------------------


def features_of(examples: Examples) -> str:
    """The features of a bag: WORDS, or CHARACTERS for texts that are not divided into words.

    These are texts most of which have fewer than two words of at least two letters, or texts whose letters
    mostly belong to scripts without spaces and are not divided by spaces. Both texts of a pair count.
    """
    texts = [text for example in examples for text in parts(example)]
    few = sum(len(WORD.findall(text)) < 2 for text in texts)
    if few > FEW_WORDS * len(texts):
        return CHARACTERS
    unspaced = sum(len(UNSPACED.findall(text)) for text in texts)
    spaces = sum(len(SPACE.findall(text)) for text in texts)
    if not unspaced or spaces >= FEW_SPACES * unspaced:
        return WORDS
    letters = sum(sum(map(str.isalpha, text)) for text in texts)
    return CHARACTERS if unspaced > letters / 2 else WORDS


def inputs_of(splits: Mapping[str, Examples], features: str) -> dict[str, Any]:
    """TF-IDF of words or characters and their pairs, as they occur in train.

    Both texts of a pair have features of their own, those of the second behind those of the first: a word may
    tell something else in a premise than in a hypothesis.

    Args:
        splits: train and others, each a list of {"text"}, and "text_pair" of pairs.
        features: WORDS or CHARACTERS.

    Returns: a sparse matrix (examples, features) for each split.

    Raises:
        ValueError: the texts of train have no features.
    """
    analyzer = {WORDS: "word", CHARACTERS: "char"}[features]
    blocks = []
    for part in PARTS if are_pairs(splits["train"]) else PARTS[:1]:
        vectorizer = TfidfVectorizer(
            analyzer=analyzer, ngram_range=(1, 2), lowercase=True, min_df=1, sublinear_tf=True
        )
        vectorizer.fit(_texts(splits["train"], part))
        blocks.append({split: vectorizer.transform(_texts(splits[split], part)) for split in splits})
    return {split: hstack([block[split] for block in blocks], format="csr") for split in splits}


def _texts(examples: Examples, part: str) -> list[str]:
    return [example[part] for example in examples]


# --- models -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """How a bag predicts one kind of output.

    Attributes:
        setting: what validation selects: C of logistic regression, or alpha of ridge regression.
        values: those that are tried, from the smallest on.
        labels: the labels of examples: (examples,), or (examples, labels) bool of sets of labels.
        fitted: maps a value, features (examples, features) and labels to a model, whose `predict` maps
            features to predictions in the form of labels.
        score: maps a metric's name, labels, predictions and the labels of the classes to the metric.
        label_cell: the cell of an example's label in predictions.csv, by the names of the labels.
        cells: maps a model, features and names of the labels to the other cells of each example:
            "prediction", and "probability_NAME" of what has probabilities.
    """

    setting: str
    values: Sequence[float]
    labels: Callable[[Examples], np.ndarray]
    fitted: Callable[[float, Any, np.ndarray], Any]
    score: Callable[[str, np.ndarray, np.ndarray, Sequence[str]], float]
    label_cell: Callable[[Any, Sequence[str]], str]
    cells: Callable[[Any, Any, Sequence[str]], Iterator[dict[str, str]]]

    def models(self, inputs: Any, examples: Examples) -> dict[float, Any]:
        """The models by value, trained on examples with these features.

        Raises:
            ValueError, ArithmeticError, MemoryError: they cannot be trained, see `reason`.
        """
        labels = self.labels(examples)
        return {value: self.fitted(value, inputs, labels) for value in self.values}


def reason(train: Examples, error: Exception) -> str:
    """Why no baseline could be trained on texts, in short."""
    if len({str(example["label"]) for example in train}) < 2:
        return "all training texts are of one class"
    if not any(text.strip() for example in train for text in parts(example)):
        return "all training texts are empty"
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


# of classes


def _codes(examples: Examples) -> np.ndarray:
    return np.array([example["label"] for example in examples], dtype=np.int64)


def _logistic(c: float, inputs: Any, labels: np.ndarray) -> LogisticRegression:
    return LogisticRegression(C=c, max_iter=MAX_ITERATIONS).fit(inputs, labels)


def _score_of_classes(
    metric: str, labels: np.ndarray, predicted: np.ndarray, classes: Sequence[str]
) -> float:
    return float(class_metrics.value(metric, class_metrics.count(labels, predicted, len(classes)), classes))


def _class_cell(label: int, names: Sequence[str]) -> str:
    return names[label]


def _cells_of_classes(
    model: LogisticRegression, inputs: Any, names: Sequence[str]
) -> Iterator[dict[str, str]]:
    probabilities = np.zeros((inputs.shape[0], len(names)))  # 0 of a class that train lacks
    probabilities[:, model.classes_] = model.predict_proba(inputs)
    for code, row in zip(model.predict(inputs).tolist(), probabilities.tolist(), strict=True):
        yield {"prediction": names[code], **_probabilities(names, row)}


def _probabilities(names: Sequence[str], row: Sequence[float]) -> dict[str, str]:
    """The cells of probabilities, with as many digits as those of runs."""
    return {f"{PROBABILITY}{name}": f"{value:.9g}" for name, value in zip(names, row, strict=True)}


# of sets of labels


def _sets(examples: Examples) -> np.ndarray:
    return np.array([example["label"] for example in examples], dtype=bool)


def _logistic_of_each(c: float, inputs: Any, labels: np.ndarray) -> OneVsRestClassifier:
    model = OneVsRestClassifier(LogisticRegression(C=c, max_iter=MAX_ITERATIONS))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Label .* is present in all training examples")
        return model.fit(inputs, labels.astype(int))


def _score_of_sets(metric: str, labels: np.ndarray, predicted: np.ndarray, classes: Sequence[str]) -> float:
    predicted = predicted.astype(bool)
    exact = exact_sets(labels, predicted, np.zeros(len(labels), bool))
    return float(set_metrics.value(metric, set_metrics.Counts.of(labels, predicted, exact)))


def _set_cell(label: Sequence[int], names: Sequence[str]) -> str:
    return json.dumps(spelled(label, names), ensure_ascii=False)


def _cells_of_sets(model: OneVsRestClassifier, inputs: Any, names: Sequence[str]) -> Iterator[dict[str, str]]:
    probabilities = model.predict_proba(inputs).tolist()
    for held, row in zip(model.predict(inputs).tolist(), probabilities, strict=True):
        yield {
            "prediction": _set_cell(held, names),
            **_probabilities(names, row),
        }


# of numbers


def _numbers(examples: Examples) -> np.ndarray:
    return np.array([example["label"] for example in examples], dtype=np.float64)


def _ridge(alpha: float, inputs: Any, labels: np.ndarray) -> Ridge:
    return Ridge(alpha=alpha, solver="sparse_cg", tol=1e-9).fit(inputs, labels)


def _score_of_numbers(
    metric: str, labels: np.ndarray, predicted: np.ndarray, classes: Sequence[str]
) -> float:
    return float(value_metrics.value(metric, labels, predicted[None])[0])


def _number_cell(label: float, names: Sequence[str]) -> str:
    return repr(float(label))


def _cells_of_numbers(model: Ridge, inputs: Any, names: Sequence[str]) -> Iterator[dict[str, str]]:
    for value in model.predict(inputs).tolist():
        yield {"prediction": _number_cell(value, names)}


# by a task's outputs
KINDS = {
    CLASSES: Kind(
        "C", INVERSE_REGULARISATION, _codes, _logistic, _score_of_classes, _class_cell, _cells_of_classes
    ),
    LABEL_SETS: Kind(
        "C", INVERSE_REGULARISATION, _sets, _logistic_of_each, _score_of_sets, _set_cell, _cells_of_sets
    ),
    VALUES: Kind("alpha", PENALTIES, _numbers, _ridge, _score_of_numbers, _number_cell, _cells_of_numbers),
}
