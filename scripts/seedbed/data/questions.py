"""Questions with their answers: read, checked without mercy, divided into splits, written with their prompts.

Whatever is wrong with a file is an error that names the first place and says how many more there are; what
is harmless (byte order mark, CRLF, control characters, spaces around a text) is mended and logged. Line ends
inside a text stay.
"""

import collections
import dataclasses
import logging
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seedbed.core.characters import is_blank
from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, write_json, write_jsonl
from seedbed.core.splits import SPLITS
from seedbed.data.datasets import CONTROL, find_file, is_encodable
from seedbed.data.duplicates import find_duplicates, leaking_train_examples, normalise, write_duplicates
from seedbed.data.question_template import LEAST, fill
from seedbed.data.readers import (
    SourceFile,
    Table,
    csv_table,
    json_items,
    json_lines,
    pick,
    raise_first,
    select_cells,
    told_blank,
    tsv_table,
)
from seedbed.data.splitting import draw_groups, split_size

log = logging.getLogger(__name__)

PARTS = ("question", "answer", "context")
LINE_END = re.compile(r"\r\n?")

Examples = list[dict[str, Any]]
Named = Sequence[tuple[str, str]]  # a part and the name of its column


class Record(NamedTuple):
    """What stands in a file for one example: its line (or item), and its parts by their names."""

    line: int
    parts: dict[str, Any]


def prepare(
    name: str,
    definition: Mapping[str, Any],
    manifest: str | Path,
    folder: str | Path,
    stamp: Mapping[str, Any],
) -> None:
    """Check a dataset of questions and write its splits into `folder`.

    Writes, for each split, SPLIT.jsonl ({"id", "text": the prompt without the answer, "question", "context"
    (None where there is none), "answer"}), in the order of the file, and:

    - splits.json: how the validation and the test split came about ("given", or size and seed of the draw),
      the ids that were drawn, the examples read from each file, `sizes` and `groups` (of examples that stay
      together) of each split as written, and the training examples dropped as leaks;
    - duplicates.csv: see `seedbed.data.duplicates`, of question and context together; `same_label` tells
      whether the answers are the same. It is computed before leaks are dropped;
    - fingerprint.json: `stamp`, as it is.

    An id is "SPLIT-N", N the example's index in the file of that split; a drawn example keeps that of train.

    Args:
        name: the dataset's name in the config, for messages.
        definition: the resolved block of the config, whose template is already checked.
        manifest: the manifest of its source; the source's files lie in `files` beside it.
        folder: where the files go; nothing is written before everything is checked.
        stamp: what fingerprint.json holds.

    Raises:
        SeedbedError: a file is missing or anything in it is not as declared; a split of the size asked for
            cannot be drawn; all training examples are leaks.
    """
    splits = {
        split: read_split(name, definition, split, manifest)
        for split in SPLITS
        if definition["files"][split] is not None
    }
    read = {split: len(examples) for split, examples in splits.items()}
    for split, examples in splits.items():
        _check_size(f"config, datasets.{name}.files.{split}: {definition['files'][split]}", split, examples)
    record: dict[str, Any] = {"validation": "given", "test": "given", "ids": {}}
    for split in ("test", "validation"):  # the test split first: it stays when another size is validated on
        if split not in splits:
            asked = definition[f"{split}_split"]
            splits["train"], splits[split] = draw_split(name, splits["train"], split, read["train"], asked)
            record[split] = {"size": asked["size"], "seed": asked["seed"], "drawn_from": "train"}
            record["ids"][split] = [example["id"] for example in splits[split]]
    splits = {split: splits[split] for split in SPLITS}
    duplicates = find_duplicates(_compared(splits), definition["near_duplicates"])
    dropped = _drop_leaks(name, splits, duplicates) if definition["drop_leaks"] else []
    folder = Path(folder)
    for split, examples in splits.items():
        write_jsonl(folder / f"{split}.jsonl", examples)
        log.info("%s, %s: %s", name, split, _described(examples))
    write_duplicates(folder / "duplicates.csv", duplicates)
    record |= {
        "read": read,
        "sizes": {split: len(examples) for split, examples in splits.items()},
        "groups": {split: len(groups(examples)) for split, examples in splits.items()},
        "dropped_leaks": dropped,
    }
    write_json(folder / "splits.json", record)
    write_json(folder / "fingerprint.json", stamp)


def _check_size(where: str, split: str, examples: Examples) -> None:
    if len(examples) < LEAST:
        raise SeedbedError(
            f"the {split} split has fewer than {LEAST} examples",
            where=where,
            found=f"{len(examples)} examples",
            hint="give every split more examples",
        )


def _compared(splits: Mapping[str, Examples]) -> dict[str, Examples]:
    """The examples as `find_duplicates` takes them: text is question and context, label the answer."""
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


def _drop_leaks(name: str, splits: dict[str, Examples], duplicates: list[dict[str, Any]]) -> list[str]:
    """Take the leaks out of splits["train"] and return their ids, in file order."""
    leaking = leaking_train_examples(duplicates)
    kept = [example for example in splits["train"] if example["id"] not in leaking]
    dropped = [example["id"] for example in splits["train"] if example["id"] in leaking]
    if len(kept) < LEAST:
        raise SeedbedError(
            f"nearly all training examples of {name!r} also stand in validation or test",
            where=f"config, datasets.{name}.drop_leaks",
            found=f"{len(dropped)} of {len(splits['train'])} training examples would go",
            hint="look at how the splits were made; with drop_leaks: false they stay in",
        )
    splits["train"] = kept
    log.warning(
        "%s: dropped %d training examples that stand, identical or nearly, in validation or test, too",
        name,
        len(dropped),
    )
    return dropped


def _described(examples: Examples) -> str:
    words = {part: [len((example[part] or "").split()) for example in examples] for part in PARTS}
    told = ", ".join(
        f"{part} {statistics.median(counts):g} (up to {max(counts)})"
        for part, counts in words.items()
        if any(counts)
    )
    return f"{len(examples)} examples in {len(groups(examples))} groups; median words: {told}"


# --- reading ----------------------------------------------------------------------------------------------


def read_split(name: str, definition: Mapping[str, Any], split: str, manifest: str | Path) -> Examples:
    """Read and check the examples of one split's file, with their prompts.

    Raises:
        SeedbedError: as `prepare`.
    """
    manifest = Path(manifest)
    key, path = f"datasets.{name}.files.{split}", definition["files"][split]
    file = find_file(path, key, read_json(manifest), manifest)
    columns = definition["columns"]
    named = [(part, columns[part]) for part in PARTS if columns[part] is not None]
    records = READERS[definition["format"]](file, named, definition.get("delimiter", ","))
    if definition["format"] == "json":
        file = dataclasses.replace(file, unit="item")
    _check_strings(records, file)
    records = _cleaned(records, file)
    return [
        {
            "id": f"{split}-{index}",
            "text": fill(definition["template"], parts["question"], parts["context"]),
            "question": parts["question"],
            "context": parts["context"] or None,
            "answer": parts["answer"],
        }
        for index, (_, parts) in enumerate(records)
    ]


def _read_objects(objects: Callable[[SourceFile], Any], file: SourceFile, named: Named) -> list[Record]:
    records = []
    place = dataclasses.replace(file, unit="item") if objects is json_items else file
    for number, found in objects(file):
        if "paragraphs" in found:
            raise SeedbedError(
                "the file is nested, as SQuAD's",
                where=place.at(number),
                found=f"keys {', '.join(map(repr, found))}",
                hint="write one object a question, with its answer and its context",
            )
        parts = dict(zip((part for part, _ in named), pick(found, place, number, named), strict=True))
        records.append(Record(number, parts))
    return records


def _read_table(table: Table, file: SourceFile, named: Named) -> list[Record]:
    parts = [part for part, _ in named]
    rows = select_cells(table, file, named)
    return [Record(line, dict(zip(parts, cells, strict=True))) for line, cells in rows]


# the last argument is what stands between two cells of csv
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
    for what, pattern in (("control characters", CONTROL), ("CR line ends", LINE_END)):
        if found := sum(len(pattern.findall(text or "")) for _, parts in records for text in parts.values()):
            log.info("%s: mended %d %s inside texts", file.path, found, what)
    clean = [
        Record(line, {part: clean_text(parts.get(part) or "") for part in PARTS}) for line, parts in records
    ]
    for part in ("question", "answer"):
        empty = [
            (line, told_blank(found.get(part) or ""))
            for (line, parts), (_, found) in zip(clean, records, strict=True)
            if not parts[part]
        ]
        hint = f"fill in the {part}, or delete the example"
        raise_first(f"{_article(part)} is empty", file, empty, hint)
    for part in PARTS:
        lone = [(line, ascii(parts[part])[:80]) for line, parts in clean if not is_encodable(parts[part])]
        raise_first(f"{_article(part)} holds half a surrogate pair", file, lone, "write the character whole")
    lacking = sum(
        "context" in parts and not text["context"]
        for (_, parts), (_, text) in zip(records, clean, strict=True)
    )
    if lacking:
        log.warning("%s: %d of %d examples have no context", file.path, lacking, len(clean))
    return clean


def clean_text(text: str) -> str:
    """A text without control characters (spaces stand for them), CR and what stands around it; of a text of
    invisible characters alone nothing is left."""
    clean = CONTROL.sub(" ", LINE_END.sub("\n", text)).strip().strip("\ufeff").strip()
    return "" if is_blank(clean) else clean


# --- the draw ---------------------------------------------------------------------------------------------


def groups(examples: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Ids of the examples that stay together: of one context, or, without a context, of one question."""
    found: dict[str, list[str]] = collections.defaultdict(list)
    for example in examples:
        found[normalise(example["context"] or example["question"])].append(example["id"])
    return dict(found)


def draw_split(
    name: str, examples: Examples, split: str, total: int, asked: Mapping[str, Any]
) -> tuple[Examples, Examples]:
    """Divide training examples into those that stay and those of `split`, both in file order.

    Groups are drawn whole, by a hash of the seed and the group, as `splitting.draw_groups` does: the draw
    depends neither on the order of the file nor on a library's random numbers.

    Args:
        name: the dataset's name in the config, for messages.
        examples: those that can be drawn.
        split: test or validation.
        total: examples of the training file, of which `asked["size"]` below 1 is a share.
        asked: `size` and `seed`.

    Raises:
        SeedbedError: the size is no whole number or too large, or one of the two would have fewer than two
            examples, since groups are too few or too large.
    """
    key = f"config, datasets.{name}.{split}_split.size"
    wanted = split_size(key, total, asked["size"], split)
    together = groups(examples)
    chosen = draw_groups({group: [0] * len(ids) for group, ids in together.items()}, [wanted], asked["seed"])
    drawn = {identifier for group in chosen for identifier in together[group]}
    if min(len(drawn), len(examples) - len(drawn)) < LEAST:
        raise SeedbedError(
            f"there are not enough groups of examples to draw a {split} split from train of {name!r}",
            where=key,
            found=f"{wanted} of {len(examples)} examples asked for, {len(drawn)} drawn and "
            f"{len(examples) - len(drawn)} left; {len(together)} groups of one context or question, "
            f"the smallest of {min(map(len, together.values()), default=0)}",
            hint=f"both need {LEAST} examples at least: change the size, add examples, or give a file of the "
            f"{split} split; examples of one group are drawn together or not at all",
        )
    if len(drawn) != wanted:
        log.warning(
            "%s: drew %d examples for %s where %d were asked for, as groups stay together",
            *(name, len(drawn), split, wanted),
        )
    log.info(
        "%s: drew %d %s examples in %d groups from train, seed %d",
        *(name, len(drawn), split, len(chosen), asked["seed"]),
    )
    return (
        [example for example in examples if example["id"] not in drawn],
        [example for example in examples if example["id"] in drawn],
    )
