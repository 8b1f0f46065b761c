"""The data, model and recipe of a benchmark, made by Seedbed's preparation, and how either side runs on them.

Everything lies in one folder: results/ is Snakemake's, plain/ has the reports and logs of the lab's way.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.processes import ROOT, BenchError, Usage, run, run_all
from seedbed.config.plan import Plan
from seedbed.core import files
from seedbed.core.errors import SeedbedError
from seedbed.core.statistics_settings import complete_settings
from seedbed.training.schedule import updates_per_epoch, warmup_updates

HERE = Path(__file__).parent
SPLITS = ("train", "validation", "test")
# what is made once before anything is timed: data, models, checks, baseline
PREPARATION = ("check_parity", "binarize", "bag_of_words", "count_parameters", "print_architecture")


def merged(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """Two configs as Snakemake merges them: mappings are merged, all else is replaced."""
    result = dict(base)
    for key, value in overlay.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else value
    return result


def setting(text: str) -> dict[str, Any]:
    """The overlay of KEY.KEY=VALUE, the value as YAML.

    Raises:
        BenchError: there is no `=`.
    """
    path, equals, value = text.partition("=")
    if not equals:
        raise BenchError(f"not KEY=VALUE: {text}")
    overlay: Any = yaml.safe_load(value)
    for key in reversed(path.split(".")):
        overlay = {key: overlay}
    return overlay


@dataclass(frozen=True)
class Workload:
    """One dataset, model and recipe, prepared or about to be.

    Attributes:
        folder: where everything lies.
        configs: the experiment's config files, without config.yaml.
        overlay: what the benchmark sets.
        config: all of them merged and resolved.
        profile: Snakemake's, or none.
        cores: for Snakemake.
        lab_workers: processes that load the batches of plain fairseq-train.
        lab_lean: whether plain Trainer takes the options that make it faster, see plain_transformers.
    """

    folder: Path
    configs: tuple[Path, ...]
    overlay: dict[str, Any]
    config: dict[str, Any]
    profile: str
    cores: int
    lab_workers: int = 0
    lab_lean: bool = False

    @property
    def experiment(self) -> str:
        return self.config["experiment"]

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def dataset(self) -> str:
        return self.config["grid"]["datasets"][0]

    @property
    def model(self) -> str:
        return self.config["grid"]["models"][0]

    @property
    def recipe(self) -> dict[str, Any]:
        """The resolved recipe."""
        return self.config["recipes"][self.config["grid"]["recipes"][0]]

    @property
    def data(self) -> Path:
        """The folder of the dataset's token ids for the model."""
        return self.results / "data" / self.dataset / self.model

    @property
    def weights(self) -> Path:
        return self.results / "models" / self.model

    @property
    def on_cpu(self) -> bool:
        return self.config["device"] == "cpu"

    def shape(self) -> dict[str, Any]:
        """model.json: the network's sizes."""
        return files.read_json(self.weights / "model.json")

    def limit(self) -> int:
        """The longest input in tokens: the recipe's, else the model's."""
        return self.recipe["max_positions"] or self.shape()["max_positions"]

    def sizes(self) -> dict[str, int]:
        """Examples of every split."""
        return {split: len(files.read_jsonl(self.data / "tokens" / f"{split}.jsonl")) for split in SPLITS}

    def updates(self, sizes: Mapping[str, int]) -> int:
        """Updates of a run on splits of these sizes."""
        return self.recipe["epochs"] * updates_per_epoch(sizes["train"], self.recipe["batch_size"])

    def runs(self) -> list[str]:
        """The folder of every run of the grid, below runs/."""
        return [run.folder for run in Plan(self.raw()).runs]

    def raw(self) -> dict[str, Any]:
        """All configs merged, not resolved."""
        return merged_configs(self.configs, self.overlay)


def make_workload(
    folder: Path,
    configs: Sequence[Path],
    overlay: Mapping[str, Any],
    cores: int,
    profile: str = "",
    lab_workers: int = 0,
    lab_lean: bool = False,
) -> Workload:
    """A workload of one dataset, model and recipe of an experiment.

    Raises:
        BenchError: the experiment has several of them, generates answers, or has a schedule, a method or an
            initialisation that plain Transformers and fairseq do not share.
    """
    overlay = merged(
        {"results": str(folder / "results"), "lock": str(folder / "sources.lock.json")}, dict(overlay)
    )
    try:
        config = Plan(merged_configs(configs, overlay)).config
    except SeedbedError as error:
        raise BenchError(str(error)) from None
    grid = config["grid"]
    several = [key for key in ("datasets", "models", "recipes") if len(grid[key]) != 1]
    if several:
        raise BenchError(f"the benchmark takes one each of datasets, models and recipes; several {several}")
    if config["datasets"][grid["datasets"][0]]["task"] != "classification":
        raise BenchError("the benchmark is of classification; benchmarks/lora.py is of generation")
    recipe = config["recipes"][grid["recipes"][0]]
    known = (recipe["schedule"], recipe["schedule_power"], recipe["end_learning_rate"], recipe["method"])
    if known != ("polynomial", 1.0, 0.0, "full"):
        raise BenchError(f"the lab's way has a linear schedule and trains all weights, not {known}")
    return Workload(folder, tuple(configs), dict(overlay), config, profile, cores, lab_workers, lab_lean)


def statistics_of(configs: Sequence[Path]) -> dict[str, Any]:
    """`statistics` of an experiment's config files, without any those of the demo; with all defaults.

    Raises:
        SeedbedError: a value that the schema of the config does not allow.
    """
    return complete_settings(merged_configs(configs, {}).get("statistics", {}))


def merged_configs(configs: Sequence[Path], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """config.yaml, the config files and the overlay, merged and not resolved."""
    found: dict[str, Any] = {}
    for path in (ROOT / "config.yaml", *configs):
        found = merged(found, yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    return merged(found, overlay)


# --- Seedbed ---


def snakemake(
    work: Workload, name: str, *options: str, watch: bool = False, cores: int = 0, targets: Sequence[str] = ()
) -> Usage:
    """Run the workflow of a workload as its user does; `name` is that of its log.

    Raises:
        BenchError: it failed.
    """
    config = work.folder / "configs" / f"{work.experiment}.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(json.dumps(work.overlay, indent=1), encoding="utf-8")  # JSON is YAML
    command = [sys.executable, "-m", "snakemake", "--nolock"]
    command += ["--profile", work.profile] if work.profile else []
    command += ["--cores", str(cores or work.cores)]
    command += ["--configfile", *map(str, work.configs), str(config), *options, "--", *targets]
    threads = {"OMP_NUM_THREADS": str(work.config["threads"])}
    return run(command, work.folder / "logs" / f"{name}.log", watch, **threads)


def prepare(work: Workload, name: str) -> Usage:
    """Make all that both sides read, and what Seedbed makes of data and models beside it."""
    usage = snakemake(work, name, "--until", *PREPARATION)
    if "fairseq" in work.config["grid"]["frameworks"]:
        cut_plain_data(work)
    return usage


def plain_data(work: Workload) -> Path:
    """The binarized data that plain fairseq reads: Seedbed's own, or cut to the recipe's longest input."""
    if work.limit() < work.shape()["max_positions"]:
        return work.folder / "plain" / f"binarized_{work.dataset}_{work.limit()}"
    return work.data / "binarized"


def cut_plain_data(work: Workload) -> None:
    """Make the copy of binarized data that `plain_data` names, where it names one.

    fairseq-train cuts to the positions of the model alone, whose number is that of its checkpoint.
    """
    source, target = work.data / "binarized", plain_data(work)
    if target != source:
        command = [sys.executable, str(HERE / "plain_fairseq.py"), "--cut", str(source), str(target)]
        run([*command, str(work.limit())], work.folder / "logs" / f"{target.name}.log")


def write_slice(work: Workload, sizes: Mapping[str, int], target: Path) -> dict[str, Any]:
    """Write evenly spaced examples of every split of a prepared dataset; returns the overlay that uses them.

    Args:
        work: the workload whose dataset is sliced; only its splits need to be there.
        sizes: examples of every split, at most.
        target: a folder for the files.
    """
    source = work.results / "data" / work.dataset
    told, definition = files.read_json(source / "labels.json"), work.config["datasets"][work.dataset]
    for split in SPLITS:
        rows = files.read_jsonl(source / f"{split}.jsonl")
        number = min(sizes[split], len(rows))
        chosen = [rows[index * len(rows) // number] for index in range(number)]
        lines = [{"text": row["text"], "label": told["labels"][row["label"]]} for row in chosen]
        path = target / f"{split}.jsonl"
        if not path.exists() or files.read_jsonl(path) != lines:  # a new file has everything made anew
            files.write_jsonl(path, lines)
    name = f"{work.dataset}_slice"
    dataset = {
        "source": name,
        "format": "jsonl",
        "files": {split: f"{split}.jsonl" for split in SPLITS},
        "columns": {"text": "text", "label": "label"},
        "labels": told["labels"],
        "label_names": told["names"],
        "language": definition["language"],
    }
    return {
        "sources": {name: {"locations": [str(target)]}},
        "datasets": {name: dataset},
        "grid": {"datasets": [name]},
    }


def records(work: Workload) -> list[dict[str, Any]]:
    """run.json of every run that is there, with its file's time of writing as `written`."""
    found = []
    for path in sorted((work.results / work.experiment / "runs").glob("**/run.json")):
        found.append({**files.read_json(path), "written": path.stat().st_mtime, "folder": str(path.parent)})
    return found


def forget_runs(work: Workload) -> None:
    """Remove an experiment's runs, tables and report; data and models stay."""
    shutil.rmtree(work.results / work.experiment, ignore_errors=True)


# --- the lab's way ---


def plain_command(
    work: Workload, framework: str, init: str, seed: int, report: Path, **changes: bool
) -> list[str]:
    """The command line of a run of the lab's way.

    Args:
        work: the workload, prepared.
        framework, init, seed: the run.
        report: the file that it writes.
        changes: of Transformers, see SETTINGS.json in plain_transformers: test_every_epoch (fairseq does it),
            recipe_weights (fairseq draws its weights as the recipe does, from random numbers of its own).
    """
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    script = HERE / f"plain_{framework}.py"
    if framework == "fairseq":
        return [sys.executable, str(script), str(report), *fairseq_arguments(work, init, seed, report.parent)]
    asked = {
        "tokens": str(work.data / "tokens"),
        "weights": str(work.weights / "huggingface"),
        "classes": len(files.read_json(work.results / "data" / work.dataset / "labels.json")["names"]),
        "limit": work.limit(),
        "settings": work.recipe,
        "init": init,
        "seed": seed,
        "cpu": work.on_cpu,
        "output": str(report.parent / "trainer"),
        "evaluation_batch": work.config["evaluation"]["batch_size"] if work.lab_lean else None,
        **changes,
    }
    path = report.with_suffix(".settings.json")
    files.write_json(path, asked)
    return [sys.executable, str(script), str(report), str(path)]


def fairseq_arguments(work: Workload, init: str, seed: int, folder: Path) -> list[str]:
    """The lab's flags of `fairseq-train`, with the recipe's numbers."""
    recipe, shape = work.recipe, work.shape()
    updates = work.updates(work.sizes())
    beta1, beta2 = recipe["adam_betas"]
    options = {
        "--user-dir": HERE / "lab_plugin",
        "--task": "sentence_prediction",
        "--criterion": "sentence_prediction",
        "--num-classes": len(files.read_json(work.results / "data" / work.dataset / "labels.json")["names"]),
        "--init-token": 0,
        "--separator-token": 2,
        "--max-positions": shape["max_positions"],
        "--shorten-method": "truncate",
        "--arch": "roberta_small",
        "--encoder-layers": shape["layers"],
        "--encoder-embed-dim": shape["embed_dim"],
        "--encoder-ffn-embed-dim": shape["ffn_dim"],
        "--encoder-attention-heads": shape["attention_heads"],
        "--dropout": recipe["dropout"],
        "--attention-dropout": recipe["attention_dropout"],
        "--activation-dropout": recipe["activation_dropout"],
        "--pooler-dropout": recipe["pooler_dropout"],
        "--optimizer": "adam",
        "--adam-betas": f"({beta1},{beta2})",
        "--adam-eps": recipe["adam_epsilon"],
        "--weight-decay": recipe["weight_decay"],
        "--clip-norm": recipe["clip_norm"],
        "--lr-scheduler": "polynomial_decay",
        "--lr": recipe["learning_rate"],
        "--max-update": updates,
        "--total-num-update": updates,
        "--warmup-updates": warmup_updates(updates, recipe["warmup_ratio"]),
        "--max-epoch": recipe["epochs"],
        "--batch-size": recipe["batch_size"],
        "--seed": seed,
        "--valid-subset": "valid,test",
        "--best-checkpoint-metric": "accuracy",
        "--save-dir": folder / "fairseq",
        # the lab's flags leave it at 1; the end of such a process may then cost a run seconds of waiting
        "--num-workers": work.lab_workers,
    }
    flags = ["--maximize-best-checkpoint-metric", "--no-save"]
    if init == "pretrained":
        options["--restore-file"] = work.weights / "fairseq" / "model.pt"
        flags += ["--reset-optimizer", "--reset-dataloader", "--reset-meters", "--reset-lr-scheduler"]
    if work.on_cpu:
        flags.append("--cpu")
    return [str(plain_data(work)), *(str(part) for pair in options.items() for part in pair), *flags]


def run_plain(
    work: Workload,
    cells: Sequence[tuple[str, str, int]],
    at_once: int,
    done: Callable[[int, dict[str, Any]], None],
    **changes: bool,
) -> None:
    """Runs of the lab's way, so many at a time.

    Args:
        work: the workload, prepared.
        cells: framework, init and seed of each.
        at_once: how many at a time.
        done: told a run's place and its report, with the wall seconds of its process as `wall_seconds`.
        changes: see `plain_command`.

    Raises:
        BenchError: one failed, or made another number of updates than the recipe asks for.
    """
    folders = [work.folder / "plain" / "_".join(map(str, cell)) for cell in cells]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    jobs = [
        (plain_command(work, *cell, folder / "report.json", **changes), folder / "log.txt")
        for cell, folder in zip(cells, folders, strict=True)
    ]

    def ended(place: int, wall: float) -> None:
        report = checked_report(work, folders[place] / "report.json")
        done(place, {**report, "wall_seconds": wall})

    run_all(jobs, at_once, ended, **plain_environment(work))


def plain_environment(work: Workload) -> dict[str, str]:
    """As many threads as Seedbed's runs have, and one GPU: Trainer and fairseq would take all there are."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    return {"OMP_NUM_THREADS": str(work.config["threads"]), "CUDA_VISIBLE_DEVICES": visible}


def checked_report(work: Workload, path: Path) -> dict[str, Any]:
    """A report of the lab's way that made the updates that were asked for, and the epochs."""
    report = files.read_json(path)
    asked = work.updates(work.sizes()), work.recipe["epochs"]
    found = report["updates"], len(report["epochs"])
    if found != asked:
        raise BenchError(f"{path}: {found} updates and evaluated epochs, {asked} were asked for")
    return report


def cores_of_machine() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
