"""Runs that Slurm interrupts, or whose workflow is killed, lose nothing; each has the GPU it asked for."""

import os
import signal
import subprocess

from conftest import device_of
from harness import NEVER, RUNS, assert_whole, patiently

UPDATE = 20
HOLD = {"at": "update", "number": UPDATE, "do": "hold"}


def start_and_hold(prepared, framework: str) -> tuple[subprocess.Popen, str, int]:
    """Start one run and wait until it holds: (Snakemake, the run's Slurm job, its process)."""
    prepared.plan(framework, HOLD)
    snakemake = prepared.start(framework)
    (event,) = prepared.wait_for("hold", snakemake)
    (job,) = prepared.cluster.jobs("RUNNING")
    return snakemake, job, event["pid"]


def test_runs_at_the_same_time_have_a_gpu_each(prepared, reference):
    for framework in RUNS:
        prepared.plan(framework, HOLD)
    snakemake = prepared.start()
    devices = [device_of(event["pid"]) for event in prepared.wait_for("hold", snakemake, len(RUNS))]
    prepared.go_on()
    prepared.finish(snakemake)
    assert len(set(devices)) == len(RUNS)
    assert all(device in ("0", "1") for _, device in devices)
    assert_whole(prepared, reference)


def test_a_cancelled_job_is_submitted_again_and_goes_on(prepared, reference):
    """scancel: SIGTERM, and SIGKILL half a minute later; the run writes a checkpoint in between."""
    prepared.config |= {"training_checkpoints": NEVER}
    snakemake, job, _ = start_and_hold(prepared, "fairseq")
    prepared.cluster.run("scancel", job)
    prepared.finish(snakemake)
    assert prepared.record("fairseq")["resumed"] == [{"step": UPDATE, "cause": "SIGTERM"}]
    first, second = prepared.submitted("finetune_fairseq")
    assert (first["State"].split()[0], second["State"]) == ("CANCELLED", "COMPLETED")
    # the second attempt asks for more
    assert (first["ReqMem"], second["ReqMem"]) == ("3000M", "6000M")
    assert (first["Timelimit"], second["Timelimit"]) == ("01:00:00", "02:00:00")
    assert_whole(prepared, reference, "fairseq")


def test_a_run_is_told_before_its_time_is_over(prepared, reference):
    """Two minutes instead of sixty, told 20 s before; SIGTERM comes from Slurm as the profile asks for it."""
    prepared.config |= {"training_checkpoints": NEVER}
    shorter = {"runtime": "2 * attempt", "slurm_extra": "'--signal=TERM@20'"}
    prepared.change_profile("finetune_transformers", **shorter, gpu_model="a100")
    snakemake, *_ = start_and_hold(prepared, "transformers")
    prepared.finish(snakemake)
    assert prepared.record("transformers")["resumed"] == [{"step": UPDATE, "cause": "SIGTERM"}]
    first, second = prepared.submitted("finetune_transformers")
    assert (first["State"], second["State"]) == ("FAILED", "COMPLETED")  # it left before Slurm ended it
    assert (first["Timelimit"], second["Timelimit"]) == ("00:02:00", "00:04:00")
    assert_whole(prepared, reference, "transformers")


def test_a_preempted_job_goes_on_when_slurm_starts_it_again(prepared, reference):
    """Slurm puts it back into its queue: Snakemake submits nothing."""
    snakemake, job, _ = start_and_hold(prepared, "fairseq")
    urgent = ("--partition=urgent", "--nodes=2", "--exclusive", "--mem=0", "--output=/dev/null")
    prepared.cluster.run("sbatch", *urgent, "--wrap=true")
    out = prepared.finish(snakemake)
    assert [stop["step"] for stop in prepared.record("fairseq")["resumed"]] == [UPDATE], out
    rows = prepared.submitted("finetune_fairseq")
    assert {row["JobIDRaw"] for row in rows} == {job}
    assert [row["State"] for row in rows] == ["PREEMPTED", "COMPLETED"]
    assert_whole(prepared, reference, "fairseq")


def test_a_run_goes_on_after_its_node_has_failed(prepared, reference):
    """The node and all of its processes are gone without a word; Slurm starts the job on the other one."""
    snakemake, job, process = start_and_hold(prepared, "transformers")
    node, _ = device_of(process)
    try:
        prepared.cluster.kill_node(node)
        prepared.cluster.run("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
        prepared.finish(snakemake)
    finally:
        prepared.cluster.start_node(node)
    assert prepared.resumed_at("transformers") == [UPDATE - 1]  # the newest that was written
    rows = prepared.submitted("finetune_transformers")
    assert [row["State"] for row in rows] == ["NODE_FAIL", "COMPLETED"]
    assert {row["JobIDRaw"] for row in rows} == {job}
    assert rows[0]["NodeList"] == node != rows[1]["NodeList"]
    assert_whole(prepared, reference, "transformers")


def test_a_restart_after_kill_9_waits_for_the_jobs_that_go_on(prepared, reference):
    """Snakemake is gone and its job is not: the next one submits another, which waits for the result."""
    prepared.change_profile("finetune_fairseq", gpu=None, gres="'gpu:a100:1'")  # the other way to ask
    first, job, process = start_and_hold(prepared, "fairseq")
    os.kill(first.pid, signal.SIGKILL)
    first.wait(timeout=60)
    second = prepared.start("fairseq")
    prepared.wait_for_logs(["fairseq"], "waiting for its result", second)
    assert len(prepared.cluster.jobs("RUNNING")) == 2
    prepared.go_on()
    prepared.finish(second)
    assert [event["pid"] for event in prepared.journal("begin")] == [process]
    rows = prepared.submitted("finetune_fairseq")
    assert len(rows) == 2
    assert job in {row["JobIDRaw"] for row in rows}
    assert all("gres/gpu=1" in row["AllocTRES"] for row in rows)
    prepared.wait_until_all_have_left()
    assert_whole(prepared, reference, "fairseq")


def test_runs_of_a_batch_share_an_allocation_and_its_gpu(prepared, reference):
    """Both inits of fairseq: one job, two processes at once, one GPU."""
    prepared.config |= {"batches": {"runs": 2, "at_once": 2}}
    snakemake = prepared.start("fairseq")
    for _ in patiently(snakemake):
        workers = [each for each in prepared.processes() if is_worker(each)]
        if len(workers) == 2:
            break
    devices = {device_of(worker) for worker in workers}
    prepared.finish(snakemake)
    (batch,) = prepared.submitted("finetune_fairseq_batch")
    assert len(devices) == 1
    assert "gres/gpu=1" in batch["AllocTRES"]
    assert prepared.submitted("finetune_fairseq") == []  # putting a run into its place takes no job
    assert (prepared.run_folder("fairseq") / "predictions.csv").read_bytes() == (
        reference.run_folder("fairseq") / "predictions.csv"
    ).read_bytes()


def is_worker(process: int) -> bool:
    """Whether a process is one that a batch has started."""
    try:
        with open(f"/proc/{process}/cmdline", "rb") as stream:
            return b"seedbed.running.batches" in stream.read()
    except OSError:
        return False
