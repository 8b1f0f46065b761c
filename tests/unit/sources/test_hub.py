"""Repositories of the Hugging Face hub, from a fake hub on this machine."""

import contextlib
import gzip
import json
import os
import random
import shutil
import time

import pytest
from builders_web import git_hash, hub, serving
from huggingface_hub import constants

from seedbed.core.errors import SeedbedError
from seedbed.sources import fetch
from seedbed.sources.hub import included, parse
from seedbed.sources.retries import Patience

ONE, TWO = "1" * 40, "2" * 40
WEIGHTS = random.Random(0).randbytes(200_000)
FILES = {"config.json": b"{}", "model.safetensors": WEIGHTS, "onnx/model.onnx": b"onnx", "README.md": b"#"}
COMMITS = {ONE: FILES, TWO: FILES | {"config.json": b'{"new": 1}'}}
FAST = Patience(attempts=3, backoff=0.01, read=5)


@pytest.fixture
def client(monkeypatch):
    """Point the client at a server, which is called with its URL; no token of this machine is sent."""
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return lambda server: monkeypatch.setenv("HF_ENDPOINT", server.url)


def define(location="hf://owner/name", **keys):
    return {"locations": [location], "kind": "hub"} | keys


def fetched(folder):
    files = folder / "files"
    return {p.relative_to(files).as_posix(): p.read_bytes() for p in files.rglob("*") if p.is_file()}


def failing(folder, definition, **arguments):
    with pytest.raises(SeedbedError) as caught:
        fetch.fetch("s", definition, folder, patience=FAST, **arguments)
    return str(caught.value)


def test_a_repository_is_fetched_even_where_the_hub_is_switched_off(tmp_path, client):
    assert constants.HF_HUB_OFFLINE  # as the Makefile and the tests' own setting have it
    with serving(hub({"main": ONE}, COMMITS)) as server:
        client(server)
        manifest = fetch.fetch("s", define(), tmp_path / "s")
    assert constants.HF_HUB_OFFLINE
    assert fetched(tmp_path / "s") == FILES
    assert manifest["commit"] == ONE
    assert manifest["location"] == "hf://owner/name"
    assert manifest["sha256"] is None
    assert manifest["files"].keys() == FILES.keys()
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["files", "manifest.json"]


def test_only_what_is_included_is_downloaded(tmp_path, client):
    with serving(hub({"main": ONE}, COMMITS)) as server:
        client(server)
        fetch.fetch("s", define(include=["*.json", "onnx/*"]), tmp_path / "s")
        assert fetched(tmp_path / "s").keys() == {"config.json", "onnx/model.onnx"}
        assert not any("safetensors" in path for path, _ in server.requests)
        told = failing(tmp_path / "t", define(include=["config.json", "*.bin"]))
    assert "no file matches *.bin; 4 files: README.md, config.json" in told


def test_the_first_commit_is_locked_and_main_may_move_on(tmp_path, client, caplog):
    lock, revisions = tmp_path / "lock.json", {"main": ONE}
    with serving(hub(revisions, COMMITS)) as server:
        client(server)
        manifest = fetch.fetch("s", define(), tmp_path / "s", lock=lock)
        entry = json.loads(lock.read_text())["s"]
        assert entry["commit"] == ONE
        assert entry["files"] == manifest["files"]
        assert entry["bytes"] == sum(map(len, FILES.values()))
        assert f"is trusted and recorded in {lock}: 4 files of commit {ONE}" in caplog.text
        revisions["main"] = TWO
        caplog.clear()
        assert fetch.fetch("s", define(), tmp_path / "s", lock=lock) == manifest
        assert "trusted" not in caplog.text
        # another version is another entry
        fetch.fetch("s", define(version=TWO), tmp_path / "t", lock=lock)
    assert fetched(tmp_path / "t")["config.json"] == b'{"new": 1}'
    assert json.loads(lock.read_text())[f"s@{TWO}"]["commit"] == TWO


def test_what_include_adds_later_is_locked_too(tmp_path, client):
    lock = tmp_path / "lock.json"
    with serving(hub({"main": ONE}, COMMITS)) as server:
        client(server)
        for include in (["*.json"], ["*.md"], ["*.json"]):
            fetch.fetch("s", define(include=include), tmp_path / "s", lock=lock)
    assert json.loads(lock.read_text())["s"]["files"].keys() == {"config.json", "README.md"}


def test_a_commit_that_holds_something_else_than_it_did_is_refused(tmp_path, client):
    lock = tmp_path / "lock.json"
    with serving(hub({"main": ONE}, COMMITS)) as server:
        client(server)
        fetch.fetch("s", define(), tmp_path / "s", lock=lock)
    with serving(hub({"main": ONE}, {ONE: FILES | {"config.json": b"evil"}})) as server:
        client(server)
        told = failing(tmp_path / "s", define(), lock=lock)
    assert "the SHA-256 of config.json is " in told
    assert f"the lock file {lock} expects " in told
    assert fetched(tmp_path / "s") == FILES


def test_a_mirror_is_held_to_the_same_lock(tmp_path, client):
    lock, copy = tmp_path / "lock.json", tmp_path / "mirror/name"
    (copy / "onnx").mkdir(parents=True)
    for name, data in FILES.items():
        (copy / name).write_bytes(data)
    with serving(hub({"main": ONE}, COMMITS)) as server:
        client(server)
        fetch.fetch("s", define(), tmp_path / "s", lock=lock)
        asked = len(server.requests)
        mirror = str(tmp_path / "mirror")
        assert fetch.fetch("s", define(), tmp_path / "s", mirror, lock)["location"] == str(copy)
        assert len(server.requests) == asked
        (copy / "config.json").write_bytes(b"other")
        manifest = fetch.fetch("s", define(), tmp_path / "s", mirror, lock)
    assert manifest["location"] == "hf://owner/name"


def test_a_first_copy_from_a_mirror_holds_the_hub_to_it(tmp_path, client):
    lock, copy = tmp_path / "lock.json", tmp_path / "mirror/name"
    copy.mkdir(parents=True)
    (copy / "config.json").write_bytes(b"other")
    fetch.fetch("s", define(), tmp_path / "s", str(tmp_path / "mirror"), lock)
    with serving(hub({"main": ONE}, COMMITS)) as server:
        client(server)
        assert "the SHA-256 of config.json is" in failing(tmp_path / "s", define(), lock=lock)


def test_a_mirror_may_not_add_files_to_what_is_locked_nor_lack_them(tmp_path, client):
    lock, copy = tmp_path / "lock.json", tmp_path / "mirror/name"
    with serving(hub({"main": ONE}, COMMITS)) as server:
        client(server)
        fetch.fetch("s", define(), tmp_path / "s", None, lock)
    before = lock.read_bytes()
    shutil.copytree(tmp_path / "s/files", copy)
    known = {"mirror": str(tmp_path / "mirror"), "lock": lock}
    fetch.fetch("s", define(), tmp_path / "t", **known)
    (copy / "evil.bin").write_bytes(b"evil")
    assert "it has evil.bin" in failing(tmp_path / "u", define(), mirror=str(tmp_path / "mirror"), lock=lock)
    (copy / "evil.bin").unlink()
    (copy / "config.json").unlink()
    assert "it lacks config.json" in failing(
        tmp_path / "v", define(), mirror=str(tmp_path / "mirror"), lock=lock
    )
    assert lock.read_bytes() == before


@pytest.mark.parametrize(
    "definition",
    [define(version="v1"), define("hf://owner/name@v1"), define("hf://owner/name@v1", version="main")],
)
def test_a_revision(tmp_path, client, definition):
    with serving(hub({"main": ONE, "v1": TWO}, COMMITS)) as server:
        client(server)
        assert fetch.fetch("s", definition, tmp_path / "s")["commit"] == TWO


def test_a_repository_that_asks_for_a_token(tmp_path, client, monkeypatch):
    with serving(hub({"main": ONE}, COMMITS, token="secret")) as server:
        client(server)
        told = failing(tmp_path / "s", define())
        assert "the hub refuses revision 'main' of 'owner/name'" in told
        assert "needs HF_TOKEN" in told
        monkeypatch.setenv("HF_TOKEN", "secret")
        fetch.fetch("s", define(), tmp_path / "s")
    assert fetched(tmp_path / "s") == FILES


@pytest.mark.parametrize(
    "definition",
    [define("hf://owner/none"), define(version="none"), define("hf://a/b/c"), define("hf://a b/c")],
)
def test_what_the_hub_does_not_have(tmp_path, client, definition):
    with serving(hub({"main": ONE}, COMMITS)) as server:
        client(server)
        told = failing(tmp_path / "s", definition)
    assert definition["locations"][0] in told
    assert len(server.requests) <= 1
    assert list((tmp_path / "s").iterdir()) == []


def test_a_hub_that_is_busy_is_asked_again_and_one_that_is_gone_given_up(tmp_path, client):
    def busy(request):
        request.send(503)

    with serving(busy, busy, hub({"main": ONE}, COMMITS)) as server:
        client(server)
        fetch.fetch("s", define(), tmp_path / "s", patience=FAST)
    assert "the hub does not answer: Connect" in failing(tmp_path / "t", define())


def test_a_pause_that_the_hub_asks_for_is_made(tmp_path, client, monkeypatch):
    pauses = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    with serving(lambda r: r.send(429, Retry_After=7), hub({"main": ONE}, COMMITS)) as server:
        client(server)
        fetch.fetch("s", define(), tmp_path / "s", patience=FAST)
    assert 7 in pauses


def test_a_download_that_breaks_off_goes_on(tmp_path, client):
    good = hub({"main": ONE}, COMMITS)

    def cut(request):
        if request.path.endswith(".safetensors"):
            request.send_file(WEIGHTS, etag=f'"{ONE}"', stop=100_000)
        else:
            good(request)

    with serving(cut) as server:
        client(server)
        server.behaviour = lambda r: r.send(503) if len(server.ranges()) > 4 else cut(r)
        assert "received bytes are kept in" in failing(tmp_path / "s", define())
        asked = len(server.requests)
        server.behaviour = good
        fetch.fetch("s", define(), tmp_path / "s", patience=FAST)
    later = [(path.rpartition("/")[2], headers.get("Range")) for path, headers in server.requests[asked:]]
    assert ("model.safetensors", "bytes=100000-") in later
    assert "config.json" not in dict(later)  # it was whole
    assert fetched(tmp_path / "s") == FILES


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_file_that_is_not_what_the_hub_states_is_refused(tmp_path, client, name):
    good = hub({"main": ONE}, COMMITS)
    other = bytes(len(FILES[name]))

    with serving(lambda r: r.send_file(other) if r.path.endswith(name) else good(r)) as server:
        client(server)
        told = failing(tmp_path / "s", define())
    kind = "SHA-256" if name.endswith("tensors") else "git hash"
    assert f"the {kind} of {name} is " in told
    assert "the hub states " in told


def test_a_file_may_not_leave_its_folder(tmp_path, client):
    with serving(hub({"main": ONE}, {ONE: {"../../evil": b"x"}})) as server:
        client(server)
        assert "a file of the repository would leave its folder; ../../evil" in failing(
            tmp_path / "s", define()
        )


# more of them in tests/unit/core/test_paths.py
OUTSIDE = [
    "../evil",
    "/tmp/evil",
    "..\\evil",
    "",
    "\x1b[31m",
    "aux",
    5,
    None,
    "\ud800",
    "model.download.json",
]


def listing(commit, *siblings, **keys):
    """A hub's answer as it stands, for every request of a listing."""
    good = hub({"main": ONE}, COMMITS)
    body = json.dumps({"id": "owner/name", "sha": commit, "siblings": list(siblings)} | keys).encode()

    def answer(request):
        if request.path.startswith("/api/"):
            request.send(200, body, Content_Type="application/json")
        else:
            good(request)

    return answer


def everything_below(folder):
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", OUTSIDE, ids=repr)
def test_names_of_files_that_lead_elsewhere_or_are_none(tmp_path, client, name, caplog):
    inner = tmp_path / "in" / "s"
    file = {"rfilename": name, "size": 1, "blobId": git_hash(b"x")}
    with serving(listing(ONE, file)) as server:
        client(server)
        told = failing(inner, define())
    assert len(server.requests) == 1  # nothing was downloaded
    assert everything_below(tmp_path) == set()
    assert "\x1b" not in told + caplog.text
    assert "Traceback" not in told


@pytest.mark.parametrize(
    "sha",
    [
        *(
            "x/../../../home/me",
            "../" * 9 + "tmp",
            "",
            "1" * 39,
            "1" * 41,
            "1" * 64,
            "1" * 39 + "G",
            ONE + "\n",
        ),
        *("A" * 40, "main", "１" * 40, None, 1, [ONE], {"a": ONE}, True),
    ],
    ids=repr,
)
def test_a_commit_is_40_digits(tmp_path, client, sha):
    inner = tmp_path / "in" / "s"
    file = {"rfilename": ".profile", "size": 1, "blobId": git_hash(b"x")}
    for version in (None, ONE):
        with serving(listing(sha, file)) as server:
            client(server)
            assert "the hub answers with an invalid commit" in failing(inner, define(version=version))
        assert len(server.requests) == 1
    assert everything_below(tmp_path) == set()


@pytest.mark.parametrize(
    "definition",
    [
        *(
            define(version=ONE),
            define(f"hf://owner/name@{ONE}"),
            define(version=ONE.replace("1", "a").upper()),
        ),
        define(f"hf://owner/name@{ONE}", version="main"),
    ],
)
def test_a_commit_that_is_asked_for_is_the_one_that_comes(tmp_path, client, definition):
    with serving(listing(TWO)) as server:
        client(server)
        assert "the hub answers with another commit than" in failing(tmp_path / "s", definition)


def test_a_locked_commit_is_the_one_that_comes(tmp_path, client):
    lock = tmp_path / "lock.json"
    with serving(hub({"main": ONE}, COMMITS)) as server:
        client(server)
        fetch.fetch("s", define(), tmp_path / "s", lock=lock)
    with serving(hub({ONE: TWO}, COMMITS)) as server:
        client(server)
        told = failing(tmp_path / "s", define(), lock=lock)
    assert f"the hub answers with another commit than the requested {ONE}" in told
    assert fetched(tmp_path / "s") == FILES


@pytest.mark.parametrize(
    "keys",
    [
        *({"size": -1}, {"size": "1"}, {"size": 1.5}, {"size": True}, {"blobId": None}, {"blobId": "x"}),
        {"lfs": {"sha256": "0" * 63, "size": 1, "pointerSize": 1}},
        {"lfs": {"sha256": "0" * 64, "size": -1, "pointerSize": 1}},
        {"lfs": {"sha256": ["0"], "size": 1, "pointerSize": 1}},
    ],
)
def test_sizes_and_hashes_that_are_none(tmp_path, client, keys):
    with serving(listing(ONE, {"rfilename": "a", "size": 1, "blobId": git_hash(b"x")} | keys)) as server:
        client(server)
        assert "the hub lists an invalid file; a; its " in failing(tmp_path / "s", define())


@pytest.mark.parametrize("other", ["File", "file ", "file.", "file"])
def test_names_that_some_file_systems_cannot_tell_apart(tmp_path, client, other):
    files = ({"rfilename": name, "size": 1, "blobId": git_hash(b"x")} for name in ("file", other))
    with serving(listing(ONE, *files)) as server:
        client(server)
        assert "it is the same file as file" in failing(tmp_path / "s", define())


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"null", b"[]", b"1", b"<html>", b"\xff", b"{}", b"[" * 100_000, b'{"a":' * 100_000),
        *(b'{"id": "owner/name", "sha": 1, "siblings": 5}', b'{"id": 1, "siblings": [{}]}', b"1" * 5000),
    ],
)
def test_an_answer_that_is_no_listing(tmp_path, client, body):
    with serving(lambda r: r.send(200, body, Content_Type="application/json")) as server:
        client(server)
        told = failing(tmp_path / "s", define())
    assert "hf://owner/name: the hub" in told
    assert len(told) < 1500


@pytest.mark.parametrize("encoding", [None, "gzip"])
def test_an_answer_without_end_is_not_read_to_its_end(tmp_path, client, monkeypatch, encoding):
    monkeypatch.setattr("seedbed.sources.hub.MOST_LISTED", 2**20)
    block = gzip.compress(bytes(2**24)) if encoding else bytes(2**16)

    def endless(request):
        request.start(200, Content_Encoding=encoding)
        with contextlib.suppress(ConnectionError):
            for _ in range(1000):
                request.wfile.write(block)
                request.server.sent = getattr(request.server, "sent", 0) + len(block)

    with serving(endless) as server:
        client(server)
        assert "the hub's answer is too long for a list of files" in failing(tmp_path / "s", define())
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "endpoint", ["http://[::1", "http://127.0.0.1:99999", "http://h\x00", "nonsense", "ftp://h"]
)
def test_a_hub_whose_address_is_none_is_an_error_and_the_next_location_is_tried(
    tmp_path, endpoint, monkeypatch
):
    monkeypatch.setattr("os.environ", dict(os.environ, HF_ENDPOINT=endpoint))
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "a").write_bytes(b"x")
    assert len(failing(tmp_path / "s", define()).splitlines()) == 5
    definition = {"locations": ["hf://owner/name", str(tmp_path / "copy")]}
    assert fetch.fetch("s", definition, tmp_path / "s", patience=FAST)["location"] == str(tmp_path / "copy")


def test_a_server_that_sends_more_of_a_file_than_the_hub_states_is_stopped(tmp_path, client):
    good = hub({"main": ONE}, COMMITS)

    def more(request):
        if request.path.startswith("/api/"):
            good(request)
        else:
            request.start(200)
            with contextlib.suppress(ConnectionError):
                for _ in range(1000):
                    request.wfile.write(bytes(2**16))
                    request.server.sent = getattr(request.server, "sent", 0) + 2**16

    with serving(more) as server:
        client(server)
        assert "it has more than the expected " in failing(tmp_path / "s", define())
        assert server.sent < 2**25
    assert list((tmp_path / "s").iterdir()) == []


def test_a_repository_has_no_single_hash(tmp_path):
    told = failing(tmp_path / "s", define(sha256="0" * 64))
    assert "this is a repository of the hub, but the sha256 in the config" in told


def test_locations():
    assert parse("hf://owner/name").id == "owner/name"
    assert parse("hf://datasets/owner/name@v1").kind == "dataset"
    assert parse("hf://datasets/owner/name@v1").revision == "v1"
    assert parse("hf://datasets/owner/name@refs/pr/1/").revision == "refs/pr/1"
    with pytest.raises(SeedbedError, match="given as hf://OWNER/NAME"):
        parse("hf://")


@pytest.mark.parametrize("location", ["hf://datasets/o/n@refs/pr/1", "hf://o/n@refs%2Fpr%2F1/", "hf://n@a/b"])
def test_a_mirror_stands_for_a_revision_with_slashes_while_the_hub_is_gone(tmp_path, monkeypatch, location):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nothing answers there
    (tmp_path / "mirror/n").mkdir(parents=True)
    (tmp_path / "mirror/n/train.csv").write_text("text,label\n")
    manifest = fetch.fetch("s", define(location), tmp_path / "s", str(tmp_path / "mirror"))
    assert manifest["location"] == str(tmp_path / "mirror/n")
    assert list(manifest["files"]) == ["train.csv"]


def test_included():
    assert included(["a", "b/a.csv"], None) == {"a", "b/a.csv"}
    assert included(["a", "b/a.csv"], ["*.csv"]) == {"b/a.csv"}


def test_git_hash_is_gits_own():
    assert git_hash(b"test content\n") == "d670460b4b4aece5915caf5c68d12f560a9fe3e4"  # from git's own manual
