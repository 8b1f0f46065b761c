"""What a pickle from outside may hold, and what it may not: nothing that it names ever runs."""

import argparse
import builtins
import collections
import contextlib
import fractions
import functools
import hashlib
import io
import os
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy
import pytest
import torch

from seedbed.core.errors import SeedbedError
from seedbed.models import unpickling


class Calls:
    """Pickles to a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def saved(content, zipped: bool = True) -> bytes:
    stream = io.BytesIO()
    torch.save(content, stream, _use_new_zipfile_serialization=zipped)
    return stream.getvalue()


def refused(data: bytes) -> SeedbedError:
    with pytest.raises(SeedbedError) as error:
        unpickling.load_pickle(data, "model.pt")
    assert error.value.where == "model.pt"
    assert error.value.hint
    return error.value


def harmful(marker: Path) -> dict[str, tuple[object, str]]:
    """Objects whose pickle makes the file `marker` where it is loaded without care, and the name refused."""
    shell = f"touch {marker}"
    python = f"open({str(marker)!r}, 'w').close()"
    return {
        "os.system": (Calls(os.system, shell), "posix.system"),
        "builtins.exec": (Calls(builtins.exec, python), "exec"),
        "builtins.eval": (Calls(builtins.eval, python), "eval"),
        "getattr": (Calls(builtins.getattr, Calls(builtins.__import__, "os"), "system"), "getattr"),
        "torch.load": (Calls(torch.load, str(marker)), "torch.serialization.load"),
        "torch.hub": (Calls(torch.hub.load, "a/b", "c"), "torch.hub.load"),
        "torch.jit": (Calls(torch.jit.load, str(marker)), "torch.jit._serialization.load"),
        "io.open": (Calls(open, str(marker), "w"), "io.open"),
        "numpy": (numpy.float64(1.0), "numpy._core.multiarray.scalar"),
        "numpy array": (numpy.zeros(3), "numpy._core.multiarray._reconstruct"),
        "partial": (functools.partial(os.system, shell), "functools.partial"),
        "counter of commands": (collections.ChainMap({"a": Calls(os.system, shell)}), "collections.ChainMap"),
    }


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("kind", sorted(harmful(Path("marker"))))
def test_names_that_no_weights_need_are_refused_by_name(tmp_path, kind, zipped):
    marker = tmp_path / "marker"
    content, name = harmful(marker)[kind]
    error = refused(saved({"model": {"a": torch.zeros(2)}, "args": content}, zipped))
    assert error.found == name
    assert name in error.what
    assert not marker.exists()


@pytest.mark.parametrize("protocol", range(6))
def test_plain_pickles_are_refused(tmp_path, protocol):
    marker = tmp_path / "marker"
    data = pickle.dumps({"model": Calls(os.system, f"touch {marker}")}, protocol=protocol)
    assert "refused" in refused(data).what or "cannot be read" in refused(data).what
    assert not marker.exists()
    pickle.loads(data)  # without care it does run
    assert marker.exists()


def craft(*operations: bytes) -> bytes:
    """A zip of torch.save whose pickle consists of these operations."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + b"".join(operations) + b".")
        archive.writestr("archive/version", "3\n")
    return stream.getvalue()


def name(module: str, attribute: str) -> bytes:
    return f"c{module}\n{attribute}\n".encode()


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


@pytest.mark.parametrize(
    "operations",
    [
        # type v2 calls the function that it is given
        [name("torch._tensor", "_rebuild_from_type_v2"), b"(", name("posix", "system"), b"tR"],
        # a class that is allowed, asked for what is not
        [name("argparse", "Namespace.__class__"), b")R"],
        [name("argparse", "FileType"), b"(", text("w"), b"tR"],
        [name("omegaconf.omegaconf", "OmegaConf.load"), b"(", text("/etc/passwd"), b"tR"],
        [name("typing", "get_type_hints"), b")R"],
        # a number that is called
        [b"K\x01)R"],
    ],
    ids=["rebuild", "metaclass", "FileType", "OmegaConf", "typing", "number"],
)
def test_crafted_pickles_are_refused(operations):
    error = refused(craft(*operations))
    assert "refused" in error.what


def test_persistent_ids_other_than_storages_are_refused():
    assert "refused" in refused(craft(b"(", text("module"), text("os"), b"tQ")).what
    assert "refused" in refused(craft(text("os.system"), b"Q")).what


@pytest.mark.parametrize("builtin", ["dict", "list", "int", "float", "str", "bool"])
def test_names_that_settings_need_do_nothing(builtin):
    """`str`, `dict` and omegaconf's classes may be named and called; a record answers."""
    found = unpickling.load_pickle(craft(name("__builtin__", builtin), b"(", text("x"), b"tR"), "model.pt")
    assert type(found) is unpickling.Record
    assert unpickling.plain(found) == {}


def test_omegaconf_resolves_nothing(monkeypatch):
    """omegaconf itself would put the value of the environment's variable there."""
    from omegaconf import OmegaConf

    monkeypatch.setenv("SEEDBED_SECRET", "secret")
    config = OmegaConf.create(
        {"model": {"a": "${env:SEEDBED_SECRET}", "b": [1, None, {"c": 2.5}], "d": True}}
    )
    found = unpickling.load_pickle(saved({"cfg": config, "model": {}}), "model.pt")
    assert "secret" in str(OmegaConf.to_container(config, resolve=True))
    expected = {"model": {"a": "${env:SEEDBED_SECRET}", "b": [1, None, {"c": 2.5}], "d": True}}
    assert unpickling.plain(found["cfg"]) == expected


def test_settings_become_plain_data():
    network = argparse.Namespace(
        layers=2, betas=(0.9, 0.98), inner=argparse.Namespace(a="b"), t=torch.ones(1)
    )
    found = unpickling.load_pickle(saved({"args": network}), "model.pt")
    assert not isinstance(found["args"], argparse.Namespace)
    expected = {"layers": 2, "betas": [0.9, 0.98], "inner": {"a": "b"}, "t": None}
    assert unpickling.plain(found["args"]) == expected


def test_names_that_other_code_allowed_are_not_allowed_here():
    with torch.serialization.safe_globals([argparse.Namespace, fractions.Fraction]):
        found = unpickling.load_pickle(saved({"args": argparse.Namespace(a=1)}), "model.pt")
        assert type(found["args"]) is unpickling.Record
        assert refused(saved({"args": fractions.Fraction(1, 2)})).found == "fractions.Fraction"
        assert set(torch.serialization.get_safe_globals()) >= {argparse.Namespace, fractions.Fraction}


# --- files that are not what they say ---


def test_two_pickles_in_one_archive(tmp_path):
    data = saved({"model": {"a": torch.zeros(2)}})
    for second in ("archive/other.pkl", "other/data.pkl", "archive/data.pkl"):
        stream = io.BytesIO(data)
        with zipfile.ZipFile(stream, "a") as archive:
            archive.writestr(second, pickle.dumps(Calls(os.system, f"touch {tmp_path / 'marker'}")))
        error = refused(stream.getvalue())
        assert "more than one pickle" in error.what
        assert second in error.found
    assert not (tmp_path / "marker").exists()


def test_a_tar_is_not_unpacked(tmp_path):
    """PyTorch before 0.1.10 wrote tar files, which its reader unpacks to a folder."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for inner in ("storages", "tensors", "pickle", "../escaped"):
            content = pickle.dumps(Calls(os.system, f"touch {tmp_path / 'marker'}"), protocol=2)
            entry = tarfile.TarInfo(inner)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    assert refused(stream.getvalue()).what
    assert not (tmp_path / "marker").exists()


def test_torchscript_is_no_checkpoint(tmp_path):
    torch.jit.script(torch.nn.Linear(2, 2)).save(tmp_path / "model.pt")
    assert refused((tmp_path / "model.pt").read_bytes()).what


# --- extraction ---


def extract(tmp_path: Path, content, **options):
    path = tmp_path / "model.pt"
    path.write_bytes(saved(content, **options))
    unpickling.extract(path, hashlib.sha256(path.read_bytes()).hexdigest(), tmp_path)
    return unpickling.read_extracted(tmp_path)


def test_weights_keep_their_types_and_their_ties(tmp_path):
    tied = torch.arange(6.0).reshape(2, 3)
    weights = {"a": tied, "b": tied, "c": tied.T, "d": torch.ones(2).bfloat16(), "e": torch.ones(2).half()}
    found, content = extract(tmp_path, {"model": weights, "args": argparse.Namespace(x=1)})
    assert content == {"layout": "fairseq", "aliases": {"b": "a"}, "args": {"x": 1}, "cfg": None}
    assert all(torch.equal(found[key], weights[key]) for key in weights)
    assert all(found[key].dtype is weights[key].dtype for key in weights)
    assert found["b"] is found["a"]


def test_a_dictionary_of_weights_is_a_layout_of_its_own(tmp_path):
    found, content = extract(tmp_path, {"a": torch.ones(2), "b": torch.nn.Parameter(torch.ones(1))})
    assert content == {"layout": "weights", "aliases": {}}
    assert sorted(found) == ["a", "b"]


@pytest.mark.parametrize(
    ("weight", "found"),
    [
        ("text", "str"),
        (torch.eye(2).to_sparse(), "sparse_coo"),
        (torch.zeros(2, device="meta"), "meta"),
        (torch.zeros(1).expand(10**6, 10**6), "(1000000, 1000000)"),
        (torch.zeros(2, dtype=torch.complex64), "complex64"),
        (torch.quantize_per_tensor(torch.zeros(2), 0.1, 0, torch.qint8), "qint8"),
    ],
    ids=["text", "sparse", "meta", "stretched", "complex", "quantised"],
)
def test_weights_that_are_no_plain_tensors(tmp_path, weight, found):
    with pytest.raises(SeedbedError) as error:
        extract(tmp_path, {"model": {"good": torch.ones(1), "bad": weight}})
    assert error.value.what == "a weight of the checkpoint is not a tensor of numbers"
    assert error.value.where.endswith("model.pt, bad")
    assert found in error.value.found


def test_the_bytes_that_are_read_have_the_hash_of_the_manifest(tmp_path):
    (tmp_path / "model.pt").write_bytes(saved({"model": {"a": torch.zeros(1)}}))
    with pytest.raises(SeedbedError, match="has changed since it was fetched") as error:
        unpickling.extract(tmp_path / "model.pt", "0" * 64, tmp_path)
    assert "0" * 64 in error.value.found
    assert not (tmp_path / unpickling.WEIGHTS).exists()


def test_an_old_pytorch_is_not_trusted(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.9.1+cpu")
    with pytest.raises(SeedbedError, match="too old to read an untrusted pickle safely"):
        unpickling.load_pickle(saved({}), "model.pt")


# --- damage -----------------------------------------------------------------------------------------------


WEIGHT = {"model": {"w": torch.arange(1000.0)}}


def members(data):
    """The (name, first byte, size) of each file of a zip."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            with archive.open(info) as opened:
                yield info.filename, opened._orig_compress_start, info.file_size


def test_a_changed_byte_in_any_file_of_a_checkpoint_is_noticed():
    data = saved(WEIGHT)
    for name, start, size in members(data):
        assert size > 0
        changed = bytearray(data)
        changed[start + size // 2] ^= 1
        with pytest.raises(SeedbedError) as error:
            unpickling.load_pickle(bytes(changed), "model.pt")
        assert "checksum" in error.value.what
        assert error.value.found == f"first in {name}"


def test_a_zip_without_its_directory_is_one_clear_error():
    data = saved(WEIGHT)[:-30]
    error = refused(data)
    assert error.found.startswith(f"{len(data)} bytes")


@pytest.mark.parametrize("end", [b"x", b"PK\x05\x06" + bytes(40)])
def test_a_zip_that_only_pytorch_takes_for_one_is_not_read(end):
    data = saved(WEIGHT)
    for changed in (data + end, data[:-30], data[:-22] + bytes(22)):
        with contextlib.suppress(SeedbedError):
            # bytes behind a zip are its comment, for some readers: then it has to be whole all the same
            assert torch.equal(
                unpickling.load_pickle(changed, "model.pt")["model"]["w"], torch.arange(1000.0)
            )


def test_the_old_layout_is_read_to_its_end_and_the_log_says_what_it_lacks(caplog):
    data = saved(WEIGHT, zipped=False)
    assert torch.equal(unpickling.load_pickle(data, "model.pt")["model"]["w"], torch.arange(1000.0))
    assert "without checksums" in caplog.text
    for changed in (data + b"x", data[:-1], data[: len(data) // 2]):
        with pytest.raises(SeedbedError):
            unpickling.load_pickle(changed, "model.pt")


def test_settings_that_hold_themselves_are_one_clear_error(tmp_path):
    ring: list = []
    ring.append(ring)
    mapping: dict = {}
    mapping["self"] = [mapping]
    deep: list = []
    for _ in range(400):
        deep = [deep]
    space = argparse.Namespace()
    space.self = space
    for value in (ring, mapping, deep, space):
        path = tmp_path / "model.pt"
        path.write_bytes(saved({"model": {"w": torch.zeros(1)}, "args": value}))
        with pytest.raises(SeedbedError, match="nested too deeply, or contain themselves"):
            unpickling.extract(path, hashlib.sha256(path.read_bytes()).hexdigest(), tmp_path)
