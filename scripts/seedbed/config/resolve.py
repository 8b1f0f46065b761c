"""Resolve the config: check it, fill in defaults, and expand sweeps and crossed seeds."""

import itertools
import math
from typing import Any

from seedbed.config.batching import batching_of
from seedbed.config.definitions import complete_datasets, complete_models
from seedbed.config.names import check_names
from seedbed.config.places import check_locations, check_paths
from seedbed.config.recipes import expand_recipes
from seedbed.config.settings import Settings
from seedbed.config.stages import expand_seeds_of_looks, refuse_ranges_of_sizes
from seedbed.config.train_sizes import expand_sizes
from seedbed.config.validation import complete, plain
from seedbed.core.errors import SeedbedError
from seedbed.core.model_formats import MODEL_FORMATS
from seedbed.core.tasks import Task, task_of
from seedbed.core.words import framework_name, join
from seedbed.sources.locations import ROOT
from seedbed.sources.table import read_source_table

SOURCE_TABLE = ROOT / "resources" / "sources.csv"
REPLICATES_IN_A_TAIL = 10  # least number beyond each bound of an interval


def resolve_config(raw: dict[str, Any]) -> dict[str, Any]:
    """Check a raw config and return a complete copy.

    The result's `sources` include those of resources/sources.csv, unless the config has an entry with the
    same name. Its `recipes` have one entry for each combination of swept values, with an expanded name
    (`lab.learning_rate=1e-05`), `family` and `swept`, and one more for each size of training
    (see `train_sizes`); `grid.recipes` lists the expanded names, `grid.seeds`
    all combinations, and `grid.frameworks` the frameworks that train the task; `grid.left_out` has those that
    cannot train a model for it, by model, if there are any. Keys that the task or a
    recipe's method does not use are removed, so that changing them reruns nothing.

    Raises:
        SeedbedError: a key is unknown, a value has the wrong type, a name is not defined; the grid has
            datasets of several tasks or metrics; a model, method or adapter does not fit the task; no
            framework can train a model; or settings do not allow fused seeds.
    """
    config = complete(Settings, with_source_table(plain(raw)))
    check_names(config)
    check_paths(config)
    check_locations(config)
    _check_statistics(config["statistics"])
    complete_datasets(config)
    complete_models(config)
    _fit_to_task(config)
    _expand_seeds(config["grid"])
    expand_recipes(config)
    refuse_ranges_of_sizes(config)
    expand_sizes(config)
    expand_seeds_of_looks(config)
    batching_of(config).check(config)
    return config


def with_source_table(raw: dict[str, Any]) -> dict[str, Any]:
    """A raw config with the sources of resources/sources.csv, too."""
    sources = raw.get("sources", {})
    if not isinstance(sources, dict):  # the check of all keys reports it
        return raw
    return raw | {"sources": read_source_table(SOURCE_TABLE) | sources}


def _check_statistics(statistics: dict[str, Any]) -> None:
    """Refuse too few replicates for the bounds of an interval."""
    outside = 1 - statistics["confidence"]
    needed = math.ceil(round(2 * REPLICATES_IN_A_TAIL / outside, 6))
    if statistics["replicates"] < needed:
        raise SeedbedError(
            f"too few bootstrap replicates for intervals of {statistics['confidence']:.10g}",
            where="config, statistics.replicates",
            found=statistics["replicates"],
            hint=f"give at least {needed:,}, {REPLICATES_IN_A_TAIL} beyond each bound, or a lower confidence",
        )


def _fit_to_task(config: dict[str, Any]) -> None:
    """Check that the grid has one task, and remove settings that it does not use."""
    grid = config["grid"]
    task = task_of(config)
    for name in grid["datasets"]:
        if config["datasets"][name]["task"] != task.name:
            raise SeedbedError(
                "the grid has datasets of two tasks",
                where="config, grid.datasets",
                found=", ".join(f"{each} ({config['datasets'][each]['task']})" for each in grid["datasets"]),
                hint="make two experiments: each task has its own metrics, tables and figures",
            )
    _check_metrics(config)
    for name in grid["models"]:
        if config["models"][name]["format"] not in task.formats:
            raise SeedbedError(
                f"the model {name!r} does not fit the task {task.name}",
                where=f"config, grid.models; models.{name}.format",
                found=config["models"][name]["format"],
                hint=f"{task.name} takes models in the format {' or '.join(task.formats)}",
            )
    frameworks = [name for name in grid["frameworks"] if name in task.frameworks]
    if not frameworks:
        raise SeedbedError(
            f"{task.name} runs with {join([framework_name(name) for name in task.frameworks])} only",
            where="config, grid.frameworks",
            found=grid["frameworks"],
            hint=f"add {' or '.join(task.frameworks)}, or remove the key",
        )
    # without those that no model of the task could be trained with, which nobody misses
    possible = {framework for name in task.formats for framework in MODEL_FORMATS[name].frameworks}
    grid["frameworks"] = [framework for framework in grid["frameworks"] if framework in possible]
    _leave_out(config, task)
    if not task.writes_answers:
        del config["evaluation"]["max_new_tokens"]


def _leave_out(config: dict[str, Any], task: Task) -> None:
    """Leave frameworks out that cannot train a model for the task.

    `grid.left_out` has them by model, if there are any.
    """
    grid = config["grid"]
    left_out = {}
    for name in grid["models"]:
        format_ = MODEL_FORMATS[config["models"][name]["format"]]
        fit = [framework for framework in format_.frameworks if framework in task.frameworks]
        others = [framework for framework in grid["frameworks"] if framework not in fit]
        if others == grid["frameworks"]:
            can = join([framework_name(each) for each in fit])
            raise SeedbedError(
                f"the model {name!r} runs with {can} only",
                where=f"config, grid.frameworks; models.{name}.format",
                found=f"{', '.join(grid['frameworks'])}; format {format_.name}",
                hint=f"add {' or '.join(fit)} to grid.frameworks",
            )
        if others:
            left_out[name] = others
    if left_out:
        grid["left_out"] = left_out
        used = (set(grid["frameworks"]) - set(left_out.get(name, ())) for name in grid["models"])
        kept = set().union(*used)
        grid["frameworks"] = [framework for framework in grid["frameworks"] if framework in kept]


def _check_metrics(config: dict[str, Any]) -> None:
    """Refuse a grid whose datasets choose several metrics."""
    names = config["grid"]["datasets"]
    chosen = [config["datasets"][name].get("metric") for name in names]
    if len(set(chosen)) > 1:
        told = (f"{name} ({metric or 'none'})" for name, metric in zip(names, chosen, strict=True))
        raise SeedbedError(
            "the datasets of the grid are measured by several metrics",
            where="config, grid.datasets; metric of each dataset",
            found=", ".join(told),
            hint="give all of them the same metric, which leads the report, or make two experiments",
        )


def _expand_seeds(grid: dict[str, Any]) -> None:
    """Replace {init: [...], data: [...]} by the list of all combinations {init: I, data: D}."""
    seeds = grid["seeds"]
    if isinstance(seeds, dict):
        pairs = itertools.product(seeds["init"], seeds["data"])
        grid["seeds"] = [{"init": init, "data": data} for init, data in pairs]
