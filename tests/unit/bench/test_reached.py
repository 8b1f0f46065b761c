"""The floor of a workload, and the share of it that runs reached."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from bench import floor, reached, workload

from seedbed.core import files

pytestmark = pytest.mark.slow  # of benchmarks/, not of the product
PEAKS = floor.Peaks(100.0, 1000.0)


@pytest.fixture
def prepared(tmp_path):
    """A workload whose tokens are there, cut to 4: two epochs of three texts, two at a time."""
    recipe = {"epochs": 2, "batch_size": 2, "max_positions": 4}
    evaluation = {"batch_size": 8, "test_curves": False}
    overlay = {"device": "cpu", "recipes": {"demo": recipe}, "evaluation": evaluation}
    work = workload.make_workload(tmp_path, [], overlay, 1)
    for split, lengths in (("train", (3, 4, 9)), ("validation", (3, 3)), ("test", (4,))):
        rows = [{"ids": list(range(length))} for length in lengths]
        files.write_jsonl(work.data / "tokens" / f"{split}.jsonl", rows)
    files.write_json(work.results / "data" / work.dataset / "labels.json", {"names": ["a", "b", "c"]})
    shape = {"format": "fairseq", "layers": 2, "embed_dim": 8, "ffn_dim": 16, "max_positions": 256}
    files.write_json(work.weights / "model.json", shape)
    return work


def test_what_a_run_needs_is_counted_from_its_tokens_and_recipe(prepared):
    shape = floor.Shape(2, 8, 16, 3)
    need = reached.needed(prepared)
    assert need.training == floor.training(shape, floor.Texts((3, 4, 4), 4 + 4), 2, 2, "float32")
    validation = floor.evaluation(shape, floor.Texts((3, 3), 3 + 3), 8, "float32")
    test = floor.evaluation(shape, floor.Texts((4,), 4 + 4), 8, "float32")
    assert need.evaluation == validation * 3 + test
    assert need.whole.launches == 4 + 4
    files.write_json(prepared.weights / "model.json", {"format": "auto"})
    assert reached.needed(prepared) is None


def test_the_share_that_was_reached():
    need = reached.Needed(floor.Work(operations=200), floor.Work(operations=50, weight_bytes=1000))
    rows = [
        {"side": "seedbed", "framework": "fairseq", "train_seconds": 4.0, "evaluate_seconds": taken}
        for taken in (1.0, 10.0, 4.0)
    ]
    rows.append(rows[0] | {"side": "lab", "train_seconds": 100.0})
    found = reached.run_rows("run", need, PEAKS, rows)
    assert [row["what"] for row in found] == ["fairseq run: training", "fairseq run: evaluation"]
    assert [row["share"] for row in found] == [0.5, 0.25]
    found.append(reached.grid_row(need, 6, PEAKS.times(2), 30.0))
    assert found[2]["floor_seconds"] == pytest.approx(6 * 250 / 200)
    text = reached.section(found, "float32", {"a process with 2 thread(s)": PEAKS})
    assert "| fairseq run: evaluation | 0.500 | 1.00 | 0 | 1.00 | 4.00 | 25% |" in text
    assert "| the grid, 6 runs: training and evaluation | 7.50 | 3.00 | 0 | 7.50 | 30.0 | 25% |" in text
    assert "format auto" in reached.section([], "float32", {})


def test_training_of_a_grid_lasts_while_any_run_trains():
    seconds = {"start_up": 2.0, "train": 6.0, "evaluate": 1.0, "write": 1.0, "total": 10.0}
    ends = (100.0, 103.0, 200.0)  # two beside each other, and one later
    assert reached.training_wall([{"seconds": seconds, "written": end} for end in ends]) == 7 + 3 + 7


@pytest.mark.parametrize(
    ("overlay", "profile", "number"),
    [
        ({"device": "cpu"}, "profiles/local-gpu", 0),
        ({}, "", 1),
        ({}, "profiles/local-gpu", 4),
        ({"gpus": {"devices": [2, 3]}}, "profiles/local-gpu", 2),
    ],
)
def test_how_many_gpus_a_grid_uses(tmp_path, overlay, profile, number):
    assert reached.devices(workload.make_workload(tmp_path, [], overlay, 1, profile), 4) == number


def test_peaks_are_measured_in_a_process_of_their_own(prepared):
    found = reached.measure_peaks(prepared, 1)
    assert set(found) == {1}
    assert found[1].operations > found[1].bytes > 1e8
    assert found[1].launch == 0
