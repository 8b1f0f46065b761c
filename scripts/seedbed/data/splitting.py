"""Draw splits from the training split and samples of splits, by a seed and the same on every machine.

Examples are drawn by a hash of the seed and their text, so the draw depends neither on a library's random
numbers nor on the order of the file. Identical texts (after `texts.compared`) stay together, since otherwise
the model would be selected on texts of its training. So do the examples of a cluster, and near-duplicates on
request.
"""

import collections
import hashlib
import logging
import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.core.splits import LEAST_EXAMPLES
from seedbed.data import clusters
from seedbed.data.duplicates import near_groups
from seedbed.data.texts import compared

LEAST_OF_CLASS = 2  # examples of a class in a drawn split; with one, its accuracy is 0 or 1
LEAST_CLASSES = 2  # of a drawn split; one class says nothing

log = logging.getLogger(__name__)

Examples = list[dict[str, Any]]


def restored(examples: Examples, chosen: Examples) -> Examples:
    """The examples with the ids of the chosen ones, with their own labels instead of strata."""
    ids = {example["id"] for example in chosen}
    return [example for example in examples if example["id"] in ids]


def draw_split(
    name: str,
    split: str,
    examples: Examples,
    labels: Sequence[str],
    asked: Mapping[str, Any],
    total: int | None = None,
    threshold: float | None = None,
    called: str = "classes",
) -> tuple[Examples, Examples]:
    """Divide a dataset's training examples into (train, `split`), both in file order.

    Of a class that is too rare for its share, two examples or one are drawn if it has three times as many,
    and one always stays in train. A warning says so.

    Args:
        name: the dataset's name in the config, for messages.
        split: validation or test.
        examples: {"id", "text", "label": class index}, "text_pair" of pairs, "cluster" where there are any.
        labels: the declared labels, by class index.
        asked: `size`, a share of `total` if below 1, else a number of examples; divided among the classes in
            proportion, by largest remainder. `seed`: each draws another split. `together`: near if
            near-duplicates stay together, too.
        total: number of examples of the training file; None: as many as `examples`.
        threshold: least similarity of near-duplicates.
        called: what messages call the classes.

    Raises:
        SeedbedError: the size is not a whole number, too small or too large, or the split would have examples
            of one class only.
    """
    key = f"config, datasets.{name}.{split}_split.size"
    size = split_size(key, len(examples) if total is None else total, asked["size"], split)
    classes = [example["label"] for example in examples]
    members = collections.Counter(classes)
    wanted = class_sizes(classes, len(labels), size)
    clustered = clusters.KEY in examples[0]
    if not clustered:
        wanted = [
            min(max(share, min(LEAST_OF_CLASS, members[label] // 3)), max(0, members[label] - 1))
            for label, share in enumerate(wanted)
        ]
    near = threshold if asked.get("together") == "near" else None
    drawn = _draw(examples, wanted, asked["seed"], near)
    together = "clusters" if clustered else "identical texts" if near is None else "near-duplicates"
    taken = collections.Counter(example["label"] for example in examples if example["id"] in drawn)
    counts = ", ".join(f"{label}: {taken[index]}" for index, label in enumerate(labels))
    if size < LEAST_EXAMPLES or len(taken) < LEAST_CLASSES:
        raise SeedbedError(
            f"no {split} split of use can be drawn from train of {name!r}",
            where=key,
            found=f"{asked['size']:g} of {len(examples)} examples; the draw gives {counts}",
            hint=f"it needs examples of {LEAST_CLASSES} {called}: raise the size, add examples, or give a "
            f"{split} file; {together} are drawn together or not at all",
        )
    _log_draw(f"{name}, {split}", labels, wanted, taken, members, together, called)
    log.info(
        "%s: drew %d %s examples from train, seed %d (%s)", name, len(drawn), split, asked["seed"], counts
    )
    return divided(examples, drawn)


def _log_draw(
    where: str,
    labels: Sequence[str],
    wanted: Sequence[int],
    taken: Mapping[int, int],
    members: Mapping[int, int],
    together: str,
    called: str,
) -> None:
    """Warn of rare classes, and where the draw is not as requested."""
    rare = [index for index in range(len(labels)) if taken[index] < LEAST_OF_CLASS]
    if rare:
        told = ", ".join(f"{labels[index]} ({taken[index]} of {members[index]})" for index in rare)
        what = "%s: %s too rare for this split, which has one example or none: %s"
        log.warning(what, where, called, told)
    if any(taken[index] != number for index, number in enumerate(wanted)):
        drawn, requested = (
            ", ".join(f"{label}: {numbers[index]}" for index, label in enumerate(labels))
            for numbers in (taken, wanted)
        )
        log.warning(
            "%s: drew %s instead of the requested %s, since %s stay together",
            *(where, drawn, requested, together),
        )


def sample(examples: Examples, size: float, seed: int) -> Examples:
    """Some of a split's examples in proportion to its classes, at least one of each, in file order.

    They come in an order by class and by a hash of the seed and the text, so that a smaller sample with the
    same seed is a part of a larger one.

    Args:
        examples: {"id", "text", "label": class index}.
        size: a share of the examples if below 1, else their number; more than there are means all.
        seed: each seed draws another sample.
    """
    by_class: dict[int, list[tuple[bytes, int]]] = collections.defaultdict(list)
    for index, example in enumerate(examples):
        by_class[example["label"]].append((_hash(compared(example), seed), index))
    order = []
    for members in by_class.values():
        for rank, (digest, index) in enumerate(sorted(members)):
            order.append(((rank + 0.5) / len(members) if rank else 0, digest, index))
    number = round(size * len(examples)) if size < 1 else int(size)
    kept = {index for *_, index in sorted(order)[:number]}
    return [example for index, example in enumerate(examples) if index in kept]


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


def _draw(examples: Examples, wanted: Sequence[int], seed: int, near: float | None = None) -> set[str]:
    """Ids of the drawn examples; what belongs together is drawn together.

    That are identical texts, near-duplicates from the similarity `near`, and clusters where there are any.
    """
    texts = list(map(compared, examples))
    names, draw = texts, draw_groups
    if clusters.KEY in examples[0]:
        names = connected([example[clusters.KEY] for example in examples], texts)
        draw = draw_nearest
    if near is not None:
        names = connected(names, near_groups(examples, near))
    groups: dict[str, Examples] = collections.defaultdict(list)
    for name, example in zip(names, examples, strict=True):
        groups[name].append(example)
    # a group may have several labels: the same text, labelled differently
    labels = {name: [example["label"] for example in group] for name, group in groups.items()}
    return {example["id"] for name in draw(labels, wanted, seed) for example in groups[name]}


def connected(names: Sequence[str], texts: Sequence[Hashable]) -> list[str]:
    """For each example the first, in alphabetical order, of the clusters that equal texts join to its own.

    Args:
        names: the cluster of each example.
        texts: its normalised text, or another group that it belongs to.
    """
    first = {name: name for name in names}

    def root(name: str) -> str:
        while first[name] != name:
            first[name] = first[first[name]]
            name = first[name]
        return name

    by_text: dict[Hashable, str] = {}
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
    return sorted(names, key=lambda name: _hash(name, seed))


def _hash(name: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}\n{name}".encode()).digest()
