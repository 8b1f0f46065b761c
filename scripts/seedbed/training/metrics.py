"""Metrics from what a model returns: one function a kind of outputs, so that all trainers measure alike."""

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


def token_metrics(outputs: np.ndarray, tokens: np.ndarray) -> dict[str, float]:
    """Loss (nats a token), perplexity and token accuracy (a fraction) over all answer tokens of a split.

    Every token counts alike, so that a long answer weighs more than a short one; perplexity is the
    exponential of the loss (Jelinek et al. 1977). An example whose loss is not finite makes both NaN, and
    none of its tokens counts as right.

    Args:
        outputs: (examples, 2): sum of the answer's negative log-likelihoods in nats, and number of its tokens
            that the model's most probable token is.
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


# by kind of outputs: the model's outputs of a split and what they are held against, to metrics
MEASURES = {CLASSES: classification_metrics, ANSWERS: token_metrics}
