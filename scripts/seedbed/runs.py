"""From run folders to runs.csv and curves.csv, and to the predictions of each cell.

Nothing is taken on trust: every run must be there and be the run that its folder names, all runs of a dataset
must have predicted the same examples, and each accuracy is counted again from the predictions.
"""

import csv
import itertools
import json
import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from seedbed import statistics
from seedbed.errors import SeedbedError
from seedbed.files import atomic_open
from seedbed.plan import RUN_FILES, RUN_KEYS, Run, build_runs
from seedbed.predictions import SPLITS, CellPredictions, read_predictions, stack, without_leaks
from seedbed.rows import CELL, TEST_SETS, Row
from seedbed.tasks import METRIC_COLUMNS, TASKS, Task

SECONDS = ("start_up", "train", "evaluate", "write", "total")
# what is counted on each test set
TEST_COLUMNS = ("test_accuracy", "test_examples", "test_majority_share", "test_ece")
MISSING = frozenset({"", "nan", "inf", "-inf", "none", "null"})

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


def read_runs(
    folders: Sequence[str | Path], reporting: Mapping[str, Any], leaks: Mapping[str, Collection[str]]
) -> tuple[list[Row], dict[str, Cells]]:
    """One row a run, in the order of the run table, checked; and the predictions of each cell by split.

    `leaks` holds the ids of each dataset's leaked test examples; columns that end in `_without_leaks` are of
    the other test examples, and empty where no example leaked (or all did).

    A run is `collapsed` if it diverged or predicts a single class on validation or test. It is
    `not_above_majority` if the one-sided Wilson bound of its test accuracy, at the configured confidence,
    does not exceed the share of the largest class. `test_ece` is the expected calibration error, empty where
    a probability is missing.

    Raises:
        SeedbedError: see `tables.aggregate`.
    """
    expected = build_runs(dict(reporting))
    found = _match(folders, expected)
    peers: dict[str, _Peers] = {}
    by_cell: dict[Key, list[dict[str, CellPredictions]]] = {}
    rows = []
    for run in expected:
        folder = found[run.folder]
        document = _read_json(folder / "run.json")
        _check_identity(document, run, folder / "run.json", reporting["experiment"])
        _check_settings(document, folder / "run.json", reporting["recipes"][run.recipe])
        names = tuple(map(str, _value(document, folder / "run.json", "label_names")))
        predictions = read_predictions(folder / "predictions.csv", names)
        if run.dataset not in peers:
            peers[run.dataset] = _Peers.of(folder, predictions, leaks.get(run.dataset, ()))
        predictions = _share_examples(run.dataset, peers[run.dataset], folder, predictions)
        rows.append(_run_row(run, document, predictions, peers[run.dataset], folder, reporting))
        by_cell.setdefault(tuple(getattr(run, key) for key in CELL), []).append(predictions)
    return rows, _stack_cells(by_cell)


def _stack_cells(by_cell: dict[Key, list[dict[str, CellPredictions]]]) -> dict[str, Cells]:
    cells: dict[str, Cells] = {split: {} for split in SPLITS}
    for key in list(by_cell):
        runs = by_cell.pop(key)  # so that no more than one cell is in memory twice
        for split in SPLITS:
            cells[split][key] = stack([run[split] for run in runs])
    return cells


@dataclass(frozen=True)
class _Peers:
    """What the runs of a dataset share: the first of them, and which of its test examples leaked."""

    folder: Path
    predictions: Mapping[str, CellPredictions]
    leaked: int
    kept: np.ndarray | None

    @classmethod
    def of(
        cls, folder: Path, predictions: Mapping[str, CellPredictions], leaked: Collection[str]
    ) -> "_Peers":
        ids = predictions["test"].ids
        return cls(folder, predictions, sum(name in leaked for name in ids), without_leaks(ids, leaked))


def _share_examples(
    dataset: str, peers: _Peers, folder: Path, predictions: Mapping[str, CellPredictions]
) -> dict[str, CellPredictions]:
    """The predictions with the ids and labels of the first run, so that they are in memory once."""
    shared = {}
    for split, table in predictions.items():
        first = peers.predictions[split]
        if table.names != first.names:
            raise SeedbedError(
                f"two runs of dataset {dataset!r} do not know the same classes",
                where=f"{peers.folder}/run.json and {folder}/run.json",
                found=f"{', '.join(first.names)}; and {', '.join(table.names)}",
                hint="the dataset changed between these runs: let Snakemake make the older run anew",
            )
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


def _read_json(path: Path) -> Row:
    try:
        with open(path, encoding="utf-8") as stream:
            return json.load(stream)
    except json.JSONDecodeError as error:
        raise SeedbedError(
            "not a whole JSON file",
            where=f"{path}, line {error.lineno}",
            found=error.msg,
            hint="remove the run's folder and let Snakemake make it anew",
        ) from None


def _value(document: Row, path: Path, *keys: str) -> Any:
    """document[key][key]..., with an error that names file and key."""
    value: Any = document
    for depth, key in enumerate(keys):
        if not isinstance(value, Mapping) or key not in value:
            raise SeedbedError(
                "a run's file lacks a key",
                where=f"{path}, {'.'.join(keys[: depth + 1])}",
                hint="remove the run's folder and let Snakemake make it anew",
            )
        value = value[key]
    return value


def _check_identity(document: Row, run: Run, path: Path, experiment: str) -> None:
    meant = {key: getattr(run, key) for key in RUN_KEYS} | {
        "swept": dict(run.swept),
        "experiment": experiment,
    }
    told = {key: _value(document, path, "run", key) for key in (*RUN_KEYS, "swept")}
    told["experiment"] = _value(document, path, "experiment")
    settings = _value(document, path, "settings")
    told["swept"] = told["swept"] and {key: settings.get(key) for key in told["swept"]}
    wrong = [key for key in meant if told[key] != meant[key]]
    if wrong:
        raise SeedbedError(
            "a run's file tells of another run than its folder",
            where=str(path),
            found="; ".join(f"{key} is {told[key]!r}, the folder says {meant[key]!r}" for key in wrong),
            hint="remove the run's folder and let Snakemake make it anew",
        )


def _check_settings(document: Row, path: Path, recipe: Mapping[str, Any]) -> None:
    settings = _value(document, path, "settings")
    changed = [key for key in recipe if key in settings and settings[key] != recipe[key]]
    if changed:
        raise SeedbedError(
            "a run was trained with other settings than its recipe has now",
            where=str(path),
            found="; ".join(f"{key} was {settings[key]!r}, is {recipe[key]!r}" for key in changed),
            hint="let Snakemake make the run anew, or give the changed recipe another name",
        )


def _check_accuracy(split: str, table: CellPredictions, told: Any, folder: Path) -> None:
    right, examples = int(table.correct.sum()), len(table.ids)
    # half an example is far more than rounding and far less than one wrong answer
    if not isinstance(told, (int, float)) or not abs(told - right / examples) < 0.5 / examples:
        raise SeedbedError(
            f"the {split} accuracy of a run is not that of its predictions",
            where=f"{folder}/run.json and {folder}/predictions.csv",
            found=f"{told} in run.json, {right} of {examples} = {right / examples} by counting",
            hint="the two files are not of one run: remove the folder and let Snakemake make it anew",
        )


def _run_row(
    run: Run,
    document: Row,
    predictions: Mapping[str, CellPredictions],
    peers: _Peers,
    folder: Path,
    reporting: Mapping[str, Any],
) -> Row:
    path = folder / "run.json"
    test, validation = predictions["test"], predictions["validation"]
    for split, table in predictions.items():
        _check_accuracy(split, table, _value(document, path, split, "accuracy"), folder)
    clean = None if peers.kept is None else test.keep(peers.kept)
    confidence = reporting["statistics"]["confidence"]
    diverged = bool(_value(document, path, "diverged"))
    seconds = _value(document, path, "seconds")
    return {
        **{key: getattr(run, key) for key in RUN_KEYS},
        "selected_step": _value(document, path, "selected", "step"),
        "validation_accuracy": int(validation.correct.sum()) / len(validation.ids),
        "validation_loss": _number(_value(document, path, "validation", "loss")),
        "test_loss": _number(_value(document, path, "test", "loss")),
        **_test_columns(test, TEST_SETS["all"], confidence),
        **_test_columns(clean, TEST_SETS["without leaks"], confidence),
        "leaked_test_examples": peers.leaked,
        "validation_majority_share": validation.majority_share,
        "collapsed": diverged or bool(test.one_class.all() or validation.one_class.all()),
        "diverged": diverged,
        "updates": _value(document, path, "updates"),
        **{f"{part}_seconds": seconds.get(part) for part in SECONDS},
        **{key: document.get(key) for key in ("samples_per_second", "tokens_per_second", "padding_share")},
        **{key: document.get(key) for key in ("peak_memory_mib", "energy_joules", "device")},
        **{key: reporting["recipes"][run.recipe].get(key) for key in swept_keys(reporting)},
    }


def _number(value: Any) -> float | None:
    """A finite number or None."""
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None


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


def write_curves(folders: Sequence[str | Path], reporting: Mapping[str, Any], path: str | Path) -> None:
    """Write the metrics of all runs under each other, with their run columns; not-a-number is an empty cell.

    Raises:
        SeedbedError: a metrics.csv has other columns.
    """
    expected = build_runs(dict(reporting))
    found = _match(folders, expected)
    value = METRIC_COLUMNS.index("value")
    with atomic_open(path) as target:
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow([*RUN_KEYS, *METRIC_COLUMNS])
        for run in expected:
            keys = [getattr(run, key) for key in RUN_KEYS]
            for row in _metric_rows(found[run.folder] / "metrics.csv"):
                if row[value].lower() in MISSING:
                    row[value] = ""
                writer.writerow(keys + row)


def _metric_rows(path: Path) -> Iterable[list[str]]:
    with open(path, encoding="utf-8", newline="") as stream:
        reader = csv.reader(stream)
        header = next(reader, [])
        if tuple(header) != METRIC_COLUMNS:
            raise SeedbedError(
                "not a table of metrics",
                where=f"{path}, line 1",
                found=", ".join(header),
                hint=f"its columns are {', '.join(METRIC_COLUMNS)}",
            )
        for row in reader:
            if len(row) != len(METRIC_COLUMNS):
                raise SeedbedError(
                    "a row of a table of metrics is not whole",
                    where=f"{path}, line {reader.line_num}",
                    found=",".join(row),
                    hint="remove the run's folder and let Snakemake make it anew",
                )
            yield row


def _tasks(reporting: Mapping[str, Any]) -> list[Task]:
    return [TASKS[name] for name in dict.fromkeys(block["task"] for block in reporting["datasets"].values())]
