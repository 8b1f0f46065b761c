"""Clusters of examples: authors, products, or other groups whose examples are not independent.

The column of clusters is read with the texts. No file that trainers read has it; splits.json does.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core import spelling
from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json
from seedbed.core.rows import ANEW
from seedbed.core.splits import PREDICTED
from seedbed.data.labels import is_missing, label_text
from seedbed.data.readers.files import Place, raise_first
from seedbed.data.texts import clean_line, is_encodable

KEY = "cluster"  # of an example, and of the column in the config
RECORDED = "clusters"  # key of splits.json
LEAST_CLUSTERS = 2  # of a split that runs predict; one says nothing of the spread

log = logging.getLogger(__name__)

Splits = Mapping[str, Sequence[Mapping[str, Any]]]


def cleaned(values: Sequence[tuple[Place, Any]], column: str) -> list[str]:
    """The names of clusters, without spaces around them and in one form of Unicode.

    Args:
        values: of each example its place, and its cluster as text or as what the file has.
        column: their column, for messages.

    Raises:
        SeedbedError: a name is empty or null, or cannot be written.
    """
    names = [(place, spelling.normal(clean_line(_text(value)))) for place, value in values]
    empty = [(place, f"nothing in column {column!r}") for place, name in names if not name]
    hint = "fill in the cluster; an example without a group is a cluster of its own, with its own name"
    raise_first("a cluster is empty", empty, hint)
    lone = [(place, ascii(name)[:80]) for place, name in names if not is_encodable(name)]
    raise_first("a cluster has half a surrogate pair", lone, "write the whole character")
    return [name for _, name in names]


def _text(value: Any) -> str:
    return "" if is_missing(value) and not isinstance(value, str) else label_text(value)


def without(example: Mapping[str, Any]) -> dict[str, Any]:
    """The example without its cluster."""
    return {key: value for key, value in example.items() if key != KEY}


def record(splits: Splits) -> dict[str, dict[str, dict[str, list[str]]]]:
    """What splits.json says of clusters: ids by split and cluster; nothing where examples have none."""
    if not _clustered(splits):
        return {}
    found: dict[str, dict[str, list[str]]] = {}
    for split, examples in splits.items():
        members = found.setdefault(split, {})
        for example in examples:
            members.setdefault(example[KEY], []).append(example["id"])
    return {RECORDED: found}


def check(name: str, splits: Splits) -> None:
    """Log how many clusters each split has.

    Args:
        name: the dataset's name in the config, for messages.
        splits: examples by split.

    Raises:
        SeedbedError: validation or test has a single cluster.
    """
    for split, members in record(splits).get(RECORDED, {}).items():
        if split in PREDICTED and len(members) < LEAST_CLUSTERS:
            raise SeedbedError(
                f"the {split} split of {name!r} has a single cluster",
                where=f"config, datasets.{name}.columns.cluster",
                found=f"{next(iter(members))!r} in all {len(splits[split])} examples",
                hint="intervals resample whole clusters, and one says nothing of the spread: name another "
                "column, or leave the key out",
            )
        log.info("%s, %s: %d examples in %d clusters", name, split, len(splits[split]), len(members))


def _clustered(splits: Splits) -> bool:
    return any(KEY in example for examples in splits.values() for example in examples[:1])


def read_clusters(path: str | Path) -> dict[str, dict[str, list[str]]]:
    """Ids by split and cluster, from a splits.json; empty where the dataset has no clusters.

    Raises:
        SeedbedError: an example is in two clusters.
    """
    found = read_json(path).get(RECORDED, {})
    for split, members in found.items():
        ids = [name for each in members.values() for name in each]
        if len(set(ids)) < len(ids):
            raise SeedbedError(
                f"a {split} example is in two clusters", where=f"{path}, {RECORDED}.{split}", hint=ANEW
            )
    return found


def by_example(path: str | Path) -> dict[str, dict[str, str]]:
    """The cluster of each example by split and id, from a splits.json; see `read_clusters`."""
    return {
        split: {name: cluster for cluster, ids in members.items() for name in ids}
        for split, members in read_clusters(path).items()
    }
