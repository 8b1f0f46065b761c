"""What both trainers share: the job, its token ids, prediction, and publication of the run folder."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from seedbed.config.plan import RUN_KEYS
from seedbed.core import files, interruption
from seedbed.core.commits import git_commit
from seedbed.core.errors import SeedbedError
from seedbed.core.naming import EOS, PAD
from seedbed.running import claims, publishing
from seedbed.running.jobs import PREDICTED, Job, jobs_from_rule
from seedbed.training import graphs, hardware
from seedbed.training.recording import Recorder, prediction_rows
from seedbed.training.schedule import updates_per_epoch
from seedbed.training.training_state import TrainingStates

__all__ = ["PREDICTED", "Job", "jobs_from_rule"]  # other modules take them from here
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Split:
    """Token ids and labels of a split; `ids` hold <s> and </s>."""

    examples: list[str]
    ids: list[list[int]]
    labels: list[int]


def read_splits(job: Job) -> dict[str, Split]:
    """Token ids of the three splits, cut to the recipe's longest input with the final </s> kept."""
    model_limit = files.read_json(job.model)["max_positions"]
    limit = job.settings["max_positions"] or model_limit
    if limit > model_limit:
        raise SeedbedError(
            "the recipe asks for longer inputs than the model has positions",
            where=f"config, recipes.{job.settings['family']}.max_positions",
            found=limit,
            hint=f"give at most {model_limit}, or null",
        )
    return {split: _read_split(job.tokens / f"{split}.jsonl", limit) for split in ("train", *PREDICTED)}


def _read_split(path: Path, limit: int) -> Split:
    rows = files.read_jsonl(path)
    return Split(
        examples=[row["id"] for row in rows],
        ids=[truncate(row["ids"], limit) for row in rows],
        labels=[row["label"] for row in rows],
    )


def truncate(ids: Sequence[int], limit: int) -> list[int]:
    """At most `limit` ids, the last of which stays </s>."""
    return list(ids) if len(ids) <= limit else [*ids[: limit - 1], EOS]


def total_updates(job: Job, examples: int) -> int:
    """Updates of a run; the same for every framework and init, and none where nothing is trained."""
    if not job.method.trains:
        return 0
    return job.settings["epochs"] * updates_per_epoch(examples, job.settings["batch_size"])


def pad(
    batch: Sequence[Sequence[int]], token: int = PAD, left: bool = False, length: int = 0
) -> torch.Tensor:
    """Pad token ids to the longest of the batch, or to a `length` beyond; shape (batch, length), int64."""
    longest = max(length, *map(len, batch))
    gaps = [[token] * (longest - len(ids)) for ids in batch]
    rows = [[*gap, *ids] if left else [*ids, *gap] for ids, gap in zip(batch, gaps, strict=True)]
    return torch.tensor(rows, dtype=torch.int64)


def batches_by_length(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Indices of all examples in batches of similar length, so that little is padded."""
    order = sorted(range(len(lengths)), key=lambda index: lengths[index])
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


@torch.no_grad()
def predict_by_length(
    forward: Callable[[list[int]], torch.Tensor], lengths: Sequence[int], batch_size: int
) -> np.ndarray:
    """Outputs of every example, in the order given; batches are made of examples of similar length.

    Args:
        forward: maps indices of examples to their outputs, shape (batch, outputs).
        lengths: length of each example in tokens.
        batch_size: examples a batch.

    Returns:
        Array of shape (examples, outputs).
    """
    order, parts = [], []
    for chosen in batches_by_length(lengths, batch_size):
        parts.append(forward(chosen))
        order += chosen
    stacked = torch.cat(parts).cpu().numpy()
    outputs = np.empty_like(stacked)
    outputs[order] = stacked
    return outputs


def predict_logits(
    forward: Callable[[torch.Tensor], torch.Tensor],
    ids: Sequence[Sequence[int]],
    batch_size: int,
    device: torch.device,
) -> np.ndarray:
    """Logits of every example, in the order given; batches are made of texts of similar length.

    Args:
        forward: maps padded ids, shape (batch, length), to logits, shape (batch, classes).
        ids: token ids of each example.
        batch_size: examples a batch.
        device: where `forward` runs.

    Returns:
        float32 array of shape (examples, classes).
    """

    def logits(chosen: list[int]) -> torch.Tensor:
        return forward(pad([ids[index] for index in chosen]).to(device)).float()

    return predict_by_length(logits, [len(example) for example in ids], batch_size)


class Progress:
    """A run on its way: what it recorded, and the checkpoints from which it goes on after a stop.

    Attributes:
        recorder: records the run; restored where the run goes on.
        resumed: what the trainer gave to `after_update` when the state was written, tensors on the CPU; None
            where the run starts anew.
        step: updates made when the state was written; 0 where the run starts anew.
    """

    def __init__(self, recorder: Recorder, states: TrainingStates, work: Path):
        self.recorder, self.step, self.resumed = recorder, 0, None
        self._states, self._work = states, work
        state = states.newest()
        if state is not None:
            self._resume(state)

    def _resume(self, state: dict[str, Any]) -> None:
        self.step, self.resumed = state["step"], state["framework"]
        self.recorder.restore(state["recorder"])
        self.recorder.resumed = [*self.recorder.resumed, {"step": self.step, "cause": state["cause"]}]
        self._states.written = self.recorder.checkpoints["written"] + 1  # the state that was read is one
        self._states.seconds = self.recorder.checkpoints["seconds"]
        log.info("going on after update %d of %d", self.step, self.recorder.total_updates)

    def after_update(self, step: int, framework_state: Callable[[], dict[str, Any]]) -> None:
        """Write a training checkpoint if one is due, then leave if a signal asked for it.

        To be called wherever the run could go on from: after every update, also the last of an epoch, during
        and after its evaluation.

        Args:
            step: updates made.
            framework_state: what the trainer needs to go on from here, as in `TrainingStates.save`; called
                only where a state is written, and not copied.

        Raises:
            Interrupted: a signal asked the process to leave.
            SeedbedError: another process has taken the run over.
        """
        if self._states.due():
            before = self.recorder.clock.switch("write")
            recorder = self.recorder.state()
            cause = interruption.requested()
            claims.confirm(self._work)  # the folder is another's, if this process was thought dead
            self._states.save(
                step, {"step": step, "cause": cause, "recorder": recorder, "framework": framework_state()}
            )
            self.recorder.checkpoints = {"written": self._states.written, "seconds": self._states.seconds}
            self.recorder.clock.switch(before)
        interruption.leave_if_requested()


def start(job: Job, examples: int) -> Progress:
    """Start a run, or go on with it where a checkpoint of the same run is found in its work folder.

    Its files lie in the work folder until they are published. A run that began on a GPU does not go on
    without one, nor the reverse: its numbers would be those of neither.

    Args:
        job: the run.
        examples: size of the training split.

    Raises:
        Interrupted: a signal asked the process to leave before it began.
    """
    interruption.leave_if_requested()
    device = hardware.choose_device(job.run["device"])
    total = total_updates(job, examples)
    recorder = Recorder(job.settings, total, job.work / "run", device, job.task)
    identity = f"{job.identity} {device.type}"
    return Progress(recorder, TrainingStates(job.work / "states", identity, **job.checkpointing), job.work)


def check_updates(found: int, planned: int) -> None:
    """Every run of a recipe makes the same number of updates, whatever its framework and init.

    Raises:
        SeedbedError: this one does not.
    """
    if found != planned:
        raise SeedbedError(
            "the framework makes another number of updates than planned",
            found=f"{found} of {planned}",
            hint="this is a fault of the workflow",
        )


def check_loaded(expected: dict[str, torch.Tensor], found: dict[str, torch.Tensor], checkpoint: Path) -> None:
    """Assert that a pretrained run starts from its checkpoint: a silent start from scratch is an error.

    Args:
        expected: the checkpoint's tensors.
        found: the model's tensors, under the same names.
        checkpoint: the file, for the message.

    Raises:
        SeedbedError: a tensor is missing or differs.
    """
    for name, tensor in expected.items():
        if name not in found:
            raise SeedbedError(
                "the model lacks a tensor of its checkpoint", where=str(checkpoint), found=name
            )
        here = found[name].detach().cpu()
        if not torch.equal(here, tensor.to(here.dtype)):
            raise SeedbedError(
                "the model did not start from its checkpoint",
                where=str(checkpoint),
                found=f"{name} differs",
                hint="the run would have trained from other weights; this is a fault of the workflow",
            )


class Predictor(Protocol):
    """What a task's predictions are: from a split of it to outputs, metrics and rows.

    Attributes:
        columns: of predictions.csv.
    """

    columns: Sequence[str]

    def outputs(self, split: Any) -> np.ndarray:
        """The model's outputs of every example, (examples, outputs); no two tasks have the same."""

    def compared(self, outputs: np.ndarray) -> np.ndarray:
        """Of the outputs, what moves little where the arithmetic differs in its last bits."""

    def final(self, split: Any) -> tuple[dict[str, float], Any]:
        """The metrics that are measured of the selected weights alone, and what `rows` needs of them."""

    def rows(self, name: str, split: Any, outputs: np.ndarray, details: Any) -> list[dict[str, Any]]:
        """Rows of predictions.csv; `details` are those of `final`."""

    def about(self, splits: Mapping[str, Any]) -> dict[str, Any]:
        """What run.json says of the labels."""


class Classified:
    """Predictions of classes: logits and probabilities.

    Args:
        job: the run.
        predict: token ids to logits, shape (examples, classes).
    """

    def __init__(self, job: Job, predict: Callable[[Sequence[Sequence[int]]], np.ndarray]):
        self._predict, self._names = predict, files.read_json(job.labels)["names"]
        probabilities = (f"probability_{name}" for name in self._names)
        self.columns = ["split", "example", "label", "prediction", *probabilities]

    def outputs(self, split: Split) -> np.ndarray:
        """Logits, (examples, classes)."""
        return self._predict(split.ids)

    def compared(self, outputs: np.ndarray) -> np.ndarray:
        """All logits."""
        return outputs

    def final(self, split: Split) -> tuple[dict[str, float], None]:
        """Nothing beyond what every evaluation measures."""
        return {}, None

    def rows(self, name: str, split: Split, outputs: np.ndarray, details: None) -> list[dict[str, Any]]:
        """One row an example: label, prediction, probabilities."""
        return prediction_rows(name, split.examples, split.labels, outputs, self._names)

    def about(self, splits: Mapping[str, Split]) -> dict[str, Any]:
        """The share of the most frequent class of test, and the names of the classes."""
        counts = np.bincount(splits["test"].labels, minlength=len(self._names))
        return {"majority_share": {"test": float(counts.max() / counts.sum())}, "label_names": self._names}


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
        predictor: the task's.
        extra: what the framework adds to run.json (`updates`, `differences`, `command`, ...).
        keep_model: writes the whole model into a folder that is there; None: the selected weights are it.
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
    """The weights that predict must be the selected ones: they give the selected outputs again.

    The batches of the two evaluations may differ, and with them the last bits of the outputs.
    """
    tolerance = TOLERANCES[job.settings["precision"]]
    if not np.allclose(first, again, rtol=tolerance, atol=tolerance):
        raise SeedbedError(
            "the weights that predict are not the selected ones",
            where=str(job.target),
            found=f"outputs that differ by {np.abs(first - again).max():.3g}",
            hint="this is a fault of the workflow",
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
        "identity": job.identity,
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
        "cuda_graphs": graphs.are_used(job.run, recorder.device),
        "evaluation": job.run["evaluation"],
        "hardware": hardware.describe_hardware(),
        "versions": hardware.package_versions(job.extra_packages),
        "git_commit": git_commit(Path(__file__).parents[3]),
    }
