"""Faults of tables: each is one error with its place, what was found, and a remedy."""

import gzip
import re

import pandas as pd
import pytest

from seedbed.core import memory
from seedbed.core.errors import SeedbedError
from seedbed.outside.read import read_results

HEADER = "system,seed,example,label,prediction"
GOOD = ["a,0,x,1,1", "a,0,y,0,1", "b,0,x,1,0", "b,0,y,0,0"]
SCORED = "system,example,score"


def table(*rows: str, header: str = HEADER) -> str:
    return "\n".join((header, *rows)) + "\n"


def fault(path, content: str | bytes, **options) -> SeedbedError:
    """The error of a file with this content."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SeedbedError) as caught:
        read_results(path, **options)
    assert caught.value.where
    assert caught.value.hint
    return caught.value


def test_the_table_without_a_fault_is_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(table(*GOOD), encoding="utf-8")
    (results,) = read_results(path)
    assert results.systems == ("a", "b")
    assert any("one seed" in note for note in results.notes)


@pytest.mark.parametrize(
    ("rows", "what", "where", "found"),
    [
        (GOOD[:2], "one system", "t.csv", "a"),
        ([*GOOD, GOOD[1]], "twice", "row 3, and .*row 6", "example y of a, seed 0"),
        (GOOD[:3], "same examples", "b, seed 0", "lacks 1 of 2 examples: y"),
        ([*GOOD[:3], "b,0,y,,0"], "column for label is empty", "row 5", ""),
        ([*GOOD[:3], "b,one,y,0,0"], "not an integer", "row 5", "'one'"),
        ([*GOOD[:3], "b,0.5,y,0,0"], "not an integer", "row 5", "'0.5'"),
        ([*GOOD[:3], "b,0,y,0,0.0"], "two kinds", "row 2, and .*row 5", "whole number.*decimal number"),
        ([*GOOD[:3], "b,0,y,0,negative"], "two kinds", "row 2, and .*row 5", "'negative' .word"),
        ([*GOOD[:3], "b,0,y,1,0"], "label of an example differs", "row 3, and .*row 5", "0 and 1"),
        ([*GOOD[:3], "b,0,y,0"], "cannot be read", "row 5", "Expected 5 columns, got 4"),
        (["a,0,x,Yes,Yes", "b,0,x,Yes,yes"], "capital letters", "row 2, and .*row 3", "'Yes' .*'yes'"),
        (["a,0,x,1.5,1.5", "b,0,x,1.5,2.5"], "measurements", "row 2", "1.5"),
        ([], "cannot be read as a table", "t.csv", "no row"),
    ],
)
def test_faults_of_rows(tmp_path, rows, what, where, found):
    error = fault(tmp_path / "t.csv", table(*rows))
    assert what in error.what
    assert re.search(where, error.where)
    assert re.search(found, error.found or "")


def test_many_missing_examples_are_counted(tmp_path):
    rows = [f"a,{example},1" for example in range(900)] + [f"b,{example},1" for example in range(100)]
    error = fault(tmp_path / "t.csv", table(*rows, header=SCORED))
    assert error.found == "it lacks 800 of 900 examples: 100, 101, 102; and 797 more"


def test_runs_with_no_example_in_common_are_refused_without_their_table(tmp_path):
    rows = [f"s{system},{system}_{example},1" for system in range(50) for example in range(20)]
    assert "lacks 980 of 1,000" in fault(tmp_path / "t.csv", table(*rows, header=SCORED)).found


@pytest.mark.parametrize(
    ("cell", "found"),
    [("nan", "nan"), ("inf", "inf"), ("", "nan"), ("-inf", "-inf"), ("x", "invalid value 'x'")],
)
def test_a_score_is_a_finite_number(tmp_path, cell, found):
    assert found in fault(tmp_path / "t.csv", table("a,0,1", f"b,0,{cell}", header=SCORED)).found


@pytest.mark.parametrize(("name", "bounds"), [("acc", None), ("chrf", (0, 1))])
def test_a_score_is_within_its_bounds(tmp_path, name, bounds):
    rows = table("a,0,1", "b,0,1.5", header=f"system,example,{name}")
    error = fault(tmp_path / "t.csv", rows, metric=name, bounds=bounds)
    assert error.where.endswith("row 3")
    assert error.found == "1.5"


def test_a_cluster_is_of_its_example(tmp_path):
    rows = table("a,0,1,x", "b,0,1,y", header="system,example,score,cluster")
    assert "cluster of an example differs" in fault(tmp_path / "t.csv", rows).what


@pytest.mark.parametrize(
    ("header", "options", "what", "hint"),
    [
        ("system,text,label,prediction", {}, "no column for example", "example=text"),
        ("who,example,score", {}, "no column for system", "system=who"),
        ("system,example,chrf", {}, "label and prediction, or score", "score=chrf"),
        ("model,run,example,score", {}, "several columns may be the system", "system=model"),
        ("system,example,acc,f1", {}, "several columns may be the score", "score=acc"),
        ("system,example,score", {"columns": {"score": "scor"}}, "no column 'scor'", "did you mean 'score'"),
        ("system,example,score", {"columns": {"modle": "system"}}, "unknown role", "the roles are"),
        (SCORED, {"columns": {"system": "system", "dataset": "system"}}, "two roles", "another column"),
        ("system,example,label,prediction", {"metric": "f1"}, "no column 'f1'", "score=NAME"),
        ("system,example,loss", {"metric": "loss"}, "less is better", "negative"),
        ("system,example,example", {}, "same name", "a name of its own"),
    ],
)
def test_faults_of_columns(tmp_path, header, options, what, hint):
    rows = [",".join(name + "1" for name in header.split(",")), ",".join("1" for _ in header.split(","))]
    error = fault(tmp_path / "t.csv", table(*rows, header=header).replace("loss1", "1"), **options)
    assert what in error.what
    assert hint in error.hint


def test_a_table_without_examples_has_one_score_a_seed(tmp_path):
    rows = table("a,0,x,1", "a,0,y,0", "b,0,x,1", header="system,seed,text,score")
    error = fault(tmp_path / "t.csv", rows)
    assert "two scores of one seed" in error.what
    assert "row 2" in error.where
    assert "row 3" in error.where
    assert "example=NAME" in error.hint


def test_files_of_one_table_have_the_same_columns(tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(table("b,x,1", header=SCORED), encoding="utf-8")
    (tmp_path / "t.csv").write_text(table(*GOOD[:2]), encoding="utf-8")
    with pytest.raises(SeedbedError, match="different columns"):
        read_results([tmp_path / "t.csv", other])


@pytest.mark.parametrize(
    ("content", "what", "found"),
    [
        (b"", "cannot be read", "an empty file"),
        (b"\nsystem,example,score\n", "cannot be read", "a blank first line"),
        ("system,example,score\n".encode("utf-16"), "cannot be read", "text in UTF-16"),
        (table(*GOOD).encode()[:-1] + b"\xe9\n", "not in UTF-8", r"\\xe9"),
        (gzip.compress(table(*GOOD * 50).encode(), mtime=0)[:-20], "cannot be read", "damaged or cut"),
        (b"PAR1" + bytes(100), "cannot be read", "Parquet that is damaged or cut"),
    ],
)
def test_faults_of_files(tmp_path, content, what, found):
    error = fault(tmp_path / "t.csv", content)
    assert what in error.what
    assert re.search(found, error.found)


def test_a_cut_parquet_file(tmp_path):
    pd.DataFrame({"system": list("ab"), "example": [0, 0], "score": [0.0, 1.0]}).to_parquet(
        tmp_path / "whole"
    )
    content = (tmp_path / "whole").read_bytes()
    assert "damaged or cut" in fault(tmp_path / "t.parquet", content[: len(content) // 2]).found


def test_a_column_of_lists_is_no_column_of_scores(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"system": list("ab"), "example": [0, 0], "score": [[1], [0]]}).to_parquet(path)
    with pytest.raises(SeedbedError, match="a type that cannot be used"):
        read_results(path)


def test_a_number_without_a_value_in_parquet_is_an_empty_cell(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame(
        {"system": list("ab"), "example": [0, 0], "label": [1.0, 1.0], "prediction": [1.0, None]}
    ).to_parquet(path)
    with pytest.raises(SeedbedError, match="column for prediction is empty"):
        read_results(path)


@pytest.mark.parametrize("packed", [False, True])
def test_a_table_that_memory_cannot_hold_is_refused_unread(tmp_path, monkeypatch, packed):
    monkeypatch.setattr(memory, "free_bytes", lambda: 2**20)
    content = table(*(f"a,0,x{number},1,1" for number in range(20_000))).encode()
    error = fault(tmp_path / "t.csv", gzip.compress(content) if packed else content)
    rows = int(re.search(r"about ([\d,]+) rows", error.found)[1].replace(",", ""))
    assert rows == pytest.approx(20_000, rel=0.05)
    assert "1 MiB are free" in error.found


def test_free_memory_is_what_the_host_tells():
    with open("/proc/meminfo", encoding="utf-8") as stream:
        total = int(stream.readline().split()[1]) * 1024
    assert 0 < memory.free_bytes() <= total


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"format": "tabel"}, "unknown format"),
        ({"labels": "t.csv"}, "option of run_glue alone"),
        ({"bounds": (1, 0)}, "not in order"),
    ],
)
def test_faults_of_options(tmp_path, options, what):
    path = tmp_path / "t.csv"
    path.write_text(table(*GOOD), encoding="utf-8")
    with pytest.raises(SeedbedError, match=what):
        read_results(path, **options)


def test_a_table_without_datasets_takes_the_name_of_its_dataset(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(table(*GOOD), encoding="utf-8")
    assert read_results(path, dataset="sst2")[0].dataset == "sst2"


def test_a_dataset_that_is_not_there(tmp_path):
    rows = table("a,0,1,sst2", "b,0,1,sst2", header=f"{SCORED},dataset")
    error = fault(tmp_path / "t.csv", rows, dataset="sst-2")
    assert "did you mean 'sst2'" in error.hint


def test_a_folder_where_a_file_is_meant(tmp_path):
    with pytest.raises(SeedbedError, match="a folder without known results"):
        read_results(tmp_path)
    with pytest.raises(SeedbedError, match="the folder has no results of table"):
        read_results(tmp_path, format="table")
    with pytest.raises(SeedbedError, match="no such file"):
        read_results(tmp_path / "missing.csv")
    with pytest.raises(SeedbedError, match="no file of results"):
        read_results([])
