"""Sizes of training: which recipes and runs they make, and what is refused."""

from types import SimpleNamespace

import pytest
from builders_config import demo_config, refused

from seedbed.config.plan import Plan
from seedbed.config.resolve import resolve_config
from seedbed.core.run_folder import LEVELS


@pytest.fixture
def raw(tmp_path):
    raw = demo_config(tmp_path)
    raw["grid"]["train_sizes"] = ["all", 100, 20]
    return raw


def test_a_size_is_a_recipe_of_its_own_and_all_texts_are_the_recipe_without_sizes(raw):
    config = resolve_config(raw)
    small, large, whole = config["grid"]["recipes"]
    assert (small, large, whole) == ("demo.train_size=20", "demo.train_size=100", "demo")
    assert [config["recipes"][name].get("train_size") for name in (small, large, whole)] == [20, 100, None]
    assert {config["recipes"][name]["family"] for name in (small, large, whole)} == {small, large, whole}
    del raw["grid"]["train_sizes"]
    assert resolve_config(raw)["recipes"]["demo"] == config["recipes"]["demo"]


def test_runs_on_all_texts_have_the_params_that_they_have_without_sizes(raw):
    sized = Plan(raw)
    del raw["grid"]["train_sizes"]
    plain = Plan(raw)
    assert len(sized.runs) == 3 * len(plain.runs)
    for run in plain.runs:
        wildcards = SimpleNamespace(**dict(zip(LEVELS, run.folder.split("/"), strict=True)))
        params = f"{run.framework}_run"
        assert getattr(sized, params)(wildcards) == getattr(plain, params)(wildcards)
        assert sized.subset(wildcards) == []
    assert sized.size_tables == ["learning_curves", "label_worth"]
    assert plain.size_tables == []


@pytest.mark.parametrize(
    ("least", "epochs"),
    [(0, 3), (9, 3), (10, 6), (100, 36)],  # three epochs of 20 texts in batches of 8 are 9 updates
)
def test_small_sizes_have_more_epochs_and_as_many_evaluations(raw, least, epochs):
    raw["recipes"]["demo"]["min_updates"] = least
    recipe = resolve_config(raw)["recipes"]["demo.train_size=20"]
    assert (recipe["epochs"], recipe["epochs"] // recipe["evaluated_every"]) == (epochs, 3)


def test_each_size_has_the_sweep_as_a_family_of_its_own(raw):
    raw["recipes"]["demo"]["sweep"] = {"learning_rate": [1e-4, 3e-4]}
    recipes = resolve_config(raw)["recipes"]
    families = {}
    for name, recipe in recipes.items():
        if name.startswith("demo."):
            families.setdefault(recipe["family"], []).append(name)
    assert families["demo.train_size=20"] == [
        "demo.learning_rate=0.0001.train_size=20", "demo.learning_rate=0.0003.train_size=20",
    ]  # fmt: skip
    assert len(families["demo"]) == 2


def test_a_run_of_a_size_waits_for_the_order_of_its_data_seed(raw):
    raw["grid"]["seeds"] = [{"init": 0, "data": 3}]
    plan = Plan(raw)
    wildcards = SimpleNamespace(dataset="reviews_fr", recipe="demo.train_size=20", seed="seed0-3")
    expected = [f"{plan.results}/data/reviews_fr/subsets/seed3/order.csv"]
    assert plan.subset(wildcards) == expected == plan.subsets()


def test_bags_of_words_of_sizes_are_planned_where_sizes_are_swept(raw):
    raw["grid"]["seeds"] = [{"init": 0, "data": 3}, {"init": 1, "data": 3}]
    plan = Plan(raw)
    folder = f"{plan.experiment_folder}/bags_of_words/reviews_fr"
    assert plan.bags_of_sizes() == [f"{folder}/bags.csv", f"{folder}/predictions.csv"]
    assert plan.data_seeds == [3]
    wildcards = SimpleNamespace(dataset="reviews_fr")
    assert plan.subsets_of_dataset(wildcards) == plan.subsets()
    raw["grid"]["train_sizes"] = ["all"]
    assert Plan(raw).bags_of_sizes() == []


def test_probes_of_sizes_are_planned_for_each_longest_input_of_runs_from_the_checkpoint(raw):
    raw["recipes"]["demo"]["max_positions"] = 64
    raw["recipes"] |= {
        "same": raw["recipes"]["demo"],
        "whole": raw["recipes"]["demo"] | {"max_positions": None},
    }
    raw["grid"]["recipes"] = ["demo", "same", "whole"]
    folder = "linear_probes/reviews_fr/roberta_tiny_fr"
    plan = Plan(raw)
    assert plan.probes_of_sizes() == [
        f"{plan.experiment_folder}/{folder}/{encoder}/{name}"
        for encoder in ("pretrained-max64", "pretrained")
        for name in ("probes.csv", "predictions.csv")
    ]
    raw["grid"]["inits"] = ["random"]
    assert Plan(raw).probes_of_sizes() == []
    raw["grid"] |= {"inits": ["pretrained"], "train_sizes": ["all"]}
    assert Plan(raw).probes_of_sizes() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train_sizes": [20, 20]}, "train_sizes"),
        ({"train_sizes": [1]}, "train_sizes"),
        ({"train_sizes": ["most"]}, "train_sizes"),
        ({"train_sizes": []}, "train_sizes"),
    ],
)
def test_sizes_that_are_none_are_refused(raw, change, message):
    raw["grid"] |= change
    assert message in refused(raw)


def test_fused_seeds_and_sizes_exclude_each_other(raw):
    raw["fused_seeds"] = True
    assert "each data seed draws its own of a size" in refused(raw)


def test_the_least_number_of_updates_cannot_be_swept(raw):
    raw["recipes"]["demo"]["sweep"] = {"min_updates": [10, 20]}
    assert "cannot sweep 'min_updates'" in refused(raw)
