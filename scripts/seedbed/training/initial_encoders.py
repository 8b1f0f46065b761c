"""The initial classifiers of the format auto: any encoder of Transformers, pretrained or random.

Random weights come from the architecture's own initialisation, seeded by the init seed. Weights of the head
that pretraining did not leave are drawn by the recipe's `head_init`, alike for both inits.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn
from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedModel

from seedbed.core.errors import SeedbedError
from seedbed.core.tasks import LABEL_SETS, TASKS, VALUES
from seedbed.models.auto_classifiers import in_head
from seedbed.training import initialisation
from seedbed.training.differences import Difference, difference

# keys of Transformers' configs that a recipe's dropouts stand for; each architecture has its own
DROPOUTS = {
    "dropout": ("hidden_dropout_prob", "hidden_dropout", "dropout", "embedding_dropout"),
    "attention_dropout": ("attention_probs_dropout_prob", "attention_dropout"),
    "activation_dropout": ("activation_dropout", "mlp_dropout"),
    "pooler_dropout": (
        "classifier_dropout", "classifier_dropout_prob", "seq_classif_dropout", "pooler_dropout",
        "cls_dropout",
    ),
}  # fmt: skip
UNLISTED = {"deberta": ("cls_dropout",), "deberta-v2": ("cls_dropout",)}  # read, but not in their configs


# by a task's outputs: Transformers' name of the problem, where it is none of classes
PROBLEM_TYPES = {LABEL_SETS: "multi_label_classification", VALUES: "regression"}


def head_config(run: Mapping[str, Any], size: int) -> dict[str, Any]:
    """Keys of Transformers' config for the head of a run.

    Args:
        run: the run's params.
        size: outputs of the head.
    """
    problem = PROBLEM_TYPES.get(TASKS[run["task"]].outputs)
    return {"num_labels": size, **({"problem_type": problem} if problem else {})}


def build(weights: Path, run: Mapping[str, Any], classes: int) -> PreTrainedModel:
    """The classifier at its initial weights, in float32 on the CPU; all of them are trained.

    Args:
        weights: the model's folder, whose model.safetensors lacks weights of a new head.
        run: the run's params.
        classes: number of classes.

    Raises:
        SeedbedError: weights of a pretrained run differ from the checkpoint, or are missing there.
    """
    settings, checkpoint = run["settings"], weights / "model.safetensors"
    config = AutoConfig.from_pretrained(weights, local_files_only=True, **head_config(run, classes))
    for setting, keys in _dropout_keys(config).items():
        for key in keys:
            setattr(config, key, settings[setting])
    auto, stored = AutoModelForSequenceClassification, load_file(checkpoint)
    with torch.random.fork_rng(devices=[]), initialisation.without_load_report():
        torch.manual_seed(run["init_seed"])
        if run["init"] == "pretrained":
            options = {"ignore_mismatched_sizes": True, "local_files_only": True}  # found below
            model = auto.from_pretrained(weights, config=config, dtype=torch.float32, **options)
        else:
            model = auto.from_config(config, dtype=torch.float32)
    new = [name for name, _ in model.named_parameters() if name not in stored]
    if lost := [name for name in new if not in_head(name, model)]:
        raise SeedbedError(
            "the checkpoint lacks weights of the model, which would start at random",
            where=str(checkpoint),
            found=", ".join(lost),
            hint="make it anew: snakemake --forcerun convert_encoder",
        )
    if run["init"] == "pretrained":
        initialisation.check_loaded(stored, model.state_dict(), checkpoint)
    _draw_head(model, new, run["init_seed"], settings["head_init"])
    return model


def _draw_head(model: PreTrainedModel, new: list[str], init_seed: int, init: Mapping[str, Any]) -> None:
    """Draw the new linear layers; others, such as layer norms, keep the architecture's own values."""
    for name in new:
        layer, _, tensor = name.rpartition(".")
        module = model.get_submodule(layer)
        if isinstance(module, nn.Linear):
            initialisation.draw_linear(module, tensor, initialisation.generator(init_seed, name), init)


def _dropout_keys(config: Any) -> dict[str, list[str]]:
    """The config's keys for each dropout of a recipe."""
    known = {*config.to_dict(), *UNLISTED.get(config.model_type, ())}
    return {setting: [key for key in keys if key in known] for setting, keys in DROPOUTS.items()}


def differences_of(model: PreTrainedModel, run: Mapping[str, Any]) -> Iterator[Difference]:
    """Settings of the recipe that the architecture does not have, or does in its own way."""
    settings, name = run["settings"], type(model).__name__
    for setting, keys in _dropout_keys(model.config).items():
        if settings[setting] > 0 and not keys:
            yield difference(setting, settings[setting], f"0: {name} has none")
    if run["init"] == "random":
        sd = getattr(model.config, "initializer_range", None)
        own = f"{name}'s own initialisation"
        yield difference("random_init_sd", "", f"{own}, initializer_range {sd}" if sd is not None else own)
