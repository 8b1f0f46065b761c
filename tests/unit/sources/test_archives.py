"""Unpacking: what is kept, what is skipped, what is refused."""

import contextlib
import gzip
import io
import logging
import os
import random
import signal
import stat
import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedbed.core.errors import SeedbedError
from seedbed.sources import archives
from seedbed.sources.folders import files_below

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
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files_below(folder)}


def refusal(archive, target, **options):
    with pytest.raises(SeedbedError) as caught:
        archives.unpack(archive, target, **options)
    return str(caught.value)


def test_zip(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    members = {"a/b.txt": b"one", "c.txt": b"", "__MACOSX/a/._b.txt": b"x", "a/.DS_Store": b"x", "d/": b""}
    archive = make_zip(tmp_path / "x.zip", members)
    archives.unpack(archive, tmp_path / "out")
    assert unpacked(tmp_path / "out") == {"a/b.txt": b"one", "c.txt": b""}
    assert "x.zip: skipped 2 files of macOS" in caplog.text


@pytest.mark.parametrize("ending", TAR_MODES)
def test_tar(tmp_path, ending):
    members = {"./a/b.txt": CONTENT, "__MACOSX/a": b"x", "a/.DS_Store": b"x", "a/._b.txt": b"x"}
    archive = make_tar(tmp_path / f"x{ending}", members, TAR_MODES[ending])
    assert archives.is_archive(archive.name)
    archives.unpack(archive, tmp_path / "out")
    assert unpacked(tmp_path / "out") == {"a/b.txt": CONTENT}


def test_folders_of_a_tar_are_no_files(tmp_path):
    top, inner = tarfile.TarInfo("./"), tarfile.TarInfo("./a/")
    top.type = inner.type = tarfile.DIRTYPE
    archive = make_tar(tmp_path / "x.tar", {top: b"", inner: b"", "./a/b": b"1"})
    archives.unpack(archive, tmp_path / "out")
    assert unpacked(tmp_path / "out") == {"a/b": b"1"}


@pytest.mark.parametrize("make", [make_zip, make_tar])
def test_include(tmp_path, make, caplog):
    caplog.set_level(logging.INFO)
    archive = make(tmp_path / f"x.{make.__name__[5:]}", {"./a/b/t.csv": b"1", "a/n.txt": b"2", "B.CSV": b"3"})
    archives.unpack(archive, tmp_path / "out", include=["a/*.csv"])
    assert unpacked(tmp_path / "out") == {"a/b/t.csv": b"1"}
    assert "skipped 2 files that match no pattern" in caplog.text
    for patterns in (["*.json"], ["*.json", "a/*.csv"]):
        text = refusal(archive, tmp_path / f"none{len(patterns)}", include=patterns)
        assert "no file matches '*.json' of `include`" in text
        assert "3 files" in text


def test_what_include_leaves_out_may_be_a_link_but_no_bomb(tmp_path):
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    archive = make_tar(tmp_path / "x.tar.gz", {"a": b"1", link: b""}, "w:gz")
    archives.unpack(archive, tmp_path / "out", include=["a"])
    assert unpacked(tmp_path / "out") == {"a": b"1"}
    bomb = make_tar(tmp_path / "y.tar.gz", {"bomb": bytes(2**25), "a": b"1"}, "w:gz")
    assert "a bomb" in refusal(bomb, tmp_path / "bomb", include=["a"])


def test_modes_are_not_taken_over(tmp_path):
    member = tarfile.TarInfo("a")
    member.mode = 0o4000
    archives.unpack(make_tar(tmp_path / "x.tar", {member: b"text"}), tmp_path / "out")
    assert (tmp_path / "out/a").stat().st_mode & (stat.S_ISUID | stat.S_IRUSR) == stat.S_IRUSR


# more of them in tests/unit/core/test_paths.py
@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a\\..\\..\\evil", "../__MACOSX/evil"])
@pytest.mark.parametrize("make", [make_zip, make_tar])
def test_paths_out_of_the_folder_are_refused(tmp_path, make, name):
    archive = make(tmp_path / f"x.{make.__name__[5:]}", {"good": b"", name: b"evil"})
    with pytest.raises(SeedbedError, match=r"refused(.|\n)*member .*evil(.|\n)*leaves the folder"):
        archives.unpack(archive, tmp_path / "out")
    assert not list(tmp_path.glob("**/evil"))


PARTS = st.sampled_from(
    [
        *(
            "a",
            "b.csv",
            "été",
            "e\u0301te\u0301",
            "A",
            "a. ",
            "..",
            ".",
            "",
            "C:",
            "nul",
            "\n",
            "\x1b",
            "x" * 256,
        ),
        *("__MACOSX", "._a", ".DS_Store"),
    ]
)
PATHS = st.builds(lambda parts, mark: mark.join(parts), st.lists(PARTS, max_size=3), st.sampled_from("/\\"))
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))
MEMBERS = st.dictionaries((PATHS | TEXTS).filter(bool), st.binary(max_size=20), min_size=1, max_size=3)


@given(MEMBERS, st.sampled_from([make_zip, make_tar]))
def test_whatever_the_names_nothing_is_written_outside_or_under_another_name(members, make):
    with tempfile.TemporaryDirectory() as folder:
        archive = make(Path(folder) / f"x.{make.__name__[5:]}", members)
        target = Path(folder) / "in" / "out"
        with contextlib.suppress(SeedbedError):
            archives.unpack(archive, target)
        written = {path for path in Path(folder).rglob("*") if path.is_file()} - {archive}
        meant = {str(PurePosixPath(name.replace("\\", "/"))): data for name, data in members.items()}
        for path in written:
            assert path.read_bytes() == meant[path.relative_to(target).as_posix()]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_tar_are_refused(tmp_path, kind):
    member = tarfile.TarInfo("link")
    member.type, member.linkname = kind, "/etc/passwd"
    archive = make_tar(tmp_path / "x.tar", {member: b""})
    with pytest.raises(SeedbedError, match=r"x\.tar, member link\n.*a link, a device"):
        archives.unpack(archive, tmp_path / "out")


def test_a_sparse_member_is_refused(tmp_path):
    member = tarfile.TarInfo("a")
    member.type = tarfile.GNUTYPE_SPARSE
    archive = make_tar(tmp_path / "x.tar", {member: b""})
    assert "a sparse file" in refusal(archive, tmp_path / "out")


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


def test_a_compression_that_nothing_here_reads_is_refused(tmp_path):
    archive = make_zip(tmp_path / "x.zip", {"odd": b"text"})
    data = bytearray(archive.read_bytes())
    data[8] = 99  # the method in the local header
    data[data.index(b"PK\x01\x02") + 10] = 99  # and in the directory
    archive.write_bytes(data)
    with pytest.raises(SeedbedError, match=r"member odd\n.*compression is not supported"):
        archives.unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_member_that_stands_twice_is_refused(tmp_path):
    archive = make_tar(tmp_path / "x.tar", {tarfile.TarInfo("a"): b"1", tarfile.TarInfo("a"): b"2"})
    with pytest.raises(SeedbedError, match="has this name twice"):
        archives.unpack(archive, tmp_path / "out")


def test_name_that_is_not_utf8_is_refused(tmp_path):
    archive = make_tar(tmp_path / "x.tar", {"caf\udce9": b"1"})
    with pytest.raises(SeedbedError, match="not UTF-8"):
        archives.unpack(archive, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("C:\\evil", "letter of a drive"),
        ("data/nul.txt", "nul.txt is a device on Windows"),
        ("a\x1b[2Jb", "member 'a\\x1b[2Jb'\n  found: its name contains a control character"),
    ],
)
def test_names_that_another_system_takes_for_something_else(tmp_path, name, told):
    archive = make_tar(tmp_path / "x.tar", {"console/com.csv": b"1", name: b"evil"})
    assert told in refusal(archive, tmp_path / "out")


@pytest.mark.parametrize("other", ["A/Été.csv", "a/e\u0301te\u0301.csv", "a/été.csv. "])
@pytest.mark.parametrize("make", [make_zip, make_tar])
def test_names_that_some_file_systems_cannot_tell_apart(tmp_path, make, other):
    archive = make(tmp_path / f"x.{make.__name__[5:]}", {"a/été.csv": b"1", other: b"2"})
    assert "cannot distinguish it from a/été.csv" in refusal(archive, tmp_path / "out")
    archives.unpack(archive, tmp_path / "one", include=["a/été.csv"])
    assert unpacked(tmp_path / "one") == {"a/été.csv": b"1"}


def test_file_in_place_of_a_folder(tmp_path):
    archive = make_tar(tmp_path / "x.tar", {"a": b"1", "a/b": b"2"})
    assert "its folder is already a file" in refusal(archive, tmp_path / "out")


def test_zip_bombs(tmp_path):
    # 32 MiB of zeros in 32 KiB; beside a member that does not compress, so that only its own ratio tells
    pair = {"noise": random.Random(0).randbytes(2**20), "zeros": bytes(2**25)}
    text = refusal(make_zip(tmp_path / "one.zip", pair), tmp_path / "one")
    assert "member zeros" in text
    assert "a bomb: at least 17,825,792 bytes from 32,6" in text
    # many members, each too small to be told
    many = {f"{number}": bytes(2**22) for number in range(8)}
    assert "a bomb: at least 17,825,792 bytes" in refusal(
        make_zip(tmp_path / "many.zip", many), tmp_path / "many"
    )


@pytest.mark.parametrize("ending", [".tar.gz", ".tar.bz2", ".tar.xz"])
def test_tar_bombs(tmp_path, ending):
    archive = make_tar(tmp_path / f"x{ending}", {"zeros": bytes(2**25)}, TAR_MODES[ending])
    assert "a bomb: at least 17,825,792 bytes" in refusal(archive, tmp_path / "out")


def test_what_compresses_well_but_is_small_is_no_bomb(tmp_path):
    archives.unpack(make_zip(tmp_path / "x.zip", {"zeros": bytes(2**24)}), tmp_path / "out")
    assert unpacked(tmp_path / "out") == {"zeros": bytes(2**24)}


def test_bomb_in_a_header_of_a_tar(tmp_path):
    member = tarfile.TarInfo("a")
    member.pax_headers = {"comment": "x" * 2**25}
    archive = make_tar(tmp_path / "x.tar.gz", {member: b"1"}, "w:gz")
    assert "(a header)\n  found: it claims 33,55" in refusal(archive, tmp_path / "out")


def test_zip_in_a_zip_is_kept_as_it_is(tmp_path):
    inner = make_zip(tmp_path / "inner.zip", {"a": b"1"}).read_bytes()
    archives.unpack(make_zip(tmp_path / "x.zip", {"inner.zip": inner}), tmp_path / "out")
    assert unpacked(tmp_path / "out") == {"inner.zip": inner}


def edit_directory(archive, edit):
    """Let `edit` change the entries of a zip's directory: (number, bytearray of the entry)."""
    data = bytearray(archive.read_bytes())
    parts = data.split(b"PK\x01\x02")
    for number in range(1, len(parts)):
        entry = bytearray(b"PK\x01\x02") + parts[number]
        edit(number - 1, entry)
        parts[number] = entry[4:]
    archive.write_bytes(b"PK\x01\x02".join(parts))
    return archive


def test_overlapping_members_of_a_zip(tmp_path):
    def share(number, entry):
        entry[42:46] = bytes(4)  # every member's data begin where those of the first do

    members = {"a": CONTENT, "b": CONTENT, "c": CONTENT}
    archive = edit_directory(make_zip(tmp_path / "x.zip", members), share)
    assert "overlaps another member" in refusal(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_quoted_overlap(tmp_path):
    # the first member's data are a stored block that holds the second member whole
    inner = make_zip(tmp_path / "inner.zip", {"b": CONTENT}).read_bytes()
    quoted = inner[: inner.index(b"PK\x01\x02")]
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a", quoted)
        second = zipfile.ZipFile(tmp_path / "inner.zip").getinfo("b")
        second.header_offset = 30 + len("a")
        archive.filelist.append(second)
        archive.NameToInfo["b"] = second
    assert zipfile.ZipFile(tmp_path / "x.zip").namelist() == ["a", "b"]
    assert "member a\n  found: it overlaps another member" in refusal(tmp_path / "x.zip", tmp_path / "out")


@pytest.mark.parametrize("stated", [2999, 3001, 2**31])
def test_lying_size_of_a_zip(tmp_path, stated):
    def lie(number, entry):
        entry[24:28] = stated.to_bytes(4, "little")

    archive = edit_directory(make_zip(tmp_path / "x.zip", {"a": CONTENT}), lie)
    assert "damaged" in refusal(archive, tmp_path / "out")
    # what only a bomb would claim is no reason to ask for room
    assert archives.unpacked_size(archive) == (stated if stated < 2**31 else archive.stat().st_size)


def test_lying_size_of_a_tar(tmp_path):
    archive = make_tar(tmp_path / "x.tar", {"a": b"1" * 600, "b": b"2"})
    data = bytearray(archive.read_bytes())
    data[124:136] = b"%011o\x00" % 2**32  # 4 GiB
    data[148:156] = b"%06o\x00 " % (sum(data[:148]) + 8 * 32 + sum(data[156:512]))
    archive.write_bytes(data)
    assert "damaged, truncated" in refusal(archive, tmp_path / "out")
    assert "(left out)" in refusal(archive, tmp_path / "left", include=["b"])


def test_unpacked_size(tmp_path):
    assert archives.unpacked_size(make_zip(tmp_path / "x.zip", {"a": bytes(600), "b/c": b"1"})) == 601
    tar = make_tar(tmp_path / "x.tar", {"a": b"1"})
    assert archives.unpacked_size(tar) == tar.stat().st_size
    (tmp_path / "x.tgz").write_bytes(gzip.compress(bytes(100_000)))
    assert archives.unpacked_size(tmp_path / "x.tgz") == 100_000
    (tmp_path / "page.zip").write_bytes(b"<html>")
    assert archives.unpacked_size(tmp_path / "page.zip") == (tmp_path / "page.zip").stat().st_size


def test_the_unpacked_size_of_what_is_no_gzip_is_its_own(tmp_path):
    path = tmp_path / "x.tar.bz2"
    path.write_bytes(b"BZh" + bytes(8) + (5000).to_bytes(4, "little"))
    assert archives.unpacked_size(path) == 15


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
    with pytest.raises(SeedbedError, match="damaged, truncated, or not an archive"):
        archives.unpack(archive, tmp_path / "out")


def test_cut_off_zip_is_told_from_a_page(tmp_path):
    archive = make_zip(tmp_path / "x.zip", {"a": CONTENT})
    archive.write_bytes(archive.read_bytes()[:2000])
    assert "lacks the directory at the end, so it is truncated; 2,000 bytes" in refusal(
        archive, tmp_path / "out"
    )


def test_a_tar_that_is_cut_inside_what_is_left_out(tmp_path):
    big = random.Random(0).randbytes(5 * 2**20)  # more than one step of the seek
    plain = make_tar(tmp_path / "x.tar", {"big": big, "a": b"1"}).read_bytes()
    (tmp_path / "y.tar.gz").write_bytes(gzip.compress(plain[: 2**20], 1))  # a whole gzip of a part

    def late(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(10)
    try:
        assert "damaged, truncated" in refusal(tmp_path / "y.tar.gz", tmp_path / "out", include=["a"])
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


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


def test_a_linked_folder_is_copied(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/a.txt").write_text("x")
    (tmp_path / "source").mkdir()
    (tmp_path / "source/link").symlink_to(tmp_path / "elsewhere")
    archives.copy_folder(tmp_path / "source", tmp_path / "out")
    assert unpacked(tmp_path / "out") == {"link/a.txt": b"x"}


def test_folder_is_not_copied_into_itself(tmp_path):
    with pytest.raises(SeedbedError, match="into itself"):
        archives.copy_folder(tmp_path, tmp_path / "results/files")


def test_copied_folder_with_include(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    source = tmp_path / "source"
    source.mkdir()
    # names of the user's own file system are no concern, however strange
    for name in ("a.csv", "A.csv", "aux", "c:d.csv", "notes.txt", ".DS_Store"):
        (source / name).write_bytes(name.encode())
    archives.copy_folder(source, tmp_path / "out", include=["*.csv", "aux"])
    assert sorted(unpacked(tmp_path / "out")) == ["A.csv", "a.csv", "aux", "c:d.csv"]
    assert "skipped 1 files of macOS" in caplog.text
    assert "skipped 1 files that match no pattern" in caplog.text
    with pytest.raises(SeedbedError, match=r"no file matches '\*\.json'"):
        archives.copy_folder(source, tmp_path / "none", include=["*.json"])


def test_pipe_in_a_folder_is_refused(tmp_path):
    (tmp_path / "source").mkdir()
    os.mkfifo(tmp_path / "source/pipe")  # reading it would wait for ever
    with pytest.raises(SeedbedError, match="broken link or a device"):
        archives.copy_folder(tmp_path / "source", tmp_path / "out")


def test_links_that_lead_back_are_not_followed_for_ever(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "text").write_bytes(b"1")
    for name in ("a", "b", "inner/c"):
        (tmp_path / name).symlink_to(tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in files_below(tmp_path)] == ["inner/text"]


@pytest.mark.parametrize("damage", ["version", "name"])
def test_damage_that_the_reader_tells_in_its_own_way(tmp_path, damage):
    def spoil(number, entry):
        if damage == "version":
            entry[6:8] = (255).to_bytes(2, "little")
        else:  # said to be UTF-8, and is not
            entry[8:10] = (0x800).to_bytes(2, "little")
            entry[46:47] = b"\xff"

    archive = edit_directory(make_zip(tmp_path / "x.zip", {"a": CONTENT}), spoil)
    assert "damaged" in refusal(archive, tmp_path / "out")
