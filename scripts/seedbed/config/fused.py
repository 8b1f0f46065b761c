"""Fused seeds in the plan: which runs are one batched model, what they are told, what they need."""

import collections
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seedbed.config.plan import Run

# MiB for each seed after the first: weights, gradients, two moments and the selected copy of RoBERTa-small
# are 5 x 91, and its activations come on top
MEMORY = 800


def is_on(config: Mapping[str, Any]) -> bool:
    """Whether the seeds of a cell are trained as one model; a part of a configuration may lack the key."""
    return config.get("fused_seeds", False)


def put_into_batches(runs: "list[Run]", size: int) -> "list[Run]":
    """Name the batch of each run: names as those of `plan.put_into_batches`.

    A batch holds the seeds of one cell, `size` of them at most, or all where that is 1. The first ones of
    all cells come before the next ones, so that seeds that are added leave full batches as they are.
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
    """What the params of each run of a batch add: the seeds of all of its runs, in the order of the grid."""
    return {"fused": [[run.init_seed, run.data_seed] for run in runs]}


def memory(of_one: int, seeds: int) -> int:
    """MiB of a job that trains `seeds` runs as one model; `of_one` is that of a run alone."""
    return of_one + MEMORY * (seeds - 1)
