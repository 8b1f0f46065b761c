"""A workflow ends, and soon, however it is stopped and whoever no longer reads what it prints.

Its first jobs wait for a server that does not answer, so that no test needs PyTorch.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest
from builders_web import serving
from harness import PATIENCE, Project, patiently

SOON = 60  # seconds; on an idle machine it takes one or two


@pytest.fixture
def downloading(small) -> Iterator[tuple[Project, subprocess.Popen]]:
    """A project and its workflow, whose two jobs wait for their downloads."""
    project, project.config = small
    requests = threading.Semaphore(0)
    end = threading.Event()

    def never(request) -> None:
        requests.release()
        end.wait(PATIENCE)

    with serving(never) as server:
        for name, source in project.config["sources"].items():
            source["locations"] = [f"{server.url}/{name}.zip"]
        snakemake = project.popen(project.command())
        try:
            for _ in range(2):
                assert requests.acquire(timeout=PATIENCE)
            yield project, snakemake
        finally:
            project.kill_everything()
            end.set()
            snakemake.stdout.close()
            snakemake.wait(PATIENCE)


def assert_ends(project: Project, snakemake: subprocess.Popen) -> None:
    """Snakemake fails soon, and no process of its is left."""
    assert snakemake.wait(SOON) != 0
    for _ in patiently():
        if not project.processes():
            return
    raise AssertionError(project.processes())


def test_sigterms_in_quick_succession_end_it(downloading):
    """As from `timeout make run`: the group gets one, and make passes on its own.

    How far apart two have to be to meet in Snakemake's handler is a matter of chance; with hundreds, two do.
    """
    project, snakemake = downloading
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        os.killpg(snakemake.pid, signal.SIGTERM)
        time.sleep(0.0001)
    assert_ends(project, snakemake)
    told = snakemake.stdout.read()
    assert told.count("Will exit after finishing currently running jobs") == 1
    assert "Error in rule" not in told
    assert told.endswith("\nStopped: the same command goes on from here.\n")


def test_a_job_that_fails_after_the_reader_has_left_ends_it(downloading):
    """As with `snakemake | head -6`: the error of a killed job meets the closed pipe."""
    project, snakemake = downloading
    while snakemake.stdout.readline() != "fetching the sources\n":
        assert snakemake.poll() is None
    snakemake.stdout.close()
    for process in set(project.processes()) - {snakemake.pid}:
        os.kill(process, signal.SIGKILL)
    assert_ends(project, snakemake)
