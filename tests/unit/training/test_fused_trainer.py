"""Fused seeds against separate runs of both frameworks: the same numbers without dropout, each its own."""

import contextlib
import json
import os
import re
import signal

import numpy as np
import pandas as pd
import pytest
import torch
from builders import tiered
from builders_graphs import captures  # noqa: F401 - a fixture
from builders_stops import ALWAYS, NEVER, outcome, record, watched  # noqa: F401 - a fixture
from builders_training import LABELS, SHAPE, SIZES, make_fairseq_job, make_job, make_run

from seedbed.core import interruption
from seedbed.core.errors import SeedbedError
from seedbed.training import packing
from seedbed.training.fused import trainer as fused
from seedbed.training.fused.model import unstack
from seedbed.training.fused.order import orders
from seedbed.training.fused.texts import Texts

SEEDS = [[3, 3], [4, 4], [5, 3]]
NO_DROPOUT = {"dropout": 0.0, "attention_dropout": 0.0, "pooler_dropout": 0.0}
MAKERS = {"fairseq": make_fairseq_job, "transformers": make_job}
FRAMEWORKS = list(MAKERS)
# fairseq's head of pretraining and its fused copies for inference
NEVER_TRAINED = re.compile(r"lm_head|\.version$|\.(in_proj|out_proj|fc1|fc2)_(weight|bias)$")


@pytest.fixture(autouse=True)
def two_layers(monkeypatch):
    monkeypatch.setitem(SHAPE, "layers", 2)


def jobs_of(folder, framework, name, seeds=SEEDS, group=SEEDS, pace=NEVER, inits=("random",) * 3, **settings):
    """Jobs of the seeds; with `group` None, of separate runs."""
    jobs = []
    members = [[init, *pair] for init, pair in zip(inits, group or SEEDS, strict=False)]
    for init, init_seed, data_seed in (next(one for one in members if one[1:] == pair) for pair in seeds):
        own = {"fused": members} if group else {}
        run = make_run(framework, init=init, init_seed=init_seed, data_seed=data_seed, **own, **settings)
        place = f"{name}/generated/tiny/{framework}/{run['init']}/demo/seed{init_seed}-{data_seed}"
        jobs.append(MAKERS[framework](folder, run, place, checkpointing=pace))
    return jobs


def train_separately(jobs):
    if jobs[0].run["framework"] == "fairseq":
        from seedbed.training.fairseq import trainer
    else:
        from seedbed.training.transformers import classifier as trainer
    trainer.train(jobs)


def predictions(job):
    return pd.read_csv(job.target / "predictions.csv")


def assert_same_numbers(one, other, tolerance=2e-4):
    """Two runs agree but for the rounding of sums."""
    ours, theirs = predictions(one), predictions(other)
    words = ["split", "example", "label"]
    pd.testing.assert_frame_equal(ours[words], theirs[words])
    columns = [column for column in ours if column.startswith("probability_")]
    np.testing.assert_allclose(ours[columns], theirs[columns], atol=tolerance)
    metrics = [pd.read_csv(job.target / "metrics.csv") for job in (one, other)]
    keys = ["step", "epoch", "split", "metric"]
    pd.testing.assert_frame_equal(metrics[0][keys], metrics[1][keys])
    np.testing.assert_allclose(metrics[0]["learning_rate"], metrics[1]["learning_rate"])
    losses = [frame.loc[frame["metric"] == "loss", "value"].to_numpy() for frame in metrics]
    np.testing.assert_allclose(losses[0], losses[1], atol=tolerance)
    assert record(one)["selected"]["step"] == record(other)["selected"]["step"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_class_weights_and_a_chosen_metric_are_those_of_separate_runs(tmp_path, monkeypatch, framework):
    monkeypatch.setitem(LABELS, "pattern", (0, 0, 0, 0, 1))
    settings = {**NO_DROPOUT, "metric": "macro_f1"}
    weighted = {**settings, "class_weight": "balanced"}
    seeds = SEEDS[:2]
    separate = jobs_of(tmp_path, framework, "separate", seeds, None, **weighted)
    together = jobs_of(tmp_path, framework, "together", seeds, seeds, **weighted)
    alike = jobs_of(tmp_path, framework, "alike", seeds, seeds, **settings)
    train_separately(separate)
    fused.train(together)
    fused.train(alike)
    for one, other, plain in zip(separate, together, alike, strict=True):
        assert_same_numbers(one, other)
        assert not np.allclose(predictions(one).iloc[:, -1], predictions(plain).iloc[:, -1], atol=1e-3)
        told = record(one)
        assert told["metric"] == told["selected"]["metric"] == "macro_f1"
        assert told["settings"]["class_weight"] == "balanced"
        assert list(told["test"]) == ["macro_f1", "accuracy", "balanced_accuracy", "mcc", "loss"]
        # the loss of an evaluation is not weighted
        test = predictions(one).query("split == 'test'")
        of_label = np.where(
            test["label"] == "positive", test["probability_positive"], test["probability_negative"]
        )
        assert told["test"]["loss"] == pytest.approx(-np.log(of_label).mean(), rel=1e-6)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_without_dropout_every_run_is_a_separate_run(tmp_path, framework):
    """Of 18 examples at 4 a batch the last batch is smaller, and fairseq shuffles it among the others."""
    settings = {
        **NO_DROPOUT,
        "inits": ["pretrained", "random", "pretrained"],
        "weight_decay": 0.1,
        "evaluation": {"batch_size": 4, "test_curves": True},
    }
    separate = jobs_of(tmp_path, framework, "separate", group=None, **settings)
    together = jobs_of(tmp_path, framework, "together", **settings)
    train_separately(separate)
    fused.train(together)
    for one, other in zip(separate, together, strict=True):
        assert_same_numbers(one, other)
        found, expected = record(other), record(one)
        assert found["fused_with"] == [["pretrained", 3, 3], ["random", 4, 4], ["pretrained", 5, 3]]
        assert found.keys() - expected.keys() == {"fused_with"}
        assert found["parameters"] == expected["parameters"]
        assert found["updates"] == found["total_updates"] == 10
    assert len({tuple(predictions(job).iloc[:, -1]) for job in together}) == 3


VARIANTS = {
    "no clipping": {"clip_norm": 0.0},
    "much clipping": {"clip_norm": 0.05},
    "skipped decay": {"weight_decay": 0.3, "weight_decay_skip": ["bias", "norm"]},
    "cut texts": {"max_positions": 8},
    "constant rate, other moments": {"schedule": "constant", "adam_betas": [0.8, 0.9], "adam_epsilon": 1e-3},
    "normal head": {"head_init": {"distribution": "normal", "sd": 0.1}, "warmup_ratio": 0.0},
}


@pytest.mark.parametrize("variant", tiered(VARIANTS, "much clipping"))
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_a_recipe_asks_for_is_done_as_in_separate_runs(tmp_path, framework, variant):
    settings = NO_DROPOUT | VARIANTS[variant]
    separate = jobs_of(tmp_path, framework, "separate", SEEDS[:2], None, **settings)
    together = jobs_of(tmp_path, framework, "together", SEEDS[:2], SEEDS[:2], **settings)
    train_separately(separate)
    fused.train(together)
    for one, other in zip(separate, together, strict=True):
        assert_same_numbers(one, other)


def test_the_padded_path_of_a_gpu_gives_the_same_numbers(tmp_path, monkeypatch):
    """Attention over a grid of texts, as a GPU has it, against one call a text."""
    by_text, by_grid = (jobs_of(tmp_path, "transformers", name, **NO_DROPOUT) for name in ("text", "grid"))
    fused.train(by_text)
    monkeypatch.setattr(packing, "is_used_on", lambda device: False)
    fused.train(by_grid)
    for one, other in zip(by_text, by_grid, strict=True):
        assert_same_numbers(one, other)


def test_the_filled_path_of_a_gpu_gives_the_same_numbers(tmp_path, monkeypatch, caplog):
    """Padding as a text of its own; and without Triton, as here, a warning and the plain operations."""
    plain, filled = (jobs_of(tmp_path, "transformers", name, **NO_DROPOUT) for name in ("plain", "filled"))
    fused.train(plain)
    monkeypatch.setattr(packing, "can_fill", lambda *_: True)
    fused.train(filled)
    assert "without Triton's kernels, more slowly: ModuleNotFoundError" in caplog.text
    for one, other in zip(plain, filled, strict=True):
        assert_same_numbers(one, other)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_cuda_graphs_give_the_same_numbers(tmp_path, captures, framework):  # noqa: F811
    """Also of a batch that is the smaller one of some seeds only."""
    plain = jobs_of(tmp_path, framework, "plain", **NO_DROPOUT)
    graphed = jobs_of(tmp_path, framework, "graphed", cuda_graphs=True, **NO_DROPOUT)
    fused.train(plain)
    assert not captures
    fused.train(graphed)
    (capture,) = captures
    assert 1 <= len(capture.shapes) < 10  # updates
    for one, other in zip(plain, graphed, strict=True):
        assert_same_numbers(one, other)
        assert record(other)["cuda_graphs"]


def test_bfloat16_stays_near(tmp_path):
    plain, short = (
        jobs_of(tmp_path, "transformers", precision, precision=precision, **NO_DROPOUT)
        for precision in ("float32", "bfloat16")
    )
    fused.train(plain)
    fused.train(short)
    for one, other in zip(plain, short, strict=True):
        assert predictions(one).iloc[:, -1].to_list() != predictions(other).iloc[:, -1].to_list()
        difference = predictions(one).iloc[:, -1] - predictions(other).iloc[:, -1]
        assert difference.abs().mean() < 0.1


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_dropout_is_drawn_for_each_seed_alone_and_only_while_training(tmp_path, framework):
    """Two seeds of the same weights and texts: equal where dropout is off, different where it is on."""
    seeds = [[3, 3], [3, 4]]
    rates = {"dropout": 0.5, "attention_dropout": 0.5, "activation_dropout": 0.5}
    assert_drawn_apart(fused.Group(jobs_of(tmp_path, framework, "run", seeds, seeds, **rates)))


def assert_drawn_apart(group):
    """Logits of a group's two seeds are equal where dropout is off, and drawn for each where it is on."""
    batch = group.texts["train"].batch(np.tile(np.arange(6), (2, 1)))
    logits = group.model.logits(batch).detach()
    torch.testing.assert_close(logits[0], logits[1])
    group.model.training = True
    draws = torch.stack([group.model.logits(batch).detach() for _ in range(400)])
    assert not torch.equal(draws[0, 0], draws[0, 1])
    assert not torch.equal(draws[0], draws[1])
    # independent draws of one distribution: means of 400 differ by their standard errors
    mean, spread = draws.mean(0), draws.std(0) / 20
    assert ((mean[0] - mean[1]).abs() < 5 * (spread[0] ** 2 + spread[1] ** 2).sqrt()).all()


def test_the_same_group_trained_twice_gives_the_same_bytes(tmp_path):
    once, again = (jobs_of(tmp_path, "transformers", name) for name in ("once", "again"))
    fused.train(once)
    fused.train(again)
    assert [outcome(job) for job in once] == [outcome(job) for job in again]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_runs_that_are_missing_are_made_again_as_they_were(tmp_path, framework):
    whole = jobs_of(tmp_path, framework, "whole")
    fused.train(whole)
    missing = jobs_of(tmp_path, framework, "part", SEEDS[1:])
    fused.train(missing)
    assert [outcome(job) for job in missing] == [outcome(job) for job in whole[1:]]
    assert not (tmp_path / "runs" / "part" / "generated/tiny" / framework / "random/demo/seed3-3").exists()


def train_with_nan(jobs, place):
    """Train a group in which the seed at a place has a weight that is not a number."""
    group = fused.Group(jobs)
    with torch.no_grad():
        unstack(group.weights, place)["layers.0.fc1.weight"].fill_(float("nan"))
    group.train()
    group.publish()


@pytest.mark.parametrize("by_grid", [False, True])
def test_a_seed_that_diverges_leaves_the_others_alone(tmp_path, monkeypatch, by_grid):
    curves = {"evaluation": {"batch_size": 4, "test_curves": True}}
    expected, jobs = (
        jobs_of(tmp_path, "transformers", name, **NO_DROPOUT, **curves) for name in ("whole", "one")
    )
    fused.train(expected)
    if by_grid:
        monkeypatch.setattr(packing, "is_used_on", lambda device: False)
    train_with_nan(jobs, 1)
    assert [record(job)["diverged"] for job in jobs] == [False, True, False]
    for one, other in zip(expected[::2], jobs[::2], strict=True):
        assert_same_numbers(one, other)


def test_a_seed_that_diverges_ends_with_its_epoch_whoever_is_in_its_group(tmp_path):
    """As a separate run, whose Trainer stops there; and the same where the others need no training."""
    curves = {"evaluation": {"batch_size": 4, "test_curves": True}, "epochs": 3}
    whole, alone = (
        jobs_of(tmp_path, "transformers", name, seeds, **NO_DROPOUT, **curves)
        for name, seeds in (("whole", SEEDS), ("alone", SEEDS[1:2]))
    )
    train_with_nan(whole, 1)
    train_with_nan(alone, 1)
    found = record(whole[1])
    assert outcome(whole[1]) == outcome(alone[0])
    assert found["updates"] == found["selected"]["step"] == 5
    assert found["selected"]["reason"] == "no finite validation loss: the last weights"
    metrics = pd.read_csv(whole[1].target / "metrics.csv")
    assert set(zip(metrics["step"], metrics["split"], strict=True)) == {
        (5, "train"),
        (5, "validation"),
        (5, "test"),
    }
    assert record(whole[0])["updates"] == 15


class Stop(BaseException):
    """Stands for a SIGKILL."""


def stop_at(monkeypatch, opportunity, how):
    """At the n-th chance to write a state: `how` is done before it."""
    original, seen = fused.Group._save_if_due, [0]

    def save_if_due(group):
        seen[0] += 1
        if seen[0] == opportunity:
            how()
        original(group)

    monkeypatch.setattr(fused.Group, "_save_if_due", save_if_due)
    return seen


def ask_to_leave():
    os.kill(os.getpid(), signal.SIGTERM)


def be_killed():
    raise Stop


def train(jobs):
    interruption.watch()
    with contextlib.suppress(interruption.Interrupted, Stop):
        fused.train(jobs)
        return True
    return False


@pytest.mark.parametrize(("how", "pace"), [(ask_to_leave, NEVER), (be_killed, ALWAYS)])
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.slow
def test_a_group_stopped_anywhere_ends_as_if_it_had_not_been(tmp_path, monkeypatch, framework, how, pace):
    curves = {"evaluation": {"batch_size": 4, "test_curves": True}, "learning_rate": 0.03}
    whole = jobs_of(tmp_path, framework, "whole", **curves)
    with monkeypatch.context() as patch:
        seen = stop_at(patch, 0, how)
        assert train(whole)
        opportunities = seen[0]
    assert opportunities > 12
    expected = [outcome(job) for job in whole]
    for at in range(1, opportunities + 1):
        jobs = jobs_of(tmp_path, framework, f"stop{at}", pace=pace, **curves)
        with monkeypatch.context() as patch:
            stop_at(patch, at, how)
            assert not train(jobs)
        assert not jobs[0].target.exists()
        assert train(jobs)
        assert [outcome(job) for job in jobs] == expected, f"stopped at opportunity {at}"
        if how is ask_to_leave:
            assert [record(job)["resumed"][0]["cause"] for job in jobs] == ["SIGTERM"] * 3


def test_a_group_goes_on_with_the_runs_that_are_not_yet_published(tmp_path, monkeypatch):
    whole, jobs = (jobs_of(tmp_path, "transformers", name, pace=ALWAYS) for name in ("whole", "part"))
    fused.train(whole)
    finish, done = fused.results.finish, []

    def finish_one(*arguments):
        if done:
            raise Stop
        done.append(finish(*arguments))

    with monkeypatch.context() as patch:
        patch.setattr(fused.results, "finish", finish_one)
        assert not train(jobs)
    assert jobs[0].target.exists()
    assert train(jobs[1:])
    assert [outcome(job) for job in jobs] == [outcome(job) for job in whole]
    assert record(jobs[1])["resumed"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_kept_models_have_the_names_of_the_framework(tmp_path, framework):
    from safetensors.torch import load_file

    separate = jobs_of(tmp_path, framework, "separate", group=None, keep_model=True, **NO_DROPOUT)
    together = jobs_of(tmp_path, framework, "together", keep_model=True, **NO_DROPOUT)
    train_separately(separate)
    fused.train(together)
    for one, other in zip(separate, together, strict=True):
        ours, theirs = (load_file(job.target / "model" / "model.safetensors") for job in (other, one))
        assert ours.keys() <= theirs.keys()
        assert all(NEVER_TRAINED.search(name) for name in theirs.keys() - ours.keys())
        for name, tensor in ours.items():
            torch.testing.assert_close(tensor, theirs[name], atol=1e-4, rtol=1e-3)


def test_a_checkpoint_of_another_shape_is_refused(tmp_path):
    jobs = jobs_of(tmp_path, "transformers", "run", inits=["pretrained"] * 3)
    shape = json.loads(jobs[0].model.read_text(encoding="utf-8"))
    jobs[0].model.write_text(json.dumps({**shape, "ffn_dim": 32}), encoding="utf-8")
    with pytest.raises(SeedbedError) as caught:
        fused.train(jobs)
    assert caught.value.what == "the checkpoint does not fit the model"
    assert caught.value.where.endswith("roberta.encoder.layer.0.intermediate.dense.weight")


def test_token_types_are_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    jobs = jobs_of(tmp_path, "transformers", "run", inits=["pretrained"] * 3)
    path = jobs[0].weights / "model.safetensors"
    weights = load_file(path)
    weights["roberta.embeddings.token_type_embeddings.weight"] += 1.0
    save_file(weights, path)
    with pytest.raises(SeedbedError, match="token types"):
        fused.train(jobs)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_orders_are_permutations_that_differ_by_seed_and_epoch(framework):
    epochs = {}
    for seed in (0, 1):
        stream = orders(framework, SIZES["train"], 4, seed)
        epochs[seed] = [next(stream) for _ in range(2)]
        for batches in epochs[seed]:
            assert sorted(index for batch in batches for index in batch) == list(range(SIZES["train"]))
            assert sorted(map(len, batches)) == [2, 4, 4, 4, 4]
        assert epochs[seed][0] != epochs[seed][1]
    assert epochs[0] != epochs[1]


def test_texts_are_packed_and_found_again():
    """Two seeds of two texts each, the second seed's shorter: worked out by hand."""
    texts = Texts([[0, 7, 2], [0, 2], [0, 8, 9, 2]], torch.device("cpu"))
    batch = texts.batch(np.array([[2, 0], [1, 0]]))
    assert batch.ids.tolist() == [[0, 8, 9, 2, 0, 7, 2], [0, 2, 0, 7, 2, 1, 1]]
    assert batch.positions.tolist() == [[0, 1, 2, 3, 0, 1, 2], [0, 1, 0, 1, 2, 0, 0]]
    assert batch.first.tolist() == [[0, 4], [7, 9]]
    assert batch.grid.tolist() == [[0, 1, 2, 3], [4, 5, 6, 0], [7, 8, 9, 10], [9, 10, 11, 9]]
    assert batch.inside.squeeze().tolist() == [
        [True] * 4, [True] * 3 + [False], [True] * 2 + [False] * 2, [True] * 3 + [False],
    ]  # fmt: skip
    assert batch.places.tolist() == [0, 1, 2, 3, 4, 5, 6, 8, 9, 12, 13, 14, 13, 14]
    assert batch.stretches == [4, 3, 2, 3, 2]
    assert batch.real == [7, 5]
    padded = texts.batch(np.array([[2, 0], [1, 1]]), np.array([2, 1]), multiple=4)
    assert padded.ids.shape == (2, 8)
    assert padded.grid.shape == (4, 4)
    assert padded.real == [7, 2]
    filled = texts.filled(np.array([[2, 0], [1, 1]]), np.array([2, 1]), multiple=7)
    assert filled.ids.tolist()[1] == [0, 2, 0, 2, *[1] * 10]
    assert filled.first.tolist() == [[0, 4, 7], [14, 16, 18]]
    assert filled.starts.tolist() == [0, 4, 7, 14, 16, 18, 28]
    assert filled.real == [7, 2]
