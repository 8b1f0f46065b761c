"""What surrounds a run fails: memory, the disk, the clock, the GPU."""

import subprocess
import uuid
from pathlib import Path

import pytest
from harness import PATIENCE, RUNS, assert_whole

pytestmark = pytest.mark.slow
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


def test_a_run_that_is_killed_for_its_memory_goes_on(prepared, reference, memory_group):
    """The kernel kills it; a retry goes on from the newest checkpoint."""
    fault = {"at": "update", "number": 21, "do": "take memory", "group": str(memory_group)}
    prepared.plan("fairseq", fault)
    prepared.run("fairseq", options=("--retries", "1"))
    assert prepared.begun() == [0, 20]
    assert_whole(prepared, reference, "fairseq")


def in_own_mounts(prepared, framework: str, script: str) -> str:
    """Run a script in a mount namespace; `$@` is Snakemake's command, `$results` the results folder."""
    try:
        subprocess.run(["unshare", "--mount", "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting needs root here")
    prefix = ("unshare", "--mount", "bash", "-euc", f"results=$PWD/results\n{script}", "script")
    process = prepared.start(framework, prefix=prefix)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, out + prepared.logs()
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


def test_a_disk_too_full_for_checkpoints_does_not_stop_a_run(prepared, reference):
    """The log warns; the run ends without a new one."""
    fill = "head -c 4M /dev/zero > results/small/filler; true"
    free = "truncate -s -100K results/small/filler"
    prepared.plan("transformers", {"at": "update", "number": 8, "do": "shell", "command": f"{fill}; {free}"})
    in_own_mounts(prepared, "transformers", f'{SMALL_DISK}"$@"\nrm $results/small/filler{KEEP}')
    assert "no training checkpoint at update 8" in prepared.log("transformers")
    assert_whole(prepared, reference, "transformers")


def test_a_disk_without_any_space_loses_nothing(prepared, reference):
    """The result cannot be written, the run fails; with space again it goes on from its newest checkpoint."""
    fill = "head -c 4M /dev/zero > results/small/filler; true"
    prepared.plan("fairseq", {"at": "update", "number": 30, "do": "shell", "command": fill})
    script = f'{SMALL_DISK}! "$@" || exit 9\nrm $results/small/filler\n"$@"{KEEP}'
    out = in_own_mounts(prepared, "fairseq", script)
    assert "No space left on device" in out
    assert prepared.begun() == [0, 29]
    assert_whole(prepared, reference, "fairseq")


def test_a_results_folder_that_is_read_only_says_so_and_stays_as_it_is(prepared, reference):
    """Before a run, and in the middle of one, as when a server turns a file system read-only."""
    before = sorted(path for path in prepared.results.rglob("*"))
    # on top: what is open for writing stays so
    again = f"mount --bind {prepared.results} {prepared.results}; "
    again += f"mount -o remount,bind,ro {prepared.results}"
    prepared.plan("transformers", {"at": "update", "number": 26, "do": "shell", "command": again})
    out = in_own_mounts(
        prepared,
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
    seen = (prepared.folder / "seen").read_text(encoding="utf-8").splitlines()
    assert seen == sorted([str(prepared.results), *map(str, before)])
    for part in out.split("NOW WRITABLE")[:2]:
        assert "Read-only file system" in part
    assert prepared.begun() == [0, 25]
    assert_whole(prepared, reference, "transformers")


@pytest.mark.parametrize(("framework", "seconds"), [("fairseq", -3 * 86400), ("transformers", 86400 * 3650)])
def test_a_clock_that_jumps_changes_nothing(prepared, reference, framework, seconds):
    """In the middle of a run, and again between two processes, with files that claim to be of the future."""
    future = f"find results/small/work/{RUNS[framework]} -exec touch -d 2090-01-01 {{}} +"
    kill = {"at": "update", "number": 15, "do": "kill"}
    prepared.plan(
        framework,
        {"at": "update", "number": 7, "do": "jump", "seconds": seconds, "then": kill},
        {"before": future, "at": "update", "number": 25, "do": "jump", "seconds": -seconds},
    )
    prepared.run(framework, options=("--retries", "1"))
    assert prepared.begun() == [0, 14]
    seconds_taken = prepared.record(framework)["seconds"]
    assert all(0 <= value < PATIENCE for value in seconds_taken.values()), seconds_taken
    assert_whole(prepared, reference, framework)


def test_a_gpu_that_runs_out_of_memory_says_what_to_change(prepared, reference):
    """There is no GPU here: the error is PyTorch's, raised in its place."""
    prepared.plan("fairseq", {"at": "update", "number": 12, "do": "run out of GPU memory"})
    process = prepared.start("fairseq")
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    assert "the GPU has not enough memory for this run" in out
    for what_to_change in ("recipes.quick: batch_size 3", "gpus.runs_per_gpu", "batches.at_once"):
        assert what_to_change in out, out
    prepared.run("fairseq")
    assert prepared.resumed_at("fairseq") == [11]
    assert_whole(prepared, reference, "fairseq")
