"""Results as the fine-tuning rules publish them, made up: for tests of aggregation, figures and summary.

`python tests/synthetic.py FOLDER` writes an experiment with a sweep, a collapsed and a diverged run; with
`--task generation`, one of three methods whose sweep has an unstable and a diverged run.
"""

import argparse
import csv
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seedbed.analysis import diagnostics, tables
from seedbed.config.plan import Plan
from seedbed.config.runs import RUN_KEYS, Run
from seedbed.core import class_metrics, files
from seedbed.core.methods import ADAPTERS
from seedbed.core.rows import read_table
from seedbed.core.run_folder import place_of_probes
from seedbed.core.tasks import ANSWER_COLUMNS, METRIC_COLUMNS, TASKS
from seedbed.data import audit, bags_of_sizes, baselines_of_sizes, duplicates, probes_of_sizes, subsets
from seedbed.training.metrics import token_metrics

LEVELS = {"pretrained": 0.79, "random": 0.67}
SECONDS = {"fairseq": (6.1, 60.0), "transformers": (4.2, 45.0)}
DIFFERENCES = {
    "fairseq": [{"setting": "order of examples", "asked": "data seed", "done": "fairseq's shuffle"}],
    "transformers": [{"setting": "order of examples", "asked": "data seed", "done": "torch's RandomSampler"}],
}

# test loss by method, in nats a token, and what a random init adds
LOSSES = {"none": 3.6, "full": 2.1, "lora": 2.2, "qlora": 2.25}
RANDOM_LOSS = 3.0
LOSS_RATES = (3e-5, 1e-4, 3e-4, 1e-3)
TOTAL, ADAPTED = 22_695_936, 163_840  # parameters of a made-up model, and of the adapter

TRAINING = 160  # training texts, of which there are none but their order

Levels = Callable[[Run], float]


@dataclass(frozen=True)
class Synthetic:
    """A made-up experiment: its plan and where its files lie."""

    plan: Plan

    @property
    def experiment(self) -> Path:
        """The experiment's folder."""
        return Path(self.plan.experiment_folder)

    @property
    def folders(self) -> list[Path]:
        """The run folders in the order of the run table."""
        return [Path(path).parent for path in self.plan.run_files("run.json")]

    @property
    def outputs(self) -> dict[str, Path]:
        """Paths of the tables."""
        names = ("runs", "curves", "summary", "contrasts", *diagnostics.COLUMNS)
        names += (*self.plan.size_tables, *self.plan.example_tables)
        return {name: self.experiment / f"{name}.csv" for name in names}

    @property
    def bags(self) -> list[Path]:
        """The folders of the bags of words of each size of training."""
        return folders_of(self.plan.only("encoder", self.plan.bags_of_sizes()))

    @property
    def probes(self) -> list[Path]:
        """The folders of the linear probes of each size of training."""
        return folders_of(self.plan.probes_of_sizes())

    def aggregate(self) -> dict[str, list[dict[str, Any]]]:
        """Make the tables, and read them."""
        baselines, found = (self.plan.per_dataset(name) for name in ("bag_of_words.csv", "duplicates.csv"))
        baselines = self.plan.only("encoder", baselines)
        splits = self.plan.clustered("splits.json")
        subsets, of_sizes = self.plan.subsets(), (self.bags, self.probes)
        reporting = self.plan.reporting()
        tables.aggregate(self.folders, baselines, found, reporting, self.outputs, splits, subsets, *of_sizes)
        return {name: read_table(path) for name, path in self.outputs.items()}


def folders_of(paths: Sequence[str]) -> list[Path]:
    """The folders of files, each once."""
    return list(dict.fromkeys(Path(path).parent for path in paths))


def make_experiment(
    folder: Path,
    *,
    accuracy: Levels | None = None,
    noise: float = 0.012,
    collapsed: Collection[str] = (),
    diverged: Collection[str] = (),
    one_class_on: Mapping[str, str] | None = None,
    labels: tuple[str, ...] = ("negative", "positive"),
    datasets: tuple[str, ...] = ("reviews",),
    models: tuple[str, ...] = ("small",),
    recipe: Mapping[str, Any] | None = None,
    recipes: Mapping[str, Mapping[str, Any]] | None = None,
    sizes: Mapping[str, int] | None = None,
    test_curves: bool = False,
    leaked: Sequence[str] = (),
    clusters: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    metric: str | Mapping[str, str] | None = None,
    shares: Sequence[float] = (),
    **grid: Any,
) -> Synthetic:
    """Write a whole experiment below `folder` and return it.

    Args:
        folder: results folder.
        accuracy: mean test accuracy of a run; by default LEVELS of its init.
        noise: standard deviation between seeds.
        collapsed: folders (Run.folder) of runs that predict one class.
        diverged: folders of runs whose loss became NaN and that return NaN from the second epoch on.
        one_class_on: split on which alone a run predicts one class, by its folder.
        labels: class names.
        datasets: names of datasets.
        models: names of models.
        recipe: keys of the recipe `lab`, among them `sweep`.
        recipes: other recipes beside it, by name, with their keys.
        sizes: examples of validation and test.
        test_curves: whether metrics.csv holds the test split after every epoch.
        leaked: ids of the test examples that stand in the training split, too, in every dataset.
        clusters: ids of validation and test examples by split and author, the same in every dataset.
        metric: that of every dataset.
        shares: of the classes; by default they are of one size.
        grid: frameworks, inits, seeds, train_sizes, of TRAINING training texts.
    """
    config = config_of(folder, labels, datasets, models, dict(recipe or {}), test_curves, grid)
    if metric:
        config["datasets"] = {name: {**block, "metric": metric} for name, block in config["datasets"].items()}
    if clusters:
        _add_clusters(config, clusters)
    for name, keys in (recipes or {}).items():
        config["recipes"][name] = {**config["recipes"]["lab"], **keys}
        config["grid"]["recipes"].append(name)
    plan = Plan(config)
    sizes = sizes or {"validation": 100, "test": 400}
    for run in plan.runs:
        draw = np.random.default_rng(abs(hash_of(run.folder)))
        level = (accuracy or (lambda run: LEVELS[run.init]))(run) + draw.normal(0, noise)
        state = "collapsed" if run.folder in collapsed else "diverged" if run.folder in diverged else "sound"
        target = Path(plan.experiment_folder) / "runs" / run.folder
        split = (one_class_on or {}).get(run.folder)
        _write_run(target, run, plan, level, state, sizes, draw, split, shares)
    for dataset in datasets:
        sized = sizes if metric else {}
        counts = {
            split: labels_of(dataset, split, size, len(labels), shares) for split, size in sized.items()
        }
        _write_dataset(plan.results / "data" / dataset, models, leaked, counts)
    _write_orders(plan)
    for model in models:
        _write_model(plan.results / "models" / model, model)
    made = Synthetic(plan)
    codes = {
        dataset: {
            split: labels_of(dataset, split, size, len(labels), shares) for split, size in sizes.items()
        }
        for dataset in datasets
    }
    for folder in made.bags:
        _write_bags(folder, plan, folder.name, codes[folder.name])
    for folder in made.probes:
        dataset, *_ = place_of_probes(folder)
        _write_probes(folder, plan, dataset, codes[dataset])
    numbers = {split: len(names) for split, names in (clusters or {}).items()}
    _write_audit(made.experiment / "data_audit.csv", plan.config["grid"]["datasets"], numbers)
    return made


def _write_orders(plan: Plan) -> None:
    """Write the orders of the training texts, where sizes of training are swept."""
    for path in plan.subsets():
        ranks = ({"rank": rank, "example": f"train-{rank}"} for rank in range(1, TRAINING + 1))
        files.write_rows(path, subsets.COLUMNS, ranks)


def _add_clusters(config, clusters) -> None:
    """Give every dataset a column of clusters, and record them."""
    for dataset, block in config["datasets"].items():
        block["columns"] = {"cluster": "author"}
        path = Path(config["results"]) / "data" / dataset / "splits.json"
        files.write_json(path, {"clusters": clusters})


def hash_of(text: str) -> int:
    """A number that depends on the text alone, unlike hash()."""
    return int(files.fingerprint(text), 16)


def config_of(folder, labels, datasets, models, recipe, test_curves, grid) -> dict[str, Any]:
    """The config of a made-up experiment."""
    columns = {split: f"{split}.csv" for split in ("train", "validation", "test")}
    dataset = {"source": "source", "format": "csv", "files": columns, "labels": list(labels)}
    return {
        "experiment": "synthetic",
        "results": str(folder),
        "grid": {"datasets": list(datasets), "models": list(models), "recipes": ["lab"], **grid},
        "sources": {"source": {"locations": ["nowhere"]}},
        "datasets": {name: {**dataset, "description": f"{name}, made up"} for name in datasets},
        "models": {name: {"source": "source"} for name in models},
        "recipes": {"lab": {"epochs": 5, "learning_rate": 1e-5, **recipe}},
        "evaluation": {"test_curves": test_curves},
    }


def _write_run(target, run, plan, level, state, sizes, draw, one_class_on=None, shares=()) -> None:
    settings = plan.config["recipes"][run.recipe]
    names = plan.shared.classes_of(run.dataset)
    results, lines = {}, []
    for split, size in sizes.items():
        # validation is smaller, and not the same as test
        shift = draw.normal(0, 0.01) if split == "validation" else 0.0
        here = "collapsed" if split == one_class_on else state
        labels = labels_of(run.dataset, split, size, len(names), shares)
        predicted, probabilities = _predictions(split, labels, names, level + shift, here, run, draw)
        told = np.full(probabilities.shape, "") if state == "diverged" else probabilities
        ids = (f"{split}-{index}" for index in range(size))
        texts = ([names[code] for code in codes] for codes in (labels, predicted))
        lines += zip([split] * size, ids, *texts, *told.T.tolist(), strict=True)
        results[split] = _metrics(labels, predicted, probabilities, state, plan)
    target.mkdir(parents=True, exist_ok=True)
    with open(target / "predictions.csv", "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        header = ["split", "example", "label", "prediction", *(f"probability_{name}" for name in names)]
        writer.writerows([header, *lines])
    curves = _curves(run, settings, results, plan.config["evaluation"]["test_curves"], state, draw)
    files.write_rows(target / "metrics.csv", METRIC_COLUMNS, curves)
    labels = labels_of(run.dataset, "test", sizes["test"], len(names), shares)
    majority = float(np.bincount(labels).max() / len(labels))
    document = _document(run, plan, settings, results, state, names, majority, draw)
    files.write_json(target / "run.json", document)


def _predictions(split, labels, names, level, state, run, draw) -> tuple[np.ndarray, np.ndarray]:
    """Predictions and probabilities (examples, classes); the same examples are hard in all runs."""
    size = len(labels)
    hard = np.random.default_rng(hash_of(f"{run.dataset} {split} hard")).normal(size=size)
    rank = np.argsort(np.argsort(hard + draw.normal(0, 0.7, size)))
    right = round(level * size)
    predicted = np.where(rank < right, labels, (labels + 1) % len(names))
    if state != "sound":
        predicted = np.zeros(size, dtype=int)
    # surer, the further from the boundary between right and wrong
    sure = (1 + (len(names) - 1) * (0.1 + 0.85 * np.abs(rank - right) / size)) / len(names)
    probabilities = np.repeat(((1 - sure) / (len(names) - 1))[:, None], len(names), axis=1)
    probabilities[np.arange(size), predicted] = sure
    return predicted, probabilities.round(9)


def labels_of(dataset: str, split: str, size: int, classes: int, shares: Sequence[float] = ()) -> np.ndarray:
    """The labels of a made-up split: classes of these shares, or of equal size, in an order of its own."""
    ends = np.cumsum(shares) * size
    labels = np.searchsorted(ends, np.arange(size), side="right") if shares else np.arange(size) % classes
    return np.random.default_rng(hash_of(dataset + split)).permutation(labels)


def _metrics(labels, predicted, probabilities, state, plan) -> dict[str, float]:
    """The metrics of the plan's task; those of counts are zero of a run that diverged."""
    if state == "diverged":
        return {name: math.nan if name == "loss" else 0.0 for name in plan.task.metrics}
    loss = -np.log(probabilities[np.arange(len(labels)), labels]).mean()
    found = {"accuracy": float(np.mean(predicted == labels)), "loss": float(loss)}
    classes = next(iter(plan.config["datasets"].values()))["labels"]
    counts = class_metrics.count(labels, predicted, len(classes))
    for name in plan.task.counted:
        if name not in found:
            found[name] = float(class_metrics.value(name, counts, classes))
    return {name: found[name] for name in plan.task.metrics}


def _curves(run, settings, results, test_curves, state, draw) -> list[dict[str, Any]]:
    rows = []
    epochs = settings["epochs"]
    for epoch in range(1, epochs + 1):
        splits = ["train", "validation", *(["test"] if test_curves or epoch == epochs else [])]
        for split in splits:
            final = results.get(split, results["validation"])
            accuracy = final["accuracy"]
            if state == "sound" and epoch < epochs:
                rise = 1 - 0.9 * math.exp(-1.2 * (epoch - 1))
                accuracy = 0.5 + (accuracy - 0.5) * rise + draw.normal(0, 0.008)
            loss = final["loss"] + 0.5 * (final["accuracy"] - accuracy)
            if state == "diverged":
                loss = 0.7 if epoch == 1 < epochs else math.nan
            # other metrics rise as the accuracy does
            values = {name: value + accuracy - final["accuracy"] for name, value in final.items()}
            for metric, value in {**values, "accuracy": accuracy, "loss": loss}.items():
                row = {"step": epoch * 225, "epoch": epoch, "split": split, "metric": metric, "value": value}
                rows.append(row | {"learning_rate": 1e-5 * (1 - epoch / epochs), "seconds": epoch * 12.5})
    return rows


def _document(run, plan, settings, results, state, names, majority, draw) -> dict[str, Any]:
    start_up, train = SECONDS[run.framework]
    seconds = {"start_up": start_up, "train": train + draw.normal(), "evaluate": 8.0, "write": 0.4}
    return {
        "experiment": plan.config["experiment"],
        "task": plan.task.name,
        **({"metric": plan.task.chosen_metric} if plan.task.chosen_metric else {}),
        "run": {key: getattr(run, key) for key in RUN_KEYS} | {"swept": dict(run.swept)},
        "settings": {key: value for key, value in settings.items() if key not in ("family", "swept")},
        "selected": {
            "step": settings["epochs"] * 225,
            "epoch": settings["epochs"],
            "metric": plan.task.selection,
            "value": results["validation"][plan.task.selection],
            "reason": f"best validation {plan.task.selection}",
        },
        "validation": results["validation"],
        "test": results["test"],
        "updates": settings["epochs"] * 225,
        "total_updates": settings["epochs"] * 225,
        "diverged": state == "diverged",
        "seconds": {**seconds, "total": sum(seconds.values())},
        "samples_per_second": 150.0,
        "tokens_per_second": 20000.0,
        "padding_share": 0.2,
        "peak_memory_mib": 900.0,
        "energy_joules": None,
        "device": "cpu: Made-up 3000",
        "hardware": {"cpu": "Made-up 3000", "cpus": 4, "threads": 1},
        "versions": {"python": "3.11.7", "torch": "2.13.0", "transformers": "5.24.0", "fairseq": "0.12.2"},
        "git_commit": None,
        "command": [],
        "differences": DIFFERENCES[run.framework],
        "majority_share": {"test": majority},
        "label_names": names,
        "parameters": parameters_of(run.method),
    }


def parameters_of(method: str) -> dict[str, Any]:
    """What run.json says of a made-up model's parameters."""
    trainable = {"none": 0, "full": TOTAL}.get(method, ADAPTED)
    total = TOTAL + (ADAPTED if method in ADAPTERS else 0)
    counts = {"trainable": trainable, "total": total}
    return {**counts, "expected_trainable": trainable, "peft": counts if method in ADAPTERS else None}


# --- generation ---------------------------------------------------------------------------------------------


def make_generation(
    folder: Path,
    *,
    loss: Levels | None = None,
    noise: float = 0.02,
    methods: tuple[str, ...] = ("none", "lora", "full"),
    rates: Sequence[float] = (),
    sweeps: Mapping[str, Mapping[str, Sequence[Any]]] | None = None,
    unstable: Collection[str] = (),
    diverged: Collection[str] = (),
    repeating: Collection[str] = (),
    datasets: tuple[str, ...] = ("questions",),
    models: tuple[str, ...] = ("tiny",),
    sizes: Mapping[str, int] | None = None,
    test_curves: bool = False,
    leaked: Sequence[str] = (),
    clusters: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    **grid: Any,
) -> Synthetic:
    """Write a whole experiment that generates answers, one recipe a method, below `folder` and return it.

    Args:
        folder: results folder.
        loss: mean test loss of a run, in nats a token; by default LOSSES of its method, by the learning rate.
        noise: standard deviation between seeds; of method none there is none.
        methods: the recipes, each named after its method.
        rates: learning rates that every method but none sweeps, such as LOSS_RATES.
        sweeps: what else a method sweeps.
        unstable: folders (Run.folder) of runs whose training loss rises after the second epoch.
        diverged: folders of runs without any finite loss from the second epoch on.
        repeating: folders of runs that give one answer to every question.
        datasets, models: their names.
        sizes: examples of validation and test.
        test_curves: whether metrics.csv holds the test split after every epoch.
        leaked: ids of the test examples that stand in the training split, too, in every dataset.
        clusters: see `make_experiment`.
        grid: inits (by default pretrained alone), seeds, train_sizes, of TRAINING training texts.
    """
    config = generation_config(folder, methods, datasets, models, rates, test_curves, grid, sweeps)
    if clusters:
        _add_clusters(config, clusters)
    plan = Plan(config)
    sizes = sizes or {"validation": 60, "test": 120}
    states = {"unstable": unstable, "diverged": diverged, "repeating": repeating}
    for run in plan.runs:
        # nothing is drawn where nothing is trained
        seedless = run.method == "none" and run.init == "pretrained"
        draw = np.random.default_rng(hash_of(run.folder.rsplit("/", 1)[0] if seedless else run.folder))
        level = (loss or loss_level)(run) + (0.0 if seedless else draw.normal(0, noise))
        state = next((state for state, folders in states.items() if run.folder in folders), "sound")
        target = Path(plan.experiment_folder) / "runs" / run.folder
        _write_generation_run(target, run, plan, level, state, sizes, draw)
    for dataset in datasets:
        _write_leaks(plan.results / "data" / dataset, leaked)
    _write_orders(plan)
    for model in models:
        _write_model(plan.results / "models" / model, model)
    made = Synthetic(plan)
    _write_audit(made.experiment / "data_audit.csv", plan.config["grid"]["datasets"])
    return made


def loss_level(run: Run) -> float:
    """Test loss of a run: LOSSES of its method; of swept learning rates, 3e-4 is the best."""
    rate = dict(run.swept).get("learning_rate")
    worse = 0.0 if rate is None else 0.15 * abs(math.log(rate / 3e-4))
    return LOSSES[run.method] + worse + (RANDOM_LOSS if run.init == "random" else 0.0)


def generation_config(
    folder, methods, datasets, models, rates, test_curves, grid, sweeps=None
) -> dict[str, Any]:
    """The config of a made-up experiment that generates answers."""
    dataset = {"task": "generation", "source": "source", "format": "jsonl", "files": {"train": "all.jsonl"}}
    recipes = {}
    for method in methods:
        recipes[method] = {"method": method, "epochs": 4, "learning_rate": 3e-4}
        rated = {"learning_rate": list(rates)} if rates and method != "none" else {}
        recipes[method]["sweep"] = {**rated, **(sweeps or {}).get(method, {})}
    axes = {"frameworks": ["transformers"], "inits": ["pretrained"], **grid}
    return {
        "experiment": "synthetic",
        "results": str(folder),
        "grid": {"datasets": list(datasets), "models": list(models), "recipes": list(methods), **axes},
        "sources": {"source": {"locations": ["nowhere"]}},
        "datasets": {name: {**dataset, "description": f"{name}, made up"} for name in datasets},
        "models": {name: {"source": "source", "format": "causal"} for name in models},
        "recipes": recipes,
        "evaluation": {"test_curves": test_curves},
    }


def _write_generation_run(target, run, plan, level, state, sizes, draw) -> None:
    settings = plan.config["recipes"][run.recipe]
    results, lines = {}, []
    for split, size in sizes.items():
        rows = _answers(split, size, run, level, state, draw)
        lines += rows
        results[split] = answer_metrics(rows)
    target.mkdir(parents=True, exist_ok=True)
    files.write_rows(target / "predictions.csv", ANSWER_COLUMNS, lines)
    curves = _generation_curves(run, settings, results, plan.config["evaluation"]["test_curves"], state, draw)
    files.write_rows(target / "metrics.csv", METRIC_COLUMNS, curves)
    document = _document(run, plan, settings, results, state, [], 0.0, draw)
    told = {split: {name: _finite(value) for name, value in of.items()} for split, of in results.items()}
    value = told["validation"]["loss"]
    last = settings["epochs"]
    epoch = {"unstable": 2, "diverged": last}.get(state, last) if run.method != "none" else 0
    selected = {"step": 225 * epoch, "epoch": epoch, "metric": "loss", "value": value}
    reason = "before training" if epoch == 0 else "lowest validation loss"
    document |= {**told, "selected": {**selected, "reason": reason}, "majority_share": None}
    if run.method == "none":
        document |= {"updates": 0, "total_updates": 0, "samples_per_second": None, "tokens_per_second": None}
        document["padding_share"] = None
    files.write_json(target / "run.json", document)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _answers(split, size, run, level, state, draw) -> list[dict[str, Any]]:
    """Rows of predictions.csv; the same questions are hard in all runs, and a model has its own tokens."""
    fixed = np.random.default_rng(hash_of(f"{run.dataset} {split} hard"))
    hard = fixed.gamma(4.0, 0.25, size)
    tokens = np.random.default_rng(hash_of(f"{run.dataset} {run.model} {split}")).integers(1, 12, size)
    losses = np.maximum(0.01, level * (0.1 + 0.9 * hard) + draw.normal(0, 0.1, size))
    rows = []
    for index in range(size):
        count, loss = int(tokens[index]), float(losses[index])
        right = int(draw.binomial(count, math.exp(-0.35 * loss)))
        reference = f"Réponse {index % 23}, la bonne"
        exact = state in ("sound", "unstable") and right == count
        answer = reference if exact else f"Réponse {draw.integers(0, 90)}"
        f1 = 1.0 if exact else round(right / (count + 1), 9)
        if state == "diverged":
            loss, right, answer, f1 = math.nan, 0, "", 0.0
        if state == "repeating":
            answer, f1 = "Paris", 0.0
        values = (split, f"{split}-{index}", count, "" if math.isnan(loss) else loss, right / count)
        rows.append(dict(zip(ANSWER_COLUMNS, (*values, int(exact), f1, reference, answer), strict=True)))
    return rows


def answer_metrics(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """All metrics of a split, from its rows of predictions.csv."""
    tokens = np.array([row["tokens"] for row in rows])
    losses = np.array([math.nan if row["loss"] == "" else row["loss"] for row in rows])
    right = np.array([row["token_accuracy"] for row in rows]) * tokens
    means = {name: float(np.mean([row[name] for row in rows])) for name in TASKS["generation"].final}
    return token_metrics(np.stack([losses * tokens, right], axis=1), tokens) | means


def _generation_curves(run, settings, results, test_curves, state, draw) -> list[dict[str, Any]]:
    epochs = 0 if run.method == "none" else settings["epochs"]
    untrained = LOSSES["none"] + (RANDOM_LOSS if run.init == "random" else 0.0)
    chosen = {"unstable": 2}.get(state, epochs)
    rows = []
    for epoch in range(epochs + 1):
        splits = ["train"] if epoch else []
        splits += ["validation", *(["test"] if test_curves or epoch == epochs else [])]
        for split in splits:
            final = results.get(split, results["validation"])
            values = {name: final[name] for name in TASKS["generation"].metrics}
            if epoch != chosen or split == "train":
                values = _passing_metrics(final, epoch, epochs, untrained, state, split, draw)
            for metric, value in values.items():
                row = {"step": epoch * 225, "epoch": epoch, "split": split, "metric": metric, "value": value}
                rate = 0.0 if epochs == 0 else settings["learning_rate"] * (1 - epoch / epochs)
                rows.append(row | {"learning_rate": rate, "seconds": epoch * 12.5})
    return rows


def _passing_metrics(final, epoch, epochs, untrained, state, split, draw) -> dict[str, float]:
    """Metrics of an epoch that is not selected."""
    target = final["loss"] if math.isfinite(final["loss"]) else untrained
    loss = target + (untrained - target) * math.exp(-1.2 * epoch) + abs(draw.normal(0, 0.01)) + 0.02
    if state == "unstable" and epoch > 2:
        loss += 0.8
    if split == "train":
        loss -= 0.1
    if state == "diverged" and epoch > 1:
        loss = math.nan
    share = 0.0 if math.isnan(loss) else 0.9 * final["token_accuracy"]
    return {"loss": loss, "perplexity": math.exp(loss), "token_accuracy": share}


def _write_bags(folder: Path, plan: Plan, dataset: str, labels: Mapping[str, np.ndarray]) -> None:
    """Bags of words of each size; the larger the size and the seed, the more examples they get right."""
    keys = _write_predictions(folder, plan, dataset, labels, lambda size: 0.5 + 0.3 * size / TRAINING)
    files.write_rows(folder / "bags.csv", bags_of_sizes.COLUMNS, keys)


def _write_probes(folder: Path, plan: Plan, dataset: str, labels: Mapping[str, np.ndarray]) -> None:
    """Linear probes of each size, likewise: better than bags of few texts, and worse than those of many."""
    keys = _write_predictions(folder, plan, dataset, labels, lambda size: 0.6 + 0.1 * size / TRAINING)
    rows = [{**key, "states": "mean"} for key in keys]
    files.write_rows(folder / "probes.csv", probes_of_sizes.COLUMNS, rows)


def _write_predictions(
    folder: Path,
    plan: Plan,
    dataset: str,
    labels: Mapping[str, np.ndarray],
    level: Callable[[int], float],
) -> list[dict[str, Any]]:
    """Predictions of a baseline of each size and data seed; its rows, of what was chosen.

    `level` maps a size to the share of right predictions, to which a seed adds a percent point each.
    """
    names = plan.shared.classes_of(dataset)
    keys = [(size, seed) for size in plan.sizes for seed in plan.data_seeds] + [(TRAINING, None)]
    rows = []
    for size, seed in keys:
        for split, codes in labels.items():
            right = round((level(size) + 0.01 * (seed or 0)) * len(codes))
            for index, code in enumerate(codes.tolist()):
                predicted = code if index < right else (code + 1) % len(names)
                cells = (size, seed, split, f"{split}-{index}", names[code], names[predicted])
                rows.append(
                    dict(zip(baselines_of_sizes.COLUMNS, cells, strict=True))
                    | {f"probability_{name}": 0.4 / (len(names) - 1) for name in names}
                    | {f"probability_{names[predicted]}": 0.6}
                )
    files.write_rows(folder / "predictions.csv", list(rows[0]), rows)
    return [{"train_size": size, "data_seed": seed, "setting": "C", "selected": 1.0} for size, seed in keys]


def _write_audit(path: Path, datasets: Sequence[str], clusters: Mapping[str, int] | None = None) -> None:
    row = dict.fromkeys(audit.COLUMNS, "")
    rows = [row | {"split": "test", "check": "examples", "count": 400, "share": 1.0}]
    for split, number in (clusters or {}).items():
        rows.append(row | {"split": split, "check": audit.CLUSTERS, "count": number})
    found = [{**each, "dataset": dataset} for dataset in datasets for each in rows]
    files.write_rows(path, audit.COLUMNS, found)


def _write_dataset(
    folder: Path, models: tuple[str, ...], leaked: Sequence[str], labels: Mapping[str, np.ndarray]
) -> None:
    rows = [
        {"split": "train", "metric": "C", "value": 1.0},
        {"split": "validation", "metric": "accuracy", "value": 0.8},
        {"split": "test", "metric": "accuracy", "value": 0.825},
    ]
    if leaked:
        rows.append({"split": "test", "metric": "accuracy_without_leaks", "value": 0.82})
    for split, codes in labels.items():
        endings = ("", "_without_leaks") if leaked and split == "test" else ("",)
        rows += [
            {"split": split, "metric": f"counts{ending} C=1", "value": _bag(codes)} for ending in endings
        ]
    _write_leaks(folder, leaked)
    shares = [
        {"split": split, "metric": "majority_share", "value": 0.5}
        for split in ("train", "validation", "test")
    ]
    files.write_rows(folder / "bag_of_words.csv", ("split", "metric", "value"), rows + shares)
    parity = {
        "texts": 200,
        "token_ids_equal": True,
        "compared": 100,
        "largest_difference": 3.8e-6,
        "tolerance": 1e-4,
    }
    for model in models:
        files.write_json(folder / model / "parity.json", parity)


def _bag(labels: np.ndarray) -> str:
    """The counts of a bag of words that takes every sixth example of a class for one of the next."""
    sizes = np.bincount(labels)
    wrong = sizes // 6
    return str((np.diag(sizes - wrong) + np.roll(np.diag(wrong), 1, axis=1)).tolist())


def _write_leaks(folder: Path, leaked: Sequence[str]) -> None:
    pairs = [
        {"split": "test", "example": name, "with_split": "train", "with_example": f"train-{number}"}
        | {"kind": "exact", "similarity": 1.0, "same_label": True}
        for number, name in enumerate(leaked)
    ]
    duplicates.write_duplicates(folder / "duplicates.csv", pairs)


def _write_model(folder: Path, model: str) -> None:
    parts = [("embeddings", "dV", 16_384_000), ("layers", "N(4d² + 2df + 9d + f)", 6_311_936)]
    parts.append(("total", "", sum(count for _, _, count in parts)))
    columns = ("model", "component", "formula", "expected", "counted")
    rows = [
        dict(zip(columns, (model, name, formula, count, count), strict=True))
        for name, formula, count in parts
    ]
    files.write_rows(folder / "parameters.csv", columns, rows)


def edit_json(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a JSON file in place."""
    document = files.read_json(path)
    change(document)
    files.write_json(path, document)


def edit_csv(path: Path, change: Callable[[list[dict[str, str]]], None]) -> None:
    """Change the rows of a CSV file in place."""
    with open(path, encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream)
        rows, columns = list(reader), reader.fieldnames or []
    change(rows)
    files.write_rows(path, columns, rows)


def learning_rate_levels(run: Run) -> float:
    """What the learning rate does in the sweep: the random init is undertrained at the small ones."""
    rate = dict(run.swept)["learning_rate"]
    return {
        "pretrained": {1e-5: 0.78, 3e-5: 0.81, 1e-4: 0.842, 3e-4: 0.838},
        "random": {1e-5: 0.665, 3e-5: 0.73, 1e-4: 0.803, 3e-4: 0.812},
    }[run.init][rate]


def main() -> None:
    """Write the experiment of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--task", choices=sorted(TASKS), default="classification")
    asked = parser.parse_args()
    if asked.task == "generation":
        make_generation(
            asked.folder,
            rates=LOSS_RATES,
            unstable=["questions/tiny/transformers/pretrained/full.learning_rate=0.001/seed1"],
            diverged=["questions/tiny/transformers/pretrained/full.learning_rate=0.001/seed2"],
            seeds=[0, 1, 2],
            test_curves=True,
        )
        return
    make_experiment(
        asked.folder,
        accuracy=learning_rate_levels,
        recipe={"sweep": {"learning_rate": [1e-5, 3e-5, 1e-4, 3e-4]}},
        collapsed=["reviews/small/fairseq/random/lab.learning_rate=0.0003/seed2"],
        diverged=["reviews/small/transformers/random/lab.learning_rate=0.0003/seed1"],
        sizes={"validation": 200, "test": 2000},
        test_curves=True,
    )


if __name__ == "__main__":
    main()
