"""What the models of a grid cannot do is refused before any run, whichever recipe or dataset asks for it."""

import pytest
from builders_causal import make_causal_model

from seedbed.core.errors import SeedbedError
from seedbed.core.tasks import TASKS
from seedbed.models import limits
from seedbed.training import adapter_limits

LORA = {
    "r": 4, "lora_alpha": 8, "target_modules": ["query_key_value"], "lora_dropout": 0.0, "bias": "none",
    "task_type": "CAUSAL_LM", "modules_to_save": None,
}  # fmt: skip
RECIPE = {
    "family": "packed",
    "method": "qlora",
    "lora": LORA,
    "frozen_dtype": "float32",
    "precision": "float32",
}
TASK = (TASKS["generation"], None)  # and no classes
MODELS = {"long": {"max_positions": 512}, "short": {"max_positions": 128}, "any": {"max_positions": None}}


def refused(*arguments) -> SeedbedError:
    check = limits.check if arguments[0] is MODELS else adapter_limits.check_adapters
    with pytest.raises(SeedbedError) as error:
        check(*arguments)
    return error.value


def recipe(positions) -> dict:
    return {"lab.x": {"family": "lab", "max_positions": positions}}


def test_the_model_with_the_fewest_positions_counts():
    limits.check(MODELS, recipe(128), {"d": None})
    limits.check(MODELS, recipe(None), {"d": 128})
    limits.check({"any": MODELS["any"]}, recipe(9999), {"d": 9999})
    error = refused(MODELS, recipe(129), {})
    assert error.what == "recipe 'lab.x' asks for longer inputs than the model 'short' has positions"
    assert (error.where, error.found) == ("config, recipes.lab.max_positions", "129; the model has 128")
    error = refused(MODELS, recipe(None), {"a": 100, "b": 200})
    assert (error.where, error.hint[:19]) == ("config, datasets.b.max_tokens", "give 128 or less, o")


def test_types_of_weights_that_no_run_could_train_are_refused(tmp_path):
    folders = {"bloom": make_causal_model(tmp_path / "bloom")}
    adapter_limits.check_adapters({"packed": RECIPE}, folders, "auto", *TASK)
    mixed = RECIPE | {"frozen_dtype": "bfloat16", "lora": LORA | {"bias": "all"}}
    assert refused({"packed": mixed}, folders, "auto", *TASK).where == "config, recipes.packed.frozen_dtype"
    saved = RECIPE | {"lora": LORA | {"modules_to_save": ["dense_h_to_4h"]}}
    error = refused({"packed": saved}, folders, "auto", *TASK)
    assert error.what == "weights of 'bloom' in 4 bits cannot be trained"
    assert error.where == "config, recipes.packed.lora.modules_to_save"
    assert error.found.endswith("dense_h_to_4h")
    adapter_limits.check_adapters({"packed": saved | {"method": "lora"}}, folders, "auto", *TASK)
    head = RECIPE | {"lora": LORA | {"modules_to_save": ["lm_head"]}}
    adapter_limits.check_adapters({"packed": head}, folders, "auto", *TASK)
