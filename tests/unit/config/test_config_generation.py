"""Configuration of questions, causal models and adapters: errors, defaults, unused keys; and their plan."""

import copy
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders import load_config

from seedbed.config.plan import Plan
from seedbed.config.resolve import resolve_config
from seedbed.config.runs import build_runs
from seedbed.core.errors import SeedbedError

ROOT = Path(__file__).parents[3]
QUESTIONS = {
    "task": "generation",
    "source": "reviews_fr",
    "format": "jsonl",
    "files": {"train": "questions.jsonl"},
}
CAUSAL = {"source": "bloom_560m", "format": "causal"}
SEQ_CLS = {"task_type": "SEQ_CLS", "target_modules": ["query", "value"]}


@pytest.fixture
def labelled(tmp_path):
    """The repository's own experiment, of classification."""
    return {**load_config([ROOT / "config.yaml"]), "results": str(tmp_path / "results")}


@pytest.fixture
def raw(labelled):
    """An experiment of generation on top of it, as an overlay would make it."""
    labelled["experiment"] = "asked"
    labelled["datasets"]["asked"] = copy.deepcopy(QUESTIONS)
    labelled["models"]["bloom"] = copy.deepcopy(CAUSAL)
    labelled["recipes"] |= {
        "none": {"method": "none"},
        "adapter": {"method": "lora"},
        "packed": {"method": "qlora"},
        "whole": {"method": "full"},
    }
    labelled["grid"] = {
        "datasets": ["asked"],
        "models": ["bloom"],
        "recipes": ["none", "adapter", "packed", "whole"],
        "inits": ["pretrained"],
        "seeds": [0, 1],
    }
    return labelled


def refused(raw) -> SeedbedError:
    with pytest.raises(SeedbedError) as error:
        resolve_config(raw)
    return error.value


def test_seeds_are_not_fused_in_generation(raw):
    error = refused(raw | {"fused_seeds": True})
    assert "fused_seeds" in error.where
    assert "generation" in error.found
    assert "set fused_seeds to false" in str(error)


# --- datasets ---


def test_a_dataset_of_questions_has_its_own_defaults(raw):
    assert resolve_config(raw)["datasets"]["asked"] == {
        "task": "generation",
        "source": "reviews_fr",
        "format": "jsonl",
        "files": {"train": "questions.jsonl", "validation": None, "test": None},
        "columns": {"question": "question", "answer": "answer", "context": None},
        "template": "Question : {question}\nRéponse :",
        "answer_prefix": " ",
        "validation_split": {"size": 0.1, "seed": 0},
        "test_split": {"size": 0.1, "seed": 0},
        "near_duplicates": None,
        "drop_leaks": False,
        "max_tokens": None,
        "overlong": "error",
        "language": "und",
        "description": "",
    }


def test_numbers_of_a_dataset_of_questions_may_be_text(raw):
    raw["datasets"]["asked"] |= {"max_tokens": "1e2", "test_split": {"size": "5e-2"}}
    dataset = resolve_config(raw)["datasets"]["asked"]
    assert (dataset["max_tokens"], type(dataset["max_tokens"])) == (100, int)
    assert dataset["test_split"] == {"size": 0.05, "seed": 0}


@pytest.mark.parametrize("split", ["validation", "test"])
def test_how_a_split_is_drawn_is_left_out_where_it_is_given(raw, split):
    raw["datasets"]["asked"]["files"][split] = "more.jsonl"
    before = Plan(copy.deepcopy(raw)).shared.stamp("datasets", "asked")
    raw["datasets"]["asked"][f"{split}_split"] = {"size": 0.3, "seed": 7}
    assert f"{split}_split" not in resolve_config(raw)["datasets"]["asked"]
    assert Plan(copy.deepcopy(raw)).shared.stamp("datasets", "asked") == before
    raw["datasets"]["asked"]["files"][split] = None
    assert resolve_config(raw)["datasets"]["asked"][f"{split}_split"] == {"size": 0.3, "seed": 7}


@pytest.mark.parametrize(
    ("change", "where", "told"),
    [
        ({"templat": "x"}, "templat", "did you mean 'template'?"),
        ({"labels": ["a", "b"]}, "labels", "unknown configuration key 'labels'"),
        ({"format": "lab"}, "format", "'lab' is not one of ['json', 'jsonl', 'csv', 'tsv']"),
        ({"files": {"test": "x"}}, "files", "'train' is a required property"),
        ({"columns": {"reply": "x"}}, "columns.reply", "unknown configuration key 'reply'"),
        ({"max_tokens": 2}, "max_tokens", "2 is less than the minimum of 3"),
        ({"overlong": "truncate"}, "overlong", "['error', 'cut', 'drop']"),
        ({"overlong": "cut"}, "overlong", "only contexts can be cut"),
        ({"near_duplicates": 2}, "near_duplicates", "2 is greater than the maximum of 1"),
        ({"task": "generatoin"}, "task", "did you mean 'generation'?"),
        ({"task": ["generation"]}, "task", "unknown task ['generation']"),
        ({"template": "Réponse :"}, "template", "must name {question}, and nothing else"),
        ({"template": "{question} {answer}"}, "template", "must name {question}, and nothing else"),
        ({"template": "{question!r}"}, "template", "without a format"),
        ({"template": "{question:>80}"}, "template", "without a format"),
        ({"template": "{question} {"}, "template", "the template cannot be read"),
        ({"template": "{context} {question}"}, "template", "columns.context is null"),
        ({"columns": {"context": "text"}}, "template", "columns.context is set"),
    ],
)
def test_a_dataset_of_questions_that_is_none(raw, change, where, told):
    raw["datasets"]["asked"] |= change
    error = refused(raw)
    assert told in str(error)
    assert error.where == f"config, datasets.asked.{where}"


def test_a_template_may_hold_braces_and_name_the_context(raw):
    raw["datasets"]["asked"] |= {
        "columns": {"context": "text"},
        "template": "{{{context}}} {question} {question}",
        "overlong": "cut",
    }
    dataset = resolve_config(raw)["datasets"]["asked"]
    assert dataset["template"].format(context="A", question="B") == "{A} B B"
    assert dataset["columns"] == {"question": "question", "answer": "answer", "context": "text"}


def test_labelled_texts_know_nothing_of_questions(labelled):
    labelled["datasets"]["reviews_fr"]["template"] = "{question}"
    assert "unknown configuration key 'template'" in str(refused(labelled))


# --- one task an experiment ---


def test_datasets_of_two_tasks_are_two_experiments(raw):
    raw["grid"]["datasets"] = ["asked", "reviews_fr"]
    error = refused(raw)
    assert error.where == "config, grid.datasets"
    assert error.found == "asked (generation), reviews_fr (classification)"
    assert "make two experiments" in error.hint


@pytest.mark.parametrize(
    ("dataset", "model", "told"),
    [
        ("asked", "roberta_tiny_fr", "generation takes models in the format causal"),
        ("reviews_fr", "bloom", "classification takes models in the format fairseq or huggingface"),
    ],
)
def test_a_model_has_to_be_one_for_the_task(raw, dataset, model, told):
    raw["grid"] |= {"datasets": [dataset], "models": [model], "recipes": ["whole"]}
    error = refused(raw)
    assert f"models.{model}.format" in error.where
    assert error.hint == told


def test_generation_needs_transformers_and_leaves_fairseq_out(raw):
    raw["grid"]["frameworks"] = ["fairseq"]
    assert refused(raw).where == "config, grid.frameworks"
    raw["grid"]["frameworks"] = ["fairseq", "transformers"]
    config = resolve_config(raw)
    assert config["grid"]["frameworks"] == ["transformers"]
    assert {run.framework for run in build_runs(config)} == {"transformers"}


def test_generation_may_start_from_random_weights_and_train_in_bfloat16(raw):
    raw["grid"]["inits"] = ["pretrained", "random"]
    raw["recipes"]["whole"]["precision"] = "bfloat16"
    runs = build_runs(resolve_config(raw))
    assert len(runs) == 16
    assert {run.init for run in runs} == {"pretrained", "random"}


def test_the_limit_of_answers_is_there_for_generation_alone(raw, labelled):
    assert resolve_config(raw)["evaluation"]["max_new_tokens"] == 32
    raw["evaluation"]["max_new_tokens"] = 0
    assert "0 is less than the minimum of 1" in str(refused(raw))
    labelled["evaluation"]["max_new_tokens"] = 64
    labelled["grid"] |= {"datasets": ["reviews_fr"], "models": ["roberta_tiny_fr"], "recipes": ["demo"]}
    assert resolve_config(labelled)["evaluation"] == {"batch_size": 64, "test_curves": False}


# --- models ---


def test_a_causal_model_has_the_files_of_its_format(raw):
    raw["models"]["deep"] = {**CAUSAL, "checkpoint": "a/b/weights.safetensors", "config": "c.json"}
    models = resolve_config(raw)["models"]
    assert models["bloom"] == {
        "source": "bloom_560m", "format": "causal", "checkpoint": "model.safetensors",
        "config": "config.json", "tokenizer": "tokenizer.json", "description": "",
    }  # fmt: skip
    assert models["deep"]["tokenizer"] == "a/b/tokenizer.json"
    assert models["deep"]["config"] == "c.json"
    assert "tokenizer" not in models["roberta_tiny_fr"]  # whose fingerprint stays what it was


@pytest.mark.parametrize(
    ("kind", "key"), [("causal", "dictionary"), ("causal", "sentencepiece"), ("huggingface", "tokenizer")]
)
def test_a_file_that_a_format_of_models_has_not(raw, kind, key):
    raw["models"]["other"] = {"source": "bloom_560m", "format": kind, key: "x"}
    assert refused(raw).where == f"config, models.other.{key}"


# --- recipes ---


def test_an_adapter_has_pefts_names_and_defaults(raw):
    raw["recipes"]["adapter"]["lora"] = {"r": 4}
    recipe = resolve_config(raw)["recipes"]["adapter"]
    assert recipe["lora"] == {
        "r": 4, "lora_alpha": 32, "target_modules": ["query_key_value"], "lora_dropout": 0.05,
        "bias": "none", "task_type": "CAUSAL_LM", "modules_to_save": None,
    }  # fmt: skip
    assert recipe["frozen_dtype"] == "float32"
    assert resolve_config(raw)["recipes"]["packed"]["quantization"] == {
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_use_double_quant": True,
        "bnb_4bit_compute_dtype": "bfloat16",
    }


@pytest.mark.parametrize(
    ("recipe", "kept"),
    [
        ("none", {"loss_on", "gradient_checkpointing"}),
        ("whole", {"loss_on", "gradient_checkpointing"}),
        ("adapter", {"loss_on", "gradient_checkpointing", "lora", "frozen_dtype"}),
        ("packed", {"loss_on", "gradient_checkpointing", "lora", "frozen_dtype", "quantization"}),
    ],
)
def test_what_a_method_does_not_use_changes_no_run(raw, recipe, kept):
    place = SimpleNamespace(dataset="asked", model="bloom", init="pretrained", recipe=recipe, seed="seed0")
    before = Plan(copy.deepcopy(raw)).transformers_run(place)
    changes = {
        "lora": {"r": 2},
        "frozen_dtype": "bfloat16",
        "quantization": {"bnb_4bit_quant_type": "fp4"},
        "loss_on": "all",
        "gradient_checkpointing": True,
    }
    for key, value in changes.items():
        changed = copy.deepcopy(raw)
        changed["recipes"][recipe][key] = value
        after = Plan(changed).transformers_run(place)
        assert (key in after["settings"]) == (key in kept)
        assert (after != before) == (key in kept)
    assert before["task"] == "generation"


def test_what_classification_does_not_use_is_left_out(labelled):
    labelled["recipes"]["adapter"] = {"method": "lora", "lora": SEQ_CLS, "loss_on": "all"}
    labelled["grid"]["recipes"] = ["demo", "adapter"]
    recipes = resolve_config(labelled)["recipes"]
    generation = {"loss_on", "gradient_checkpointing", "quantization"}
    assert not generation & recipes["adapter"].keys()
    assert not (generation | {"lora", "frozen_dtype"}) & recipes["demo"].keys()


@pytest.mark.parametrize(
    ("recipe", "key", "value", "where", "told"),
    [
        ("adapter", "method", "lorra", "method", "['full', 'lora', 'qlora', 'none']"),
        ("adapter", "lora", {"r": 0}, "lora.r", "0 is less than the minimum of 1"),
        ("adapter", "lora", {"rank": 8}, "lora.rank", "unknown configuration key 'rank'"),
        ("adapter", "lora", {"lora_alfa": 8}, "lora.lora_alfa", "did you mean 'lora_alpha'?"),
        ("adapter", "lora", {"lora_dropout": 1}, "lora.lora_dropout", "1 is greater than or equal"),
        ("adapter", "lora", {"bias": "some"}, "lora.bias", "['none', 'all', 'lora_only']"),
        ("adapter", "lora", {"target_modules": "all"}, "lora.target_modules", "'all-linear' was expected"),
        ("adapter", "lora", {"target_modules": []}, "lora.target_modules", "should be non-empty"),
        ("adapter", "lora", {"task_type": "SEQ_CLS"}, "lora.task_type", "does not fit the task generation"),
        ("adapter", "lora", {"task_type": "QA"}, "lora.task_type", "['CAUSAL_LM', 'SEQ_CLS']"),
        ("packed", "quantization", {"bnb_4bit_quant_type": "x"}, "quantization.bnb_4bit_quant_type", "nf4"),
        ("adapter", "frozen_dtype", "int8", "frozen_dtype", "['float32', 'bfloat16', 'float16']"),
        ("whole", "loss_on", "prompt", "loss_on", "['answer', 'all']"),
        ("whole", "max_positions", 64, "max_positions", "max_positions is for classification only"),
        ("none", "sweep", {"epochs": [1, 2]}, "sweep", "nothing is trained with the method none"),
    ],
)  # fmt: skip
def test_a_recipe_that_is_none(raw, recipe, key, value, where, told):
    raw["recipes"][recipe][key] = value
    error = refused(raw)
    assert told in str(error)
    assert error.where == f"config, recipes.{recipe}.{where}"


@pytest.mark.parametrize("method", ["qlora", "none"])
def test_methods_that_classification_has_not(labelled, method):
    labelled["recipes"]["other"] = {"method": method}
    resolve_config(labelled)  # not in the grid: another experiment's
    labelled["grid"]["recipes"] = ["demo", "other"]
    error = refused(labelled)
    assert f"the method {method} is for generation only" in error.what
    assert error.where == "config, recipes.other.method"


def test_an_adapter_of_a_classifier_has_to_say_so(labelled):
    labelled["recipes"]["adapter"] = {"method": "lora"}
    labelled["grid"]["recipes"] = ["adapter"]
    error = refused(labelled)
    assert error.where == "config, recipes.adapter.lora.task_type"
    assert error.hint == "give SEQ_CLS"


# --- sweeps of nested keys ---


def test_a_sweep_may_name_a_key_of_a_block(raw):
    raw["recipes"]["adapter"] |= {"sweep": {"lora.r": [4, "8"], "learning_rate": ["1e-4"]}}
    config = resolve_config(raw)
    names = ["adapter.lora.r=4.learning_rate=0.0001", "adapter.lora.r=8.learning_rate=0.0001"]
    assert config["grid"]["recipes"] == ["none", *names, "packed", "whole"]
    assert [config["recipes"][name]["lora"]["r"] for name in names] == [4, 8]
    assert [config["recipes"][name]["lora"]["lora_alpha"] for name in names] == [32, 32]
    runs = build_runs(config)
    assert ("lora.r", 8) in next(run for run in runs if run.recipe == names[1]).swept


def test_a_swept_list_makes_a_name_that_a_path_can_hold(raw):
    values = [["query_key_value"], ["query_key_value", "dense"], "all-linear"]
    raw["recipes"]["adapter"]["sweep"] = {"lora.target_modules": values}
    config = resolve_config(raw)
    assert [
        config["recipes"][name]["lora"]["target_modules"] for name in config["grid"]["recipes"][1:4]
    ] == values
    assert [name.partition("=")[2] for name in config["grid"]["recipes"][1:4]] == [
        "query_key_value", "query_key_value+dense", "all-linear",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("recipe", "sweep", "where", "told"),
    [
        ("adapter", {"lora.rr": [4]}, "sweep.lora.rr", "did you mean 'lora.r'?"),
        ("adapter", {"lora.r": [0]}, "lora.r", "0 is less than the minimum of 1"),
        ("adapter", {"r": [4]}, "sweep.r", "cannot sweep 'r' with the method lora"),
        ("adapter", {"method": ["lora", "full"]}, "sweep.method", "cannot sweep 'method'"),
        ("whole", {"lora.r": [4]}, "sweep.lora.r", "cannot sweep 'lora.r' with the method full"),
        ("whole", {"epochs.x": [4]}, "sweep.epochs.x", "cannot sweep 'epochs.x'"),
        ("adapter", {"lora": [{"r": 4}]}, "sweep.lora", "did you mean 'lora.r'?"),
    ],
)
def test_a_sweep_that_names_no_key(raw, recipe, sweep, where, told):
    raw["recipes"][recipe]["sweep"] = sweep
    error = refused(raw)
    assert told in str(error)
    assert error.where == f"config, recipes.{recipe}.{where}"


# --- the run table and the rules ---


def test_fairseq_trains_no_adapter_and_all_other_runs_are_there(labelled):
    labelled["recipes"]["adapter"] = {"method": "lora", "lora": SEQ_CLS, "precision": "bfloat16"}
    labelled["grid"]["recipes"] = ["demo", "adapter"]
    runs = build_runs(resolve_config(labelled))
    counts = {(run.framework, run.method): 0 for run in runs}
    for run in runs:
        counts[run.framework, run.method] += 1
    assert counts == {("fairseq", "full"): 6, ("transformers", "full"): 6, ("transformers", "lora"): 6}
    labelled["grid"]["frameworks"] = ["fairseq"]
    error = refused(labelled)
    assert "lora needs Transformers" in error.what
    assert "config, grid.frameworks" in error.where


def test_the_tables_can_be_planned_from_what_they_are_given(raw):
    plan = Plan(raw)
    reporting = plan.aggregation()
    assert reporting["task"] == plan.task.name == "generation"
    assert reporting["datasets"].keys() == {"asked"}
    assert "label_names" not in reporting["datasets"]["asked"]
    assert build_runs(reporting) == plan.runs


def test_files_that_the_task_has_not_are_no_inputs(raw, labelled):
    base = load_config([ROOT / "config.yaml"]) | {"results": labelled["results"]}
    for plan, outputs, other in ((Plan(raw), "answers", "classes"), (Plan(base), "classes", "answers")):
        assert plan.task.outputs == outputs
        assert plan.only(outputs, plan.per_dataset("test.jsonl")) == plan.per_dataset("test.jsonl") != []
        assert plan.only(other, plan.per_dataset("test.jsonl")) == []


def test_the_table_of_trainable_parameters_is_there_for_adapters_alone(raw):
    plan = Plan(copy.deepcopy(raw))
    assert plan.trainable_table == [f"{plan.experiment_folder}/trainable_parameters.csv"]
    assert plan.adapters.keys() == {"adapter", "packed"}
    assert plan.classes is None
    raw["recipes"]["adapter"]["learning_rate"] = 1e-3
    assert Plan(copy.deepcopy(raw)).adapters == plan.adapters  # it trains the same parameters
    raw["grid"]["recipes"] = ["none", "whole"]
    assert Plan(raw).trainable_table == []


def test_the_heads_of_classifiers_have_the_classes_of_the_dataset(labelled):
    labelled["datasets"]["reviews_fr"] |= {"labels": [0, 1, 2], "label_names": None}
    assert Plan(labelled).classes == 3


def test_no_name_of_one_task_matches_the_rules_of_the_other(raw):
    plan = Plan(raw)
    for kind, asked, labelled in (
        ("datasets", "asked", "reviews_fr"),
        ("models", "bloom", "roberta_tiny_fr"),
    ):
        assert re.fullmatch(plan.pattern(kind, "answers"), asked)
        assert re.fullmatch(plan.pattern(kind, "classes"), labelled)
        assert not re.fullmatch(plan.pattern(kind, "answers"), labelled)
        assert not re.fullmatch(plan.pattern(kind, "classes"), asked)
        assert re.fullmatch(plan.pattern(kind), asked)
    nothing = Plan(load_config([ROOT / "config.yaml"]) | {"results": raw["results"]}).pattern(
        "models", "answers"
    )
    assert [text for text in ("", "roberta_tiny_fr") if re.search(nothing, text)] == []


def test_a_causal_run_asks_for_more_memory_at_each_attempt(raw, labelled):
    base = Plan(load_config([ROOT / "config.yaml"]) | {"results": labelled["results"]})
    asked = Plan(raw)
    place = SimpleNamespace()
    assert asked.run_memory(place, 1) > base.run_memory(place, 1)
    assert asked.run_memory(place, 3) == 3 * asked.run_memory(place, 1)
    batched = Plan(raw | {"batches": {"runs": 4, "at_once": 2}})
    assert batched.batch_memory(place, 1) == 2 * asked.run_memory(place, 1)


# --- the experiments of the repository ---


@pytest.mark.parametrize(
    ("overlays", "runs", "methods"),
    [
        (["lora_bloom"], 12, {"none", "lora", "qlora", "full"}),
        (["lora_bloom", "lora_bloom_lr"], 15, {"lora"}),
        (["lora_bloom", "lora_llama"], 6, {"none", "lora"}),
        (["demo_lora", "demo_lora_lr"], 18, {"none", "lora"}),
        (["cls_books", "cls_books_lora"], 18, {"full", "lora"}),
    ],
)
def test_experiments_with_adapters(tmp_path, overlays, runs, methods):
    files = [ROOT / "config.yaml", *(ROOT / f"experiments/{name}.yaml" for name in overlays)]
    plan = Plan({**load_config(files), "results": str(tmp_path)})
    assert Path(plan.experiment_folder).name == overlays[-1]
    assert len(plan.runs) == runs
    assert {run.method for run in plan.runs} == methods
    assert {run.framework for run in plan.runs} == {"transformers"}


@pytest.mark.parametrize("name", ["lora_bloom_lr", "lora_llama", "demo_lora_lr", "cls_books_lora"])
def test_an_overlay_alone_stops_instead_of_training_the_demo(name):
    error = refused(load_config([ROOT / "config.yaml", ROOT / f"experiments/{name}.yaml"]))
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
