"""Fetch a source from the first location that works, check and unpack it, and write its manifest."""

import dataclasses
import fnmatch
import hashlib
import logging
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError, from_system
from seedbed.core.files import publish_folder, sha256, write_json
from seedbed.core.paths import inside
from seedbed.core.printable import Lines, one_line
from seedbed.sources import archives, http, hub, source_lock
from seedbed.sources.folders import files_below
from seedbed.sources.locations import candidates, file_name, is_local, local_files, local_path
from seedbed.sources.retries import PATIENCE, Patience
from seedbed.sources.space import DiskFull, check_space, explaining_full_disk

__all__ = ["candidates", "fetch", "file_name", "local_files", "local_path"]

UNKNOWN = {"sha256": None, "bytes": None, "version": None, "kind": "auto", "include": None}
HTML = (b"<!doctype html", b"<html")

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class _Source:
    """A source with its folders and its entry in the lock file (`locked`), if any."""

    name: str
    definition: dict[str, Any]
    folder: Path
    partial: Path
    lock: Path | None
    locked: dict[str, Any] | None
    patience: Patience

    @property
    def downloads(self) -> Path:
        return self.folder / ".downloads"

    @property
    def sha256(self) -> str | None:
        return self.definition["sha256"] or (self.locked or {}).get("sha256")


def fetch(
    name: str,
    definition: dict[str, Any],
    folder: str | Path,
    mirror: str | None = None,
    lock: str | Path | None = None,
    patience: Patience = PATIENCE,
) -> dict[str, Any]:
    """Make `folder`/files and `folder`/manifest.json from the first location that works; return the manifest.

    Archives are unpacked; folders and single files are copied. The folder `files` is replaced as a whole,
    then the manifest is written: {"location", "sha256" (of the archive or file; None for a folder or a
    repository of the hub), "files": {relative path: {"sha256", "bytes"}}}. It contains no time, so the same
    content gives the same manifest. The next call resumes an interrupted download from `folder`/.downloads.

    Args:
        name: the source's name in the config, for messages.
        definition: as in the config: {"locations": [...]} and optionally "sha256" (hexadecimal), "bytes",
            "version", "kind" and "include".
        folder: the source's own folder; the remains of a killed job are removed.
        mirror: a folder to search first for the file name of each location, or a file with such a name.
        lock: the lock file, or None. The first fetch of a source with a remote location and no sha256 is
            recorded there; later ones must match the record, from any location.
        patience: attempts and time limits of downloads.

    Raises:
        SeedbedError: no location worked (the error gives each reason), the disk is full, or the lock file is
            invalid.
    """
    source = _source(name, UNKNOWN | definition, Path(folder), lock, patience)
    failures = []
    try:
        for location in candidates(definition["locations"], mirror):
            shutil.rmtree(source.partial, ignore_errors=True)
            source.partial.mkdir(parents=True)
            try:
                with explaining_full_disk(source.folder):
                    manifest = _take(source, location)
            except DiskFull as error:
                raise _no_room(source, location, error) from error
            except (SeedbedError, OSError, ValueError) as error:
                failures.append(one_line(f"{location}: {_reason(error)}"))
                log.warning("%s: %s", name, failures[-1])
                continue
            with explaining_full_disk(source.folder):
                publish_folder(source.partial / "files", source.folder / "files")
                write_json(source.folder / "manifest.json", manifest)
            shutil.rmtree(source.downloads, ignore_errors=True)
            log.info("%s: %d files from %s", name, len(manifest["files"]), location)
            return manifest
    finally:
        shutil.rmtree(source.partial, ignore_errors=True)
    raise _nothing_worked(source, failures)


def _source(
    name: str, definition: dict[str, Any], folder: Path, lock: str | Path | None, patience: Patience
) -> _Source:
    remote = not all(map(is_local, definition["locations"]))
    lock = Path(lock) if lock is not None and remote and definition["sha256"] is None else None
    locked = source_lock.find(lock, name, definition["version"]) if lock else None
    return _Source(name, definition, folder, folder / ".partial", lock, locked, patience)


def _take(source: _Source, location: str) -> dict[str, Any]:
    """Fill `files` in `partial` from one location, check it, and return its manifest."""
    path, files = local_path(location), source.partial / "files"
    if path is not None:
        _check_there(path)
    on_hub, is_folder = location.startswith(hub.SCHEME), path is not None and path.is_dir()
    _check_kind(source, on_hub, is_folder)
    entry: dict[str, Any] = {"location": location}
    if on_hub:
        entry["commit"] = _take_repository(source, location, files)
    elif is_folder:
        _take_folder(source, path, files)
    else:
        entry |= _take_file(source, location, path, files)
    listed = _listed(files)
    if on_hub or is_folder:
        entry["bytes"] = sum(file["bytes"] for file in listed.values())
        _check_size(source, entry["bytes"])
        _check_files(source, source.locked, listed)
    is_copy = is_folder and _is_repository(source)
    if is_copy and source.locked:
        strangers = sorted(listed.keys() - source.locked.get("files", {}).keys())
        if strangers:  # only the hub may add files to those known of a commit
            raise _unlike_lock(source, f"it has {strangers[0]}", "no such file")
    if on_hub or is_copy:
        entry["files"] = listed
    _record(source, entry)
    commit = {"commit": entry["commit"]} if on_hub else {}
    return {"location": location, "sha256": entry.get("sha256"), **commit, "files": listed}


def _check_there(path: Path) -> None:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise from_system(error) or SeedbedError("no such file or folder") from error


def _check_kind(source: _Source, on_hub: bool, is_folder: bool) -> None:
    """Check that a location is of the source's kind, and of a kind that can have its known hash."""
    kind = source.definition["kind"]
    fits = {
        "archive": not on_hub and not is_folder,
        "file": not on_hub and not is_folder,
        "folder": is_folder,
        "hub": on_hub or is_folder,
    }
    if source.sha256 is not None and (on_hub or is_folder):
        what = "repository of the hub" if on_hub else "folder"
        owner = "the config" if source.definition["sha256"] else f"the lock file {source.lock}"
        raise SeedbedError(f"this is a {what}, but the sha256 in {owner} is of an archive or a file")
    if not fits.get(kind, True):
        raise SeedbedError(f"the location does not fit the source's kind, {kind}")


def _is_repository(source: _Source) -> bool:
    return any(location.startswith(hub.SCHEME) for location in source.definition["locations"])


def _take_repository(source: _Source, location: str, files: Path) -> str:
    """Download a repository of the hub, at the locked commit if there is one, and return the commit."""
    commit, paths = hub.fetch(
        location,
        source.downloads,
        revision=(source.locked or {}).get("commit") or source.definition["version"],
        include=source.definition["include"],
        patience=source.patience,
    )
    for name, path in paths.items():
        target = inside(files, name, hub.A_FILE)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, target)
    return commit


def _take_folder(source: _Source, path: Path, files: Path) -> None:
    needed = sum(file.stat().st_size for file in files_below(path))
    check_space(source.partial, needed)
    files.mkdir()
    archives.copy_folder(path, files, include=source.definition["include"])


def _take_file(source: _Source, location: str, path: Path | None, files: Path) -> dict[str, Any]:
    """Take an archive or a single file; return its {"file", "sha256", "bytes"}."""
    name, downloaded = _name(location), path is None
    if path is None:
        path = _downloaded(source, location)
    elif not path.is_file():
        raise SeedbedError("it is a device or a pipe, not a file")
    found = {"file": name, "sha256": _checked_sha256(source, path), "bytes": path.stat().st_size}
    _check_size(source, found["bytes"])
    files.mkdir()
    try:
        if _is_archive(source, location):
            archive = _named_as_archive(source, location, path)
            check_space(source.partial, archives.unpacked_size(archive))
            archives.unpack(archive, files, include=source.definition["include"])
            _check_unchanged(path, found["sha256"])
        else:
            _check_is_no_page(source, location, path)
            check_space(source.partial, 0 if downloaded else found["bytes"])
            (os.replace if downloaded else shutil.copyfile)(path, files / found["file"])
            _check_unchanged(files / found["file"], found["sha256"])
    except DiskFull:
        raise
    except SeedbedError:
        if downloaded:  # complete but wrong: the next run must not resume it
            http.forget(path)
        raise
    return found


def _check_unchanged(path: Path, digest: str) -> None:
    """Check that no other process changed the file after it was hashed."""
    if sha256(path) != digest:
        raise SeedbedError("the file changed while it was read")


def _name(location: str) -> str:
    """The name of a location's file; the name in a URL is untrusted and checked."""
    name = file_name(location)
    if name and not is_local(location):
        inside("files", name, "the URL's file")
    return name or "download"


def _is_archive(source: _Source, location: str) -> bool:
    kind = source.definition["kind"]
    return kind == "archive" or (kind == "auto" and archives.is_archive(file_name(location)))


def _downloaded(source: _Source, url: str) -> Path:
    # one folder per URL, so that no server continues another one's file
    folder = hashlib.sha256(url.encode()).hexdigest()[:12]
    part = source.downloads / folder / "download.part"
    verify = None if source.sha256 is None else lambda path: _checked_sha256(source, path)
    http.download(
        url,
        part,
        size=source.definition["bytes"],
        verify=verify,
        room=2 if _is_archive(source, url) else 1,
        packed=_is_archive(source, url),
        patience=source.patience,
    )
    return part


def _named_as_archive(source: _Source, location: str, path: Path) -> Path:
    """The archive under a name with an archive's ending, from this or another location or by its content."""
    names = map(file_name, [location, *source.definition["locations"]])
    name = next(filter(archives.is_archive, names), None)
    if name is None:
        name = _name(location) + (".zip" if zipfile.is_zipfile(path) else ".tar")
    if path.name == name:
        return path
    alias = source.partial / "archive" / name
    alias.parent.mkdir()
    alias.symlink_to(path.absolute())
    return alias


def _check_is_no_page(source: _Source, location: str, path: Path) -> None:
    """Refuse HTML instead of a file without a known hash: it is usually a log-in page."""
    if is_local(location) or source.sha256 or _name(location).lower().endswith((".html", ".htm")):
        return
    with open(path, "rb") as stream:
        begins = stream.read(1024).lstrip().lower()
    if begins.startswith(HTML):
        raise SeedbedError("this is a page of HTML: the address needs a log-in or has moved")


def _checked_sha256(source: _Source, path: Path) -> str:
    digest, expected = sha256(path), source.sha256
    if expected is not None and digest != expected:
        if source.definition["sha256"]:
            raise SeedbedError(f"its SHA-256 is {digest}, the config expects {expected}")
        raise _unlike_lock(source, f"its SHA-256 is {digest}", expected)
    return digest


def _unlike_lock(source: _Source, found: str, expected: str) -> SeedbedError:
    key = source_lock.key(source.name, source.definition["version"])
    return SeedbedError(
        f"{found}, the lock file {source.lock} expects {expected}, as first seen at "
        f"{(source.locked or {}).get('location')}",
        hint=f"if you want the new content and trust it, remove {key!r} from {source.lock}",
    )


def _check_size(source: _Source, size: int) -> None:
    expected = source.definition["bytes"]
    if expected is not None and size != expected:
        raise SeedbedError(f"it has {size:,} bytes, the config expects {expected:,}")


def _check_files(source: _Source, locked: dict[str, Any] | None, listed: dict[str, Any]) -> None:
    """Compare the files of a folder or repository with the lock file."""
    wanted = source.definition["include"] or ["*"]
    for name, file in (locked or {}).get("files", {}).items():
        if name not in listed and any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted):
            raise _unlike_lock(source, f"it lacks {name}", file["sha256"])
        if name in listed and listed[name]["sha256"] != file["sha256"]:
            raise _unlike_lock(source, f"the SHA-256 of {name} is {listed[name]['sha256']}", file["sha256"])


def _record(source: _Source, entry: dict[str, Any]) -> None:
    """Record and log the content of a source that is fetched for the first time."""
    if source.lock is None:
        return
    if "sha256" not in entry and "files" not in entry:
        log.warning("%s: no hash is known to compare this folder with: %s", source.name, entry["location"])
        return
    new = {key: value for key, value in entry.get("files", entry).items() if key != "location"}
    known = (source.locked or {}).get("files", source.locked or {})
    if new.keys() <= known.keys():
        return
    standing = source_lock.record(source.lock, source.name, source.definition["version"], entry)
    source = dataclasses.replace(source, locked=standing)
    # another job may have recorded something else first
    if "sha256" in entry and entry["sha256"] != standing.get("sha256"):
        raise _unlike_lock(
            source, f"its SHA-256 is {entry['sha256']}", standing.get("sha256", "several files")
        )
    _check_files(source, standing, entry.get("files", {}))
    log.warning(
        "%s: no SHA-256 was known; the content from %s is trusted and recorded in %s: %s. Later fetches must "
        "match it",
        source.name,
        entry["location"],
        source.lock,
        entry.get("sha256") or f"{len(entry['files'])} files of commit {entry.get('commit')}",
    )


def _listed(files: Path) -> dict[str, Any]:
    paths = files_below(files) if files.exists() else []
    if not paths:
        raise SeedbedError("it has no files")
    return {
        path.relative_to(files).as_posix(): {"sha256": sha256(path), "bytes": path.stat().st_size}
        for path in paths
    }


def _reason(error: Exception) -> str:
    """An error in one line, for a list of errors."""
    error = from_system(error) or error
    if isinstance(error, SeedbedError):
        return "; ".join(
            one_line(part) for part in (error.what, error.where, error.found, error.hint) if part
        )
    return f"{type(error).__name__}: {error}"


def _kept(source: _Source) -> str:
    """A sentence on the bytes that a failed job keeps; empty if it keeps none."""
    files = [path for path in files_below(source.downloads) if not http.is_note(path)]
    size = sum(path.stat().st_size for path in files)
    if not size:
        shutil.rmtree(source.downloads, ignore_errors=True)
        return ""
    return f"{size:,} received bytes are kept in {source.downloads}; the next run resumes from them"


def _no_room(source: _Source, location: str, error: DiskFull) -> SeedbedError:
    return SeedbedError(
        f"source {source.name!r}: {error.what}",
        where=f"{error.where}, for {location}",
        found=error.found,
        hint="; ".join(filter(None, (error.hint, _kept(source)))),
    )


def _nothing_worked(source: _Source, failures: list[str]) -> SeedbedError:
    wanted = next(filter(None, map(file_name, source.definition["locations"])), "the file")
    remedy = f"put {wanted} into a folder DIR and give `--config mirror=DIR`, or correct the locations"
    return SeedbedError(
        f"source {source.name!r} could not be fetched from any location",
        where=f"config, sources.{source.name}",
        found=Lines("".join(f"\n    - {failure}" for failure in failures)),
        hint="; ".join(filter(None, (remedy, _kept(source)))),
    )
