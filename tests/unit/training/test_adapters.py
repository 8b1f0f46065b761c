"""Adapters: what they train, what is saved, loaded and merged, and what is refused."""

import json
import logging
import os
import stat
import subprocess
import sys
import types
import warnings
from pathlib import Path

import pytest
import torch
from builders_training import make_causal_job, make_causal_run, make_job, make_run
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from seedbed.core import files
from seedbed.core.errors import SeedbedError
from seedbed.training import adapter_parameters, adapters, initial_models, merging, methods, results
from seedbed.training.transformers import causal, classifier

IDS = torch.tensor([[5, 50, 7, 8, 9], [9, 8, 12, 6, 5]])
CPU = torch.device("cpu")


def trained(folder, method="lora", kind="bloom", **settings):
    """The published run of a causal model, in a folder laid out as the workflow's."""
    run = make_causal_run(method, **settings)
    run["settings"]["lora"]["target_modules"] = {"bloom": ["query_key_value"]}.get(kind, "all-linear")
    job = make_causal_job(folder, run, f"{kind}-{method}", kind)
    target = folder / "results/x/runs/generated" / kind / "transformers/pretrained/demo/seed3"
    models = folder / "results" / "models" / "tiny"
    models.mkdir(parents=True, exist_ok=True)
    if not (models / "huggingface").exists():
        (models / "huggingface").symlink_to(job.weights)
    vars(job).update(target=target)
    causal.train([job])
    return job


def logits(model):
    with torch.no_grad():
        return model.eval()(input_ids=IDS).logits


def with_adapter(job):
    return adapters.load(initial_models.build_base(job.weights, job.run), job.target / "adapter")


# --- training ---


@pytest.mark.parametrize("method", ["lora", "qlora"])
def test_only_the_adapter_is_trained_and_the_base_stays_as_it_was(tmp_path, method):
    job = trained(tmp_path, method)
    record = json.loads((job.target / "run.json").read_text())
    # of each of 2 layers: query_key_value, 16 to 48, rank 4
    assert record["parameters"]["trainable"] == 2 * 4 * (16 + 48)
    assert record["parameters"]["peft"]["trainable"] == 2 * 4 * (16 + 48)
    assert record["parameters"]["total"] > record["parameters"]["trainable"]
    assert record["versions"]["peft"]
    assert ("bitsandbytes" in record["versions"]) == (method == "qlora")
    base = initial_models.build_base(job.weights, job.run)
    assert not torch.allclose(logits(with_adapter(job)), logits(base), atol=1e-3)


def test_the_adapter_of_a_seed_is_the_same_in_every_method_and_another_for_another_seed(tmp_path):
    found = []
    for method, seed in (("lora", 3), ("qlora", 3), ("lora", 4)):
        job = make_causal_job(tmp_path, make_causal_run(method, init_seed=seed))
        torch.manual_seed(len(found))  # which must not matter
        model = methods.of(job).causal_model(CPU)
        found.append({name: weight for name, weight in model.named_parameters() if weight.requires_grad})
    assert found[0].keys() == found[1].keys()
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])
    assert not all(torch.equal(found[0][name], found[2][name]) for name in found[0])


def test_frozen_weights_have_the_recipes_dtype_and_trained_ones_float32(tmp_path):
    job = make_causal_job(tmp_path, make_causal_run("lora", frozen_dtype="bfloat16"))
    dtypes = {(w.requires_grad, w.dtype) for w in methods.of(job).causal_model(CPU).parameters()}
    assert dtypes == {(True, torch.float32), (False, torch.bfloat16)}
    causal.train([job])


@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        ("bloom", {"modules_to_save": ["word_embeddings"]}),
        ("bloom", {"bias": "all"}),
        ("llama", {"modules_to_save": ["lm_head"], "bias": "lora_only"}),
        ("gpt2", {"target_modules": "all-linear"}),
        # layers that share their weights with another one
        ("bloom", {"target_modules": ["word_embeddings"]}),
        ("bloom", {"target_modules": ["lm_head", "query_key_value"]}),
        ("bloom", {"target_modules": ["word_embeddings", "lm_head"]}),
        ("gpt2", {"target_modules": ["wte"]}),
    ],
)
def test_other_adapters_train_save_load_and_merge(tmp_path, kind, extra):
    run = make_causal_run("lora")
    run["settings"]["lora"] |= {"target_modules": "all-linear", **extra}
    job = make_causal_job(tmp_path, run, kind=kind)
    causal.train([job])
    expected = logits(with_adapter(job))
    merging.merge_run(job.target, tmp_path / "merged", job.weights)
    assert torch.allclose(logits(merged(tmp_path)), expected, atol=1e-5)


# --- files ---


def merged(folder):
    return AutoModelForCausalLM.from_pretrained(folder / "merged", local_files_only=True)


def test_an_adapter_is_saved_as_peft_reads_it_and_loads_to_the_same_logits(tmp_path):
    run = make_causal_run("lora")
    job = make_causal_job(tmp_path, run)
    model = methods.of(job).causal_model(CPU)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.add_(0.1)
    adapters.save(model, tmp_path / "adapter", adapters.base_name(job))
    expected = logits(model)
    assert sorted(path.name for path in (tmp_path / "adapter").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
    config = files.read_json(tmp_path / "adapter" / "adapter_config.json")
    assert config["base_model_name_or_path"] == "models/tiny/huggingface"
    assert (config["r"], config["lora_alpha"], config["peft_type"]) == (4, 8, "LORA")
    assert str(tmp_path) not in json.dumps(config)
    loaded = adapters.load(initial_models.build_base(job.weights, run), tmp_path / "adapter")
    assert torch.equal(logits(loaded), expected)


@pytest.mark.parametrize("init", ["pretrained", "random"])
def test_a_merged_model_needs_no_adapter(tmp_path, init):
    job = trained(tmp_path, init=init)
    notes = merging.merge_run(job.target, tmp_path / "merged")
    assert notes == []
    assert sorted(path.name for path in (tmp_path / "merged").glob("*.json")) == [
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    expected = logits(with_adapter(job))
    assert torch.allclose(logits(merged(tmp_path)), expected, atol=1e-5)
    assert not torch.allclose(logits(initial_models.build_base(job.weights, job.run)), expected, atol=1e-3)


def test_qlora_is_merged_into_the_weights_before_they_were_quantised_and_says_so(tmp_path):
    job = trained(tmp_path, "qlora")
    (note,) = merging.merge_run(job.target, tmp_path / "merged")
    assert "4 bits" in note
    assert torch.allclose(logits(merged(tmp_path)), logits(with_adapter(job)), atol=1e-5)


def test_a_kept_model_is_the_merged_one(tmp_path):
    job = trained(tmp_path, keep_model=True)
    merging.merge_run(job.target, tmp_path / "merged")
    for name in ("model.safetensors", "tokenizer.json"):
        assert (job.target / "model" / name).read_bytes() == (tmp_path / "merged" / name).read_bytes()


@pytest.mark.slow
def test_the_script_merges_and_tells_errors(tmp_path):
    job = trained(tmp_path, "qlora")
    script = Path(__file__).parents[3] / "scripts" / "merge_adapter.py"

    def merge(*arguments):
        command = [sys.executable, str(script), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    done = merge(job.target, tmp_path / "merged")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"merged: {tmp_path / 'merged'}\n")
    assert "4 bits" in done.stdout
    refused = merge(job.target, tmp_path / "merged")
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: the output exists already")


def test_what_cannot_be_merged(tmp_path):
    job = trained(tmp_path)
    output = tmp_path / "merged"
    with pytest.raises(SeedbedError, match="no finished run"):
        merging.merge_run(tmp_path, output)
    with pytest.raises(SeedbedError, match="does not exist"):
        merging.merge_run(job.target, output, tmp_path)
    config = job.weights / "config.json"
    config.write_text(config.read_text() + "\n")
    with pytest.raises(SeedbedError, match="trained on another model"):
        merging.merge_run(job.target, output)
    assert not output.exists()
    output.mkdir()
    with pytest.raises(SeedbedError, match="exists already"):
        merging.merge_run(job.target, output)
    full = make_causal_job(tmp_path, make_causal_run("full"), "full")
    causal.train([full])
    with pytest.raises(SeedbedError, match="has no adapter"):
        merging.merge_run(full.target, tmp_path / "other")


def test_files_of_weights_have_the_permissions_of_other_files(tmp_path):
    before = os.umask(0o027)
    try:
        job = trained(tmp_path, keep_model=True)
        merging.merge_run(job.target, tmp_path / "merged")
        results.write_weights(tmp_path, {"weight": torch.ones(2)})
    finally:
        os.umask(before)
    folders = (job.target / "adapter", job.target / "model", tmp_path / "merged")
    written = [path for folder in folders for path in folder.iterdir()]
    assert len([path for path in written if path.suffix == ".safetensors"]) == 3
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in (*written, tmp_path / "model.safetensors")
    }
    assert set(modes.values()) == {0o640}, modes


@pytest.mark.parametrize("method", ["lora", "qlora"])
def test_an_adapter_of_gpt2_is_made_and_loaded_without_warnings(tmp_path, method):
    """Its layers keep their weights transposed, but in 4 bits; of other models nothing is."""
    for kind, transposed in (("bloom", False), ("gpt2", method == "lora")):
        run = make_causal_run(method)
        run["settings"]["lora"]["target_modules"] = "all-linear"
        job = make_causal_job(tmp_path, run, f"{kind}-{method}", kind)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = methods.of(job).causal_model(CPU)
            adapters.save(model, tmp_path / kind, "base")
            loaded = adapters.load(initial_models.build_base(job.weights, job.run), tmp_path / kind)
        told = [str(each.message) for each in caught]
        assert not [text for text in told if "is_gradient_checkpointing" in text or "fan_in" in text]
        assert files.read_json(tmp_path / kind / "adapter_config.json")["fan_in_fan_out"] == transposed
        assert loaded.peft_config["default"].fan_in_fan_out == (kind == "gpt2")


def test_other_warnings_are_heard():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with adapter_parameters.without_deprecation():
            warnings.warn("`is_gradient_checkpointing` is deprecated and more", FutureWarning, stacklevel=1)
            warnings.warn("`is_other` is deprecated", FutureWarning, stacklevel=1)
    assert [str(each.message) for each in caught] == ["`is_other` is deprecated"]


# --- classification ---


def test_lora_of_a_classifier_trains_the_head_in_full(tmp_path):
    run = make_run("transformers", init="pretrained", method="lora")
    job = make_job(tmp_path, run)
    classifier.train([job])
    record = json.loads((job.target / "run.json").read_text())
    # query and value, 16 to 16, rank 4; the head: 16 x 16 + 16 and 16 x 2 + 2
    assert record["parameters"]["trainable"] == 2 * 4 * (16 + 16) + 272 + 34
    merging.merge_run(job.target, tmp_path / "merged", job.weights)
    base = initial_models.build_classifier(job.weights, {**run, "init_seed": 99}, 2)
    expected = logits(adapters.load(base, job.target / "adapter"))
    found = AutoModelForSequenceClassification.from_pretrained(tmp_path / "merged", local_files_only=True)
    assert torch.allclose(logits(found), expected, atol=1e-5)


# --- what is refused ---


def refused(tmp_path, method="lora", settings=None, **lora) -> str:
    run = make_causal_run(method, **(settings or {}))
    run["settings"]["lora"] |= lora
    job = make_causal_job(tmp_path, run)
    with pytest.raises(SeedbedError) as caught:
        methods.of(job).causal_model(CPU)
    return str(caught.value)


def test_a_target_that_is_not_there(tmp_path):
    message = refused(tmp_path, target_modules=["q_proj"])
    for part in ("recipes.demo.lora.target_modules", "q_proj", "query_key_value", "dense_h_to_4h"):
        assert part in message


def test_the_task_type_of_another_task(tmp_path):
    message = refused(tmp_path, task_type="SEQ_CLS")
    for part in ("recipes.demo.lora.task_type", "SEQ_CLS", "give CAUSAL_LM"):
        assert part in message


def test_dtypes_that_do_not_fit(tmp_path):
    message = refused(tmp_path, settings={"frozen_dtype": "bfloat16"}, bias="all")
    for part in ("recipes.demo.frozen_dtype", "bfloat16", "lora.bias all"):
        assert part in message


def test_four_bits_without_bitsandbytes(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    message = refused(tmp_path, "qlora")
    for part in ("cannot be imported", "recipes.demo.method: qlora", "make install", "method lora"):
        assert part in message


@pytest.mark.parametrize(("kind", "part"), [("cpu", "run it on a GPU"), ("cuda", "its build for CUDA")])
def test_four_bits_without_kernels_for_the_device(monkeypatch, kind, part):
    from bitsandbytes import functional

    def no_kernel(*args, **kwargs):
        raise NotImplementedError("no kernel for this device\nmore")

    monkeypatch.setattr(functional, "quantize_4bit", no_kernel)
    monkeypatch.setattr(torch, "ones", lambda *size, **options: None)
    with pytest.raises(SeedbedError, match="does not work on this") as caught:
        adapters.check_quantization(types.SimpleNamespace(type=kind), "config, recipes.q.method: qlora")
    message = str(caught.value)
    for each in (part, "no kernel for this device", "recipes.q", "method lora"):
        assert each in message
    assert "more" not in caught.value.found


def test_bitsandbytes_does_not_warn_of_kernels_of_a_hub():
    assert logging.getLogger("bitsandbytes.backends.cpu.ops").level == logging.ERROR
