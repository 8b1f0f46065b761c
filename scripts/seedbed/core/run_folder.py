"""The layout of an experiment's folder, which no other module knows.

    results/EXPERIMENT/runs/DATASET/MODEL/FRAMEWORK/INIT/RECIPE/SEED    the finished run
    results/EXPERIMENT/work/DATASET/MODEL/FRAMEWORK/INIT/RECIPE/SEED    its work folder, unknown to Snakemake
    results/EXPERIMENT/work/batches/DATASET/MODEL/FRAMEWORK/NUMBER.json the results of a batch of runs
    results/EXPERIMENT/work/workflows/NAME.lock                         a lock that a workflow holds
    results/EXPERIMENT/retrained                                        runs trained again for their weights
    results/EXPERIMENT/logs/RULE/DATASET/MODEL/INIT/RECIPE/SEED.log     the log of a run's job
    results/EXPERIMENT/logs/RULE_batch/DATASET/MODEL/NUMBER.log         the log of a batch's job
    results/EXPERIMENT/logs/RULE_batch/DATASET/MODEL/NUMBER/RUN.log     the log of a run that a batch trains
    results/logs/plans/EXPERIMENT.json                                  the runs that a workflow is to make
    results/EXPERIMENT/bags_of_words/DATASET                            the bags of words of each size
    results/EXPERIMENT/linear_probes/DATASET/MODEL/STATES               the linear probes of each size

The rules write the same layout with wildcards (rules/common.smk, rules/finetune.smk).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

PLANS = "plans"  # of results/logs
LEVELS = ("dataset", "model", "framework", "init", "recipe", "seed")  # folders below runs/ and work/


@dataclass(frozen=True)
class RunFolder:
    """The folders of one run.

    Attributes:
        experiment: results/EXPERIMENT.
        dataset, model, framework, init, recipe: names in the config.
        seed: its name by `seed_folder`.
    """

    experiment: Path
    dataset: str
    model: str
    framework: str
    init: str
    recipe: str
    seed: str

    @classmethod
    def of_run(cls, experiment: Path, run: Mapping[str, Any]) -> "RunFolder":
        """The folders of a run, from its params."""
        seed = seed_folder(run["init_seed"], run["data_seed"])
        return cls(experiment, **{level: run[level] for level in LEVELS[:-1]}, seed=seed)

    @classmethod
    def from_path(cls, path: Path) -> "RunFolder":
        """The folders of the run with folder `path` below runs/ or work/, which need not exist.

        Raises:
            IndexError: the path has too few folders.
        """
        return cls(path.parents[len(LEVELS)], *path.parts[-len(LEVELS) :])

    @property
    def name(self) -> str:
        """DATASET/MODEL/FRAMEWORK/INIT/RECIPE/SEED."""
        return "/".join(getattr(self, level) for level in LEVELS)

    @property
    def target(self) -> Path:
        """The folder of the finished run."""
        return self.experiment / "runs" / self.name

    @property
    def work(self) -> Path:
        """The folder of the unfinished run, on the file system of `target`."""
        return self.experiment / "work" / self.name

    @property
    def again(self) -> "RunFolder":
        """The folders of the same run trained again for its weights, which no rule knows."""
        return replace(self, experiment=self.experiment / "retrained")

    def log(self, rule: str) -> Path:
        """The log of the run's job."""
        names = (self.dataset, self.model, self.init, self.recipe, f"{self.seed}.log")
        return self.experiment.joinpath("logs", rule, *names)


def work_folders(experiment: Path) -> set[Path]:
    """The existing work folders of runs."""
    return set((experiment / "work").glob("/".join("*" * len(LEVELS)) + "/"))


def batch_file(experiment: Path, batch: str) -> Path:
    """The file with the results of a batch.

    Args:
        experiment: results/EXPERIMENT.
        batch: DATASET/MODEL/FRAMEWORK/NUMBER.
    """
    return experiment / "work" / "batches" / f"{batch}.json"


def experiment_of_batch(path: Path) -> tuple[Path, str]:
    """The arguments of `batch_file` for `path`."""
    return path.parents[5], "/".join([*path.parts[-4:-1], path.stem])


def batch_log(experiment: Path, rule: str, batch: str) -> Path:
    """The log of a batch's job.

    Args:
        experiment: results/EXPERIMENT.
        rule: the rule of its runs.
        batch: as in `batch_file`.
    """
    dataset, model, _, number = batch.split("/")
    return experiment / "logs" / f"{rule}_batch" / dataset / model / f"{number}.log"


def log_in_batch(logs: Path, run: str, together: bool) -> Path:
    """The log of a run's training in a batch; runs that train together share one.

    Args:
        logs: path by `batch_log`, without its suffix.
        run: DATASET/MODEL/FRAMEWORK/INIT/RECIPE/SEED.
        together: whether the batch trains its runs as one model.
    """
    init, recipe, seed = run.split("/")[-3:]
    return logs / f"{recipe if together else f'{init}-{recipe}-{seed}'}.log"


def plan_file(experiment: Path) -> Path:
    """The file of `running.planned_runs`; outside the experiment's folder, which a workflow that fails before
    its first run does not make."""
    return experiment.parent / "logs" / PLANS / f"{experiment.name}.json"


def workflows_folder(experiment: Path) -> Path:
    """The locks of the workflows that work on an experiment."""
    return experiment / "work" / "workflows"


def name_of(path: Path) -> str:
    """DATASET/MODEL/FRAMEWORK/INIT/RECIPE/SEED of a run folder or work folder."""
    return "/".join(path.parts[-len(LEVELS) :])


def subset_file(data: Path, data_seed: int) -> Path:
    """The order of a dataset's training texts of which runs with a data seed take the first.

    Args:
        data: results/data/DATASET.
        data_seed: the seed that draws it.
    """
    return data / "subsets" / f"seed{data_seed}" / "order.csv"


def dataset_of_subset(path: Path) -> str:
    """The dataset of a path by `subset_file`."""
    return path.parents[2].name


def bags_folder(experiment: Path, dataset: str) -> Path:
    """The folder with a dataset's bags of words of each size of training.

    Args:
        experiment: results/EXPERIMENT.
        dataset: its name in the config.
    """
    return experiment / "bags_of_words" / dataset


def probes_folder(experiment: Path, dataset: str, model: str, states: str) -> Path:
    """The folder with the linear probes of each size of training that read a file of states.

    Args:
        experiment: results/EXPERIMENT.
        dataset, model: names in the config.
        states: the name of the file, see `core.states`.
    """
    return experiment / "linear_probes" / dataset / model / states


def place_of_probes(path: Path) -> tuple[str, str, str]:
    """The dataset, the model and the name of the states of a path by `probes_folder`."""
    return path.parents[1].name, path.parent.name, path.name


def seeds_of_folder(name: str) -> tuple[int, int]:
    """The init seed and the data seed of a folder named by `seed_folder`."""
    init, _, data = name.removeprefix("seed").partition("-")
    return int(init), int(data or init)


def seed_folder(init_seed: int, data_seed: int) -> str:
    """The seed's folder: `seed0`, or `seed0-3` if initialisation and data order have different seeds."""
    return f"seed{init_seed}" if init_seed == data_seed else f"seed{init_seed}-{data_seed}"
