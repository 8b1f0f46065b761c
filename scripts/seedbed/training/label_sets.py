"""Any number of labels for a text: their metrics, the loss of a batch, and the predictions of a run.

The head has an output for each label, a logit of its own. A label is predicted where its logit is above 0,
that is, where its probability is above 0.5.
"""

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from seedbed.core import set_metrics
from seedbed.core.set_metrics import Counts, exact_sets
from seedbed.core.tasks import Task
from seedbed.running.jobs import Job
from seedbed.training.token_ids import Split

# --- metrics ------------------------------------------------------------------------------------------------


def label_set_metrics(outputs: np.ndarray, labels: np.ndarray, metrics: Sequence[str]) -> dict[str, float]:
    """Metrics of sets of labels; loss is the mean binary cross-entropy over texts and labels, in nats.

    A text with a logit that is not finite makes the loss NaN, has no predicted label, and its set is wrong.

    Args:
        outputs: logits, array of shape (texts, labels).
        labels: 0 or 1, array of the same shape.
        metrics: names, see `METRICS`.

    Raises:
        ValueError: no text, or shapes that do not match.
    """
    logits, actual = np.asarray(outputs, dtype=np.float64), np.asarray(labels, dtype=bool)
    if logits.ndim != 2 or logits.shape != actual.shape or len(actual) == 0:
        raise ValueError(f"logits of shape {logits.shape} do not fit labels of shape {actual.shape}")
    predicted, missing = predicted_sets(logits)
    counts = Counts.of(actual, predicted, exact_sets(actual, predicted, missing))
    found = {name: float(set_metrics.value(name, counts)) for name in metrics if name != "loss"}
    found["loss"] = float("nan") if missing.any() else float(_losses(logits, actual).mean())
    return {name: found[name] for name in metrics}


def predicted_sets(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(texts, labels) bool: the predicted labels; and (texts,) bool: where a logit is not finite."""
    missing = ~np.isfinite(logits).all(axis=1)
    return (logits > 0) & ~missing[:, None], missing


def _losses(logits: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """Binary cross-entropy of each label of each text, without overflow for large logits."""
    return np.maximum(logits, 0) - logits * actual + np.log1p(np.exp(-np.abs(logits)))


def measure(task: Task, about: Mapping[str, Any]) -> Callable[[np.ndarray, np.ndarray], dict[str, float]]:
    """The metrics of a task, as a function of outputs and labels. Args: see `metrics.measure_of`."""
    return functools.partial(label_set_metrics, metrics=task.metrics)


# --- training -----------------------------------------------------------------------------------------------


class Labelling:
    """Binary cross-entropy in nats, the mean over labels; see `objectives.Objective`.

    Args:
        job: the run.
        labels: 0 or 1 for each label, of each text of the training split.
        device: of the batches.
    """

    def __init__(self, job: Job, labels: Sequence[Sequence[int]], device: torch.device):
        self._labels = job.head_size

    def mean(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss over the number of texts; `labels` have the shape of `outputs`."""
        return F.binary_cross_entropy_with_logits(outputs, labels.to(outputs.dtype))

    def summed(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss summed over the texts; `labels` have the shape of `outputs`."""
        loss = F.binary_cross_entropy_with_logits(outputs, labels.to(outputs.dtype), reduction="sum")
        return loss / self._labels


# --- predictions --------------------------------------------------------------------------------------------


class Labelled:
    """Predictions of sets of labels: logits, sets and probabilities; see `results.Predictor`.

    Args:
        job: the run.
        predict: maps a split to logits, shape (texts, labels).
    """

    def __init__(self, job: Job, predict: Callable[[Split], np.ndarray]):
        self._predict, self._names, self._task = predict, job.about_labels["names"], job.task
        probabilities = (f"probability_{name}" for name in self._names)
        self.columns = ["split", "example", "label", "prediction", *probabilities]

    def outputs(self, split: Split) -> np.ndarray:
        """Logits, (texts, labels)."""
        return self._predict(split)

    def compared(self, outputs: np.ndarray) -> np.ndarray:
        """All logits."""
        return outputs

    def final(self, split: Split) -> tuple[dict[str, float], None]:
        """No further metrics: all are measured in each evaluation."""
        return {}, None

    def rows(self, name: str, split: Split, outputs: np.ndarray, details: None) -> list[dict[str, Any]]:
        """One row per text: its labels and the predicted ones as JSON lists, and probabilities.

        A text with a logit that is not finite has empty cells.
        """
        logits = np.asarray(outputs, dtype=np.float64)
        predicted, missing = predicted_sets(logits)
        with np.errstate(over="ignore"):  # exp of a large number: the probability is 0
            probabilities = 1 / (1 + np.exp(-logits))
        rows = []
        for index, (example, label_set) in enumerate(zip(split.examples, split.labels, strict=True)):
            known = not missing[index]
            row: dict[str, Any] = {"split": name, "example": example, "label": self._spelled(label_set)}
            row["prediction"] = self._spelled(predicted[index]) if known else None
            for label, probability in zip(self._names, probabilities[index], strict=True):
                row[f"probability_{label}"] = f"{probability:.9g}" if known else None
            rows.append(row)
        return rows

    def _spelled(self, label_set: Any) -> str:
        """A set of labels as a JSON list of their names, in the declared order."""
        return json.dumps(self._held(label_set), ensure_ascii=False)

    def _held(self, label_set: Any) -> list[str]:
        return [name for name, held in zip(self._names, label_set, strict=True) if held]

    def about(self, splits: Mapping[str, Split]) -> dict[str, Any]:
        """The names of the labels, and by metric the constant answer that scores best on train."""
        trained = np.array(splits["train"].labels, dtype=bool)
        constants = {
            metric: self._held(set_metrics.best_constant(metric, trained)) for metric in self._task.reported
        }
        return {"majority_share": None, "label_names": self._names, "constant_answers": constants}
