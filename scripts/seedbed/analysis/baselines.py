"""The bag-of-words baseline of each dataset: what it has on test, and what a bag_of_words.csv tells of it."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from seedbed.analysis import scored_bags
from seedbed.analysis.table_rows import RunRow, SummaryRow
from seedbed.core import class_metrics
from seedbed.core.class_metrics import Counts
from seedbed.core.errors import SeedbedError
from seedbed.core.rows import ANEW, TEST_SETS, read_csv
from seedbed.core.tasks import CLASSES, LABEL_SETS, VALUES, Task, task_of

BASELINE_COLUMNS = ("split", "metric", "value")
COUNTS = "counts"  # begins the names of confusion tables in it


@dataclass(frozen=True)
class Baseline:
    """The bag-of-words baseline of a dataset, or of a size of training.

    Attributes:
        values: by metric and test set; empty where there is no bag.
        features: what the bag is of, where it is not of words.
        left_out: why there is no bag; None where there is one.
    """

    values: Mapping[tuple[str, str], float] = field(default_factory=dict)
    features: str | None = None
    left_out: str | None = None


# of an experiment, by dataset and number of training texts; None where sizes of training are not swept
Baselines = dict[tuple[str, int | None], Baseline]


def baseline_of(baselines: Mapping[tuple[str, int | None], Baseline], row: RunRow | SummaryRow) -> Baseline:
    """The baseline beside a row of runs.csv or summary.csv; an empty one where there is none."""
    return baselines.get((row.dataset, row.train_size), Baseline())


# the values of a bag_of_words.csv by split and name, each with its line
_Told = Mapping[tuple[str, str], tuple[str, int]]


def read_baseline(path: str | Path, reporting: Mapping[str, Any], dataset: str) -> Baseline:
    """The bag-of-words baseline of a dataset, from its bag_of_words.csv.

    Where the dataset chooses a metric, it selects the bag on validation as it selects checkpoints.

    Args:
        path: the table.
        reporting: `Plan.reporting()`.
        dataset: its name.

    Raises:
        SeedbedError: the file is cut, has no row of the whole test split although no bag was left out, or a
            value that is none.
    """
    header, rows = read_csv(path, BASELINE_COLUMNS, what="table of the bag-of-words baseline")
    told = (dict(zip(header, cells, strict=True)) for cells in rows)
    found = {(row["split"], row["metric"]): (row["value"], line) for line, row in enumerate(told, 2)}
    if ("train", "left_out") in found:
        return Baseline(left_out=found["train", "left_out"][0])
    features = found["train", "features"][0] if ("train", "features") in found else None
    values = BASELINES[task_of(reporting).outputs](found, reporting, dataset, path)
    return Baseline(values, features)


def _values_of_classes(
    found: _Told, reporting: Mapping[str, Any], dataset: str, path: str | Path
) -> dict[tuple[str, str], float]:
    """The accuracy of the bag, or where the dataset chooses a metric, all metrics of counts."""
    task = task_of(reporting)
    if not task.has_one_metric:
        return _values_of_counts(found, task, reporting["datasets"][dataset]["labels"], path)
    values = {
        ("accuracy", test_set): _accuracy(*found["test", f"accuracy{ending}"], path)
        for test_set, ending in TEST_SETS.items()
        if ("test", f"accuracy{ending}") in found
    }
    if ("accuracy", "all") not in values:
        raise SeedbedError("no test accuracy of the bag-of-words baseline", where=str(path), hint=ANEW)
    return values


def _accuracy(text: str, line: int, path: str | Path) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise SeedbedError(
            "an accuracy of the bag-of-words baseline outside [0, 1]",
            where=f"{path}, line {line}",
            found=repr(text),
            hint=ANEW,
        )
    return value


def _values_of_counts(
    found: _Told, task: Task, labels: Sequence[str], path: str | Path
) -> dict[tuple[str, str], float]:
    """The metrics of the bag that is the best on validation by the task's; of several the first."""
    tables = {key: _counts(*told, len(labels), path) for key, told in found.items() if COUNTS in key[1]}
    bags = [name.removeprefix(COUNTS) for split, name in tables if split == "validation"]
    if not bags:
        hint = f"an earlier version made the file: {ANEW}"
        raise SeedbedError("no counts of the bag-of-words baseline", where=str(path), hint=hint)

    def value(split: str, name: str, metric: str) -> float:
        return float(class_metrics.value(metric, tables[split, name], labels))

    best = max(bags, key=lambda bag: value("validation", f"{COUNTS}{bag}", task.selection))
    return {
        (metric, test_set): value("test", name, metric)
        for test_set, ending in TEST_SETS.items()
        if ("test", name := f"{COUNTS}{ending}{best}") in tables
        for metric in task.reported
    }


def _counts(text: str, line: int, classes: int, path: str | Path) -> Counts:
    """The counts of a confusion table, in which the last classes are missing if they do not occur."""
    try:
        table = np.array(json.loads(text), dtype=np.float64)
        whole = np.pad(table, (0, classes - len(table)))
    except (ValueError, TypeError):
        raise SeedbedError(
            "not a table of counts of the bag-of-words baseline",
            where=f"{path}, line {line}",
            found=text[:80],
            hint=ANEW,
        ) from None
    return Counts(whole.diagonal(), whole.sum(axis=0), whole.sum(axis=1), np.array(0.0))


# by a task's outputs: the values of a bag by metric and test set
BASELINES: dict[str, Callable[..., dict[tuple[str, str], float]]] = {
    CLASSES: _values_of_classes,
    LABEL_SETS: scored_bags.values_of_best,
    VALUES: scored_bags.values_of_best,
}
