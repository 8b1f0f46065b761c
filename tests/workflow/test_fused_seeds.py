"""Fused seeds: the seeds of a cell share a job and a model, and give the files that separate runs give."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from builders_workflow import small_config
from harness import failed, succeeded
from test_inspection import jobs

SEEDS = [0, 1]
FRAMEWORKS = ("fairseq", "transformers")
CELL = "runs/books/generated"
DROPOUTS = ("dropout", "attention_dropout", "activation_dropout", "pooler_dropout")
# what run.json tells of a separate run alone: how its framework was called, and whether it packs batches
OF_FRAMEWORKS = {"command", "packed"}


def config(experiment: str, **changes: Any) -> dict[str, Any]:
    """The demo with two seeds and one epoch."""
    recipes = {"demo": {"epochs": 1}}
    return {"experiment": experiment, "grid": {"seeds": SEEDS}, "recipes": recipes, **changes}


# --- what is planned ---


def test_ten_seeds_of_the_demo_are_two_jobs_that_train_and_forty_that_adopt(project):
    overlay, switch = "experiments/seeds10.yaml", ["--config", "fused_seeds=true"]
    planned = jobs(project, None, "--configfile", overlay, *switch)
    for framework in FRAMEWORKS:
        assert planned[f"finetune_{framework}_batch"] == 1
        assert planned[f"finetune_{framework}"] == 20
    done = succeeded(project.snakemake("--dry-run", "--configfile", overlay, *switch))
    rules = (done.stdout + done.stderr).split("\nrule ")
    (batch, *_) = (rule for rule in rules if rule.startswith("finetune_fairseq_batch:"))
    assert all(text in batch for text in ("roberta_tiny_fr/fairseq/00", "runtime=1200", "mem_mb=18200"))


def test_a_batch_limits_the_runs_of_a_model(project):
    planned = jobs(
        project, config("cut", fused_seeds=True, batches={"runs": 4}, grid={"seeds": [*range(10)]})
    )
    assert [planned[f"finetune_{framework}_batch"] for framework in FRAMEWORKS] == [5] * 2  # of 20 runs


def test_what_cannot_be_fused_is_said_before_anything_starts(project):
    told = failed(project.snakemake("--dry-run", "--config", "fused_seeds=true", config=config(
        "refused", batches={"runs": 4, "at_once": 2},
    )))  # fmt: skip
    assert "batches.at_once" in told
    assert "Traceback" not in told


# --- what is made ---


def folders(experiment: Path) -> list[str]:
    return sorted(str(path.parent.relative_to(experiment)) for path in experiment.rglob("runs/**/run.json"))


def rows(path: Path) -> list[list[str]]:
    return [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_fused_seeds_make_the_files_of_separate_runs(prepared, stock):
    alone, fused = prepared.results / "alone", prepared.results / "fused"
    undropped = small_config(stock.folder / "prepared-inputs")
    undropped["recipes"]["quick"] |= dict.fromkeys(DROPOUTS, 0.0)
    undropped["grid"]["seeds"] = SEEDS
    separate = {**undropped, "experiment": "alone"}
    succeeded(prepared.snakemake("--cores", "2", "--", "aggregate", config=separate))
    asked = {**undropped, "experiment": "fused", "fused_seeds": True}
    succeeded(prepared.snakemake("--cores", "2", config=asked))
    assert len(folders(fused)) == 2 * 2 * len(SEEDS)
    assert folders(fused) == folders(alone)
    for run in folders(fused):
        check_run(alone / run, fused / run)
    check_tables(alone, fused)
    check_logs(fused)
    again = succeeded(prepared.snakemake("--cores", "2", config=asked))
    assert "Nothing to be done" in again.stdout + again.stderr
    check_lost_run(prepared, asked, fused)


def check_run(alone: Path, fused: Path) -> None:
    """The same files, columns, steps, examples; and the same numbers up to rounding, as nothing drops out."""
    assert {path.name for path in fused.iterdir()} == {path.name for path in alone.iterdir()}
    assert list((fused / "tensorboard").rglob("events.*"))
    one, other = (json.loads((folder / "run.json").read_text(encoding="utf-8")) for folder in (alone, fused))
    assert set(one) - set(other) <= OF_FRAMEWORKS
    assert set(other) - set(one) == {"fused_with"}
    inits = ("pretrained", "random")
    assert other["fused_with"] == [[init, seed, seed] for seed in SEEDS for init in inits]
    assert one["updates"] == other["updates"]
    for name, keys, measured in (("metrics.csv", 4, (4,)), ("predictions.csv", 3, (4, 5))):
        a, b = rows(alone / name), rows(fused / name)
        assert a[0] == b[0]
        assert [row[:keys] for row in a] == [row[:keys] for row in b]
        columns = [[float(row[column]) for row in table[1:]] for column in measured for table in (a, b)]
        for x, y in zip(columns[::2], columns[1::2], strict=True):
            assert y == pytest.approx(x, abs=0.02), fused / name


def check_tables(alone: Path, fused: Path) -> None:
    """Tables of the same columns, and a report that says how the runs were trained."""
    tables = {}
    for experiment in (alone, fused):
        header, *lines = rows(experiment / "runs.csv")
        tables[experiment] = header
        place = header.index("fused_seeds")
        assert {line[place] for line in lines} == {"1" if experiment is alone else "4"}
    assert tables[alone] == tables[fused]
    page = (fused / "report.html").read_text(encoding="utf-8")
    assert "one batched model of 4 runs" in page
    assert (fused / "summary.md").exists()


def check_logs(experiment: Path) -> None:
    """One log of training for each framework, named by the logs of its runs."""
    for framework in FRAMEWORKS:
        logs = experiment / "logs"
        training = list(logs.glob(f"finetune_{framework}_batch/*/*/*/*.log"))
        assert [path.stem for path in training] == ["quick"]
        told = [path.read_text(encoding="utf-8") for path in logs.glob(f"finetune_{framework}/**/*.log")]
        named = [sum(str(path.relative_to(logs)) in text for text in told) for path in training]
        assert named == [2 * len(SEEDS)]


def check_lost_run(project, asked: dict[str, Any], experiment: Path) -> None:
    """A run that was lost is trained with its group again, and is what it was; the others are not touched."""
    files = {path: path.stat().st_ino for path in experiment.rglob("runs/**/predictions.csv")}
    lost = experiment / CELL / "fairseq/random/quick/seed1"
    before = {name: (lost / name).read_text(encoding="utf-8") for name in ("predictions.csv", "metrics.csv")}
    shutil.rmtree(lost)
    target = str((lost / "run.json").relative_to(project.folder))
    succeeded(project.snakemake("--cores", "2", "--", target, config=asked))
    assert "2 of 2 steps" in project.log_of_snakemake()  # what trains, and what puts it into its place
    assert project.ran() == {"finetune_fairseq_batch", "finetune_fairseq"}
    assert (lost / "predictions.csv").read_text(encoding="utf-8") == before["predictions.csv"]
    seconds = before["metrics.csv"].splitlines()[0].split(",").index("seconds")
    again = [[*row[:seconds], *row[seconds + 1 :]] for row in rows(lost / "metrics.csv")]
    then = [line.split(",") for line in before["metrics.csv"].splitlines()]
    assert again == [[*row[:seconds], *row[seconds + 1 :]] for row in then]
    others = {path: number for path, number in files.items() if lost not in path.parents}
    assert {path: path.stat().st_ino for path in others} == others
