"""Snakemake that asks Slurm for the state of its jobs every second, so that tests need not wait.

The plugin lets the pause grow by ten seconds whenever nothing has ended; nothing else is changed.
"""

import sys

from snakemake.cli import main
from snakemake_executor_plugin_slurm import Executor

Executor.next_seconds_between_status_checks = property(lambda executor: 1, lambda executor, seconds: None)

if __name__ == "__main__":
    sys.exit(main())
