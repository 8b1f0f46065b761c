"""What the head of an encoder learns: the loss of a batch, for each kind of outputs."""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
import torch.nn.functional as F

from seedbed.core.tasks import CLASSES, LABEL_SETS, VALUES
from seedbed.running.jobs import Job
from seedbed.training.class_weights import class_weights, mean_loss
from seedbed.training.label_sets import Labelling
from seedbed.training.targets import Scale


class Objective(Protocol):
    """The training loss. `outputs` are (batch, size of the head) float32, `labels` are (batch,).

    Where an output is a label of its own, `labels` have the shape of `outputs`.
    """

    def mean(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss over the number of examples."""

    def summed(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss summed over the batch."""


class Classifying:
    """Cross-entropy in nats, in which classes may have weights.

    Args:
        job: the run.
        labels: class indices of the training split.
        device: of the batches.
    """

    def __init__(self, job: Job, labels: Sequence[int], device: torch.device):
        self._weights = class_weights(job.settings, labels, job.head_size, device)

    def mean(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See `Objective`."""
        return mean_loss(outputs, labels, self._weights)

    def summed(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See `Objective`."""
        return F.cross_entropy(outputs, labels, weight=self._weights, reduction="sum")


class Regressing:
    """The squared error of numbers on the scale of the training.

    Args:
        job: the run.
        labels: numbers of the training split.
        device: of the batches.
    """

    def __init__(self, job: Job, labels: Sequence[float], device: torch.device):
        self._scale = Scale.of(job.about_labels)

    def mean(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See `Objective`."""
        return F.mse_loss(outputs.squeeze(1), self._scale.scaled(labels))

    def summed(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See `Objective`."""
        return F.mse_loss(outputs.squeeze(1), self._scale.scaled(labels), reduction="sum")


# by a task's outputs
OBJECTIVES: dict[str, Any] = {CLASSES: Classifying, LABEL_SETS: Labelling, VALUES: Regressing}


def of(job: Job, labels: Sequence[Any], device: torch.device) -> Objective:
    """The objective of a run.

    Args:
        job: the run.
        labels: those of its training split.
        device: of the batches.
    """
    return OBJECTIVES[job.task.outputs](job, labels, device)
