"""A run of a causal model that is stopped anywhere and started again ends as if it had never been stopped."""

import pytest
from builders import tiered
from builders_stops import NEVER, Stops, kill, outcome, record, watched  # noqa: F401 - a fixture
from builders_training import make_causal_job, make_causal_run

from seedbed.training.transformers import causal

ALWAYS = {"interval": 0, "max_share": 1}


@pytest.fixture
def stops(monkeypatch):
    return Stops(monkeypatch, causal.train)


def weights(job) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (job.target / "adapter").glob("*")}


@pytest.mark.parametrize("method", tiered(["full", "lora", "qlora", "none"], "lora"))
def test_a_run_asked_to_leave_anywhere_ends_the_same(tmp_path, stops, method):
    """It is asked at every fifth opportunity, then once more at the first of the process that goes on."""
    run = make_causal_run(method)
    whole = make_causal_job(tmp_path, run, "whole", checkpointing=NEVER)
    assert not stops.run(whole)
    expected, adapter, opportunities = outcome(whole), weights(whole), stops.count
    assert bool(adapter) == (method in ("lora", "qlora"))
    assert opportunities > (20 if method != "none" else 8)
    for at in range(1, opportunities + 1, 5):
        job = make_causal_job(tmp_path, run, f"stop{at}", checkpointing=NEVER)
        assert stops.run(job, at)
        assert stops.run(job, 1)
        assert not job.target.exists()
        assert not stops.run(job)
        assert outcome(job) == expected, f"stopped at opportunity {at}"
        assert weights(job) == adapter
        assert [stop["cause"] for stop in record(job)["resumed"]] == ["SIGTERM"] * 2


def test_a_run_killed_again_and_again_ends_the_same(tmp_path, stops):
    run = make_causal_run("lora")
    whole = make_causal_job(tmp_path, run, "whole", checkpointing=NEVER)
    stops.run(whole)
    job = make_causal_job(tmp_path, run, "killed", checkpointing=ALWAYS)
    kills = 0
    while stops.run(job, 12, kill):
        kills += 1
        assert kills < 20, "the run does not get on"
    assert kills > 1
    assert outcome(job) == outcome(whole)
    assert weights(job) == weights(whole)


def test_training_states_of_an_adapter_hold_the_adapter_alone(tmp_path, stops):
    sizes = {}
    for method in ("full", "lora", "qlora"):
        job = make_causal_job(tmp_path, make_causal_run(method), method, checkpointing=NEVER)
        assert stops.run(job, 12)  # in the second epoch
        (state,) = (job.work / "states").glob("*.state")
        sizes[method] = state.stat().st_size
    # 512 of the model's 13,024 numbers are trained: four times, with the selected ones and Adam's moments
    assert sizes["full"] > 4 * 4 * 13_024
    assert sizes["lora"] < sizes["full"] / 4
    assert sizes["qlora"] < sizes["full"] / 4
