"""Two workflows at once on one results folder."""

import pytest
from harness import PATIENCE, RUNS, assert_whole, copy

HOLD = {"at": "update", "number": 9, "do": "hold"}


@pytest.mark.parametrize("backend", ["file", pytest.param("db", marks=pytest.mark.slow)])
def test_a_second_workflow_in_the_same_directory_is_told_of_the_first(prepared, reference, backend):
    """It stops before it touches anything, and names the process that is at work."""
    options = ("--persistence-backend", backend)
    prepared.plan("transformers", HOLD)
    first = prepared.start("transformers", options=options)
    prepared.wait_for("hold", first)
    second = prepared.start("transformers", options=options)
    out, _ = second.communicate(timeout=PATIENCE)
    assert second.returncode != 0
    assert f"Another workflow works in this directory: process {first.pid} on host" in out, out
    assert "Directory cannot be locked" in out
    prepared.go_on()
    out, _ = first.communicate(timeout=PATIENCE)
    assert first.returncode == 0, out
    assert len(prepared.journal("begin")) == 1
    assert_whole(prepared, reference, "transformers")


@pytest.mark.slow
def test_workflows_in_two_directories_share_the_work(stock, prepared, reference, tmp_path):
    """A run that one of them trains is waited for and taken by the other."""
    other = copy(stock.prepared(), tmp_path / "other", results="../work/results")
    other.results, other.faults = prepared.results, prepared.faults  # one journal, one plan
    for framework in RUNS:
        prepared.plan(framework, HOLD)
    first = prepared.start()
    prepared.wait_for("hold", first, len(RUNS))
    second = other.start()
    prepared.wait_for_logs(RUNS, "waiting", second)
    owners = {event["framework"]: event["pid"] for event in prepared.journal("begin")}
    prepared.go_on()
    outs = [process.communicate(timeout=PATIENCE)[0] for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], "\n".join(outs) + prepared.logs()
    assert f"Another workflow works on ../work/results/small: process {first.pid} on host" in outs[1]
    assert f"in {prepared.folder}" in outs[1]
    for framework in RUNS:
        assert f"process {owners[framework]} on host" in prepared.log(framework)
        assert "adopted:" in prepared.log(framework)
    assert len(prepared.journal("begin")) == len(RUNS)
    assert_whole(prepared, reference)
