"""A model of RoBERTa-base's shape with random weights: python base_model.py CONVERTED OUTPUT

CONVERTED is the folder of a model that Seedbed has converted (results/models/NAME); the new one has its
vocabulary. Speed and memory depend on the shape alone, so that no checkpoint of this size is needed.
"""

import shutil
import sys
from pathlib import Path

import torch
from transformers import AutoConfig, RobertaForMaskedLM

# Liu et al. 2019, table 9
SHAPE = {
    "num_hidden_layers": 12,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_attention_heads": 12,
    "max_position_embeddings": 514,
}


def main(converted: Path, output: Path) -> None:
    """Write config.json, model.safetensors and the tokenizer's files."""
    config = AutoConfig.from_pretrained(converted / "huggingface", **SHAPE)
    torch.manual_seed(0)
    RobertaForMaskedLM(config).save_pretrained(output)
    shutil.copyfile(converted / "subwords" / "sentencepiece.model", output / "sentencepiece.bpe.model")
    shutil.copyfile(converted / "huggingface" / "tokenizer.json", output / "tokenizer.json")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
