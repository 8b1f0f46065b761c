"""The timers of Snakemake's scheduler keep no process from ending."""

import threading

from snakemake.scheduling.job_scheduler import JobScheduler

from seedbed.running import scheduler_timers


class Scheduler:
    def __init__(self):
        self._open_jobs = threading.Semaphore(0)


def test_a_timer_wakes_the_scheduler_and_keeps_no_process_from_ending():
    scheduler_timers.mend(Scheduler)
    scheduler = Scheduler()
    before = set(threading.enumerate())
    scheduler._schedule_reevalutation(0.2)
    (timer,) = set(threading.enumerate()) - before
    assert timer.daemon
    assert scheduler._open_jobs.acquire(timeout=60)


def test_snakemake_still_starts_its_timers_in_the_method_that_is_mended():
    assert "_schedule_reevalutation" in vars(JobScheduler)
