"""Stages of an experiment that grows: which runs each has, and what is refused."""

import collections
import copy
from pathlib import Path

import pytest
from builders_config import demo_config, refused

from seedbed.config import stages
from seedbed.config.plan import Plan
from seedbed.core.errors import SeedbedError
from seedbed.core.files import write_json

FAIRSEQ, TRANSFORMERS = (f"reviews_fr/roberta_tiny_fr/{name}/demo" for name in ("fairseq", "transformers"))


@pytest.fixture
def raw(tmp_path):
    return demo_config(tmp_path) | {"until": {"looks": [3, 5, 10], "max_seeds": 8}}


def decide(plan: Plan, **seeds: int) -> Path:
    """Write what a stage decides: the seeds of the next one by framework; None: decided."""
    (path,) = map(Path, plan.decision)
    questions = {
        name: {
            "state": "decided" if following is None else "open",
            "now": plan.stage.now[name],
            "next": {"seeds": following} if following else plan.stage.now[name],
        }
        for name, following in zip(
            (FAIRSEQ, TRANSFORMERS), (seeds["fairseq"], seeds["transformers"]), strict=True
        )
    }
    finished = not any(seeds.values())
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"asked": stages.asked(plan.config), "finished": finished, "questions": questions})
    return path


def seeds_of(plan: Plan) -> dict[str, int]:
    """Seeds a side by framework."""
    counted = collections.Counter((run.framework, run.init) for run in plan.runs)
    assert counted["fairseq", "pretrained"] == counted["fairseq", "random"]
    return {framework: number for (framework, _), number in counted.items()}


def test_the_first_stage_has_the_seeds_of_the_first_look(raw):
    plan = Plan(raw)
    assert seeds_of(plan) == {"fairseq": 3, "transformers": 3}
    assert plan.config["until"] == {"looks": [3, 5, 8]}
    assert plan.config["grid"]["seeds"] == list(range(8))
    assert (plan.stage.number, plan.stage.finished) == (1, False)


def test_each_stage_goes_on_from_the_one_before(raw):
    decide(Plan(raw), fairseq=None, transformers=5)
    second = Plan(raw)
    assert seeds_of(second) == {"fairseq": 3, "transformers": 5}
    assert second.decision == [str(Path(raw["results"]) / "demo" / "stages" / "2.json")]
    decide(second, fairseq=None, transformers=None)
    last = Plan(raw)
    assert (last.stage.number, last.stage.finished, seeds_of(last)) == (2, True, seeds_of(second))
    # so that a workflow after the last stage makes nothing anew
    assert last.aggregation() == second.aggregation()
    assert stages.open_questions(Path(last.experiment_folder), last.stage) == ""


def test_what_is_open_is_said_after_a_stage(raw):
    plan = Plan(raw)
    decide(plan, fairseq=None, transformers=5)
    told = stages.open_questions(Path(plan.experiment_folder), plan.stage)
    assert told.startswith("Open: 1 question of 2. Run the same command again for 5 seeds a side")


def test_a_dataset_that_comes_later_begins_with_the_first_look(raw):
    decide(Plan(raw), fairseq=None, transformers=None)
    raw["datasets"]["others"] = raw["datasets"]["reviews_fr"]
    raw["grid"]["datasets"] = ["reviews_fr", "others"]
    plan = Plan(raw)
    assert (plan.stage.number, plan.stage.finished) == (2, False)
    assert collections.Counter(run.dataset for run in plan.runs) == {"reviews_fr": 12, "others": 12}


def test_seeds_of_the_grid_come_first_and_runs_are_those_without_looks(raw):
    raw["grid"]["seeds"] = [7, 2]
    plan = Plan(raw)
    assert plan.config["grid"]["seeds"] == [7, 2, 0, 1, 3, 4, 5, 6]
    assert {run.init_seed for run in plan.runs} == {7, 2, 0}
    raw |= {"until": None}
    raw["grid"]["seeds"] = [7, 2, 0]
    assert plan.runs == Plan(raw).runs


@pytest.mark.parametrize("until", [None, {"decided": False}])
def test_without_looks_the_config_is_as_before(raw, until):
    plan = Plan(raw | {"until": until})
    assert "until" not in plan.config
    assert (plan.decision, plan.stage, len(plan.runs)) == ([], None, 12)


def test_another_plan_of_looks_is_refused(raw):
    path = decide(Plan(raw), fairseq=None, transformers=5)
    with pytest.raises(SeedbedError) as error:
        Plan(raw | {"until": {"looks": [3, 4, 5], "max_seeds": 5}})
    assert str(path) in str(error.value)
    assert "[3, 5, 8]" in str(error.value)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"until": {"looks": [5, 3]}}, "until.looks"),
        ({"until": {"looks": [2, 3]}}, "until.looks"),
        ({"until": {"max_seeds": 2}}, "until.max_seeds"),
        ({"fused_seeds": True, "recipes": {"demo": {}}}, "fused_seeds"),
        ({"grid": {"inits": ["pretrained"]}}, "grid.inits"),
        ({"grid": {"train_sizes": [100, "all"]}}, "train_sizes"),
        ({"grid": {"seeds": {"init": [0, 1, 2], "data": [0, 1, 2]}}}, "grid.seeds"),
    ],
)
def test_what_cannot_grow_is_refused(raw, changes, place):
    grid = raw["grid"] | changes.pop("grid", {})
    assert place in refused({**raw, **changes, "grid": grid})


# --- values that are added to a range ---

RANGE = {"start": 1e-4, "factor": 3, "max": 5}
LOW, START, HIGH, HIGHER = 3.33e-05, 1e-4, 3e-4, 9e-4


@pytest.fixture
def ranged(tmp_path):
    config = demo_config(tmp_path)
    config["grid"]["frameworks"] = ["transformers"]
    config["recipes"]["demo"]["sweep"] = {"learning_rate": dict(RANGE)}
    return config


def decide_values(plan: Plan, state: str, **values: list[float]) -> Path:
    """Write what a stage decides of its only question; `values` are those of the next one, by init."""
    (path,) = map(Path, plan.decision)
    now = plan.stage.now[TRANSFORMERS]
    question = {"state": state, "now": now, "next": {**now, "values": values or now["values"]}}
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {"asked": stages.asked(plan.config), "finished": state in ("interior", "ended", "decided")}
    write_json(path, {**told, "questions": {TRANSFORMERS: question}})
    return path


def rates_of(plan: Plan) -> dict[str, list[float]]:
    """The learning rates of each init, in the order of its runs."""
    found: dict[str, dict[float, None]] = {}
    for run in plan.runs:
        found.setdefault(run.init, {})[dict(run.swept)["learning_rate"]] = None
    return {init: list(rates) for init, rates in found.items()}


def test_the_first_stage_has_three_values_around_the_start(ranged):
    plan = Plan(ranged)
    assert rates_of(plan) == {init: [LOW, START, HIGH] for init in ("pretrained", "random")}
    assert len(plan.runs) == 3 * 2 * 3
    assert plan.config["grid"]["recipes"] == [f"demo.learning_rate={rate:g}" for rate in (LOW, START, HIGH)]
    assert plan.decision[0].endswith("stages/1.json")


def test_each_side_goes_on_with_its_own_values_in_rising_order(ranged):
    before = {run.folder for run in Plan(ranged).runs}
    decide_values(
        Plan(ranged),
        "widening",
        pretrained=[1.11e-05, LOW, START, HIGH],
        random=[LOW, START, HIGH, HIGHER],
    )
    second = Plan(ranged)
    assert rates_of(second) == {
        "pretrained": [1.11e-05, LOW, START, HIGH],
        "random": [LOW, START, HIGH, HIGHER],
    }
    assert before < {run.folder for run in second.runs}
    told = decide_values(second, "interior")
    last = Plan(ranged)
    assert (last.stage.number, last.stage.finished, rates_of(last)) == (2, True, rates_of(second))
    assert last.aggregation() == second.aggregation()
    assert stages.open_questions(told.parents[1], last.stage) == ""


def test_what_a_stage_adds_is_said_after_it(ranged):
    plan = Plan(ranged)
    rates = [LOW, START, HIGH, HIGHER]
    decide_values(plan, "widening", pretrained=rates, random=rates)
    told = stages.open_questions(Path(plan.experiment_folder), plan.stage)
    assert told.startswith("Open: 1 question of 1. Run the same command again for 4 swept values a side;")


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"start": 2e-4}, "start 0.0002, factor 3, max 5, and before learning_rate: start 0.0001"),
        ({"factor": 2}, "factor 2"),
        ({"max": 4}, "max 4"),
        ({"max": 6}, None),
    ],
)
def test_a_range_that_has_grown_keeps_its_plan_but_for_a_larger_max(ranged, changes, refused):
    path = decide_values(Plan(ranged), "ended")
    ranged["recipes"]["demo"]["sweep"] = {"learning_rate": RANGE | changes}
    if refused is None:
        # the stage is decided again, since what it goes by has changed
        plan = Plan(ranged)
        assert plan.decision == [str(path)]
        assert plan.aggregation()["ranges"]["demo"]["max"] == 6
        return
    with pytest.raises(SeedbedError) as error:
        Plan(ranged)
    assert refused in str(error.value)
    assert str(path) in str(error.value)


def test_seeds_of_the_grid_can_be_added_to_values_and_looks_after_them(ranged):
    decide_values(Plan(ranged), "interior")
    ranged["grid"]["seeds"] = [0, 1, 2, 3]
    assert len(Plan(ranged).runs) == 3 * 2 * 4
    plan = Plan(ranged | {"until": {"looks": [3, 5], "max_seeds": 5}})
    assert plan.stage.now[TRANSFORMERS]["seeds"] == 3
    assert len(plan.runs) == 3 * 2 * 3


def test_a_family_without_a_range_has_all_its_recipes(ranged):
    ranged["recipes"]["other"] = copy.deepcopy(ranged["recipes"]["demo"]) | {"sweep": {"epochs": [1, 2]}}
    ranged["grid"]["recipes"] = ["demo", "other"]
    plan = Plan(ranged)
    assert collections.Counter(run.recipe_family for run in plan.runs) == {"demo": 18, "other": 12}
    assert list(plan.stage.now) == [TRANSFORMERS]


def test_a_question_without_runs_keeps_no_experiment_open(raw):
    raw["recipes"]["adapter"] = copy.deepcopy(raw["recipes"]["demo"]) | {
        "method": "lora", "lora": {"task_type": "SEQ_CLS", "target_modules": ["query"]},
    }  # fmt: skip
    raw["grid"]["recipes"] = ["demo", "adapter"]
    # fairseq has no adapters
    assert list(Plan(raw).stage.now) == [FAIRSEQ, TRANSFORMERS, f"{TRANSFORMERS[:-4]}adapter"]
