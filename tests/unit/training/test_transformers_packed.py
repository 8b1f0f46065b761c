"""Packed texts give Transformers' classifier the logits, gradients and training of padded ones."""

import pytest
import torch
from builders import load_config
from test_transformers_trainer import ROOT
from transformers import RobertaConfig, RobertaForSequenceClassification

from seedbed.config.resolve import resolve_config
from seedbed.core.files import write_json
from seedbed.core.naming import PAD
from seedbed.running.jobs import Job
from seedbed.training import adapter_parameters, packing, token_ids
from seedbed.training.progress import Progress
from seedbed.training.recording import Recorder
from seedbed.training.token_ids import Split
from seedbed.training.training_state import TrainingStates
from seedbed.training.transformers import packed_batches
from seedbed.training.transformers.base_trainer import train_and_select
from seedbed.training.transformers.classifier import Finetuner

LORA = {
    "r": 4,
    "lora_alpha": 8,
    "target_modules": ["query", "value", "dense"],
    "lora_dropout": 0.0,
    "bias": "none",
    "task_type": "SEQ_CLS",
    "modules_to_save": ["classifier"],
}
TEXTS = [[0, *range(5, 5 + length), 2] for length in (9, 3, 3, 14, 1, 9, 6, 3, 2, 11)]
SPLIT = Split([f"test-{number}" for number in range(len(TEXTS))], TEXTS, [0] * len(TEXTS))


def make_model(method: str = "full", dropout: float = 0.0) -> torch.nn.Module:
    config = RobertaConfig(
        vocab_size=64, hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=24, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout,
        initializer_range=0.3,
    )  # fmt: skip
    torch.manual_seed(1)
    model = RobertaForSequenceClassification(config)
    model.eval()  # as from_pretrained leaves it
    if method == "lora":
        model = adapter_parameters.attach(model, LORA)
        for name, weight in model.named_parameters():
            if "lora_B" in name:  # zero at first, which would leave the adapter without effect
                torch.nn.init.normal_(weight, std=0.3)
    return model


def padded_logits(model: torch.nn.Module) -> torch.Tensor:
    ids = token_ids.pad(TEXTS)
    return model(input_ids=ids, attention_mask=ids.ne(PAD).long()).logits


def packed_logits(model: torch.nn.Module) -> torch.Tensor:
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    return packed_batches.logits(inner, packing.pack(TEXTS))


@pytest.mark.parametrize("method", ["full", "lora"])
def test_logits_and_gradients_are_those_of_padded_texts(method):
    model = make_model(method)
    model.train()
    targets = torch.arange(len(TEXTS)) % 2
    logits, gradients = [], []
    for compute in (padded_logits, packed_logits):
        model.zero_grad()
        logits.append(compute(model))
        torch.nn.functional.cross_entropy(logits[-1], targets).backward()
        gradients.append(
            {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
        )
    torch.testing.assert_close(*logits, rtol=1e-5, atol=1e-5)
    assert gradients[0].keys() == gradients[1].keys()
    assert any("lora_A" in name for name in gradients[0]) == (method == "lora")
    assert any("classifier" in name for name in gradients[0])
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], rtol=1e-4, atol=1e-6, msg=name)


def test_dropout_is_drawn_in_training_alone():
    model = make_model(dropout=0.5)
    model.eval()
    torch.testing.assert_close(packed_logits(model), padded_logits(model), rtol=1e-5, atol=1e-5)
    model.train()
    assert not torch.equal(packed_logits(model), packed_logits(model))


def train(folder, monkeypatch, packs: bool, method: str = "full", **changes) -> tuple[Finetuner, dict]:
    monkeypatch.setattr(packing, "is_used_on", lambda device: packs)
    settings = resolve_config(load_config([ROOT / "config.yaml"]))["recipes"]["demo"] | changes
    run = {
        "settings": settings,
        "method": method,
        "data_seed": 3,
        "task": "classification",
        "cuda_graphs": False,
        "evaluation": {"batch_size": 4, "test_curves": False},
    }
    folder.mkdir(exist_ok=True)
    labels = folder / "labels.json"
    write_json(labels, {"labels": ["0", "1"], "names": ["negative", "positive"]})
    paths = dict.fromkeys(("tokens", "weights", "model", "target"), folder) | {"labels": labels}
    job = Job(run=run, experiment="x", work=folder / "work", threads=1, **paths)
    split = Split([str(n) for n in range(10)], TEXTS, [n % 2 for n in range(10)])
    recorder = Recorder(settings, settings["epochs"] * 2, folder / "run", torch.device("cpu"))
    progress = Progress({"run": recorder}, TrainingStates(folder / "states", "", 60, 0.02), [folder])
    splits = dict.fromkeys(("train", "validation", "test"), split)
    trainer = Finetuner(job, progress, splits, make_model(method, settings["dropout"]))
    train_and_select(trainer)
    return trainer, recorder.usage()


@pytest.mark.parametrize("method", ["full", "lora"])
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-3), ("bfloat16", 0.3)])
def test_training_is_that_of_padded_texts(tmp_path, monkeypatch, method, precision, tolerance):
    found = []
    for packs in (False, True):
        folder = tmp_path / str(packs)
        trainer, usage = train(folder, monkeypatch, packs, method, precision=precision, clip_norm=0.5)
        assert (usage["padding_share"] == 0) == packs
        found.append(trainer.predict_split(SPLIT))
        assert found[-1].dtype == "float32"
    torch.testing.assert_close(*map(torch.from_numpy, found), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("method", ["full", "lora"])
def test_every_module_is_in_training_at_every_update(tmp_path, monkeypatch, method):
    """Also what an adapter is put around, which a checkpoint's loader leaves evaluating."""
    seen, compute = [], Finetuner.batch_loss

    def batch_loss(self, model, inputs):
        seen.append(all(module.training for module in self.model.modules()))
        return compute(self, model, inputs)

    monkeypatch.setattr(Finetuner, "batch_loss", batch_loss)
    train(tmp_path, monkeypatch, True, method)
    assert len(seen) == 6
    assert all(seen)


def test_a_seed_repeats_its_predictions_with_dropout(tmp_path, monkeypatch):
    runs = [train(tmp_path / name, monkeypatch, True, dropout=0.2, attention_dropout=0.2) for name in "ab"]
    first, again = (trainer.predict_split(SPLIT) for trainer, _ in runs)
    assert (first == again).all()
