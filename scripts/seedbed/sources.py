"""Sources: fetched from the first location that works, checked, unpacked, and listed in a manifest."""

import logging
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from seedbed import archives
from seedbed.errors import SeedbedError
from seedbed.files import publish_folder, sha256, write_json

TIMEOUT = (10, 60)  # seconds until a connection stands, and between two blocks of data
BLOCK = 2**20

log = logging.getLogger(__name__)


def fetch(
    name: str, definition: dict[str, Any], folder: str | Path, mirror: str | None = None
) -> dict[str, Any]:
    """Make `folder`/files and `folder`/manifest.json from the first location that works; return the manifest.

    Archives are unpacked, folders and single files copied. `files` is replaced as a whole, then the manifest
    is written: {"location", "sha256" (of the archive or file; None for a folder), "files": {relative path:
    {"sha256", "bytes"}}}. It holds no time: fetching the same again gives the same manifest.

    Args:
        name: the source's name in the config, for messages.
        definition: {"locations": [...], "sha256": hexadecimal or None}.
        folder: the source's own; what a killed job left in it is removed.
        mirror: a folder searched first, for the file name of each location.

    Raises:
        SeedbedError: no location worked; says what was tried and why each failed.
    """
    folder = Path(folder)
    partial = folder / ".partial"
    failures = []
    try:
        for location in candidates(definition["locations"], mirror):
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            try:
                manifest = _take(location, definition.get("sha256"), partial)
            except (SeedbedError, OSError) as error:
                failures.append(f"{location}: {_reason(error)}")
                log.warning("%s: %s", name, failures[-1])
                continue
            publish_folder(partial / "files", folder / "files")
            write_json(folder / "manifest.json", manifest)
            log.info("%s: %d files from %s", name, len(manifest["files"]), location)
            return manifest
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    raise _nothing_worked(name, definition["locations"], failures)


def candidates(locations: Sequence[str], mirror: str | None) -> list[str]:
    """All places to try, in order: the mirror's files and folders, then the locations."""
    names = dict.fromkeys(file_name(location) for location in locations)
    return [*(str(Path(mirror, name)) for name in names if mirror and name), *locations]


def file_name(location: str) -> str:
    """The last part of a path or URL, without query; empty where it has none."""
    path = unquote(urlsplit(location).path) if "://" in location else location
    name = PurePosixPath(path).name
    return "" if name == ".." else name


def local_path(location: str) -> Path | None:
    """The path that a local location means, relative to the working directory; None for other URLs."""
    if location.startswith("file://"):
        return Path(unquote(urlsplit(location).path))
    return None if "://" in location else Path(location).expanduser()


def local_files(locations: Sequence[str]) -> list[str]:
    """The files that exist at local locations: those whose change asks for fetching again."""
    files: list[Path] = []
    for path in filter(None, map(local_path, locations)):
        if path.is_dir():
            files += archives.files_below(path)
        elif path.exists():
            files.append(path)
    return [str(path) for path in files]


def _take(location: str, expected: str | None, partial: Path) -> dict[str, Any]:
    """Fill `partial`/files from one location and return its manifest."""
    path = local_path(location)
    if path is None:
        path = _download(location, partial)
    if not path.exists():
        raise SeedbedError("no such file or folder")
    digest = _checked_sha256(path, expected)
    files = partial / "files"
    files.mkdir()
    if path.is_dir():
        archives.copy_folder(path, files)
    elif archives.is_archive(path.name):
        archives.unpack(path, files)
    else:
        shutil.copyfile(path, files / path.name)
    return {"location": location, "sha256": digest, "files": _listed(files)}


def _checked_sha256(path: Path, expected: str | None) -> str | None:
    if path.is_dir():
        if expected is not None:
            raise SeedbedError(
                "this is a folder, and the sha256 of the config is that of an archive or a file"
            )
        return None
    digest = sha256(path)
    if expected is not None and digest != expected:
        raise SeedbedError(f"its SHA-256 is {digest}, the config expects {expected}")
    return digest


def _listed(files: Path) -> dict[str, Any]:
    paths = archives.files_below(files)
    if not paths:
        raise SeedbedError("it holds no files")
    return {
        path.relative_to(files).as_posix(): {"sha256": sha256(path), "bytes": path.stat().st_size}
        for path in paths
    }


def _download(url: str, partial: Path) -> Path:
    """Fetch a URL of http or https into `partial` and return the file's path."""
    # a tenth of a second to import, and most jobs read local files
    import requests

    scheme = urlsplit(url).scheme
    if scheme not in ("http", "https"):
        raise SeedbedError(f"{scheme}:// is not supported; give http, https, file:// or a path")
    path = partial / "download" / (file_name(url) or "download")
    path.parent.mkdir()
    log.info("downloading %s", url)
    # the size can only be checked for the bytes as they are, without compression on the way
    headers = {"Accept-Encoding": "identity"}
    with requests.get(url, stream=True, timeout=TIMEOUT, headers=headers) as response:
        if not response.ok:
            raise SeedbedError(f"HTTP status {response.status_code} {response.reason}")
        with open(path, "wb") as stream:
            for block in response.iter_content(BLOCK):
                stream.write(block)
        _check_length(path, response.headers)
    return path


def _check_length(path: Path, headers: Any) -> None:
    announced, received = headers.get("Content-Length"), path.stat().st_size
    if announced is None or "Content-Encoding" in headers:
        log.warning(
            "the server does not tell the size, so a cut-off download may go unnoticed: %s", path.name
        )
    elif int(announced) != received:
        raise SeedbedError(f"the download was cut off: {received:,} of {int(announced):,} bytes")


def _reason(error: Exception) -> str:
    """An error in one line, since several are listed together."""
    if isinstance(error, SeedbedError):
        return "; ".join(str(part) for part in (error.what, error.where, error.found) if part)
    return f"{type(error).__name__}: {error}"


def _nothing_worked(name: str, locations: Sequence[str], failures: list[str]) -> SeedbedError:
    wanted = next(filter(None, map(file_name, locations)), "the file")
    return SeedbedError(
        f"source {name!r} could not be fetched from any location",
        where=f"config, sources.{name}",
        found="".join(f"\n    - {failure}" for failure in failures),
        hint=f"put {wanted} into a folder DIR and give `--config mirror=DIR`, or mend the locations",
    )
