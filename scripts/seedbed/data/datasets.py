"""Datasets: read in the layouts that people have, checked without mercy, written in one layout.

Whatever is wrong with a file is an error that names the first place and says how many more there are;
what is harmless (byte order mark, CRLF, one blank line at the end, line separators and control characters
inside a text) is mended and logged.
"""

import collections
import difflib
import json
import logging
import re
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from seedbed.core import spelling
from seedbed.core.characters import is_blank
from seedbed.core.errors import SeedbedError
from seedbed.core.files import atomic_open, read_json, write_json, write_jsonl
from seedbed.core.spelling import nearest
from seedbed.core.splits import SPLITS
from seedbed.data.arrow import read_huggingface
from seedbed.data.duplicates import find_duplicates, leaking_train_examples, write_duplicates
from seedbed.data.readers import (
    Row,
    SourceFile,
    files_of_split,
    named_columns,
    raise_first,
    read_csv,
    read_jsonl,
    read_lab,
    read_tsv,
    told_blank,
)
from seedbed.data.splitting import draw_validation
from seedbed.data.webis import read_webis
from seedbed.sources.archives import AS_ARCHIVE, holds_archive
from seedbed.sources.manifest import verify

log = logging.getLogger(__name__)

READERS: dict[str, Callable[..., list[Row]]] = {
    "lab": read_lab,
    "csv": read_csv,
    "tsv": read_tsv,
    "jsonl": read_jsonl,
    "webis_cls": read_webis,
    "huggingface": read_huggingface,
}
# fairseq's text files hold one text a line, and Python itself ends lines at more characters than "\n"
SEPARATORS = "\t\n\x0b\x0c\r\x1c-\x1e\x85\u2028\u2029"
# the other control characters of ASCII mean nothing in a text, and tokenizers disagree about them; those from
# U+0080 on stay: they tell of a wrong decoding, which the audit reports
CONTROLS = "\x00-\x08\x0e-\x1b\x1f\x7f"
SEPARATOR, CONTROL = re.compile(f"[{SEPARATORS}]"), re.compile(f"[{CONTROLS}]")
RUNS = re.compile(f" *(?:[{SEPARATORS}{CONTROLS}] *)+")
LISTED = 20  # names in a message
MOST_LABELS = 20  # in a message; a column with more hardly holds labels

Examples = list[dict[str, Any]]


def prepare(
    name: str, definition: dict[str, Any], manifest: str | Path, folder: str | Path, stamp: dict[str, Any]
) -> None:
    """Check a dataset and write its splits into `folder`.

    Writes, for each split, SPLIT.jsonl ({"id", "text", "label": class index}), SPLIT.text and SPLIT.label
    (one a line), in the order of the file, and:

    - labels.json: the labels, and as their names what the runs call them (see `Plan.classes_of`);
    - splits.json: how the validation split came about ("given", or size and seed of the draw), the ids that
      were drawn, the examples read from each file, and the training examples dropped as leaks;
    - duplicates.csv: see `seedbed.data.duplicates`; computed before leaks are dropped;
    - fingerprint.json: `stamp`, as it is.

    An id is "SPLIT-N", N the example's index in the file of that split; it stays the same when other examples
    are dropped, or when the example goes from train to validation.

    Args:
        name: the dataset's name in the config, for messages.
        definition: the resolved block of the config.
        manifest: the manifest of its source; the source's files lie in `files` beside it.
        folder: where the files go; nothing is written before everything is checked.
        stamp: what fingerprint.json holds.

    Raises:
        SeedbedError: a file is missing or anything in it is not as declared; a validation split of the size
            asked for cannot be drawn; a class loses all its training examples as leaks.
    """
    labels = definition["labels"]
    if len(columns := named_columns(definition)) > 1:
        log.info(
            "%s: the text is made of the columns %s, joined with a space; Seedbed takes single texts, pairs "
            "are not supported yet",
            *(name, ", ".join(columns)),
        )
    splits = {
        split: _examples(split, read_split(name, definition, split, manifest), labels)
        for split in SPLITS
        if definition["files"][split] is not None
    }
    read = {split: len(examples) for split, examples in splits.items()}
    for split, examples in splits.items():
        _check_size(name, definition, split, examples)
    validation: Any = "given"
    record: dict[str, Any] = {"ids": {}}
    if "validation" not in splits:
        _check_classes(name, definition, {"train": splits["train"]})
        asked = definition["validation_split"]
        splits["train"], splits["validation"] = draw_validation(
            name, splits["train"], labels, asked["size"], asked["seed"]
        )
        validation = {"size": asked["size"], "seed": asked["seed"], "drawn_from": "train"}
        record["ids"] = {"validation": [example["id"] for example in splits["validation"]]}
    splits = {split: splits[split] for split in SPLITS}
    _check_classes(name, definition, splits)
    duplicates = find_duplicates(splits, definition["near_duplicates"])
    dropped = _drop_leaks(name, splits, duplicates, labels) if definition["drop_leaks"] else []
    folder = Path(folder)
    for split, examples in splits.items():
        _write_split(folder, split, examples)
        log.info("%s, %s: %s", name, split, _described(examples, labels))
    write_duplicates(folder / "duplicates.csv", duplicates)
    write_json(
        folder / "splits.json", {"validation": validation, **record, "read": read, "dropped_leaks": dropped}
    )
    write_json(folder / "labels.json", {"labels": labels, "names": definition["label_names"]})
    write_json(folder / "fingerprint.json", stamp)


def _examples(split: str, rows: list[Row], labels: Sequence[str]) -> Examples:
    index = {label: number for number, label in enumerate(labels)}
    return [{"id": f"{split}-{row.index}", "text": row.text, "label": index[row.label]} for row in rows]


def _drop_leaks(
    name: str, splits: dict[str, Examples], duplicates: list[dict[str, Any]], labels: Sequence[str]
) -> list[str]:
    """Take the leaks out of splits["train"] and return their ids, in file order."""
    leaking = leaking_train_examples(duplicates)
    kept = [example for example in splits["train"] if example["id"] not in leaking]
    dropped = [example for example in splits["train"] if example["id"] in leaking]
    counts = collections.Counter(example["label"] for example in kept)
    lost = [label for index, label in enumerate(labels) if not counts[index]]
    if lost:
        raise SeedbedError(
            f"all training examples of a class of {name!r} also stand in validation or test",
            where=f"config, datasets.{name}.drop_leaks",
            found=f"{len(dropped)} of {len(splits['train'])} training examples would go, "
            f"among them all of {', '.join(lost)}",
            hint="look at how the splits were made; with drop_leaks: false they stay in",
        )
    splits["train"] = kept
    log.warning(
        "%s: dropped %d training examples that stand, identical or nearly, in validation or test, too%s",
        name,
        len(dropped),
        f" ({_counted(dropped, labels)})" if dropped else "",
    )
    return [example["id"] for example in dropped]


# --- reading ----------------------------------------------------------------------------------------------


def read_split(name: str, definition: dict[str, Any], split: str, manifest: str | Path) -> list[Row]:
    """Read and check the rows of one split; texts are clean and labels are declared ones.

    Raises:
        SeedbedError: as `prepare`.
    """
    manifest = Path(manifest)
    source = read_json(manifest)
    key = f"datasets.{name}.files.{split}"
    files = [find_file(path, key, source, manifest) for path in files_of_split(definition, split)]
    if definition["format"] == "huggingface":
        files = [_whole_folder(files[0].path.parent, source, manifest.parent / "files")]
    rows = READERS[definition["format"]](*files, definition)
    _check_labels(rows, files[-1], f"datasets.{name}.labels", definition)
    return _clean_rows(rows, files[0], definition["labels"])


def _whole_folder(folder: Path, source: Mapping[str, Any], files: Path) -> SourceFile:
    """The folder of a split, all of whose files are those that were fetched."""
    for name, listed in source["files"].items():
        if (files / name).is_relative_to(folder):
            verify(files / name, listed["sha256"])
    return SourceFile(folder, source["location"], unit="row")


def find_file(path: str, key: str, source: dict[str, Any], manifest: Path) -> SourceFile:
    """A file of a source, `path` being what stands in the config at `key`.

    Raises:
        SeedbedError: as `find_name`; or the file is not the one that was fetched.
    """
    files = manifest.parent / "files"
    there = find_name(path, key, source, files, manifest.parent.name)
    verify(files / there, source["files"][there]["sha256"])
    return SourceFile(files / there, source["location"])


def find_name(path: str, key: str, source: Mapping[str, Any], files: Path | None, name: str) -> str:
    """The name that a file has in a source.

    Args:
        path: its path inside the source, in any form of Unicode.
        key: where that stands in the config.
        source: `location`, and `files`, the names of what the source holds.
        files: the folder in which they lie; None: they are in an archive.
        name: the source's.

    Raises:
        SeedbedError: the source has no such file; the error tells what it holds, and the nearest name.
    """
    held = list(source["files"])
    there = spelling.find(path, held)
    if there is not None:
        return there
    more = f" and {len(held) - LISTED} more" if len(held) > LISTED else ""
    close = _nearest_path(path, held)
    if files is not None and len(held) == 1 and holds_archive(files / held[0]):
        close = f"{held[0]} is an archive, which its name does not show: {AS_ARCHIVE.format(name)}; "
    raise SeedbedError(
        f"the source has no file {path!r}",
        where=f"config, {key}; source fetched from {source['location']}",
        found=f"the source holds {', '.join(held[:LISTED])}{more}",
        hint=f"{close}mend {key} (for the format lab without .review or .label, for "
        "huggingface the folder that holds state.json) or the source",
    )


def _nearest_path(path: str, held: Sequence[str]) -> str:
    """As `nearest`; a file of the same name goes first, as folders inside archives are what changes."""
    same = [other for other in held if PurePosixPath(other).name == PurePosixPath(path).name]
    close = difflib.get_close_matches(path, same, n=1, cutoff=0)
    return nearest(close[0], close) if close else nearest(path, held)


# --- checks -----------------------------------------------------------------------------------------------


def _check_labels(rows: list[Row], file: SourceFile, key: str, definition: dict[str, Any]) -> None:
    declared = {spelling.normal(label) for label in definition["labels"]}
    found = collections.Counter(row.label.strip() for row in rows)
    unknown = {label for label in found if spelling.normal(label) not in declared}
    if unknown:
        wrong = [(row.line, row.label) for row in rows if row.label.strip() in unknown]
        # where no label is a declared one, they are of another kind, and none is the nearest
        cutoff = 0.5 if len(unknown) < len(found) else 1
        close = nearest(wrong[0][1].strip(), definition["labels"], cutoff)
        raise_first(
            "a label is not among the declared ones",
            file,
            [(line, repr(label)) for line, label in wrong],
            f"{close}declared labels: {', '.join(definition['labels'])}; mend the file or {key}"
            f"{_as_they_stand(found, unknown, definition['labels'], key)}",
        )


def _as_they_stand(
    found: Mapping[str, int], unknown: Collection[str], declared: Sequence[str], key: str
) -> str:
    """What to write into the config to take a file's labels as they are; of very many, what that means."""
    if len(unknown) > MOST_LABELS:
        return f". The file has {len(found):,} different labels: columns.label may name another column"
    if any(spelling.alike(label, declared) for label in unknown):
        return ""  # a slip of the pen is no class
    kept = [label for label in declared if unknown != set(found)]  # else none of the declared ones occurs
    listed = json.dumps([*kept, *sorted(unknown)], ensure_ascii=False)
    return f". To take the labels as they stand in the file: {key.rpartition('.')[2]}: {listed}"


def _clean_rows(rows: list[Row], file: SourceFile, labels: Sequence[str]) -> list[Row]:
    declared = {spelling.normal(label): label for label in labels}
    for pattern, what in (
        (SEPARATOR, "tabs, line ends and line separators"),
        (CONTROL, "control characters"),
    ):
        if replaced := sum(len(pattern.findall(row.text.strip())) for row in rows):
            log.info("%s: %d %s inside texts became spaces", file.path, replaced, what)
    clean = [
        row._replace(text=clean_text(row.text), label=declared[spelling.normal(row.label.strip())])
        for row in rows
    ]
    empty = [
        (row.line, told_blank(found.text)) for row, found in zip(clean, rows, strict=True) if not row.text
    ]
    raise_first("a text is empty", file, empty, "fill in the text, or delete the example with its label")
    lone = [(row.line, ascii(row.text)[:80]) for row in clean if not is_encodable(row.text)]
    raise_first("a text holds half a surrogate pair", file, lone, "write the character whole")
    return clean


def clean_text(text: str) -> str:
    """A text on one line: each run of tabs, line ends and control characters becomes a space; stripped.

    A byte order mark at either end goes too: files joined end to end carry them inside. Of a text of
    invisible characters alone nothing is left.
    """
    clean = RUNS.sub(" ", text).strip().strip("\ufeff").strip()
    return "" if is_blank(clean) else clean


def is_encodable(text: str) -> bool:
    """Whether a text can be written: half a surrogate pair, as JSON can hold it, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_size(name: str, definition: dict[str, Any], split: str, examples: Examples) -> None:
    if len(examples) < 2:
        raise SeedbedError(
            f"the {split} split of {name!r} has fewer than two examples",
            where=f"config, datasets.{name}.files.{split}: {definition['files'][split]}",
            found=f"{len(examples)} examples",
            hint="give every split examples of each class",
        )


def _check_classes(name: str, definition: dict[str, Any], splits: dict[str, Examples]) -> None:
    labels = definition["labels"]
    for split, examples in splits.items():
        counts = collections.Counter(example["label"] for example in examples)
        absent = [label for index, label in enumerate(labels) if not counts[index]]
        if absent and split == "train":
            raise SeedbedError(
                f"a class has no training example in {name!r}",
                where=f"config, datasets.{name}.files.train: {definition['files']['train']}",
                found=f"none of {', '.join(absent)}; {_counted(examples, labels)}",
                hint=f"add examples, or take the label out of datasets.{name}.labels",
            )
        if absent:
            log.warning("%s, %s: no example of %s", name, split, ", ".join(absent))


# --- writing ----------------------------------------------------------------------------------------------


def _write_split(folder: Path, split: str, examples: Examples) -> None:
    with atomic_open(folder / f"{split}.text") as texts, atomic_open(folder / f"{split}.label") as classes:
        for example in examples:
            texts.write(f"{example['text']}\n")
            classes.write(f"{example['label']}\n")
    write_jsonl(folder / f"{split}.jsonl", examples)


def _described(examples: Examples, labels: Sequence[str]) -> str:
    words = [len(example["text"].split()) for example in examples]
    return (
        f"{len(examples)} examples ({_counted(examples, labels)}); "
        f"words: {min(words)} to {max(words)}, median {statistics.median(words):g}"
    )


def _counted(examples: Examples, labels: Sequence[str]) -> str:
    counts = collections.Counter(labels[example["label"]] for example in examples)
    return ", ".join(f"{label}: {count}" for label, count in sorted(counts.items()))
