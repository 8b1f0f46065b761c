"""Print the classification model of each framework, without the checkpoint's weights."""

import argparse
from pathlib import Path
from typing import Any

from seedbed.core import imports
from seedbed.core.files import read_json, write_text
from seedbed.models.dictionaries import MASK
from seedbed.models.fairseq_launcher import prepare_import
from seedbed.models.printouts import CLASSES, describe, write_transformers


def write_architectures(model: Path, fairseq: str | Path, transformers: str | Path) -> None:
    """Write each framework's printout of a model with a classification head.

    Args:
        model: results/models/MODEL; only model.json, dict.txt and config.json are read.
        fairseq: path of fairseq's printout.
        transformers: path of Transformers' printout.
    """
    write_text(fairseq, describe(fairseq_classifier(model), "fairseq"))
    write_transformers(model, transformers)


def fairseq_classifier(model: Path) -> Any:
    """fairseq's RobertaModel with a classification head and random weights, which need memory on the CPU."""
    prepare_import()
    with imports.uncollected():
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
