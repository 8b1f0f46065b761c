"""From run folders to the tables of an experiment: runs.csv, curves.csv, summary.csv, contrasts.csv.

Nothing is taken on trust: every run must be there and be the run that its folder names, all runs of a dataset
must have predicted the same examples, and each accuracy is counted again from the predictions. Plain rows
(one dict a row) are enough here, and load fast.
"""

import csv
import itertools
import json
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from seedbed import statistics
from seedbed.duplicates import leaked_test_examples, read_duplicates
from seedbed.errors import SeedbedError
from seedbed.files import atomic_open, write_rows
from seedbed.plan import RUN_FILES, RUN_KEYS, Run, build_runs
from seedbed.tasks import METRIC_COLUMNS, TASKS, Task

SECONDS = ("start_up", "train", "evaluate", "write", "total")
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
)
CONTRAST_COLUMNS = (
    "family",
    "dataset",
    "model",
    "metric",
    "test_set",
    "contrast",
    "a",
    "b",
    "recipe_a",
    "recipe_b",
    "selection",
    "paired",
    "n_a",
    "n_b",
    "delta",
    "ci_low",
    "ci_high",
    "p_value",
    "p_holm",
    "margin",
    "p_equivalence",
    "probability_of_improvement",
    "aso_eps_min",
    "method",
)
TEXT_COLUMNS = frozenset(
    {"dataset", "model", "framework", "init", "recipe", "recipe_family", "method", "metric", "test_set"}
    | {"selection", "ci_method", "family", "contrast", "a", "b", "recipe_a", "recipe_b", "device", "split"}
    | {"component", "formula"}
)
MISSING = frozenset({"", "nan", "inf", "-inf", "none", "null"})
# what each test set's columns of runs.csv end in; a leak is a test example that stands in another split, too
TEST_SETS = {"all": "", "without leaks": "_without_leaks"}

Row = dict[str, Any]


def aggregate(
    folders: Sequence[str | Path],
    bag_of_words: Sequence[str | Path],
    duplicates: Sequence[str | Path],
    reporting: Mapping[str, Any],
    outputs: Mapping[str, str | Path],
) -> None:
    """Write the four tables of an experiment.

    Args:
        folders: the run folders, .../DATASET/MODEL/FRAMEWORK/INIT/RECIPE/SEED.
        bag_of_words: .../DATASET/bag_of_words.csv of each dataset.
        duplicates: .../DATASET/duplicates.csv of each dataset.
        reporting: `Plan.reporting()`.
        outputs: paths by table: runs, curves, summary, contrasts.

    Raises:
        SeedbedError: runs are missing, contradict their folder or their predictions, or differ in examples.
    """
    leaks = {Path(path).parent.name: leaked_test_examples(read_duplicates(path)) for path in duplicates}
    runs = read_runs(folders, reporting, leaks)
    baselines = {Path(path).parent.name: read_baseline(path) for path in bag_of_words}
    summary = summarise(runs, baselines, reporting)
    write_rows(outputs["runs"], run_columns(reporting), map(_cells, runs))
    write_curves(folders, reporting, outputs["curves"])
    write_rows(outputs["summary"], SUMMARY_COLUMNS, map(_cells, summary))
    write_rows(outputs["contrasts"], CONTRAST_COLUMNS, map(_cells, contrast(runs, summary, reporting)))


# --- runs ---------------------------------------------------------------------------------------------------


def run_columns(reporting: Mapping[str, Any]) -> list[str]:
    """Columns of runs.csv; the values of every swept hyperparameter stand last, under its own name."""
    metrics = [metric for task in _tasks(reporting) for metric in task.metrics]
    return [
        *RUN_KEYS,
        "selected_step",
        *dict.fromkeys(f"{split}_{metric}" for split in ("validation", "test") for metric in metrics),
        *(
            f"{name}{ending}"
            for ending in TEST_SETS.values()
            for name in ("test_accuracy", "test_examples", "test_majority_share")
            if ending or name != "test_accuracy"
        ),
        "leaked_test_examples",
        "validation_majority_share",
        "collapsed",
        "diverged",
        "not_above_majority",
        "not_above_majority_without_leaks",
        "updates",
        *(f"{part}_seconds" for part in SECONDS),
        "samples_per_second",
        "tokens_per_second",
        "padding_share",
        "peak_memory_mib",
        "energy_joules",
        "device",
        *swept_keys(reporting),
    ]


def swept_keys(reporting: Mapping[str, Any]) -> list[str]:
    """Hyperparameters that any recipe of the experiment sweeps."""
    return list(dict.fromkeys(key for recipe in reporting["recipes"].values() for key in recipe["swept"]))


def read_runs(
    folders: Sequence[str | Path], reporting: Mapping[str, Any], leaks: Mapping[str, Container[str]]
) -> list[Row]:
    """One row a run, in the order of the run table, checked.

    `leaks` holds the ids of each dataset's leaked test examples; columns that end in `_without_leaks` are of
    the other test examples, and empty where no example leaked (or all did).

    A run is `collapsed` if it diverged or predicts a single class on validation or test. It is
    `not_above_majority` if the one-sided Wilson bound of its test accuracy, at the configured confidence,
    does not exceed the share of the largest class.

    Raises:
        SeedbedError: see `aggregate`.
    """
    expected = build_runs(dict(reporting))
    found = _match(folders, expected)
    examples: dict[tuple[str, str], tuple[Path, Predictions]] = {}
    rows = []
    for run in expected:
        folder = found[run.folder]
        document = _read_json(folder / "run.json")
        _check_identity(document, run, folder / "run.json", reporting["experiment"])
        _check_settings(document, folder / "run.json", reporting["recipes"][run.recipe])
        predictions = read_predictions(folder / "predictions.csv")
        for split, table in predictions.items():
            path, first = examples.setdefault((run.dataset, split), (folder / "predictions.csv", table))
            _check_examples(run.dataset, split, (path, first), (folder / "predictions.csv", table))
        rows.append(_run_row(run, document, predictions, folder, reporting, leaks.get(run.dataset, ())))
    return rows


def _match(folders: Sequence[str | Path], expected: Sequence[Run]) -> dict[str, Path]:
    """Folders by the run that they name, all of the grid and no other, each with its files."""
    found = {"/".join(Path(folder).parts[-6:]): Path(folder) for folder in folders}
    missing = [run.folder for run in expected if run.folder not in found]
    missing += [
        f"{folder}/{name}" for folder in found.values() for name in RUN_FILES if not (folder / name).exists()
    ]
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise SeedbedError(
            "runs of the grid are missing, and a table without them would mislead",
            where="results of the runs",
            found=f"missing: {shown}",
            hint="let Snakemake make them, or take them out of grid in the config",
        )
    strangers = sorted(set(found) - {run.folder for run in expected})
    if strangers:
        raise SeedbedError(
            "a run folder that is not in the grid of the experiment",
            where=str(found[strangers[0]]),
            hint="aggregate only the runs of the grid",
        )
    return found


def _read_json(path: Path) -> Row:
    try:
        with open(path, encoding="utf-8") as stream:
            return json.load(stream)
    except json.JSONDecodeError as error:
        raise SeedbedError(
            "not a whole JSON file",
            where=f"{path}, line {error.lineno}",
            found=error.msg,
            hint="remove the run's folder and let Snakemake make it anew",
        ) from None


def _value(document: Row, path: Path, *keys: str) -> Any:
    """document[key][key]..., with an error that names file and key."""
    value: Any = document
    for depth, key in enumerate(keys):
        if not isinstance(value, Mapping) or key not in value:
            raise SeedbedError(
                "a run's file lacks a key",
                where=f"{path}, {'.'.join(keys[: depth + 1])}",
                hint="remove the run's folder and let Snakemake make it anew",
            )
        value = value[key]
    return value


def _check_identity(document: Row, run: Run, path: Path, experiment: str) -> None:
    meant = {key: getattr(run, key) for key in RUN_KEYS} | {
        "swept": dict(run.swept),
        "experiment": experiment,
    }
    told = {key: _value(document, path, "run", key) for key in (*RUN_KEYS, "swept")}
    told["experiment"] = _value(document, path, "experiment")
    settings = _value(document, path, "settings")
    told["swept"] = told["swept"] and {key: settings.get(key) for key in told["swept"]}
    wrong = [key for key in meant if told[key] != meant[key]]
    if wrong:
        raise SeedbedError(
            "a run's file tells of another run than its folder",
            where=str(path),
            found="; ".join(f"{key} is {told[key]!r}, the folder says {meant[key]!r}" for key in wrong),
            hint="remove the run's folder and let Snakemake make it anew",
        )


def _check_settings(document: Row, path: Path, recipe: Mapping[str, Any]) -> None:
    settings = _value(document, path, "settings")
    changed = [key for key in recipe if key in settings and settings[key] != recipe[key]]
    if changed:
        raise SeedbedError(
            "a run was trained with other settings than its recipe has now",
            where=str(path),
            found="; ".join(f"{key} was {settings[key]!r}, is {recipe[key]!r}" for key in changed),
            hint="let Snakemake make the run anew, or give the changed recipe another name",
        )


def _run_row(
    run: Run,
    document: Row,
    predictions: Mapping[str, "Predictions"],
    folder: Path,
    reporting: Mapping[str, Any],
    leaked: Container[str],
) -> Row:
    path = folder / "run.json"
    test, validation = predictions["test"], predictions["validation"]
    _check_labels(test, folder / "predictions.csv", _value(document, path, "label_names"))
    for split, table in predictions.items():
        _check_accuracy(split, table, _value(document, path, split, "accuracy"), folder)
    clean = test.without(leaked)
    if len(clean.ids) == len(test.ids) or not clean.ids:
        clean = None
    confidence = reporting["statistics"]["confidence"]
    diverged = bool(_value(document, path, "diverged"))
    seconds = _value(document, path, "seconds")
    return {
        **{key: getattr(run, key) for key in RUN_KEYS},
        "selected_step": _value(document, path, "selected", "step"),
        "validation_accuracy": validation.accuracy,
        "validation_loss": _value(document, path, "validation", "loss"),
        "test_accuracy": test.accuracy,
        "test_loss": _value(document, path, "test", "loss"),
        "test_examples": len(test.ids),
        "test_majority_share": test.majority_share,
        "test_accuracy_without_leaks": clean and clean.accuracy,
        "test_examples_without_leaks": clean and len(clean.ids),
        "test_majority_share_without_leaks": clean and clean.majority_share,
        "validation_majority_share": validation.majority_share,
        "collapsed": diverged or test.one_class or validation.one_class,
        "diverged": diverged,
        "leaked_test_examples": sum(name in leaked for name in test.ids),
        "not_above_majority": not test.above_majority(confidence),
        "not_above_majority_without_leaks": clean and not clean.above_majority(confidence),
        "updates": _value(document, path, "updates"),
        **{f"{part}_seconds": seconds.get(part) for part in SECONDS},
        **{key: document.get(key) for key in ("samples_per_second", "tokens_per_second", "padding_share")},
        **{key: document.get(key) for key in ("peak_memory_mib", "energy_joules", "device")},
        **{key: reporting["recipes"][run.recipe].get(key) for key in swept_keys(reporting)},
    }


# --- predictions --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Predictions:
    """The predictions of one run on one split, as parallel tuples; "" where the model returned no number."""

    ids: tuple[str, ...]
    labels: tuple[str, ...]
    predicted: tuple[str, ...]

    @property
    def correct(self) -> int:
        """Number of examples whose prediction is their label."""
        return sum(map(str.__eq__, self.labels, self.predicted))

    @property
    def accuracy(self) -> float:
        """Share of correct predictions."""
        return self.correct / len(self.ids)

    @property
    def one_class(self) -> bool:
        """Whether every prediction is the same class."""
        return len(set(self.predicted)) == 1

    @property
    def majority_share(self) -> float:
        """Share of the most frequent label."""
        return max(Counter(self.labels).values()) / len(self.ids)

    def above_majority(self, confidence: float) -> bool:
        """Whether the one-sided Wilson bound of the accuracy exceeds the share of the most frequent label."""
        return statistics.wilson_lower(self.correct, len(self.ids), confidence) > self.majority_share

    def without(self, left_out: Container[str]) -> "Predictions":
        """The predictions on all examples but those."""
        rows = zip(self.ids, self.labels, self.predicted, strict=True)
        kept = [row for row in rows if row[0] not in left_out]
        return Predictions(*zip(*kept, strict=True)) if kept else Predictions((), (), ())


def read_predictions(path: str | Path) -> dict[str, Predictions]:
    """The predictions of a run by split: validation and test, both with at least one example.

    Where the logits were not finite, the probabilities are empty: whatever the class beside them, that is no
    prediction, and counts as wrong.

    Raises:
        SeedbedError: a column, a cell or a split is missing.
    """
    with open(path, encoding="utf-8", newline="") as stream:
        reader = csv.reader(stream)
        header = next(reader, [])
        columns = ["split", "example", "label", "prediction"]
        columns += [name for name in header if name.startswith("probability_")][:1]
        if len(columns) < 5 or not set(columns) <= set(header):
            raise _bad_predictions(f"{path}, line 1", f"columns {', '.join(header) or 'none'}")
        pick = itemgetter(*map(header.index, columns))
        by_split: dict[str, list[tuple[str, str, str]]] = {"validation": [], "test": []}
        try:
            for split, example, label, prediction, probability in map(pick, reader):
                by_split[split].append((example, label, prediction if probability else ""))
        except (IndexError, KeyError) as error:
            raise _bad_predictions(f"{path}, line {reader.line_num}", f"a row with {error}") from None
    empty = [split for split, rows in by_split.items() if not rows]
    if empty:
        raise _bad_predictions(path, f"no row of the split {empty[0]}")
    return {split: Predictions(*zip(*rows, strict=True)) for split, rows in by_split.items()}


def _bad_predictions(where: str | Path, found: str) -> SeedbedError:
    return SeedbedError(
        "not a table of predictions on validation and test",
        where=str(where),
        found=found,
        hint="remove the run's folder and let Snakemake make it anew",
    )


def _check_examples(
    dataset: str, split: str, first: tuple[Path, Predictions], other: tuple[Path, Predictions]
) -> None:
    (path_a, a), (path_b, b) = first, other
    if a.ids == b.ids and a.labels == b.labels:
        return
    pairs = itertools.zip_longest(zip(a.ids, a.labels, strict=True), zip(b.ids, b.labels, strict=True))
    index, (left, right) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
    raise SeedbedError(
        f"two runs of dataset {dataset!r} were not evaluated on the same {split} examples",
        where=f"{path_a} and {path_b}",
        found=f"{split} example {index + 1}: {_example(left)}, and {_example(right)}",
        hint="the dataset changed between these runs: remove the older run and let Snakemake make it anew",
    )


def _example(pair: tuple[str, str] | None) -> str:
    return "none" if pair is None else f"{pair[0]!r} labelled {pair[1]!r}"


def _check_labels(table: Predictions, path: Path, names: Sequence[str]) -> None:
    strange = sorted((set(table.labels) | set(table.predicted)) - {"", *map(str, names)})
    if strange:
        raise SeedbedError(
            "a label that the run does not know",
            where=str(path),
            found=strange[0],
            hint=f"labels of the run: {', '.join(map(str, names))}",
        )


def _check_accuracy(split: str, table: Predictions, told: Any, folder: Path) -> None:
    # half an example is far more than rounding and far less than one wrong answer
    if not isinstance(told, (int, float)) or not abs(told - table.accuracy) < 0.5 / len(table.ids):
        raise SeedbedError(
            f"the {split} accuracy of a run is not that of its predictions",
            where=f"{folder}/run.json and {folder}/predictions.csv",
            found=f"{told} in run.json, {table.correct} of {len(table.ids)} = {table.accuracy} by counting",
            hint="the two files are not of one run: remove the folder and let Snakemake make it anew",
        )


# --- curves -------------------------------------------------------------------------------------------------


def write_curves(folders: Sequence[str | Path], reporting: Mapping[str, Any], path: str | Path) -> None:
    """Write the metrics of all runs under each other, with their run columns; not-a-number is an empty cell.

    Raises:
        SeedbedError: a metrics.csv has other columns.
    """
    expected = build_runs(dict(reporting))
    found = _match(folders, expected)
    value = METRIC_COLUMNS.index("value")
    with atomic_open(path) as target:
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow([*RUN_KEYS, *METRIC_COLUMNS])
        for run in expected:
            keys = [getattr(run, key) for key in RUN_KEYS]
            for row in _metric_rows(found[run.folder] / "metrics.csv"):
                if row[value].lower() in MISSING:
                    row[value] = ""
                writer.writerow(keys + row)


def _metric_rows(path: Path) -> Iterable[list[str]]:
    with open(path, encoding="utf-8", newline="") as stream:
        reader = csv.reader(stream)
        header = next(reader, [])
        if tuple(header) != METRIC_COLUMNS:
            raise SeedbedError(
                "not a table of metrics",
                where=f"{path}, line 1",
                found=", ".join(header),
                hint=f"its columns are {', '.join(METRIC_COLUMNS)}",
            )
        for row in reader:
            if len(row) != len(METRIC_COLUMNS):
                raise SeedbedError(
                    "a row of a table of metrics is not whole",
                    where=f"{path}, line {reader.line_num}",
                    found=",".join(row),
                    hint="remove the run's folder and let Snakemake make it anew",
                )
            yield row


def read_baseline(path: str | Path) -> dict[str, float]:
    """Test accuracy of a dataset's bag-of-words baseline (a fraction) by test set, from its bag_of_words.csv.

    Raises:
        SeedbedError: the file has no row of the whole test split.
    """
    with open(path, encoding="utf-8", newline="") as stream:
        rows = {(row.get("split"), row.get("metric")): row.get("value") for row in csv.DictReader(stream)}
    keys = {test_set: ("test", f"accuracy{ending}") for test_set, ending in TEST_SETS.items()}
    if keys["all"] in rows:
        return {test_set: float(rows[key]) for test_set, key in keys.items() if key in rows}
    raise SeedbedError(
        "no test accuracy of the bag-of-words baseline",
        where=str(path),
        hint="its columns: split, metric, value",
    )


# --- summary ------------------------------------------------------------------------------------------------


def summarise(
    runs: Sequence[Row], baselines: Mapping[str, Mapping[str, float]], reporting: Mapping[str, Any]
) -> list[Row]:
    """One row for each dataset, model, framework, init and recipe (`selection` equal); and, for each family
    of swept recipes, one row more that names its best recipe on validation (`selection` best). Where test
    examples leaked, each row again on the others (`test_set` without leaks).

    The best recipe has the best mean over seeds of the task's selection metric on validation; ties go to the
    better mean of the task's tie-break metric (a missing value is the worst), then to the order of the sweep.
    """
    rows = []
    for key, cell in grouped(runs, "dataset", "model", "framework", "init").items():
        task = TASKS[reporting["datasets"][key[0]]["task"]]
        recipes = {recipe: group for (recipe,), group in grouped(cell, "recipe").items()}
        best = _best_recipes(recipes, task)
        for test_set in TEST_SETS:
            if not _has(cell, test_set):
                continue
            baseline = baselines[key[0]].get(test_set)
            equal = {
                recipe: _summary_row(group, task, test_set, baseline, reporting)
                for recipe, group in recipes.items()
            }
            rows += equal.values()
            rows += [{**equal[recipe], "selection": "best"} for recipe in best]
    return rows


def _has(runs: Sequence[Row], test_set: str) -> bool:
    return all(run[f"test_examples{TEST_SETS[test_set]}"] is not None for run in runs)


def _best_recipes(recipes: Mapping[str, Sequence[Row]], task: Task) -> list[str]:
    """The best recipe of each family of several."""
    families: dict[str, list[str]] = {}
    for recipe, group in recipes.items():
        families.setdefault(group[0]["recipe_family"], []).append(recipe)
    return [
        max(members, key=lambda recipe: _merit(recipes[recipe], task))
        for members in families.values()
        if len(members) > 1
    ]


def _merit(group: Sequence[Row], task: Task) -> tuple[float, float]:
    """What `max` compares: larger is better; of equals it keeps the first."""
    values = [run[f"validation_{task.selection}"] for run in group]
    ties = [run[f"validation_{task.tie_break}"] for run in group]
    tie = float("-inf") if None in ties else statistics.mean(ties) * task.tie_break_direction
    # means of the same numbers in another order may differ in the last bits
    return round(statistics.mean(values) * task.direction, 12), round(tie, 12)


def _summary_row(
    group: Sequence[Row], task: Task, test_set: str, baseline: float | None, reporting: Mapping[str, Any]
) -> Row:
    confidence = reporting["statistics"]["confidence"]
    ending = TEST_SETS[test_set]
    column = f"test_{task.selection}{ending}"
    values = [run[column] for run in group]
    sound = [run[column] for run in group if not run["collapsed"]]
    validation = [run[f"validation_{task.selection}"] for run in group]
    interval = statistics.t_interval(values, confidence)
    average = statistics.mean(values)
    first = group[0]
    return {
        **{key: first[key] for key in ("dataset", "model", "framework", "init", "recipe", "recipe_family")},
        "selection": "equal",
        "method": first["method"],
        "metric": task.selection,
        "test_set": test_set,
        "n_seeds": len(group),
        "n_collapsed": sum(run["collapsed"] for run in group),
        "n_not_above_majority": sum(run[f"not_above_majority{ending}"] for run in group),
        "mean": average,
        "sd": statistics.sample_sd(values),
        "ci_low": interval and interval[0],
        "ci_high": interval and interval[1],
        "ci_method": interval and f"Student t over seeds, {confidence:.4g}",
        "median": statistics.median(values),
        "iqm": statistics.iqm(values),
        "min": min(values),
        "max": max(values),
        "mean_without_collapsed": statistics.mean(sound) if sound else None,
        "sd_without_collapsed": statistics.sample_sd(sound) if sound else None,
        "validation_mean": statistics.mean(validation),
        "validation_sd": statistics.sample_sd(validation),
        "binomial_se": statistics.binomial_se(average, first[f"test_examples{ending}"]),
        "majority_share": first[f"test_majority_share{ending}"],
        "bag_of_words": baseline,
    }


# --- contrasts ----------------------------------------------------------------------------------------------


def contrast(runs: Sequence[Row], summary: Sequence[Row], reporting: Mapping[str, Any]) -> list[Row]:
    """Differences of means: pretrained - random within each framework (family init), at each equal recipe and
    at each side's own best of a swept family; fairseq - transformers within each init (family framework).

    Within a framework both inits see the examples in the same order, so that seeds are pairs; across
    frameworks the orders differ, so that they are not. The p-values are exact permutation tests, adjusted
    within each family by Holm's method, those on the whole test set and those without leaks apart: the second
    ask the same questions again. With one seed a side, interval and p-value are empty.
    """
    by_recipe = grouped(runs, "dataset", "model", "framework", "init", "recipe")
    rows = []
    for family, a, b in _contrast_pairs(summary):
        sides = [
            by_recipe[tuple(side[key] for key in ("dataset", "model", "framework", "init", "recipe"))]
            for side in (a, b)
        ]
        rows.append(_contrast_row(family, a, b, sides, reporting["statistics"]["confidence"]))
    for members in grouped(rows, "family", "test_set").values():
        for row, adjusted in zip(members, statistics.holm([row["p_value"] for row in members]), strict=True):
            row["p_holm"] = adjusted
    return rows


def _contrast_pairs(summary: Sequence[Row]) -> Iterable[tuple[str, Row, Row]]:
    """(family, summary row of one side, of the other), in the order of the summary."""
    equal = [row for row in summary if row["selection"] == "equal"]
    best = [row for row in summary if row["selection"] == "best"]
    for rows, key in ((equal, "recipe"), (best, "recipe_family")):
        for sides in grouped(rows, "dataset", "model", "test_set", key, "framework").values():
            inits = {row["init"]: row for row in sides}
            if {"pretrained", "random"} <= set(inits):
                yield "init", inits["pretrained"], inits["random"]
    for sides in grouped(equal, "dataset", "model", "test_set", "recipe", "init").values():
        frameworks = {row["framework"]: row for row in sides}
        if {"fairseq", "transformers"} <= set(frameworks):
            yield "framework", frameworks["fairseq"], frameworks["transformers"]


def _contrast_row(family: str, a: Row, b: Row, sides: Sequence[Sequence[Row]], confidence: float) -> Row:
    values = [seed_values(side, value_column(a)) for side in sides]
    paired = family == "init" and set(values[0]) == set(values[1])
    x = list(values[0].values())
    y = [values[1][seed] for seed in values[0]] if paired else list(values[1].values())
    interval, p_value = compare(x, y, confidence, paired=paired)
    return {
        "family": family,
        **{key: a[key] for key in ("dataset", "model", "metric", "test_set", "selection")},
        "contrast": f"{a[family]} - {b[family]}",
        "a": f"{a['framework']}/{a['init']}",
        "b": f"{b['framework']}/{b['init']}",
        "recipe_a": a["recipe"],
        "recipe_b": b["recipe"],
        "paired": paired,
        "n_a": len(x),
        "n_b": len(y),
        "delta": statistics.mean(x) - statistics.mean(y),
        "ci_low": interval and interval[0],
        "ci_high": interval and interval[1],
        "p_value": p_value,
        "method": _method(paired, interval, p_value, confidence, a["selection"]),
    }


def value_column(row: Row) -> str:
    """The column of runs.csv behind a row of summary.csv or contrasts.csv."""
    return f"test_{row['metric']}{TEST_SETS[row['test_set']]}"


def on_test_set(rows: Iterable[Row], test_set: str = "all") -> list[Row]:
    """The rows of summary.csv or contrasts.csv that are of one test set."""
    return [row for row in rows if row["test_set"] == test_set]


def seed_values(runs: Iterable[Row], column: str) -> dict[tuple[int, int], float]:
    """A column of the runs of one summary row, by (init seed, data seed)."""
    return {(run["init_seed"], run["data_seed"]): run[column] for run in runs}


def compare(
    x: Sequence[float], y: Sequence[float], confidence: float, *, paired: bool
) -> tuple[statistics.Bounds | None, float | None]:
    """Interval and exact two-sided p-value of mean(x) - mean(y); both None where a side has one value."""
    if min(len(x), len(y)) < 2:
        return None, None
    if paired:
        differences = [left - right for left, right in zip(x, y, strict=True)]
        return statistics.t_interval(differences, confidence), statistics.sign_flip_p(differences)
    return statistics.welch_interval(x, y, confidence), statistics.permutation_p(x, y)


def _method(paired: bool, interval: Any, p_value: float | None, confidence: float, selection: str) -> str:
    if p_value is None:
        text = "one seed on a side: no interval and no test"
    elif interval is None:
        text = f"no spread: no interval; exact {'sign-flip' if paired else 'permutation'} test"
    elif paired:
        text = f"paired t over seeds, {confidence:.4g}; exact sign-flip test"
    else:
        text = f"Welch t over seeds, {confidence:.4g}; exact permutation test"
    if selection == "best":
        text += "; recipes chosen on validation, a choice that the interval and the test do not carry"
    return text


# --- rows ---------------------------------------------------------------------------------------------------


def read_table(path: str | Path) -> list[Row]:
    """Rows of one of these tables with numbers as numbers, true and false as bool, empty cells as None."""
    with open(path, encoding="utf-8", newline="") as stream:
        return [{key: _parse(key, text) for key, text in row.items()} for row in csv.DictReader(stream)]


def _parse(column: str, text: str) -> Any:
    if column in TEXT_COLUMNS:
        return text
    if text == "":
        return None
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _cells(row: Row) -> Row:
    return {key: str(value).lower() if isinstance(value, bool) else value for key, value in row.items()}


def grouped(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by their values of `keys`, in the order of appearance."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def _tasks(reporting: Mapping[str, Any]) -> list[Task]:
    return [TASKS[name] for name in dict.fromkeys(block["task"] for block in reporting["datasets"].values())]
