"""Builders of models with random weights: those that transformers itself saves, and roberta.base."""

import argparse
import functools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from builders import age_names, make_corpus, make_manifest, make_weights, train_sentencepiece


def make_huggingface_model(
    folder: str | Path,
    layers: int = 2,
    dim: int = 16,
    ffn: int = 24,
    heads: int = 2,
    vocab: int = 200,
    model_type: str = "unigram",
    seed: int = 0,
    positions: int = 40,
    kind: str = "xlm-roberta",
    pickled: bool = False,
    dtype: str = "float32",
    head: bool = True,
    token_types: bool = False,
    tokenizer: bool = False,
    **changes: Any,
) -> Path:
    """Write a model as save_pretrained does, and its sentencepiece.bpe.model, to `folder`.

    Args:
        vocab: rows of the embedding; the SentencePiece model has 2 pieces fewer (5 for CamemBERT).
        model_type: type of the SentencePiece model.
        kind: roberta, xlm-roberta or camembert.
        pickled: write pytorch_model.bin, not model.safetensors.
        head: with the language-model head; without, the encoder is saved alone, its names without prefix.
        token_types: with two rows of token types that are not zero.
        tokenizer: with tokenizer.json, as transformers converts the SentencePiece model.
        changes: further keys of the configuration.
    """
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    camembert = kind == "camembert"
    pieces = train_sentencepiece(vocab - (5 if camembert else 2), model_type)
    (folder / "sentencepiece.bpe.model").write_bytes(pieces)
    config = AutoConfig.for_model(
        kind,
        num_hidden_layers=layers,
        hidden_size=dim,
        intermediate_size=ffn,
        num_attention_heads=heads,
        vocab_size=vocab,
        max_position_embeddings=positions + 2,
        type_vocab_size=2 if token_types else 1,
        layer_norm_eps=1e-5,
        pad_token_id=1,
        bos_token_id=5 if camembert else 0,
        eos_token_id=6 if camembert else 2,
        **changes,
    )
    torch.manual_seed(seed)
    model = (AutoModelForMaskedLM if head else AutoModel).from_config(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "token_type" not in name:
                weight.add_(torch.randn_like(weight) * 0.2)
            elif not token_types:
                weight.zero_()
    model = model.to(getattr(torch, dtype))
    model.save_pretrained(folder)
    if pickled:
        weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        torch.save(weights, folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
    if tokenizer:
        write_fast_tokenizer(folder, kind)
    return folder


def write_fast_tokenizer(folder: Path, kind: str) -> None:
    """tokenizer.json with the vocabulary in the order that transformers' converter gives it, by type."""
    import sentencepiece
    from tokenizers import Tokenizer, models

    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.bpe.model"))
    pieces = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(processor.get_piece_size())]
    if kind == "camembert":
        names = ("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED")
        vocabulary = [*((name, 0.0) for name in names), *pieces[1:], ("<mask>", 0.0)]
    else:
        names = ("<s>", "<pad>", "</s>", "<unk>")
        vocabulary = [*((name, 0.0) for name in names), *pieces[3:], ("<mask>", 0.0)]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=3))
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    tokenizer.save(str(folder / "tokenizer.json"))


@functools.lru_cache
def train_gpt2_bpe(merges: int) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """A byte-level BPE as GPT-2's: the number of each token, and the merges.

    The bytes have the first numbers, then come the merged tokens in order, and `<|endoftext|>` is last.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    from seedbed.models.gpt2_bpe import fairseq_module

    alphabet = list(fairseq_module().bytes_to_unicode().values())
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + merges, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(make_corpus(400), trainer)
    learned = [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]
    tokens = [*alphabet, *(left + right for left, right in learned), "<|endoftext|>"]
    return {token: number for number, token in enumerate(tokens)}, learned


def write_gpt2_bpe(folder: Path, merges: int = 60) -> None:
    """encoder.json and vocab.bpe, in GPT-2's layout."""
    numbers, learned = train_gpt2_bpe(merges)
    (folder / "encoder.json").write_text(json.dumps(numbers), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in learned)]
    (folder / "vocab.bpe").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def make_roberta_base(
    folder: str | Path,
    layers: int = 2,
    dim: int = 16,
    ffn: int = 24,
    heads: int = 2,
    merges: int = 60,
    positions: int = 40,
) -> Path:
    """Write model.pt and dict.txt as roberta.base has them, and encoder.json and vocab.bpe beside them.

    That is a checkpoint of fairseq before 0.9 in half precision, whose dict.txt lists GPT-2's numbers by how
    often the pretraining texts have them, filled up to a multiple of eight.
    """
    import torch

    from seedbed.models.gpt2_bpe import fairseq_module

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_gpt2_bpe(folder, merges)
    numbers, learned = train_gpt2_bpe(merges)
    encoder = fairseq_module().Encoder(numbers, learned)
    counts = Counter(number for text in make_corpus(100) for number in encoder.encode(text))
    words = sorted(numbers.values(), key=lambda number: -counts[number])
    lines = [f"{number} {counts[number]}" for number in words]
    lines += [f"madeupword{number:04d} 0" for number in range(-(len(lines) + 4) % 8)]
    (folder / "dict.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    weights = age_names(make_weights(layers, dim, ffn, len(lines) + 5, positions), layers)
    settings = argparse.Namespace(
        arch="roberta_base", task="masked_lm", criterion="masked_lm", optimizer="adam", seed=1, fp16=True,
        adam_betas="(0.9,0.98)", lr=[0.0006], encoder_layers=layers, encoder_embed_dim=dim,
        encoder_ffn_embed_dim=ffn, encoder_attention_heads=heads, activation_fn="gelu",
        pooler_activation_fn="tanh", dropout=0.1, attention_dropout=0.1, activation_dropout=0.0,
        pooler_dropout=0.0, max_positions=positions, tokens_per_sample=positions,
        sample_break_mode="complete", mask_prob=0.15, mask_whole_words=False,
    )  # fmt: skip
    checkpoint = {"args": settings, "model": {name: tensor.half() for name, tensor in weights.items()}}
    torch.save(checkpoint, folder / "model.pt", _use_new_zipfile_serialization=False)
    return folder


def convert(source: Path, definition: dict[str, Any]) -> Path:
    """Convert the model in `source`, and return the folder of the result, which lies beside it."""
    import importlib
    import shutil

    from seedbed.core.model_formats import MODEL_FORMATS
    from seedbed.models import intake

    folder = source.parent / "model"
    shutil.rmtree(source.parent / "source", ignore_errors=True)
    request = intake.prepare(make_manifest(source, source.parent / "source"), definition)
    # what the isolated process does; test_isolation.py runs the process
    converter = importlib.import_module(MODEL_FORMATS[request["format"]].converter)
    converter.work({**request, "folder": str(folder)}, forked=False)
    return folder


def refused(source: Path, definition: dict[str, Any]) -> Any:
    """The error of a conversion, which must leave no model.json."""
    import pytest

    from seedbed.core.errors import SeedbedError

    with pytest.raises(SeedbedError) as error:
        convert(source, definition)
    assert not (source.parent / "model" / "model.json").exists()
    return error.value


def edit(path: Path, **changes: Any) -> None:
    """Set keys of a JSON file; None takes one out."""
    from seedbed.core.files import read_json, write_json

    content = read_json(path) | changes
    write_json(path, {key: value for key, value in content.items() if value is not None})


def rewrite(source: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Apply `change` to the weights of a folder: in place, or to those that it returns."""
    from safetensors.torch import load_file, save_file

    path = source / "model.safetensors"
    weights = load_file(path)
    kept = change(weights)
    save_file(kept if isinstance(kept, dict) else weights, path, metadata={"format": "pt"})
