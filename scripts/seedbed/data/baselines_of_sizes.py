"""Bags of words on as many training texts as the runs of each size: baselines where sizes are swept.

A bag of a size and a data seed has the training texts of the runs of this size and seed. All training texts
are the same for every data seed, so they have one bag, without a seed.
"""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedbed.core.files import write_rows
from seedbed.core.splits import PREDICTED
from seedbed.core.tasks import Task
from seedbed.data.bags import FAULTS, KINDS, PROBABILITY, WORDS, Kind, features_of, inputs_of, reason

log = logging.getLogger(__name__)

# of the table of bags, and of their predictions; these are followed by the probabilities of the labels
BAG_COLUMNS = ("train_size", "data_seed", "features", "setting", "selected", "left_out")
COLUMNS = ("train_size", "data_seed", "split", "example", "label", "prediction")

Examples = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Subset:
    """Training texts of a bag.

    Attributes:
        size: their number.
        data_seed: that draws them; None of all training texts.
        examples: the texts, in the order of the training split.
    """

    size: int
    data_seed: int | None
    examples: Examples


@dataclass(frozen=True)
class Labels:
    """What the labels of a dataset are.

    Attributes:
        task: of the dataset, with its main metric, which selects the bags.
        names: of the labels in predictions, as in labels.json; none of numbers.
        classes: the labels in the config, which the name of a metric may hold.
    """

    task: Task
    names: Sequence[str] = ()
    classes: Sequence[str] = ()


def write_bags(
    bags: str | Path,
    predictions: str | Path,
    splits: Mapping[str, Examples],
    orders: Mapping[int, Sequence[str]],
    sizes: Sequence[int],
    labels: Labels,
) -> None:
    """Train the bags of all sizes and data seeds, and of all training texts, and write two tables.

    The features are fitted on a bag's own training texts; whether they are of words or of characters, all
    training texts tell. The main metric on validation selects C or alpha, of equal ones the smallest. A bag
    that cannot be trained is in the table of bags, with the reason.

    Args:
        bags: the table of bags, with BAG_COLUMNS: `features` unless these are words, `setting` is C or alpha,
            and `selected` its value.
        predictions: of the selected bags on validation and test, with COLUMNS and, of classes and sets of
            labels, `probability_LABEL`; cells are spelled as in the predictions.csv of a run.
        splits: train, validation and test, see `baselines`.
        orders: of the ids of the training texts by data seed, see `subsets`.
        sizes: numbers of training texts, below that of all.
        labels: of the dataset.
    """
    features = features_of(splits["train"])
    rows: list[dict[str, Any]] = []

    def predicted() -> Iterator[dict[str, Any]]:
        for subset in _subsets(splits["train"], orders, sizes):
            row, found = _bag(subset, splits, features, labels)
            rows.append(row)
            yield from found

    probabilities = [f"{PROBABILITY}{name}" for name in labels.names]
    write_rows(predictions, (*COLUMNS, *probabilities), predicted())
    write_rows(bags, BAG_COLUMNS, rows)


def _subsets(train: Examples, orders: Mapping[int, Sequence[str]], sizes: Sequence[int]) -> Iterator[Subset]:
    for size in sizes:
        for seed, order in orders.items():
            yield Subset(size, seed, _chosen(train, set(order[:size])))
    yield Subset(len(train), None, train)


def _chosen(train: Examples, ids: Collection[str]) -> Examples:
    return [example for example in train if example["id"] in ids]


def _bag(
    subset: Subset, splits: Mapping[str, Examples], features: str, labels: Labels
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The row of a bag, and those of its predictions."""
    kind = KINDS[labels.task.outputs]
    of_bag = {"train_size": subset.size, "data_seed": subset.data_seed}
    row = {**of_bag, "features": None if features == WORDS else features, "setting": kind.setting}
    try:
        inputs = inputs_of({**splits, "train": subset.examples}, features)
        models = kind.models(inputs["train"], subset.examples)
    except FAULTS as error:
        why = reason(subset.examples, error)
        log.warning("no bag of words of %d texts, data seed %s: %s", subset.size, subset.data_seed, why)
        return row | {"left_out": why}, []
    selected = _selected(models, inputs["validation"], splits["validation"], labels)
    log.info("%d texts, data seed %s: %s=%g", subset.size, subset.data_seed, kind.setting, selected)
    rows = [
        {**of_bag, "split": split, **cells}
        for split in PREDICTED
        for cells in _predictions(kind, models[selected], inputs[split], splits[split], labels.names)
    ]
    return row | {"selected": selected}, rows


def _selected(models: Mapping[float, Any], inputs: Any, validation: Examples, labels: Labels) -> float:
    """The value whose model is the best on validation; the first of several, hence the smallest."""
    kind, task = KINDS[labels.task.outputs], labels.task
    actual = kind.labels(validation)
    scores = {
        value: task.direction * kind.score(task.selection, actual, model.predict(inputs), labels.classes)
        for value, model in models.items()
    }
    return max(scores, key=scores.__getitem__)


def _predictions(
    kind: Kind, model: Any, inputs: Any, examples: Examples, names: Sequence[str]
) -> Iterator[dict[str, str]]:
    """The cells of each example of a split."""
    for example, cells in zip(examples, kind.cells(model, inputs, names), strict=True):
        yield {"example": example["id"], "label": kind.label_cell(example["label"], names), **cells}
