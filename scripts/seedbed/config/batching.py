"""Assign runs to jobs, and compute the jobs' needs: runs one after another, or fused seeds as one model."""

import collections
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from seedbed.core.errors import SeedbedError
from seedbed.core.methods import METHODS
from seedbed.core.model_formats import MODEL_FORMATS
from seedbed.core.tasks import TASKS, task_of
from seedbed.core.words import join

if TYPE_CHECKING:
    from seedbed.config.runs import Run

# MiB for each fused seed after the first: weights, gradients, two moments and the selected copy of
# RoBERTa-small take 5 x 91, besides its activations
MEMORY = 800
# the same with an adapter, where mostly activations remain. With 8 texts of 200 tokens on a CPU, a seed of
# RoBERTa-small took 360 from the checkpoint, 480 from random weights, 570 with an adapter at all layers, and
# 640 with the method full
ADAPTER_MEMORY = 600
FUSED_METHODS = ("full", "lora")
PRECISIONS = ("float32", "tf32", "bfloat16")  # float16 scales the loss of each seed by another factor


@dataclass(frozen=True)
class OneAfterAnother:
    """Each run is trained by itself; a batch shares the job, its GPU and its start-up.

    Attributes:
        size: number of runs of a batch (`batches.runs`); 1: each run has its own job.
        at_once: number of these runs that are trained at the same time.
    """

    size: int = 1
    at_once: int = 1
    name = "batches"
    off = ("batches.runs", "1")  # the key and value without batches

    @property
    def batched(self) -> bool:
        """Whether the rules of batches train, and the rule of a run only adopts its result."""
        return self.size > 1

    def put(self, runs: "Sequence[Run]") -> "list[Run]":
        """Name the batch of each run: DATASET/MODEL/FRAMEWORK/NUMBER, `size` runs of one pair and framework.

        Runs are sorted by seed first, so that seeds added to the end of the grid do not change full batches.
        With a size of 1, a run's batch is its folder.
        """
        if self.size == 1:
            return [replace(run, batch=run.folder) for run in runs]
        counts: collections.Counter[str] = collections.Counter()
        named = {}
        for run in _by_seed(runs):
            group = f"{run.dataset}/{run.model}/{run.framework}"
            named[run] = replace(run, batch=f"{group}/{counts[group] // self.size:03d}")
            counts[group] += 1
        return [named[run] for run in runs]

    def params(self, batch: "Sequence[Run]") -> dict[str, Any]:
        """Further params of each run of a batch."""
        return {}

    def memory(self, of_run: int, largest: int) -> int:
        """MiB of a batch's job; `of_run`: of a single run, `largest`: runs of the largest batch."""
        return of_run * self.at_once

    def turns(self, largest: int) -> int:
        """The time limit of a batch's job, as a multiple of a run's."""
        return math.ceil(self.size / self.at_once)

    def check(self, config: Mapping[str, Any]) -> None:
        """Check nothing: all tasks and methods can be trained this way."""


@dataclass(frozen=True)
class FusedSeeds(OneAfterAnother):
    """The runs of a recipe are trained as one batched model, at most `size` of them, or all if that is 1.

    Runs with an adapter are trained apart for each init: those from the checkpoint share its frozen weights,
    those from random weights have none in common.

    Attributes:
        of_seed: MiB for each seed after the first.
    """

    of_seed: int = MEMORY
    name = "fused seeds"
    off = ("fused_seeds", "false")

    @property
    def batched(self) -> bool:
        return True

    def put(self, runs: "Sequence[Run]") -> "list[Run]":
        """Name the batch of each run: DATASET/MODEL/FRAMEWORK/NUMBER, runs of one recipe.

        Batches are numbered by the place of their seeds first, so that added seeds change no full batches.
        """
        seen: collections.Counter[tuple[str, ...]] = collections.Counter()
        groups: dict[tuple[int, tuple[str, ...]], list[Run]] = {}
        for run in _by_seed(runs):
            what = (run.dataset, run.model, run.framework, run.recipe)
            what += (run.init,) if METHODS[run.method].has_adapter else ()
            groups.setdefault((seen[what] // self.size if self.size > 1 else 0, what), []).append(run)
            seen[what] += 1
        counts: collections.Counter[str] = collections.Counter()
        named = {}
        for part, what in sorted(groups, key=lambda group: group[0]):
            place = "/".join(what[:3])
            named |= {run: replace(run, batch=f"{place}/{counts[place]:03d}") for run in groups[part, what]}
            counts[place] += 1
        return [named[run] for run in runs]

    def params(self, batch: "Sequence[Run]") -> dict[str, Any]:
        """Init, init seed and data seed of all runs of the batch: the results depend on them."""
        return {"fused": [[run.init, run.init_seed, run.data_seed] for run in _by_seed(batch)]}

    def memory(self, of_run: int, largest: int) -> int:
        return of_run + self.of_seed * (largest - 1)

    def turns(self, largest: int) -> int:
        return largest

    def check(self, config: Mapping[str, Any]) -> None:
        """Check that the runs of a recipe can be trained as one batched model.

        Raises:
            SeedbedError: the task, a model, a method, a precision or `batches.at_once` does not allow it.
        """
        if not task_of(config).fuses_seeds:
            others = [each.name for each in TASKS.values() if each.fuses_seeds]
            raise SeedbedError(
                f"fused seeds are for {join(others)} only",
                where="config, fused_seeds; grid.datasets",
                found=f"the task {task_of(config).name}",
                hint="set fused_seeds to false",
            )
        for name in config["grid"]["models"]:
            format_ = MODEL_FORMATS[config["models"][name]["format"]]
            if "fairseq" not in format_.frameworks:  # the batched model is the RoBERTa of both frameworks
                raise SeedbedError(
                    f"seeds of the model {name!r} cannot be fused",
                    where=f"config, fused_seeds; models.{name}.format",
                    found=format_.name,
                    hint="set fused_seeds to false, or leave the model out of grid.models",
                )
        if config["grid"].get("train_sizes"):
            raise SeedbedError(
                "fused seeds train on the same texts, and each data seed draws its own of a size",
                where="config, fused_seeds; grid.train_sizes",
                found=config["grid"]["train_sizes"],
                hint="set fused_seeds to false, or leave train_sizes out",
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
            for key, possible in (("method", FUSED_METHODS), ("precision", PRECISIONS)):
                if recipe[key] not in possible:
                    raise SeedbedError(
                        f"recipe {name!r}: seeds cannot be fused with the {key} {recipe[key]}",
                        where=f"config, recipes.{recipe['family']}.{key}; fused_seeds",
                        found=recipe[key],
                        hint=f"give {' or '.join(possible)}, or set fused_seeds to false",
                    )
            if METHODS[recipe["method"]].has_adapter:
                _check_adapter(name, recipe)


def _check_adapter(name: str, recipe: Mapping[str, Any]) -> None:
    """Refuse to train more than LoRA's matrices of linear layers and the head.

    Raises:
        SeedbedError: the adapter has an embedding, biases or copies of further modules.
    """
    lora = recipe["lora"]
    embeddings = any(each.endswith("embeddings") for each in lora["target_modules"])
    for key, fits, hint in (
        ("bias", lora["bias"] == "none", "give none"),
        ("modules_to_save", set(lora["modules_to_save"] or ()) <= {"classifier"}, "give null"),
        ("target_modules", not embeddings, "name linear layers alone"),
    ):
        if not fits:
            raise SeedbedError(
                f"recipe {name!r}: seeds can only be fused with an adapter of linear layers",
                where=f"config, recipes.{recipe['family']}.lora.{key}; fused_seeds",
                found=lora[key],
                hint=f"{hint}, or set fused_seeds to false",
            )


def _by_seed(runs: "Sequence[Run]") -> "list[Run]":
    """The runs, by the place of their seed in the grid first."""
    seeds = {seed: place for place, seed in enumerate(dict.fromkeys(run.seed for run in runs))}
    return sorted(runs, key=lambda run: seeds[run.seed])


def batching_of(config: Mapping[str, Any]) -> OneAfterAnother:
    """The assignment of runs to jobs in a config.

    The partial config for tables may lack the keys, which do not affect results.
    """
    batches = config.get("batches", {"runs": 1, "at_once": 1})
    shared = batches["runs"], min(batches["at_once"], batches["runs"])
    if not config.get("fused_seeds", False):
        return OneAfterAnother(*shared)
    methods = [METHODS[config["recipes"][name]["method"]] for name in config["grid"]["recipes"]]
    adapted = all(method.has_adapter for method in methods)
    return FusedSeeds(*shared, of_seed=ADAPTER_MEMORY if adapted else MEMORY)
