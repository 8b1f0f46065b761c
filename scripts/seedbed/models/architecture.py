"""The classification model as each framework prints it, without the checkpoint's weights."""

import argparse
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from seedbed.core.files import read_json, write_text
from seedbed.models.fairseq_launcher import prepare_import
from seedbed.models.tokenization import MASK

CLASSES = 2  # of the head that is shown: a model has none of its own, a dataset says how many there are
NOTE = (
    f"The head is shown with {CLASSES} classes, but a dataset has its own number; "
    "dropout as the framework has it by default, but a recipe sets its own."
)


def write_architectures(model: Path, fairseq: str | Path, transformers: str | Path) -> None:
    """Write what each framework prints of a model with a classification head.

    Args:
        model: results/models/MODEL; only its definition, its dictionary and its config.json are read.
        fairseq: where fairseq's text goes.
        transformers: where Transformers' text goes.
    """
    versions = {name: metadata.version(name) for name in ("fairseq", "transformers")}
    write_text(fairseq, _describe(fairseq_classifier(model), "fairseq", versions))
    write_text(transformers, _describe(transformers_classifier(model), "transformers", versions))


def _describe(network: Any, framework: str, versions: dict[str, str]) -> str:
    return f"# {type(network).__name__} of {framework} {versions[framework]}. {NOTE}\n{network}\n"


def fairseq_classifier(model: Path) -> Any:
    """fairseq's RobertaModel with a classification head, at random weights.

    fairseq draws its weights on the CPU, so that the model needs their memory.
    """
    prepare_import()
    from fairseq.data import Dictionary
    from fairseq.models.roberta import RobertaModel

    shape = read_json(model / "model.json")
    settings = argparse.Namespace(
        encoder_layers=shape["layers"],
        encoder_embed_dim=shape["embed_dim"],
        encoder_ffn_embed_dim=shape["ffn_dim"],
        encoder_attention_heads=shape["attention_heads"],
        activation_fn=shape["activation"],
        max_positions=shape["max_positions"],
    )
    dictionary = Dictionary.load(str(model / "fairseq" / "dict.txt"))
    dictionary.add_symbol(MASK)  # as fairseq's tasks do
    network = RobertaModel.build_model(settings, argparse.Namespace(source_dictionary=dictionary))
    network.register_classification_head("sentence_classification_head", num_classes=CLASSES)
    return network


def transformers_classifier(model: Path) -> Any:
    """Transformers' RobertaForSequenceClassification, without memory for its weights."""
    from transformers import RobertaConfig, RobertaForSequenceClassification

    config = RobertaConfig.from_pretrained(model / "huggingface", num_labels=CLASSES)
    with torch.device("meta"):
        return RobertaForSequenceClassification(config)
