"""Write whole models of runs: all trained weights, or an adapter merged into its base."""

import os
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from seedbed.core import files
from seedbed.core.errors import SeedbedError
from seedbed.core.methods import ADAPTERS, METHODS
from seedbed.core.run_folder import RunFolder
from seedbed.core.tasks import CAUSAL, TASKS
from seedbed.running.jobs import Job, head_size
from seedbed.training import adapters
from seedbed.training.initial_models import build_base, build_classifier

# Between scores of adapter and merged model, as a share of the largest score: float32 rounds otherwise.
LARGEST_DIFFERENCE = 1e-3
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")


def merge_run(run_folder: Path, output: Path, base: Path | None = None) -> list[str]:
    """Merge the adapter of a run into its model, in float32.

    Args:
        run_folder: results/EXPERIMENT/runs/.../SEED of a run with method lora or qlora.
        output: the folder to write: config.json, model.safetensors, the tokenizer's files.
        base: the model's folder in Hugging Face format; by default the workflow's.

    Returns:
        Remarks on the merged model, for users.

    Raises:
        SeedbedError: there is no such run, its base is missing or another one, or `output` exists.
    """
    record = _read(run_folder)
    if output.exists():
        raise SeedbedError(
            "the output exists already", where=str(output), hint="name a folder that does not exist"
        )
    if base is None:
        base = RunFolder.from_path(run_folder.resolve()).experiment.parent / record["base"]["name"]
    _check_base(base, record["base"]["sha256"])
    part = output.with_name(f"{output.name}.{uuid.uuid4().hex}.part")
    part.mkdir(parents=True)
    try:
        model = merged(base, run_folder / adapters.FOLDER, record)
        write(part, model, base)
        os.rename(part, output)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return _notes(record["run"]["method"], record["settings"])


def write_run(folder: Path, job: Job, ready: Path) -> None:
    """Write the merged model of an adapter's run after its training.

    Args:
        folder: the existing output folder.
        job: the run.
        ready: the run folder, with its adapter.
    """
    names = job.about_labels.get("names", [])
    record = {"task": job.task.name, "run": job.run, "settings": job.settings, "label_names": names}
    write(folder, merged(job.weights, ready / adapters.FOLDER, record), job.weights)


def _read(run_folder: Path) -> dict[str, Any]:
    path = run_folder / "run.json"
    if not path.is_file():
        raise SeedbedError("there is no finished run", where=str(path), hint="name a folder with a run.json")
    record = files.read_json(path)
    method = record["run"].get("method", "full")
    if method not in ADAPTERS:
        raise SeedbedError(
            "this run has no adapter to merge",
            where=str(path),
            found=f"method {method}",
            hint=f"name a run of method {' or '.join(ADAPTERS)}; with keep_model: true the workflow keeps "
            "the whole model of every run",
        )
    return record


def _check_base(base: Path, hashes: Mapping[str, str]) -> None:
    for name, expected in hashes.items():
        path = base / name
        if not path.is_file():
            raise SeedbedError(
                "the adapter's model does not exist",
                where=str(path),
                hint="make it with the workflow, or name its folder with --base",
            )
        found = files.sha256(path)
        if found != expected:
            raise SeedbedError(
                "the adapter was trained on another model",
                where=str(path),
                found=f"SHA-256 {found}, of {expected}",
                hint="name the folder of the right model with --base, or train the run again",
            )


def merged(base: Path, adapter: Path, record: Mapping[str, Any]) -> PreTrainedModel:
    """The base with an adapter merged into its weights, in float32 on the CPU.

    Args:
        base: the folder of the base.
        adapter: the folder of the adapter.
        record: `task`, `run`, `settings` and `label_names` of run.json.

    Raises:
        SeedbedError: the scores of the merged model differ from those with the adapter.
    """
    run = {**record["run"], "task": record["task"], "settings": record["settings"]}
    if TASKS[record["task"]].model == CAUSAL:
        model = build_base(base, run)
    else:
        model = build_classifier(base, run, head_size(record["label_names"]))
    adapted = adapters.load(model, adapter)
    before = _some_scores(adapted)
    _part(adapted.get_base_model())
    whole = adapted.merge_and_unload(safe_merge=True)
    _untie(whole)
    _check_same(before, _some_scores(whole), adapter)
    return whole


def _part(model: PreTrainedModel) -> None:
    """Untie the output layer from the embeddings if an adapter is on one of them.

    Otherwise merging would change the other, too.
    """
    output, embeddings = model.get_output_embeddings(), model.get_input_embeddings()
    if output is None or not any(hasattr(layer, "base_layer") for layer in (output, embeddings)):
        return
    inner, other = (getattr(layer, "base_layer", layer) for layer in (output, embeddings))
    if inner.weight is other.weight:
        inner.weight = torch.nn.Parameter(inner.weight.detach().clone(), requires_grad=False)


@torch.no_grad()
def _some_scores(model: torch.nn.Module) -> torch.Tensor:
    """Scores of a short text, for comparison."""
    ids = torch.arange(4, 12)[None] % model.config.vocab_size
    return model.eval()(input_ids=ids).logits


def _check_same(before: torch.Tensor, after: torch.Tensor, adapter: Path) -> None:
    difference = float((after - before).abs().max())
    if not difference <= LARGEST_DIFFERENCE * max(1.0, float(before.abs().max())):
        raise SeedbedError(
            "the scores of the merged model differ from those with the adapter",
            where=str(adapter),
            found=f"a difference of up to {difference:.3g}",
            hint="load the adapter beside its model instead; this is a bug of the workflow",
        )


def _untie(model: PreTrainedModel) -> None:
    """Record in the config that output layer and embeddings are not tied, if an adapter made them differ."""
    output, embeddings = model.get_output_embeddings(), model.get_input_embeddings()
    if output is not None and output.weight is not embeddings.weight:
        model.config.tie_word_embeddings = False


def write(folder: Path, model: PreTrainedModel, base: Path) -> None:
    """Write a model into an existing folder, with the tokenizer of its `base`."""
    model.save_pretrained(folder, max_shard_size="1000GB")  # one file
    files.follow_umask(folder / "model.safetensors")
    for name in TOKENIZER:
        if (base / name).is_file():
            shutil.copyfile(base / name, folder / name)


def _notes(method: str, settings: Mapping[str, Any]) -> list[str]:
    if METHODS[method].is_quantized:
        return [
            "The adapter was trained beside weights in 4 bits and is merged into the weights as they were "
            "before: scores differ from those of the run."
        ]
    if settings["frozen_dtype"] != "float32":
        return [
            f"The adapter was trained beside weights in {settings['frozen_dtype']} and is merged into those "
            "of the base in float32: scores may differ a little from those of the run."
        ]
    return []
