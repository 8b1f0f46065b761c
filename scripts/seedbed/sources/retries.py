"""Repeated requests: how often, and after which pause. urllib3's Retry counts and computes the pauses.

Retry is not mounted on requests' adapter: there it would not see an answer that breaks off in its body, and
it would read the whole body of a refusal, however long. Downloads and the hub's listings go through `repeat`.
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

TEMPORARY = (408, 425, 429)  # and all of 5xx: statuses that another attempt may cure
Result = TypeVar("Result")

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Patience:
    """How long to wait and how often to try; times in seconds.

    Args:
        attempts: failures in a row, without a new byte between them, after which to give up.
        backoff: the first pause, which doubles with each failure; up to as much again is added at random.
        longest_pause: limit of the backoff.
        longest_retry_after: a server that asks for a longer pause than this is given up.
        connect: limit for making a connection.
        read: limit for the next byte to arrive.
    """

    attempts: int = 5
    backoff: float = 1.0
    longest_pause: float = 60.0
    longest_retry_after: float = 300.0
    connect: float = 10.0
    read: float = 60.0


PATIENCE = Patience()


class TryAgain(Exception):
    """An attempt failed in a way that may pass.

    Args:
        reason: for messages.
        retry_after: the answer's header of that name, if it has one.
        at_once: no pause is needed.
    """

    def __init__(self, reason: str, retry_after: str | None = None, at_once: bool = False):
        self.reason, self.retry_after, self.at_once = reason, retry_after, at_once
        super().__init__(reason)


def is_temporary(status: int) -> bool:
    """Whether the same request may succeed later, after an answer of this HTTP status."""
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
        name: what is fetched, for messages.
        patience: attempts and pauses.
        received: bytes that are there; an attempt that adds some starts the count of failures anew.

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
        # without a first failure in its history, Retry would not pause after the first one
        history=(RequestHistory(None, None, None, None, None),),
        backoff_factor=patience.backoff / 2,
        backoff_jitter=patience.backoff,  # or many jobs would come back all at once
        backoff_max=patience.longest_pause,
        retry_after_max=math.inf,  # Retry would shorten a longer pause, and come back too early
    )


def _pause(retries: "Retry", failure: TryAgain, patience: Patience) -> float:
    """Seconds until the next attempt: as the server asks, or else the backoff."""
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
