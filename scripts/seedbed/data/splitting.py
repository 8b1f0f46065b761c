"""Draw splits from the training split, by a seed and the same on every machine.

Examples are drawn by a hash of the seed and their text, so the draw depends neither on a library's random
numbers nor on the order of the file. Identical texts (after `texts.normalise`) stay together, since otherwise
the model would be selected on texts of its training.
"""

import collections
import hashlib
import logging
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.data.texts import normalise

LEAST_EXAMPLES = 2  # of a split; one example says nothing of the spread
LEAST_OF_CLASS = 2  # examples of a class in validation; with one, its accuracy is 0 or 1

log = logging.getLogger(__name__)

Examples = list[dict[str, Any]]


def draw_validation(
    name: str, examples: Examples, labels: Sequence[str], size: float, seed: int
) -> tuple[Examples, Examples]:
    """Divide a dataset's training examples into (train, validation), both in file order.

    Args:
        name: the dataset's name in the config, for messages.
        examples: {"id", "text", "label": class index}.
        labels: the declared labels, by class index.
        size: a share of the examples if below 1, else their number; divided among the classes in proportion,
            by largest remainder.
        seed: each seed draws another split.

    Raises:
        SeedbedError: the size is not a whole number or too large, or a class would have fewer than two
            examples in validation.
    """
    key = f"config, datasets.{name}.validation_split.size"
    total = split_size(key, len(examples), size)
    wanted = class_sizes([example["label"] for example in examples], len(labels), total)
    drawn = _draw(examples, wanted, seed)
    taken = collections.Counter(example["label"] for example in examples if example["id"] in drawn)
    counts = ", ".join(f"{label}: {taken[index]}" for index, label in enumerate(labels))
    if any(taken[index] < LEAST_OF_CLASS for index in range(len(labels))):
        raise SeedbedError(
            f"the validation split drawn from train of {name!r} has fewer than {LEAST_OF_CLASS} examples "
            "of a class",
            where=key,
            found=f"{size:g} of {len(examples)} examples; the draw gives {counts}",
            hint="raise the size, add examples of the class, or give a validation file; identical texts are "
            "drawn together or not at all",
        )
    if taken != collections.Counter(dict(enumerate(wanted))):
        log.warning(
            "%s: drew %s for validation instead of the requested %s, since identical texts stay together",
            name,
            counts,
            ", ".join(f"{label}: {wanted[index]}" for index, label in enumerate(labels)),
        )
    log.info("%s: drew %d validation examples from train, seed %d (%s)", name, len(drawn), seed, counts)
    return divided(examples, drawn)


def divided(examples: Examples, drawn: Collection[str]) -> tuple[Examples, Examples]:
    """The remaining examples and the drawn ones, both in their order."""
    return (
        [example for example in examples if example["id"] not in drawn],
        [example for example in examples if example["id"] in drawn],
    )


def split_size(key: str, count: int, size: float, split: str = "validation") -> int:
    """The number of examples of a split; `size` is a share of `count` if below 1, else the number.

    Raises:
        SeedbedError: the size is not a whole number or leaves no example; the error names `key`.
    """
    total = round(size * count) if size < 1 else size
    if not math.isfinite(total) or total != int(total) or total >= count:
        raise SeedbedError(
            f"a {split} split of this size cannot be drawn",
            where=key,
            found=f"{size:g}, of {count} examples",
            hint="give a share below 1, or a whole number smaller than the number of examples",
        )
    return int(total)


def class_sizes(classes: Sequence[int], count: int, total: int) -> list[int]:
    """Divide `total` examples among `count` classes in proportion to their sizes, by largest remainder."""
    members = collections.Counter(classes)
    sizes = [total * members[index] // len(classes) for index in range(count)]
    remainders = [total * members[index] % len(classes) for index in range(count)]
    # the first class wins among equal remainders
    for index in sorted(range(count), key=lambda index: -remainders[index])[: total - sum(sizes)]:
        sizes[index] += 1
    return sizes


def _draw(examples: Examples, wanted: Sequence[int], seed: int) -> set[str]:
    """Ids of the drawn examples; identical texts are drawn together."""
    groups: dict[str, Examples] = collections.defaultdict(list)
    for example in examples:
        groups[normalise(example["text"])].append(example)
    # a group may have several labels: the same text, labelled differently
    labels = {text: [example["label"] for example in group] for text, group in groups.items()}
    return {example["id"] for text in draw_groups(labels, wanted, seed) for example in groups[text]}


def draw_groups(classes: Mapping[str, Sequence[int]], wanted: Sequence[int], seed: int) -> list[str]:
    """The drawn groups: in the order of the hash of seed and name, each group that still fits.

    Args:
        classes: the classes of each group's members, by the group's name.
        wanted: maximum number of drawn members of each class.
        seed: each seed draws other groups.
    """
    left = list(wanted)
    drawn = []
    for name in sorted(classes, key=lambda name: hashlib.sha256(f"{seed}\n{name}".encode()).digest()):
        needed = collections.Counter(classes[name])
        if all(left[label] >= count for label, count in needed.items()):
            drawn.append(name)
            for label, count in needed.items():
                left[label] -= count
    return drawn
