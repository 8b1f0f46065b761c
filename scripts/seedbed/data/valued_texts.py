"""Texts with a number, the examples of regression: read, checked, drawn by quantiles of the number.

`preparation.prepare` calls the functions with the same names here, in `labelled_texts` and in `questions`.
Texts are read and cleaned as those of `labelled_texts`. Splits and samples are drawn from strata: ranges of
the number with equally many examples, so that a drawn split has small and large numbers as train has.
"""

import itertools
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.core.files import atomic_open, write_json
from seedbed.core.known import known
from seedbed.data import clusters, labelled_texts
from seedbed.data.labelled_texts import PARTS, compared, drawable, record
from seedbed.data.labels import is_missing, label_text
from seedbed.data.readers.files import Place, raise_first
from seedbed.data.reading import read_records
from seedbed.data.splitting import LEAST_OF_CLASS, draw_split, restored, split_size
from seedbed.data.texts import normalise, parts, whole

__all__ = [
    "PARTS", "check", "compared", "composition", "draw", "drawable", "lost", "read_split", "record",
    "sampled", "write_more",
]  # fmt: skip

STRATA = 10  # ranges of the number, of which a draw takes examples in proportion; fewer of a small split
LEAST_STRATA = 2
STRATUM = "ranges of the number"  # what messages call them
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
WITH_COMMA = re.compile(r"[+-]?\d+,\d+")

Examples = list[dict[str, Any]]
Splits = Mapping[str, Examples]


# --- reading ----------------------------------------------------------------------------------------------


def read_split(
    name: str, definition: Mapping[str, Any], split: str, manifest: str | Path
) -> tuple[Examples, dict[str, Any]]:
    """Read and check the examples of one split: {"id", "text", "label": the number, a float}.

    An example of a pair has its "text_pair", too; where the dataset has a column of clusters, its "cluster".

    Returns:
        The examples, and what splits.json says of the split: see `labelled_texts.read_texts`.

    Raises:
        SeedbedError: see `preparation.prepare`.
    """
    found = read_records(name, definition, split, manifest)
    column = definition["columns"]["label"]
    cells = [(rec.label_place or rec.place, rec.cells[column]) for _, rec in found]
    numbers = _numbers(cells, column)
    labelled = [(index, rec, number) for (index, rec), number in zip(found, numbers, strict=True)]
    return labelled_texts.read_texts(name, definition, split, labelled)


def _numbers(cells: Sequence[tuple[Place, Any]], column: str) -> list[float]:
    """The number of each cell of the label column."""
    missing = [(place, repr(label_text(value))) for place, value in cells if is_missing(value)]
    raise_first("a label is missing", missing, "fill in the number, or delete the example")
    numbers = [number_of(value) for _, value in cells]
    wrong = [
        (place, repr(label_text(value)))
        for (place, value), number in zip(cells, numbers, strict=True)
        if number is None
    ]
    hint = f"the column {column!r} takes numbers, such as 3.5 or 1e-3; for labels that are names, set "
    hint += "task: classification"
    if wrong and WITH_COMMA.fullmatch(wrong[0][1].strip("'\"")):
        hint = "write decimals with a point: 3.5, not 3,5"
    raise_first("a label is not a finite number", wrong, hint)
    return list(map(known, numbers))


def number_of(value: Any) -> float | None:
    """The finite number that a cell holds, as such or as text; None if it holds none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        value = float(value) if NUMBER.fullmatch(value.strip()) else None
    elif not isinstance(value, int | float):
        return None
    return float(value) if value is not None and math.isfinite(value) else None


# --- splits -----------------------------------------------------------------------------------------------


def draw(
    name: str, definition: Mapping[str, Any], split: str, examples: Examples, total: int
) -> tuple[Examples, Examples]:
    """Divide training examples into train and another split, with each stratum in proportion.

    Raises:
        SeedbedError: all numbers are the same, or a split of the requested size cannot be drawn.
    """
    _refuse_equal(name, definition, "train", examples)
    asked = definition[f"{split}_split"]
    size = split_size(f"config, datasets.{name}.{split}_split.size", total, asked["size"], split)
    strata = max(LEAST_STRATA, min(STRATA, size // LEAST_OF_CLASS))
    in_strata, names = _in_strata(examples, strata)
    threshold = definition["near_duplicates"]
    rest, drawn = draw_split(name, split, in_strata, names, asked, total, threshold, STRATUM)
    return restored(examples, rest), restored(examples, drawn)


def _in_strata(examples: Examples, strata: int) -> tuple[Examples, list[str]]:
    """The examples with the index of their stratum as label, and the range of each stratum in words.

    Strata have equally many examples; equal numbers are divided by their texts, so that the order of the file
    does not matter.
    """
    order = sorted(
        range(len(examples)), key=lambda index: (examples[index]["label"], normalise(whole(examples[index])))
    )
    ends = [len(order) * index // strata for index in range(strata + 1)]
    parts = [order[begin:end] for begin, end in itertools.pairwise(ends) if begin < end]
    stratum = {index: number for number, part in enumerate(parts) for index in part}
    names = [f"{examples[part[0]]['label']:g} to {examples[part[-1]]['label']:g}" for part in parts]
    return [{**example, "label": stratum[index]} for index, example in enumerate(examples)], names


def sampled(definition: Mapping[str, Any], splits: Splits) -> tuple[dict[str, Examples], dict[str, Any]]:
    """The splits with as many examples as `sample` asks for, of each stratum in proportion, and what
    splits.json says of it."""
    return labelled_texts.sampled_from_strata(
        definition, splits, lambda examples: _in_strata(examples, STRATA)[0]
    )


def check(name: str, definition: Mapping[str, Any], splits: Splits) -> None:
    """Check that the numbers of every split differ.

    Raises:
        SeedbedError: those of a split are all the same, or validation or test has a single cluster.
    """
    for split, examples in splits.items():
        _refuse_equal(name, definition, split, examples)
    clusters.check(name, splits)


def _refuse_equal(name: str, definition: Mapping[str, Any], split: str, examples: Examples) -> None:
    if not _are_equal(examples):
        return
    file = definition["files"][split]
    raise SeedbedError(
        f"all numbers of the {split} split of {name!r} are the same",
        where=f"config, datasets.{name}.files.{split}: {file}"
        if file is not None
        else f"config, datasets.{name}.{split}_split",
        found=f"{examples[0]['label']:g} in {len(examples)} examples",
        hint="nothing can be learned or measured there: check columns.label, or add examples",
    )


def _are_equal(examples: Examples) -> bool:
    return len({example["label"] for example in examples}) < 2


def composition(definition: Mapping[str, Any], examples: Examples) -> str:
    """Range, mean and standard deviation of the numbers, in words."""
    numbers = [example["label"] for example in examples]
    if not numbers:
        return "no numbers"
    mean, sd = statistics.fmean(numbers), statistics.pstdev(numbers)
    return f"numbers {min(numbers):g} to {max(numbers):g}, mean {mean:.4g}, sd {sd:.4g}"


def lost(definition: Mapping[str, Any], kept: Examples) -> str:
    """That the numbers of `kept` are all the same, in words; empty if they differ."""
    return "and the numbers of the others are all the same" if _are_equal(kept) else ""


def write_more(folder: Path, definition: Mapping[str, Any], splits: Splits) -> None:
    """Write SPLIT.text and SPLIT.label, with one example per line as fairseq reads them, and labels.json.

    labels.json has the mean and the standard deviation of the training numbers, by which runs scale them.
    """
    for split, examples in splits.items():
        with (
            atomic_open(folder / f"{split}.text") as texts,
            atomic_open(folder / f"{split}.label") as numbers,
        ):
            for example in examples:
                texts.write("\t".join(parts(example)) + "\n")
                numbers.write(f"{example['label']!r}\n")
    trained = [example["label"] for example in splits["train"]]
    scale = {"mean": statistics.fmean(trained), "sd": statistics.pstdev(trained)}
    write_json(folder / "labels.json", scale)
