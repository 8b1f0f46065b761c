"""Downloads from servers that break off, stall, lie, refuse and change their mind."""

import contextlib
import email.utils
import gzip
import hashlib
import logging
import os
import pty
import random
import re
import shutil
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from builders_web import serving

from seedbed.core.errors import SeedbedError
from seedbed.sources.http import download
from seedbed.sources.retries import Patience

ROOT = Path(__file__).parents[3]
BODY = random.Random(0).randbytes(300_000)
OTHER = random.Random(1).randbytes(300_000)
FAST = Patience(attempts=3, backoff=0.01, read=5)
IMPATIENT = Patience(attempts=3, backoff=0.01, read=0.3)


def expecting(body):
    digest = hashlib.sha256(body).hexdigest()

    def verify(path):
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != digest:
            raise SeedbedError(f"SHA-256 {found}")

    return verify


def good(request):
    request.send_file(BODY)


def cut(request):
    request.send_file(BODY, stop=150_000)


def status(code, **headers):
    return lambda request: request.send(code, b"sorry", **headers)


def fails(folder, *behaviours, patience=FAST, **arguments):
    """What a download that fails says."""
    with serving(*behaviours) as server, pytest.raises(SeedbedError) as caught:
        download(server.url + "/x", folder / "x", patience=patience, **arguments)
    return str(caught.value), server


def works(folder, *behaviours, body=BODY, patience=FAST, **arguments):
    """The requests of a download that ends with `body`."""
    with serving(*behaviours) as server:
        download(server.url + "/x", folder / "x", patience=patience, **arguments)
    assert (folder / "x").read_bytes() == body
    return server


# --- going on ---------------------------------------------------------------------------------------


def test_a_broken_stream_goes_on_where_it_stopped(tmp_path):
    server = works(tmp_path, cut, good)
    assert server.ranges() == [None, "bytes=150000-"]
    assert server.requests[1][1]["If-Range"] == '"1"'


def test_an_old_date_will_do_where_there_is_no_etag(tmp_path):
    date = email.utils.formatdate(time.time() - 3600, usegmt=True)

    def dated(request, stop=None):
        start = 150_000 if request.headers.get("If-Range") == date else 0
        span = f"bytes {start}-{len(BODY) - 1}/{len(BODY)}" if start else None
        request.start(
            206 if start else 200, Content_Length=len(BODY) - start, Content_Range=span, Last_Modified=date
        )
        request.wfile.write(BODY[start:stop])

    assert works(tmp_path, lambda r: dated(r, 150_000), dated).ranges() == [None, "bytes=150000-"]


@pytest.mark.parametrize("headers", [{}, {"ETag": 'W/"1"'}, {"Last_Modified": "now"}])
def test_without_a_sign_that_it_is_the_same_file_nothing_is_kept(tmp_path, headers):
    if headers.get("Last_Modified"):
        headers = {"Last_Modified": email.utils.formatdate(usegmt=True)}

    def weak(request):
        request.start(200, Content_Length=len(BODY), **headers)
        request.wfile.write(BODY[:150_000])

    assert works(tmp_path, weak, good).ranges() == [None, None]


def test_a_known_hash_will_do_for_a_sign(tmp_path):
    def unmarked(request):
        request.send_file(BODY, etag=None, stop=150_000)

    def rest(request):
        request.send_file(BODY, etag=None)

    assert works(tmp_path, unmarked, rest, verify=expecting(BODY)).ranges() == [None, "bytes=150000-"]


def test_a_killed_process_is_continued_by_another(tmp_path):
    code = "import sys; from seedbed.sources.http import download; download(*sys.argv[1:])"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts")}
    with serving(lambda r: r.send_file(BODY, pause=0.3), good) as server:
        job = subprocess.Popen(
            [sys.executable, "-c", code, server.url + "/x", tmp_path / "x"], env=environment
        )
        while not (tmp_path / "x").exists() or (tmp_path / "x").stat().st_size < 2**16:
            assert job.poll() is None
            time.sleep(0.02)
        job.send_signal(signal.SIGKILL)
        job.wait()
        received = (tmp_path / "x").stat().st_size
        assert received < len(BODY)
        download(server.url + "/x", tmp_path / "x", patience=FAST)
    assert (tmp_path / "x").read_bytes() == BODY
    assert server.ranges() == [None, f"bytes={received}-"]


def test_what_is_whole_is_asked_for_its_last_byte_only(tmp_path):
    with serving(good) as server:
        for _ in range(2):
            download(server.url + "/x", tmp_path / "x", patience=FAST)
    assert (tmp_path / "x").read_bytes() == BODY
    assert server.ranges() == [None, f"bytes={len(BODY) - 1}-"]


def test_what_is_whole_and_right_is_not_asked_for(tmp_path):
    with serving(good) as server:
        for _ in range(2):
            download(server.url + "/x", tmp_path / "x", patience=FAST, verify=expecting(BODY))
    assert len(server.requests) == 1


def test_bytes_of_another_url_are_not_continued(tmp_path):
    with serving(good, lambda r: r.send_file(OTHER)) as server:
        download(server.url + "/x", tmp_path / "x", patience=FAST)
        download(server.url + "/y", tmp_path / "x", patience=FAST)
    assert (tmp_path / "x").read_bytes() == OTHER
    assert server.ranges() == [None, None]


@pytest.mark.parametrize("note", [b"", b"{}", b"[1]", b"\xff"])
def test_bytes_with_a_damaged_note_are_not_continued(tmp_path, note):
    (tmp_path / "x").write_bytes(OTHER[:1000])
    (tmp_path / "x.download.json").write_bytes(note)
    assert works(tmp_path, good).ranges() == [None]


# --- starting over ----------------------------------------------------------------------------------


def test_a_server_that_ignores_ranges(tmp_path):
    def whole(request):
        request.send(200, BODY, ETag='"1"')

    assert works(tmp_path, cut, whole).ranges() == [None, "bytes=150000-"]


def test_a_file_that_changes_midway(tmp_path):
    server = works(tmp_path, cut, lambda r: r.send_file(OTHER, etag='"2"'), body=OTHER)
    assert server.ranges() == [None, "bytes=150000-"]


def test_a_server_that_goes_on_with_another_version_starts_over(tmp_path):
    def careless(request):  # ignores If-Range
        span = f"bytes 150000-{len(BODY) - 1}/{len(BODY)}"
        request.send(206, OTHER[150_000:], ETag='"2"', Content_Range=span)

    server = works(tmp_path, cut, careless, good)
    assert server.ranges() == [None, "bytes=150000-", None]


def test_a_file_that_changes_under_the_same_etag_is_found_out_by_its_hash(tmp_path):
    server = works(tmp_path, cut, lambda r: r.send_file(OTHER), body=OTHER, verify=expecting(OTHER))
    assert server.ranges() == [None, "bytes=150000-", None]


def test_one_fresh_download_and_no_more_for_a_wrong_hash(tmp_path):
    told, server = fails(tmp_path, cut, good, verify=expecting(OTHER))
    assert "SHA-256" in told
    assert server.ranges() == [None, "bytes=150000-", None]
    assert list(tmp_path.iterdir()) == []
    _, server = fails(tmp_path, good, verify=expecting(OTHER))
    assert server.ranges() == [None]


def test_416_starts_over(tmp_path):
    assert works(tmp_path, cut, status(416), good).ranges() == [None, "bytes=150000-", None]


@pytest.mark.parametrize("span", ["bytes 0-299999/300000", "bytes 150000-299998/299999", "nonsense"])
def test_another_range_than_the_one_asked_for_starts_over(tmp_path, span):
    def wrong(request):
        request.send(206, BODY[150_000:], ETag='"1"', Content_Range=span)

    assert works(tmp_path, cut, wrong, good).ranges() == [None, "bytes=150000-", None]


# --- trying again, and giving up --------------------------------------------------------------------


@pytest.mark.parametrize("code", [401, 403, 404, 410])
def test_a_refusal_is_final(tmp_path, code):
    told, server = fails(tmp_path, status(code), good)
    assert f"HTTP status {code}" in told
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_busy_server_is_asked_again(tmp_path, code):
    assert len(works(tmp_path, status(code), status(code), good).requests) == 3
    told, server = fails(tmp_path / "t", status(code))
    assert f"HTTP status {code}" in told
    assert "3 attempts" in told
    assert len(server.requests) == 3


@pytest.mark.parametrize("code", [429, 503])
def test_retry_after_is_honoured(tmp_path, code, monkeypatch):
    pauses = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    date = email.utils.formatdate(time.time() + 100, usegmt=True)
    works(tmp_path, status(code, Retry_After="7"), status(code, Retry_After=date), good)
    pauses = [pause for pause in pauses if pause > 1]
    assert pauses[0] == 7
    assert 95 < pauses[1] <= 100


def test_a_server_that_asks_for_too_long_a_pause_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    told, server = fails(tmp_path, status(429, Retry_After="86400"))
    assert "the server asks to come back in 86,400 s" in told
    assert len(server.requests) == 1


def test_a_stall_is_noticed_and_the_download_goes_on(tmp_path):
    def stalls(request):
        request.start(200, Content_Length=len(BODY), ETag='"1"')
        request.wfile.write(BODY[: 2**16])
        request.wfile.flush()
        time.sleep(1)

    server = works(tmp_path, stalls, good, patience=IMPATIENT)
    assert server.ranges() == [None, "bytes=65536-"]
    told, _ = fails(tmp_path / "t", lambda r: time.sleep(1), patience=IMPATIENT)
    assert "Read timed out" in told


def test_a_trickle_is_no_stall(tmp_path):
    server = works(tmp_path, lambda r: r.send_file(BODY, pause=0.1), patience=IMPATIENT)
    assert server.ranges() == [None]


def test_a_server_that_always_truncates_is_given_up(tmp_path):
    told, server = fails(tmp_path, lambda r: r.send_file(BODY, etag=None, stop=1000))
    assert "IncompleteRead(1000 bytes read, 299000 more expected)" in told
    assert server.ranges() == [None] * 3


def test_progress_gives_new_attempts(tmp_path):
    stops = [lambda r, stop=stop: r.send_file(BODY, stop=stop) for stop in range(20_000, 300_000, 40_000)]
    assert len(works(tmp_path, *stops, good).requests) == 8


def test_a_length_that_is_too_long(tmp_path):
    told, _ = fails(tmp_path, lambda r: r.send(200, b"short", Content_Length=10))
    assert "5 bytes read, 5 more expected" in told


def test_a_length_that_is_too_short_is_found_out_by_hash_or_size(tmp_path):
    def short(request):
        request.send(200, BODY, Content_Length=1000)

    assert "SHA-256" in fails(tmp_path, short, verify=expecting(BODY))[0]
    told, _ = fails(tmp_path, short, size=len(BODY))
    assert "the server announces 1,000 bytes instead of 300,000" in told


def test_a_size_that_is_not_announced_is_checked_all_the_same(tmp_path, caplog):
    def silent(request):
        request.send(200, BODY, Content_Length=None)

    told, _ = fails(tmp_path, silent, size=1000)
    assert "it has more than the expected 1,000 bytes" in told
    told, _ = fails(tmp_path, silent, size=len(BODY) + 1)
    assert "it has 300,000 bytes instead of 300,001" in told
    assert "the server states no size" in caplog.text
    works(tmp_path, silent, size=len(BODY))


def test_redirects(tmp_path):
    works(tmp_path, status(302, Location="/y"), good)
    told, server = fails(tmp_path / "t", status(302, Location="/x"))
    assert "TooManyRedirects" in told
    assert len(server.requests) == 11
    for scheme in ("ftp", "file"):
        told, server = fails(tmp_path / "t", status(302, Location=f"{scheme}:///etc/passwd"))
        assert f"{scheme}:///etc/passwd" in told
        assert len(server.requests) == 1


def test_a_host_that_does_not_answer(tmp_path):
    with pytest.raises(SeedbedError, match=r"ConnectionError.*3 attempts"):
        download("http://127.0.0.1:1/x", tmp_path / "x", patience=FAST)


def test_a_proxy_is_used(tmp_path, monkeypatch):
    with serving(good) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        download("http://nowhere.invalid/x", tmp_path / "x", patience=FAST)
    assert [path for path, _ in proxy.requests] == ["http://nowhere.invalid/x"]
    assert (tmp_path / "x").read_bytes() == BODY


def test_a_compressed_answer_is_unpacked_on_the_way_and_not_continued(tmp_path):
    packed = gzip.compress(BODY)

    def compressed(request, stop=None):
        request.start(200, Content_Length=len(packed), Content_Encoding="gzip", ETag='"1"')
        request.wfile.write(packed[:stop])

    assert works(tmp_path, lambda r: compressed(r, 1000), compressed).ranges() == [None, None]


# --- what is stored, and what is compressed for the way -------------------------------------------------

PACKED = gzip.compress(BODY, mtime=0)


def encoded(encoding="gzip", body=PACKED, **headers):
    headers = {"Content_Length": len(body), "Content_Encoding": encoding} | headers
    return lambda request: request.send(200, body, **headers)


def fetch_as(folder, name, *behaviours, **arguments):
    with serving(*behaviours) as server:
        download(f"{server.url}/{name}", folder / "part", patience=FAST, **arguments)
    assert [path.name for path in folder.iterdir() if not path.name.endswith(".json")] == ["part"]
    assert all(headers["Accept-Encoding"] == "identity" for _, headers in server.requests)
    return (folder / "part").read_bytes()


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "GZIP "])
@pytest.mark.parametrize("name", ["a.tar.gz", "a.csv.gz", "a.TGZ", "a.gz?version=1"])
def test_a_file_that_is_stored_compressed_is_kept_as_it_is(tmp_path, encoding, name):
    assert fetch_as(tmp_path / "n", name, encoded(encoding)) == PACKED
    assert fetch_as(tmp_path / "h", name, encoded(encoding), verify=expecting(PACKED)) == PACKED
    assert fetch_as(tmp_path / "b", name, encoded(encoding), size=len(PACKED)) == PACKED


def test_a_hash_a_size_or_the_kind_says_what_a_name_does_not(tmp_path):
    for encoding in ("gzip", "br", "deflate", "utf-8"):
        for number, known in enumerate(({"verify": expecting(PACKED)}, {"size": len(PACKED)})):
            assert fetch_as(tmp_path / f"{encoding}{number}", "latest", encoded(encoding), **known) == PACKED
    assert fetch_as(tmp_path / "p", "latest", encoded(), packed=True) == PACKED


def test_a_zip_with_an_encoding_that_it_has_not_is_kept(tmp_path):
    body = b"PK\x03\x04" + BODY
    assert fetch_as(tmp_path, "a.zip", encoded("utf-8", body)) == body


def test_what_is_compressed_for_the_way_has_the_hash_and_the_size_of_what_is_stored(tmp_path):
    known = {"verify": expecting(BODY), "size": len(BODY)}
    assert fetch_as(tmp_path / "1", "a.csv", encoded(), **known) == BODY
    assert fetch_as(tmp_path / "2", "a.csv", encoded(Content_Length=None), size=len(BODY)) == BODY
    # a second time it is there, and not asked for
    with serving(encoded()) as server:
        for _ in range(2):
            download(f"{server.url}/a.csv", tmp_path / "3", patience=FAST, **known)
    assert len(server.requests) == 1
    assert (tmp_path / "3").read_bytes() == BODY


@pytest.mark.parametrize("encoding", ["br", "zstd", "deflate"])
def test_a_compression_for_the_way_that_cannot_be_undone_is_refused(tmp_path, encoding):
    told, _ = fails(tmp_path, encoded(encoding, b"\x8b" + BODY))
    assert f"Content-Encoding {encoding}" in told
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_compression_for_the_way_leaves_nothing(tmp_path):
    for body in (PACKED[:-5], PACKED[:100] + b"x" + PACKED[101:]):
        told, _ = fails(tmp_path, encoded(body=body))
        assert "its Content-Encoding gzip is damaged" in told
        assert list(tmp_path.iterdir()) == []


# --- too many bytes ---------------------------------------------------------------------------------------


def endless(request, chunked=False, **headers):
    """Sends on until the client has gone, or 64 MB."""
    request.start(200, **({"Transfer_Encoding": "chunked"} if chunked else {}), **headers)
    block = b"%x\r\n%s\r\n" % (2**16, bytes(2**16)) if chunked else bytes(2**16)
    with contextlib.suppress(ConnectionError):
        for _ in range(1000):
            request.wfile.write(block)
            request.server.sent = getattr(request.server, "sent", 0) + 2**16


@pytest.mark.parametrize(
    ("answer", "size"),
    [
        ({}, 100),
        ({"chunked": True}, 100),
        ({"chunked": True, "Content_Length": 100}, 100),
        ({"chunked": True, "Content_Length": 100}, None),  # what is announced counts, too
        ({"Content_Encoding": "gzip"}, 100),
        ({"ETag": '"1"'}, 0),
    ],
)
def test_an_answer_is_stopped_at_the_first_byte_too_many(tmp_path, monkeypatch, answer, size):
    written = []
    monkeypatch.setattr("seedbed.sources.http._write", lambda stream, block: written.append(len(block)))
    told, server = fails(tmp_path, lambda r: endless(r, **answer), size=size)
    assert "more than the" in told
    assert "the rest was not read" in told
    assert sum(written) <= 2**11
    assert server.sent < 2**25  # what the system's buffers took
    assert list(tmp_path.iterdir()) == []
    assert len(server.requests) == 1


def test_an_answer_of_unknown_size_is_stopped_where_no_source_needs_more(tmp_path, monkeypatch):
    monkeypatch.setattr("seedbed.sources.http.MAX_BYTES", 2**20)
    told, server = fails(tmp_path, endless)
    assert "more than 1,048,576 bytes, but the server states no size" in told
    assert "`bytes` of the source" in told
    assert server.sent < 2**25
    assert list(tmp_path.iterdir()) == []


def test_a_continued_answer_is_stopped_too(tmp_path):
    def rest(request):
        request.start(206, Content_Range=f"bytes 150000-{len(BODY) - 1}/{len(BODY)}", ETag='"1"')
        request.wfile.write(BODY[150_000:] + bytes(2**20))

    told, _ = fails(tmp_path, cut, rest, size=len(BODY))
    assert "more than the expected 300,000 bytes" in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [None, 1000])
def test_a_bomb_in_a_compression_for_the_way(tmp_path, size):
    bomb = gzip.compress(bytes(2**26))
    assert len(bomb) < 2**17
    told, _ = fails(tmp_path, encoded(body=bomb), size=size)
    assert "more than the" in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("encoding", [None, "gzip"])
def test_the_body_of_a_redirect_is_not_read(tmp_path, encoding):
    def away(request):
        request.start(302, Location="/y", Content_Encoding=encoding)
        with contextlib.suppress(ConnectionError):
            for _ in range(1000):
                request.wfile.write(bytes(2**16))
                request.server.sent = getattr(request.server, "sent", 0) + 2**16

    server = works(tmp_path, away, good)
    assert getattr(server, "sent", 0) < 2**25


@pytest.mark.parametrize("code", [404, 503])
def test_the_body_of_a_refusal_is_not_read(tmp_path, code):
    def refuse(request):
        request.start(code)
        with contextlib.suppress(ConnectionError):
            for _ in range(1000):
                request.wfile.write(bytes(2**16))
                request.server.sent = getattr(request.server, "sent", 0) + 2**16

    told, server = fails(tmp_path, refuse)
    assert f"HTTP status {code}" in told
    assert getattr(server, "sent", 0) < 3 * 2**23


# --- addresses and headers that are none --------------------------------------------------------------------

BAD_URLS = [
    *("http://[::1", "http://[::1]x/", "http://h:port/x", "http://127.0.0.1:99999/x", "http://127.0.0.1:-1/"),
    *("http:///x", "http://", "http://ü\ud800/x", "http://" + "a" * 70 + ".invalid/x", "http://a..b/x"),
    *("http://.h/x", "http://\x00/x", "http://*/x", "http://h ost/", "http://℀/x", "://x", "hf:/", ""),
]


@pytest.mark.parametrize("url", BAD_URLS)
def test_a_url_that_is_none_is_one_clear_error(tmp_path, url):
    with pytest.raises(SeedbedError) as caught:
        download(url, tmp_path / "x", patience=Patience(attempts=1))
    assert len(str(caught.value).splitlines()) <= 4
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("url", [url for url in BAD_URLS if "\ud800" not in url])
def test_a_redirect_to_a_url_that_is_none_is_one_clear_error(tmp_path, url):
    told, _ = fails(tmp_path, status(302, Location=url.encode().decode("latin-1").replace("\x00", "%00")),
                    patience=Patience(attempts=1))  # fmt: skip
    assert len(told.splitlines()) <= 4


@pytest.mark.parametrize(
    "header",
    [
        b'ETag: "1\r\n X-Forged: 1"',
        b'ETag: "1\x00"',
        b"Last-Modified: Mon, 01 Jan 2024\r\n 00:00:00 GMT\r\nDate: Tue, 02 Jan 2024 00:00:00 GMT",
    ],
)
def test_what_is_sent_back_to_a_server_is_one_line(tmp_path, header):
    def folded(request):
        request.wfile.write(b"HTTP/1.1 200 OK\r\n%s\r\nContent-Length: %d\r\n\r\n" % (header, len(BODY)))
        request.wfile.write(BODY[:150_000])

    server = works(tmp_path, folded, good)
    assert not any("X-Forged" in headers for _, headers in server.requests)


def test_chunks_that_break_off_are_noticed(tmp_path):
    def chunks(request, end=b"0\r\n\r\n"):
        request.start(200, Transfer_Encoding="chunked")
        request.wfile.write(b"%x\r\n%s\r\n" % (len(BODY), BODY) + end)

    assert works(tmp_path, lambda r: chunks(r, b""), chunks).ranges() == [None, None]


# --- room, progress ---------------------------------------------------------------------------------

FULL = """
import sys
from seedbed.sources.http import download
from seedbed.sources.retries import Patience
from seedbed.core.errors import SeedbedError
try:
    download(sys.argv[1], sys.argv[2] + "/x", room=int(sys.argv[3]), patience=Patience(1))
except SeedbedError as error:
    print(error)
"""


@pytest.fixture
def small_disk(tmp_path):
    """Run code with arguments (URL, folder on a disk of 256 kB, room) and return what it prints."""
    inside = ["unshare", "-rm", "--propagation", "private", "sh", "-c"]
    mount = f'mount -t tmpfs -o size=256k tmpfs "{tmp_path}" && '
    if (
        not shutil.which("unshare")
        or subprocess.run([*inside, mount + "true"], capture_output=True).returncode
    ):
        pytest.skip("an ordinary user may not mount a tmpfs here")

    def run(url, room=1):
        command = [
            *inside,
            mount + 'exec "$0" "$@"',
            sys.executable,
            "-c",
            FULL,
            url,
            str(tmp_path),
            str(room),
        ]
        environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts")}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    return run


def test_room_is_asked_for_first(small_disk):
    with serving(good, lambda r: r.send_file(BODY[:200_000])) as server:
        told = small_disk(server.url + "/x")
        assert "there is not enough room on the disk" in told
        assert "315,000 bytes are needed, 2" in told
        assert small_disk(server.url + "/x") == ""
        assert "420,000 bytes are needed" in small_disk(server.url + "/x", room=2)


def test_a_disk_that_fills_up(small_disk):
    with serving(lambda r: r.send(200, BODY, Content_Length=None)) as server:
        told = small_disk(server.url + "/x")
    assert "there is not enough room on the disk" in told
    assert "No space left on device; 0 bytes are free" in told
    assert "make room there" in told


def test_lines_of_progress(tmp_path, caplog, capsys):
    caplog.set_level(logging.INFO)
    works(tmp_path, lambda r: r.send_file(BODY, pause=0.4))
    lines = [record.getMessage() for record in caplog.records]
    assert re.fullmatch(r"x: \d+% of 300\.0 kB, [\d.]+ kB/s, \d+ s left", lines[1]), lines
    assert re.fullmatch(r"x: 300\.0 kB in [\d.]+ s", lines[-1])
    assert capsys.readouterr().err == ""  # no bar where it is no terminal


def test_a_bar_on_a_terminal(tmp_path):
    """With what has arrived, the time left and the rate."""
    screen, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    code = "import sys; from seedbed.sources.http import download; download(*sys.argv[1:])"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts")}
    with serving(lambda r: r.send_file(BODY, pause=0.15)) as server:
        command = [sys.executable, "-c", code, server.url + "/books.zip", tmp_path / "x"]
        subprocess.run(command, env=environment, stderr=terminal, check=True)
    os.set_blocking(screen, False)
    shown = b""
    with contextlib.suppress(BlockingIOError):
        while True:
            shown += os.read(screen, 2**16)
    os.close(terminal)
    os.close(screen)
    assert re.search(r"books\.zip: +\d+%.*/293k \[00:00<00:\d\d, +[\d.]+[kM]?B/s\]", shown.decode()), shown
