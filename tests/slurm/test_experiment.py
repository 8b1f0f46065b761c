"""A whole experiment through profiles/slurm, from its sources to its report."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import make_fairseq_checkpoint
from builders_workflow import SHAPE, link_repository, small_config, write_lab_dataset
from conftest import SlurmProject

# What the profile has each rule ask for: MiB, and hours, minutes and seconds.
ASKED = {
    "prepare": ("2500M", "00:30:00"),
    "check_parity": ("4500M", "00:30:00"),
    "finetune_fairseq": ("3000M", "01:00:00"),
    "finetune_transformers": ("3000M", "01:00:00"),
    "write_report": ("2500M", "00:15:00"),
}


@pytest.fixture
def small(cluster, tmp_path) -> Iterator[SlurmProject]:
    """A working directory in which nothing is made: one seed, two frameworks, two inits."""
    inputs = tmp_path / "inputs"
    write_lab_dataset(inputs / "books")
    make_fairseq_checkpoint(inputs / "generated", **SHAPE)
    folder = link_repository(tmp_path / "work")
    project = SlurmProject(folder, config=small_config(inputs), cluster=cluster)
    yield project
    project.leave()


def test_an_experiment_completes_and_slurm_accounts_for_what_was_asked(small):
    out = small.finish(small.start(targets=["all"]))
    assert "small: 4 of 4 runs to train, in at most 4 jobs at a time\n" in out
    assert re.search(r"^4/4 .+, seed 0: accuracy [0-9.]+%, [0-9]+ s$", out, re.MULTILINE), out
    assert "has been submitted" not in out
    results = small.folder / "results" / "small"
    assert (results / "report.html").exists()
    assert len(list(results.glob("runs/**/predictions.csv"))) == 4
    rows = small.cluster.accounts(small.folder)
    show(rows)
    assert {row["State"] for row in rows} == {"COMPLETED"}
    by_rule: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        by_rule.setdefault(row["Comment"].removeprefix("rule_").partition("_wildcards")[0], []).append(row)
    # downloads stay where Snakemake runs
    assert "fetch_source" not in by_rule
    for rule, asked in ASKED.items():
        assert {(row["ReqMem"], row["Timelimit"]) for row in by_rule[rule]} == {asked}, rule
    trained = [*by_rule["finetune_fairseq"], *by_rule["finetune_transformers"]]
    assert len(trained) == 4
    for row in rows:
        assert ("gres/gpu=1" in row["AllocTRES"]) == (row in trained)
    check_logs(small.folder / "results/logs/slurm", len(rows))


def show(rows: list[dict[str, str]]) -> None:
    """Print Slurm's accounting, for those who run the tests with -s."""
    for row in rows:
        row = row | {"WorkDir": "", "Comment": row["Comment"][:60]}
        print(" | ".join(value for value in row.values() if value))


def check_logs(folder: Path, jobs: int) -> None:
    """There is a report of the efficiency, with a row a job at least, and no log of a job that succeeded."""
    (report,) = folder.glob("efficiency_report_*.csv")
    with open(report, encoding="utf-8", newline="") as stream:
        assert len(list(csv.DictReader(stream))) >= jobs
    assert not list(folder.rglob("*.log"))


def test_a_dry_run_shows_what_would_be_submitted(small):
    out = small.finish(small.start(targets=["all"], options=("--dry-run",)))
    blocks = re.findall(r"^rule finetune_fairseq:\n(?: .*\n)+", out, flags=re.MULTILINE)
    assert len(blocks) == 2
    for block in blocks:
        assert "mem_mb=3000" in block
        assert "runtime=60" in block
        assert "gpu=1" in block
    assert not small.cluster.jobs("RUNNING", "PENDING")
