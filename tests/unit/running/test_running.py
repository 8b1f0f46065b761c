"""A job adopts, waits or trains; what the machine lacks is told so that it can be mended."""

import errno
import logging
import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest
from builders import tiered
from builders_jobs import finish, let_end_when_looked_at, make_job, note_of, remove_outputs, run_python

from seedbed.core import interruption
from seedbed.core.errors import SeedbedError
from seedbed.running import claims, publishing, runner
from seedbed.running.gpu_slots import FOLDER_VARIABLE
from seedbed.running.gpus import FAKE


@pytest.fixture
def trainer(monkeypatch):
    """A module that trains within no time; `trained` lists the jobs, `fails` is raised instead."""
    module = types.ModuleType("quick_trainer")
    module.trained, module.fails = [], None

    def train(jobs):
        if module.fails is not None:
            raise module.fails
        for job in jobs:
            module.trained.append(job.name)
            finish(job, f"training {len(module.trained)}")
            publishing.publish(job)

    module.train = train
    monkeypatch.setitem(sys.modules, module.__name__, module)
    yield module
    for number in interruption.SIGNALS:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def run(*jobs, **options) -> None:
    runner.run(jobs, "quick_trainer", {}, **options)


def test_a_run_is_trained_once(tmp_path, trainer, caplog):
    caplog.set_level(logging.INFO)
    first, second = make_job(tmp_path), make_job(tmp_path, seed=1)
    run(first, second)
    assert trainer.trained == [first.name, second.name]
    remove_outputs(first)
    run(make_job(tmp_path), make_job(tmp_path, seed=1))
    assert len(trainer.trained) == 2
    assert note_of(first.target) == "training 1"
    assert caplog.text.count("adopted") == 2
    assert sorted(path.name for path in first.work.iterdir()) == ["kept"]


def test_another_run_of_the_same_name_is_trained(tmp_path, trainer, caplog):
    caplog.set_level(logging.INFO)
    job = make_job(tmp_path)
    run(job)
    (job.tokens / "test.jsonl").write_text("other tokens")
    run(make_job(tmp_path))
    assert note_of(job.target) == "training 2"
    assert "not adopted" in caplog.text


def test_a_run_that_is_forced_is_trained_once_more(tmp_path, trainer):
    job = make_job(tmp_path)
    run(job)
    publishing.ask_anew(job.work)
    run(job)
    run(job)
    assert note_of(job.target) == "training 2"


def test_what_a_killed_process_left_after_publishing_is_removed(tmp_path, trainer):
    job = make_job(tmp_path)
    run(job)
    (job.work / "states").mkdir()
    run(job)
    assert [path.name for path in job.work.iterdir()] == ["kept"]


TWIN = """
import types
from pathlib import Path
from builders_jobs import finish, make_job
from seedbed.running import publishing, runner as running
def train(jobs):
    print("training", flush=True)
    sys.stdin.readline()
    finish(jobs[0], "the twin's")
    publishing.publish(jobs[0])
sys.modules["twin"] = types.ModuleType("twin")
sys.modules["twin"].train = train
running.run([make_job(Path(sys.argv[1]))], "twin", {})
"""


def test_a_living_twin_is_waited_for_and_its_result_adopted(tmp_path, trainer, monkeypatch):
    job = make_job(tmp_path)
    twin = run_python(TWIN, tmp_path)
    assert twin.stdout.readline() == "training\n"
    let_end_when_looked_at(twin, monkeypatch)
    run(job)
    assert twin.wait(timeout=300) == 0
    twin.stdout.close()
    assert not trainer.trained
    assert note_of(job.target) == "the twin's"


def test_the_run_of_a_killed_twin_is_trained(tmp_path, trainer):
    job = make_job(tmp_path)
    twin = run_python(TWIN, tmp_path)
    assert twin.stdout.readline() == "training\n"
    twin.kill()
    twin.communicate(timeout=300)
    run(job)
    assert note_of(job.target) == "training 1"
    assert sorted(path.name for path in job.work.iterdir()) == ["kept"]


# another process has taken the run over meanwhile, has published it, and has left
OTHER = """
from pathlib import Path
from builders_jobs import finish, make_job
from seedbed.running import publishing
job = make_job(Path(sys.argv[1]))
(job.work / "owner.lock").unlink()
finish(job, "the other's")
publishing.publish(job)
"""


def publish_elsewhere(folder: Path) -> None:
    run_python(OTHER, folder).communicate(timeout=300)


def publish_too(job) -> None:
    finish(job, "this one's")
    publishing.publish(job)


def miss_a_file(job) -> None:
    (job.work / "run" / "metrics.csv").read_text()  # the other has published it, and it is gone


def make_an_update(job) -> None:
    """Before it writes a checkpoint, a run makes sure that it still has an owner."""
    claims.confirm(job.work)


def be_asked_to_leave(job) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    interruption.leave_if_requested()


@pytest.mark.parametrize("then", [publish_too, miss_a_file, make_an_update, be_asked_to_leave])
def test_a_run_that_was_taken_over_takes_the_result_of_the_other(tmp_path, trainer, monkeypatch, then):
    """A job that failed would have Snakemake delete the files that the other has published."""
    job, trained = make_job(tmp_path), []

    def train(jobs):
        trained.append(jobs[0].name)
        publish_elsewhere(tmp_path)
        then(jobs[0])

    monkeypatch.setattr(trainer, "train", train)
    run(job)
    assert trained == [job.name]
    assert note_of(job.target) == "the other's"
    assert [path.name for path in job.work.iterdir()] == ["kept"]


def test_the_next_run_of_a_batch_is_trained_after_one_that_was_taken_over(tmp_path, trainer, monkeypatch):
    train = trainer.train

    def overtaken(jobs):
        monkeypatch.setattr(trainer, "train", train)
        publish_elsewhere(tmp_path)
        make_an_update(jobs[0])

    monkeypatch.setattr(trainer, "train", overtaken)
    first, second = make_job(tmp_path), make_job(tmp_path, seed=1)
    run(first, second)
    assert (note_of(first.target), note_of(second.target)) == ("the other's", "training 1")


def test_adopting_imports_nothing_heavy(tmp_path):
    """Not even NumPy: a cluster adopts thousands of runs."""
    job = make_job(tmp_path)
    finish(job)
    publishing.publish(job)
    code = """
from pathlib import Path
from builders_jobs import make_job
from seedbed.running import runner as running
running.run([make_job(Path(sys.argv[1]))], "seedbed.training.transformers.classifier", {}, slot=True)
print(sorted(sys.modules))
"""
    out, _ = run_python(code, tmp_path).communicate(timeout=300)
    assert "'seedbed.running.runner'" in out
    for heavy in ("torch", "numpy", "transformers", "seedbed.training.transformers.classifier"):
        assert f"'{heavy}'" not in out


@pytest.mark.parametrize(
    ("task", "method", "wanted"),
    [
        ("classification", "full", []),
        ("classification", "lora", ["peft"]),
        ("generation", "lora", ["pandas", "peft"]),
        ("generation", "qlora", ["bitsandbytes", "pandas", "peft"]),
    ],
)
def test_a_process_does_not_import_what_none_of_its_runs_uses(task, method, wanted):
    code = f"""
import types
from seedbed.running import runner as running
plain = types.SimpleNamespace(run={{"task": "classification", "method": "full"}})
running.leave_out_unused([plain, types.SimpleNamespace(run={{"task": {task!r}, "method": {method!r}}})])
import importlib.util
packages = ("bitsandbytes", "pandas", "peft")
print([name for name in packages if importlib.util.find_spec(name) is not None])
"""
    out, _ = run_python(code).communicate(timeout=300)
    assert out.strip() == str(wanted)


@pytest.mark.parametrize("method", tiered(["full", "lora"], "full"))
def test_trainers_of_classifiers_import_without_what_is_left_out(method):
    code = f"""
import types
from seedbed.running import runner as running
running.leave_out_unused([types.SimpleNamespace(run={{"task": "classification", "method": {method!r}}})])
import seedbed.training.transformers.classifier, seedbed.training.fairseq.trainer
if {method!r} == "lora":
    import seedbed.training.adapters, seedbed.training.merging
from seedbed.core import imports
print([name for name in imports.UNUSED - {{"peft"}} if sys.modules[name] is not None])
"""
    out, _ = run_python(code).communicate(timeout=300)
    assert out.strip() == "[]"


@pytest.mark.parametrize(
    ("device", "cuda", "woken"),
    [("auto", "13.0", 1), ("cuda", "13.0", 1), ("cpu", "13.0", 0), ("auto", None, 0)],
)
def test_a_gpu_is_made_ready_for_a_run_that_may_use_it_or_hidden(
    tmp_path, trainer, monkeypatch, device, cuda, woken
):
    import torch

    monkeypatch.setenv(runner.gpus.VISIBLE, "0")
    monkeypatch.setattr(torch.version, "cuda", cuda)
    found = []
    monkeypatch.setattr(runner.gpus, "wake", lambda: found.append("quick_trainer" in sys.modules))
    monkeypatch.delitem(sys.modules, "quick_trainer")  # as in a process that has not imported it
    monkeypatch.setattr(runner.importlib, "import_module", lambda name: {"torch": torch}.get(name, trainer))
    runner.run([make_job(tmp_path, device=device)], "quick_trainer", {})
    assert found == [False] * woken
    assert os.environ[runner.gpus.VISIBLE] == ("" if device == "cpu" else "0")


def test_a_slot_of_a_gpu_is_held_while_training(tmp_path, trainer, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "slots"))
    config = {"gpus": {"devices": [f"{FAKE}7"], "runs_per_gpu": 1}}
    seen = []
    train = trainer.train
    trainer.train = lambda jobs: (seen.append(runner.gpu_slots.held()), train(jobs))
    jobs = [make_job(tmp_path), make_job(tmp_path, seed=1)]
    runner.run(jobs, "quick_trainer", config, slot=True)
    assert seen == [f"{FAKE}7"] * 2
    assert runner.gpu_slots.held() is None


# --- what is lacking ---


def out_of_memory() -> Exception:
    kind = type("OutOfMemoryError", (RuntimeError,), {})
    return kind("CUDA out of memory. Tried to allocate 2.00 GiB.\nmore")


@pytest.mark.parametrize("error", [out_of_memory(), RuntimeError("CUDA error: out of memory")])
def test_a_gpu_without_enough_memory(tmp_path, trainer, error):
    job = make_job(tmp_path)
    trainer.fails = error
    with pytest.raises(SeedbedError, match="the GPU has not enough memory") as caught:
        run(job)
    message = str(caught.value)
    for part in (
        "recipes.quick: batch_size 8",
        job.name,
        "CUDA",
        "gpus.runs_per_gpu",
        "evaluation.batch_size",
    ):
        assert part in message
    assert "\nmore" not in message
    assert not job.work.exists()  # and nobody's


def test_a_gpu_without_enough_memory_for_a_causal_model(tmp_path, trainer):
    job = make_job(tmp_path, task="generation", method="full")
    job.settings["gradient_checkpointing"] = False
    trainer.fails = out_of_memory()
    with pytest.raises(SeedbedError, match="the GPU has not enough memory") as caught:
        run(job)
    message = str(caught.value)
    for part in ("batch_size 8", "gradient_checkpointing False", "max_tokens", "qlora", "runs_per_gpu"):
        assert part in message
    assert "max_positions" not in message


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_disk_that_cannot_be_written(tmp_path, trainer, number):
    job = make_job(tmp_path)
    trainer.fails = OSError(number, "as the system says it")
    with pytest.raises(SeedbedError, match="the results cannot be written") as caught:
        run(job)
    assert f"where: {tmp_path / 'results/small'}\n" in str(caught.value)
    assert "as the system says it" in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        SeedbedError("as it is"),
        ValueError("a fault"),
        FileNotFoundError(errno.ENOENT, "none"),
        interruption.Interrupted(15),
    ],
)
def test_all_other_errors_are_as_they_are_and_the_run_is_free(tmp_path, trainer, error):
    job = make_job(tmp_path)
    trainer.fails = error
    with pytest.raises(type(error)) as caught:
        run(job)
    assert caught.value is error
    assert claims.owner(job.work) is None


def test_results_that_are_read_only_are_named(tmp_path, trainer):
    """By a mount, as root may write anywhere."""
    job = make_job(tmp_path)
    results = tmp_path / "results"
    code = """
from pathlib import Path
from builders_jobs import make_job
from seedbed.running import runner as running
from seedbed.core.errors import SeedbedError
try:
    running.run([make_job(Path(sys.argv[1]))], "none", {})
except SeedbedError as error:
    print(error)
"""
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    probe = subprocess.run(["unshare", "-m", "sh", "-c", mount, results, "true"], capture_output=True)
    if probe.returncode:
        pytest.skip("mounting needs root here")
    scripts = Path(__file__).parents[3] / "scripts"
    head = f"import sys; sys.path[:0] = [{str(scripts)!r}, {str(Path(__file__).parents[2])!r}]"
    command = [sys.executable, "-c", f"{head}\n{code}", str(tmp_path)]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mount, results, *command], capture_output=True, text=True, timeout=300
    )
    assert "the results cannot be written" in done.stdout, done.stderr
    assert str(job.work) in done.stdout
    assert "Read-only file system" in done.stdout
