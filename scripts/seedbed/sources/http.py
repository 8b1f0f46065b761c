"""Download over HTTP, resuming where an earlier process stopped.

The file PART has the bytes received so far; a note beside it records their URL and version. requests handles
redirects, proxies, certificates and .netrc. This module adds resuming, limits and checks.
"""

import contextlib
import dataclasses
import email.utils
import functools
import gzip
import logging
import os
import re
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, write_json
from seedbed.core.printable import one_line
from seedbed.sources.archives import MAX_BYTES, MAX_RATIO, RATIO_FROM
from seedbed.sources.progress import Progress
from seedbed.sources.retries import PATIENCE, Patience, TryAgain, is_temporary, repeat
from seedbed.sources.space import check_space, explaining_full_disk

BLOCK = 2**20  # most bytes between two writes
NOTE, DECODED = ".download.json", ".decoded"
GZIP = b"\x1f\x8b"
ENCODINGS = ("gzip", "x-gzip", "deflate", "compress", "x-compress", "br", "zstd")
ETAG = re.compile(r'"[!#-~\x80-\xff]*"')  # a strong one (RFC 9110, 8.8.3)
REDIRECTS = 10

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class _Job:
    url: str
    part: Path
    size: int | None
    verify: Callable[[Path], Any] | None
    headers: Mapping[str, str]
    room: int
    packed: bool
    patience: Patience

    @property
    def name(self) -> str:
        return one_line(Path(unquote(urlsplit(self.url).path)).name or self.url)


def download(
    url: str,
    part: str | Path,
    *,
    size: int | None = None,
    verify: Callable[[Path], Any] | None = None,
    headers: Mapping[str, str] | None = None,
    room: int = 1,
    packed: bool = False,
    patience: Patience = PATIENCE,
) -> None:
    """Fetch `url` (http or https) into the file `part`, resuming from its existing bytes.

    The result is the file as the server stores it. The request forbids compression in transit. If the answer
    has a Content-Encoding anyway, either the stored file is compressed or the server ignored the request:
    `verify`, `size`, `packed` and the URL's ending decide which.

    A download is resumed only if the server confirms, by an ETag or a date, that the file is unchanged, or
    if `verify` can check the result. If a resumed file fails `verify`, it is fetched once more from its
    beginning.

    Args:
        url: the address.
        part: the file; after an interruption it remains, with its note. `forget` removes both.
        size: expected bytes; a server that announces another size is refused, and one that sends more is
            stopped at the first byte too many.
        verify: raises SeedbedError unless the finished file is as expected; None: no check is possible.
        headers: further headers of the request, for instance a token.
        room: bytes of disk needed per byte of the file: 2 for an archive that is unpacked next.
        packed: whether the stored file is compressed, regardless of its name.
        patience: attempts and time limits.

    Raises:
        DiskFull: the disk has too little room, before or while writing.
        SeedbedError: the server refuses, or all attempts failed.
    """
    try:
        scheme = urlsplit(url).scheme
    except ValueError as error:
        raise SeedbedError(f"invalid URL: {error}", found=url) from None
    if scheme not in ("http", "https"):
        raise SeedbedError(f"{scheme}:// is not supported; give http, https, hf://, file:// or a path")
    job = _Job(url, Path(part), size, verify, headers or {}, room, packed, patience)
    job.part.parent.mkdir(parents=True, exist_ok=True)
    with explaining_full_disk(job.part.parent):
        if _is_complete_already(job):
            return
        joined = _fill(job)
        try:
            _settle(job)
        except SeedbedError as error:
            if not joined or verify is None:
                raise
            log.warning(
                "%s: the resumed file is wrong (%s); starting again",
                *(job.name, error.what),
            )
            _fill(job)
            _settle(job)


def forget(part: str | Path) -> None:
    """Remove the files of a download."""
    part = Path(part)
    for path in (part, _state_path(part), part.with_name(part.name + DECODED)):
        path.unlink(missing_ok=True)


def is_note(path: Path) -> bool:
    """Whether a file is the note of a download."""
    return path.name.endswith(NOTE)


def _settle(job: _Job) -> None:
    """Check a complete file, after decompressing it if it was compressed in transit.

    Raises:
        SeedbedError: the file was not as expected, and was removed.
    """
    encoding = (_state(job) or {}).get("encoding")
    try:
        if encoding is None:
            _check(job)
        elif not _is_stored_so(job):
            _decode(job, encoding)
            _check(job)
    except SeedbedError:
        forget(job.part)
        raise


def _check(job: _Job) -> None:
    size = job.part.stat().st_size
    if job.size is not None and size != job.size:
        raise SeedbedError(f"it has {size:,} bytes instead of {job.size:,}")
    if job.verify is not None:
        job.verify(job.part)


def _is_stored_so(job: _Job) -> bool:
    """Whether the file is stored with the Content-Encoding of its answer."""
    if job.verify is not None or job.size is not None:
        with contextlib.suppress(SeedbedError):
            _check(job)
            return True
        return False
    with open(job.part, "rb") as stream:
        is_gzip = stream.read(len(GZIP)) == GZIP
    return job.packed or (is_gzip and job.name.lower().endswith((".gz", ".tgz")))


def _decode(job: _Job, encoding: str) -> None:
    """Undo the compression in transit.

    Raises:
        SeedbedError: the encoding is unknown or damaged, or the result has more bytes than expected.
    """
    with open(job.part, "rb") as stream:
        is_gzip = stream.read(len(GZIP)) == GZIP
    if not is_gzip:
        if encoding in ENCODINGS:
            raise SeedbedError(
                f"the server uses Content-Encoding {encoding}, though the request asked for none",
                hint="take it from another location, or give your own copy as mirror",
            )
        return  # not a compression
    packed = job.part.stat().st_size
    most = max(RATIO_FROM, MAX_RATIO * packed) if job.size is None else job.size
    plain, size = job.part.with_name(job.part.name + DECODED), 0
    try:
        with gzip.open(job.part) as stream, open(plain, "wb") as output:
            while block := stream.read(BLOCK):
                size += len(block)
                if size > most:
                    raise _too_many(most)
                output.write(block)
        os.replace(plain, job.part)
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of the disk
        raise SeedbedError(f"its Content-Encoding {encoding} is damaged: {error}") from error
    finally:
        plain.unlink(missing_ok=True)
    write_json(_state_path(job.part), {"url": job.url, "validator": None, "total": size, "encoding": None})


def _too_many(most: int, is_known: bool = True) -> SeedbedError:
    if not is_known:
        return SeedbedError(
            f"it has more than {most:,} bytes, but the server states no size; the rest was not read",
            hint="if this is the right file, give its size as `bytes` of the source",
        )
    return SeedbedError(f"it has more than the expected {most:,} bytes; the rest was not read")


def _is_complete_already(job: _Job) -> bool:
    """Whether an earlier process finished the file, and its content passes `verify`."""
    state = _state(job)
    if job.verify is None or state is None or state["total"] != job.part.stat().st_size:
        return False
    try:
        job.verify(job.part)
    except SeedbedError:
        forget(job.part)
        return False
    log.info("%s: already downloaded by an earlier run", job.name)
    return True


def _fill(job: _Job) -> bool:
    """Fetch the file in one or more attempts; return whether the last one resumed."""

    def received() -> int:
        return job.part.stat().st_size if job.part.exists() else 0

    return repeat(lambda: _attempt(job), job.name, job.patience, received)


def _attempt(job: _Job) -> bool:
    # this import takes a tenth of a second, and most jobs read local files
    import requests
    import urllib3

    start, validator = _where_to_go_on(job)
    # the size can be checked only without compression in transit
    headers = {**job.headers, "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
        if validator:
            headers["If-Range"] = validator
    log.info("downloading %s%s", job.url, f" from byte {start:,}" if start else "")
    try:
        with requests.Session() as session:
            session.max_redirects = REDIRECTS
            session.get_redirect_target = functools.partial(_target, session.get_redirect_target)
            with session.get(
                job.url, stream=True, timeout=(job.patience.connect, job.patience.read), headers=headers
            ) as response:
                start = _start_agreed(job, response, start)
                _receive(job, response, start)
    except (
        requests.TooManyRedirects,
        requests.exceptions.SSLError,
        ValueError,  # invalid URL, port or host, also in a redirect
    ) as error:
        raise SeedbedError(f"{type(error).__name__}: {error}") from error
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise TryAgain(f"{type(error).__name__}: {error}") from error
    return start > 0


def _target(find: Callable[[Any], str | None], response: Any) -> str | None:
    """The target of a redirect, whose body, being of any length, is not read."""
    target = find(response)
    if target:
        response.raw.close()
    return target


def _start_agreed(job: _Job, response: Any, start: int) -> int:
    """Check status and headers of an answer, and return the offset of its first byte in the file."""
    if response.status_code == 206:
        span = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", response.headers.get("Content-Range", ""))
        state = _state(job) or {}
        known = state.get("total")
        span = None if _encoding(response) != state.get("encoding") else span
        # a server may ignore If-Range and continue with another version of the file
        same_file = state.get("validator") in (None, _validator(response) or state.get("validator"))
        if start and span and int(span[1]) == start and known in (None, _total(response)) and same_file:
            return start
        forget(job.part)
        raise TryAgain(
            "the server sent another part or another version of the file than requested", at_once=True
        )
    if response.status_code == 416 and start:
        forget(job.part)
        raise TryAgain("the server has no such part of the file; starting again", at_once=True)
    if response.status_code != 200:
        raise _refused(response)
    if start:
        log.warning(
            "%s: the server cannot send parts of files, or the file has changed; starting again",
            job.name,
        )
    total = _total(response)
    if total is None:
        log.warning("%s: the server states no size, so a truncated file may go unnoticed", job.name)
    elif job.size is not None and total != job.size and _encoding(response) is None:
        raise SeedbedError(f"the server announces {total:,} bytes instead of {job.size:,}")
    forget(job.part)
    note = {
        "url": job.url,
        "validator": _validator(response),
        "total": total,
        "encoding": _encoding(response),
    }
    write_json(_state_path(job.part), note)
    return 0


def _refused(response: Any) -> Exception:
    """The error for a status of failure."""
    reason = f"HTTP status {response.status_code} {response.reason}"[:200]
    if is_temporary(response.status_code):
        return TryAgain(reason, response.headers.get("Retry-After"))
    return SeedbedError(reason)


def _total(response: Any) -> int | None:
    """The file's size according to the server, or None."""
    if response.status_code == 206:
        total = response.headers.get("Content-Range", "").rpartition("/")[2]
    else:
        total = response.headers.get("Content-Length", "")
    return int(total) if total.isdecimal() else None


def _encoding(response: Any) -> str | None:
    """The Content-Encoding of an answer, or None."""
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    return None if encoding in ("", "identity") else encoding


def _validator(response: Any) -> str | None:
    """An identifier of the file's version: a strong ETag, or a date that is old enough; else None."""
    if _encoding(response) is not None:
        return None
    etag = response.headers.get("ETag", "")
    if ETAG.fullmatch(etag):
        return etag
    modified, now = response.headers.get("Last-Modified", ""), response.headers.get("Date", "")
    with contextlib.suppress(ValueError, TypeError):
        age = email.utils.parsedate_to_datetime(now) - email.utils.parsedate_to_datetime(modified)
        # a file can change twice within the second that a date names (RFC 9110, 8.8.2.2)
        if age.total_seconds() >= 1 and modified.isprintable():
            return modified
    return None


def _receive(job: _Job, response: Any, start: int) -> None:
    total, most = _total(response), _most(job, response)
    if total is not None:
        check_space(job.part.parent, job.room * total - start)
    received = start
    with (
        open(job.part, "r+b" if start else "wb", buffering=0) as stream,
        Progress(job.name, total, start) as bar,
    ):
        stream.seek(start)
        stream.truncate()
        # requests' iterator would undo a Content-Encoding, and lose the bytes of an incomplete block
        while block := response.raw.read1(_next(received, most), decode_content=False):
            received += len(block)
            if received > most:
                forget(job.part)
                raise _too_many(most, job.size is not None or total is not None)
            _write(stream, block)
            bar.add(len(block))
    if total is not None and received != total:
        raise TryAgain(f"the download was cut off: {received:,} of {total:,} bytes")


def _next(received: int, most: int) -> int:
    """The number of bytes to read next: at most up to the first byte too many."""
    return max(1, min(BLOCK, most - received + 1))


def _most(job: _Job, response: Any) -> int:
    """The largest accepted number of bytes: the file's size, or MAX_BYTES if it is unknown."""
    size = job.size
    if size is not None and _encoding(response) is not None:
        size += size // 1000 + 1024  # gzip adds this to bytes that it cannot compress
    return min((number for number in (size, _total(response)) if number is not None), default=MAX_BYTES)


def _write(stream: Any, block: bytes) -> None:
    """Write a whole block; an unbuffered write to a nearly full disk may write only a part of it."""
    view = memoryview(block)
    while view:
        view = view[stream.write(view) :]


def _where_to_go_on(job: _Job) -> tuple[int, str | None]:
    """Offset of the first missing byte, and the validator to send; (0, None) to fetch the whole file."""
    state = _state(job)
    if state is None or not (state["validator"] or job.verify):
        forget(job.part)
        return 0, None
    size, total = job.part.stat().st_size, state["total"]
    # request the last byte of a complete file: the answer shows whether the file is unchanged
    return (size if total is None or size < total else max(0, total - 1)), state["validator"]


def _state(job: _Job) -> dict[str, Any] | None:
    """The note on the received bytes; None if it is missing or of another URL."""
    try:
        state = read_json(_state_path(job.part))
    except (OSError, ValueError):
        return None
    good = isinstance(state, dict) and state.keys() >= {"url", "validator", "total"}
    return state if good and state["url"] == job.url and job.part.is_file() else None


def _state_path(part: Path) -> Path:
    return part.with_name(part.name + NOTE)
