"""Fetching: order of locations, mirrors, hashes, downloads, and the error that lists all failures."""

import contextlib
import functools
import hashlib
import http.server
import io
import json
import threading
import zipfile

import pytest

from seedbed import sources
from seedbed.errors import SeedbedError


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


@contextlib.contextmanager
def server(responses):
    """A web server on this machine: path -> (status, headers, body)."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            status, headers, body = responses.get(self.path.split("?")[0], (404, {}, b"gone"))
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=functools.partial(running.serve_forever, 0.01), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


@pytest.fixture
def books(tmp_path):
    path = tmp_path / "books.zip"
    path.write_bytes(zipped({"books/train.review": b"bon\n", "__MACOSX/x": b"x"}))
    return path


def test_archive_and_manifest(tmp_path, books):
    digest = hashlib.sha256(books.read_bytes()).hexdigest()
    manifest = sources.fetch("books", define(books, sha256=digest), tmp_path / "s")
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
        manifest = sources.fetch("s", define(location), tmp_path / str(number))
        assert fetched(tmp_path / str(number)) == {"a.csv": b"x\n"}
        assert (manifest["sha256"] is None) == (location == folder)


def test_relative_path_is_below_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("x")
    sources.fetch("s", define("a.txt"), tmp_path / "s")
    assert fetched(tmp_path / "s") == {"a.txt": b"x"}


def test_refetch_replaces_everything(tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("1")
    two.write_text("2")
    (tmp_path / "s/.partial/files").mkdir(parents=True)  # as a killed job leaves it
    sources.fetch("s", define(one), tmp_path / "s")
    sources.fetch("s", define(two), tmp_path / "s")
    assert fetched(tmp_path / "s") == {"two.txt": b"2"}
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["files", "manifest.json"]


def test_mirror_comes_first_and_may_lack_a_file(tmp_path, books):
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    here = define("https://nowhere.invalid/x/books.zip?download=1", books)
    assert sources.fetch("books", here, tmp_path / "s", str(mirror))["location"] == str(books)
    (mirror / "books.zip").write_bytes(zipped({"mirrored": b""}))
    assert sources.fetch("books", here, tmp_path / "s", str(mirror))["location"] == str(mirror / "books.zip")
    assert fetched(tmp_path / "s") == {"mirrored": b""}


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("https://a.b/s/download/x%20y.zip?download=1#z", "x y.zip"),
        ("folder/x.zip", "x.zip"),
        ("file:///a/b.csv", "b.csv"),
        ("https://a.b/", ""),
        ("..", ""),
    ],
)
def test_file_name(location, name):
    assert sources.file_name(location) == name


def test_wrong_hash_moves_on_to_the_next_location(tmp_path):
    bad, good = tmp_path / "bad.txt", tmp_path / "good.txt"
    bad.write_text("bad")
    good.write_text("good")
    digest = hashlib.sha256(b"good").hexdigest()
    sources.fetch("s", define(bad, good, sha256=digest), tmp_path / "s")
    assert fetched(tmp_path / "s") == {"good.txt": b"good"}
    with pytest.raises(SeedbedError) as caught:
        sources.fetch("s", define(bad, sha256=digest), tmp_path / "t")
    assert f"{hashlib.sha256(b'bad').hexdigest()}, the config expects {digest}" in str(caught.value)


def test_every_failure_is_told(tmp_path):
    (tmp_path / "cut.zip").write_bytes(zipped({"a": b"text"})[:-30])
    (tmp_path / "folder").mkdir()
    locations = [tmp_path / "none/books.zip", tmp_path / "cut.zip", "ftp://host/x.zip", tmp_path / "folder"]
    with pytest.raises(SeedbedError) as caught:
        sources.fetch("books", define(*locations), tmp_path / "s", str(tmp_path / "mirror"))
    text = str(caught.value)
    assert "source 'books' could not be fetched from any location" in text
    assert "where: config, sources.books" in text
    assert f"- {tmp_path}/mirror/books.zip: no such file or folder" in text
    assert f"- {tmp_path}/none/books.zip: no such file or folder" in text
    assert f"- {tmp_path}/cut.zip: the archive is damaged, cut off" in text
    assert "- ftp://host/x.zip: ftp:// is not supported" in text
    assert f"- {tmp_path}/folder: it holds no files" in text
    assert "put books.zip into a folder DIR and give `--config mirror=DIR`" in text
    assert list((tmp_path / "s").iterdir()) == []


def test_folder_has_no_hash_to_check(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(SeedbedError, match="this is a folder, and the sha256"):
        sources.fetch("s", define(tmp_path / "folder", sha256="0" * 64), tmp_path / "s")


def test_download(tmp_path):
    body = zipped({"a.txt": b"text"})
    responses = {"/x/a.zip": (200, {"Content-Length": str(len(body))}, body)}
    with server(responses) as host:
        url = f"{host}/x/a.zip?download=1"
        manifest = sources.fetch("s", define(url), tmp_path / "s")
    assert manifest["location"] == url
    assert manifest["sha256"] == hashlib.sha256(body).hexdigest()
    assert fetched(tmp_path / "s") == {"a.txt": b"text"}


def test_failed_downloads(tmp_path):
    responses = {
        "/cut.txt": (200, {"Content-Length": "10"}, b"short"),
        "/page.zip": (200, {}, b"<html>log in</html>"),
    }
    with server(responses) as host:
        locations = [f"{host}/gone.txt", f"{host}/cut.txt", f"{host}/page.zip", "http://127.0.0.1:1/x.txt"]
        with pytest.raises(SeedbedError) as caught:
            sources.fetch("s", define(*locations), tmp_path / "s")
    text = str(caught.value)
    assert "/gone.txt: HTTP status 404 Not Found" in text
    assert "/cut.txt: " in text
    assert "5 bytes read, 5 more expected" in text
    assert "/page.zip: the archive is damaged" in text
    assert "127.0.0.1:1/x.txt: ConnectionError" in text


def test_local_files(tmp_path, books):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "b.csv").write_text("x")
    (folder / "a.csv").write_text("x")
    (folder / ".DS_Store").write_text("x")
    locations = ["https://a.b/c.zip", str(folder), str(books), str(tmp_path / "none")]
    assert sources.local_files(locations) == [str(folder / "a.csv"), str(folder / "b.csv"), str(books)]
