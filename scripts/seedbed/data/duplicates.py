"""Find identical and near-identical texts within a split and across splits.

Two texts are identical (`exact`) if they are equal after Unicode normalisation NFKC, case folding and merging
of white space. They are near-duplicates (`near`) if the Jaccard similarity of their sets of word 3-grams
reaches a threshold. MinHash with locality-sensitive hashing finds candidates, whose similarity is then
computed exactly: no pair is listed wrongly, and a similar pair is missed with a small probability, which the
log states. The time is about linear if few texts are similar; among n texts from one template, all n² pairs
are candidates. A text of fewer than three words has no 3-gram and is compared for identity only.

Two examples that are pairs of texts are identical if both texts are. Near-duplicates are found on the first
text followed by the second, and the border between them counts as a word.
"""

import functools
import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seedbed.core.errors import SeedbedError
from seedbed.core.files import write_rows
from seedbed.core.rows import ANEW, read_csv
from seedbed.data.texts import BORDER, compared

log = logging.getLogger(__name__)

COLUMNS = ("split", "example", "with_split", "with_example", "kind", "similarity", "same_label")
NGRAM = 3  # words; two reviews on the same subject share few 3-grams
WORD = re.compile(rf"\w+|{BORDER}")  # a normalised text has no line end but the border of a pair
PERMUTATIONS = 128  # of MinHash: hash values per text
SEED = 1  # of MinHash's permutations, so that the same texts give the same table
MIN_RECALL = 0.995  # least probability of finding a pair just at the threshold
CACHED_SETS = 10_000  # sets of 3-grams in memory while candidates are checked; about 10 kB each

Row = dict[str, Any]
First = dict[str, dict[Any, int]]  # by split and label: index of the first example


class Example(NamedTuple):
    """An example; `index` counts from 0 in its split, `text` and `node` number groups of equal texts."""

    split: str
    index: int
    id: str
    label: Any
    text: int  # the number of its group of equal normalised texts
    node: int | None  # the number of its group of equal word sequences; None: too few words for a 3-gram


def find_duplicates(splits: Mapping[str, Sequence[Mapping[str, Any]]], threshold: float | None) -> list[Row]:
    """The most similar other example of each example, split by split.

    An example has at most one row per split. Within its own split it is compared only with earlier examples,
    so the rows of a split are its repetitions. Across splits it is compared with all examples, in both
    directions, so dropping each training example with a row towards test drops all partners of test examples.
    An identical example is preferred to a near-duplicate, then a more similar one, then one with another
    label, then an earlier one.

    Args:
        splits: examples {"id", "text", "label"}, and "text_pair" of pairs, by split in the table's order.
        threshold: least Jaccard similarity of near-duplicates, above 0 and at most 1; None: find only
            identical texts.

    Returns:
        Rows with the keys of COLUMNS, in the order of splits and examples; similarity is a fraction, rounded
        to 4 digits, and 1 for identical texts.
    """
    examples, words = _grouped(splits)
    neighbours = {} if threshold is None else _near_nodes(words, threshold)
    by_text: dict[int, First] = defaultdict(lambda: defaultdict(dict))
    by_node: dict[int, First] = defaultdict(lambda: defaultdict(dict))
    for example in examples:
        by_text[example.text][example.split].setdefault(example.label, example.index)
        if example.node is not None and threshold is not None:
            by_node[example.node][example.split].setdefault(example.label, example.index)
    rows = []
    for example in examples:
        groups = [("exact", 1.0, by_text[example.text])]
        if example.node in by_node:
            # another text of the same words differs only in punctuation
            groups.append(("near", 1.0, by_node[example.node]))
            groups += [("near", value, by_node[node]) for node, value in neighbours.get(example.node, ())]
        for split in splits:
            if found := _most_similar(example, split, groups):
                kind, similarity, index = found
                partner = splits[split][index]
                same = partner["label"] == example.label
                values = (example.split, example.id, split, partner["id"], kind, round(similarity, 4), same)
                rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


def _most_similar(
    example: Example, split: str, groups: Sequence[tuple[str, float, First]]
) -> tuple[str, float, int] | None:
    """Kind, similarity and index of the best partner in `split`, or None."""
    best: tuple[bool, float, bool, int] | None = None
    for kind, similarity, first in groups:
        for label, index in first.get(split, {}).items():
            if split != example.split or index < example.index:
                rank = (kind == "exact", similarity, label != example.label, -index)
                best = rank if best is None else max(best, rank)
    return None if best is None else ("exact" if best[0] else "near", best[1], -best[3])


def _grouped(splits: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[list[Example], list[str]]:
    """All examples with their groups, and the space-separated words of each node."""
    texts: dict[str, int] = {}
    nodes: dict[str, int] = {}
    examples = []
    for split, rows in splits.items():
        for index, row in enumerate(rows):
            text = compared(row)
            words = WORD.findall(text)
            node = nodes.setdefault(" ".join(words), len(nodes)) if len(words) >= NGRAM else None
            number = texts.setdefault(text, len(texts))
            examples.append(Example(split, index, row["id"], row["label"], number, node))
    return examples, list(nodes)


def near_groups(rows: Sequence[Mapping[str, Any]], threshold: float) -> list[tuple[str, int]]:
    """The group of each example: they are in one group if identical or near-duplicate texts join them.

    Args:
        rows: examples as of `find_duplicates`, in any order, on which the groups do not depend.
        threshold: see `find_duplicates`.
    """
    examples, words = _grouped({"": rows})
    neighbours = _near_nodes(words, threshold)
    first: dict[int, int] = {}
    for start in range(len(words)):
        waiting = [] if start in first else [start]
        while waiting:
            node = waiting.pop()
            if first.setdefault(node, start) == start:
                waiting += [other for other, _ in neighbours.get(node, ()) if other not in first]
    # a text without a 3-gram is in a group with identical ones alone
    return [
        ("text", example.text) if example.node is None else ("near", first[example.node])
        for example in examples
    ]


# --- near-duplicates ----------------------------------------------------------------------------------------


def _near_nodes(words: Sequence[str], threshold: float) -> dict[int, list[tuple[int, float]]]:
    """For each node, its similar nodes with their similarity."""
    neighbours: dict[int, list[tuple[int, float]]] = defaultdict(list)
    ngrams = functools.lru_cache(CACHED_SETS)(lambda node: _ngrams(words[node]))
    checked = found = 0
    for node, other in _candidates(words, threshold):
        checked += 1
        similarity = _jaccard(ngrams(node), ngrams(other))
        if similarity >= threshold:
            found += 1
            neighbours[node].append((other, similarity))
            neighbours[other].append((node, similarity))
    log.info("near-duplicates: %d candidate pairs of texts, %d similar enough", checked, found)
    return neighbours


def _candidates(words: Sequence[str], threshold: float) -> Iterator[tuple[int, int]]:
    """Pairs of nodes that share a band of their MinHash, each pair once, in a fixed order."""
    from datasketch import MinHash, MinHashLSH

    bands, rows = choose_bands(threshold)
    log.info("near-duplicates: Jaccard similarity of word %d-grams from %g", NGRAM, threshold)
    log.info(
        "near-duplicates: MinHash of %d values in %d bands of %d; a pair at the threshold is found with "
        "probability %.4f, a more similar pair with a higher probability",
        *(PERMUTATIONS, bands, rows, found_probability(threshold, bands, rows)),
    )
    index = MinHashLSH(num_perm=PERMUTATIONS, params=(bands, rows))
    sets = ([ngram.encode() for ngram in _ngrams(text)] for text in words)
    for node, sketch in enumerate(MinHash.generator(sets, num_perm=PERMUTATIONS, seed=SEED)):
        for other in sorted(index.query(sketch)):
            yield other, node
        index.insert(node, sketch, check_duplication=False)


def choose_bands(threshold: float) -> tuple[int, int]:
    """Number of bands of MinHash values, and the largest number of values per band within MIN_RECALL.

    More values per band give fewer candidates to check, but miss more pairs.
    """
    fitting = [
        (PERMUTATIONS // rows, rows)
        for rows in range(1, PERMUTATIONS // 2 + 1)
        if found_probability(threshold, PERMUTATIONS // rows, rows) >= MIN_RECALL
    ]
    return fitting[-1] if fitting else (PERMUTATIONS, 1)


def found_probability(similarity: float, bands: int, rows: int) -> float:
    """Probability that two sets of this Jaccard similarity agree in all values of at least one band."""
    return 1 - (1 - similarity**rows) ** bands


def _ngrams(words: str) -> frozenset[str]:
    parts = words.split(" ")
    return frozenset(" ".join(parts[start : start + NGRAM]) for start in range(len(parts) - NGRAM + 1))


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    common = len(one & other)
    return common / (len(one) + len(other) - common)


# --- the table ----------------------------------------------------------------------------------------------


def write_duplicates(path: str | Path, rows: Iterable[Row]) -> None:
    """Write the rows of `find_duplicates` as CSV, atomically; same_label is true or false."""
    write_rows(path, COLUMNS, ({**row, "same_label": str(row["same_label"]).lower()} for row in rows))


def read_duplicates(path: str | Path) -> list[Row]:
    """Read duplicates.csv.

    Raises:
        SeedbedError: the file is truncated, has other columns, or an invalid cell.
    """
    what = "table of duplicates"
    header, rows = read_csv(path, COLUMNS, what=what)
    found = [dict(zip(header, row, strict=True)) for row in rows]
    for line, row in enumerate(found, 2):
        similarity, same = _as_number(row["similarity"]), row["same_label"]
        if not 0 <= similarity <= 1 or same not in ("true", "false"):
            raise SeedbedError(
                f"not a {what}",
                where=f"{path}, line {line}",
                found=f"similarity {row['similarity']!r}, same_label {same!r}",
                hint=ANEW,
            )
        row |= {"similarity": similarity, "same_label": same == "true"}
    return found


def _as_number(text: str) -> float:
    """The number, or NaN if the text is not a number."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def leaking_train_examples(rows: Iterable[Row]) -> set[str]:
    """Ids of all training examples with an identical or near-identical partner in validation or test."""
    return {row["example"] for row in rows if row["split"] == "train" != row["with_split"]}


def leaked_test_examples(rows: Iterable[Row]) -> set[str]:
    """Ids of all test examples with an identical or near-identical partner in train or validation."""
    return {row["example"] for row in rows if row["split"] == "test" != row["with_split"]}
