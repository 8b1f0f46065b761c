"""Recipes: sweeps, and settings that do not go together."""

import pytest
from builders_config import SEQ_CLS, demo_config, questions_config, refusal, refused

from seedbed.config.batching import batching_of
from seedbed.config.resolve import resolve_config
from seedbed.config.runs import build_runs


@pytest.fixture
def raw(tmp_path):
    return demo_config(tmp_path)


@pytest.fixture
def questions(tmp_path):
    return questions_config(tmp_path)


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


def adapter(**lora):
    """A change of the recipe to LoRA of a classifier."""
    chosen = {"task_type": "SEQ_CLS", "target_modules": ["query", "value"], **lora}
    return {"recipe": {"method": "lora", "lora": chosen}}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"batches": {"runs": 4, "at_once": 2}}, ["batches.at_once", "found: 2", "set batches.at_once to 1"]),
        ({"recipe": {"precision": "float16"}}, ["recipes.demo.precision", "found: float16", "or bfloat16"]),
        ({"recipe": {"sweep": {"precision": ["float32", "float16"]}}}, ["'demo.precision=float16'"]),
        (
            {"recipe": {"method": "bitfit"}},
            ["recipes.demo.method; fused_seeds", "found: bitfit", "full or lora"],
        ),
        ({"recipe": {"method": "last_layers"}}, ["recipes.demo.method; fused_seeds", "found: last_layers"]),
        ({"recipe": {"method": "head"}}, ["recipes.demo.method; fused_seeds", "found: head"]),
        (adapter(bias="all"), ["recipes.demo.lora.bias; fused_seeds", "found: all", "give none"]),
        (
            adapter(modules_to_save=["embeddings"]),
            ["recipes.demo.lora.modules_to_save", "['embeddings']", "give null"],
        ),
        (
            adapter(target_modules=["query", "word_embeddings"]),
            ["recipes.demo.lora.target_modules", "word_embeddings", "linear layers alone"],
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


def test_fused_adapters_are_trained_apart_for_each_init_and_need_less_memory(raw):
    raw |= {"fused_seeds": True, "batches": {"runs": 1}}
    full = batching_of(resolve_config(raw))
    raw["recipes"]["demo"] |= adapter(modules_to_save=["classifier"])["recipe"]
    config = resolve_config(raw)
    runs = build_runs(config)
    assert {run.framework for run in runs} == {"transformers"}
    assert len({run.batch for run in runs}) == len({(run.batch, run.init) for run in runs}) == 2
    assert batching_of(config).memory(3000, 3) < full.memory(3000, 3)


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
    raw["device"] = "cuda"
    resolve_config(raw)
    raw["grid"]["recipes"] = ["other"]
    message = refused(raw)
    assert "fairseq 0.12 has no bfloat16 on a GPU" in message
    for part in ("recipes.other.precision; device", "bfloat16; device: cuda", "set device to cpu"):
        assert part in message


@pytest.mark.parametrize(
    "change",
    [{"device": "cpu"}, {"device": "auto"}, {"fused_seeds": True}, {"frameworks": ["transformers"]}],
)
def test_bfloat16_is_for_fairseq_on_a_cpu_for_fused_seeds_and_for_transformers(raw, change):
    """What `auto` finds is looked for before jobs start, since tables may be made elsewhere."""
    raw["device"] = change.get("device", "cuda")
    raw["fused_seeds"] = change.get("fused_seeds", False)
    raw["grid"]["frameworks"] = change.get("frameworks", ["fairseq", "transformers"])
    raw["recipes"]["demo"]["precision"] = "bfloat16"
    assert resolve_config(raw)["recipes"]["demo"]["precision"] == "bfloat16"


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


# --- generation and adapters ---


def test_an_adapter_has_pefts_names_and_defaults(questions):
    questions["recipes"]["adapter"]["lora"] = {"r": 4}
    recipe = resolve_config(questions)["recipes"]["adapter"]
    assert recipe["lora"] == {
        "r": 4, "lora_alpha": 32, "target_modules": ["query_key_value"], "lora_dropout": 0.05,
        "bias": "none", "task_type": "CAUSAL_LM", "modules_to_save": None,
    }  # fmt: skip
    assert recipe["frozen_dtype"] == "float32"
    assert resolve_config(questions)["recipes"]["packed"]["quantization"] == {
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_use_double_quant": True,
        "bnb_4bit_compute_dtype": "bfloat16",
    }


def test_what_classification_does_not_use_is_left_out(raw):
    raw["recipes"]["adapter"] = {"method": "lora", "lora": SEQ_CLS, "loss_on": "all"}
    raw["grid"]["recipes"] = ["demo", "adapter"]
    recipes = resolve_config(raw)["recipes"]
    generation = {"loss_on", "gradient_checkpointing", "quantization"}
    assert not generation & recipes["adapter"].keys()
    assert not (generation | {"lora", "frozen_dtype"}) & recipes["demo"].keys()


@pytest.mark.parametrize(
    ("recipe", "key", "value", "where", "told"),
    [
        ("adapter", "method", "lorra", "method", "'lora', 'qlora', 'none']"),
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
        ("whole", "max_positions", 64, "max_positions", "multilabel and regression only"),
        ("none", "sweep", {"epochs": [1, 2]}, "sweep", "nothing is trained with the method none"),
    ],
)  # fmt: skip
def test_a_recipe_that_is_none(questions, recipe, key, value, where, told):
    questions["recipes"][recipe][key] = value
    error = refusal(questions)
    assert told in str(error)
    assert error.where == f"config, recipes.{recipe}.{where}"


@pytest.mark.parametrize("method", ["qlora", "none"])
def test_methods_that_classification_has_not(raw, method):
    raw["recipes"]["other"] = {"method": method}
    resolve_config(raw)  # not in the grid: another experiment's
    raw["grid"]["recipes"] = ["demo", "other"]
    error = refusal(raw)
    assert f"the method {method} is for generation only" in error.what
    assert error.where == "config, recipes.other.method"


def test_an_adapter_of_a_classifier_has_to_say_so(raw):
    raw["recipes"]["adapter"] = {"method": "lora"}
    raw["grid"]["recipes"] = ["adapter"]
    error = refusal(raw)
    assert error.where == "config, recipes.adapter.lora.task_type"
    assert error.hint == "give SEQ_CLS"


def test_a_sweep_may_name_a_key_of_a_block(questions):
    questions["recipes"]["adapter"] |= {"sweep": {"lora.r": [4, "8"], "learning_rate": ["1e-4"]}}
    config = resolve_config(questions)
    names = ["adapter.lora.r=4.learning_rate=0.0001", "adapter.lora.r=8.learning_rate=0.0001"]
    assert config["grid"]["recipes"] == ["none", *names, "packed", "whole"]
    assert [config["recipes"][name]["lora"]["r"] for name in names] == [4, 8]
    assert [config["recipes"][name]["lora"]["lora_alpha"] for name in names] == [32, 32]
    runs = build_runs(config)
    assert ("lora.r", 8) in next(run for run in runs if run.recipe == names[1]).swept


def test_a_swept_list_makes_a_name_that_a_path_can_hold(questions):
    values = [["query_key_value"], ["query_key_value", "dense"], "all-linear"]
    questions["recipes"]["adapter"]["sweep"] = {"lora.target_modules": values}
    config = resolve_config(questions)
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
def test_a_sweep_that_names_no_key(questions, recipe, sweep, where, told):
    questions["recipes"][recipe]["sweep"] = sweep
    error = refusal(questions)
    assert told in str(error)
    assert error.where == f"config, recipes.{recipe}.{where}"


def test_class_weights_are_part_of_a_recipe_only_if_they_are_asked_for(raw, questions):
    assert "class_weight" not in resolve_config(raw)["recipes"]["demo"]
    raw["recipes"]["demo"]["sweep"] = {"class_weight": [None, "balanced"]}
    recipes = resolve_config(raw)["recipes"]
    assert "class_weight" not in recipes["demo.class_weight=null"]
    assert recipes["demo.class_weight=balanced"]["class_weight"] == "balanced"
    questions["recipes"]["whole"]["class_weight"] = "balanced"  # a question has no class
    assert "class_weight" not in resolve_config(questions)["recipes"]["whole"]
