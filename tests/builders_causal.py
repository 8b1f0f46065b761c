"""Builders of small causal language models and of question-answer pairs, for tests of the task generation."""

import csv
import functools
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PLACES = ("Dijon", "Lyon", "Nantes", "Brest", "Nîmes", "Orléans", "Besançon", "Sète", "Évry", "Albi")
RIVERS = ("la Loire", "le Rhône", "la Saône", "l'Ardèche", "le Doubs", "l'Hérault", "la Vilaine", "l'Orb")
DISHES = ("la moutarde", "la galette", "le cassoulet", "la tielle", "le comté", "la brandade", "le nougat")
TEMPLATES = (
    ("Quelle rivière passe à {place} ({number}) ?", "river"),
    ("Quel plat mange-t-on à {place} ({number}) ?", "dish"),
    ("En quelle année le pont de {place} ({number}) fut-il bâti ?", "year"),
)
SPECIALS = {
    "bloom": {"unk": "<unk>", "bos": "<s>", "eos": "</s>", "pad": "<pad>"},
    "llama": {"bos": "<|begin_of_text|>", "eos": "<|end_of_text|>", "pad": "<|finetune_right_pad_id|>"},
    "gpt2": {"bos": "<|endoftext|>", "eos": "<|endoftext|>", "pad": "<|pad|>"},
}
TOKENIZER_CLASSES = {"bloom": "BloomTokenizer", "llama": "PreTrainedTokenizerFast", "gpt2": "GPT2Tokenizer"}
CLASSES = {"bloom": "BloomForCausalLM", "llama": "LlamaForCausalLM", "gpt2": "GPT2LMHeadModel"}


def make_questions(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """`count` French questions, all different, {"question", "answer", "context": None}."""
    draw = random.Random(seed)
    rows = []
    for index in range(count):
        template, kind = TEMPLATES[index % len(TEMPLATES)]
        question = template.format(place=draw.choice(PLACES), number=index + 1)
        answers = {"river": draw.choice(RIVERS), "dish": draw.choice(DISHES), "year": str(1500 + index)}
        rows.append({"question": question, "answer": answers[kind], "context": None})
    return rows


def make_passages(passages: int, each: int = 3, seed: int = 0) -> list[dict[str, Any]]:
    """Questions with a context, `each` about every one of `passages` different contexts."""
    draw = random.Random(seed)
    rows = []
    for number in range(passages):
        place, river, dish = map(draw.choice, (PLACES, RIVERS, DISHES))
        year = str(1500 + number)
        context = f"À {place}, quartier {number}, passe {river}. On y mange {dish}. Le pont date de {year}."
        asked = (
            (f"Quelle rivière passe à {place} ?", river),
            (f"Que mange-t-on à {place} ?", dish),
            (f"De quand date le pont de {place} ?", year),
        )
        rows += [{"question": q, "answer": a, "context": context} for q, a in (asked * each)[:each]]
    return rows


def write_questions(path: str | Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write rows in the format that the file's ending names: jsonl, json, csv or tsv.

    Columns that are None everywhere are left out.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    rows = [{name: row[name] for name in columns} for row in rows]
    with open(path, "w", encoding="utf-8", newline="") as stream:
        if path.suffix == ".jsonl":
            stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        elif path.suffix == ".json":
            json.dump(rows, stream, ensure_ascii=False, indent=1)
        else:
            delimiter = {".csv": ",", ".tsv": "\t"}[path.suffix]
            writer = csv.DictWriter(stream, columns, delimiter=delimiter, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    return path


@functools.lru_cache
def train_tokenizer(kind: str, vocabulary: int = 400, pad: bool = True) -> str:
    """tokenizer.json of a byte-level BPE trained on invented questions, its special tokens those of `kind`.

    As in the models of these names, Llama's (3) puts its token of the beginning before a text; the others add
    nothing.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    specials = list(dict.fromkeys(_specials(kind, pad).values()))
    tokenizer = Tokenizer(models.BPE(unk_token=SPECIALS[kind].get("unk")))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=specials,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    texts = [
        f"Question : {row['question']}\nRéponse : {row['answer']}" for row in make_questions(300, seed=9)
    ]
    tokenizer.train_from_iterator(texts, trainer)
    byte_level = processors.ByteLevel(trim_offsets=False)
    if kind == "llama":
        bos = SPECIALS[kind]["bos"]
        template = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, tokenizer.token_to_id(bos))]
        )
        tokenizer.post_processor = processors.Sequence([byte_level, template])
    else:
        tokenizer.post_processor = byte_level
    return tokenizer.to_str()


def _specials(kind: str, pad: bool) -> dict[str, str]:
    return {name: token for name, token in SPECIALS[kind].items() if pad or name != "pad"}


def make_causal_model(
    folder: str | Path,
    kind: str = "bloom",
    pad: bool = True,
    positions: int | None = None,
    *,
    layers: int = 2,
    dim: int = 16,
    heads: int = 2,
    ffn: int = 32,
    vocabulary: int = 400,
    tied: bool | None = None,
    dtype: str = "float32",
    shard_size: str | None = None,
    seed: int = 0,
) -> Path:
    """Write a random causal language model in Hugging Face format, as Transformers saves it, to `folder`.

    The files are config.json, model.safetensors, tokenizer.json, tokenizer_config.json; and
    generation_config.json, which asks for sampling: nothing may take that over.

    Args:
        kind: bloom, llama (rotary positions, untied head unless `tied`) or gpt2.
        pad: whether the tokenizer has a padding token.
        positions: longest text of gpt2 and llama; default 64 (bloom has no limit).
        ffn: width of the feed-forward layer (bloom: always 4 * dim).
        vocabulary: rows of the embedding.
        shard_size: largest weights file, such as "20KB"; more than one file and an index come of it.
    """
    import torch
    from transformers import AutoModelForCausalLM

    folder = Path(folder)
    text = train_tokenizer(kind, vocabulary, pad)
    config = _make_config(kind, layers, dim, heads, ffn, vocabulary, positions or 64, tied, text, pad)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config)
    # random weights large enough that the model tells tokens apart
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim > 1 and "norm" not in name:
                weight.mul_(4)
    model = model.to(getattr(torch, dtype))
    model.generation_config.update(do_sample=True, temperature=0.7, top_p=0.9)
    model.save_pretrained(folder, **({"max_shard_size": shard_size} if shard_size else {}))
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")
    named = {f"{name}_token": token for name, token in _specials(kind, pad).items()}
    settings = {"tokenizer_class": TOKENIZER_CLASSES[kind], **named, "clean_up_tokenization_spaces": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


def _make_config(
    kind: str,
    layers: int,
    dim: int,
    heads: int,
    ffn: int,
    vocabulary: int,
    positions: int,
    tied: bool | None,
    text: str,
    pad: bool,
) -> Any:
    from tokenizers import Tokenizer
    from transformers import BloomConfig, GPT2Config, LlamaConfig

    tokenizer = Tokenizer.from_str(text)
    ids = {
        f"{name}_token_id": tokenizer.token_to_id(token)
        for name, token in _specials(kind, pad).items()
        if name != "unk"
    }
    shared = {"vocab_size": vocabulary, **ids}
    if kind == "bloom":
        shared |= {"hidden_size": dim, "n_layer": layers, "n_head": heads}
        dropout = {"hidden_dropout": 0.0, "attention_dropout": 0.0}
        return BloomConfig(**shared, **dropout, tie_word_embeddings=tied is not False)
    if kind == "llama":
        shared |= {"hidden_size": dim, "num_hidden_layers": layers, "intermediate_size": ffn}
        shared |= {"num_attention_heads": heads, "num_key_value_heads": heads}
        return LlamaConfig(**shared, max_position_embeddings=positions, tie_word_embeddings=bool(tied))
    if kind == "gpt2":
        shared |= {"n_embd": dim, "n_layer": layers, "n_head": heads, "n_inner": ffn}
        dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        return GPT2Config(**shared, **dropout, n_positions=positions, tie_word_embeddings=tied is not False)
    raise ValueError(f"no kind of causal model: {kind!r}")
