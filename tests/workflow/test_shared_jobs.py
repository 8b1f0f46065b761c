"""Runs that share a job give the files of runs that have jobs of their own, and nothing is trained twice."""

import shutil
from pathlib import Path

import pytest
from conftest import succeeded

SEEDS = [0, 1]


def predictions(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("predictions.csv")}


def trained(done) -> set[str]:
    """Rules of the jobs that Snakemake ran."""
    lines = (done.stdout + done.stderr).splitlines()
    return {line.split()[-1].rstrip(":") for line in lines if line.startswith(("rule ", "localrule "))}


@pytest.fixture
def config(small):
    _, config = small
    config["grid"]["seeds"] = SEEDS
    return config


def test_batched_runs_are_those_of_jobs_of_their_own(small, config):
    project, _ = small
    batches = {"batches": {"runs": 3, "at_once": 2}}
    alone, shared = config | {"experiment": "alone"}, config | batches | {"experiment": "shared"}
    succeeded(project.snakemake("--", "aggregate", config=alone))
    done = succeeded(project.snakemake("--cores", "2", "--", "aggregate", config=shared))
    assert {"finetune_fairseq_batch", "finetune_transformers_batch"} <= trained(done)
    results = project.folder / "results"
    expected = predictions(results / "alone" / "runs")
    assert len(expected) == 2 * 2 * len(SEEDS)
    assert predictions(results / "shared" / "runs") == expected
    assert not list((results / "shared" / "work").rglob("*.json"))
    check_switching(project, shared, config | {"experiment": "shared"}, results / "shared" / "runs")


def check_switching(project, shared: dict, unshared: dict, runs: Path) -> None:
    """Sharing jobs or not, later on, trains nothing; a forced run is trained, one that is missing as well."""
    times = {path: path.stat().st_ino for path in runs.rglob("predictions.csv")}
    succeeded(project.snakemake("--", "aggregate", config=unshared))
    assert {path: path.stat().st_ino for path in times} == times
    again = succeeded(project.snakemake("--", "aggregate", config=shared))
    assert {path: path.stat().st_ino for path in times} == times
    assert "finetune_fairseq" not in trained(again) or "adopted" in log_of(project, "seed0")
    lost = next(path for path in times if "fairseq" in path.parts and "seed1" in path.parts)
    before = lost.read_bytes()
    shutil.rmtree(lost.parent)
    # what nothing needs Snakemake does not make again: the run is asked for by name
    target = str(lost.with_name("run.json").relative_to(project.folder))
    succeeded(project.snakemake("--", target, config=shared))
    assert lost.read_bytes() == before


def log_of(project, seed: str) -> str:
    logs = project.folder / "results" / "shared" / "logs" / "finetune_fairseq"
    return "".join(path.read_text() for path in logs.rglob(f"{seed}.log"))


def test_a_dry_run_shows_batches_and_what_they_ask_for(small, config):
    project, _ = small
    config |= {"batches": {"runs": 4, "at_once": 2}}
    done = succeeded(project.snakemake("--dry-run", "--cores", "2", config=config))
    text = done.stdout + done.stderr
    assert "rule finetune_fairseq_batch" in text
    assert "localrule finetune_fairseq:" in text
    assert "runtime=120" in text
    assert "mem_mb=6000" in text
