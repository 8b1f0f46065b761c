"""Batches: what their job asks for, and what a job of several processes does when one of them fails."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from builders import load_config
from builders_jobs import finish
from builders_jobs import make_job as make_light_job
from builders_training import make_job, make_run

from seedbed.config.plan import Plan
from seedbed.core import interruption
from seedbed.core.errors import SeedbedError
from seedbed.running import batches, publishing, runner

ROOT = Path(__file__).parents[3]
TRAINER = "seedbed.training.transformers.classifier"


def test_a_batch_says_nothing_of_what_a_run_is(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    config = load_config([ROOT / "config.yaml"]) | {"results": str(tmp_path)}
    plans = [Plan(config | {"batches": {"runs": size, "at_once": 2}}) for size in (1, 3)]
    wildcards = type("Wildcards", (), {
        "dataset": "reviews_fr", "model": "roberta_tiny_fr", "init": "random", "recipe": "demo",
        "seed": "seed0", "batch": "000",
    })  # fmt: skip
    alone, shared = (plan.fairseq_run(wildcards) for plan in plans)
    assert alone == shared
    assert alone in plans[1].fairseq_batch_runs(wildcards)
    assert plans[0].fairseq_batch(wildcards) == []
    assert (
        plans[1]
        .fairseq_batch(wildcards)[0]
        .endswith("work/batches/reviews_fr/roberta_tiny_fr/fairseq/000.json")
    )
    assert plans[1].batch_minutes(wildcards, 1) == 2 * plans[0].run_minutes(wildcards, 1)
    assert plans[1].batch_memory(wildcards, 2) == 4 * plans[0].run_memory(wildcards, 1)


@pytest.mark.slow
def test_one_run_that_fails_leaves_the_others_finished(tmp_path):
    run = make_run("transformers")
    jobs = [make_job(tmp_path, run, f"deep/er/run{number}", batch="a/b/c/000") for number in range(3)]
    broken = make_job(tmp_path, run, "deep/er/broken", batch="a/b/c/000", labels=tmp_path / "labels.json")
    (tmp_path / "labels.json").write_text("{}")
    with pytest.raises(SeedbedError, match="1 of the 4 runs") as error:
        batches.train([jobs[0], broken, *jobs[1:]], TRAINER, {}, tmp_path / "logs", at_once=2)
    assert "KeyError" in str(error.value)
    assert "broken" in str(error.value)
    assert not (broken.work / "kept").exists()
    predictions = [(job.work / "kept" / "predictions.csv").read_bytes() for job in jobs]
    assert len(set(predictions)) == 1
    assert "labels.json" not in batches.log_of(jobs[2], tmp_path / "logs").read_text()
    assert "Traceback" in batches.log_of(broken, tmp_path / "logs").read_text()
    kept = [path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("kept/run.json"))]
    assert len(kept) == 3
    batches.train(jobs, TRAINER, {}, tmp_path / "logs", at_once=2)
    assert [path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("kept/run.json"))] == kept
    log = batches.log_of(jobs[0], tmp_path / "logs").read_text()
    assert log.index("epoch") < log.index("adopted")  # how it was trained is still there


SCRIPT = """
import sys
sys.path[:0] = {paths!r}
from pathlib import Path
from builders_training import make_job, make_run
from seedbed.running import batches
folder = Path({folder!r})
run = make_run("transformers", epochs=400)
more = {{"batch": "a/b/c/000", "checkpointing": {pace!r}}}
jobs = [make_job(folder, run, f"deep/er/run{{number}}", **more) for number in range(2)]
batches.train(jobs, "seedbed.training.transformers.classifier", {{}}, folder / "logs", at_once=2)
"""


def test_a_batch_that_is_asked_to_leave_leaves_the_checkpoints_of_all_its_runs(tmp_path):
    run = make_run("transformers", epochs=400)
    jobs = [make_job(tmp_path, run, f"deep/er/run{number}", batch="a/b/c/000") for number in range(2)]
    root = Path(__file__).parents[2]
    paths = [str(root.parent / "scripts"), str(root)]
    text = SCRIPT.format(paths=paths, folder=str(tmp_path), pace={"interval": 1e9, "max_share": 1})
    process = subprocess.Popen([sys.executable, "-c", text], start_new_session=True)
    try:
        deadline = time.monotonic() + 300
        while not all((job.work / "run" / "metrics.csv").exists() for job in jobs):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 128 + signal.SIGTERM
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    for job in jobs:
        assert not job.target.exists()
        assert len(list((job.work / "states").glob("*.state"))) == 1


DEADLY = """
import os, pathlib, signal, sys
from seedbed.core import files; from seedbed.running import publishing
def train(jobs):
    (job,) = jobs
    if job.target.name == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    if job.target.name == "spoilt":
        sys.spoilt = True
        raise RuntimeError("CUDA error: device-side assert triggered")
    assert not hasattr(sys, "spoilt")
    told = {"identity": job.identity, "updates": 1, "total_updates": 1, "diverged": False, "differences": []}
    for name in publishing.CONTENT:
        files.write_json(job.work / "run" / name, told)
    publishing.publish(job)
"""


def test_a_run_that_takes_its_process_along_takes_no_other_run(tmp_path, monkeypatch):
    """As the kernel does where memory runs out (SIGKILL), and as a GPU that only answers with errors."""
    (tmp_path / "deadly.py").write_text(DEADLY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    names = ("first", "deadly", "second", "spoilt", "third")
    jobs = [make_job(tmp_path, make_run("transformers"), f"{name}", batch="a/b/c/000") for name in names]
    with pytest.raises(SeedbedError, match="2 of the 5 runs") as error:
        batches.train(jobs, "deadly", {}, tmp_path / "logs")
    interruption.watch()
    assert "deadly: its process was killed by SIGKILL" in str(error.value)
    assert "spoilt: RuntimeError: CUDA error" in str(error.value)
    done = [job.target.name for job in jobs if publishing.is_result(job.work / "kept", job)]
    assert done == ["first", "second", "third"]


def test_a_trainer_that_cannot_start_fails_all_runs_once(tmp_path):
    jobs = [make_job(tmp_path, make_run("transformers"), f"run{n}", batch="a/b/c/000") for n in range(2)]
    with pytest.raises(SeedbedError, match="2 of the 2 runs") as error:
        batches.train(jobs, "no_such_module", {}, tmp_path / "logs")
    interruption.watch()
    assert str(error.value).count("ModuleNotFoundError") == 2


@pytest.mark.parametrize("damaged", [False, True])
def test_the_rule_of_a_run_takes_what_its_batch_made(tmp_path, damaged):
    job = make_light_job(tmp_path)
    finish(job)
    publishing.publish(replace(job, batch="a/b/c/000"))
    assert not job.target.exists()
    batch = tmp_path / "000.json"
    batches.write_results(batch, [job], tmp_path / "logs")
    if damaged:
        batch.write_text("")
    runner.adopt([replace(job)], batch)
    assert publishing.is_result(job.target, job)
    assert batch.exists()


def test_a_batch_that_left_nothing_is_not_taken_for_done(tmp_path):
    """Its file would have Snakemake believe so at every start."""
    job = make_light_job(tmp_path)
    batch = tmp_path / "000.json"
    batches.write_results(batch, [job], tmp_path / "logs")
    for _ in range(2):
        with pytest.raises(SeedbedError, match="has left no result"):
            runner.adopt([replace(job)], batch)
        assert not batch.exists()


def test_at_once_is_at_most_the_runs_of_a_batch():
    config = load_config([ROOT / "config.yaml"]) | {"batches": {"runs": 2, "at_once": 5}, "threads": 3}
    plan = Plan(config)
    assert plan.untracked()["batches"] == {"runs": 2, "at_once": 2}
    assert (plan.batch_threads, plan.run_threads) == (6, 1)
