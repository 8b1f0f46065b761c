"""Fetching: order of locations, mirrors, hashes, downloads, and the error that lists all failures."""

import contextlib
import hashlib
import io
import json
import random
import shutil
import socket
import subprocess
import sys
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest
from builders_web import serving

from seedbed.core.errors import SeedbedError
from seedbed.sources import fetch
from seedbed.sources.retries import Patience

ROOT = Path(__file__).parents[3]
FAST = Patience(attempts=3, backoff=0.01, read=5)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def fetched(folder):
    files = folder / "files"
    return {p.relative_to(files).as_posix(): p.read_bytes() for p in files.rglob("*") if p.is_file()}


def define(*locations, sha256=None):
    return {"locations": [str(location) for location in locations], "sha256": sha256}


def sends(body, **headers):
    return lambda request: request.send(200, body, **headers)


@pytest.fixture
def nowhere(monkeypatch):
    """No network: whoever asks for an address fails the test."""

    def refuse(*arguments, **options):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


@pytest.fixture
def books(tmp_path):
    path = tmp_path / "books.zip"
    path.write_bytes(zipped({"books/train.review": b"bon\n", "__MACOSX/x": b"x"}))
    return path


def test_archive_and_manifest(tmp_path, books):
    digest = hashlib.sha256(books.read_bytes()).hexdigest()
    manifest = fetch.fetch("books", define(books, sha256=digest), tmp_path / "s")
    assert fetched(tmp_path / "s") == {"books/train.review": b"bon\n"}
    assert manifest == {
        "location": str(books),
        "sha256": digest,
        "files": {"books/train.review": {"sha256": hashlib.sha256(b"bon\n").hexdigest(), "bytes": 4}},
    }
    assert json.loads((tmp_path / "s/manifest.json").read_text()) == manifest
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["files", "manifest.json"]


def test_folder_single_file_and_file_url(tmp_path):
    folder = tmp_path / "my data"
    folder.mkdir()
    (folder / "a.csv").write_text("x\n")
    for number, location in enumerate([folder, folder / "a.csv", (folder / "a.csv").as_uri()]):
        manifest = fetch.fetch("s", define(location), tmp_path / str(number))
        assert fetched(tmp_path / str(number)) == {"a.csv": b"x\n"}
        assert (manifest["sha256"] is None) == (location == folder)


def test_relative_path_is_below_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("x")
    fetch.fetch("s", define("a.txt"), tmp_path / "s")
    assert fetched(tmp_path / "s") == {"a.txt": b"x"}


def test_refetch_replaces_everything(tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("1")
    two.write_text("2")
    (tmp_path / "s/.partial/files").mkdir(parents=True)  # as a killed job leaves it
    fetch.fetch("s", define(one), tmp_path / "s")
    fetch.fetch("s", define(two), tmp_path / "s")
    assert fetched(tmp_path / "s") == {"two.txt": b"2"}
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["files", "manifest.json"]


def test_mirror_comes_first_and_may_lack_a_file(tmp_path, books):
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    here = define("ftp://nowhere.invalid/x/books.zip?download=1", books)
    assert fetch.fetch("books", here, tmp_path / "s", str(mirror))["location"] == str(books)
    (mirror / "books.zip").write_bytes(zipped({"mirrored": b""}))
    assert fetch.fetch("books", here, tmp_path / "s", str(mirror))["location"] == str(mirror / "books.zip")
    assert fetched(tmp_path / "s") == {"mirrored": b""}


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("https://a.b/s/download/x%20y.zip?download=1#z", "x y.zip"),
        ("folder/x.zip", "x.zip"),
        ("file:///a/b.csv", "b.csv"),
        ("https://a.b/", ""),
        ("..", ""),
        ("hf://owner/name", "name"),
        ("hf://owner/name/", "name"),
        ("hf://owner/name@v1", "name"),
        ("hf://owner/name@refs/pr/1", "name"),
        ("hf://owner/name@refs%2Fpr%2F1/", "name"),
        ("hf://datasets/owner/name@refs/convert/parquet?a=b#c", "name"),
        ("hf://datasets/owner/na%20me.zip@feature/x.zip", "na me.zip"),
        ("hf://name", "name"),
        ("hf://name@main", "name"),
        ("hf://datasets/name@feature/a@b", "name"),
        ("https://hub/datasets/o/n/resolve/refs%2Fpr%2F1/train.csv?download=true", "train.csv"),
    ],
)
def test_file_name(location, name):
    assert fetch.file_name(location) == name


def test_wrong_hash_moves_on_to_the_next_location(tmp_path):
    bad, good = tmp_path / "bad.txt", tmp_path / "good.txt"
    bad.write_text("bad")
    good.write_text("good")
    digest = hashlib.sha256(b"good").hexdigest()
    fetch.fetch("s", define(bad, good, sha256=digest), tmp_path / "s")
    assert fetched(tmp_path / "s") == {"good.txt": b"good"}
    with pytest.raises(SeedbedError) as caught:
        fetch.fetch("s", define(bad, sha256=digest), tmp_path / "t")
    assert f"{hashlib.sha256(b'bad').hexdigest()}, the config expects {digest}" in str(caught.value)


def test_every_failure_is_told(tmp_path):
    (tmp_path / "cut.zip").write_bytes(zipped({"a": b"text"})[:-30])
    (tmp_path / "folder").mkdir()
    locations = [tmp_path / "none/books.zip", tmp_path / "cut.zip", "ftp://host/x.zip", tmp_path / "folder"]
    with pytest.raises(SeedbedError) as caught:
        fetch.fetch("books", define(*locations), tmp_path / "s", str(tmp_path / "mirror"))
    text = str(caught.value)
    assert "source 'books' could not be fetched from any location" in text
    assert "where: config, sources.books" in text
    assert f"- {tmp_path}/mirror/books.zip: no such file or folder" in text
    assert f"- {tmp_path}/none/books.zip: no such file or folder" in text
    assert f"- {tmp_path}/cut.zip: the archive is damaged, truncated" in text
    assert "- ftp://host/x.zip: ftp:// is not supported" in text
    assert f"- {tmp_path}/folder: it has no files" in text
    assert "put books.zip into a folder DIR and give `--config mirror=DIR`" in text
    assert list((tmp_path / "s").iterdir()) == []


def test_folder_has_no_hash_to_check(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(SeedbedError, match="this is a folder, but the sha256"):
        fetch.fetch("s", define(tmp_path / "folder", sha256="0" * 64), tmp_path / "s")


def test_download(tmp_path):
    body = zipped({"a.txt": b"text"})
    with serving(sends(body)) as server:
        url = f"{server.url}/x/a.zip?download=1"
        manifest = fetch.fetch("s", define(url), tmp_path / "s")
    assert manifest["location"] == url
    assert manifest["sha256"] == sha256(body)
    assert fetched(tmp_path / "s") == {"a.txt": b"text"}
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["files", "manifest.json"]


def test_failed_downloads(tmp_path):
    def behaviour(request):
        answers = {
            "/cut.txt": lambda: request.send(200, b"short", Content_Length=10),
            "/page.zip": lambda: request.send(200, b"<html>log in</html>"),
            "/page.txt": lambda: request.send(200, b"\n<!DOCTYPE html><html>log in</html>"),
        }
        answers.get(request.path, lambda: request.send(404, b"gone"))()

    with serving(behaviour) as server:
        names = ("gone.txt", "cut.txt", "page.zip", "page.txt")
        locations = [*(f"{server.url}/{name}" for name in names), "http://127.0.0.1:1/x.txt"]
        with pytest.raises(SeedbedError) as caught:
            fetch.fetch("s", define(*locations), tmp_path / "s", patience=FAST)
    text = str(caught.value)
    assert "/gone.txt: HTTP status 404 Not Found" in text
    assert "/cut.txt: " in text
    assert "5 bytes read, 5 more expected" in text
    assert "/page.zip: the archive is damaged" in text
    assert "/page.txt: this is a page of HTML" in text
    assert "127.0.0.1:1/x.txt: ConnectionError" in text


# --- what a failed download leaves ------------------------------------------------------------------


def test_a_download_that_breaks_off_is_kept_and_continued(tmp_path):
    data = random.Random(0).randbytes(100_000)
    body = zipped({"a.bin": data})
    cut = [lambda r: r.send_file(body, stop=50_000)] + [lambda r: r.send(503)] * 2
    with serving(*cut, lambda r: r.send_file(body)) as server:
        here = define(f"{server.url}/a.zip")
        with pytest.raises(SeedbedError) as caught:
            fetch.fetch("s", here, tmp_path / "s", patience=FAST)
        kept = tmp_path / "s/.downloads"
        told = f"50,000 received bytes are kept in {kept}; the next run resumes from them"
        assert told in str(caught.value)
        assert list((tmp_path / "s").iterdir()) == [kept]
        fetch.fetch("s", here, tmp_path / "s", patience=FAST)
    assert server.ranges()[-1] == "bytes=50000-"
    assert fetched(tmp_path / "s") == {"a.bin": data}
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["files", "manifest.json"]


@pytest.mark.parametrize("body", [zipped({"a": b"text"})[:-30], b"<html>log in</html>"], ids=["cut", "page"])
def test_a_download_that_is_whole_and_wrong_is_not_kept(tmp_path, body):
    with serving(sends(body, ETag='"1"')) as server:
        for _ in range(2):
            with pytest.raises(SeedbedError, match="the archive is damaged"):
                fetch.fetch("s", define(f"{server.url}/a.zip"), tmp_path / "s", patience=FAST)
            assert list((tmp_path / "s").iterdir()) == []
    assert server.ranges() == [None, None]


# --- the lock file ----------------------------------------------------------------------------------


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_an_unknown_hash_is_recorded_with_a_warning_and_then_enforced(tmp_path, caplog):
    lock, one, two = tmp_path / "lock.json", zipped({"a": b"1"}), zipped({"a": b"2"})
    with serving(sends(one), sends(one), sends(two)) as server:
        url = f"{server.url}/a.zip"
        fetch.fetch("s", define(url), tmp_path / "s", lock=lock)
        entry = {"version": None, "file": "a.zip", "sha256": sha256(one), "bytes": len(one), "location": url}
        assert json.loads(lock.read_text()) == {"s": entry}
        (warning,) = warnings(caplog)
        assert f"s: no SHA-256 was known; the content from {url} is trusted" in warning
        assert str(lock) in warning
        assert sha256(one) in warning
        caplog.clear()
        fetch.fetch("s", define(url), tmp_path / "s", lock=lock)
        assert warnings(caplog) == []
        with pytest.raises(SeedbedError) as caught:
            fetch.fetch("s", define(url), tmp_path / "s", lock=lock)
        text = str(caught.value)
        assert f"its SHA-256 is {sha256(two)}, the lock file {lock} expects {sha256(one)}" in text
        assert f"as first seen at {url}" in text
        assert f"if you want the new content and trust it, remove 's' from {lock}" in text
        assert json.loads(lock.read_text()) == {"s": entry}
        assert fetched(tmp_path / "s") == {"a": b"1"}  # what was there is still there
        fetch.fetch("s", define(url) | {"version": "2"}, tmp_path / "s", lock=lock)
    assert json.loads(lock.read_text())["s@2"]["sha256"] == sha256(two)


def test_a_mirror_is_held_to_the_lock_file(tmp_path, nowhere):
    lock, mirror = tmp_path / "lock.json", tmp_path / "mirror"
    mirror.mkdir()
    here = define("ftp://nowhere.invalid/a.zip")
    (mirror / "a.zip").write_bytes(zipped({"a": b"1"}))
    fetch.fetch("s", here, tmp_path / "s", str(mirror), lock)
    assert json.loads(lock.read_text())["s"]["location"] == str(mirror / "a.zip")
    (mirror / "a.zip").write_bytes(zipped({"a": b"2"}))
    with pytest.raises(SeedbedError, match=f"a.zip: its SHA-256 is .* the lock file {lock} expects"):
        fetch.fetch("s", here, tmp_path / "s", str(mirror), lock)
    (mirror / "a.zip").unlink()
    (mirror / "a.zip").mkdir()
    with pytest.raises(SeedbedError, match=f"this is a folder, but the sha256 in the lock file {lock}"):
        fetch.fetch("s", here, tmp_path / "s", str(mirror), lock)


def test_the_next_location_is_tried_where_one_does_not_match_the_lock_file(tmp_path):
    lock = tmp_path / "lock.json"
    with serving(sends(b"1"), sends(b"2"), sends(b"1")) as server:
        here = define(f"{server.url}/x/a.txt", f"{server.url}/y/a.txt")
        for expected in ("x", "y"):
            manifest = fetch.fetch("s", here, tmp_path / "s", lock=lock)
            assert manifest["location"] == f"{server.url}/{expected}/a.txt"


def test_what_is_local_or_has_a_hash_is_not_locked(tmp_path, books):
    lock = tmp_path / "lock.json"
    fetch.fetch("s", define(books), tmp_path / "s", lock=lock)
    with serving(sends(b"text")) as server:
        here = define(f"{server.url}/a.txt", sha256=sha256(b"text"))
        fetch.fetch("s", here, tmp_path / "t", lock=lock)
    assert not lock.exists()


def test_a_page_in_place_of_a_file_is_not_locked(tmp_path):
    lock = tmp_path / "lock.json"
    with serving(sends(b"<html>log in</html>")) as server:
        for name in ("a.zip", "a.csv"):
            with pytest.raises(SeedbedError, match=r"damaged|page of HTML"):
                fetch.fetch("s", define(f"{server.url}/{name}"), tmp_path / "s", lock=lock)
    assert not lock.exists()


FETCH = """
import os, sys
from seedbed.sources import fetch as sources
from seedbed.core.errors import SeedbedError
url, folder, lock = sys.argv[1:]
try:
    print(sources.fetch("s", {"locations": [url]}, folder, lock=lock)["sha256"])
except SeedbedError as error:
    print(error, os.listdir(folder))
"""


def test_of_processes_that_fetch_at_once_one_records_and_all_are_held_to_it(tmp_path):
    lock = tmp_path / "lock.json"
    barrier = threading.Barrier(3)

    def different(request):
        barrier.wait(60)
        request.send(200, request.path.encode())

    with serving(different) as server:
        settings = {"cwd": ROOT / "scripts", "stdout": subprocess.PIPE, "text": True}
        jobs = [
            subprocess.Popen(
                [sys.executable, "-c", FETCH, f"{server.url}/{job}/a.txt", tmp_path / str(job), lock],
                **settings,
            )
            for job in range(3)
        ]
        told = [job.communicate()[0].strip() for job in jobs]
    recorded = json.loads(lock.read_text())["s"]["sha256"]
    assert told.count(recorded) == 1
    assert sum(f"the lock file {lock} expects {recorded}" in text for text in told) == 2


# --- mirrors, kinds, sizes, include -----------------------------------------------------------------


def test_a_mirror_may_be_a_file_and_the_network_is_not_asked(tmp_path, books, nowhere):
    here = define("https://nowhere.invalid/x/books.zip?download=1")
    assert fetch.fetch("books", here, tmp_path / "s", str(books))["location"] == str(books)
    # a file of another name stands for no location
    assert fetch.candidates(["https://a.b/c.zip"], str(books)) == ["https://a.b/c.zip"]


def test_kinds(tmp_path, books):
    kept = fetch.fetch("s", define(books) | {"kind": "file"}, tmp_path / "s")
    assert list(kept["files"]) == ["books.zip"]
    for kind, location in [("folder", books), ("hub", books), ("archive", tmp_path), ("file", tmp_path)]:
        with pytest.raises(SeedbedError, match=f"the location does not fit the source's kind, {kind}"):
            fetch.fetch("s", define(location) | {"kind": kind}, tmp_path / "t")
    (tmp_path / "a.csv").write_text("x")
    with pytest.raises(SeedbedError, match=r"a\.csv: the archive is damaged"):
        fetch.fetch("s", define(tmp_path / "a.csv") | {"kind": "archive"}, tmp_path / "t")


def tarred(members, mode):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "body", [zipped({"a.txt": b"text"}), tarred({"a.txt": b"text"}, "w:gz")], ids=["zip", "tar"]
)
@pytest.mark.parametrize("named", [True, False])
def test_an_archive_may_hide_behind_a_url_without_its_name(tmp_path, body, named):
    ending = ".zip" if body.startswith(b"PK") else ".tar.gz"
    with serving(sends(body)) as server:
        locations = [f"{server.url}/api/content", *([f"{server.url}/a{ending}"] if named else [])]
        manifest = fetch.fetch("s", define(*locations) | {"kind": "archive"}, tmp_path / "s")
    assert manifest["location"] == locations[0]
    assert fetched(tmp_path / "s") == {"a.txt": b"text"}


def test_bytes_are_checked(tmp_path, books):
    size = books.stat().st_size
    fetch.fetch("s", define(books) | {"bytes": size}, tmp_path / "s")
    with pytest.raises(SeedbedError, match=f"it has {size} bytes, the config expects 7"):
        fetch.fetch("s", define(books) | {"bytes": 7}, tmp_path / "s")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("text")
    fetch.fetch("s", define(folder) | {"bytes": 4}, tmp_path / "t")
    with pytest.raises(SeedbedError, match="it has 4 bytes, the config expects 5"):
        fetch.fetch("s", define(folder) | {"bytes": 5}, tmp_path / "t")


def test_include(tmp_path):
    archive = tmp_path / "a.zip"
    archive.write_bytes(zipped({"x/a.csv": b"1", "x/b.txt": b"2", "c.md": b"3"}))
    fetch.fetch("s", define(archive) | {"include": ["*.csv", "c.md"]}, tmp_path / "s")
    assert fetched(tmp_path / "s") == {"x/a.csv": b"1", "c.md": b"3"}
    with pytest.raises(SeedbedError, match=r"no file matches '\*\.tsv' of `include`"):
        fetch.fetch("s", define(archive) | {"include": ["*.csv", "*.tsv"]}, tmp_path / "t")


# --- a full disk ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".zip", ".tar.xz"])
def test_a_disk_that_fills_up_while_unpacking(tmp_path, ending):
    """A disk of 256 kB, and 600 kB packed: a zip tells its size beforehand, a tar.xz does not."""
    small, archive = tmp_path / "small", tmp_path / f"a{ending}"
    small.mkdir()
    inside = ["unshare", "-rm", "--propagation", "private", "sh", "-c"]
    mount = f'mount -t tmpfs -o size=256k tmpfs "{small}" && '
    probe = [*inside, mount + "true"]
    if not shutil.which("unshare") or subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("an ordinary user may not mount a tmpfs here")
    members = {str(number): random.Random(number).randbytes(10_000) * 10 for number in range(6)}
    archive.write_bytes(zipped(members) if ending == ".zip" else tarred(members, "w:xz"))
    command = [*inside, mount + 'exec "$0" "$@"', sys.executable, "-c", FETCH]
    done = subprocess.run(
        [*command, archive, small / "s", tmp_path / "lock.json"],
        cwd=ROOT / "scripts",
        capture_output=True,
        text=True,
        check=True,
    )
    told = done.stdout.strip()
    assert "source 's': there is not enough room on the disk" in told, done
    assert ("630,000 bytes are needed" if ending == ".zip" else "No space left on device") in told
    assert "make room there" in told
    assert told.endswith("[]")  # what was half made is gone


def test_local_files(tmp_path, books):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "b.csv").write_text("x")
    (folder / "a.csv").write_text("x")
    (folder / ".DS_Store").write_text("x")
    locations = ["https://a.b/c.zip", str(folder), str(books), str(tmp_path / "none")]
    assert fetch.local_files(locations) == [str(folder / "a.csv"), str(folder / "b.csv"), str(books)]


# --- what comes from outside ------------------------------------------------------------------------------


def failing(folder, definition):
    with pytest.raises(SeedbedError) as caught:
        fetch.fetch("s", definition, folder, patience=FAST)
    return str(caught.value)


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip"])
@pytest.mark.parametrize("known", ["hash", "bytes", "nothing"])
@pytest.mark.parametrize("name", ["b.tar.gz", "b.tgz", "b.csv.gz", "latest"])
def test_a_compressed_file_is_the_one_that_is_stored(tmp_path, encoding, known, name):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"))
    body, lock = buffer.getvalue(), tmp_path / "lock.json"
    with serving(sends(body, Content_Encoding=encoding)) as server:
        definition = define(f"{server.url}/{name}") | {
            "sha256": sha256(body) if known == "hash" else None,
            "bytes": len(body) if known == "bytes" else None,
            "kind": "archive" if name == "latest" else "auto",
        }
        manifest = fetch.fetch("s", definition, tmp_path / "s", lock=lock, patience=FAST)
    assert manifest["sha256"] == sha256(body)
    assert fetched(tmp_path / "s") == ({name: body} if name == "b.csv.gz" else {"a.txt": b""})
    if known != "hash":
        assert json.loads(lock.read_text())["s"]["sha256"] == sha256(body)


def test_a_server_that_sends_more_bytes_than_stated_is_stopped_and_the_next_is_tried(tmp_path):
    def endless(request):
        request.start(200)
        with contextlib.suppress(ConnectionError):
            for _ in range(1000):
                request.wfile.write(bytes(2**16))
                request.server.sent = getattr(request.server, "sent", 0) + 2**16

    with serving(endless) as bad, serving(sends(b"a" * 100)) as good:
        definition = define(f"{bad.url}/a.txt", f"{good.url}/a.txt") | {"bytes": 100}
        manifest = fetch.fetch("s", definition, tmp_path / "s", patience=FAST)
        assert bad.sent < 2**25
    assert manifest["location"].startswith(good.url)
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["files", "manifest.json"]


BAD_LOCATIONS = [
    *("http://[::1", "http://[::1/a.txt", "file://[", "http://127.0.0.1:99999/a", "http://127.0.0.1:x/a"),
    *("http://127.0.0.1:1/%00", "http://127.0.0.1:1/a%0Ab", "http://127.0.0.1:1/%1b%5B31m", "http://ü..x/a"),
    *(
        "http://127.0.0.1:1/" + "x" * 300,
        "x" * 300,
        "a/" * 3000,
        "a\x00b",
        "file:///a%00b",
        "/dev/zero",
        "~/\0",
    ),
    *("hf://[", "hf://" + "x" * 300, "hf://a/b@%00", "hf://a/..", "hf://../..", "://", "x://y", "http://"),
    *(
        "http://127.0.0.1:1/%2e%2e",
        "http://127.0.0.1:1/..%2F..%2Fx",
        "http://127.0.0.1:1/%ff%fe",
        "ftp://h/\x85",
    ),
]


@pytest.mark.parametrize("location", BAD_LOCATIONS)
def test_a_location_that_is_none_is_one_line_and_the_next_is_tried(tmp_path, location, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    quick = Patience(attempts=1)
    with pytest.raises(SeedbedError) as caught:
        fetch.fetch("s", define(location), tmp_path / "s", patience=quick)
    lines = str(caught.value).splitlines()
    assert [line[:9] for line in lines[1:]] == [
        "  where: ",
        "  found: ",
        "    - " + lines[3][6:9],
        "  hint:  ",
    ]
    assert str(caught.value).replace("\n", "").isprintable()
    (tmp_path / "a.txt").write_bytes(b"x")
    definition = define(location, tmp_path / "a.txt")
    for mirror in (None, str(tmp_path / "none")):
        manifest = fetch.fetch("s", definition, tmp_path / "s", mirror, patience=quick)
        assert manifest["location"] == str(tmp_path / "a.txt")


@pytest.mark.parametrize(
    "name", ["%00", "a%0Ab.csv", "%1b%5B31m.csv", "x" * 256, "a%5C..%5C..%5Cb", "aux.csv"]
)
def test_a_url_whose_last_part_no_file_can_bear(tmp_path, name):
    with serving(sends(b"x")) as server:
        told = failing(tmp_path / "in/s", define(f"{server.url}/{name}"))
        assert "the URL's file " in told
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("name", ["a\nb.txt", "\x1b[31m.txt", "a\u2028.txt", "\udce9.txt"])
def test_a_file_of_a_folder_whose_name_cannot_be_shown(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / name).write_bytes(b"x")
    (tmp_path / "folder" / "été.txt").write_bytes(b"x")
    assert fetch.local_files([str(tmp_path / "folder")]) == [str(tmp_path / "folder" / "été.txt")]
    assert "its name " in failing(tmp_path / "s", define(tmp_path / "folder"))


def test_local_files_that_no_system_has_are_none():
    assert fetch.local_files(["x" * 300, "a\x00b", "a/" * 3000, "http://h/x"]) == []


def test_a_zip_whose_member_has_a_name_of_300_letters(tmp_path):
    (tmp_path / "a.zip").write_bytes(zipped({"x" * 300: b"x"}))
    told = failing(tmp_path / "s", define(tmp_path / "a.zip"))
    assert "its name is too long" in told


LIMITED = """
import os, resource, shutil, sys
from seedbed.core.errors import SeedbedError
from seedbed.sources.fetch import fetch
if sys.argv[1] == "gone":
    os.makedirs("gone"); os.chdir("gone"); os.rmdir(os.getcwd())
else:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    fetch("s", {"locations": sys.argv[3:]}, sys.argv[2])
except SeedbedError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ("size", "a file is larger than a process may write"),
        ("gone", "the current working directory no longer exists"),
    ],
)
def test_what_the_system_refuses_is_told(tmp_path, limit, told):
    (tmp_path / "a.txt").write_bytes(bytes(2000))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_bytes(bytes(2000))
    with serving(sends(bytes(2000))) as server:
        locations = {"size": [f"{server.url}/a", tmp_path / "a.txt", tmp_path / "folder"], "gone": ["a.txt"]}
        command = [sys.executable, "-c", LIMITED, limit, tmp_path / "s", *locations[limit]]
        done = subprocess.run(
            command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT / "scripts")}, capture_output=True, text=True
        )
    assert "Traceback" not in done.stderr
    assert done.stdout.count(told) == len(locations[limit])
    assert len(done.stdout.splitlines()) == 4 + len(locations[limit])
