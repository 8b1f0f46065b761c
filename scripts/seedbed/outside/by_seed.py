"""Results of which only one value a system and seed is known, without examples."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seedbed.core import spelling
from seedbed.core.errors import SeedbedError
from seedbed.outside.arrange import require_two, seed_notes
from seedbed.outside.metrics import bounds_of, outside_bounds, require_more_is_better
from seedbed.outside.results import Results
from seedbed.outside.wanted import Wanted, require_known

NO_METRIC = "let the program evaluate this system again, or leave it out"


@dataclass(frozen=True)
class Value:
    """What a system scored on a dataset with one seed.

    Attributes:
        place: file and line or key, for errors.
    """

    dataset: str
    system: str
    seed: int
    metric: str
    value: float
    place: str


def results_of(
    values: Sequence[Value], wanted: Wanted, files: Sequence[Path], program: str, notes: Sequence[str]
) -> list[Results]:
    """The results of each dataset.

    Args:
        values: of all datasets.
        wanted: the dataset to take, and the bounds.
        files: those that were read.
        program: the format, for the record.
        notes: what a reader has to know, a sentence each.

    Raises:
        SeedbedError: a value is doubled, not finite or out of bounds; systems have different metrics; there
            is one system alone; the dataset is not there.
    """
    of_dataset: dict[str, list[Value]] = {}
    for value in values:
        of_dataset.setdefault(value.dataset, []).append(value)
    if wanted.dataset is not None:
        require_known(wanted.dataset, of_dataset, str(files[0]))
        of_dataset = {wanted.dataset: of_dataset[wanted.dataset]}
    return [_of_dataset(name, own, wanted.bounds, files, program, notes) for name, own in of_dataset.items()]


def _of_dataset(
    dataset: str,
    values: Sequence[Value],
    given: tuple[float, float] | None,
    files: Sequence[Path],
    program: str,
    notes: Sequence[str],
) -> Results:
    metric = values[0].metric
    require_more_is_better(metric, values[0].place)
    bounds = bounds_of(metric, given)
    by_run: dict[tuple[str, int], Value] = {}
    for value in values:
        _check(value, metric, bounds)
        if (other := by_run.setdefault((value.system, value.seed), value)) is not value:
            raise SeedbedError(
                "a system has two results of one dataset and seed",
                where=f"{other.place}, and {value.place}",
                found=f"{value.system}, seed {value.seed}, on {dataset}",
                hint="leave out the file or line of one of them",
            )
    systems = tuple(dict.fromkeys(value.system for value in values))
    require_two(systems, dataset, values[0].place, program)
    seeds = {name: tuple(sorted(seed for system, seed in by_run if system == name)) for name in systems}
    return Results(
        dataset=dataset,
        systems=systems,
        seeds=seeds,
        examples=(),
        metric=metric,
        scores={name: np.zeros((len(seeds[name]), 0), np.float32) for name in systems},
        values=_arrays(seeds, by_run),
        bounds=bounds,
        files=tuple(files),
        format=program,
        notes=(*notes, *seed_notes(systems, seeds, has_seeds=True)),
    )


def _arrays(
    seeds: Mapping[str, Sequence[int]], by_run: Mapping[tuple[str, int], Value]
) -> dict[str, np.ndarray]:
    return {name: np.array([by_run[name, seed].value for seed in own]) for name, own in seeds.items()}


def _check(value: Value, metric: str, bounds: tuple[float, float]) -> None:
    if value.metric != metric:
        raise SeedbedError(
            "systems were scored by different metrics on one dataset",
            where=value.place,
            found=f"{value.metric} of {value.system}; the first system has {metric}",
            hint="choose a metric that all have",
        )
    if not math.isfinite(value.value):
        raise SeedbedError(
            "a score is not a finite number",
            where=value.place,
            found=f"{metric} of {value.system}, seed {value.seed}: {value.value}",
            hint="run this seed again, or leave it out",
        )
    if outside_bounds(np.array([value.value]), bounds) is not None:
        raise SeedbedError(
            f"a score of {metric} is out of its bounds, {bounds[0]:g} and {bounds[1]:g}",
            where=value.place,
            found=f"{value.value:g}",
            hint="correct it, or give the bounds of the scores: 0,100 of percentages",
        )


def number(value: object, metric: str, place: str) -> float:
    """A value as float.

    Raises:
        SeedbedError: it is no number.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise SeedbedError(
        f"the value of {metric} is no number",
        where=place,
        found=repr(value),
        hint="run this evaluation again, or choose another metric",
    )


def chosen_metric(wanted: str | None, there: Sequence[str], default: str | None, place: str) -> str:
    """The metric that a user names, or else the default.

    Raises:
        SeedbedError: it is not there, or none was named and there is no default.
    """
    metric = wanted or default
    if metric in there and metric is not None:
        return metric
    what = "there are several metrics" if there else "there is no metric that is known"
    raise SeedbedError(
        f"there is no metric {wanted!r}" if wanted else what,
        where=place,
        found=", ".join(there) or None,
        hint=f"{spelling.nearest(wanted or '', there)}name one of them as metric" if there else NO_METRIC,
    )
