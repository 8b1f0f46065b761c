"""Heads on states of an encoder that are computed once: the same numbers as from the texts."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import tiered
from builders_encoders import KINDS, convert_encoder, make_encoder_job
from builders_stops import NEVER, Stops, outcome, watched  # noqa: F401 - a fixture
from builders_training import SHAPE, make_fairseq_job, make_job, make_run
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForSequenceClassification

from seedbed.core.errors import SeedbedError
from seedbed.core.states import EncoderOfStates
from seedbed.training import initial_models, states, token_ids
from seedbed.training.fairseq import trainer as fairseq_trainer  # before fairseq itself
from seedbed.training.transformers import classifier, on_states

TRAINERS = {"fairseq": (fairseq_trainer, make_fairseq_job), "transformers": (classifier, make_job)}
HEAD = SHAPE["embed_dim"] ** 2 + SHAPE["embed_dim"] + 2 * SHAPE["embed_dim"] + 2


def job_of(
    folder: Path, framework: str, name: str = "run", checkpointing: Any = None, **settings: Any
) -> Any:
    """A job of the method head, with the states of its encoder."""
    run = make_run(framework, method="head", **settings)
    encoder = EncoderOfStates.of(run["init"], run["init_seed"], run["settings"])
    fields = {} if checkpointing is None else {"checkpointing": checkpointing}
    job = TRAINERS[framework][1](folder, run | {"states": encoder.name}, name, **fields)
    if not job.states.exists():
        weights = job.tokens.parent / "transformers"
        states.write_states(encoder, weights, job.tokens, job.model, job.labels, job.states)
    return job


def record_of(job: Any) -> dict[str, Any]:
    return json.loads((job.target / "run.json").read_text(encoding="utf-8"))


def probabilities(job: Any) -> list[float]:
    with open(job.target / "predictions.csv", encoding="utf-8", newline="") as stream:
        return [
            float(row["probability_positive"]) for row in csv.DictReader(stream) if row["split"] == "test"
        ]


@pytest.mark.parametrize(
    "name", ["pretrained", "pretrained-max64", "random3-sd0.02", "random0-sd1e-05-max128"]
)
def test_the_name_of_a_file_tells_its_encoder(name):
    assert EncoderOfStates.named(name).name == name
    recipe = {"max_positions": None, "random_init_sd": 0.02}
    assert EncoderOfStates.of("random", 3, recipe) == EncoderOfStates.named("random3-sd0.02")
    assert EncoderOfStates.of("pretrained", 3, recipe) == EncoderOfStates.of("pretrained", 4, recipe)
    with pytest.raises(SeedbedError):
        EncoderOfStates.named(f"{name}-")


@pytest.mark.parametrize(
    "kind", tiered(KINDS, "BERT", "DistilBERT", "ELECTRA", "DeBERTa", "ModernBERT", "XLM-R")
)
def test_a_head_on_the_states_of_its_encoder_gives_the_models_logits(tmp_path, kind):
    model = convert_encoder(tmp_path, kind)
    job = make_encoder_job(tmp_path, model, make_run("transformers", init="pretrained"), identity="a")
    split = token_ids.read_splits(job)["test"]
    whole = initial_models.build_classifier(job.weights, job.run, 2).eval()
    with torch.no_grad():
        expected = [whole(input_ids=torch.tensor([ids])).logits[0] for ids in split.ids]
        found = states.encode(whole, split)
        head = on_states.without_encoder(whole).eval()
        logits = on_states.logits(head, found[states.kind_of(whole)])
    assert torch.allclose(logits, torch.stack(expected), atol=1e-5)
    assert found["first"].dtype == found["mean"].dtype == torch.float32


def test_states_are_those_of_the_first_token_and_the_mean_over_tokens(tmp_path):
    job = job_of(tmp_path, "transformers", init="pretrained")
    model = AutoModelForSequenceClassification.from_pretrained(job.weights).eval()
    stored, split = load_file(job.states), token_ids.read_splits(job)["validation"]
    for index in (0, 5):
        with torch.no_grad():
            hidden = model.roberta(input_ids=torch.tensor([split.ids[index]])).last_hidden_state[0]
        assert torch.allclose(stored["validation.first"][index], hidden[0], atol=1e-6)
        assert torch.allclose(stored["validation.mean"][index], hidden.mean(0), atol=1e-6)


@pytest.mark.parametrize("framework", TRAINERS)
@pytest.mark.parametrize("init", ["pretrained", "random"])
def test_the_head_alone_is_trained_and_the_kept_model_is_whole(tmp_path, framework, init):
    job = job_of(tmp_path, framework, init=init, keep_model=True, weight_decay=0.1)
    TRAINERS[framework][0].train([job])
    record = record_of(job)
    assert record["parameters"]["trainable"] == record["parameters"]["expected_trainable"] == HEAD
    assert record["parameters"]["total"] > HEAD
    assert record["tokens_per_second"] is None
    done = "0 in the encoder, whose states are computed once"
    assert {"setting": "dropout", "asked": 0.1, "done": done} in record["differences"]
    if framework == "fairseq":
        return
    kept = load_file(job.target / "model" / "model.safetensors")
    start = initial_models.build_classifier(job.weights, job.run, 2).state_dict()
    assert kept.keys() == start.keys()
    assert {name for name in kept if not torch.equal(kept[name], start[name])} == {
        name for name in kept if name.startswith("classifier.")
    }
    plain = AutoModelForSequenceClassification.from_config(AutoConfig.from_pretrained(job.weights)).eval()
    plain.load_state_dict(kept)
    with torch.no_grad():
        ids = token_ids.read_splits(job)["test"].ids
        found = [float(plain(input_ids=torch.tensor([each])).logits[0].softmax(0)[1]) for each in ids]
    assert probabilities(job) == pytest.approx(found, abs=1e-5)


@pytest.mark.parametrize("framework", TRAINERS)
def test_a_head_learns_from_states(tmp_path, framework):
    job = job_of(tmp_path, framework, epochs=10, pooler_dropout=0.0)
    stored = load_file(job.states)
    for name, split in token_ids.read_splits(job).items():  # states that tell the labels apart
        stored[f"{name}.first"][:, 0] = torch.tensor(split.labels) * 2.0 - 1.0
    save_file(stored, job.states)
    TRAINERS[framework][0].train([job])
    assert record_of(job)["test"]["accuracy"] == 1


def test_both_frameworks_take_the_same_states_to_the_same_loss(tmp_path):
    still = {"dropout": 0.0, "attention_dropout": 0.0, "pooler_dropout": 0.0, "epochs": 1, "batch_size": 18}
    losses = []
    for framework, (trainer, _) in TRAINERS.items():
        job = job_of(tmp_path, framework, framework, **still)
        trainer.train([job])
        losses.append(record_of(job)["test"]["loss"])
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)


@pytest.mark.parametrize("framework", TRAINERS)
def test_a_stopped_run_ends_the_same(tmp_path, monkeypatch, framework):
    stops = Stops(monkeypatch, TRAINERS[framework][0].train)
    whole = job_of(tmp_path, framework, "whole", NEVER)
    assert not stops.run(whole)
    for at in (2, stops.count // 2, stops.count - 1):
        job = job_of(tmp_path, framework, f"stop{at}", NEVER)
        assert stops.run(job, at)
        assert not stops.run(job)
        assert outcome(job) == outcome(whole)


def test_states_of_other_texts_are_refused_and_count_for_the_identity(tmp_path):
    job = job_of(tmp_path, "transformers", init="pretrained")
    before = job.inputs["states"]
    stored = load_file(job.states)
    stored["train.first"] = stored["train.first"][:-1].contiguous()
    save_file(stored, job.states)
    with pytest.raises(SeedbedError, match="number of states of the split 'train'"):
        classifier.train([job])
    del vars(job)["inputs"]
    assert job.inputs["states"] != before


def test_random_weights_of_two_seeds_have_other_states(tmp_path):
    found = [load_file(job_of(tmp_path, "transformers", f"{seed}", init_seed=seed).states) for seed in (3, 4)]
    assert not np.allclose(found[0]["test.first"], found[1]["test.first"])
