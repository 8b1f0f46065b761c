"""Orders of training texts: the first n of an order are the training texts of a run of size n.

So subsets are nested. In each of them the strata (classes, sets of labels, or ranges of numbers) have their
shares of all training texts, up to one text. The order is drawn by a hash of the data seed and the ids, the
same on every machine.
"""

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core.files import write_rows
from seedbed.core.subsets import COLUMNS
from seedbed.core.tasks import ANSWERS, CLASSES, LABEL_SETS, VALUES

RANGES = 10  # of numbers, with equally many texts

Examples = Sequence[Mapping[str, Any]]


def write_order(path: str | Path, examples: Examples, outputs: str, seed: int) -> None:
    """Write the order of training texts that a data seed draws: columns rank, from 1, and example.

    Args:
        path: the table.
        examples: the training split: {"id", "label"}, or questions.
        outputs: of the task: CLASSES, LABEL_SETS, VALUES or ANSWERS.
        seed: the data seed.
    """
    ordered = order([example["id"] for example in examples], STRATA[outputs](examples), seed)
    write_rows(path, COLUMNS, ({"rank": rank, "example": name} for rank, name in enumerate(ordered, 1)))


def order(ids: Sequence[str], strata: Sequence[Hashable], seed: int) -> list[str]:
    """The ids in an order of which each beginning has the strata in proportion.

    The i-th of the n texts of a stratum, drawn at random, has the place (i - 1/2) / n; ties are drawn.

    Args:
        ids: of the texts, each once.
        strata: of each text.
        seed: draws the order.
    """
    drawn = {name: hashlib.sha256(f"{seed}\0{name}".encode()).digest() for name in ids}
    members: dict[Hashable, list[str]] = {}
    for name, stratum in zip(ids, strata, strict=True):
        members.setdefault(stratum, []).append(name)
    places = {
        name: (index + 0.5) / len(names)
        for names in members.values()
        for index, name in enumerate(sorted(names, key=drawn.__getitem__))
    }
    return sorted(ids, key=lambda name: (places[name], drawn[name]))


def _classes(examples: Examples) -> list[Hashable]:
    return [example["label"] for example in examples]


def _label_sets(examples: Examples) -> list[Hashable]:
    return [tuple(example["label"]) for example in examples]


def _ranges(examples: Examples) -> list[Hashable]:
    ordered = sorted(
        range(len(examples)), key=lambda index: (examples[index]["label"], examples[index]["id"])
    )
    ranges = {index: rank * RANGES // len(examples) for rank, index in enumerate(ordered)}
    return [ranges[index] for index in range(len(examples))]


def _one_stratum(examples: Examples) -> list[Hashable]:
    return [None] * len(examples)


# by a task's outputs
STRATA: dict[str, Callable[[Examples], list[Hashable]]] = {
    CLASSES: _classes,
    LABEL_SETS: _label_sets,
    VALUES: _ranges,
    ANSWERS: _one_stratum,
}
