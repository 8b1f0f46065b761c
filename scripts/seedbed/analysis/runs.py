"""From run folders to runs.csv and curves.csv, and to the predictions of each cell.

Nothing is taken on trust: every run must be there and be the run that its folder names, all runs of a dataset
must have predicted the same examples, and each accuracy is counted again from the predictions.
"""

import collections
import csv
import io
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from seedbed.analysis import label_sets, statistics
from seedbed.analysis.answers import CellAnswers
from seedbed.analysis.majority import not_above_majority
from seedbed.analysis.outputs import CellOutputs, first_difference, read_outputs, stack, with_names
from seedbed.analysis.predictions import CellPredictions, without_leaks
from seedbed.analysis.records import (
    check_predictions,
    curve_columns,
    loss_unit,
    planned_updates,
    read_metrics,
    read_record,
    setting,
    told_columns,
    train_loss_columns,
)
from seedbed.analysis.table_rows import LEAKLESS, RunRow, measured_columns, swept_keys
from seedbed.analysis.values import CellValues
from seedbed.config.runs import RUN_FILES, RUN_KEYS, Run, build_runs
from seedbed.core.errors import SeedbedError
from seedbed.core.files import atomic_open
from seedbed.core.printable import Lines
from seedbed.core.recipes import train_size
from seedbed.core.rows import CELL, Row
from seedbed.core.run_folder import name_of
from seedbed.core.splits import PREDICTED
from seedbed.core.tasks import ANSWERS, CLASSES, LABEL_SETS, METRIC_COLUMNS, VALUES, Task, task_of

TEST_COLUMNS = (
    "test_examples",
    "test_majority_share",
    "test_ece",
    "test_ece_of_chance",
)  # of classes, beside accuracy
SHOWN = 5  # runs in a message

Key = tuple[str, ...]
Cells = dict[Key, CellOutputs]


@dataclass(frozen=True)
class Runs:
    """What the run folders of an experiment hold, checked.

    Attributes:
        rows: those of runs.csv, one a run, in the order of the run table.
        cells: the predictions of each cell by split.
        curves: the lines of curves.csv without its header, one text a run.
    """

    rows: list[RunRow]
    cells: dict[str, Cells]
    curves: list[str]


def read_runs(
    folders: Sequence[str | Path],
    reporting: Mapping[str, Any],
    leaks: Mapping[str, Collection[str]],
    clusters: Mapping[str, Mapping[str, Mapping[str, str]]] = MappingProxyType({}),
    training: Mapping[str, int] = MappingProxyType({}),
) -> Runs:
    """Read all files of all runs, and check them against each other.

    `leaks` holds the ids of each dataset's leaked test examples; columns that end in `_without_leaks` are of
    the other test examples, and empty where no example leaked (or all did). `clusters` holds the clusters of
    examples by dataset, split and id, of datasets that have any. `training` holds the number of training
    texts of each dataset, where sizes of training are swept.

    A run is `collapsed` if it diverged, or predicts a single class or gives a single answer on validation or
    test, where that split tells (see `tells_collapse` of its outputs), or has no finite loss of its answers
    on one of them: such a loss is empty. `validation_all_same` and `test_all_same` say on which split it is a
    single class or answer, and are empty where the split does not tell. `not_above_majority`: see there, at
    the configured confidence. `test_ece` is the expected calibration error and `test_ece_of_chance` what a
    calibrated run would have on so many examples, both empty where a probability is missing. See
    `curve_columns` for `unstable`.

    Raises:
        SeedbedError: see `tables.aggregate`.
    """
    expected = build_runs(dict(reporting))
    found = _match(folders, expected)
    task = task_of(reporting)
    peers: dict[str, _Peers] = {}
    first_of_model: dict[tuple[str, str], tuple[Path, Mapping[str, CellOutputs]]] = {}
    by_cell: dict[Key, list[dict[str, CellOutputs]]] = {}
    planned: dict[Key, list[tuple[float, Path]]] = {}
    rows, curves = [], []
    for run in expected:
        folder, dataset = found[run.folder], reporting["datasets"][run.dataset]
        document = read_record(folder / "run.json", run, reporting)
        predictions = read_outputs(folder / "predictions.csv", task, document)
        predictions = {split: with_names(table, dataset) for split, table in predictions.items()}
        if run.dataset not in peers:
            clustered = _clustered(predictions, clusters.get(run.dataset))
            peers[run.dataset] = _Peers.of(folder, clustered, leaks.get(run.dataset, ()))
        predictions = _share_examples(run.dataset, peers[run.dataset], folder, predictions)
        first = first_of_model.setdefault((run.dataset, run.model), (folder, predictions))
        _check_tokens(first, (folder, predictions))
        check_predictions(document, folder / "run.json", predictions)
        told = told_columns(document, folder / "run.json", task) | {"method": run.method}
        if run.method != "none":
            recipe = (run.dataset, run.model, run.recipe)
            planned.setdefault(recipe, []).append((planned_updates(document, folder / "run.json"), folder))
        metrics = read_metrics(folder / "metrics.csv", document, task)
        unit = loss_unit(document, folder / "run.json", task)
        told |= curve_columns(metrics, told, task, folder / "metrics.csv", unit)
        told |= train_loss_columns(metrics, task)
        size = train_size(reporting["recipes"][run.recipe])
        told["train_size"] = training.get(run.dataset) if size is None else size
        rows.append(_run_row(run, told, predictions, peers[run.dataset], reporting))
        curves.append(_curve(run, metrics))
        by_cell.setdefault(tuple(getattr(run, key) for key in CELL), []).append(predictions)
    for runs in planned.values():
        _check_updates(runs)
    return Runs(rows, _stack_cells(by_cell), curves)


def _clustered(
    predictions: Mapping[str, CellOutputs], clusters: Mapping[str, Mapping[str, str]] | None
) -> Mapping[str, CellOutputs]:
    """Predictions by split with the clusters of their examples, where the dataset has any."""
    if clusters is None:
        return predictions
    return {split: of.clustered(clusters[split]) for split, of in predictions.items()}


def _stack_cells(by_cell: dict[Key, list[dict[str, CellOutputs]]]) -> dict[str, Cells]:
    cells: dict[str, Cells] = {split: {} for split in PREDICTED}
    for key in list(by_cell):
        runs = by_cell.pop(key)  # so that no more than one cell is in memory twice
        for split in PREDICTED:
            cells[split][key] = stack([run[split] for run in runs])
    return cells


@dataclass(frozen=True)
class _Peers:
    """What the runs of a dataset share: the first of them, which of its test examples leaked, and which
    splits tell a collapse."""

    folder: Path
    predictions: Mapping[str, CellOutputs]
    leaked: int
    kept: np.ndarray | None
    telling: tuple[str, ...]

    @classmethod
    def of(cls, folder: Path, predictions: Mapping[str, CellOutputs], leaked: Collection[str]) -> "_Peers":
        ids = predictions["test"].ids
        telling = tuple(split for split, table in predictions.items() if table.tells_collapse)
        return cls(
            folder, predictions, sum(name in leaked for name in ids), without_leaks(ids, leaked), telling
        )


def _share_examples(
    dataset: str, peers: _Peers, folder: Path, predictions: Mapping[str, CellOutputs]
) -> dict[str, CellOutputs]:
    """The predictions with the ids and labels of the first run, so that they are in memory once."""
    shared = {}
    for split, table in predictions.items():
        first = peers.predictions[split]
        _check_examples(dataset, split, (peers.folder, first), (folder, table))
        shared[split] = table.sharing(first)
    return shared


def _check_examples(
    dataset: str, split: str, first: tuple[Path, CellOutputs], other: tuple[Path, CellOutputs]
) -> None:
    difference = first_difference(first[1], other[1])
    if difference is None:
        return
    raise SeedbedError(
        f"two runs of dataset {dataset!r} were not evaluated on the same {split} examples",
        where=f"{first[0]}/predictions.csv and {other[0]}/predictions.csv",
        found=f"{split} {difference}",
        hint="the dataset changed between these runs: remove the older run and let Snakemake make it anew",
    )


def _check_tokens(
    first: tuple[Path, Mapping[str, CellOutputs]], other: tuple[Path, Mapping[str, CellOutputs]]
) -> None:
    """Hold the answer tokens of two runs of one model to each other: losses are means over them."""
    for split, a in first[1].items():
        b = other[1][split]
        if (
            isinstance(a, CellAnswers)
            and isinstance(b, CellAnswers)
            and not np.array_equal(a.tokens, b.tokens)
        ):
            index = int(np.argmax(a.tokens != b.tokens))
            raise SeedbedError(
                "two runs of one model do not have the same tokens of an answer",
                where=f"{first[0]}/predictions.csv and {other[0]}/predictions.csv",
                found=f"{split} example {a.ids[index]!r}: {a.tokens[index]} and {b.tokens[index]} tokens",
                hint="the tokens changed between these runs: remove the older run and let Snakemake make it "
                "anew",
            )


def _check_updates(runs: Sequence[tuple[float, Path]]) -> None:
    """Hold the runs of one recipe, dataset and model to each other: all plan the same number of updates."""
    counts = collections.Counter(updates for updates, _ in runs)
    if len(counts) == 1:
        return
    usual = max(counts, key=lambda updates: (counts[updates], updates))
    odd = [(updates, folder) for updates, folder in runs if updates != usual]
    listed = [f"{updates} in {folder}/run.json" for updates, folder in odd[:SHOWN]]
    more = [f"{len(odd) - SHOWN} more"] if odd[SHOWN:] else []
    raise SeedbedError(
        "runs of one recipe were not trained for the same number of updates",
        where=str(odd[0][1]),
        found=f"{usual} updates in {counts[usual]} runs; {', '.join([*listed, *more])}",
        hint=Lines(
            "the training examples changed between these runs; have the odd ones made anew: run the same\n"
            "         command with this at its end:\n"
            f"         --forcerun {' '.join(f'{folder}/run.json' for _, folder in odd)}"
        ),
    )


def _match(folders: Sequence[str | Path], expected: Sequence[Run]) -> dict[str, Path]:
    """Folders by the run that they name, all of the grid and no other, each with its files."""
    found = {name_of(Path(folder)): Path(folder) for folder in folders}
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
    predictions: Mapping[str, CellOutputs],
    peers: _Peers,
    reporting: Mapping[str, Any],
) -> RunRow:
    test, validation = predictions["test"], predictions["validation"]
    clean = None if peers.kept is None else test.keep(peers.kept)
    confidence = reporting["statistics"]["confidence"]
    counted = COUNTED[test.task.outputs](validation, test, clean, confidence)
    broken = bool(test.undefined.any() or validation.undefined.any())
    same = {split: bool(predictions[split].all_same.all()) for split in peers.telling}
    columns: dict[str, Any] = {
        **dict.fromkeys(measured_columns(task_of(reporting))),
        **{key: getattr(run, key) for key in RUN_KEYS},
        **told,
        **counted,
        "leaked_test_examples": peers.leaked,
        "collapsed": told["diverged"] or broken or any(same.values()),
        **{f"{split}_all_same": same.get(split) for split in PREDICTED},
        **{key: setting(reporting["recipes"][run.recipe], key) for key in swept_keys(reporting)},
    }
    return RunRow.of(columns)


def _columns_of_classes(
    validation: CellPredictions, test: CellPredictions, clean: CellPredictions | None, confidence: float
) -> dict[str, Any]:
    """The columns of one run that are counted of its predicted classes."""
    return {
        **{f"validation_{metric}": validation.measured(metric)[0] for metric in validation.task.counted},
        **_test_columns(test, "", confidence, test.task),
        **_test_columns(clean, LEAKLESS, confidence, test.task),
        "validation_majority_share": validation.majority_share,
    }


def _columns_of_answers(
    validation: CellAnswers, test: CellAnswers, clean: CellAnswers | None, confidence: float
) -> dict[str, Any]:
    """The columns of one run that are counted of its answers."""
    counted: dict[str, Any] = {f"validation_{name}": value for name, value in _measured(validation).items()}
    return counted | _answer_columns(test, "") | _answer_columns(clean, LEAKLESS)


def _columns_of_values(
    validation: CellValues, test: CellValues, clean: CellValues | None, confidence: float
) -> dict[str, Any]:
    """The columns of one run that are counted of its predicted numbers."""
    found = {f"validation_{metric}": validation.measured(metric)[0] for metric in validation.task.counted}
    for table, ending in ((test, ""), (clean, LEAKLESS)):
        if table is not None:
            found |= {f"test_{metric}{ending}": table.measured(metric)[0] for metric in table.task.counted}
            found[f"test_examples{ending}"] = len(table.ids)
            found[f"not_above_majority{ending}"] = table.not_above_constant(confidence)
    return found


# by a task's outputs: of those on validation, on test, and on the test examples that did not leak, if any
COUNTED: dict[str, Callable[[Any, Any, Any, float], dict[str, Any]]] = {
    CLASSES: _columns_of_classes,
    LABEL_SETS: label_sets.columns,
    VALUES: _columns_of_values,
    ANSWERS: _columns_of_answers,
}


def _measured(table: CellAnswers) -> dict[str, float | None]:
    """All metrics of one run's answers."""
    return {name: table.measured(name)[0] for name in (*table.task.metrics, *table.task.final)}


def _answer_columns(table: CellAnswers | None, ending: str) -> dict[str, Any]:
    """The columns of one run that are counted of answers on a test set; none where there is no such set."""
    if table is None:
        return {}
    columns: dict[str, Any] = {f"test_{name}{ending}": value for name, value in _measured(table).items()}
    groups = int(table.groups.max()) + 1  # texts, where questions are about one
    return columns | {f"test_examples{ending}": len(table.ids), f"test_groups{ending}": groups}


def _test_columns(
    table: CellPredictions | None, ending: str, confidence: float, task: Task
) -> dict[str, Any]:
    """The columns of one run that are counted on a test set; all empty where there is no such set."""
    columns = {}
    if table is not None:
        sure = table.confidence[0] if np.isfinite(table.confidence).all() else None
        columns = {
            **{f"test_{metric}": table.measured(metric)[0] for metric in task.counted},
            "test_examples": len(table.ids),
            "test_majority_share": table.majority_share,
            "test_ece": None if sure is None else statistics.calibration_error(sure, table.correct[0]),
            "test_ece_of_chance": None if sure is None else statistics.calibration_error_of_chance(sure),
            "not_above_majority": not_above_majority(table, confidence),
        }
    names = (*(f"test_{metric}" for metric in task.counted), *TEST_COLUMNS, "not_above_majority")
    return {f"{name}{ending}": columns.get(name) for name in names}


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
