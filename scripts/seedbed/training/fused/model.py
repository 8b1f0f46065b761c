"""RoBERTa's classifier for several seeds at once: each weight is a stack with one layer per seed.

A GPU, mostly idle with small models, computes all seeds with the launches of one (see `operations`). A seed's
outputs depend only on its own weights. The head reads the first token of each text, so the last layer is
computed only for these tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from seedbed.core.errors import SeedbedError
from seedbed.core.naming import ENCODER, PAD, huggingface_names
from seedbed.models.roberta import POSITION_OFFSET
from seedbed.training.fused.batches import Batch, Filled
from seedbed.training.fused.operations import Operations, Weights
from seedbed.training.initialisation import draw_encoder, draw_head

HEAD = "classification_head"
TOKEN_TYPES = "roberta.embeddings.token_type_embeddings.weight"


@dataclass(frozen=True)
class Shape:
    """Dimensions of the model."""

    layers: int
    width: int
    ffn: int
    heads: int
    rows: int  # of the token embedding
    positions: int
    activation: str
    classes: int


@dataclass(frozen=True)
class Dropout:
    """Dropout probabilities in training."""

    hidden: float = 0.0
    attention: float = 0.0
    activation: float = 0.0
    pooler: float = 0.0
    adapter: float = 0.0


NONE = Dropout()  # outside training


# --- one seed's weights ---


class Linear(nn.Linear):
    """A linear layer with weights yet to be drawn."""

    def reset_parameters(self) -> None:
        """Draw nothing."""


class LayerNorm(nn.LayerNorm):
    """A layer norm with weights yet to be set."""

    def reset_parameters(self) -> None:
        """Set nothing."""


class Embedding(nn.Embedding):
    """An embedding with rows yet to be drawn."""

    def reset_parameters(self) -> None:
        """Draw nothing."""


class Layer(nn.Module):
    """The weights of a layer, under fairseq's names."""

    def __init__(self, shape: Shape):
        super().__init__()
        width = shape.width
        self.self_attn = nn.ModuleDict(
            {name: Linear(width, width) for name in ("q_proj", "k_proj", "v_proj", "out_proj")}
        )
        self.self_attn_layer_norm = LayerNorm(width)
        self.fc1, self.fc2 = Linear(width, shape.ffn), Linear(shape.ffn, width)
        self.final_layer_norm = LayerNorm(width)


class Encoder(nn.Module):
    """The weights of an encoder, under fairseq's names, uninitialised.

    PyTorch's device "meta" serves the same end, but its first use in a process takes a second.
    """

    def __init__(self, shape: Shape):
        super().__init__()
        self.embed_tokens = Embedding(shape.rows, shape.width, padding_idx=PAD)
        self.embed_positions = Embedding(shape.positions + POSITION_OFFSET, shape.width, padding_idx=PAD)
        self.layernorm_embedding = LayerNorm(shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))


def initial_weights(
    shape: Shape, seed: int, settings: Mapping[str, Any], checkpoint: Mapping[str, torch.Tensor] | None
) -> Weights:
    """One seed's weights before training, the same as in a separate run.

    Args:
        shape: dimensions.
        seed: the init seed.
        settings: a resolved recipe.
        checkpoint: the pretrained encoder (`read_checkpoint`); None: random weights.
    """
    head = nn.ModuleDict(
        {"dense": nn.Linear(shape.width, shape.width), "out_proj": nn.Linear(shape.width, shape.classes)}
    )
    draw_head(head["dense"], head["out_proj"], seed, settings["head_init"])
    if checkpoint is None:
        encoder = Encoder(shape)
        draw_encoder(encoder, seed, settings["random_init_sd"], lambda name: name)
        checkpoint = encoder.state_dict()
    return {**checkpoint, **{f"{HEAD}.{name}": tensor for name, tensor in head.state_dict().items()}}


def read_checkpoint(weights: Path, framework: str, shape: Shape) -> Weights:
    """The pretrained encoder's weights in float32, under fairseq's names.

    Args:
        weights: the model's folder in the framework's format.
        framework: `fairseq` or `transformers`.
        shape: dimensions.

    Raises:
        SeedbedError: a weight is missing or has another shape, or there are token types.
    """
    path, stored = _read(weights, framework)
    if TOKEN_TYPES in stored and stored[TOKEN_TYPES].any():
        raise SeedbedError(
            "fused seeds know no token types: their row must be zero, as conversion leaves it",
            where=f"{path}, {TOKEN_TYPES}",
            hint="make it again: snakemake --forcerun convert_checkpoint",
        )
    expected = Encoder(shape).state_dict()
    names = huggingface_names(shape.layers)
    found = {}
    for name, template in expected.items():
        key = f"{ENCODER}.{name}"
        key = key if framework == "fairseq" else names[key]
        tensor = stored.get(key)
        if tensor is None or tensor.shape != template.shape:
            raise SeedbedError(
                "the checkpoint does not fit the model",
                where=f"{path}, {key}",
                found="missing" if tensor is None else f"shape {tuple(tensor.shape)}",
                hint="make it again: snakemake --forcerun convert_checkpoint",
            )
        found[name] = tensor.float()
    return found


def _read(weights: Path, framework: str) -> tuple[Path, Mapping[str, torch.Tensor]]:
    if framework == "fairseq":
        path = weights / "model.pt"
        return path, torch.load(path, map_location="cpu", weights_only=True)["model"]
    from safetensors.torch import load_file

    path = weights / "model.safetensors"
    return path, load_file(path)


def named_for(framework: str, weights: Weights, layers: int) -> Weights:
    """One seed's weights under the framework's names."""
    if framework == "fairseq":
        head = "classification_heads.sentence_classification_head"
        return {
            name.replace(HEAD, head) if name.startswith(HEAD) else f"{ENCODER}.{name}": tensor
            for name, tensor in weights.items()
        }
    names = huggingface_names(layers)
    named = {
        name.replace(HEAD, "classifier") if name.startswith(HEAD) else names[f"{ENCODER}.{name}"]: tensor
        for name, tensor in weights.items()
    }
    # without them, a loader of the model would draw them at random
    return {**named, TOKEN_TYPES: torch.zeros_like(weights["layernorm_embedding.bias"])[None]}


# --- the weights of all seeds ---


def stack(seeds: Sequence[Weights], device: torch.device) -> Weights:
    """Weights of all seeds; those of query, key and value are joined, since they are used together."""
    moved: dict[int, torch.Tensor] = {}  # seeds from the checkpoint share its tensors

    def there(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in moved:
            moved[id(tensor)] = tensor.to(device)
        return moved[id(tensor)]

    joined = [_join({name: there(tensor) for name, tensor in weights.items()}) for weights in seeds]
    return {name: torch.stack([weights[name] for weights in joined]) for name in joined[0]}


def _join(weights: Weights) -> Weights:
    joined = {}
    for name, tensor in weights.items():
        if ".q_proj." in name:
            parts = (weights[name.replace(".q_proj.", f".{part}_proj.")] for part in "qkv")
            joined[name.replace(".q_proj.", ".qkv_proj.")] = torch.cat(list(parts))
        elif ".k_proj." not in name and ".v_proj." not in name:
            joined[name] = tensor
    return joined


def unstack(weights: Mapping[str, torch.Tensor], seed: int) -> Weights:
    """One seed's weights, views of the stack.

    Args:
        weights: the stacked weights.
        seed: the seed's place in the stack.
    """
    single = {}
    for name, stacked in weights.items():
        if ".qkv_proj." in name:
            for part, tensor in zip("qkv", stacked[seed].chunk(3), strict=True):
                single[name.replace(".qkv_proj.", f".{part}_proj.")] = tensor
        else:
            single[name] = stacked[seed]
    return single


class Classifier:
    """The classifiers of all seeds.

    Args:
        shape: dimensions.
        operations: on the stacked weights.
        dropout: probabilities in training.
    """

    def __init__(self, shape: Shape, operations: Operations, dropout: Dropout):
        self.shape, self.dropout = shape, dropout
        self.training = False
        self._on = operations

    def logits(self, batch: Batch | Filled) -> torch.Tensor:
        """Logits of the batch's texts, (seeds, texts, classes)."""
        on, dropout = self._on, self.dropout if self.training else NONE
        on.adapter_dropout = dropout.adapter
        tokens, positions = (on.embed(name, ids) for name, ids in self.rows(batch).items())
        x = tokens + positions
        x = on.drop(on.norm("layernorm_embedding", x), dropout.hidden)
        last = self.shape.layers - 1
        for number in range(last):
            x = self._layer(f"layers.{number}", x, x, batch, dropout)
        first = x.flatten(0, 1)[batch.first]
        x = batch.of_texts(self._layer(f"layers.{last}", first, x, batch, dropout))
        x = on.drop(x, dropout.pooler)
        x = on.drop(torch.tanh(on.project(f"{HEAD}.dense", x)), dropout.pooler)
        return on.project(f"{HEAD}.out_proj", x)

    def rows(self, batch: Batch | Filled) -> Weights:
        """The rows of each embedding table that a batch reads, (seeds, tokens)."""
        return {
            "embed_tokens.weight": batch.ids,
            "embed_positions.weight": batch.positions + POSITION_OFFSET,
        }

    def _layer(
        self, name: str, asking: torch.Tensor, x: torch.Tensor, batch: Batch | Filled, dropout: Dropout
    ) -> torch.Tensor:
        """The layer's outputs for the tokens `asking`, which attend to all tokens `x` of their text."""
        on, attention = self._on, f"{name}.self_attn"
        attend = self._attend_within if asking is x else self._attend_from_first
        attended = attend(f"{attention}.qkv_proj", asking, x, batch, dropout.attention)
        x = on.add(asking, f"{attention}.out_proj", attended, dropout.hidden, f"{attention}_layer_norm")
        inner = on.drop(on.activate(f"{name}.fc1", x), dropout.activation)
        return on.add(x, f"{name}.fc2", inner, dropout.hidden, f"{name}.final_layer_norm")

    def _attend_within(
        self, name: str, _: torch.Tensor, x: torch.Tensor, batch: Batch | Filled, dropout: float
    ) -> torch.Tensor:
        """Attention of all tokens of each text to each other, (seeds, tokens, width)."""
        seeds, tokens, _ = x.shape
        joined = self._on.project(name, x).view(seeds * tokens, 3, self.shape.heads, -1)
        return batch.within(joined, dropout).reshape(x.shape)

    def _attend_from_first(
        self, name: str, first: torch.Tensor, x: torch.Tensor, batch: Batch | Filled, dropout: float
    ) -> torch.Tensor:
        """Attention of the first token of each text to all of the text, (seeds, texts, width)."""
        seeds, tokens, width = x.shape
        size = width // self.shape.heads
        query = self._on.project(name, first, slice(None, width)).reshape(-1, self.shape.heads, size)
        joined = self._on.project(name, x, slice(width, None)).reshape(
            seeds * tokens, 2, self.shape.heads, size
        )
        return batch.from_first(query, joined, dropout).reshape(first.shape)
