"""What surrounds a run fails: memory, the disk, the clock, the GPU."""

import subprocess
import uuid
from pathlib import Path

import pytest
from harness import PATIENCE, RUNS, assert_whole

MEMORY = Path("/sys/fs/cgroup/memory")
LIMIT = 2**30  # bytes that a run may take after it was put into the group


@pytest.fixture
def memory_group():
    """A control group of the kernel whose processes may not take more memory than LIMIT."""
    group = MEMORY / f"seedbed-{uuid.uuid4().hex[:8]}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(LIMIT))
    except OSError as error:
        pytest.skip(f"no memory control group can be made here: {error}")
    yield group
    group.rmdir()


def test_a_run_that_is_killed_for_its_memory_goes_on(laboratory, reference, memory_group):
    """The kernel kills it; a retry goes on from the newest checkpoint."""
    fault = {"at": "update", "number": 21, "do": "take memory", "group": str(memory_group)}
    laboratory.plan("fairseq", fault)
    laboratory.run("fairseq", options=("--retries", "1"))
    assert laboratory.begun() == [0, 20]
    assert_whole(laboratory, reference, "fairseq")


def in_own_mounts(laboratory, framework: str, script: str) -> str:
    """Run a script in a mount namespace; `$@` is Snakemake's command, `$results` the results folder."""
    try:
        subprocess.run(["unshare", "--mount", "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting needs root here")
    prefix = ("unshare", "--mount", "bash", "-euc", f"results=$PWD/results\n{script}", "script")
    process = laboratory.start(framework, prefix=prefix)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, out + laboratory.logs()
    return out


SMALL_DISK = """
mkdir -p $results/small
mount -t tmpfs -o size=4m seedbed $results/small
"""
KEEP = """
cp -a $results/small kept-aside
umount $results/small
rmdir $results/small
mv kept-aside $results/small
"""


def test_a_disk_too_full_for_checkpoints_does_not_stop_a_run(laboratory, reference):
    """The log warns; the run ends without a new one."""
    fill = "head -c 4M /dev/zero > results/small/filler; true"
    free = "truncate -s -100K results/small/filler"
    laboratory.plan(
        "transformers", {"at": "update", "number": 8, "do": "shell", "command": f"{fill}; {free}"}
    )
    in_own_mounts(laboratory, "transformers", f'{SMALL_DISK}"$@"\nrm $results/small/filler{KEEP}')
    assert "no training checkpoint at update 8" in laboratory.log("transformers")
    assert_whole(laboratory, reference, "transformers")


def test_a_disk_without_any_space_loses_nothing(laboratory, reference):
    """The result cannot be written, the run fails; with space again it goes on from its newest checkpoint."""
    fill = "head -c 4M /dev/zero > results/small/filler; true"
    laboratory.plan("fairseq", {"at": "update", "number": 30, "do": "shell", "command": fill})
    script = f'{SMALL_DISK}! "$@" || exit 9\nrm $results/small/filler\n"$@"{KEEP}'
    out = in_own_mounts(laboratory, "fairseq", script)
    assert "No space left on device" in out
    assert laboratory.begun() == [0, 29]
    assert_whole(laboratory, reference, "fairseq")


def test_a_results_folder_that_is_read_only_says_so_and_stays_as_it_is(laboratory, reference):
    """Before a run, and in the middle of one, as when a server turns a file system read-only."""
    before = sorted(path for path in laboratory.results.rglob("*"))
    # on top: what is open for writing stays so
    again = f"mount --bind {laboratory.results} {laboratory.results}; "
    again += f"mount -o remount,bind,ro {laboratory.results}"
    laboratory.plan("transformers", {"at": "update", "number": 26, "do": "shell", "command": again})
    out = in_own_mounts(
        laboratory,
        "transformers",
        f"""
{again}
! "$@" || exit 9
find $results | sort > seen
echo NOW WRITABLE
umount $results
! "$@" || exit 9
umount $results
"$@"
""",
    )
    seen = (laboratory.folder / "seen").read_text(encoding="utf-8").splitlines()
    assert seen == sorted([str(laboratory.results), *map(str, before)])
    for part in out.split("NOW WRITABLE")[:2]:
        assert "Read-only file system" in part
    assert laboratory.begun() == [0, 25]
    assert_whole(laboratory, reference, "transformers")


@pytest.mark.parametrize(("framework", "seconds"), [("fairseq", -3 * 86400), ("transformers", 86400 * 3650)])
def test_a_clock_that_jumps_changes_nothing(laboratory, reference, framework, seconds):
    """In the middle of a run, and again between two processes, with files that claim to be of the future."""
    future = f"find results/small/work/{RUNS[framework]} -exec touch -d 2090-01-01 {{}} +"
    kill = {"at": "update", "number": 15, "do": "kill"}
    laboratory.plan(
        framework,
        {"at": "update", "number": 7, "do": "jump", "seconds": seconds, "then": kill},
        {"before": future, "at": "update", "number": 25, "do": "jump", "seconds": -seconds},
    )
    laboratory.run(framework, options=("--retries", "1"))
    assert laboratory.begun() == [0, 14]
    seconds_taken = laboratory.record(framework)["seconds"]
    assert all(0 <= value < PATIENCE for value in seconds_taken.values()), seconds_taken
    assert_whole(laboratory, reference, framework)


def test_a_gpu_that_runs_out_of_memory_says_what_to_change(laboratory, reference):
    """There is no GPU here: the error is PyTorch's, raised in its place."""
    laboratory.plan("fairseq", {"at": "update", "number": 12, "do": "run out of GPU memory"})
    process = laboratory.start("fairseq")
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    assert "the GPU has not enough memory for this run" in out
    for what_to_change in ("recipes.quick: batch_size 3", "gpus.runs_per_gpu", "batches.at_once"):
        assert what_to_change in out, out
    laboratory.run("fairseq")
    assert laboratory.resumed_at("fairseq") == [11]
    assert_whole(laboratory, reference, "fairseq")
