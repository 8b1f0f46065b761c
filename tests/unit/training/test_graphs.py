"""CUDA graphs of training steps: shapes, static memory, and the same runs as without.

There is no GPU here, so a stand-in captures (see builders_graphs).
"""

import numpy as np
import pytest
import torch
from builders_graphs import NO_DROPOUT, StandIn, captures, trained  # noqa: F401 - a fixture
from test_fairseq_packed import build, model_class  # noqa: F401
from test_transformers_packed import TEXTS, make_model

from seedbed.core.naming import PAD
from seedbed.training import graphs, packing, token_ids
from seedbed.training.fairseq.session import HEAD
from seedbed.training.transformers import packed_batches

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(
    ("length", "limit", "filled"), [(1, 256, 64), (64, 256, 64), (65, 256, 128), (200, 230, 230), (9, 9, 9)]
)
def test_lengths_are_filled_up_to_few(length, limit, filled):
    assert graphs.filled_up(length, limit) == filled


@pytest.mark.parametrize(
    ("asked", "task", "precision", "device", "expected"),
    [
        (True, "classification", "float32", GPU, True),
        (True, "classification", "bfloat16", GPU, True),
        (True, "classification", "float16", GPU, False),
        (True, "classification", "float32", CPU, False),
        (True, "generation", "float32", GPU, False),
        (False, "classification", "float32", GPU, False),
    ],
)
def test_updates_are_captured_where_it_is_asked_for_and_possible(asked, task, precision, device, expected):
    run = {"cuda_graphs": asked, "task": task, "settings": {"precision": precision}}
    assert graphs.are_used(run, device) == expected


def test_a_shape_is_captured_once_and_what_it_left_stays():
    weight, unused = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(1))
    capture = StandIn()

    def step(batch):
        products = batch["x"] @ weight
        return products.sum(), products

    graphed = graphs.Graphed(step, [weight, unused], capture)
    seen = []
    for rows, value in ((3, 1.0), (2, 2.0), (3, 5.0)):
        weight.grad = torch.full((2,), 100.0)  # of an earlier update, which zero_grad did not drop
        seen.append(graphed({"x": torch.full((rows, 2), value)}))
        assert weight.grad.tolist() == [rows * value] * 2
        assert unused.grad is None
        weight.grad.mul_(7)  # as a framework that scales gradients in place
    assert capture.shapes == [{"x": (3, 2)}, {"x": (2, 2)}]
    assert [(loss.item(), outputs.tolist()) for loss, outputs in seen] == [
        (6.0, [2.0] * 3),
        (8.0, [4.0] * 2),
        (30.0, [10.0] * 3),
    ]
    assert not any(tensor.requires_grad for parts in seen for tensor in parts)
    graphed.close()
    assert (weight.grad, capture.closed) == (None, 1)
    loss, _ = graphed({"x": torch.ones(3, 2)})
    assert (loss.item(), weight.grad.tolist()) == (6.0, [3.0, 3.0])
    assert len(capture.shapes) == 3  # captured anew


def test_padded_texts_give_the_logits_of_packed_ones():
    """Also with padding on the left and beyond the longest."""
    model = make_model()
    model.eval()
    right = token_ids.pad(TEXTS, length=20)
    left = token_ids.pad(TEXTS, left=True)
    expected = packed_batches.logits(model, packing.pack(TEXTS))
    for ids in (right, left):
        found = packed_batches.logits(model, packing.padded(ids, PAD))
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_filled_texts_give_the_logits_of_packed_ones():
    model = make_model()
    model.eval()
    filled = packing.filled(packing.pack(TEXTS), PAD)
    assert len(filled.ids) == packing.MULTIPLE_OF_TOKENS
    found = packed_batches.logits(model, filled)
    expected = packed_batches.logits(model, packing.pack(TEXTS))
    torch.testing.assert_close(found[:-1], expected, rtol=1e-5, atol=1e-5)


def transformers_step():
    model = make_model(dropout=0.1).to("meta")
    return model, lambda texts: packed_batches.logits(model, texts)


def fairseq_step(kind):
    model = build(kind).to("meta")
    return model, lambda texts: model.classify(texts, HEAD)


@pytest.mark.parametrize("framework", ["transformers", "fairseq"])
def test_what_is_captured_looks_at_no_value(framework, model_class):  # noqa: F811
    """Tensors of the meta device have none."""
    model, classify = transformers_step() if framework == "transformers" else fairseq_step(model_class)
    model.train()
    ids = torch.zeros(4, 12, dtype=torch.int64, device="meta")
    loss = classify(packing.padded(ids, PAD)).sum()
    loss.backward()
    assert loss.device.type == "meta"
    assert any(weight.grad is not None for weight in model.parameters())


# --- whole runs ---


@pytest.mark.parametrize(
    ("framework", "init", "method"),
    [
        ("fairseq", "random", "full"),
        ("fairseq", "pretrained", "full"),
        ("transformers", "random", "full"),
        ("transformers", "pretrained", "full"),
        ("transformers", "pretrained", "lora"),
    ],
)
def test_a_run_learns_the_same(tmp_path, captures, framework, init, method):  # noqa: F811
    """Two epochs of four batches of one size and a smaller one; gradients are clipped."""
    changes = {"init": init, "method": method, **NO_DROPOUT}
    plain, about, _ = trained(tmp_path, framework, "plain", **changes)
    assert not captures
    graphed, about_graphed, job = trained(tmp_path, framework, "graphed", cuda_graphs=True, **changes)
    np.testing.assert_allclose(graphed, plain, rtol=1e-4, atol=1e-6)
    (capture,) = captures
    assert capture.closed == 1
    rows = {next(iter(shapes.values()))[0] for shapes in capture.shapes}
    assert rows == {4, 2}
    assert len(capture.shapes) <= 4
    assert (about["cuda_graphs"], about_graphed["cuda_graphs"]) == (False, True)
    assert about["updates"] == about_graphed["updates"] == 10
    assert (job.target / "adapter").exists() == (method == "lora")
    assert about_graphed["padding_share"] > about["padding_share"]


def test_a_run_of_packed_batches_learns_the_same(tmp_path, captures):  # noqa: F811
    plain, *_ = trained(tmp_path, "transformers", "plain", **NO_DROPOUT)
    graphed, about, _ = trained(
        tmp_path, "transformers", "packed", cuda_graphs=True, packed=True, **NO_DROPOUT
    )
    np.testing.assert_allclose(graphed, plain, rtol=1e-4, atol=1e-6)
    (capture,) = captures
    assert {shapes["input_ids"][0] % packing.MULTIPLE_OF_TOKENS for shapes in capture.shapes} == {0}
    assert {shapes["starts"] for shapes in capture.shapes} == {(6,), (4,)}
    assert about["updates"] == 10
