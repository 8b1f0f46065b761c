"""Stopping a run anywhere, and what must not depend on it; for the tests of both trainers."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable

import pandas as pd
import pytest

from seedbed.core import interruption
from seedbed.training.progress import Progress

ALWAYS = {"interval": 0, "max_share": 1}
NEVER = {"interval": 1e9, "max_share": 1}


@pytest.fixture(autouse=True)
def watched():
    before = {number: signal.getsignal(number) for number in interruption.SIGNALS}
    yield interruption.watch()
    interruption.watch()
    for number, handler in before.items():
        signal.signal(number, handler)


class Killed(BaseException):
    """Stands for a SIGKILL: nothing in the program catches it."""


def kill():
    raise Killed


class Stops:
    """Stops a run at its n-th opportunity: asks it to leave, or raises before a checkpoint is written."""

    def __init__(self, monkeypatch, train):
        self.at, self.count, self.how, self.train = 0, 0, lambda: None, train
        original = Progress.after_update

        def after_update(progress, step, framework_state):
            self.count += 1
            if self.count == self.at:
                self.how()
            original(progress, step, framework_state)

        monkeypatch.setattr(Progress, "after_update", after_update)

    def run(self, job, at=0, how=lambda: os.kill(os.getpid(), signal.SIGTERM)) -> bool:
        """Train; whether the run was stopped."""
        self.at, self.count, self.how = at, 0, how
        interruption.watch()
        try:
            self.train([job])
        except (interruption.Interrupted, Killed):
            return True
        return False


def outcome(job) -> tuple:
    """What must not depend on stops: predictions byte for byte, metrics but for the time, the selection."""
    kept = ("selected", "validation", "test", "diverged", "updates", "total_updates", "padding_share")
    metrics = pd.read_csv(job.target / "metrics.csv", dtype=str).drop(columns="seconds")
    found = record(job)
    return (
        (job.target / "predictions.csv").read_bytes(),
        metrics.to_csv(index=False),
        json.dumps({key: found[key] for key in (*kept, "differences")}),  # NaN is NaN
    )


def record(job) -> dict:
    return json.loads((job.target / "run.json").read_text(encoding="utf-8"))


def wait_for(process: subprocess.Popen, found: Callable[[], bool]) -> None:
    """Wait until `found()` is true while the process lives."""
    deadline = time.monotonic() + 300
    while not found():
        assert process.poll() is None, "the process ended before it could be stopped"
        assert time.monotonic() < deadline
        time.sleep(0.01)
