"""Generated answers as arrays: the predictions.csv of runs of the task generation.

Loss and token accuracy of a split are ratios: sums over its examples, divided by the number of its answer
tokens.
"""

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from seedbed.analysis.predictions import (
    CATEGORY,
    HINT,
    UNDEFINED_LOSS,
    bad_predictions,
    check_unique,
    clusters_of,
    group_scores,
    is_alone,
    kept_clusters,
    numbered,
    numbers_of,
    of_a_run,
    read_columns,
    read_header,
    split_rows,
)
from seedbed.core.errors import SeedbedError
from seedbed.core.tasks import ANSWER_COLUMNS, GROUP_COLUMN, TASKS, Task
from seedbed.data.splitting import connected

TEXTS = ("split", "example", "reference", "answer")
VALUES = ("loss", "token_accuracy", "exact_match", "f1")
FRACTIONS = VALUES[1:]
PER_TOKEN = VALUES[:2]  # of the others, every example counts alike
# Fewest examples on which one answer to all of them is more than chance.
TELLING_EXAMPLES = 12


@dataclass(frozen=True)
class CellAnswers:
    """The answers of all seeds of a cell (dataset, model, framework, init, recipe) on one split.

    Attributes:
        ids: examples, in the order of predictions.csv.
        references: their answers in the dataset.
        tokens: (examples,) int64: tokens of the reference with its end token, 1 or more.
        values: for each of VALUES (seeds, examples), rows in the order of the cell's runs: the loss in nats
            a token, NaN where it is not finite; the others are fractions, and the token accuracy of an
            example without a loss is 0.
        all_same: (seeds,) bool: whether every answer of the seed is the same.
        groups: (examples,) int64: the text that an example is about, in the order of appearance.
        task: what the answers are of.
        clusters: (examples,) int64: the cluster of each example, of those that a text joins one; None where
            there are none.
    """

    ids: tuple[str, ...]
    references: tuple[str, ...]
    tokens: np.ndarray
    values: Mapping[str, np.ndarray]
    all_same: np.ndarray
    groups: np.ndarray
    task: Task = TASKS["generation"]
    clusters: np.ndarray | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Class names: none."""
        return ()

    @property
    def correct(self) -> np.ndarray:
        """(seeds, examples) bool: whether the answer is the reference (exact match)."""
        return self.values["exact_match"] == 1

    @property
    def undefined(self) -> np.ndarray:
        """(seeds,) bool: whether the loss of an example is not finite, which leaves the split without one."""
        return ~np.isfinite(self.values["loss"]).all(axis=1)

    @functools.cached_property
    def tells_collapse(self) -> bool:
        """Whether a single answer to all of these examples is more than chance."""
        return len(self.ids) >= TELLING_EXAMPLES and len(set(self.references)) > 1

    def measured(self, metric: str) -> list[float | None]:
        """A metric of the split, perplexity too, for each seed; None where it is not finite."""
        if metric == "perplexity":
            with np.errstate(over="ignore"):
                found = np.exp(self._means("loss"))
        else:
            found = self._means(metric)
        return [value if math.isfinite(value) else None for value in found.tolist()]

    def _means(self, metric: str) -> np.ndarray:
        """(seeds,) float64, NaN where a loss is not finite."""
        values = self.values[metric].astype(np.float64)
        if metric in PER_TOKEN:
            return (values * self.tokens).sum(axis=1) / self.tokens.sum()
        return values.mean(axis=1)

    def scores(self, metric: str) -> np.ndarray:
        """(seeds, groups) float32, all finite: what a metric of VALUES is the mean of over groups.

        Questions on one text are answered well or badly together, so that groups are what is resampled; a
        question without a text is a group of its own, and a cluster holds whole groups. Examples weigh their
        answer tokens in metrics per token, else all the same; see `group_scores`. All of a seed whose loss is
        undefined are UNDEFINED_LOSS.
        """
        groups = self.groups if self.clusters is None else self.clusters
        alone = is_alone(groups)
        if alone and metric not in PER_TOKEN:
            return self.values[metric]
        weights = self.tokens if metric in PER_TOKEN else np.ones(len(groups))
        scores = group_scores(self.values[metric], weights, None if alone else groups)
        return np.where(np.isfinite(self._means(metric))[:, None], scores, np.float32(UNDEFINED_LOSS))

    def counted(self, metric: str) -> None:
        """Nothing: every metric is a mean of its scores, or a ratio that is resampled as one."""

    def keep(self, kept: np.ndarray) -> "CellAnswers":
        """The answers on some examples: those where `kept`, (examples,) bool, is true."""
        ids, references = (tuple(itertools.compress(of, kept)) for of in (self.ids, self.references))
        values = {name: value[:, kept] for name, value in self.values.items()}
        return replace(
            self,
            ids=ids,
            references=references,
            tokens=self.tokens[kept],
            values=values,
            groups=numbered(self.groups[kept]),
            clusters=kept_clusters(self.clusters, kept),
        )

    def clustered(self, clusters: Mapping[str, str]) -> "CellAnswers":
        """The answers with the cluster of each example; questions on one text are in one cluster.

        Args:
            clusters: names of clusters by the examples' ids.

        Raises:
            SeedbedError: an example has none.
        """
        names = connected(clusters_of(self.ids, clusters).tolist(), [str(group) for group in self.groups])
        return replace(self, clusters=numbered(np.array(names, dtype=object)))

    def same_examples(self, other: Any) -> bool:
        """Whether both are of the same examples with the same references in the same order.

        Args:
            other: answers of the same task.
        """
        same = self.ids == other.ids and self.references == other.references
        return bool(same and np.array_equal(self.groups, other.groups))

    def called(self, names: Sequence[str]) -> "CellAnswers":
        """The answers as they are: there are no classes to be named."""
        return self

    def sharing(self, first: Any) -> "CellAnswers":
        """These answers with the examples of `first`, so that ids and references are in memory once."""
        return replace(self, ids=first.ids, references=first.references, clusters=first.clusters)

    def told_examples(self) -> Iterator[str]:
        """Every example as errors name it."""
        for name, reference in zip(self.ids, self.references, strict=True):
            yield f"{name!r} with the reference {reference[:40]!r}"

    @staticmethod
    def stacked(runs: Sequence[Any]) -> "CellAnswers":
        """Answers to the same examples under each other, in the given order; values become float32."""
        values = {
            name: np.concatenate([run.values[name].astype(np.float32) for run in runs]) for name in VALUES
        }
        return replace(runs[0], values=values, all_same=np.concatenate([run.all_same for run in runs]))


def read_answers(path: str | Path) -> dict[str, CellAnswers]:
    """The answers of one run by split: validation and test, both with at least one example.

    Values are float64 here, so that means can be held to those that the run told.

    Raises:
        SeedbedError: the file is cut; a column, a cell or a split is missing; an example that stands twice in
            its split; a fraction outside [0, 1], an exact match that is neither 0 nor 1, a number of tokens
            that is not whole or below 1, a loss below 0.
    """
    content, text, header = read_header(path)
    if not set(ANSWER_COLUMNS) <= set(header) or len(set(header)) < len(header):
        raise bad_predictions(f"{path}, line 1", f"columns {', '.join(header) or 'none'}")
    numbers = dict.fromkeys(("tokens", *VALUES), pa.float64())
    read = [*TEXTS[1:], *([GROUP_COLUMN] if GROUP_COLUMN in header else [])]
    kinds = {"split": CATEGORY, **dict.fromkeys(read, pa.string()), **numbers}
    table = read_columns(path, content, text, kinds)
    texts = {name: np.array(table[name].to_pylist(), dtype=object) for name in read}
    columns = {name: numbers_of(table[name]) for name in numbers}
    _check_numbers(columns, texts["example"], path)
    known = np.isfinite(columns["loss"])
    columns["loss"] = np.where(known, columns["loss"], np.nan)
    columns["token_accuracy"] = np.where(known, columns["token_accuracy"], 0.0)
    found = {}
    for split, rows in split_rows(table["split"], path).items():
        ids = tuple(texts["example"][rows].tolist())
        check_unique(ids, of_a_run(split), path)
        answers = texts["answer"][rows]
        found[split] = CellAnswers(
            ids,
            tuple(texts["reference"][rows].tolist()),
            columns["tokens"][rows].astype(np.int64),
            {name: columns[name][None, rows] for name in VALUES},
            np.array([(answers == answers[0]).all()]),
            numbered(texts.get(GROUP_COLUMN, texts["example"])[rows]),
        )
    return found


def _check_numbers(columns: Mapping[str, np.ndarray], ids: np.ndarray, path: str | Path) -> None:
    """Refuse numbers that cannot be. A comparison with NaN is false; only a loss may be missing."""
    tokens, loss, exact = (columns[name] for name in ("tokens", "loss", "exact_match"))
    wrong = [
        (
            "tokens",
            "a number of answer tokens that is not whole, or below 1",
            ~(tokens >= 1) | (tokens % 1 > 0),
        )
    ]
    wrong += [
        (name, "a fraction outside [0, 1]", ~((columns[name] >= 0) & (columns[name] <= 1)))
        for name in FRACTIONS
    ]
    wrong.append(("exact_match", "an exact match that is neither 0 nor 1", (exact != 0) & (exact != 1)))
    wrong.append(("loss", "a loss below 0", loss < 0))
    for name, told, rows in wrong:
        if rows.any():
            row = int(np.argmax(rows))  # answers have line ends of their own, so that a line would mislead
            value = float(columns[name][row])
            raise SeedbedError(
                told,
                where=f"{path}, example {ids[row]!r}, {name}",
                found="no number" if math.isnan(value) else value,
                hint=HINT,
            )
