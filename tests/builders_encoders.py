"""Builders of encoders of many architectures, each with a tokenizer trained on the spot."""

import functools
import json
from pathlib import Path
from typing import Any

from builders import make_corpus

DEFINITION = {
    "source": "made", "format": "auto", "checkpoint": "model.safetensors", "config": "config.json",
}  # fmt: skip
# special tokens by role, of each type of tokenizer
WORDPIECE = {"unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}
ROBERTA = {"cls": "<s>", "bos": "<s>", "sep": "</s>", "eos": "</s>", "pad": "<pad>"}
ROBERTA |= {"unk": "<unk>", "mask": "<mask>"}
TOKENIZERS = {
    "wordpiece": WORDPIECE,
    "bytes": ROBERTA,
    "bytes_bert": WORDPIECE,
    "unigram": ROBERTA,
    "unigram_bert": WORDPIECE,
}
RELATIVE = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
# of each kind: Transformers' model_type, tokenizer, tokenizer_class, and its own keys of config.json
KINDS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "BERT": ("bert", "wordpiece", "BertTokenizer", {}),
    "DistilBERT": ("distilbert", "wordpiece", "DistilBertTokenizer", {}),
    "ELECTRA": ("electra", "wordpiece", "ElectraTokenizer", {"embedding_size": 12}),
    "DeBERTa": ("deberta", "bytes_bert", "DebertaTokenizer", RELATIVE),
    "DeBERTa-v2": (
        "deberta-v2", "unigram_bert", "DebertaV2Tokenizer",
        {**RELATIVE, "conv_kernel_size": 3, "position_biased_input": False},
    ),
    "DeBERTa-v3": (
        "deberta-v2", "unigram_bert", "DebertaV2Tokenizer",
        {
            **RELATIVE, "position_buckets": 8, "share_att_key": True, "norm_rel_ebd": "layer_norm",
            "position_biased_input": False, "type_vocab_size": 0,
        },
    ),
    "ModernBERT": (
        "modernbert", "bytes_bert", "PreTrainedTokenizerFast",
        {"global_attn_every_n_layers": 2, "local_attention": 8, "classifier_pooling": "mean"},
    ),
    "XLM-R": ("xlm-roberta", "unigram", "XLMRobertaTokenizer", {"type_vocab_size": 1}),
    "CamemBERT": ("camembert", "unigram", "CamembertTokenizer", {"type_vocab_size": 1}),
    "RoBERTa, byte-level BPE": ("roberta", "bytes", "RobertaTokenizer", {"type_vocab_size": 1}),
}  # fmt: skip


@functools.lru_cache
def train_tokenizer(kind: str, vocabulary: int = 320) -> str:
    """tokenizer.json of a kind of TOKENIZERS, trained on invented reviews."""
    from tokenizers import (
        Regex,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
        trainers,
    )

    names = TOKENIZERS[kind]
    specials = list(dict.fromkeys(names[role] for role in ("cls", "pad", "sep", "unk", "mask")))
    options = {"vocab_size": vocabulary, "special_tokens": specials, "show_progress": False}
    if kind == "wordpiece":
        tokenizer = Tokenizer(models.WordPiece(unk_token=names["unk"]))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(**options)
    elif kind.startswith("bytes"):
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(**options, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    else:
        tokenizer = Tokenizer(models.Unigram())
        if names is WORDPIECE:  # as Transformers' class for DeBERTa-v2
            spaces = normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " ")
            strip = normalizers.Strip(left=False, right=True)
            tokenizer.normalizer = normalizers.Sequence([spaces, normalizers.NFC(), strip])
        split = [pre_tokenizers.WhitespaceSplit()] if names is ROBERTA else []
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*split, pre_tokenizers.Metaspace()])
        tokenizer.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(**options, unk_token=names["unk"])
    tokenizer.train_from_iterator(make_corpus(400, seed=3), trainer)
    cls, sep = names["cls"], names["sep"]
    second = f"{sep} $B {sep}" if cls == "<s>" else "$B:1 {sep}:1".replace("{sep}", sep)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} {second}",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in (cls, sep)],
    )
    return tokenizer.to_str()


def make_encoder(
    folder: str | Path,
    kind: str = "BERT",
    layers: int = 2,
    dim: int = 16,
    ffn: int = 24,
    heads: int = 2,
    positions: int = 48,
    seed: int = 0,
    head: str = "pretraining",
    **changes: Any,
) -> Path:
    """Write a model of a kind of KINDS with random weights, as its authors would publish it.

    Args:
        positions: the longest text in tokens.
        head: pretraining (that of masked language models, or ELECTRA's discriminator), none, or
            classification (as after an earlier fine-tuning, with three classes).
        changes: further keys of config.json.
    """
    import torch
    from transformers import (
        AutoConfig,
        AutoModel,
        AutoModelForMaskedLM,
        AutoModelForPreTraining,
        AutoModelForSequenceClassification,
    )

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    model_type, tokenizer, class_, own = KINDS[kind]
    made = json.loads(train_tokenizer(tokenizer))
    (folder / "tokenizer.json").write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")
    names = TOKENIZERS[tokenizer]
    ids = {token["content"]: token["id"] for token in made["added_tokens"]}
    named = {f"{role}_token": name for role, name in names.items()}
    about = {"tokenizer_class": class_, **named, "model_max_length": positions}
    (folder / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
    offset = 2 if names is ROBERTA else 0  # RoBERTa numbers positions from the id of <pad>, 1, plus one
    sizes = {"hidden_size": dim, "num_hidden_layers": layers, "intermediate_size": ffn}
    sizes |= {"num_attention_heads": heads}
    if model_type == "distilbert":
        sizes = {"dim": dim, "n_layers": layers, "hidden_dim": ffn, "n_heads": heads}
    config = AutoConfig.for_model(
        model_type,
        **sizes,
        vocab_size=len(made["model"]["vocab"]),
        max_position_embeddings=positions + offset,
        **{
            f"{role}_token_id": ids[names[role]]
            for role in ("pad", "cls", "sep", "bos", "eos")
            if role in names
        },
        **own,
        **changes,
    )
    pretraining = AutoModelForPreTraining if model_type == "electra" else AutoModelForMaskedLM
    classes = {
        "pretraining": pretraining,
        "none": AutoModel,
        "classification": AutoModelForSequenceClassification,
    }
    if head == "classification":
        config.num_labels = 3
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = classes[head].from_config(config)
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(torch.randn_like(weight) * 0.1)
    model.save_pretrained(folder)
    return folder


def convert_encoder(folder: Path, kind: str, **options: Any) -> Path:
    """The converted model of a kind, below `folder`; for `options` see `make_encoder`."""
    from builders_checkpoints import convert

    return convert(make_encoder(folder / "archive", kind, **options), DEFINITION)


def make_encoder_job(folder: Path, model: Path, run: dict[str, Any], name: str = "run", **fields: Any) -> Any:
    """As `builders_training.make_job`, with a converted encoder; its first token tells a text's label."""
    import random

    from builders_training import SIZES, make_job

    from seedbed.core import files

    described, inputs = files.read_json(model / "model.json"), folder / "inputs"
    if not (inputs / "labels.json").exists():
        draw = random.Random(0)
        for split, size in SIZES.items():
            rows = []
            for index in range(size):
                label = index % 2
                inner = [20 + label, *draw.choices(range(30, described["vocabulary"]), k=draw.randint(2, 12))]
                ids = [*described["beginning"], *inner, *described["ending"]]
                rows.append({"id": f"{split}-{index}", "ids": ids, "label": label, "length": len(ids)})
            files.write_jsonl(inputs / "tokens" / f"{split}.jsonl", rows)
        files.write_json(inputs / "labels.json", {"labels": ["0", "1"], "names": ["negative", "positive"]})
    paths = {"weights": model / "huggingface", "model": model / "model.json"}
    return make_job(folder, run, name, **paths, **fields)
