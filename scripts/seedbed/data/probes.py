"""Linear probes: what a logistic regression reads from the states of an encoder that is not trained.

It is the baseline of fine-tuning: what a frozen encoder already tells of the labels (Alain and Bengio 2017,
Understanding intermediate layers using linear classifier probes, arXiv:1610.01644).
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from seedbed.core.errors import SeedbedError
from seedbed.core.files import write_rows
from seedbed.core.splits import PREDICTED
from seedbed.core.states import KINDS
from seedbed.data import states as states_file
from seedbed.data.bags import INVERSE_REGULARISATION, MAX_ITERATIONS

COLUMNS = ("split", "example", "label", *(f"prediction_{kind}" for kind in KINDS))
ACCURACY_COLUMNS = ("states", "split", "metric", "value")
TABLE_COLUMNS = (
    "dataset", "model", "encoder", "states", "C", "validation_accuracy", "test_accuracy",
    "test_accuracy_without_leaks",
)  # fmt: skip


@dataclass(frozen=True)
class Probe:
    """A fitted probe.

    Attributes:
        c: the inverse of the regularisation, chosen on validation.
        predictions: the class of each example of validation and test, int arrays of shape (examples,).
        accuracies: the share of right ones, by split.
    """

    c: float
    predictions: dict[str, np.ndarray]
    accuracies: dict[str, float]


def fit(states: Mapping[str, np.ndarray], labels: Mapping[str, Sequence[int]]) -> Probe:
    """A logistic regression on standardised states.

    It is trained on train, for each C in INVERSE_REGULARISATION. Validation accuracy selects C, the smallest
    of several. Mean and standard deviation of each dimension are those of train.

    Args:
        states: of the splits train, validation and test, each of shape (examples, width); train may be any
            part of a dataset's training examples.
        labels: the class of each example, by split.

    Raises:
        SeedbedError: all training examples are of one class.
    """
    if len({*labels["train"]}) < 2:
        raise SeedbedError(
            "a probe needs training examples of two classes",
            where="the training split",
            found=f"{len(labels['train'])} examples of {len({*labels['train']})} class",
            hint="take more training examples, or a sample stratified by class",
        )
    models = models_of(states["train"], labels["train"])
    validation = {c: model.score(states["validation"], labels["validation"]) for c, model in models.items()}
    chosen = max(validation, key=lambda c: validation[c])  # the first of several, hence the smallest
    predictions = {split: models[chosen].predict(states[split]) for split in PREDICTED}
    accuracies = {split: float(np.mean(predictions[split] == labels[split])) for split in PREDICTED}
    return Probe(chosen, predictions, accuracies)


def models_of(states: np.ndarray, labels: Sequence[int]) -> dict[float, Pipeline]:
    """The candidates of a probe by C, the smallest first, trained on states (examples, width) and classes.

    Raises:
        ValueError: all examples are of one class.
    """
    return {
        c: make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=MAX_ITERATIONS)).fit(
            states, labels
        )
        for c in INVERSE_REGULARISATION
    }


def write_probes(
    path: Path,
    splits: Mapping[str, Sequence[Mapping[str, Any]]],
    names: Sequence[str],
    leaked: Container[str],
    predictions: str | Path,
    accuracies: str | Path,
) -> None:
    """Fit a probe on each kind of states, and write its predictions and accuracies.

    Args:
        path: the file of states (see `core.states`).
        splits: train, validation and test, each a list of {"id", "label": class index}.
        names: names of the classes.
        leaked: ids of the test examples that are also in train or validation.
        predictions: the table of COLUMNS.
        accuracies: the table of ACCURACY_COLUMNS: the chosen C (split train), accuracy of validation and
            test, and accuracy_without_leaks if some test examples leaked.

    Raises:
        SeedbedError: the file is of other texts; or see `fit`.
    """
    states = states_file.read(path, {split: len(rows) for split, rows in splits.items()})
    labels = {split: [row["label"] for row in rows] for split, rows in splits.items()}
    probes = {kind: fit(states[kind], labels) for kind in KINDS}
    rows = [
        {
            "split": split,
            "example": row["id"],
            "label": names[row["label"]],
            **{f"prediction_{kind}": names[probes[kind].predictions[split][place]] for kind in KINDS},
        }
        for split in PREDICTED
        for place, row in enumerate(splits[split])
    ]
    write_rows(predictions, COLUMNS, rows)
    clean = np.array([row["id"] not in leaked for row in splits["test"]])
    scores: list[dict[str, Any]] = []
    for kind, probe in probes.items():
        found = [
            ("train", "C", probe.c),
            *((split, "accuracy", probe.accuracies[split]) for split in PREDICTED),
        ]
        if clean.any() and not clean.all():
            right = probe.predictions["test"] == labels["test"]
            found.append(("test", "accuracy_without_leaks", float(right[clean].mean())))
        scores += [dict(zip(ACCURACY_COLUMNS, (kind, *row), strict=True)) for row in found]
    write_rows(accuracies, ACCURACY_COLUMNS, scores)


def table(places: Sequence[Mapping[str, str]], scores: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict]:
    """Rows of TABLE_COLUMNS: each probe of an experiment.

    Args:
        places: dataset, model and encoder of each file of accuracies.
        scores: the rows of each file.
    """
    names = {
        ("train", "C"): "C",
        ("validation", "accuracy"): "validation_accuracy",
        ("test", "accuracy"): "test_accuracy",
        ("test", "accuracy_without_leaks"): "test_accuracy_without_leaks",
    }
    rows = []
    for place, found in zip(places, scores, strict=True):
        for kind in KINDS:
            of_kind = [row for row in found if row["states"] == kind]
            values = {names[row["split"], row["metric"]]: row["value"] for row in of_kind}
            rows.append({"test_accuracy_without_leaks": None, **place, "states": kind, **values})
    return rows
