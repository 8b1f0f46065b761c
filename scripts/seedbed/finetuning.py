"""What both trainers share: the job, its token ids, prediction, and publication of the run folder."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seedbed import claims, files, hardware, interruption, publishing
from seedbed.commits import git_commit
from seedbed.errors import SeedbedError
from seedbed.jobs import PREDICTED, Job, jobs_from_rule
from seedbed.naming import EOS, PAD
from seedbed.plan import RUN_KEYS
from seedbed.recording import Recorder, prediction_rows
from seedbed.schedule import updates_per_epoch
from seedbed.training_state import TrainingStates

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
    """Updates of a run; the same for every framework and init."""
    return job.settings["epochs"] * updates_per_epoch(examples, job.settings["batch_size"])


def pad(batch: Sequence[Sequence[int]]) -> torch.Tensor:
    """Pad token ids to the longest of the batch; shape (batch, length), int64."""
    longest = max(map(len, batch))
    rows = [[*ids, *[PAD] * (longest - len(ids))] for ids in batch]
    return torch.tensor(rows, dtype=torch.int64)


@torch.no_grad()
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
    order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
    parts = []
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        parts.append(forward(pad([ids[index] for index in chosen]).to(device)).float())
    stacked = torch.cat(parts).cpu().numpy()
    logits = np.empty_like(stacked)
    logits[order] = stacked
    return logits


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
    recorder = Recorder(job.settings, total_updates(job, examples), job.work / "run", device)
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


def finish(
    job: Job,
    recorder: Recorder,
    splits: dict[str, Split],
    predict: Callable[[Sequence[Sequence[int]]], np.ndarray],
    extra: dict[str, Any],
) -> None:
    """Predict with the selected weights (already loaded), write all files and publish the run folder.

    Args:
        job: the run.
        recorder: its recorder, after training.
        splits: the splits; validation and test are predicted.
        predict: token ids to logits, shape (examples, classes).
        extra: what the framework adds to run.json (`updates`, `differences`, `command`, ...).
    """
    assert recorder.selected is not None
    recorder.clock.switch("evaluate")
    names = files.read_json(job.labels)["names"]
    rows, metrics = [], {}
    for name in PREDICTED:
        split = splits[name]
        logits = predict(split.ids)
        if name == "validation" and recorder.selected.logits.size:
            _check_selected(job, recorder.selected.logits, logits)
            logits = recorder.selected.logits  # those that selected it, so that all files agree to the bit
        metrics[name] = recorder.add_final(name, logits, np.asarray(split.labels))
        rows += prediction_rows(name, split.examples, split.labels, logits, names)
    recorder.clock.switch("write")
    columns = ["split", "example", "label", "prediction", *(f"probability_{name}" for name in names)]
    files.write_rows(recorder.ready / "predictions.csv", columns, rows)
    if job.run["keep_model"]:
        _keep_model(recorder)
    recorder.close()
    recorder.clock.switch("publish")
    record = describe_run(job, recorder, metrics, splits, names, extra)
    files.write_json(recorder.ready / "run.json", record)
    publishing.publish(job)
    log.info("published %s", job.target)


def _check_selected(job: Job, first: np.ndarray, again: np.ndarray) -> None:
    """The weights that predict must be the selected ones: they give the selected logits again.

    The batches of the two evaluations differ, and with them the last bits of the logits.
    """
    tolerance = 1e-3 if job.settings["precision"] == "float32" else 0.3
    if not np.allclose(first, again, rtol=tolerance, atol=tolerance):
        raise SeedbedError(
            "the weights that predict are not the selected ones",
            where=str(job.target),
            found=f"logits that differ by {np.abs(first - again).max():.3g}",
            hint="this is a fault of the workflow",
        )


def _keep_model(recorder: Recorder) -> None:
    from safetensors.torch import save_file

    folder = recorder.ready / "model"
    folder.mkdir()
    weights = {name: tensor.contiguous().cpu() for name, tensor in recorder.selected.weights.items()}
    save_file(weights, folder / "model.safetensors")


def describe_run(
    job: Job,
    recorder: Recorder,
    metrics: dict[str, dict[str, float]],
    splits: dict[str, Split],
    names: list[str],
    extra: dict[str, Any],
) -> dict[str, Any]:
    """The content of run.json."""
    selected = recorder.selected
    settings = {key: value for key, value in job.settings.items() if key not in ("family", "swept")}
    counts = np.bincount(splits["test"].labels, minlength=len(names))
    return {
        "experiment": job.experiment,
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
        "evaluation": job.run["evaluation"],
        "hardware": hardware.describe_hardware(),
        "versions": hardware.package_versions(),
        "git_commit": git_commit(Path(__file__).parents[2]),
        "majority_share": {"test": float(counts.max() / counts.sum())},
        "label_names": names,
    }
