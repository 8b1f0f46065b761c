"""The archive of a bundle: written with the sums of its files, and unpacked and checked for who reads it.

The same files give the same bytes: names are sorted, and times, owners and modes are fixed.
"""

import contextlib
import gzip
import json
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from seedbed.bundle.contents import RESULTS, Contents, experiment_of
from seedbed.core import files, paths
from seedbed.core.errors import SeedbedError
from seedbed.core.wording import Words
from seedbed.sources import archives

ENDING = ".tar.gz"
SUMS, README, LOCK = "SHA256SUMS", "README.txt", "sources.lock.json"
NOT_A_BUNDLE = "name a file that `seedbed bundle` wrote, or fetch it again"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def write(contents: Contents, output: Path) -> int:
    """Write a bundle, which appears whole; returns the number of its files."""
    with tempfile.TemporaryDirectory() as private:
        made = {
            README: _readme(contents),
            LOCK: json.dumps(contents.lock, ensure_ascii=False, indent=2, sort_keys=True) + "\n",
        }
        members = {**contents.files, **{name: Path(private, name) for name in made}}
        for name, text in made.items():
            files.write_text(members[name], text)
        sums = "".join(f"{files.sha256(path)}  {name}\n" for name, path in sorted(members.items()))
        members[SUMS] = Path(private, SUMS)
        files.write_text(members[SUMS], sums)
        with files.atomic_open(output, "wb") as stream:
            _write_tar(stream, members)
    return len(members)


def _readme(contents: Contents) -> str:
    lines = Words("bundle/readme").items("lines", contents.experiment, contents.texts, contents.left_out)
    return "".join(f"{line}\n" for line in lines)


def _write_tar(stream: IO[bytes], members: Mapping[str, Path]) -> None:
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, path in sorted(members.items()):
            with open(path, "rb") as content:
                member = tarfile.TarInfo(name)  # time 0, owner 0, mode 0644
                member.size = path.stat().st_size
                archive.addfile(member, content)


# --- reading ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Opened:
    """An experiment to read.

    Attributes:
        folder: of the experiment.
        files: number of files of its bundle that have their sums; 0 if it is in no bundle.
    """

    folder: Path
    files: int = 0


@contextlib.contextmanager
def experiment_in(path: Path) -> Iterator[Opened]:
    """The experiment in a bundle, unpacked and checked, in a folder that is removed when the block ends; if
    `path` is no file, the experiment in this folder.

    Errors of the block that name files of the bundle name them by the bundle.

    Raises:
        SeedbedError: the file is no bundle, would be unpacked elsewhere (`archives.unpack`), or a file in it
            does not have its sum.
    """
    if not path.is_file():
        yield Opened(path)
        return
    with tempfile.TemporaryDirectory(prefix="seedbed-") as private:
        folder = Path(private).resolve()
        try:
            archives.unpack(path, folder)
            checked = check_sums(folder)
            yield Opened(experiment_of(folder / RESULTS), checked)
        except SeedbedError as error:
            raise _of_bundle(error, folder, path) from error


def check_sums(folder: Path) -> int:
    """Check that an unpacked bundle has the files of its SHA256SUMS, and no others; returns their number.

    Raises:
        SeedbedError: a file differs, is missing, or has no sum; the sums are missing or damaged.
    """
    sums = _read_sums(folder)
    for name, expected in sums.items():
        path = paths.inside(folder, name, "a file of a bundle")
        found = files.sha256(path) if path.is_file() else None
        if found != expected:
            raise SeedbedError(
                "a file of a bundle is not as it was bundled",
                where=str(path),
                found=f"SHA-256 {found[:12]}…; {SUMS} has {expected[:12]}…" if found else "no such file",
                hint=f"fetch the bundle again; if it still differs, it was changed after {SUMS} was written",
            )
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    if without := sorted(there - {*sums, SUMS}):
        raise SeedbedError("a file of a bundle has no sum", where=str(folder / without[0]), hint=NOT_A_BUNDLE)
    return len(sums)


def _read_sums(folder: Path) -> dict[str, str]:
    path = folder / SUMS
    lines = path.read_bytes().decode("utf-8", "replace").splitlines() if path.is_file() else []
    matches = [match for line in lines if (match := _LINE.fullmatch(line))]
    if not lines or len(matches) < len(lines):
        raise SeedbedError(
            "an archive without sums of its files, or with damaged ones",
            where=str(path),
            hint=NOT_A_BUNDLE,
        )
    return {match[2]: match[1] for match in matches}


def _of_bundle(error: SeedbedError, folder: Path, bundle: Path) -> SeedbedError:
    """The error with places in the bundle instead of where it was unpacked."""

    def named(text: str) -> str:
        return text.replace(f"{folder}/", f"{bundle}, ")

    found = named(error.found) if isinstance(error.found, str) else error.found
    return SeedbedError(error.what, where=named(error.where), found=found, hint=error.hint)
