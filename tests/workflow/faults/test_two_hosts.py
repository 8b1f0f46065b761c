"""Two hosts on one results folder: namespaces give each its name, machine id, boot id and pids."""

import os
import signal
import subprocess
import uuid
from pathlib import Path
from typing import Any

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


def on_two_hosts(stock, prepared, tmp_path) -> tuple[Any, subprocess.Popen]:
    """A directory for the second host, and the workflow of the first, which holds after eight updates."""
    other = copy(stock.prepared(), tmp_path / "other", results="../work/results")
    other.results, other.faults = prepared.results, prepared.faults  # one journal, one plan
    prepared.plan("transformers", {"at": "update", "number": 9, "do": "hold"})
    first = prepared.start("transformers", prefix=host("one", tmp_path))
    prepared.wait_for("hold", first)
    return other, first


def test_a_host_waits_for_a_run_of_another_that_is_suspended(stock, prepared, reference, tmp_path):
    """A process that is stopped still owns its run, and goes on with it."""
    other, first = on_two_hosts(stock, prepared, tmp_path)
    suspended = prepared.processes()
    for process in suspended:
        os.kill(process, signal.SIGSTOP)
    second = other.start("transformers", prefix=host("two", tmp_path))
    prepared.wait_for_logs(["transformers"], "on host one", second)
    prepared.go_on()
    for process in suspended:
        os.kill(process, signal.SIGCONT)
    for process in (first, second):
        out, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, out + prepared.logs()
    assert prepared.begun() == [0]
    assert_whole(prepared, reference, "transformers")


def test_a_run_of_a_host_that_fails_is_taken_over_by_another(stock, prepared, reference, tmp_path):
    other, first = on_two_hosts(stock, prepared, tmp_path)
    prepared.kill_everything()
    first.communicate(timeout=PATIENCE)
    other.run("transformers", prefix=host("two", tmp_path))
    assert "on host one" in prepared.log("transformers")
    assert prepared.begun() == [0, 8]
    assert_whole(prepared, reference, "transformers")
