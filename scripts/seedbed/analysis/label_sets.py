"""Predicted sets of labels: read from predictions.csv, and what counts, intervals and diagnoses start from.

Metrics of sets are of counts, see `core.set_metrics`. As sets, predictions can also be looked at as if each
set that occurs were a class: see `as_classes`.
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from seedbed.analysis import statistics
from seedbed.analysis.majority import ROUNDING
from seedbed.analysis.predictions import (
    CHANCE_OF_ONE_CLASS,
    OF_A_RUN,
    TIE,
    UNDEFINED_LOSS,
    CellPredictions,
    Counted,
    Groups,
    bad_predictions,
    categories,
    check_unique,
    clusters_of,
    contradiction,
    kept_clusters,
    line_of,
    numbered,
    read_classes,
    read_probabilities,
    scores_of_clusters,
    summed_by,
)
from seedbed.analysis.table_rows import LEAKLESS
from seedbed.core import set_metrics
from seedbed.core.errors import SeedbedError
from seedbed.core.rows import ANEW
from seedbed.core.set_metrics import Counts, exact_sets
from seedbed.core.tasks import TASKS, Task

MEANS = ("subset_accuracy", "loss")  # metrics that are means over examples
ARRAYS = ("predicted", "missing", "loss", "loss_error")  # one row a seed
DIGITS = 5e-10  # rounding of a probability between 0.1 and 1, which is written with nine digits


@dataclass(frozen=True)
class CellLabelSets:
    """The predictions of all seeds of a cell (dataset, model, framework, init, recipe) on one split.

    Attributes:
        names: names of the labels.
        ids: examples, in the order of predictions.csv.
        labels: (examples, labels) bool.
        predicted: (seeds, examples, labels) bool, rows in the order of the cell's runs; False where missing.
        missing: (seeds, examples) bool: where the model returned no number.
        loss: (seeds, examples) float64: mean binary cross-entropy over labels, in nats; infinite where a
            label's probability is zero, NaN where the model returned no number.
        loss_error: (seeds, examples) float64: how far the loss may be off, since probabilities are rounded.
        constants: (labels,) bool by metric: the constant answer that scores best on train.
        task: what the predictions are of.
        clusters: (examples,) int64: the cluster of each example; None where there are none.
    """

    names: tuple[str, ...]
    ids: tuple[str, ...]
    labels: np.ndarray
    predicted: np.ndarray
    missing: np.ndarray
    loss: np.ndarray
    loss_error: np.ndarray
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    task: Task = TASKS["multilabel"]
    clusters: np.ndarray | None = None

    def measured(self, metric: str) -> list[float | None]:
        """A metric of the split for each seed; None for a loss that is not finite."""
        values = self.loss.mean(axis=1) if metric == "loss" else set_metrics.value(metric, self.counts)
        return [value if np.isfinite(value) else None for value in values.tolist()]

    def scores(self, metric: str) -> np.ndarray:
        """(seeds, examples or clusters), all finite: what a metric is the mean of.

        A loss that is not finite is UNDEFINED_LOSS. F1 is no mean over examples: its scores are the metric
        plus the influence of each example, with which they have its mean, and to first order its spread over
        resampled examples.
        """
        if metric == "loss":
            scores = np.where(np.isfinite(self.loss), self.loss, UNDEFINED_LOSS)
        else:
            found = set_metrics.influences(metric, self.labels, self.predicted, self.correct)
            scores = set_metrics.value(metric, self.counts)[:, None] + found
        return scores_of_clusters(scores, self.clusters)

    def counted(self, metric: str) -> Counted | None:
        """What gives F1 on resampled examples; None of a mean over examples, whose scores do."""
        if metric in MEANS:
            return None
        seeds, right = len(self.predicted), self.predicted & self.labels
        # (examples, seeds, labels); micro-F1 needs only their sums over labels
        parts = [self.labels[:, None, :], right.swapaxes(0, 1), self.predicted.swapaxes(0, 1)]
        if metric == "micro_f1":
            parts = [part.sum(axis=2, keepdims=True) for part in parts]
        columns = np.concatenate([part.reshape(len(self.ids), -1) for part in parts], axis=1).astype(
            np.float32
        )
        if self.clusters is not None:
            columns = summed_by(columns, self.clusters)
        labels = parts[0].shape[2]
        places = (labels, labels * (1 + seeds))

        def measured(sums: np.ndarray) -> np.ndarray:
            actual, *of_seeds = np.split(sums.astype(np.float64), places, axis=1)
            found, predicted = (part.reshape(len(sums), seeds, labels) for part in of_seeds)
            none = np.array(0.0)  # F1 does not ask how many sets are right
            counts = Counts(found, predicted, actual[:, None, :], none, none)
            return set_metrics.value(metric, counts).astype(np.float32)

        return Counted(columns, measured)

    @cached_property
    def counts(self) -> Counts:
        """The counts of labels and predictions of each seed."""
        return Counts.of(self.labels, self.predicted, self.correct)

    @cached_property
    def correct(self) -> np.ndarray:
        """(seeds, examples) bool: whether the predicted set is the label's."""
        return exact_sets(self.labels, self.predicted, self.missing)

    @property
    def undefined(self) -> np.ndarray:
        """(seeds,) bool: whether the split has no metrics: never, since a missing prediction is wrong."""
        return np.zeros(len(self.predicted), dtype=bool)

    @property
    def all_same(self) -> np.ndarray:
        """(seeds,) bool: whether every predicted set of the seed is the same."""
        same = (self.predicted == self.predicted[:, :1]).all(axis=(1, 2))
        return same & (self.missing == self.missing[:, :1]).all(axis=1)

    @property
    def tells_collapse(self) -> bool:
        """Whether a single predicted set on these examples is more than chance.

        It is where sets drawn at random, each as often as it is the label, would all be the same with a
        probability below CHANCE_OF_ONE_CLASS; never where all examples have one set.
        """
        _, counts = np.unique(self.labels, axis=0, return_counts=True)
        shares = counts / len(self.labels)
        return float((shares ** len(self.labels)).sum()) < CHANCE_OF_ONE_CLASS

    def constant_value(self, metric: str) -> float:
        """A metric of the constant answer that has the best one on train."""
        return set_metrics.constant_value(metric, self.labels, self.constants[metric])

    def not_above_constant(self, confidence: float) -> bool:
        """Whether the one-sided bound of the first seed's main metric does not exceed the constant's.

        Of subset accuracy it is the Wilson bound. Of F1 it is the metric less the quantile of the normal
        distribution times its standard error over examples, by the delta method.
        """
        metric = self.task.selection
        constant = self.constant_value(metric)
        if metric == "subset_accuracy":
            return (
                not statistics.wilson_lower(int(self.correct[0].sum()), len(self.ids), confidence) > constant
            )
        return not statistics.bound_of_mean(self.scores(metric)[0], confidence) > constant + ROUNDING

    def keep(self, kept: np.ndarray) -> "CellLabelSets":
        """The predictions on some examples: those where `kept`, (examples,) bool, is true."""
        arrays: dict[str, Any] = {name: getattr(self, name)[:, kept] for name in ARRAYS}
        ids = tuple(itertools.compress(self.ids, kept))
        clusters = kept_clusters(self.clusters, kept)
        return replace(self, ids=ids, labels=self.labels[kept], clusters=clusters, **arrays)

    def clustered(self, clusters: Mapping[str, str]) -> "CellLabelSets":
        """The predictions with the cluster of each example.

        Args:
            clusters: names of clusters by the examples' ids.

        Raises:
            SeedbedError: an example has none.
        """
        return replace(self, clusters=numbered(clusters_of(self.ids, clusters)))

    def same_examples(self, other: Any) -> bool:
        """Whether both are of the same examples with the same labels in the same order.

        Args:
            other: predictions of the same task.
        """
        same = self.ids == other.ids and self.names == other.names
        return same and np.array_equal(self.labels, other.labels)

    def called(self, names: Sequence[str]) -> "CellLabelSets":
        """The predictions with other names of the labels."""
        return replace(self, names=tuple(names))

    def sharing(self, first: Any) -> "CellLabelSets":
        """These predictions with the examples of `first`, so that ids and labels are in memory once."""
        return replace(self, ids=first.ids, labels=first.labels, clusters=first.clusters)

    def told_examples(self) -> Iterator[str]:
        """Every example as errors name it."""
        for name, label_set in zip(self.ids, self.labels, strict=True):
            yield f"{name!r} labelled {spelled(label_set, self.names)}"

    @staticmethod
    def stacked(runs: Sequence[Any]) -> "CellLabelSets":
        """Predictions on the same examples under each other, in the given order."""
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(run, name) for run in runs]) for name in ARRAYS
        }
        return replace(runs[0], **arrays)


def spelled(label_set: np.ndarray, names: Sequence[str]) -> str:
    """A set of labels as predictions.csv spells it: a JSON list of names in the declared order."""
    return json.dumps(list(itertools.compress(names, label_set)), ensure_ascii=False)


def columns(
    validation: CellLabelSets, test: CellLabelSets, clean: CellLabelSets | None, confidence: float
) -> dict[str, Any]:
    """The columns of runs.csv of one run that are counted of its predicted sets.

    Args:
        validation: its predictions on validation.
        test: those on test.
        clean: those on the test examples that did not leak; None where none or all leaked.
        confidence: of the bound that is held to the constant answer.
    """
    found = {f"validation_{metric}": validation.measured(metric)[0] for metric in validation.task.counted}
    for table, ending in ((test, ""), (clean, LEAKLESS)):
        if table is not None:
            found |= {f"test_{metric}{ending}": table.measured(metric)[0] for metric in table.task.counted}
            found[f"test_examples{ending}"] = len(table.ids)
            found[f"not_above_majority{ending}"] = table.not_above_constant(confidence)
    return found


# --- sets as classes ----------------------------------------------------------------------------------------


def as_classes(cells: Mapping[Any, CellLabelSets]) -> dict[Any, CellPredictions]:
    """The cells of one dataset with each set that is a label or a prediction in any of them as a class.

    Of such classes only labels and predictions are known, no confidence and no loss.
    """
    if not cells:
        return {}
    rows = [
        array.reshape(-1, array.shape[-1])
        for cell in cells.values()
        for array in (cell.labels, cell.predicted)
    ]
    sets, codes = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
    parts = iter(np.split(codes.reshape(-1), np.cumsum([len(part) for part in rows])[:-1]))
    found = {}
    for key, cell in cells.items():
        labels, predicted = next(parts), next(parts).reshape(cell.missing.shape)
        names = tuple(spelled(label_set, cell.names) for label_set in sets)
        unknown = np.full(cell.missing.shape, np.nan)
        found[key] = CellPredictions(
            names, cell.ids, labels, np.where(cell.missing, -1, predicted), unknown, unknown
        )
    return found


# --- reading ------------------------------------------------------------------------------------------------


def read_label_sets(
    path: str | Path, document: Mapping[str, Any], groups: Groups = OF_A_RUN
) -> dict[Any, CellLabelSets]:
    """The predictions of one run by split: validation and test, both with at least one example.

    Where the logits were not finite, a probability is empty or not a number: whatever the set beside it, that
    is no prediction, and counts as wrong.

    Args:
        path: a predictions.csv.
        document: the run's run.json, with the names of its labels and its constant answers.
        groups: see `read_predictions`.

    Raises:
        SeedbedError: the file is cut; a column, a cell or a split is missing; a set that is none of the run's
            labels; an example that stands twice in its split; a probability outside [0, 1]; a predicted label
            whose probability is below 0.5, or another one whose probability is above.
    """
    names = document["label_names"]
    table = read_classes(path, groups)
    labels, without = _sets(table["label"], names, path)
    if without.any():
        raise bad_predictions(f"{path}, line {line_of(without)}", "a row without labels")
    predicted, empty = _sets(table["prediction"], names, path)
    probabilities = read_probabilities(table, names, path)
    missing = np.isnan(probabilities).any(axis=1)
    _check_probabilities(probabilities, predicted, missing, empty, path)
    predicted[missing] = False
    probabilities[missing] = np.nan
    losses, errors = _losses(probabilities, labels)
    constants = _constants(document, names, path)
    ids = np.array(table["example"].to_pylist(), dtype=object)
    found = {}
    for group, rows in groups.rows(table, path).items():
        chosen = tuple(ids[rows].tolist())
        check_unique(chosen, groups.told(group), path)
        arrays = {"predicted": predicted, "missing": missing, "loss": losses, "loss_error": errors}
        of_group: dict[str, Any] = {name: array[None, rows] for name, array in arrays.items()}
        found[group] = CellLabelSets(tuple(names), chosen, labels[rows], constants=constants, **of_group)
    return found


def _sets(column: pa.ChunkedArray, names: Sequence[str], path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """(examples, labels) bool: the set of each row; and (examples,) bool: where the cell is empty."""
    values, rows = categories(column)
    index = {name: code for code, name in enumerate(names)}
    sets = np.zeros((len(values), len(names)), dtype=bool)
    for row, value in enumerate(values):
        sets[row, [_code(name, index, path) for name in _listed(value, path)]] = True
    return sets[rows], np.array([not value for value in values], dtype=bool)[rows]


def _listed(value: str, path: str | Path) -> list[Any]:
    try:
        listed = json.loads(value) if value else []
    except ValueError:
        listed = None
    if not isinstance(listed, list):
        raise bad_predictions(path, f"{value!r} instead of a JSON list of labels")
    return listed


def _code(name: Any, index: Mapping[str, int], path: str | Path) -> int:
    if name not in list(index):  # a list, since the name need not be hashable
        raise SeedbedError(
            "a label that the run does not know",
            where=str(path),
            found=name,
            hint=f"labels of the run: {', '.join(index)}",
        )
    return index[name]


def _check_probabilities(
    probabilities: np.ndarray, predicted: np.ndarray, missing: np.ndarray, empty: np.ndarray, path: str | Path
) -> None:
    """Hold predicted sets to their probabilities, where they are there."""
    # a comparison with NaN is false
    off = np.where(predicted, probabilities < 0.5 - TIE, probabilities > 0.5 + TIE).any(axis=1)
    other = ~missing & (off | empty)
    if other.any():
        found = ", ".join(f"{value:.9g}" for value in probabilities[np.argmax(other)])
        raise contradiction("a prediction is not the labels with a probability above 0.5", other, found, path)


def _losses(probabilities: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The loss of each example, and how far it may be off, since the complement of 0.999999999 is rough."""
    chosen = np.where(labels, probabilities, 1 - probabilities)
    rough = np.where(labels, 0.0, DIGITS)
    with np.errstate(divide="ignore"):
        losses = -np.log(chosen)
        errors = np.where(rough > 0, rough / chosen, 0.0)
    return losses.mean(axis=1), errors.mean(axis=1)


def _constants(document: Mapping[str, Any], names: Sequence[str], path: str | Path) -> dict[str, np.ndarray]:
    told = document.get("constant_answers")
    answers = list(told.values()) if isinstance(told, Mapping) else [None]
    if not all(isinstance(answer, list) and set(map(str, answer)) <= set(names) for answer in answers):
        raise SeedbedError(
            "a run does not tell the best constant answers on its training split",
            where=f"{Path(path).with_name('run.json')}, constant_answers",
            found=repr(told),
            hint=ANEW,
        )
    return {metric: np.isin(names, answer) for metric, answer in document["constant_answers"].items()}
