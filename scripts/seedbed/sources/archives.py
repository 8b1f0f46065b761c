"""Unpack untrusted archives and copy folders, writing nothing outside the target.

Zip and tar are treated alike. Links, devices, absolute paths, `..`, encrypted members, and names that another
system would read as a drive, a device or an earlier file are refused. (tarfile's own filter would cut the `/`
off an absolute path, and unpack links.) The number of members, the bytes written and their ratio to the
compressed bytes are limited; archives inside archives are not unpacked. Files of macOS (`__MACOSX`,
`.DS_Store`, `._NAME`) are skipped and counted in the log. Modes and owners are ignored.
"""

import bz2
import contextlib
import fnmatch
import gzip
import logging
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, NoReturn

from seedbed.core import paths
from seedbed.core.errors import SeedbedError
from seedbed.sources.folders import is_left_by_macos, walk

ZIP_ENDINGS = (".zip",)
TAR_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
# the remedy if an archive was read as a single file, to be formatted with the source's name
AS_ARCHIVE = "set kind: archive under sources.{} in the config"
NO_ARCHIVES = (".pt", ".pth", ".bin", ".npz", ".xlsx", ".ods", ".docx")  # zip files that stay packed
MAX_FILES = 1_000_000  # IMDB has 100,011; far below what exhausts a file system's inodes
MAX_BYTES = 20 * 2**30  # 20 GiB: enough for a large checkpoint, too little for a bomb
MAX_RATIO = 200  # text shrinks to a third or a tenth, deflate can reach 1,032
RATIO_FROM = 16 * 2**20  # bytes; fewer do no harm at any ratio
BLOCK = 2**20
TAR_BLOCK = 512
GZIP_SIZE = 4  # last bytes of a gzip file: the size of its content modulo 4 GiB
TAR_READ_LIMIT = 2**24  # bytes; tarfile reads an extended header of any size at once
ZIP_LOCAL_HEADER = 30  # bytes before a member's name and data
# errors of zipfile and tarfile for damaged archives, some of which they raise by accident
DAMAGED = (
    *(zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError),
    *(ValueError, NotImplementedError, OverflowError, IndexError, struct.error),
)
OPENERS = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\x00", lzma.open))

log = logging.getLogger(__name__)


def is_archive(name: str) -> bool:
    """Whether a file of this name is unpacked; its content cannot decide: PyTorch's checkpoints are zips."""
    return name.lower().endswith(ZIP_ENDINGS + TAR_ENDINGS)


def holds_archive(path: str | Path) -> bool:
    """Whether the content of a file is a zip or tar archive; PyTorch's checkpoints do not count."""
    path = Path(path)
    if path.suffix in NO_ARCHIVES or not path.is_file():
        return False
    with contextlib.suppress(*DAMAGED):
        with open(path, "rb") as stream:
            begins = stream.read(8)
        opener = next((opener for magic, opener in OPENERS if begins.startswith(magic)), open)
        with opener(path, "rb") as stream:
            return begins.startswith(b"PK\x03\x04") or stream.read(TAR_BLOCK)[257:262] == b"ustar"
    return False


def unpack(
    archive: str | Path,
    target: str | Path,
    include: Sequence[str] | None = None,
    max_files: int = MAX_FILES,
    max_bytes: int = MAX_BYTES,
) -> None:
    """Unpack a zip or tar archive into the empty folder `target`.

    Args:
        archive: the file; its name decides between zip and tar, its first bytes the tar's compression.
        target: the folder for the members, partly filled after an error.
        include: patterns of the wanted members (fnmatch on the path inside the archive, where `*` also
            matches `/`); None: all.
        max_files: maximum number of members, folders included.
        max_bytes: maximum number of bytes written in total.

    Raises:
        SeedbedError: the archive is damaged, truncated or too large, has a refused member, or a pattern of
            `include` matches none.
    """
    archive = Path(archive)
    writer = _Writer(Path(target), archive.name, include, max_files, max_bytes, archive.stat().st_size)
    unpack_kind = _unpack_zip if archive.name.lower().endswith(ZIP_ENDINGS) else _unpack_tar
    try:
        unpack_kind(archive, writer)
    except DAMAGED as error:
        raise _damaged(archive, str(error)) from error
    except OSError as error:
        if "Invalid data stream" in str(error):  # of bz2
            raise _damaged(archive, str(error)) from error
        raise
    writer.finish()


def unpacked_size(archive: str | Path) -> int:
    """The unpacked bytes that a zip or gzip archive claims; for other archives, their own size.

    The claim is untrusted: use it only to check for free space. For an archive that is damaged or claims as
    much as a bomb, the result is its own size, and `unpack` reports the error.
    """
    archive = Path(archive)
    size = archive.stat().st_size
    if archive.name.lower().endswith(ZIP_ENDINGS):
        with contextlib.suppress(*DAMAGED), zipfile.ZipFile(archive) as opened:
            claim = sum(member.file_size for member in opened.infolist())
            return claim if claim <= max(RATIO_FROM, MAX_RATIO * size) else size
    elif archive.name.lower().endswith("gz") and size >= GZIP_SIZE:
        with open(archive, "rb") as stream:
            stream.seek(-GZIP_SIZE, os.SEEK_END)
            claim = int.from_bytes(stream.read(GZIP_SIZE), "little")
            return claim if size <= claim <= max(RATIO_FROM, MAX_RATIO * size) else size
    return size


def copy_folder(
    folder: str | Path,
    target: str | Path,
    include: Sequence[str] | None = None,
    max_files: int = MAX_FILES,
    max_bytes: int = MAX_BYTES,
) -> None:
    """Copy the files of a local folder into the folder `target`. Links, which the user made, are followed.

    Args:
        folder: the folder to copy.
        target: the folder for the copy.
        include: as for `unpack`.
        max_files: maximum number of files.
        max_bytes: maximum number of bytes.

    Raises:
        SeedbedError: `target` is inside `folder`, there are too many files or bytes, or no file matches
            `include`.
    """
    folder, target = Path(folder), Path(target)
    if target.resolve().is_relative_to(folder.resolve()):
        raise SeedbedError(
            "a folder cannot be copied into itself",
            where=str(folder),
            found=str(target),
            hint="give a folder with only the data",
        )
    writer = _Writer(target, str(folder), include, max_files, max_bytes)
    for path in walk(folder):
        name = path.relative_to(folder).as_posix()
        if writer.takes(name):
            if not path.is_file():
                writer.refuse(name, "it is a broken link or a device")
            with open(path, "rb") as stream:
                writer.write(name, stream)
    writer.finish()


class _Writer:
    """Selects members, writes them below a folder, and counts them and their bytes.

    `packed` is the archive's size in bytes; None for a user's folder, whose names are trusted.
    """

    def __init__(
        self,
        target: Path,
        source: str,
        include: Sequence[str] | None,
        max_files: int,
        max_bytes: int,
        packed: int | None = None,
    ):
        self.target, self.source, self.include, self.packed = target, source, include, packed
        self.max_files, self.max_bytes = max_files, max_bytes
        self.members = self.bytes = self.skipped = self.left_out = 0
        self.names: dict[str, str] = {}  # by folded name: some file systems cannot distinguish equal ones
        self.idle = dict.fromkeys(include or ())  # patterns without a match so far

    def takes(self, name: str, is_folder: bool = False) -> bool:
        """Whether to write a member; call it once for each.

        It is written if it is a file, not of macOS, and matches `include`. Bad names and too many members are
        refused.
        """
        self.members += 1
        if self.members > self.max_files:
            self.refuse(name, f"more than {self.max_files:,} files")
        path = self._path(name)
        if is_folder:
            return False
        if is_left_by_macos(path.parts):
            self.skipped += 1
            return False
        matching = [pattern for pattern in self.include or () if fnmatch.fnmatchcase(str(path), pattern)]
        for pattern in matching:
            self.idle.pop(pattern, None)
        if self.include is not None and not matching:
            self.left_out += 1
            return False
        return True

    def write(self, name: str, stream: IO[bytes], packed: int | None = None) -> int:
        """Write a member and return its size in bytes; `packed`: its compressed bytes, if known."""
        relative = self._path(name)
        if not relative.parts:
            self.refuse(name, "it has no name")
        self._check_collision(name, relative)
        path = self.target / relative
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            self.refuse(name, "its folder is already a file")
        if path.exists():
            self.refuse(name, "the archive has this name twice")
        size = 0
        with open(path, "xb") as output:
            while block := stream.read(BLOCK):
                # sizes in an archive's directory may be wrong, so count the bytes
                size += len(block)
                self.bytes += len(block)
                if self.bytes > self.max_bytes:
                    self.refuse(name, f"more than {self.max_bytes:,} bytes in all")
                self.check_ratio(name, size, packed)
                self.check_ratio(name, self.bytes, self.packed)
                output.write(block)
        return size

    def check_ratio(self, name: str, unpacked: int, packed: int | None) -> None:
        """Refuse `unpacked` bytes from far fewer `packed` ones."""
        if packed is not None and unpacked > RATIO_FROM and unpacked > MAX_RATIO * packed:
            self.refuse(name, f"a bomb: at least {unpacked:,} bytes from {packed:,} compressed ones")

    def finish(self) -> None:
        """Log the number of skipped files.

        Raises:
            SeedbedError: a pattern of `include` matches no file.
        """
        if self.skipped:
            log.info("%s: skipped %d files of macOS (__MACOSX, .DS_Store)", self.source, self.skipped)
        if self.idle:
            raise SeedbedError(
                f"no file matches {', '.join(map(repr, self.idle))} of `include`",
                where=self.source,
                found=f"{len(self.names) + self.left_out:,} files",
                hint="patterns are compared with the path inside the source; `*` also matches `/`",
            )
        if self.left_out:
            log.info("%s: skipped %d files that match no pattern of include", self.source, self.left_out)

    def _path(self, name: str) -> PurePosixPath:
        """The relative path of a member."""
        try:
            if self.packed is not None:
                return paths.outside(name)
            paths.check_characters(name)
        except ValueError as error:
            self.refuse(name, str(error))
        return PurePosixPath(name)

    def _check_collision(self, name: str, path: PurePosixPath) -> None:
        key = str(path) if self.packed is None else paths.folded(path)
        other = self.names.setdefault(key, name)
        if other != name:
            self.refuse(
                name,
                f"file systems that ignore case or Unicode's forms cannot distinguish it from {other}; "
                "omit one of them with `include`",
            )

    def refuse(self, member: str, reason: str) -> NoReturn:
        raise SeedbedError(
            "refused to unpack or copy",
            where=f"{self.source}, member {_shown(member)}",
            found=reason,
            hint="check the source; an archive may hold only files and folders with relative names",
        )


def _shown(name: str) -> str:
    # control characters would change a terminal, and half a surrogate pair cannot be written to a log
    return name if name.isprintable() else ascii(name)


# --- zip --------------------------------------------------------------------------------------------------


def _unpack_zip(archive: Path, writer: _Writer) -> None:
    with zipfile.ZipFile(archive) as opened:
        _check_overlap(opened, writer)
        for member in opened.infolist():
            if writer.takes(member.filename, member.filename.endswith("/")):
                _unpack_zip_member(opened, member, writer)


def _unpack_zip_member(opened: zipfile.ZipFile, member: zipfile.ZipInfo, writer: _Writer) -> None:
    if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
        writer.refuse(member.filename, "it is a link or a device")
    if member.flag_bits & 0x1:
        writer.refuse(member.filename, "it is encrypted")
    try:
        with opened.open(member) as stream:
            size = writer.write(member.filename, stream, member.compress_size)
    except NotImplementedError as error:
        writer.refuse(member.filename, f"its compression is not supported ({error})")
    if size != member.file_size:
        # zipfile reads up to the stated size, and raises no error if there is less
        raise zipfile.BadZipFile(
            f"member {member.filename} has {size:,} bytes, the directory says {member.file_size:,}"
        )


def _check_overlap(opened: zipfile.ZipFile, writer: _Writer) -> None:
    """Refuse members that share bytes, with which a bomb reaches petabytes without nesting."""
    members = sorted(opened.infolist(), key=lambda member: member.header_offset)
    begins = [member.header_offset for member in members[1:]] + [opened.start_dir]
    for member, following in zip(members, begins, strict=False):
        encoding = "utf-8" if member.flag_bits & 0x800 else "cp437"
        name = len(member.orig_filename.encode(encoding))
        # a lower limit: the local header's extra field is not counted
        if member.header_offset + ZIP_LOCAL_HEADER + name + member.compress_size > following:
            writer.refuse(member.filename, "it overlaps another member, as in a bomb")


# --- tar --------------------------------------------------------------------------------------------------


def _unpack_tar(archive: Path, writer: _Writer) -> None:
    end = 0
    with _decompressed(archive) as stream:
        guarded = _GuardedStream(stream, writer)
        with tarfile.open(fileobj=guarded, mode="r:") as opened:
            while (member := opened.next()) is not None:
                end = opened.offset  # of the next header
                if writer.takes(member.name, member.isdir()):
                    _unpack_tar_member(opened, member, writer)
            _check_tar_end(archive, guarded, end)


def _unpack_tar_member(opened: tarfile.TarFile, member: tarfile.TarInfo, writer: _Writer) -> None:
    if not member.isreg() or member.issparse():
        writer.refuse(member.name, "it is a link, a device or a sparse file")
    writer.write(member.name, opened.extractfile(member))


@contextlib.contextmanager
def _decompressed(archive: Path) -> Iterator[IO[bytes]]:
    with open(archive, "rb") as stream:
        begins = stream.read(8)
    opener = next((opener for magic, opener in OPENERS if begins.startswith(magic)), open)
    with opener(archive, "rb") as stream:
        yield stream


class _GuardedStream:
    """A tar's stream that also refuses huge headers, and bombs in skipped members."""

    def __init__(self, stream: IO[bytes], writer: _Writer):
        self.stream, self.writer = stream, writer

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= TAR_READ_LIMIT:
            self.writer.refuse("(a header)", f"it claims {size:,} bytes")
        return self.stream.read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence != os.SEEK_SET:
            return self.stream.seek(offset, whence)
        while (here := self.stream.tell()) + BLOCK < offset:  # in steps, to stop at a bomb
            if self.stream.seek(here + BLOCK) == here:
                break
            self.writer.check_ratio("(left out)", here + BLOCK, self.writer.packed)
        return self.stream.seek(offset)

    def tell(self) -> int:
        return self.stream.tell()


def _check_tar_end(archive: Path, stream: _GuardedStream, end: int) -> None:
    """Check the final block of zeros: tarfile also stops at a cut between members or a broken header."""
    stream.seek(end)
    if stream.read(TAR_BLOCK) != bytes(TAR_BLOCK):
        raise _damaged(archive, "no end-of-archive mark")
    while stream.read(BLOCK):  # to the end, where gzip verifies its checksum
        stream.writer.check_ratio("(after the last)", stream.tell(), stream.writer.packed)


def _damaged(archive: Path, reason: str) -> SeedbedError:
    with open(archive, "rb") as stream:
        begins = stream.read(16)
    if begins.startswith(b"PK\x03\x04") and "not a zip file" in reason:
        reason = "it begins as a zip file but lacks the directory at the end, so it is truncated"
    return SeedbedError(
        "the archive is damaged, truncated, or not an archive",
        where=archive.name,
        found=f"{reason}; {archive.stat().st_size:,} bytes that begin with {begins!r}",
        hint="fetch it again; if it is a page of HTML, the address needs a log-in or has moved",
    )
