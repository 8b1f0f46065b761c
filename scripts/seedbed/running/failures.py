"""The end of a workflow in which jobs failed: their errors are the last lines on the terminal.

A job prints and logs what is wrong (`core.script`). Snakemake adds the command, the files of the job, its log
and the end of the workflow: 24 lines. They are left out if each failed job has explained itself, and after a
user has stopped the workflow. Otherwise (a killed process, a fault of Seedbed) they stay, since nothing else
may tell the cause.
"""

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.common import LogEvent

from seedbed.core import script

# the beginnings of Snakemake's messages at the end, in their order
BEGINS_TO_END = ("Shutting down, this might take some time", "Exiting because a job execution failed")
LAST = "WorkflowError:\nAt least one job did not complete successfully"
# Ctrl-C and SIGTERM, which end the jobs as well or not
STOPS = ("Terminating processes on user request", "Will exit after finishing currently running jobs")
STOPPED = "Stopped: the same command goes on from here.\n"
AT_THE_END = (*BEGINS_TO_END, "Complete log(s): ", "Elapsed time: ", LAST)


class Failures:
    """Takes the records of Snakemake that tell nothing beside the errors of jobs.

    Args:
        show: prints a record.
        write: prints lines.
        local: whether jobs print on this terminal, too.
    """

    def __init__(self, show: Callable[[logging.LogRecord], None], write: Callable[[str], None], local: bool):
        self._show, self._write, self._local = show, write, local
        self._logs: dict[int, tuple[int, int] | None] = {}  # the state of each job's log before it began
        self._commands: dict[int | None, logging.LogRecord] = {}  # by thread: what failed, to be explained
        self._explained: dict[str, Path] = {}  # errors, each with the first log that has it
        self._since = float("inf")  # when the first of them was printed
        self._unexplained = self._ends = self._stopped = False

    def started(self, record: Any) -> None:
        """Note the start of a job, whose log may still tell an earlier failure."""
        self._logs[record.jobid] = _state(record.log)

    def takes(self, event: Any, record: Any, printed: float) -> bool:
        """Whether a record needs no printing.

        Args:
            event, record: Snakemake's.
            printed: when a line was last printed, in seconds since the epoch.
        """
        if event == LogEvent.ERROR and record.exception == "RuleException":
            self._commands[record.thread] = record
            return True
        if event == LogEvent.JOB_ERROR:
            return self._takes_failure(record)
        text = str(record.msg)
        if text.startswith(STOPS):
            was, self._stopped = self._stopped, True
            return was
        if self._stopped and not self._unexplained:
            if text.startswith(LAST):
                self._write(STOPPED)
            return text.startswith((LAST, *BEGINS_TO_END))
        if self._unexplained or not self._explained:
            return False
        self._ends |= text.startswith(BEGINS_TO_END)  # else the failed jobs were started again, and succeeded
        if text.startswith(LAST) and printed > self._since:
            self._write("".join(script.shown(*each) for each in self._explained.items()))
        return self._ends and text.startswith(AT_THE_END)

    def _takes_failure(self, record: Any) -> bool:
        command = self._commands.pop(record.thread, None)
        if self._explains(record) or self._stopped:
            return True
        self._unexplained = True
        if command:
            self._show(command)
        return False

    def _explains(self, record: Any) -> bool:
        """Whether the log of a failed job says what is wrong; print that if the job could not."""
        before, now = self._logs.get(record.jobid), _state(record.log)
        if now is None or now == before or (error := script.last_error(Path(record.log[0]))) is None:
            return False
        log = self._explained.setdefault(error, Path(record.log[0]))
        if not self._local:
            self._write(script.shown(error, log))
        self._since = min(self._since, now[0] / 1e9 if self._local else time.time())
        return True

    def close(self) -> None:
        """Print what failed without being a job's."""
        for record in self._commands.values():
            self._show(record)


def _state(logs: list[str]) -> tuple[int, int] | None:
    """Time (ns) and size of the first log; None if there is none."""
    try:
        found = os.stat(logs[0])
    except (OSError, IndexError):
        return None
    return found.st_mtime_ns, found.st_size
