"""Draw splits from the training split, by a seed and the same on every machine.

Examples are drawn by a hash of the seed and their text, so the draw depends neither on a library's random
numbers nor on the order of the file. Identical texts (after `texts.normalise`) stay together, since otherwise
the model would be selected on texts of its training. So do the examples of a cluster.
"""

import collections
import hashlib
import logging
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.data import clusters
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
        examples: {"id", "text", "label": class index}, and "cluster" where there are clusters.
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
    together = "clusters" if clusters.KEY in examples[0] else "identical texts"
    taken = collections.Counter(example["label"] for example in examples if example["id"] in drawn)
    counts = ", ".join(f"{label}: {taken[index]}" for index, label in enumerate(labels))
    if any(taken[index] < LEAST_OF_CLASS for index in range(len(labels))):
        raise SeedbedError(
            f"the validation split drawn from train of {name!r} has fewer than {LEAST_OF_CLASS} examples "
            "of a class",
            where=key,
            found=f"{size:g} of {len(examples)} examples; the draw gives {counts}",
            hint=f"raise the size, add examples of the class, or give a validation file; {together} are "
            "drawn together or not at all",
        )
    if taken != collections.Counter(dict(enumerate(wanted))):
        log.warning(
            "%s: drew %s for validation instead of the requested %s, since %s stay together",
            name,
            counts,
            ", ".join(f"{label}: {wanted[index]}" for index, label in enumerate(labels)),
            together,
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
    """Ids of the drawn examples; identical texts, and clusters where there are any, are drawn together."""
    names = [normalise(example["text"]) for example in examples]
    draw = draw_groups
    if clusters.KEY in examples[0]:
        names = connected([example[clusters.KEY] for example in examples], names)
        draw = draw_nearest
    groups: dict[str, Examples] = collections.defaultdict(list)
    for name, example in zip(names, examples, strict=True):
        groups[name].append(example)
    # a group may have several labels: the same text, labelled differently
    labels = {name: [example["label"] for example in group] for name, group in groups.items()}
    return {example["id"] for name in draw(labels, wanted, seed) for example in groups[name]}


def connected(names: Sequence[str], texts: Sequence[str]) -> list[str]:
    """For each example the first, in alphabetical order, of the clusters that equal texts join to its own.

    Args:
        names: the cluster of each example.
        texts: its normalised text.
    """
    first = {name: name for name in names}

    def root(name: str) -> str:
        while first[name] != name:
            first[name] = first[first[name]]
            name = first[name]
        return name

    by_text: dict[str, str] = {}
    for name, text in zip(names, texts, strict=True):
        pair = root(name), root(by_text.setdefault(text, name))
        first[max(pair)] = min(pair)
    return [root(name) for name in names]


def draw_nearest(classes: Mapping[str, Sequence[int]], wanted: Sequence[int], seed: int) -> list[str]:
    """The drawn groups: in the order of `draw_groups`, each that brings the classes nearer to `wanted`.

    Clusters may be as large as the split and have examples of all classes, so that few would fit. Nearer is
    a smaller sum over classes of the absolute difference between drawn and wanted members.
    """
    left = list(wanted)
    drawn = []
    for name in _in_order(classes, seed):
        needed = collections.Counter(classes[name])
        if sum(abs(left[label] - count) - abs(left[label]) for label, count in needed.items()) < 0:
            drawn.append(name)
            for label, count in needed.items():
                left[label] -= count
    return drawn


def draw_groups(classes: Mapping[str, Sequence[int]], wanted: Sequence[int], seed: int) -> list[str]:
    """The drawn groups: in the order of the hash of seed and name, each group that still fits.

    Args:
        classes: the classes of each group's members, by the group's name.
        wanted: maximum number of drawn members of each class.
        seed: each seed draws other groups.
    """
    left = list(wanted)
    drawn = []
    for name in _in_order(classes, seed):
        needed = collections.Counter(classes[name])
        if all(left[label] >= count for label, count in needed.items()):
            drawn.append(name)
            for label, count in needed.items():
                left[label] -= count
    return drawn


def _in_order(names: Collection[str], seed: int) -> list[str]:
    return sorted(names, key=lambda name: hashlib.sha256(f"{seed}\n{name}".encode()).digest())
