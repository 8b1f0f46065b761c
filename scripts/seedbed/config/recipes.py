"""Expand sweeps of recipes, and check settings that depend on each other."""

import copy
import functools
from collections.abc import Callable, Mapping
from typing import Any

from seedbed.config.places import size_of_name
from seedbed.config.settings import Recipe
from seedbed.config.sweeps import Setting, range_of, settings_of
from seedbed.config.validation import complete, nearest
from seedbed.core.errors import SeedbedError
from seedbed.core.methods import METHODS, SETTINGS
from seedbed.core.printable import one_line
from seedbed.core.recipes import refuse_bfloat16
from seedbed.core.tasks import TASKS, Task, task_of
from seedbed.core.words import join

LEAST_OF_PAIR = 6  # tokens: four special ones of RoBERTa, and one of each text
SEARCH = ("sweep", "points", "points_seed")  # keys of a recipe that say which settings are tried
RECIPE_BYTES = 200  # of an expanded name, which is part of the names of logs


def expand_recipes(config: dict[str, Any]) -> None:
    """Replace sweeps by one recipe for each setting that they try, with its `family` and `swept` values.

    Of a range that grows, these are all settings that it may ever try; `ranges` of the config then has, by
    family of the grid, its keys and `key` and `values`. `points` has the number of points by family.

    Settings that the method or the task does not use are removed, so that changing them reruns nothing.

    Raises:
        SeedbedError: a swept key is unknown, a value is invalid, two recipes have the same name, or settings
            of a recipe of the grid conflict.
    """
    task = task_of(config)
    expanded: dict[str, dict[str, Any]] = {}
    members: dict[str, list[str]] = {}
    ranges: dict[str, dict[str, Any]] = {}
    points: dict[str, int] = {}
    for family, recipe in config["recipes"].items():
        in_grid = family in config["grid"]["recipes"]
        if in_grid:
            _refuse_class_weight(family, recipe, task)
        searched = {key: recipe.pop(key) for key in SEARCH}
        _remove_unused(recipe, task)
        _check_sweep(family, searched["sweep"], recipe)
        make = functools.partial(_member, config, family, recipe)
        settings = settings_of(family, searched, lambda values, make=make: _is_valid(make, values))
        for values in settings:
            name, body = make(values)
            if name in expanded:
                raise SeedbedError(
                    f"two recipes have the name {name!r}",
                    where=f"config, recipes.{family}.sweep",
                    found=searched["sweep"],
                    hint="remove the repeated value, or rename the recipe",
                )
            expanded[name] = body
            members.setdefault(family, []).append(name)
        if in_grid and (found := range_of(searched)):
            key, given = found
            values = list(dict.fromkeys(each[key] for each in settings))
            ranges[family] = {"key": key, **given, "values": values}
        if in_grid and searched["points"] is not None:
            points[family] = searched["points"]
    config["recipes"] = expanded
    config["grid"]["recipes"] = [name for family in config["grid"]["recipes"] for name in members[family]]
    config |= {key: found for key, found in (("ranges", ranges), ("points", points)) if found}


def _member(
    config: dict[str, Any], family: str, recipe: Mapping[str, Any], values: Setting
) -> tuple[str, dict[str, Any]]:
    """The name and the checked content of a family's recipe with swept values."""
    body = _with_values(family, recipe, values, task_of(config))
    swept = {key: _value_at(body, key) for key in values}
    name = _name(family, swept)
    _check_name(name, family)
    if body.get("class_weight", "") is None:
        del body["class_weight"]  # so that runs from before there was the key stay the same
    body |= {"family": family, "swept": swept}
    if family in config["grid"]["recipes"]:
        _check_values(name, body, config)
        _check_method(name, body, config)
    return name, body


def _is_valid(make: Callable[[Setting], Any], values: Setting) -> bool:
    try:
        make(values)
    except SeedbedError:
        return False
    return True


def _refuse_class_weight(family: str, recipe: Mapping[str, Any], task: Task) -> None:
    """Refuse weights of classes where there are none; left out silently, they would seem to count."""
    if recipe["class_weight"] is not None and task.has_labels and "class_weight" not in task.settings:
        raise SeedbedError(
            f"recipe {family!r} weighs classes, and the task {task.name} has none",
            where=f"config, recipes.{family}.class_weight",
            found=recipe["class_weight"],
            hint="leave class_weight out",
        )


def _name(family: str, swept: Mapping[str, Any]) -> str:
    return ".".join([family, *(f"{key}={_format(value)}" for key, value in swept.items())])


def _check_name(name: str, family: str) -> None:
    """Refuse an expanded name, which may include swept texts, that cannot be a folder's."""
    bad = "/" in name or one_line(name) != name or name.strip() != name
    if bad or size_of_name(name) > RECIPE_BYTES:
        raise SeedbedError(
            "with the values of the sweep, the recipe's name cannot be the name of a folder",
            where=f"config, recipes.{family}.sweep",
            found=repr(name) if bad else f"{size_of_name(name)} bytes: {name[:80]}...",
            hint="sweep values without slashes and control characters, in names of at most "
            f"{RECIPE_BYTES} bytes, or write a recipe for each value",
        )


def _remove_unused(recipe: dict[str, Any], task: Task) -> None:
    """Remove settings that the method or the task does not use, so that changing them reruns nothing."""
    method = METHODS[recipe["method"]]
    of_tasks = {key for each in TASKS.values() for key in each.settings}
    used = {key: key in method.settings for key in SETTINGS} | {key: key in task.settings for key in of_tasks}
    for key in (key for key, is_used in used.items() if not is_used):
        del recipe[key]


def _with_values(
    family: str, recipe: Mapping[str, Any], values: Mapping[str, Any], task: Task
) -> dict[str, Any]:
    """A checked copy of the recipe with swept values; a dot in a key leads into a block."""
    changed = copy.deepcopy(dict(recipe))
    for key, value in values.items():
        *blocks, last = key.split(".")
        _value_at(changed, ".".join(blocks))[last] = value
    what = f"recipe {_name(family, values)!r}"
    checked = complete(Recipe, changed, where=f"config, recipes.{family}.", what=what)
    for key in SEARCH:
        del checked[key]
    _remove_unused(checked, task)
    return checked


def _value_at(recipe: dict[str, Any], key: str) -> Any:
    """The value at a key; a dot leads into a block, and an empty key to the recipe."""
    return functools.reduce(lambda block, part: block[part], filter(None, key.split(".")), recipe)


def _check_sweep(family: str, sweep: dict[str, Any], recipe: dict[str, Any]) -> None:
    nested = [f"{key}.{part}" for key, block in recipe.items() if isinstance(block, dict) for part in block]
    whole = [key for key, block in recipe.items() if isinstance(block, dict)]
    known = [key for key in (*recipe, *nested) if key not in ("method", "min_updates", *whole)]
    for key, values in sweep.items():
        if key not in known:
            raise SeedbedError(
                f"cannot sweep {key!r} with the method {recipe['method']}",
                where=f"config, recipes.{family}.sweep.{key}",
                found=values,
                hint=nearest(key, known, "key"),
            )
    if sweep and not METHODS[recipe["method"]].trains:
        raise SeedbedError(
            f"nothing is trained with the method {recipe['method']}, so a sweep would repeat the same runs",
            where=f"config, recipes.{family}.sweep",
            found=sweep,
            hint="remove the sweep",
        )


def _check_values(name: str, recipe: dict[str, Any], config: dict[str, Any]) -> None:
    """Refuse values of a recipe of the grid that conflict."""
    in_fairseq = "fairseq" in {*METHODS[recipe["method"]].frameworks} & {*config["grid"]["frameworks"]}
    if in_fairseq and config["device"] == "cuda" and not config["fused_seeds"]:
        refuse_bfloat16(recipe, "device: cuda")
    if recipe["schedule"] != "constant" and recipe["end_learning_rate"] > recipe["learning_rate"]:
        raise SeedbedError(
            f"recipe {name!r} ends at a higher learning rate than its peak",
            where=f"config, recipes.{recipe['family']}.end_learning_rate",
            found=recipe["end_learning_rate"],
            hint=f"give at most learning_rate ({recipe['learning_rate']:g})",
        )


def _check_method(name: str, recipe: dict[str, Any], config: dict[str, Any]) -> None:
    """Refuse a recipe of the grid with a method or limit that the task does not take."""
    task, method = task_of(config), METHODS[recipe["method"]]
    where = f"config, recipes.{recipe['family']}"
    if method.name not in task.methods:
        others = [each.name for each in TASKS.values() if method.name in each.methods]
        raise SeedbedError(
            f"recipe {name!r}: the method {method.name} is for {join(others)} only",
            where=f"{where}.method",
            found=method.name,
            hint=f"use {' or '.join(task.methods)} for {task.name}",
        )
    if task.writes_answers and recipe["max_positions"] is not None:
        others = [each.name for each in TASKS.values() if not each.writes_answers]
        raise SeedbedError(
            f"recipe {name!r}: max_positions is for {join(others)} only",
            where=f"{where}.max_positions",
            found=recipe["max_positions"],
            hint="set max_tokens and overlong of the dataset instead",
        )
    pairs = [
        each for each in config["grid"]["datasets"] if "text_pair" in config["datasets"][each]["columns"]
    ]
    if pairs and recipe["max_positions"] is not None and recipe["max_positions"] < LEAST_OF_PAIR:
        raise SeedbedError(
            f"recipe {name!r}: max_positions leaves no token of the texts of a pair",
            where=f"{where}.max_positions",
            found=f"{recipe['max_positions']}; {', '.join(pairs)}: pairs of texts",
            hint=f"give at least {LEAST_OF_PAIR}: four special tokens, and one of each text",
        )
    if not {*method.frameworks} & {*config["grid"]["frameworks"]}:
        raise SeedbedError(
            f"recipe {name!r}: {method.name} needs Transformers, since fairseq has no adapters",
            where=f"config, grid.frameworks; recipes.{recipe['family']}.method",
            found=config["grid"]["frameworks"],
            hint=f"add {' or '.join(method.frameworks)} to grid.frameworks",
        )
    if method.has_adapter and recipe["lora"]["task_type"] != task.adapter_type:
        raise SeedbedError(
            f"recipe {name!r}: the adapter's task_type does not fit the task {task.name}",
            where=f"{where}.lora.task_type",
            found=recipe["lora"]["task_type"],
            hint=f"give {task.adapter_type}",
        )


def _format(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):  # no commas and quotes, since the name is part of a path
        return "+".join(map(_format, value)) or "nothing"
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
