"""A finished run by its folder: what run.json says of it, and the job that trains it again."""

import contextlib
import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seedbed.core import checksums, files
from seedbed.core.errors import SeedbedError
from seedbed.core.methods import METHODS
from seedbed.core.run_folder import RunFolder
from seedbed.core.states import EncoderOfStates
from seedbed.core.tasks import ANSWERS, TASKS, Task
from seedbed.data.texts import are_pairs
from seedbed.running.jobs import PACE, Job, job_of_run

# of run.json: what the run is trained again from, and its model is built from
NEEDED = (
    "task", "run", "settings", "evaluation", "inputs", "label_names", "device", "deterministic",
    "cuda_graphs", "hardware", "versions", "seconds",
)  # fmt: skip


@dataclass(frozen=True)
class FinishedRun:
    """A finished run of an encoder.

    Attributes:
        place: its folders.
        record: the content of run.json.
    """

    place: RunFolder
    record: Mapping[str, Any]

    @property
    def folder(self) -> Path:
        """results/EXPERIMENT/runs/.../SEED."""
        return self.place.target

    @property
    def task(self) -> Task:
        """Its task."""
        return TASKS[self.record["task"]]

    @property
    def labels(self) -> list[str]:
        """The names of the classes or labels; none of numbers."""
        return list(self.record["label_names"])

    @property
    def data(self) -> Path:
        """results/data/DATASET."""
        return self.place.experiment.parent / "data" / self.place.dataset

    @property
    def model(self) -> Path:
        """results/models/MODEL."""
        return self.place.experiment.parent / "models" / self.place.model

    @functools.cached_property
    def test(self) -> list[dict[str, Any]]:
        """The test examples: {"id", "text", "label"}, and "text_pair" in pairs."""
        path = self.data / "test.jsonl"
        if not path.exists():
            raise _missing(path)
        return files.read_jsonl(path)

    @property
    def takes_pairs(self) -> bool:
        """Whether its examples are pairs of texts."""
        return are_pairs(self.test)

    @functools.cached_property
    def job(self) -> Job:
        """The job that trains the run again, and keeps its model."""
        threads = self.record["hardware"]["threads"]
        job = job_of_run(_params(self.record), self.place.experiment, threads, PACE)
        again = self.place.again
        return replace(job, target=again.target, work=again.work)

    def check_inputs(self, all_of_them: bool) -> None:
        """Check that what the run was trained on is still there and unchanged.

        Args:
            all_of_them: whether texts and states count, too; else only the model and the labels.

        Raises:
            SeedbedError: a file is missing or has another content.
        """
        recorded = self.record["inputs"]
        try:
            found = self.job.inputs
        except FileNotFoundError as error:
            raise _missing(Path(error.filename)) from None
        names = [name for name in recorded if all_of_them or name.startswith(("weights", "model", "labels"))]
        if lost := [name for name in names if name not in found]:
            folder, _, name = lost[0].partition("/")
            raise _missing({"weights": self.job.weights, "binarized": self.job.binarized}[folder] / name)
        if changed := [name for name in names if recorded[name] != found[name]]:
            raise SeedbedError(
                "the files of the model or data are not those that the run was trained on",
                where=str(self.folder),
                found=", ".join(changed),
                hint="run the experiment again, so that the run and its files belong together",
            )


def read(path: Path) -> FinishedRun:
    """The finished run of a folder.

    Raises:
        SeedbedError: there is no finished run, its files were changed, or it does not classify texts.
    """
    path = path.resolve()
    if not (path / "run.json").is_file():
        raise _no_run(path)
    place = _place_of(path)
    if place is None:
        raise SeedbedError(
            "the folder of the run is not in an experiment's folder",
            where=str(path),
            hint="name it where the workflow made it: results/EXPERIMENT/runs/.../SEED; model and labels "
            "are found from there",
        )
    checksums.compare([path / "run.json", path / "predictions.csv"])
    record = files.read_json(path / "run.json")
    if lacking := [key for key in NEEDED if key not in record]:
        raise SeedbedError(
            "the run was made by an earlier version, which recorded too little to load it",
            where=str(path / "run.json"),
            found=f"no {', '.join(lacking)}",
            hint="run the experiment again with this version",
        )
    if TASKS[record["task"]].outputs == ANSWERS:
        raise SeedbedError(
            "the run writes answers; only runs that predict labels or numbers are supported",
            where=str(path),
            found=f"task {record['task']}",
            hint="for a run with an adapter, make merge writes a model that Transformers loads",
        )
    return FinishedRun(place, record)


def _place_of(path: Path) -> RunFolder | None:
    """The folders of a run; None if its folder is not in an experiment's."""
    with contextlib.suppress(IndexError):
        place = RunFolder.from_path(path)
        return place if place.target == path else None
    return None


def of_cell(folder: Path) -> list[FinishedRun]:
    """The finished runs of all seeds of a cell, in the order of their names.

    Args:
        folder: results/EXPERIMENT/runs/.../RECIPE.

    Raises:
        SeedbedError: it has no finished run; or see `read`.
    """
    seeds = sorted(path.parent for path in folder.glob("seed*/run.json"))
    if not seeds:
        raise _no_run(folder)
    return [read(seed) for seed in seeds]


def _no_run(path: Path) -> SeedbedError:
    if (path.parent / "run.json").is_file() or (path / "run.json").is_file():
        hint = f"{path} is a run, and a cell is the folder above it"
    elif any(path.glob("seed*/run.json")):
        hint = "this is a cell: name a seed below it, or ask for all seeds with CELL= (--cell)"
    else:
        hint = "name a folder with a run.json, such as results/demo/runs/.../seed0"
    found = None if path.is_dir() else "no folder"
    return SeedbedError("there is no finished run", where=str(path), found=found, hint=hint)


def _missing(path: Path) -> SeedbedError:
    return SeedbedError(
        "a file that the run was trained on is missing",
        where=str(path),
        hint=f"let the workflow make it again: snakemake --cores 1 {os.path.relpath(path)}",
    )


def _params(record: Mapping[str, Any]) -> dict[str, Any]:
    """The params of a run's rule, from run.json; its model is kept."""
    run, on_cpu = record["run"], record["device"].startswith("cpu")
    settings = {**record["settings"], "family": run["recipe_family"], "swept": run["swept"]}
    params = {
        **run,
        "task": record["task"],
        "settings": settings,
        "evaluation": record["evaluation"],
        "device": "cpu" if on_cpu else "cuda",
        "deterministic": record["deterministic"],
        "cuda_graphs": record["cuda_graphs"],
        "keep_model": True,
    }
    if "metric" in record:
        params["metric"] = record["metric"]
    if METHODS[run["method"]].reads_states:
        params["states"] = EncoderOfStates.of(run["init"], run["init_seed"], settings).name
    if record["cuda_graphs"] and record.get("packed"):
        params["packed"] = True
    if "fused_with" in record:
        params["fused"] = record["fused_with"]
    return params
