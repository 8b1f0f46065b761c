"""Methods that train a part of the weights: what they train, what stays frozen, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import tiered
from builders_encoders import KINDS, convert_encoder
from builders_graphs import NO_DROPOUT, captures, trained  # noqa: F401 - a fixture
from builders_stops import NEVER, Stops, outcome, watched  # noqa: F401 - a fixture
from builders_training import SHAPE, make_fairseq_job, make_job, make_run
from safetensors.torch import load_file

from seedbed.core.errors import SeedbedError
from seedbed.training import adapter_parameters, initial_models, methods, partial
from seedbed.training.adapter_parameters import tabulate
from seedbed.training.fairseq import trainer as fairseq_trainer  # before fairseq itself
from seedbed.training.transformers import classifier

TRAINERS = {"fairseq": (fairseq_trainer, make_fairseq_job), "transformers": (classifier, make_job)}
METHODS = {"bitfit": {}, "last_layers": {"last_layers": 1}}
D, F, LAYERS, CLASSES = SHAPE["embed_dim"], SHAPE["ffn_dim"], SHAPE["layers"], 2
HEAD = D * D + D + D * CLASSES + CLASSES
TRAINED = {"bitfit": LAYERS * (7 * D + F) + D, "last_layers": 4 * D * D + 2 * D * F + 9 * D + F}


def run_of(framework: str, method: str, **settings: Any) -> dict[str, Any]:
    return make_run(framework, method=method, **METHODS[method], **settings)


def train(folder: Path, framework: str, run: dict[str, Any], name: str = "run") -> Any:
    trainer, make = TRAINERS[framework]
    job = make(folder, run, name)
    trainer.train([job])
    return job


def initial(folder: Path, framework: str, run: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The kept weights of a run whose learning rate changes nothing."""
    still = {**run, "settings": {**run["settings"], "learning_rate": 1e-45, "weight_decay": 0.0}}
    job = train(folder, framework, still, "still")
    return load_file(job.target / "model" / "model.safetensors")


def is_trained(name: str, method: str) -> bool:
    """Whether a method trains a weight of the tiny model of one layer, by its name in either framework."""
    if "classif" in name:
        return True
    if method == "bitfit":
        return name.endswith(".bias")
    return ".layer.0." in name or ".layers.0." in name


@pytest.mark.parametrize("framework", TRAINERS)
@pytest.mark.parametrize(("method", "init"), [("bitfit", "pretrained"), ("last_layers", "random")])
def test_the_frozen_weights_stay_the_same_to_the_bit(tmp_path, framework, method, init):
    run = run_of(framework, method, init=init, keep_model=True, weight_decay=0.1)
    job = train(tmp_path, framework, run)
    record = json.loads((job.target / "run.json").read_text(encoding="utf-8"))
    assert record["parameters"]["trainable"] == TRAINED[method] + HEAD
    assert record["parameters"]["expected_trainable"] == TRAINED[method] + HEAD
    kept = load_file(job.target / "model" / "model.safetensors")
    before = initial(tmp_path, framework, run)
    assert kept.keys() == before.keys()
    changed = {name for name, weight in kept.items() if not torch.equal(weight, before[name])}
    unused = ("lm_head", "in_proj_", "out_proj_", "fc1_", "fc2_", "version")
    expected = {
        name for name in kept if is_trained(name, method) and not any(part in name for part in unused)
    }
    # a key's bias shifts all scores of a query alike, so its gradient is zero but for rounding
    keys = {name for name in expected if ("k_proj.bias" in name or "key.bias" in name)}
    assert expected - keys <= changed <= expected


@pytest.mark.parametrize("method", METHODS)
def test_both_frameworks_train_the_same_weights_from_the_same_start(tmp_path, method):
    """Without dropout, at full batches, the losses of both after one update agree."""
    still = {"dropout": 0.0, "attention_dropout": 0.0, "pooler_dropout": 0.0, "epochs": 1, "batch_size": 18}
    found = {}
    for framework in TRAINERS:
        job = train(tmp_path / framework, framework, run_of(framework, method, **still))
        found[framework] = json.loads((job.target / "run.json").read_text(encoding="utf-8"))
    for split in ("validation", "test"):
        loss = found["fairseq"][split]["loss"]
        assert found["transformers"][split]["loss"] == pytest.approx(loss, abs=1e-4)
    parameters = [found[framework]["parameters"]["trainable"] for framework in TRAINERS]
    assert parameters == [TRAINED[method] + HEAD] * 2


@pytest.mark.parametrize("framework", TRAINERS)
def test_a_stopped_run_ends_the_same(tmp_path, monkeypatch, framework):
    trainer, make = TRAINERS[framework]
    stops = Stops(monkeypatch, trainer.train)
    run = run_of(framework, "bitfit")
    whole = make(tmp_path, run, "whole", checkpointing=NEVER)
    assert not stops.run(whole)
    for at in (2, stops.count // 2, stops.count - 1):
        job = make(tmp_path, run, f"stop{at}", checkpointing=NEVER)
        assert stops.run(job, at)
        assert not stops.run(job)
        assert outcome(job) == outcome(whole)


@pytest.mark.parametrize("kind", tiered(KINDS, "DeBERTa", "ModernBERT"))
def test_other_encoders_train_their_biases_or_last_layers(tmp_path, kind):
    model = convert_encoder(tmp_path, kind)
    whole = initial_models.build_classifier(model / "huggingface", make_run("transformers"), 2)
    layout = partial.layout_of(whole)
    names = [name for name, _ in whole.named_parameters()]
    sorted_in = [*layout.head, *layout.others, *layout.after, *(n for layer in layout.layers for n in layer)]
    assert sorted(sorted_in) == sorted(names)
    assert len(layout.layers) == whole.config.num_hidden_layers
    assert all(layout.layers)
    assert bool(layout.after) == (kind == "ModernBERT")  # the only one whose layers begin with their norms
    recipes = {"top": {"method": "last_layers", "family": "top", "last_layers": 1}}
    rows = tabulate({"m": model / "huggingface"}, recipes, "classification", 2)
    counted = {row["component"]: row["counted"] for row in rows}
    sizes = {name: weight.numel() for name, weight in whole.named_parameters()}
    of_head = sum(sizes[name] for name in layout.head)
    assert counted["head"] == of_head
    assert counted["trainable"] == of_head + sum(sizes[name] for name in layout.last(1))


def test_what_a_model_lacks_is_refused_before_training(tmp_path):
    model = convert_encoder(tmp_path, "ModernBERT") / "huggingface"
    bitfit = {"method": "bitfit", "family": "b"}
    with pytest.raises(SeedbedError, match="has no biases that BitFit could train") as refused:
        tabulate({"m": model}, {"b": bitfit}, "classification", 2)
    assert refused.value.where == "config, recipes.b.method"
    top = {"method": "last_layers", "family": "t", "last_layers": 9}
    with pytest.raises(SeedbedError, match="trains more layers than the model 'm' has") as refused:
        tabulate({"m": model}, {"t.last_layers=9": top}, "classification", 2)
    assert refused.value.where == "config, recipes.t.last_layers"
    assert "give at most" in refused.value.hint


def test_the_formulas_of_a_large_roberta(tmp_path):
    """RoBERTa-base with two classes: BitFit trains 102,144 biases, the last two layers 14,175,744 weights."""
    from transformers import RobertaConfig

    RobertaConfig(architectures=["RobertaForMaskedLM"], type_vocab_size=1).save_pretrained(tmp_path)
    recipes = {
        "biases": {"method": "bitfit", "family": "biases"},
        "top": {"method": "last_layers", "family": "top", "last_layers": 2},
    }
    rows = tabulate({"m": tmp_path}, recipes, "classification", 2)
    found = {(row["recipe"], row["component"]): (row["expected"], row["counted"]) for row in rows}
    assert found["biases", "biases"] == (102_144, 102_144)
    assert found["top", "2 of 12 layers"] == (14_175_744, 14_175_744)
    assert found["top", "head"] == (592_130, 592_130)
    assert found["top", "trainable"] == (14_767_874, 14_767_874)


def test_an_unfrozen_weight_is_found(tmp_path):
    job = make_job(tmp_path, run_of("transformers", "bitfit"))
    method = methods.of(job)
    model = method.classifier()
    model.roberta.embeddings.word_embeddings.weight.requires_grad_(True)
    with pytest.raises(SeedbedError, match="two counts of the parameters that bitfit trains differ"):
        adapter_parameters.describe(model, "bitfit", groups=method.groups(model))


@pytest.mark.parametrize("framework", TRAINERS)
@pytest.mark.parametrize("method", METHODS)
def test_graphs_train_the_same_part(tmp_path, captures, framework, method):  # noqa: F811
    settings = {**NO_DROPOUT, "method": method, **METHODS[method]}
    graphed, record, _ = trained(tmp_path, framework, "graphs", cuda_graphs=True, **settings)
    plain, other, _ = trained(tmp_path, framework, "plain", cuda_graphs=False, **settings)
    assert len(captures) == 1
    assert graphed == pytest.approx(plain, abs=1e-5)
    assert record["parameters"] == other["parameters"]
