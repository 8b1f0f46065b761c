"""Questions with answers, the examples of generation: read, checked, drawn in groups, made into prompts.

`preparation.prepare` calls the functions with the same names here and in `labelled_texts`. A fault in a file
is an error with the first place and the number of others. Harmless faults (byte order mark, CRLF, control
characters, spaces around a text) are corrected and logged. Line ends inside a text stay.
"""

import collections
import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json
from seedbed.data import clusters
from seedbed.data.readers import (
    SourceFile,
    Table,
    csv_table,
    describe_blank,
    json_items,
    json_lines,
    pick,
    raise_first,
    select_cells,
    tsv_table,
)
from seedbed.data.source_files import find_file
from seedbed.data.splitting import (
    LEAST_EXAMPLES,
    connected,
    divided,
    draw_groups,
    draw_nearest,
    split_size,
)
from seedbed.data.texts import CONTROL, CR, clean_lines, is_encodable, normalise

log = logging.getLogger(__name__)

DRAWN = ("test", "validation")  # test first, so that it does not depend on the size of validation
PARTS = ("question", "answer", "context")

Examples = list[dict[str, Any]]
Splits = Mapping[str, Examples]
Named = Sequence[tuple[str, str]]  # a part and the name of its column


class Record(NamedTuple):
    """One example of a file: its line (or item), and its parts by name."""

    line: int
    parts: dict[str, Any]


# --- reading ----------------------------------------------------------------------------------------------


def read_split(name: str, definition: Mapping[str, Any], split: str, manifest: str | Path) -> Examples:
    """Read and check the examples of one split's file.

    Returns:
        {"id", "text": the prompt without the answer, "question", "context" (or None), "answer"} for each
        example, and its "cluster" where the dataset has a column of clusters.

    Raises:
        SeedbedError: see `preparation.prepare`.
    """
    manifest = Path(manifest)
    key, path = f"datasets.{name}.files.{split}", definition["files"][split]
    file = find_file(path, key, read_json(manifest), manifest)
    columns = definition["columns"]
    named = [(part, columns[part]) for part in (*PARTS, clusters.KEY) if columns.get(part) is not None]
    records = READERS[definition["format"]](file, named, definition.get("delimiter", ","))
    if definition["format"] == "json":
        file = dataclasses.replace(file, unit="item")
    _check_strings(records, file)
    names: list[dict[str, str]] = [{} for _ in records]
    if clusters.KEY in columns:
        found = [(line, parts[clusters.KEY]) for line, parts in records]
        names = [{clusters.KEY: name} for name in clusters.cleaned(found, file, columns[clusters.KEY])]
    records = _cleaned(records, file)
    return [
        {
            "id": f"{split}-{index}",
            "text": fill_template(definition["template"], parts["question"], parts["context"]),
            "question": parts["question"],
            "context": parts["context"] or None,
            "answer": parts["answer"],
            **names[index],
        }
        for index, (_, parts) in enumerate(records)
    ]


def fill_template(template: str, question: str, context: str | None) -> str:
    """The prompt of a question; a missing context is empty."""
    return template.format(question=question, context=context or "")


def _read_objects(objects: Callable[[SourceFile], Any], file: SourceFile, named: Named) -> list[Record]:
    records = []
    place = dataclasses.replace(file, unit="item") if objects is json_items else file
    for number, found in objects(file):
        if "paragraphs" in found:
            raise SeedbedError(
                "the file is nested like SQuAD's",
                where=place.at(number),
                found=f"keys {', '.join(map(repr, found))}",
                hint="write one object per question, with its answer and its context",
            )
        parts = dict(zip((part for part, _ in named), pick(found, place, number, named), strict=True))
        records.append(Record(number, parts))
    return records


def _read_table(table: Table, file: SourceFile, named: Named) -> list[Record]:
    parts = [part for part, _ in named]
    rows = select_cells(table, file, named)
    return [Record(line, dict(zip(parts, cells, strict=True))) for line, cells in rows]


# the last argument is the delimiter of csv
READERS: dict[str, Callable[[SourceFile, Named, str], list[Record]]] = {
    "json": lambda file, named, _: _read_objects(json_items, file, named),
    "jsonl": lambda file, named, _: _read_objects(json_lines, file, named),
    "csv": lambda file, named, delimiter: _read_table(csv_table(file, delimiter), file, named),
    "tsv": lambda file, named, _: _read_table(tsv_table(file), file, named),
}


# --- checks -----------------------------------------------------------------------------------------------


def _check_strings(records: Sequence[Record], file: SourceFile) -> None:
    for part in PARTS:
        wrong = [
            (line, ascii(parts[part])[:80])
            for line, parts in records
            if part in parts and not isinstance(parts[part], str) and (part, parts[part]) != ("context", None)
        ]
        hint = f"give every {part} as one string, a number in quotes"
        raise_first(f"{_article(part)} is not a string", file, wrong, hint)


def _article(part: str) -> str:
    return f"an {part}" if part == "answer" else f"a {part}"


def _cleaned(records: Sequence[Record], file: SourceFile) -> list[Record]:
    for what, pattern in (("control characters", CONTROL), ("CR line ends", CR)):
        if found := sum(len(pattern.findall(text or "")) for _, parts in records for text in parts.values()):
            log.info("%s: corrected %d %s inside texts", file.path, found, what)
    clean = [
        Record(line, {part: clean_lines(parts.get(part) or "") for part in PARTS}) for line, parts in records
    ]
    for part in ("question", "answer"):
        empty = [
            (line, describe_blank(found.get(part) or ""))
            for (line, parts), (_, found) in zip(clean, records, strict=True)
            if not parts[part]
        ]
        hint = f"fill in the {part}, or delete the example"
        raise_first(f"{_article(part)} is empty", file, empty, hint)
    for part in PARTS:
        lone = [(line, ascii(parts[part])[:80]) for line, parts in clean if not is_encodable(parts[part])]
        raise_first(f"{_article(part)} has half a surrogate pair", file, lone, "write the whole character")
    lacking = sum(
        "context" in parts and not text["context"]
        for (_, parts), (_, text) in zip(records, clean, strict=True)
    )
    if lacking:
        log.warning("%s: %d of %d examples have no context", file.path, lacking, len(clean))
    return clean


# --- splits -----------------------------------------------------------------------------------------------


def groups(examples: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Ids of the examples of one context or, without a context, of one question; they stay together.

    Where examples have clusters, so do those of clusters that contexts or questions join.
    """
    names = [normalise(example["context"] or example["question"]) for example in examples]
    if _clustered(examples):
        names = connected([example[clusters.KEY] for example in examples], names)
    found: dict[str, list[str]] = collections.defaultdict(list)
    for name, example in zip(names, examples, strict=True):
        found[name].append(example["id"])
    return dict(found)


def _clustered(examples: Sequence[Mapping[str, Any]]) -> bool:
    return any(clusters.KEY in example for example in examples[:1])


def draw(
    name: str, definition: Mapping[str, Any], split: str, examples: Examples, total: int
) -> tuple[Examples, Examples]:
    """Divide training examples into (the rest, `split`), both in file order.

    Whole groups are drawn, by a hash of the seed and the group (`splitting.draw_groups`), so the draw depends
    neither on the order of the file nor on a library's random numbers.

    Args:
        name: the dataset's name in the config, for messages.
        definition: the dataset's resolved block; its `SPLIT_split` gives size and seed.
        split: test or validation.
        examples: the examples to draw from.
        total: number of examples of the training file; a size below 1 is a share of it.

    Raises:
        SeedbedError: the size is not a whole number or too large, or groups are too few or too large, so that
            a part would have fewer than two examples.
    """
    asked = definition[f"{split}_split"]
    key = f"config, datasets.{name}.{split}_split.size"
    wanted = split_size(key, total, asked["size"], split)
    together = groups(examples)
    choose, what = draw_groups, "context or question"
    if _clustered(examples):
        choose, what = draw_nearest, "cluster"
    chosen = choose({group: [0] * len(ids) for group, ids in together.items()}, [wanted], asked["seed"])
    drawn = {identifier for group in chosen for identifier in together[group]}
    if min(len(drawn), len(examples) - len(drawn)) < LEAST_EXAMPLES:
        raise SeedbedError(
            f"train of {name!r} has too few groups of examples to draw a {split} split",
            where=key,
            found=f"{wanted} of {len(examples)} examples requested, {len(drawn)} drawn and "
            f"{len(examples) - len(drawn)} left; {len(together)} groups of one {what}, "
            f"the smallest of {min(map(len, together.values()), default=0)}",
            hint=f"both need at least {LEAST_EXAMPLES} examples: change the size, add examples, or give a "
            f"file of the {split} split; examples of one group are drawn together or not at all",
        )
    if len(drawn) != wanted:
        log.warning(
            "%s: drew %d examples for %s instead of the requested %d, since groups stay together",
            *(name, len(drawn), split, wanted),
        )
    log.info(
        "%s: drew %d %s examples in %d groups from train, seed %d",
        *(name, len(drawn), split, len(chosen), asked["seed"]),
    )
    return divided(examples, drawn)


def check(name: str, definition: Mapping[str, Any], splits: Splits) -> None:
    """Check that validation and test have several clusters, where there are clusters; they lack no class.

    Raises:
        SeedbedError: one of them has a single cluster.
    """
    clusters.check(name, splits)


def compared(splits: Splits) -> dict[str, Examples]:
    """The examples for `find_duplicates`: text is question and context, label the answer."""
    return {
        split: [
            {
                "id": example["id"],
                "text": f"{example['question']}\n{example['context'] or ''}",
                "label": normalise(example["answer"]),
            }
            for example in examples
        ]
        for split, examples in splits.items()
    }


def composition(definition: Mapping[str, Any], examples: Examples) -> str:
    """The number of groups, in words."""
    return f"{len(groups(examples))} groups"


def lost(definition: Mapping[str, Any], kept: Examples) -> str:
    """The number of examples in `kept` if there are too few, in words; else empty."""
    return f"and {len(kept)} would stay" if len(kept) < LEAST_EXAMPLES else ""


def record(splits: Splits) -> dict[str, Any]:
    """Further keys of splits.json: number of examples and of groups in each split, and clusters if any."""
    return {
        "sizes": {split: len(examples) for split, examples in splits.items()},
        "groups": {split: len(groups(examples)) for split, examples in splits.items()},
    } | clusters.record(splits)


def write_more(folder: Path, definition: Mapping[str, Any], splits: Splits) -> None:
    """Questions need no further files."""
