"""What both trainers share: the job, its token ids, prediction, and publication of the run folder."""

import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seedbed import files, hardware
from seedbed.commits import git_commit
from seedbed.errors import SeedbedError
from seedbed.naming import EOS, PAD
from seedbed.plan import RUN_KEYS
from seedbed.recording import Recorder, prediction_rows
from seedbed.schedule import updates_per_epoch

PREDICTED = ("validation", "test")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """One run as a trainer sees it: plain values and paths.

    Attributes:
        run: the params of the rule (`Plan.fairseq_run`, `Plan.transformers_run`).
        experiment: name of the experiment.
        tokens: folder of the token ids.
        labels: labels.json of the dataset.
        weights: the model's folder for this framework.
        model: model.json of the model.
        binarized: folder of fairseq's data; None for Transformers.
        target: the run folder to publish.
        work: a folder that Snakemake does not own, on the same file system.
        threads: CPU threads.
    """

    run: dict[str, Any]
    experiment: str
    tokens: Path
    labels: Path
    weights: Path
    model: Path
    target: Path
    work: Path
    threads: int
    binarized: Path | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """The resolved recipe."""
        return self.run["settings"]

    @property
    def evaluated(self) -> tuple[str, ...]:
        """The splits that are evaluated after every epoch: test only where its curve is asked for."""
        return PREDICTED if self.run["evaluation"]["test_curves"] else ("validation",)


@dataclass(frozen=True)
class Split:
    """Token ids and labels of a split; `ids` hold <s> and </s>."""

    examples: list[str]
    ids: list[list[int]]
    labels: list[int]


def jobs_from_rule(snakemake: Any) -> list[Job]:
    """The runs of one process, from a fine-tuning rule; by default there is one."""
    target = Path(snakemake.output.run_json).parent
    experiment = target.parents[6]  # .../EXPERIMENT/runs/dataset/model/framework/init/recipe/seed
    inputs = snakemake.input
    binarized = inputs.get("binarized")
    job = Job(
        run=snakemake.params.run,
        experiment=experiment.name,
        tokens=Path(inputs.tokens[0]).parent,
        labels=Path(inputs.labels),
        weights=Path(inputs.weights).parent,
        model=Path(inputs.model),
        binarized=Path(binarized).parent if binarized else None,
        target=target,
        work=experiment / "work" / target.relative_to(experiment / "runs"),
        threads=snakemake.threads,
    )
    return [job]


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


def new_recorder(job: Job, examples: int) -> Recorder:
    """A recorder whose files lie in the job's work folder until they are published."""
    shutil.rmtree(job.work, ignore_errors=True)
    device = hardware.choose_device(job.run["device"])
    return Recorder(job.settings, total_updates(job, examples), job.work / "run", device)


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
    files.publish_folder(recorder.ready, job.target)
    shutil.rmtree(job.work, ignore_errors=True)
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
        "run": {key: job.run[key] for key in (*RUN_KEYS, "swept")},
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
