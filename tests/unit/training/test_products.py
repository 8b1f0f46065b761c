"""Products of linear layers in bfloat16 on a CPU: their rounding, gradients, and runs of all trainers."""

import logging
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from builders_training import SHAPE, make_fairseq_job, make_job, make_run
from torch import nn
from transformers import RobertaConfig, RobertaForSequenceClassification

from seedbed.core.errors import SeedbedError
from seedbed.training import adapter_parameters, hardware, products

CPU = torch.device("cpu")
BFLOAT16 = {"precision": "bfloat16"}
NO_DROPOUT = {"dropout": 0.0, "attention_dropout": 0.0, "pooler_dropout": 0.0}
LORA = {
    "r": 4, "lora_alpha": 8, "lora_dropout": 0.0, "target_modules": ["query", "value"], "bias": "none",
    "task_type": "SEQ_CLS", "use_rslora": False, "modules_to_save": None,
}  # fmt: skip


def rounded_error(found: torch.Tensor, exact: torch.Tensor, *factors: torch.Tensor) -> float:
    """The largest error, as a share of what rounding two factors and a result to 8 bits may make."""
    bound = factors[0].abs() @ factors[1].abs() * 2**-8 + exact.abs() * 2**-9 + 1e-6
    return float(((found.double() - exact).abs() / bound).max())


@pytest.mark.parametrize(
    ("tokens", "weights"),
    [((50, 64), (48, 64)), ((3, 20, 64), (48, 64)), ((3, 50, 64), (3, 48, 64))],
    ids=["packed", "padded", "stacked"],
)
def test_products_and_gradients_are_those_of_float64_but_for_rounding(tokens, weights):
    torch.manual_seed(0)
    x, weight = torch.randn(tokens, requires_grad=True), torch.randn(weights, requires_grad=True)
    bias = torch.randn(*weights[:-2], *([1] * (len(weights) - 2)), weights[-2], requires_grad=True)
    found = products.linear(x, weight, bias)
    pull = torch.randn_like(found)
    found.backward(pull)
    wide, wide_weight = x.detach().double(), weight.detach().double()
    exact = wide @ wide_weight.mT
    assert found.dtype == x.grad.dtype == weight.grad.dtype == torch.float32
    assert rounded_error((found - bias).detach(), exact, wide, wide_weight.mT) < 1
    assert not torch.equal(found, x @ weight.mT + bias)
    wide_pull = pull.double()
    assert rounded_error(x.grad, wide_pull @ wide_weight, wide_pull, wide_weight) < 1
    if len(weights) == 2:
        wide, wide_pull = wide.flatten(0, -2), wide_pull.flatten(0, -2)
    assert rounded_error(weight.grad, wide_pull.mT @ wide, wide_pull.mT, wide) < 1
    torch.testing.assert_close(bias.grad, pull.sum_to_size(bias.shape))


def test_frozen_weights_get_no_gradient_and_pass_that_of_the_tokens_on():
    layer = nn.Linear(32, 32).requires_grad_(False)
    assert products.give(layer, BFLOAT16, CPU) == "float32"
    x = torch.randn(5, 32, requires_grad=True)
    layer(x).sum().backward()
    assert layer.weight.grad is layer.bias.grad is None
    assert x.grad is not None
    layer.weight.requires_grad_(True)
    layer(x.detach()).sum().backward()
    assert layer.weight.grad is not None


@pytest.mark.parametrize(
    ("settings", "device", "autocast"),
    [
        (BFLOAT16, CPU, "float32"),
        (BFLOAT16 | {"precision": "float32"}, CPU, "float32"),
        (BFLOAT16 | {"precision": "tf32"}, CPU, "tf32"),
        (BFLOAT16, torch.device("cuda"), "bfloat16"),
        (BFLOAT16 | {"frozen_dtype": "float32"}, CPU, "float32"),
        (BFLOAT16 | {"frozen_dtype": "bfloat16"}, CPU, "bfloat16"),
        (BFLOAT16 | {"frozen_dtype": "float32", "quantization": {}}, CPU, "bfloat16"),
    ],
)
def test_only_models_in_float32_on_a_cpu_have_them_and_others_keep_autocast(settings, device, autocast):
    layer = nn.Linear(32, 32)
    x = torch.randn(4, 32)
    exact = layer(x)
    assert products.give(layer, settings, device) == autocast
    short = settings["precision"] == "bfloat16" and autocast == "float32"
    assert torch.equal(layer(x), exact) != short


def test_heads_stay_in_float32():
    head = nn.Linear(64, 2)
    x = torch.randn(4, 64)
    exact = head(x)
    products.give(head, BFLOAT16, CPU)
    assert torch.equal(head(x), exact)
    stacked = products.linear(x[None], head.weight[None], head.bias[None, None])[0]
    torch.testing.assert_close(stacked, exact)


def test_an_adapter_is_trained_and_what_it_is_put_around_stays():
    config = RobertaConfig(
        vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=24, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    torch.manual_seed(0)
    model = adapter_parameters.attach(RobertaForSequenceClassification(config), LORA)
    ids = torch.randint(3, 40, (4, 12))
    exact = model(input_ids=ids).logits
    assert products.give(model, BFLOAT16, CPU) == "float32"
    found = model(input_ids=ids).logits
    assert not torch.equal(found, exact)
    torch.testing.assert_close(found, exact, rtol=0.05, atol=0.05)
    found.sum().backward()
    trained = {name for name, weight in model.named_parameters() if weight.grad is not None}
    assert trained == {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert any("lora_B" in name for name in trained)


@pytest.mark.parametrize("known", [True, False])
def test_a_processor_without_the_instructions_is_told_of(monkeypatch, caplog, known):
    monkeypatch.setattr(products, "has_instructions", lambda: known)
    with caplog.at_level(logging.WARNING):
        products.give(nn.Linear(32, 32), BFLOAT16, CPU)
        products.give(nn.Linear(32, 32), BFLOAT16 | {"precision": "float32"}, CPU)
    told = [record.message for record in caplog.records]
    assert len(told) == (0 if known else 1)
    assert all("slower than float32 here" in line for line in told)


def trained(folder, kind: str, precision: str) -> pd.Series:
    """The last column of predictions.csv, a probability."""
    framework = "transformers" if kind == "fused" else kind
    if kind == "fused":
        from seedbed.training.fused import trainer
    elif kind == "fairseq":
        from seedbed.training.fairseq import trainer
    else:
        from seedbed.training.transformers import classifier as trainer
    own = {"fused": [["random", 3, 3]]} if kind == "fused" else {}
    run = make_run(framework, init="random", precision=precision, **own, **NO_DROPOUT)
    job = (make_fairseq_job if kind == "fairseq" else make_job)(folder, run, f"{kind}-{precision}")
    trainer.train([job])
    return pd.read_csv(job.target / "predictions.csv").iloc[:, -1]


@pytest.mark.parametrize("kind", ["fairseq", "transformers", "fused"])
def test_runs_stay_near_those_in_float32(tmp_path, monkeypatch, kind):
    monkeypatch.setitem(SHAPE, "layers", 2)
    exact, short = (trained(tmp_path, kind, precision) for precision in ("float32", "bfloat16"))
    assert (exact != short).any()
    assert (exact - short).abs().mean() < 0.02


def test_fairseq_refuses_bfloat16_on_a_gpu_that_only_the_job_finds(tmp_path, monkeypatch):
    from seedbed.training.fairseq import trainer

    recorder = SimpleNamespace(device=torch.device("cuda"))
    monkeypatch.setattr(trainer, "start", lambda *_: SimpleNamespace(resumed=None, recorder=recorder))
    monkeypatch.setattr(hardware, "describe_device", lambda device: "cuda: Test Card")
    job = make_fairseq_job(tmp_path, make_run("fairseq", init="random", precision="bfloat16"), "run")
    with pytest.raises(SeedbedError, match="no bfloat16 on a GPU") as caught:
        trainer.train([job])
    assert "bfloat16; cuda: Test Card" in str(caught.value)
