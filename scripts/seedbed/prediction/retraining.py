"""Train a finished run again, and keep its model: python -m seedbed.prediction.retraining RUN_FOLDER."""

import logging
import sys
from pathlib import Path

from seedbed.core import printable
from seedbed.core.errors import SeedbedError, explaining_system_errors
from seedbed.core.interruption import Interrupted
from seedbed.core.script import FORMAT
from seedbed.prediction import finished_runs
from seedbed.running import runner


def main(folder: str) -> int:
    """Train the run of a folder; returns 1 after an error."""
    handler = logging.StreamHandler()
    handler.setFormatter(printable.Formatter(FORMAT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    job = finished_runs.read(Path(folder)).job
    runner.leave_out_unused([job])
    train = runner.run_together if job.trainer.together else runner.run
    try:
        with explaining_system_errors():
            train([job], job.trainer.module, {})
    except (SeedbedError, Interrupted) as error:
        logging.getLogger("seedbed").error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
