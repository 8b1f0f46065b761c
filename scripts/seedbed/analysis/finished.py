"""A finished experiment that is known by its folder alone: its runs, and what each recorded and predicted.

Only the table of runs and the run folders are read, not the config. So experiments of other machines and of
earlier versions can be compared, or asked for something that their own report does not say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from seedbed.analysis.bootstrap import Seeds
from seedbed.analysis.experiment import Experiment
from seedbed.analysis.outputs import CellOutputs, read_outputs, stack
from seedbed.analysis.sides import seeds_of
from seedbed.analysis.table_rows import RunRow
from seedbed.core import checksums
from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json
from seedbed.core.recipes import DECLARED, SIZE, without_size
from seedbed.core.rows import CELL
from seedbed.core.splits import PREDICTED
from seedbed.core.tasks import DEFAULT, TASKS, Task
from seedbed.data.clusters import by_example

# Largest difference between a metric in runs.csv and the counted one, relative to values above 1.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Finished(Experiment):
    """A finished experiment that is known by its folder alone. Its datasets and models have the names that
    the other experiment has for them.

    Attributes:
        name: as tables name it.
        folder: its folder.
        own_names: its own names of datasets and models, by the other's, where they differ.
    """

    name: str = ""
    folder: Path = Path()
    own_names: Mapping[str, str] = field(default_factory=dict)

    def own(self, name: str) -> str:
        """Its own name of a dataset or model."""
        return self.own_names.get(name, name)

    def run_folder(self, run: RunRow) -> Path:
        """The folder of a run."""
        own = replace(run, dataset=self.own(run.dataset), model=self.own(run.model))
        return self.folder / "runs" / own.folder

    def with_names(self, own_names: Mapping[str, str]) -> "Finished":
        """The same with other names of datasets and models: its own by the new ones."""
        new = {own: name for name, own in own_names.items()}
        runs = [
            replace(run, dataset=new.get(run.dataset, run.dataset), model=new.get(run.model, run.model))
            for run in self.runs
        ]
        reporting = recorded(self.name, runs, self.task, self.reporting["statistics"])
        return replace(self, runs=runs, reporting=reporting, own_names=own_names)


def recorded(name: str, runs: Sequence[RunRow], task: Task, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What the runs of a finished experiment tell of its `Plan.reporting()`.

    Args:
        name: of the experiment.
        runs: all of them.
        task: what they were trained for.
        settings: see `core.statistics_settings`: they stand in for the experiment's `statistics`.
    """
    grid = {f"{column}s": list(dict.fromkeys(run[column] for run in runs)) for column in CELL}
    return {
        "experiment": name,
        "task": task.name,
        "grid": grid,
        "datasets": {
            dataset: {"task": task.name, "metric": task.chosen_metric} for dataset in grid["datasets"]
        },
        "recipes": {run.recipe: _recipe(run) for run in runs},
        "statistics": settings,
    }


def _recipe(run: RunRow) -> dict[str, Any]:
    """What a run tells of its resolved recipe; the family of one with a size has the size in its name."""
    told = {"family": run.recipe_family, "method": run.method, "swept": dict(run.swept)}
    name = without_size(run.recipe_family, {SIZE: run.train_size})
    return told if name == run.recipe_family else {**told, DECLARED: name, SIZE: run.train_size}


@dataclass(frozen=True)
class Group:
    """The runs of one place and recipe, with what each recorded (run.json) and predicted."""

    runs: list[RunRow]
    documents: list[dict[str, Any]]
    splits: dict[str, CellOutputs]

    @property
    def metric(self) -> str:
        """Name of the metric that is compared."""
        return self.splits["test"].task.reported[0]

    @cached_property
    def seeds(self) -> Seeds:
        """(init seed, data seed) of each run."""
        return seeds_of(self.runs)


# --- reading ------------------------------------------------------------------------------------------------


def check_finished(folder: Path) -> None:
    """Refuse a folder without a table of runs.

    Raises:
        SeedbedError: there is none, as of an experiment that has not run.
    """
    path = folder / "runs.csv"
    if not path.is_file():
        raise SeedbedError(
            "no finished experiment",
            where=str(path),
            found="a folder without this table" if folder.is_dir() else "no such folder",
            hint="name the folder of an experiment that has run, such as results/demo",
        )


def read_finished(folder: Path, settings: Mapping[str, Any], name: str) -> Finished:
    """A finished experiment; its predictions are read by `read_group`.

    Args:
        folder: of the experiment, such as results/demo.
        settings: see `core.statistics_settings`.
        name: as tables name it.

    Raises:
        SeedbedError: see `check_finished`; a table that is not what its rule wrote, or not of runs; a run
            that is missing, or of an unknown task.
    """
    check_finished(folder)
    path = folder / "runs.csv"
    checksums.compare([path])
    runs = RunRow.read(path)
    if not runs:
        raise _not_of_runs(path, "no row")
    task = _task_of([folder / "runs" / run.folder for run in runs])
    missing = [column for metric in task.reported if (column := f"test_{metric}") not in runs[0].measured]
    if missing:
        raise _not_of_runs(path, f"no column {', '.join(missing)}")
    return Finished(runs, (), (), recorded(name, runs, task, settings), name=name, folder=folder)


def _task_of(folders: Sequence[Path]) -> Task:
    """The task in the record of the first run whose folder is there.

    Records without a task are older than the second task, so they are of the first.
    """
    there = next((folder for folder in folders if (folder / "run.json").is_file()), folders[0])
    (path,) = _files_of(there, "run.json")
    record = read_json(path)
    name = record.get("task", DEFAULT)
    if name not in TASKS:
        raise SeedbedError("a run of a task that is not known", where=f"{path}, task", found=repr(name))
    return TASKS[name].measured_by(record.get("metric"))


def _files_of(folder: Path, *names: str) -> list[Path]:
    """Files of a run, which are there and have their checksums."""
    paths = [folder / name for name in names]
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise SeedbedError(
            "a run of the table of runs is not there",
            where=str(missing[0]),
            hint="copy experiments with their run folders, or let Snakemake make the run anew",
        )
    checksums.compare(paths)
    return paths


def _not_of_runs(path: Path, found: str) -> SeedbedError:
    return SeedbedError(
        "not a table of runs", where=str(path), found=found, hint="let Snakemake make it anew"
    )


def read_group(results: Finished, runs: Sequence[RunRow]) -> Group:
    """What the runs of one cell of an experiment recorded and predicted.

    Raises:
        SeedbedError: a file of a run is missing, or is not what its rule wrote; its predictions do not have
            the metric of runs.csv, or are of other examples than those of the first run.
    """
    documents, predictions = [], []
    for run in runs:
        path = results.run_folder(run)
        record, predicted = _files_of(path, "run.json", "predictions.csv")
        documents.append(read_json(record))
        predictions.append(read_outputs(predicted, results.task, documents[-1]))
        _check_run(path, run, predictions[0], predictions[-1])
    splits = {split: stack([each[split] for each in predictions]) for split in PREDICTED}
    return Group(list(runs), documents, _clustered(results, runs[0].dataset, splits))


def _clustered(results: Finished, dataset: str, splits: Mapping[str, CellOutputs]) -> dict[str, CellOutputs]:
    """Outputs with the clusters of their examples, if the dataset's folder is there to say them."""
    path = results.folder.parent / "data" / results.own(dataset) / "splits.json"
    clusters = by_example(path) if path.is_file() else {}
    return {split: of.clustered(clusters[split]) if split in clusters else of for split, of in splits.items()}


def agree(told: float | None, counted: float | None) -> bool:
    """Whether a metric of runs.csv is the counted one but for rounding; None where it is not defined."""
    if told is None or counted is None:
        return told is counted
    return abs(counted - told) < ROUNDING * max(1.0, counted)


def _check_run(
    path: Path, run: RunRow, first: Mapping[str, CellOutputs], other: Mapping[str, CellOutputs]
) -> None:
    metric = other["test"].task.reported[0]
    told, (counted,) = run.value(f"test_{metric}"), other["test"].measured(metric)
    if not agree(told, counted):
        raise SeedbedError(
            f"the predictions of a run do not have the {metric} of the table of runs",
            where=f"{path}/predictions.csv",
            found=f"{counted} by counting, {told} in runs.csv",
            hint="the run was made anew since: let Snakemake bring the experiment up to date",
        )
    if not all(first[split].same_examples(other[split]) for split in first):
        raise SeedbedError(
            "two runs of one experiment were not evaluated on the same examples",
            where=f"{path}/predictions.csv",
            hint="let Snakemake bring the experiment up to date",
        )
