"""A fix of Snakemake: let its process end with the workflow, not up to a second later.

After each round the scheduler of Snakemake (9.27.1) starts a timer that wakes it one second later, since
--max-jobs-per-timespan is 100/1s by default. Python waits for such threads at its end, and the last timer
starts with the last job.
"""

import threading
from typing import Any


def mend(scheduler_class: type) -> None:
    """Let Python end without waiting for the timers.

    Args:
        scheduler_class: snakemake.scheduling.job_scheduler.JobScheduler.
    """

    def schedule(self: Any, delay: float) -> None:
        timer = threading.Timer(delay, self._open_jobs.release)
        timer.daemon = True
        timer.start()

    scheduler_class._schedule_reevalutation = schedule  # type: ignore[attr-defined]
