"""The tables of an experiment, from its run folders: aggregation, and the summary by groups of seeds."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seedbed.analysis import bootstrap, contrasts, diagnostics, sides, statistics, verdicts
from seedbed.analysis.contrasts import CONTRAST_COLUMNS
from seedbed.analysis.predictions import UNDEFINED_LOSS
from seedbed.analysis.runs import read_runs, run_columns, write_curves
from seedbed.core.errors import SeedbedError
from seedbed.core.known import all_known
from seedbed.core.rows import (
    ANEW,
    CELL,
    TEST_SETS,
    Row,
    grouped,
    is_undefined,
    read_csv,
    seed_values,
    write_table,
)
from seedbed.core.tasks import METRICS, Task, task_of
from seedbed.core.words import bounds_of
from seedbed.data.duplicates import leaked_test_examples, read_duplicates

# means over examples of what is right or wrong
COUNTED = ("accuracy", "exact_match")
BASELINE_COLUMNS = ("split", "metric", "value")
# of the summary, where a bag is not of words: what it is of (characters), and why there is none
BAG_COLUMNS = ("bag_of_words_features", "bag_of_words_left_out")
SUMMARY_COLUMNS = (
    "dataset",
    "model",
    "framework",
    "init",
    "recipe",
    "recipe_family",
    "selection",
    "method",
    "metric",
    "test_set",
    "n_seeds",
    "n_collapsed",
    "n_not_above_majority",
    "mean",
    "sd",
    "ci_low",
    "ci_high",
    "ci_method",
    "median",
    "iqm",
    "min",
    "max",
    "mean_without_collapsed",
    "sd_without_collapsed",
    "validation_mean",
    "validation_sd",
    "binomial_se",
    "majority_share",
    "bag_of_words",
    "expected_best",
    "chosen_share",
    "ece",
)


def aggregate(
    folders: Sequence[str | Path],
    bag_of_words: Sequence[str | Path],
    duplicates: Sequence[str | Path],
    reporting: Mapping[str, Any],
    outputs: Mapping[str, str | Path],
) -> None:
    """Write the tables of an experiment.

    Args:
        folders: the run folders, .../DATASET/MODEL/FRAMEWORK/INIT/RECIPE/SEED.
        bag_of_words: .../DATASET/bag_of_words.csv of each dataset; none of generation.
        duplicates: .../DATASET/duplicates.csv of each dataset.
        reporting: `Plan.reporting()`.
        outputs: paths by table: runs, curves, summary, contrasts and those of `diagnostics.COLUMNS`.

    Raises:
        SeedbedError: runs are missing, contradict their folder or their predictions, or differ in examples; a
            file is cut or holds what it cannot. Then no table has been written.
    """
    leaks = {Path(path).parent.name: leaked_test_examples(read_duplicates(path)) for path in duplicates}
    bags = {Path(path).parent.name: read_baseline(path) for path in bag_of_words}
    baselines = {dataset: bag.accuracies for dataset, bag in bags.items()}
    found = read_runs(folders, reporting, leaks)
    summary = summarise(found.rows, baselines, reporting)
    _add_choices(summary, contrasts.choice_shares(found.rows, summary, reporting, found.cells))
    differences = contrasts.contrast(found.rows, summary, reporting, found.cells, leaks)
    diagnosed = diagnostics.tabulate(found.rows, found.cells["test"], differences, summary, reporting)
    write_table(outputs["runs"], run_columns(reporting), found.rows)
    write_curves(outputs["curves"], found.curves)
    write_table(outputs["summary"], [*SUMMARY_COLUMNS, *_add_bags(summary, bags)], summary)
    write_table(outputs["contrasts"], CONTRAST_COLUMNS, differences)
    for name, columns in diagnostics.COLUMNS.items():
        write_table(outputs[name], columns, diagnosed[name])


def _add_choices(summary: Sequence[dict[str, Any]], shares: Mapping[tuple[str, ...], float]) -> None:
    for row in summary:
        row["chosen_share"] = shares.get(tuple(row[key] for key in CELL))


def _add_bags(summary: Sequence[dict[str, Any]], bags: Mapping[str, "Baseline"]) -> list[str]:
    """Add to the summary which bags are not of words; the columns that are added."""
    values = {dataset: (bag.features, bag.left_out) for dataset, bag in bags.items()}
    used = [place for place in range(len(BAG_COLUMNS)) if any(each[place] for each in values.values())]
    for row in summary:
        for place in used:
            row[BAG_COLUMNS[place]] = values[row["dataset"]][place] if row["dataset"] in values else None
    return [BAG_COLUMNS[place] for place in used]


@dataclass(frozen=True)
class Baseline:
    """A dataset's bag-of-words baseline.

    Attributes:
        accuracies: test accuracy (a fraction) by test set; empty where there is no bag.
        features: what the bag is of, where it is not of words.
        left_out: why there is no bag; None where there is one.
    """

    accuracies: dict[str, float]
    features: str | None = None
    left_out: str | None = None


def read_baseline(path: str | Path) -> Baseline:
    """The bag-of-words baseline of a dataset, from its bag_of_words.csv.

    Raises:
        SeedbedError: the file is cut, has no row of the whole test split although no bag was left out, or an
            accuracy that is none.
    """
    header, rows = read_csv(path, BASELINE_COLUMNS, what="table of the bag-of-words baseline")
    places = {f"accuracy{ending}": test_set for test_set, ending in TEST_SETS.items()}
    found, kind = {}, None
    for line, cells in enumerate(rows, 2):
        row = dict(zip(header, cells, strict=True))
        if row["metric"] == "left_out":
            return Baseline({}, left_out=row["value"])
        if row["metric"] == "features":
            kind = row["value"]
        if row["split"] == "test" and row["metric"] in places:
            found[places[row["metric"]]] = _accuracy(row["value"], f"{path}, line {line}")
    if "all" not in found:
        raise SeedbedError("no test accuracy of the bag-of-words baseline", where=str(path), hint=ANEW)
    return Baseline(found, kind)


def _accuracy(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise SeedbedError(
            "an accuracy of the bag-of-words baseline outside [0, 1]",
            where=where,
            found=repr(text),
            hint=ANEW,
        )
    return value


# --- summary ------------------------------------------------------------------------------------------------


def summarise(
    runs: Sequence[Row], baselines: Mapping[str, Mapping[str, float]], reporting: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """One row for each dataset, model, framework, init, recipe and reported metric (`selection` equal); and,
    for each family of swept recipes, one row more that names its best recipe on validation (`selection`
    best). Where test examples leaked, each row again on the others (`test_set` without leaks).

    The best recipe has the best mean over seeds of the task's selection metric on validation; ties go to the
    better mean of the task's tie-break metric (a missing value is the worst), then to the order of the sweep:
    the rule of `bootstrap.best_of`.

    A run without a finite loss has none: no mean, spread or interval over seeds is told of such a cell, whose
    `n_collapsed` counts the run, and `mean_without_collapsed` is that of the others. Median, minimum and
    maximum rank it as the worst, and are empty where that is what they are. Among recipes it is the worst.
    Intervals are cut at what is possible, from 0 to 1 of a share and at 0 of a loss.

    Runs that others published may lack every column but their names and their test value: what rests on the
    others is then empty.
    """
    rows: list[dict[str, Any]] = []
    task = task_of(reporting)
    for key, cell in grouped(runs, "dataset", "model", "framework", "init").items():
        recipes = {recipe: group for (recipe,), group in grouped(cell, "recipe").items()}
        best = _best_recipes(recipes, task)
        for test_set, metric in itertools.product(TEST_SETS, task.reported):
            if not _all_known(cell, f"test_{metric}{TEST_SETS[test_set]}", TEST_SETS[test_set]):
                continue
            baseline = baselines.get(key[0], {}).get(test_set)
            equal = {
                recipe: _summary_row(group, metric, test_set, baseline, reporting)
                for recipe, group in recipes.items()
            }
            rows += equal.values()
            rows += [{**equal[recipe], "selection": "best"} for recipe in best]
    return rows


def _all_known(runs: Sequence[Row], column: str, ending: str = "") -> bool:
    """Whether every run has a value in the column, or has none because its loss is not finite."""
    return all(run.get(column) is not None or is_undefined(run, column, ending) for run in runs)


def _known(runs: Sequence[Row], column: str) -> list[Any] | None:
    """A column of some runs; None unless every run has a value."""
    values = [run.get(column) for run in runs]
    return None if None in values else values


def _best_recipes(recipes: Mapping[str, Sequence[Row]], task: Task) -> list[str]:
    """The best recipe of each family of several whose validation values are known."""
    families: dict[str, list[str]] = {}
    for recipe, group in recipes.items():
        families.setdefault(group[0]["recipe_family"], []).append(recipe)
    return [
        members[best_group([recipes[recipe] for recipe in members], task)]
        for members in families.values()
        if len(members) > 1
        and all(_all_known(recipes[recipe], f"validation_{task.selection}") for recipe in members)
    ]


def best_group(groups: Sequence[Sequence[Row]], task: Task) -> int:
    """Place of the group of runs that is chosen on validation, by the rule of `summarise`."""
    merits = [[_merit(group, metric) for group in groups] for metric in (task.selection, task.tie_break)]
    # means of the same numbers in another order may differ in the last bits
    return int(bootstrap.best_of(*(np.round(merit, 12)[:, None] for merit in merits))[0])


def _merit(group: Sequence[Row], metric: str) -> float:
    """Mean over seeds of a validation metric, larger is better; without a value a run is the worst."""
    values = [run[f"validation_{metric}"] for run in group]
    direction = METRICS[metric].direction
    return direction * statistics.mean(
        [-direction * UNDEFINED_LOSS if value is None else value for value in values]
    )


def _summary_row(
    group: Sequence[Row], metric: str, test_set: str, baseline: float | None, reporting: Mapping[str, Any]
) -> dict[str, Any]:
    confidence = reporting["statistics"]["confidence"]
    direction = METRICS[metric].direction
    ending = TEST_SETS[test_set]
    column = f"test_{metric}{ending}"
    values = [run[column] for run in group]
    collapsed = _known(group, "collapsed")
    weak = _known(group, f"not_above_majority{ending}")
    sound = (
        [] if collapsed is None else [value for value, bad in zip(values, collapsed, strict=True) if not bad]
    )
    validation = _known(group, f"validation_{metric}")
    errors = _known(group, f"test_ece{ending}")
    first = group[0]
    defined = None not in values
    average = statistics.mean(values) if defined else None
    interval, method = (
        _interval(group, column, confidence) if defined else (None, "none: a run has no finite loss")
    )
    ranked = [-direction * math.inf if value is None else value for value in values]
    examples = first.get(f"test_examples{ending}")
    return {
        **{key: first[key] for key in (*CELL, "recipe_family")},
        "selection": "equal",
        "method": first.get("method"),
        "metric": metric,
        "test_set": test_set,
        "n_seeds": len(group),
        "n_collapsed": collapsed and sum(collapsed),
        "n_not_above_majority": weak and sum(weak),
        "mean": average,
        "sd": statistics.sample_sd(values) if defined else None,
        **verdicts.cut(
            {"ci_low": interval and interval[0], "ci_high": interval and interval[1]}, *bounds_of(metric)
        ),
        "ci_method": method,
        "median": _finite(float(np.median(ranked))),
        "iqm": statistics.iqm(values) if defined else None,
        "min": _finite(min(ranked)),
        "max": _finite(max(ranked)),
        "mean_without_collapsed": statistics.mean(sound) if sound else None,
        "sd_without_collapsed": statistics.sample_sd(sound) if sound else None,
        "validation_mean": validation and statistics.mean(validation),
        "validation_sd": validation and statistics.sample_sd(validation),
        "binomial_se": _binomial_se(average, examples, metric),
        "majority_share": first.get(f"test_majority_share{ending}"),
        "bag_of_words": baseline,
        "expected_best": validation and _expected_best(validation, direction),
        "chosen_share": None,  # of swept families; filled in with the predictions
        "ece": errors and statistics.mean(errors),
    }


def _binomial_se(average: float | None, examples: int | None, metric: str) -> float | None:
    """Of a metric that counts examples."""
    if average is None or not examples or metric not in COUNTED:
        return None
    return statistics.binomial_se(average, examples)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _expected_best(values: Sequence[float], direction: int) -> float:
    """Expected best of as many runs as there are."""
    return direction * statistics.expected_best([direction * value for value in values], len(values))


def _interval(
    group: Sequence[Row], column: str, confidence: float
) -> tuple[statistics.Bounds | None, str | None]:
    """The t interval of a cell's mean, and in words what it rests on.

    Where init seeds and data seeds are crossed, runs that share one are not independent: see
    `bootstrap.seed_error`.
    """
    values = all_known(seed_values(group, column))
    if sides.over_units(values).means is None:
        interval = statistics.t_interval(list(values.values()), confidence)
        return interval, interval and f"Student t over seeds, {confidence:.4g}"
    error = bootstrap.seed_error(list(values.values()), tuple(values))
    if error is None:
        return None, None
    average = statistics.mean(list(values.values()))
    half = statistics.t_quantile(confidence, error[1]) * error[0]
    method = (
        f"Student t over crossed init and data seeds ({error[1]:.3g} degrees of freedom), {confidence:.4g}"
    )
    return (average - half, average + half), method
