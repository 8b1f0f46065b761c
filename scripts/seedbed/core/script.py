"""What thin scripts do first and last: log, show errors where users look, compare inputs, record outputs."""

import atexit
import contextlib
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seedbed.core import checksums, interruption, printable
from seedbed.core.errors import SeedbedError, from_system

FORMAT = "%(asctime)s %(levelname)-7s %(message)s"


def start(snakemake: Any, append: bool = False) -> logging.Logger:
    """Set up logging for a rule's script, compare its inputs with what their rules wrote; return its logger.

    The log file gets everything, the terminal errors: a SeedbedError, and what the system refuses, as its
    text, anything else as a traceback. Neither gets escape sequences. The process then ends with a non-zero
    exit code, and Snakemake removes half-made outputs. A signal that ends the process removes what it was
    writing. Where the process ends without an error, the SHA-256 of its outputs are recorded.

    Args:
        snakemake: what Snakemake gives to a script.
        append: whether what the log file holds stays, since a run is adopted that a batch has trained.

    Raises:
        SeedbedError: an input is not what its rule wrote.
    """
    sys.excepthook = _excepthook
    sys.stdout, sys.stderr = Terminal(sys.stdout), Terminal(sys.stderr)
    logging.raiseExceptions = False  # a log that cannot be written is no reason for tracebacks
    root = logging.getLogger()
    root.addHandler(_log_file(Path(snakemake.log[0]), append))
    root.setLevel(logging.INFO)
    logging.captureWarnings(True)
    interruption.unwind()
    # what is fetched is the user's; for a run that is adopted, its batch has compared what it read
    if not snakemake.rule.endswith("fetch_source") and not append:
        checksums.compare(snakemake.input)
    if "finetune_" not in snakemake.rule:  # the folder of a run brings its own record
        checksums.forget(snakemake.rule, snakemake.output)
        atexit.register(_record, snakemake.rule, list(snakemake.output), os.getpid())
    return logging.getLogger(f"seedbed.{snakemake.rule}")


def _record(rule: str, outputs: list[str], process: int) -> None:
    """Record the outputs at the process's end; a fork's end, which runs the same handlers, is not it."""
    if os.getpid() != process or interruption.requested():
        return
    try:
        checksums.record(rule, outputs)
    except BaseException:
        _excepthook(*sys.exc_info())
        logging.shutdown()
        os._exit(1)  # what is raised here would not change the exit code


def end() -> None:
    """End the process at once, with exit code 0; the last thing that a script which has trained does.

    All is written by then, and taking PyTorch and CUDA to pieces takes about a second.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


class Terminal:
    """A stream that may vanish: what cannot be written is dropped, and escape sequences are shown as text.

    A job may outlive the workflow that started it, and with it the pipe or the terminal that it prints to.
    """

    def __init__(self, stream: Any):
        self._stream = stream

    def write(self, text: str) -> int:
        """Write to the stream, if it is still there."""
        with contextlib.suppress(OSError):
            self._stream.write(printable.for_terminal(text))
        return len(text)

    def flush(self) -> None:
        """Flush the stream, if it is still there."""
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """Also log to a file of its own, after what it holds, while the block lasts."""
    handler = _log_file(path, append=True)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


def _log_file(path: Path, append: bool = False) -> logging.Handler:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not append:
        path.write_bytes(b"")
    # a run that outlived its workflow may still log there: both append, and neither writes into the other
    handler = logging.FileHandler(path, mode="a", encoding="utf-8")
    handler.setFormatter(printable.Formatter(FORMAT))
    return handler


def _excepthook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    atexit.unregister(_record)
    error = from_system(error) or error
    if isinstance(error, SeedbedError):  # it says all that its reader can use; the log is shown to them, too
        logging.getLogger("seedbed").error("%s", error)
        text = f"\nERROR: {error}\n"
    else:
        text = "".join(traceback.format_exception(kind, error, trace))
        logging.getLogger("seedbed").error(text)
    print(text, file=sys.stderr, flush=True)
