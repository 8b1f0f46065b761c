"""The process for what comes from outside: no network, no secrets, and errors that come back whole."""

import logging
import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from builders import make_fairseq_checkpoint, make_manifest

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json
from seedbed.models import isolation
from seedbed.models.intake import convert_checkpoint

DEFINITION = {
    "source": "lab",
    "checkpoint": "model.pt",
    "dictionary": "dict.txt",
    "sentencepiece": "sentencepiece.bpe.model",
}
PROBE = """
import logging, os, socket, sys
from pathlib import Path
from seedbed.models import isolation
from seedbed.core.errors import SeedbedError

def work(request):
    print("this is no answer")
    logging.getLogger("probe").warning("told by the process")
    if "code" in request:
        known = {}
        exec(request["code"], known)
        return known["found"]
    if request.get("fail"):
        raise SeedbedError("a fault", where="a file, line 1", found=["x"], hint="mend it")
    if request.get("break"):
        os._exit(7)
    try:
        socket.create_connection(("127.0.0.1", request["port"]), timeout=5).close()
        network = True
    except OSError:
        network = False
    parent = Path(f"/proc/{request['parent']}/environ")
    try:
        seen = b"SEEDBED_SECRET" in parent.read_bytes()
    except OSError:
        seen = False
    return {"network": network, "environment": dict(os.environ), "seen": seen}

if __name__ == "__main__":
    isolation.answer(work)
"""
isolated = pytest.mark.skipif(
    not isolation.find_unshare()[0], reason=f"no unshare for an ordinary user: {isolation.find_unshare()[1]}"
)


@pytest.fixture
def probe(tmp_path, monkeypatch):
    """A module that tells what it can reach, started as `conversion` is."""
    library = tmp_path / "library"
    library.mkdir()
    (library / "seedbed").symlink_to(isolation.LIBRARY / "seedbed")
    (library / "probe.py").write_text(PROBE, encoding="utf-8")
    monkeypatch.setattr(isolation, "LIBRARY", library)
    monkeypatch.setenv("SEEDBED_SECRET", "secret")
    monkeypatch.setenv("HF_TOKEN", "secret")
    return lambda **request: isolation.run("probe", request)


@pytest.fixture
def port():
    """A server on this machine that anyone with a network can reach."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", number)):  # it does answer
            yield number


@isolated
def test_the_process_has_no_network(probe, port, caplog):
    with caplog.at_level(logging.INFO):
        found = probe(port=port, parent=os.getpid())
    assert found["network"] is False
    assert "in a process without a network (" in caplog.text
    assert "--net" in caplog.text


def test_without_unshare_the_log_says_that_the_network_stands(probe, port, caplog, monkeypatch):
    monkeypatch.setattr(isolation, "find_unshare", lambda: ((), "there is no program unshare"))
    with caplog.at_level(logging.WARNING):
        found = probe(port=port, parent=os.getpid())
    assert found["network"] is True  # so the test above can fail
    assert "in a process with a network" in caplog.text
    assert "there is no program unshare" in caplog.text


def test_a_system_without_unshare_is_noticed(monkeypatch, tmp_path):
    isolation.find_unshare.cache_clear()
    try:
        monkeypatch.setenv("PATH", str(tmp_path))
        assert isolation.find_unshare() == ((), "there is no program unshare")
        isolation.find_unshare.cache_clear()
        (tmp_path / "unshare").write_text("#!/bin/sh\necho 'unshare failed: not permitted' >&2\nexit 1\n")
        (tmp_path / "unshare").chmod(0o755)
        assert isolation.find_unshare() == ((), "unshare failed: not permitted")
    finally:
        isolation.find_unshare.cache_clear()


def test_secrets_stay_out(probe, port):
    found = probe(port=port, parent=os.getpid())
    assert "secret" not in found["environment"].values()
    assert found["environment"]["PATH"] == os.environ["PATH"]
    if "--pid" in isolation.find_unshare()[0]:
        assert found["seen"] is False  # nor in /proc


def test_errors_and_log_come_back(probe, port, caplog):
    with caplog.at_level(logging.INFO), pytest.raises(SeedbedError) as error:
        probe(fail=True)
    found = error.value.what, error.value.where, error.value.found, error.value.hint
    assert found == ("a fault", "a file, line 1", "['x']", "mend it")
    levels = {record.getMessage(): record.levelname for record in caplog.records}
    assert levels["told by the process"] == "WARNING"
    assert levels["this is no answer"] == "INFO"


def test_a_process_that_breaks_off(probe):
    with pytest.raises(SeedbedError) as error:
        probe(**{"break": True})
    assert error.value.what == "the process that reads files from outside died"
    assert error.value.where == "-m probe"
    assert "exit code 7" in error.value.found


DAMAGE = {
    "recursion": "def deep(): deep()\ndeep()",
    "a missing key": "{}['x\\n\\x1b[31m']",
    "memory": "raise MemoryError",
    "an answer that is no JSON": "a = []; a.append(a); found = a",
    "a panic": "class PanicException(BaseException): pass\nraise PanicException('at line 1\\nof it')",
    "a forged answer": "import json\nprint(json.dumps({'answer': 1}))\nraise ValueError('x')",
    "a name too long": "open('x' * 300)",
}


@pytest.mark.parametrize("code", DAMAGE.values(), ids=DAMAGE)
def test_any_error_of_the_process_is_one_clear_error(probe, caplog, code):
    with caplog.at_level(logging.INFO), pytest.raises(SeedbedError) as error:
        probe(code=code, files={"checkpoint": "/models/model.pt"})
    told = str(error.value)
    assert 3 <= len(told.splitlines()) <= 4
    assert told.replace("\n", "").isprintable()
    assert error.value.hint
    assert "Traceback" not in told + caplog.text


def test_what_a_process_prints_is_relayed_in_lines_that_nothing_forges_and_not_without_end(probe, caplog):
    with caplog.at_level(logging.INFO):
        probe(code="print('a\\u2028ERROR forged\\x1b[31m'); [print(n) for n in range(5000)]\nfound = 1")
    told = [record.getMessage() for record in caplog.records]
    assert r"a\u2028ERROR forged\x1b[31m" in told
    assert any("lines left out" in line for line in told)
    assert len(told) < 500
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


# --- the fork ---


def fork(work, folder: Path, size: int = 1000):
    isolation.run_forked(work, folder / "error.json", size)


def test_only_files_come_back_from_a_fork(tmp_path):
    kept = []
    fork(lambda: (kept.append(1), (tmp_path / "made").write_text("x")), tmp_path)
    assert kept == []
    assert (tmp_path / "made").read_text() == "x"


def test_an_error_comes_back_from_a_fork(tmp_path):
    def work():
        raise SeedbedError("a fault", where="here", found=3, hint="mend it")

    with pytest.raises(SeedbedError) as error:
        fork(work, tmp_path)
    assert (error.value.what, error.value.where, error.value.found) == ("a fault", "here", 3)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited on Linux only")
def test_memory_and_files_of_a_fork_are_limited(tmp_path):
    def hoard():
        bytearray(8 * isolation.GIB)

    def write():
        with open(tmp_path / "large", "wb") as stream:
            stream.truncate(isolation.GIB)

    for work in (hoard, write):
        with pytest.raises(SeedbedError, match="died"):
            fork(work, tmp_path)


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (lambda: [][1], "IndexError: list index out of range"),
        (lambda: os.kill(os.getpid(), 9), "exit code -9"),
        (lambda: os._exit(3), "exit code 3"),
        (lambda: sys.exit(0), "SystemExit"),
    ],
)
def test_any_error_of_a_fork_is_one_clear_error(tmp_path, work, told, capfd):
    with pytest.raises(SeedbedError) as error:
        fork(work, tmp_path)
    assert told in error.value.found
    assert "Traceback" not in capfd.readouterr().err


def test_the_time_of_a_fork_is_limited(tmp_path):
    def spin():
        while True:
            pass

    with pytest.raises(SeedbedError, match="died") as error:
        isolation.run_forked(spin, tmp_path / "error.json", 1000, seconds=1)
    assert error.value.found == "it takes too much time"


def test_a_fork_that_is_killed(tmp_path):
    with pytest.raises(SeedbedError) as error:
        fork(lambda: os.kill(os.getpid(), 9), tmp_path)
    assert error.value.found == "exit code -9"


# --- the whole way of a checkpoint ---


def test_a_checkpoint_is_converted_without_loading_pytorch_here(tmp_path):
    """The demo's rule: only the isolated process imports torch, once."""
    source = make_fairseq_checkpoint(tmp_path / "archive")
    manifest = make_manifest(source, tmp_path / "source")
    code = (
        "import sys; from seedbed.models.intake import convert_checkpoint; "
        f"convert_checkpoint({str(manifest)!r}, {DEFINITION!r}, {str(tmp_path / 'model')!r}); "
        "sys.exit('torch' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(isolation.LIBRARY)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    made = {path.relative_to(tmp_path / "model").as_posix() for path in (tmp_path / "model").rglob("*.*")}
    expected = {"fairseq/model.pt", "fairseq/dict.txt", "subwords/sentencepiece.model", "model.json"}
    expected |= {f"huggingface/{name}" for name in ("config.json", "model.safetensors", "tokenizer.json")}
    assert made == expected | {"huggingface/tokenizer_config.json"}
    assert read_json(tmp_path / "model" / "model.json")["layers"] == 2


class Command:
    """What a pickle runs where it is loaded without care."""

    def __init__(self, line: str):
        self.line = line

    def __reduce__(self):
        return os.system, (self.line,)


@pytest.mark.parametrize("written", ["torch", "legacy", "pickle"])
def test_a_harmful_checkpoint_is_refused_and_nothing_of_it_runs(tmp_path, written):
    source, marker = make_fairseq_checkpoint(tmp_path / "archive"), tmp_path / "marker"
    content = {"model": {}, "args": Command(f"touch {marker}")}
    if written == "pickle":
        (source / "model.pt").write_bytes(pickle.dumps(content))
    else:
        torch.save(content, source / "model.pt", _use_new_zipfile_serialization=written == "torch")
    manifest = make_manifest(source, tmp_path / "source")
    with pytest.raises(SeedbedError) as error:
        convert_checkpoint(manifest, DEFINITION, tmp_path / "model")
    assert "it was refused" in error.value.what
    assert "source/files/model.pt" in error.value.where
    assert "nothing was run" in error.value.hint
    assert not marker.exists()
    assert not list((tmp_path / "model").iterdir())
    pickle.loads(pickle.dumps(Command(f"touch {marker}")))
    assert marker.exists()


def test_a_file_that_changed_after_it_was_fetched(tmp_path):
    source = make_fairseq_checkpoint(tmp_path / "archive")
    manifest = make_manifest(source, tmp_path / "source")
    for name in ("model.pt", "dict.txt", "sentencepiece.bpe.model"):
        path = tmp_path / "source" / "files" / name
        whole = path.read_bytes()
        path.write_bytes(whole + b"\n")
        with pytest.raises(SeedbedError, match="this file has changed since it was fetched") as error:
            convert_checkpoint(manifest, DEFINITION, tmp_path / "model")
        assert error.value.where.endswith(name)
        path.write_bytes(whole)
