"""Runs that predict numbers, of both frameworks and of an adapter: what they learn, write and are held to."""

import csv
import json
import random
import statistics

import numpy as np
import pytest
import torch
from builders_encoders import convert_encoder, make_encoder_job
from builders_training import SIZES, make_fairseq_job, make_job, make_run, write_fairseq_inputs, write_inputs
from safetensors.torch import load_file
from scipy import stats
from transformers import AutoConfig, AutoModelForSequenceClassification

from seedbed.core import files
from seedbed.core.states import EncoderOfStates
from seedbed.training import initial_models, merging, objectives
from seedbed.training.fairseq import trainer as fairseq_trainer
from seedbed.training.metrics import measure_of
from seedbed.training.states import write_states
from seedbed.training.targets import Scale
from seedbed.training.transformers import classifier

TRAINERS = {"fairseq": fairseq_trainer, "transformers": classifier}
UNIT = 100.0  # far from what a head begins with
ABOUT = {"mean": 60.0, "sd": 20.0}


def write_numbers(folder):
    """Marks around 60 of 100 that the first token of a text tells, and noise."""
    write_inputs(folder)
    draw = random.Random(0)
    trained = []
    for split in SIZES:
        path = folder / "tokens" / f"{split}.jsonl"
        rows = files.read_jsonl(path)
        for row in rows:
            row["label"] = round(0.4 * UNIT + 0.4 * UNIT * row["label"] + draw.gauss(0, 3), 2)
        files.write_jsonl(path, rows)
        trained = trained or [row["label"] for row in rows]
    scale = {"mean": statistics.fmean(trained), "sd": statistics.pstdev(trained)}
    files.write_json(folder / "labels.json", scale)


def numbers_job(folder, framework, name="run", **settings):
    run = make_run(framework, **{"task": "regression", "epochs": 12, "dropout": 0.0, **settings})
    inputs = folder / "inputs"
    if not inputs.exists():
        write_numbers(inputs)
    if framework == "fairseq" and not (inputs / "fairseq").exists():
        write_fairseq_inputs(inputs)
    return (make_fairseq_job if framework == "fairseq" else make_job)(folder, run, name, identity=name)


def told(job):
    record = json.loads((job.target / "run.json").read_text(encoding="utf-8"))
    with open(job.target / "predictions.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return record, rows


def curve(job, split, metric):
    """The rows of a metric in metrics.csv, epoch by epoch."""
    with open(job.target / "metrics.csv", encoding="utf-8", newline="") as stream:
        return [row for row in csv.DictReader(stream) if (row["split"], row["metric"]) == (split, metric)]


CASES = [("fairseq", "full"), ("transformers", "full"), ("transformers", "lora")]


@pytest.mark.parametrize(("framework", "method"), CASES)
def test_a_run_learns_numbers_far_from_its_first_outputs(tmp_path, framework, method):
    still = {"attention_dropout": 0.0, "pooler_dropout": 0.0}
    job = numbers_job(tmp_path, framework, method=method, epochs=30, learning_rate=0.003, **still)
    TRAINERS[framework].train([job])
    record, rows = told(job)
    assert record["targets"] == files.read_json(job.labels)
    assert record["label_names"] == []
    assert rows[0].keys() == {"split", "example", "label", "prediction"}
    for split in ("validation", "test"):
        of_split = [row for row in rows if row["split"] == split]
        labels, predicted = (
            np.array([float(row[key]) for row in of_split]) for key in ("label", "prediction")
        )
        expected = [row["label"] for row in files.read_jsonl(job.tokens / f"{split}.jsonl")]
        assert labels.tolist() == expected
        measured = {
            "pearson": stats.pearsonr(labels, predicted).statistic,
            "spearman": stats.spearmanr(labels, predicted).statistic,
            "mse": ((labels - predicted) ** 2).mean(),
        }
        assert record[split] == pytest.approx(measured, rel=1e-9)
    assert record["selected"]["metric"] == "pearson"
    losses = [float(row["value"]) for row in curve(job, "train", "mse")]
    variance = record["targets"]["sd"] ** 2
    assert losses[0] < 2 * variance  # the first outputs are near the mean, which is three deviations from 0
    assert losses[-1] < (0.1 if method == "full" else 1.0) * variance


def test_both_frameworks_begin_with_the_same_loss(tmp_path):
    """The same head and encoder, before dropout and updates can tell them apart."""
    losses = {}
    for framework in TRAINERS:
        job = numbers_job(
            tmp_path, framework, framework, epochs=1, learning_rate=1e-12, attention_dropout=0.0,
            pooler_dropout=0.0, init="pretrained" if framework == "fairseq" else "random",
        )  # fmt: skip
        vars(job)["run"] |= {"init": "random"}
        TRAINERS[framework].train([job])
        record, _ = told(job)
        losses[framework] = record["validation"]["mse"]
    assert losses["fairseq"] == pytest.approx(losses["transformers"], rel=1e-3)


def test_the_command_of_fairseq_asks_for_its_regression(tmp_path):
    job = numbers_job(tmp_path, "fairseq", epochs=1)
    fairseq_trainer.train([job])
    command = told(job)[0]["command"]
    assert "--regression-target" in command
    assert command[command.index("--num-classes") + 1] == "1"
    assert "--maximize-best-checkpoint-metric" not in command


def test_the_chosen_metric_selects_the_checkpoint(tmp_path):
    job = numbers_job(tmp_path, "transformers", metric="mse")
    classifier.train([job])
    record, _ = told(job)
    assert record["selected"]["metric"] == "mse"
    best = min(curve(job, "validation", "mse"), key=lambda row: float(row["value"]))
    assert record["selected"]["step"] == int(best["step"])


def test_the_loss_is_the_squared_error_in_units_of_the_labels_spread(tmp_path):
    job = numbers_job(tmp_path, "transformers")
    scale = Scale.of(job.about_labels)
    objective = objectives.of(job, [], torch.device("cpu"))
    labels = torch.tensor([40.0, 80.0, 61.5])
    outputs = torch.tensor([[0.5], [-1.0], [0.0]])
    expected = ((torch.tensor(scale.restored(outputs[:, 0].numpy())) - labels) ** 2).mean() / scale.sd**2
    assert float(objective.mean(outputs, labels)) == pytest.approx(float(expected), rel=1e-5)
    assert float(objective.summed(outputs, labels)) == pytest.approx(3 * float(expected), rel=1e-5)


def test_metrics_are_in_the_unit_of_the_labels():
    measure = measure_of(make_task(), ABOUT)
    outputs = np.array([[0.0], [1.0], [-0.5]], dtype=np.float32)
    labels = np.array([61.0, 78.0, 50.0])
    found = measure(outputs, labels)
    assert found["mse"] == pytest.approx((1 + 4 + 0) / 3)
    assert found["spearman"] == pytest.approx(1.0)
    outputs[1] = np.nan
    assert np.isnan(measure(outputs, labels)["mse"])
    assert measure(outputs, labels)["pearson"] == 0.0
    with pytest.raises(ValueError, match="do not fit"):
        measure(outputs, labels[:2])


def make_task():
    from seedbed.core.tasks import TASKS

    return TASKS["regression"]


def test_the_config_of_a_model_of_numbers_says_so(tmp_path):
    job = numbers_job(tmp_path, "transformers")
    model = initial_models.build_classifier(job.weights, job.run, job.head_size)
    assert (model.config.num_labels, model.config.problem_type) == (1, "regression")
    classes = initial_models.build_classifier(job.weights, {**job.run, "task": "classification"}, 2)
    assert classes.config.problem_type is None


def numbers_of(weights, scale, job, load):
    """What a kept or merged model says of each test text, in the unit of the labels."""
    model = load(weights).eval()
    texts = {row["id"]: row["ids"] for row in files.read_jsonl(job.tokens / "test.jsonl")}
    with torch.no_grad():
        outputs = {name: float(model(input_ids=torch.tensor([ids])).logits) for name, ids in texts.items()}
    return {name: scale["mean"] + scale["sd"] * output for name, output in outputs.items()}


def predicted(rows):
    return {row["example"]: float(row["prediction"]) for row in rows if row["split"] == "test"}


def test_a_merged_adapter_says_the_predictions_on_the_scale_of_its_run(tmp_path):
    job = numbers_job(tmp_path, "transformers", init="pretrained", method="lora", epochs=2)
    classifier.train([job])
    record, rows = told(job)
    merging.merge_run(job.target, tmp_path / "merged", job.weights)
    load = AutoModelForSequenceClassification.from_pretrained
    found = numbers_of(tmp_path / "merged", record["targets"], job, load)
    assert found == pytest.approx(predicted(rows), rel=1e-4)


def test_an_encoder_of_any_kind_predicts_numbers_from_padded_texts(tmp_path):
    model = convert_encoder(tmp_path / "model", "DeBERTa-v3")
    run = make_run("transformers", task="regression", keep_model=True, epochs=2, dropout=0.0)
    job = make_encoder_job(tmp_path, model, run, identity="a")
    for split in SIZES:
        path = job.tokens / f"{split}.jsonl"
        files.write_jsonl(path, [row | {"label": 50 + 20 * row["label"]} for row in files.read_jsonl(path)])
    files.write_json(job.labels, {"mean": 60.0, "sd": 10.0})
    classifier.train([job])
    record, rows = told(job)
    assert not record["packed"]

    def load(folder):
        config = AutoConfig.from_pretrained(model / "huggingface", num_labels=1)
        plain = AutoModelForSequenceClassification.from_config(config)
        plain.load_state_dict(load_file(folder / "model.safetensors"))
        return plain

    found = numbers_of(job.target / "model", record["targets"], job, load)
    assert found == pytest.approx(predicted(rows), rel=1e-4)


HEADS = [("fairseq", "head"), ("transformers", "head")]
PARTS = [*HEADS, ("fairseq", "last_layers"), ("transformers", "bitfit")]


@pytest.mark.parametrize(("framework", "method"), PARTS)
def test_a_part_of_the_weights_learns_numbers(tmp_path, framework, method):
    states = {"states": "random3-sd0.02"} if method == "head" else {}
    job = numbers_job(tmp_path, framework, method=method, last_layers=1, pooler_dropout=0.0, **states)
    if job.states:
        encoder, weights = EncoderOfStates.named(states["states"]), tmp_path / "inputs/transformers"
        write_states(encoder, weights, job.tokens, job.model, job.labels, job.states)
    TRAINERS[framework].train([job])
    losses = [float(row["value"]) for row in curve(job, "train", "mse")]
    assert losses[-1] < losses[0]
    record, rows = told(job)
    of_test = [row for row in rows if row["split"] == "test"]
    errors = [float(row["label"]) - float(row["prediction"]) for row in of_test]
    assert record["test"]["mse"] == pytest.approx(np.square(errors).mean(), rel=1e-9)
