"""From the files of a dataset to its splits: the steps that all tasks share.

A module for each kind of outputs (`labelled_texts`, `questions`) provides the rest, under the same names:

- `DRAWN`: the splits that may be drawn from train, in the order of the draw;
- `PARTS`: the keys of an example whose words the log counts;
- `read_split(name, definition, split, manifest)`: the checked examples of a split's file;
- `draw(name, definition, split, examples, total)`: examples divided into (those that stay, those of `split`),
  where `total` counts the examples of the file;
- `check(name, definition, splits)`: what the splits must hold together;
- `compared(splits)`: the examples as `find_duplicates` compares them;
- `composition(definition, examples)`: their classes or groups, for messages;
- `lost(definition, kept)`: what train lacks when only the examples `kept` are left; empty: nothing;
- `record(splits)`: what splits.json holds beyond the common keys;
- `write_more(folder, definition, splits)`: files beyond the common ones.
"""

import logging
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.core.files import write_json, write_jsonl
from seedbed.core.splits import SPLITS
from seedbed.core.tasks import ANSWERS, CLASSES, TASKS
from seedbed.data import labelled_texts, questions
from seedbed.data.duplicates import find_duplicates, leaking_train_examples, write_duplicates
from seedbed.data.splitting import LEAST_EXAMPLES

log = logging.getLogger(__name__)

KINDS: dict[str, ModuleType] = {CLASSES: labelled_texts, ANSWERS: questions}  # by a task's outputs

Examples = list[dict[str, Any]]


def prepare(
    name: str,
    definition: Mapping[str, Any],
    manifest: str | Path,
    folder: str | Path,
    stamp: Mapping[str, Any],
) -> None:
    """Check a dataset and write its splits into `folder`.

    Writes, beside the task's own files:

    - SPLIT.jsonl for each split: the examples in the order of the file;
    - splits.json: how each split that may be drawn came about ("given", or size and seed of the draw), the
      ids that were drawn, the examples read from each file, and the training examples dropped as leaks;
    - duplicates.csv: see `seedbed.data.duplicates`; computed before leaks are dropped;
    - fingerprint.json: `stamp`, unchanged.

    An id is "SPLIT-N", where N is the example's index in the file of that split. It stays the same when other
    examples are dropped and when the example goes from train to a drawn split.

    Args:
        name: the dataset's name in the config, for messages.
        definition: the resolved block of the config.
        manifest: the manifest of its source; the source's files lie in `files` beside it.
        folder: where the files go; nothing is written before everything is checked.
        stamp: what fingerprint.json holds.

    Raises:
        SeedbedError: a file is missing or its content is not as declared; a split of the size asked for
            cannot be drawn; without its leaks, train lacks a class or is too small.
    """
    kind = KINDS[TASKS[definition["task"]].outputs]
    splits = {
        split: kind.read_split(name, definition, split, manifest)
        for split in SPLITS
        if definition["files"][split] is not None
    }
    read = {split: len(examples) for split, examples in splits.items()}
    for split in splits:
        _check_size(name, definition, split, read[split])
    splits, drawn = _with_drawn_splits(kind, name, definition, splits)
    kind.check(name, definition, splits)
    duplicates = find_duplicates(kind.compared(splits), definition["near_duplicates"])
    dropped = []
    if definition["drop_leaks"]:
        splits["train"], dropped = _without_leaks(kind, name, definition, splits["train"], duplicates)
    folder = Path(folder)
    for split, examples in splits.items():
        write_jsonl(folder / f"{split}.jsonl", examples)
        log.info("%s, %s: %s", name, split, _described(kind, definition, examples))
    kind.write_more(folder, definition, splits)
    write_duplicates(folder / "duplicates.csv", duplicates)
    write_json(
        folder / "splits.json", drawn | {"read": read} | kind.record(splits) | {"dropped_leaks": dropped}
    )
    write_json(folder / "fingerprint.json", stamp)


def _check_size(name: str, definition: Mapping[str, Any], split: str, size: int) -> None:
    if size < LEAST_EXAMPLES:
        raise SeedbedError(
            f"the {split} split of {name!r} has fewer than {LEAST_EXAMPLES} examples",
            where=f"config, datasets.{name}.files.{split}: {definition['files'][split]}",
            found=f"{size} examples",
            hint="add examples to the file",
        )


def _with_drawn_splits(
    kind: ModuleType, name: str, definition: Mapping[str, Any], given: Mapping[str, Examples]
) -> tuple[dict[str, Examples], dict[str, Any]]:
    """All splits, those without a file drawn from train, and what splits.json says of the draws."""
    splits = dict(given)
    origins: dict[str, Any] = {split: "given" for split in SPLITS if split in kind.DRAWN}
    ids = {}
    for split in kind.DRAWN:
        if split not in given:
            asked = definition[f"{split}_split"]
            splits["train"], splits[split] = kind.draw(
                name, definition, split, splits["train"], len(given["train"])
            )
            origins[split] = {"size": asked["size"], "seed": asked["seed"], "drawn_from": "train"}
            ids[split] = [example["id"] for example in splits[split]]
    return {split: splits[split] for split in SPLITS}, {**origins, "ids": ids}


def _without_leaks(
    kind: ModuleType,
    name: str,
    definition: Mapping[str, Any],
    train: Examples,
    duplicates: Sequence[Mapping[str, Any]],
) -> tuple[Examples, list[str]]:
    """The training examples that do not stand in validation or test, and the ids of those that do."""
    leaking = leaking_train_examples(duplicates)
    kept = [example for example in train if example["id"] not in leaking]
    dropped = [example for example in train if example["id"] in leaking]
    if lost := kind.lost(definition, kept):
        raise SeedbedError(
            f"dropping leaks would leave too few training examples of {name!r}",
            where=f"config, datasets.{name}.drop_leaks",
            found=f"{len(dropped)} of {len(train)} also stand in validation or test, {lost}",
            hint="look at how the splits were made; with drop_leaks: false they stay in",
        )
    log.warning(
        "%s: dropped %d training examples that also stand, identical or nearly so, in validation or test%s",
        name,
        len(dropped),
        f" ({kind.composition(definition, dropped)})" if dropped else "",
    )
    return kept, [example["id"] for example in dropped]


def _described(kind: ModuleType, definition: Mapping[str, Any], examples: Examples) -> str:
    words = {part: [len((example[part] or "").split()) for example in examples] for part in kind.PARTS}
    lengths = ", ".join(
        f"{part} {min(counts)} to {max(counts)}, median {statistics.median(counts):g}"
        for part, counts in words.items()
        if any(counts)
    )
    return f"{len(examples)} examples ({kind.composition(definition, examples)}); words: {lengths}"
