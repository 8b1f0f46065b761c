"""Runs with any number of labels: metrics, loss, predictions; full, LoRA, packed and padded."""

import csv
import json

import numpy as np
import pytest
import torch
from builders_graphs import captures  # noqa: F401 - a fixture
from builders_training import SHAPE, SIZES, make_job, make_run, write_inputs
from safetensors.torch import load_file, save_file
from sklearn import metrics
from transformers import AutoConfig, AutoModelForSequenceClassification

from seedbed.core import files
from seedbed.training import initial_models, packing, token_ids
from seedbed.training.label_sets import Labelling, label_set_metrics
from seedbed.training.transformers import classifier

NAMES = ["a", "b", "c"]
MEASURED = ("micro_f1", "macro_f1", "subset_accuracy", "loss")
STILL = {"dropout": 0.0, "attention_dropout": 0.0, "pooler_dropout": 0.0}


@pytest.fixture
def inputs(tmp_path):
    """Token ids of texts, in which an id for each label says whether they have it."""
    folder = tmp_path / "inputs"
    write_inputs(folder)
    for split in SIZES:
        rows = files.read_jsonl(folder / "tokens" / f"{split}.jsonl")
        for index, row in enumerate(rows):
            row["label"] = [index >> code & 1 for code in range(3)]
            told = [10 + code if held else 20 + code for code, held in enumerate(row["label"])]
            row["ids"] = [0, *told, *row["ids"][-2 - index % 2 :]]
        files.write_jsonl(folder / "tokens" / f"{split}.jsonl", rows)
    files.write_json(folder / "labels.json", {"labels": NAMES, "names": NAMES})
    return folder


def job_of(inputs, name="run", **settings):
    run = make_run("transformers", task="multilabel", epochs=settings.pop("epochs", 25), **settings)
    return make_job(inputs.parent, run, name, identity=name)


def train(job):
    classifier.train([job])
    return json.loads((job.target / "run.json").read_text(encoding="utf-8"))


def predictions(job, split):
    with open(job.target / "predictions.csv", encoding="utf-8", newline="") as stream:
        return [row for row in csv.DictReader(stream) if row["split"] == split]


# --- metrics and loss ---------------------------------------------------------------------------------------


def test_metrics_are_those_of_the_predicted_probabilities():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(0, 3, (50, 4)), rng.random((50, 4)) < 0.4
    found = label_set_metrics(logits, labels.astype(int), MEASURED)
    predicted, probabilities = logits > 0, 1 / (1 + np.exp(-logits))
    assert found["micro_f1"] == pytest.approx(metrics.f1_score(labels, predicted, average="micro"))
    assert found["subset_accuracy"] == metrics.accuracy_score(labels, predicted)
    losses = [metrics.log_loss(labels[:, k], probabilities[:, k]) for k in range(4)]
    assert found["loss"] == pytest.approx(np.mean(losses))
    assert label_set_metrics(np.array([[800.0, -800.0]]), np.array([[0, 1]]), ["loss"])["loss"] == 800.0


def test_logits_that_are_not_finite_have_no_loss_and_no_labels():
    logits, labels = np.array([[np.nan, 2.0], [-1.0, -1.0], [np.inf, -1.0]]), np.zeros((3, 2))
    found = label_set_metrics(logits, labels, MEASURED)
    assert np.isnan(found.pop("loss"))
    assert found == {"micro_f1": 0.0, "macro_f1": 0.0, "subset_accuracy": 1 / 3}


@pytest.mark.parametrize("shape", [(2, 2), (3,), (0, 3)])
def test_shapes_that_do_not_fit(shape):
    with pytest.raises(ValueError, match="do not fit"):
        label_set_metrics(np.zeros(shape), np.zeros((0, 3) if shape == (0, 3) else (3, 3)), MEASURED)


def test_the_training_loss_is_the_mean_over_texts_and_labels(inputs):
    objective = Labelling(job_of(inputs), [], torch.device("cpu"))
    outputs, labels = torch.randn(5, 3), torch.randint(0, 2, (5, 3))
    expected = label_set_metrics(outputs.numpy(), labels.numpy(), ["loss"])["loss"]
    assert float(objective.mean(outputs, labels)) == pytest.approx(expected, rel=1e-6)
    assert float(objective.summed(outputs, labels)) == pytest.approx(5 * expected, rel=1e-6)


# --- runs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_a_run_learns_its_labels_and_predicts_as_transformers_does(inputs, monkeypatch, packed):
    monkeypatch.setattr(packing, "is_used_on", lambda device: packed)
    job = job_of(inputs, keep_model=True, **STILL)
    record = train(job)
    assert record["packed"] is packed
    assert record["selected"]["metric"] == "micro_f1"
    assert record["test"]["micro_f1"] > 0.8  # a constant answer has 0.67
    rows = predictions(job, "test")
    assert list(rows[0]) == ["split", "example", "label", "prediction", *(f"probability_{n}" for n in NAMES)]
    config = AutoConfig.from_pretrained(job.weights, num_labels=3, problem_type="multi_label_classification")
    plain = AutoModelForSequenceClassification.from_config(config).eval()
    plain.load_state_dict(load_file(job.target / "model" / "model.safetensors"))
    texts = files.read_jsonl(job.tokens / "test.jsonl")
    losses = []
    for row, text in zip(rows, texts, strict=True):
        with torch.no_grad():
            output = plain(
                input_ids=torch.tensor([text["ids"]]), labels=torch.tensor([text["label"]]).float()
            )
        losses.append(float(output.loss))
        told = [float(row[f"probability_{name}"]) for name in NAMES]
        np.testing.assert_allclose(told, output.logits.sigmoid()[0], atol=1e-5)
        assert json.loads(row["label"]) == [n for n, held in zip(NAMES, text["label"], strict=True) if held]
        assert json.loads(row["prediction"]) == [n for n, p in zip(NAMES, told, strict=True) if p > 0.5]
    assert record["test"]["loss"] == pytest.approx(np.mean(losses), abs=1e-5)


def test_graphs_train_the_same_run(inputs, captures):  # noqa: F811
    records = [
        train(job_of(inputs, name, epochs=2, cuda_graphs=name == "graphs", **STILL))
        for name in ("graphs", "plain")
    ]
    assert len(captures) == 1
    assert all(shapes["labels"][1] == 3 for shapes in captures[0].shapes)
    graphed, plain = (record["validation"] for record in records)
    assert graphed == pytest.approx(plain, abs=1e-5)


def test_an_adapter_learns_its_labels(inputs):
    job = job_of(inputs, method="lora", learning_rate=0.05, epochs=40, **STILL)
    record = train(job)
    assert record["test"]["micro_f1"] > 0.8  # a constant answer has 0.67
    assert (job.target / "adapter").is_dir()


@pytest.mark.parametrize("method", ["bitfit", "last_layers"])
def test_a_part_of_the_weights_learns_its_labels(inputs, method):
    job = job_of(inputs, method=method, last_layers=1, learning_rate=0.05, epochs=10, **STILL)
    record = train(job)
    assert record["parameters"]["trainable"] < record["parameters"]["total"]
    with open(job.target / "metrics.csv", encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if (row["split"], row["metric"]) == ("train", "loss")]
    assert float(rows[-1]["value"]) < float(rows[0]["value"])


def test_a_head_learns_labels_from_states(inputs):
    job = job_of(inputs, method="head", states="random3-sd0.02", epochs=20, **STILL)
    stored = {}
    for name, split in token_ids.read_splits(job).items():  # states that tell the labels
        states = torch.zeros(len(split.labels), 16)
        states[:, :3] = torch.tensor(split.labels) * 2.0 - 1.0
        stored |= {f"{name}.first": states, f"{name}.mean": states.clone()}
    job.states.parent.mkdir()
    save_file(stored, job.states)
    assert train(job)["test"]["micro_f1"] == 1


def test_a_chosen_metric_selects_the_checkpoint(inputs):
    record = train(job_of(inputs, metric="macro_f1", epochs=3))
    assert record["selected"]["metric"] == "macro_f1"
    assert record["selected"]["value"] == record["validation"]["macro_f1"]
    assert set(record["validation"]) == set(MEASURED)


def test_run_json_tells_the_best_constant_answers_on_train(inputs):
    record = train(job_of(inputs, epochs=1))
    assert record["label_names"] == NAMES
    assert record["constant_answers"]["macro_f1"] == NAMES
    assert record["majority_share"] is None


def test_the_model_is_one_of_several_labels(inputs):
    job = job_of(inputs)
    model = initial_models.build_classifier(job.weights, job.run, job.head_size)
    assert model.config.problem_type == "multi_label_classification"
    assert model.config.num_labels == 3
    assert SHAPE["embed_dim"] == model.classifier.out_proj.in_features
