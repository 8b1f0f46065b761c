"""Builders of small files for tests: French text, SentencePiece models, checkpoints in the lab's layout."""

import argparse
import functools
import io
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

WORDS = """
magnifique superbe passionnant touchant drôle brillant émouvant captivant réussi génial
ennuyeux décevant raté fade lourd interminable médiocre bâclé pénible prévisible
pa re tion men li vé sou chan dre bou lai nou tra per gé fil eux ance our vie mon quel jar din
"""
POSITIVE, NEGATIVE, SYLLABLES = (line.split() for line in WORDS.strip().splitlines())
PARTS = """
Ce livre|Le récit|L'histoire|Cet auteur|Le premier chapitre|La fin|Le héros|Ce roman
est vraiment|m'a semblé|reste|paraît|devient vite|demeure, hélas ou non,
"""
SUBJECTS, LINKS = (line.split("|") for line in PARTS.strip().splitlines())
CLOSINGS = (
    "Je l'ai lu en une soirée, près de la fenêtre.",
    "On le referme avec regret… ou pas !",
    "À conseiller « sans hésiter ».",
    "Ma sœur l'a prêté à un collègue l'été dernier.",
    "Il coûte 12 euros, c'est tout de même cher ?",
    "Où sont passés les personnages du début ?",
    "Le style, très travaillé, évoque Flaubert et Zola.",
)
# texts on which a tokenizer may go wrong
ODD_TEXTS = (
    "",
    " ",
    "  deux  espaces   de suite ",
    "é décomposé : e\u0301te\u0301 ; œuvre, cœur, Noël, naïf, ça",
    "inconnus : 日本語 😀😀 ☃ ѣ et puis 😀 encore",
    "<s> <pad> </s> <unk> <mask> <b>gras</b> </s>",
    "madeupword0000 et <unk>NOTUSED",
    "……… !!!!!!!!!! ???? ------ aaaaaaaaaaaa .................",
    "ﬁn ½ ² № ™ … \u00a0insécable\u202ffine\tTab\x85fin\u200bzéro\ufeff\u2028ligne",
    "▁trait ▁▁ bas",
    "m" * 300,
)


def tiered(values: Iterable[Any], *fast: Any) -> list[Any]:
    """Parameters of a test: those in `fast` are in `make test`, the others are marked slow."""
    import pytest

    return [value if value in fast else pytest.param(value, marks=pytest.mark.slow) for value in values]


def make_reviews(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """`count` French reviews, {"text", "label"}; labels 0 and 1 alternate, and one word tells them apart."""
    draw = random.Random(seed)
    reviews = []
    for index in range(count):
        label = index % 2
        opinion = draw.choice((NEGATIVE, POSITIVE)[label])
        sentence = f"{draw.choice(SUBJECTS)} {draw.choice(LINKS)} {opinion}."
        closings = draw.sample(CLOSINGS, draw.randint(1, 3))
        reviews.append({"text": " ".join([sentence, *closings]), "label": label})
    return reviews


def make_corpus(count: int, seed: int = 0) -> list[str]:
    """Reviews, each with a sentence of invented words, so that a SentencePiece model finds enough pieces."""
    draw = random.Random(seed)
    words = ["".join(draw.choices(SYLLABLES, k=draw.randint(1, 4))) for _ in range(600)]
    return [f"{review['text']} {' '.join(draw.choices(words, k=8))}." for review in make_reviews(count, seed)]


@functools.lru_cache
def train_sentencepiece(pieces: int, model_type: str = "bpe", seed: int = 0, **options: Any) -> bytes:
    """A SentencePiece model with `pieces` pieces, trained on invented reviews; `<unk> <s> </s>` first."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(make_corpus(400, seed)),
        model_writer=model,
        vocab_size=pieces,
        model_type=model_type,
        minloglevel=2,
        num_threads=1,
        **options,
    )
    return model.getvalue()


def make_dictionary(model: bytes) -> list[str]:
    """The dictionary's words for a SentencePiece model: its pieces without the first three, as in XLM-R."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(index) for index in range(3, processor.get_piece_size())]


def make_weights(
    layers: int, dim: int, ffn: int, vocab: int, positions: int, seed: int = 0
) -> dict[str, Any]:
    """Random fp32 weights under fairseq's names; `positions` does not count the two offset rows."""
    import torch

    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator) * 0.2

    def norm(name: str) -> dict[str, Any]:
        return {f"{name}.weight": 1 + draw(dim), f"{name}.bias": draw(dim)}

    def linear(name: str, rows: int, columns: int) -> dict[str, Any]:
        return {f"{name}.weight": draw(rows, columns), f"{name}.bias": draw(rows)}

    encoder, head = "encoder.sentence_encoder", "encoder.lm_head"
    state = {
        f"{encoder}.version": torch.tensor([3.0]),
        f"{encoder}.embed_tokens.weight": draw(vocab, dim),
        f"{encoder}.embed_positions.weight": draw(positions + 2, dim),
        **norm(f"{encoder}.layernorm_embedding"),
    }
    for layer in range(layers):
        name = f"{encoder}.layers.{layer}"
        for part in ("k_proj", "v_proj", "q_proj", "out_proj"):
            state |= linear(f"{name}.self_attn.{part}", dim, dim)
        state |= norm(f"{name}.self_attn_layer_norm")
        state |= linear(f"{name}.fc1", ffn, dim) | linear(f"{name}.fc2", dim, ffn)
        state |= norm(f"{name}.final_layer_norm")
    state |= linear(f"{head}.dense", dim, dim) | norm(f"{head}.layer_norm")
    return state | {f"{head}.weight": state[f"{encoder}.embed_tokens.weight"], f"{head}.bias": draw(vocab)}


def make_args(layers: int, dim: int, ffn: int, heads: int, positions: int) -> argparse.Namespace:
    """What the lab's checkpoint says of its architecture."""
    return argparse.Namespace(
        arch="roberta_small",
        task="masked_lm",
        criterion="masked_lm",
        optimizer="adam",
        encoder_layers=layers,
        encoder_embed_dim=dim,
        encoder_ffn_embed_dim=ffn,
        encoder_attention_heads=heads,
        max_positions=positions,
        tokens_per_sample=positions,
        activation_fn="gelu",
        dropout=0.1,
        attention_dropout=0.1,
    )


def make_fairseq_checkpoint(
    folder: str | Path,
    layers: int = 2,
    dim: int = 16,
    ffn: int = 24,
    heads: int = 2,
    vocab: int = 200,
    model_type: str = "bpe",
    seed: int = 0,
    positions: int = 40,
    dtype: str = "float16",
    old_names: bool = False,
    settings: str = "args",
    mask_row: bool = True,
    lines: Sequence[str] = (),
    first_lines: Sequence[str] = (),
    finetuned: bool = False,
    zipped: bool = True,
    activation: str = "gelu",
) -> Path:
    """Write model.pt (fp16), dict.txt and sentencepiece.bpe.model to `folder`, as in the lab's archive.

    Args:
        vocab: rows of the embedding, but those of `lines` and `first_lines`: `vocab` - 5 lines of dict.txt,
            four special tokens, `<mask>`.
        dtype: of the weights.
        old_names: name the weights as fairseq did before 0.9.
        settings: where they stand: args, cfg (a dictionary), cfg-namespace or cfg-omegaconf.
        mask_row: whether the embedding has a last row for `<mask>`.
        lines: further lines of dict.txt, behind the others; one of `<mask>` stands for that row.
        first_lines: the same, before the others.
        finetuned: with a classification head.
        zipped: in the present layout of torch.save, not the one before PyTorch 1.6.
    """
    import torch

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    model = train_sentencepiece(vocab - 2, model_type)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    listed = [*first_lines, *(f"{word} 1" for word in make_dictionary(model)), *lines]
    (folder / "dict.txt").write_text("".join(f"{line}\n" for line in listed), encoding="utf-8")
    holds_mask = any(line.startswith("<mask>") for line in lines)
    rows = vocab + len(lines) + len(first_lines) - (holds_mask or not mask_row)
    weights = make_weights(layers, dim, ffn, rows, positions, seed)
    if finetuned:
        name = "classification_heads.sentence_classification_head.dense"
        weights |= {f"{name}.weight": torch.ones(dim, dim), f"{name}.bias": torch.ones(dim)}
    if old_names:
        weights = age_names(weights, layers)
    network = make_args(layers, dim, ffn, heads, positions)
    network.activation_fn = activation
    history = {
        "criterion_name": "MaskedLmLoss",
        "optimizer_name": "FairseqAdam",
        "lr_scheduler_state": {},
        "num_updates": 0,
    }
    checkpoint = {
        **make_settings(network, settings),
        "model": {name: tensor.to(getattr(torch, dtype)) for name, tensor in weights.items()},
        "optimizer_history": [history],
        "extra_state": {"epoch": 0, "val_loss": None, "train_iterator": {"epoch": 1}},
        "last_optimizer_state": None,
    }
    torch.save(checkpoint, folder / "model.pt", _use_new_zipfile_serialization=zipped)
    return folder


def age_names(weights: dict[str, Any], layers: int) -> dict[str, Any]:
    """Weights under the names that fairseq gave them before 0.9, with one matrix for query, key and value."""
    import torch

    weights = dict(weights)
    for layer in range(layers):
        name = f"encoder.sentence_encoder.layers.{layer}.self_attn"
        for kind in ("weight", "bias"):
            parts = [weights.pop(f"{name}.{part}_proj.{kind}") for part in "qkv"]
            weights[f"{name}.in_proj_{kind}"] = torch.cat(parts)
    return {
        name.replace("encoder.", "decoder.", 1).replace("layernorm_embedding", "emb_layer_norm"): tensor
        for name, tensor in weights.items()
    }


def make_settings(network: argparse.Namespace, kind: str) -> dict[str, Any]:
    """`args` and `cfg` of a checkpoint whose settings are of a kind: see make_fairseq_checkpoint."""
    if kind == "args":
        return {"args": network}
    if kind == "cfg-namespace":
        return {"args": None, "cfg": {"model": network, "task": {"_name": "masked_lm"}}}
    config = {"model": {"_name": "roberta", **vars(network)}, "task": {"_name": "masked_lm", "data": "bin"}}
    if kind == "cfg":
        return {"args": None, "cfg": config}
    from omegaconf import OmegaConf

    return {"args": None, "cfg": OmegaConf.create(config)}


def make_manifest(source: str | Path, folder: str | Path) -> Path:
    """Lay `source` (a folder) out as the download rule does: `folder`/manifest.json and `folder`/files/."""
    import shutil

    from seedbed.core.files import sha256, write_json

    folder = Path(folder)
    files = folder / "files"
    shutil.copytree(source, files, dirs_exist_ok=True)
    found = sorted(path for path in files.rglob("*") if path.is_file())
    listed = {
        path.relative_to(files).as_posix(): {"sha256": sha256(path), "bytes": path.stat().st_size}
        for path in found
    }
    write_json(folder / "manifest.json", {"location": str(source), "sha256": None, "files": listed})
    return folder / "manifest.json"


def load_config(paths: list[str | Path]) -> dict[str, Any]:
    """Read config.yaml and its overlays as Snakemake does: mappings merge, anything else is replaced."""
    merged: dict[str, Any] = {}
    for path in paths:
        with open(path, encoding="utf-8") as stream:
            _merge(merged, yaml.safe_load(stream) or {})
    return merged


def _merge(base: dict[str, Any], overlay: dict[str, Any]) -> None:
    for key, value in overlay.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = value
