"""What a run tells of itself, run.json and metrics.csv: checked here, before anything rests on it."""

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seedbed.analysis.answers import CellAnswers
from seedbed.analysis.label_sets import CellLabelSets
from seedbed.analysis.outputs import CellOutputs
from seedbed.analysis.predictions import CellPredictions
from seedbed.analysis.values import CellValues
from seedbed.config.runs import RUN_KEYS, Run
from seedbed.core.errors import SeedbedError
from seedbed.core.known import all_known, known
from seedbed.core.rows import Row, read_csv
from seedbed.core.tasks import (
    ANSWERS,
    CLASSES,
    LABEL_SETS,
    METRIC_COLUMNS,
    METRICS,
    NATS,
    VALUES,
    Task,
    task_of,
)
from seedbed.core.words import bounds_of
from seedbed.running.jobs import has_planned_updates

HINT = "remove the run's folder and let Snakemake make it anew"
SECONDS = ("start_up", "train", "evaluate", "write", "total")
PARAMETERS = ("trainable", "total")
# what not every machine or run can tell
OPTIONAL = ("samples_per_second", "tokens_per_second", "padding_share", "peak_memory_mib", "energy_joules")
# of run.json, what reports read beside numbers: key by key, the types that it may have
REPORTED: dict[tuple[str, ...], tuple[type, ...]] = {
    ("settings",): (Mapping,),
    ("diverged",): (bool,),
    ("device",): (str,),
    ("versions",): (Mapping,),
    ("git_commit",): (str, type(None)),
    ("hardware", "cpu"): (str, type(None)),
    ("hardware", "cpus"): (int, type(None)),
    ("differences",): (list,),
}
# Nats: below exp(-700) a probability is near the smallest that a float64 tells, and its logarithm is rough.
LARGEST_LOSS = 700.0
# Relative to the larger of the loss and 1: probabilities have nine digits, and losses here are float32.
LOSS_ROUNDING = 1e-6
COUNTED_ROUNDING = 1e-9  # of metrics of the same counts
# A training loss is unstable that rises from one epoch to the next by more than both: a share, and nats.
RISE_SHARE, RISE_NATS = 0.05, 0.05


def read_record(path: Path, run: Run, reporting: Mapping[str, Any]) -> Row:
    """The content of a run.json that tells of the run it should, with all that tables and reports need.

    Raises:
        SeedbedError: no JSON; another run, another recipe or other classes than the configuration has; a key
            that is missing or of another type; a number that is not finite or below zero.
    """
    document = _read_json(path)
    _check_identity(document, run, path, reporting["experiment"])
    _check_settings(document, path, reporting["recipes"][run.recipe])
    _check_metric(document, path, task_of(reporting))
    _check_classes(document, path, reporting["datasets"][run.dataset].get("classes", []))
    for keys, kinds in REPORTED.items():
        _typed(document, path, keys, kinds)
    _amount(document, path, "hardware", "threads")
    for item in document["differences"]:
        missing = [
            key for key in ("setting", "asked", "done") if not isinstance(item, Mapping) or key not in item
        ]
        if missing:
            raise _fault(f"{path}, differences", f"{item}, without {', '.join(missing)}")
    return document


def told_columns(document: Row, path: Path, task: Task) -> dict[str, Any]:
    """The columns of runs.csv that run.json alone tells; None where a run or machine cannot tell.

    Raises:
        SeedbedError: a number is missing, not finite or below zero.
    """
    return {
        "selected_step": _count(document, path, "selected", "step"),
        **{
            f"{split}_{metric}": _measured(document, path, split, metric)
            for split in ("validation", "test")
            for metric in (*task.metrics, *task.final)
        },
        "diverged": document["diverged"],
        **{f"{part}_parameters": _count(document, path, "parameters", part) for part in PARAMETERS},
        "updates": _count(document, path, "updates"),
        **{f"{part}_seconds": _amount(document, path, "seconds", part) for part in SECONDS},
        **{key: _amount(document, path, key, optional=True) for key in OPTIONAL},
        "fused_seeds": fused_seeds(document, path),
        "device": document["device"],
    }


def planned_updates(document: Row, path: Path) -> float:
    """The updates that a run which trains was to make.

    Raises:
        SeedbedError: none; or it made others, and neither diverged nor says why.
    """
    made, planned = _count(document, path, "updates"), known(_count(document, path, "total_updates"))
    if not has_planned_updates(document):
        raise _fault(f"{path}, updates", f"{made} of {planned} updates")
    return planned


def trained_together(document: Row) -> int:
    """How many runs a run's time, energy and memory are of: those of fused seeds are of all of them."""
    return len(document.get("fused_with") or [None])


def fused_seeds(document: Row, path: Path) -> int:
    """How many runs were trained as one batched model with the run, itself among them; 1: it was alone.

    Raises:
        SeedbedError: what run.json tells of them is no list of runs, or the run is not in it.
    """
    group = document.get("fused_with")
    if group is None:
        return 1
    own = [document["run"][name] for name in ("init", "init_seed", "data_seed")]
    if not isinstance(group, list) or own not in group:
        raise _fault(f"{path}, fused_with", f"{group}, without the run itself, {own}")
    return len(group)


def check_predictions(document: Row, path: Path, predictions: Mapping[str, CellOutputs]) -> None:
    """Count the metrics of each split again, and hold run.json to them.

    Raises:
        SeedbedError: one of them is not that of the predictions.
    """
    for split, table in predictions.items():
        CHECKS[table.task.outputs](split, table, document, path)


def _check_classes_of(split: str, table: CellPredictions, document: Row, path: Path) -> None:
    """Hold all metrics of one run's predicted classes to what it told."""
    for metric in table.task.counted:
        if metric == "accuracy":
            _check_accuracy(split, table, _value(document, path, split, metric), path)
        else:
            _check_counted(split, table, metric, _value(document, path, split, metric), path)
    _check_loss(split, table, _amount(document, path, split, "loss", optional=True), path)


def _check_accuracy(split: str, table: CellPredictions, told: Any, path: Path) -> None:
    right, examples = int(table.correct.sum()), len(table.ids)
    known = isinstance(told, (int, float)) and not isinstance(told, bool)
    # half an example is far more than rounding and far less than one wrong answer
    if not known or not abs(told - right / examples) < 0.5 / examples:
        counted = f"{right} of {examples} = {right / examples}"
        raise _disagreement(split, "accuracy", told, counted, path)


def _check_label_sets(split: str, table: CellLabelSets, document: Row, path: Path) -> None:
    """Hold all metrics of one run's predicted sets of labels to what it told."""
    for metric in table.task.counted:
        _check_counted(split, table, metric, _value(document, path, split, metric), path)
    told = _amount(document, path, split, "loss", optional=True)
    counted = float(table.loss.mean())
    if math.isinf(counted):  # a probability that is 1 but for rounding
        return
    if math.isnan(counted):
        same = told is None
    else:
        rounding = LOSS_ROUNDING * max(1.0, counted) + float(table.loss_error.mean())
        same = told is not None and abs(told - counted) <= rounding
    if not same:
        raise _disagreement(split, "loss", told, "none" if math.isnan(counted) else f"{counted:.9g}", path)


def _check_counted(
    split: str, table: CellPredictions | CellLabelSets, metric: str, told: Any, path: Path
) -> None:
    """Hold a metric of counts to what the run told."""
    (counted,) = table.measured(metric)
    if told is None or abs(told - known(counted)) > COUNTED_ROUNDING:
        raise _disagreement(split, metric, told, f"{counted:.9g}", path)


def _check_loss(split: str, table: CellPredictions, told: float | None, path: Path) -> None:
    if table.loss.max() > LARGEST_LOSS:
        return
    counted = float(table.loss.mean(dtype=np.float64))
    if math.isnan(counted):  # some logits were not finite: the loss of the split is none, either
        same = told is None
    else:
        same = told is not None and abs(told - counted) <= LOSS_ROUNDING * max(1.0, counted)
    if not same:
        raise _disagreement(split, "loss", told, "none" if math.isnan(counted) else f"{counted:.9g}", path)


def _check_answers(split: str, table: CellAnswers, document: Row, path: Path) -> None:
    """Hold all metrics of one run's answers to what it told."""
    for metric in (*table.task.metrics, *table.task.final):
        told = _amount(document, path, split, metric, optional=True)
        (counted,) = table.measured(metric)
        if counted is None or told is None:
            same = counted is told
        else:
            same = abs(told - counted) <= _rounding(metric, counted)
        if not same:
            raise _disagreement(split, metric, told, "none" if counted is None else f"{counted:.9g}", path)


def _check_values(split: str, table: CellValues, document: Row, path: Path) -> None:
    """Hold all metrics of one run's predicted numbers to what it told."""
    for metric in table.task.metrics:
        told = _measured(document, path, split, metric)
        (counted,) = table.measured(metric)
        if counted is None or told is None:
            same = counted is told
        else:
            same = math.isclose(told, counted, rel_tol=COUNTED_ROUNDING, abs_tol=COUNTED_ROUNDING)
        if not same:
            raise _disagreement(split, metric, told, "none" if counted is None else f"{counted:.9g}", path)


# by a task's outputs
CHECKS: dict[str, Callable[[str, Any, Row, Path], None]] = {
    CLASSES: _check_classes_of,
    LABEL_SETS: _check_label_sets,
    VALUES: _check_values,
    ANSWERS: _check_answers,
}


def _rounding(metric: str, counted: float) -> float:
    """How far a metric may be from the counted one: losses of examples are written with some digits."""
    if metric == "perplexity":  # exp turns a difference of losses into a ratio
        return 2 * counted * LOSS_ROUNDING * max(1.0, math.log(max(counted, 1.0)))
    return LOSS_ROUNDING * (max(1.0, counted) if METRICS[metric].unit == NATS else 1.0)


def _disagreement(split: str, metric: str, told: Any, counted: str, path: Path) -> SeedbedError:
    return SeedbedError(
        f"the {split} {metric} of a run is not that of its predictions",
        where=f"{path} and {path.with_name('predictions.csv')}",
        found=f"{told} in run.json, {counted} by counting",
        hint="the two files are not of one run: remove the folder and let Snakemake make it anew",
    )


# --- metrics.csv --------------------------------------------------------------------------------------------


def read_metrics(path: Path, document: Row, task: Task) -> list[list[str]]:
    """Rows of a run's metrics.csv as text, in its columns; a value that is not finite is an empty cell.

    Raises:
        SeedbedError: other columns, no row, a cell that is no number; or the validation metrics at the
            selected step are not those of run.json, so that the table is of another run.
    """
    header, rows = read_csv(path, METRIC_COLUMNS, what="table of metrics", hint=HINT)
    if tuple(header) != METRIC_COLUMNS or not rows:
        found = ", ".join(header) if rows else "no row"
        hint = f"its columns are {', '.join(METRIC_COLUMNS)}; {HINT}"
        raise SeedbedError("not a table of metrics", where=f"{path}, line 1", found=found, hint=hint)
    for line, row in enumerate(rows, 2):
        _clean_metric(row, f"{path}, line {line}")
    _check_selected(rows, document, task, path)
    return rows


def curve_columns(
    rows: Sequence[Sequence[str]], told: Row, task: Task, path: Path, unit: float = 1.0
) -> dict[str, Any]:
    """The columns of runs.csv that a run's curves tell.

    Args:
        rows: as `read_metrics` gives them.
        told: other columns of the run, method among them.
        task: what the run does.
        path: the metrics.csv, for errors.
        unit: of the training loss, see `loss_unit`.

    Returns:
        `unstable`: it diverged, or an epoch's mean training loss is above that of the epoch before by more
        than RISE_SHARE of it and by more than RISE_NATS units. Where the task is measured from the untrained
        model on, also `untrained_validation_loss`, of step 0, None where it is not finite; and
        `not_above_untrained`, whether the selected validation loss is not below it, None for a run that
        trains nothing.

    Raises:
        SeedbedError: no validation loss at step 0, though the task has one.
    """
    columns: dict[str, Any] = {"unstable": told["diverged"] or _rises(_losses(rows, "train", task), unit)}
    if not task.from_untrained:
        return columns
    losses = _losses(rows, "validation", task)
    if 0 not in losses:
        found = f"steps {', '.join(map(str, losses))}" if losses else "no validation loss"
        raise SeedbedError("no validation loss before training", where=str(path), found=found, hint=HINT)
    before, after = losses[0], told["validation_loss"]
    worse = after is None or (before is not None and after >= before)
    not_above = None if told["method"] == "none" else worse
    return columns | {"untrained_validation_loss": before, "not_above_untrained": not_above}


def loss_unit(document: Row, path: Path, task: Task) -> float:
    """What a training loss is compared in: 1 nat, or of numbers the variance of the training labels.

    Raises:
        SeedbedError: a run of numbers does not tell their standard deviation.
    """
    if task.outputs != VALUES:
        return 1.0
    return known(_amount(document, path, "targets", "sd")) ** 2


def train_loss_columns(rows: Sequence[Sequence[str]], task: Task) -> dict[str, Any]:
    """`first_train_loss` and `last_train_loss`: a run's mean training loss of its first and its last epoch,
    in nats; None of a run that trains nothing, and where it is not finite.

    Args:
        rows: as `read_metrics` gives them.
        task: what the run does.
    """
    losses = list(_losses(rows, "train", task).values()) or [None]
    return {"first_train_loss": losses[0], "last_train_loss": losses[-1]}


def _losses(rows: Sequence[Sequence[str]], split: str, task: Task) -> dict[int, float | None]:
    """The losses of a split by step, in order; None for one that is not finite."""
    found = {int(row[0]): row[4] for row in rows if row[2] == split and row[3] == task.loss}
    return {step: float(found[step]) if found[step] else None for step in sorted(found)}


def _rises(losses: Mapping[int, float | None], unit: float) -> bool:
    if None in losses.values():
        return True
    return any(
        after - before > max(RISE_SHARE * before, RISE_NATS * unit)
        for before, after in itertools.pairwise(all_known(losses).values())
    )


def _clean_metric(row: list[str], where: str) -> None:
    step, epoch, _, _, value, rate, seconds = row
    told = _parsed(value) if value else math.nan
    amounts = [_parsed(cell) for cell in (rate, seconds)]
    whole = step.isdecimal() and epoch.isdecimal()
    if (
        not whole
        or told is None
        or not all(amount is not None and 0 <= amount < math.inf for amount in amounts)
    ):
        found = ", ".join(f"{name} {cell!r}" for name, cell in zip(METRIC_COLUMNS, row, strict=True))
        raise SeedbedError(
            "a row of metrics with a cell that is no number", where=where, found=found, hint=HINT
        )
    if not math.isfinite(told):
        row[METRIC_COLUMNS.index("value")] = ""


def _parsed(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _check_selected(rows: Sequence[Sequence[str]], document: Row, task: Task, path: Path) -> None:
    step = str(document["selected"]["step"])
    at_step = [row[2:5] for row in rows if row[0] == step]
    found = {metric: value for split, metric, value in at_step if split == "validation"}
    record = path.with_name("run.json")
    value = _measured(document, record, "selected", "value", metric=task.selection)
    told = {metric: document["validation"][metric] for metric in task.metrics} | {task.selection: value}
    # a run without any finite evaluation has selected its last weights, of which no value is told
    wrong = [
        metric
        for metric in task.metrics
        if metric not in found or (value is not None and not _same(told[metric], found[metric]))
    ]
    if wrong:
        raise SeedbedError(
            "metrics and run.json of a run do not agree on the selected weights",
            where=f"{path} and {record}",
            found="; ".join(
                f"validation {metric} at step {step}: {found.get(metric) or 'none'} in metrics.csv, "
                f"{'none' if told[metric] is None else told[metric]} in run.json"
                for metric in wrong
            ),
            hint="the two files are not of one run: remove the folder and let Snakemake make it anew",
        )


def _same(told: float | None, cell: str) -> bool:
    if told is None or not cell:
        return told is None and not cell
    return math.isclose(told, float(cell), rel_tol=1e-9, abs_tol=1e-12)


# --- run.json -----------------------------------------------------------------------------------------------


def _read_json(path: Path) -> Any:
    try:
        with open(path, encoding="utf-8") as stream:
            return json.load(stream)
    except json.JSONDecodeError as error:
        where, found = f"{path}, line {error.lineno}", error.msg
    except UnicodeDecodeError as error:
        where, found = str(path), f"bytes that are not UTF-8: {error.reason}"
    raise SeedbedError("not a whole JSON file", where=where, found=found, hint=HINT)


def _value(document: Row, path: Path, *keys: str) -> Any:
    """document[key][key]..., with an error that names file and key."""
    value: Any = document
    for depth, key in enumerate(keys):
        if not isinstance(value, Mapping) or key not in value:
            where = f"{path}, {'.'.join(keys[: depth + 1])}"
            raise SeedbedError("a run's file lacks a key", where=where, hint=HINT)
        value = value[key]
    return value


def _typed(document: Row, path: Path, keys: Sequence[str], kinds: tuple[type, ...]) -> Any:
    value = _value(document, path, *keys)
    if not isinstance(value, kinds):
        raise _fault(f"{path}, {'.'.join(keys)}", repr(value))
    return value


def _amount(document: Row, path: Path, *keys: str, optional: bool = False) -> float | None:
    """A finite number, not below zero; None only where it is optional."""
    return _bounded(document, path, keys, (0, math.inf), optional=optional)


def _measured(document: Row, path: Path, split: str, key: str, metric: str | None = None) -> float | None:
    """A metric, by default named by its key, within its bounds; None where it is not finite."""
    return _bounded(document, path, (split, key), bounds_of(metric or key), optional=True)


def _bounded(
    document: Row, path: Path, keys: Sequence[str], bounds: tuple[float, float], *, optional: bool
) -> float | None:
    """A finite number within these bounds; None only where it is optional."""
    least, most = bounds
    value = _value(document, path, *keys)
    if value is None and optional:
        return None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and least <= value <= most):
        raise _fault(f"{path}, {'.'.join(keys)}", repr(value))
    return value


def _count(document: Row, path: Path, *keys: str) -> float | None:
    """A whole number, not below zero."""
    _typed(document, path, keys, (int,))
    return _amount(document, path, *keys)


def _fault(where: str, found: str) -> SeedbedError:
    return SeedbedError("a run's file tells what cannot be", where=where, found=found, hint=HINT)


def setting(recipe: Mapping[str, Any], key: str) -> Any:
    """A recipe's value; a dot in the key leads into a block, such as lora.r. None where it has none."""
    value: Any = recipe
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _check_identity(document: Row, run: Run, path: Path, experiment: str) -> None:
    meant = {key: getattr(run, key) for key in RUN_KEYS} | {
        "swept": dict(run.swept),
        "experiment": experiment,
    }
    told = {key: _value(document, path, "run", key) for key in (*RUN_KEYS, "swept")}
    told["experiment"] = _value(document, path, "experiment")
    settings = _typed(document, path, ("settings",), (Mapping,))
    if isinstance(told["swept"], Mapping):
        told["swept"] = {key: setting(settings, key) for key in told["swept"]}
    wrong = [key for key in meant if told[key] != meant[key]]
    if wrong:
        raise SeedbedError(
            "a run's file tells of another run than its folder",
            where=str(path),
            found="; ".join(f"{key} is {told[key]!r}, the folder says {meant[key]!r}" for key in wrong),
            hint=HINT,
        )


def _check_settings(document: Row, path: Path, recipe: Mapping[str, Any]) -> None:
    settings = document["settings"]
    changed = [key for key in recipe if key in settings and settings[key] != recipe[key]]
    if changed:
        raise SeedbedError(
            "a run was trained with other settings than its recipe has now",
            where=str(path),
            found="; ".join(f"{key} was {settings[key]!r}, is {recipe[key]!r}" for key in changed),
            hint="let Snakemake make the run anew, or give the changed recipe another name",
        )


def _check_metric(document: Row, path: Path, task: Task) -> None:
    told = document.get("metric")
    if told != task.chosen_metric:
        raise SeedbedError(
            "the checkpoint of a run was selected by another metric than its dataset has now",
            where=f"{path}, metric",
            found=f"{told}, the configuration says {task.chosen_metric}",
            hint="let Snakemake make the run anew",
        )


def _check_classes(document: Row, path: Path, names: Sequence[str]) -> None:
    told = _value(document, path, "label_names")
    if told != list(names):
        raise SeedbedError(
            "a run does not know the classes that its dataset has now",
            where=f"{path}, label_names",
            found=f"{told}, the configuration says {list(names)}",
            hint="the dataset changed since: let Snakemake make the run anew",
        )
