"""Progress of a download: a bar on a terminal, lines in a log."""

import logging
import sys
import time

LINE_EVERY = 10.0  # most seconds between two lines
LINE_GAP = 1.0  # least seconds between two lines

log = logging.getLogger(__name__)


class Progress:
    """A bar on a terminal; in the log, a line for each tenth of the file or every ten seconds."""

    def __init__(self, name: str, total: int | None, start: int):
        from tqdm import tqdm

        self.name, self.total, self.start, self.done = name, total, start, start
        self.began = self.logged = time.monotonic()
        self.tenth = self._tenth()
        self.bar = tqdm(
            desc=name,
            total=total,
            initial=start,
            unit="B",
            unit_scale=True,
            unit_divisor=1024,
            leave=False,
            file=sys.stderr,
            disable=None,  # unless stderr is a terminal
        )

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()
        if error[0] is None:
            seconds = time.monotonic() - self.began
            log.info("%s: %s in %.1f s", self.name, _readable(self.done - self.start), seconds)

    def add(self, count: int) -> None:
        self.done += count
        self.bar.update(count)
        gap = time.monotonic() - self.logged
        if gap >= LINE_EVERY or (gap >= LINE_GAP and self._tenth() > self.tenth):
            self.logged, self.tenth = time.monotonic(), self._tenth()
            log.info("%s: %s", self.name, self._line())

    def _tenth(self) -> int:
        return 10 * self.done // self.total if self.total else 0

    def _line(self) -> str:
        rate = (self.done - self.start) / (time.monotonic() - self.began)
        if not self.total:
            return f"{_readable(self.done)}, {_readable(rate)}/s"
        left = (self.total - self.done) / rate
        share = f"{self.done / self.total:.0%} of {_readable(self.total)}"
        return f"{share}, {_readable(rate)}/s, {left:,.0f} s left"


def _readable(size: float) -> str:
    """Bytes in a suitable unit: 21.4 MB."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
