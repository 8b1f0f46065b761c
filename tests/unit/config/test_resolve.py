"""The resolved config: defaults, the table of sources, the repository's own recipes."""

import copy
from pathlib import Path

import pytest
from builders import load_config
from builders_config import demo_config, questions_config, refusal, refused

from seedbed.config.resolve import resolve_config
from seedbed.config.runs import build_runs

ROOT = Path(__file__).parents[3]


@pytest.fixture
def raw(tmp_path):
    return demo_config(tmp_path)


@pytest.fixture
def questions(tmp_path):
    return questions_config(tmp_path)


def test_defaults_fill_what_is_left_out_and_the_raw_config_stays_as_it_was(raw):
    raw["recipes"]["short"] = {"epochs": 1}
    before = copy.deepcopy(raw)
    recipe = resolve_config(raw)["recipes"]["short"]
    assert (recipe["batch_size"], recipe["learning_rate"], recipe["warmup_ratio"]) == (8, 1e-5, 0.06)
    assert raw == before


def test_the_labs_recipe_is_what_the_lab_states():
    config = resolve_config(load_config([ROOT / "config.yaml", ROOT / "experiments/cls_books.yaml"]))
    lab = config["recipes"]["lab"]
    assert (lab["batch_size"], lab["learning_rate"], lab["epochs"], lab["warmup_ratio"]) == (8, 1e-5, 5, 0.06)


@pytest.mark.parametrize(
    ("confidence", "needed"), [(0.9, 200), (0.95, 400), (0.99, 2_000), (0.999, 20_000), (0.9995, 40_000)]
)
def test_each_tail_of_an_interval_holds_ten_replicates(raw, confidence, needed):
    raw["statistics"] |= {"confidence": confidence, "replicates": needed - 1}
    message = refused(raw)
    assert f"too few bootstrap replicates for intervals of {confidence}" in message
    assert f"give at least {needed:,}" in message
    raw["statistics"]["replicates"] = needed
    assert resolve_config(raw)["statistics"]["replicates"] == needed


def test_the_table_of_sources_is_there_and_the_config_overrides_a_row(raw):
    raw["sources"]["cls_books"] = {"locations": ["here.zip"], "sha256": "0" * 64}
    sources = resolve_config(raw)["sources"]
    assert sources["cls_books"]["locations"] == ["here.zip"]
    assert sources["cls_books"]["version"] is None
    small = sources["roberta_small_fr"]
    assert small["locations"][0].endswith("RoBERTa_small_fr.zip")
    assert set(small) == set(sources["cls_books"])


# --- generation and adapters ---


def test_seeds_are_not_fused_in_generation(questions):
    error = refusal(questions | {"fused_seeds": True})
    assert "fused_seeds" in error.where
    assert "generation" in error.found
    assert "set fused_seeds to false" in str(error)


def test_datasets_of_two_tasks_are_two_experiments(questions):
    questions["grid"]["datasets"] = ["asked", "reviews_fr"]
    error = refusal(questions)
    assert error.where == "config, grid.datasets"
    assert error.found == "asked (generation), reviews_fr (classification)"
    assert "make two experiments" in error.hint


@pytest.mark.parametrize(
    ("dataset", "model", "told"),
    [
        ("asked", "roberta_tiny_fr", "generation takes models in the format causal"),
        ("reviews_fr", "bloom", "classification takes models in the format fairseq or huggingface or auto"),
    ],
)
def test_a_model_has_to_be_one_for_the_task(questions, dataset, model, told):
    questions["grid"] |= {"datasets": [dataset], "models": [model], "recipes": ["whole"]}
    error = refusal(questions)
    assert f"models.{model}.format" in error.where
    assert error.hint == told


def test_generation_needs_transformers_and_leaves_fairseq_out(questions):
    questions["grid"]["frameworks"] = ["fairseq"]
    assert refusal(questions).where == "config, grid.frameworks"
    questions["grid"]["frameworks"] = ["fairseq", "transformers"]
    config = resolve_config(questions)
    assert config["grid"]["frameworks"] == ["transformers"]
    assert {run.framework for run in build_runs(config)} == {"transformers"}


def test_the_limit_of_answers_is_there_for_generation_alone(questions, raw):
    assert resolve_config(questions)["evaluation"]["max_new_tokens"] == 32
    questions["evaluation"]["max_new_tokens"] = 0
    assert "0 is less than the minimum of 1" in str(refusal(questions))
    raw["evaluation"]["max_new_tokens"] = 64
    raw["grid"] |= {"datasets": ["reviews_fr"], "models": ["roberta_tiny_fr"], "recipes": ["demo"]}
    assert resolve_config(raw)["evaluation"] == {"batch_size": 64, "test_curves": False}


@pytest.mark.parametrize("name", ["lora_bloom_lr", "lora_llama", "demo_lora_lr", "cls_books_lora"])
def test_an_overlay_alone_stops_instead_of_training_the_demo(name):
    error = refusal(load_config([ROOT / "config.yaml", ROOT / f"experiments/{name}.yaml"]))
    assert "is not defined under datasets" in error.what


def test_lora_and_full_on_cls_books_differ_in_method_and_learning_rate_alone():
    files = [
        ROOT / "config.yaml",
        *(ROOT / f"experiments/{name}.yaml" for name in ("cls_books", "cls_books_lora")),
    ]
    recipes = resolve_config(load_config(files))["recipes"]
    full, lora = recipes["lab.learning_rate=0.0001"], recipes["lora.learning_rate=0.0001"]
    differ = {key for key in full.keys() | lora.keys() if full.get(key) != lora.get(key)}
    assert differ == {"method", "lora", "frozen_dtype", "family"}


def test_the_recipes_of_lora_bloom_differ_in_the_method_alone():
    recipes = resolve_config(load_config([ROOT / "config.yaml", ROOT / "experiments/lora_bloom.yaml"]))[
        "recipes"
    ]
    keys = recipes["lora"].keys() | recipes["qlora"].keys()
    differ = {key for key in keys if recipes["lora"].get(key) != recipes["qlora"].get(key)}
    assert differ == {"method", "quantization", "family"}
    differ = {key for key in recipes["lora"] if recipes["lora"].get(key) != recipes["full"].get(key)}
    assert differ == {"method", "learning_rate", "lora", "frozen_dtype", "family"}
