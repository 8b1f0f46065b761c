"""Runs that share a job give the files of runs that have jobs of their own, and nothing is trained twice."""

from pathlib import Path

import pytest
from harness import succeeded

RULES = ("finetune_fairseq", "finetune_transformers")


def predictions(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("predictions.csv")}


@pytest.mark.slow
def test_batched_runs_are_those_of_jobs_of_their_own(prepared, reference):
    unshared = {**reference.config, "experiment": "shared"}
    shared = {**unshared, "batches": {"runs": 3, "at_once": 2}}
    succeeded(prepared.snakemake("--cores", "2", "--", "aggregate", config=shared))
    assert {"finetune_fairseq_batch", "finetune_transformers_batch"} <= prepared.ran()
    results = prepared.results
    expected = predictions(reference.results / "small" / "runs")
    assert len(expected) == 2 * 2 * 2
    assert predictions(results / "shared" / "runs") == expected
    assert not list((results / "shared" / "work").rglob("*.json"))
    check_logs(results / "shared" / "logs", len(expected))
    check_switching(prepared, shared, unshared, results / "shared" / "runs")


def check_logs(logs: Path, runs: int) -> None:
    """The log of each run's rule names the log of its training."""
    adopting = [path.read_text() for rule in RULES for path in logs.glob(f"{rule}/**/*.log")]
    training = [path for rule in RULES for path in logs.glob(f"{rule}_batch/*/*/*/*.log")]
    assert len(adopting) == len(training) == runs
    for path in training:
        assert path.read_text()
        assert [str(path.relative_to(logs)) in text for text in adopting].count(True) == 1


def check_switching(project, shared: dict, unshared: dict, runs: Path) -> None:
    """Sharing jobs or not, later on, trains nothing; a run that was lost is trained, and only this one."""
    done = succeeded(project.snakemake("--dry-run", "--", "aggregate", config=shared))
    assert "Nothing to be done" in done.stdout + done.stderr
    files = {path: path.stat().st_ino for path in runs.rglob("predictions.csv")}
    succeeded(project.snakemake("--", "aggregate", config=unshared))
    assert {path: path.stat().st_ino for path in files} == files
    lost = next(path for path in files if "fairseq" in path.parts and "seed1" in path.parts)
    before = lost.read_bytes()
    lost.unlink()
    succeeded(project.snakemake("--", "aggregate", config=shared))
    assert "finetune_fairseq_batch" in project.ran()
    assert lost.read_bytes() == before
    assert {path: path.stat().st_ino for path in files if path != lost} == {
        path: number for path, number in files.items() if path != lost
    }


def test_a_dry_run_shows_batches_and_what_they_ask_for(small):
    project, config = small
    config["grid"]["seeds"] = [0, 1]
    config |= {"batches": {"runs": 4, "at_once": 2}, "threads": 2}
    done = succeeded(project.snakemake("--dry-run", "--cores", "4", config=config))
    jobs = (done.stdout + done.stderr).split("\nrule ")
    for framework in ("fairseq", "transformers"):
        (batch,) = (job for job in jobs if job.startswith(f"finetune_{framework}_batch:"))
        assert f"generated/{framework}/000.json" in batch
        assert all(text in batch for text in ("runtime=120", "mem_mb=6000", "threads: 4"))
        runs = [job for job in jobs if job.startswith(f"finetune_{framework}:")]
        assert len(runs) == 4
        assert all("runtime=10," in run and "mem_mb=500" in run and "threads" not in run for run in runs)
