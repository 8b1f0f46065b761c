"""Batches of runs: for every grid a partition, which added seeds do not disturb."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedbed.config.batching import FusedSeeds, OneAfterAnother
from seedbed.config.runs import Run, build_runs
from seedbed.core.errors import SeedbedError


def alone(runs: Sequence[Run], size: int) -> list[Run]:
    return OneAfterAnother(size).put(runs)


def fused(runs: Sequence[Run], size: int) -> list[Run]:
    return FusedSeeds(size).put(runs)


METHODS = {"plain": "full", "adapter": "lora"}
SIZES = st.integers(1, 5)


def some_of(*names: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), min_size=1, unique=True)


def seed(init: int, data: int) -> Any:
    return init if init == data else {"init": init, "data": data}


SEEDS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=5, unique=True)
GRIDS = st.fixed_dictionaries(
    {
        "datasets": some_of("books", "dvd"),
        "models": some_of("small", "large"),
        "recipes": some_of("plain", "adapter"),
        "frameworks": some_of("fairseq", "transformers"),
        "inits": some_of("pretrained", "random"),
        "seeds": SEEDS.map(lambda pairs: [seed(*pair) for pair in pairs]),
    }
)


def runs_of(grid: dict[str, Any]) -> list[Run]:
    recipes = {name: {"family": name, "method": method, "swept": {}} for name, method in METHODS.items()}
    return build_runs({"grid": grid, "recipes": recipes})


def members(runs: Sequence[Run]) -> dict[str, list[str]]:
    """The folders of the runs of each batch."""
    found: dict[str, list[str]] = {}
    for run in runs:
        found.setdefault(run.batch, []).append(run.folder)
    return found


def pair(run: Run) -> str:
    """What all runs of a batch have in common."""
    return f"{run.dataset}/{run.model}/{run.framework}"


def recipe(run: Run) -> tuple[str, ...]:
    """What all runs of one batched model have in common; those of different frozen weights have none."""
    return (pair(run), run.recipe, run.init if run.method == "lora" else "")


@given(grid=GRIDS)
def test_every_combination_that_its_framework_can_train_is_a_run(grid):
    runs = runs_of(grid)
    axes = (grid["datasets"], grid["models"], grid["inits"], grid["seeds"])
    recipes = [(recipe, name) for recipe in grid["recipes"] for name in grid["frameworks"]]
    trained = [(recipe, name) for recipe, name in recipes if (recipe, name) != ("adapter", "fairseq")]
    assert len(runs) == len({run.folder for run in runs}) == len(trained) * math.prod(map(len, axes))


@given(grid=GRIDS, size=SIZES)
@pytest.mark.parametrize("put", [alone, fused])
def test_batches_are_a_partition_that_changes_nothing_else_of_a_run(put, grid, size):
    runs = runs_of(grid)
    batched = put(runs, size)
    assert [run.folder for run in batched] == [run.folder for run in runs]
    if put is alone and size == 1:
        assert [run.batch for run in batched] == [run.folder for run in batched]
    else:
        assert all(run.batch.rsplit("/", 1)[0] == pair(run) for run in batched)


@given(grid=GRIDS, size=SIZES.filter(lambda size: size > 1))
@pytest.mark.parametrize(("put", "kind"), [(alone, pair), (fused, recipe)])
def test_batches_are_as_full_as_can_be_and_numbered_without_gaps(put, kind: Callable[[Run], Any], grid, size):
    batched = put(runs_of(grid), size)
    assert all(len(folders) <= size for folders in members(batched).values())
    assert all(len({kind(run) for run in batched if run.batch == name}) == 1 for name in members(batched))
    needed: Counter[str] = Counter()
    for place, count in Counter(map(kind, batched)).items():
        needed[place if kind is pair else place[0]] += math.ceil(count / size)
    assert sorted(members(batched)) == sorted(
        f"{place}/{number:03d}" for place, count in needed.items() for number in range(count)
    )


@given(grid=GRIDS)
def test_without_a_limit_all_runs_of_a_recipe_are_fused(grid):
    batched = fused(runs_of(grid), 1)
    recipes = [{recipe(run) for run in batched if run.batch == name} for name in members(batched)]
    assert sorted(recipes, key=str) == sorted(({each} for each in {recipe(run) for run in batched}), key=str)


@given(grid=GRIDS, size=SIZES, data=st.data())
@pytest.mark.parametrize("put", [alone, fused])
def test_seeds_that_are_added_leave_full_batches_as_they_are(put, grid, size, data):
    count = data.draw(st.integers(1, len(grid["seeds"]) - 1))
    before = members(put(runs_of({**grid, "seeds": grid["seeds"][:count]}), size))
    after = members(put(runs_of(grid), size))
    full = {name: sorted(folders) for name, folders in before.items() if len(folders) == size}
    if size > 1 or put is alone:
        assert full.items() <= {name: sorted(folders) for name, folders in after.items()}.items()
    assert all(set(folders) <= set(after[name]) for name, folders in before.items())


@given(grid=GRIDS, number=st.integers(0, 3))
def test_a_run_that_the_grid_names_twice_is_an_error(grid, number):
    twice = [number, {"init": number, "data": number}]
    with pytest.raises(SeedbedError, match="names one run twice"):
        runs_of({**grid, "recipes": ["plain"], "seeds": twice})
