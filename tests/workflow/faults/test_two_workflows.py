"""Two workflows at once on one results folder."""

from harness import PATIENCE, RUNS, assert_whole, copy

HOLD = {"at": "update", "number": 9, "do": "hold"}


def test_a_second_workflow_in_the_same_directory_is_told_of_the_first(laboratory, reference):
    """It stops before it touches anything, and names the process that is at work."""
    laboratory.plan("transformers", HOLD)
    first = laboratory.start("transformers")
    laboratory.wait_for("hold", first)
    second = laboratory.start("transformers")
    out, _ = second.communicate(timeout=PATIENCE)
    assert second.returncode != 0
    assert str(first.pid) in out, out
    laboratory.go_on()
    out, _ = first.communicate(timeout=PATIENCE)
    assert first.returncode == 0, out
    assert len(laboratory.journal("begin")) == 1
    assert_whole(laboratory, reference, "transformers")


def test_workflows_in_two_directories_share_the_work(made, laboratory, reference, tmp_path):
    """A run that one of them trains is waited for and taken by the other."""
    other = copy(made[0], tmp_path / "other", results="../work/results")
    other.results, other.faults = laboratory.results, laboratory.faults  # one journal, one plan
    for framework in RUNS:
        laboratory.plan(framework, HOLD)
    first = laboratory.start()
    laboratory.wait_for("hold", first, len(RUNS))
    second = other.start()
    laboratory.wait_for_logs(RUNS, "waiting", second)
    laboratory.go_on()
    for process in (first, second):
        out, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, out + laboratory.logs()
    assert len(laboratory.journal("begin")) == len(RUNS)
    assert_whole(laboratory, reference)
