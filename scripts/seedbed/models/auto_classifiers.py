"""Classifiers of the format auto: recognise them, and tell their head from their encoder."""

import inspect
from typing import Any


def is_auto(config: Any) -> bool:
    """Whether a published config.json is of the format auto: it names the classifier's class.

    That of a converted RoBERTa names the masked language model's. Models of fairseq and of fused seeds have
    no such config (None).
    """
    named = getattr(config, "architectures", None) or ()
    return any(name.endswith("ForSequenceClassification") for name in named)


def in_head(name: str, model: Any) -> bool:
    """Whether a weight is of the head: outside the encoder, or of the encoder's pooler.

    Pretraining may leave no pooler. BERT's is inside the encoder, DeBERTa's outside.

    Args:
        name: a name of `model.named_parameters()`.
        model: a classifier of Transformers, without an adapter's wrapper.
    """
    inside = name.removeprefix(f"{model.base_model_prefix}.")
    return inside == name or inside.startswith("pooler.")


def head_modules(model: Any) -> list[str]:
    """Names of the smallest set of modules that hold all weights of the head."""
    found = {}
    for name, _ in model.named_parameters():
        if in_head(name, model):
            inside = name.startswith(f"{model.base_model_prefix}.")
            found[".".join(name.split(".")[: 2 if inside else 1])] = None
    return list(found)


def reads_types(classifier: type, config: Any) -> bool:
    """Whether a classifier reads the types of tokens, which tell the texts of a pair apart.

    BERT, ELECTRA and DeBERTa may have two types. RoBERTa has one, DeBERTa-v3 none, and DistilBERT takes none.

    Args:
        classifier: its class.
        config: its configuration.
    """
    takes = "token_type_ids" in inspect.signature(classifier.forward).parameters
    return takes and getattr(config, "type_vocab_size", 2) > 1
