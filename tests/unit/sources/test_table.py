"""The table of sources and the lock file: what they hold, and what is refused."""

import errno
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from seedbed.core import locks
from seedbed.core.errors import SeedbedError
from seedbed.sources import source_lock
from seedbed.sources.locations import local_path
from seedbed.sources.table import COLUMNS, read_source_table

ROOT = Path(__file__).parents[3]
HEADER = ",".join(COLUMNS)
SHA = "0123456789abcdef" * 4


def table(folder, *rows, header=HEADER):
    path = folder / "sources.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def refused(path):
    with pytest.raises(SeedbedError) as caught:
        read_source_table(path)
    return str(caught.value)


def test_a_row_is_a_definition_and_an_empty_cell_is_none(tmp_path):
    path = table(
        tmp_path,
        f'full,v1,archive,https://a.b/x.zip data/x.zip,12,{SHA},MIT,*.csv *.md,"text, more"',
        "",
        "bare,,,data/x,,,,,",
    )
    assert read_source_table(path) == {
        "full": {
            "locations": ["https://a.b/x.zip", "data/x.zip"],
            "sha256": SHA,
            "bytes": 12,
            "version": "v1",
            "kind": "archive",
            "include": ["*.csv", "*.md"],
            "licence": "MIT",
            "description": "text, more",
        },
        "bare": {
            "locations": ["data/x"],
            "sha256": None,
            "bytes": None,
            "version": None,
            "kind": "auto",
            "include": None,
            "licence": "",
            "description": "",
        },
    }


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            "x,,zip,a,,,,,",
            "a source's kind is not valid\n  where: {path}, line 3, column kind\n  found: 'zip'",
        ),
        ("x,,,,,,,,", "column urls"),
        ("-x,,,a,,,,,", "column name"),
        ("x,,,a,1e6,,,,", "column bytes\n  found: '1e6'\n  hint:  digits only"),
        (f"x,,,a,,{SHA.upper()},,,", "column sha256"),
        ("x,,,a,,,,", "has 8 cells instead of 9\n  where: {path}, line 3"),
        ("x,,,a,,,,,text, more", "has 10 cells instead of 9"),
        ("a,,,a,,,,,", "is twice in the table\n  where: {path}, line 3\n  found: a"),
        ('x,,,a,,,,,"open', "cannot be read\n  where: {path}"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(tmp_path, row, told):
    path = table(tmp_path, "a,,,a,,,,,", row)
    assert told.format(path=path) in refused(path)


def test_other_columns_other_encodings_and_no_table_are_refused(tmp_path):
    assert "line 1\n  found: name,urls\n" in refused(table(tmp_path, header="name,urls"))
    path = table(tmp_path)
    path.write_bytes(path.read_bytes() + "é".encode("latin-1"))
    assert "cannot be read" in refused(path)
    assert "No such file" in refused(tmp_path / "none.csv")


def test_a_bom_as_spreadsheets_write_it_is_accepted(tmp_path):
    path = table(tmp_path, "x,,,a,,,,,")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert list(read_source_table(path)) == ["x"]


def test_the_table_of_the_repository():
    sources = read_source_table(ROOT / "resources/sources.csv")
    assert {"reviews_fr", "cls_books", "webis_cls", "camembert_base", "camembert_base_hf"} < sources.keys()
    for source in sources.values():
        assert source["licence"]
        assert source["description"]
        local = filter(None, map(local_path, source["locations"]))
        assert all((ROOT / path).is_dir() for path in local)


def test_reading_the_table_imports_nothing_heavy():
    code = "import sys, seedbed.sources.table, seedbed.sources.locations; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "scripts", capture_output=True, text=True, check=True
    )
    assert not {"requests", "huggingface_hub", "tqdm", "pandas", "torch"} & set(done.stdout.split())


# --- the lock file ----------------------------------------------------------------------------------


def entry(sha256=SHA):
    return {"file": "x.zip", "sha256": sha256, "bytes": 12, "location": "https://a.b/x.zip"}


def test_the_first_entry_stands_and_another_version_is_another_entry(tmp_path):
    lock = tmp_path / "new/lock.json"
    assert source_lock.find(lock, "x", None) is None
    assert source_lock.record(lock, "x", None, entry()) == {"version": None, **entry()}
    assert source_lock.record(lock, "x", None, entry("1" * 64))["sha256"] == SHA
    assert source_lock.record(lock, "x", "2", entry("2" * 64))["sha256"] == "2" * 64
    assert source_lock.find(lock, "x", None)["sha256"] == SHA
    assert list(json.loads(lock.read_text())) == ["x", "x@2"]


def test_files_of_a_repository_are_added(tmp_path):
    lock = tmp_path / "lock.json"
    a, b, other = ({"sha256": digit * 64, "bytes": 3} for digit in "abc")
    source_lock.record(
        lock, "x", None, {"commit": "1", "files": {"b": b}, "bytes": 3, "location": "hf://o/n"}
    )
    again = {"commit": "2", "files": {"a": a, "b": other}, "bytes": 6, "location": "hf://o/n"}
    source_lock.record(lock, "x", None, again)
    found = source_lock.find(lock, "x", None)
    assert (found["commit"], found["files"], found["bytes"]) == ("1", {"a": a, "b": b}, 6)


@pytest.mark.parametrize("text", ["<<<<<<< HEAD\n", "[]", '{"x": {"sha256": null}}', '{"x": {"files": {}}}'])
def test_a_broken_lock_file_is_an_error_and_is_not_overwritten(tmp_path, text):
    lock = tmp_path / "lock.json"
    lock.write_text(text)
    with pytest.raises(SeedbedError, match=r"lock file of sources(?s:.*)lock\.json(?s:.*)hint:"):
        source_lock.find(lock, "x", None)
    with pytest.raises(SeedbedError):
        source_lock.record(lock, "x", None, entry())
    assert lock.read_text() == text


def test_many_processes_record_at_once(tmp_path):
    code = (
        "import sys; from seedbed.sources import source_lock\n"
        "for n in range(5):\n"
        "    e = {'file': 'x', 'sha256': sys.argv[2], 'bytes': 1, 'location': 'u'}\n"
        "    source_lock.record(sys.argv[1], f'own-{sys.argv[2]}-{n}', None, e)\n"
        "    print(source_lock.record(sys.argv[1], f'shared-{n}', None, e)['sha256'])\n"
    )
    lock = tmp_path / "lock.json"
    jobs = [
        subprocess.Popen(
            [sys.executable, "-c", code, lock, str(job)],
            cwd=ROOT / "scripts",
            stdout=subprocess.PIPE,
            text=True,
        )
        for job in range(4)
    ]
    told = [job.communicate()[0].split() for job in jobs]
    assert len(json.loads(lock.read_text())) == 4 * 5 + 5
    assert all(seen == told[0] for seen in told)  # all agree on who was first
    assert len(told[0]) == 5


def test_of_many_writers_none_loses_an_entry(tmp_path):
    code = "import sys; from seedbed.sources import source_lock as lock\n"
    code += f"lock.record(sys.argv[1], sys.argv[2], None, {entry()!r})"
    command = [sys.executable, "-c", code, str(tmp_path / "lock.json")]
    writers = [subprocess.Popen([*command, f"x{number}"], cwd=ROOT / "scripts") for number in range(8)]
    assert [writer.wait(timeout=120) for writer in writers] == [0] * 8
    assert list(json.loads((tmp_path / "lock.json").read_text())) == [f"x{number}" for number in range(8)]


def test_a_writer_that_keeps_the_file_locked_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(source_lock, "WAIT", 0.1)
    held = locks.take(tmp_path / ".lock.json.guard")
    with pytest.raises(SeedbedError, match=f"process {os.getpid()} on host"):
        source_lock.record(tmp_path / "lock.json", "x", None, entry())
    held.release()
    assert source_lock.record(tmp_path / "lock.json", "x", None, entry())["sha256"] == SHA


def test_without_locks_the_entry_is_written_all_the_same(tmp_path, monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    source_lock.record(tmp_path / "lock.json", "x", None, entry())
    assert source_lock.find(tmp_path / "lock.json", "x", None)["sha256"] == SHA
