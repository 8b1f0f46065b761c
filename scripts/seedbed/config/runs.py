"""Build the run table of an experiment.

It determines targets, wildcards and aggregation. How runs share jobs (`batching`) only names their batches.
"""

import itertools
from dataclasses import dataclass, fields
from typing import Any

from seedbed.config.batching import batching_of
from seedbed.config.combinations import is_trained
from seedbed.config.stages import admits, question_of
from seedbed.core.errors import SeedbedError
from seedbed.core.run_folder import seed_folder

RUN_FILES = ("metrics.csv", "predictions.csv", "run.json")


@dataclass(frozen=True)
class Run:
    """One fine-tuning run; `batch` is the name of the job that trains it, alone or with others."""

    dataset: str
    model: str
    framework: str
    init: str
    recipe: str
    recipe_family: str
    method: str
    init_seed: int
    data_seed: int
    swept: tuple[tuple[str, Any], ...] = ()
    batch: str = ""

    @property
    def seed(self) -> str:
        """The seed's folder (`seed_folder`)."""
        return seed_folder(self.init_seed, self.data_seed)

    @property
    def folder(self) -> str:
        """The run's folder below results/EXPERIMENT/runs."""
        return "/".join((self.dataset, self.model, self.framework, self.init, self.recipe, self.seed))


# the attributes that identify a run in tables and in run.json; its batch does not
RUN_KEYS = tuple(field.name for field in fields(Run) if field.name not in ("swept", "batch"))


def build_runs(config: dict[str, Any]) -> list[Run]:
    """The run table of a resolved config, in a fixed order.

    It has all combinations of the grid's axes whose framework can train the model and the recipe's method; of
    an experiment in stages those that the present one has, of which a side may lack recipes of the other.
    """
    grid = config["grid"]
    runs = []
    axes = (
        grid["datasets"],
        grid["models"],
        grid["recipes"],
        grid["seeds"],
        grid["frameworks"],
        grid["inits"],
    )
    for dataset, model, recipe, seed, framework, init in itertools.product(*axes):
        seeds = seed if isinstance(seed, dict) else {"init": seed, "data": seed}
        block = config["recipes"][recipe]
        if not is_trained(config, model, framework, recipe):
            continue
        if not admits(config, question_of(dataset, model, framework, block["family"]), recipe, init, seed):
            continue
        runs.append(
            Run(
                dataset=dataset,
                model=model,
                framework=framework,
                init=init,
                recipe=recipe,
                recipe_family=block["family"],
                method=block["method"],
                init_seed=seeds["init"],
                data_seed=seeds["data"],
                swept=tuple(block["swept"].items()),
            )
        )
    _refuse_repeats(runs)
    return batching_of(config).put(runs)


def _refuse_repeats(runs: list[Run]) -> None:
    # a repeated run would count as two seeds
    folders: set[str] = set()
    for run in runs:
        if run.folder in folders:
            raise SeedbedError(
                "the grid names one run twice",
                where=f"config, grid; {run.folder}",
                hint="a seed s is the same as {init: s, data: s}: list it once",
            )
        folders.add(run.folder)
