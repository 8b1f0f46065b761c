"""Unpacking archives and copying folders, with distrust: nothing is written outside the target.

Archives come from the network, so links, devices, absolute paths, `..` and encrypted members are refused,
and both the number of files and the bytes really written have a limit. What macOS leaves in archives
(`__MACOSX`, `.DS_Store`) is skipped. Modes and owners are not taken over.
"""

import gzip
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO, NoReturn

from seedbed.errors import SeedbedError

ZIP_ENDINGS = (".zip",)
TAR_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
SKIPPED = frozenset({"__MACOSX", ".DS_Store"})
MAX_FILES = 100_000  # far above any corpus of texts, far below what exhausts a file system's inodes
MAX_BYTES = 20 * 2**30  # 20 GiB: room for a large checkpoint, not for a bomb
BLOCK = 2**20
TAR_BLOCK = 512
DAMAGED = (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)


def is_archive(name: str) -> bool:
    """Whether a file of this name is unpacked. The name decides: PyTorch's checkpoints are zip files too."""
    return name.lower().endswith(ZIP_ENDINGS + TAR_ENDINGS)


def unpack(
    archive: str | Path, target: str | Path, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES
) -> None:
    """Unpack a zip or tar archive into the empty folder `target`.

    Raises:
        SeedbedError: the archive is damaged or cut off, or too large, or holds a member that is refused.
    """
    archive = Path(archive)
    writer = _Writer(Path(target), archive.name, max_files, max_bytes)
    unpack_kind = _unpack_zip if archive.name.lower().endswith(ZIP_ENDINGS) else _unpack_tar
    try:
        unpack_kind(archive, writer)
    except DAMAGED as error:
        raise _damaged(archive, str(error)) from error
    except OSError as error:
        if "Invalid data stream" in str(error):  # how bz2 tells damage
            raise _damaged(archive, str(error)) from error
        raise


def copy_folder(
    folder: str | Path, target: str | Path, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES
) -> None:
    """Copy the files of a local folder into the folder `target`; links are followed: the user made them.

    Raises:
        SeedbedError: `target` lies inside `folder`, or there are too many files or bytes.
    """
    folder, target = Path(folder), Path(target)
    if target.resolve().is_relative_to(folder.resolve()):
        raise SeedbedError(
            "a folder cannot be copied into itself",
            where=str(folder),
            found=str(target),
            hint="give the folder that holds the data and nothing else",
        )
    writer = _Writer(target, str(folder), max_files, max_bytes)
    for path in files_below(folder):
        with open(path, "rb") as stream:
            writer.write(path.relative_to(folder).as_posix(), stream)


def files_below(folder: str | Path) -> list[Path]:
    """All files below a folder, sorted, links followed, without what macOS leaves behind."""
    paths = []
    for root, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if name not in SKIPPED]
        paths += [Path(root, name) for name in names if name not in SKIPPED]
    return sorted(paths)


class _Writer:
    """Writes members below a folder, and counts them and their bytes."""

    def __init__(self, target: Path, source: str, max_files: int, max_bytes: int):
        self.target, self.source = target, source
        self.max_files, self.max_bytes = max_files, max_bytes
        self.files = self.bytes = 0

    def write(self, name: str, stream: IO[bytes]) -> None:
        path = self._path(name)
        if path is None:
            return
        self.files += 1
        if self.files > self.max_files:
            self.refuse(name, f"more than {self.max_files:,} files")
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            self.refuse(name, "this name stands in it twice")
        with open(path, "xb") as output:
            while block := stream.read(BLOCK):
                # sizes in an archive's directory may lie, so what arrives is counted
                self.bytes += len(block)
                if self.bytes > self.max_bytes:
                    self.refuse(name, f"more than {self.max_bytes:,} bytes in all")
                output.write(block)

    def _path(self, name: str) -> Path | None:
        """Where a member goes; None: it is skipped."""
        path = PurePosixPath(name.replace("\\", "/"))
        parts = path.parts
        if not parts or path.is_absolute() or ".." in parts:
            self.refuse(name, "its path leaves the folder it is unpacked into")
        try:
            name.encode()
        except UnicodeEncodeError:
            self.refuse(ascii(name), "its name is not UTF-8")
        return None if SKIPPED.intersection(parts) else self.target.joinpath(*parts)

    def refuse(self, member: str, reason: str) -> NoReturn:
        raise SeedbedError(
            "refused to unpack or copy",
            where=f"{self.source}, member {member}",
            found=reason,
            hint="look at the source; pack plain files and folders with relative names, and nothing else",
        )


def _unpack_zip(archive: Path, writer: _Writer) -> None:
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                writer.refuse(member.filename, "it is a link or a device")
            if member.is_dir():
                continue
            if member.flag_bits & 0x1:
                writer.refuse(member.filename, "it is encrypted")
            try:
                with opened.open(member) as stream:
                    writer.write(member.filename, stream)
            except NotImplementedError as error:
                writer.refuse(member.filename, f"its compression is not supported ({error})")


def _unpack_tar(archive: Path, writer: _Writer) -> None:
    end = 0
    with tarfile.open(archive, "r:*") as opened:
        for member in opened:
            if not (member.isreg() or member.isdir()) or member.issparse():
                writer.refuse(member.name, "it is a link, a device or a sparse file")
            if member.isreg():
                writer.write(member.name, opened.extractfile(member))
                end = member.offset_data + -(-member.size // TAR_BLOCK) * TAR_BLOCK
            else:
                end = member.offset_data
        _check_tar_end(archive, opened.fileobj, end)


def _check_tar_end(archive: Path, stream: IO[bytes], end: int) -> None:
    """Look for the block of zeros: tarfile takes a cut between members, or a broken header, for the end."""
    stream.seek(end)
    if stream.read(TAR_BLOCK) != bytes(TAR_BLOCK):
        raise _damaged(archive, "no end-of-archive mark")
    while stream.read(BLOCK):  # to the end, so that gzip checks its checksum
        pass


def _damaged(archive: Path, reason: str) -> SeedbedError:
    with open(archive, "rb") as stream:
        begins = stream.read(16)
    return SeedbedError(
        "the archive is damaged, cut off, or no archive at all",
        where=archive.name,
        found=f"{reason}; {archive.stat().st_size:,} bytes that begin with {begins!r}",
        hint="fetch it again; a page of HTML in its place means that the address wants a log-in or has moved",
    )
