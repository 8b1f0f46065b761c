"""Unpacking: what is kept, what is skipped, what is refused."""

import io
import os
import random
import stat
import tarfile
import zipfile

import pytest

from seedbed import archives
from seedbed.errors import SeedbedError

TAR_MODES = {".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz", ".tar.bz2": "w:bz2", ".tar.xz": "w:xz"}
CONTENT = random.Random(0).randbytes(3000)  # does not compress, so that a cut falls into it


def make_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def make_tar(path, members, mode="w"):
    with tarfile.open(path, mode) as archive:
        for name, data in members.items():
            member = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def unpacked(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in archives.files_below(folder)}


def test_zip(tmp_path):
    members = {"a/b.txt": b"one", "c.txt": b"", "__MACOSX/a/._b.txt": b"x", "a/.DS_Store": b"x"}
    archive = make_zip(tmp_path / "x.zip", members)
    archives.unpack(archive, tmp_path / "out")
    assert unpacked(tmp_path / "out") == {"a/b.txt": b"one", "c.txt": b""}


@pytest.mark.parametrize("ending", TAR_MODES)
def test_tar(tmp_path, ending):
    members = {"./a/b.txt": CONTENT, "__MACOSX/a": b"x", "a/.DS_Store": b"x"}
    archive = make_tar(tmp_path / f"x{ending}", members, TAR_MODES[ending])
    assert archives.is_archive(archive.name)
    archives.unpack(archive, tmp_path / "out")
    assert unpacked(tmp_path / "out") == {"a/b.txt": CONTENT}


def test_modes_are_not_taken_over(tmp_path):
    member = tarfile.TarInfo("a")
    member.mode = 0o4000
    archives.unpack(make_tar(tmp_path / "x.tar", {member: b"text"}), tmp_path / "out")
    assert (tmp_path / "out/a").stat().st_mode & (stat.S_ISUID | stat.S_IRUSR) == stat.S_IRUSR


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/tmp/evil", "..\\evil", "//evil"])
@pytest.mark.parametrize("make", [make_zip, make_tar])
def test_paths_out_of_the_folder_are_refused(tmp_path, make, name):
    archive = make(tmp_path / f"x.{make.__name__[5:]}", {"good": b"", name: b"evil"})
    with pytest.raises(SeedbedError, match=r"refused(.|\n)*member .*evil(.|\n)*leaves the folder"):
        archives.unpack(archive, tmp_path / "out")
    assert not list(tmp_path.glob("**/evil"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_tar_are_refused(tmp_path, kind):
    member = tarfile.TarInfo("link")
    member.type, member.linkname = kind, "/etc/passwd"
    archive = make_tar(tmp_path / "x.tar", {member: b""})
    with pytest.raises(SeedbedError, match=r"x\.tar, member link\n.*a link, a device"):
        archives.unpack(archive, tmp_path / "out")


def test_links_in_zip_are_refused(tmp_path):
    member = zipfile.ZipInfo("link")
    member.create_system, member.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    archive = make_zip(tmp_path / "x.zip", {member: b"/etc/passwd"})
    with pytest.raises(SeedbedError, match=r"x\.zip, member link\n.*a link or a device"):
        archives.unpack(archive, tmp_path / "out")


def test_encrypted_member_is_refused(tmp_path):
    archive = make_zip(tmp_path / "x.zip", {"secret": b"text"})
    data = bytearray(archive.read_bytes())
    data[6] |= 1  # the flag in the local header
    data[data.index(b"PK\x01\x02") + 8] |= 1  # and in the directory
    archive.write_bytes(data)
    with pytest.raises(SeedbedError, match=r"member secret\n.*encrypted"):
        archives.unpack(archive, tmp_path / "out")


def test_member_that_stands_twice_is_refused(tmp_path):
    archive = make_tar(tmp_path / "x.tar", {tarfile.TarInfo("a"): b"1", tarfile.TarInfo("a"): b"2"})
    with pytest.raises(SeedbedError, match="stands in it twice"):
        archives.unpack(archive, tmp_path / "out")


def test_name_that_is_not_utf8_is_refused(tmp_path):
    archive = make_tar(tmp_path / "x.tar", {"caf\udce9": b"1"})
    with pytest.raises(SeedbedError, match="not UTF-8"):
        archives.unpack(archive, tmp_path / "out")


def test_limits(tmp_path):
    archive = make_zip(tmp_path / "x.zip", {"a": bytes(600), "b": bytes(600)})
    archives.unpack(archive, tmp_path / "ok", max_files=2, max_bytes=1200)
    with pytest.raises(SeedbedError, match="more than 1 files"):
        archives.unpack(archive, tmp_path / "many", max_files=1)
    with pytest.raises(SeedbedError, match="more than 1,199 bytes in all"):
        archives.unpack(archive, tmp_path / "large", max_bytes=1199)


@pytest.mark.parametrize("ending", [".zip", *TAR_MODES])
@pytest.mark.parametrize("kept", [0.5, 0.9])
def test_cut_off_archive(tmp_path, ending, kept):
    archive = tmp_path / f"x{ending}"
    members = {"a": CONTENT, "b": CONTENT[::-1]}
    if ending == ".zip":
        make_zip(archive, members)
    else:
        make_tar(archive, members, TAR_MODES[ending])
    data = archive.read_bytes()
    end = (
        8192 if ending == ".tar" else len(data)
    )  # tar pads to 10,240 bytes; its end mark begins at 7,168 + 1,024
    archive.write_bytes(data[: int(end * kept)])
    with pytest.raises(SeedbedError, match="damaged, cut off, or no archive"):
        archives.unpack(archive, tmp_path / "out")


def test_tar_cut_between_members(tmp_path):
    archive = make_tar(tmp_path / "x.tar", {"a": b"1" * 512, "b": b"2"})
    archive.write_bytes(archive.read_bytes()[:1024])  # the header and the block of the first member
    with pytest.raises(SeedbedError, match="no end-of-archive mark"):
        archives.unpack(archive, tmp_path / "out")


def test_damaged_gzip_tail_is_noticed(tmp_path):
    archive = make_tar(tmp_path / "x.tar.gz", {"a": CONTENT}, "w:gz")
    data = bytearray(archive.read_bytes())
    data[-8] ^= 1  # the checksum
    archive.write_bytes(data)
    with pytest.raises(SeedbedError, match="damaged"):
        archives.unpack(archive, tmp_path / "out")


def test_page_in_place_of_an_archive(tmp_path):
    page = tmp_path / "x.zip"
    page.write_bytes(b"<!DOCTYPE html><p>log in")
    with pytest.raises(
        SeedbedError, match=r"x\.zip\n.*24 bytes that begin with b'<!DOCTYPE html>(.|\n)*log-in"
    ):
        archives.unpack(page, tmp_path / "out")


def test_copied_folder(tmp_path):
    source = tmp_path / "source"
    (source / "__MACOSX").mkdir(parents=True)
    (source / "a").mkdir()
    for name in ("a/b.txt", "a/.DS_Store", "__MACOSX/c"):
        (source / name).write_bytes(b"text")
    (source / "link").symlink_to(source / "a/b.txt")
    (source / "a").chmod(0o555)
    archives.copy_folder(source, tmp_path / "out")
    assert unpacked(tmp_path / "out") == {"a/b.txt": b"text", "link": b"text"}
    assert not (tmp_path / "out/link").is_symlink()
    assert os.access(tmp_path / "out/a", os.W_OK)


def test_folder_is_not_copied_into_itself(tmp_path):
    with pytest.raises(SeedbedError, match="into itself"):
        archives.copy_folder(tmp_path, tmp_path / "results/files")
