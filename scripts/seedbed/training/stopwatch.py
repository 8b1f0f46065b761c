"""The time of a run by phase."""

import contextlib
import os
import time
from pathlib import Path

import torch

from seedbed.core import waiting


def process_age() -> float:
    """Seconds since this process started."""
    with contextlib.suppress(OSError, ValueError):
        fields = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
        ticks = float(fields[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks
    return time.process_time()


class Stopwatch:
    """Wall seconds by phase; the first phase of a process's first run includes the start of the process.

    Waiting for other processes before the first phase does not count.
    """

    _process_is_new = True

    def __init__(self, first: str):
        self.seconds: dict[str, float] = {}
        self._phase = first
        age = process_age() - waiting.seconds() if Stopwatch._process_is_new else 0.0
        self._since = time.perf_counter() - age
        Stopwatch._process_is_new = False

    def switch(self, phase: str) -> str:
        """End the current phase, begin `phase`, and return the ended one.

        Queued GPU work counts for the phase that queued it.
        """
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            torch.cuda.synchronize()
        now = time.perf_counter()
        self.seconds[self._phase] = self.seconds.get(self._phase, 0.0) + now - self._since
        ended, self._phase, self._since = self._phase, phase, now
        return ended

    @property
    def total(self) -> float:
        """Seconds of all phases that have ended."""
        return sum(self.seconds.values())
