"""A workflow that is started again: what is finished is adopted, what was killed goes on."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import make_fairseq_checkpoint
from conftest import ROOT, SHAPE, link_repository, small_config, write_lab_dataset

from seedbed.core import locks

RUN = "books/generated/transformers/random/quick/seed0"
NEEDED = ("results/data/books/generated/parity.json",)


@dataclass
class Workflow:
    """One working directory, from which one run is asked for."""

    folder: Path
    results: Path
    config: dict[str, Any]

    def start(self, *options: str) -> subprocess.Popen:
        """Start Snakemake."""
        overlay = self.folder / "overlay.yaml"
        overlay.write_text(yaml.safe_dump({**self.config, "results": str(self.results)}), encoding="utf-8")
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "1"]
        return subprocess.Popen(
            [*command, "--configfile", str(overlay), *options, "--", str(self.run / "run.json")],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def succeed(self, *options: str) -> str:
        """Run Snakemake to its successful end; what it said."""
        process = self.start(*options)
        out, _ = process.communicate(timeout=600)
        assert process.returncode == 0, out + self.log
        return out

    def start_and_kill(self, *options: str) -> tuple[int, int]:
        """Kill Snakemake, and it alone, once the run has an owner; pids of Snakemake and of the owner.

        What the run prints from then on goes into a broken pipe.
        """
        process = self.start(*options)
        owner = self.owner()
        os.kill(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait(timeout=60)
        return process.pid, owner

    def owner(self) -> int:
        """Wait until somebody owns the run; the pid."""
        for _ in patiently():
            if found := locks.note(self.work / "owner.lock"):
                return found.pid
        raise AssertionError("the run never had an owner")

    @property
    def run(self) -> Path:
        """The run folder."""
        return self.results / "small/runs" / RUN

    @property
    def work(self) -> Path:
        """The run's work folder."""
        return self.results / "small/work" / RUN

    @property
    def log(self) -> str:
        """The log of the last process of the run."""
        path = self.results / "small/logs/finetune_transformers/books/generated/random/quick/seed0.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def record(self) -> str:
        """run.json, which holds how long everything took: two trainings never give the same."""
        return (self.run / "run.json").read_text(encoding="utf-8")

    def assert_tidy(self) -> None:
        """No lock, no work folder, nothing half-written, nobody registered."""
        assert not (self.results / "small/work").exists()
        assert not list(self.results.rglob("*.part")) + list(self.results.rglob("*.old"))
        assert not list((self.folder / ".snakemake").glob("seedbed/*"))
        assert not list((self.folder / ".snakemake").glob("locks/*.lock"))


def patiently() -> Iterator[None]:
    """Poll an event."""
    end = time.monotonic() + 300
    while time.monotonic() < end:
        yield
        time.sleep(0.02)


def wait_for_end(pid: int) -> None:
    """Wait until a process that is nobody's child has ended."""
    for _ in patiently():
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
    raise AssertionError(f"process {pid} is still there")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Workflow:
    """A directory with everything but the run."""
    folder = tmp_path_factory.mktemp("made")
    write_lab_dataset(folder / "inputs/books")
    make_fairseq_checkpoint(folder / "inputs/generated", **SHAPE)
    project, config = link_repository(folder / "work"), small_config(folder / "inputs")
    done = project.snakemake("--", *NEEDED, config=config)
    assert done.returncode == 0, done.stdout + done.stderr
    return Workflow(project.folder, Path("results"), config)


@pytest.fixture
def workflow(made, tmp_path, monkeypatch) -> Workflow:
    """A copy of that directory; relative paths of the results are seen from there."""
    monkeypatch.chdir(shutil.copytree(made.folder, tmp_path / "work", symlinks=True))
    return Workflow(tmp_path / "work", Path("results"), made.config)


def test_a_run_outlives_its_workflow_and_is_taken_by_the_next(workflow):
    """While it trains: the next workflow waits for it, and says whose lock it removed."""
    snakemake, owner = workflow.start_and_kill()
    out = workflow.succeed()
    assert f"process {snakemake} on host" in out
    assert "lock was removed" in out
    assert f"process {owner} on host" in workflow.log
    assert "adopted:" in workflow.log
    workflow.assert_tidy()


def test_a_run_that_was_published_and_never_recorded_is_taken_as_it_is(workflow):
    """Snakemake thinks it unfinished, and deletes it before it starts it again."""
    _, owner = workflow.start_and_kill()
    wait_for_end(owner)
    before = workflow.record()
    workflow.succeed()
    assert "adopted:" in workflow.log
    assert workflow.record() == before
    workflow.assert_tidy()
    assert "Nothing to be done" in workflow.succeed()
    workflow.assert_tidy()


def test_what_makes_a_recorded_run_train_again(workflow):
    """A file's new time does not, whatever Snakemake does; new params and the user's word do."""
    workflow.succeed()
    first = workflow.record()
    os.utime(workflow.results / "data/books/labels.json")
    out = workflow.succeed("--max-checksum-file-size", "0")
    assert "rule finetune_transformers:" in out  # Snakemake ran it
    assert "adopted:" in workflow.log
    assert workflow.record() == first
    assert "Nothing to be done" in workflow.succeed("--max-checksum-file-size", "0")

    workflow.succeed("--forcerun", "finetune_transformers")
    second = workflow.record()
    assert second != first
    assert "trained anew" in workflow.log

    workflow.config["recipes"]["quick"]["learning_rate"] = 2e-3
    workflow.succeed()
    third = workflow.record()
    assert "adopted:" not in workflow.log
    assert json.loads(third)["identity"] != json.loads(second)["identity"] == json.loads(first)["identity"]
    workflow.assert_tidy()


@pytest.mark.parametrize("backend", ["file", "db"])
def test_a_second_workflow_in_the_same_directory_is_told_of_the_first(workflow, backend):
    """The first one's lock stays, and its run."""
    options = ("--persistence-backend", backend)
    first = workflow.start(*options)
    workflow.owner()
    second = workflow.start(*options)
    out, _ = second.communicate(timeout=600)
    assert second.returncode != 0
    assert f"Another workflow works in this directory: process {first.pid} on host" in out
    assert "Directory cannot be locked" in out
    out, _ = first.communicate(timeout=600)
    assert first.returncode == 0, out + workflow.log
    workflow.assert_tidy()


def test_the_lock_in_a_database_is_removed_as_well(workflow):
    """And everything that was killed with its workflow is trained by the next."""
    options = ("--persistence-backend", "db")
    snakemake, owner = workflow.start_and_kill(*options)
    os.kill(owner, signal.SIGKILL)
    wait_for_end(owner)
    out = workflow.succeed(*options)
    assert f"process {snakemake} on host" in out
    assert f"process {owner} on host" in workflow.log
    assert "taking it over" in workflow.log
    workflow.assert_tidy()


def test_two_directories_share_the_runs_of_one_results_folder(workflow, tmp_path):
    """Snakemake's lock is one of the working directory: here it does not help."""
    first = Workflow(workflow.folder, workflow.folder / "results", workflow.config)
    second = Workflow(link_repository(tmp_path / "other").folder, first.results, workflow.config)
    one, owner = first.start(), first.owner()
    two = second.start()
    outs = [process.communicate(timeout=600)[0] for process in (one, two)]
    assert [one.returncode, two.returncode] == [0, 0], "\n".join(outs) + first.log
    assert f"Another workflow works on {first.results / 'small'}: process {one.pid} on host" in outs[1]
    assert f"in {first.folder}" in outs[1]
    assert f"process {owner} on host" in first.log
    assert "adopted:" in first.log
    first.assert_tidy()
    second.assert_tidy()
