"""Make a dataset's splits from its files: the steps that all tasks share.

A module for each kind of output (`labelled_texts`, `label_set_texts`, `valued_texts`, `questions`) provides
the other steps,
under these names:

- `drawable(definition)`: the splits whose origin is recorded, in the order of the draws from train;
- `PARTS`: the keys of an example whose words are counted in the log;
- `read_split(name, definition, split, manifest)`: reads and checks the examples of a split's files; gives
  them, and further keys of splits.json with what each says of the split;
- `draw(name, definition, split, examples, total)`: divides examples into (the rest, `split`); `total` is the
  number of examples of the file;
- `sampled(definition, splits)`: fewer examples of each split, and further keys of splits.json;
- `check(name, definition, splits)`: checks all splits together;
- `compared(splits)`: the examples for `find_duplicates`;
- `composition(definition, examples)`: the examples' classes or groups, for messages;
- `lost(definition, kept)`: the lack if train is reduced to `kept`, for messages; empty if there is none;
- `record(splits)`: further keys of splits.json;
- `write_more(folder, definition, splits)`: writes further files.
"""

import logging
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.core.files import write_json, write_jsonl
from seedbed.core.splits import LEAST_EXAMPLES, SPLITS
from seedbed.core.tasks import ANSWERS, CLASSES, LABEL_SETS, TASKS, VALUES
from seedbed.data import clusters, label_set_texts, labelled_texts, questions, valued_texts
from seedbed.data.duplicates import find_duplicates, leaking_train_examples, write_duplicates

log = logging.getLogger(__name__)

# by a task's outputs
KINDS: dict[str, ModuleType] = {
    CLASSES: labelled_texts,
    LABEL_SETS: label_set_texts,
    VALUES: valued_texts,
    ANSWERS: questions,
}

Examples = list[dict[str, Any]]


def prepare(
    name: str,
    definition: Mapping[str, Any],
    manifest: str | Path,
    folder: str | Path,
    stamp: Mapping[str, Any],
) -> None:
    """Check a dataset and write its splits into `folder`.

    Besides the task's own files, these are written:

    - SPLIT.jsonl for each split: the examples in the order of the file;
    - splits.json: the origin of each split that may be drawn ("given", or size and seed of the draw), the
      drawn ids, the number of examples in each file, the examples of each cluster where there are clusters,
      the training examples dropped as leaks, and those left out by their label or by a sample, if any;
    - duplicates.csv: see `seedbed.data.duplicates`; found before leaks are dropped;
    - fingerprint.json: `stamp`.

    An id is "SPLIT-N", where N is the example's index in the file of that split. It stays the same if other
    examples are dropped, or if the example is drawn from train into another split.

    Args:
        name: the dataset's name in the config, for messages.
        definition: the dataset's resolved block of the config.
        manifest: the manifest of its source, beside the folder `files` with the source's files.
        folder: the output folder; all checks precede the first file.
        stamp: the content of fingerprint.json.

    Raises:
        SeedbedError: a file is missing or its content is not as declared; a split of the requested size
            cannot be drawn; without its leaks, train lacks a class or is too small.
    """
    kind = KINDS[TASKS[definition["task"]].outputs]
    splits: dict[str, Examples] = {}
    noted: dict[str, dict[str, Any]] = {}
    for split in (split for split in SPLITS if definition["files"][split] is not None):
        splits[split], notes = kind.read_split(name, definition, split, manifest)
        for key, note in notes.items():
            noted.setdefault(key, {})[split] = note
    read = {split: len(examples) for split, examples in splits.items()}
    for split in splits:
        _check_size(name, definition, split, read[split])
    splits, drawn = _with_drawn_splits(kind, name, definition, splits)
    splits, sample = kind.sampled(definition, splits)
    kind.check(name, definition, splits)
    duplicates = find_duplicates(kind.compared(splits), definition["near_duplicates"])
    dropped = []
    if definition["drop_leaks"]:
        splits["train"], dropped = _without_leaks(kind, name, definition, splits["train"], duplicates)
    folder = Path(folder)
    for split, examples in splits.items():
        write_jsonl(folder / f"{split}.jsonl", map(clusters.without, examples))
        log.info("%s, %s: %s", name, split, _described(kind, definition, examples))
    kind.write_more(folder, definition, splits)
    write_duplicates(folder / "duplicates.csv", duplicates)
    record = drawn | {"read": read} | kind.record(splits) | {"dropped_leaks": dropped} | noted | sample
    write_json(folder / "splits.json", record)
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
    """All splits, drawn from train if they have no file, and the entries of splits.json on the draws."""
    splits = dict(given)
    drawable = kind.drawable(definition)
    origins: dict[str, Any] = {split: "given" for split in SPLITS if split in drawable}
    ids = {}
    for split in drawable:
        if split not in given:
            asked = definition[f"{split}_split"]
            splits["train"], splits[split] = kind.draw(
                name, definition, split, splits["train"], len(given["train"])
            )
            told = {key: asked[key] for key in ("size", "seed", "together") if key in asked}
            origins[split] = told | {"drawn_from": "train"}
            ids[split] = [example["id"] for example in splits[split]]
    return {split: splits[split] for split in SPLITS}, {**origins, "ids": ids}


def _without_leaks(
    kind: ModuleType,
    name: str,
    definition: Mapping[str, Any],
    train: Examples,
    duplicates: Sequence[Mapping[str, Any]],
) -> tuple[Examples, list[str]]:
    """The training examples outside validation and test, and the ids of the dropped ones."""
    leaking = leaking_train_examples(duplicates)
    kept = [example for example in train if example["id"] not in leaking]
    dropped = [example for example in train if example["id"] in leaking]
    if lost := kind.lost(definition, kept):
        raise SeedbedError(
            f"dropping leaks would leave too few training examples of {name!r}",
            where=f"config, datasets.{name}.drop_leaks",
            found=f"{len(dropped)} of {len(train)} are also in validation or test, {lost}",
            hint="check how the splits were made; drop_leaks: false keeps these examples",
        )
    log.warning(
        "%s: dropped %d training examples that are also, identically or nearly, in validation or test%s",
        name,
        len(dropped),
        f" ({kind.composition(definition, dropped)})" if dropped else "",
    )
    return kept, [example["id"] for example in dropped]


def _described(kind: ModuleType, definition: Mapping[str, Any], examples: Examples) -> str:
    words = {part: [len((example.get(part) or "").split()) for example in examples] for part in kind.PARTS}
    lengths = ", ".join(
        f"{part} {min(counts)} to {max(counts)}, median {statistics.median(counts):g}"
        for part, counts in words.items()
        if any(counts)
    )
    return f"{len(examples)} examples ({kind.composition(definition, examples)}); words: {lengths}"
