"""Two hosts on one results folder: namespaces give each its name, machine id, boot id and pids."""

import os
import signal
import subprocess
import uuid
from pathlib import Path

import pytest
from harness import PATIENCE, assert_whole, copy

AS_A_HOST = """
hostname "$1" && mount --bind "$2" /etc/machine-id && mount --bind "$3" /proc/sys/kernel/random/boot_id
shift 3; exec "$@"
"""
APART = ("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec")


def host(name: str, folder: Path) -> tuple[str, ...]:
    """What a command is put behind so that it runs on a host of its own."""
    identities = []
    for kind in ("machine", "boot"):
        identities.append(folder / f"{name}-{kind}")
        identities[-1].write_text(f"{uuid.uuid4()}\n")
    return (*APART, AS_A_HOST, "sh", name, *map(str, identities))


def hosts_can_be_made() -> bool:
    try:
        return subprocess.run([*APART, "hostname other"], capture_output=True).returncode == 0
    except OSError:
        return False


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hosts_can_be_made(), reason="namespaces need root"),
]


def test_a_host_that_was_suspended_takes_what_another_has_made_of_its_run(
    stock, prepared, reference, tmp_path, monkeypatch
):
    """Its job does not fail, which would have Snakemake delete the files that the other has published."""
    monkeypatch.setenv("SEEDBED_SILENCE", "3")
    other = copy(stock.prepared(), tmp_path / "other", results="../work/results")
    other.results, other.faults = prepared.results, prepared.faults  # one journal, one plan
    prepared.plan("transformers", {"at": "update", "number": 9, "do": "hold"})
    first = prepared.start("transformers", prefix=host("one", tmp_path))
    prepared.wait_for("hold", first)
    suspended = prepared.processes()
    for process in suspended:
        os.kill(process, signal.SIGSTOP)
    other.run("transformers", prefix=host("two", tmp_path))
    published = {path: path.read_bytes() for path in other.run_folder("transformers").glob("[a-z]*.*")}
    prepared.go_on()
    for process in suspended:
        os.kill(process, signal.SIGCONT)
    out, _ = first.communicate(timeout=PATIENCE)
    assert first.returncode == 0, out + prepared.logs()
    assert prepared.begun() == [0, 8]
    assert {path: path.read_bytes() for path in published} == published
    assert_whole(prepared, reference, "transformers")
