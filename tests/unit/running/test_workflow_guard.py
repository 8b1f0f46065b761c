"""What the main Snakemake process makes of those that were here before it, or still are."""

import contextlib
import errno
import fcntl
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders_jobs import SCRIPTS, finish, make_job, note_of, remove_outputs, run_python

from seedbed.config.batching import FusedSeeds, OneAfterAnother
from seedbed.core import files, locks
from seedbed.core.errors import SeedbedError
from seedbed.running import guard, publishing

RUN = ["--cores", "2", "--configfile", "mine.yaml"]


def snakemake(**changes) -> SimpleNamespace:
    """As much of Snakemake's workflow as the guard asks."""
    settings = SimpleNamespace(forceall=False, forcetargets=False, forcerun=set())
    return SimpleNamespace(
        **{
            "is_main_process": True,
            "dryrun": False,
            "touch": False,
            "workflow_settings": SimpleNamespace(),
            "dag_settings": settings,
            **changes,
        }
    )


class Dag:
    """The jobs of some runs, of which those whose names are given are to be made."""

    def __init__(self, jobs, needed=()):
        self.jobs = [
            SimpleNamespace(
                rule=SimpleNamespace(name="finetune_transformers", script="../scripts/finetune.py"),
                output=Output(job.target),
                input=[],
                name=job.name,
            )
            for job in jobs
        ]
        self.needed = {job.name for job in needed}
        self.targetjobs: list[SimpleNamespace] = []
        self.dependencies = Nothing()

    def needrun(self, job) -> bool:
        return job.name in self.needed


class Nothing:
    """No job needs another."""

    def __getitem__(self, job) -> list:
        return []


class File(str):
    """A path as Snakemake has it."""

    is_storage = False

    def __init__(self, path: Path):
        self.flags: dict[str, object] = {}


class Output(list):
    """Outputs of a rule, which have names."""

    def __init__(self, target: Path):
        super().__init__([File(target / "run.json")])
        self.run_json = self[0]


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch) -> Path:
    """A working directory; registrations end with the test."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    guard._leave()


@pytest.fixture
def said(monkeypatch) -> list[str]:
    """What the user is told."""
    lines: list[str] = []
    monkeypatch.setattr(guard, "_say", lines.append)
    return lines


def lock() -> Path:
    path = Path(".snakemake/locks/0.output.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("results/one\n")
    return path


def registered() -> list[locks.Holder]:
    return [locks.note(path) for path in guard.WORKFLOWS.glob("*")]


ENTER = """
from types import SimpleNamespace
from seedbed.running import guard as workflow_guard
workflow = SimpleNamespace(is_main_process=True, workflow_settings=SimpleNamespace())
workflow_guard.enter(workflow, ["--cores", "7"])
print("entered", flush=True)
sys.stdin.readline()
"""


def other_workflow() -> subprocess.Popen:
    """A process that registered itself in this directory, until it gets a line."""
    other = run_python(ENTER)
    assert other.stdout.readline() == "entered\n"
    return other


# --- the lock of the working directory ---


def test_a_workflow_registers_itself_and_leaves_no_trace(said):
    other = other_workflow()
    assert [entry.pid for entry in registered()] == [other.pid]
    assert registered()[0].doing == "snakemake --cores 7"
    other.communicate("\n", timeout=300)
    assert registered() == []


def test_the_lock_of_a_killed_workflow_is_removed_and_the_user_told_whose_it_was(said):
    other = other_workflow()
    path = lock()
    other.kill()
    other.communicate(timeout=300)
    guard.enter(snakemake(), RUN)
    assert not path.exists()
    (told,) = said
    assert f"process {other.pid} on host" in told
    assert "snakemake --cores 7. Its lock was removed" in told
    assert "\n" not in told
    assert [entry.pid for entry in registered()] == [os.getpid()]


def test_the_lock_of_a_living_workflow_stays_and_it_is_named(said):
    other = other_workflow()
    path = lock()
    guard.enter(snakemake(), RUN)
    assert path.exists()
    (told,) = said
    assert f"process {other.pid} on host" in told
    assert sorted(entry.pid for entry in registered()) == sorted([other.pid, os.getpid()])
    other.communicate("\n", timeout=300)


def test_where_one_is_dead_and_one_alive_the_lock_stays(said):
    dead, living, path = other_workflow(), other_workflow(), lock()
    dead.kill()
    dead.communicate(timeout=300)
    guard.enter(snakemake(), RUN)
    assert path.exists()
    assert f"process {living.pid} on host" in said[0]
    living.communicate("\n", timeout=300)


def test_a_lock_of_nobody_known_stays(said):
    """It may be that of a workflow that registers nowhere; Snakemake says what to do."""
    path = lock()
    guard.enter(snakemake(), RUN)
    assert path.exists()
    assert said == []


def test_a_workflow_that_is_stopped_is_alive(said):
    other = other_workflow()
    path = lock()
    other.send_signal(signal.SIGSTOP)
    guard.enter(snakemake(), RUN)
    assert path.exists()
    assert f"process {other.pid} on host" in said[0]
    other.send_signal(signal.SIGCONT)
    other.communicate("\n", timeout=300)


def test_a_workflow_that_is_about_to_register_is_not_taken_for_dead(said):
    """Its file is there, and not locked yet."""
    guard.WORKFLOWS.mkdir(parents=True)
    (guard.WORKFLOWS / "1-a.lock").touch()
    path = lock()
    guard.enter(snakemake(), RUN)
    assert path.exists()
    assert (guard.WORKFLOWS / "1-a.lock").exists()


def test_what_versions_before_locks_left_is_removed(said):
    for folder in (guard.WORKFLOWS, Path("results/small/work/workflows")):
        folder.mkdir(parents=True)
        (folder / "7-a.json").write_text('{"pid": 7}')
    guard.enter(snakemake(), RUN)
    begin([])
    guard._leave()
    assert list(guard.WORKFLOWS.iterdir()) == []
    assert not Path("results/small/work").exists()
    assert said == []


def test_without_a_lock_nothing_is_said(said):
    other = other_workflow()
    other.kill()
    other.communicate(timeout=300)
    guard.enter(snakemake(), RUN)
    assert said == []
    assert [entry.pid for entry in registered()] == [os.getpid()]


@pytest.mark.parametrize(
    "words",
    [["-n"], ["-np"], ["--dry-run"], ["--dryrun"], ["--unlock"], ["--summary"], ["--dag=mermaid-js"],
     ["--rulegraph"], ["--lint"], ["--list-rules"], ["--report", "report.zip"], ["-S"]],
)  # fmt: skip
def test_command_lines_that_make_nothing_touch_nothing(said, words):
    path = lock()
    guard.enter(snakemake(), [*RUN, *words])
    assert path.exists()
    assert registered() == []


@pytest.mark.parametrize(
    "words", [["-R", "finetune"], ["-Rnaming"], ["-call"], ["-j10"], ["--nolock"], ["-F"]]
)
def test_command_lines_that_make_something_register(said, words):
    guard.enter(snakemake(), [*RUN, *words])
    assert len(registered()) == 1


def test_the_processes_of_jobs_do_not_register(said):
    guard.enter(snakemake(is_main_process=False), RUN)
    guard.begin(snakemake(is_main_process=False), Path("results/small"))
    assert not Path("results").exists()
    assert registered() == []


# --- results ---


def begin(jobs, needed=(), **changes) -> None:
    workflow = snakemake(dag=Dag(jobs, needed))
    vars(workflow.dag_settings).update(changes)
    guard.begin(workflow, Path("results/small"))


def make_runs(count: int) -> list:
    """Published runs, of which nothing is kept."""
    jobs = [make_job(Path("."), seed) for seed in range(count)]
    for job in jobs:
        finish(job, f"run {job.run['init_seed']}")
        publishing.publish(job)
        publishing.forget(job.work)
    return jobs


def test_results_that_are_made_again_are_kept_first(said):
    stays, made, forced = make_runs(3)
    publishing.keep(stays.target, stays.work)
    begin([stays, made, forced], [made], forcerun={"another_rule"})
    assert note_of(made.work / "kept") == "run 1"
    assert not stays.work.exists()
    assert not forced.work.exists()
    assert said == []


@pytest.mark.parametrize(
    "changes", [{"forceall": True}, {"forcerun": {"finetune_transformers"}}, {"forcerun": {"OUTPUT"}}]
)
def test_what_the_user_forces_is_trained_anew(said, changes):
    (job,) = make_runs(1)
    publishing.keep(job.target, job.work)
    if "OUTPUT" in changes.get("forcerun", ()):
        changes = {"forcerun": {f"./{job.target / 'run.json'}"}}
    begin([job], [job], **changes)
    assert not publishing.adopt(job)
    begin([job], [job])  # the next time it is not forced
    assert publishing.adopt(job)


def test_after_the_last_job_nothing_is_kept(said):
    jobs = make_runs(2)
    workflow = snakemake(dag=Dag(jobs, jobs))
    guard.begin(workflow, Path("results/small"))
    assert all((job.work / "kept").exists() for job in jobs)
    guard.end(workflow, Path("results/small"))
    assert not Path("results/small/work").exists()
    assert all(publishing.is_complete(job.target) for job in jobs)


def test_a_run_that_is_not_planned_keeps_its_result_where_its_files_are_gone(said):
    """Only the work folder has its result: a batch trained it, and its own rule has not adopted it yet."""
    (job,) = make_runs(1)
    publishing.keep(job.target, job.work)
    remove_outputs(job)
    begin([job])
    assert note_of(job.work / "kept") == "run 0"


def test_a_run_that_was_removed_meanwhile_is_put_back_with_its_times(said):
    """Another workflow's job fails, and its Snakemake deletes what this one has published."""
    (job,) = make_runs(1)
    workflow = snakemake(dag=Dag([job], [job]))
    guard.begin(workflow, Path("results/small"))
    before = (job.target / "run.json").stat().st_mtime_ns
    remove_outputs(job)
    guard.end(workflow, Path("results/small"))
    assert note_of(job.target) == "run 0"
    assert (job.target / "run.json").stat().st_mtime_ns == before
    assert not job.work.exists()


def test_a_workflow_does_not_end_well_without_its_files(said):
    made, lost = make_runs(2)
    workflow = snakemake(dag=Dag([made, lost], [made, lost]))
    guard.begin(workflow, Path("results/small"))
    remove_outputs(lost)
    publishing.forget(lost.work)
    with pytest.raises(SeedbedError, match="ended without all of its files") as caught:
        guard.end(workflow, Path("results/small"))
    assert f"where: {lost.target / 'run.json'}\n" in str(caught.value)


@pytest.mark.parametrize("names", ["once", "temporary"])
def test_snakemake_fails_where_a_file_is_missing_at_the_end(tmp_path, names):
    """But for files that Snakemake itself removes."""
    mark = "temp" if names == "temporary" else ""
    (tmp_path / "Snakefile").write_text(f"""
import sys
sys.path.insert(0, {str(SCRIPTS)!r})
from pathlib import Path
from seedbed.running import guard as workflow_guard

onsuccess:
    workflow_guard.end(workflow, Path("results"))

rule all:
    input: "b.txt"

rule a:
    output: {mark}("a.txt")
    shell: "touch {{output}}"

rule b:
    input: "a.txt"
    output: "b.txt"
    shell: "touch {{output}}; rm a.txt"
""")
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--", "b.txt"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    if mark:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode != 0
        assert "ended without all of its files" in done.stderr
        assert "where: a.txt" in done.stderr


OTHER = """
from pathlib import Path
from types import SimpleNamespace
from seedbed.running import guard as workflow_guard
workflow = SimpleNamespace(
    is_main_process=True, dryrun=False, touch=False, dag=SimpleNamespace(jobs=[]),
)
workflow_guard.begin(workflow, Path("results/small"))
print("begun", flush=True)
sys.stdin.readline()
"""


def test_another_workflow_on_the_results_is_named_and_may_still_need_what_is_kept(said):
    jobs = make_runs(2)
    other = run_python(OTHER)
    assert other.stdout.readline() == "begun\n"
    workflow = snakemake(dag=Dag(jobs, jobs))
    guard.begin(workflow, Path("results/small"))
    assert f"process {other.pid} on host" in said[0]
    assert f"in {Path.cwd()}" in said[0]
    guard.end(workflow, Path("results/small"))
    assert all((job.work / "kept").exists() for job in jobs)
    other.kill()
    other.communicate(timeout=300)
    begin(jobs)  # dead workflows need nothing
    assert len(said) == 1
    guard._leave()
    assert not Path("results/small/work").exists()


@pytest.mark.parametrize("state", ["dryrun", "touch"])
def test_where_nothing_is_made_nothing_changes(said, state):
    (job,) = make_runs(1)
    workflow = snakemake(dag=Dag([job], [job]), **{state: True})
    guard.begin(workflow, Path("results/small"))
    guard.end(workflow, Path("results/small"))
    assert not job.work.exists()


def test_a_file_system_without_locks_is_named_and_stops_nobody(said, monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    guard.enter(snakemake(), RUN)
    begin([])
    assert registered() == []
    (told,) = said
    assert "File locks do not work" in told
    assert "results/small" in told


def test_results_that_cannot_be_written_are_named():
    with pytest.raises(SeedbedError, match="the results cannot be written") as caught:
        guard.begin(snakemake(dag=Dag([])), Path("/sys/kernel/small"))
    assert "where: /sys/kernel/small\n" in str(caught.value)


# --- what is newer, later or lives must not be lost ---


def test_what_a_batch_has_kept_is_not_replaced_by_the_older_result_that_is_published(said):
    (old,) = make_runs(1)
    new = make_job(Path.cwd(), batch="books/tiny/transformers/000", note="changed")
    files.publish_folder(publishing._copy(finish(new, "new"), new.work), new.work / "kept")
    begin([old], needed=[old])
    assert note_of(new.work / "kept") == "new"


def test_what_is_kept_stays_for_a_workflow_that_came_later(said):
    jobs = make_runs(1)
    begin(jobs, needed=jobs)
    workflow = snakemake(dag=Dag(jobs))
    folder = Path("results/small/work/workflows")
    other = other_workflow()
    os.link(next(guard.WORKFLOWS.glob(f"{other.pid}-*")), folder / "later.lock")
    guard.end(workflow, Path("results/small"))
    assert (jobs[0].work / "kept").exists()
    other.communicate("\n", timeout=300)


def test_the_lock_of_a_dead_one_is_removed_once_no_living_one_may_need_it(said):
    dead, living = other_workflow(), other_workflow()
    path = lock()
    dead.kill()
    dead.communicate(timeout=300)
    guard.enter(snakemake(), RUN)
    assert path.exists()
    guard._leave()
    living.communicate("\n", timeout=300)
    guard.enter(snakemake(), RUN)
    assert not path.exists()


@pytest.mark.parametrize(
    ("size", "shared", "refused"), [(2, set(), True), (2, {1}, False), (1, set(), False)]
)
def test_batches_without_a_shared_file_system_are_refused(size, shared, refused):
    workflow = snakemake(storage_settings=SimpleNamespace(shared_fs_usage=shared))
    with pytest.raises(SeedbedError, match="share") if refused else contextlib.nullcontext():
        guard.check_batches(workflow, OneAfterAnother(size))


def test_fused_seeds_without_a_shared_file_system_are_refused_by_their_own_key():
    workflow = snakemake(storage_settings=SimpleNamespace(shared_fs_usage=set()))
    with pytest.raises(SeedbedError, match="config, fused_seeds") as error:
        guard.check_batches(workflow, FusedSeeds())
    assert "set it to false" in str(error.value)


def test_the_scripts_of_runs_and_of_batches_are_those_of_the_rules():
    """The guard knows the jobs that make runs by their scripts, as a module's rules may be renamed."""
    rules = (Path(__file__).parents[3] / "rules/finetune.smk").read_text(encoding="utf-8")
    scripts = re.findall(r'^ +script:\n +"\.\./scripts/(\w+)\.py"', rules, re.MULTILINE)
    assert sorted(scripts) == sorted([guard.RUN_SCRIPT, guard.BATCH_SCRIPT])
