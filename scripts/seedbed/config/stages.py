"""Experiments that grow in stages: what each stage runs depends on the results of the stages before it.

`until` adds seeds to questions that are open. A question is whether pretraining helps, on a dataset, with a
model, a framework and a family of recipes. After the last job of a stage the rule `decide` writes
results/EXPERIMENT/stages/NUMBER.json: for each question, what was found and what comes next. The plan of the
next workflow reads it here. A workflow is one stage; `make run` starts one after another.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json
from seedbed.core.words import count, join

FOLDER = "stages"  # of results/EXPERIMENT


def grows(config: Mapping[str, Any]) -> bool:
    """Whether a resolved config is of an experiment in stages."""
    return "until" in config


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
        now: what each question of the grid has: `seeds`, a number.
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
    stage = present_stage(config, experiment)
    config["grid"]["stage"] = stage.now
    return stage


def admits(grid: Mapping[str, Any], question: str, seed: int) -> bool:
    """Whether a question has a seed of the grid at the present stage."""
    return "stage" not in grid or grid["seeds"].index(seed) < grid["stage"][question]["seeds"]


def open_questions(experiment: Path, stage: Stage) -> str:
    """What remains open after a stage, in a sentence; empty where it was the last one."""
    path = stage_file(experiment, stage.number)
    decided = read_json(path) if path.exists() else {"finished": True}
    if decided["finished"]:
        return ""
    found = decided["questions"].values()
    seeds = [one["next"]["seeds"] for one in found if one["state"] == "open"]
    return (
        f"Open: {count(len(seeds), 'question')} of {len(found)}. Run the same command again for "
        f"{join([str(number) for number in sorted(set(seeds))])} seeds a side; `make run` goes on by itself."
    )


def question_of(dataset: str, model: str, framework: str, family: str) -> str:
    """The name of a question in files of stages."""
    return "/".join((dataset, model, framework, family))


def stage_file(experiment: Path, number: int) -> Path:
    """The file that the rule `decide` writes after a stage."""
    return experiment / FOLDER / f"{number}.json"


def asked(config: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a resolved config that say how an experiment grows."""
    return {key: config[key] for key in ("until",) if key in config}


def present_stage(config: Mapping[str, Any], experiment: Path) -> Stage:
    """The stage that the files of earlier ones lead to.

    Raises:
        SeedbedError: earlier stages were of another plan, or a file of a stage is damaged.
    """
    first = {name: {"seeds": config["until"]["looks"][0]} for name in _questions(config)}
    stage = Stage(1, False, first)
    for number, decided in _decided(experiment):
        if decided["asked"] != asked(config):
            raise SeedbedError(
                "looks that were taken cannot be planned anew",
                where=f"config, until; {stage_file(experiment, number)}",
                found=f"{asked(config)}, and {decided['asked']} before",
                hint="restore the former plan, or give the experiment another name",
            )
        column = "now" if decided["finished"] else "next"
        now = {name: decided["questions"].get(name, {column: start})[column] for name, start in first.items()}
        finished = decided["finished"] and first.keys() <= decided["questions"].keys()
        stage = Stage(number + (not finished), finished, now)
    return stage


def _questions(config: Mapping[str, Any]) -> list[str]:
    """The questions of the grid, and others that no run belongs to."""
    grid = config["grid"]
    families = dict.fromkeys(config["recipes"][name]["family"] for name in grid["recipes"])
    places = itertools.product(grid["datasets"], grid["models"], grid["frameworks"], families)
    return [question_of(*place) for place in places]


def _decided(experiment: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number in itertools.count(1):
        path = stage_file(experiment, number)
        if not path.exists():
            return
        yield number, read_json(path)
