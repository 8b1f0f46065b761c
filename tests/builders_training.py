"""Fine-tuning runs without Snakemake: a tiny generated model, its token ids, and the job that trains it."""

import random
from pathlib import Path
from typing import Any

from builders import load_config

ROOT = Path(__file__).parents[1]
SHAPE = {"layers": 1, "embed_dim": 16, "ffn_dim": 24, "attention_heads": 2, "max_positions": 24, "vocab": 60}
SIZES = {
    "train": 18,
    "validation": 8,
    "test": 10,
}  # at 4 a batch: 5 updates an epoch, the last of them smaller

LABELS = {"pattern": (0, 1)}  # of the examples of each split, in turns
LORA = {"r": 4, "lora_alpha": 8, "lora_dropout": 0.1, "bias": "none", "modules_to_save": None}


def make_run(framework: str, **settings: Any) -> dict[str, Any]:
    """The params of a rule: two epochs with dropout, unless `settings` (of the recipe) say otherwise.

    A key of `settings` that is not the recipe's replaces the param of that name; `method`, which is both's,
    replaces both. With `method="lora"` the recipe has a small adapter.
    """
    from seedbed.config.resolve import resolve_config

    recipe = resolve_config(load_config([ROOT / "config.yaml"]))["recipes"]["demo"]
    recipe |= {"epochs": 2, "batch_size": 4, "learning_rate": 0.01, "clip_norm": 1.0, "max_positions": None}
    recipe |= {"dropout": 0.1, "attention_dropout": 0.1, "pooler_dropout": 0.1}
    params = {
        "dataset": "generated", "model": "tiny", "framework": framework, "init": "random", "recipe": "demo",
        "recipe_family": "demo", "method": "full", "task": "classification", "init_seed": 3, "data_seed": 3,
        "batch": "b", "swept": {}, "evaluation": {"batch_size": 4, "test_curves": False}, "device": "cpu",
        "deterministic": False, "cuda_graphs": False, "keep_model": False,
    }  # fmt: skip
    known = {*recipe, "class_weight", "last_layers"}  # some of which a recipe without them lacks
    params |= {key: settings.pop(key) for key in [*settings] if key not in known}
    recipe |= settings
    if recipe["method"] == "lora":
        adapted = {"target_modules": ["query", "value"], "task_type": "SEQ_CLS"}
        recipe |= {"lora": LORA | adapted | {"lora_dropout": recipe["dropout"]}, "frozen_dtype": "float32"}
    return {**params, "method": recipe["method"], "settings": recipe}


def make_job(folder: Path, run: dict[str, Any], name: str = "run", **fields: Any) -> Any:
    """A job whose inputs lie in `folder` (they are made at the first call), under a `name` of its own.

    `fields` replaces fields and cached properties of the job.
    """
    from seedbed.running.jobs import Job

    inputs = folder / "inputs"
    if not inputs.exists():
        write_inputs(inputs)
    job = Job(
        run=run,
        experiment="generated",
        tokens=inputs / "tokens",
        labels=inputs / "labels.json",
        weights=inputs / "transformers",
        model=inputs / "model.json",
        target=folder / "runs" / name,
        work=folder / "work" / name,
        threads=1,
    )
    vars(job).update(fields)  # it is frozen, and its identity is computed from the inputs otherwise
    return job


def write_inputs(folder: Path) -> None:
    """Token ids of three splits in which one id tells the labels apart, labels.json and a model."""
    import torch
    from transformers import RobertaConfig, RobertaForMaskedLM

    from seedbed.core import files

    draw = random.Random(0)
    for split, size in SIZES.items():
        rows = []
        for index in range(size):
            label = LABELS["pattern"][index % len(LABELS["pattern"])]
            ids = [draw.randrange(4, SHAPE["vocab"] - 1) for _ in range(draw.randrange(3, 14))]
            ids[0] = 4 + label
            rows.append({"id": f"{split}-{index}", "ids": [0, *ids, 2], "label": label})
        files.write_jsonl(folder / "tokens" / f"{split}.jsonl", rows)
    files.write_json(folder / "labels.json", {"labels": ["0", "1"], "names": ["negative", "positive"]})
    shape = {**SHAPE, "vocabulary": SHAPE["vocab"], "activation": "gelu"}
    files.write_json(folder / "model.json", shape)
    config = RobertaConfig(
        vocab_size=SHAPE["vocab"],
        hidden_size=SHAPE["embed_dim"],
        num_hidden_layers=SHAPE["layers"],
        num_attention_heads=SHAPE["attention_heads"],
        intermediate_size=SHAPE["ffn_dim"],
        max_position_embeddings=SHAPE["max_positions"] + 2,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = RobertaForMaskedLM(config)
    torch.nn.init.zeros_(model.roberta.embeddings.token_type_embeddings.weight)  # as conversion leaves them
    model.save_pretrained(folder / "transformers")


def make_fairseq_job(folder: Path, run: dict[str, Any], name: str = "run", **fields: Any) -> Any:
    """As `make_job`, with the same token ids binarized for fairseq and a checkpoint for pretrained runs."""
    inputs = folder / "inputs"
    if not (inputs / "fairseq").exists():
        write_inputs(inputs)
        write_fairseq_inputs(inputs)
    job = make_job(folder, run, name)
    vars(job).update({"binarized": inputs / "binarized", "weights": inputs / "fairseq"} | fields)
    return job


def write_fairseq_inputs(folder: Path) -> None:
    """Binarized data, by fairseq-preprocess, and a checkpoint of random weights."""
    import torch
    from transformers import RobertaConfig, RobertaForMaskedLM

    from seedbed.core import files
    from seedbed.models.fairseq_format import write_checkpoint
    from seedbed.models.huggingface_format import normalize_state
    from seedbed.models.roberta import Network
    from seedbed.training.fairseq.binarization import binarize

    words = [f"w{index}" for index in range(4, SHAPE["vocab"] - 1)]
    files.write_text(folder / "dict.txt", "".join(f"{word} 1\n" for word in words))
    splits = {split: folder / "tokens" / f"{split}.jsonl" for split in SIZES}
    for split, path in splits.items():
        rows = files.read_jsonl(path)
        pieces = (" ".join(f"w{index}" for index in row["ids"][1:-1]) for row in rows)
        files.write_text(folder / f"{split}.pieces", "".join(f"{line}\n" for line in pieces))
        files.write_text(folder / f"{split}.label", "".join(f"{row['label']}\n" for row in rows))
    binarize(
        pieces={split: folder / f"{split}.pieces" for split in SIZES},
        labels={split: folder / f"{split}.label" for split in SIZES},
        tokens=splits,
        dictionary=folder / "dict.txt",
        classes=folder / "labels.json",
        output=folder / "binarized",
    )
    torch.manual_seed(0)
    model = RobertaForMaskedLM(RobertaConfig.from_pretrained(folder / "transformers"))
    weights, _ = normalize_state(model.state_dict(), SHAPE["layers"], "generated")
    shape = {key: SHAPE[key] for key in ("layers", "embed_dim", "ffn_dim", "attention_heads")}
    (folder / "fairseq").mkdir()
    write_checkpoint(folder / "fairseq" / "model.pt", Network(weights, **shape, activation="gelu"))


def make_causal_run(method: str = "full", **settings: Any) -> dict[str, Any]:
    """As `make_run`, of the task generation."""
    recipe = {
        "gradient_checkpointing": False,
        "loss_on": "answer",
        "learning_rate": 0.01,
        "pooler_dropout": 0.0,
    }
    if method in ("lora", "qlora"):
        adapted = {"target_modules": ["query_key_value"], "task_type": "CAUSAL_LM"}
        recipe |= {"lora": LORA | adapted, "frozen_dtype": "float32"}
    if method == "qlora":
        recipe["quantization"] = {
            "bnb_4bit_quant_type": "nf4",
            "bnb_4bit_use_double_quant": True,
            "bnb_4bit_compute_dtype": "float32",
        }
    params = {
        "task": "generation",
        "method": method,
        "init": "pretrained",
        "evaluation": {"batch_size": 4, "test_curves": False, "max_new_tokens": 6},
    }
    run = make_run("transformers", **{key: value for key, value in settings.items() if key not in recipe})
    run["settings"] |= recipe | {key: value for key, value in settings.items() if key in recipe}
    return run | {key: value for key, value in params.items() if key not in settings}


def make_causal_job(
    folder: Path, run: dict[str, Any], name: str = "run", kind: str = "bloom", **fields: Any
) -> Any:
    """As `make_job`, with prompts, answers and a causal model of a `kind` of `builders_causal`."""
    inputs = folder / f"inputs_{kind}"
    if not inputs.exists():
        write_causal_inputs(inputs, kind)
    job = make_job(folder, run, name)
    paths = {"tokens": inputs / "tokens", "weights": inputs / "huggingface", "model": inputs / "model.json"}
    vars(job).update({"labels": None} | paths | fields)
    return job


def write_causal_inputs(folder: Path, kind: str = "bloom") -> None:
    """A tiny causal model and the token ids of questions and answers in three splits."""
    from builders_causal import make_causal_model, make_questions
    from tokenizers import Tokenizer

    from seedbed.core import files

    make_causal_model(folder / "huggingface", kind)
    config = files.read_json(folder / "huggingface" / "config.json")
    shape = {"eos": config["eos_token_id"], "pad": config["pad_token_id"]}
    shape["max_positions"] = config.get("n_positions", config.get("max_position_embeddings"))
    files.write_json(folder / "model.json", shape)
    tokenizer = Tokenizer.from_file(str(folder / "huggingface" / "tokenizer.json"))
    rows = iter(make_questions(sum(SIZES.values())))
    for split, size in SIZES.items():
        lines = []
        for index in range(size):
            row = next(rows)
            prompt = tokenizer.encode(f"Question : {row['question']}\nRéponse :").ids
            answer = tokenizer.encode(f" {row['answer']}", add_special_tokens=False).ids
            lines.append(
                {
                    "id": f"{split}-{index}",
                    "prompt": prompt,
                    "answer": [*answer, shape["eos"]],
                    "reference": row["answer"],
                    "group": f"{split}-{index}",
                }
            )
        files.write_jsonl(folder / "tokens" / f"{split}.jsonl", lines)
