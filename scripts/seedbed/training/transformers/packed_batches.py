"""Transformers' RoBERTa classifier on rows of tokens: packed texts have no padding, padded ones no surprises.

The head reads the first token of each text alone, so the last layer is computed for these tokens only. The
logits are the model's but for the rounding of sums that are added up in another order; dropout draws other
numbers of the same distribution.

The model's own modules are called, adapted or not, in the order of its own forward; only attention is not the
model's.
"""

from typing import Any

import torch

from seedbed.training import packing
from seedbed.training.packing import Texts


def logits(model: Any, batch: Texts) -> torch.Tensor:
    """Logits of each text.

    Args:
        model: a RobertaForSequenceClassification, or the one inside an adapter.
        batch: the texts, on the model's device.

    Returns:
        Tensor of shape (texts, classes), in the precision of the autocast around it.
    """
    return model.classifier(first_features(model.roberta, batch)[:, None])


def first_features(encoder: Any, batch: Texts) -> torch.Tensor:
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
        x = _layer(layer, x, x, batch)
    return _layer(encoder.encoder.layer[-1], x[batch.first], x, batch)


def _layer(layer: Any, asking: torch.Tensor, tokens: torch.Tensor, batch: Texts) -> torch.Tensor:
    """What a RobertaLayer makes of the tokens `asking`, which attend to all tokens of their text."""
    attention = layer.attention
    found = _attend(attention.self, asking, tokens, batch)
    return layer.feed_forward_chunk(attention.output(found, asking))


def _attend(attention: Any, asking: torch.Tensor, tokens: torch.Tensor, batch: Texts) -> torch.Tensor:
    """A RobertaSelfAttention; of the result, (tokens, channels), only the tokens `asking`."""
    return packing.attend(
        batch,
        attention.query(asking),
        attention.key(tokens),
        attention.value(tokens),
        attention.num_attention_heads,
        dropout=attention.dropout.p if attention.training else 0.0,
        scale=attention.scaling,
    )
