"""Adam by the fused kernel makes fairseq's updates."""

import copy
import io

import pytest
import torch
from omegaconf import OmegaConf

from seedbed.models.fairseq_launcher import prepare_import

prepare_import()

from fairseq.dataclass.configs import FairseqConfig  # noqa: E402
from fairseq.optim import FP16Optimizer  # noqa: E402
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig  # noqa: E402

from seedbed.training.fairseq.adam import FusedAdam, SeedbedAdam  # noqa: E402

UPDATES = 300
SETTINGS = [
    {"adam_betas": "(0.9, 0.98)", "adam_eps": 1e-6, "weight_decay": 0.01},
    {"adam_betas": "(0.9, 0.999)", "adam_eps": 1e-8, "weight_decay": 0.0},
    {"adam_betas": "(0.8, 0.95)", "adam_eps": 1e-2, "weight_decay": 0.3},  # each of them tells
]


def config(**settings):
    return OmegaConf.create({**vars(FairseqAdamConfig()), "lr": [0.01], "tpu": False, **settings})


def weights(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    shapes = ((30, 7), (5,), (4, 3))  # the last never gets a gradient
    return [torch.nn.Parameter(torch.randn(shape, generator=generator).to(dtype)) for shape in shapes]


def gradients(parameters, number):
    """Of most different sizes, some of them zero."""
    generator = torch.Generator().manual_seed(number)
    for parameter in parameters[:2]:
        grad = torch.randn(parameter.shape, generator=generator) * 10.0 ** (number % 7 - 5)
        grad[0] = 0
        parameter.grad = grad.to(parameter.dtype)


def rate(number):
    return 0.01 * (1 - number / UPDATES)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("clip", [0.0, 0.5])
def test_updates_are_fairseqs(settings, clip):
    ours, theirs = weights(), weights()
    mine, other = SeedbedAdam(config(**settings), ours), FairseqAdam(config(**settings), theirs)
    assert isinstance(mine.optimizer, FusedAdam)
    start = copy.deepcopy(ours)
    for number in range(UPDATES):
        norms = []
        for optimizer, parameters in ((mine, ours), (other, theirs)):
            optimizer.zero_grad()
            gradients(parameters, number)
            optimizer.set_lr(rate(number))
            optimizer.multiply_grads(1 / 8)
            norms.append(optimizer.clip_grad_norm(clip))
            optimizer.step()
        torch.testing.assert_close(*norms)
        if number in (0, 1, 10, UPDATES - 1):
            for one, another in zip(ours, theirs, strict=True):
                torch.testing.assert_close(one, another, rtol=1e-5, atol=1e-6)
    assert torch.equal(ours[2], start[2])
    assert not torch.allclose(ours[0], start[0], rtol=0.01)


def test_the_epsilon_is_added_before_the_bias_correction():
    """One update by hand: m = 0.1 g, v = 0.02 g^2; a large epsilon."""
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = SeedbedAdam(config(adam_betas="(0.9, 0.98)", adam_eps=0.5), [weight])
    weight.grad = torch.tensor([3.0])
    optimizer.step()
    expected = -0.01 * 0.02**0.5 / 0.1 * 0.3 / (0.18**0.5 + 0.5)
    assert weight.item() == pytest.approx(expected, rel=1e-6)


def test_a_loaded_state_goes_on_to_the_bit():
    ours, theirs = weights(), weights()
    first, second = (SeedbedAdam(config(**SETTINGS[0]), those) for those in (ours, theirs))

    def go_on(optimizer, parameters, numbers):
        for number in numbers:
            optimizer.zero_grad()
            gradients(parameters, number)
            optimizer.set_lr(rate(number))
            optimizer.step()

    go_on(first, ours, range(20))
    stream = io.BytesIO()
    torch.save([first.state_dict(), [weight.data for weight in ours]], stream)
    stream.seek(0)
    state, stored = torch.load(stream, weights_only=True)
    for weight, value in zip(theirs, stored, strict=True):
        weight.data.copy_(value)
    second.load_state_dict(state)
    go_on(first, ours, range(20, 40))
    go_on(second, theirs, range(20, 40))
    assert all(torch.equal(*pair) for pair in zip(ours, theirs, strict=True))


def test_other_numbers_than_float32_are_left_to_fairseq():
    optimizer = SeedbedAdam(config(), weights(torch.float16))
    assert type(optimizer.optimizer) is type(FairseqAdam(config(), weights(torch.float16)).optimizer)
    assert not isinstance(optimizer.optimizer, FusedAdam)


@pytest.mark.parametrize("flat", [True, False])
def test_float16_with_its_master_copy(flat, monkeypatch):
    """On a CPU, whose index is None; fairseq would ask for a GPU's."""
    monkeypatch.setattr(torch.cuda, "current_device", lambda: None)

    def build(name):
        whole = OmegaConf.create(FairseqConfig())
        OmegaConf.set_struct(whole, False)
        whole.optimizer = config(**SETTINGS[0], _name=name)
        whole.common.fp16, whole.common.fp16_no_flatten_grads = True, not flat
        parameters = weights(torch.float16)
        return FP16Optimizer.build_optimizer(whole, parameters), parameters

    import argparse

    from fairseq import utils

    from seedbed.training.fairseq.trainer import PLUGIN

    utils.import_user_module(argparse.Namespace(user_dir=str(PLUGIN)))
    (mine, ours), (other, theirs) = build("seedbed_adam"), build("adam")
    assert isinstance(mine.fp32_optimizer.optimizer, FusedAdam)
    for number in range(60):
        for optimizer, parameters in ((mine, ours), (other, theirs)):
            optimizer.zero_grad()
            optimizer.backward(sum(((w * (number % 3 + 1) - 1) ** 2).sum() for w in parameters[:2]))
            optimizer.set_lr(rate(number))
            optimizer.multiply_grads(1 / 8)
            optimizer.clip_grad_norm(1.0)
            optimizer.step()
    masters = zip(mine.fp32_optimizer.params, other.fp32_optimizer.params, strict=True)
    for one, another in masters:
        torch.testing.assert_close(one, another, rtol=1e-4, atol=1e-4)
