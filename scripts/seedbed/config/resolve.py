"""The configuration, complete: checked, with defaults, and with sweeps and crossed seeds written out."""

import itertools
import math
from typing import Any

from seedbed.config.batching import batching_of
from seedbed.config.definitions import complete_datasets, complete_models
from seedbed.config.names import check_names
from seedbed.config.places import check_locations, check_paths
from seedbed.config.recipes import expand_recipes
from seedbed.config.settings import Settings
from seedbed.config.validation import complete, plain
from seedbed.core.errors import SeedbedError
from seedbed.core.tasks import task_of
from seedbed.core.words import framework_name, join
from seedbed.sources.locations import ROOT
from seedbed.sources.table import read_source_table

SOURCE_TABLE = ROOT / "resources" / "sources.csv"
REPLICATES_IN_A_TAIL = 10  # beyond each bound of an interval, at least


def resolve_config(raw: dict[str, Any]) -> dict[str, Any]:
    """Check a raw configuration and return it complete: types, defaults, expanded recipes.

    `raw` is not changed. The result's `sources` holds those of resources/sources.csv, too; an entry of the
    config replaces the table's of the same name. Its `recipes` holds one entry for each resolved recipe,
    swept ones under their expanded name (`lab.learning_rate=1e-05`), each with `family` and `swept`;
    `grid.recipes` lists the expanded names. `grid.seeds` is a list, combinations written out.
    Keys that the experiment's task or a recipe's method does not use are left out, so that changing them
    changes nothing; `grid.frameworks` holds those that train the task.

    Raises:
        SeedbedError: an unknown key, a value of the wrong type, a name that is not defined; datasets of
            several tasks in one grid; a model, a method or an adapter that does not fit the task; what
            fused seeds cannot do.
    """
    config = complete(Settings, _with_source_table(plain(raw)))
    check_names(config)
    check_paths(config)
    check_locations(config)
    _check_statistics(config["statistics"])
    complete_datasets(config)
    complete_models(config)
    _fit_to_task(config)
    _expand_seeds(config["grid"])
    expand_recipes(config)
    batching_of(config).check(config)
    return config


def _with_source_table(raw: dict[str, Any]) -> dict[str, Any]:
    sources = raw.get("sources", {})
    if not isinstance(sources, dict):  # an error, which the check of all keys finds
        return raw
    return raw | {"sources": read_source_table(SOURCE_TABLE) | sources}


def _check_statistics(statistics: dict[str, Any]) -> None:
    """Refuse so few replicates that the bounds of an interval rest on a handful of them."""
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
    """Hold the grid to one task, and leave out what that task does not use."""
    grid = config["grid"]
    task = task_of(config)
    for name in grid["datasets"]:
        if config["datasets"][name]["task"] != task.name:
            raise SeedbedError(
                "the grid holds datasets of two tasks",
                where="config, grid.datasets",
                found=", ".join(f"{each} ({config['datasets'][each]['task']})" for each in grid["datasets"]),
                hint="make two experiments: each task has its own metrics, tables and figures",
            )
    for name in grid["models"]:
        if config["models"][name]["format"] not in task.formats:
            raise SeedbedError(
                f"the model {name!r} is not one for the task {task.name}",
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
            hint=f"add {' or '.join(task.frameworks)}, or leave the key out",
        )
    grid["frameworks"] = frameworks
    if not task.writes_answers:
        del config["evaluation"]["max_new_tokens"]


def _expand_seeds(grid: dict[str, Any]) -> None:
    """Write the combinations of {init: [...], data: [...]} out as a list of {init: I, data: D}."""
    seeds = grid["seeds"]
    if isinstance(seeds, dict):
        pairs = itertools.product(seeds["init"], seeds["data"])
        grid["seeds"] = [{"init": init, "data": data} for init, data in pairs]
