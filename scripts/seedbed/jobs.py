"""A run as a trainer sees it, without PyTorch: its params, its paths, and the identity of its result."""

import functools
import hashlib
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from seedbed import checksums, files
from seedbed.tasks import ADAPTERS, TASKS, Task

PREDICTED = ("validation", "test")
SPLITS = ("train", *PREDICTED)
# packages whose version may change a number
PACKAGES = ("torch", "fairseq", "transformers", "accelerate", "safetensors", "numpy")
# and those that may change a number of some runs alone
TASK_PACKAGES = {"classification": (), "generation": ("tokenizers",)}
METHOD_PACKAGES = {"full": (), "lora": ("peft",), "qlora": ("peft", "bitsandbytes"), "none": ()}
# what is read of a folder of weights or of binarized data, beside .bin and .idx
READ = ("model.pt", "dict.txt", "model.safetensors", "config.json")
TASK_READ = {"classification": (), "generation": ("tokenizer.json",)}
LIBRARY = Path(__file__).parent
# modules that may change a number; what else a trainer imports moves files and processes about
SHARED_CODE = (
    "adapter_parameters.py", "finetuning.py", "graphs.py", "hardware.py", "initialisation.py", "metrics.py",
    "naming.py", "recording.py", "schedule.py", "tasks.py", "training_state.py",
)  # fmt: skip
FRAMEWORK_CODE = {
    "fairseq": (
        "fairseq/adam.py", "fairseq/composition.py", "fairseq/launcher.py", "fairseq/packed.py",
        "fairseq/resuming.py", "fairseq/seedbed_plugin/__init__.py", "fairseq/session.py",
        "fairseq/trainer.py", "packing.py",
    ),
    "transformers": ("initial_models.py", "transformers_loop.py"),
}  # fmt: skip
# in place of the framework's and the task's, where the seeds of a cell are trained as one batched model
FUSED_CODE = (
    "fused/model.py", "fused/optimizer.py", "fused/order.py", "fused/texts.py", "fused/trainer.py",
    "packing.py", "roberta.py",
)  # fmt: skip
TASK_CODE = {
    ("transformers", "classification"): ("packing.py", "transformers_packed.py", "transformers_trainer.py"),
    ("transformers", "generation"): ("causal_trainer.py", "generation.py", "merging.py"),
}
ADAPTER_CODE = ("adapters.py", "merging.py")


@dataclass(frozen=True)
class Job:
    """One run as a trainer sees it: plain values and paths.

    Attributes:
        run: the params of the rule (`Plan.fairseq_run`, `Plan.transformers_run`).
        experiment: name of the experiment.
        tokens: folder of the token ids.
        labels: labels.json of the dataset; None where the task has no classes.
        weights: the model's folder for this framework.
        model: model.json of the model.
        binarized: folder of fairseq's data; None for Transformers.
        target: the run folder to publish.
        work: a folder that Snakemake does not own, on the same file system.
        threads: CPU threads.
        checkpointing: `training_checkpoints` of the config; it changes no number.
        batch: name of the batch that trains it, whose result is kept for the run's own rule to publish; empty
            for a run that has a job of its own.
    """

    run: dict[str, Any]
    experiment: str
    tokens: Path
    labels: Path | None
    weights: Path
    model: Path
    target: Path
    work: Path
    threads: int
    binarized: Path | None = None
    checkpointing: dict[str, Any] = field(default_factory=lambda: {"interval": 60, "max_share": 0.02})
    batch: str = ""

    @property
    def settings(self) -> dict[str, Any]:
        """The resolved recipe."""
        return self.run["settings"]

    @property
    def task(self) -> Task:
        """The dataset's task."""
        return TASKS[self.run["task"]]

    @property
    def has_adapter(self) -> bool:
        """Whether the run trains an adapter beside frozen weights."""
        return self.run["method"] in ADAPTERS

    @property
    def is_fused(self) -> bool:
        """Whether the run is trained as a part of a batched model, with the seeds of `run["fused"]`."""
        return "fused" in self.run

    @property
    def extra_packages(self) -> tuple[str, ...]:
        """Packages that may change a number of this run, beside those of all runs."""
        return TASK_PACKAGES[self.run["task"]] + METHOD_PACKAGES[self.run["method"]]

    @property
    def evaluated(self) -> tuple[str, ...]:
        """The splits that are evaluated after every epoch: test only where its curve is asked for."""
        return PREDICTED if self.run["evaluation"]["test_curves"] else ("validation",)

    @property
    def name(self) -> str:
        """DATASET/MODEL/FRAMEWORK/INIT/RECIPE/SEED, for people."""
        return "/".join(self.target.parts[-6:])

    @property
    def rule(self) -> str:
        """The rule whose job puts the run into its place."""
        return "finetune_causal" if self.run["task"] == "generation" else f"finetune_{self.run['framework']}"

    @functools.cached_property
    def identity(self) -> str:
        """A fingerprint of all that determines the result: two runs that share it are the same run.

        Params, the content of the input files, the packages' versions and the training code count; when a
        file was written and where it lies do not. The inputs are compared with what their rules wrote.

        Raises:
            SeedbedError: an input is another, or is empty.
        """
        inputs = dict(self._inputs())
        checksums.compare(inputs.values())
        return files.fingerprint(
            {
                "run": self.run,
                "inputs": {name: checksums.sha256(path) for name, path in inputs.items()},
                "versions": package_versions((*PACKAGES, *self.extra_packages)),
                "code": training_code(
                    self.run["framework"], self.run["task"], self.run["method"], self.is_fused
                ),
            }
        )

    def _inputs(self) -> Iterator[tuple[str, Path]]:
        """The files that a trainer reads, by names that do not depend on where they lie."""
        for split in SPLITS:
            yield f"tokens/{split}", self.tokens / f"{split}.jsonl"
        if self.labels:
            yield "labels", self.labels
        yield "model", self.model
        read = READ + TASK_READ[self.run["task"]]
        for name, folder in (("weights", self.weights), ("binarized", self.binarized)):
            for path in sorted(folder.rglob("*")) if folder else ():
                if path.name in read or path.suffix in (".bin", ".idx"):
                    yield f"{name}/{path.relative_to(folder)}", path


def package_versions(packages: Sequence[str] = PACKAGES) -> dict[str, str | None]:
    """Versions of Python and of packages, by default those that may change a number; None: not installed."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    return versions


@functools.cache
def training_code(framework: str, task: str, method: str, is_fused: bool = False) -> str:
    """The SHA-256 of the modules that may change a number of the runs of a framework, task and method."""
    digest = hashlib.sha256()
    own = FUSED_CODE if is_fused else (*FRAMEWORK_CODE[framework], *TASK_CODE.get((framework, task), ()))
    modules = (*SHARED_CODE, *own)
    for name in (*modules, *(ADAPTER_CODE if method in ADAPTERS else ())):
        digest.update(name.encode() + b"\0" + (LIBRARY / name).read_bytes() + b"\0")
    return digest.hexdigest()


def has_planned_updates(record: Mapping[str, Any]) -> bool:
    """Whether a run that trains has made the updates of its plan, from its run.json.

    A run that diverged may have made fewer, and one whose `differences` explain it (overflows of float16).
    """
    made, planned = record["updates"], record["total_updates"]
    explained = record["diverged"] or "updates" in [found["setting"] for found in record["differences"]]
    return planned > 0 and (made == planned or (made < planned and bool(explained)))


# --- from rules to jobs ---


def in_batches(config: Mapping[str, Any]) -> bool:
    """Whether the rules of batches train, and the rule of a run only adopts what its batch made of it."""
    return config.get("fused_seeds", False) or config["batches"]["runs"] > 1


def checkpointing(config: Mapping[str, Any]) -> dict[str, Any]:
    """`training_checkpoints` of a config, with the schema's defaults."""
    return {"interval": 60, "max_share": 0.02, **config.get("training_checkpoints", {})}


def jobs_from_rule(snakemake: Any) -> list[Job]:
    """The run of a fine-tuning rule, which has one."""
    target = Path(snakemake.output.run_json).parent
    experiment = target.parents[6]  # .../EXPERIMENT/runs/dataset/model/framework/init/recipe/seed
    inputs = snakemake.input
    binarized, labels = inputs.get("binarized"), inputs.get("labels")
    job = Job(
        run=snakemake.params.run,
        experiment=experiment.name,
        tokens=Path(inputs.tokens[0]).parent,
        labels=Path(labels) if labels else None,
        weights=Path(inputs.weights).parent,
        model=Path(inputs.model),
        binarized=Path(binarized).parent if binarized else None,
        target=target,
        work=experiment / "work" / target.relative_to(experiment / "runs"),
        threads=snakemake.threads,
        checkpointing=checkpointing(snakemake.config),
    )
    return [job]


def jobs_of_batch(snakemake: Any) -> list[Job]:
    """The runs of a rule that trains a batch: their params are `params.runs`, the layout gives the paths."""
    # .../EXPERIMENT/work/batches/DATASET/MODEL/FRAMEWORK/BATCH.json
    done = Path(snakemake.output[0]).with_suffix("")
    experiment, batch = done.parents[5], "/".join(done.parts[-4:])
    pace = checkpointing(snakemake.config)
    threads = max(1, snakemake.threads // snakemake.config["batches"]["at_once"])
    return [job_of_run(run, experiment, threads, pace, batch) for run in snakemake.params.runs]


def job_of_run(
    run: dict[str, Any], experiment: Path, threads: int, pace: dict[str, Any], batch: str = ""
) -> Job:
    """A job from a run's params and the folder of its experiment.

    Args:
        run: as in `Job`.
        experiment: results/EXPERIMENT.
        threads: CPU threads.
        pace: as `checkpointing` gives it.
        batch: as in `Job`.
    """
    data = experiment.parent / "data" / run["dataset"]
    model = experiment.parent / "models" / run["model"]
    is_fairseq = run["framework"] == "fairseq"
    names = (run["dataset"], run["model"], run["framework"], run["init"], run["recipe"], seed_folder(run))
    return Job(
        run=run,
        experiment=experiment.name,
        tokens=data / run["model"] / "tokens",
        labels=data / "labels.json" if run["task"] == "classification" else None,
        weights=model / ("fairseq" if is_fairseq else "huggingface"),
        model=model / "model.json",
        binarized=data / run["model"] / "binarized" if is_fairseq else None,
        target=experiment.joinpath("runs", *names),
        work=experiment.joinpath("work", *names),
        threads=threads,
        checkpointing=pace,
        batch=batch,
    )


def seed_folder(run: Mapping[str, Any]) -> str:
    """The seed's folder: `seed0`, or `seed0-3` where init and data order have their own."""
    init, data = run["init_seed"], run["data_seed"]
    return f"seed{init}" if init == data else f"seed{init}-{data}"
