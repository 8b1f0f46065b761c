"""Failed jobs on the terminal: Snakemake's records go in; errors come out last, or else all is shown."""

import threading
from types import SimpleNamespace

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from seedbed.running.failures import STOPPED, Failures

ERROR = "\nERROR: a fault\n  found: x\n  hint:  mend it\n  log:   {log}\n"
LOGGED = "2026-01-01 10:00:00,000 ERROR   a fault\n  found: x\n  hint:  mend it\n"
CRASH = "2026-01-01 10:00:00,000 ERROR   Traceback (most recent call last):\n  File x\nKeyError: 1\n"
TAIL = (
    "Shutting down, this might take some time.", "Exiting because a job execution failed. Look above",
    "Complete log(s): x", "Elapsed time: 1",
    "WorkflowError:\nAt least one job did not complete successfully.",
)  # fmt: skip


class Screen:
    """A terminal: what it shows of jobs that end."""

    def __init__(self, folder, local: bool = True):
        self.folder, self.lines, self.printed = folder, [], 0.0
        self._failures = Failures(lambda record: self.lines.append(record.msg), self.lines.append, local)

    def record(self, event, text: str, **fields) -> None:
        record = SimpleNamespace(msg=text, thread=threading.get_ident(), **fields)
        if not self._failures.takes(event, record, self.printed):
            self.lines.append(text)

    def start(self, number: int) -> None:
        self._failures.started(SimpleNamespace(jobid=number, log=[self.log(number)]))

    def log(self, number: int) -> str:
        return str(self.folder / f"{number}.log")

    def fail(self, number: int, logged: str | None) -> None:
        """What Snakemake records of a job that has written this to its log."""
        if logged is not None:
            (self.folder / f"{number}.log").write_text(logged, encoding="utf-8")
        self.record(LogEvent.ERROR, f"RuleException {number}", exception="RuleException")
        self.record(LogEvent.JOB_ERROR, f"Error in rule {number}", jobid=number, log=[self.log(number)])

    def close(self) -> None:
        self._failures.close()

    def end(self) -> None:
        for text in TAIL:
            self.record(None, text)


@pytest.fixture
def screen(tmp_path) -> Screen:
    return Screen(tmp_path)


def test_after_an_error_that_a_job_has_printed_nothing_follows(screen):
    screen.start(1)
    screen.fail(1, LOGGED)
    screen.end()
    assert screen.lines == []


@pytest.mark.parametrize("logged", [None, "", CRASH, "2026-01-01 10:00:00,000 INFO    step 1\n"])
def test_what_a_job_does_not_explain_snakemake_tells(screen, logged):
    screen.start(1)
    screen.fail(1, logged)
    screen.end()
    assert screen.lines == ["RuleException 1", "Error in rule 1", *TAIL]


def test_an_error_of_an_earlier_start_explains_nothing(screen):
    (screen.folder / "1.log").write_text(LOGGED, encoding="utf-8")
    screen.start(1)
    screen.fail(1, None)
    assert screen.lines == ["RuleException 1", "Error in rule 1"]


def test_one_unexplained_failure_among_others_keeps_the_end(screen):
    for number, logged in ((1, LOGGED), (2, None)):
        screen.start(number)
        screen.fail(number, logged)
    screen.end()
    assert screen.lines == ["RuleException 2", "Error in rule 2", *TAIL]


def test_errors_stand_last_and_once_each_if_other_lines_followed_them(screen):
    for number in (1, 2):
        screen.start(number)
        screen.fail(number, LOGGED)
    screen.printed = 1e12
    screen.end()
    assert screen.lines == [ERROR.format(log=screen.log(1))]


def test_errors_of_other_hosts_are_read_from_their_logs(tmp_path):
    screen = Screen(tmp_path, local=False)
    screen.start(1)
    screen.fail(1, f"2026-01-01 09:59:00,000 INFO    begins\n{LOGGED}")
    screen.end()
    assert screen.lines == [ERROR.format(log=screen.log(1))]


def test_a_workflow_that_ends_well_is_told_as_always(screen):
    screen.start(1)
    screen.fail(1, LOGGED)  # and is started again
    told = ["Trying to restart job 1.", "Complete log(s): x", "Elapsed time: 1"]
    for text in told:
        screen.record(None, text)
    assert screen.lines == told


@pytest.mark.parametrize(
    "told",
    [
        "Terminating processes on user request, this might take",
        "Will exit after finishing currently running jobs (scheduler).",
    ],
)
def test_jobs_that_a_user_has_stopped_are_no_failures(screen, told):
    screen.start(1)
    screen.record(None, told)
    screen.fail(1, "2026-01-01 10:00:00,000 WARNING leaving: SIGINT was received\n")
    screen.record(None, told)
    screen.end()
    assert screen.lines == [told, *TAIL[2:4], STOPPED]


def test_what_failed_before_a_stop_is_told(screen):
    screen.start(1)
    screen.fail(1, None)
    screen.record(None, "Terminating processes on user request, this might take some time.")
    screen.end()
    assert screen.lines[:2] == ["RuleException 1", "Error in rule 1"]
    assert screen.lines[-len(TAIL) :] == [*TAIL]


def test_an_error_outside_of_jobs_is_shown(screen):
    screen.record(LogEvent.ERROR, "RuleException in a scheduler", exception="RuleException")
    screen.close()
    assert screen.lines == ["RuleException in a scheduler"]
