"""From predictions.csv to arrays: what every count, interval and diagnosis of predictions starts from.

Of classes here, of sets of labels in `label_sets`, of answers in `answers`; all offer scores by metric, one
number for each seed and example.
"""

import csv
import functools
import io
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from seedbed.analysis.bootstrap import Draws
from seedbed.core import class_metrics
from seedbed.core.class_metrics import Counts
from seedbed.core.errors import SeedbedError
from seedbed.core.files import FORMULA
from seedbed.core.rows import decode, read_whole
from seedbed.core.splits import PREDICTED
from seedbed.core.tasks import DEFAULT, TASKS, Task

TEXTS = ("split", "example", "label", "prediction")
PROBABILITY = "probability_"
ARRAYS = ("predicted", "confidence", "loss")  # one row a seed
MEANS = ("accuracy", "loss")  # metrics that are means over examples
CATEGORY = pa.dictionary(pa.int32(), pa.string())
WHAT = "table of predictions on validation and test"
HINT = "remove the run's folder and let Snakemake make it anew"
SUM_ROUNDING = 1e-4  # farthest that a row of probabilities may be from a sum of 1; written ones are 1e-8 off
# Largest probability that a sound run predicts one class on a split that tells a collapse.
CHANCE_OF_ONE_CLASS = 0.001
# Nats: stands for a loss that is none, worse than any that float32 can tell.
UNDEFINED_LOSS = 1e6
TIE = 1e-8  # probabilities are written with nine digits: two that are closer may be equal


@dataclass(frozen=True)
class Counted:
    """A metric of counts, for resampled examples.

    Attributes:
        columns: (examples or clusters, columns) float32: what is summed over those that are drawn.
        measured: maps the sums (replicates, columns) to the metric (replicates, seeds).
    """

    columns: np.ndarray
    measured: Callable[[np.ndarray], np.ndarray]

    def resampled(self, draws: Draws) -> np.ndarray:
        """The metric on the examples of each replicate: (replicates, seeds)."""
        return draws.of_sums(self.columns, self.measured)


@dataclass(frozen=True)
class CellPredictions:
    """The predictions of all seeds of a cell (dataset, model, framework, init, recipe) on one split.

    Attributes:
        names: class names; codes below index them.
        ids: examples, in the order of predictions.csv.
        labels: (examples,) int16.
        predicted: (seeds, examples) int16, rows in the order of the cell's runs; -1 where the model returned
            no number.
        confidence: (seeds, examples) float32: probability of the predicted class; NaN where there is none.
        loss: (seeds, examples) float32: -log of the label's probability, in nats; infinite where that is
            zero, NaN where the model returned no number.
        task: what the predictions are of.
        clusters: (examples,) int64: the cluster of each example, see `numbered`; None where there are none.
        class_labels: labels of the classes in the config, which the names of metrics hold; empty where these
            are `names`.
    """

    names: tuple[str, ...]
    ids: tuple[str, ...]
    labels: np.ndarray
    predicted: np.ndarray
    confidence: np.ndarray
    loss: np.ndarray
    task: Task = TASKS[DEFAULT]
    clusters: np.ndarray | None = None
    class_labels: tuple[str, ...] = ()

    def measured(self, metric: str) -> list[float | None]:
        """A metric of the split for each seed; None for a loss that is not finite."""
        if metric in MEANS:
            values = (self.correct if metric == "accuracy" else self.loss).mean(axis=1, dtype=np.float64)
        else:
            values = self._value(metric)
        return [value if np.isfinite(value) else None for value in values.tolist()]

    def scores(self, metric: str) -> np.ndarray:
        """(seeds, examples or clusters), all finite: what a metric is the mean of.

        A loss that is not finite is UNDEFINED_LOSS. A metric of counts is no mean over examples: its scores
        are the metric plus the influence of each example, with which they have its mean, and to first order
        its spread over resampled examples. Of several examples in a cluster, see `group_scores`.
        """
        if metric == "accuracy":
            scores = self.correct
        elif metric == "loss":
            scores = np.where(np.isfinite(self.loss), self.loss, UNDEFINED_LOSS)
        else:
            influences = class_metrics.influences(metric, self.counts, self._classes)
            rows = np.arange(len(self.predicted))[:, None]
            scores = self._value(metric)[:, None] + influences[rows, self.labels, self.predicted]
        return scores_of_clusters(scores, self.clusters)

    def counted(self, metric: str) -> Counted | None:
        """What gives a metric of counts on resampled examples; None of a mean, whose scores do."""
        if metric in MEANS:
            return None
        classes, seeds = len(self.names), len(self.predicted)
        codes = np.arange(classes)
        is_label = self.labels[:, None] == codes
        # (examples, seeds, classes); how often the first class is predicted is told by the others
        is_predicted = self.predicted.T[..., None] == codes
        is_right = is_predicted & is_label[:, None, :]
        parts = [part.reshape(len(self.ids), -1) for part in (is_label, is_right, is_predicted[..., 1:])]
        missing = (self.predicted < 0).T
        parts += [missing] if missing.any() else []
        columns = np.concatenate(parts, axis=1).astype(np.float32)
        if self.clusters is not None:
            columns = summed_by(columns, self.clusters)
        places = np.cumsum([part.shape[1] for part in parts])[:-1]

        def measured(sums: np.ndarray) -> np.ndarray:
            actual, right, predicted, *others = np.split(sums.astype(np.float64), places, axis=1)
            right, predicted = (part.reshape(len(sums), seeds, -1) for part in (right, predicted))
            none = others[0] if others else np.zeros((len(sums), seeds))
            first = actual.sum(axis=1)[:, None] - predicted.sum(axis=2) - none
            predicted = np.concatenate([first[..., None], predicted], axis=2)
            counts = Counts(right, predicted, actual[:, None, :], none)
            return class_metrics.value(metric, counts, self._classes).astype(np.float32)

        return Counted(columns, measured)

    @functools.cached_property
    def counts(self) -> Counts:
        """The counts of labels and predictions of each seed."""
        return class_metrics.count(self.labels, self.predicted, len(self.names))

    def _value(self, metric: str) -> np.ndarray:
        """(seeds,) float64: a metric of counts."""
        return class_metrics.value(metric, self.counts, self._classes)

    def of_counts(self, metric: str, counts: Counts) -> float:
        """A metric of other counts of one table of these classes."""
        return float(class_metrics.value(metric, counts, self._classes))

    @property
    def _classes(self) -> tuple[str, ...]:
        """The classes as the names of metrics call them."""
        return self.class_labels or self.names

    @functools.cached_property
    def correct(self) -> np.ndarray:
        """(seeds, examples) bool: whether the prediction is the label."""
        return self.predicted == self.labels

    @property
    def undefined(self) -> np.ndarray:
        """(seeds,) bool: whether the split has no metrics: never, since a missing prediction is wrong."""
        return np.zeros(len(self.predicted), dtype=bool)

    @property
    def all_same(self) -> np.ndarray:
        """(seeds,) bool: whether every prediction of the seed is the same."""
        return (self.predicted == self.predicted[:, :1]).all(axis=1)

    @property
    def tells_collapse(self) -> bool:
        """Whether a single predicted class on these examples is more than chance.

        It is where predictions drawn at random, each class as often as it is the label, would all be the same
        with a probability below CHANCE_OF_ONE_CLASS: from 12 examples of two classes of one size, from about
        70 where one has 90% of them, and never where there is one class.
        """
        shares = np.bincount(self.labels) / len(self.labels)
        return float((shares ** len(self.labels)).sum()) < CHANCE_OF_ONE_CLASS

    @property
    def majority_share(self) -> float:
        """Share of the most frequent label."""
        return int(np.bincount(self.labels).max()) / len(self.ids)

    def keep(self, kept: np.ndarray) -> "CellPredictions":
        """The predictions on some examples: those where `kept`, (examples,) bool, is true."""
        arrays: dict[str, Any] = {name: getattr(self, name)[:, kept] for name in ARRAYS}
        ids = tuple(itertools.compress(self.ids, kept))
        clusters = kept_clusters(self.clusters, kept)
        return replace(self, ids=ids, labels=self.labels[kept], clusters=clusters, **arrays)

    def clustered(self, clusters: Mapping[str, str]) -> "CellPredictions":
        """The predictions with the cluster of each example.

        Args:
            clusters: names of clusters by the examples' ids.

        Raises:
            SeedbedError: an example has none.
        """
        return replace(self, clusters=numbered(clusters_of(self.ids, clusters)))

    def same_examples(self, other: Any) -> bool:
        """Whether both are of the same examples with the same labels in the same order.

        Args:
            other: predictions of the same task.
        """
        if self.ids != other.ids:
            return False
        if self.names == other.names:
            return np.array_equal(self.labels, other.labels)
        return bool((np.array(self.names)[self.labels] == np.array(other.names)[other.labels]).all())

    def called(self, names: Sequence[str]) -> "CellPredictions":
        """The predictions with other names of the classes."""
        return replace(self, names=tuple(names), class_labels=self._classes)

    def sharing(self, first: Any) -> "CellPredictions":
        """These predictions with the examples of `first`, so that ids and labels are in memory once."""
        return replace(self, ids=first.ids, labels=first.labels, clusters=first.clusters)

    def told_examples(self) -> Iterator[str]:
        """Every example as errors name it."""
        for name, label in zip(self.ids, self.labels, strict=True):
            yield f"{name!r} labelled {self.names[label]!r}"

    @staticmethod
    def stacked(runs: Sequence[Any]) -> "CellPredictions":
        """Predictions on the same examples under each other, in the given order."""
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(run, name) for run in runs]) for name in ARRAYS
        }
        return replace(runs[0], **arrays)


def without_leaks(ids: Sequence[str], leaked: Collection[str]) -> np.ndarray | None:
    """(examples,) bool: which examples did not leak; None where none did or all did."""
    kept = np.array([name not in leaked for name in ids])
    return None if kept.all() or not kept.any() else kept


# --- groups of examples -------------------------------------------------------------------------------------


def clusters_of(ids: Sequence[str], clusters: Mapping[str, str]) -> np.ndarray:
    """The name of each example's cluster.

    Raises:
        SeedbedError: an example has none.
    """
    missing = [name for name in ids if name not in clusters]
    if missing:
        raise SeedbedError(
            "an example of the predictions has no cluster",
            where="splits.json of the dataset",
            found=missing[0],
            hint="the dataset changed since the run: let Snakemake bring the experiment up to date",
        )
    return np.array([clusters[name] for name in ids], dtype=object)


def kept_clusters(clusters: np.ndarray | None, kept: np.ndarray) -> np.ndarray | None:
    """The clusters of some examples, numbered anew; None where there are none."""
    return None if clusters is None else numbered(clusters[kept])


def numbered(names: np.ndarray) -> np.ndarray:
    """Names as numbers from 0 on, in the order of appearance."""
    known: dict[Any, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names.tolist()], dtype=np.int64)


def is_alone(groups: np.ndarray) -> bool:
    """Whether every example is a group of its own."""
    return int(groups.max()) + 1 == len(groups)


def summed_by(columns: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """(groups, columns): the sums of the rows of each group."""
    sums = np.zeros((int(groups.max()) + 1, columns.shape[1]), dtype=columns.dtype)
    np.add.at(sums, groups, columns)
    return sums


def scores_of_clusters(scores: np.ndarray, clusters: np.ndarray | None) -> np.ndarray:
    """Scores of examples, (seeds, examples), as those of clusters, if there are any; see `group_scores`."""
    if clusters is None or is_alone(clusters):
        return scores
    return group_scores(scores, np.ones(len(clusters)), clusters)


def group_scores(values: np.ndarray, weights: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
    """(rows, groups) float32: what the weighted mean of examples is the plain mean of.

    The mean is a ratio: with the sum S_g and the weight n_g of group g, the score R + (S_g - R n_g) / mean(n)
    has the mean R, and the spread over resampled groups that the ratio has to first order (Cochran 1977,
    ch. 6). A row with a value that is not finite has no score that is.

    Args:
        values: (rows, examples).
        weights: (examples,), above 0.
        groups: (examples,), see `numbered`; None where every example is one.
    """
    ratio = (values.astype(np.float64) * weights).sum(axis=1)[:, None] / weights.sum()
    residuals = (values - ratio) * weights
    if groups is not None:
        residuals = np.stack([np.bincount(groups, row) for row in residuals])
        weights = np.bincount(groups, weights)
    return (ratio + residuals / weights.mean()).astype(np.float32)


# --- reading ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Groups:
    """How the rows of a table of predictions are divided: each group has the examples of one `Cell...`.

    Attributes:
        columns: those that tell the group, beside those of a run, with their types.
        rows: maps a table and its path, for errors, to the rows of each group.
        told: what an example of a group is called in errors.
    """

    columns: Mapping[str, pa.DataType]
    rows: Callable[[pa.Table, str | Path], Mapping[Any, np.ndarray]]
    told: Callable[[Any], str]


def _splits_of_a_run(table: pa.Table, path: str | Path) -> dict[str, np.ndarray]:
    return split_rows(table["split"], path)


def of_a_run(split: str) -> str:
    """What an example of a run's predictions on a split is called in errors."""
    return f"a {split} example"


OF_A_RUN = Groups({}, _splits_of_a_run, of_a_run)


def read_predictions(
    path: str | Path, names: Sequence[str], groups: Groups = OF_A_RUN
) -> dict[Any, CellPredictions]:
    """The predictions of one run by split: validation and test, both with at least one example.

    Where the logits were not finite, a probability is empty or not a number: whatever the class beside it,
    that is no prediction, and counts as wrong.

    Args:
        path: a predictions.csv.
        names: the class names of the run.
        groups: of a table of other predictions than those of one run; the result is then by group.

    Raises:
        SeedbedError: the file is cut; a column, a cell or a split is missing; a label that is not in `names`;
            an example that stands twice in its split; a probability outside [0, 1], or probabilities of an
            example that do not sum to 1; a prediction that is not the class of the largest one.
    """
    table = read_classes(path, groups)
    labels, predicted = (_codes(table[name], names, path) for name in ("label", "prediction"))
    if (labels < 0).any():
        raise bad_predictions(f"{path}, line {line_of(labels < 0)}", "a row without a label")
    probabilities = read_probabilities(table, names, path)
    missing = np.isnan(probabilities).any(axis=1)
    _check_probabilities(probabilities, predicted, missing, path)
    predicted[missing] = -1
    probabilities[missing] = np.nan
    confidence, loss = _confidence_and_loss(probabilities, labels, predicted)
    ids = np.array(table["example"].to_pylist(), dtype=object)
    found = {}
    for group, rows in groups.rows(table, path).items():
        chosen = tuple(ids[rows].tolist())
        check_unique(chosen, groups.told(group), path)
        arrays = {"predicted": predicted, "confidence": confidence, "loss": loss}
        of_group: dict[str, Any] = {name: array[None, rows] for name, array in arrays.items()}
        found[group] = CellPredictions(tuple(names), chosen, labels[rows], **of_group)
    return found


def read_classes(path: str | Path, groups: Groups = OF_A_RUN) -> pa.Table:
    """The columns of a predictions.csv with labels, predictions and probabilities, and those of `groups`.

    Raises:
        SeedbedError: the file is cut, or has other columns.
    """
    content, text, header = read_header(path)
    probabilities = [name for name in header if name.startswith(PROBABILITY)]
    if not probabilities or not {*TEXTS, *groups.columns} <= set(header) or len(set(header)) < len(header):
        raise bad_predictions(f"{path}, line 1", f"columns {', '.join(header) or 'none'}")
    kinds = dict.fromkeys(TEXTS, CATEGORY) | {"example": pa.string(), **groups.columns}
    return read_columns(path, content, text, kinds | dict.fromkeys(probabilities, pa.float64()))


def read_header(path: str | Path) -> tuple[bytes, str, list[str]]:
    """A predictions.csv as bytes and as text, and its columns.

    Raises:
        SeedbedError: see `rows.read_whole`; not UTF-8.
    """
    content = read_whole(path, WHAT, HINT)
    text = decode(content, path, WHAT, HINT)
    return content, text, next(csv.reader(io.StringIO(text, newline="")), [])


def read_columns(path: str | Path, content: bytes, text: str, kinds: Mapping[str, pa.DataType]) -> pa.Table:
    """Columns of a predictions.csv with these types; an empty cell of numbers is null, and NaN in NumPy.

    Raises:
        SeedbedError: a row is not as long as the header, or a cell is no number where one belongs.
    """
    # Arrow reads 2,200 rows in under a millisecond, four times as fast as the csv module
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(content),
            read_options=arrow_csv.ReadOptions(use_threads=False),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(column_types=kinds, include_columns=list(kinds)),
        )
    except pa.ArrowInvalid as error:
        numbers = [name for name, kind in kinds.items() if pa.types.is_floating(kind)]
        raise bad_predictions(*_first_fault(path, text, numbers, str(error))) from None
    if b"'" in content:
        table = _unguarded(table)
    return table.unify_dictionaries().combine_chunks()


def _unguarded(table: pa.Table) -> pa.Table:
    """The table with every text as it was before `files.guarded`."""
    for index, column in enumerate(table.schema):
        if not pa.types.is_floating(column.type):
            texts = table[column.name].cast(pa.string())
            texts = pc.replace_substring_regex(texts, f"^'({FORMULA.pattern})", r"\1")
            table = table.set_column(index, column.name, texts.cast(column.type))
    return table


def _first_fault(path: str | Path, text: str, numbers: Sequence[str], told: str) -> tuple[str, str]:
    """Where and what the fault is that made a table unreadable; what the reader told if nothing is found."""
    reader = csv.reader(io.StringIO(text, newline=""))
    header = next(reader)
    for row in reader:
        where = f"{path}, line {reader.line_num}"
        if len(row) != len(header):
            return where, f"a row of {len(row)} cells, not {len(header)}"
        for name in numbers:
            cell = row[header.index(name)]
            if not _is_number(cell):
                return where, f"{cell!r} in column {name}"
    return str(path), told


def _is_number(text: str) -> bool:
    try:
        float(text or "nan")
    except ValueError:
        return False
    return True


def categories(column: pa.ChunkedArray) -> tuple[list[str], np.ndarray]:
    """The distinct values of a column, and the index of each row's value among them."""
    chunk = column.chunk(0) if column.num_chunks else pa.array([], CATEGORY)
    return chunk.dictionary.to_pylist(), np.from_dlpack(chunk.indices)


def numbers_of(column: pa.ChunkedArray) -> np.ndarray:
    """A column of numbers; NaN for an empty cell.

    Arrow's own `to_numpy` imports pandas, which takes 0.25 s.
    """
    whole = column.combine_chunks()
    return whole.to_numpy(zero_copy_only=False) if whole.null_count else np.from_dlpack(whole)


def _codes(column: pa.ChunkedArray, names: Sequence[str], path: str | Path) -> np.ndarray:
    """Indices of `names`, int16; -1 for an empty cell."""
    values, rows = categories(column)
    strange = sorted(set(values) - {"", *names})
    if strange:
        raise SeedbedError(
            "a label that the run does not know",
            where=str(path),
            found=strange[0],
            hint=f"labels of the run: {', '.join(names)}",
        )
    index = {name: code for code, name in enumerate(names)}
    return np.array([index.get(value, -1) for value in values], dtype=np.int16)[rows]


def read_probabilities(table: pa.Table, names: Sequence[str], path: str | Path) -> np.ndarray:
    """(examples, classes) float64, classes in the order of `names`; NaN for an empty cell."""
    columns = [f"{PROBABILITY}{name}" for name in names]
    found = [name for name in table.column_names if name.startswith(PROBABILITY)]
    if sorted(columns) != sorted(found):
        raise bad_predictions(f"{path}, line 1", f"{', '.join(found)}, and the classes {', '.join(names)}")
    values = np.column_stack([numbers_of(table[column]) for column in columns])
    outside = (values < 0) | (values > 1)
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise SeedbedError(
            "a probability outside [0, 1]",
            where=f"{path}, line {row + 2}, {columns[column]}",
            found=float(values[row, column]),
            hint=HINT,
        )
    return values


def _check_probabilities(
    probabilities: np.ndarray, predicted: np.ndarray, missing: np.ndarray, path: str | Path
) -> None:
    """Hold a prediction to its probabilities, where they are there."""
    # a comparison with NaN is false, and so is that of what is missing
    off = np.abs(probabilities.sum(axis=1) - 1) > SUM_ROUNDING
    if off.any():
        found = f"{probabilities[np.argmax(off)].sum():.9g}"
        raise contradiction("the probabilities of an example do not sum to 1", off, found, path)
    chosen = probabilities[np.arange(len(predicted)), predicted]
    other = ~missing & ((predicted < 0) | (chosen < probabilities.max(axis=1) - TIE))
    if other.any():
        found = ", ".join(f"{value:.9g}" for value in probabilities[np.argmax(other)])
        raise contradiction("a prediction is not the class of the largest probability", other, found, path)


def contradiction(what: str, rows: np.ndarray, found: str, path: str | Path) -> SeedbedError:
    """The error of rows whose cells contradict each other; it names the first."""
    return SeedbedError(what, where=f"{path}, line {line_of(rows)}", found=found, hint=HINT)


def _confidence_and_loss(
    probabilities: np.ndarray, labels: np.ndarray, predicted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    rows = np.arange(len(labels))
    confidence = np.where(predicted >= 0, probabilities[rows, predicted], np.nan)
    with np.errstate(divide="ignore"):
        loss = -np.log(probabilities[rows, labels])
    return confidence.astype(np.float32), loss.astype(np.float32)


def split_rows(column: pa.ChunkedArray, path: str | Path) -> dict[str, np.ndarray]:
    """Rows of each split in their order."""
    values, codes = categories(column)
    strange = [code for code, value in enumerate(values) if value not in PREDICTED]
    if strange:
        where = f"{path}, line {line_of(codes == strange[0])}"
        raise bad_predictions(where, f"a row of the split {values[strange[0]]!r}")
    empty = [split for split in PREDICTED if split not in values]
    if empty:
        raise bad_predictions(path, f"no row of the split {empty[0]}")
    return {split: np.flatnonzero(codes == values.index(split)) for split in PREDICTED}


def line_of(rows: np.ndarray) -> int:
    """The line of the first row that is true; the header is line 1."""
    return int(np.argmax(rows)) + 2


def check_unique(ids: Sequence[str], told: str, path: str | Path) -> None:
    """Refuse examples of which one stands twice."""
    if len(set(ids)) < len(ids):
        seen: set[str] = set()
        for repeated in ids:
            if repeated in seen:
                break
            seen.add(repeated)
        raise SeedbedError(
            f"{told} stands twice among the predictions of one model",
            where=str(path),
            found=repeated,
            hint=HINT,
        )


def bad_predictions(where: str | Path, found: Any) -> SeedbedError:
    """The error of a file that is no table of predictions."""
    return SeedbedError(f"not a {WHAT}", where=str(where), found=found, hint=HINT)
