"""Results of runs that predict sets of labels, made up, as `synthetic` makes those of classes."""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import synthetic
from synthetic import Synthetic, hash_of

from seedbed.config.plan import Plan
from seedbed.core import files, set_metrics
from seedbed.core.tasks import METRIC_COLUMNS
from seedbed.training.label_sets import label_set_metrics, predicted_sets

LABELS = ("comedy", "drama", "war")
SHARES = (0.6, 0.35, 0.1)  # of texts with each label
LEVELS = {"pretrained": 2.5, "random": 1.2}  # mean distance of a right logit from 0, in standard deviations
BAG = {"0.1": 0.5, "1": 0.7, "10": 0.65}  # each score of the bag by C
CONSTANT = {"micro_f1": ["comedy"], "macro_f1": list(LABELS), "subset_accuracy": ["comedy"]}


def make_label_sets(
    folder: Path,
    *,
    levels: Mapping[str, float] = LEVELS,
    collapsed: Collection[str] = (),
    diverged: Collection[str] = (),
    metric: str | None = None,
    datasets: tuple[str, ...] = ("plots",),
    recipe: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
    leaked: Sequence[str] = (),
    clusters: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    **grid: Any,
) -> Synthetic:
    """Write a whole experiment of plots below `folder` and return it.

    Args:
        folder: results folder.
        levels: how well runs learn, by init.
        collapsed: folders (Run.folder) of runs that predict one set.
        diverged: folders of runs that return NaN.
        metric: that of the datasets.
        datasets: their names.
        recipe: keys of the recipe `lab`, among them `sweep`.
        sizes: examples of validation and test.
        leaked: ids of the test examples that stand in the training split, too.
        clusters: ids of validation and test examples by split and author.
        grid: inits, seeds.
    """
    config = synthetic.config_of(folder, LABELS, datasets, ("small",), dict(recipe or {}), False, grid)
    for dataset in config["datasets"].values():
        dataset |= {"task": "multilabel", "label_separator": ";", **({"metric": metric} if metric else {})}
    if clusters:
        synthetic._add_clusters(config, clusters)
    plan, sizes = Plan(config), sizes or {"validation": 100, "test": 400}
    for run in plan.runs:
        state = "collapsed" if run.folder in collapsed else "diverged" if run.folder in diverged else "sound"
        _write_run(Path(plan.experiment_folder) / "runs" / run.folder, run, plan, levels, state, sizes)
    parity = {"texts": 200, "token_ids_equal": True, "compared": 100, "largest_difference": 3.8e-6}
    for dataset in datasets:
        data = plan.results / "data" / dataset
        synthetic._write_leaks(data, leaked)
        files.write_rows(data / "bag_of_words.csv", ("split", "metric", "value"), _bag(bool(leaked)))
        files.write_json(data / "small" / "parity.json", parity | {"tolerance": 1e-4})
    synthetic._write_model(plan.results / "models" / "small", "small")
    made = Synthetic(plan)
    numbers = {split: len(names) for split, names in (clusters or {}).items()}
    synthetic._write_audit(made.experiment / "data_audit.csv", list(datasets), numbers)
    return made


def labels_of(dataset: str, split: str, size: int) -> np.ndarray:
    """(texts, labels) bool: the sets of a split."""
    return np.random.default_rng(hash_of(f"{dataset} {split}")).random((size, len(LABELS))) < SHARES


def _logits(run, split, size, level, state) -> np.ndarray:
    """Logits of a run; the same texts are hard in all runs."""
    if state == "diverged":
        return np.full((size, len(LABELS)), np.nan)
    if state == "collapsed":
        return np.tile([1.0, -1.0, -2.0], (size, 1))
    own = np.random.default_rng(hash_of(f"{run.folder} {split}"))
    hard = np.random.default_rng(hash_of(f"{run.dataset} {split} hard")).normal(size=(size, len(LABELS)))
    sign = 2.0 * labels_of(run.dataset, split, size) - 1
    return sign * (level + own.normal(0, 0.05)) + 0.8 * hard + 0.6 * own.normal(size=hard.shape)


def _write_run(target, run, plan, levels, state, sizes) -> None:
    settings, draw = plan.config["recipes"][run.recipe], np.random.default_rng(hash_of(run.folder))
    rate = dict(run.swept).get("learning_rate", 1e-4)
    level = levels[run.init] - 0.3 * abs(math.log10(rate / 1e-4))
    results, rows = {}, []
    for split, size in sizes.items():
        labels, logits = labels_of(run.dataset, split, size), _logits(run, split, size, level, state)
        results[split] = label_set_metrics(logits, labels, plan.task.metrics)
        predicted, missing = predicted_sets(logits)
        for index in range(size):
            row = {"split": split, "example": f"{split}-{index}", "label": _spelled(labels[index])}
            row["prediction"] = None if missing[index] else _spelled(predicted[index])
            for name, logit in zip(LABELS, logits[index], strict=True):
                row[f"probability_{name}"] = None if missing[index] else f"{1 / (1 + np.exp(-logit)):.9g}"
            rows.append(row)
    target.mkdir(parents=True, exist_ok=True)
    files.write_rows(target / "predictions.csv", list(rows[0]), rows)
    files.write_rows(target / "metrics.csv", METRIC_COLUMNS, _curves(settings, results, state))
    document = synthetic._document(run, plan, settings, results, state, list(LABELS), 0.0, draw)
    document |= {"majority_share": None, "constant_answers": CONSTANT}
    for split, found in results.items():
        document[split] = {name: value if math.isfinite(value) else None for name, value in found.items()}
    document["selected"]["value"] = document["validation"][plan.task.selection]
    files.write_json(target / "run.json", document)


def _spelled(label_set: np.ndarray) -> str:
    return json.dumps([name for name, held in zip(LABELS, label_set, strict=True) if held])


def _curves(settings, results, state) -> list[dict[str, Any]]:
    """Metrics rise from 0; a loss falls from ln 2, that of a head which knows nothing."""
    rows, epochs = [], settings["epochs"]
    for epoch in range(1, epochs + 1):
        for split in ("train", "validation", *(["test"] if epoch == epochs else [])):
            for metric, final in results.get(split, results["validation"]).items():
                first, learned = math.log(2) if metric == "loss" else 0.0, 1 - 0.8**epoch
                value = first + (final - first) * learned if epoch < epochs and state == "sound" else final
                row = {"step": epoch * 225, "epoch": epoch, "split": split, "metric": metric, "value": value}
                rows.append(row | {"learning_rate": 1e-5 * (1 - epoch / epochs), "seconds": epoch * 12.5})
    return rows


def _bag(with_leaks: bool) -> list[dict[str, Any]]:
    rows = []
    for split, ending in (("validation", ""), ("test", ""), *([("test", "_without_leaks")] * with_leaks)):
        for c, value in BAG.items():
            for metric in set_metrics.VALUES:
                rows.append({"split": split, "metric": f"{metric}{ending} C={c}", "value": value})
    return rows
