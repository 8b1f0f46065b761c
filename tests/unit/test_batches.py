"""Batches: which runs share a job, and what a job of several processes does when one of them fails."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from builders import load_config
from builders_training import make_job, make_run

from seedbed import batches, interruption
from seedbed.config import resolve_config
from seedbed.errors import SeedbedError
from seedbed.plan import Plan, build_runs

ROOT = Path(__file__).parents[2]
TRAINER = "seedbed.transformers_trainer"


def runs_of(size: int, **grid):
    config = load_config([ROOT / "config.yaml"])
    config["grid"] |= grid
    config["batches"] = {"runs": size, "at_once": 1}
    return build_runs(resolve_config(config))


def test_by_default_every_run_is_a_batch_of_its_own():
    runs = runs_of(1)
    assert [run.batch for run in runs] == [run.folder for run in runs]


def test_batches_hold_runs_of_one_framework_and_are_full_but_for_the_last():
    runs = runs_of(4, seeds=[0, 1, 2])
    members = {}
    for run in runs:
        members.setdefault(run.batch, []).append(run)
    assert sorted(members) == [
        f"reviews_fr/roberta_tiny_fr/{framework}/00{number}"
        for framework in ("fairseq", "transformers")
        for number in (0, 1)
    ]
    assert [len(members[name]) for name in sorted(members)] == [4, 2, 4, 2]
    assert all(len({run.framework for run in batch}) == 1 for batch in members.values())


def test_added_seeds_leave_full_batches_as_they_are():
    before = {run.folder: run.batch for run in runs_of(4, seeds=[0, 1, 2, 3])}
    after = {run.folder: run.batch for run in runs_of(4, seeds=[0, 1, 2, 3, 4, 5])}
    assert {folder: after[folder] for folder in before} == before
    assert len(after) == 24


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
    assert "Traceback" in batches.log_of(broken, tmp_path / "logs").read_text()
    kept = [path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("kept/run.json"))]
    assert len(kept) == 3
    batches.train(jobs, TRAINER, {}, tmp_path / "logs", at_once=2)
    assert [path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("kept/run.json"))] == kept
    assert "adopted" in batches.log_of(jobs[0], tmp_path / "logs").read_text()


SCRIPT = """
import sys
sys.path[:0] = {paths!r}
from pathlib import Path
from builders_training import make_job, make_run
from seedbed import batches
folder = Path({folder!r})
run = make_run("transformers", epochs=400)
more = {{"batch": "a/b/c/000", "checkpointing": {pace!r}}}
jobs = [make_job(folder, run, f"deep/er/run{{number}}", **more) for number in range(2)]
batches.train(jobs, "seedbed.transformers_trainer", {{}}, folder / "logs", at_once=2)
"""


def test_a_batch_that_is_asked_to_leave_leaves_the_checkpoints_of_all_its_runs(tmp_path):
    run = make_run("transformers", epochs=400)
    jobs = [make_job(tmp_path, run, f"deep/er/run{number}", batch="a/b/c/000") for number in range(2)]
    root = Path(__file__).parents[1]
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


def test_a_process_that_is_killed_is_named(tmp_path, monkeypatch):
    """As the kernel does where memory runs out: the trainer's process dies by SIGKILL."""
    (tmp_path / "deadly.py").write_text(
        "import os, signal\ndef train(jobs): os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    job = make_job(tmp_path, make_run("transformers"), "deep/er/run")
    with pytest.raises(SeedbedError, match="killed by SIGKILL"):
        batches.train([job], "deadly", {}, tmp_path / "logs")
    interruption.watch()
    assert json.loads(json.dumps(batches._plain(job)))["run"] == job.run
