"""How long runs will take, judged by records of earlier ones."""

import os
import platform

import pytest

from seedbed.core.files import write_json
from seedbed.running.durations import Durations, about, kind_of

RUN = {"dataset": "books", "model": "tiny", "framework": "fairseq", "method": "full"}
SETTINGS = {"batch_size": 8, "max_positions": 64, "precision": "float32", "epochs": 3}
HERE = {"system": platform.system(), "machine": platform.machine(), "cpus": os.cpu_count()}
KIND = kind_of(RUN, SETTINGS)


def record(total: float = 34.0, **changes) -> dict:
    """A run of 10 updates, with 4 seconds before the first one."""
    plain = {
        "run": RUN, "settings": SETTINGS, "hardware": HERE, "total_updates": 10,
        "seconds": {"start_up": 4.0, "total": total},
    }  # fmt: skip
    return plain | changes


def write_run(results, seed: int, experiment: str = "one", **changes) -> None:
    folder = results / experiment / "runs/books/tiny/fairseq/random/quick" / f"seed{seed}"
    write_json(folder / "run.json", record(**changes))
    os.utime(folder / "run.json", (seed, seed))


@pytest.fixture
def results(tmp_path):
    for dataset, size in (("books", 80), ("films", 320)):
        write_json(tmp_path / "data" / dataset / "splits.json", {"read": {"train": size}})
    return tmp_path


def test_a_run_takes_as_long_as_those_of_other_experiments_for_its_updates(results):
    write_run(results, 0, "other")
    durations = Durations(results)
    assert durations.of(KIND, "books", epochs=3) == pytest.approx(4 + 3 * 30)  # 3 x 10 updates, 3 s each
    assert durations.of(KIND, "films", epochs=1) == pytest.approx(4 + 4 * 30)
    assert durations.of(KIND, "unprepared", epochs=1) is None


def test_a_sampled_dataset_has_the_updates_of_its_sample(results):
    write_run(results, 0, "other")
    sample = {"seed": 0, "train": {"size": 80, "of": 320, "ids": ["x"] * 80}}
    write_json(results / "data/films/splits.json", {"read": {"train": 320}, "sample": sample})
    assert Durations(results).of(KIND, "films", epochs=3) == pytest.approx(4 + 3 * 30)


def test_a_run_of_a_size_has_the_updates_of_its_texts(results):
    write_run(results, 0, "other")
    assert Durations(results).of(KIND, "books", epochs=3, size=20) == pytest.approx(4 + 3 * 3 * 3)
    assert Durations(results).of(KIND, "unprepared", epochs=3, size=20) == pytest.approx(4 + 3 * 3 * 3)


def test_runs_of_the_machine_that_trains_count(results):
    there = {**HERE, "machine": "quantum"}
    write_run(results, 0, hardware=there)
    assert Durations(results).of(KIND, "books", epochs=1) is None
    assert Durations(results, there).of(KIND, "books", epochs=1) == pytest.approx(34)


def test_the_newest_runs_count(results):
    for seed in range(20):
        write_run(results, seed, total=34.0 if seed >= 15 else 1000.0)
    durations = Durations(results)
    assert durations.of(KIND, "books", epochs=1) == pytest.approx(34)
    for _ in range(3):
        durations.add(record(total=64.0))
    assert durations.of(KIND, "books", epochs=1) == pytest.approx(64)


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": SETTINGS | {"batch_size": 16}},
        {"settings": SETTINGS | {"max_positions": 128}},
        {"run": RUN | {"method": "lora"}},
        {"hardware": HERE | {"cpus": 999}},
        {"fused_with": [[0, 0], [1, 1]]},
        {"seconds": None},
    ],
)
def test_other_runs_machines_and_formats_say_nothing(results, changes):
    write_run(results, 0, **changes)
    assert Durations(results).of(KIND, "books", epochs=1) is None


def test_a_batched_model_takes_its_time_once_for_all_seeds(results):
    write_run(results, 0, fused_with=[[0, 0], [1, 1]])
    assert Durations(results).of(kind_of(RUN, SETTINGS, 2), "books", epochs=1) == pytest.approx(17)


def test_a_run_without_training_takes_what_one_took(results):
    write_run(results, 0, total_updates=0)
    assert Durations(results).of(KIND, "books", epochs=3) == pytest.approx(34)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "10 s"), (41, "50 s"), (51, "1 min"), (61, "2 min"), (5400, "90 min"), (5401, "1.6 h"),
        (360_001, "100.1 h"),
    ],
)  # fmt: skip
def test_times_are_rounded_up(seconds, text):
    assert about(seconds) == text
