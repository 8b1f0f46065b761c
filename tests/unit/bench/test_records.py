"""The table of records."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from bench import floor, record_table, scaling, sidebyside
from bench.processes import BenchError

pytestmark = pytest.mark.slow  # of benchmarks/, not of the product
MACHINE = {"cpu": "A CPU", "gpus": ["A GPU", "A GPU"]}


def grid():
    """The row of a grid with a floor of 10 s that trained for 40."""
    return floor.row("grid", floor.Work(operations=1000), floor.Peaks(100.0, 1000.0), 40.0)


def test_a_record_is_appended(tmp_path, monkeypatch):
    path = tmp_path / "records.csv"
    monkeypatch.setattr(record_table, "ROOT", tmp_path)
    monkeypatch.setattr(record_table, "commit", lambda: "1234567")
    measured = {"cores": 2, "settings": "", "runs": 12, "mode": "separate", "precision": "tf32"}
    measured["wall_seconds"] = 61.234
    for row, raw in ((grid(), tmp_path / "kept"), (None, Path("/elsewhere"))):
        configs = [Path("experiments/cls_books.yaml")]
        record_table.add(record_table.record(MACHINE, 2, configs, measured, row, raw), path)
        measured["wall_seconds"] = 50.0
    first, second = record_table.read(path)
    assert first["hardware"] == "2 x A GPU, A CPU"
    assert (first["commit"], first["experiment"], first["raw"]) == ("1234567", "cls_books", "kept")
    assert [first[name] for name in ("wall_seconds", "floor_seconds", "share")] == ["61.23", "10.0", "0.25"]
    assert [second[name] for name in ("floor_seconds", "share", "equivalence", "raw")] == [""] * 4
    lines = record_table.section([first, second], "cls_books", 12).splitlines()
    assert lines[4].endswith("| separate | tf32 |  | 50.0 |  |  |  |")
    assert lines[5].endswith("| separate | tf32 |  | 61.2 | 40.0 | 10.0 | 25.0% |")
    assert "There are none" in record_table.section([first], "cls_books", 3)


def test_raw_tables_that_git_ignores_are_not_named():
    assert record_table.place(record_table.ROOT / "results" / "bench") == ""
    assert record_table.place(record_table.PATH) == "benchmarks/results/speed/records.csv"
    assert record_table.place(None) == ""


def test_a_record_on_a_cpu_names_no_gpu():
    assert record_table.hardware(MACHINE, 0) == "A CPU"
    assert record_table.experiment([]) == "demo"


def test_settings_of_a_measured_grid_are_told(monkeypatch):
    added = []
    monkeypatch.setattr(record_table, "add", added.append)
    asked = SimpleNamespace(set=["cuda_graphs=true"], note="MPS", gpus=1, configfile=[], csv=Path("x.csv"))
    row = {
        "cores": 16, "seeds": 1, "runs_per_gpu": 12, "batch_runs": 1, "at_once": 1, "batch_size": 8,
        "runs": 4, "mode": "fused", "precision": "tf32", "wall_seconds": 20.0,
    }  # fmt: skip
    scaling.add_record(asked, MACHINE, row, [grid()])
    assert added[0]["settings"] == "seeds=1 runs_per_gpu=12 batch_size=8 cuda_graphs=true MPS"
    assert (added[0]["mode"], added[0]["share"]) == ("fused", 0.25)


def test_a_slice_is_no_record(tmp_path):
    asked = SimpleNamespace(mode="slice", record=True)
    with pytest.raises(BenchError, match="--mode grid"):
        sidebyside.command(asked)


def test_the_table_of_records_points_to_raw_tables_that_are_there():
    records = record_table.read()
    assert list(records[0]) == list(record_table.COLUMNS)
    for one in records:
        assert (record_table.ROOT / one["raw"]).exists()
        assert float(one["wall_seconds"]) > 0
