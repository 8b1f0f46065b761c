"""The workflow itself is stopped or killed; the next start needs no hand work."""

import os
import shutil
import signal

import pytest
from harness import NEVER, PATIENCE, RUNS, assert_whole, patiently

HOLD = {"at": "update", "number": 17, "do": "hold"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signal_name", "frameworks"),
    [("SIGINT", [*RUNS]), ("SIGHUP", ["transformers"])],
    ids=["SIGINT", "SIGHUP"],
)
def test_a_stop_from_the_terminal_loses_no_update(prepared, reference, signal_name, frameworks):
    """Ctrl-C, and a terminal that is closed: all processes get the signal."""
    prepared.config |= {"training_checkpoints": NEVER}
    for framework in frameworks:
        prepared.plan(framework, HOLD)
    snakemake = prepared.start(*frameworks)
    prepared.wait_for("hold", snakemake, len(frameworks))
    os.killpg(snakemake.pid, getattr(signal, signal_name))
    out, _ = snakemake.communicate(timeout=PATIENCE)
    assert snakemake.returncode != 0, out
    prepared.wait_until_all_have_left()
    for framework in frameworks:
        assert prepared.states(framework), out + prepared.logs()
    prepared.run(*frameworks)
    for framework in frameworks:
        assert prepared.record(framework)["resumed"] == [{"step": 17, "cause": signal_name}]
    assert_whole(prepared, reference, *frameworks)


def test_runs_outlive_a_killed_snakemake_and_are_not_started_twice(prepared, reference):
    """kill -9 of Snakemake alone: its runs go on; the next workflow waits and takes their results."""
    for framework in RUNS:
        prepared.plan(framework, HOLD)
    first = prepared.start()
    prepared.wait_for("hold", first, len(RUNS))
    os.kill(first.pid, signal.SIGKILL)
    first.wait(timeout=PATIENCE)
    twins = set(prepared.processes())
    second = prepared.start()
    prepared.wait_for_logs(RUNS, "waiting", second)
    assert twins <= set(prepared.processes())
    prepared.go_on()
    out, _ = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0, out + prepared.logs()
    assert f"process {first.pid} on host" in out
    assert "lock was removed" in out
    assert len(prepared.journal("begin")) == len(RUNS)
    prepared.wait_until_all_have_left()
    assert_whole(prepared, reference)


@pytest.mark.slow
def test_after_a_power_cut_the_same_command_goes_on(prepared, reference):
    """Everything is killed at once, with a checkpoint half-written; no --unlock, no --rerun-incomplete."""
    for framework in RUNS:
        prepared.plan(framework, {"at": "writing", "number": 12, "do": "hold"})
    snakemake = prepared.start()
    prepared.wait_for("hold", snakemake, len(RUNS))
    prepared.kill_everything()
    snakemake.communicate(timeout=PATIENCE)
    for framework in RUNS:
        assert list((prepared.work_folder(framework) / "states").glob("*.part"))
    out = prepared.run()
    assert "lock" in out  # it says that it removed the dead workflow's lock
    assert prepared.begun() == [0, 0, 11, 11]
    assert_whole(prepared, reference)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [{"batches": {"runs": 2}}, {"fused_seeds": True}], ids=["batch", "fused"])
def test_a_batch_outlives_a_killed_snakemake_and_its_runs_are_adopted(prepared, mode):
    """kill -9 of Snakemake alone: the batch ends by itself, and Snakemake takes its file for incomplete."""
    grid = {"frameworks": ["transformers"], "inits": ["random"], "seeds": [0, 1]}
    prepared.config |= mode | {"grid": prepared.config["grid"] | grid, "training_checkpoints": NEVER}
    experiment = prepared.results / "small"
    with open(prepared.folder / "said", "w") as said:
        first = prepared.popen(prepared.command()[: -len(RUNS) - 1], stdout=said)
        for _ in patiently(first):
            if list(experiment.glob("work/*/*/*/*/*/*/owner.lock")):
                break
        first.kill()
        first.wait(timeout=PATIENCE)
        prepared.wait_until_all_have_left()
        assert list(experiment.glob("work/batches/*/*/*/000.json"))
        kept = {path.parts[-3]: path.read_bytes() for path in experiment.glob("work/**/kept/run.json")}
        assert sorted(kept) == ["seed0", "seed1"]
        second = prepared.popen(prepared.command()[: -len(RUNS) - 1], stdout=said)
        assert second.wait(timeout=PATIENCE) == 0, (prepared.folder / "said").read_text()[-8000:]
    assert {path.parts[-2]: path.read_bytes() for path in experiment.glob("runs/**/run.json")} == kept
    assert (experiment / "report.html").exists()
    assert not (experiment / "work").exists()
    # a run that is lost afterwards is planned again, also where nothing else is to be done
    shutil.rmtree(next(experiment.glob("runs/*/*/*/*/*/seed1")))
    planned = prepared.snakemake("--dry-run", config=prepared.config)
    assert "finetune_transformers_batch" in planned.stdout
