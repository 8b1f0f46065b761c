"""Signals that ask a process to leave: a run notes them and leaves where nothing is lost; what else runs
leaves at once, by an exception, so that whatever is half written is removed on the way.
"""

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

# what a terminal, a batch system, a service manager and a closed connection send before they kill
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
# a request often arrives more than once, from a process group and from the parent; this is one request
SAME_REQUEST = 1.0  # seconds
log = logging.getLogger(__name__)

_requested: signal.Signals | None = None
_noted = 0.0


class Interrupted(SystemExit):
    """The process was asked to leave and does; its exit code is 128 + the signal, as shells count."""

    def __init__(self, number: int):
        self.signal = signal.Signals(number)
        super().__init__(128 + number)


def watch() -> None:
    """Note the first of SIGTERM, SIGINT, SIGHUP and SIGUSR1 instead of dying of it; main thread only.

    Code that works asks `requested` or calls `leave_if_requested` where it can stop. A second SIGTERM or
    SIGINT, later than a second after the first, ends the process at once.
    """
    global _requested
    _requested = None
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it: then it stays ignored
            signal.signal(number, _note)


def unwind() -> None:
    """Leave by `Interrupted` on the first of SIGNALS that would end the process without a word; main thread
    only.

    A signal that is ignored or has a handler keeps it. `watch` may follow.
    """
    for number in _deadly():
        signal.signal(number, _raise)


@contextlib.contextmanager
def unwinding() -> Iterator[None]:
    """As `unwind` while the block lasts; outside of the main thread, which alone can do it, nothing."""
    changed = _deadly() if threading.current_thread() is threading.main_thread() else []
    for number in changed:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in changed:
            if signal.getsignal(number) == _raise:
                signal.signal(number, signal.SIG_DFL)


def requested() -> str | None:
    """The name of the signal that asked this process to leave, or None."""
    return _requested.name if _requested else None


def leave_if_requested() -> None:
    """Leave if a signal asked for it.

    Raises:
        Interrupted: a signal did.
    """
    if _requested:
        log.warning("leaving: %s was received", _requested.name)
        raise Interrupted(_requested)


def _deadly() -> list[signal.Signals]:
    return [number for number in SIGNALS if signal.getsignal(number) == signal.SIG_DFL]


def _raise(number: int, frame: FrameType | None) -> None:
    first = _requested is None
    _note(number, frame)
    if first:
        raise Interrupted(number)


def _note(number: int, frame: FrameType | None) -> None:
    global _requested, _noted
    now = time.monotonic()
    if _requested is None:
        _requested, _noted = signal.Signals(number), now
    elif number in (signal.SIGTERM, signal.SIGINT) and now - _noted > SAME_REQUEST:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
