"""fairseq's classifier on packed texts gives what fairseq itself gives on padded ones."""

import argparse
import contextlib

import pytest
import torch
import torch.nn.functional as F
from builders_stops import NEVER, record
from builders_training import make_fairseq_job, make_run

from seedbed.training import packing
from seedbed.training.fairseq import packed, trainer  # before fairseq itself
from seedbed.training.fairseq.session import HEAD

from fairseq import utils  # isort: skip
from fairseq.data import Dictionary  # isort: skip
from fairseq.models import ARCH_MODEL_REGISTRY  # isort: skip
from fairseq.models.roberta import RobertaModel  # isort: skip

PAD, VOCAB = 1, 50
LENGTHS = ([1], [9], [5, 5, 5], [2, 20, 7, 13, 1], [20] * 4)
KINDS = {
    "as fairseq has it": {},
    "norm first": {"encoder_normalize_before": True},
    "without a norm of the embedding": {"layernorm_embedding": False, "encoder_normalize_before": True},
    "relu": {"activation_fn": "relu", "encoder_ffn_embed_dim": 40},
    "one layer": {"encoder_layers": 1},
}


def settings(**changes):
    """fairseq's arguments of a small model without dropout."""
    shape = {"encoder_layers": 3, "encoder_embed_dim": 32, "encoder_ffn_embed_dim": 24}
    shape |= {"encoder_attention_heads": 4, "max_positions": 20, "activation_fn": "gelu"}
    rates = dict.fromkeys(("dropout", "attention_dropout", "activation_dropout", "pooler_dropout"), 0.0)
    return argparse.Namespace(**shape | rates | changes)


@pytest.fixture(scope="module")
def model_class():
    """The plugin's model."""
    utils.import_user_module(argparse.Namespace(user_dir=str(trainer.PLUGIN)))
    return ARCH_MODEL_REGISTRY["roberta_small"]


def build(kind, **changes):
    dictionary = Dictionary()
    for index in range(VOCAB - 5):
        dictionary.add_symbol(f"w{index}")
    dictionary.add_symbol("<mask>")
    torch.manual_seed(1)
    model = kind.build_model(settings(**changes), argparse.Namespace(source_dictionary=dictionary))
    model.register_classification_head(HEAD, num_classes=3)
    for parameter in model.parameters():  # fairseq's own draws leave biases at 0 and small differences
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def batch(lengths, seed=0):
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.full((len(lengths), max(lengths)), PAD)
    for row, length in zip(tokens, lengths, strict=True):
        row[:length] = torch.randint(4, VOCAB, (length,), generator=generator)
        row[0] = 0
    return tokens


def logits(model, tokens):
    return model(src_tokens=tokens, features_only=True, classification_head_name=HEAD)[0]


def both(model_class, **changes):
    """The plugin's model and fairseq's own, of the same weights."""
    ours, theirs = build(model_class, **changes), build(RobertaModel, **changes)
    theirs.load_state_dict(ours.state_dict(), strict=True)
    return ours, theirs


@pytest.mark.parametrize("kind", KINDS)
def test_logits_and_gradients_are_fairseqs(model_class, kind):
    ours, theirs = both(model_class, **KINDS[kind])
    for model in (ours, theirs):
        model.train()
    for lengths in LENGTHS:
        tokens = batch(lengths)
        labels = torch.arange(len(lengths)) % 3
        outputs = []
        for model in (ours, theirs):
            model.zero_grad()
            outputs.append(logits(model, tokens))
            F.cross_entropy(outputs[-1], labels).backward()
        torch.testing.assert_close(*outputs, rtol=1e-4, atol=1e-5)
        for (name, mine), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
            assert (mine.grad is None) == (other.grad is None), name
            if mine.grad is not None:
                torch.testing.assert_close(mine.grad, other.grad, rtol=1e-3, atol=1e-5, msg=name)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_evaluation_too_and_an_untrained_model_whose_fast_path_fairseq_takes(model_class):
    ours, theirs = both(model_class, activation_fn="relu")
    tokens = batch([2, 20, 7])
    with torch.no_grad():
        torch.testing.assert_close(
            logits(ours.eval(), tokens), logits(theirs.eval(), tokens), rtol=1e-4, atol=1e-5
        )


def test_names_and_shapes_of_the_weights_are_fairseqs(model_class):
    ours, theirs = (build(kind).state_dict() for kind in (model_class, RobertaModel))
    assert {name: tensor.shape for name, tensor in ours.items()} == {
        name: tensor.shape for name, tensor in theirs.items()
    }


def test_without_a_head_and_where_packing_does_not_pay_the_model_is_fairseqs(model_class, monkeypatch):
    ours, theirs = (model.eval() for model in both(model_class))
    tokens = batch([4, 9])
    assert torch.equal(ours(tokens)[0], theirs(tokens)[0])
    monkeypatch.setattr(packing, "is_used_on", lambda device: False)
    monkeypatch.setattr(packed, "first_features", lambda *_: pytest.fail("packed"))
    assert torch.equal(logits(ours, tokens), logits(theirs, tokens))


def test_padding_is_left_out_wherever_it_stands():
    found = packed.pack(torch.tensor([[0, 5, 2, 1], [0, 2, 1, 1], [0, 1, 7, 2]]), PAD)
    assert found.ids.tolist() == [0, 5, 2, 0, 2, 0, 7, 2]
    assert found.positions.tolist() == [0, 1, 2, 0, 1, 0, 1, 2]
    assert (found.lengths, found.first.tolist()) == ([3, 2, 3], [0, 3, 5])


@pytest.mark.parametrize("rate", ["dropout", "attention_dropout", "activation_dropout", "pooler_dropout"])
def test_each_dropout_has_fairseqs_distribution(model_class, rate):
    """Mean and spread of the logits over many draws; a dropout that is left out or doubled is far off."""
    ours, theirs = both(model_class, encoder_layers=1, **{rate: 0.3})
    tokens = batch([6] * 4000, seed=2)
    tokens[:] = tokens[0]
    moments = []
    for model in (ours, theirs):
        torch.manual_seed(5)
        with torch.no_grad():
            found = logits(model.train(), tokens)
        moments.append((found.mean(0), found.std(0)))
    (mean, spread), (their_mean, their_spread) = moments
    assert (spread > 1e-3).all()
    assert ((mean - their_mean).abs() < 5 * spread * (2 / 4000) ** 0.5).all()
    torch.testing.assert_close(spread, their_spread, rtol=0.05, atol=0)


# --- whole runs ---


def losses(folder, name, padded, **changes):
    """What a run without dropout records, by fairseq's own padded forward or packed."""
    rates = dict.fromkeys(("dropout", "attention_dropout", "pooler_dropout"), 0.0)
    job = make_fairseq_job(folder, make_run("fairseq", **rates | changes), name, checkpointing=NEVER)
    with contextlib.ExitStack() as stack:
        if padded:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            patch.setattr(packing, "is_used_on", lambda device: False)
        trainer.train([job])
    rows = (job.target / "metrics.csv").read_text().splitlines()[1:]
    values = torch.tensor([float(row.split(",")[4]) for row in rows], dtype=torch.float64)
    return values, record(job)


@pytest.mark.parametrize("init", ["random", "pretrained"])
def test_a_run_learns_the_same(tmp_path, init):
    """With an input limit that cuts texts."""
    ours, about = losses(tmp_path, "packed", False, init=init, max_positions=9)
    theirs, about_theirs = losses(tmp_path, "padded", True, init=init, max_positions=9)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
    assert about["padding_share"] == 0
    assert about_theirs["padding_share"] > 0.1
