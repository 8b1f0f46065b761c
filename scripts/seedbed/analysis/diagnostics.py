"""What runs say beside their means: pairs of runs, seed churn, calibration, confusion, sources of variance.

Pure functions from arrays of predictions (seeds x examples) to plain rows. What is not defined is None.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from seedbed.analysis import statistics
from seedbed.analysis.differences import Contrast
from seedbed.analysis.label_sets import CellLabelSets, as_classes
from seedbed.analysis.outputs import CellOutputs
from seedbed.analysis.predictions import CellPredictions
from seedbed.analysis.sides import adjusted, seed_table
from seedbed.analysis.table_rows import RunRow, SummaryRow, seed_values, value_column
from seedbed.core.known import all_known, known
from seedbed.core.rows import CELL, Row, grouped
from seedbed.core.tasks import NO_PREDICTION, task_of

PAIRED_FAMILIES = ("init", "framework", "model", "method", "system")
# Metrics of what is right or wrong for each example, which McNemar's test counts.
PAIRED_METRICS = ("accuracy", "exact_match", "subset_accuracy")
# What two rows of one test of two runs have in common.
SAME_RUNS = ("dataset", "model", "model_b", "a", "b", "recipe_a", "recipe_b", "init_seed", "data_seed")
COLUMNS: dict[str, tuple[str, ...]] = {
    "pairs": (
        "family",
        "dataset",
        "model",
        "model_b",
        "contrast",
        "a",
        "b",
        "recipe_a",
        "recipe_b",
        "selection",
        "init_seed",
        "data_seed",
        "examples",
        "both_right",
        "only_a_right",
        "only_b_right",
        "both_wrong",
        "p_value",
        "p_holm",
    ),
    "churn": (
        *CELL,
        "n_seeds",
        "examples",
        "changed",
        "changed_share",
        "mean_disagreement",
        "always_right",
        "never_right",
        "never_right_share",
    ),
    "never_right": ("dataset", "example", "label", "wrong_runs", "runs", "most_common_prediction"),
    "calibration": (*CELL, "bin_low", "bin_high", "count", "confidence", "accuracy"),
    "confusion": (*CELL, "label", "prediction", "count"),
    "variance": (
        *CELL,
        "metric",
        "test_set",
        "component",
        "levels",
        "degrees",
        "mean_square",
        "variance",
        "share",
    ),
    "expected_validation": (*CELL[:4], "recipe_family", "metric", "settings", "expected", "sd"),
}

Key = tuple[str, ...]
Cells = Mapping[Key, CellOutputs]


def tabulate(
    runs: Sequence[RunRow],
    cells: Cells,
    contrasts: Sequence[Contrast],
    summary: Sequence[SummaryRow],
    reporting: Mapping[str, Any],
) -> dict[str, list[Row]]:
    """Rows of the tables of `COLUMNS`, by name. What is of classes has no rows for generated answers: churn,
    never_right, calibration and confusion. Of sets of labels, churn and never_right compare whole sets.

    Args:
        runs: rows of runs.csv; those of a cell stand in the order of the rows of its predictions.
        cells: predictions on test by (dataset, model, framework, init, recipe). A cell may be missing, as
            those of published results are: then what needs predictions has no rows for it.
        contrasts: rows of contrasts.csv.
        summary: rows of summary.csv.
        reporting: `Plan.reporting()`.
    """
    by_cell = grouped(runs, *CELL)
    classes = {key: cell for key, cell in cells.items() if isinstance(cell, CellPredictions)}
    told = with_classes(cells)
    return {
        "pairs": pairs(by_cell, cells, contrasts),
        "churn": [_churn_row(key, cell) for key, cell in told.items()],
        "never_right": never_right(by_cell, told),
        "calibration": [row for key, cell in classes.items() for row in _calibration_rows(key, cell)],
        "confusion": [row for key, cell in classes.items() for row in _confusion_rows(key, cell)],
        "variance": variance(by_cell, summary),
        "expected_validation": expected_validation(by_cell, reporting),
    }


def with_classes(cells: Cells) -> dict[Key, CellPredictions]:
    """The cells of classes, and those of sets of labels with each set of their dataset as a class."""
    found = {key: cell for key, cell in cells.items() if isinstance(cell, CellPredictions)}
    by_dataset: dict[str, dict[Key, CellLabelSets]] = {}
    for key, cell in cells.items():
        if isinstance(cell, CellLabelSets):
            by_dataset.setdefault(key[0], {})[key] = cell
    for of_dataset in by_dataset.values():
        found |= as_classes(of_dataset)
    return found


# --- pairs of runs ------------------------------------------------------------------------------------------


def pairs(by_cell: Mapping[Key, Sequence[RunRow]], cells: Cells, contrasts: Iterable[Contrast]) -> list[Row]:
    """McNemar's exact test (McNemar 1947) for every two runs of the same seed on the sides of a contrast.

    It asks whether these two trained models differ on other examples of the same kind, not whether their
    recipes do. Right is a class that is the label's, or an answer that is the reference (exact match). Only
    contrasts on the whole test set; p_holm is adjusted within a family (Holm 1979).
    """
    rows: list[dict[str, Any]] = []
    for contrast in contrasts:
        counted = contrast.metric in PAIRED_METRICS and contrast.test_set == "all"
        if contrast.family in PAIRED_FAMILIES and counted:
            rows += _pairs_of(contrast, by_cell, cells)
    p_values = adjusted(rows, "p_value", SAME_RUNS, family=("family",))
    return [{**row, "p_holm": p_value} for row, p_value in zip(rows, p_values, strict=True)]


def _pairs_of(
    contrast: Contrast, by_cell: Mapping[Key, Sequence[RunRow]], cells: Cells
) -> Iterator[dict[str, Any]]:
    keys = contrast.cell("a"), contrast.cell("b")
    if not all(key in cells for key in keys):
        return
    right_a, right_b = (_right_by_seed(by_cell[key], cells[key]) for key in keys)
    shared = {key: contrast[key] for key in COLUMNS["pairs"][:10]}
    for seed in right_a:
        if seed in right_b:
            yield {
                **shared,
                "init_seed": seed[0],
                "data_seed": seed[1],
                **_mcnemar(right_a[seed], right_b[seed]),
            }


def _right_by_seed(runs: Sequence[RunRow], cell: Any) -> dict[tuple[int, int], np.ndarray]:
    """What each run has right; `cell` is of classes or answers, which PAIRED_METRICS are of."""
    seeds = [(run.init_seed, run.data_seed) for run in runs]
    return dict(zip(seeds, cell.correct, strict=True))


def _mcnemar(a: np.ndarray, b: np.ndarray) -> Row:
    both, right_a, right_b = (int(np.count_nonzero(right)) for right in (a & b, a, b))
    only_a, only_b = right_a - both, right_b - both
    return {
        "examples": len(a),
        "both_right": both,
        "only_a_right": only_a,
        "only_b_right": only_b,
        "both_wrong": len(a) - both - only_a - only_b,
        "p_value": statistics.mcnemar_p(only_a, only_b),
    }


# --- seed churn ---------------------------------------------------------------------------------------------


def _churn_row(key: Key, cell: CellPredictions) -> Row:
    """How much predictions depend on the seed, collapsed runs among them; two missing ones are the same."""
    seeds, examples = cell.predicted.shape
    several = seeds > 1
    right = cell.correct
    always, never = int(right.all(axis=0).sum()), int((~right.any(axis=0)).sum())
    changed = int((cell.predicted != cell.predicted[0]).any(axis=0).sum()) if several else None
    return {
        **dict(zip(CELL, key, strict=True)),
        "n_seeds": seeds,
        "examples": examples,
        "changed": changed,
        "changed_share": changed / examples if several else None,
        "mean_disagreement": disagreement(cell.predicted) if several else None,
        "always_right": always,
        "never_right": never,
        "never_right_share": never / examples,
    }


def disagreement(predicted: np.ndarray) -> float:
    """Mean over pairs of seeds of the share of examples that both predict differently.

    Args:
        predicted: (seeds, examples) codes of classes, at least two seeds.
    """
    seeds, examples = predicted.shape
    # of the seeds^2 ordered pairs of an example, those of equal predictions agree
    agreeing = sum(float(np.square((predicted == code).sum(axis=0)).sum()) for code in np.unique(predicted))
    return (seeds**2 * examples - agreeing) / (seeds * (seeds - 1) * examples)


def never_right(by_cell: Mapping[Key, Sequence[RunRow]], cells: Mapping[Key, CellPredictions]) -> list[Row]:
    """Test examples that no run of their dataset gets right, whatever its model, framework, init and recipe.

    Collapsed runs do not count: they get all examples of the other classes wrong. Of equally common
    predictions the first class is named, a missing prediction before all.
    """
    rows: list[Row] = []
    for dataset in dict.fromkeys(key[0] for key in cells):
        keys = [key for key in cells if key[0] == dataset]
        rows += _never_right_rows(dataset, [(by_cell[key], cells[key]) for key in keys])
    return rows


def _never_right_rows(
    dataset: str, members: Sequence[tuple[Sequence[RunRow], CellPredictions]]
) -> Iterator[Row]:
    first = members[0][1]
    counts = np.zeros((len(first.names) + 1, len(first.ids)), dtype=int)  # row 0: no prediction
    for runs, cell in members:
        sound = cell.predicted[[not run.collapsed for run in runs]]
        for code in range(len(counts)):
            counts[code] += (sound == code - 1).sum(axis=0)
    total = int(counts[:, 0].sum())
    right = counts[first.labels + 1, np.arange(len(first.ids))]
    if not total:
        return
    for index in np.flatnonzero(right == 0):
        yield {
            "dataset": dataset,
            "example": first.ids[index],
            "label": first.names[first.labels[index]],
            "wrong_runs": total,
            "runs": total,
            "most_common_prediction": _name(first, int(counts[:, index].argmax()) - 1),
        }


def _name(cell: CellPredictions, code: int) -> str:
    return NO_PREDICTION if code < 0 else cell.names[code]


# --- calibration and confusion ------------------------------------------------------------------------------


def _calibration_rows(key: Key, cell: CellPredictions) -> Iterator[Row]:
    """Confidence against accuracy in ten equal bins, pooled over seeds (Guo et al. 2017, figure 1)."""
    known = np.isfinite(cell.confidence)
    if known.any():
        names = dict(zip(CELL, key, strict=True))
        for row in statistics.calibration_bins(cell.confidence[known], cell.correct[known]):
            yield {**names, **row}


def _confusion_rows(key: Key, cell: CellPredictions) -> Iterator[Row]:
    """Every label with every class, zero counts too; with `none` only where a prediction is missing."""
    width = len(cell.names) + 1
    codes = cell.labels.astype(int) * width + cell.predicted + 1
    counts = np.bincount(codes.ravel(), minlength=(width - 1) * width).reshape(-1, width)
    missing = [-1] if counts[:, 0].any() else []
    for label, name in enumerate(cell.names):
        for code in [*range(len(cell.names)), *missing]:
            yield {
                **dict(zip(CELL, key, strict=True)),
                "label": name,
                "prediction": _name(cell, code),
                "count": int(counts[label, code + 1]),
            }


# --- sources of variance ------------------------------------------------------------------------------------


def variance(by_cell: Mapping[Key, Sequence[RunRow]], summary: Iterable[SummaryRow]) -> list[Row]:
    """Two-way analysis of variance over init and data seeds (Dodge et al. 2020), where they are crossed.

    For each equal row of the summary whose runs are all combinations of two or more init seeds with two or
    more data seeds, each once, and each with a finite value.
    """
    rows: list[Row] = []
    for row in summary:
        if row.selection == "equal":
            runs = by_cell[row.cell]
            values = seed_values(runs, value_column(row))
            table = None if None in values.values() else seed_table(all_known(values))
            names = {key: row[key] for key in (*CELL, "metric", "test_set")}
            if table is not None:
                rows += [{**names, **component} for component in statistics.two_way_variance(table)]
    return rows


# --- how much a search finds --------------------------------------------------------------------------------


def expected_validation(by_cell: Mapping[Key, Sequence[RunRow]], reporting: Mapping[str, Any]) -> list[Row]:
    """Expected best validation value of 1, 2, ... settings of a swept family (Tang et al. 2020; Dodge et al.
    2021), and its standard deviation.

    A setting's value is its mean over seeds; settings are drawn without replacement from those of the sweep,
    so that all of them find the best one. One of which a run has no finite loss counts as the worst of the
    others; without others there are no rows.
    """
    task = task_of(reporting)
    column = f"validation_{task.selection}"
    families: dict[Key, list[Sequence[RunRow]]] = {}
    for key, runs in by_cell.items():
        families.setdefault((*key[:4], runs[0].recipe_family), []).append(runs)
    rows: list[Row] = []
    for family, settings in families.items():
        if len(settings) < 2:
            continue
        values = [[run.value(column) for run in runs] for runs in settings]
        defined = [list(map(known, each)) for each in values if None not in each]
        if defined:
            merits = [task.direction * statistics.mean(each) for each in defined]
            merits += [min(merits)] * (len(settings) - len(merits))
            rows += _expected_rows((*family, task.selection), merits, task.direction)
    return rows


def _expected_rows(names: Key, merits: Sequence[float], direction: int) -> Iterator[Row]:
    for settings in range(1, len(merits) + 1):
        yield {
            **dict(zip((*CELL[:4], "recipe_family", "metric"), names, strict=True)),
            "settings": settings,
            "expected": direction * statistics.expected_best(merits, settings),
            "sd": statistics.expected_best_sd(merits, settings),
        }
