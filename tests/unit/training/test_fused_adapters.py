"""Fused seeds with LoRA against separate runs: the same numbers without dropout, and the same files."""

import pytest
import torch
from builders import tiered
from builders_graphs import captures  # noqa: F401 - a fixture
from builders_stops import ALWAYS, outcome, record, watched  # noqa: F401 - a fixture
from safetensors.torch import load_file
from test_fused_trainer import (  # noqa: F401 - a fixture
    NO_DROPOUT,
    ask_to_leave,
    assert_drawn_apart,
    assert_same_numbers,
    jobs_of,
    predictions,
    stop_at,
    train,
    train_separately,
    two_layers,
)

from seedbed.training import adapters, merging, packing
from seedbed.training.fused import trainer as fused

PRETRAINED, RANDOM = ("pretrained",) * 3, ("random",) * 3


def adapted(folder, name, lora=None, settings=None, **more):
    """Jobs of `jobs_of` with LoRA; `lora` and `settings` are changes of the recipe."""
    jobs = jobs_of(folder, "transformers", name, method="lora", **{"inits": PRETRAINED, **more})
    for job in jobs:
        job.settings["lora"] |= lora or {}
        job.settings.update(settings or {})
    return jobs


VARIANTS = {
    "query and value": {},
    "random": {"inits": RANDOM},
    "both starts": {"inits": ("pretrained", "random", "pretrained")},
    "all layers": {"lora": {"target_modules": "all-linear", "r": 3, "lora_alpha": 5}},
    "dense layers": {"lora": {"target_modules": ["key", "dense"], "modules_to_save": ["classifier"]}},
    "skipped decay": {"weight_decay": 0.3, "weight_decay_skip": ["bias", "norm"], "clip_norm": 0.05},
}


@pytest.mark.parametrize("variant", tiered(VARIANTS, "query and value", "both starts", "all layers"))
def test_without_dropout_every_run_is_a_separate_run(tmp_path, variant):
    settings = NO_DROPOUT | {"weight_decay": 0.1, "learning_rate": 0.03} | VARIANTS[variant]
    separate = adapted(tmp_path, "separate", group=None, **settings)
    together = adapted(tmp_path, "together", **settings)
    train_separately(separate)
    fused.train(together)
    for one, other in zip(separate, together, strict=True):
        assert_same_numbers(one, other)
        found, expected = record(other), record(one)
        assert found.keys() - expected.keys() == {"fused_with"}
        assert all(found[key] == expected[key] for key in ("parameters", "base", "run", "settings"))
        ours, theirs = (job.target / "adapter" for job in (other, one))
        assert {path.name for path in ours.iterdir()} == {path.name for path in theirs.iterdir()}
        assert (ours / adapters.CONFIG).read_bytes() == (theirs / adapters.CONFIG).read_bytes()
        ours, theirs = load_file(ours / adapters.WEIGHTS), load_file(theirs / adapters.WEIGHTS)
        assert ours.keys() == theirs.keys()
        for name, tensor in ours.items():
            assert tensor.any(), name  # B, too, which begins at zero
            torch.testing.assert_close(tensor, theirs[name], atol=1e-3, rtol=1e-3)
    assert len({tuple(predictions(job).iloc[:, -1]) for job in together}) == 3


def test_seeds_from_the_checkpoint_share_its_frozen_weights(tmp_path):
    """Those from random weights have their own; nothing frozen is trained, nor part of a training state."""
    for inits, copies in ((PRETRAINED, 1), (RANDOM, 3)):
        group = fused.Group(adapted(tmp_path, inits[0], inits=inits))
        weights = group.operations.weights
        frozen = {name for name, tensor in weights.items() if not tensor.requires_grad}
        assert {name for name in weights if name.startswith("classification_head")} == weights.keys() - frozen
        assert {len(weights[name]) for name in frozen} == {copies}
        assert all("lora" in name or "classifier" in name for name in group.weights)
        assert group._state()["weights"].keys() == group.weights.keys()


def test_dropout_of_adapters_is_drawn_for_each_seed_alone_and_only_while_training(tmp_path):
    """Two seeds of the same weights and texts: equal where dropout is off, different where it is on."""
    seeds = [[3, 3], [3, 4]]
    jobs = adapted(tmp_path, "run", {"lora_dropout": 0.5}, seeds=seeds, group=seeds, **NO_DROPOUT)
    group = fused.Group(jobs)
    with torch.no_grad():
        for name, tensor in group.weights.items():
            if "lora_B" in name:
                tensor.fill_(0.3)
    assert_drawn_apart(group)


def test_the_paths_of_a_gpu_give_the_same_numbers(tmp_path, monkeypatch, captures):  # noqa: F811
    """CUDA graphs of padded texts, and texts with padding of their own."""
    plain, graphed, filled = (
        adapted(tmp_path, name, cuda_graphs=name == "graphed", **NO_DROPOUT)
        for name in ("plain", "graphed", "filled")
    )
    fused.train(plain)
    assert not captures
    fused.train(graphed)
    assert len(captures) == 1
    monkeypatch.setattr(packing, "can_fill", lambda *_: True)
    fused.train(filled)
    for one, other, another in zip(plain, graphed, filled, strict=True):
        assert_same_numbers(one, other)
        assert_same_numbers(one, another)


@pytest.fixture
def restored(monkeypatch):
    """What deterministic runs set for their whole process is as before after a test."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    yield
    torch.use_deterministic_algorithms(False)
    torch.backends.cuda.enable_flash_sdp(True)
    torch.backends.cuda.enable_mem_efficient_sdp(True)


def test_deterministic_kernels_give_the_same_bytes_twice(tmp_path, restored):
    once, again = (adapted(tmp_path, name, deterministic=True) for name in ("once", "again"))
    fused.train(once)
    fused.train(again)
    assert [outcome(job) for job in once] == [outcome(job) for job in again]


def test_bfloat16_stays_near(tmp_path):
    """Also where the frozen weights are stored in it."""
    plain, short, stored = (
        adapted(tmp_path, name, **NO_DROPOUT, precision=precision, settings={"frozen_dtype": dtype})
        for name, precision, dtype in (
            ("plain", "float32", "float32"),
            ("short", "bfloat16", "float32"),
            ("stored", "bfloat16", "bfloat16"),
        )
    )
    for jobs in (plain, short, stored):
        fused.train(jobs)
    for one, *others in zip(plain, short, stored, strict=True):
        for other in others:
            difference = (predictions(one).iloc[:, -1] - predictions(other).iloc[:, -1]).abs()
            assert 0 < difference.mean() < 0.1


@pytest.mark.parametrize("at", tiered([2, 7, 12], 7))
def test_a_stopped_group_ends_as_if_it_had_not_been(tmp_path, monkeypatch, at):
    whole, jobs = (adapted(tmp_path, name, pace=ALWAYS, learning_rate=0.03) for name in ("whole", "stopped"))
    fused.train(whole)
    with monkeypatch.context() as patch:
        stop_at(patch, at, ask_to_leave)
        assert not train(jobs)
    assert not jobs[0].target.exists()
    assert train(jobs)
    assert [outcome(job) for job in jobs] == [outcome(job) for job in whole]
    assert record(jobs[0])["resumed"]


def test_a_kept_model_is_the_base_with_the_adapter_merged_into_it(tmp_path):
    jobs = adapted(tmp_path, "run", keep_model=True, inits=("pretrained", "random", "pretrained"))
    fused.train(jobs)
    for job in jobs:
        merging.merge_run(job.target, tmp_path / job.target.name, job.weights)
        names = {path.name for path in (job.target / "model").iterdir()}
        assert names >= {"config.json", "model.safetensors"}
        for name in names:
            assert (job.target / "model" / name).read_bytes() == (
                tmp_path / job.target.name / name
            ).read_bytes()
