"""Experiments that grow in stages: what each stage runs depends on the results of the stages before it.

`until` adds seeds to questions that are open, and a range of a sweep (`settings.Range`) adds values until the
best one lies inside. A question is whether pretraining helps, on a dataset, with a model, a framework and a
family of recipes. It first gets its values, then its seeds. After the last job of a stage the rule `decide`
writes results/EXPERIMENT/stages/NUMBER.json: for each question, what was found and what comes next. The plan
of the next workflow reads it here. A workflow is one stage; `make run` starts one after another.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedbed.config.combinations import is_trained
from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json
from seedbed.core.words import count, join

FOLDER = "stages"  # of results/EXPERIMENT
# states of a question that goes on
OPEN = "open"  # more seeds may decide it
WIDENING = "widening"  # the best value of a side may lie beyond those that it tried
FIXED = ("key", "start", "factor")  # of a range; only its `max` may grow


def grows(config: Mapping[str, Any]) -> bool:
    """Whether a resolved config is of an experiment in stages."""
    return bool(asked(config))


def expand_seeds_of_looks(config: dict[str, Any]) -> None:
    """Put the seeds of the last look into the grid: those that it names, then the next integers.

    Where the config adds no seeds, `until` is removed.

    Raises:
        SeedbedError: seeds are not integers; looks are not rising; the grid lacks an init, or has sizes of
            training; or seeds are fused.
    """
    until, grid = config["until"], config["grid"]
    if until is None or not until["decided"]:
        del config["until"]
        return
    most = until["max_seeds"]
    looks = [*(seeds for seeds in until["looks"] if seeds < most), most]
    _check(config, until, grid)
    further = (seed for seed in itertools.count() if seed not in grid["seeds"])
    grid["seeds"] = [*grid["seeds"], *itertools.islice(further, max(0, most - len(grid["seeds"])))][:most]
    config["until"] = {"looks": looks}


def refuse_ranges_of_sizes(config: Mapping[str, Any]) -> None:
    """Refuse a range that grows beside sizes of training, whose recipes it does not reach.

    Raises:
        SeedbedError: the grid has both.
    """
    ranges, sizes = config.get("ranges", {}), config["grid"].get("train_sizes")
    if ranges and sizes:
        family, found = next(iter(ranges.items()))
        raise SeedbedError(
            "a range that grows is for all training texts, and the grid has sizes",
            where=f"config, recipes.{family}.sweep.{found['key']}; grid.train_sizes",
            found=sizes,
            hint=f"list the values of {found['key']}, or leave train_sizes out",
        )


def _check(config: Mapping[str, Any], until: Mapping[str, Any], grid: Mapping[str, Any]) -> None:
    looks, seeds = until["looks"], grid["seeds"]
    if looks != sorted(set(looks)):
        raise SeedbedError(
            "looks must be rising numbers of seeds",
            where="config, until.looks",
            found=looks,
            hint=f"for example {sorted(set(looks))}",
        )
    if any(isinstance(seed, dict) for seed in seeds):
        raise SeedbedError(
            "seeds that are added until a question is decided are integers",
            where="config, grid.seeds; until",
            found=seeds,
            hint="list integers, such as [0, 1, 2], or leave until out",
        )
    if set(grid["inits"]) != {"pretrained", "random"}:
        raise SeedbedError(
            "what is to be decided is whether pretraining helps, which takes both inits",
            where="config, grid.inits; until",
            found=grid["inits"],
            hint="grid.inits: [pretrained, random], or leave until out",
        )
    if grid.get("train_sizes"):
        raise SeedbedError(
            "points of a learning curve need the same seeds, so none can be added to some of them",
            where="config, grid.train_sizes; until",
            found=grid["train_sizes"],
            hint="leave until or train_sizes out",
        )
    if config["fused_seeds"]:
        raise SeedbedError(
            "a seed more in a group of fused seeds trains the group again",
            where="config, fused_seeds; until",
            hint="set fused_seeds to false, or leave until out",
        )


@dataclass(frozen=True)
class Stage:
    """The present stage of an experiment.

    Attributes:
        number: 1 for the first.
        finished: whether it was the last one.
        now: what each question of the grid has that grows: `seeds`, a number, where seeds are added; and
            `values`, a rising list by init, where its family has a range.
    """

    number: int
    finished: bool
    now: dict[str, dict[str, Any]]


def enter(config: dict[str, Any], experiment: Path) -> Stage | None:
    """Put the present stage into the grid of a resolved config; None of an experiment that does not grow.

    Raises:
        SeedbedError: see `present_stage`.
    """
    if not grows(config):
        return None
    stage, grid = present_stage(config, experiment), config["grid"]
    grid["stage"] = stage.now
    tried = {
        (family, value)
        for name, family in _questions(config).items()
        for values in stage.now.get(name, {}).get("values", {}).values()
        for value in values
    }
    grid["recipes"] = [
        name
        for name in grid["recipes"]
        if (value := _value_in_range(config, name)) is None
        or (config["recipes"][name]["family"], value) in tried
    ]
    return stage


def admits(config: Mapping[str, Any], question: str, recipe: str, init: str, seed: Any) -> bool:
    """Whether a side of a question has a recipe and a seed of the grid at the present stage."""
    grid = config["grid"]
    now = grid.get("stage", {}).get(question, {})
    if "seeds" in now and grid["seeds"].index(seed) >= now["seeds"]:
        return False
    return "values" not in now or _value_in_range(config, recipe) in now["values"][init]


def _value_in_range(config: Mapping[str, Any], recipe: str) -> Any:
    """The value that a recipe has from the range of its family; None where that has none."""
    block = config["recipes"][recipe]
    found = config.get("ranges", {}).get(block["family"])
    return None if found is None else block["swept"][found["key"]]


def open_questions(experiment: Path, stage: Stage) -> str:
    """What remains open after a stage, in a sentence; empty where it was the last one."""
    path = stage_file(experiment, stage.number)
    content = read_json(path) if path.exists() else {"finished": True}
    if content["finished"]:
        return ""
    found = content["questions"].values()
    seeds = {one["next"]["seeds"] for one in found if one["state"] == OPEN}
    values = {
        len(each) for one in found if one["state"] == WIDENING for each in one["next"]["values"].values()
    }
    going_on = [one for one in found if one["state"] in (OPEN, WIDENING)]
    told = [
        f"{join([str(number) for number in sorted(numbers)])} {name}"
        for name, numbers in (("swept values", values), ("seeds", seeds))
        if numbers
    ]
    return (
        f"Open: {count(len(going_on), 'question')} of {len(found)}. Run the same command again for "
        f"{join(told)} a side; `make run` goes on by itself."
    )


def question_of(dataset: str, model: str, framework: str, family: str) -> str:
    """The name of a question in files of stages."""
    return "/".join((dataset, model, framework, family))


def stage_file(experiment: Path, number: int) -> Path:
    """The file that the rule `decide` writes after a stage."""
    return experiment / FOLDER / f"{number}.json"


def decided(experiment: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number and the content of each stage that was decided, in order."""
    for number in itertools.count(1):
        path = stage_file(experiment, number)
        if not path.exists():
            return
        yield number, read_json(path)


def asked(config: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a resolved config that say how an experiment grows."""
    return {key: config[key] for key in ("until", "ranges") if key in config}


def present_stage(config: Mapping[str, Any], experiment: Path) -> Stage:
    """The stage that the files of earlier ones lead to.

    Raises:
        SeedbedError: earlier stages were of another plan, or a file of a stage is damaged.
    """
    first = _first(config)
    stage = Stage(1, False, first)
    for number, content in decided(experiment):
        _refuse_another_plan(asked(config), content["asked"], stage_file(experiment, number))
        column = "now" if content["finished"] else "next"
        known = {name: question[column] for name, question in content["questions"].items()}
        now = {
            name: {key: known.get(name, start).get(key, value) for key, value in start.items()}
            for name, start in first.items()
        }
        finished = content["finished"] and first.keys() <= content["questions"].keys()
        stage = Stage(number + (not finished), finished, now)
    return stage


def _first(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What each question that grows has at the first stage."""
    first: dict[str, dict[str, Any]] = {}
    for name, family in _questions(config).items():
        start: dict[str, Any] = {}
        if "until" in config:
            start["seeds"] = config["until"]["looks"][0]
        if family in config.get("ranges", {}):
            start["values"] = dict.fromkeys(config["grid"]["inits"], first_values(config["ranges"][family]))
        if start:
            first[name] = start
    return first


def first_values(found: Mapping[str, Any]) -> list[Any]:
    """The values of the first stage of a range: its start, and those beside it."""
    middle = min(range(len(found["values"])), key=lambda at: abs(found["values"][at] - found["start"]))
    return found["values"][middle - 1 : middle + 2]


def _refuse_another_plan(now: Mapping[str, Any], before: Mapping[str, Any], path: Path) -> None:
    """Refuse looks, or the values of a range, that contradict those of a stage that was run."""
    if {"until"} <= now.keys() & before.keys() and now["until"] != before["until"]:
        raise SeedbedError(
            "looks that were taken cannot be planned anew",
            where=f"config, until; {path}",
            found=f"{now['until']}, and {before['until']} before",
            hint="restore the former plan, or give the experiment another name",
        )
    ranges = now.get("ranges", {})
    for family in ranges.keys() & before.get("ranges", {}).keys():
        new, old = ranges[family], before["ranges"][family]
        if [new[key] for key in FIXED] != [old[key] for key in FIXED] or new["max"] < old["max"]:
            told = (
                f"{each['key']}: start {each['start']:g}, factor {each['factor']:g}, max {each['max']}"
                for each in (new, old)
            )
            raise SeedbedError(
                "a range from which values were tried cannot be planned anew",
                where=f"config, recipes.{family}.sweep.{new['key']}; {path}",
                found=", and before ".join(told),
                hint="restore it (max may be larger), or give the experiment another name",
            )


def _questions(config: Mapping[str, Any]) -> dict[str, str]:
    """The questions of the grid that have runs, and the family of recipes of each."""
    grid, recipes = config["grid"], config["recipes"]
    places = itertools.product(grid["datasets"], grid["models"], grid["frameworks"], grid["recipes"])
    return {
        question_of(dataset, model, framework, recipes[recipe]["family"]): recipes[recipe]["family"]
        for dataset, model, framework, recipe in places
        if is_trained(config, model, framework, recipe)
    }
