"""Metrics from logits: one function for both frameworks, so that their numbers mean the same."""

import numpy as np


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Log-probabilities along the last axis, in float64.

    Args:
        logits: array of shape (examples, classes).
    """
    logits = np.asarray(logits, dtype=np.float64)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def classification_metrics(logits: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Accuracy (a fraction) and mean cross-entropy (nats an example).

    Logits that are not finite give a loss of NaN; their examples count as wrong, since a model that
    returns NaN has not predicted anything.

    Args:
        logits: array of shape (examples, classes).
        labels: class indices, shape (examples,).

    Raises:
        ValueError: no example, or shapes that do not match.
    """
    logits = np.asarray(logits, dtype=np.float64)
    labels = np.asarray(labels)
    if logits.ndim != 2 or labels.shape != (len(logits),) or len(labels) == 0:
        raise ValueError(f"logits of shape {logits.shape} do not fit labels of shape {labels.shape}")
    finite = np.isfinite(logits).all(axis=1)
    correct = (logits.argmax(axis=1) == labels) & finite
    if not finite.all():
        return {"accuracy": float(correct.mean()), "loss": float("nan")}
    losses = -log_softmax(logits)[np.arange(len(labels)), labels]
    return {"accuracy": float(correct.mean()), "loss": float(losses.mean())}
