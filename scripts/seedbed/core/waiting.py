"""The time this process has waited for others, which does not count as time of its runs."""

import contextlib
import time
from collections.abc import Iterator

_seconds = 0.0


@contextlib.contextmanager
def counted() -> Iterator[None]:
    """Count the time of the block as waiting: for a slot of a GPU, or for a run's living owner."""
    global _seconds
    begin = time.perf_counter()
    try:
        yield
    finally:
        _seconds += time.perf_counter() - begin


def seconds() -> float:
    """Seconds that this process has waited so far."""
    return _seconds
