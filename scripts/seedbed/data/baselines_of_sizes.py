"""Baselines on as many training texts as the runs of each size, where sizes of training are swept.

A baseline of a size and a data seed has the training texts of the runs of this size and seed. All training
texts are the same for every data seed, so they have one baseline, without a seed. What is trained, the
modules of each kind of baseline know: `bags_of_sizes` and `probes_of_sizes`.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedbed.config.resolve import resolve_config
from seedbed.core.files import read_json, read_jsonl, write_rows
from seedbed.core.known import known
from seedbed.core.splits import PREDICTED, SPLITS
from seedbed.core.subsets import read_order, taken
from seedbed.core.tasks import Task, task_of
from seedbed.data.bags import FAULTS, KINDS, PROBABILITY, reason

log = logging.getLogger(__name__)

# of the table of predictions; these are followed by the probabilities of the labels
COLUMNS = ("train_size", "data_seed", "split", "example", "label", "prediction")

Examples = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Labels:
    """What the labels of a dataset are.

    Attributes:
        task: of the dataset, with its main metric, which selects the baselines.
        names: of the labels in predictions, as in labels.json; none of numbers.
        classes: the labels in the config, which the name of a metric may hold.
    """

    task: Task
    names: Sequence[str] = ()
    classes: Sequence[str] = ()


@dataclass(frozen=True)
class Subset:
    """Training texts of a baseline.

    Attributes:
        size: their number.
        data_seed: that draws them; None of all training texts.
        places: of the texts in the training split, ascending.
        examples: the texts, in the order of the training split.
    """

    size: int
    data_seed: int | None
    places: Sequence[int]
    examples: Examples


@dataclass(frozen=True)
class Sizes:
    """What the baselines of a dataset are trained and evaluated on.

    Attributes:
        splits: train, validation and test, see `baselines`.
        orders: of the ids of the training texts by data seed, see `subsets`.
        sizes: numbers of training texts, below that of all.
        labels: of the dataset.
    """

    splits: Mapping[str, Examples]
    orders: Mapping[int, Sequence[str]]
    sizes: Sequence[int]
    labels: Labels

    @classmethod
    def from_rule(cls, snakemake: Any) -> "Sizes":
        """What the rules of baselines of sizes name: splits, labels and orders, data seeds and sizes.

        Args:
            snakemake: the object that Snakemake gives to a script.
        """
        inputs, params = snakemake.input, snakemake.params
        about = read_json(inputs.labels)
        task = task_of(resolve_config(snakemake.config))  # its metric is among params
        return cls(
            {split: read_jsonl(inputs[split]) for split in SPLITS},
            dict(zip(params.data_seeds, map(read_order, inputs.orders), strict=True)),
            params.sizes,
            Labels(task, about.get("names", ()), about.get("labels", ())),
        )

    @property
    def subsets(self) -> Iterator[Subset]:
        """The training texts of each size and data seed, and all."""
        train = self.splits["train"]
        for size in self.sizes:
            for seed, order in self.orders.items():
                examples, places = taken(train, set(order[:size]))
                yield Subset(size, seed, known(places), examples)
        yield Subset(len(train), None, range(len(train)), train)


@dataclass(frozen=True)
class Candidate:
    """A trained model among those of a subset, of which validation selects one.

    Attributes:
        cells: that tell it from the others in the table of baselines, by column.
        model: its `predict` maps features to predictions, see `bags.Kind`.
        inputs: the features of validation and test, by split.
    """

    cells: Mapping[str, Any]
    model: Any
    inputs: Mapping[str, Any]


def write_baselines(
    table: str | Path,
    predictions: str | Path,
    of: Sizes,
    columns: Sequence[str],
    common: Mapping[str, Any],
    candidates: Callable[[Subset], Sequence[Candidate]],
) -> None:
    """Train the baselines of all sizes and data seeds, and of all training texts, and write two tables.

    The main metric on validation selects the baseline, of equal candidates the first. A baseline that cannot
    be trained is in its table, with the reason.

    Args:
        table: of baselines, with `columns`.
        predictions: of the selected baselines on validation and test, with COLUMNS and, of classes and sets
            of labels, `probability_LABEL`; cells are spelled as in the predictions.csv of a run.
        of: what they are trained and evaluated on.
        columns: of the table: train_size, data_seed, those of `common` and of `Candidate.cells`, left_out.
        common: cells of every row of the table, by column.
        candidates: maps training texts to the models that are trained on them; it raises one of
            `bags.FAULTS` where none can be.
    """
    rows: list[dict[str, Any]] = []

    def predicted() -> Iterator[dict[str, Any]]:
        for subset in of.subsets:
            row, found = _baseline(subset, of, candidates)
            rows.append({**common, **row})
            yield from found

    probabilities = [f"{PROBABILITY}{name}" for name in of.labels.names]
    write_rows(predictions, (*COLUMNS, *probabilities), predicted())
    write_rows(table, columns, rows)


def _baseline(
    subset: Subset, of: Sizes, candidates: Callable[[Subset], Sequence[Candidate]]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The row of a baseline, and those of its predictions."""
    key = {"train_size": subset.size, "data_seed": subset.data_seed}
    try:
        found = candidates(subset)
    except FAULTS as error:
        why = reason(subset.examples, error)
        log.warning("no baseline of %d texts, data seed %s: %s", subset.size, subset.data_seed, why)
        return key | {"left_out": why}, []
    selected = _selected(found, of)
    log.info("%d texts, data seed %s: %s", subset.size, subset.data_seed, dict(selected.cells))
    rows = [
        {**key, "split": split, **cells} for split in PREDICTED for cells in _predictions(selected, of, split)
    ]
    return {**key, **selected.cells}, rows


def _selected(candidates: Sequence[Candidate], of: Sizes) -> Candidate:
    """The best candidate on validation; the first of several."""
    task, classes = of.labels.task, of.labels.classes
    kind = KINDS[task.outputs]
    actual = kind.labels(of.splits["validation"])

    def merit(candidate: Candidate) -> float:
        predicted = candidate.model.predict(candidate.inputs["validation"])
        return task.direction * kind.score(task.selection, actual, predicted, classes)

    return max(candidates, key=merit)


def _predictions(selected: Candidate, of: Sizes, split: str) -> Iterator[dict[str, str]]:
    """The cells of each example of a split."""
    kind, names = KINDS[of.labels.task.outputs], of.labels.names
    cells_of = kind.cells(selected.model, selected.inputs[split], names)
    for example, cells in zip(of.splits[split], cells_of, strict=True):
        yield {"example": example["id"], "label": kind.label_cell(example["label"], names), **cells}
