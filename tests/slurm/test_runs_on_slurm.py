"""Runs that Slurm interrupts, or whose workflow is killed, lose nothing; each has the GPU it asked for."""

import os
import signal
import subprocess

from conftest import device_of
from harness import NEVER, RUNS, assert_whole, patiently

UPDATE = 20
HOLD = {"at": "update", "number": UPDATE, "do": "hold"}


def start_and_hold(laboratory, framework: str) -> tuple[subprocess.Popen, str, int]:
    """Start one run and wait until it holds: (Snakemake, the run's Slurm job, its process)."""
    laboratory.plan(framework, HOLD)
    snakemake = laboratory.start(framework)
    (event,) = laboratory.wait_for("hold", snakemake)
    (job,) = laboratory.cluster.jobs("RUNNING")
    return snakemake, job, event["pid"]


def test_runs_at_the_same_time_have_a_gpu_each(laboratory, reference):
    for framework in RUNS:
        laboratory.plan(framework, HOLD)
    snakemake = laboratory.start()
    devices = [device_of(event["pid"]) for event in laboratory.wait_for("hold", snakemake, len(RUNS))]
    laboratory.go_on()
    laboratory.finish(snakemake)
    assert len(set(devices)) == len(RUNS)
    assert all(device in ("0", "1") for _, device in devices)
    assert_whole(laboratory, reference)


def test_a_cancelled_job_is_submitted_again_and_goes_on(laboratory, reference):
    """scancel: SIGTERM, and SIGKILL half a minute later; the run writes a checkpoint in between."""
    laboratory.config |= {"training_checkpoints": NEVER}
    snakemake, job, _ = start_and_hold(laboratory, "fairseq")
    laboratory.cluster.run("scancel", job)
    laboratory.finish(snakemake)
    assert laboratory.record("fairseq")["resumed"] == [{"step": UPDATE, "cause": "SIGTERM"}]
    first, second = laboratory.submitted("finetune_fairseq")
    assert (first["State"].split()[0], second["State"]) == ("CANCELLED", "COMPLETED")
    # the second attempt asks for more
    assert (first["ReqMem"], second["ReqMem"]) == ("3000M", "6000M")
    assert (first["Timelimit"], second["Timelimit"]) == ("01:00:00", "02:00:00")
    assert_whole(laboratory, reference, "fairseq")


def test_a_run_is_told_before_its_time_is_over(laboratory, reference):
    """Two minutes instead of sixty, told 20 s before; SIGTERM comes from Slurm as the profile asks for it."""
    laboratory.config |= {"training_checkpoints": NEVER}
    shorter = {"runtime": "2 * attempt", "slurm_extra": "'--signal=TERM@20'"}
    laboratory.change_profile("finetune_transformers", **shorter, gpu_model="a100")
    snakemake, *_ = start_and_hold(laboratory, "transformers")
    laboratory.finish(snakemake)
    assert laboratory.record("transformers")["resumed"] == [{"step": UPDATE, "cause": "SIGTERM"}]
    first, second = laboratory.submitted("finetune_transformers")
    assert (first["State"], second["State"]) == ("FAILED", "COMPLETED")  # it left before Slurm ended it
    assert (first["Timelimit"], second["Timelimit"]) == ("00:02:00", "00:04:00")
    assert_whole(laboratory, reference, "transformers")


def test_a_preempted_job_goes_on_when_slurm_starts_it_again(laboratory, reference):
    """Slurm puts it back into its queue: Snakemake submits nothing."""
    snakemake, job, _ = start_and_hold(laboratory, "fairseq")
    urgent = ("--partition=urgent", "--nodes=2", "--exclusive", "--mem=0", "--output=/dev/null")
    laboratory.cluster.run("sbatch", *urgent, "--wrap=true")
    out = laboratory.finish(snakemake)
    assert [stop["step"] for stop in laboratory.record("fairseq")["resumed"]] == [UPDATE], out
    rows = laboratory.submitted("finetune_fairseq")
    assert {row["JobIDRaw"] for row in rows} == {job}
    assert [row["State"] for row in rows] == ["PREEMPTED", "COMPLETED"]
    assert_whole(laboratory, reference, "fairseq")


def test_a_run_goes_on_after_its_node_has_failed(laboratory, reference):
    """The node and all of its processes are gone without a word; Slurm starts the job on the other one."""
    snakemake, job, process = start_and_hold(laboratory, "transformers")
    node, _ = device_of(process)
    try:
        laboratory.cluster.kill_node(node)
        laboratory.cluster.run("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
        laboratory.finish(snakemake)
    finally:
        laboratory.cluster.start_node(node)
    assert laboratory.resumed_at("transformers") == [UPDATE - 1]  # the newest that was written
    rows = laboratory.submitted("finetune_transformers")
    assert [row["State"] for row in rows] == ["NODE_FAIL", "COMPLETED"]
    assert {row["JobIDRaw"] for row in rows} == {job}
    assert rows[0]["NodeList"] == node != rows[1]["NodeList"]
    assert_whole(laboratory, reference, "transformers")


def test_a_restart_after_kill_9_waits_for_the_jobs_that_go_on(laboratory, reference):
    """Snakemake is gone and its job is not: the next one submits another, which waits for the result."""
    laboratory.change_profile("finetune_fairseq", gpu=None, gres="'gpu:a100:1'")  # the other way to ask
    first, job, process = start_and_hold(laboratory, "fairseq")
    os.kill(first.pid, signal.SIGKILL)
    first.wait(timeout=60)
    second = laboratory.start("fairseq")
    laboratory.wait_for_logs(["fairseq"], "waiting for its result", second)
    assert len(laboratory.cluster.jobs("RUNNING")) == 2
    laboratory.go_on()
    laboratory.finish(second)
    assert [event["pid"] for event in laboratory.journal("begin")] == [process]
    rows = laboratory.submitted("finetune_fairseq")
    assert len(rows) == 2
    assert job in {row["JobIDRaw"] for row in rows}
    assert all("gres/gpu=1" in row["AllocTRES"] for row in rows)
    laboratory.wait_until_all_have_left()
    assert_whole(laboratory, reference, "fairseq")


def test_runs_of_a_batch_share_an_allocation_and_its_gpu(laboratory, reference):
    """Both inits of fairseq: one job, two processes at once, one GPU."""
    laboratory.config |= {"batches": {"runs": 2, "at_once": 2}}
    snakemake = laboratory.start("fairseq")
    for _ in patiently(snakemake):
        workers = [each for each in laboratory.processes() if is_worker(each)]
        if len(workers) == 2:
            break
    devices = {device_of(worker) for worker in workers}
    laboratory.finish(snakemake)
    (batch,) = laboratory.submitted("finetune_fairseq_batch")
    assert len(devices) == 1
    assert "gres/gpu=1" in batch["AllocTRES"]
    assert laboratory.submitted("finetune_fairseq") == []  # putting a run into its place takes no job
    assert (laboratory.run_folder("fairseq") / "predictions.csv").read_bytes() == (
        reference.run_folder("fairseq") / "predictions.csv"
    ).read_bytes()


def is_worker(process: int) -> bool:
    """Whether a process is one that a batch has started."""
    try:
        with open(f"/proc/{process}/cmdline", "rb") as stream:
            return b"seedbed.running.batches" in stream.read()
    except OSError:
        return False
