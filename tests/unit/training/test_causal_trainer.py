"""Causal models: what is learnt of prompts and answers, what is recorded, and what is refused."""

import csv
import json
import math
import types

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from builders_causal import CLASSES, make_causal_model
from builders_training import make_causal_job, make_causal_run
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, RwkvConfig, XLNetConfig
from transformers.models.bloom.modeling_bloom import BloomAttention

from seedbed.core import files
from seedbed.core.errors import SeedbedError
from seedbed.core.tasks import ANSWER_COLUMNS, GROUP_COLUMN
from seedbed.running import batches, jobs, publishing
from seedbed.training import initial_models, methods
from seedbed.training.progress import start
from seedbed.training.transformers import causal
from seedbed.training.transformers.causal import CausalTrainer, read_splits, token_scores

CPU = torch.device("cpu")
KINDS = tuple(CLASSES)


def trainer_of(job) -> CausalTrainer:
    shape = files.read_json(job.model)
    splits = read_splits(job, shape["max_positions"])
    progress = start(job, len(splits["train"].examples))
    return CausalTrainer(job, progress, splits, methods.of(job).causal_model(CPU), shape["pad"])


def train(folder, name="run", kind="bloom", **run):
    job = make_causal_job(folder, make_causal_run(**run), name, kind)
    causal.train([job])
    return job


def rows_of(job, name):
    with open(job.target / name, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def record_of(job):
    return json.loads((job.target / "run.json").read_text())


def nats_by_hand(model, prompt, answer) -> tuple[float, int]:
    """Each token on its own, without batches or padding."""
    ids = torch.tensor([[*prompt, *answer]])
    with torch.no_grad():
        scores = torch.log_softmax(model.eval()(input_ids=ids).logits[0].double(), dim=-1)
    places = range(len(prompt), ids.shape[1])
    nats = -sum(float(scores[place - 1, ids[0, place]]) for place in places)
    return nats, sum(int(scores[place - 1].argmax() == ids[0, place]) for place in places)


# --- batches and loss ---


@pytest.mark.parametrize("kind", KINDS)
def test_evaluation_is_that_of_every_example_alone(tmp_path, kind):
    job = make_causal_job(tmp_path, make_causal_run("none", dropout=0.0), kind=kind)
    trainer = trainer_of(job)
    split = trainer.splits["test"]
    expected = [nats_by_hand(trainer.model, *pair) for pair in zip(split.prompts, split.answers, strict=True)]
    assert len(set(split.lengths)) > 1
    assert trainer.predict_split(split) == pytest.approx(np.array(expected), rel=1e-5)


@pytest.mark.parametrize("loss_on", ["answer", "all"])
def test_the_loss_is_the_mean_over_the_tokens_of_the_batch(tmp_path, loss_on):
    run = make_causal_run("full", loss_on=loss_on, dropout=0.0, attention_dropout=0.0)
    trainer = trainer_of(make_causal_job(tmp_path, run))
    batch = [([5, 6, 7, 300, 9, 10, 4, 4], [8, 9, 2]), ([7, 9], [6, 5, 4, 2])]
    inputs = trainer.collate(batch)
    loss, outputs, tokens = trainer.batch_loss(trainer.model.eval(), inputs)
    by_hand = [nats_by_hand(trainer.model, *pair) for pair in batch]
    assert outputs.tolist() == [pytest.approx(pair, rel=1e-5) for pair in by_hand]
    assert tokens.tolist() == [3, 4]
    assert inputs["tokens"] == 17
    if loss_on == "all":
        whole = [nats_by_hand(trainer.model, prompt[:1], [*prompt[1:], *answer]) for prompt, answer in batch]
        assert float(loss) == pytest.approx(sum(nats for nats, _ in whole) / 15, rel=1e-5)
    else:
        assert float(loss) == pytest.approx(sum(nats for nats, _ in by_hand) / 7, rel=1e-5)


def test_the_end_token_is_learnt_and_padding_is_not_even_if_they_are_the_same(tmp_path):
    """The gradient must be that of the examples without padding."""
    job = make_causal_job(tmp_path, make_causal_run("full", dropout=0.0, attention_dropout=0.0))
    eos = files.read_json(job.model)["eos"]
    files.write_json(job.model, {**files.read_json(job.model), "pad": eos})
    trainer = trainer_of(job)
    batch = [([5, 6, 7, 9, 10], [8, 9, eos]), ([7], [6, eos])]
    inputs = trainer.collate(batch)
    assert inputs["answer_mask"].sum(dim=1).tolist() == [3, 2]
    assert inputs["input_ids"][inputs["answer_mask"]].tolist() == [8, 9, eos, 6, eos]
    model = trainer.model.eval()
    trainer.batch_loss(model, inputs)[0].backward()
    found = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    model.zero_grad()
    alone = [token_scores(model, trainer.collate([pair]))[0] for pair in batch]
    (torch.cat(alone).mean()).backward()
    for name, weight in model.named_parameters():
        assert torch.allclose(found[name], weight.grad, atol=1e-6), name


def test_scores_are_only_computed_where_answers_are(tmp_path):
    trainer = trainer_of(make_causal_job(tmp_path, make_causal_run("none")))
    seen = []
    trainer.model.lm_head.register_forward_hook(lambda module, given, made: seen.append(made.shape[1]))
    token_scores(trainer.model, trainer.collate([([5] * 20, [6, 2]), ([5] * 18, [6, 7, 2])]))
    assert seen == [5]  # from the token before position 18 to the end, of 22


# --- runs ---


def test_a_run_records_the_untrained_model_and_every_epoch(tmp_path):
    job = train(tmp_path)
    rows = rows_of(job, "metrics.csv")
    names = ("loss", "perplexity", "token_accuracy")
    found = [(row["step"], row["epoch"], row["split"], row["metric"]) for row in rows]
    expected = [("0", "0", "validation", name) for name in names]
    for step, epoch in (("5", "1"), ("10", "2")):
        expected += [(step, epoch, split, name) for split in ("train", "validation") for name in names]
    # the selected checkpoint's
    record = record_of(job)
    assert found[: len(expected)] == expected
    assert {row[2] for row in found[len(expected) :]} == {"test"}
    assert record["selected"]["step"] in (5, 10)
    assert record["selected"]["metric"] == "loss"
    untrained, value = float(rows[0]["value"]), record["selected"]["value"]
    assert value < untrained - 0.3  # it learns
    assert record["validation"]["loss"] == value
    assert set(record["test"]) == {*names, "exact_match", "f1"}
    assert (record["label_names"], record["majority_share"]) == ([], None)
    assert record["total_updates"] == record["updates"] == 10


def test_the_untrained_model_is_never_selected_even_if_it_is_the_best(tmp_path):
    job = train(tmp_path, learning_rate=3.0, clip_norm=0.0)
    rows = [row for row in rows_of(job, "metrics.csv") if row["metric"] == "loss"]
    record = record_of(job)
    assert float(rows[0]["value"]) < record["selected"]["value"]
    assert record["selected"]["step"] > 0


def test_predictions_agree_with_the_metrics(tmp_path):
    job = train(tmp_path, "lora", method="lora")
    rows, record = rows_of(job, "predictions.csv"), record_of(job)
    assert tuple(rows[0]) == (*ANSWER_COLUMNS, GROUP_COLUMN)
    for split, size in (("validation", 8), ("test", 10)):
        part = [row for row in rows if row["split"] == split]
        assert len(part) == size
        tokens = np.array([int(row["tokens"]) for row in part])
        for name in ("loss", "token_accuracy"):
            sums = tokens * np.array([float(row[name]) for row in part])
            assert sums.sum() / tokens.sum() == pytest.approx(record[split][name], rel=1e-6)
        for name in ("exact_match", "f1"):
            mean = np.mean([float(row[name]) for row in part])
            assert mean == pytest.approx(record[split][name])
        assert record[split]["perplexity"] == pytest.approx(math.exp(record[split]["loss"]))


def test_nothing_is_trained_with_the_method_none(tmp_path):
    job = train(tmp_path, method="none", keep_model=True)
    record, rows = record_of(job), rows_of(job, "metrics.csv")
    assert (record["total_updates"], record["updates"]) == (0, 0)
    assert (record["selected"]["step"], record["selected"]["epoch"]) == (0, 0)
    assert record["samples_per_second"] is record["tokens_per_second"] is record["padding_share"] is None
    assert record["seconds"]["train"] == 0
    assert record["parameters"]["trainable"] == 0
    assert {(row["step"], row["split"]) for row in rows} == {("0", "validation"), ("0", "test")}
    stored, kept = (load_file(place / "model.safetensors") for place in (job.weights, job.target / "model"))
    assert all(torch.equal(stored[name], kept[name]) for name in kept)
    full = record_of(train(tmp_path, "full"))
    assert record["validation"]["loss"] == pytest.approx(float(rows_of(job, "metrics.csv")[0]["value"]))
    assert full["parameters"]["trainable"] == record["parameters"]["total"]


def test_a_kept_model_gives_the_metrics_again(tmp_path):
    job = train(tmp_path, keep_model=True)
    model = AutoModelForCausalLM.from_pretrained(job.target / "model", local_files_only=True)
    split = read_splits(job, None)["test"]
    pairs = zip(split.prompts, split.answers, strict=True)
    nats = sum(nats_by_hand(model, *pair)[0] for pair in pairs)
    assert nats / sum(split.labels) == pytest.approx(record_of(job)["test"]["loss"], rel=1e-4)


def test_random_weights_are_those_of_the_init_seed(tmp_path):
    def weights(seed, state):
        torch.manual_seed(state)
        job = make_causal_job(tmp_path, make_causal_run("full", init="random", init_seed=seed))
        return torch.cat([weight.flatten() for weight in methods.of(job).causal_model(CPU).parameters()])

    assert torch.equal(weights(3, 0), weights(3, 1))
    assert not torch.equal(weights(3, 0), weights(4, 0))


def test_qlora_starts_from_random_weights_too(tmp_path):
    job = make_causal_job(tmp_path, make_causal_run("qlora", init="random"))
    model = methods.of(job).causal_model(CPU)
    base = initial_models.build_base(job.weights, job.run)
    found = model.get_base_model().transformer.word_embeddings.weight
    assert torch.equal(found, base.transformer.word_embeddings.weight)


@pytest.mark.parametrize(
    "settings", [{"precision": "bfloat16"}, {"gradient_checkpointing": True}, {"loss_on": "all"}]
)
@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_other_settings_train(tmp_path, method, settings):
    job = train(tmp_path, method=method, **settings)
    record = record_of(job)
    assert not record["diverged"]
    assert publishing.is_complete(job.target, publishing.content_of(job))


def test_every_method_is_evaluated_and_answers_in_the_precision_of_training(tmp_path, monkeypatch):
    seen = []
    forward = BloomAttention.forward

    def noted(self, *arguments, **options):
        layer, x = self.dense, torch.ones(1, self.dense.in_features) / 3
        # qlora has autocast
        seen.append(
            torch.is_autocast_enabled("cpu")
            or not torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))
        )
        return forward(self, *arguments, **options)

    # that tries out the architecture, before there is a precision
    monkeypatch.setattr(initial_models, "check_architecture", lambda *arguments: None)
    monkeypatch.setattr(BloomAttention, "forward", noted)
    untrained = {}
    for method in ("none", "lora", "qlora", "full"):
        job = train(tmp_path, method, method=method, precision="bfloat16")
        assert set(seen) == {True}, method
        seen.clear()
        (first,) = [
            row["value"]
            for row in rows_of(job, "metrics.csv")
            if (row["step"], row["split"], row["metric"]) == ("0", "validation", "loss")
        ]
        untrained[method] = float(first)
    assert untrained["none"] == untrained["full"] == pytest.approx(untrained["lora"], rel=1e-5)


@pytest.mark.parametrize(
    ("config", "found"),
    [
        (XLNetConfig(vocab_size=60, d_model=16, n_layer=2, n_head=2, d_inner=32), "later tokens"),
        (RwkvConfig(vocab_size=60, hidden_size=16, num_hidden_layers=2), "padding to the left"),
    ],
    ids=["xlnet", "rwkv"],
)
def test_a_model_that_sees_what_it_must_not_is_refused(config, found):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config)
    with pytest.raises(SeedbedError) as caught:
        initial_models.check_architecture(model, "models/m")
    assert found in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_models_that_see_earlier_tokens_alone_pass(tmp_path, kind):
    folder = make_causal_model(tmp_path / kind, kind)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    initial_models.check_architecture(model, "models/m", tolerance=1e-5)


def test_gradient_checkpointing_changes_no_number(tmp_path):
    found = [
        train(tmp_path, f"gc{on}", method="lora", gradient_checkpointing=on).target / "predictions.csv"
        for on in (False, True)
    ]
    assert found[0].read_bytes() == found[1].read_bytes()


@pytest.mark.parametrize(
    ("kind", "keys", "missing"),
    [
        ("bloom", {"hidden_dropout": 0.3, "attention_dropout": 0.2}, []),
        ("gpt2", {"resid_pdrop": 0.3, "embd_pdrop": 0.3, "attn_pdrop": 0.2}, []),
        ("llama", {"attention_dropout": 0.2}, ["dropout"]),
    ],
)
def test_dropouts_go_where_the_architecture_has_them(tmp_path, kind, keys, missing):
    run = make_causal_run("full", dropout=0.3, attention_dropout=0.2)
    job = make_causal_job(tmp_path, run, kind=kind)
    config = methods.of(job).causal_model(CPU).config
    assert {key: getattr(config, key) for key in keys} == keys
    found = causal.differences(run["settings"], config)
    assert [each["setting"] for each in found] == missing


@pytest.mark.slow
def test_runs_of_several_methods_share_a_batch(tmp_path):
    runs = {method: make_causal_run(method) for method in ("none", "lora", "qlora")}
    made = [make_causal_job(tmp_path, run, name, batch="b") for name, run in runs.items()]
    batches.train(made, "seedbed.training.transformers.causal", {}, tmp_path / "logs", at_once=1)
    for job in made:
        assert publishing.is_result(job.work / publishing.KEPT, job)


def test_a_rule_without_labels_gives_the_same_job_as_a_batch(tmp_path):
    run = {**make_causal_run("lora"), "dataset": "qa", "model": "bloom"}
    results = tmp_path / "results"
    target = results / "x/runs/qa/bloom/transformers/pretrained/demo/seed3"
    model, tokens = results / "models/bloom", results / "data/qa/bloom/tokens"
    inputs = {
        "tokens": [str(tokens / f"{split}.jsonl") for split in ("train", "validation", "test")],
        "weights": str(model / "huggingface/model.safetensors"),
        "tokenizer": str(model / "huggingface/tokenizer.json"),
        "model": str(model / "model.json"),
    }

    class Inputs(dict):
        __getattr__ = dict.__getitem__

    rule = types.SimpleNamespace(
        output=types.SimpleNamespace(run_json=str(target / "run.json")),
        input=Inputs(inputs),
        params=types.SimpleNamespace(run=run),
        threads=1,
        config={},
    )
    (job,) = jobs.jobs_from_rule(rule)
    assert job.labels is None
    assert job.task.name == "generation"
    assert job == jobs.job_of_run(run, results / "x", 1, jobs.checkpointing({}))


# --- what is refused ---


def test_an_example_that_is_longer_than_the_model_has_positions(tmp_path):
    job = make_causal_job(tmp_path, make_causal_run("full"), kind="gpt2")
    path = job.tokens / "test.jsonl"
    rows = files.read_jsonl(path)
    rows[4]["prompt"] = [5] * 62
    files.write_jsonl(path, rows)
    with pytest.raises(SeedbedError, match="longer than the model's positions") as caught:
        causal.train([job])
    for part in ("test.jsonl, test-4", f"{62 + len(rows[4]['answer'])} tokens, of 64", "max_tokens"):
        assert part in str(caught.value)


@pytest.mark.parametrize("method", ["full", "qlora"])
def test_a_model_that_would_not_start_from_its_checkpoint(tmp_path, method, monkeypatch):
    make_causal_model(tmp_path / "other", "bloom", seed=1)
    job = make_causal_job(tmp_path, make_causal_run(method))
    original = AutoModelForCausalLM.from_pretrained

    def of_another(weights, **options):
        return original(tmp_path / "other", **options)

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", of_another)
    with pytest.raises(SeedbedError, match="did not start from its checkpoint"):
        methods.of(job).causal_model(CPU)


def test_a_checkpoint_that_lacks_a_weight(tmp_path):
    job = make_causal_job(tmp_path, make_causal_run("full"))
    path = job.weights / "model.safetensors"
    state = load_file(path)
    name = next(name for name in state if name.endswith("h.1.mlp.dense_h_to_4h.weight"))
    save_file({key: value for key, value in state.items() if key != name}, path, metadata={"format": "pt"})
    with pytest.raises(SeedbedError, match="lacks a weight") as caught:
        methods.of(job).causal_model(CPU)
    assert "h.1.mlp.dense_h_to_4h.weight" in str(caught.value)
