"""From run folders to runs.csv and curves.csv, and to the predictions of each cell.

Nothing is taken on trust: every run must be there and be the run that its folder names, all runs of a dataset
must have predicted the same examples, and each accuracy is counted again from the predictions.
"""

import csv
import io
import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from seedbed.analysis import statistics
from seedbed.analysis.predictions import SPLITS, CellPredictions, read_predictions, stack, without_leaks
from seedbed.analysis.records import SECONDS, check_predictions, read_metrics, read_record, told_columns
from seedbed.analysis.rows import CELL, TEST_SETS, Row
from seedbed.errors import SeedbedError
from seedbed.files import atomic_open
from seedbed.plan import RUN_FILES, RUN_KEYS, Run, build_runs
from seedbed.tasks import METRIC_COLUMNS, TASKS, Task

# what is counted on each test set
TEST_COLUMNS = ("test_accuracy", "test_examples", "test_majority_share", "test_ece")
# Largest probability that a sound run predicts one class on a split that tells a collapse.
CHANCE_OF_ONE_CLASS = 0.001

Key = tuple[str, ...]
Cells = dict[Key, CellPredictions]


def run_columns(reporting: Mapping[str, Any]) -> list[str]:
    """Columns of runs.csv; the values of every swept hyperparameter stand last, under its own name."""
    metrics = [metric for task in _tasks(reporting) for metric in task.metrics]
    return [
        *RUN_KEYS,
        "selected_step",
        *dict.fromkeys(f"{split}_{metric}" for split in ("validation", "test") for metric in metrics),
        *(
            f"{name}{ending}"
            for ending in TEST_SETS.values()
            for name in TEST_COLUMNS
            if ending or name != "test_accuracy"  # which stands among the metrics
        ),
        "leaked_test_examples",
        "validation_majority_share",
        "collapsed",
        "diverged",
        "not_above_majority",
        "not_above_majority_without_leaks",
        "updates",
        *(f"{part}_seconds" for part in SECONDS),
        "samples_per_second",
        "tokens_per_second",
        "padding_share",
        "peak_memory_mib",
        "energy_joules",
        "device",
        *swept_keys(reporting),
    ]


def swept_keys(reporting: Mapping[str, Any]) -> list[str]:
    """Hyperparameters that any recipe of the experiment sweeps."""
    return list(dict.fromkeys(key for recipe in reporting["recipes"].values() for key in recipe["swept"]))


@dataclass(frozen=True)
class Runs:
    """What the run folders of an experiment hold, checked.

    Attributes:
        rows: one a run, in the order of the run table: those of runs.csv.
        cells: the predictions of each cell by split.
        curves: the lines of curves.csv without its header, one text a run.
    """

    rows: list[Row]
    cells: dict[str, Cells]
    curves: list[str]


def read_runs(
    folders: Sequence[str | Path], reporting: Mapping[str, Any], leaks: Mapping[str, Collection[str]]
) -> Runs:
    """Read all files of all runs, and check them against each other.

    `leaks` holds the ids of each dataset's leaked test examples; columns that end in `_without_leaks` are of
    the other test examples, and empty where no example leaked (or all did).

    A run is `collapsed` if it diverged or predicts a single class on validation or test, where that split
    tells (see `_tells_collapse`). It is `not_above_majority` if the one-sided Wilson bound of its test
    accuracy, at the configured confidence, does not exceed the share of the largest class. `test_ece` is the
    expected calibration error, empty where a probability is missing.

    Raises:
        SeedbedError: see `tables.aggregate`.
    """
    expected = build_runs(dict(reporting))
    found = _match(folders, expected)
    peers: dict[str, _Peers] = {}
    by_cell: dict[Key, list[dict[str, CellPredictions]]] = {}
    rows, curves = [], []
    for run in expected:
        folder, dataset = found[run.folder], reporting["datasets"][run.dataset]
        document = read_record(folder / "run.json", run, reporting)
        predictions = read_predictions(folder / "predictions.csv", dataset["label_names"])
        if run.dataset not in peers:
            peers[run.dataset] = _Peers.of(folder, predictions, leaks.get(run.dataset, ()))
        predictions = _share_examples(run.dataset, peers[run.dataset], folder, predictions)
        check_predictions(document, folder / "run.json", predictions)
        told = told_columns(document, folder / "run.json")
        rows.append(_run_row(run, told, predictions, peers[run.dataset], reporting))
        curves.append(_curve(run, read_metrics(folder / "metrics.csv", document, TASKS[dataset["task"]])))
        by_cell.setdefault(tuple(getattr(run, key) for key in CELL), []).append(predictions)
    return Runs(rows, _stack_cells(by_cell), curves)


def _stack_cells(by_cell: dict[Key, list[dict[str, CellPredictions]]]) -> dict[str, Cells]:
    cells: dict[str, Cells] = {split: {} for split in SPLITS}
    for key in list(by_cell):
        runs = by_cell.pop(key)  # so that no more than one cell is in memory twice
        for split in SPLITS:
            cells[split][key] = stack([run[split] for run in runs])
    return cells


@dataclass(frozen=True)
class _Peers:
    """What the runs of a dataset share: the first of them, which of its test examples leaked, and which
    splits tell a collapse."""

    folder: Path
    predictions: Mapping[str, CellPredictions]
    leaked: int
    kept: np.ndarray | None
    telling: tuple[str, ...]

    @classmethod
    def of(
        cls, folder: Path, predictions: Mapping[str, CellPredictions], leaked: Collection[str]
    ) -> "_Peers":
        ids = predictions["test"].ids
        telling = tuple(split for split, table in predictions.items() if _tells_collapse(table.labels))
        return cls(
            folder, predictions, sum(name in leaked for name in ids), without_leaks(ids, leaked), telling
        )


def _tells_collapse(labels: np.ndarray) -> bool:
    """Whether a single predicted class on examples with these labels, (examples,), is more than chance.

    It is where predictions drawn at random, each class as often as it is the label, would all be the same
    with a probability below CHANCE_OF_ONE_CLASS: from 12 examples of two classes of one size, from about 70
    where one has 90% of them, and never where there is one class.
    """
    shares = np.bincount(labels) / len(labels)
    return float((shares ** len(labels)).sum()) < CHANCE_OF_ONE_CLASS


def _share_examples(
    dataset: str, peers: _Peers, folder: Path, predictions: Mapping[str, CellPredictions]
) -> dict[str, CellPredictions]:
    """The predictions with the ids and labels of the first run, so that they are in memory once."""
    shared = {}
    for split, table in predictions.items():
        first = peers.predictions[split]
        _check_examples(dataset, split, (peers.folder, first), (folder, table))
        shared[split] = replace(table, ids=first.ids, labels=first.labels)
    return shared


def _check_examples(
    dataset: str, split: str, first: tuple[Path, CellPredictions], other: tuple[Path, CellPredictions]
) -> None:
    (folder_a, a), (folder_b, b) = first, other
    if a.ids == b.ids and np.array_equal(a.labels, b.labels):
        return
    pairs = itertools.zip_longest(_examples(a), _examples(b))
    index, (left, right) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
    raise SeedbedError(
        f"two runs of dataset {dataset!r} were not evaluated on the same {split} examples",
        where=f"{folder_a}/predictions.csv and {folder_b}/predictions.csv",
        found=f"{split} example {index + 1}: {left or 'none'}, and {right or 'none'}",
        hint="the dataset changed between these runs: remove the older run and let Snakemake make it anew",
    )


def _examples(table: CellPredictions) -> Iterator[str]:
    for name, label in zip(table.ids, table.labels, strict=True):
        yield f"{name!r} labelled {table.names[label]!r}"


def _match(folders: Sequence[str | Path], expected: Sequence[Run]) -> dict[str, Path]:
    """Folders by the run that they name, all of the grid and no other, each with its files."""
    found = {"/".join(Path(folder).parts[-6:]): Path(folder) for folder in folders}
    missing = [run.folder for run in expected if run.folder not in found]
    missing += [
        f"{folder}/{name}"
        for folder in map(str, found.values())
        for name in RUN_FILES
        if not os.path.exists(f"{folder}/{name}")  # ten times as fast as pathlib, which 10,000 runs notice
    ]
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise SeedbedError(
            "runs of the grid are missing, and a table without them would mislead",
            where="results of the runs",
            found=f"missing: {shown}",
            hint="let Snakemake make them, or take them out of grid in the config",
        )
    strangers = sorted(set(found) - {run.folder for run in expected})
    if strangers:
        raise SeedbedError(
            "a run folder that is not in the grid of the experiment",
            where=str(found[strangers[0]]),
            hint="aggregate only the runs of the grid",
        )
    return found


def _run_row(
    run: Run,
    told: Row,
    predictions: Mapping[str, CellPredictions],
    peers: _Peers,
    reporting: Mapping[str, Any],
) -> Row:
    test, validation = predictions["test"], predictions["validation"]
    clean = None if peers.kept is None else test.keep(peers.kept)
    confidence = reporting["statistics"]["confidence"]
    return {
        **{key: getattr(run, key) for key in RUN_KEYS},
        **told,
        "validation_accuracy": int(validation.correct.sum()) / len(validation.ids),
        **_test_columns(test, TEST_SETS["all"], confidence),
        **_test_columns(clean, TEST_SETS["without leaks"], confidence),
        "leaked_test_examples": peers.leaked,
        "validation_majority_share": validation.majority_share,
        "collapsed": told["diverged"] or any(predictions[split].one_class.all() for split in peers.telling),
        **{key: reporting["recipes"][run.recipe].get(key) for key in swept_keys(reporting)},
    }


def _test_columns(table: CellPredictions | None, ending: str, confidence: float) -> Row:
    """The columns of one run that are counted on a test set; all empty where there is no such set."""
    columns = {}
    if table is not None:
        right, examples = int(table.correct.sum()), len(table.ids)
        whole = np.isfinite(table.confidence).all()
        columns = {
            "test_accuracy": right / examples,
            "test_examples": examples,
            "test_majority_share": table.majority_share,
            "test_ece": statistics.calibration_error(table.confidence[0], table.correct[0])
            if whole
            else None,
            "not_above_majority": not (
                statistics.wilson_lower(right, examples, confidence) > table.majority_share
            ),
        }
    return {f"{name}{ending}": columns.get(name) for name in (*TEST_COLUMNS, "not_above_majority")}


# --- curves -----------------------------------------------------------------------------------------------


def _curve(run: Run, metrics: Iterable[Sequence[str]]) -> str:
    keys = [getattr(run, key) for key in RUN_KEYS]
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows([*keys, *row] for row in metrics)
    return lines.getvalue()


def write_curves(path: str | Path, curves: Iterable[str]) -> None:
    """Write `Runs.curves` under each other: the metrics of all runs with their run columns."""
    with atomic_open(path) as target:
        target.write(",".join((*RUN_KEYS, *METRIC_COLUMNS)) + "\n")
        target.writelines(curves)


def _tasks(reporting: Mapping[str, Any]) -> list[Task]:
    return [TASKS[name] for name in dict.fromkeys(block["task"] for block in reporting["datasets"].values())]
