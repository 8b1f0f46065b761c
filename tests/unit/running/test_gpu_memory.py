"""How many runs fit on a GPU; bounds are compared with peaks that PyTorch measured on an H200."""

import json
from dataclasses import replace

import builders_jobs
import pytest

from seedbed.core.tasks import TASKS
from seedbed.running import gpu_memory, gpus

SMALL = {"layers": 4, "embed_dim": 512, "ffn_dim": 512, "vocabulary": 32000, "max_positions": 256}
BASE = SMALL | {"layers": 12, "embed_dim": 768, "ffn_dim": 3072, "parameters": 110_000_000}


@pytest.fixture
def job(tmp_path):
    """Make a run of a model, on texts of 256 tokens in batches of 8."""

    def make(model=SMALL, settings=None, **run):
        settings = {"batch_size": 8, "max_positions": 256, **(settings or {})}
        path = tmp_path / "model.json"
        path.write_text(json.dumps(model), encoding="utf-8")
        made = builders_jobs.make_job(tmp_path, settings=settings, evaluation={"batch_size": 64}, **run)
        return replace(made, model=path)

    return make


def test_the_bound_by_hand(job):
    """n (4 d^2 + 2 d f + 9 d + f) + d V + d (T + 2) + 2 d parameters, five times; one layer of 64 texts."""
    parameters = 4 * (6 * 512**2 + 10 * 512) + 512 * (32000 + 256 + 2 + 2)
    layer = 64 * 256 * 512 * (17 + 2.5 * 256 / 32) * 4
    assert gpu_memory.of_process([job()]) == pytest.approx((5 * 4 * parameters + layer) / 2**20 + 1024)


@pytest.mark.parametrize(
    ("model", "fused", "measured"),
    [
        (SMALL, 1, 843.0),  # fairseq, float32: benchmarks/results/local_gpu/runs.csv
        (BASE, 1, 3296.6),  # bfloat16: benchmarks/results/speed/gpu_base_size/runs.csv
        (SMALL, 25, 16309.2),  # tf32: benchmarks/results/speed/scaling_gpu.csv
        (SMALL, 100, 59180.9),
    ],
)
def test_runs_took_less_than_the_bound(job, model, fused, measured):
    run = job(model, **({"fused": [["random", seed, seed] for seed in range(fused)]} if fused > 1 else {}))
    assert measured < gpu_memory.of_process([run]) - gpu_memory.PROCESS < 4 * measured


def test_shorter_texts_and_smaller_batches_take_less(job):
    whole = gpu_memory.of_process([job()])
    assert gpu_memory.of_process([job(settings={"max_positions": 64})]) < whole
    assert gpu_memory.of_process([job(settings={"max_positions": None})]) == whole
    assert gpu_memory.of_process([job(settings={"batch_size": 32})]) > whole
    assert gpu_memory.of_process([job(), job()]) == whole  # one after another


def test_a_run_whose_bound_is_unknown(job):
    unlimited = SMALL | {"max_positions": None, "parameters": 1}
    assert gpu_memory.of_process([job(unlimited, {"max_positions": None})]) is None
    assert gpu_memory.of_process([job(task="generation")]) is None
    assert {task for task in TASKS if gpu_memory.of_process([job(task=task)]) is None} == {"generation"}


@pytest.mark.parametrize(
    ("total", "free", "need", "is_empty", "at_once", "expected"),
    [
        (24_000, 24_000, 2_800, True, 1, 8),
        (24_000, 9_000, 2_800, True, 1, 3),  # others use the rest
        (24_000, 9_000, 2_800, False, 1, 8),  # the runs that are there may
        (140_000, 140_000, 2_800, True, 1, gpu_memory.MOST),
        (140_000, 140_000, 2_800, True, 4, 3),
        (2_000, 2_000, 2_800, True, 1, 1),
        (24_000, 24_000, None, True, 1, 1),
    ],
)
def test_as_many_as_fit(monkeypatch, total, free, need, is_empty, at_once, expected):
    monkeypatch.setattr(gpus, "memory", lambda device: gpus.Memory(total, free))
    assert gpu_memory.fitting("GPU-1", need, is_empty, at_once) == expected


def test_one_where_the_driver_tells_no_memory():
    assert gpu_memory.fitting("fake0", 1, is_empty=True) == 1
