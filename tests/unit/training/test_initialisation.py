"""Random weights: their distribution, and that both frameworks draw the same."""

import math

import pytest
import torch
from torch import nn

from seedbed.training.initialisation import draw_encoder, draw_head


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(500, 64, padding_idx=1)
        self.fc1 = nn.Linear(64, 64)
        self.norm = nn.LayerNorm(64)


def drawn(seed=0, sd=0.02, canonical=lambda name: name):
    encoder = Encoder()
    draw_encoder(encoder, seed, sd, canonical)
    return encoder


def test_matrices_are_normal_biases_zero_norms_one_and_the_padding_row_zero():
    encoder = drawn(sd=0.05)
    assert encoder.embed_tokens.weight[2:].std().item() == pytest.approx(0.05, rel=0.02)
    assert encoder.fc1.weight.mean().item() == pytest.approx(0.0, abs=0.005)
    assert not encoder.embed_tokens.weight[1].any()
    assert not encoder.fc1.bias.any()
    assert encoder.norm.weight.eq(1).all()
    assert not encoder.norm.bias.any()


def test_a_seed_repeats_and_another_differs():
    assert torch.equal(drawn(0).fc1.weight, drawn(0).fc1.weight)
    assert not torch.equal(drawn(0).fc1.weight, drawn(1).fc1.weight)


def test_the_draw_follows_the_canonical_name_not_the_order_of_modules():
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(64, 64)
            self.words = nn.Embedding(500, 64, padding_idx=1)

    other = Other()
    names = {"first.weight": "fc1.weight", "first.bias": "fc1.bias", "words.weight": "embed_tokens.weight"}
    draw_encoder(other, 0, 0.02, names.__getitem__)
    assert torch.equal(other.first.weight, drawn().fc1.weight)
    assert torch.equal(other.words.weight, drawn().embed_tokens.weight)


def test_a_tensor_that_fairseq_does_not_have_is_zero():
    encoder = drawn(canonical=lambda name: None if name == "fc1.weight" else name)
    assert not encoder.fc1.weight.any()


def test_the_head_in_both_distributions():
    dense, out_proj = nn.Linear(64, 64), nn.Linear(64, 2)
    draw_head(dense, out_proj, 0, {"distribution": "torch", "sd": 0.02})
    bound = 1 / math.sqrt(64)
    assert dense.weight.abs().max() <= bound
    assert dense.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
    assert out_proj.bias.any()
    draw_head(dense, out_proj, 0, {"distribution": "normal", "sd": 0.1})
    assert dense.weight.std().item() == pytest.approx(0.1, rel=0.05)
    assert not dense.bias.any()
