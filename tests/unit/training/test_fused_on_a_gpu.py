"""Fused runs in bfloat16 on a GPU: Triton's kernels beside PyTorch's operations in float64."""

import os
import signal

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from builders_graphs import NO_DROPOUT, trained
from builders_stops import watched  # noqa: F401 - a fixture

from seedbed.core import interruption
from seedbed.training import graphs
from seedbed.training.fused import acceleration
from seedbed.training.fused.model import HEAD, Classifier, Dropout, Encoder, Shape, stack
from seedbed.training.fused.operations import Operations
from seedbed.training.fused.optimizer import StackedAdamW
from seedbed.training.fused.texts import Texts
from seedbed.training.schedule import learning_rate

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
SEEDS, TEXTS, UPDATES = 3, 5, 40
RECIPE = {
    "weight_decay": 0.01,
    "weight_decay_skip": [],
    "adam_betas": [0.9, 0.98],
    "adam_epsilon": 1e-6,
    "clip_norm": 0.0,
    "learning_rate": 1e-3,
    "warmup_ratio": 0.1,
    "schedule": "polynomial",
    "schedule_power": 1.0,
    "end_learning_rate": 0.0,
}
GROUP = {"fused": [["random", 3, 3]], "precision": "bfloat16", "cuda_graphs": True, "device": "cuda"}


def shape_of(width: int) -> Shape:
    return Shape(
        layers=2, width=width, ffn=2 * width, heads=4, rows=90, positions=64, activation="gelu", classes=3
    )


def weights_of(shape: Shape, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    seeds = []
    for _ in range(SEEDS):
        head = torch.nn.ModuleDict(
            {"dense": torch.nn.Linear(shape.width, shape.width), "out_proj": torch.nn.Linear(shape.width, 3)}
        )
        named = {**Encoder(shape).state_dict(), **{f"{HEAD}.{k}": v for k, v in head.state_dict().items()}}
        norms = {name for name in named if "norm" in name and name.endswith("weight")}
        seeds.append({name: (name in norms) + 0.1 * torch.randn_like(named[name]) for name in named})
    stacked = stack(seeds, torch.device("cuda"))
    return {name: tensor.to(dtype).requires_grad_(True) for name, tensor in stacked.items()}


def texts() -> Texts:
    draw = np.random.default_rng(0)
    lengths = draw.integers(2, 60, 20)
    return Texts([draw.integers(4, 90, length).tolist() for length in lengths], torch.device("cuda"))


def accelerated(weights, framework="transformers"):
    device = torch.device("cuda")
    schedule = acceleration.schedule(UPDATES, RECIPE, framework, device)
    return acceleration.kernels(weights, schedule, RECIPE, draw=5)


def relative(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one.detach().double() - other.detach()).norm() / other.detach().norm())


@pytest.mark.parametrize("width", [32, 40, 192])
def test_logits_and_gradients_are_those_of_float64_but_for_bfloat16_s_rounding(width):
    shape, chosen = shape_of(width), np.arange(SEEDS * TEXTS).reshape(SEEDS, TEXTS)
    exact, weights = weights_of(shape, torch.float64), weights_of(shape)
    operations, tables = accelerated(weights)
    found = []
    for on, batch in (
        (Operations(exact, "gelu", torch.float64), texts().batch(chosen)),
        (operations, texts().filled(chosen, multiple=16)),
    ):
        model = Classifier(shape, on, Dropout())
        model.training = True
        logits = model.logits(batch)
        labels = torch.arange(SEEDS * TEXTS, device="cuda") % 3
        F.cross_entropy(logits.flatten(0, 1).float(), labels, reduction="sum").backward()
        found.append(logits)
    assert relative(found[1], found[0]) < 0.05
    for name, tensor in weights.items():
        gradient = tables[name].gradient if name in tables else tensor.grad
        assert gradient.dtype == torch.float32
        assert relative(gradient, exact[name].grad) < 0.1, name


def test_dropout_keeps_its_share_and_the_gradient_knows_what_it_kept():
    from seedbed.training.fused.kernels import _AddAndNorm

    draw = torch.tensor([7], device="cuda")
    x = torch.ones(SEEDS, 500, 96, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    ones, zeros = torch.ones(SEEDS, 96, device="cuda"), torch.zeros(SEEDS, 96, device="cuda")

    def dropped() -> torch.Tensor:
        return _AddAndNorm.apply(x, zeros, torch.zeros_like(x), 0.1, draw, 3, ones, zeros)

    out = dropped()
    kept = out > 0
    # 144,000 draws: a standard error of 0.0008
    assert float(kept.float().mean()) == pytest.approx(0.9, abs=0.004)
    assert not torch.equal(kept[0], kept[1])
    assert not torch.equal(kept[:, 0], kept[:, 1])
    (gradient,) = torch.autograd.grad(out, x, torch.randn_like(out))
    assert (gradient[~kept] == 0).all()
    assert (gradient[kept] != 0).float().mean() > 0.99
    assert torch.equal(dropped() > 0, kept)
    draw += 1
    assert not torch.equal(dropped() > 0, kept)


@pytest.mark.parametrize("framework", ["fairseq", "transformers"])
@pytest.mark.parametrize("limit", [0.0, 0.05])
def test_rows_that_are_updated_when_they_are_read_are_those_of_a_dense_adamw(framework, limit):
    from seedbed.training.fused.tables import Table

    torch.manual_seed(0)
    settings = RECIPE | {"clip_norm": limit}
    start = 0.02 * torch.randn(SEEDS, 70, 48, device="cuda")
    other = [torch.randn(SEEDS, 4, device="cuda").requires_grad_(True) for _ in range(2)]
    with torch.no_grad():
        other[1].copy_(other[0])
    dense = start.clone().requires_grad_(True)
    schedule = acceleration.schedule(UPDATES, settings, framework, torch.device("cuda"))
    table = Table(start.clone(), schedule, settings["adam_betas"], settings["weight_decay"])
    name = "embed_tokens.weight"
    plain = StackedAdamW({name: dense, "bias": other[0]}, settings, framework)
    lazy = StackedAdamW({name: start, "bias": other[1]}, settings, framework, {name: table})
    for update in range(1, UPDATES + 1):
        ids = torch.randint(70, (SEEDS, 9), device="cuda")
        ids[:, 1] = ids[:, 0]  # a token that occurs twice
        rows = {name: ids}
        lazy.prepare(rows, update)
        places = ids[..., None].expand(-1, -1, 48)
        torch.testing.assert_close(table.weight.gather(1, places), dense.detach().gather(1, places))
        gradient = torch.zeros_like(start).scatter_(1, places, torch.randn(SEEDS, 9, 48, device="cuda"))
        dense.grad, other[0].grad = gradient.clone(), torch.ones_like(other[0])
        other[1].grad = torch.ones_like(other[1])
        table.gradient.fill_(float("nan")) if limit == 0 else table.gradient.zero_()
        table.gradient.scatter_(1, places, gradient.gather(1, places))
        rate = learning_rate(update - 1, UPDATES, settings)
        plain.step(rate, update, {})
        lazy.step(rate, update, rows)
    lazy.catch_up(UPDATES)
    torch.testing.assert_close(table.weight, dense.detach(), rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(other[1], other[0])
    assert not torch.allclose(table.weight, start, atol=1e-3)


@pytest.mark.parametrize("framework", ["fairseq", "transformers"])
def test_runs_learn_what_they_learn_in_float32(tmp_path, framework):
    exact = GROUP | {"precision": "float32", "cuda_graphs": False}
    plain, _ = trained(tmp_path, framework, "plain", **NO_DROPOUT, **exact)[:2]
    short, _ = trained(tmp_path, framework, "short", **NO_DROPOUT, **GROUP)[:2]
    np.testing.assert_allclose(short, plain, rtol=0.1, atol=0.1)
    assert not np.array_equal(short, plain)


def test_a_group_that_was_stopped_goes_on(tmp_path, monkeypatch):
    """With the moments and missed updates of its tables; gradients are added in varying order."""
    whole, _ = trained(tmp_path, "transformers", "whole", **GROUP)[:2]
    original, passes = graphs.Graphed.__call__, []

    def stops(graphed, batch):
        passes.append(batch)
        if len(passes) == 5:
            os.kill(os.getpid(), signal.SIGTERM)
        return original(graphed, batch)

    interruption.watch()
    with monkeypatch.context() as patch:
        patch.setattr(graphs.Graphed, "__call__", stops)
        with pytest.raises(interruption.Interrupted):
            trained(tmp_path, "transformers", "stopped", **GROUP)
    interruption.watch()
    stopped, about = trained(tmp_path, "transformers", "stopped", **GROUP)[:2]
    assert about["resumed"]
    np.testing.assert_allclose(stopped, whole, rtol=0.01, atol=0.01)
