"""A finished run stands at its place once, whole, and is adopted ever after."""

import errno
import os
import shutil
import signal
from pathlib import Path

import pytest
from builders_jobs import finish, make_job, note_of, remove_outputs

from seedbed.core import files, locks
from seedbed.core.errors import SeedbedError
from seedbed.running import claims, publishing

CONTENT = [
    ".sha256", ".sha256/finetune_transformers", "metrics.csv", "predictions.csv", "run.json", "tensorboard",
    "tensorboard/events.out.tfevents.1",
]  # fmt: skip


def content(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def job(tmp_path):
    return make_job(tmp_path)


def published(job, note: str = "first") -> Path:
    finish(job, note)
    publishing.publish(job)
    return job.target


# --- publishing ---


def test_a_published_run_is_whole_kept_and_leaves_no_checkpoints(job):
    files.write_text(job.work / "states" / "8.state", "state")
    with claims.claim(job.work):
        published(job)
        assert content(job.target) == CONTENT
        assert sorted(path.name for path in job.work.iterdir()) == ["kept", "owner.lock"]
    kept = job.work / "kept" / "run.json"
    assert kept.samefile(job.target / "run.json")  # it takes no space


def test_publishing_replaces_what_stands_there(job):
    published(job, "first")
    (job.target / "of_the_first.txt").touch()
    published(job, "second")
    assert note_of(job.target) == note_of(job.work / "kept") == "second"
    assert content(job.target) == CONTENT
    remove_outputs(job)  # Snakemake leaves the folder, empty or not
    published(job, "third")
    assert note_of(job.target) == "third"
    assert content(job.work) == ["kept", *(f"kept/{name}" for name in CONTENT)]


def test_who_lost_the_run_does_not_publish(job):
    with claims.claim(job.work):
        finish(job)
        (job.work / claims.FILE).unlink()
        other = locks.take(job.work / claims.FILE)
        with pytest.raises(SeedbedError, match="taken over the run"):
            publishing.publish(job)
        other.release(remove=True)
    assert not job.target.exists()
    assert (job.work / "run" / "run.json").exists()


def publish_until(job, steps: int) -> int:
    """Publish in a process that is killed before its call to the system number `steps`; its exit status."""
    child = os.fork()
    if child == 0:
        left = iter(range(steps))

        def counted(function):
            def call(*args, **kwargs):
                if next(left, None) is None:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*args, **kwargs)

            return call

        for name in ("link", "rename", "replace", "unlink", "rmdir", "fsync", "mkdir"):
            setattr(os, name, counted(getattr(os, name)))
        publishing.publish(job)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_kill_at_any_step_of_publishing_loses_nothing(tmp_path):
    """Of two results of one run, one stands or can be adopted, or the new one waits to be published."""
    job = make_job(tmp_path)
    steps = 0
    while True:
        published(job, "first")
        finish(job, "second")
        killed = publish_until(job, steps)
        whole = [folder for folder in (job.target, job.work / "kept", job.work / "run")
                 if publishing.is_result(folder, job)]  # fmt: skip
        assert whole, f"step {steps}"
        if publishing.is_complete(job.target):
            assert content(job.target) == CONTENT
        again = make_job(tmp_path)
        assert publishing.adopt(again) or (job.work / "run" / "run.json").exists(), f"step {steps}"
        if killed == 0:
            break
        assert killed == -signal.SIGKILL
        steps += 1
    assert steps > 20
    assert note_of(job.target) == "second"


# --- adopting ---


def test_a_run_whose_outputs_were_deleted_is_adopted(job):
    published(job)
    before = (job.target / "run.json").read_bytes()
    inode = (job.target / "run.json").stat().st_ino
    remove_outputs(job)
    assert publishing.adopt(job)
    assert content(job.target) == CONTENT
    assert (job.target / "run.json").read_bytes() == before
    assert (job.target / "run.json").stat().st_ino == inode
    assert content(job.work) == ["kept", *(f"kept/{name}" for name in CONTENT)]


def test_an_adopted_run_is_newer_than_its_inputs(job):
    published(job)
    remove_outputs(job)
    for path in (job.work / "kept").rglob("*"):
        os.utime(path, (1e9, 1e9))
    assert publishing.adopt(job)
    newest = max(path.stat().st_mtime for path in job.tokens.iterdir())
    assert all(path.stat().st_mtime >= newest for path in job.target.rglob("*"))


def test_a_run_that_stands_there_is_adopted_and_kept(job):
    published(job)
    publishing.forget(job.work)
    assert publishing.adopt(job)
    assert note_of(job.work / "kept") == "first"


def test_nothing_is_adopted_that_is_not_there_or_not_whole(job):
    assert not publishing.adopt(job)
    finish(job)
    assert not publishing.adopt(job)  # it is not published
    published(job)
    (job.target / "metrics.csv").unlink()
    (job.work / "kept" / "predictions.csv").unlink()
    assert not publishing.adopt(job)
    published(job)
    for place in (job.target, job.work / "kept"):
        (place / "run.json").unlink()
        (place / "run.json").write_text("{")
    assert not publishing.adopt(job)


def test_nothing_is_adopted_that_is_another_run(job, tmp_path):
    published(job)
    (job.tokens / "train.jsonl").write_text("other tokens")
    other = make_job(tmp_path)
    assert not publishing.adopt(other)
    assert publishing.outdated(other)
    assert note_of(job.target) == "first"


def test_a_run_made_before_identities_were_written_is_not_adopted(job):
    published(job)
    for place in (job.target, job.work / "kept"):
        (place / "run.json").unlink()
        files.write_json(place / "run.json", {"note": "old"})
    assert not publishing.adopt(job)


def test_a_model_that_is_to_be_kept_must_be_there(tmp_path):
    job = make_job(tmp_path, keep_model=True)
    published(job)
    assert not publishing.adopt(job)
    finish(job)
    (job.work / "run" / "model").mkdir()
    publishing.publish(job)
    assert publishing.adopt(job)


@pytest.mark.parametrize("method", ["lora", "qlora"])
def test_a_run_with_an_adapter_is_whole_with_it_alone(tmp_path, method):
    job = make_job(tmp_path, method=method)
    published(job)
    assert not publishing.adopt(job)
    finish(job)
    files.write_text(job.work / "run" / "adapter" / "adapter_config.json", "{}")
    publishing.publish(job)
    assert publishing.adopt(job)
    remove_outputs(job)  # the adapter is none of them
    assert publishing.adopt(job)
    shutil.rmtree(job.target / "adapter")
    assert publishing.adopt(job)
    assert (job.target / "adapter" / "adapter_config.json").exists()


def test_a_run_that_is_forced_starts_from_nothing(job):
    published(job)
    files.write_text(job.work / "states" / "8.state", "state")
    publishing.ask_anew(job.work)
    assert not publishing.adopt(job)
    with claims.claim(job.work):
        publishing.begin_anew(job.work)
        assert [path.name for path in job.work.iterdir()] == ["owner.lock"]
        published(job, "second")
    assert publishing.adopt(job)
    assert note_of(job.target) == "second"


def test_where_there_are_no_hard_links_files_are_copied(job, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    published(job)
    assert not (job.work / "kept/run.json").samefile(job.target / "run.json")
    remove_outputs(job)
    assert publishing.adopt(job)
    assert content(job.target) == content(job.work / "kept") == CONTENT


# --- tidying up ---


def test_forgetting_leaves_no_folder(job, tmp_path):
    published(job)
    other = make_job(tmp_path, seed=1)
    published(other)
    publishing.forget(job.work)
    assert not job.work.exists()
    assert note_of(other.work / "kept") == "first"
    publishing.forget(other.work)
    assert not (tmp_path / "results/small/work").exists()
    assert content(job.target) == CONTENT


def test_what_a_killed_publisher_left_is_removed_and_what_a_living_one_has_is_not(job):
    published(job)
    files.write_text(job.work / "states" / "8.state", "state")
    files.write_text(job.work / "owner-1.json", "of a version before locks")
    with claims.claim(job.work):
        publishing.forget(job.work)
        assert content(job.work) == ["owner-1.json", "owner.lock", "states", "states/8.state"]
    publishing.forget(job.work)
    assert not job.work.exists()


def test_a_run_without_a_result_has_none(job):
    assert not publishing.has_result(job)


def test_a_run_without_a_work_folder_can_be_forgotten(tmp_path):
    publishing.forget(tmp_path / "work/x/y")
    assert not (tmp_path / "work").exists()


def test_a_copy_that_fails_leaves_nothing(job, monkeypatch):
    finish(job, "first")
    before = sorted(job.work.iterdir())

    def full(*_):
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(publishing, "_link", full)
    with pytest.raises(OSError, match="no space"):
        publishing._copy(job.work / "run", job.work)
    assert sorted(job.work.iterdir()) == before
