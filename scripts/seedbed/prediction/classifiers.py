"""A finished run as a classifier of texts: a model of Transformers with the weights of either framework."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from scipy.special import expit
from transformers import RobertaConfig, RobertaForSequenceClassification

from seedbed.core import naming
from seedbed.core.errors import SeedbedError
from seedbed.core.tasks import CLASSES, VALUES
from seedbed.models.encoding import encode
from seedbed.prediction.finished_runs import FinishedRun
from seedbed.prediction.weights import Weights, compared_columns, find, largest_difference, predictions
from seedbed.training import hardware, methods, products, token_ids
from seedbed.training.fairseq.session import HEAD
from seedbed.training.initial_encoders import head_config
from seedbed.training.metrics import log_softmax
from seedbed.training.results import TOLERANCES
from seedbed.training.targets import Scale
from seedbed.training.token_ids import Split
from seedbed.training.transformers import be_quiet
from seedbed.training.transformers.evaluation import Evaluation

# test examples whose predictions must be those of the run before new ones are made
CHECKED = 64


@dataclass(frozen=True)
class Predicted:
    """Predictions of texts.

    Attributes:
        values: probabilities of the labels, (texts, labels), or numbers in their unit, (texts, 1); float64.
        cut: whether a text was longer than the run takes, so that its end was not read, (texts,) bool.
    """

    values: np.ndarray
    cut: np.ndarray


class Classifier:
    """A finished run as a classifier.

    Args:
        run: the run.
        weights: of the run.
        device: `auto`, `cpu` or `cuda`.
        threads: of the CPU.

    Raises:
        SeedbedError: a GPU is required and there is none.
    """

    def __init__(self, run: FinishedRun, weights: Weights, device: str = "auto", threads: int = 1):
        settings = run.job.settings
        hardware.set_up_torch(threads, deterministic=False, precision=settings["precision"])
        self.run, self._weights = run, weights
        self._device = hardware.choose_device(device)
        model, inner = load(run, weights)
        model.requires_grad_(False).to(self._device)
        precision = products.give(model, settings, self._device)
        self._evaluation = Evaluation(model, inner, self._device, precision)

    def predict(self, examples: Sequence[Mapping[str, Any]], after: Callable[[int], None]) -> Predicted:
        """Predictions of examples: {"id", "text"}, and "text_pair" in pairs.

        Args:
            examples: one or more.
            after: called with the number of texts of each batch.

        Raises:
            SeedbedError: the weights are not finite, since the run diverged.
        """
        run = self.run
        split, cut = encoded(run, examples)
        outputs = self._evaluation.logits(split.texts, run.job.run["evaluation"]["batch_size"], after)
        if not np.isfinite(outputs).all():
            raise SeedbedError(
                "the run gives numbers that are not finite",
                where=str(run.folder),
                found="a diverged run" if run.record["diverged"] else None,
                hint="take another seed",
            )
        return Predicted(values_of(run, outputs), cut)

    def check(self, examples: int) -> float:
        """Check that the first test examples are predicted as the run predicted them.

        Returns:
            See `check_predictions`.

        Raises:
            SeedbedError: see `check_predictions`.
        """
        taken = self.run.test[:examples]
        found = self.predict(taken, lambda _: None)
        return check_predictions(self.run, self._weights, [each["id"] for each in taken], found.values)


def opened(
    run: FinishedRun, device: str, threads: int, tell: Callable[[str], None]
) -> tuple[Classifier, float]:
    """The classifier of a run, checked, and the largest difference from its predictions.csv.

    Args:
        run, device, threads: as in `Classifier`.
        tell: as in `weights.find`.

    Raises:
        SeedbedError: see `weights.find`, `Classifier` and `Classifier.check`.
    """
    weights = find(run, tell)
    classifier = Classifier(run, weights, device, threads)
    return classifier, max(classifier.check(CHECKED), weights.difference or 0.0)


# --- texts and numbers --------------------------------------------------------------------------------------


def encoded(run: FinishedRun, examples: Sequence[Mapping[str, Any]]) -> tuple[Split, np.ndarray]:
    """The tokens of examples as the run takes them, and whether each was cut, (texts,) bool."""
    rows = encode([{"label": None, **example} for example in examples], run.model)
    split = token_ids.split_of(rows, run.job.model, run.job.settings)
    cut = [row["length"] > len(ids) for row, ids in zip(rows, split.ids, strict=True)]
    return split, np.array(cut)


def values_of(run: FinishedRun, outputs: np.ndarray) -> np.ndarray:
    """Probabilities or numbers, see `Predicted`, from what the head gives, (texts, size of the head)."""
    if run.task.outputs == VALUES:
        return Scale(**run.record["targets"]).restored(outputs)
    if run.task.outputs == CLASSES:
        return np.exp(log_softmax(outputs))
    return expit(np.asarray(outputs, dtype=np.float64))


def check_predictions(
    run: FinishedRun, weights: Weights, examples: Sequence[str], values: np.ndarray
) -> float:
    """Check that test examples are predicted as by the run whose weights were taken.

    Args:
        run, weights: the run and its weights.
        examples: ids of test examples.
        values: see `Predicted`.

    Returns:
        The largest difference of a probability, or of a number in standard deviations of the labels.

    Raises:
        SeedbedError: it is too large.
    """
    names, settings = compared_columns(run), run.job.settings
    rows = {
        example: dict(zip(names, (f"{value:.9g}" for value in row), strict=True))
        for example, row in zip(examples, values, strict=True)
    }
    difference = largest_difference(run, rows, predictions(weights.run))
    tolerance = max(TOLERANCES[settings["precision"]], TOLERANCES[settings.get("frozen_dtype", "float32")])
    if not difference <= tolerance:
        raise SeedbedError(
            "the test set is not predicted as the run predicted it",
            where=str(weights.run / "predictions.csv"),
            found=f"a difference of {difference:.3g}, of at most {tolerance:g}",
            hint="predict with the device and the versions of run.json; if they are the same, report a bug",
        )
    return difference


# --- models -------------------------------------------------------------------------------------------------


def load(run: FinishedRun, weights: Weights) -> tuple[Any, Any]:
    """The model of a run with its weights on the CPU, and the same without an adapter's wrapper."""
    be_quiet()
    stored = load_file(weights.file)
    if run.place.framework == "fairseq":
        model = _of_fairseq(run, stored)
        return model, model
    method = methods.of(run.job)
    model: Any = method.classifier()
    if run.job.method.has_adapter:
        from peft import set_peft_model_state_dict

        set_peft_model_state_dict(model, stored)
    else:
        model.load_state_dict(stored)
    return model, method.inner(model)


def _of_fairseq(run: FinishedRun, stored: Mapping[str, torch.Tensor]) -> RobertaForSequenceClassification:
    """Transformers' classifier with the weights of a run of fairseq."""
    head = head_config(run.job.run, run.job.head_size)
    config = RobertaConfig.from_pretrained(run.model / "huggingface", **head)
    model = RobertaForSequenceClassification(config)
    state = {
        theirs: stored[ours]
        for ours, theirs in naming.huggingface_names(config.num_hidden_layers).items()
        if not ours.startswith(naming.HEAD)
    }
    for part in ("dense", "out_proj"):
        for kind in ("weight", "bias"):
            name = f"{part}.{kind}"
            state[f"classifier.{name}"] = stored[f"classification_heads.{HEAD}.{name}"]
    # fairseq has no token types; Transformers adds the one row to every token
    types = "roberta.embeddings.token_type_embeddings.weight"
    state[types] = torch.zeros_like(model.state_dict()[types])
    model.load_state_dict(state)
    return model
