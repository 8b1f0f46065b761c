"""Print the classification model of each framework, without the checkpoint's weights."""

import argparse
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from seedbed.core.files import read_json, write_text
from seedbed.models.fairseq_launcher import prepare_import
from seedbed.models.tokenization import MASK

CLASSES = 2  # of the printed head; a real one has as many as its dataset
NOTE = (
    f"The head is shown with {CLASSES} classes, but a dataset has its own number; "
    "dropout as the framework has it by default, but a recipe sets its own."
)


def write_architectures(model: Path, fairseq: str | Path, transformers: str | Path) -> None:
    """Write each framework's printout of a model with a classification head.

    Args:
        model: results/models/MODEL; only model.json, dict.txt and config.json are read.
        fairseq: path of fairseq's printout.
        transformers: path of Transformers' printout.
    """
    versions = {name: metadata.version(name) for name in ("fairseq", "transformers")}
    write_text(fairseq, _describe(fairseq_classifier(model), "fairseq", versions))
    write_text(transformers, _describe(transformers_classifier(model), "transformers", versions))


def _describe(network: Any, framework: str, versions: dict[str, str]) -> str:
    return f"# {type(network).__name__} of {framework} {versions[framework]}. {NOTE}\n{network}\n"


def fairseq_classifier(model: Path) -> Any:
    """fairseq's RobertaModel with a classification head and random weights, which need memory on the CPU."""
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
    """Transformers' RobertaForSequenceClassification on the meta device, where weights need no memory."""
    from transformers import RobertaConfig, RobertaForSequenceClassification

    config = RobertaConfig.from_pretrained(model / "huggingface", num_labels=CLASSES)
    with torch.device("meta"):
        return RobertaForSequenceClassification(config)
