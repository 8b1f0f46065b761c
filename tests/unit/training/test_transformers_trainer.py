"""What a recipe settles in Transformers' Trainer: order of examples, schedule, decay, updates."""

from pathlib import Path

import pytest
import torch
from builders import load_config
from transformers import RobertaConfig, RobertaForSequenceClassification

from seedbed.config.resolve import resolve_config
from seedbed.core.errors import SeedbedError
from seedbed.running.jobs import Job
from seedbed.training.progress import Progress, check_updates
from seedbed.training.recording import Recorder
from seedbed.training.schedule import learning_rate
from seedbed.training.token_ids import Split
from seedbed.training.training_state import TrainingStates
from seedbed.training.transformers.classifier import Finetuner

ROOT = Path(__file__).parents[3]
EXAMPLES = 20


@pytest.fixture
def settings():
    return resolve_config(load_config([ROOT / "config.yaml"]))["recipes"]["demo"]


def make_trainer(folder: Path, settings: dict, seed: int) -> Finetuner:
    run = {"settings": settings, "method": "full", "data_seed": seed}
    run["evaluation"] = {"batch_size": 8, "test_curves": False}
    paths = dict.fromkeys(("tokens", "labels", "weights", "model", "target"), folder)
    job = Job(run=run, experiment="x", work=folder / f"work{seed}", threads=1, **paths)
    split = Split(
        examples=[str(index) for index in range(EXAMPLES)],
        ids=[[0, 10 + index, 2] for index in range(EXAMPLES)],
        labels=[index % 2 for index in range(EXAMPLES)],
    )
    total = settings["epochs"] * 3
    recorder = Recorder(settings, total, folder / f"run{seed}", torch.device("cpu"))
    progress = Progress({"run": recorder}, TrainingStates(folder / f"states{seed}", "", 60, 0.02), [folder])
    config = RobertaConfig(
        vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    model = RobertaForSequenceClassification(config)
    return Finetuner(job, progress, {"train": split, "validation": split, "test": split}, model)


def orders(trainer: Finetuner, epochs: int) -> list[tuple[int, ...]]:
    loader = trainer.get_train_dataloader()
    return [
        tuple(int(row[1]) - 10 for batch in loader for row in batch["input_ids"].view(-1, 3))
        for _ in range(epochs)
    ]


def test_a_data_seed_repeats_its_order_and_no_two_seeds_or_epochs_share_one(tmp_path, settings):
    drawn = [orders(make_trainer(tmp_path, settings, seed), 4) for seed in (0, 1, 2)]
    assert orders(make_trainer(tmp_path, settings, 0), 4) == drawn[0]
    together = [order for seed in drawn for order in seed]
    assert len(set(together)) == len(together)
    assert all(sorted(order) == list(range(EXAMPLES)) for order in together)


def test_the_schedule_and_the_optimizer_are_the_recipes(tmp_path, settings):
    trainer = make_trainer(tmp_path, {**settings, "weight_decay": 0.1, "weight_decay_skip": ["norm"]}, 0)
    total = trainer.recorder.total_updates
    trainer.create_optimizer_and_scheduler(total)
    for done in range(total):
        assert trainer.lr_scheduler.get_last_lr()[0] == pytest.approx(learning_rate(done, total, settings))
        trainer.optimizer.step()
        trainer.lr_scheduler.step()
    decay = set(trainer.get_decay_parameter_names(trainer.model))
    assert not any("LayerNorm" in name for name in decay)
    assert "classifier.dense.bias" in decay
    group = trainer.optimizer.param_groups[0]
    assert group["betas"] == tuple(settings["adam_betas"])
    assert group["eps"] == settings["adam_epsilon"]


def test_another_number_of_updates_than_planned_is_an_error(tmp_path, settings):
    trainer = make_trainer(tmp_path, settings, 0)
    trainer.create_optimizer()
    with pytest.raises(SeedbedError, match="number of updates differs from the plan"):
        trainer.create_scheduler(trainer.recorder.total_updates - 1)
    check_updates(5, 5)
