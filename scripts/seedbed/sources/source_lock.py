"""The lock file of sources: hashes of each download at its first fetch, which later fetches must match.

JSON: {"NAME" or "NAME@VERSION": {"version", "file", "sha256", "bytes", "location"}}; for a repository on the
Hugging Face hub {"version", "commit", "files": {path: {"sha256", "bytes"}}, "bytes", "location"}. Keep it
under version control, so that every clone of the repository gets the same bytes.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seedbed.core import locks
from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, write_json

WAIT = 60  # seconds for another job to write its few lines


def key(name: str, version: str | None) -> str:
    """The name of an entry; each version of a source has its own."""
    return f"{name}@{version}" if version else name


def find(lock: str | Path, name: str, version: str | None) -> dict[str, Any] | None:
    """The entry of a source, or None.

    Raises:
        SeedbedError: the lock file cannot be read, or an entry is invalid.
    """
    return _read(lock).get(key(name, version))


def record(lock: str | Path, name: str, version: str | None, entry: dict[str, Any]) -> dict[str, Any]:
    """Add an entry, unless another process wrote it first, and return the entry in the file.

    The `files` of an entry are added to the recorded ones. Several processes may record at once.

    Raises:
        SeedbedError: the lock file cannot be read, or another process holds it for a minute.
    """
    lock = Path(lock)
    lock.parent.mkdir(parents=True, exist_ok=True)
    with _only_writer(lock):
        entries = _read(lock)
        standing = entries.get(key(name, version))
        merged = {"version": version, **entry} if standing is None else _merged(standing, entry)
        if merged != standing:
            write_json(lock, dict(sorted((entries | {key(name, version): merged}).items())))
    return merged


@contextlib.contextmanager
def _only_writer(lock: Path) -> Iterator[None]:
    """Keep other processes from writing the lock file; without locks, the last writer wins."""
    guard = lock.with_name(f".{lock.name}.guard")
    try:
        held = locks.wait(guard, WAIT)
    except OSError as error:
        if error.errno not in locks.NONE_HERE:
            raise
        yield
        return
    if held is None:
        raise SeedbedError(
            "another process keeps the lock file of sources locked",
            where=str(lock),
            found=f"{guard} held for more than {WAIT} s by {locks.note(guard) or 'an unknown process'}",
            hint="end the other process and run again",
        )
    try:
        yield
    finally:
        held.release()


def _merged(standing: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    if not {"files"} <= standing.keys() & entry.keys():
        return standing
    files = dict(sorted((entry["files"] | standing["files"]).items()))
    size = sum(file["bytes"] for file in files.values())
    return standing | {"commit": standing.get("commit") or entry.get("commit"), "files": files, "bytes": size}


def _read(lock: str | Path) -> dict[str, Any]:
    hint = "restore it from version control, correct it, or remove it to trust the next downloads"
    try:
        entries = read_json(lock)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SeedbedError(
            "the lock file of sources cannot be read", where=str(lock), found=error, hint=hint
        ) from error
    entries = entries if isinstance(entries, dict) else {"the file": entries}
    for name, entry in entries.items():
        if not _is_entry(entry):
            raise SeedbedError(
                "the lock file of sources has an entry without a hash",
                where=f"{lock}, {name}",
                found=entry,
                hint=hint,
            )
    return entries


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    files = entry["files"] if isinstance(entry.get("files"), dict) else {"": entry}
    return bool(files) and all(
        isinstance(file, dict) and isinstance(file.get("sha256"), str) and isinstance(file.get("bytes"), int)
        for file in files.values()
    )
