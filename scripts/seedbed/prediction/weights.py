"""The weights of a finished run: kept with it, or those of the same run trained again.

Runs are mostly published without weights. Such a run is trained again once, in a process of its own, from the
same files, settings and seeds, into results/EXPERIMENT/retrained, which no rule knows and later calls find.
Its predictions of the test set must be those of the run, or nothing is predicted.
"""

import logging
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedbed.core import checksums, files
from seedbed.core.errors import SeedbedError
from seedbed.core.script import last_error
from seedbed.core.tasks import VALUES
from seedbed.prediction.finished_runs import FinishedRun

log = logging.getLogger(__name__)

LIBRARY = Path(__file__).parents[2]
# Largest difference of a probability between a run and the same run trained again. On one kind of CPU all
# bits are the same; the order in which a GPU adds gradients varies.
ON_CPU, ON_GPU = 1e-3, 0.05


@dataclass(frozen=True)
class Weights:
    """The weights of a finished run.

    Attributes:
        file: model.safetensors, or that of the run's adapter.
        run: the folder of the run whose weights they are: the run's own, or that trained again.
        difference: the largest difference between the test predictions of both runs; None if the weights
            were kept.
    """

    file: Path
    run: Path
    difference: float | None = None


def find(run: FinishedRun, tell: Callable[[str], None]) -> Weights:
    """The weights of a run, which is trained again if it has none.

    Args:
        run: the run.
        tell: is told that the run is trained again, and for about how long.

    Raises:
        SeedbedError: the run cannot be trained again, or predicts something else then; or its files were
            changed.
    """
    if (kept := _file(run, run.folder)).is_file():
        run.check_inputs(all_of_them=False)
        checksums.compare([kept])
        return Weights(kept, run.folder)
    made = run.place.again.target
    if not _is_same(run, made):
        _check_device(run)
        run.check_inputs(all_of_them=True)
        seconds = run.record["seconds"]["total"]
        tell(f"{run.place.name} has no weights: it is trained again, which took {seconds:.0f} s")
        _train_again(run)
    return Weights(_file(run, made), made, _check_same(run, made))


def _file(run: FinishedRun, folder: Path) -> Path:
    inside = "adapter/adapter_model.safetensors" if run.job.method.has_adapter else "model/model.safetensors"
    return folder / inside


def _is_same(run: FinishedRun, made: Path) -> bool:
    """Whether the run was trained again before, on what the run was trained on.

    Raises:
        SeedbedError: its files were changed since.
    """
    kept = _file(run, made)
    if not kept.is_file():
        return False
    names = ["run.json", "predictions.csv", kept.relative_to(made).as_posix()]
    if changed := checksums.changed(made, names):
        raise SeedbedError(
            "the files of the run that was trained again were changed or damaged",
            where=str(made),
            found=", ".join(changed),
            hint=f"remove {run.place.again.experiment}, and start again: the run is trained anew",
        )
    return files.read_json(made / "run.json")["inputs"] == run.record["inputs"]


def _check_device(run: FinishedRun) -> None:
    """Refuse to train a run of a GPU on a CPU, where its predictions would differ.

    Raises:
        SeedbedError: the run was trained on a GPU, and there is none.
    """
    import torch

    if run.job.run["device"] == "cuda" and not torch.cuda.is_available():
        raise SeedbedError(
            "the run has no weights, and only a GPU would make the same again",
            where=str(run.folder),
            found=f"a run on {run.record['device']}; PyTorch finds no GPU here",
            hint="predict once on a host with such a GPU, and copy the experiment from there; or set "
            "keep_model: true for the experiment and run it again",
        )


def _train_again(run: FinishedRun) -> None:
    """Train the run in another process, where nothing else was imported or set."""
    command = [sys.executable, "-m", "seedbed.prediction.retraining", str(run.folder)]
    paths = os.pathsep.join(filter(None, [str(LIBRARY), os.environ.get("PYTHONPATH")]))
    path = run.place.again.log("retrain")
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as stream:
        done = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": paths}, stdout=stream, stderr=subprocess.STDOUT
        )
    if done.returncode:
        raise SeedbedError(
            "the run could not be trained again",
            where=str(run.folder),
            found=(last_error(path) or f"exit code {done.returncode}").partition("\n")[0],
            hint=f"see {path}; started again, it goes on from its newest checkpoint",
        )


def _check_same(run: FinishedRun, made: Path) -> float:
    """The largest difference between the test predictions of a run and of the same run trained again.

    Raises:
        SeedbedError: they differ too much.
    """
    difference = largest_difference(run, predictions(run.folder), predictions(made))
    tolerance = ON_CPU if run.record["device"].startswith("cpu") else ON_GPU
    if not difference <= tolerance:
        raise SeedbedError(
            "trained again, the run predicts something else: these are not its weights",
            where=f"{run.folder} and {made}",
            found=f"{_scale(run)} that differ by up to {difference:.3g}, of at most {tolerance:g}; "
            f"{_versions(run, made)}",
            hint="predict where the run was trained, with the same versions; or set keep_model: true for the "
            "experiment and run it again",
        )
    return difference


def _scale(run: FinishedRun) -> str:
    return "standard deviations of the labels" if run.task.outputs == VALUES else "probabilities"


def _versions(run: FinishedRun, made: Path) -> str:
    """Where hardware and packages of the runs differ."""
    then, now = run.record, files.read_json(made / "run.json")
    pairs = {"device": (then["device"], now["device"])}
    pairs |= {name: (version, now["versions"].get(name)) for name, version in then["versions"].items()}
    told = [f"{name} {a}, now {b}" for name, (a, b) in pairs.items() if a != b]
    return "; ".join(told) or "on the same device, with the same versions"


# --- predictions --------------------------------------------------------------------------------------------


def predictions(folder: Path) -> dict[str, Mapping[str, str]]:
    """The rows of predictions.csv of the test set by example."""
    rows = files.read_rows(folder / "predictions.csv")
    return {row["example"]: row for row in rows if row["split"] == "test"}


def largest_difference(
    run: FinishedRun, a: Mapping[str, Mapping[str, Any]], b: Mapping[str, Mapping[str, Any]]
) -> float:
    """The largest difference of probabilities, or of numbers in standard deviations of the labels.

    Args:
        run: the run.
        a, b: rows with its columns of predictions.csv, by example; `b` has the examples of `a`.
    """
    unit = run.record["targets"]["sd"] if run.task.outputs == VALUES else 1.0
    columns = compared_columns(run)
    found = [
        abs(_number(row[name]) - _number(b[example][name])) for example, row in a.items() for name in columns
    ]
    return math.inf if any(map(math.isnan, found)) else max(found, default=0.0) / unit


def compared_columns(run: FinishedRun) -> Sequence[str]:
    """The columns of predictions.csv that have numbers."""
    if run.task.outputs == VALUES:
        return ["prediction"]
    return [f"probability_{name}" for name in run.labels]


def _number(cell: str) -> float:
    return float(cell) if cell else math.nan
