"""Packed texts: attention within each is that of padded texts behind a mask."""

import pytest
import torch

from seedbed.training import packing

HEADS, SIZE = 2, 4


def padded_attention(query, key, value, lengths, scale=None):
    """The reference: one text at a time, written out."""
    found, end = [], 0
    for length in lengths:
        begin, end = end, end + length
        q, k, v = (each[:, :, begin:end] for each in (query, key, value))
        weights = (q @ k.transpose(2, 3)) * (SIZE**-0.5 if scale is None else scale)
        found.append(weights.softmax(-1) @ v)
    return torch.cat(found, 2)


def draw(tokens: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(tokens)
    shape = (1, HEADS, tokens, SIZE)
    return [torch.randn(shape, generator=generator, requires_grad=True) for _ in range(3)]


def test_texts_lie_one_behind_another():
    packed = packing.pack([[0, 5, 6, 2], [0, 2], [0, 7, 2]])
    assert packed.ids.tolist() == [0, 5, 6, 2, 0, 2, 0, 7, 2]
    assert packed.positions.tolist() == [0, 1, 2, 3, 0, 1, 0, 1, 2]
    assert packed.lengths == [4, 2, 3]
    assert packed.first.tolist() == [0, 4, 6]


@pytest.mark.parametrize("lengths", [[5], [3, 1, 7], [4, 4, 4], [2, 2, 6, 6, 2], [1, 1]])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_attention_and_its_gradients_stay_within_each_text(lengths, scale):
    inputs = draw(sum(lengths))
    found = packing.attention(*inputs, lengths, scale=scale)
    expected = padded_attention(*inputs, lengths, scale)
    torch.testing.assert_close(found, expected)
    factors = torch.randn(found.shape, generator=torch.Generator().manual_seed(0))
    gradients = [torch.autograd.grad((each * factors).sum(), inputs) for each in (found, expected)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("lengths", [[3, 1, 7], [4, 4, 6]])
def test_some_tokens_of_each_text_may_be_asked_for_alone(lengths):
    query, key, value = draw(sum(lengths))
    first = torch.tensor([0, *lengths[:-1]]).cumsum(0)
    whole = packing.attention(query, key, value, lengths)
    found = packing.attention(query[:, :, first], key, value, lengths, asked=[1] * len(lengths))
    torch.testing.assert_close(found, whole[:, :, first])


def test_dropout_drops_weights_with_its_probability():
    """With one weight a row and all values 1, what is left is 0 or 1 / (1 - p)."""
    lengths = [1] * 20_000
    ones = torch.ones(1, 1, len(lengths), 1)
    torch.manual_seed(0)
    found = packing.attention(ones, ones, ones, lengths, dropout=0.25)
    assert found.unique().tolist() == pytest.approx([0, 4 / 3])
    assert found.mean().item() == pytest.approx(1, abs=0.02)


def test_only_cpus_pack():
    assert packing.is_used_on(torch.device("cpu"))
    assert not packing.is_used_on(torch.device("cuda"))
