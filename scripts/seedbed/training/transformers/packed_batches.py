"""Transformers' RoBERTa and BERT on rows of tokens: packed texts without padding, or padded to one length.

The head only reads the first token of each text, so the last layer is computed only for these tokens. The
logits equal the model's except for rounding, since sums are added in another order; dropout draws other
numbers of the same distribution.

The model's own modules, adapted or not, are called in the order of its own forward; only attention is
replaced.
"""

from typing import Any

import torch

from seedbed.training import packing
from seedbed.training.packing import Texts

# the classifiers whose encoders have the layers below, and absolute positions
ROBERTAS = tuple(f"{name}ForSequenceClassification" for name in ("Roberta", "XLMRoberta", "Camembert"))
BERTS = ("BertForSequenceClassification",)


def fit(model: Any) -> bool:
    """Whether this module can compute a classifier, given without an adapter's wrapper."""
    config = model.config
    absolute = getattr(config, "position_embedding_type", None) in (None, "absolute")
    return type(model).__name__ in (*ROBERTAS, *BERTS) and absolute and not config.is_decoder


def logits(model: Any, batch: Texts) -> torch.Tensor:
    """Logits of each text.

    Args:
        model: a classifier that fits, without an adapter's wrapper.
        batch: the texts, on the model's device.

    Returns:
        Tensor of shape (texts, classes), in the precision of the surrounding autocast.
    """
    encoder = getattr(model, model.base_model_prefix)
    first = first_features(encoder, batch)[:, None]
    if type(model).__name__ in BERTS:
        return model.classifier(model.dropout(encoder.pooler(first)))
    return model.classifier(first)


def first_features(encoder: Any, batch: Texts) -> torch.Tensor:
    """Last hidden state of the first token of each text.

    Args:
        encoder: a RobertaModel or BertModel without a causal mask.
        batch: the texts.

    Returns:
        Tensor of shape (texts, channels).
    """
    embeddings = encoder.embeddings
    padding = getattr(embeddings, "padding_idx", None)
    # RoBERTa numbers positions from the id after padding's, BERT from 0
    places = batch.positions if padding is None else batch.positions + padding + 1
    types = None if batch.types is None else batch.types[None]
    x = embeddings(input_ids=batch.ids[None], token_type_ids=types, position_ids=places[None])[0]
    for layer in encoder.encoder.layer[:-1]:
        x = _layer(layer, x, x, batch)
    return _layer(encoder.encoder.layer[-1], x[batch.first], x, batch)


def _layer(layer: Any, asking: torch.Tensor, tokens: torch.Tensor, batch: Texts) -> torch.Tensor:
    """A RobertaLayer's outputs for the tokens `asking`, which attend to all tokens of their text."""
    attention = layer.attention
    found = _attend(attention.self, asking, tokens, batch)
    return layer.feed_forward_chunk(attention.output(found, asking))


def _attend(attention: Any, asking: torch.Tensor, tokens: torch.Tensor, batch: Texts) -> torch.Tensor:
    """A RobertaSelfAttention; returns only the tokens `asking`, (tokens, channels)."""
    return packing.attend(
        batch,
        attention.query(asking),
        attention.key(tokens),
        attention.value(tokens),
        attention.num_attention_heads,
        dropout=attention.dropout.p if attention.training else 0.0,
        scale=attention.scaling,
    )
