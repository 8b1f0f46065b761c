"""Training checkpoints of a run: written whole or not at all, checked before they are read.

A state is one file, NUMBER.update-STEP.SHA256.state: its name gives the hash of its content and is set by the
rename that ends the writing, so a file under such a name is complete unless the disk has changed it since.
States are numbered in the order of writing, since a run may write several at one update.
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

RATE = 300e6  # bytes a second that are hashed and written, where no state has been yet
KEPT = 2  # the newest, and the one before in case the newest cannot be read
SUFFIX, PART, CORRUPT = ".state", ".part", ".corrupt"
log = logging.getLogger(__name__)


class TrainingStates:
    """The states of one run, in a folder that only its owner writes to.

    Args:
        folder: where they lie; it is made when the first is written.
        identity: what determines the run's result; a state of another identity is never used.
        interval: seconds between two states, at least.
        max_share: largest share of the time that writing may take, above 0; 1 is no limit.

    Attributes:
        written: states written so far.
        seconds: seconds that writing took so far.
    """

    def __init__(self, folder: Path, identity: str, interval: float, max_share: float):
        self.folder, self.identity = Path(folder), identity
        self.interval, self.max_share = interval, max_share
        self.written, self.seconds = 0, 0.0
        self._last, self._cost = time.monotonic(), 0.0

    def due(self) -> bool:
        """Whether a state should be written now: the pace allows it, or the process was asked to leave.

        The pace is kept by the clock that never jumps. After a write that took c seconds, c / max_share must
        have passed since its begin; before the first, c is what `expect` makes of the size.
        """
        gap = max(self.interval, self._cost * (1 / self.max_share - 1))
        return interruption.requested() is not None or time.monotonic() - self._last >= gap

    def expect(self, size: int) -> None:
        """Say how many bytes a state has, where that is so many that even the first should wait."""
        if not self.written:
            self._cost = size / RATE

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write a state and remove all but the newest two.

        Where it cannot be written (the disk is full, a quota is reached) training goes on without: the part
        file is removed and the log gets a warning.

        Args:
            step: updates made.
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
        """The newest readable state of this identity, tensors on the CPU; None without one.

        A damaged state is renamed, and the one before it is taken. States of another identity and the rest of
        an interrupted write are removed.
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
    """Let torch.save leave out its own checksums.

    The SHA-256 guards all of the file, and the CRC-32 took half of a write: 0.33 CPU seconds in place of 0.75
    for the 352 MiB of RoBERTa-small.
    """
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        yield
    finally:
        torch.serialization.set_crc32_options(before)


class _Writer:
    """A stream that hashes what it writes and keeps an error for later.

    torch.save writes from C++, where an exception of Python cannot pass without ending the process.
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
    """Write `content` to the disk itself; its SHA-256."""
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
    """Identity and state; None where the file is damaged."""
    try:
        expected = path.name.split(".")[-2]
        found = files.sha256(path)
        if found != expected:
            log.warning("%s is damaged: its SHA-256 is %s; using the one before", path, found)
            return None
        content = torch.load(path, map_location="cpu", weights_only=True)
        return content["identity"], content["state"]
    except Exception as error:  # whatever is wrong with the file, the one before may be right
        log.warning("%s cannot be read: %s; using the one before", path, error)
        return None


def _sync_folder(folder: Path) -> None:
    # some network file systems cannot; the file itself is on the disk already
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
