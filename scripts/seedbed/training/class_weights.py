"""Weights of classes in the training loss: those of rare classes are larger."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F


def class_weights(
    settings: Mapping[str, Any], labels: Sequence[int], classes: int, device: torch.device
) -> torch.Tensor | None:
    """(classes,) float32: what a training example of each class counts; None where all count alike.

    `balanced` is n / (k n_c), as in scikit-learn, for n examples of k classes, n_c of one: every class counts
    alike, and an example counts 1 on average. A class without an example has no loss to weigh, and counts 0.

    Args:
        settings: the resolved recipe.
        labels: class indices of the training split.
        classes: number of classes of the dataset.
        device: of the weights.
    """
    if settings.get("class_weight") is None:
        return None
    counts = np.bincount(labels, minlength=classes)
    present = counts > 0
    weights = np.zeros(classes)
    weights[present] = len(labels) / (present.sum() * counts[present])
    return torch.tensor(weights, dtype=torch.float32, device=device)


def mean_loss(logits: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor:
    """The cross-entropy of a batch over its number of examples, in nats.

    PyTorch's own mean divides by the sum of the weights, so that a batch of rare examples would count no more
    than others, and an epoch would depend on how examples are divided into batches.

    Args:
        logits: (batch, classes) float32.
        labels: (batch,).
        weights: see `class_weights`.
    """
    if weights is None:
        return F.cross_entropy(logits, labels)
    return F.cross_entropy(logits, labels, weight=weights, reduction="sum") / len(labels)
