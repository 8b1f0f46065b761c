"""What every thin script does first: log to the rule's log, and tell errors where the user looks."""

import logging
import sys
import traceback
from pathlib import Path
from typing import Any

from seedbed.errors import SeedbedError

FORMAT = "%(asctime)s %(levelname)-7s %(message)s"


def start(snakemake: Any) -> logging.Logger:
    """Set up logging for a rule's script and return its logger.

    The log file gets everything. The terminal gets errors: a SeedbedError as its text, anything else as a
    traceback. The process then ends with a non-zero exit code, and Snakemake removes half-made outputs.
    """
    log = Path(snakemake.log[0])
    log.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(log, mode="w", encoding="utf-8")
    handler.setFormatter(logging.Formatter(FORMAT))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.captureWarnings(True)
    sys.excepthook = _excepthook
    return logging.getLogger(f"seedbed.{snakemake.rule}")


def _excepthook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    text = "".join(traceback.format_exception(kind, error, trace))
    logging.getLogger("seedbed").error(text)
    message = f"\nERROR: {error}\n" if isinstance(error, SeedbedError) else text
    print(message, file=sys.stderr, flush=True)
