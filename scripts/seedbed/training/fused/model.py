"""RoBERTa's classifier for several seeds at once: each weight is a stack with one layer per seed.

Each product of the separate models becomes one batched product, so that a GPU, mostly idle with small models,
computes all seeds with the launches of one. A seed's outputs depend only on its own weights. The head reads
the first token of each text, so the last layer is computed only for these tokens.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from seedbed.core.errors import SeedbedError
from seedbed.core.naming import ENCODER, PAD, huggingface_names
from seedbed.models.roberta import LAYER_NORM_EPSILON, POSITION_OFFSET
from seedbed.training import packing
from seedbed.training.fused.texts import Batch
from seedbed.training.initialisation import draw_encoder, draw_head

HEAD = "classification_head"
TOKEN_TYPES = "roberta.embeddings.token_type_embeddings.weight"
Weights = dict[str, torch.Tensor]
ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": F.gelu,
    "relu": F.relu,
    "gelu_accurate": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_fast": lambda x: F.gelu(x, approximate="tanh"),
}


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


# --- one seed's weights ---


class Layer(nn.Module):
    """The weights of a layer, under fairseq's names."""

    def __init__(self, shape: Shape):
        super().__init__()
        width = shape.width
        self.self_attn = nn.ModuleDict(
            {name: nn.Linear(width, width) for name in ("q_proj", "k_proj", "v_proj", "out_proj")}
        )
        self.self_attn_layer_norm = nn.LayerNorm(width)
        self.fc1, self.fc2 = nn.Linear(width, shape.ffn), nn.Linear(shape.ffn, width)
        self.final_layer_norm = nn.LayerNorm(width)


class Encoder(nn.Module):
    """The weights of an encoder, under fairseq's names."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.rows, shape.width, padding_idx=PAD)
        self.embed_positions = nn.Embedding(shape.positions + POSITION_OFFSET, shape.width, padding_idx=PAD)
        self.layernorm_embedding = nn.LayerNorm(shape.width)
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
        with torch.device("meta"):
            encoder = Encoder(shape)
        encoder.to_empty(device="cpu")
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
    with torch.device("meta"):
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
    joined = [_join(weights) for weights in seeds]
    return {name: torch.stack([weights[name] for weights in joined]).to(device) for name in joined[0]}


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
        weights: stacked weights, from `stack`.
        dropout: probabilities in training.
    """

    def __init__(self, shape: Shape, weights: Weights, dropout: Dropout):
        self.shape, self.weights, self.dropout = shape, weights, dropout
        self.training = False

    def logits(self, batch: Batch) -> torch.Tensor:
        """Logits of the batch's texts, (seeds, texts, classes)."""
        seeds, tokens = batch.ids.shape
        x = self._embed("embed_tokens", batch.ids) + self._embed(
            "embed_positions", batch.positions + POSITION_OFFSET
        )
        x = self._drop(self._norm("layernorm_embedding", x), self.dropout.hidden)
        last = self.shape.layers - 1
        for number in range(last):
            x = self._layer(f"layers.{number}", x, x, batch)
        offsets = torch.arange(seeds, device=x.device)[:, None] * tokens
        first = x.reshape(seeds * tokens, -1)[batch.first + offsets]
        x = self._layer(f"layers.{last}", first, x, batch)
        x = self._drop(x, self.dropout.pooler)
        x = self._drop(torch.tanh(self._linear(f"{HEAD}.dense", x)), self.dropout.pooler)
        return self._linear(f"{HEAD}.out_proj", x)

    def _layer(self, name: str, asking: torch.Tensor, x: torch.Tensor, batch: Batch) -> torch.Tensor:
        """The layer's outputs for the tokens `asking`, which attend to all tokens `x` of their text."""
        hidden = self.dropout.hidden
        attend = self._attend_within if asking is x else self._attend_from_first
        attended = attend(f"{name}.self_attn.qkv_proj", asking, x, batch)
        x = asking + self._drop(self._linear(f"{name}.self_attn.out_proj", attended), hidden)
        x = self._norm(f"{name}.self_attn_layer_norm", x)
        inner = ACTIVATIONS[self.shape.activation](self._linear(f"{name}.fc1", x))
        inner = self._drop(inner, self.dropout.activation)
        x = x + self._drop(self._linear(f"{name}.fc2", inner), hidden)
        return self._norm(f"{name}.final_layer_norm", x)

    def _attend_within(self, name: str, _: torch.Tensor, x: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Attention of all tokens of each text to each other, (seeds, tokens, width)."""
        seeds, tokens, width = x.shape
        flat = self._linear(name, x).reshape(seeds * tokens, 3, self.shape.heads, -1)
        if packing.is_used_on(x.device):
            parts = (part.transpose(0, 1)[None] for part in flat.unbind(1))
            out = packing.attention(*parts, batch.stretches, self._attention_dropout)
            return out[0].transpose(0, 1).reshape(seeds, tokens, width)
        query, key, value = (part.transpose(1, 2) for part in to_grid(flat, batch).unbind(2))
        attended = self._attend(query, key, value, batch).reshape(-1, width)
        return from_grid(attended, batch).view(seeds, tokens, width)

    def _attend_from_first(
        self, name: str, first: torch.Tensor, x: torch.Tensor, batch: Batch
    ) -> torch.Tensor:
        """Attention of the first token of each text to all of the text, (seeds, texts, width)."""
        seeds, tokens, width = x.shape
        query = self._linear(name, first, slice(None, width)).reshape(
            -1, 1, self.shape.heads, width // self.shape.heads
        )
        flat = self._linear(name, x, slice(width, None)).reshape(seeds * tokens, 2, self.shape.heads, -1)
        key, value = (part.transpose(1, 2) for part in to_grid(flat, batch).unbind(2))
        return self._attend(query.transpose(1, 2), key, value, batch).reshape(seeds, -1, width)

    def _attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, batch: Batch
    ) -> torch.Tensor:
        """(seeds * texts, heads, tokens, head size) to (seeds * texts, tokens, heads, head size)."""
        dropout = self._attention_dropout
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=batch.inside, dropout_p=dropout)
        return out.transpose(1, 2)

    @property
    def _attention_dropout(self) -> float:
        return self.dropout.attention if self.training else 0.0

    def _embed(self, name: str, ids: torch.Tensor) -> torch.Tensor:
        table = self.weights[f"{name}.weight"]
        seeds, rows, width = table.shape
        offsets = torch.arange(seeds, device=ids.device)[:, None] * rows
        return F.embedding(ids + offsets, table.view(-1, width))

    def _linear(self, name: str, x: torch.Tensor, outputs: slice = slice(None)) -> torch.Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return torch.baddbmm(bias[:, None, outputs], x, weight[:, outputs].transpose(1, 2))

    def _norm(self, name: str, x: torch.Tensor) -> torch.Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        normal = F.layer_norm(x, x.shape[-1:], eps=LAYER_NORM_EPSILON)
        return torch.addcmul(bias[:, None], normal, weight[:, None])

    def _drop(self, x: torch.Tensor, probability: float) -> torch.Tensor:
        return F.dropout(x, probability) if self.training and probability > 0 else x


# --- conversion between rows of tokens and the grid of texts for attention ---


def to_grid(tokens: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Rows of tokens, (seeds * tokens, ...), in the grid of texts, (seeds * texts, longest, ...)."""
    return _Moved.apply(tokens, batch.grid, batch.places, batch.in_text)


def from_grid(cells: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Cells of the grid, (seeds * texts * longest, ...), as rows of tokens, (seeds * tokens, ...)."""
    return _Moved.apply(cells, batch.places, batch.grid, batch.inside)


class _Moved(torch.autograd.Function):
    """`rows[there]`, where each counted row occurs once, at `back`.

    So its gradient can be read from there, while PyTorch would sort all places and add.
    """

    @staticmethod
    def forward(
        ctx: Any, rows: torch.Tensor, there: torch.Tensor, back: torch.Tensor, counts: torch.Tensor
    ) -> torch.Tensor:
        """Move.

        Args:
            ctx: PyTorch's.
            rows: (rows, ...).
            there: the row of each place, of any shape.
            back: for each row, its place, of any shape.
            counts: for each row, whether it counts; places with other rows are not used.
        """
        ctx.save_for_backward(back, counts)
        ctx.dimensions = there.dim()
        return rows[there]

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Move the gradient back."""
        back, counts = (part.flatten() for part in ctx.saved_tensors)
        rest = gradient.shape[ctx.dimensions :]
        moved = gradient.reshape(-1, *rest)[back]
        return moved.masked_fill(~counts.view(-1, *[1] * len(rest)), 0), None, None, None
