"""CUDA graphs as a GPU makes them; what can be tested without one is in test_graphs."""

import dataclasses
import gc
import os
import signal

import numpy as np
import pytest
import torch
from builders_graphs import NO_DROPOUT, trained
from builders_jobs import run_python
from builders_stops import watched  # noqa: F401 - a fixture
from test_transformers_packed import make_model
from transformers import BertConfig, BertForSequenceClassification

from seedbed.core import interruption
from seedbed.core.naming import PAD
from seedbed.training import graphs, packing, token_ids
from seedbed.training.transformers import packed_batches

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
ROWS = ((3, 4), (2, 4), (5, 8), (3, 4), (5, 8), (2, 4))  # shapes met for the first time, and again


class Net(torch.nn.Module):
    """A product, dropout, and a parameter that the loss does not reach."""

    def __init__(self, dropout: float):
        super().__init__()
        self.inner, self.outer = torch.nn.Linear(8, 16), torch.nn.Linear(16, 2)
        self.unused = torch.nn.Parameter(torch.ones(3))
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, batch):
        outputs = self.outer(self.dropout(torch.tanh(self.inner(batch["x"]))))
        return outputs.square().sum(), outputs


def batches(seed: int) -> list[dict[str, torch.Tensor]]:
    draw = torch.Generator().manual_seed(seed)
    return [{"x": torch.randn(*rows, 8, generator=draw).cuda()} for rows in ROWS]


def gradients(net: Net) -> list[torch.Tensor | None]:
    return [None if weight.grad is None else weight.grad.clone() for weight in net.parameters()]


def passes(net: Net, step, seed: int) -> list:
    """Outputs and gradients of all batches, and of each again after its weights have changed."""
    found = []
    torch.cuda.manual_seed(seed)
    for batch in batches(seed):
        loss, outputs = step(batch)
        found.append([loss, outputs, *gradients(net)])
        with torch.no_grad():
            for weight in net.parameters():
                if weight.grad is not None:
                    weight -= 0.01 * weight.grad
    return found


def eagerly(net: Net):
    return lambda batch: graphs.pass_through(net, list(net.parameters()), batch)


def new_net(dropout: float) -> Net:
    torch.manual_seed(0)
    return Net(dropout).cuda()


def same(found: list, expected: list) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        for tensor, other in zip(ours, theirs, strict=True):
            assert (tensor is None) == (other is None)
            if tensor is not None:
                torch.testing.assert_close(tensor, other, rtol=1e-4, atol=1e-5)


def test_shapes_out_of_order_give_what_separate_kernels_give():
    net, other = new_net(0.0), new_net(0.0)
    graphed = graphs.Graphed(net, net.parameters())
    same(passes(net, graphed, 1), passes(other, eagerly(other), 1))
    graphed.close()


def test_dropout_is_drawn_anew_at_every_replay_and_from_the_seed():
    net = new_net(0.5)
    graphed = graphs.Graphed(net, net.parameters())
    batch = {"x": torch.ones(64, 8, device="cuda")}
    torch.cuda.manual_seed(5)
    first, second = graphed(batch)[1], graphed(batch)[1]
    torch.cuda.manual_seed(5)
    assert torch.equal(graphed(batch)[1], first)
    assert not torch.equal(first, second)


def test_graphs_that_are_dropped_leave_others_alone():
    first, second, other = new_net(0.0), new_net(0.0), new_net(0.0)
    dropped, kept = (graphs.Graphed(net, net.parameters()) for net in (first, second))
    passes(first, dropped, 1)
    found = passes(second, kept, 1)
    dropped.close()
    del dropped
    gc.collect()
    torch.empty(1 << 24, device="cuda").fill_(float("nan"))  # what was freed is taken by someone else
    again = passes(second, kept, 2)
    expected = [passes(other, eagerly(other), seed) for seed in (1, 2)]
    same(found, expected[0])
    same(again, expected[1])


def test_all_shapes_leave_their_gradients_in_one_place():
    net = new_net(0.0)
    graphed = graphs.Graphed(net, net.parameters())
    places = set()
    for batch in batches(1):
        graphed(batch)
        places.add(net.inner.weight.grad.data_ptr())
    assert len(places) == 1


def make_bert():
    config = BertConfig(
        vocab_size=64, hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=24, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        initializer_range=0.3, pad_token_id=PAD,
    )  # fmt: skip
    torch.manual_seed(1)
    return BertForSequenceClassification(config)


@pytest.mark.parametrize(("make", "typed"), [(make_model, False), (make_bert, True)])
def test_filled_texts_give_the_logits_and_gradients_of_padded_ones(make, typed):
    """In half precision; the padding of every batch has other tokens' memory before it."""
    model = make().cuda().train()
    texts = [[0, *range(4, 4 + length), 2] for length in (1, 18, 7, 12)]
    types = [[0] * 2 + [1] * (len(text) - 2) for text in texts] if typed else None
    labels = torch.tensor([0, 1, 1, 0], device="cuda")

    def step(batch):
        with torch.autocast("cuda", torch.bfloat16):
            logits = packed_batches.logits(model, batch).float()[: len(labels)]
        loss = torch.nn.functional.cross_entropy(logits, labels)
        model.zero_grad()
        loss.backward()
        return logits.detach(), {
            name: weight.grad
            for name, weight in model.named_parameters()
            # a softmax ignores what a key's bias adds to all scores: its gradient is rounding
            if weight.grad is not None and not name.endswith("key.bias")
        }

    padded_types = token_ids.pad(types, 0).cuda() if types else None
    padded = packing.padded(token_ids.pad(texts).cuda(), PAD, padded_types)
    filled = packing.filled(packing.pack(texts, types), PAD)
    parts = ("ids", "positions", "starts", *(["types"] if types else []))
    filled = dataclasses.replace(filled, **{name: getattr(filled, name).cuda() for name in parts})
    expected, slopes = step(padded)
    torch.empty(1 << 24, device="cuda").fill_(float("nan"))  # an unwritten gradient would show it
    found, others = step(filled)
    torch.testing.assert_close(found, expected, rtol=0.02, atol=0.02)
    assert others.keys() == slopes.keys()
    for name, theirs in slopes.items():
        torch.testing.assert_close(others[name], theirs, rtol=0.1, atol=0.05 * float(theirs.abs().max()))


# --- whole runs ---


def trained_here(folder, framework: str, name: str, **changes):
    return trained(folder, framework, name, device="cuda", **changes)[:2]


KINDS = {
    "fairseq": ("fairseq", {}),
    "transformers": ("transformers", {}),
    "fused": ("transformers", {"fused": [["random", 3, 3]]}),
    "lora": ("transformers", {"method": "lora", "init": "pretrained"}),
}


@pytest.mark.parametrize(("framework", "more"), KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-3), ("tf32", 1e-2), ("bfloat16", 0.1)])
def test_runs_learn_the_same(tmp_path, framework, more, precision, tolerance):
    changes = {**NO_DROPOUT, **more, "precision": precision}
    if framework == "fairseq" and precision == "bfloat16":
        pytest.skip("fairseq has float32, tf32 and float16")
    plain, _ = trained_here(tmp_path, framework, "plain", **changes)
    graphed, about = trained_here(tmp_path, framework, "graphed", cuda_graphs=True, **changes)
    assert about["cuda_graphs"]
    np.testing.assert_allclose(graphed, plain, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("framework", "more"), KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("update", [1, 5, 7])
def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(tmp_path, monkeypatch, framework, more, update):
    changes = {**more, "cuda_graphs": True, "deterministic": True}
    expected, _ = trained_here(tmp_path, framework, "whole", **changes)
    original, passes = graphs.Graphed.__call__, []

    def stops(graphed, batch):
        passes.append(batch)
        if len(passes) == update:
            os.kill(os.getpid(), signal.SIGTERM)
        return original(graphed, batch)

    interruption.watch()
    with monkeypatch.context() as patch:
        patch.setattr(graphs.Graphed, "__call__", stops)
        with pytest.raises(interruption.Interrupted):
            trained_here(tmp_path, framework, "stopped", **changes)
    interruption.watch()
    found, about = trained_here(tmp_path, framework, "stopped", **changes)
    assert len(passes) == update
    assert about["resumed"]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("framework", "more"), KINDS.values(), ids=KINDS)
def test_the_same_seed_gives_the_same_numbers(tmp_path, framework, more):
    """With dropout, deterministic kernels, and another run's graphs made and dropped between."""
    changes = {**more, "cuda_graphs": True, "deterministic": True}
    first, _ = trained_here(tmp_path, framework, "first", **changes)
    trained_here(tmp_path, framework, "between", **changes, learning_rate=0.02)
    second, _ = trained_here(tmp_path, framework, "second", **changes)
    np.testing.assert_array_equal(first, second)


def test_a_context_that_was_made_before_is_pytorch_s():
    code = "import torch; gpus.wake().join(); print(torch.ones(2, device='cuda').sum().item(), end='')"
    out, _ = run_python(f"from seedbed.running import gpus; {code}").communicate(timeout=300)
    assert out == "2.0"


@pytest.mark.parametrize("spare", [0, 2**50])
def test_memory_is_given_back_where_little_is_left(monkeypatch, spare):
    """What lies unused goes if the GPU tells of less free memory than PyTorch keeps."""
    net = new_net(0.0)
    lies = torch.empty(2**28, device="cuda")
    del lies
    before = torch.cuda.memory_reserved()
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (spare, 2**50))
    graphed = graphs.Graphed(lambda batch: net(batch), net.parameters())
    graphed(batches(0)[0])
    assert (torch.cuda.memory_reserved() < before - 2**29) == (spare == 0)
    graphed.close()
