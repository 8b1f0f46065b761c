"""What adapters train: the formula, the count and peft's count, with and without real weights."""

import copy
import csv
import json
import os
import subprocess
import sys

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

from seedbed.core.errors import SeedbedError
from seedbed.training.adapter_parameters import COLUMNS, PACKED, adapted_layers, attach, describe, tabulate

BLOOM_560M = {"model_type": "bloom", "n_layer": 24, "hidden_size": 1024, "n_head": 16, "vocab_size": 250_880}
SMALL = {
    "bloom": {"n_layer": 2, "hidden_size": 16, "n_head": 2, "vocab_size": 51},
    "gpt2": {
        "n_layer": 2,
        "n_embd": 16,
        "n_head": 2,
        "vocab_size": 51,
        "n_positions": 20,
        "bos_token_id": 2,
        "eos_token_id": 2,
    },
    "llama": {
        "num_hidden_layers": 3,
        "hidden_size": 16,
        "intermediate_size": 40,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 51,
    },
    "roberta": {
        "num_hidden_layers": 3,
        "hidden_size": 16,
        "intermediate_size": 40,
        "num_attention_heads": 2,
        "vocab_size": 51,
    },
}
NAMED_TWICE = {
    "bloom": ["h.0.self_attention.dense", "dense"],
    "gpt2": ["attn.c_proj", "c_proj"],
    "llama": ["layers.0.self_attn.q_proj", "q_proj", "v_proj"],
    "roberta": ["output.dense", "dense"],
}
NINE_MODULES = [
    "embed_tokens", "lm_head", "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
]  # fmt: skip


def lora_of(targets, task_type="CAUSAL_LM", r=4, **changes):
    return {
        "r": r,
        "lora_alpha": 2 * r,
        "target_modules": targets,
        "lora_dropout": 0.05,
        "bias": "none",
        "task_type": task_type,
        "modules_to_save": None,
        **changes,
    }


def config_of(kind, **changes):
    return AutoConfig.for_model(kind, **{**SMALL[kind], "pad_token_id": 3, **changes})


def model_of(kind, **changes):
    torch.manual_seed(0)
    auto = AutoModelForSequenceClassification if kind == "roberta" else AutoModelForCausalLM
    return auto.from_config(config_of(kind, **changes))


def adapted(model, lora):
    return get_peft_model(model, LoraConfig(**copy.deepcopy(lora)))


def write_config(folder, config):
    folder.mkdir(parents=True)
    config.save_pretrained(folder)
    return folder


def rows_of(folder, recipe, task="generation", labels=None):
    rows = tabulate({"m": folder}, {"r": recipe}, task, labels)
    assert all(row["expected"] == row["counted"] for row in rows)
    assert {(row["model"], row["recipe"], row["method"]) for row in rows} == {("m", "r", recipe["method"])}
    return {row["component"]: row for row in rows}


def test_bloom_560m(tmp_path):
    """LoRA of r = 16 on query_key_value: 24 · 16 (1024 + 3072) of 560,787,456, which is 0.2805 %."""
    config = dict(BLOOM_560M)
    folder = write_config(tmp_path / "bloom", AutoConfig.for_model(config.pop("model_type"), **config))
    recipe = {"method": "qlora", "lora": lora_of(["query_key_value"], r=16)}
    rows = rows_of(folder, recipe)
    assert rows["query_key_value"]["formula"] == "24·16(1024 + 3072)"
    assert rows["query_key_value"]["modules"] == 24
    trained, total = rows["trainable"]["counted"], rows["total"]["counted"]
    assert (trained, total) == (1_572_864, 560_787_456)
    assert f"{100 * trained / total:.4f}" == "0.2805"
    # each of the 24 layers has 12 d² elements in its linear layers, half of which the packed storage hides
    assert rows[PACKED]["counted"] == total - 24 * 12 * 1024**2 // 2
    assert f"{100 * trained / rows[PACKED]['counted']:.3f}" == "0.384"
    full = rows_of(folder, {"method": "full"})
    assert full["trainable"]["counted"] == full["total"]["counted"] == total - trained
    assert PACKED not in rows_of(folder, {**recipe, "method": "lora"})
    untrained = rows_of(folder, {"method": "none"})
    assert (untrained["trainable"]["counted"], untrained["total"]["counted"]) == (0, total - trained)


@pytest.mark.parametrize("tied", [False, True])
def test_nine_modules_of_a_llama(tmp_path, tied):
    folder = write_config(tmp_path / "llama", config_of("llama", tie_word_embeddings=tied))
    rows = rows_of(folder, {"method": "lora", "lora": lora_of(NINE_MODULES, r=8, lora_alpha=16)})
    d, f, v, n, kv, r = 16, 40, 51, 3, 8, 8
    expected = {
        "embed_tokens": r * (v + d),
        "lm_head": r * (d + v),
        "q_proj": n * r * 2 * d,
        "k_proj": n * r * (d + kv),
        "v_proj": n * r * (d + kv),
        "o_proj": n * r * 2 * d,
        "gate_proj": n * r * (d + f),
        "up_proj": n * r * (d + f),
        "down_proj": n * r * (f + d),
    }
    assert {name: rows[name]["counted"] for name in NINE_MODULES} == expected
    assert (rows["lm_head"]["formula"], rows["k_proj"]["formula"]) == ("8(16 + 51)", "3·8(16 + 8)")
    assert rows["trainable"]["counted"] == sum(expected.values())
    base = n * (2 * d * d + 2 * d * kv + 3 * d * f + 2 * d) + d + v * d * (1 if tied else 2)
    assert rows["total"]["counted"] == base + sum(expected.values())


def test_transposed_layers_of_gpt2():
    lora = lora_of(["c_attn", "c_proj", "c_fc"])
    model = model_of("gpt2")
    # c_proj is d x d in the attention, 4d x d in the feed-forward
    found = describe(adapted(model, lora | {"fan_in_fan_out": True}), "lora", lora)
    d, r, n = 16, 4, 2
    expected = n * r * ((d + 3 * d) + (d + d) + (4 * d + d) + (d + 4 * d))
    assert found["trainable"] == found["expected_trainable"] == found["peft"]["trainable"] == expected
    assert found["total"] == found["peft"]["total"]


@pytest.mark.parametrize("bias", ["none", "all", "lora_only"])
@pytest.mark.parametrize("targets", [["query", "value"], ["dense"], "all-linear"])
def test_classifier(tmp_path, bias, targets):
    """The head is copied and trained; biases beside it, of all modules or of the adapted ones."""
    folder = write_config(tmp_path / "roberta", config_of("roberta"))
    lora = lora_of(targets, "SEQ_CLS", bias=bias)
    rows = rows_of(folder, {"method": "lora", "lora": lora}, "classification", labels=5)
    d, f, n, r = 16, 40, 3, 4
    attention, feed_forward = r * 2 * d, r * (d + f)
    adapters, adapted_biases = {
        "query": (2 * attention, 2 * d),
        "dense": (attention + 2 * feed_forward, 2 * d + f),
        "all-linear": (4 * attention + 2 * feed_forward, 5 * d + f),
    }[targets if targets == "all-linear" else targets[0]]
    # layer norms: one behind the embeddings, two a layer
    biases = {"none": 0, "lora_only": n * adapted_biases, "all": d + n * (5 * d + f + 2 * d)}[bias]
    head = d * d + d + 5 * d + 5
    assert rows["trained copy of classifier"]["counted"] == head
    assert rows["trainable"]["counted"] == n * adapters + biases + head
    full = rows_of(folder, {"method": "full"}, "classification", labels=5)
    assert rows["total"]["counted"] == full["total"]["counted"] + n * adapters + head
    token_types = 2 * d  # never trained
    assert full["trainable"]["counted"] == full["total"]["counted"] - token_types


@pytest.mark.parametrize(
    ("saved", "copies"),
    [(["lm_head"], 1), (["word_embeddings"], 1), (["word_embeddings", "lm_head"], 2), (["ln_f"], 0)],
)
def test_copies_of_modules(saved, copies):
    """A tied matrix counts once in the model, and once more for each module of it that is copied."""
    lora = lora_of(["query_key_value"], modules_to_save=saved)
    model = model_of("bloom")
    before = describe(model, "full")["total"]
    found = describe(adapted(model, lora), "lora", lora)
    size = copies * 51 * 16 if copies else 2 * 16
    assert found["trainable"] == 2 * 4 * (16 + 48) + size
    assert found["total"] == before + found["trainable"]


def quantise(folder, storage=torch.uint8):
    from transformers import BitsAndBytesConfig

    return AutoModelForCausalLM.from_pretrained(
        folder,
        quantization_config=BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_compute_dtype=torch.float32,
            bnb_4bit_quant_storage=storage,
        ),
        device_map={"": "cpu"},
    )


@pytest.mark.parametrize(
    ("kind", "target", "tied", "linear"),
    [
        ("bloom", "query_key_value", True, 2 * 12 * 16 * 16),
        ("llama", "q_proj", False, 3 * (2 * 16 * 16 + 2 * 16 * 8 + 3 * 16 * 40)),
        ("gpt2", "c_fc", True, 2 * 12 * 16 * 16),
    ],
)
def test_real_quantisation(tmp_path, kind, target, tied, linear):
    """The wrong row is what a naive sum over a model in 4 bits gives; describe counts what it stands for."""
    folder = tmp_path / kind
    model_of(kind, tie_word_embeddings=tied).save_pretrained(folder)
    lora = lora_of([target])
    rows = rows_of(folder, {"method": "qlora", "lora": lora})
    model = adapted(quantise(folder).requires_grad_(False), lora)
    assert sum(weight.numel() for weight in model.parameters()) == rows[PACKED]["counted"]
    found = describe(model, "qlora", lora)
    assert found["total"] == rows["total"]["counted"] == found["peft"]["total"]
    assert found["trainable"] == rows["trainable"]["counted"] == found["peft"]["trainable"]
    assert rows[PACKED]["counted"] == found["total"] - linear // 2


def test_quantisation_in_wider_storage(tmp_path):
    """In bfloat16 four weights share an element: peft counts bytes, and finds the same."""
    model_of("bloom").save_pretrained(tmp_path)
    lora = lora_of(["query_key_value"])
    whole = describe(adapted(model_of("bloom"), lora), "lora", lora)
    model = adapted(quantise(tmp_path, torch.bfloat16).requires_grad_(False), lora)
    assert describe(model, "qlora", lora) == whole


class Odd(torch.nn.Module):
    """A layer of 15 x 15 weights in 4 bits: the last of 113 bytes is half empty."""

    def __init__(self):
        from bitsandbytes.nn import Linear4bit

        super().__init__()
        self.odd = Linear4bit(15, 15, bias=False, compute_dtype=torch.float32)


@pytest.mark.parametrize(("packed", "by_peft"), [(True, 2 * 113), (False, 2 * 4 * 225)])
def test_where_peft_counts_wrongly(packed, by_peft):
    """Half a byte too many, and a float32 weight that is not packed yet eightfold: both numbers are told."""
    lora = lora_of(["odd"], task_type=None)
    model = adapted(Odd().to("cpu") if packed else Odd(), lora)
    found = describe(model, "qlora", lora)
    assert found["total"] == 225 + 4 * 30
    assert found["peft"]["total"] == by_peft + 4 * 30


def test_weight_that_should_be_frozen():
    lora = lora_of(["query_key_value"])
    model = adapted(model_of("bloom"), lora)
    next(weight for name, weight in model.named_parameters() if name.endswith("ln_f.weight")).requires_grad_()
    with pytest.raises(SeedbedError, match="parameters that lora trains") as caught:
        describe(model, "lora", lora)
    assert "counted: 528, formula: 512" in str(caught.value)


def test_adapter_of_another_rank():
    model = adapted(model_of("bloom"), lora_of(["query_key_value"], r=8))
    with pytest.raises(SeedbedError, match=r"counted: 1,024, formula: 512"):
        describe(model, "lora", lora_of(["query_key_value"], r=4))


def test_frozen_weight_of_a_full_run():
    model = model_of("bloom")
    model.lm_head.weight.requires_grad_(False)
    with pytest.raises(SeedbedError, match="parameters that full trains"):
        describe(model, "full")


@pytest.mark.parametrize(
    ("change", "key", "texts"),
    [
        (
            {"target_modules": ["query_key_valu"]},
            "target_modules",
            ["query_key_valu", "did you mean query_key_value?", "query_key_value (2)", "dense_h_to_4h (2)"],
        ),
        ({"target_modules": ["q_proj", "v_proj"]}, "target_modules", ["q_proj", "word_embeddings (1)"]),
        ({"modules_to_save": ["lm_heads"]}, "modules_to_save", ["lm_heads", "did you mean lm_head?"]),
        ({"target_modules": ["mlp"]}, "target_modules", ["transformer.h.0.mlp is a BloomMLP"]),
        ({"target_modules": ["ln_f"]}, "target_modules", ["transformer.ln_f is a LayerNorm"]),
        (
            {"target_modules": ["query_key_value", "lm_head"], "modules_to_save": ["lm_head"]},
            "target_modules",
            ["lm_head", "another entry"],
        ),
    ],
)
def test_wrong_targets(change, key, texts):
    lora = {**lora_of(["query_key_value"]), **change}
    with pytest.raises(SeedbedError) as caught:
        attach(model_of("bloom"), lora, "recipes.a.lora")
    assert f"recipes.a.lora.{key}" in str(caught.value)
    assert all(text in str(caught.value) for text in texts)


@pytest.mark.parametrize("kind", list(SMALL))
@pytest.mark.parametrize("several", [False, True])
def test_every_adapted_layer_is_counted_once(kind, several):
    """All that peft adapts stands below one entry: of two entries that name a layer, the first."""
    targets = NAMED_TWICE[kind] if several else "all-linear"
    lora = lora_of(targets, "SEQ_CLS" if kind == "roberta" else "CAUSAL_LM")
    made = attach(model_of(kind), lora)
    found = adapted_layers(made, lora)
    names = [name for layers in found.values() for name in layers]
    assert sorted(names) == sorted(made.targeted_module_names)
    assert all(found.values())
    assert not several or list(found) == targets


@pytest.mark.parametrize(
    ("change", "key", "what"),
    [
        ({"target_modules": ["q_proj"]}, "target_modules", "no module of the model 'm' has this name"),
        ({"modules_to_save": ["lm_heads"]}, "modules_to_save", "no module of the model 'm' has this name"),
        ({"target_modules": ["ln_f"]}, "target_modules", "and this is another module of the model 'm'"),
    ],
)
def test_wrong_targets_in_the_table(tmp_path, change, key, what):
    """The error's place is the config key, and the model is named beside it."""
    folder = write_config(tmp_path / "bloom", config_of("bloom"))
    lora = {**lora_of(["query_key_value"]), **change}
    with pytest.raises(SeedbedError) as caught:
        tabulate({"m": folder}, {"r": {"method": "lora", "lora": lora}}, "generation")
    assert caught.value.where == f"config, recipes.r.lora.{key}"
    assert what in caught.value.what


SCRIPT = """
import json, runpy, sys
from types import SimpleNamespace
class Files(SimpleNamespace):
    def __iter__(self):
        for value in vars(self).values():
            yield from [value] if isinstance(value, str) else value
rule = json.loads(sys.argv[1], object_hook=lambda found: Files(**found))
rule.params.recipes = json.loads(sys.argv[2])
runpy.run_path("scripts/count_trainable.py", init_globals={"snakemake": rule})
"""


@pytest.mark.slow
def test_script(tmp_path):
    """The rule's script names models by their folders and writes the table, without bitsandbytes.

    In a process of its own, where bitsandbytes is installed but broken, and whose log warns of nothing.
    """
    (tmp_path / "packages" / "bitsandbytes").mkdir(parents=True)
    (tmp_path / "packages" / "bitsandbytes" / "__init__.py").write_text("raise ImportError('broken')")
    for name, kind in (("a", "bloom"), ("b", "gpt2")):
        write_config(tmp_path / "models" / name / "huggingface", config_of(kind))
    recipes = {"x": {"method": "full"}, "y": {"method": "qlora", "lora": lora_of("all-linear")}}
    rule = {
        "rule": "count_trainable",
        "log": [str(tmp_path / "log")],
        "input": {
            "models": [str(tmp_path / "models" / name / "huggingface" / "config.json") for name in ("a", "b")]
        },
        "params": {"task": "generation", "labels": None},
        "output": {"table": str(tmp_path / "table.csv")},
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(rule), json.dumps(recipes)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "packages"), "scripts"])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in (tmp_path / "log").read_text()
    with open(tmp_path / "table.csv", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert tuple(rows[0]) == COLUMNS
    adapted_layers = {
        "a": ["query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"],
        "b": ["c_attn", "c_proj", "c_fc"],
    }
    assert [(row["model"], row["component"]) for row in rows] == [
        (model, component)
        for model, layers in adapted_layers.items()
        for component in ("trainable", "total", *layers, "trainable", "total", PACKED)
    ]
