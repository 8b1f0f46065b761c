"""MTEB's result files: MODEL/REVISION/TASK.json, with model_meta.json beside it.

`scores` has, by split, an entry for each subset (language) with main_score and, of classification,
scores_per_experiment: the classifier trained anew on other examples.
Source: mteb/results/task_result.py and mteb/abstasks/classification.py.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.outside.by_seed import Value, number, results_of
from seedbed.outside.json_files import field, first_object, json_object, objects
from seedbed.outside.results import Results
from seedbed.outside.wanted import Wanted

META = "model_meta.json"
SPLITS = ("test", "validation", "dev", "train")  # the first one that is there; some tasks have the last alone
ONE_SUBSET = "default"  # its name where a task has no subsets
MAIN = "main_score"
EXPERIMENTS = (
    "MTEB: a seed is an experiment, which trains the classifier on its own draw of training examples."
)
SINGLE = "MTEB: of a task without experiments the files tell one value for each system, called seed 0."


def files_of(folder: Path) -> list[Path]:
    """The result files in a folder, in order."""
    return sorted(path for path in folder.rglob("*.json") if fits(path))


def fits(path: Path) -> bool:
    """Whether a file is a result of MTEB."""
    record = (first_object(path) or {}) if path.suffix == ".json" else {}
    return {"task_name", "scores"} <= record.keys() or {"mteb_dataset_name", "mteb_version"} <= record.keys()


def read(paths: Sequence[Path], wanted: Wanted) -> list[Results]:
    """The results of each task and subset, a value for each experiment, or one where there are none.

    Raises:
        SeedbedError: a file is damaged, or was written before MTEB 1.11; a split or metric is missing; and
            see `by_seed.results_of`.
    """
    values = [value for path in paths for value in _values(path, wanted.metric)]
    repeated = {(value.dataset, value.system) for value in values if value.seed > 0}
    single = any((value.dataset, value.system) not in repeated for value in values)
    notes = [EXPERIMENTS] * bool(repeated) + [SINGLE] * single
    return results_of(values, wanted, paths, "mteb", notes)


def _values(path: Path, metric: str | None) -> list[Value]:
    record, where = json_object(path), str(path)
    by_split = field(record, "scores", dict, where, {})
    split = next((name for name in SPLITS if name in by_split), None)
    if split is None:
        raise SeedbedError(
            "a result of MTEB without scores by split",
            where=where,
            found=", ".join(by_split or record),
            hint="evaluate with MTEB 1.11 or later, which writes scores by split",
        )
    system = _model(path)
    values = []
    for entry in objects(by_split, split, where):
        subset = field(entry, "hf_subset", str, where, ONE_SUBSET)
        dataset = field(record, "task_name", str, where) + ("" if subset == ONE_SUBSET else f" ({subset})")
        place = f"{path}, scores.{split}, {subset}"
        name, found = _of_entry(entry, metric, place)
        values += [Value(dataset, system, seed, name, value, place) for seed, value in enumerate(found)]
    return values


def _model(path: Path) -> str:
    meta = path.with_name(META)
    folder = path.parent.parent.name.replace("__", "/")
    return field(json_object(meta), "name", str, str(meta), folder) if meta.exists() else folder


def _of_entry(entry: Mapping[str, Any], metric: str | None, place: str) -> tuple[str, list[float]]:
    """The metric, and its value by experiment, or the one value of a task without experiments."""
    key = "scores_per_experiment"
    experiments = objects(entry, key, place) if entry.get(key) else []
    name = metric or _main_metric(entry, experiments) or MAIN
    if experiments and name in experiments[0]:
        return name, [number(scores.get(name), name, place) for scores in experiments]
    return name, [number(entry.get(name), name, place)]


def _main_metric(entry: Mapping[str, Any], experiments: Sequence[Mapping[str, Any]]) -> str | None:
    """The metric whose mean over experiments is main_score: the files do not name it."""
    main = entry.get(MAIN)
    if not isinstance(main, (int, float)):
        return None
    for name in experiments[0] if experiments else ():
        found = [value for scores in experiments if isinstance(value := scores.get(name), (int, float))]
        if len(found) == len(experiments) and math.isclose(sum(found) / len(found), main, rel_tol=1e-9):
            return name
    return None
