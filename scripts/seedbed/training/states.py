"""States of an encoder: computed once for a dataset, and read by all runs and probes that train on them.

An encoder of frozen weights gives a text the same hidden states in every update. Both frameworks' encoders
give the same ones (see `models.parity`), so Transformers' serve runs of both. They are computed on the CPU,
in float32 and without dropout, so that no file depends on the device that was there.

A file of safetensors has two tensors of each split, float32 of shape (examples, width): `SPLIT.first`, the
last hidden state of the first token (`<s>`), and `SPLIT.mean`, the mean over all tokens of the text, special
ones among them.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from seedbed.core import files
from seedbed.core.splits import SPLITS
from seedbed.core.states import FIRST, KINDS, MEAN, EncoderOfStates
from seedbed.data import states as states_file
from seedbed.running.jobs import head_size
from seedbed.training import initial_models, token_ids
from seedbed.training.token_ids import Split, Text

BATCH = 64  # texts
# what of a recipe a model is built with; none of it changes the encoder without dropout
STILL = {
    **dict.fromkeys(("dropout", "attention_dropout", "activation_dropout", "pooler_dropout"), 0.0),
    "head_init": {"distribution": "torch", "sd": 0.02},
}
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EncodedSplit(Split):
    """A split with the states that its head reads, float32 of shape (examples, width)."""

    states: torch.Tensor = field(default_factory=lambda: torch.empty(0))

    def at(self, rows: torch.Tensor) -> torch.Tensor:
        """The states of examples by their places in the file of the split, (examples, width)."""
        return self.states[rows if self.rows is None else torch.searchsorted(torch.tensor(self.rows), rows)]


def kind_of(model: Any) -> str:
    """The kind of states that the head of a classifier of Transformers reads."""
    return MEAN if getattr(model.config, "classifier_pooling", None) == "mean" else FIRST


def beside(splits: Mapping[str, Split], path: Path, kind: str = FIRST) -> dict[str, EncodedSplit]:
    """The splits of a run with their states.

    Args:
        splits: the token ids and labels.
        path: the file of states.
        kind: FIRST or MEAN.

    Raises:
        SeedbedError: the file has another number of states.
    """
    whole = {name: len(split.labels) for name, split in splits.items() if split.rows is None}
    found = {name: torch.from_numpy(states) for name, states in states_file.read(path, whole)[kind].items()}
    return {
        name: EncodedSplit(
            **vars(split), states=found[name] if split.rows is None else found[name][split.rows]
        )
        for name, split in splits.items()
    }


def write_states(
    encoder: EncoderOfStates, weights: Path, tokens: Path, definition: Path, labels: Path, output: Path
) -> None:
    """Compute the states of all splits of a dataset, and write them.

    Args:
        encoder: init and longest input.
        weights: the model's folder in Hugging Face format.
        tokens: folder of the token ids.
        definition: model.json of the model.
        labels: labels.json of the dataset, since the drawn weights of some encoders follow those of a head.
        output: the file.

    Raises:
        SeedbedError: see `initial_models.build_classifier` and `token_ids.read_tokens`.
    """
    settings = {
        **STILL,
        "random_init_sd": encoder.random_init_sd,
        "max_positions": encoder.max_positions,
        "family": "NAME",
    }
    run = {
        "task": "classification",
        "init": encoder.init,
        "init_seed": encoder.init_seed or 0,
        "settings": settings,
    }
    outputs = head_size(files.read_json(labels).get("names", ()))
    model = initial_models.build_classifier(weights, run, outputs).eval()
    splits = token_ids.read_tokens(tokens, definition, settings)
    tensors = {}
    for name in SPLITS:
        for kind, states in encode(model, splits[name]).items():
            tensors[f"{name}.{kind}"] = states
        log.info("%s: %d texts", name, len(splits[name].labels))
    output.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, output)
    files.follow_umask(output)


def encode(model: Any, split: Split) -> dict[str, torch.Tensor]:
    """The states of a split by kind, each float32 of shape (examples, width).

    Args:
        model: a classifier of Transformers in evaluation mode, on the CPU.
        split: the token ids.
    """
    encoder, padding, texts = getattr(model, model.base_model_prefix), model.config.pad_token_id, split.texts

    def forward(chosen: list[int]) -> torch.Tensor:
        batch, kept = padded([texts[index] for index in chosen], padding)
        hidden = encoder(**batch).last_hidden_state
        mean = (hidden * kept[..., None]).sum(1) / kept.sum(1, keepdim=True)
        return torch.cat([hidden[:, 0], mean], dim=1)

    both = token_ids.predict_by_length(forward, [len(ids) for ids in split.ids], BATCH)
    parts = torch.from_numpy(both).float().chunk(2, dim=1)
    return {kind: part.contiguous() for kind, part in zip(KINDS, parts, strict=True)}


def padded(texts: list[Text], padding: int) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """The inputs of an encoder, (batch, length), and which tokens are not padding."""
    lengths = torch.tensor([len(text.ids) for text in texts])
    kept = torch.arange(int(lengths.max())) < lengths[:, None]
    ids = token_ids.pad([text.ids for text in texts], padding)
    batch = {"input_ids": ids, "attention_mask": kept.long()}
    types = [text.types for text in texts if text.types is not None]
    if types:
        batch["token_type_ids"] = token_ids.pad(types, 0)
    return batch, kept
