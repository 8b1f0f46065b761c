"""Training checkpoints (states) of a run: written atomically, and verified before they are read.

A state is one file, NUMBER.update-STEP.SHA256.state. Its name contains the hash of its content and is set by
the last rename of writing, so a file with such a name is complete unless the disk has changed it. States are
numbered in the order of writing, since a run may write several at one update.
"""

import contextlib
import hashlib
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from seedbed.core import files, interruption

RATE = 300e6  # bytes per second of hashing and writing, assumed before the first state
KEPT = 2  # the newest, and the one before it in case the newest cannot be read
SUFFIX, PART, CORRUPT = ".state", ".part", ".corrupt"
log = logging.getLogger(__name__)


class TrainingStates:
    """The states of one run, in a folder that only its owner writes to.

    Args:
        folder: their folder; it is created for the first state.
        identity: the run's identity; states of other identities are never used.
        interval: least seconds between two states.
        max_share: largest share of the time for writing, above 0; 1 is no limit.

    Attributes:
        written: number of states written so far.
        seconds: seconds of writing so far.
    """

    def __init__(self, folder: Path, identity: str, interval: float, max_share: float):
        self.folder, self.identity = Path(folder), identity
        self.interval, self.max_share = interval, max_share
        self.written, self.seconds = 0, 0.0
        self._last, self._cost = time.monotonic(), 0.0

    def due(self) -> bool:
        """Whether a state should be written now: the pace allows it, or a signal asked to end.

        The pace follows the monotonic clock. After a write of c seconds, c / max_share must have passed since
        its beginning; before the first write, c is estimated by `expect`.
        """
        gap = max(self.interval, self._cost * (1 / self.max_share - 1))
        return interruption.requested() is not None or time.monotonic() - self._last >= gap

    def expect(self, size: int) -> None:
        """Estimate the time of the first write from the bytes of a state, if these are many."""
        if not self.written:
            self._cost = size / RATE

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write a state and remove all but the newest two.

        If it cannot be written (the disk is full, a quota is reached), training continues with a warning, and
        the unfinished file is removed.

        Args:
            step: number of updates made.
            state: nested dictionaries, lists and tuples of tensors, numbers and strings.
        """
        begin = time.monotonic()
        part = self.folder / f"update-{step}{PART}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            digest = _write(part, {"identity": self.identity, "step": step, "state": state})
            older = self._complete()
            number = int(older[0].name.split(".")[0]) + 1 if older else 1
            os.replace(part, self.folder / f"{number:06d}.update-{step}.{digest}{SUFFIX}")
            _sync_folder(self.folder)
            for old in older[KEPT - 1 :]:
                old.unlink(missing_ok=True)
            self.written += 1
        except OSError as error:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            log.warning("no training checkpoint at update %d: %s; training goes on", step, error)
        self._last = time.monotonic()
        self._cost = self._last - begin
        self.seconds += self._cost

    def newest(self) -> dict[str, Any] | None:
        """The newest readable state of this identity, with tensors on the CPU, or None.

        A damaged state is renamed, and the previous one is used. States of other identities and unfinished
        files are removed.
        """
        for part in self.folder.glob(f"*{PART}"):
            part.unlink(missing_ok=True)
        for path in self._complete():
            content = _read(path)
            if content is None:
                with contextlib.suppress(OSError):
                    path.replace(path.with_suffix(CORRUPT))
                continue
            identity, state = content
            if identity != self.identity:
                log.info("removing %s: it belongs to other settings, inputs or code", path)
                path.unlink(missing_ok=True)
            else:
                return state
        return None

    def _complete(self) -> list[Path]:
        """Newest first."""
        return sorted(self.folder.glob(f"*{SUFFIX}"), reverse=True)


@contextlib.contextmanager
def _without_crc32() -> Iterator[None]:
    """Make torch.save omit its own checksums.

    The SHA-256 covers the whole file, and the CRC-32 took half of a write: 0.33 CPU seconds instead of 0.75
    for the 352 MiB of RoBERTa-small.
    """
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        yield
    finally:
        torch.serialization.set_crc32_options(before)


class _Writer:
    """A stream that hashes written bytes and keeps an error for later.

    torch.save writes from C++, where a Python exception would end the process.
    """

    def __init__(self, stream: Any):
        self._stream, self.hash, self.error = stream, hashlib.sha256(), None

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        if self.error is None:
            try:
                self.hash.update(view)
                self._stream.write(view)
            except OSError as error:
                self.error = error
        return view.nbytes

    def flush(self) -> None:
        pass


def _write(path: Path, content: dict[str, Any]) -> str:
    """Write `content`, flush it to disk, and return its SHA-256."""
    with open(path, "wb") as stream:
        writer = _Writer(stream)
        with _without_crc32():
            torch.save(content, writer)
        if writer.error is not None:
            raise writer.error
        stream.flush()
        os.fsync(stream.fileno())
    return writer.hash.hexdigest()


def _read(path: Path) -> tuple[str, dict[str, Any]] | None:
    """Identity and state; None if the file is damaged."""
    try:
        expected = path.name.split(".")[-2]
        found = files.sha256(path)
        if found != expected:
            log.warning("%s is damaged: its SHA-256 is %s; using the one before", path, found)
            return None
        content = torch.load(path, map_location="cpu", weights_only=True)
        return content["identity"], content["state"]
    except Exception as error:  # a damaged file can cause any error; the previous one may be right
        log.warning("%s cannot be read: %s; using the one before", path, error)
        return None


def _sync_folder(folder: Path) -> None:
    # some network file systems cannot do this; the file itself is already on disk
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
