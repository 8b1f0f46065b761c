"""A fairseq run that is stopped anywhere and started again ends as if it had never been stopped."""

import copy
import gc
import io
import json
import signal
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import torch
from builders import tiered
from builders_stops import ALWAYS, NEVER, Killed, Stops, kill, outcome, record, wait_for, watched  # noqa: F401 - a fixture
from builders_training import make_fairseq_job, make_run

from seedbed.training.fairseq import resuming, trainer  # before fairseq itself
from seedbed.training.fairseq.session import Session

import fairseq_cli.train  # isort: skip
from fairseq import checkpoint_utils  # isort: skip

ROOT = Path(__file__).parents[3]
# the first selects its first epoch, and float16 skips updates; the last two diverge: in the gradients of an
# update, and in the evaluation after it
KINDS = {
    "curves": {
        "learning_rate": 0.03,
        "init_seed": 1,
        "data_seed": 1,
        "evaluation": {"batch_size": 5, "test_curves": True},
    },
    "pretrained": {"init": "pretrained"},
    "float16": {"precision": "float16", "learning_rate": 0.03},
    "diverged": {"learning_rate": 1e30, "clip_norm": 0.0},
    "diverged later": {"learning_rate": 1e30, "clip_norm": 0.0, "batch_size": 18},
}


@pytest.fixture(autouse=True)
def float16_without_a_gpu(monkeypatch):
    """fairseq's float16 on the CPU, with a loss scale that overflows at first and changes often.

    Its optimizer keeps one flat master copy a GPU; the CPU's index is None.
    """
    monkeypatch.setattr(torch.cuda, "current_device", lambda: None)
    monkeypatch.setattr(torch.Tensor, "cuda", lambda tensor: tensor)
    original = trainer.arguments
    scale = ["--fp16-init-scale", "16384", "--fp16-scale-window", "3"]
    monkeypatch.setattr(trainer, "arguments", lambda session: [*original(session), *scale])


@pytest.fixture
def composed_once(monkeypatch):
    """fairseq composes the same settings in every run, which takes most of the time of a tiny one."""
    compose = fairseq_cli.train.convert_namespace_to_omegaconf
    known: dict[str, str] = {}

    def composed(arguments):
        place, arguments.save_dir = arguments.save_dir, ""
        key = repr(sorted(vars(arguments).items()))
        if key not in known:
            known[key] = compose(arguments)
        config = copy.deepcopy(known[key])
        config.checkpoint.save_dir = place
        return config

    monkeypatch.setattr(fairseq_cli.train, "convert_namespace_to_omegaconf", composed)


def whole_run(folder, stops, run):
    """What a run that is never stopped comes to, and the number of its opportunities to be stopped."""
    job = make_fairseq_job(folder, run, "whole", checkpointing=NEVER)
    assert not stops.run(job)
    return outcome(job), stops.count


@pytest.fixture
def stops(monkeypatch):
    return Stops(monkeypatch, trainer.train)


@pytest.mark.parametrize("kind", tiered(KINDS, "diverged"))
def test_a_run_asked_to_leave_anywhere_ends_the_same(tmp_path, stops, composed_once, kind):
    """After every update, in every evaluation and in the predictions; some once more, as the next begins."""
    run = make_run("fairseq", **KINDS[kind])
    expected, opportunities = whole_run(tmp_path, stops, run)
    assert opportunities > 20 or "diverged" in kind
    for at in range(1, opportunities + 1):
        job = make_fairseq_job(tmp_path, run, f"stop{at}", checkpointing=NEVER)
        assert stops.run(job, at)
        if at % 4 == 0:
            assert stops.run(job, 1)
        assert not job.target.exists()
        assert not stops.run(job)
        assert outcome(job) == expected, f"stopped at opportunity {at}"
        assert {stop["cause"] for stop in record(job)["resumed"]} == {"SIGTERM"}


def test_what_the_kinds_of_runs_are_for(tmp_path, stops, monkeypatch):
    def save(*args, **kwargs):
        pytest.fail("fairseq writes a checkpoint of its own")

    monkeypatch.setattr(checkpoint_utils, "torch_persistent_save", save)
    records = {}
    for kind, settings in KINDS.items():
        job = make_fairseq_job(tmp_path, make_run("fairseq", **settings), kind)
        stops.run(job)
        records[kind] = record(job)
    assert records["curves"]["selected"]["epoch"] == 1
    assert records["diverged"]["diverged"]
    assert records["diverged later"]["diverged"]
    assert records["diverged later"]["updates"] == 1
    (skipped,) = (
        found["done"] for found in records["float16"]["differences"] if found["setting"] == "updates"
    )
    assert skipped.endswith("float16 overflowed")
    assert "--restore-file" in records["pretrained"]["command"]
    assert [found["resumed"] for found in records.values()] == [[]] * len(KINDS)


@pytest.mark.parametrize("every", tiered([6, 8], 8))
def test_a_run_killed_again_and_again_ends_the_same(tmp_path, stops, composed_once, every):
    """Each process makes `every` checkpoints and is killed before the next, wherever that falls."""
    run = make_run("fairseq", **KINDS["curves"])
    expected, _ = whole_run(tmp_path, stops, run)
    job = make_fairseq_job(tmp_path, run, "killed", checkpointing=ALWAYS)
    kills = 0
    while stops.run(job, every + 1, kill):
        kills += 1
        assert kills < 20, "the run does not get on"
    assert kills > 2
    assert outcome(job) == expected
    assert [stop["cause"] for stop in record(job)["resumed"]] == [None] * kills


# --- float16 ---


def float16_optimizer(flat: bool, seed: int = 0):
    """fairseq's optimizer over two matrices of float16, whose loss scale may change every other update."""
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.optim import FP16Optimizer
    from fairseq.optim.adam import FairseqAdamConfig
    from omegaconf import OmegaConf

    config = OmegaConf.create(FairseqConfig())
    OmegaConf.set_struct(config, False)
    config.optimizer = {**vars(FairseqAdamConfig()), "_name": "adam", "lr": [0.01], "tpu": False}
    config.common.fp16, config.common.fp16_no_flatten_grads = True, not flat
    config.common.fp16_scale_window = 2
    generator = torch.Generator().manual_seed(seed)
    parameters = [torch.nn.Parameter(torch.randn(3, 4, generator=generator).half()) for _ in range(2)]
    return FP16Optimizer.build_optimizer(config, parameters), parameters


def update(optimizer, parameters, factor: float) -> None:
    """One update; a large factor overflows in float16."""
    optimizer.zero_grad()
    loss = sum((parameter * parameter).sum() * factor for parameter in parameters)
    optimizer.backward(loss)
    try:
        optimizer.clip_grad_norm(1.0)
        optimizer.step()
    except OverflowError:
        optimizer.zero_grad()


@pytest.mark.parametrize("flat", [True, False])
def test_the_float16_optimizer_goes_on_with_its_master_copy_and_its_loss_scaler(flat):
    first, parameters = float16_optimizer(flat)
    for factor in (1, 1e6, 1):
        update(first, parameters, factor)
    stream = io.BytesIO()
    torch.save([resuming.optimizer_state(first), [p.data for p in parameters]], stream)
    stream.seek(0)
    state, weights = torch.load(stream, weights_only=True)
    second, copies = float16_optimizer(flat, seed=1)
    with torch.no_grad():
        for copy, weight in zip(copies, weights, strict=True):
            copy.copy_(weight)
    resuming.load_optimizer_state(second, state)
    scales = []
    for factor in (1, 1, 1e6, 1e6, 1, 1):
        for optimizer, those in ((first, parameters), (second, copies)):
            update(optimizer, those, factor)
        masters = zip(first.fp32_optimizer.params, second.fp32_optimizer.params, strict=True)
        assert all(torch.equal(*pair) for pair in masters)
        assert all(torch.equal(*pair) for pair in zip(parameters, copies, strict=True))
        assert vars(first.scaler) == vars(second.scaler)
        scales.append(first.scaler.loss_scale)
    assert len(set(scales)) > 2, "the scale grew and shrank"


# --- several runs in one process ---


@pytest.mark.slow
def test_runs_of_one_process_are_those_of_processes_of_their_own(tmp_path, stops):
    """One after another in this process, after others that an error ended, against each in its own."""
    runs = [make_run("fairseq", data_seed=seed, init_seed=seed) for seed in (3, 4)]
    alone = [make_fairseq_job(tmp_path, run, f"alone{run['data_seed']}") for run in runs]
    processes = [start(tmp_path, job.run, job.target.name, NEVER) for job in alone]
    assert [process.wait(300) for process in processes] == [0, 0]
    for at in (2, 7):  # in training, in an evaluation
        assert stops.run(make_fairseq_job(tmp_path, runs[1], f"broken{at}", checkpointing=NEVER), at, kill)
    assert not stops.run(make_fairseq_job(tmp_path, make_run("fairseq", **KINDS["diverged"]), "diverged"))
    together = [make_fairseq_job(tmp_path, run, f"together{run['data_seed']}") for run in runs]
    trainer.train(together)
    assert [outcome(job)[:2] for job in together] == [outcome(job)[:2] for job in alone]
    assert outcome(alone[0]) != outcome(alone[1])


def test_the_model_of_a_run_that_is_over_is_freed(tmp_path, stops, monkeypatch):
    models = []
    original = Session.initialise
    monkeypatch.setattr(
        Session,
        "initialise",
        lambda session, model: (models.append(weakref.ref(model)), original(session, model)),
    )
    for name in ("first", "second"):
        stops.run(make_fairseq_job(tmp_path, make_run("fairseq"), name))
    gc.collect()
    assert [model() for model in models] == [None, None]


def test_a_gpu_without_enough_memory_is_an_error(tmp_path, stops, monkeypatch):
    """fairseq by itself logs it, leaves the batch out and goes on."""
    backward = torch.Tensor.backward

    def lacking(*args, **kwargs):
        if len(calls := lacking.calls) == 3:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        calls.append(1)
        return backward(*args, **kwargs)

    lacking.calls = []
    monkeypatch.setattr(torch.Tensor, "backward", lacking)
    with pytest.raises(torch.OutOfMemoryError):
        stops.run(make_fairseq_job(tmp_path, make_run("fairseq"), "lacking"))


# --- real processes ---

SCRIPT = """
import json, sys
from pathlib import Path
sys.path[:0] = ["scripts", "tests"]
from builders_training import make_fairseq_job
from seedbed.core import interruption
from seedbed.training.fairseq import trainer
folder, run, name, pace = map(json.loads, sys.argv[1:])
interruption.watch()
trainer.train([make_fairseq_job(Path(folder), run, name, checkpointing=pace, identity="a")])
"""


def start(folder: Path, run: dict, name: str, pace: dict) -> subprocess.Popen:
    """A process that trains the job `name` of `folder`."""
    arguments = [json.dumps(value) for value in (str(folder), run, name, pace)]
    return subprocess.Popen([sys.executable, "-c", SCRIPT, *arguments], cwd=ROOT)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_gets_a_signal(tmp_path, stops, number):
    """SIGKILL: its newest checkpoint counts. SIGTERM: it writes one and leaves with 128 + 15."""
    run = make_run("fairseq", epochs=30)
    job = make_fairseq_job(tmp_path, run, checkpointing=NEVER, identity="a")
    states = job.work / "states"
    process = start(tmp_path, run, "run", ALWAYS if number == signal.SIGKILL else NEVER)
    try:
        seen = (states, "*.state") if number == signal.SIGKILL else (job.work / "run", "metrics.csv")
        wait_for(process, lambda: any(seen[0].glob(seen[1])))
        process.send_signal(number)
        code = process.wait(300)
    finally:
        process.kill()
        process.wait()
    assert code == (-signal.SIGKILL if number == signal.SIGKILL else 143)
    assert not job.target.exists()
    assert any(states.glob("*.state"))
    assert not stops.run(job)
    expected, _ = whole_run(tmp_path, stops, run)
    assert outcome(job) == expected
    (resumed,) = record(job)["resumed"]
    assert resumed["cause"] == (None if number == signal.SIGKILL else "SIGTERM")
