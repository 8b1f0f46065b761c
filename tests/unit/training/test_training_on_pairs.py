"""Pairs of texts in training: what each framework reads of them, and what it computes."""

import argparse
import csv

import numpy as np
import pytest
import torch
from builders import make_fairseq_checkpoint, make_manifest
from builders_checkpoints import make_roberta_base
from builders_encoders import convert_encoder
from builders_graphs import captures  # noqa: F401 - a fixture
from builders_pairs import SPLITS, tokenize, write_pairs
from builders_training import make_job, make_run
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

from seedbed.core.files import read_json, read_jsonl
from seedbed.core.rows import read_csv
from seedbed.core.tasks import CLASSES
from seedbed.data.subsets import write_order
from seedbed.models import conversion, intake, text_ids
from seedbed.training import packing, token_ids
from seedbed.training.fairseq.binarization import binarize
from seedbed.training.progress import start
from seedbed.training.transformers import classifier

LIMIT = 25  # tokens of a pair that the recipe lets through; the model's limit is 40
MODELS = {"SentencePiece": make_fairseq_checkpoint, "GPT-2's BPE": make_roberta_base}
STILL = {"dropout": 0.0, "attention_dropout": 0.0, "pooler_dropout": 0.0}


@pytest.fixture(scope="module", params=MODELS)
def data(request, tmp_path_factory):
    """A folder with a model that both frameworks train, and pairs as its tokens, also binarized."""
    folder = tmp_path_factory.mktemp("pairs")
    source = make_manifest(MODELS[request.param](folder / "archive"), folder / "source")
    definition = {"source": "made", "format": "fairseq", "checkpoint": "model.pt", "dictionary": "dict.txt"}
    asked = intake.prepare(source, definition | {"sentencepiece": "sentencepiece.bpe.model", "config": None})
    conversion.work({**asked, "folder": str(folder / "model")}, forked=False)
    tokens = tokenize(folder, folder / "model")
    files = folder / "model" / "fairseq" / "dict.txt", folder / "labels.json", folder / "binarized"
    pieces = {split: folder / "tokens" / f"{split}.pieces" for split in SPLITS}
    binarize(pieces, {split: folder / f"{split}.label" for split in SPLITS}, tokens, *files)
    return folder


def job_of(folder, data, run, name="run", **more):
    """A job on the data of a folder; `more` are further fields."""
    (folder / "inputs").mkdir(exist_ok=True)
    model = data / "model"
    fields = {"tokens": data / "tokens", "labels": data / "labels.json", "model": model / "model.json"} | more
    if run["framework"] == "fairseq":
        return make_job(
            folder, run, name, **fields, weights=model / "fairseq", binarized=data / "binarized", identity="a"
        )
    return make_job(folder, run, name, **fields, weights=model / "huggingface", identity="a")


def expected_ids(data, split, limit):
    """The ids of Transformers, cut once."""
    rows = read_jsonl(data / f"{split}.jsonl")
    tokenizer = AutoTokenizer.from_pretrained(data / "model" / "huggingface")
    columns = ([row[key] for row in rows] for key in ("text", "text_pair"))
    return tokenizer(*columns, truncation="longest_first", max_length=limit)["input_ids"]


def test_both_texts_are_binarized(data):
    names = {path.relative_to(data / "binarized").parts[0] for path in (data / "binarized").rglob("*.bin")}
    assert names == {"input0", "input1", "label"}
    assert not (data / "binarized" / "pieces").exists()
    assert read_json(data / "binarized" / "binarized.json")["splits"]["test"]["texts"] == 20


@pytest.mark.parametrize("limit", [LIMIT, LIMIT + 1, 40])
def test_both_frameworks_read_the_ids_of_transformers(data, tmp_path, limit):
    """fairseq's are those of its own task, from binarized data; a second cut gives the same as one cut."""
    from fairseq import tasks
    from fairseq.utils import import_user_module

    from seedbed.training.fairseq import session as sessions
    from seedbed.training.fairseq.session import Session
    from seedbed.training.fairseq.trainer import PLUGIN

    import_user_module(argparse.Namespace(user_dir=str(PLUGIN)))
    name = "seedbed_sentence_prediction"
    job = job_of(tmp_path, data, make_run("fairseq", max_positions=limit))
    splits = token_ids.read_splits(job)
    expected = {split: expected_ids(data, split, limit) for split in SPLITS}
    assert {split: splits[split].ids for split in SPLITS} == expected
    assert any(row["length"] > limit for row in read_jsonl(data / "tokens" / "test.jsonl"))
    config = tasks.TASK_DATACLASS_REGISTRY[name](
        data=str(job.binarized), num_classes=2, init_token=0, separator_token=2
    )
    config.no_shuffle, config.regression_target, config.seed = True, False, 1
    config.max_positions, config.longest_input = 40, limit
    task = tasks.TASK_REGISTRY[name].setup_task(config)
    with sessions.opened(Session(job, start(job, 20), splits)):
        for split, subset in (("train", "train"), ("validation", "valid"), ("test", "test")):
            dataset = task.load_dataset(subset)
            read = [dataset[index]["net_input.src_tokens"].tolist() for index in range(len(dataset))]
            assert read == expected[split]
            assert [dataset.size(index) for index in range(len(dataset))] == list(map(len, read))


def predictions(job):
    with open(job.target / "predictions.csv", encoding="utf-8", newline="") as stream:
        return {row["example"]: float(row["probability_positive"]) for row in csv.DictReader(stream)}


@pytest.fixture
def subset(data, tmp_path):
    """The order of training texts of a data seed."""
    write_order(tmp_path / "seed3.csv", read_jsonl(data / "train.jsonl"), CLASSES, seed=3)
    return tmp_path / "seed3.csv"


def of_size(run, size):
    """Params of a run on `size` texts, evaluated after every second of four epochs."""
    of_size = {"train_size": size, "epochs": 4, "evaluated_every": 2}
    return run | {"settings": run["settings"] | of_size}


def test_a_run_of_a_size_reads_the_first_texts_of_the_order(data, tmp_path, subset):
    job = job_of(tmp_path, data, of_size(make_run("transformers"), 6), subset=subset)
    whole = token_ids.read_splits(job_of(tmp_path, data, make_run("transformers")))
    found = token_ids.read_splits(job)
    chosen = [example for _, example in read_csv(subset)[1][:6]]
    places = sorted(whole["train"].examples.index(example) for example in chosen)
    assert found["train"].rows == places
    for key in ("examples", "ids", "labels", "pairs"):
        of_all = getattr(whole["train"], key)
        assert getattr(found["train"], key) == [of_all[place] for place in places]
    assert found["test"] == whole["test"]


def test_both_frameworks_train_on_the_same_texts_of_a_size(data, tmp_path, subset):
    """And are evaluated alike. The rate is so low that the loss of an epoch is that of its texts."""
    from seedbed.training.fairseq import trainer

    losses = []
    for framework, train in (("fairseq", trainer.train), ("transformers", classifier.train)):
        settings = {"init": "pretrained", "max_positions": LIMIT, "learning_rate": 1e-9, **STILL}
        job = job_of(tmp_path, data, of_size(make_run(framework, **settings), 6), framework, subset=subset)
        train([job])
        rows = list(csv.DictReader((job.target / "metrics.csv").read_text().splitlines()))
        told = [(row["split"], row["epoch"]) for row in rows if row["metric"] == "loss"]
        evaluated = [("validation", "2"), ("validation", "4")]
        assert [each for each in told if each[0] == "validation"] == evaluated
        assert [each for each in told if each[0] == "train"] == [
            ("train", str(epoch)) for epoch in (1, 2, 3, 4)
        ]
        assert read_json(job.target / "run.json")["updates"] == 8
        losses += [float(row["value"]) for row in rows if (row["split"], row["metric"]) == ("train", "loss")]
    assert losses == pytest.approx([losses[0]] * 8, abs=1e-5)


@pytest.mark.parametrize("init", ["pretrained", "random"])
def test_both_frameworks_compute_the_same_of_pairs(data, tmp_path, init):
    """At a learning rate of almost nothing, so that rounding does not grow."""
    from seedbed.training.fairseq import trainer

    found = []
    for framework, train in (("fairseq", trainer.train), ("transformers", classifier.train)):
        settings = {"init": init, "max_positions": LIMIT, "learning_rate": 1e-9, "epochs": 1, **STILL}
        job = job_of(tmp_path, data, make_run(framework, **settings), framework)
        train([job])
        found.append(predictions(job))
    assert found[0].keys() == found[1].keys()
    assert np.ptp(list(found[0].values())) > 1e-6  # examples differ
    assert found[0] == pytest.approx(found[1], abs=1e-5)


def test_fused_seeds_train_on_pairs(data, tmp_path):
    from seedbed.training.fused import trainer

    settings = {"max_positions": LIMIT, "epochs": 1, "init": "pretrained", **STILL}
    run = make_run("transformers", **settings, fused=[["pretrained", 3, 3], ["pretrained", 4, 4]])
    fused = job_of(tmp_path, data, run, "fused")
    other = job_of(tmp_path, data, {**run, "init_seed": 4, "data_seed": 4}, "other")
    alone = job_of(tmp_path, data, make_run("transformers", **settings), "alone")
    trainer.train([fused, other])
    classifier.train([alone])
    assert predictions(fused) == pytest.approx(predictions(alone), abs=1e-2)


# --- types of tokens ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A folder with a BERT, and pairs as its tokens with types."""
    folder = tmp_path_factory.mktemp("bert")
    convert_encoder(folder, "BERT")
    text_ids.tokenize(write_pairs(folder), folder / "model", folder / "tokens", 1.0)
    return folder


@pytest.mark.parametrize("packs", [True, False])
def test_types_reach_the_model_in_training_and_prediction(bert, tmp_path, monkeypatch, packs):
    """What a run publishes is what Transformers computes of its weights and the types, text by text."""
    monkeypatch.setattr(packing, "is_used_on", lambda device: packs)
    seen = []
    settings = {"init": "pretrained", "keep_model": True, "learning_rate": 1e-3, "max_positions": 30, **STILL}
    job = job_of(tmp_path, bert, make_run("transformers", **settings))
    compute = classifier.Finetuner.batch_loss

    def batch_loss(self, model, inputs):
        types = inputs["packed"].types if packs else inputs["token_type_ids"]
        seen.append((types.shape == inputs["input_ids"].shape, set(types.flatten().tolist())))
        return compute(self, model, inputs)

    monkeypatch.setattr(classifier.Finetuner, "batch_loss", batch_loss)
    classifier.train([job])
    assert len(seen) == 10
    assert all(each == (True, {0, 1}) for each in seen)
    config = AutoConfig.from_pretrained(bert / "model" / "huggingface", num_labels=2)
    plain = AutoModelForSequenceClassification.from_config(config).eval()
    plain.load_state_dict(load_file(job.target / "model" / "model.safetensors"))
    tokenizer = AutoTokenizer.from_pretrained(bert / "model" / "huggingface")
    found, without = {}, {}
    for row in read_jsonl(bert / "test.jsonl"):
        inputs = tokenizer(
            row["text"], row["text_pair"], truncation="longest_first", max_length=30, return_tensors="pt"
        )
        assert "token_type_ids" in inputs
        with torch.no_grad():
            found[row["id"]] = plain(**inputs).logits.softmax(1)[0, 1].item()
            inputs["token_type_ids"] = torch.zeros_like(inputs["token_type_ids"])
            without[row["id"]] = plain(**inputs).logits.softmax(1)[0, 1].item()
    read = {name: value for name, value in predictions(job).items() if name.startswith("test")}
    assert read == pytest.approx(found, abs=1e-5)
    assert read != pytest.approx(without, abs=1e-3)


def test_types_are_captured_in_graphs(bert, tmp_path, captures):  # noqa: F811
    """A run whose passes are captured learns the same; the last batch of an epoch is smaller."""
    settings = {"init": "pretrained", "learning_rate": 1e-3, **STILL}
    plain = job_of(tmp_path, bert, make_run("transformers", **settings), "plain")
    graphed = job_of(tmp_path, bert, make_run("transformers", cuda_graphs=True, **settings), "graphed")
    classifier.train([plain])
    classifier.train([graphed])
    (capture,) = captures
    assert all(shapes["token_type_ids"] == shapes["input_ids"] for shapes in capture.shapes)
    assert predictions(graphed) == pytest.approx(predictions(plain), abs=1e-4)


def test_single_texts_have_neither_types_nor_pairs(tmp_path):
    job = make_job(tmp_path, make_run("transformers"))
    splits = token_ids.read_splits(job)
    assert all(split.types is None and split.pairs is None for split in splits.values())
    assert {text.types for text in splits["test"].texts} == {None}
