"""A run's results: predictions of the selected weights, run.json, and the publication of the run folder."""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from seedbed.config.runs import RUN_KEYS
from seedbed.core import files
from seedbed.core.commits import git_commit
from seedbed.core.errors import SeedbedError
from seedbed.core.tasks import CLASSES, LABEL_SETS, VALUE_COLUMNS, VALUES
from seedbed.running import publishing
from seedbed.running.jobs import PREDICTED, Job
from seedbed.training import graphs, hardware
from seedbed.training.label_sets import Labelled
from seedbed.training.recording import Recorder, prediction_rows
from seedbed.training.targets import Scale
from seedbed.training.token_ids import Split

log = logging.getLogger(__name__)


class Predictor(Protocol):
    """A task's predictions: maps a split to outputs, metrics and rows.

    Attributes:
        columns: the columns of predictions.csv.
    """

    columns: Sequence[str]

    def outputs(self, split: Any) -> np.ndarray:
        """The model's outputs for each example, (examples, outputs), different for each task."""

    def compared(self, outputs: np.ndarray) -> np.ndarray:
        """The part of the outputs that changes little with rounding."""

    def final(self, split: Any) -> tuple[dict[str, float], Any]:
        """The metrics measured only for the selected weights, and details for `rows`."""

    def rows(self, name: str, split: Any, outputs: np.ndarray, details: Any) -> list[dict[str, Any]]:
        """Rows of predictions.csv; `details` come from `final`."""

    def about(self, splits: Mapping[str, Any]) -> dict[str, Any]:
        """Entries of run.json about the labels."""


class Classified:
    """Predictions of classes: logits and probabilities.

    Args:
        job: the run.
        predict: maps a split to logits, shape (examples, classes).
    """

    def __init__(self, job: Job, predict: Callable[[Split], np.ndarray]):
        self._predict, self._names = predict, job.about_labels["names"]
        probabilities = (f"probability_{name}" for name in self._names)
        self.columns = ["split", "example", "label", "prediction", *probabilities]

    def outputs(self, split: Split) -> np.ndarray:
        """Logits, (examples, classes)."""
        return self._predict(split)

    def compared(self, outputs: np.ndarray) -> np.ndarray:
        """All logits."""
        return outputs

    def final(self, split: Split) -> tuple[dict[str, float], None]:
        """No further metrics: all are measured in each evaluation."""
        return {}, None

    def rows(self, name: str, split: Split, outputs: np.ndarray, details: None) -> list[dict[str, Any]]:
        """One row per example: label, prediction, probabilities."""
        return prediction_rows(name, split.examples, split.labels, outputs, self._names)

    def about(self, splits: Mapping[str, Split]) -> dict[str, Any]:
        """The share of the most frequent class of test, and the names of the classes."""
        counts = np.bincount(splits["test"].labels, minlength=len(self._names))
        return {"majority_share": {"test": float(counts.max() / counts.sum())}, "label_names": self._names}


class Valued:
    """Predicted numbers.

    Args:
        job: the run.
        predict: maps a split to numbers on the scale of the training, shape (examples, 1).
    """

    columns = VALUE_COLUMNS

    def __init__(self, job: Job, predict: Callable[[Split], np.ndarray]):
        self._predict, self._scale = predict, Scale.of(job.about_labels)

    def outputs(self, split: Split) -> np.ndarray:
        """Numbers on the scale of the training, (examples, 1)."""
        return self._predict(split)

    def compared(self, outputs: np.ndarray) -> np.ndarray:
        """All outputs."""
        return outputs

    def final(self, split: Split) -> tuple[dict[str, float], None]:
        """No further metrics: all are measured in each evaluation."""
        return {}, None

    def rows(self, name: str, split: Split, outputs: np.ndarray, details: None) -> list[dict[str, Any]]:
        """One row per example: label and prediction with all digits, in the unit of the labels."""
        predicted = self._scale.restored(outputs[:, 0]).tolist()
        return [
            {
                "split": name,
                "example": example,
                "label": repr(float(label)),
                "prediction": repr(value) if math.isfinite(value) else None,
            }
            for example, label, value in zip(split.examples, split.labels, predicted, strict=True)
        ]

    def about(self, splits: Mapping[str, Split]) -> dict[str, Any]:
        """The scale of the training; no classes."""
        return {
            "majority_share": None,
            "label_names": [],
            "targets": {"mean": self._scale.mean, "sd": self._scale.sd},
        }


# by a task's outputs: predictors of an encoder with a head
PREDICTORS: dict[str, Callable[..., Predictor]] = {
    CLASSES: Classified,
    LABEL_SETS: Labelled,
    VALUES: Valued,
}


def predictor_of(job: Job, predict: Callable[[Split], np.ndarray]) -> Predictor:
    """The predictor of an encoder with a head; `predict` maps token ids to (examples, size of the head)."""
    return PREDICTORS[job.task.outputs](job, predict)


def finish(
    job: Job,
    recorder: Recorder,
    splits: Mapping[str, Any],
    predictor: Predictor,
    extra: dict[str, Any],
    keep_model: Callable[[Path], None] | None = None,
) -> None:
    """Predict with the selected weights (already loaded), write all files and publish the run folder.

    Args:
        job: the run.
        recorder: its recorder, after training.
        splits: the splits; validation and test are predicted.
        predictor: the task's predictor.
        extra: the framework's entries for run.json (`updates`, `differences`, `command`, ...).
        keep_model: writes the whole model into an existing folder; None if the selected weights are complete.
    """
    assert recorder.selected is not None
    recorder.clock.switch("evaluate")
    rows, metrics = [], {}
    for name in PREDICTED:
        split = splits[name]
        outputs = predictor.outputs(split)
        if name == "validation" and recorder.selected.outputs.size:
            _check_selected(job, predictor.compared(recorder.selected.outputs), predictor.compared(outputs))
            outputs = recorder.selected.outputs  # those that selected it, so that all files agree to the bit
        measured = recorder.add_final(name, outputs, np.asarray(split.labels))
        final, details = predictor.final(split)
        metrics[name] = measured | final
        rows += predictor.rows(name, split, outputs, details)
    recorder.clock.switch("write")
    files.write_rows(recorder.ready / "predictions.csv", predictor.columns, rows)
    if job.run["keep_model"]:
        folder = recorder.ready / "model"
        folder.mkdir()
        if keep_model is None:
            write_weights(folder, recorder.selected.weights)
        else:
            keep_model(folder)
    recorder.close()
    recorder.clock.switch("publish")
    record = describe_run(job, recorder, metrics, extra | predictor.about(splits))
    files.write_json(recorder.ready / "run.json", record)
    publishing.publish(job)
    log.info("published %s", job.target)


# of logits of the same weights in batches of other shapes, by what products are computed in
TOLERANCES = {"float32": 1e-3, "tf32": 1e-2, "bfloat16": 0.3, "float16": 0.3}


def _check_selected(job: Job, first: np.ndarray, again: np.ndarray) -> None:
    """Check that predictions use the selected weights: they must reproduce the selected outputs.

    The batches of the two evaluations may differ, so the last bits of outputs may, too.
    """
    tolerance = TOLERANCES[job.settings["precision"]]
    if not np.allclose(first, again, rtol=tolerance, atol=tolerance):
        raise SeedbedError(
            "the weights of the predictions are not the selected ones",
            where=str(job.target),
            found=f"outputs that differ by {np.abs(first - again).max():.3g}",
            hint="this is a bug of the workflow",
        )


def write_weights(folder: Path, weights: Mapping[str, torch.Tensor]) -> None:
    """Write weights into a folder as model.safetensors; they must not share memory."""
    from safetensors.torch import save_file

    contiguous = {name: tensor.detach().contiguous().cpu() for name, tensor in weights.items()}
    save_file(contiguous, folder / "model.safetensors")
    files.follow_umask(folder / "model.safetensors")


def describe_run(
    job: Job,
    recorder: Recorder,
    metrics: dict[str, dict[str, float]],
    extra: dict[str, Any],
) -> dict[str, Any]:
    """The content of run.json."""
    selected = recorder.selected
    settings = {key: value for key, value in job.settings.items() if key not in ("family", "swept")}
    return {
        "experiment": job.experiment,
        "task": job.task.name,
        **({"metric": job.run["metric"]} if "metric" in job.run else {}),
        "identity": job.identity,
        "inputs": job.inputs,
        "run": {key: job.run[key] for key in (*RUN_KEYS, "swept")},
        "batch": job.batch or None,  # runs that shared its job, and with it perhaps the time of its device
        "settings": settings,
        "selected": {
            "step": selected.step,
            "epoch": selected.epoch,
            "metric": recorder.task.selection,
            "value": selected.metrics[recorder.task.selection],
            "reason": selected.reason,
        },
        "validation": metrics["validation"],
        "test": metrics["test"],
        "diverged": recorder.diverged,
        "total_updates": recorder.total_updates,
        **extra,
        **recorder.usage(),
        "device": hardware.describe_device(recorder.device),
        "deterministic": job.run["deterministic"],
        "cuda_graphs": extra.get("cuda_graphs", graphs.are_used(job.run, recorder.device)),
        "evaluation": job.run["evaluation"],
        "hardware": hardware.describe_hardware(),
        "versions": hardware.package_versions(job.extra_packages),
        "git_commit": git_commit(Path(__file__).parents[3]),
    }
