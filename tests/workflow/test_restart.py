"""A workflow that is started again: what is finished is adopted, what was killed goes on."""

import json
import os
import signal

import pytest
from harness import NEVER, PATIENCE, Project

pytestmark = pytest.mark.slow
FRAMEWORK = "transformers"
HOLD = {"at": "update", "number": 9, "do": "hold"}


def hold_and_kill_snakemake(project: Project, *options: str) -> tuple[int, int]:
    """Kill Snakemake, and it alone, while the run holds; pids of Snakemake and of the run's owner.

    What the run prints from then on goes into a broken pipe.
    """
    project.plan(FRAMEWORK, HOLD)
    snakemake = project.start(FRAMEWORK, options=options)
    (held,) = project.wait_for("hold", snakemake)
    os.kill(snakemake.pid, signal.SIGKILL)
    snakemake.stdout.close()
    snakemake.wait(timeout=PATIENCE)
    return snakemake.pid, held["pid"]


def record(project: Project) -> str:
    """run.json, which holds how long everything took: two trainings never give the same."""
    return (project.run_folder(FRAMEWORK) / "run.json").read_text(encoding="utf-8")


def assert_tidy(project: Project) -> None:
    """No lock, no work folder, nothing half-written, nobody registered."""
    assert not (project.results / "small/work").exists()
    assert not list(project.results.rglob("*.part")) + list(project.results.rglob("*.old"))
    assert not list((project.folder / ".snakemake").glob("seedbed/*"))
    assert not list((project.folder / ".snakemake").glob("locks/*.lock"))


def test_a_run_that_was_published_and_never_recorded_is_taken_as_it_is(prepared):
    """Snakemake thinks it unfinished, and deletes it before it starts it again."""
    hold_and_kill_snakemake(prepared)
    prepared.go_on()
    prepared.wait_until_all_have_left()
    before = record(prepared)
    prepared.run(FRAMEWORK)
    assert "adopted:" in prepared.log(FRAMEWORK)
    assert record(prepared) == before
    assert_tidy(prepared)
    assert "Nothing to be done" in prepared.run(FRAMEWORK)
    assert_tidy(prepared)


def test_what_makes_a_recorded_run_train_again(prepared):
    """A file's new time does not, whatever Snakemake does; new params and the user's word do."""
    prepared.config |= {"training_checkpoints": NEVER}
    prepared.run(FRAMEWORK)
    first = record(prepared)
    os.utime(prepared.results / "data/books/labels.json")
    by_time = ("--max-checksum-file-size", "0")
    prepared.run(FRAMEWORK, options=by_time)
    assert "finetune_transformers" in prepared.ran()
    assert "adopted:" in prepared.log(FRAMEWORK)
    assert record(prepared) == first
    assert "Nothing to be done" in prepared.run(FRAMEWORK, options=by_time)

    prepared.run(FRAMEWORK, options=("--forcerun", "finetune_transformers"))
    second = record(prepared)
    assert second != first
    assert "trained anew" in prepared.log(FRAMEWORK)

    prepared.config["recipes"]["quick"]["learning_rate"] = 2e-3
    prepared.run(FRAMEWORK)
    third = record(prepared)
    assert "adopted:" not in prepared.log(FRAMEWORK)
    assert json.loads(third)["identity"] != json.loads(second)["identity"] == json.loads(first)["identity"]
    assert_tidy(prepared)


def test_the_lock_in_a_database_is_removed_as_well(prepared):
    """And a run that was killed with its workflow goes on in the next."""
    options = ("--persistence-backend", "db")
    snakemake, owner = hold_and_kill_snakemake(prepared, *options)
    prepared.kill_everything()
    out = prepared.run(FRAMEWORK, options=options)
    assert f"process {snakemake} on host" in out
    assert f"process {owner} on host" in prepared.log(FRAMEWORK)
    assert "taking it over" in prepared.log(FRAMEWORK)
    assert_tidy(prepared)
