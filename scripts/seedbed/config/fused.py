"""Fused seeds in the config and the plan: conditions, batches, params and memory."""

import collections
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seedbed.core.errors import SeedbedError
from seedbed.core.tasks import TASKS, task_of
from seedbed.core.words import join

if TYPE_CHECKING:
    from seedbed.config.runs import Run

# MiB for each seed after the first: weights, gradients, two moments and the selected copy of RoBERTa-small
# take 5 x 91, besides its activations
MEMORY = 800
PRECISIONS = ("float32", "tf32", "bfloat16")  # float16 scales the loss of each seed by another factor


def is_on(config: Mapping[str, Any]) -> bool:
    """Whether the seeds of a cell are trained as one model; a partial config may lack the key."""
    return config.get("fused_seeds", False)


def check(config: dict[str, Any]) -> None:
    """Check that the seeds of a cell can be trained as one batched model.

    Raises:
        SeedbedError: the task, a method, a precision or `batches.at_once` does not allow it.
    """
    if not task_of(config).fuses_seeds:
        others = [each.name for each in TASKS.values() if each.fuses_seeds]
        raise SeedbedError(
            f"fused seeds are for {join(others)} only",
            where="config, fused_seeds; grid.datasets",
            found=f"the task {task_of(config).name}",
            hint="set fused_seeds to false",
        )
    if config["batches"]["at_once"] != 1:
        raise SeedbedError(
            "fused seeds are trained in one process, so batches.at_once has no effect",
            where="config, batches.at_once; fused_seeds",
            found=config["batches"]["at_once"],
            hint="set batches.at_once to 1; batches.runs limits how many seeds train together",
        )
    for name in config["grid"]["recipes"]:
        recipe = config["recipes"][name]
        for key, possible in (("method", ("full",)), ("precision", PRECISIONS)):
            if recipe[key] not in possible:
                raise SeedbedError(
                    f"recipe {name!r}: seeds cannot be fused with the {key} {recipe[key]}",
                    where=f"config, recipes.{recipe['family']}.{key}; fused_seeds",
                    found=recipe[key],
                    hint=f"give {' or '.join(possible)}, or set fused_seeds to false",
                )


def put_into_batches(runs: "list[Run]", size: int) -> "list[Run]":
    """Name the batch of each run, in the form of `runs.put_into_batches`.

    A batch has the seeds of one cell: at most `size` of them, or all if `size` is 1. Batches are numbered
    first by the place of their seeds, so that added seeds do not change full batches.
    """
    seen: collections.Counter[tuple[str, ...]] = collections.Counter()
    groups: dict[tuple[int, tuple[str, ...]], list[Run]] = {}
    for run in runs:
        cell = (run.dataset, run.model, run.framework, run.init, run.recipe)
        groups.setdefault((seen[cell] // size if size > 1 else 0, cell), []).append(run)
        seen[cell] += 1
    counts: collections.Counter[str] = collections.Counter()
    named = {}
    for part, cell in sorted(groups, key=lambda group: group[0]):
        place = "/".join(cell[:3])
        named |= {run: replace(run, batch=f"{place}/{counts[place]:03d}") for run in groups[part, cell]}
        counts[place] += 1
    return [named[run] for run in runs]


def params(runs: "Sequence[Run]") -> dict[str, Any]:
    """Further params of each run of a batch: the seeds of all its runs, in the order of the grid."""
    return {"fused": [[run.init_seed, run.data_seed] for run in runs]}


def memory(of_one: int, seeds: int) -> int:
    """MiB of a job that trains `seeds` runs as one model; `of_one` are the MiB of a single run."""
    return of_one + MEMORY * (seeds - 1)
