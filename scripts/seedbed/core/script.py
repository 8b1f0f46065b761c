"""The start and end of each rule's script: logging, errors for users, checksums of inputs and outputs."""

import atexit
import contextlib
import functools
import logging
import os
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seedbed.core import checksums, interruption, printable
from seedbed.core.errors import SeedbedError, from_system

FORMAT = "%(asctime)s %(levelname)-7s %(message)s"
# an error for users in a log: its first line, and the parts of SeedbedError below it
_ERROR = re.compile(r"^\d{4}-\d\d-\d\d [\d:,]+ ERROR   (?!Traceback )(.+(?:\n  .+)+)$", re.MULTILINE)
# rule, outputs and process whose end records them
_unrecorded: list[tuple[str, list[str], int]] = []


def start(snakemake: Any, append: bool = False) -> logging.Logger:
    """Set up logging for a rule's script, check its inputs' checksums, and return its logger.

    The log file gets everything, the terminal only errors: a SeedbedError or an error of the system as one
    text, any other error as a traceback. Escape sequences are removed from both. After an error the exit code
    is not zero, and Snakemake removes unfinished outputs; after a signal, half-written files are removed. If
    the process ends without an error, the SHA-256 of its outputs are recorded.

    Args:
        snakemake: the object that Snakemake gives to a script.
        append: keep the log's content, since this job adopts a run that a batch has trained.

    Raises:
        SeedbedError: an input was changed since its rule wrote it.
    """
    sys.excepthook = functools.partial(_excepthook, Path(snakemake.log[0]))
    sys.stdout, sys.stderr = Terminal(sys.stdout), Terminal(sys.stderr)
    logging.raiseExceptions = False  # print no tracebacks if a log cannot be written
    root = logging.getLogger()
    root.addHandler(_log_file(Path(snakemake.log[0]), append))
    root.setLevel(logging.INFO)
    logging.captureWarnings(True)
    interruption.unwind()
    # inputs of fetch_source are the user's files; a batch has compared the inputs of an adopted run
    if not snakemake.rule.endswith("fetch_source") and not append:
        checksums.compare(snakemake.input)
    if "finetune_" not in snakemake.rule:  # a run's folder has its own record
        checksums.forget(snakemake.rule, snakemake.output)
        _unrecorded.append((snakemake.rule, list(snakemake.output), os.getpid()))
        atexit.register(_record)
    return logging.getLogger(f"seedbed.{snakemake.rule}")


def _record() -> None:
    """Record the outputs at the end of the process, but not of its forks, which run the same handler."""
    try:
        while _unrecorded:
            rule, outputs, process = _unrecorded.pop()
            if os.getpid() == process and not interruption.requested():
                checksums.record(rule, outputs)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        logging.shutdown()
        os._exit(1)  # an exception would not change the exit code here


def end() -> None:
    """End the process of a script at once, with exit code 0, and record its outputs.

    All files are written, and shutting down Python takes 0.1 s with the drawing libraries, and about a second
    with PyTorch and CUDA.
    """
    _record()
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


class Terminal:
    """A stream that may vanish: text that cannot be written is dropped. Escape sequences are shown as text.

    A job may outlive the workflow that started it, and the pipe or terminal that it prints to.
    """

    def __init__(self, stream: Any):
        self._stream = stream

    def write(self, text: str) -> int:
        """Write to the stream, if it still exists."""
        with contextlib.suppress(OSError):
            self._stream.write(printable.for_terminal(text))
        return len(text)

    def flush(self) -> None:
        """Flush the stream, if it still exists."""
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """Also append log records to `path` during the block."""
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
    # a run that outlived its workflow may still log there; with both appending, no line is overwritten
    handler = logging.FileHandler(path, mode="a", encoding="utf-8")
    handler.setFormatter(printable.Formatter(FORMAT))
    return handler


def last_error(log: Path) -> str | None:
    """The last error for users in a log; None if there is none."""
    try:
        found = _ERROR.findall(log.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return found[-1] if found else None


def shown(error: object, log: Path) -> str:
    """An error for users as the terminal shows it."""
    return f"\nERROR: {error}\n  log:   {log}\n"


def _excepthook(log: Path, kind: type[BaseException], error: BaseException, trace: Any) -> None:
    _unrecorded.clear()
    error = from_system(error) or error
    if isinstance(error, SeedbedError):  # needs no traceback
        logging.getLogger("seedbed").error("%s", error)
        text = shown(error, log)
    else:
        text = "".join(traceback.format_exception(kind, error, trace))
        logging.getLogger("seedbed").error(text)
    print(text, end="", file=sys.stderr, flush=True)
