"""Output folders of run_glue.py and run_classification.py of Transformers, one for each run.

predict_results_TASK.txt (run_glue.py) or predict_results.txt has a line for each text of the test set: its
index, a tab, and the predicted class; it has no labels. eval_results.json, or all_results.json, has the
metrics of the validation set, such as eval_accuracy.
Source: examples/pytorch/text-classification.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from seedbed.core.errors import SeedbedError
from seedbed.outside.arrange import arrange
from seedbed.outside.by_seed import Value, chosen_metric, number, results_of
from seedbed.outside.columns import NAMES
from seedbed.outside.json_files import json_object
from seedbed.outside.long_table import LongTable, Part, column_of
from seedbed.outside.metrics import plain
from seedbed.outside.results import Results
from seedbed.outside.tables import read_texts
from seedbed.outside.wanted import Wanted

PREDICTIONS = re.compile(r"predict_results(_(?P<task>.+))?\.txt")
METRICS = ("eval_results.json", "all_results.json")  # the first one that is there
NO_SCORES = frozenset({"loss", "runtime", "samples", "samples_per_second", "steps_per_second"})
INDEX = ("index", *NAMES["example"])
LAST_PART = re.compile(r"(?P<system>.*?)(^|[_-])(seed|run)?[_-]?(?P<seed>\d+)", re.IGNORECASE)
NAMED = re.compile(r"\{(system|seed|dataset)\}")
NO_LABELS = (
    "run_glue.py: the values are of the validation set, from eval_results.json. Predictions of the test set "
    "were not used, since their files have no labels: name a table with the labels to use them."
)


class Run(NamedTuple):
    """A folder, and the run that its path names."""

    folder: Path
    system: str
    seed: int
    dataset: str


def files_of(folder: Path) -> list[Path]:
    """The folders of runs below a folder, in order."""
    found = [
        *folder.rglob("predict_results*.txt"),
        *(path for name in METRICS for path in folder.rglob(name)),
    ]
    return sorted({path.parent for path in found if fits(path)})


def fits(path: Path) -> bool:
    """Whether a file belongs to a run of these scripts."""
    return path.name in METRICS or PREDICTIONS.fullmatch(path.name) is not None


def read(paths: Sequence[Path], wanted: Wanted) -> list[Results]:
    """The results of each dataset: by example if `wanted.labels` names a table of labels, else by seed.

    Args:
        paths: folders of runs, or files in them.
        wanted: `folders` says where a path names system, seed and dataset; by default the folder of a run is
            called SEED or seedSEED in a folder SYSTEM, or SYSTEM_seedSEED.

    Raises:
        SeedbedError: a file is missing or damaged; a path does not fit the pattern; a prediction has no
            label; and see `arrange` and `by_seed.results_of`.
    """
    folders = dict.fromkeys(path if path.is_dir() else path.parent for path in paths)
    runs = [_run(folder, wanted.folders) for folder in folders]
    if wanted.labels is not None:
        return arrange(_table(runs, wanted.labels, wanted.dataset), wanted.dataset, wanted.bounds)
    files = [_metrics_file(run.folder) for run in runs]
    values = [_value(run, file, wanted.metric) for run, file in zip(runs, files, strict=True)]
    return results_of(values, wanted, files, "run_glue", [NO_LABELS])


# --- names --------------------------------------------------------------------------------------------------


def _run(folder: Path, pattern: str | None) -> Run:
    parts = folder.resolve().parts
    if pattern:
        return _by_pattern(folder, "/".join(parts), pattern)
    last = LAST_PART.fullmatch(parts[-1])
    if last is None:
        return Run(folder, parts[-1], 0, "")
    return Run(folder, last["system"] or parts[-2], int(last["seed"]), "")


def _by_pattern(folder: Path, path: str, pattern: str) -> Run:
    pieces = NAMED.split(pattern.strip("/"))  # text and names in turn
    names = pieces[1::2]
    if "system" not in names or len(set(names)) < len(names):
        raise SeedbedError(
            "a pattern of folders must have {system} once, and {seed} and {dataset} at most once",
            where="folders",
            found=pattern,
            hint="write it like {dataset}/{system}/seed{seed}",
        )
    kinds = {"system": r"(?P<system>[^/]+)", "seed": r"(?P<seed>\d+)", "dataset": r"(?P<dataset>[^/]+)"}
    expression = "".join(
        kinds[piece] if place % 2 else re.escape(piece) for place, piece in enumerate(pieces)
    )
    match = re.search(f"(?:^|/){expression}$", path)
    if match is None:
        raise SeedbedError(
            "a folder does not fit the pattern of folders",
            where=str(folder),
            found=f"the pattern {pattern}",
            hint="name the last parts of the path, with {seed} for a whole number",
        )
    found = match.groupdict()
    return Run(folder, found["system"], int(found.get("seed") or 0), found.get("dataset") or "")


# --- predictions --------------------------------------------------------------------------------------------


def _table(runs: Sequence[Run], labels: Path, dataset: str | None) -> LongTable:
    known = _labels(labels)
    rows: list[tuple[str, ...]] = []
    parts = []
    for run in runs:
        for path, task in _prediction_files(run.folder):
            name = run.dataset or task
            if dataset in (None, name) or not name:
                parts.append(Part(path, len(rows), 2))
                rows += [
                    (run.system, str(run.seed), *cells, name) for cells in _labelled(path, known, labels)
                ]
    _require_one_dataset(sorted({row[-1] for row in rows}), labels)
    roles = ("system", "seed", "example", "label", "prediction", "dataset")
    columns = dict(zip(roles, map(column_of, zip(*rows, strict=True)), strict=True))
    if columns["dataset"].names == [""]:
        del columns["dataset"]
    return LongTable(columns=columns, scores=None, metric="accuracy", parts=parts, format="run_glue")


def _labelled(path: Path, known: Mapping[str, str], labels: Path) -> Iterator[tuple[str, str, str]]:
    """Index, label and prediction of each text in a file of predictions."""
    found = read_texts(path)
    _require_columns(found, path)
    for index, prediction in zip(found["index"], found["prediction"], strict=True):
        if index not in known:
            raise SeedbedError(
                "a predicted text has no label",
                where=str(path),
                found=f"index {index}; {labels} has {len(known):,} labels",
                hint="give the labels of the test set, in its order, or with a column index",
            )
        yield index, known[index], prediction


def _require_one_dataset(names: Sequence[str], labels: Path) -> None:
    if len(names) != 1:
        raise SeedbedError(
            "a table of labels is of one dataset",
            where=str(labels),
            found=f"predictions of {', '.join(names) or 'none'}",
            hint="choose the dataset whose labels these are",
        )


def _prediction_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """The files of predictions of a run, each with its task; of run_classification.py the task is empty."""
    found = [
        (path, named) for path in sorted(folder.iterdir()) if (named := PREDICTIONS.fullmatch(path.name))
    ]
    if not found:
        raise SeedbedError(
            "the folder of a run has no predictions",
            where=str(folder),
            found=", ".join(sorted(path.name for path in folder.iterdir())[:10]) or "an empty folder",
            hint="run the script with --do_predict, or leave labels out to compare values by seed",
        )
    for path, named in found:
        yield path, named["task"] or ""


def _require_columns(table: Mapping[str, Sequence[str]], path: Path) -> None:
    if not {"index", "prediction"} <= set(table):
        raise SeedbedError(
            "a file of predictions must have the columns index and prediction",
            where=f"{path}, line 1",
            found=f"the columns {', '.join(table)}",
            hint="give the file as the script wrote it",
        )


def _labels(path: Path) -> Mapping[str, str]:
    """By index the label; without a column of indices, the number of the row, from 0."""
    table = read_texts(path)
    column = _one_of(table, NAMES["label"], path)
    index = next((name for name in INDEX if name in table), None)
    labels = table[column]
    keys = table[index] if index else [str(row) for row in range(len(labels))]
    return dict(zip(keys, labels, strict=True))


def _one_of(table: Mapping[str, Sequence[str]], names: Sequence[str], path: Path) -> str:
    found = [name for name in names if name in table]
    if len(found) == 1:
        return found[0]
    raise SeedbedError(
        "the table of labels must have one column of labels",
        where=f"{path}, line 1",
        found=f"the columns {', '.join(table)}",
        hint="call the column label",
    )


# --- values by seed -----------------------------------------------------------------------------------------


def _metrics_file(folder: Path) -> Path:
    for name in METRICS:
        if (folder / name).exists():
            return folder / name
    raise SeedbedError(
        "the folder of a run has no metrics",
        where=str(folder),
        found=f"neither {METRICS[0]} nor {METRICS[1]}",
        hint="run the script with --do_eval, or name a table with the labels of the test set",
    )


def _value(run: Run, file: Path, wanted: str | None) -> Value:
    found = {
        plain(key): value
        for key, value in json_object(file).items()
        if key.startswith("eval_") and plain(key) not in NO_SCORES
    }
    default = "accuracy" if "accuracy" in found else next(iter(found), None) if len(found) == 1 else None
    metric = chosen_metric(wanted and plain(wanted), list(found), default, str(file))
    value = number(found[metric], metric, str(file))
    return Value(run.dataset, run.system, run.seed, metric, value, f"{file}, eval_{metric}")
