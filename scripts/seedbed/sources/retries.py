"""Repeat requests of downloads and of the hub's listings. urllib3's Retry counts and computes the pauses.

Retry is not mounted on requests' adapter: it would not see an answer that breaks off in its body, and it
would read the whole body of a refusal, however long.
"""

import contextlib
import dataclasses
import logging
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from seedbed.core.errors import SeedbedError

if TYPE_CHECKING:
    from urllib3 import Retry

TEMPORARY = (408, 425, 429)  # statuses after which another attempt may succeed, besides all of 5xx
Result = TypeVar("Result")

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Patience:
    """Limits of attempts and times (seconds).

    Args:
        attempts: maximum number of failures in a row without a new byte between them.
        backoff: the first pause, doubled after each failure; a random part of the same size is added.
        longest_pause: limit of the backoff.
        longest_retry_after: longest accepted pause that a server asks for.
        connect: time limit of connecting.
        read: time limit for the next byte.
    """

    attempts: int = 5
    backoff: float = 1.0
    longest_pause: float = 60.0
    longest_retry_after: float = 300.0
    connect: float = 10.0
    read: float = 60.0


PATIENCE = Patience()


class TryAgain(Exception):
    """A temporary failure of an attempt.

    Args:
        reason: for messages.
        retry_after: the answer's header Retry-After, if any.
        at_once: no pause is needed.
    """

    def __init__(self, reason: str, retry_after: str | None = None, at_once: bool = False):
        self.reason, self.retry_after, self.at_once = reason, retry_after, at_once
        super().__init__(reason)


def is_temporary(status: int) -> bool:
    """Whether the same request may succeed later after this HTTP status."""
    return status in TEMPORARY or status >= 500


def repeat(
    attempt: Callable[[], Result],
    name: str,
    patience: Patience = PATIENCE,
    received: Callable[[], int] = lambda: 0,
) -> Result:
    """Call `attempt` until it raises no TryAgain, and return its result.

    Args:
        attempt: makes the request.
        name: the file or repository, for messages.
        patience: attempts and pauses.
        received: number of bytes received so far; new bytes reset the count of failures.

    Raises:
        SeedbedError: too many failures in a row, or the server asks for too long a pause.
    """
    from urllib3.exceptions import MaxRetryError

    retries, most = _retries(patience), 0
    while True:
        try:
            return attempt()
        except TryAgain as failure:
            if received() > most:
                retries, most = _retries(patience), received()
            try:
                retries = retries.increment(error=failure)
            except MaxRetryError:
                raise SeedbedError(f"{failure.reason} ({patience.attempts} attempts in a row)") from failure
            pause = _pause(retries, failure, patience)
            log.warning("%s: %s; another attempt in %.1f s", name, failure.reason, pause)
            time.sleep(pause)


def _retries(patience: Patience) -> "Retry":
    from urllib3.util.retry import RequestHistory, Retry

    return Retry(
        total=patience.attempts - 1,
        # with an empty history, Retry would not pause after the first failure
        history=(RequestHistory(None, None, None, None, None),),
        backoff_factor=patience.backoff / 2,
        backoff_jitter=patience.backoff,  # so that many jobs do not return all at once
        backoff_max=patience.longest_pause,
        retry_after_max=math.inf,  # else Retry would shorten longer pauses and return too early
    )


def _pause(retries: "Retry", failure: TryAgain, patience: Patience) -> float:
    """Seconds until the next attempt: the server's Retry-After, else the backoff."""
    from urllib3.exceptions import InvalidHeader

    if failure.at_once:
        return 0.0
    pause = None
    if failure.retry_after is not None:
        with contextlib.suppress(InvalidHeader, ValueError, OverflowError):
            pause = retries.parse_retry_after(failure.retry_after)
    if pause is None:
        return retries.get_backoff_time()
    if pause > patience.longest_retry_after:
        raise SeedbedError(f"{failure.reason}; the server asks to come back in {pause:,.0f} s") from failure
    return pause
