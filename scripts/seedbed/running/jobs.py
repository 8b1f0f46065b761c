"""A run for a trainer: its params, its paths, and the identity of its result. It does not import PyTorch."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seedbed.core import checksums, files, states
from seedbed.core.methods import METHODS, Method
from seedbed.core.recipes import train_size
from seedbed.core.run_folder import RunFolder, experiment_of_batch, name_of, subset_file
from seedbed.core.splits import PREDICTED, SPLITS
from seedbed.core.subsets import first_of
from seedbed.core.tasks import TASKS, VALUES, Task
from seedbed.running import identity, trainers
from seedbed.running.trainers import Trainer

# files of the weights and of binarized data that count for the identity, besides .bin, .idx and .label
IDENTITY_FILES = ("model.pt", "dict.txt", "model.safetensors", "config.json")
# the defaults of `training_checkpoints`, repeated so that jobs do not import pydantic
PACE = {"interval": 60, "max_share": 0.02}


@dataclass(frozen=True)
class Job:
    """One run for a trainer, in plain values and paths.

    Attributes:
        run: the params of the rule (`Plan.fairseq_run`, `Plan.transformers_run`).
        experiment: name of the experiment.
        tokens: folder of the token ids.
        labels: labels.json of the dataset; None if the task has none.
        weights: the model's folder for this framework.
        model: model.json of the model.
        binarized: folder of fairseq's data; None for Transformers.
        target: the run folder to publish.
        work: a folder unknown to Snakemake, on the same file system.
        threads: CPU threads.
        checkpointing: `training_checkpoints` of the config; no number depends on it.
        subset: the order of training texts of which a run of a size takes the first; None for a run on all.
        batch: name of the batch that trains the run and keeps its result for the run's own rule; empty for a
            run with its own job.
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
    subset: Path | None = None
    checkpointing: dict[str, Any] = field(default_factory=PACE.copy)
    batch: str = ""

    @property
    def settings(self) -> dict[str, Any]:
        """The resolved recipe."""
        return self.run["settings"]

    @property
    def task(self) -> Task:
        """The dataset's task, with the metric that the dataset chooses."""
        return TASKS[self.run["task"]].measured_by(self.run.get("metric"))

    @functools.cached_property
    def about_labels(self) -> dict[str, Any]:
        """What labels.json says of the dataset's labels; nothing if the task has none."""
        return files.read_json(self.labels) if self.labels else {}

    @property
    def chosen(self) -> set[str] | None:
        """The ids of the training examples of a run of a size; None if it trains on all.

        Raises:
            SeedbedError: the dataset has fewer.
        """
        size = train_size(self.settings)
        return first_of(self.subset, size) if self.subset and size else None

    @property
    def head_size(self) -> int:
        """Outputs of the head of an encoder."""
        return head_size(() if self.task.outputs == VALUES else self.about_labels["names"])

    @property
    def method(self) -> Method:
        """The recipe's method of fine-tuning."""
        return METHODS[self.run["method"]]

    @property
    def states(self) -> Path | None:
        """The states of the encoder that the run is trained on; None if it encodes its texts itself."""
        if "states" not in self.run:
            return None
        return self.tokens.parent / states.FOLDER / f"{self.run['states']}{states.SUFFIX}"

    @property
    def trainer(self) -> Trainer:
        """The run's trainer."""
        return trainers.of(self.run)

    @property
    def extra_packages(self) -> tuple[str, ...]:
        """Further packages that may change a number of this run."""
        return identity.extra_packages(self.run["task"], self.run["method"])

    @property
    def evaluated(self) -> tuple[str, ...]:
        """The splits evaluated after every epoch; test only if its curve is requested."""
        return PREDICTED if self.run["evaluation"]["test_curves"] else ("validation",)

    @property
    def name(self) -> str:
        """DATASET/MODEL/FRAMEWORK/INIT/RECIPE/SEED, for people."""
        return name_of(self.target)

    @property
    def rule(self) -> str:
        """The rule that publishes the run."""
        return self.task.rules[self.run["framework"]]

    @functools.cached_property
    def identity(self) -> str:
        """A fingerprint of all that determines the result; runs with the same identity are the same run.

        See `seedbed.running.identity`.

        Raises:
            SeedbedError: see `inputs`.
        """
        return identity.of(self.run, self.inputs)

    @functools.cached_property
    def inputs(self) -> dict[str, str]:
        """The SHA-256 of each file that a trainer reads, by names independent of their places.

        Raises:
            SeedbedError: an input was changed, or is empty.
        """
        paths = dict(self._inputs())
        checksums.compare(paths.values())
        return {name: checksums.sha256(path) for name, path in paths.items()}

    def _inputs(self) -> Iterator[tuple[str, Path]]:
        """The files that `inputs` names."""
        for split in SPLITS:
            yield f"tokens/{split}", self.tokens / f"{split}.jsonl"
        if self.labels:
            yield "labels", self.labels
        yield "model", self.model
        if self.subset:
            yield "subset", self.subset
        if self.states:
            yield "states", self.states
        names = IDENTITY_FILES + self.task.files_read
        for name, folder in (("weights", self.weights), ("binarized", self.binarized)):
            for path in sorted(folder.rglob("*")) if folder else ():
                if path.name in names or path.suffix in (".bin", ".idx", ".label"):
                    yield f"{name}/{path.relative_to(folder)}", path


def head_size(names: Sequence[str]) -> int:
    """Outputs of the head of an encoder: one for each of the named classes, and one for a number."""
    return len(names) or 1


def has_planned_updates(record: Mapping[str, Any]) -> bool:
    """Whether a run that trains has made its planned updates, according to its run.json.

    A run may have fewer if it diverged, or if its `differences` explain it (overflows of float16).
    """
    made, planned = record["updates"], record["total_updates"]
    explained = record["diverged"] or "updates" in [found["setting"] for found in record["differences"]]
    return planned > 0 and (made == planned or (made < planned and bool(explained)))


# --- from rules to jobs ---


def checkpointing(config: Mapping[str, Any]) -> dict[str, Any]:
    """`training_checkpoints` of a config, with its defaults."""
    return {**PACE, **config.get("training_checkpoints", {})}


def jobs_from_rule(snakemake: Any) -> list[Job]:
    """The run of a fine-tuning rule, as a list."""
    folder = RunFolder.from_path(Path(snakemake.output.run_json).parent)
    inputs = snakemake.input
    binarized, labels = inputs.get("binarized"), inputs.get("labels")
    subset = next(iter(inputs.get("subset") or ()), None)
    job = Job(
        run=snakemake.params.run,
        experiment=folder.experiment.name,
        tokens=Path(inputs.tokens[0]).parent,
        labels=Path(labels) if labels else None,
        weights=Path(inputs.weights).parent,
        model=Path(inputs.model),
        binarized=Path(binarized).parent if binarized else None,
        subset=Path(subset) if subset else None,
        target=folder.target,
        work=folder.work,
        threads=snakemake.threads,
        checkpointing=checkpointing(snakemake.config),
    )
    return [job]


def jobs_of_batch(snakemake: Any) -> list[Job]:
    """The runs of a batch's rule: params from `params.runs`, paths from the layout."""
    experiment, batch = experiment_of_batch(Path(snakemake.output[0]))
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
        pace: the result of `checkpointing`.
        batch: as in `Job`.
    """
    data = experiment.parent / "data" / run["dataset"]
    model = experiment.parent / "models" / run["model"]
    is_fairseq = run["framework"] == "fairseq"
    folder = RunFolder.of_run(experiment, run)
    return Job(
        run=run,
        experiment=experiment.name,
        tokens=data / run["model"] / "tokens",
        labels=data / "labels.json" if TASKS[run["task"]].has_labels else None,
        weights=model / ("fairseq" if is_fairseq else "huggingface"),
        model=model / "model.json",
        binarized=data / run["model"] / "binarized" if is_fairseq else None,
        subset=subset_file(data, run["data_seed"]) if train_size(run["settings"]) else None,
        target=folder.target,
        work=folder.work,
        threads=threads,
        checkpointing=pace,
        batch=batch,
    )
