"""The floor of the work: counts by hand, and PyTorch's own count of a real update."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from bench import floor, peaks

from seedbed.models.parameters import expected_parameters
from seedbed.training.fused import model as fused
from seedbed.training.fused.operations import Operations
from seedbed.training.fused.texts import Texts

pytestmark = pytest.mark.slow  # of benchmarks/, not of the product
TINY = floor.Shape(layers=2, width=2, ffn=3, classes=2)
SMALL = floor.Shape(layers=3, width=16, ffn=24, classes=3)
LENGTHS = (5, 9, 7)


# --- by hand ---


def test_operations_of_a_tiny_model():
    # of 3 tokens: keys and values 48, queries and output 48, feed-forward 72, attention 72
    assert floor.layer_operations(TINY, 3, 3) == 240
    # of the first token alone: keys and values 48, then 16, 24 and 24
    assert floor.layer_operations(TINY, 3, 1) == 112
    assert floor.forward_operations(TINY, 3) == 240 + 112 + 2 * 2 * 2 + 2 * 2 * 2


def test_parameters_of_a_tiny_model():
    layer = 4 * (4 + 2) + (6 + 3) + (6 + 2) + 2 * 4
    assert floor.parameters(TINY) == 2 * layer + 4 + (4 + 2) + (4 + 2)


def test_numbers_that_a_forward_pass_hands_on():
    # embedded 6; a layer of 3 tokens 3 x (6 x 2 + 3), the last 3 x 4 + (4 x 2 + 3); the head's 2
    assert floor.activations(TINY, 3) == 6 + 45 + 23 + 2


def test_the_work_of_training():
    """Two epochs of three texts, two at a time: four updates; five numbers of tokens and three places."""
    texts = floor.read_texts([[0, 5, 2], [0, 6, 2], [0, 5, 7, 8]], 3)
    assert texts == floor.Texts((3, 3, 3), 5 + 3)
    inner, rows, passed = floor.parameters(TINY), 8 * 2, floor.activations(TINY, 3)
    work = floor.training(TINY, texts, 2, 2, "float32")
    assert work.operations == 2 * 3 * 3 * floor.forward_operations(TINY, 3)
    assert work.weight_bytes == 4 * (4 * 3 * inner + 2 * 2 * rows)
    # gradient, weight and two moments read, three written, of 4 bytes each; gradients of rows once an epoch
    assert work.optimizer_bytes == 4 * 28 * inner + 4 * 24 * rows + 2 * 4 * rows
    assert work.activation_bytes == 2 * 3 * 4 * 4 * passed
    assert work.launches == 4
    half = floor.training(TINY, texts, 2, 2, "bfloat16")
    assert half.weight_bytes * 2 == work.weight_bytes
    assert half.activation_bytes * 2 == work.activation_bytes
    assert half.optimizer_bytes == 4 * 26 * inner + 4 * 24 * rows + 2 * 2 * rows
    assert half.operations == work.operations


def test_the_work_of_an_evaluation():
    texts = floor.Texts((3, 3, 3), 8)
    work = floor.evaluation(TINY, texts, 2, "tf32")
    assert work.operations == 3 * floor.forward_operations(TINY, 3)
    assert work.weight_bytes == 4 * (2 * floor.parameters(TINY) + 16)
    assert work.activation_bytes == 2 * 4 * 3 * floor.activations(TINY, 3)
    assert (work.optimizer_bytes, work.launches) == (0, 2)


def test_the_floor_is_the_larger_of_arithmetic_and_traffic():
    work = floor.Work(operations=600, weight_bytes=10, optimizer_bytes=20, activation_bytes=30, launches=7)
    found = floor.row("a run", work, floor.Peaks(100.0, 30.0, 0.5), 12.0)
    told = [found[name] for name in ("arithmetic_seconds", "traffic_seconds", "launch_seconds")]
    assert told == [6.0, 2.0, 3.5]
    assert (found["floor_seconds"], found["share"]) == (6.0, 0.5)
    assert set(found) == set(floor.COLUMNS)
    half = floor.row("its half of the memory", work, floor.Peaks(1000.0, 60.0, 0.5).times(0.1))
    assert half["floor_seconds"] == pytest.approx(10.0)
    assert half["share"] is None
    assert floor.cells(found) == [6.0, 2.0, 3.5, 6.0, 12.0]


def test_work_is_added_and_multiplied():
    one = floor.Work(1, 2, 3, 4, 5)
    assert one + one * 2 == floor.Work(3, 6, 9, 12, 15)
    assert one.bytes == 9


# --- beside PyTorch ---


def counted(update):
    """Operations that PyTorch counts while `update` returns a sum of logits, and in the backward pass."""
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        update().backward()
    return counter.get_total_flops()


def test_plain_transformers_needs_what_is_counted_for_layers_that_are_all_asked_for_all_tokens():
    from transformers import RobertaConfig, RobertaForSequenceClassification

    config = RobertaConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=20, type_vocab_size=1, num_labels=3, attn_implementation="eager",
    )  # fmt: skip
    model = RobertaForSequenceClassification(config)
    texts, length = 4, 9
    ids = torch.randint(3, 50, (texts, length))
    found = counted(lambda: model(input_ids=ids).logits.sum())
    whole = floor.forward_operations(SMALL, length)
    whole += floor.layer_operations(SMALL, length, length) - floor.layer_operations(SMALL, length, 1)
    assert found == 3 * texts * whole
    rows = (50 + 20 + 1) * 16
    assert sum(weight.numel() for weight in model.parameters()) - rows == floor.parameters(SMALL)


def test_a_model_without_padding_needs_what_is_counted():
    shape = fused.Shape(
        layers=3, width=16, ffn=24, heads=2, rows=50, positions=20, activation="gelu", classes=3
    )
    settings = {"head_init": {"distribution": "torch"}, "random_init_sd": 0.02}
    weights = fused.stack([fused.initial_weights(shape, 0, settings, None)], torch.device("cpu"))
    for weight in weights.values():
        weight.requires_grad_()
    texts = Texts([[0, *range(4, 3 + length)] for length in LENGTHS], torch.device("cpu"))
    batch = texts.batch(np.arange(3)[None])
    model = fused.Classifier(shape, Operations(weights, shape.activation), fused.Dropout())
    found = counted(lambda: model.logits(batch).sum())
    # its attention from the first token pads texts to the longest: the same products on 9 keys each
    padded = sum(3 * 4 * (max(LENGTHS) - length) * 16 for length in LENGTHS)
    assert found == 3 * sum(floor.forward_operations(SMALL, length) for length in LENGTHS) + padded


def test_parameters_are_those_of_the_closed_formula():
    for layers, d, f in ((4, 512, 512), (12, 768, 3072)):
        shape = floor.Shape(layers, d, f, 2)
        expected = expected_parameters(layers, d, f, 100, 10)
        rows = expected["token embeddings"][1] + expected["position embeddings"][1]
        head = d * d + d + 2 * d + 2
        assert floor.parameters(shape) == expected["total"][1] - rows + head


# --- peaks ---


def test_the_best_of_repeats_counts_without_the_first(monkeypatch):
    now = iter([0.0, 0.1, 1.0, 1.5, 2.0, 2.3])  # begin and end of each call
    monkeypatch.setattr(peaks.time, "perf_counter", lambda: next(now))
    monkeypatch.setattr(peaks, "SECONDS", 1.0)
    assert peaks.best(lambda: None, "cpu", 1) == pytest.approx(0.3)


def test_peaks_of_this_machine(monkeypatch):
    monkeypatch.setattr(peaks, "SECONDS", 0.0)
    monkeypatch.setattr(peaks, "SIDE", {"cpu": 128})
    monkeypatch.setattr(peaks, "COPIED", {"cpu": 2**20})
    found = peaks.measure("cpu", "tf32", 1, True)
    assert found["operations"] > 1e6
    assert found["bytes"] > 1e6
    assert found["launch"] == 0.0
    assert [peaks.side_for("cpu", threads) for threads in (1, 8)] == [128, 256]
