"""Record a run: metrics, selected weights, time, and the files of its folder.

Both frameworks use one recorder, so selection, metrics and files cannot differ between them.
"""

import logging
import math
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from seedbed.core import files
from seedbed.core.tasks import DEFAULT, METRIC_COLUMNS, TASKS, Task
from seedbed.training import hardware
from seedbed.training.events import EventLog
from seedbed.training.metrics import log_softmax, measure_of
from seedbed.training.schedule import learning_rate
from seedbed.training.stopwatch import Stopwatch

log = logging.getLogger(__name__)


@dataclass
class Selected:
    """The selected checkpoint: its place, the reason, the trained weights, and their validation outputs."""

    step: int
    epoch: int
    metrics: dict[str, float]
    reason: str
    weights: dict[str, torch.Tensor]
    outputs: np.ndarray


@dataclass
class _Epoch:
    outputs: list[torch.Tensor] = field(default_factory=list)
    labels: list[torch.Tensor] = field(default_factory=list)


class Recorder:
    """Records one run.

    Args:
        settings: the resolved recipe.
        total_updates: updates of the whole run.
        ready: the folder that will be published; it must not exist yet.
        device: where the run trains.
        task: the dataset's task.
        about: what labels.json of the dataset says, if there is one.

    Attributes:
        resumed: the states from which the run was resumed, {"step", "cause"}.
        checkpoints: number of written training checkpoints, and their seconds.
    """

    def __init__(
        self,
        settings: dict[str, Any],
        total_updates: int,
        ready: Path,
        device: torch.device,
        task: Task = TASKS[DEFAULT],
        about: Mapping[str, Any] = MappingProxyType({}),
    ):
        self.settings, self.total_updates, self.ready = settings, total_updates, ready
        self.device, self.task, self._measure = device, task, measure_of(task, about)
        self.rows: list[dict[str, Any]] = []
        self.selected: Selected | None = None
        self.diverged = False
        self.examples_seen = self.real_tokens = self.padded_tokens = 0
        self.checkpoints = {"written": 0, "seconds": 0.0}
        self.resumed: list[dict[str, Any]] = []
        self.clock = Stopwatch("start_up")
        self._earlier_joules, self._earlier_peak = 0.0, 0.0  # of this run's processes before this one
        self._joules = hardware.energy_joules(device)
        self._epoch = _Epoch()
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)  # the process may have trained another run before
        shutil.rmtree(ready, ignore_errors=True)
        ready.mkdir(parents=True)
        self.events = EventLog(ready / "tensorboard")

    # --- while training ---

    def start_training(self) -> None:
        """Start the clock of training, just before the first update."""
        self.clock.switch("train")

    def add_batch(self, outputs: torch.Tensor, labels: torch.Tensor) -> None:
        """Keep a training batch's outputs and labels (see `evaluated`) on their device, unsynchronised."""
        self._epoch.outputs.append(outputs.detach())
        self._epoch.labels.append(labels.detach())

    def count_tokens(self, real: int, padded: int) -> None:
        """Count a training batch's tokens without and with padding."""
        self.real_tokens += real
        self.padded_tokens += padded

    def end_training_epoch(self, step: int, epoch: int) -> dict[str, float]:
        """Record the training split's metrics over the epoch, measured with dropout."""
        self.clock.switch("evaluate")
        outputs = torch.cat(self._epoch.outputs).float().cpu().numpy()
        labels = torch.cat(self._epoch.labels).cpu().numpy()
        self._epoch = _Epoch()
        self.examples_seen += len(labels)
        metrics = self._measure(outputs, labels)
        self._add("train", metrics, step, epoch)
        return metrics

    def evaluated(
        self,
        split: str,
        outputs: np.ndarray,
        labels: np.ndarray,
        step: int,
        epoch: int,
        weights: Callable[[], dict[str, torch.Tensor]],
        select: bool = True,
    ) -> None:
        """Record an evaluation; on validation, keep the weights if they are the best so far.

        The best validation value of the task's metric is selected; ties go to the task's tie-break, then to
        the earlier step.

        Args:
            split: the split's name.
            outputs: the model's outputs, one row per example, for the task's measure.
            labels: the labels or number of answer tokens, (examples,).
            step: number of updates made.
            epoch: number of passes over the training split.
            weights: returns the trained weights; called only to keep them.
            select: whether this evaluation may be selected.
        """
        metrics = self._measure(outputs, labels)
        self._add(split, metrics, step, epoch)
        if split == "validation" and select:
            reason = self._better(metrics)
            if reason:
                self.selected = Selected(step, epoch, metrics, reason, copy_weights(weights()), outputs)
        log.info("epoch %d, update %d, %s: %s", epoch, step, split, _show(metrics))

    def resume_training(self) -> None:
        """Switch the clock from evaluation back to training."""
        self._write_metrics()
        self.events.flush()
        self.clock.switch("train")

    def holds(self, split: str, step: int) -> bool:
        """Whether the split's metrics at an update are recorded."""
        return any(row["split"] == split and row["step"] == step for row in self.rows)

    # --- across processes ---

    def state(self) -> dict[str, Any]:
        """The state for `restore`; tensors are not copied."""
        selected = self.selected and {
            **vars(self.selected),
            "outputs": torch.from_numpy(self.selected.outputs),
        }
        seen = [torch.cat(parts) if parts else None for parts in (self._epoch.outputs, self._epoch.labels)]
        return {
            "rows": self.rows,
            "selected": selected,
            "diverged": self.diverged,
            "counted": [self.examples_seen, self.real_tokens, self.padded_tokens],
            "epoch": seen,
            "checkpoints": self.checkpoints,
            "resumed": self.resumed,
            "seconds": self.clock.seconds,
            "joules": self._energy(),
            "peak_memory": self._peak_memory(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from another process's `state`; call it before training starts."""

        def here(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
            return [tensor.to(self.device) for tensor in tensors]

        self.rows, self.diverged = state["rows"], state["diverged"]
        self.examples_seen, self.real_tokens, self.padded_tokens = state["counted"]
        self.checkpoints, self.resumed = state["checkpoints"], state["resumed"]
        self._epoch = _Epoch(*([] if part is None else here([part]) for part in state["epoch"]))
        chosen = state["selected"]
        if chosen is not None:
            names, tensors = chosen["weights"].keys(), here(chosen["weights"].values())
            weights = dict(zip(names, tensors, strict=True))
            self.selected = Selected(**{**chosen, "weights": weights, "outputs": chosen["outputs"].numpy()})
        for phase, seconds in state["seconds"].items():
            self.clock.seconds[phase] = self.clock.seconds.get(phase, 0.0) + seconds
        self._earlier_peak = state["peak_memory"]
        self._earlier_joules = state["joules"]
        for row in self.rows:
            self.events.add(f"{row['split']}/{row['metric']}", row["value"], row["step"])

    def _energy(self) -> float | None:
        now = hardware.energy_joules(self.device)
        known = None not in (now, self._joules, self._earlier_joules)
        return now - self._joules + self._earlier_joules if known else None

    def _peak_memory(self) -> float:
        return max(self._earlier_peak, hardware.peak_memory_mib(self.device))

    def _better(self, metrics: dict[str, float]) -> str:
        name, tie = self.task.selection, self.task.tie_break
        if math.isnan(metrics[name]) or math.isnan(metrics[tie]):
            return ""
        if self.selected is None:
            return "first evaluation"
        best = self.selected.metrics
        gain = self.task.direction * (metrics[name] - best[name])
        if gain > 0:
            return f"best validation {name}"
        if gain == 0 and self.task.tie_break_direction * (metrics[tie] - best[tie]) > 0:
            return f"tied validation {name}, better validation {tie}"
        return ""

    def _add(self, split: str, metrics: dict[str, float], step: int, epoch: int) -> None:
        # a training batch that overflowed in float16 was skipped and does not count
        if split != "train" and not all(math.isfinite(value) for value in metrics.values()):
            self.diverged = True
        seconds = self.clock.total - self.clock.seconds.get("start_up", 0.0)
        rate = learning_rate(max(step - 1, 0), self.total_updates, self.settings)
        for metric, value in metrics.items():
            self.rows.append(
                {"step": step, "epoch": epoch, "split": split, "metric": metric, "value": value,
                 "learning_rate": rate, "seconds": round(seconds, 3)}
            )  # fmt: skip
            self.events.add(f"{split}/{metric}", value, step)

    def _write_metrics(self) -> None:
        files.write_rows(self.ready / "metrics.csv", METRIC_COLUMNS, self.rows)

    # --- at the end ---

    def select_last(self, step: int, epoch: int, weights: dict[str, torch.Tensor]) -> None:
        """Select the last weights if no evaluation could be selected, since the run diverged first."""
        nothing = {name: float("nan") for name in self.task.metrics}
        reason = "no finite validation loss: the last weights"
        self.selected = Selected(step, epoch, nothing, reason, copy_weights(weights), np.empty((0, 0)))

    def add_final(self, split: str, outputs: np.ndarray, labels: np.ndarray) -> dict[str, float]:
        """Metrics of the selected checkpoint; its test rows are added unless the curves have them."""
        assert self.selected is not None
        metrics = self._measure(outputs, labels)
        if not self.holds(split, self.selected.step):
            self._add(split, metrics, self.selected.step, self.selected.epoch)
        return metrics

    def usage(self) -> dict[str, Any]:
        """Time, speed, memory, energy and stops for run.json, summed over all processes of the run.

        A run without training has no speed, and a head on states none in tokens.
        """
        seconds = {
            phase: self.clock.seconds.get(phase, 0.0) for phase in ("start_up", "train", "evaluate", "write")
        }
        seconds["total"] = sum(seconds.values())
        return {
            "seconds": {phase: round(value, 3) for phase, value in seconds.items()},
            "samples_per_second": self.examples_seen / seconds["train"] if self.examples_seen else None,
            "tokens_per_second": self.real_tokens / seconds["train"] if self.real_tokens else None,
            "padding_share": 1 - self.real_tokens / self.padded_tokens if self.padded_tokens else None,
            "peak_memory_mib": round(self._peak_memory(), 1),
            "energy_joules": self._energy(),
            "training_checkpoints": {
                "written": self.checkpoints["written"],
                "seconds": round(self.checkpoints["seconds"], 3),
            },
            "resumed": self.resumed,
        }

    def close(self) -> None:
        """Write the metrics and end the event file."""
        self._write_metrics()
        self.events.close()


def copy_weights(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A copy that further training does not change, on the same device."""
    return {name: tensor.detach().clone() for name, tensor in weights.items()}


def prediction_rows(
    split: str, examples: list[str], labels: list[int], logits: np.ndarray, names: list[str]
) -> list[dict[str, Any]]:
    """Rows of predictions.csv; logits that are not finite give empty cells."""
    rows = []
    finite = np.isfinite(logits).all(axis=1)
    probabilities = np.exp(log_softmax(np.where(finite[:, None], logits, 0.0)))
    predicted = np.nan_to_num(logits).argmax(axis=1)
    for index, (example, label) in enumerate(zip(examples, labels, strict=True)):
        row = {
            "split": split,
            "example": example,
            "label": names[label],
            "prediction": names[predicted[index]] if finite[index] else None,
        }
        for k, name in enumerate(names):
            row[f"probability_{name}"] = f"{probabilities[index, k]:.9g}" if finite[index] else None
        rows.append(row)
    return rows


def _show(metrics: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in metrics.items())
