"""A Transformers run that is stopped anywhere and started again ends as if it had never been stopped."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from builders import tiered
from builders_stops import ALWAYS, NEVER, Killed, Stops, kill, outcome, record, wait_for, watched  # noqa: F401 - a fixture
from builders_training import make_job, make_run

from seedbed.training.transformers import classifier

SCRIPT = """
import sys
sys.path[:0] = {paths!r}
from pathlib import Path
from builders_training import make_job, make_run
from seedbed.core import interruption
from seedbed.training.transformers import classifier
interruption.watch()
run = make_run("transformers", epochs={epochs})
job = make_job(Path({folder!r}), run, checkpointing={pace!r}, identity="a")
classifier.train([job])
"""
# the first kind selects its first epoch, the second has a loss that is not finite from the first epoch on
KINDS = {
    "curves": {
        "learning_rate": 0.03,
        "init_seed": 0,
        "data_seed": 0,
        "evaluation": {"batch_size": 3, "test_curves": True},
    },
    "diverged": {"learning_rate": 1e30, "init": "pretrained"},
}


@pytest.fixture
def stops(monkeypatch):
    return Stops(monkeypatch, classifier.train)


@pytest.mark.parametrize("kind", tiered(KINDS, "diverged"))
def test_a_run_asked_to_leave_anywhere_ends_the_same(tmp_path, stops, kind):
    """It is asked at every opportunity, then once more at the first of the process that goes on."""
    run = make_run("transformers", **KINDS[kind])
    whole = make_job(tmp_path, run, "whole", checkpointing=NEVER)
    assert not stops.run(whole)
    expected, opportunities = outcome(whole), stops.count
    assert opportunities > 10 or kind == "diverged"
    for at in range(1, opportunities + 1):
        job = make_job(tmp_path, run, f"stop{at}", checkpointing=NEVER)
        assert stops.run(job, at)
        assert stops.run(job, 1)
        assert not job.target.exists()
        assert not stops.run(job)
        assert outcome(job) == expected, f"stopped at opportunity {at}"
        assert [stop["cause"] for stop in record(job)["resumed"]] == ["SIGTERM"] * 2


def test_what_the_kinds_of_runs_are_for(tmp_path, stops):
    records = {}
    for kind, settings in KINDS.items():
        job = make_job(tmp_path, make_run("transformers", **settings), kind)
        stops.run(job)
        records[kind] = record(job)
    assert records["curves"]["selected"]["epoch"] == 1
    assert records["diverged"]["diverged"]
    assert records["diverged"]["updates"] < 10
    assert records["curves"]["resumed"] == []


@pytest.mark.parametrize("every", tiered([8, 11], 8))
def test_a_run_killed_again_and_again_ends_the_same(tmp_path, stops, every):
    """Each process makes `every` checkpoints and is killed before the next, wherever that falls.

    Eight are enough to predict both splits, which is always begun anew.
    """
    run = make_run("transformers", **KINDS["curves"])
    whole = make_job(tmp_path, run, "whole", checkpointing=NEVER)
    stops.run(whole)
    job = make_job(tmp_path, run, "killed", checkpointing=ALWAYS)
    kills = 0
    while stops.run(job, every + 1, kill):
        kills += 1
        assert kills < 20, "the run does not get on"
    assert kills > 2
    assert outcome(job) == outcome(whole)
    resumed = record(job)["resumed"]
    assert [stop["cause"] for stop in resumed] == [None] * kills
    assert record(job)["training_checkpoints"]["written"] >= kills


def test_a_run_without_a_checkpoint_starts_anew(tmp_path, stops):
    run = make_run("transformers")
    whole, job = (make_job(tmp_path, run, name, checkpointing=NEVER) for name in ("whole", "killed"))
    stops.run(whole)
    assert stops.run(job, 4, kill)
    assert not stops.run(job)
    assert outcome(job) == outcome(whole)
    assert record(job)["resumed"] == []


def test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one(tmp_path, stops, caplog):
    run = make_run("transformers")
    whole, job = (make_job(tmp_path, run, name, checkpointing=ALWAYS) for name in ("whole", "killed"))
    stops.run(whole)
    assert stops.run(job, 5, kill)
    newest = sorted((job.work / "states").glob("*.state"))[-1]
    newest.write_bytes(newest.read_bytes()[:-100])
    assert not stops.run(job)
    assert "using the one before" in caplog.text
    assert outcome(job) == outcome(whole)
    assert [stop["step"] for stop in record(job)["resumed"]] == [3]


def test_a_checkpoint_of_other_settings_is_not_used(tmp_path, stops):
    run = make_run("transformers")
    whole = make_job(tmp_path, run, "whole", checkpointing=ALWAYS, identity="new")
    stops.run(whole)
    assert stops.run(make_job(tmp_path, run, "run", checkpointing=ALWAYS, identity="old"), 5, kill)
    job = make_job(tmp_path, run, "run", checkpointing=ALWAYS, identity="new")
    assert not stops.run(job)
    assert outcome(job) == outcome(whole)
    assert record(job)["resumed"] == []


def test_event_files_of_a_resumed_run_hold_every_epoch_once(tmp_path, stops):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    job = make_job(tmp_path, make_run("transformers"), checkpointing=ALWAYS)
    assert stops.run(job, 12, kill)
    assert not stops.run(job)
    (folder,) = (job.target / "tensorboard",)
    assert len(list(folder.iterdir())) == 1
    events = EventAccumulator(str(folder)).Reload()
    assert [event.step for event in events.Scalars("validation/loss")] == [5, 10]


def start(folder: Path, epochs: int, pace: dict) -> subprocess.Popen:
    """A process that trains the job "run" of `folder`."""
    root = Path(__file__).parents[2]
    paths = [str(root.parent / "scripts"), str(root)]
    text = SCRIPT.format(paths=paths, folder=str(folder), epochs=epochs, pace=pace)
    return subprocess.Popen([sys.executable, "-c", text], cwd=root.parent)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_gets_a_signal(tmp_path, stops, number):
    """SIGKILL: its newest checkpoint counts. SIGTERM: it writes one and leaves with 128 + 15."""
    epochs = 80
    run = make_run("transformers", epochs=epochs)
    job = make_job(tmp_path, run, checkpointing=NEVER, identity="a")
    states = job.work / "states"
    process = start(tmp_path, epochs, ALWAYS if number == signal.SIGKILL else NEVER)
    try:
        seen = (states, "*.state") if number == signal.SIGKILL else (job.work / "run", "metrics.csv")
        wait_for(process, lambda: any(seen[0].glob(seen[1])))
        process.send_signal(number)
        code = process.wait(300)
    finally:
        process.kill()
        process.wait()
    assert code == (-signal.SIGKILL if number == signal.SIGKILL else 143)
    assert not job.target.exists()
    assert any(states.glob("*.state"))
    assert not stops.run(job)
    whole = make_job(tmp_path, run, "whole", checkpointing=NEVER)
    stops.run(whole)
    assert outcome(job) == outcome(whole)
    (resumed,) = record(job)["resumed"]
    assert resumed["cause"] == (None if number == signal.SIGKILL else "SIGTERM")
