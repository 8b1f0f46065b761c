"""Labelled texts, the examples of classification: read in several layouts, checked, drawn by class.

`preparation.prepare` calls the functions with the same names here and in `questions`. A fault in a file is an
error with the first place and the number of others. Harmless faults (byte order mark, CRLF, one blank line at
the end, line separators and control characters inside a text) are corrected and logged.
"""

import collections
import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core import spelling
from seedbed.core.errors import SeedbedError
from seedbed.core.files import atomic_open, read_json, write_json
from seedbed.core.spelling import nearest
from seedbed.data import clusters
from seedbed.data.arrow import read_huggingface
from seedbed.data.readers import (
    Row,
    SourceFile,
    describe_blank,
    files_of_split,
    named_columns,
    raise_first,
    read_csv,
    read_jsonl,
    read_lab,
    read_tsv,
)
from seedbed.data.source_files import find_file, whole_folder
from seedbed.data.splitting import draw_validation
from seedbed.data.texts import CONTROL, SEPARATOR, clean_line, is_encodable
from seedbed.data.webis import read_webis

log = logging.getLogger(__name__)

READERS: dict[str, Callable[..., list[Row]]] = {
    "lab": read_lab,
    "csv": read_csv,
    "tsv": read_tsv,
    "jsonl": read_jsonl,
    "webis_cls": read_webis,
    "huggingface": read_huggingface,
}
MOST_LABELS = 20  # in a message; a column with more is hardly one of labels

DRAWN = ("validation",)
PARTS = ("text",)

Examples = list[dict[str, Any]]
Splits = Mapping[str, Examples]


# --- reading ----------------------------------------------------------------------------------------------


def read_split(name: str, definition: Mapping[str, Any], split: str, manifest: str | Path) -> Examples:
    """Read and check the examples of one split: {"id", "text", "label": index of the declared label}.

    Where the dataset has a column of clusters, an example has its "cluster", too.

    Raises:
        SeedbedError: see `preparation.prepare`.
    """
    manifest = Path(manifest)
    source = read_json(manifest)
    key = f"datasets.{name}.files.{split}"
    files = [find_file(path, key, source, manifest) for path in files_of_split(definition, split)]
    if definition["format"] == "huggingface":
        files = [whole_folder(files[0].path.parent, source, manifest.parent / "files")]
    rows = READERS[definition["format"]](*files, definition)
    _check_labels(rows, files[-1], f"datasets.{name}.labels", definition)
    rows = _clean_rows(rows, files[0], definition["labels"])
    if clusters.KEY in definition["columns"]:
        found = [(row.line, row.cluster) for row in rows]
        names = clusters.cleaned(found, files[0], definition["columns"][clusters.KEY])
        rows = [row._replace(cluster=name) for row, name in zip(rows, names, strict=True)]
    index = {label: number for number, label in enumerate(definition["labels"])}
    return [
        {"id": f"{split}-{row.index}", "text": row.text, "label": index[row.label]}
        | ({clusters.KEY: row.cluster} if clusters.KEY in definition["columns"] else {})
        for row in rows
    ]


# --- checks -----------------------------------------------------------------------------------------------


def _check_labels(rows: list[Row], file: SourceFile, key: str, definition: Mapping[str, Any]) -> None:
    declared = {spelling.normal(label) for label in definition["labels"]}
    found = collections.Counter(row.label.strip() for row in rows)
    unknown = {label for label in found if spelling.normal(label) not in declared}
    if unknown:
        wrong = [(row.line, row.label) for row in rows if row.label.strip() in unknown]
        # if none of the labels is declared, the nearest declared one would not help
        cutoff = 0.5 if len(unknown) < len(found) else 1
        close = nearest(wrong[0][1].strip(), definition["labels"], cutoff)
        raise_first(
            "a label is not among the declared ones",
            file,
            [(line, repr(label)) for line, label in wrong],
            f"{close}declared labels: {', '.join(definition['labels'])}; correct the file or {key}"
            f"{_as_they_stand(found, unknown, definition['labels'], key)}",
        )


def _as_they_stand(
    found: Mapping[str, int], unknown: Collection[str], declared: Sequence[str], key: str
) -> str:
    """The line of the config that declares the file's labels, or a remark if they are too many."""
    if len(unknown) > MOST_LABELS:
        return f". The file has {len(found):,} different labels: columns.label may name another column"
    if any(spelling.alike(label, declared) for label in unknown):
        return ""  # probably a typing error
    there, rest, listed = set(map(spelling.normal, found)), sorted(unknown), []
    for label in declared:  # their order is that of the classes
        meant = label if spelling.normal(label) in there else spelling.near(label, rest, cutoff=0.75)
        if meant is not None:
            listed.append(meant)
            rest = [other for other in rest if other != meant]
    written = json.dumps([*listed, *rest], ensure_ascii=False)
    return f". To use the labels of the file: {key.rpartition('.')[2]}: {written}"


def _clean_rows(rows: list[Row], file: SourceFile, labels: Sequence[str]) -> list[Row]:
    declared = {spelling.normal(label): label for label in labels}
    for pattern, what in (
        (SEPARATOR, "tabs, line ends and line separators"),
        (CONTROL, "control characters"),
    ):
        if replaced := sum(len(pattern.findall(row.text.strip())) for row in rows):
            log.info("%s: %d %s inside texts became spaces", file.path, replaced, what)
    clean = [
        row._replace(text=clean_line(row.text), label=declared[spelling.normal(row.label.strip())])
        for row in rows
    ]
    empty = [
        (row.line, describe_blank(found.text)) for row, found in zip(clean, rows, strict=True) if not row.text
    ]
    raise_first("a text is empty", file, empty, "fill in the text, or delete the example with its label")
    lone = [(row.line, ascii(row.text)[:80]) for row in clean if not is_encodable(row.text)]
    raise_first("a text has half a surrogate pair", file, lone, "write the whole character")
    return clean


# --- splits -----------------------------------------------------------------------------------------------


def draw(
    name: str, definition: Mapping[str, Any], split: str, examples: Examples, total: int
) -> tuple[Examples, Examples]:
    """Divide training examples into train and validation, with each class in proportion.

    Raises:
        SeedbedError: a class has no example, or a split of the requested size cannot be drawn.
    """
    _check_train(name, definition, examples)
    asked = definition[f"{split}_split"]
    return draw_validation(name, examples, definition["labels"], asked["size"], asked["seed"])


def check(name: str, definition: Mapping[str, Any], splits: Splits) -> None:
    """Check that train has examples of each class; log classes that other splits lack.

    Raises:
        SeedbedError: train lacks a class, or validation or test has a single cluster.
    """
    if len(columns := named_columns(definition)) > 1:
        log.info(
            "%s: the columns %s are joined by a space into one text; pairs of texts are not supported",
            *(name, ", ".join(columns)),
        )
    _check_train(name, definition, splits["train"])
    clusters.check(name, splits)
    for split, examples in splits.items():
        if absent := _absent(definition, examples):
            log.warning("%s, %s: no example of %s", name, split, ", ".join(absent))


def _check_train(name: str, definition: Mapping[str, Any], examples: Examples) -> None:
    if absent := _absent(definition, examples):
        raise SeedbedError(
            f"a class has no training example in {name!r}",
            where=f"config, datasets.{name}.files.train: {definition['files']['train']}",
            found=f"none of {', '.join(absent)}; {composition(definition, examples)}",
            hint=f"add examples, or remove the label from datasets.{name}.labels",
        )


def _absent(definition: Mapping[str, Any], examples: Examples) -> list[str]:
    present = {example["label"] for example in examples}
    return [label for index, label in enumerate(definition["labels"]) if index not in present]


def compared(splits: Splits) -> Splits:
    """The examples for `find_duplicates`, unchanged."""
    return splits


def composition(definition: Mapping[str, Any], examples: Examples) -> str:
    """The number of examples of each label, in words."""
    counts = collections.Counter(definition["labels"][example["label"]] for example in examples)
    return ", ".join(f"{label}: {count}" for label, count in sorted(counts.items()))


def lost(definition: Mapping[str, Any], kept: Examples) -> str:
    """The classes without an example in `kept`, in words; empty if there are none."""
    absent = _absent(definition, kept)
    return f"among them all of {', '.join(absent)}" if absent else ""


def record(splits: Splits) -> dict[str, Any]:
    """Further keys of splits.json: the examples of each cluster, where there are clusters."""
    return clusters.record(splits)


def write_more(folder: Path, definition: Mapping[str, Any], splits: Splits) -> None:
    """Write SPLIT.text and SPLIT.label, with one example per line as fairseq reads them, and labels.json.

    labels.json lists the labels, and as `names` the classes' names in runs (`SharedFolders.classes_of`).
    """
    for split, examples in splits.items():
        with atomic_open(folder / f"{split}.text") as texts, atomic_open(folder / f"{split}.label") as labels:
            for example in examples:
                texts.write(f"{example['text']}\n")
                labels.write(f"{example['label']}\n")
    write_json(folder / "labels.json", {"labels": definition["labels"], "names": definition["label_names"]})
