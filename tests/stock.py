"""Directories that tests of whole workflows copy: each is made once for all processes of a test session."""

import fcntl
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders import make_fairseq_checkpoint
from builders_causal import make_causal_model, make_passages, write_questions
from builders_workflow import SHAPE, link_repository, small_config, write_lab_dataset
from harness import ALWAYS, NEVER, Project, copy, succeeded

PRINTED = "printed.txt"
METHODS = ("none", "lora", "qlora", "full")


@dataclass(frozen=True)
class Stock:
    """What is made on first demand, in a folder that several processes may share.

    The directories are for reading and copying: no test may change one.
    """

    folder: Path

    def prepared(self) -> Project:
        """Classification: everything is made but the runs, and nothing below results/small."""
        return self._made("prepared", prepare, runs_config(self.folder / "prepared-inputs"))

    def finished(self) -> Project:
        """The same with two frameworks, two inits and two seeds, up to the report; never interrupted."""
        config = finished_config(runs_config(self.folder / "prepared-inputs"))
        return self._made("finished", lambda project: finish(self.prepared(), project), config)

    def answers(self) -> Project:
        """Generation: a recipe for each method, up to the report."""
        return self._made("answers", answer, answers_config(self.folder / "answers-inputs"))

    def _made(self, name: str, build: Callable[[Project], None], config: dict[str, Any]) -> Project:
        self.folder.mkdir(parents=True, exist_ok=True)
        project = Project(self.folder / name, config=config)
        with open(self.folder / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (self.folder / f"{name}.built").exists():
                build(project)
                (self.folder / f"{name}.built").touch()
        return project


def runs_config(inputs: Path) -> dict[str, Any]:
    """An experiment whose runs make 40 updates, with dropout everywhere, so that random numbers count."""
    config = small_config(inputs)
    dropouts = ("dropout", "attention_dropout", "activation_dropout", "pooler_dropout")
    config["recipes"]["quick"] |= {"epochs": 5, "batch_size": 3, **dict.fromkeys(dropouts, 0.1)}
    return {**config, "training_checkpoints": ALWAYS}


def finished_config(config: dict[str, Any]) -> dict[str, Any]:
    """That experiment with two seeds and a fast bootstrap; no run writes a training checkpoint by itself."""
    grid = {**config["grid"], "seeds": [0, 1]}
    return {**config, "grid": grid, "training_checkpoints": NEVER, "statistics": {"replicates": 400}}


def answers_config(inputs: Path, **lora: Any) -> dict[str, Any]:
    """An experiment of one seed with a recipe for each method, on made-up questions and a random model."""
    adapter = {"r": 4, "lora_alpha": 8, "target_modules": ["query_key_value"], **lora}
    recipes = {name: {"method": name, "epochs": 1, "batch_size": 4, "dropout": 0.0} for name in METHODS}
    recipes["none"] = {"method": "none"}
    for name in ("lora", "qlora"):
        recipes[name]["lora"] = adapter
    return {
        "experiment": "answers",
        "grid": {
            "datasets": ["questions"], "models": ["generated"], "recipes": list(METHODS), "seeds": [0],
            "inits": ["pretrained"],
        },
        "sources": {
            "questions": {"locations": [str(inputs / "questions")]},
            "generated": {"locations": [str(inputs / "generated")]},
        },
        "datasets": {
            "questions": {
                "task": "generation", "source": "questions", "format": "jsonl",
                "files": {"train": "all.jsonl"},
                "columns": {"context": "context"}, "validation_split": {"size": 8}, "test_split": {"size": 8},
                "template": "Texte : {context}\nQuestion : {question}\nRéponse :",
            }
        },
        "models": {"generated": {"source": "generated", "format": "causal"}},
        "recipes": recipes,
        "evaluation": {"max_new_tokens": 4},
        "statistics": {"replicates": 400},
    }  # fmt: skip


def prepare(project: Project) -> None:
    """Write the inputs beside the folder, and make all that runs read."""
    inputs = inputs_of(project)
    write_lab_dataset(inputs / "books")
    make_fairseq_checkpoint(inputs / "generated", **SHAPE)
    link_repository(project.folder)
    data, model = project.results / "data/books/generated", project.results / "models/generated"
    needed = (data / "parity.json", data / "binarized/binarized.json", model / "fairseq/model.pt")
    targets = [os.path.relpath(path, project.folder) for path in needed]
    # `--`, as the option of the config file takes all words that follow it
    succeeded(project.snakemake("--cores", "2", "--", *targets))


def finish(prepared: Project, project: Project) -> None:
    """Run a copy of the prepared directory to its report, and keep what it prints on the terminal."""
    copy(prepared, project.folder)
    done = succeeded(project.snakemake("--cores", "2"))
    (project.folder / PRINTED).write_text(done.stdout + done.stderr, encoding="utf-8")


def answer(project: Project) -> None:
    """Write questions and a causal model, and run their experiment to its report."""
    inputs = inputs_of(project)
    (inputs / "questions").mkdir(parents=True, exist_ok=True)
    write_questions(inputs / "questions/all.jsonl", make_passages(12, each=3))
    make_causal_model(inputs / "generated")
    link_repository(project.folder)
    succeeded(project.snakemake("--cores", "2"))


def inputs_of(project: Project) -> Path:
    """Where a project of the stock has its sources from."""
    return project.folder.with_name(f"{project.folder.name}-inputs")
