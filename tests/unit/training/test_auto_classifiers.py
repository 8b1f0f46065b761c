"""Classifiers of the format auto: what each kind starts from, computes, trains and leaves."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import tiered
from builders_encoders import KINDS, convert_encoder, make_encoder_job
from builders_stops import NEVER, Stops, outcome, watched  # noqa: F401 - a fixture
from builders_training import make_run
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForSequenceClassification

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl
from seedbed.models import limits
from seedbed.training import adapter_parameters, initial_models, merging
from seedbed.training.transformers import classifier

PACKED = ("BERT", "XLM-R", "CamemBERT", "RoBERTa, byte-level BPE")
TARGETS = {
    "BERT": ["query", "value"],
    "DistilBERT": "all-linear",
    "DeBERTa": ["in_proj"],
    "ModernBERT": ["Wqkv"],
}
STILL = {"dropout": 0.0, "attention_dropout": 0.0, "pooler_dropout": 0.0}
IDS = torch.tensor([[0, 7, 50, 60, 9, 2]])


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Any:
    """The converted model of a kind, made at the first call."""
    made: dict[str, Path] = {}

    def of(kind: str) -> Path:
        if kind not in made:
            made[kind] = convert_encoder(tmp_path_factory.mktemp("model"), kind)
        return made[kind]

    return of


def train(job: Any) -> dict[str, Any]:
    classifier.train([job])
    return json.loads((job.target / "run.json").read_text(encoding="utf-8"))


def build(model: Path, classes: int = 2, **run: Any) -> Any:
    return initial_models.build_classifier(model / "huggingface", make_run("transformers", **run), classes)


def rows(job: Any, file: str) -> list[dict[str, str]]:
    with open(job.target / file, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def plain_probabilities(model: Path, weights: dict[str, torch.Tensor], job: Any) -> dict[str, float]:
    """P(positive) of each test text by Transformers alone, text by text."""
    config = AutoConfig.from_pretrained(model / "huggingface", num_labels=2)
    plain = AutoModelForSequenceClassification.from_config(config).eval()
    plain.load_state_dict(weights)
    texts = {row["id"]: row["ids"] for row in read_jsonl(job.tokens / "test.jsonl")}
    with torch.no_grad():
        logits = {name: plain(input_ids=torch.tensor([ids])).logits[0] for name, ids in texts.items()}
    return {name: float(each.softmax(0)[1]) for name, each in logits.items()}


@pytest.mark.parametrize("kind", tiered(KINDS, "BERT", "DeBERTa-v3", "ModernBERT", "XLM-R"))
@pytest.mark.parametrize("init", ["pretrained", "random"])
def test_each_kind_learns_and_computes_as_transformers_does(tmp_path, models, kind, init):
    model = models(kind)
    settings = {"init": init, "keep_model": True, "epochs": 6, "learning_rate": 0.01, **STILL}
    job = make_encoder_job(tmp_path, model, make_run("transformers", **settings), identity="a")
    record = train(job)
    losses = [
        float(r["value"]) for r in rows(job, "metrics.csv") if (r["split"], r["metric"]) == ("train", "loss")
    ]
    assert losses[-1] < 0.8 * losses[0]
    assert record["packed"] == (kind in PACKED)
    assert (record["padding_share"] == 0) == (kind in PACKED)
    weights = load_file(job.target / "model" / "model.safetensors")
    total = sum(weight.numel() for weight in weights.values())
    assert record["parameters"]["trainable"] == record["parameters"]["total"] == total
    expected = plain_probabilities(model, weights, job)
    found = {
        r["example"]: float(r["probability_positive"])
        for r in rows(job, "predictions.csv")
        if r["split"] == "test"
    }
    assert found == pytest.approx(expected, abs=1e-5)
    told = {difference["setting"] for difference in record["differences"]}
    assert ("random_init_sd" in told) == (init == "random")


@pytest.mark.parametrize("kind", tiered(KINDS, "BERT", "DeBERTa-v3", "ModernBERT"))
def test_inits_share_the_new_head_and_differ_in_the_rest(models, kind):
    model = models(kind)
    stored = load_file(model / "huggingface" / "model.safetensors")
    new = read_json(model / "model.json")["new_weights"]
    pretrained, random, again, other = (
        build(model, init=init, init_seed=seed).state_dict()
        for init, seed in (("pretrained", 3), ("random", 3), ("random", 3), ("random", 4))
    )
    for name, weight in pretrained.items():
        assert torch.equal(random[name], again[name])
        if name in new:
            assert torch.equal(weight, random[name])
        elif name in stored:
            assert torch.equal(weight, stored[name])
            assert not torch.equal(weight, random[name])
    matrices = [name for name, weight in random.items() if weight.dim() > 1]
    assert not any(torch.equal(random[name], other[name]) for name in matrices)


def test_random_weights_are_the_architectures_own(models):
    model = models("ModernBERT")
    found = build(model, init="random", init_seed=5, **STILL).state_dict()
    config = AutoConfig.from_pretrained(model / "huggingface", num_labels=2)
    torch.manual_seed(5)
    expected = AutoModelForSequenceClassification.from_config(config).state_dict()
    new = read_json(model / "model.json")["new_weights"]
    assert all(torch.equal(weight, found[name]) for name, weight in expected.items() if name not in new)


@pytest.mark.parametrize(("distribution", "bound"), [("torch", 0.25), ("normal", None)])
def test_the_new_head_has_the_recipes_distribution(models, distribution, bound):
    init = {"distribution": distribution, "sd": 0.5}
    head = build(models("BERT"), classes=400, init="pretrained", head_init=init).classifier
    weights = head.weight.flatten()
    if bound:
        assert 0.95 * bound < weights.abs().max() <= bound
    else:
        assert float(weights.detach().std()) == pytest.approx(0.5, rel=0.05)
        assert not head.bias.any()


@pytest.mark.parametrize("kind", tiered(KINDS, "BERT", "ModernBERT", "DeBERTa-v2", "DistilBERT"))
def test_dropouts_of_the_recipe_reach_every_module(models, kind):
    rates = {"dropout": 0.11, "attention_dropout": 0.12, "activation_dropout": 0.13, "pooler_dropout": 0.14}
    run = make_run("transformers", init="random", **rates)
    model = initial_models.build_classifier(models(kind) / "huggingface", run, 2)
    told = {each["setting"] for each in classifier.initial_encoders.differences_of(model, run)}
    modules = {
        name: module.p for name, module in model.named_modules() if isinstance(module, torch.nn.Dropout)
    }
    assert modules
    assert {0.11, 0.12, 0.13, 0.14} >= set(modules.values())
    assert ("activation_dropout" in told) == (kind != "ModernBERT")
    for setting, rate in rates.items():
        if (
            setting not in told and setting != "attention_dropout"
        ):  # a number of the config, not always a module
            assert rate in modules.values(), setting


@pytest.mark.parametrize("kind", tiered(TARGETS, "BERT", "DistilBERT"))
def test_an_adapter_trains_the_whole_new_head_and_merges(tmp_path, models, kind):
    model = models(kind)
    run = make_run("transformers", method="lora", init="pretrained", keep_model=True)
    run["settings"]["lora"]["target_modules"] = TARGETS[kind]
    target = tmp_path / "results/x/runs/generated/tiny/transformers/pretrained/demo/seed3"
    job = make_encoder_job(tmp_path, model, run, target=target, identity="a")
    record = train(job)
    saved = load_file(job.target / "adapter" / "adapter_model.safetensors")
    new = read_json(model / "model.json")["new_weights"]
    assert all(any(key.endswith(name) for key in saved) for name in new)
    assert record["parameters"]["trainable"] == sum(weight.numel() for weight in saved.values())
    recipe = {"method": "lora", "lora": run["settings"]["lora"]}
    table = adapter_parameters.tabulate({"m": model / "huggingface"}, {"r": recipe}, "classification", 2)
    counted = {row["component"]: row["counted"] for row in table}
    assert counted["trainable"] == record["parameters"]["trainable"]
    merging.merge_run(job.target, tmp_path / "merged", model / "huggingface")
    merged = AutoModelForSequenceClassification.from_pretrained(tmp_path / "merged").eval()
    kept = AutoModelForSequenceClassification.from_pretrained(job.target / "model").eval()
    with torch.no_grad():
        assert torch.equal(merged(input_ids=IDS).logits, kept(input_ids=IDS).logits)
    assert (tmp_path / "merged" / "tokenizer.json").is_file()


@pytest.mark.parametrize("kind", tiered(["DistilBERT", "BERT"], "DistilBERT"))
def test_a_run_that_is_stopped_ends_the_same(tmp_path, models, monkeypatch, kind):
    stops = Stops(monkeypatch, classifier.train)
    run = make_run("transformers", init="pretrained")
    whole = make_encoder_job(tmp_path, models(kind), run, "whole", checkpointing=NEVER, identity="a")
    assert not stops.run(whole)
    job = make_encoder_job(tmp_path, models(kind), run, "stopped", checkpointing=NEVER, identity="a")
    assert stops.run(job, 4)
    assert stops.run(job, 5)
    assert not stops.run(job)
    assert outcome(job) == outcome(whole)


def test_an_encoder_weight_that_is_missing_is_refused(tmp_path, models):
    folder = tmp_path / "huggingface"
    folder.mkdir()
    source = models("DistilBERT") / "huggingface"
    (folder / "config.json").write_bytes((source / "config.json").read_bytes())
    weights = load_file(source / "model.safetensors")
    name = "distilbert.transformer.layer.0.attention.q_lin.weight"
    del weights[name]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(SeedbedError, match="would start at random") as error:
        build(tmp_path, init="pretrained")
    assert error.value.found == name


def test_a_model_without_a_limit_needs_the_recipes():
    model = {"m": {"format": "auto", "max_positions": None, "ending": [2]}}
    limits.check(model, {"r": {"family": "r", "max_positions": 64}}, {"d": None})
    with pytest.raises(SeedbedError, match="nothing limits the length of texts") as error:
        limits.check(model, {"r": {"family": "r", "max_positions": None}}, {"d": None})
    assert error.value.where == "config, recipes.r.max_positions"
