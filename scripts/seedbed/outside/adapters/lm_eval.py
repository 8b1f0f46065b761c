"""Samples of lm-evaluation-harness: samples_TASK_DATE.jsonl, beside results_DATE.json.

The option --log_samples writes them. Each line has doc_id, doc_hash, filtered_resps, and the value of each
metric. Since 0.4.6 it also has `filter`, and `metrics`, the names of the metrics; before, every other key
with a number is one. A task with several filters has each document once for each of them.
Source: lm_eval/evaluator.py and lm_eval/loggers/evaluation_tracker.py.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seedbed.core.errors import SeedbedError
from seedbed.outside.arrange import arrange
from seedbed.outside.by_seed import chosen_metric
from seedbed.outside.json_files import field, first_object, json_lines, json_object
from seedbed.outside.long_table import LongTable, Part, column_of
from seedbed.outside.results import Results
from seedbed.outside.wanted import Wanted, require_known

NAME = re.compile(r"samples_(?P<task>.+?)(_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+))?\.jsonl")
USUAL = ("acc", "exact_match")  # the metric that is taken if a task has several, in this order
NO_FILTER = "none"  # its name where answers are taken as they are
NO_METRICS = ("doc_id", "target")  # keys with numbers that are no metrics, for versions that list none
ONE_SEED = "lm-evaluation-harness: seed is fewshot_seed of results_DATE.json (0 without that file)."


class Measure(NamedTuple):
    """The scores that are taken; `chosen`: the user named the filter."""

    metric: str
    filter: str
    chosen: bool


class Sample(NamedTuple):
    """A line: what a model scored on a document; `document` is its hash, or empty."""

    system: str
    seed: str
    example: str
    score: float
    document: str
    place: str


def files_of(folder: Path) -> list[Path]:
    """The files of samples in a folder, in order."""
    return sorted(path for path in folder.rglob("samples_*.jsonl") if NAME.fullmatch(path.name))


def fits(path: Path) -> bool:
    """Whether a file is one of samples."""
    return path.suffix == ".jsonl" and {"doc_id", "filtered_resps"} <= (first_object(path) or {}).keys()


def read(paths: Sequence[Path], wanted: Wanted) -> list[Results]:
    """The results of each task.

    Args:
        paths: files of samples.
        wanted: a task as `dataset`; a metric, also with its filter, as in exact_match,strict-match.

    Raises:
        SeedbedError: a file is damaged; a metric is not there or not a number; the documents of a task differ
            between models; and see `arrange`.
    """
    tasks: dict[str, list[Path]] = {}
    for path in paths:
        tasks.setdefault(_task(path), []).append(path)
    if wanted.dataset is not None:
        require_known(wanted.dataset, tasks, str(paths[0]))
        tasks = {wanted.dataset: tasks[wanted.dataset]}
    results = []
    for task, files in tasks.items():
        results += arrange(_table(task, files, wanted.metric), wanted.dataset, wanted.bounds)
    return results


def _task(path: Path) -> str:
    named = NAME.fullmatch(path.name)
    return named["task"] if named else path.stem


def _table(task: str, files: Sequence[Path], metric: str | None) -> LongTable:
    samples: list[Sample] = []
    parts = []
    measure = None
    for path in files:
        parts.append(Part(path, len(samples), 1))
        system, seed, harmful = _run(path, task)
        for line, record in json_lines(path):
            place = f"{path}, line {line}"
            if measure is None:
                measure = _measure(record, metric, place)
                _require_not_harmful(measure.metric, harmful, place)
            if _is_of(measure, record, place):
                samples.append(_sample(record, system, seed, measure.metric, place))
    if measure is None or not samples:
        raise SeedbedError(
            "no sample has the filter of the metric",
            where=str(files[0]),
            found=metric,
            hint="name a filter of results_DATE.json after the metric, or the metric alone",
        )
    filtered = () if measure.filter == NO_FILTER else (f"The answers were filtered by {measure.filter}.",)
    _require_same_documents(samples)
    systems, seeds, examples, scores, *_ = zip(*samples, strict=True)
    return LongTable(
        columns={
            "system": column_of(systems),
            "seed": column_of(seeds),
            "example": column_of(examples),
            "dataset": column_of([task] * len(samples)),
        },
        scores=np.array(scores, np.float32),
        metric=measure.metric,
        parts=parts,
        unit="sample" if measure.filter == NO_FILTER else f"sample of {measure.filter},",
        format="lm-eval",
        notes=(ONE_SEED, *filtered),
    )


def _run(path: Path, task: str) -> tuple[str, int, Sequence[str]]:
    """The model, the seed, and the metrics of which less is better, by results_DATE.json if it is there."""
    named = NAME.fullmatch(path.name)
    beside = path.with_name(f"results_{named['date']}.json") if named and named["date"] else None
    if beside is None or not beside.exists():
        return path.parent.name, 0, ()
    results, where = json_object(beside), str(beside)
    config = field(results, "config", dict, where, {})
    better = field(field(results, "higher_is_better", dict, where, {}), task, dict, where, {})
    return (
        field(results, "model_name", str, where, path.parent.name),
        field(config, "fewshot_seed", int, where, field(config, "random_seed", int, where, 0)),
        [metric for metric, higher in better.items() if higher is False],
    )


def _measure(record: Mapping[str, Any], wanted: str | None, place: str) -> Measure:
    """The metric and filter that a user names as METRIC or METRIC,FILTER; else a usual metric."""
    name, _, filtered = (wanted or "").partition(",")
    numbers = [key for key, value in record.items() if _is_metric(key, value)]
    there = [str(metric) for metric in field(record, "metrics", list, place, numbers)]
    usual = [metric for metric in USUAL if metric in there]
    default = usual[0] if usual else there[0] if len(there) == 1 else None
    metric = chosen_metric(name, there, default, place)
    return Measure(metric, filtered or _filter_of(record, place), bool(filtered))


def _is_metric(key: str, value: Any) -> bool:
    return isinstance(value, (int, float)) and key not in NO_METRICS


def _is_of(measure: Measure, record: Mapping[str, Any], place: str) -> bool:
    """Whether a sample has the filter; another one is refused, unless the user chose between them."""
    other = _filter_of(record, place)
    if other == measure.filter or measure.chosen:
        return other == measure.filter
    raise SeedbedError(
        "the answers were filtered in several ways",
        where=place,
        found=f"the filters {measure.filter} and {other}",
        hint=f"choose one with the metric: {measure.metric},{measure.filter}",
    )


def _filter_of(record: Mapping[str, Any], place: str) -> str:
    return field(record, "filter", str, place, NO_FILTER)


def _sample(record: Mapping[str, Any], system: str, seed: int, metric: str, place: str) -> Sample:
    value = record.get(metric)
    if not isinstance(value, (int, float)) or not np.isfinite(value):
        raise SeedbedError(
            "a sample has no number for the metric",
            where=place,
            found=f"{metric}: {str(value)[:100]}",
            hint="choose a metric with a number for each document, such as acc or exact_match",
        )
    document = field(record, "doc_id", int, place)
    return Sample(system, str(seed), str(document), value, field(record, "doc_hash", str, place, ""), place)


def _require_not_harmful(metric: str, harmful: Sequence[str], place: str) -> None:
    if metric in harmful:
        raise SeedbedError(
            "less is better of this metric, and systems are compared by scores of which more is better",
            where=place,
            found=metric,
            hint="choose another metric of the task",
        )


def _require_same_documents(samples: Sequence[Sample]) -> None:
    known: dict[str, str] = {}
    for sample in samples:
        own = sample.document
        if own and known.setdefault(sample.example, own) != own:
            raise SeedbedError(
                "one doc_id stands for two documents",
                where=sample.place,
                found=f"doc_id {sample.example}, whose doc_hash differs from that of a sample before",
                hint="evaluate all models with the same version of the task",
            )
