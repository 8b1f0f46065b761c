"""Recipes: sweeps, and settings that do not go together."""

import pytest
from builders_config import demo_config, refused

from seedbed.config.resolve import resolve_config
from seedbed.config.runs import build_runs


@pytest.fixture
def raw(tmp_path):
    return demo_config(tmp_path)


def test_numbers_of_a_sweep_are_read_as_those_of_a_recipe(raw):
    raw["recipes"]["demo"]["sweep"] = {
        "adam_epsilon": ["1e-8", "1e-6"],
        "epochs": [1.0],
        "weight_decay": [1.0],
    }
    config = resolve_config(raw)
    recipe = config["recipes"]["demo.adam_epsilon=1e-08.epochs=1.weight_decay=1"]
    assert list(recipe["swept"].values()) == [
        recipe["adam_epsilon"],
        recipe["epochs"],
        recipe["weight_decay"],
    ]
    assert [type(value) for value in recipe["swept"].values()] == [float, int, float]


def test_a_sweep_makes_a_family_and_several_lists_multiply(raw):
    raw["recipes"]["demo"]["sweep"] = {"learning_rate": [1e-5, 1e-4], "epochs": [1, 2]}
    config = resolve_config(raw)
    assert config["grid"]["recipes"] == [
        "demo.learning_rate=1e-05.epochs=1",
        "demo.learning_rate=1e-05.epochs=2",
        "demo.learning_rate=0.0001.epochs=1",
        "demo.learning_rate=0.0001.epochs=2",
    ]
    runs = build_runs(config)
    assert len(runs) == 48
    assert {run.recipe_family for run in runs} == {"demo"}
    assert dict(runs[-1].swept) == {"learning_rate": 1e-4, "epochs": 2}


def test_a_swept_value_is_checked_like_any_other(raw):
    raw["recipes"]["demo"]["sweep"] = {"learning_rate": [1e-5, -1.0]}
    assert "recipes.demo.learning_rate" in refused(raw)


def test_a_sweep_of_an_unknown_key_names_the_nearest(raw):
    raw["recipes"]["demo"]["sweep"] = {"batchsize": [8, 16]}
    assert "did you mean 'batch_size'?" in refused(raw)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"batches": {"runs": 4, "at_once": 2}}, ["batches.at_once", "found: 2", "set batches.at_once to 1"]),
        ({"recipe": {"precision": "float16"}}, ["recipes.demo.precision", "found: float16", "or bfloat16"]),
        ({"recipe": {"sweep": {"precision": ["float32", "float16"]}}}, ["'demo.precision=float16'"]),
        (
            {"recipe": {"method": "lora", "lora": {"task_type": "SEQ_CLS"}}},
            ["recipes.demo.method; fused_seeds", "found: lora", "give full"],
        ),
    ],
)
def test_what_fused_seeds_cannot_do_is_refused_by_name(raw, change, told):
    raw |= {"fused_seeds": True, "batches": change.get("batches", {})}
    raw["recipes"]["demo"] |= change.get("recipe", {})
    message = refused(raw)
    assert [part for part in told if part not in message] == []
    resolve_config(raw | {"fused_seeds": False})


def test_fused_seeds_take_float32_tf32_bfloat16_and_whatever_recipes_the_grid_leaves_out(raw):
    raw |= {"fused_seeds": True, "keep_model": True, "deterministic": True}
    raw["grid"]["frameworks"] = ["transformers"]
    raw["recipes"]["demo"]["sweep"] = {"precision": ["float32", "tf32", "bfloat16"], "dropout": [0.0, 0.1]}
    raw["recipes"]["other"] = {"method": "lora", "precision": "float16"}
    raw["evaluation"] |= {"test_curves": True}
    assert len(build_runs(resolve_config(raw))) == 6 * 2 * 3


def test_swept_values_that_are_the_same_are_an_error_and_close_ones_keep_apart(raw):
    raw["recipes"]["demo"]["sweep"] = {"learning_rate": [1e-4, "1e-4"]}
    assert "two recipes have the name 'demo.learning_rate=0.0001'" in refused(raw)
    raw["recipes"]["demo"]["sweep"] = {"learning_rate": [1e-4, 1.0000001e-4]}
    assert len(resolve_config(raw)["grid"]["recipes"]) == 2


def test_a_swept_null_is_called_as_yaml_writes_it(raw):
    raw["recipes"]["demo"]["sweep"] = {"max_positions": [None, 128]}
    assert resolve_config(raw)["grid"]["recipes"] == ["demo.max_positions=null", "demo.max_positions=128"]


def test_values_that_do_not_go_together_are_refused_in_the_grid_alone(raw):
    raw["recipes"]["other"] = {"precision": "bfloat16"}
    resolve_config(raw)
    raw["grid"]["recipes"] = ["other"]
    assert "fairseq 0.12 has no bfloat16" in refused(raw)


def test_an_end_of_the_learning_rate_counts_where_the_schedule_has_one(raw):
    raw["recipes"]["demo"]["end_learning_rate"] = 1.0
    assert "ends at a higher learning rate than its peak" in refused(raw)
    raw["recipes"]["demo"]["schedule"] = "constant"
    resolve_config(raw)


def test_a_block_is_swept_by_its_parts(raw):
    raw["recipes"]["demo"]["sweep"] = {"head_init": [{"sd": 0.1}]}
    told = refused(raw)
    assert "cannot sweep 'head_init'" in told
    assert "did you mean 'head_init.sd'?" in told


@pytest.mark.parametrize("names", [["a/b"], ["../x"], ["a\nb"], ["a\x1b[31m"], ["b" * 200], ["x/y", "z"]])
def test_swept_values_that_make_no_folder_are_refused(raw, names):
    raw["recipes"]["demo"].update(method="lora", sweep={"lora.target_modules": [names]})
    message = refused(raw)
    assert "the recipe's name cannot be the name of a folder" in message
    assert "config, recipes.demo.sweep" in message
    assert "\x1b" not in message
