"""The outputs of a cell's runs, of any kind: read from predictions.csv, and stacked.

`CellOutputs` has a class for each kind of output, in `predictions` for classes, in `label_sets` for sets of
labels, in `values` for numbers, and in `answers` for answers.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seedbed.analysis.answers import CellAnswers, read_answers
from seedbed.analysis.label_sets import CellLabelSets, read_label_sets
from seedbed.analysis.predictions import OF_A_RUN, CellPredictions, Groups, read_predictions
from seedbed.analysis.values import CellValues, read_values
from seedbed.core.errors import SeedbedError
from seedbed.core.rows import ANEW, Row
from seedbed.core.tasks import ANSWERS, CLASSES, LABEL_SETS, VALUES, Task

CellOutputs = CellPredictions | CellLabelSets | CellValues | CellAnswers


def _read_classes(path: str | Path, document: Row, groups: Groups) -> dict[Any, CellPredictions]:
    return read_predictions(path, document["label_names"], groups)


def _read_values(path: str | Path, document: Row, groups: Groups) -> dict[Any, CellValues]:
    targets = document.get("targets")
    mean = targets.get("mean") if isinstance(targets, Mapping) else None
    if not isinstance(mean, int | float) or not math.isfinite(mean):
        raise SeedbedError(
            "a run does not tell the mean of its training labels",
            where=f"{Path(path).with_name('run.json')}, targets.mean",
            found=repr(mean),
            hint=ANEW,
        )
    return read_values(path, float(mean), groups)


def _read_answers(path: str | Path, document: Row, groups: Groups) -> dict[str, CellAnswers]:
    return read_answers(path)


# by a task's outputs
READERS: dict[str, Callable[[str | Path, Row, Groups], Mapping[Any, CellOutputs]]] = {
    CLASSES: _read_classes,
    LABEL_SETS: read_label_sets,
    VALUES: _read_values,
    ANSWERS: _read_answers,
}


def read_outputs(
    path: str | Path, task: Task, document: Row, groups: Groups = OF_A_RUN
) -> dict[Any, CellOutputs]:
    """The predictions.csv of a run of any task, by split: validation and test.

    Args:
        path: a predictions.csv.
        task: what the run was trained for.
        document: the run's run.json.
        groups: see `read_predictions`; none of answers.

    Raises:
        SeedbedError: see the readers of each kind; or a run of regression does not tell its targets.
    """
    found = READERS[task.outputs](path, document, groups)
    return {group: replace(outputs, task=task) for group, outputs in found.items()}


def with_names(outputs: CellOutputs, dataset: Mapping[str, Any]) -> CellOutputs:
    """The outputs with the classes' labels, and the names that people read, which a run does not know.

    Args:
        outputs: as they were read.
        dataset: its block of `Plan.reporting()`.
    """
    if isinstance(outputs, CellLabelSets):
        return outputs.called(dataset["label_names"])
    if not isinstance(outputs, CellPredictions) or "label_names" not in dataset:
        return outputs
    return replace(outputs.called(dataset["label_names"]), class_labels=tuple(dataset["labels"]))


def first_difference(a: CellOutputs, b: CellOutputs) -> str | None:
    """Where the examples or labels of two tables of one task differ first, for errors; None if they agree."""
    if a.same_examples(b):
        return None
    pairs = itertools.zip_longest(a.told_examples(), b.told_examples())
    index, (left, right) = next((i, pair) for i, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    return f"example {index}: {left or 'none'}, and {right or 'none'}"


def stack(runs: Sequence[CellOutputs]) -> CellOutputs:
    """Outputs on the same examples under each other, in the given order; all of one task."""
    return type(runs[0]).stacked(runs)
