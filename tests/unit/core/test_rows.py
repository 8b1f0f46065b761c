"""Typed rows: a table is read into dataclasses whose columns have types, or refused with its place."""

from dataclasses import dataclass, replace

import pytest

from seedbed.core.errors import SeedbedError
from seedbed.core.known import all_known, known
from seedbed.core.rows import TypedRow, grouped, write_table


@dataclass(frozen=True, kw_only=True)
class Measured(TypedRow):
    """A row for these tests."""

    name: str
    paired: bool
    seeds: int
    delta: float | None = None
    reason: str | None = None


ROWS = [
    Measured(name="007", paired=True, seeds=3, delta=0.1),
    Measured(name="", paired=False, seeds=0, reason="too few seeds"),
]


def test_rows_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "measured.csv"
    write_table(path, tuple(ROWS[0]), ROWS)
    assert Measured.read(path, "table of measurements") == ROWS


def test_the_order_of_columns_and_other_ones_do_not_matter(tmp_path):
    path = tmp_path / "measured.csv"
    path.write_text("more,reason,delta,seeds,paired,name\n1,,0.1,3,true,007\n")
    assert Measured.read(path, "table") == ROWS[:1]


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("a,yes,3,0.1,", "paired"),
        ("a,true,3.5,0.1,", "seeds"),
        ("a,true,3,much,", "delta"),
        ("a,,3,,", "paired"),
    ],
)
def test_a_cell_of_another_type_is_refused_with_its_place(tmp_path, line, column):
    path = tmp_path / "measured.csv"
    path.write_text(f"name,paired,seeds,delta,reason\na,true,3,0.1,\n{line}\n")
    with pytest.raises(SeedbedError, match="not a table of measurements") as caught:
        Measured.read(path, "table of measurements")
    assert caught.value.where == f"{path}, line 3, column {column}"
    assert "again" in caught.value.hint


def test_a_missing_column_is_refused(tmp_path):
    path = tmp_path / "measured.csv"
    path.write_text("name,paired,seeds,delta\na,true,3,0.1\n")
    with pytest.raises(SeedbedError, match="not a table") as caught:
        Measured.read(path, "table")
    assert "reason" in caught.value.hint


def test_code_of_any_table_reads_a_row_as_a_mapping():
    row = ROWS[0]
    assert (row["name"], row.get("delta"), row.get("other")) == ("007", 0.1, None)
    assert {**row} == {"name": "007", "paired": True, "seeds": 3, "delta": 0.1, "reason": None}
    assert "other" not in row
    with pytest.raises(KeyError):
        row["columns"]
    with pytest.raises(KeyError):
        row["read"]  # an attribute, but no column
    assert grouped(ROWS, "paired") == {(True,): [row], (False,): [ROWS[1]]}


def test_a_row_is_changed_by_making_another_one():
    with pytest.raises(AttributeError):
        ROWS[0].seeds = 4
    assert replace(ROWS[0], seeds=4) != ROWS[0]


def test_what_must_be_known_is_not_missing():
    assert known(0) == 0
    assert all_known({"a": 0.0, "b": False}) == {"a": 0.0, "b": False}
    with pytest.raises(ValueError, match="missing"):
        all_known({"a": 1, "b": None})
