"""Metrics of a model's outputs, with one function per kind of outputs for all trainers."""

import numpy as np

from seedbed.core.tasks import ANSWERS, CLASSES


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Log-probabilities along the last axis, in float64.

    Args:
        logits: array of shape (examples, classes).
    """
    logits = np.asarray(logits, dtype=np.float64)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def classification_metrics(logits: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Accuracy (a fraction) and mean cross-entropy (nats per example).

    Logits that are not finite give a loss of NaN and count as wrong, since a model that returns NaN has not
    predicted anything.

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


def token_metrics(outputs: np.ndarray, tokens: np.ndarray) -> dict[str, float]:
    """Loss (nats per token), perplexity and token accuracy (a fraction) over all answer tokens of a split.

    All tokens count alike, so long answers weigh more. Perplexity is the exponential of the loss (Jelinek et
    al. 1977). An example with a loss that is not finite makes both NaN, and its tokens count as wrong.

    Args:
        outputs: (examples, 2): sum of the answer's negative log-likelihoods in nats, and number of its tokens
            that are the model's most probable ones.
        tokens: (examples,): number of answer tokens, 1 or more.

    Raises:
        ValueError: no example, or shapes that do not match.
    """
    outputs = np.asarray(outputs, dtype=np.float64)
    tokens = np.asarray(tokens)
    if outputs.shape != (len(tokens), 2) or len(tokens) == 0:
        raise ValueError(f"outputs of shape {outputs.shape} do not fit tokens of shape {tokens.shape}")
    nats, right = outputs.T
    finite = np.isfinite(nats)
    loss = float(nats.sum() / tokens.sum()) if finite.all() else float("nan")
    return {
        "loss": loss,
        "perplexity": float(np.exp(loss)),
        "token_accuracy": float(right[finite].sum() / tokens.sum()),
    }


# by kind of outputs: maps a split's outputs and labels to metrics
MEASURES = {CLASSES: classification_metrics, ANSWERS: token_metrics}
