"""fairseq's RoBERTa classifier on rows of tokens: packed texts, or texts padded to one length.

The head only reads the first token of each text, so the last layer is computed only for these tokens. The
outputs equal the model's except for rounding, since sums are added in another order; dropout draws other
numbers of the same distribution.

Encoders must have learned positions, and none of fairseq's layer drop, quantization noise, pruned heads or
activation checkpoints, as in this workflow.
"""

from typing import Any

import torch
import torch.nn.functional as F

from seedbed.training import packing
from seedbed.training.packing import Packed, Texts


def pack(tokens: torch.Tensor, padding: int) -> Packed:
    """Pack a padded batch of token ids, (texts, length), without its padding."""
    kept = tokens.ne(padding)
    counts = kept.sum(dim=1)
    positions = kept.cumsum(dim=1) - 1
    return Packed(
        ids=tokens[kept], positions=positions[kept], lengths=counts.tolist(), first=counts.cumsum(0) - counts
    )


def first_features(encoder: Any, batch: Texts) -> torch.Tensor:
    """Last hidden state of the first token of each text.

    Args:
        encoder: fairseq's TransformerEncoder.
        batch: the texts.

    Returns:
        Tensor of shape (texts, channels).
    """
    x = _embed(encoder, batch)
    for layer in encoder.layers[:-1]:
        x = _layer(layer, x, batch)
    x = _layer(encoder.layers[-1], x, batch, only_first=True)
    return x if encoder.layer_norm is None else encoder.layer_norm(x)


def _embed(encoder: Any, batch: Texts) -> torch.Tensor:
    places = batch.positions + encoder.padding_idx + 1  # fairseq numbers positions from here
    x = encoder.embed_scale * encoder.embed_tokens(batch.ids)
    x = x + F.embedding(places, encoder.embed_positions.weight)
    if encoder.layernorm_embedding is not None:
        x = encoder.layernorm_embedding(x)
    return encoder.dropout_module(x)


def _layer(layer: Any, x: torch.Tensor, batch: Texts, only_first: bool = False) -> torch.Tensor:
    """A TransformerEncoderLayer on (tokens, channels); returns all tokens, or the first of each text."""
    norm_first = layer.normalize_before
    tokens = asking = layer.self_attn_layer_norm(x) if norm_first else x
    if only_first:
        x, asking = x[batch.first], tokens[batch.first]
    x = x + layer.dropout_module(_attend(layer.self_attn, asking, tokens, batch))
    if not norm_first:
        x = layer.self_attn_layer_norm(x)
    inner = layer.final_layer_norm(x) if norm_first else x
    inner = layer.activation_dropout_module(layer.activation_fn(layer.fc1(inner)))
    x = x + layer.dropout_module(layer.fc2(inner))
    return x if norm_first else layer.final_layer_norm(x)


def _attend(attention: Any, asking: torch.Tensor, tokens: torch.Tensor, batch: Texts) -> torch.Tensor:
    """A MultiheadAttention; returns only the tokens `asking`, (tokens, channels)."""
    found = packing.attend(
        batch,
        attention.q_proj(asking),
        attention.k_proj(tokens),
        attention.v_proj(tokens),
        attention.num_heads,
        dropout=attention.dropout_module.p if attention.training else 0.0,
    )
    return attention.out_proj(found)
