"""Texts with any number of labels, the examples of multilabel: read, checked, drawn by sets of labels.

`preparation.prepare` calls the functions with the same names here, in `labelled_texts` and in `questions`.
Texts are read and cleaned as those of `labelled_texts`. Splits and samples are drawn from strata: the texts
of a set of labels; or, where the set has fewer than FREQUENT texts, those of all such sets with the same
rarest label. So a drawn split has frequent combinations and rare labels as train has.
"""

import collections
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.core.files import atomic_open, write_json
from seedbed.data import clusters, label_sets, labelled_texts
from seedbed.data.label_sets import LabelSet, spelled
from seedbed.data.labelled_texts import PARTS, compared, drawable, record
from seedbed.data.reading import read_records
from seedbed.data.splitting import draw_split, restored
from seedbed.data.texts import parts

__all__ = [
    "PARTS", "check", "compared", "composition", "draw", "drawable", "lost", "read_split", "record",
    "sampled", "write_more",
]  # fmt: skip

FREQUENT = 20  # texts of a set that is a stratum of its own: a tenth of them are two
STRATUM = "sets of labels"  # what messages call strata

log = logging.getLogger(__name__)

Examples = list[dict[str, Any]]
Splits = Mapping[str, Examples]


# --- reading ----------------------------------------------------------------------------------------------


def read_split(
    name: str, definition: Mapping[str, Any], split: str, manifest: str | Path
) -> tuple[Examples, dict[str, Any]]:
    """Read and check the examples of one split: {"id", "text", "label": see `label_sets`}.

    An example of a pair has its "text_pair", too; where the dataset has a column of clusters, its "cluster".

    Returns:
        The examples, and what splits.json says of the split: see `labelled_texts.read_texts`.

    Raises:
        SeedbedError: see `preparation.prepare`.
    """
    found = read_records(name, definition, split, manifest)
    records = [each for _, each in found]
    sets = label_sets.read(records, definition, f"datasets.{name}.labels")
    labelled = [(index, rec, label_set) for (index, rec), label_set in zip(found, sets, strict=True)]
    return labelled_texts.read_texts(name, definition, split, labelled)


# --- splits -----------------------------------------------------------------------------------------------


def draw(
    name: str, definition: Mapping[str, Any], split: str, examples: Examples, total: int
) -> tuple[Examples, Examples]:
    """Divide training examples into train and another split, with each stratum in proportion.

    Raises:
        SeedbedError: no text has one of the labels, or a split of the requested size cannot be drawn.
    """
    _check_train(name, definition, examples)
    in_strata, names = _in_strata(definition, examples)
    asked, threshold = definition[f"{split}_split"], definition["near_duplicates"]
    rest, drawn = draw_split(name, split, in_strata, names, asked, total, threshold, STRATUM)
    return restored(examples, rest), restored(examples, drawn)


def _in_strata(definition: Mapping[str, Any], examples: Examples) -> tuple[Examples, list[str]]:
    """The examples with the index of their stratum as label, and the strata in words."""
    sets = collections.Counter(example["label"] for example in examples)
    texts = _texts_of_labels(examples)

    def stratum(label_set: LabelSet) -> tuple[str, LabelSet]:
        if sets[label_set] >= FREQUENT or not any(label_set):
            return " + ".join(spelled(label_set, definition["labels"])) or "no label", label_set
        rarest = min((code for code, held in enumerate(label_set) if held), key=lambda code: texts[code])
        return f"rare sets with {definition['labels'][rarest]}", (rarest,)

    found = {label_set: stratum(label_set) for label_set in sets}
    order = sorted(set(found.values()), reverse=True)
    return [{**each, "label": order.index(found[each["label"]])} for each in examples], [
        words for words, _ in order
    ]


def _texts_of_labels(examples: Examples) -> list[int]:
    """The number of texts with each label."""
    return [sum(held) for held in zip(*(example["label"] for example in examples), strict=True)]


def sampled(definition: Mapping[str, Any], splits: Splits) -> tuple[dict[str, Examples], dict[str, Any]]:
    """The splits with as many examples as `sample` asks for, of each stratum in proportion, and what
    splits.json says of it."""
    return labelled_texts.sampled_from_strata(
        definition, splits, lambda examples: _in_strata(definition, examples)[0]
    )


def check(name: str, definition: Mapping[str, Any], splits: Splits) -> None:
    """Check that train and a given test split have texts of each label; log labels that others lack.

    Raises:
        SeedbedError: train or a given test split lacks a label, or validation or test has a single cluster.
    """
    _check_train(name, definition, splits["train"])
    clusters.check(name, splits)
    for split, examples in splits.items():
        if absent := _absent(definition, examples):
            log.warning("%s, %s: no text with the label %s", name, split, ", ".join(absent))
    if definition["files"]["test"] is not None and definition.get("absent_labels") != "allow":
        hint = "add examples; or set absent_labels: allow, and how well it is found is not measured"
        _refuse_absent(name, definition, "test", splits["test"], hint)


def _check_train(name: str, definition: Mapping[str, Any], examples: Examples) -> None:
    hint = f"add examples, or remove the label from datasets.{name}.labels and from the files"
    _refuse_absent(name, definition, "train", examples, hint)


def _refuse_absent(
    name: str, definition: Mapping[str, Any], split: str, examples: Examples, hint: str
) -> None:
    if absent := _absent(definition, examples):
        raise SeedbedError(
            f"no text of the {split} split of {name!r} has a label",
            where=f"config, datasets.{name}.files.{split}: {definition['files'][split]}",
            found=f"none with {', '.join(absent)}; {composition(definition, examples)}",
            hint=hint,
        )


def _absent(definition: Mapping[str, Any], examples: Examples) -> list[str]:
    texts = _texts_of_labels(examples) or [0] * len(definition["labels"])
    return [label for label, count in zip(definition["labels"], texts, strict=True) if not count]


def composition(definition: Mapping[str, Any], examples: Examples) -> str:
    """The number of texts with each label, and of those without any, in words."""
    texts = _texts_of_labels(examples) or [0] * len(definition["labels"])
    counts = sorted(zip(definition["labels"], texts, strict=True))
    without = sum(not any(example["label"]) for example in examples)
    return ", ".join([*(f"{label}: {count}" for label, count in counts), f"no label: {without}"])


def lost(definition: Mapping[str, Any], kept: Examples) -> str:
    """The labels that no text in `kept` has, in words; empty if there are none."""
    absent = _absent(definition, kept)
    return f"among them all with {', '.join(absent)}" if absent else ""


def write_more(folder: Path, definition: Mapping[str, Any], splits: Splits) -> None:
    """Write SPLIT.text and SPLIT.label, with one example per line, and labels.json.

    A line of SPLIT.label has 1 or 0 for each label. labels.json lists the labels, and as `names` their names
    in runs (`SharedFolders.classes_of`).
    """
    for split, examples in splits.items():
        with atomic_open(folder / f"{split}.text") as texts, atomic_open(folder / f"{split}.label") as sets:
            for example in examples:
                texts.write("\t".join(parts(example)) + "\n")
                sets.write(f"{' '.join(map(str, example['label']))}\n")
    write_json(folder / "labels.json", {"labels": definition["labels"], "names": definition["label_names"]})
