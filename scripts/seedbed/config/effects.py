"""What a change of a key makes again: found by changing it, and by comparing the params of all rules.

Snakemake reruns a rule whose params change, and what follows from it. So each key of the config is set to
another valid value in an experiment that uses it, and the first stage with other params is its effect.
"""

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from seedbed.config.params import canonical
from seedbed.config.plan import Plan
from seedbed.config.resolve import with_source_table
from seedbed.config.settings import Settings
from seedbed.config.validation import complete, plain
from seedbed.core.errors import SeedbedError
from seedbed.core.run_folder import LEVELS

NEW_FOLDER, NEW_RUNS, NOTHING = "everything, in another folder", "the new runs, tables, report", "nothing"
# the first stage with other params, and what follows from it
STAGES = {
    "sources": "the source and what is made from it",
    "datasets": "the data, their runs, tables, report",
    "models": "the model, its runs, tables, report",
    "runs": "the runs, tables, report",
    "checks": "the checks",
    "tables": "tables, report",
    "figures": "figures, report",
    "report": "the report",
}
# values of all types, of which a key takes some
VALUES: tuple[Any, ...] = (
    True, False, 1, 2, 3, 0.5, 0.25, 1e-3, 20_000, "x", "a.csv", ";", "0" * 64, "cls_books", "{question}",
    ["x"], [5], [0, 1], [0.5, 0.75], ["bias"], ["a", "b"], {"epochs": [2, 3]}, "latin-1",
    ["text", "label", "question", "answer"],
)  # fmt: skip
TRIED = 2  # valid values of each key
NAMED = ("sources", "datasets", "models", "recipes")  # blocks by names


def stages(plan: Plan) -> dict[str, Any]:
    """The params of the rules, by stage; see rules/*.smk."""
    grid = plan.config["grid"]
    datasets = [SimpleNamespace(dataset=name) for name in grid["datasets"]]
    models = [SimpleNamespace(model=name) for name in grid["models"]]
    sources = [SimpleNamespace(source=plan.config["datasets"][name]["source"]) for name in grid["datasets"]]
    sources += [SimpleNamespace(source=plan.config["models"][name]["source"]) for name in grid["models"]]
    return {
        "sources": [(plan.source(each), plan.source_stamp(each)) for each in sources],
        "datasets": [plan.dataset(each) for each in datasets],
        "models": [plan.model(each) for each in models],
        "runs": {run.folder: _run(plan, run.folder) for run in plan.runs},
        "checks": [
            plan.config["checks"],
            plan.asked_of_models(),
            plan.adapter_recipes(),
            plan.freezing,
            plan.head_size,
            plan.sizes,
        ],
        "tables": [plan.aggregation(), plan.data_seeds],
        "figures": [plan.reporting(), plan.label_names(), plan.recipe_limits()],
        "report": canonical(plan.config),
    }


def _run(plan: Plan, folder: str) -> dict[str, Any]:
    names = dict(zip(LEVELS, folder.split("/"), strict=True))
    made = plan.fairseq_run if names["framework"] == "fairseq" else plan.transformers_run
    return made(SimpleNamespace(**names))


def effect(before: Plan, after: Plan) -> str:
    """What is made again where an experiment's config changes."""
    if before.experiment_folder != after.experiment_folder:
        return NEW_FOLDER
    old, new = stages(before), stages(after)
    runs = old["runs"].keys() & new["runs"].keys()
    if old["runs"].keys() != new["runs"].keys() and all(old["runs"][run] == new["runs"][run] for run in runs):
        return NEW_RUNS
    return next((text for stage, text in STAGES.items() if old[stage] != new[stage]), NOTHING)


def effects(experiments: Sequence[Mapping[str, Any]], choices: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    """The strongest effect of each key that an experiment uses, by its place such as `recipes.NAME.epochs`.

    Args:
        experiments: raw configs.
        choices: the values of keys that take only some, by their last part.
    """
    order = [NEW_FOLDER, NEW_RUNS, *STAGES.values(), NOTHING]
    trained = order.index(STAGES["runs"])
    found: dict[str, str] = {}
    for raw in experiments:
        before = Plan(copy.deepcopy(dict(raw)))
        whole = complete(Settings, with_source_table(plain(raw)))
        for place, value in _leaves(whole, used(before)):
            name = ".".join((place[0], "NAME", *place[2:]) if place[0] in NAMED else place)
            if order.index(found.get(name, NOTHING)) <= trained:
                continue
            others = _others(value, choices.get(place[-1], ()))
            told = (_effect_of(raw, place, other, before) for other in others)
            for each in itertools.islice((each for each in told if each is not None), TRIED):
                found[name] = min(found.get(name, NOTHING), each, key=order.index)
    return found


def _others(value: Any, choices: Sequence[Any]) -> Iterator[Any]:
    """Values that may take the place of another: its choices, those of its type, lists, switches and numbers.

    Null may become any.
    """
    if isinstance(value, list):
        yield from ([each] for each in choices)
        yield [*value, "other"]
    else:
        yield from choices
    kinds = (int, float) if type(value) in (int, float) else type(value)
    yield from (each for each in VALUES if not choices and (value is None or isinstance(each, kinds)))
    yield from (each for each in VALUES if isinstance(each, (list, int)))


def used(plan: Plan) -> dict[str, set[str]]:
    """The names of sources, datasets, models and recipes that the grid uses."""
    grid, config = plan.config["grid"], plan.config
    names = {kind: set(grid[kind]) for kind in ("datasets", "models")}
    names["recipes"] = {config["recipes"][name]["family"] for name in grid["recipes"]}
    names["sources"] = {
        config[kind][name]["source"] for kind in ("datasets", "models") for name in names[kind]
    }
    return names


def _leaves(
    block: Any, names: Mapping[str, set[str]], place: tuple[str, ...] = ()
) -> Iterator[tuple[Any, Any]]:
    """The place and value of each key that holds no further keys."""
    for key, value in block.items():
        here = (*place, key)
        if len(here) == 2 and here[0] in NAMED and key not in names[here[0]]:
            continue
        if isinstance(value, dict) and key not in ("sweep", "seeds"):
            yield from _leaves(value, names, here)
        else:
            yield here, value


def _effect_of(raw: Mapping[str, Any], place: Sequence[str], value: Any, before: Plan) -> str | None:
    """The effect of a value; None where the key cannot take it, or where it means the same."""
    changed = copy.deepcopy(dict(raw))
    block = changed
    for key in place[:-1]:
        block = block.setdefault(key, {})
    block[place[-1]] = value
    try:
        after = Plan(changed)
    except SeedbedError:
        return None
    return None if after.config == before.config else effect(before, after)
