"""Results of runs that predict numbers, made up, as `synthetic` makes those of classes."""

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import synthetic
from synthetic import Synthetic, hash_of

from seedbed.config.plan import Plan
from seedbed.core import files, value_metrics
from seedbed.core.tasks import METRIC_COLUMNS, VALUE_COLUMNS

MEAN, SD = 10.0, 4.0  # of the labels: marks out of 20
CORRELATIONS = {"pretrained": 0.8, "random": 0.5}
PENALTIES = {"0.1": 0.6, "1": 0.62, "10": 0.4}  # of ridge regression, and the correlation of each


def make_values(
    folder: Path,
    *,
    correlations: Mapping[str, float] = CORRELATIONS,
    collapsed: Collection[str] = (),
    diverged: Collection[str] = (),
    metric: str | None = None,
    recipe: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
    leaked: Sequence[str] = (),
    clusters: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    test_curves: bool = False,
    **grid: Any,
) -> Synthetic:
    """Write a whole experiment of marks below `folder` and return it.

    Args:
        folder: results folder.
        correlations: of predictions and labels, by init.
        collapsed: folders (Run.folder) of runs that predict one number.
        diverged: folders of runs that return NaN.
        metric: that of the dataset.
        recipe: keys of the recipe `lab`, among them `sweep`.
        sizes: examples of validation and test.
        leaked: ids of the test examples that stand in the training split, too.
        clusters: ids of validation and test examples by split and author.
        test_curves: whether metrics.csv holds the test split after every epoch.
        grid: frameworks, inits, seeds.
    """
    config = synthetic.config_of(folder, (), ("marks",), ("small",), dict(recipe or {}), test_curves, grid)
    dataset = config["datasets"]["marks"]
    del dataset["labels"]
    dataset |= {"task": "regression", **({"metric": metric} if metric else {})}
    if clusters:
        synthetic._add_clusters(config, clusters)
    plan, sizes = Plan(config), sizes or {"validation": 100, "test": 400}
    for run in plan.runs:
        state = "collapsed" if run.folder in collapsed else "diverged" if run.folder in diverged else "sound"
        _write_run(Path(plan.experiment_folder) / "runs" / run.folder, run, plan, correlations, state, sizes)
    data = plan.results / "data" / "marks"
    synthetic._write_leaks(data, leaked)
    files.write_rows(data / "bag_of_words.csv", ("split", "metric", "value"), _bag(bool(leaked)))
    parity = {"texts": 200, "token_ids_equal": True, "compared": 100, "largest_difference": 3.8e-6}
    files.write_json(data / "small" / "parity.json", parity | {"tolerance": 1e-4})
    synthetic._write_model(plan.results / "models" / "small", "small")
    made = Synthetic(plan)
    numbers = {split: len(names) for split, names in (clusters or {}).items()}
    synthetic._write_audit(made.experiment / "data_audit.csv", ["marks"], numbers)
    return made


def labels_of(split: str, size: int) -> np.ndarray:
    """The marks of a split, out of 20, with ties."""
    draw = np.random.default_rng(hash_of(f"marks {split}"))
    return np.clip(draw.normal(MEAN, SD, size), 0, 20).round(1)


def _predictions(run, split, size, correlation, state) -> np.ndarray:
    """Marks of a run; the same examples are hard in all runs."""
    if state == "collapsed":
        return np.full(size, MEAN)
    if state == "diverged":
        return np.full(size, np.nan)
    own = np.random.default_rng(hash_of(f"{run.folder} {split}"))
    shared = np.random.default_rng(hash_of(f"hard {split}")).normal(size=size)
    noise = 0.8 * shared + 0.6 * own.normal(size=size)
    scaled = (labels_of(split, size) - MEAN) / SD
    level = correlation + own.normal(0, 0.02)
    return MEAN + SD * level * (level * scaled + math.sqrt(1 - level**2) * noise)


def _metrics(labels: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    if not np.isfinite(predicted).all():
        return {"pearson": 0.0, "spearman": 0.0, "mse": math.nan}
    return {name: float(value_metrics.value(name, labels, predicted[None])[0]) for name in _names()}


def _names() -> tuple[str, ...]:
    return tuple(value_metrics.FUNCTIONS)


def _write_run(target, run, plan, correlations, state, sizes) -> None:
    settings, draw = plan.config["recipes"][run.recipe], np.random.default_rng(hash_of(run.folder))
    rate = dict(run.swept).get("learning_rate", 1e-4)
    level = correlations[run.init] - 0.05 * abs(math.log10(rate / 1e-4))
    results, rows = {}, []
    for split, size in sizes.items():
        labels, predicted = labels_of(split, size), _predictions(run, split, size, level, state)
        results[split] = {name: _metrics(labels, predicted)[name] for name in plan.task.metrics}
        for index, (label, value) in enumerate(zip(labels.tolist(), predicted.tolist(), strict=True)):
            told = (split, f"{split}-{index}", repr(label), repr(value) if math.isfinite(value) else None)
            rows.append(dict(zip(VALUE_COLUMNS, told, strict=True)))
    target.mkdir(parents=True, exist_ok=True)
    files.write_rows(target / "predictions.csv", VALUE_COLUMNS, rows)
    files.write_rows(target / "metrics.csv", METRIC_COLUMNS, _curves(settings, results, plan, state))
    document = synthetic._document(run, plan, settings, results, state, [], 0.0, draw)
    document |= {"majority_share": None, "targets": {"mean": MEAN, "sd": SD}}
    for split, found in results.items():
        document[split] = {name: value if math.isfinite(value) else None for name, value in found.items()}
    value = document["validation"][plan.task.selection]
    document["selected"]["value"] = value
    files.write_json(target / "run.json", document)


def _curves(settings, results, plan, state) -> list[dict[str, Any]]:
    rows, epochs = [], settings["epochs"]
    tested = plan.config["evaluation"]["test_curves"]
    for epoch in range(1, epochs + 1):
        for split in ("train", "validation", *(["test"] if tested or epoch == epochs else [])):
            for metric, final in results.get(split, results["validation"]).items():
                learned = 1 - 0.8**epoch
                value = final if state == "diverged" else _passing(metric, final, learned)
                row = {"step": epoch * 225, "epoch": epoch, "split": split, "metric": metric, "value": value}
                rows.append(row | {"learning_rate": 1e-5 * (1 - epoch / epochs), "seconds": epoch * 12.5})
    for row in rows:
        if row["epoch"] == epochs and row["split"] in results:
            row["value"] = results[row["split"]][row["metric"]]
    return rows


def _passing(metric: str, final: float, learned: float) -> float:
    """A metric before the end: an error falls from the variance of the labels, a correlation rises from 0."""
    return SD**2 + (final - SD**2) * learned if metric == "mse" else final * learned


def _bag(with_leaks: bool) -> list[dict[str, Any]]:
    rows = []
    for split, ending in (("validation", ""), ("test", ""), *([("test", "_without_leaks")] * with_leaks)):
        for alpha, correlation in PENALTIES.items():
            error = SD**2 * (1 - correlation**2)
            for metric, value in (("pearson", correlation), ("spearman", correlation), ("mse", error)):
                rows.append({"split": split, "metric": f"{metric}{ending} alpha={alpha}", "value": value})
    return rows
