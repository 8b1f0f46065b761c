"""Questions with answers, the examples of generation: read, checked, drawn in groups, made into prompts.

`preparation.prepare` calls the functions with the same names here and in `labelled_texts`. A fault in a file
is an error with the first place and the number of others. Harmless faults (byte order mark, CRLF, control
characters, spaces around a text) are corrected and logged. Line ends inside a text stay.
"""

import collections
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seedbed.core.errors import SeedbedError
from seedbed.core.splits import LEAST_EXAMPLES
from seedbed.data import clusters
from seedbed.data.readers.files import Place, describe_blank, raise_first
from seedbed.data.reading import read_records
from seedbed.data.splitting import (
    connected,
    divided,
    draw_groups,
    draw_nearest,
    split_size,
)
from seedbed.data.texts import CONTROL, CR, clean_lines, fill_template, is_encodable, normalise

log = logging.getLogger(__name__)

PARTS = ("question", "answer", "context")

Examples = list[dict[str, Any]]
Splits = Mapping[str, Examples]


class Parts(NamedTuple):
    """One example of a file: its place, and its parts by name."""

    place: Place
    parts: dict[str, Any]


# --- reading ----------------------------------------------------------------------------------------------


def read_split(
    name: str, definition: Mapping[str, Any], split: str, manifest: str | Path
) -> tuple[Examples, dict[str, Any]]:
    """Read and check the examples of one split's file.

    Returns:
        {"id", "text": the prompt without the answer, "question", "context" (or None), "answer"} for each
        example, and its "cluster" where the dataset has a column of clusters; and nothing for splits.json.

    Raises:
        SeedbedError: see `preparation.prepare`.
    """
    columns = {part: name for part, name in definition["columns"].items() if name is not None}
    records = [
        Parts(record.place, {part: record.cells[column] for part, column in columns.items()})
        for _, record in read_records(name, definition, split, manifest)
    ]
    _check_strings(records)
    names: list[dict[str, str]] = [{} for _ in records]
    if clusters.KEY in columns:
        found = [(place, parts.pop(clusters.KEY)) for place, parts in records]
        names = [{clusters.KEY: cluster} for cluster in clusters.cleaned(found, columns[clusters.KEY])]
    return [
        {
            "id": f"{split}-{index}",
            "text": fill_template(definition["template"], parts["question"], parts["context"]),
            "question": parts["question"],
            "context": parts["context"] or None,
            "answer": parts["answer"],
            **names[index],
        }
        for index, (_, parts) in enumerate(_cleaned(records))
    ], {}


# --- checks -----------------------------------------------------------------------------------------------


def _check_strings(records: Sequence[Parts]) -> None:
    for part in PARTS:
        wrong = [
            (place, ascii(parts[part])[:80])
            for place, parts in records
            if part in parts and not isinstance(parts[part], str) and (part, parts[part]) != ("context", None)
        ]
        hint = f"give every {part} as one string, a number in quotes"
        raise_first(f"{_article(part)} is not a string", wrong, hint)


def _article(part: str) -> str:
    return f"an {part}" if part == "answer" else f"a {part}"


def _cleaned(records: Sequence[Parts]) -> list[Parts]:
    path = records[0].place.file.path if records else ""
    for what, pattern in (("control characters", CONTROL), ("CR line ends", CR)):
        if found := sum(len(pattern.findall(text or "")) for _, parts in records for text in parts.values()):
            log.info("%s: corrected %d %s inside texts", path, found, what)
    clean = [
        Parts(place, {part: clean_lines(parts.get(part) or "") for part in PARTS}) for place, parts in records
    ]
    for part in ("question", "answer"):
        empty = [
            (place, describe_blank(found.get(part) or ""))
            for (place, parts), (_, found) in zip(clean, records, strict=True)
            if not parts[part]
        ]
        hint = f"fill in the {part}, or delete the example"
        raise_first(f"{_article(part)} is empty", empty, hint)
    for part in PARTS:
        lone = [(place, ascii(parts[part])[:80]) for place, parts in clean if not is_encodable(parts[part])]
        raise_first(f"{_article(part)} has half a surrogate pair", lone, "write the whole character")
    lacking = sum(
        "context" in parts and not text["context"]
        for (_, parts), (_, text) in zip(records, clean, strict=True)
    )
    if lacking:
        log.warning("%s: %d of %d examples have no context", path, lacking, len(clean))
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


def drawable(definition: Mapping[str, Any]) -> tuple[str, ...]:
    """Test first, so that it does not depend on the size of validation."""
    return ("test", "validation")


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


def sampled(definition: Mapping[str, Any], splits: Splits) -> tuple[dict[str, Examples], dict[str, Any]]:
    """The splits as they are: questions are not sampled."""
    return dict(splits), {}


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
