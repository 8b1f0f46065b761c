"""Make untrusted text safe to print: it can neither end a line nor control a terminal.

Names in archives and repositories, pieces of vocabularies, URLs, labels and exceptions may contain line ends,
which forge lines of a log, and escape sequences or bidirectional marks, which change what a reader sees.
They are escaped as in Python (a line end as \\n) in three places: the text of SeedbedError, the records of
Seedbed's loggers, and the scripts' log files and terminal.
"""

import logging
import numbers
import re
from typing import Any

# C0, DEL and C1; bidirectional marks, embeddings, overrides and isolates; line separators; annotations; and
# half surrogate pairs, which a log in UTF-8 cannot hold
_UNPRINTABLE = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff"
_IN_A_LINE = re.compile(f"[{_UNPRINTABLE}]")
_IN_LINES = re.compile(rf"(?!\n)[{_UNPRINTABLE}]")
# a progress bar returns to the beginning of its line
_ON_A_TERMINAL = re.compile(rf"(?![\n\r\t])[{_UNPRINTABLE}]")


class Lines(str):
    """Text of several lines whose line ends are Seedbed's own; all other control characters are escaped."""

    __slots__ = ()

    def __new__(cls, text: str) -> "Lines":
        return super().__new__(cls, _IN_LINES.sub(_escaped, text))


def one_line(text: object) -> str:
    """The text with line ends and control characters escaped; `Lines` stay unchanged."""
    if not isinstance(text, str):
        text = str(text)  # the text of a SeedbedError is Lines
    return text if isinstance(text, Lines) else _IN_A_LINE.sub(_escaped, text)


def for_terminal(text: str) -> str:
    """The text without escape sequences; line ends, returns and tabs stay."""
    return _ON_A_TERMINAL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]


class Formatter(logging.Formatter):
    """Formats log records; a message may have several lines, but no escape sequences."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        return Lines(super().format(record))


def guard_records() -> None:
    """Make the arguments of Seedbed's log messages printable, for all handlers."""
    make = logging.getLogRecordFactory()

    def guarded(*arguments: Any, **keywords: Any) -> logging.LogRecord:
        record = make(*arguments, **keywords)
        if record.name.partition(".")[0] == "seedbed" and isinstance(record.args, tuple):
            record.args = tuple(map(_argument, record.args))
        return record

    logging.setLogRecordFactory(guarded)


def _argument(value: Any) -> Any:
    # %d and %.1f need numbers
    return value if value is None or isinstance(value, numbers.Number) else one_line(value)
