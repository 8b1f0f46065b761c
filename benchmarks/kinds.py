"""Which kinds of model train on which kinds of task, in which framework, and how fast.

    python benchmarks/kinds.py FOLDER [--tasks classification pairs ...] [--cores 2] [--keep FILE.csv]

Every kind of model of the tests' builders (4 layers, d = 256, random weights, a tokenizer made on the spot)
trains for an epoch on 200 invented examples of every task, from its checkpoint, through the whole workflow.
FOLDER gets the models, texts and results, one experiment a task, kinds.csv and kinds.md. A time is that of
training, without start and evaluation, of one thread. Called again, it goes on.
"""

import argparse
import csv
import json
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

from builders import make_fairseq_checkpoint, make_reviews  # noqa: E402
from builders_checkpoints import make_roberta_base  # noqa: E402
from builders_encoders import KINDS, make_encoder  # noqa: E402
from builders_pairs import make_pairs  # noqa: E402

SIZES = {"train": 200, "validation": 60, "test": 60}
SHAPE = {"layers": 4, "dim": 256, "ffn": 512, "heads": 8}
POSITIONS = 100
SENTENCEPIECE = "sentencepiece.bpe.model"
COLUMNS = ("task", "model", "framework", "examples", "train_seconds", "packed")
# of models that both frameworks train
BOTH: dict[str, Callable[..., Any]] = {
    "RoBERTa, SentencePiece": make_fairseq_checkpoint,
    "RoBERTa, GPT-2's BPE": make_roberta_base,
}


def classification(count: int, seed: int) -> list[dict[str, Any]]:
    """Reviews and their labels."""
    return [{"text": row["text"], "label": row["label"]} for row in make_reviews(count, seed)]


def pairs(count: int, seed: int) -> list[dict[str, Any]]:
    """Pairs of reviews; label 1: both begin with the same word."""
    return make_pairs(count, seed)


def regression(count: int, seed: int) -> list[dict[str, Any]]:
    """Reviews and their numbers of words."""
    return [
        {"text": row["text"], "label": len(row["text"].split()) / 10} for row in make_reviews(count, seed)
    ]


def multilabel(count: int, seed: int) -> list[dict[str, Any]]:
    """Reviews and what holds of them."""
    found = []
    for row in make_reviews(count, seed):
        holds = {"good": row["label"] == 1, "long": len(row["text"]) > 120, "exclaimed": "!" in row["text"]}
        found.append({"text": row["text"], "label": [name for name, held in holds.items() if held]})
    return found


# of each task: its examples, and its keys of a dataset
TASKS: dict[str, tuple[Callable[[int, int], list[dict[str, Any]]], Mapping[str, Any]]] = {
    "classification": (classification, {"labels": [0, 1]}),
    "pairs": (
        pairs,
        {"labels": [0, 1], "columns": {"text": "text", "text_pair": "text_pair", "label": "label"}},
    ),
    "regression": (regression, {"task": "regression"}),
    "multilabel": (multilabel, {"task": "multilabel", "labels": ["good", "long", "exclaimed"]}),
}


def main() -> None:
    """Make what is missing, train, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="copy kinds.csv there, too")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    models = make_models(folder / "models")
    rows = []
    for task in arguments.tasks:
        run(task, folder, models, arguments.cores)
        rows += read(task, folder, models)
    for path in filter(None, (folder / "kinds.csv", arguments.keep)):
        with open(path, "w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    text = table(rows, arguments.tasks)
    (folder / "kinds.md").write_text(text, encoding="utf-8")
    print(text, end="")


def make_models(folder: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """Each kind's name in the config, and its definition; what is not there is made."""
    found = {}
    for kind in (*BOTH, *KINDS):
        name = "".join(letter if letter.isalnum() else "_" for letter in kind.lower())
        place = folder / name
        if not place.exists():
            if kind in BOTH:
                BOTH[kind](place, **SHAPE, positions=POSITIONS)
            else:
                make_encoder(place, kind, **SHAPE, positions=POSITIONS)
        definition: dict[str, Any] = {"source": name, "format": "auto"}
        if kind in BOTH:
            definition = {"source": name, "format": "fairseq", "checkpoint": "model.pt"}
            definition["dictionary"] = "dict.txt"
            definition["sentencepiece"] = SENTENCEPIECE if (place / SENTENCEPIECE).exists() else None
        found[kind] = (name, definition)
    return found


def run(task: str, folder: Path, models: Mapping[str, tuple[str, dict[str, Any]]], cores: int) -> None:
    """One experiment: every model on a task."""
    make, keys = TASKS[task]
    texts = folder / "texts" / task
    texts.mkdir(parents=True, exist_ok=True)
    for seed, (split, count) in enumerate(SIZES.items()):
        lines = [json.dumps(row, ensure_ascii=False) for row in make(count, seed)]
        random.Random(seed).shuffle(lines)
        (texts / f"{split}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    config = {
        "experiment": task,
        "results": str(folder / "results"),
        "grid": {
            "datasets": [task],
            "models": [name for name, _ in models.values()],
            "recipes": ["demo"],
            "inits": ["pretrained"],
            "seeds": [0],
        },
        "sources": {name: {"locations": [str(folder / "models" / name)]} for name, _ in models.values()}
        | {task: {"locations": [str(texts)]}},
        "datasets": {
            task: {
                "source": task,
                "format": "jsonl",
                "files": {split: f"{split}.jsonl" for split in SIZES},
                "description": "invented",
                **keys,
            }
        },
        "models": {name: {**definition, "description": name} for name, definition in models.values()},
        "recipes": {"demo": {"epochs": 1, "max_positions": POSITIONS}},
        # the random weights are large: states reach 5, and rounding 1.1e-4, in pairs of 100 tokens
        "checks": {"max_unknown_share": 1.0, "parity_reviews": 20, "parity_tolerance": 1e-3},
        "device": "cpu",
    }
    path = folder / f"{task}.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True), encoding="utf-8")
    command = [sys.executable, "-m", "snakemake", "--cores", str(cores), "--configfile", str(path)]
    subprocess.run(command, cwd=ROOT, check=True)


def read(task: str, folder: Path, models: Mapping[str, tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """A row for each run of a task."""
    kinds = {name: kind for kind, (name, _) in models.items()}
    rows = []
    for path in sorted((folder / "results" / task / "runs").rglob("run.json")):
        told = json.loads(path.read_text(encoding="utf-8"))
        rows.append(
            {
                "task": task,
                "model": kinds[told["run"]["model"]],
                "framework": told["run"]["framework"],
                "examples": SIZES["train"],
                "train_seconds": told["seconds"]["train"],
                "packed": told.get("packed", True),  # fairseq's texts always are, on a CPU
            }
        )
    return sorted(rows, key=lambda row: list(kinds.values()).index(row["model"]))


def table(rows: list[dict[str, Any]], tasks: list[str]) -> str:
    """Markdown: seconds of an epoch by model and framework, a column a task; a dash: not trained."""
    cells: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        cells.setdefault((row["model"], row["framework"]), {})[row["task"]] = row["train_seconds"]
    lines = [f"| model | framework | {' | '.join(tasks)} |", f"| --- | --- |{' ---: |' * len(tasks)}"]
    for (model, framework), seconds in cells.items():
        told = [f"{seconds[task]:.1f}" if task in seconds else "–" for task in tasks]
        lines.append(f"| {model} | {framework} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
