"""Labelled texts, the examples of classification: read in several layouts, checked, drawn by class.

`preparation.prepare` calls the functions with the same names here and in `questions`. A fault in a file is an
error with the first place and the number of others. Harmless faults (byte order mark, CRLF, one blank line at
the end, line separators and control characters inside a text) are corrected and logged.
"""

import collections
import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core import spelling
from seedbed.core.characters import is_blank
from seedbed.core.errors import SeedbedError
from seedbed.core.files import atomic_open, write_json
from seedbed.core.spelling import nearest
from seedbed.core.splits import EMPTY_TEXTS, OTHER_LABELS, SAMPLE
from seedbed.data import clusters, labels
from seedbed.data.readers.files import Place, Record, describe_blank, joined, named_columns, raise_first
from seedbed.data.reading import read_records
from seedbed.data.splitting import draw_split, restored, sample
from seedbed.data.texts import CONTROL, PARTS, SEPARATOR, TEXT, TEXT_PAIR, clean_line, is_encodable, parts

log = logging.getLogger(__name__)

MOST_LABELS = 20  # in a message; a column with more is hardly one of labels

FILL_IN = "fill in the text, or delete the example; empty_texts: drop leaves such examples out"
NOUNS = {TEXT: "a text", TEXT_PAIR: "a second text"}  # in messages

Examples = list[dict[str, Any]]
Splits = Mapping[str, Examples]


# --- reading ----------------------------------------------------------------------------------------------


def read_split(
    name: str, definition: Mapping[str, Any], split: str, manifest: str | Path
) -> tuple[Examples, dict[str, Any]]:
    """Read and check the examples of one split: {"id", "text", "label": index of the declared label}.

    An example of a pair has its "text_pair", too; where the dataset has a column of clusters, its "cluster".

    Returns:
        The examples, and what splits.json says of the split: with `other_labels: drop` the number of examples
        without a declared label, and how often the commonest of these labels occur; with `empty_texts: drop`
        the number of other examples without a text.

    Raises:
        SeedbedError: see `preparation.prepare`.
    """
    found = read_records(name, definition, split, manifest)
    column, classes = definition["columns"]["label"], labels.Classes(definition)
    _refuse_lists([record for _, record in found], column)
    labelled = [(index, record, classes.find(record.cells[column])) for index, record in found]
    others = [record for _, record, label in labelled if label is None]
    noted = {}
    if definition.get("other_labels") == "drop":
        noted = {OTHER_LABELS: _dropped(name, split, [record.cells[column] for record in others], len(found))}
    else:
        _refuse_others(others, [record for _, record in found], f"datasets.{name}.labels", definition)
    labelled = [row for row in labelled if row[2] is not None]
    examples, emptied = read_texts(name, definition, split, labelled)
    return examples, noted | emptied


def read_texts(
    name: str, definition: Mapping[str, Any], split: str, labelled: Sequence[tuple[int, Record, Any]]
) -> tuple[Examples, dict[str, Any]]:
    """The examples of records with a label each: both texts of a pair are clean, and a cluster is noted.

    Returns:
        As `read_split`; with `empty_texts: drop` the number of examples left out for splits.json.

    Raises:
        SeedbedError: a text is missing, no string, blank, or cannot be written as UTF-8.
    """
    noted = {}
    columns = {part: names for part in PARTS if (names := named_columns(definition, part))}
    if definition.get("empty_texts") == "drop":
        total = len(labelled)
        labelled = [row for row in labelled if _has_texts(row[1], columns.values())]
        noted[EMPTY_TEXTS] = _dropped_texts(name, split, total - len(labelled), total)
    texts = {
        part: clean_texts([record for _, record, _ in labelled], names, NOUNS[part])
        for part, names in columns.items()
    }
    examples = [
        {"id": f"{split}-{index}", **dict(zip(texts, found, strict=True)), "label": label}
        for (index, _, label), *found in zip(labelled, *texts.values(), strict=True)
    ]
    if cluster := definition["columns"].get(clusters.KEY):
        cells = [(record.place, record.cells[cluster]) for _, record, _ in labelled]
        for example, own in zip(examples, clusters.cleaned(cells, cluster), strict=True):
            example[clusters.KEY] = own
    return examples, noted


# --- labels -----------------------------------------------------------------------------------------------


def _refuse_lists(records: Sequence[Record], column: str) -> None:
    lists = [
        (rec.place, labels.label_text(rec.cells[column]))
        for rec in records
        if isinstance(rec.cells[column], list)
    ]
    raise_first(
        "a label is a list",
        lists,
        f"give one label for each text; for texts with any number of labels, set {labels.FOR_SETS}",
    )


def _dropped(name: str, split: str, values: Sequence[Any], total: int) -> dict[str, Any]:
    """What splits.json says of the examples without a declared label."""
    commonest = dict(collections.Counter(map(labels.label_text, values)).most_common(MOST_LABELS))
    if values:
        log.warning(
            "%s, %s: dropped %d of %d examples, whose labels are none of the declared ones: %s",
            *(name, split, len(values), total),
            ", ".join(f"{label or '(empty)'}: {count}" for label, count in commonest.items()),
        )
    return {"number": len(values), "commonest": commonest}


def _refuse_others(
    others: Sequence[Record], records: Sequence[Record], key: str, definition: Mapping[str, Any]
) -> None:
    """Refuse examples without a label, then those whose label is not declared."""
    column = definition["columns"]["label"]
    wrong = [(record.label_place or record.place, record.cells[column]) for record in others]
    missing = [(place, repr(labels.label_text(value))) for place, value in wrong if labels.is_missing(value)]
    raise_first(
        "a label is missing",
        missing,
        "fill in the label, or delete the example; other_labels: drop leaves such examples out",
    )
    if not wrong:
        return
    found = collections.Counter(labels.label_text(record.cells[column]) for record in records)
    unknown = {labels.label_text(value) for _, value in wrong}
    declared = labels.declared_values(definition)
    # if none of the labels is declared, the nearest declared one would not help
    cutoff = 0.5 if len(unknown) < len(found) else 1
    close = nearest(labels.label_text(wrong[0][1]), declared, cutoff)
    raise_first(
        "a label is not among the declared ones",
        [(place, repr(labels.label_text(value))) for place, value in wrong],
        f"{close}{labels.about_quotes(sorted(unknown), declared)}declared labels: "
        f"{labels.describe(definition)}; correct the file or {key}"
        f"{'' if 'groups' in definition else _as_they_stand(found, unknown, declared, key)}. other_labels: "
        "drop leaves such examples out",
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


# --- texts ------------------------------------------------------------------------------------------------


def _has_texts(record: Record, columns: Iterable[Sequence[str]]) -> bool:
    """Whether neither the text of a record is null or empty nor, in a pair, the second text."""
    return all(any(_is_filled(record.cells[name]) for name in names) for names in columns)


def _is_filled(cell: Any) -> bool:
    return cell is not None and (not isinstance(cell, str) or bool(clean_line(cell)))


def _dropped_texts(name: str, split: str, number: int, total: int) -> dict[str, int]:
    """What splits.json says of the examples without a text."""
    if number:
        log.warning("%s, %s: dropped %d of %d examples without a text", name, split, number, total)
    return {"number": number}


def clean_texts(
    records: Sequence[Record], columns: Sequence[str], noun: str, remedy: str = FILL_IN
) -> list[str]:
    """The clean text of each record, of one column or of several joined by a space.

    Args:
        records: those of a file.
        columns: of the text.
        noun: see NOUNS.
        remedy: of a text that is missing.

    Raises:
        SeedbedError: a text is missing, no string, blank, or cannot be written as UTF-8.
    """
    cells = [[record.cells[name] for name in columns] for record in records]
    if len(columns) > 1:
        cells = [["" if part is None else part for part in each] for each in cells]
    places = [record.place for record in records]
    null = [(place, "null") for place, each in zip(places, cells, strict=True) if None in each]
    raise_first(f"{noun} is null", _counted(null, len(places)), remedy)
    wrong = [
        (place, labels.label_text(part))
        for place, each in zip(places, cells, strict=True)
        for part in each
        if not isinstance(part, str)
    ]
    raise_first(
        f"{noun} is not a string", wrong, "give every text as a string: in JSON in quotes, in Excel as text"
    )
    path = places[0].file.path if places else ""
    for number, column in enumerate(columns if len(columns) > 1 else ()):
        if count := sum(is_blank(each[number]) for each in cells):
            log.info("%s: %r is empty in %d of %d examples", path, column, count, len(cells))
    return _clean(places, list(map(joined, cells)), noun, remedy)


def _counted(places: Sequence[tuple[Place, str]], total: int) -> list[tuple[Place, str]]:
    """Places and what was found there, with the number of such examples where there are several."""
    told = f" in {len(places):,} of {total:,} examples" if len(places) > 1 else ""
    return [(place, f"{found}{told}") for place, found in places]


def _clean(places: Sequence[Place], texts: Sequence[str], noun: str, remedy: str) -> list[str]:
    path = places[0].file.path if places else ""
    for pattern, what in (
        (SEPARATOR, "tabs, line ends and line separators"),
        (CONTROL, "control characters"),
    ):
        if replaced := sum(len(pattern.findall(text.strip())) for text in texts):
            log.info("%s: %d %s inside texts became spaces", path, replaced, what)
    clean = list(map(clean_line, texts))
    empty = [
        (place, describe_blank(found))
        for place, found, text in zip(places, texts, clean, strict=True)
        if not text
    ]
    raise_first(f"{noun} is empty", _counted(empty, len(places)), remedy)
    lone = [
        (place, ascii(text)[:80]) for place, text in zip(places, clean, strict=True) if not is_encodable(text)
    ]
    raise_first(f"{noun} has half a surrogate pair", lone, "write the whole character")
    return clean


# --- splits -----------------------------------------------------------------------------------------------


def drawable(definition: Mapping[str, Any]) -> tuple[str, ...]:
    """The splits whose origin splits.json records: validation, and test if it is drawn, which comes first."""
    return ("validation",) if definition["files"]["test"] is not None else ("test", "validation")


def draw(
    name: str, definition: Mapping[str, Any], split: str, examples: Examples, total: int
) -> tuple[Examples, Examples]:
    """Divide training examples into train and another split, with each class in proportion.

    Raises:
        SeedbedError: a class has no example, or a split of the requested size cannot be drawn.
    """
    _check_train(name, definition, examples)
    asked = definition[f"{split}_split"]
    threshold = definition["near_duplicates"]
    return draw_split(name, split, examples, definition["labels"], asked, total, threshold)


def sampled(definition: Mapping[str, Any], splits: Splits) -> tuple[dict[str, Examples], dict[str, Any]]:
    """The splits with as many examples as `sample` asks for, and what splits.json says of it."""
    asked = definition.get("sample")
    if not asked:
        return dict(splits), {}
    kept, recorded = dict(splits), {"seed": asked["seed"]}
    for split, examples in splits.items():
        if asked[split] is None:
            continue
        kept[split] = sample(examples, asked[split], asked["seed"])
        ids = [example["id"] for example in kept[split]]
        recorded[split] = {"size": asked[split], "of": len(examples), "ids": ids}
        log.info("sample of %s: %d of %d examples, seed %d", split, len(ids), len(examples), asked["seed"])
    return kept, {SAMPLE: recorded}


def sampled_from_strata(
    definition: Mapping[str, Any], splits: Splits, in_strata: Callable[[Examples], Examples]
) -> tuple[dict[str, Examples], dict[str, Any]]:
    """As `sampled`, of each stratum in proportion; `in_strata` puts its index in place of the label."""
    if not definition.get("sample"):
        return dict(splits), {}
    kept, recorded = sampled(definition, {split: in_strata(examples) for split, examples in splits.items()})
    return {split: restored(examples, kept[split]) for split, examples in splits.items()}, recorded


def check(name: str, definition: Mapping[str, Any], splits: Splits) -> None:
    """Check that train and a given test split have examples of each class; log classes that others lack.

    Raises:
        SeedbedError: train or a given test split lacks a class, or validation or test has a single cluster.
    """
    for part in PARTS:
        if len(columns := named_columns(definition, part)) > 1:
            log.info("%s: the columns %s are joined by a space into one text", name, ", ".join(columns))
    _check_train(name, definition, splits["train"])
    clusters.check(name, splits)
    for split, examples in splits.items():
        if absent := _absent(definition, examples):
            log.warning("%s, %s: no example of %s", name, split, ", ".join(absent))
    if definition["files"]["test"] is not None and definition.get("absent_classes") != "allow":
        _check_test(name, definition, splits["test"])


def _check_test(name: str, definition: Mapping[str, Any], examples: Examples) -> None:
    hint = "add examples; or remove the label, with other_labels: drop for its training examples; or set "
    hint += "absent_classes: allow, and how well it is found is not measured"
    _refuse_absent(name, definition, "test", "test", examples, hint)


def _check_train(name: str, definition: Mapping[str, Any], examples: Examples) -> None:
    hint = f"add examples, or remove the label from datasets.{name}.labels"
    _refuse_absent(name, definition, "train", "training", examples, hint)


def _refuse_absent(
    name: str, definition: Mapping[str, Any], split: str, adjective: str, examples: Examples, hint: str
) -> None:
    if absent := _absent(definition, examples):
        raise SeedbedError(
            f"a class has no {adjective} example in {name!r}",
            where=f"config, datasets.{name}.files.{split}: {definition['files'][split]}",
            found=f"none of {', '.join(absent)}; {composition(definition, examples)}",
            hint=hint,
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

    A tab parts the texts of a pair in SPLIT.text.
    labels.json lists the labels, and as `names` the classes' names in runs (`SharedFolders.classes_of`).
    """
    for split, examples in splits.items():
        with atomic_open(folder / f"{split}.text") as texts, atomic_open(folder / f"{split}.label") as labels:
            for example in examples:
                texts.write("\t".join(parts(example)) + "\n")
                labels.write(f"{example['label']}\n")
    write_json(folder / "labels.json", {"labels": definition["labels"], "names": definition["label_names"]})
