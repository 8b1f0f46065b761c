"""What each init gets right, test example by test example, and how many examples differ between them.

Pure functions from arrays of predictions (seeds x examples) to plain rows. What is not defined is None. Sets
of labels count as classes: see `diagnostics.with_classes`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seedbed.analysis.predictions import ARRAYS, CellPredictions
from seedbed.analysis.table_rows import RunRow, SummaryRow
from seedbed.core.rows import CELL, Row, grouped
from seedbed.core.tasks import NO_PREDICTION

INITS = ("pretrained", "random")
PLACE = ("dataset", "model", "recipe_family")
MOST = 0.5  # share of runs: right in most runs is above it, wrong in most runs is below it
OF_AN_INIT = ("runs", "right", "prediction", "label_probability", "wrong_confidence")
COLUMNS: dict[str, tuple[str, ...]] = {
    "example_errors": (
        *PLACE,
        "example",
        "label",
        "leaked",
        *(f"{name}_{init}" for name in OF_AN_INIT for init in INITS),
        "right_difference",
    ),
    "example_gains": (
        *PLACE,
        "examples",
        *(f"runs_{init}" for init in INITS),
        *(f"only_{init}" for init in INITS),
        "gained",
        "lost",
        *(f"swapped_{init}" for init in INITS),
    ),
}

Key = tuple[str, ...]
# by init and framework, the predictions of the runs that did not collapse
Sides = dict[str, dict[str, CellPredictions]]


def tabulate(
    runs: Iterable[RunRow],
    cells: Mapping[Key, CellPredictions],
    summary: Iterable[SummaryRow],
    leaks: Mapping[str, Collection[str]],
) -> dict[str, list[Row]]:
    """Rows of the tables of `COLUMNS`, by name: for each dataset, model and family of recipes.

    The runs of both frameworks count together. Where a family is swept, each init of each framework is at the
    recipe that validation chose. Collapsed runs do not count: they get every other class wrong.

    Args:
        runs: rows of runs.csv; those of a cell stand in the order of the rows of its predictions.
        cells: predictions on test by (dataset, model, framework, init, recipe). A cell may be missing.
        summary: rows of summary.csv.
        leaks: ids of the test examples that also stand in another split, by dataset.
    """
    errors: list[Row] = []
    gains: list[Row] = []
    for place, sides in _sides(runs, cells, summary).items():
        names = dict(zip(PLACE, place, strict=True))
        errors += [{**names, **row} for row in _error_rows(sides, leaks.get(place[0], ()))]
        gains.append({**names, **_gain_row(sides)})
    return {"example_errors": errors, "example_gains": gains}


def _sides(
    runs: Iterable[RunRow], cells: Mapping[Key, CellPredictions], summary: Iterable[SummaryRow]
) -> dict[Key, Sides]:
    """The runs that count, by PLACE; a side without any is missing."""
    by_cell = grouped(runs, *CELL)
    found: dict[Key, Sides] = {}
    for row in _chosen(summary):
        sound = [not run.collapsed for run in by_cell[row.cell]]
        if row.cell in cells and any(sound):
            sides = found.setdefault(tuple(row[key] for key in PLACE), {})
            sides.setdefault(row.init, {})[row.framework] = _rows(cells[row.cell], np.array(sound))
    return found


def _chosen(summary: Iterable[SummaryRow]) -> list[SummaryRow]:
    """One row for each family of recipes, framework and init: of the recipe that validation chose."""
    chosen: dict[Key, SummaryRow] = {}
    for row in summary:
        key = tuple(row[name] for name in (*PLACE, "framework", "init"))
        if key not in chosen or (row.selection == "best" and chosen[key].selection != "best"):
            chosen[key] = row
    return list(chosen.values())


def _rows(cell: CellPredictions, kept: np.ndarray) -> CellPredictions:
    """The predictions of some seeds: those where `kept`, (seeds,) bool, is true."""
    arrays: dict[str, Any] = {name: getattr(cell, name)[kept] for name in ARRAYS}
    return replace(cell, **arrays)


# --- example by example -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _OfExamples:
    """What the runs of an init do with each example.

    Attributes:
        runs: how many there are.
        right: (examples,) the share of runs that get it right.
        prediction: (examples,) code of what they predict most often; of equally common ones no prediction
            comes first, then the first class.
        label_probability: (examples,) mean probability of the label; NaN where no run has one.
        wrong_confidence: (examples,) mean over the runs that are wrong of the probability of what they
            predict; NaN where no run is wrong, or none has a probability.
    """

    runs: int
    right: np.ndarray
    prediction: np.ndarray
    label_probability: np.ndarray
    wrong_confidence: np.ndarray

    @classmethod
    def of(cls, cell: CellPredictions) -> "_OfExamples":
        wrong = ~cell.correct & ~np.isnan(cell.confidence)
        return cls(
            runs=len(cell.predicted),
            right=cell.correct.mean(axis=0),
            prediction=_most_common(cell.predicted),
            label_probability=_means(np.exp(-cell.loss.astype(np.float64)), ~np.isnan(cell.loss)),
            wrong_confidence=_means(cell.confidence.astype(np.float64), wrong),
        )


def _most_common(codes: np.ndarray) -> np.ndarray:
    """(examples,) the code that most seeds have; of equally common ones the smallest.

    As scipy.stats.mode, whose import takes half a second.

    Args:
        codes: (seeds, examples).
    """
    found = np.unique(codes)
    return found[np.argmax([(codes == code).sum(axis=0) for code in found], axis=0)]


def _means(values: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """(examples,) the means over the seeds that count; NaN where none does.

    Args:
        values: (seeds, examples).
        counted: (seeds, examples) bool.
    """
    totals, counts = np.where(counted, values, 0).sum(axis=0), counted.sum(axis=0)
    return np.divide(totals, counts, out=np.full(len(totals), np.nan), where=counts > 0)


def _error_rows(sides: Sides, leaked: Collection[str]) -> Iterator[Row]:
    """The examples that at least half the runs of one init get wrong."""
    told = {init: _OfExamples.of(CellPredictions.stacked(list(of.values()))) for init, of in sides.items()}
    first = _first(sides)
    worth_a_row = np.any([of.right <= MOST for of in told.values()], axis=0)
    for index in np.flatnonzero(worth_a_row).tolist():
        row: dict[str, Any] = {
            "example": first.ids[index],
            "label": first.names[first.labels[index]],
            "leaked": first.ids[index] in leaked,
        }
        for init in INITS:
            row |= _of_init(init, told.get(init), index, first.names)
        both = all(init in told for init in INITS)
        row["right_difference"] = row["right_pretrained"] - row["right_random"] if both else None
        yield row


def _of_init(init: str, of: _OfExamples | None, index: int, names: Sequence[str]) -> Row:
    """The columns of an init; empty where it has no runs."""
    if of is None:
        return {f"{name}_{init}": None for name in OF_AN_INIT}
    code = int(of.prediction[index])
    return {
        f"runs_{init}": of.runs,
        f"right_{init}": float(of.right[index]),
        f"prediction_{init}": NO_PREDICTION if code < 0 else names[code],
        f"label_probability_{init}": _number(of.label_probability[index]),
        f"wrong_confidence_{init}": _number(of.wrong_confidence[index]),
    }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _first(sides: Sides) -> CellPredictions:
    """A cell of these sides, which all have the same examples and classes."""
    return next(cell for of in sides.values() for cell in of.values())


# --- how many examples --------------------------------------------------------------------------------------


def _gain_row(sides: Sides) -> Row:
    """How many examples differ between the inits, and between two runs of one init.

    `only_INIT` counts the examples that most runs of the init get right and most of the other wrong. The
    others are means over pairs of runs of one framework, averaged over frameworks: of examples that a run of
    the checkpoint gets right and one of random weights wrong (gained), the reverse (lost), and that the first
    of two runs of one init gets right and the second wrong (swapped). Gained minus lost is the difference of
    the inits' mean numbers of right examples. If the inits did not differ, all four would be alike.
    """
    row: dict[str, Any] = {"examples": len(_first(sides).ids)}
    for init in INITS:
        of = sides.get(init, {})
        row[f"runs_{init}"] = sum(len(cell.predicted) for cell in of.values())
        row[f"swapped_{init}"] = _mean_known(_swapped(cell) for cell in of.values())
    if all(init in sides for init in INITS):
        row |= _between(*(sides[init] for init in INITS))
    return row


def _between(pretrained: Mapping[str, CellPredictions], random: Mapping[str, CellPredictions]) -> Row:
    a, b = (CellPredictions.stacked(list(of.values())).correct.mean(axis=0) for of in (pretrained, random))
    pairs = [(pretrained[name], random[name]) for name in pretrained if name in random]
    return {
        "only_pretrained": int(((a > MOST) & (b < MOST)).sum()),
        "only_random": int(((b > MOST) & (a < MOST)).sum()),
        "gained": _mean_known(_right_and_wrong(of_a, of_b) for of_a, of_b in pairs),
        "lost": _mean_known(_right_and_wrong(of_b, of_a) for of_a, of_b in pairs),
    }


def _right_and_wrong(a: CellPredictions, b: CellPredictions) -> float:
    """Examples that a run of `a` gets right and one of `b` wrong: the mean over all pairs."""
    return float((a.correct.mean(axis=0) * (1 - b.correct.mean(axis=0))).sum())


def _swapped(cell: CellPredictions) -> float | None:
    """The same of two runs of one cell, in either order; None of a single run."""
    runs = len(cell.correct)
    if runs < 2:
        return None
    right = cell.correct.sum(axis=0)
    return float((right * (runs - right)).sum() / (runs * (runs - 1)))


def _mean_known(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are known; None where none is."""
    found = [value for value in values if value is not None]
    return sum(found) / len(found) if found else None
