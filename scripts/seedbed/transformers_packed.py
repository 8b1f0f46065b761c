"""Transformers' RoBERTa classifier on packed texts: without padding and without what no one reads.

The head reads the first token of each text alone, so the last layer is computed for these tokens only. Both
savings leave the logits as they are but for the rounding of sums that are added up in another order; dropout
draws other numbers of the same distribution.

The model's own modules are called, adapted or not, in the order of its own forward; only attention is not the
model's.
"""

from collections.abc import Sequence
from typing import Any

import torch

from seedbed import packing
from seedbed.packing import Packed


def logits(model: Any, batch: Packed) -> torch.Tensor:
    """Logits of each text.

    Args:
        model: a RobertaForSequenceClassification, or the one inside an adapter.
        batch: the texts, on the model's device.

    Returns:
        Tensor of shape (texts, classes), in the precision of the autocast around it.
    """
    return model.classifier(first_features(model.roberta, batch)[:, None])


def first_features(encoder: Any, batch: Packed) -> torch.Tensor:
    """Last hidden state of the first token of each text.

    Args:
        encoder: a RobertaModel that sees all of a text, as classifiers do.
        batch: the texts.

    Returns:
        Tensor of shape (texts, channels).
    """
    embeddings = encoder.embeddings
    places = batch.positions + embeddings.padding_idx + 1  # RoBERTa counts them from there
    x = embeddings(input_ids=batch.ids[None], position_ids=places[None])[0]
    for layer in encoder.encoder.layer[:-1]:
        x = _layer(layer, x, batch.lengths)
    return _layer(encoder.encoder.layer[-1], x, batch.lengths, batch.first)


def _layer(
    layer: Any, x: torch.Tensor, lengths: Sequence[int], chosen: torch.Tensor | None = None
) -> torch.Tensor:
    """A RobertaLayer on (tokens, channels); of the result only the tokens `chosen`, one a text."""
    asking, asked = (x, lengths) if chosen is None else (x[chosen], [1] * len(lengths))
    attention = layer.attention
    found = _attend(attention.self, asking, x, asked, lengths)
    return layer.feed_forward_chunk(attention.output(found, asking))


def _attend(
    attention: Any, asking: torch.Tensor, tokens: torch.Tensor, asked: Sequence[int], lengths: Sequence[int]
) -> torch.Tensor:
    """A RobertaSelfAttention of the tokens `asking`, `asked` of each text, to all tokens of their text."""
    return packing.attend(
        attention.query(asking),
        attention.key(tokens),
        attention.value(tokens),
        attention.num_attention_heads,
        lengths,
        dropout=attention.dropout.p if attention.training else 0.0,
        scale=attention.scaling,
        asked=asked,
    )
