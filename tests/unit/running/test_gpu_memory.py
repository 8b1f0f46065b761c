"""How many jobs fit on a GPU; bounds are compared with peaks of tensors that PyTorch measured on an H200."""

import json
from dataclasses import replace
from types import SimpleNamespace

import builders_jobs
import pytest

from seedbed.core.tasks import TASKS
from seedbed.running import gpu_memory, gpus
from seedbed.running.gpu_memory import Place

SMALL = {"layers": 4, "embed_dim": 512, "ffn_dim": 512, "vocabulary": 32000, "max_positions": 256}
BASE = SMALL | {"layers": 12, "embed_dim": 768, "ffn_dim": 3072, "parameters": 110_000_000}
# n (4 d^2 + 2 d f + 9 d + f) + d V + d (T + 2) + 2 d
PARAMETERS = 4 * (6 * 512**2 + 10 * 512) + 512 * (32000 + 256 + 2 + 2)
LAYER = 256 * 512 * (17 + 2.5 * 256 / 32) * 4  # bytes of a text
MIB = 2**20


@pytest.fixture
def bound(tmp_path):
    """The bound of a job with one run of a model, on texts of 256 tokens in batches of 8."""

    def of(model=SMALL, settings=None, at_once=1, **run):
        settings = {"batch_size": 8, "max_positions": 256, **(settings or {})}
        path = tmp_path / "model.json"
        path.write_text(json.dumps(model), encoding="utf-8")
        made = builders_jobs.make_job(tmp_path, settings=settings, evaluation={"batch_size": 64}, **run)
        return gpu_memory.of_job([replace(made, model=path)], at_once)

    return of


def fused(number):
    return {"fused": [["random", seed, seed] for seed in range(number)]}


@pytest.mark.parametrize(
    ("options", "tensors"),
    [
        ({}, 6 * 4 * PARAMETERS + 64 * LAYER),  # a layer in evaluation is more than four of 8 texts
        ({"settings": {"batch_size": 32}}, 6 * 4 * PARAMETERS + 4 * 32 * LAYER),
        ({"cuda_graphs": True}, 7 * 4 * PARAMETERS + (2 * 4 * 8 + 64) * LAYER),
        ({"method": "lora"}, 2 * 4 * PARAMETERS + 64 * LAYER),
        ({"method": "head"}, 0),
        (fused(3), 3 * (6 * 4 * PARAMETERS + 64 * LAYER)),
    ],
)
def test_the_bound_by_hand(bound, options, tensors):
    assert bound(**options) == pytest.approx(1024 + 1.15 * tensors / MIB)
    assert bound(**options, at_once=3) == pytest.approx(3 * bound(**options))


@pytest.mark.parametrize(
    ("model", "options", "measured"),
    [
        (SMALL, {}, 843.0),  # fairseq, float32: benchmarks/results/local_gpu/runs.csv
        (BASE, {"cuda_graphs": True}, 3296.6),  # bfloat16: benchmarks/results/speed/gpu_base_size/runs.csv
        (SMALL, fused(25), 16309.2),  # tf32: benchmarks/results/speed/scaling_gpu.csv
        (SMALL, fused(100), 59180.9),
    ],
)
def test_runs_took_less_than_the_bound(bound, model, options, measured):
    assert measured < bound(model, **options) - gpu_memory.PROCESS < 6 * measured


def test_shorter_texts_take_less(bound):
    assert bound(settings={"max_positions": 64}) < bound()
    assert bound(settings={"max_positions": None}) == bound()
    assert bound(BASE | {"max_positions": None}) == bound(BASE)


def test_models_of_generation_need_a_gpu_alone(bound):
    assert {task for task in TASKS if bound(task=task) is None} == {"generation"}


def test_the_smallest_job_of_an_experiment(tmp_path, bound):
    recipes = {
        "long": {"batch_size": 8, "max_positions": 256},
        "short": {"batch_size": 8, "max_positions": 64},
    }
    runs = [SimpleNamespace(model="small", recipe=recipe, method="full") for recipe in recipes]
    plan = SimpleNamespace(
        task=TASKS["classification"], runs=runs, results=tmp_path, together=lambda run: 1,
        config={"recipes": recipes, "evaluation": {"batch_size": 64}, "cuda_graphs": False},
        batching=SimpleNamespace(at_once=2),
    )  # fmt: skip
    assert gpu_memory.of_plan(plan) == gpu_memory.PROCESS  # the model is not made yet
    (tmp_path / "models/small").mkdir(parents=True)
    (tmp_path / "models/small/model.json").write_text(json.dumps(SMALL), encoding="utf-8")
    assert gpu_memory.of_plan(plan) == 2 * bound(settings={"max_positions": 64})
    plan.task = TASKS["generation"]
    assert gpu_memory.of_plan(plan) is None


# --- how many fit -------------------------------------------------------------------------------------------


@pytest.fixture
def has(monkeypatch):
    """Let each GPU have a memory."""
    return lambda *told: monkeypatch.setattr(
        gpus, "memory", lambda device: gpus.Memory(*told) if told else None
    )


@pytest.mark.parametrize(
    ("total", "need", "at_once", "expected"),
    [
        (24_576, 2_800, 1, 8),
        (140_000, 2_800, 1, gpu_memory.MOST),
        (140_000, 11_200, 4, 3),
        (2_000, 2_800, 1, 1),
        (24_576, None, 1, 1),
    ],
)
def test_as_many_as_fit(has, total, need, at_once, expected):
    has(total, 1_000)
    assert gpu_memory.most("GPU-1", need, at_once) == expected


@pytest.mark.parametrize(
    ("free", "need", "there", "expected"),
    [
        (9_300, 2_800, [], Place(3, 9)),
        (9_300, 2_800, [Place(3, 9)], Place(3, 9)),
        (6_500, 4_000, [Place(3, 9)], Place(2, 9)),
        (9_300, 2_800, [Place(12, 20), Place(3, 9)], Place(3, 9)),
        (2_700, 2_800, [Place(3, 9)], Place(1, 9)),  # others have come: not now
        (1_000, 2_800, [], Place(1, 0)),  # it is alone, and may try
        (9_300, 2_800, [Place(4)], Place(4, 9)),  # beside one whose number was given
        (9_300, None, [], Place(1)),
    ],
)
def test_what_a_job_allows_that_comes_now(has, free, need, there, expected):
    has(40_960, free)
    assert gpu_memory.place("GPU-1", need, there) == expected


def test_a_gpu_for_one_process_has_one_job_unless_mps_serves_it(has, monkeypatch):
    monkeypatch.delenv(gpu_memory.MPS_PIPE, raising=False)
    has(40_960, 40_960, True)
    assert (gpu_memory.most("GPU-1", 2_800), gpu_memory.place("GPU-1", 2_800, [])) == (1, Place(1))
    monkeypatch.setenv(gpu_memory.MPS_PIPE, "/pipe")
    assert gpu_memory.most("GPU-1", 2_800) == gpu_memory.MOST


def test_one_where_the_driver_tells_no_memory(has):
    has()
    assert (gpu_memory.most("fake0", 1), gpu_memory.place("fake0", 1, [])) == (1, Place(1))
