"""Metrics of a model's outputs, with one function per kind of outputs for all trainers."""

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from seedbed.core import class_metrics, value_metrics
from seedbed.core.tasks import ANSWERS, CLASSES, LABEL_SETS, VALUES, Task
from seedbed.training import label_sets
from seedbed.training.targets import Scale

Measure = Callable[[np.ndarray, np.ndarray], dict[str, float]]


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Log-probabilities along the last axis, in float64.

    Args:
        logits: array of shape (examples, classes).
    """
    logits = np.asarray(logits, dtype=np.float64)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def classification_metrics(
    logits: np.ndarray,
    labels: np.ndarray,
    metrics: Sequence[str] = ("accuracy", "loss"),
    classes: Sequence[str] = (),
) -> dict[str, float]:
    """Metrics of classes: loss is the mean cross-entropy (nats per example), whatever the training weighs.

    Logits that are not finite give a loss of NaN and count as wrong, since a model that returns NaN has not
    predicted anything.

    Args:
        logits: array of shape (examples, classes).
        labels: class indices, shape (examples,).
        metrics: names, see `METRICS`.
        classes: labels of the classes, for metrics of one class.

    Raises:
        ValueError: no example, or shapes that do not match.
    """
    logits = np.asarray(logits, dtype=np.float64)
    labels = np.asarray(labels)
    if logits.ndim != 2 or labels.shape != (len(logits),) or len(labels) == 0:
        raise ValueError(f"logits of shape {logits.shape} do not fit labels of shape {labels.shape}")
    finite = np.isfinite(logits).all(axis=1)
    predicted = np.where(finite, logits.argmax(axis=1), -1)
    found = {"accuracy": float((predicted == labels).mean()), "loss": float("nan")}
    if finite.all():
        found["loss"] = float(-log_softmax(logits)[np.arange(len(labels)), labels].mean())
    counts = class_metrics.count(labels, predicted, logits.shape[1])
    counted = (name for name in metrics if name not in found)
    found |= {name: float(class_metrics.value(name, counts, classes)) for name in counted}
    return {name: found[name] for name in metrics}


def regression_metrics(
    outputs: np.ndarray, labels: np.ndarray, metrics: Sequence[str], scale: Scale
) -> dict[str, float]:
    """Metrics of numbers, in the unit of the labels; of the mean squared error, in its square.

    An output that is not finite gives an error of NaN and correlations of 0.

    Args:
        outputs: array of shape (examples, 1): numbers on the scale of the training.
        labels: (examples,).
        metrics: names, see `METRICS`.
        scale: that of the training.

    Raises:
        ValueError: no example, or shapes that do not match.
    """
    labels = np.asarray(labels, dtype=np.float64)
    if np.shape(outputs) != (len(labels), 1) or len(labels) == 0:
        raise ValueError(f"outputs of shape {np.shape(outputs)} do not fit labels of shape {labels.shape}")
    predicted = scale.restored(outputs[:, 0])
    if not np.isfinite(predicted).all():
        return {name: float("nan") if name == "mse" else 0.0 for name in metrics}
    return {name: float(value_metrics.value(name, labels, predicted[None])[0]) for name in metrics}


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


def _of_classes(task: Task, about: Mapping[str, Any]) -> Measure:
    classes = about.get("labels", ())
    return functools.partial(classification_metrics, metrics=task.metrics, classes=classes)


def _of_values(task: Task, about: Mapping[str, Any]) -> Measure:
    return functools.partial(regression_metrics, metrics=task.metrics, scale=Scale.of(about))


def _of_answers(task: Task, about: Mapping[str, Any]) -> Measure:
    return token_metrics


# by a task's outputs
MEASURES: dict[str, Callable[[Task, Mapping[str, Any]], Measure]] = {
    CLASSES: _of_classes,
    LABEL_SETS: label_sets.measure,
    VALUES: _of_values,
    ANSWERS: _of_answers,
}


def measure_of(task: Task, about: Mapping[str, Any] = MappingProxyType({})) -> Measure:
    """What maps a split's outputs and labels to the metrics of a task.

    Args:
        task: with the metric that its dataset chooses.
        about: what labels.json of its dataset says, if there is one.
    """
    return MEASURES[task.outputs](task, about)
