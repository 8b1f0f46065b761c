"""Faults of tables: each is one error with its place, what was found, and a remedy."""

import gzip

import numpy as np
import pandas as pd
import pytest

from seedbed.core.errors import SeedbedError
from seedbed.outside import memory
from seedbed.outside.read import read_results

HEADER = "system,seed,example,label,prediction"
GOOD = ["a,0,x,1,1", "a,0,y,0,1", "b,0,x,1,0", "b,0,y,0,0"]
SCORED = "system,example,score"


def fault(path, content: str | bytes, **options) -> SeedbedError:
    """The error of a file with this content."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SeedbedError) as caught:
        read_results(path, **options)
    error = caught.value
    assert str(path) in error.where or error.where in ("columns", "bounds", "format")
    assert error.hint
    return error


def table(*rows: str, header: str = HEADER) -> str:
    return "\n".join((header, *rows)) + "\n"


def test_the_table_without_a_fault_is_read(tmp_path):
    (tmp_path / "t.csv").write_text(table(*GOOD), encoding="utf-8")
    assert read_results(tmp_path / "t.csv")[0].systems == ("a", "b")


@pytest.mark.parametrize(
    ("rows", "what", "place", "found"),
    [
        (GOOD[:2], "one system", "t.csv", "a"),
        ([*GOOD, GOOD[1]], "twice", "row 2, and", "example y of a, seed 0"),
        (GOOD[:3], "not scored on the same examples", "b, seed 0", "lacks 1 of 2 examples: y"),
        ([*GOOD[:3], "b,0,y,,0"], "column for label is empty", "row 4", None),
        ([*GOOD[:3], "b,one,y,0,0"], "not an integer", "row 4", "'one'"),
        ([*GOOD[:3], "b,0.5,y,0,0"], "not an integer", "row 4", "'0.5'"),
        ([*GOOD[:3], "b,0,y,0,0.0"], "two kinds", "row 1, and .*row 4", "whole number.*decimal number"),
        ([*GOOD[:3], "b,0,y,0,negative"], "two kinds", "row 1, and .*row 4", "'negative' .word"),
        ([*GOOD[:3], "b,0,y,1,0"], "label of an example differs", "row 2, and .*row 4", "0 and 1"),
        ([*GOOD[:3], "b,0,y,0"], "cannot be read", "t.csv", "Row #5: Expected 5 columns, got 4"),
        (["a,0,x,Yes,Yes", "b,0,x,Yes,yes"], "capital letters", "row 1, and .*row 2", "'Yes' .*'yes'"),
        (["a,0,x,1.5,1.5", "b,0,x,1.5,2.5"], "measurements", "row 1", "1.5"),
        ([], "cannot be read as a table", "t.csv", "no row"),
    ],
)
def test_faults_of_rows(tmp_path, rows, what, place, found):
    error = fault(tmp_path / "t.csv", table(*rows))
    assert what in error.what
    pd.testing.assert_index_equal  # noqa: B018
    assert pytest.importorskip("re").search(place, error.where)
    if found:
        assert pytest.importorskip("re").search(found, error.found)


@pytest.mark.parametrize(
    ("cell", "found"), [("nan", "nan"), ("inf", "inf"), ("", "nan"), ("-inf", "-inf"), ("x", "Row #3")]
)
def test_a_score_is_a_finite_number(tmp_path, cell, found):
    error = fault(tmp_path / "t.csv", table("a,0,1", f"b,0,{cell}", header=SCORED))
    assert found in error.found


@pytest.mark.parametrize(("name", "bounds"), [("acc", None), ("chrf", (0, 1))])
def test_a_score_is_within_its_bounds(tmp_path, name, bounds):
    rows = table("a,0,1", "b,0,1.5", header=f"system,example,{name}")
    error = fault(tmp_path / "t.csv", rows, metric=name, bounds=bounds)
    assert "row 2" in error.where
    assert error.found == "1.5"
