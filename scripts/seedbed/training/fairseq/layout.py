"""The weights of fairseq's RoBERTa: which fine-tuning uses, and which are of its layers and of its head."""

import re
from collections.abc import Iterator
from typing import Any

import torch

from seedbed.training import partial
from seedbed.training.partial import Layout, Shape

# The head of pretraining, and fused copies of each layer's weights for inference, which no update changes.
UNUSED = re.compile(r"(^|\.)lm_head\.|\.(in_proj|out_proj|fc1|fc2)_(weight|bias)$")
ENCODER = "encoder.sentence_encoder"


def used(model: torch.nn.Module) -> torch.nn.ParameterList:
    """The parameters that fine-tuning uses."""
    return torch.nn.ParameterList(weight for _, weight in _used(model))


def layout_of(model: Any, head: str) -> Layout:
    """The layout of a model with a classification head of this name."""
    encoder, top = model.encoder.sentence_encoder, model.classification_heads[head]
    names = [name for name, _ in _used(model)]
    of_head = [name for name in names if name.startswith(f"classification_heads.{head}.")]
    layers = [f"{ENCODER}.layers.{index}." for index in range(len(encoder.layers))]
    first = encoder.layers[0]
    shape = Shape(first.fc1.in_features, first.fc1.out_features, top.out_proj.out_features)
    return partial.sort(names, of_head, layers, (f"{ENCODER}.layer_norm.",), shape)


def _used(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Parameter]]:
    return ((name, weight) for name, weight in model.named_parameters() if not UNUSED.search(name))
