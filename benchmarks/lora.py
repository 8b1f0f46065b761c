"""Memory and speed of full fine-tuning, LoRA and QLoRA: experiments/lora_bloom.yaml, one run after another.

    python benchmarks/lora.py FOLDER --questions piaf_qa.fr.jsonl [--tokenizer resources/BLOOM_tiny_fr]
        [--model DIR] [--recipes full lora qlora] [--examples N] [--epochs E] [--seeds 0] [--everything]

Without --model, the model has the shape of BLOOM-560m (24 layers, d = 1024, 16 heads, 250,880 tokens, float16
on the disk), random weights, and the tokenizer of --tokenizer. Memory and speed are those of the real model,
though its tokenizer makes fewer tokens of a text; losses say nothing. --examples takes the first N questions,
--epochs replaces the recipes' number. Beside the experiment's own recipes there are:

    lora_frozen_bfloat16, qlora_frozen_bfloat16            frozen weights are kept in bfloat16
    full_recomputed, lora_recomputed, qlora_recomputed     with gradient checkpointing

FOLDER gets the model, the results, snakemake.log, and lora.csv and lora.md, made from each run.json: peak
memory is PyTorch's of the whole run (training, evaluation, generation); speeds are those of training, without
evaluation, start and writing; tokens are real ones, without padding. One run is at work at a time. Called
again, it goes on where it was stopped.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
EXPERIMENT = ROOT / "experiments" / "lora_bloom.yaml"
NAME = "lora_benchmark"
SIZES = {"n_layer": 24, "hidden_size": 1024, "n_head": 16, "vocab_size": 250_880}
CHANGES = {
    "frozen_bfloat16": {"frozen_dtype": "bfloat16"},
    "recomputed": {"gradient_checkpointing": True},
}
COLUMNS = {
    "recipe": "recipe",
    "seed": "seed",
    "device": "device",
    "peak_memory_mib": "peak memory (MiB)",
    "tokens_per_second": "tokens/s",
    "samples_per_second": "examples/s",
    "train_seconds": "training (s)",
    "total_seconds": "run (s)",
    "energy_joules": "energy (J)",
    "trainable": "trained parameters",
    "total": "parameters",
    "trained_percent": "trained (%)",
    "untrained_loss": "validation loss before",
    "selected_loss": "after",
}


def write_model(folder: Path, tokenizer: Path) -> Path:
    """A model of BLOOM-560m's shape with random weights, and a tokenizer whose ids it has."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    if (folder / "model.safetensors").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    config = AutoConfig.from_pretrained(tokenizer, local_files_only=True)
    for key, value in SIZES.items():
        setattr(config, key, value)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((tokenizer / name).read_bytes())
    model.to(torch.float16).save_pretrained(folder, max_shard_size="8GB")
    return folder


def write_questions(folder: Path, questions: Path, examples: int | None) -> Path:
    """The first questions of the file, in a file of the same name."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(questions, encoding="utf-8") as stream:
        lines = stream.readlines()
    target = folder / questions.name
    text = "".join(lines[:examples])
    if (
        not target.exists() or target.read_text(encoding="utf-8") != text
    ):  # a new file has everything made anew
        target.write_text(text, encoding="utf-8")
    return target


def recipe_of(name: str, recipes: dict[str, Any], epochs: int | None) -> dict[str, Any]:
    """A recipe of the experiment, or one with a change: the name says which."""
    base, _, change = name.partition("_")
    recipe = {**recipes[base], **(CHANGES[change] if change else {})}
    return recipe if epochs is None or recipe["method"] == "none" else {**recipe, "epochs": epochs}


def overlay(folder: Path, model: Path, questions: Path, options: argparse.Namespace) -> Path:
    """What differs from the experiment, as a config file."""
    recipes = yaml.safe_load(EXPERIMENT.read_text(encoding="utf-8"))["recipes"]
    config = {
        "experiment": NAME,
        "results": str(folder / "results"),
        "grid": {"recipes": options.recipes, "seeds": options.seeds},
        "sources": {
            "bloom_560m": {"locations": [str(model)]},
            "piaf": {"locations": [str(questions)]},
        },
        "recipes": {name: recipe_of(name, recipes, options.epochs) for name in options.recipes},
    }
    path = folder / "overlay.yaml"
    path.write_text(json.dumps(config, indent=1), encoding="utf-8")  # JSON is YAML
    return path


def run(folder: Path, config: Path, options: argparse.Namespace) -> int:
    """Run the workflow, one job at a time, to the runs or to its end; return Snakemake's exit code."""
    runs = folder / "results" / NAME
    targets = [
        str(runs / "runs" / "piaf_fr" / "bloom_560m" / "transformers" / "pretrained" / recipe / f"seed{seed}")
        + "/run.json"
        for recipe in options.recipes
        for seed in options.seeds
    ]
    targets.append(str(runs / "trainable_parameters.csv"))
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--keep-going"]
    command += ["--nolock", "--rerun-incomplete", "--configfile", str(EXPERIMENT), str(config)]
    command += ["--", *(["all"] if options.everything else targets)]
    environment = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", **os.environ}
    with open(folder / "snakemake.log", "w", encoding="utf-8") as log:
        process = subprocess.run(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
        )
    return process.returncode


def row_of(path: Path) -> dict[str, Any]:
    """A row of lora.csv, from a run's run.json and metrics.csv."""
    record = json.loads(path.read_text(encoding="utf-8"))
    numbers = record["parameters"]
    with open(path.parent / "metrics.csv", encoding="utf-8") as stream:
        before = [
            float(row["value"])
            for row in csv.DictReader(stream)
            if (row["split"], row["metric"], row["step"]) == ("validation", "loss", "0")
        ]
    return {
        "recipe": path.parent.parent.name,
        "seed": path.parent.name,
        "device": record["device"],
        "peak_memory_mib": round(record["peak_memory_mib"]),
        "tokens_per_second": _rounded(record["tokens_per_second"], 0),
        "samples_per_second": _rounded(record["samples_per_second"], 2),
        "train_seconds": _rounded(record["seconds"]["train"], 1),
        "total_seconds": _rounded(record["seconds"]["total"], 1),
        "energy_joules": _rounded(record["energy_joules"], 0),
        "trainable": numbers["trainable"],
        "total": numbers["total"],
        "trained_percent": round(100 * numbers["trainable"] / numbers["total"], 4),
        "untrained_loss": _rounded(before[0] if before else None, 4),
        "selected_loss": _rounded(record["validation"]["loss"], 4),
    }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits) if digits else round(value)


def write_tables(folder: Path, rows: list[dict[str, Any]]) -> str:
    """Write lora.csv and lora.md; return the latter."""
    with open(folder / "lora.csv", "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(COLUMNS), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    lines = [list(COLUMNS.values()), ["---"] * 3 + ["---:"] * (len(COLUMNS) - 3)]
    lines += [[_text(row[key]) for key in COLUMNS] for row in rows]
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    (folder / "lora.md").write_text(text, encoding="utf-8")
    return text


def _text(value: Any) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, (int, float)) else str(value)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--questions", type=Path, required=True, help="piaf_qa.fr.jsonl")
    parser.add_argument("--tokenizer", type=Path, default=ROOT / "resources" / "BLOOM_tiny_fr")
    parser.add_argument("--model", type=Path, help="a folder with a causal model, in place of random weights")
    parser.add_argument("--recipes", nargs="+", default=["full", "lora", "qlora"])
    parser.add_argument("--examples", type=int, help="questions; all, if not given")
    parser.add_argument("--epochs", type=int, help="in place of the recipes' number")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--everything", action="store_true", help="tables, figures and report, too")
    options = parser.parse_args()
    folder = options.folder.resolve()
    model = options.model.resolve() if options.model else write_model(folder / "model", options.tokenizer)
    questions = write_questions(folder / "questions", options.questions, options.examples)
    start = time.monotonic()
    code = run(folder, overlay(folder, model, questions, options), options)
    if code:
        print((folder / "snakemake.log").read_text(encoding="utf-8")[-6000:], file=sys.stderr)
    print(f"snakemake: exit code {code}, {time.monotonic() - start:.0f} s, all preparation among it")
    found = (folder / "results" / NAME / "runs").glob("**/run.json")
    rows = sorted(map(row_of, found), key=lambda row: (options.recipes.index(row["recipe"]), row["seed"]))
    print(write_tables(folder, rows))
    return code


if __name__ == "__main__":
    sys.exit(main())
