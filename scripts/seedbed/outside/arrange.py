"""From a row for each system, seed and example to arrays by system, with all checks of their contents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from seedbed.core.errors import SeedbedError
from seedbed.outside.classes import numbered, require_one_way
from seedbed.outside.long_table import Column, LongTable
from seedbed.outside.metrics import bounds_of, outside_bounds, require_more_is_better
from seedbed.outside.results import Results
from seedbed.outside.wanted import require_known

SHOWN = 3  # examples that an error names


@dataclass(frozen=True)
class Runs:
    """The runs of one dataset, each a system and a seed, in the order of the files.

    Attributes:
        names: by run, its system and its seed.
        of_rows: (rows,) int64, the run of each row.
    """

    names: Sequence[tuple[str, int]]
    of_rows: np.ndarray


def arrange(
    table: LongTable, dataset: str | None = None, bounds: tuple[float, float] | None = None
) -> list[Results]:
    """The results of each dataset of a table.

    Args:
        table: all rows.
        dataset: the one to take; in a table without datasets, its name. None: all.
        bounds: least and largest possible score; None: those of the metric, if they are known by its name.

    Raises:
        SeedbedError: rows are doubled; examples, their labels or clusters differ between runs; classes are
            written in two ways; a seed is no integer; a score is out of bounds; there is one system alone.
    """
    require_more_is_better(table.metric, str(table.parts[0].path))
    if "dataset" not in table.columns:
        return [_arrange(table, np.arange(len(table.columns["system"].codes)), dataset or "", bounds)]
    column = table.columns["dataset"].at(np.arange(len(table.columns["dataset"].codes)))
    if dataset is not None:
        require_known(dataset, column.names, str(table.parts[0].path))
    wanted = column.names if dataset is None else [dataset]
    # one sort instead of a scan for each dataset
    order = np.argsort(column.codes, kind="stable")
    ends = np.cumsum(np.bincount(column.codes, minlength=len(column.names)))
    rows = dict(zip(column.names, np.split(order, ends[:-1]), strict=True))
    return [_arrange(table, rows[name], name, bounds) for name in wanted]


def _arrange(table: LongTable, rows: np.ndarray, dataset: str, bounds: tuple[float, float] | None) -> Results:
    """The results of the dataset whose `rows` these are."""
    runs = _runs(table, rows)
    systems = tuple(dict.fromkeys(system for system, _ in runs.names))
    require_two(systems, dataset, str(table.parts[0].path), table.format)
    examples = table.columns["example"].at(rows)
    at = _cells(table, rows, runs, examples, dataset)
    labels = predictions = None
    classes: tuple[str, ...] = ()
    if table.scores is None:
        classes, labels, predictions = _classes(table, rows, at)
        scores = (predictions == labels).astype(np.float32)
    else:
        scores = table.scores[rows][at]
    own_bounds = bounds_of(table.metric, bounds)
    _require_within(scores, own_bounds, table, rows, at)
    of_system = {system: _places(runs, system) for system in systems}
    return Results(
        dataset=dataset,
        systems=systems,
        seeds={name: tuple(runs.names[run][1] for run in of_system[name]) for name in systems},
        examples=tuple(examples.names),
        metric=table.metric,
        scores={name: scores[of_system[name]] for name in systems},
        values={name: scores[of_system[name]].mean(axis=1, dtype=np.float64) for name in systems},
        bounds=own_bounds,
        labels=labels,
        predictions=None if predictions is None else {name: predictions[of_system[name]] for name in systems},
        classes=classes,
        clusters=_of_examples("cluster", table, rows, at) if "cluster" in table.columns else None,
        files=tuple(part.path for part in table.parts),
        format=table.format,
        taken=table.taken,
        notes=(*table.notes, *seed_notes(systems, of_system, "seed" in table.columns)),
    )


def require_two(systems: Sequence[str], dataset: str, where: str, program: str) -> None:
    """Refuse results of one system.

    Args:
        systems: those of the dataset.
        dataset, where, program: the dataset, file and format, for the error.

    Raises:
        SeedbedError: there is no other one to compare it with.
    """
    if len(systems) < 2:
        other = "the column of systems: system=NAME in columns" if program == "table" else "another dataset"
        raise SeedbedError(
            "there is one system alone, and nothing to compare it with",
            where=f"{where}{_of(dataset)}",
            found=", ".join(systems),
            hint=f"name the files of another system, too, or {other}",
        )


def seed_notes(systems: Sequence[str], of_system: Mapping[str, Sequence[int]], has_seeds: bool) -> list[str]:
    """What a reader has to know of the seeds, a sentence each."""
    if not has_seeds:
        return ["The files name no seeds: each system has one run, called seed 0."]
    single = [name for name in systems if len(of_system[name]) == 1]
    if not single:
        return []
    verb = "has" if len(single) == 1 else "have"
    return [
        f"{', '.join(single)} {verb} one seed, which cannot show how much results vary from seed to seed."
    ]


# --- runs and examples --------------------------------------------------------------------------------------


def _runs(table: LongTable, rows: np.ndarray) -> Runs:
    """The runs of the rows; of a system, in the order of seeds."""
    systems = table.columns["system"].at(rows)
    if "seed" not in table.columns:
        return Runs([(name, 0) for name in systems.names], systems.codes.astype(np.int64))
    seeds = table.columns["seed"].at(rows)
    numbers = np.array([_integer(name, table, rows, seeds, code) for code, name in enumerate(seeds.names)])
    distinct, places = np.unique(numbers, return_inverse=True)  # 1 and 01 are the same
    pairs = systems.codes.astype(np.int64) * len(distinct) + places[seeds.codes]
    there, of_rows = _numbered(pairs, len(systems.names) * len(distinct))
    return Runs(
        [(systems.names[pair // len(distinct)], int(distinct[pair % len(distinct)])) for pair in there],
        of_rows,
    )


def _numbered(codes: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The codes that occur, sorted, and the place of each row's code among them; all are below `size`."""
    there = np.flatnonzero(np.bincount(codes, minlength=size))
    place = np.zeros(size, np.int64)
    place[there] = np.arange(len(there))
    return there, place[codes]


def _integer(name: str, table: LongTable, rows: np.ndarray, seeds: Column, code: int) -> int:
    return integer(name, table.place(int(rows[(seeds.codes == code).argmax()])))


def integer(name: str, place: str) -> int:
    """A seed.

    Raises:
        SeedbedError: it is no integer.
    """
    try:
        return int(name)
    except ValueError:
        raise SeedbedError(
            "a seed is not an integer",
            where=place,
            found=repr(name),
            hint="number the seeds 0, 1, 2, or name another column: seed=NAME in columns",
        ) from None


def _places(runs: Runs, system: str) -> list[int]:
    return [place for place, (name, _) in enumerate(runs.names) if name == system]


def _cells(table: LongTable, rows: np.ndarray, runs: Runs, examples: Column, dataset: str) -> np.ndarray:
    """The place in `rows` of each run's examples, integers of shape (runs, examples).

    Raises:
        SeedbedError: a run has an example twice, or lacks one that another run has.
    """
    n_runs, n_examples = len(runs.names), len(examples.names)
    counts = np.bincount(runs.of_rows, minlength=n_runs)
    if n_runs * n_examples > 4 * len(rows):  # so many are missing that their table would not fit into memory
        raise _lacking(runs, int(counts.argmin()), examples, dataset, table)
    cells = runs.of_rows * n_examples + examples.codes
    places = np.arange(len(rows), dtype=np.int32 if len(rows) < 2**31 else np.int64)
    at: np.ndarray = np.full(n_runs * n_examples, -1, places.dtype)
    at[cells] = places
    twice = at[cells] != places  # of several rows the last one stays
    if twice.any():
        first = int(twice.argmax())
        raise _doubled(table, rows, first, int(at[cells[first]]), runs, examples, int(twice.sum()))
    by_run: np.ndarray = at.reshape(n_runs, n_examples)
    lacking = (by_run < 0).any(axis=1)
    if lacking.any():
        raise _lacking(runs, int(lacking.argmax()), examples, dataset, table)
    return by_run


def _doubled(
    table: LongTable, rows: np.ndarray, one: int, other: int, runs: Runs, examples: Column, count: int
) -> SeedbedError:
    system, seed = runs.names[runs.of_rows[one]]
    if table.format != "table":
        hint = "leave one of the two files out"
    elif "seed" in table.columns:
        hint = "delete one; if they are of two datasets, name the column of datasets: dataset=NAME in columns"
    else:
        hint = "if they are of two seeds, name the column of seeds: seed=NAME in columns; else delete one"
    return SeedbedError(
        "a system has an example twice in one seed",
        where=f"{table.place(int(rows[one]))}, and {table.place(int(rows[other]))}",
        found=f"example {examples.of(one)} of {system}, seed {seed}" + _more(count - 1),
        hint=hint,
    )


def _lacking(runs: Runs, run: int, examples: Column, dataset: str, table: LongTable) -> SeedbedError:
    there = np.zeros(len(examples.names), bool)
    there[examples.codes[runs.of_rows == run]] = True
    missing = np.flatnonzero(~there)
    system, seed = runs.names[run]
    some = ", ".join(examples.names[place] for place in missing[:SHOWN])
    return SeedbedError(
        "the systems were not scored on the same examples",
        where=f"{table.parts[0].path}{_of(dataset)}: {system}, seed {seed}",
        found=f"it lacks {len(missing):,} of {len(there):,} examples: {some}{_more(len(missing) - SHOWN)}",
        hint="score these examples, too, or leave them out for all systems and seeds",
    )


# --- labels, predictions and scores -------------------------------------------------------------------------


def _classes(
    table: LongTable, rows: np.ndarray, at: np.ndarray
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Classes in sorted order, labels (examples,) and predictions (runs, examples), int32."""
    labels, predictions = (table.columns[role].at(rows) for role in ("label", "prediction"))
    require_one_way(table, rows, labels, predictions)
    classes, of_labels, of_predictions = numbered(labels, predictions)
    return classes, of_labels[_of_examples("label", table, rows, at)], of_predictions[predictions.codes[at]]


def _of_examples(role: str, table: LongTable, rows: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The codes of what an example has in all runs alike, (examples,) int32.

    Raises:
        SeedbedError: it differs between two runs.
    """
    column = table.columns[role].at(rows)
    codes = column.codes[at]
    differs = codes != codes[0]
    if differs.any():
        run, example = np.unravel_index(differs.argmax(), differs.shape)
        one, other = int(at[0, example]), int(at[run, example])
        raise SeedbedError(
            f"the {role} of an example differs between two runs",
            where=f"{table.place(int(rows[one]))}, and {table.place(int(rows[other]))}",
            found=f"{column.of(one)} and {column.of(other)}{_more(int(differs.any(axis=0).sum()) - 1)}",
            hint=f"give each example the same id and {role} in all runs",
        )
    return codes[0]


def _require_within(
    scores: np.ndarray, bounds: tuple[float, float], table: LongTable, rows: np.ndarray, at: np.ndarray
) -> None:
    if (wrong := outside_bounds(scores, bounds)) is not None:
        raise SeedbedError(
            f"a score of {table.metric} is out of its bounds, {bounds[0]:g} and {bounds[1]:g}",
            where=table.place(int(rows[at.flat[wrong]])),
            found=f"{scores.flat[wrong]:g}",
            hint="correct it, or give the bounds of the scores: 0,100 of percentages",
        )


def _more(count: int) -> str:
    return f"; and {count:,} more" if count > 0 else ""


def _of(dataset: str) -> str:
    return f", dataset {dataset}" if dataset else ""
