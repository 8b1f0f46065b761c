"""Signals that ask a process to end.

A run notes the signal and ends where it loses nothing (`watch`). Other processes end at once by an exception,
which removes half-written files (`unwind`).
"""

import _thread
import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

# sent by terminals, batch systems, service managers and closed connections before they kill
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
# seconds in which signals count as one request, since the process group and the parent may both send it
SAME_REQUEST = 1.0
log = logging.getLogger(__name__)

_requested: signal.Signals | None = None
_noted = 0.0


class Interrupted(SystemExit):
    """Ends the process after a signal, with exit code 128 + the signal, as in shells."""

    def __init__(self, number: int):
        self.signal = signal.Signals(number)
        super().__init__(128 + number)


def watch() -> None:
    """Note the first of SIGTERM, SIGINT, SIGHUP and SIGUSR1 instead of dying; main thread only.

    Code asks `requested` or calls `leave_if_requested` at points where it can stop. A second SIGTERM or
    SIGINT, more than a second after the first, ends the process at once.
    """
    global _requested
    _requested = None
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP; keep that
            signal.signal(number, _note)


def unwind() -> None:
    """Raise `Interrupted` on the first of SIGNALS; main thread only.

    Signals that are ignored or have a handler stay so. `watch` may follow.
    """
    for number in _deadly():
        signal.signal(number, _raise)


@contextlib.contextmanager
def unwinding() -> Iterator[None]:
    """Do the same as `unwind` during the block; do nothing outside the main thread."""
    changed = _deadly() if threading.current_thread() is threading.main_thread() else []
    for number in changed:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in changed:
            if signal.getsignal(number) == _raise:
                signal.signal(number, signal.SIG_DFL)


def call_in_a_thread(number: signal.Signals) -> None:
    """Have the present handler of a signal called at the first one only, and in a thread; main thread only.

    Snakemake's handler of SIGTERM waits for locks, which the main thread may hold: there it would wait for
    ever. A second SIGTERM in a moment is enough, and `timeout make run` sends two. Without a handler, do
    nothing.
    """
    handler = signal.getsignal(number)
    if not callable(handler):
        return
    called = False

    def call(number: int, frame: FrameType | None) -> None:
        nonlocal called
        if not called:
            called = True
            _thread.start_new_thread(handler, (number, frame))  # threading.Thread has locks of its own

    signal.signal(number, call)


def requested() -> str | None:
    """The name of the signal that asked this process to end, or None."""
    return _requested.name if _requested else None


def leave_if_requested() -> None:
    """End the process if a signal asked for it.

    Raises:
        Interrupted: a signal was received.
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
