"""Check the data for oddities before training: each check gets a count, a share and examples.

A check that finds nothing keeps its row with count 0, so that readers see all checks. The audit never changes
the data or stops the workflow; `warnings` makes sentences of alarming results.
"""

import functools
import html.entities
import itertools
import json
import logging
import re
import statistics
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from seedbed.core.characters import escaped, is_blank
from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl, write_rows
from seedbed.core.naming import UNK
from seedbed.core.rows import read_csv
from seedbed.core.splits import EMPTY_TEXTS, OTHER_LABELS, SAMPLE, SPLITS
from seedbed.core.truncation import Pair
from seedbed.core.wording import Words
from seedbed.core.words import join
from seedbed.data import clusters
from seedbed.data.boilerplate import one_line, shared_strings
from seedbed.data.duplicates import WORD, leaking_train_examples, read_duplicates
from seedbed.data.texts import TEXT_PAIR, normalise, parts, whole

WORDS = Words("data/audit")
log = logging.getLogger(__name__)

COLUMNS = (
    "dataset", "split", "model", "check", "count", "share", "examples",
    "kind", "label", "text", "limit", "limited_by",
)  # fmt: skip
# values of the column `kind`, for checks with parameters in columns of their own
CLASS, SHARED, TRUNCATED, LEFT_OUT = "class", "shared text", "truncated", "left out"
MODEL_LIMIT, DATASET_LIMIT = "the model", "the dataset"  # no recipe has this name: names have no spaces
UNKNOWN = "with unknown tokens"
CLUSTERS = "clusters"
OTHER_LABEL, NO_TEXT, NOT_SAMPLED = "dropped: another label", "dropped: no text", "left out by the sample"
LISTED = 5  # ids in the column of examples
SHORT_WORDS = 3  # a review of fewer words says little; it also has no 3-gram, see duplicates
SHOWN = 80  # characters of a shared string
CLASSES_SHOWN = 10  # classes with a row for a shared string
LONG_CHARACTERS = 10_000  # some 2,000 words; reviews have about 100, so this is probably a pasted page

Row = dict[str, Any]


class TokenRow(NamedTuple):
    """Counts of a tokenized text or pair: `length` before truncation, with special tokens; `pieces` after it.

    For a prompt and its answer: `length` of both before the context was shortened, `pieces` after that.
    """

    id: str
    length: int
    pieces: int
    unknown: int


@dataclass(frozen=True)
class Check:
    """The result of a check on a split.

    Attributes:
        name: for people.
        count: number of examples, unless the name says otherwise.
        of: denominator of the share, or None.
        examples: ids.
        kind: CLASS, SHARED, TRUNCATED or LEFT_OUT; empty for a check without parameters.
        label: name of the class (CLASS, SHARED).
        text: the shared string, as shown (SHARED).
        limit: tokens (TRUNCATED, LEFT_OUT).
        limited_by: origin of the limit: MODEL_LIMIT, DATASET_LIMIT or recipes.
    """

    name: str
    count: int
    of: int | None
    examples: Sequence[str] = ()
    kind: str = ""
    label: str = ""
    text: str = ""
    limit: int | None = None
    limited_by: str = ""


@dataclass(frozen=True)
class Dataset:
    """The content of a dataset's files.

    Args:
        name: its name in the config.
        splits: examples {"id", "text", "label": class index, 0 and 1 for each label of a set, or a number} by
            split, after leaks were dropped; the text of a pair is both texts; that of a question is context,
            question and answer, without a label.
        label_names: name of each class; empty for numbers and for questions.
        dropped: ids of the training examples that were dropped as leaks.
        duplicates: rows of duplicates.csv, found before leaks were dropped.
        tokens: by model and split, in the order of the examples; questions that are too long are missing.
        limits: for each model, the longest input in tokens by origin: MODEL_LIMIT or a lower DATASET_LIMIT,
            and recipes with a lower limit.
        clusters: ids by split and cluster; empty where the dataset has no column of clusters.
        reduced: by check and split, how many examples were left out before, and of how many.
    """

    name: str
    splits: Mapping[str, Sequence[Row]]
    label_names: Sequence[str]
    dropped: Sequence[str]
    duplicates: Sequence[Row]
    tokens: Mapping[str, Mapping[str, Sequence[TokenRow]]]
    limits: Mapping[str, Mapping[str, int]]
    clusters: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    reduced: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)

    def found_in(self, split: str) -> int:
        """Number of examples of a split before leaks were dropped."""
        return len(self.splits[split]) + (len(self.dropped) if split == "train" else 0)

    @functools.cached_property
    def shared(self) -> list[tuple[str, dict[str, list[Row]]]]:
        """The long strings that texts share, commonest first: each as shown, with its examples by split."""
        lines = {split: [one_line(row["text"]) for row in rows] for split, rows in self.splits.items()}
        groups: dict[tuple[str, Any], list[str]] = {}
        for split, rows in self.splits.items():
            for row, line in zip(rows, lines[split], strict=True):
                # texts of one class; sets of labels are many, and have few texts each
                group = row.get("label") if isinstance(row.get("label"), int) else None
                groups.setdefault((split, group), []).append(line)
        found = [
            (
                _shown(string),
                {
                    split: [row for row, line in zip(rows, lines[split], strict=True) if string in line]
                    for split, rows in self.splits.items()
                },
            )
            for string in shared_strings(groups)
        ]
        return sorted(found, key=lambda each: -sum(map(len, each[1].values())))

    @property
    def distinguished_by(self) -> str:
        """The part in which two examples of the same text may differ."""
        return "label" if self.is_labelled else "answer"

    @property
    def is_labelled(self) -> bool:
        """Whether its examples are labelled texts: with a class, or with a number."""
        return "label" in self.splits["train"][0]


def audit(
    folders: Sequence[str | Path],
    models: Mapping[str, str | Path],
    recipes: Mapping[str, Mapping[str, Any]],
    output: str | Path,
    names: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[Dataset]:
    """Write data_audit.csv and log its warnings; return the datasets, for the figure.

    Args:
        folders: the datasets' folders, .../DATASET.
        models: model.json of each model, by name.
        recipes: resolved recipes by name; their `max_positions` may be lower than the model's.
        output: data_audit.csv.
        names: names of each dataset's classes for people; by default those of its labels.json.

    Raises:
        SeedbedError: texts and tokens are of different examples.
    """
    datasets = [read_dataset(folder, models, recipes) for folder in folders]
    datasets = [replace(each, label_names=names.get(each.name, each.label_names)) for each in datasets]
    rows = [row for dataset in datasets for row in audit_dataset(dataset)]
    write_rows(output, COLUMNS, rows)
    for sentence in warnings(rows):
        log.warning("%s", sentence)
    return datasets


def read_dataset(
    folder: str | Path, models: Mapping[str, str | Path], recipes: Mapping[str, Mapping[str, Any]]
) -> Dataset:
    """Read the files of a dataset; for arguments and errors see `audit`."""
    folder = Path(folder)
    splits = {split: read_jsonl(folder / f"{split}.jsonl") for split in SPLITS}
    labelled = "label" in splits["train"][0]
    as_text = _labelled_as_text if labelled else _question_as_text
    splits = {split: list(map(as_text, examples)) for split, examples in splits.items()}
    tokens = {
        model: {
            split: _read_tokens(folder / model / "tokens" / f"{split}.jsonl", splits[split], labelled, path)
            for split in SPLITS
        }
        for model, path in models.items()
    }
    shorter = recipe_limits(recipes)
    limits = {}
    for model, path in models.items():
        longest = read_json(path)["max_positions"]
        if labelled:
            own = {} if longest is None else {MODEL_LIMIT: longest}
            below = {name: n for name, n in shorter.items() if longest is None or n < longest}
            limits[model] = {**own, **below}
        else:
            limit = read_json(folder / model / "tokens" / "statistics.json")["train"]["limit"]
            name = MODEL_LIMIT if limit == longest else DATASET_LIMIT
            limits[model] = {} if limit is None else {name: limit}
    return Dataset(
        folder.name,
        splits,
        read_json(folder / "labels.json").get("names", []) if labelled else [],
        read_json(folder / "splits.json")["dropped_leaks"],
        read_duplicates(folder / "duplicates.csv"),
        tokens,
        limits,
        clusters.read_clusters(folder / "splits.json"),
        _read_reduced(folder / "splits.json"),
    )


def _read_reduced(path: Path) -> dict[str, dict[str, tuple[int, int]]]:
    """The examples that a dataset leaves out, by the check that counts them; nothing where none are."""
    recorded = read_json(path)
    sample, left, reduced = recorded.get(SAMPLE, {}), dict(recorded.get("read", {})), {}
    for check, key in ((NO_TEXT, EMPTY_TEXTS), (OTHER_LABEL, OTHER_LABELS)):  # labels are read first
        numbers = {split: found["number"] for split, found in recorded.get(key, {}).items()}
        left |= {split: left[split] + number for split, number in numbers.items()}
        reduced[check] = {split: (number, left[split]) for split, number in numbers.items()}
    sampled = {
        split: (found["of"] - len(found["ids"]), found["of"])
        for split, found in sample.items()
        if split in SPLITS
    }
    ordered = {check: reduced[check] for check in (OTHER_LABEL, NO_TEXT)} | {NOT_SAMPLED: sampled}
    return {check: found for check, found in ordered.items() if found}


def _labelled_as_text(example: Row) -> Row:
    """A labelled example with both texts of a pair as its text, and a set of labels that can be counted.

    A pair counts as empty if one of its texts is.
    """
    label = example["label"]
    labelled = {**example, "label": tuple(label)} if isinstance(label, list) else example
    if TEXT_PAIR not in example:
        return labelled
    return {**labelled, "text": whole(example), "empty": any(map(is_blank, parts(example)))}


def _question_as_text(example: Row) -> Row:
    """A question as a text for the checks, without the template of its prompt.

    It counts as empty if its question or its answer is.
    """
    needed = [example["question"], example["answer"]]
    text = "\n".join(filter(None, [example["context"], *needed]))
    return {"id": example["id"], "text": text, "empty": any(map(is_blank, needed))}


def _read_tokens(
    path: Path, examples: Sequence[Row], labelled: bool, definition: str | Path
) -> list[TokenRow]:
    """Counts of each text's tokens; read line by line, since all ids at once would need much memory."""
    rows = []
    model = read_json(definition)
    first, last = (len(model.get(name, [None])) for name in ("beginning", "ending"))  # special tokens
    unk = model.get("unk", UNK)
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            row = json.loads(line)
            if labelled:
                special = Pair(*row["pair"]).special if "pair" in row else first + last
                pieces = len(row["ids"]) - special
                unknown = row["ids"][first : len(row["ids"]) - last].count(unk)
            else:
                pieces = len(row["prompt"] + row["answer"])
                unknown = row["unknown"]
            rows.append(TokenRow(row["id"], row["length"], pieces, unknown))
    found, expected = [row.id for row in rows], [example["id"] for example in examples]
    # prompts may lack examples that are too long; labelled texts may not
    if not labelled:
        kept = set(found)
        expected = [name for name in expected if name in kept]
    if found != expected:
        raise SeedbedError(
            "the tokens do not fit the examples of the split",
            where=str(path),
            found=f"{len(rows)} rows of tokens for {len(examples)} examples, or other ids",
            hint="remove the file and let Snakemake make it again",
        )
    return rows


def recipe_limits(recipes: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """The maximum lengths that recipes set, by the recipes' names; recipes with the same limit are joined."""
    names: dict[int, list[str]] = {}
    for name, recipe in recipes.items():
        if recipe["max_positions"]:
            swept = "max_positions" in recipe["swept"]
            names.setdefault(recipe["max_positions"], []).append(name if swept else recipe["family"])
    return {join(list(dict.fromkeys(group))): limit for limit, group in sorted(names.items(), reverse=True)}


def read_audit(path: str | Path) -> list[Row]:
    """Read data_audit.csv: counts and limits as integers, shares as fractions, empty numbers as None.

    Raises:
        SeedbedError: a column is missing, as in a table of an earlier version.
    """
    header, rows = read_csv(path, COLUMNS, what="audit of the data")
    return [_parsed(dict(zip(header, row, strict=True))) for row in rows]


def _parsed(row: Mapping[str, str]) -> Row:
    share, limit = row["share"], row["limit"]
    numbers = {"share": float(share) if share else None, "limit": int(limit) if limit else None}
    return {**row, "count": int(row["count"]), **numbers}


def without_texts(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows of data_audit.csv with numbers in place of the strings that texts share: `string 1, left out`."""
    names: dict[str, str] = {}
    found: list[Mapping[str, Any]] = []
    for row in rows:
        text = row["text"]
        if row["kind"] == SHARED and text:
            name = names.setdefault(text, f"string {len(names) + 1}, left out")
            found.append({**row, "check": row["check"].removesuffix(text) + name, "text": name})
        else:
            found.append(row)
    return found


# --- the checks ---------------------------------------------------------------------------------------------


def audit_dataset(dataset: Dataset) -> list[Row]:
    """All rows of a dataset, split by split: first checks of texts, then of each model's tokens.

    `count` is a number of examples unless the check says otherwise, and `share` its fraction of the split.
    Duplicates and leaks are counted before leaks were dropped.
    """
    rows = []
    for split in dataset.splits:
        checks = [
            *_class_checks(dataset, split),
            *(_order_checks(dataset, split) if dataset.label_names else ()),
            *_duplicate_checks(dataset, split),
            *(_cluster_checks(dataset, split) if dataset.clusters else ()),
            *_text_checks(dataset.splits[split]),
            *_shared_checks(dataset, split),
        ]
        rows += [_row(dataset.name, split, "", check) for check in checks]
        for model, tokens in dataset.tokens.items():
            checks = [*_token_checks(tokens[split], dataset.limits[model])]
            if not dataset.is_labelled:
                checks += _left_out_checks(dataset, split, model)
            rows += [_row(dataset.name, split, model, check) for check in checks]
    return rows


def _row(dataset: str, split: str, model: str, check: Check) -> Row:
    share = None if check.of is None else round(check.count / check.of, 6) if check.of else 0.0
    return {
        "dataset": dataset,
        "split": split,
        "model": model,
        "check": check.name,
        "count": check.count,
        "share": share,
        "examples": " ".join(list(dict.fromkeys(check.examples))[:LISTED]),
        "kind": check.kind,
        "label": check.label,
        "text": check.text,
        "limit": check.limit,
        "limited_by": check.limited_by,
    }


def _class_checks(dataset: Dataset, split: str) -> Iterable[Check]:
    examples = dataset.splits[split]
    yield Check("examples", len(examples), sum(map(len, dataset.splits.values())))
    for check, found in dataset.reduced.items():
        if split in found:
            yield Check(check, *found[split])
    if split == "train":
        yield Check("dropped leaks", len(dataset.dropped), dataset.found_in(split), dataset.dropped)
    counts = class_counts(examples)
    for label, name in enumerate(dataset.label_names):
        ids = [example["id"] for example in itertools.islice(_labelled(examples, label), LISTED)]
        yield Check(class_check(name), counts[label], len(examples), ids, kind=CLASS, label=name)


def class_check(name: str) -> str:
    """The name of a class's check: `class: good`."""
    return f"class: {name}"


def _labelled(examples: Sequence[Row], label: int) -> Iterable[Row]:
    return (example for example in examples if label in classes_of(example))


def classes_of(example: Row) -> list[int]:
    """The classes of an example: one, or any number of labels; none of a question."""
    label = example.get("label")
    if isinstance(label, tuple):
        return [code for code, held in enumerate(label) if held]
    return [] if label is None else [label]


def class_counts(examples: Sequence[Row]) -> Counter[int]:
    """The number of examples of each class."""
    return Counter(label for example in examples for label in classes_of(example))


def _order_checks(dataset: Dataset, split: str) -> Iterable[Check]:
    examples = dataset.splits[split]
    runs = [list(run) for _, run in itertools.groupby(examples, key=lambda example: example["label"])]
    longest = max(runs, key=len, default=[])
    classes = len({example["label"] for example in examples})
    grouped = 1 < classes == len(runs) < len(examples)
    yield Check("runs of one label", len(runs), len(examples))
    ends = [example["id"] for example in (longest[:1] + longest[-1:])]
    yield Check("longest run of one label", len(longest), len(examples), ends)
    firsts = [run[0]["id"] for run in runs] if grouped else []
    yield Check("all of one label first", len(examples) if grouped else 0, len(examples), firsts)


def duplicate_check(split: str, other: str, kind: str) -> str:
    """`repeated: near`, `also in train: exact`: name of the check of a split's examples that stand in another
    split as well, or earlier in the same one; `kind` is exact, near or of `another`."""
    return f"repeated: {kind}" if other == split else f"also in {other}: {kind}"


def another(noun: str) -> str:
    """`with another label`: the kind of those that contradict what they resemble."""
    return f"with another {noun}"


def _duplicate_checks(dataset: Dataset, split: str) -> Iterable[Check]:
    """Examples that are repeated in the split itself, then in each earlier split."""
    total = dataset.found_in(split)
    for other in [split, *SPLITS[: SPLITS.index(split)]]:
        rows = [row for row in dataset.duplicates if (row["split"], row["with_split"]) == (split, other)]
        for kind in ("exact", "near"):
            alike = [row for row in rows if row["kind"] == kind]
            yield Check(duplicate_check(split, other, kind), len(alike), total, _telling(alike))
        contradictory = [row for row in rows if not row["same_label"]]
        other_label = duplicate_check(split, other, another(dataset.distinguished_by))
        yield Check(other_label, len(contradictory), total, _telling(contradictory))
    if split == "train":
        leaking = leaking_train_examples(dataset.duplicates)
        ids = [row["example"] for row in dataset.duplicates if row["example"] in leaking]
        yield Check("also in validation or test", len(leaking), total, ids)


def cluster_check(other: str) -> str:
    """`of a cluster in train`: name of the check of a split's examples whose cluster is in another split."""
    return f"of a cluster in {other}"


def _cluster_checks(dataset: Dataset, split: str) -> Iterable[Check]:
    """The split's clusters, its largest one, and its examples whose cluster is in an earlier split."""
    members, total = dataset.clusters[split], len(dataset.splits[split])
    yield Check(CLUSTERS, len(members), None)
    largest = max(members.values(), key=len, default=[])
    yield Check("largest cluster", len(largest), total, largest)
    for other in SPLITS[: SPLITS.index(split)]:
        shared = [
            name for cluster, ids in members.items() if cluster in dataset.clusters[other] for name in ids
        ]
        yield Check(cluster_check(other), len(shared), total, shared)


def _telling(rows: Sequence[Row]) -> list[str]:
    """Ids of examples, first those whose partner has another label, then by similarity."""
    ordered = sorted(rows, key=lambda row: (row["same_label"], -row["similarity"]))
    return [row["example"] for row in ordered]


# --- texts --------------------------------------------------------------------------------------------------

CONTINUATION = "".join(
    sorted(
        {chr(byte) for byte in range(0x80, 0xC0)}
        | set(bytes(range(0x80, 0xC0)).decode("cp1252", errors="ignore"))
    )
)
# UTF-8 read as Latin-1 or Windows-1252: accented letters (C3 A9 as Ã©), œ, quotes and dashes (E2 80), emoji.
# A longer list of first bytes would find French itself: É» are the bytes of another letter.
MOJIBAKE = re.compile(
    f"[ÂÃ][{re.escape(CONTINUATION)}]|Å[“\x93’\x92]|â[€\x80][{re.escape(CONTINUATION)}]|ð[Ÿ\x9f]"
)
# C0, DEL and C1 without tab and line ends
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
TAGS = (
    "a b i p u br em hr li ol td th tr ul div img pre sub sup code font span body head html table strong "
    "center script style blockquote h1 h2 h3 h4 h5 h6"
)
TAG = re.compile(rf"</?(?:{TAGS.replace(' ', '|')})(?:\s[^<>]*)?\s*/?>", re.IGNORECASE)
ENTITY = re.compile(r"&(?:#\d+|#x[0-9a-f]+|([a-z][a-z0-9]*));", re.IGNORECASE)


def has_mojibake(text: str) -> bool:
    """Whether a text was once UTF-8 read as Latin-1 or Windows-1252: `Ã©` for `é`."""
    return MOJIBAKE.search(text) is not None


def has_control_characters(text: str) -> bool:
    """Whether a text has control characters other than tab and line ends."""
    return CONTROL.search(text) is not None


def has_html(text: str) -> bool:
    """Whether a text has tags or character references of HTML; `<s>` and a lone `&` do not count."""
    names = (match[1] for match in ENTITY.finditer(text))
    return bool(TAG.search(text)) or any(name is None or f"{name};" in html.entities.html5 for name in names)


def is_short(text: str) -> bool:
    """Whether a text is not blank, but has fewer than SHORT_WORDS words."""
    return not is_blank(text) and len(WORD.findall(normalise(text))) < SHORT_WORDS


LONG = f"over {LONG_CHARACTERS:,} characters"
TEXT_CHECKS: dict[str, Callable[[str], bool]] = {
    f"under {SHORT_WORDS} words": is_short,
    LONG: lambda text: len(text) > LONG_CHARACTERS,
    "U+FFFD": lambda text: "\N{REPLACEMENT CHARACTER}" in text,
    "mojibake": has_mojibake,
    "control characters left": has_control_characters,
    "not NFC": lambda text: not unicodedata.is_normalized("NFC", text),
    "HTML": has_html,
}


def _text_checks(examples: Sequence[Row]) -> Iterable[Check]:
    empty = [row["id"] for row in examples if row.get("empty", is_blank(row["text"]))]
    yield Check("empty", len(empty), len(examples), empty)
    for name, check in TEXT_CHECKS.items():
        found = [example for example in examples if check(example["text"])]
        if name == LONG:
            found.sort(key=lambda example: -len(example["text"]))
        yield Check(name, len(found), len(examples), [example["id"] for example in found])


def _shared_checks(dataset: Dataset, split: str) -> Iterable[Check]:
    """The number of texts with each shared string, in the split and in its classes."""
    examples = dataset.splits[split]
    if not dataset.shared:
        yield Check(SHARED, 0, len(examples), kind=SHARED)
    counts = class_counts(examples)
    for string, holders in dataset.shared:
        ids = [example["id"] for example in holders[split]]
        yield Check(f"{SHARED}: {string}", len(ids), len(examples), ids, kind=SHARED, text=string)
        for label in _classes_shown(dataset, holders):
            ids = [example["id"] for example in _labelled(holders[split], label)]
            name = dataset.label_names[label]
            check = in_class(name, string)
            yield Check(check, len(ids), counts[label], ids, kind=SHARED, label=name, text=string)


def _classes_shown(dataset: Dataset, holders: Mapping[str, Sequence[Row]]) -> list[int]:
    """At most CLASSES_SHOWN classes, those with the most texts that have the string, in their order."""
    held = class_counts([example for examples in holders.values() for example in examples])
    labels = range(len(dataset.label_names))
    return sorted(sorted(labels, key=lambda label: -held[label])[:CLASSES_SHOWN])


def _shown(string: str) -> str:
    text = escaped(string)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def in_class(name: str, string: str) -> str:
    """The name of a shared string's check in a class: `shared text in class bad: <script>`."""
    return f"{SHARED} in class {name}: {string}"


# --- tokens -------------------------------------------------------------------------------------------------


def _token_checks(tokens: Sequence[TokenRow], limits: Mapping[str, int]) -> Iterable[Check]:
    lengths = [row.length for row in tokens]
    by_length = sorted(tokens, key=lambda row: -row.length)
    yield Check("median length in tokens", round(statistics.median(lengths or [0])), None)
    longest = [row.id for row in by_length[:1]]
    yield Check("longest in tokens", max(lengths, default=0), None, longest)
    for name, limit in limits.items():
        ids = [row.id for row in by_length if row.length > limit]
        check = truncation_check(name, limit)
        yield Check(check, len(ids), len(tokens), ids, kind=TRUNCATED, limit=limit, limited_by=name)
    unknown = sorted((row for row in tokens if row.unknown), key=lambda row: -row.unknown / row.pieces)
    ids = [row.id for row in unknown]
    pieces = sum(row.pieces for row in tokens)
    yield Check("unknown tokens", sum(row.unknown for row in unknown), pieces, ids)
    yield Check(UNKNOWN, len(unknown), len(tokens), ids)


def _left_out_checks(dataset: Dataset, split: str, model: str) -> Iterable[Check]:
    """Questions without tokens, since they exceed the limit."""
    kept = {row.id for row in dataset.tokens[model][split]}
    missing = [example["id"] for example in dataset.splits[split] if example["id"] not in kept]
    total = len(dataset.splits[split])
    for name, limit in dataset.limits[model].items():
        check = left_out_check(name, limit)
        yield Check(check, len(missing), total, missing, kind=LEFT_OUT, limit=limit, limited_by=name)


def left_out_check(name: str, limit: int) -> str:
    """The name of the check of examples without tokens: `left out, over 256 tokens (the model)`."""
    return f"left out, over {limit} tokens ({name})"


def truncation_check(name: str, limit: int) -> str:
    """The name of a limit's check: `truncated to 256 tokens (the model)`."""
    return f"truncated to {limit} tokens ({name})"


# --- warnings -----------------------------------------------------------------------------------------------

# By check: the least share of a split for a warning, and the subject in templates/audit.j2.
WARNED = {
    "empty": (0, "empty"),
    f"under {SHORT_WORDS} words": (0.01, "short"),
    "U+FFFD": (0, "replaced"),
    "mojibake": (0, "mojibake"),
    "control characters left": (0, "control"),
    "not NFC": (0.01, "not_composed"),
    "HTML": (0.01, "html"),
    UNKNOWN: (0.05, "unknown"),
}
TRUNCATED_SHARE = 0.05
SHARED_BY = 0.1  # share of a split's or a class's texts
FEW_TEXTS = 10  # least number of texts with a shared string; fewer may be chance
REPEATED = 0.01
LARGEST_CLASS = 0.9
DIFFERENT_BALANCE = 0.1
LEAKING = (
    ("test", "train"),
    ("validation", "train"),
    ("test", "validation"),
)  # splits, and what leaks to them


def warnings(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences about alarming rows of data_audit.csv, dataset by dataset.

    What makes a score mean something else comes first, oddities of texts last.
    """
    sentences = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        table = _Table([row for row in rows if row["dataset"] == dataset])
        found = [*_leak_warnings(table), *_cluster_warnings(table), *_class_warnings(table)]
        found += [*_truncation_warnings(table), *_left_out_warnings(table), *_shared_warnings(table)]
        found += [*_order_warnings(table), *_repeat_warnings(table), *_text_warnings(table)]
        sentences += [f"{dataset}: {sentence}" for sentence in found]
    return sentences


class _Table:
    """Rows of one dataset by split, model and check; a missing check counts as 0."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]):
        self._rows = {(row["split"], row["model"], row["check"]): row for row in rows}
        self.splits = [split for split in SPLITS if any(key[0] == split for key in self._rows)]
        self.models = list(dict.fromkeys(key[1] for key in self._rows if key[1]))
        self.checks = {key[2]: row for key, row in self._rows.items()}

    def of_kind(self, kind: str) -> list[Mapping[str, Any]]:
        """One row of each check of a kind, from any split and model, in the order of the table."""
        return [row for row in self.checks.values() if row["kind"] == kind]

    @property
    def labels(self) -> list[str]:
        """Names of the classes."""
        return [row["label"] for row in self.of_kind(CLASS)]

    def has(self, check: str, model: str) -> bool:
        """Whether a model has a check."""
        return any((split, model, check) in self._rows for split in self.splits)

    def count(self, split: str, check: str, model: str = "") -> int:
        row = self._rows.get((split, model, check))
        return row["count"] if row else 0

    def share(self, split: str, check: str, model: str = "") -> float:
        row = self._rows.get((split, model, check))
        return (row["share"] or 0.0) if row else 0.0

    def found_in(self, split: str) -> int:
        """Number of examples of a split before leaks were dropped."""
        return self.count(split, "examples") + self.count(split, "dropped leaks")

    def counts(self, splits: Collection[str], check: str, model: str = "") -> list[tuple[str, int, int]]:
        """Of each split how many of its examples there are that a check found, of how many."""
        return [(split, self.count(split, check, model), self.count(split, "examples")) for split in splits]


@dataclass(frozen=True)
class Pairs:
    """Examples of a split whose text stands in another, or earlier in the same one.

    Attributes:
        split: whose examples they are.
        number, total: how many they are, exact and near together, and of how many.
        near: how many are near-duplicates.
        others: how many have another label than what they resemble, or another answer.
    """

    split: str
    number: int
    total: int
    near: int
    others: Mapping[str, int]


def _pairs(table: _Table, split: str, other: str, total: int) -> Pairs:
    exact, near = (table.count(split, duplicate_check(split, other, kind)) for kind in ("exact", "near"))
    others = {
        noun: table.count(split, duplicate_check(split, other, another(noun))) for noun in ("label", "answer")
    }
    return Pairs(split, exact + near, total, near, others)


def _leak_warnings(table: _Table) -> Iterable[str]:
    dropped = table.count("train", "dropped leaks")
    for split, other in LEAKING:
        found = _pairs(table, split, other, table.count(split, "examples"))
        if found.number:
            yield WORDS.say("leaked", found, other, not dropped and other == "train")
    if dropped:
        yield WORDS.say("dropped", dropped, table.found_in("train"))


def _cluster_warnings(table: _Table) -> Iterable[str]:
    for split, other in LEAKING:
        if number := table.count(split, cluster_check(other)):
            yield WORDS.say("of_a_cluster", number, split, table.count(split, "examples"), other)


def _repeat_warnings(table: _Table) -> Iterable[str]:
    for split in table.splits:
        found = _pairs(table, split, split, table.found_in(split))
        if found.number >= max(1, REPEATED * found.total) or any(found.others.values()):
            yield WORDS.say("repeated", found)


def _class_warnings(table: _Table) -> Iterable[str]:
    for split in table.splits:
        absent = [name for name in table.labels if not table.count(split, class_check(name))]
        if absent:
            yield WORDS.say("absent", split, absent[:LISTED], max(0, len(absent) - LISTED))
    for name in table.labels:
        shares = {split: table.share(split, class_check(name)) for split in table.splits}
        large = {split: share for split, share in shares.items() if share >= LARGEST_CLASS}
        if large:
            yield WORDS.say("dominant", name, large)
        elif max(shares.values()) - min(shares.values()) >= DIFFERENT_BALANCE:
            yield WORDS.say("unequal", name, shares)


def _order_warnings(table: _Table) -> Iterable[str]:
    grouped = [split for split in table.splits if table.count(split, "all of one label first")]
    if grouped:
        yield WORDS.say("in_order", grouped)


def _text_warnings(table: _Table) -> Iterable[str]:
    for check, (least, subject) in WARNED.items():
        for model in table.models if check == UNKNOWN else [""]:
            splits = [
                split
                for split in table.splits
                if table.count(split, check, model) and table.share(split, check, model) >= least
            ]
            if splits:
                yield WORDS.say("odd_texts", subject, model, table.counts(splits, check, model), SHORT_WORDS)


def _truncation_warnings(table: _Table) -> Iterable[str]:
    """Of each model the lowest limit, which cuts all that a higher one does."""
    for model in table.models:
        limits = [row for row in table.of_kind(TRUNCATED) if table.has(row["check"], model)]
        row = min(limits, key=lambda row: row["limit"], default=None)
        if row is None:
            continue
        check = row["check"]
        splits = [split for split in table.splits if table.share(split, check, model) >= TRUNCATED_SHARE]
        if splits:
            reads = max(limit["limit"] for limit in limits)
            counts = table.counts(splits, check, model)
            yield WORDS.say("truncated", row["limit"], row["limited_by"], model, counts, reads)


def _left_out_warnings(table: _Table) -> Iterable[str]:
    for model, row in itertools.product(table.models, table.of_kind(LEFT_OUT)):
        check = row["check"]
        splits = [split for split in table.splits if table.count(split, check, model)]
        if splits:
            counts = table.counts(splits, check, model)
            yield WORDS.say("left_out", row["limit"], row["limited_by"], model, counts)


def _shared_warnings(table: _Table) -> Iterable[str]:
    for row in table.of_kind(SHARED):
        check, string = row["check"], row["text"]
        found = sum(table.count(split, check) for split in table.splits)
        if row["label"] or found < FEW_TEXTS:
            continue
        splits = [split for split in table.splits if table.share(split, check) >= SHARED_BY]
        shares = {
            name: share
            for name in table.labels
            if (share := _share_of_class(table, name, string)) is not None
        }
        apart = max(shares.values(), default=0) - min(shares.values(), default=0) >= SHARED_BY
        if splits or apart:
            holding = splits or [split for split in table.splits if table.count(split, check)]
            # a string that tells the label
            ordered = sorted(shares, key=lambda name: -shares[name])[:LISTED] if apart else []
            classes = {name: shares[name] for name in ordered}
            yield WORDS.say("shared_text", string, table.counts(holding, check), classes)


def _share_of_class(table: _Table, name: str, string: str) -> float | None:
    """The share of a class's texts in all splits that have a string; None if it was not counted."""
    check = in_class(name, string)
    total = sum(table.count(split, class_check(name)) for split in table.splits)
    if check not in table.checks or not total:
        return None
    return sum(table.count(split, check) for split in table.splits) / total
