"""What a run records: selection with its ties, and the files."""

import copy
import csv

import numpy as np
import pytest
import torch

from seedbed.core.files import publish_folder
from seedbed.core.tasks import TASKS
from seedbed.training import hardware
from seedbed.training.recording import Recorder, prediction_rows

SETTINGS = {
    "learning_rate": 1e-3,
    "warmup_ratio": 0.0,
    "schedule": "polynomial",
    "schedule_power": 1.0,
    "end_learning_rate": 0.0,
}
LABELS = np.array([0, 0, 1, 1])


def logits(right: int, margin: float) -> np.ndarray:
    """Logits that get the first `right` of four examples right, each by `margin`."""
    signs = np.where(np.arange(4) < right, 1.0, -1.0) * np.where(LABELS == 1, 1.0, -1.0)
    return np.stack([-signs * margin / 2, signs * margin / 2], axis=1)


@pytest.fixture
def recorder(tmp_path):
    return Recorder(SETTINGS, 40, tmp_path / "run", torch.device("cpu"))


def epoch(recorder, number, right, margin):
    weights = {"w": torch.full((1,), float(number))}
    recorder.start_training()
    recorder.add_batch(torch.zeros(4, 2), torch.tensor(LABELS))
    recorder.end_training_epoch(10 * number, number)
    recorder.evaluated("validation", logits(right, margin), LABELS, 10 * number, number, lambda: weights)
    recorder.resume_training()


def test_the_best_validation_accuracy_is_selected(recorder):
    for number, right in enumerate([2, 4, 3], start=1):
        epoch(recorder, number, right, 1.0)
    assert (recorder.selected.step, recorder.selected.weights["w"].item()) == (20, 2.0)
    assert recorder.selected.reason == "best validation accuracy"


def test_a_tie_goes_to_the_lower_validation_loss(recorder):
    epoch(recorder, 1, 4, 1.0)
    epoch(recorder, 2, 4, 3.0)  # as accurate, surer, so a lower loss
    assert recorder.selected.step == 20
    assert "better validation loss" in recorder.selected.reason


def test_a_full_tie_goes_to_the_earlier_step(recorder):
    epoch(recorder, 1, 4, 1.0)
    epoch(recorder, 2, 4, 1.0)
    assert recorder.selected.step == 10


def test_the_selected_weights_are_a_copy(recorder):
    weights = {"w": torch.zeros(1)}
    recorder.start_training()
    recorder.evaluated("validation", logits(4, 1.0), LABELS, 10, 1, lambda: weights)
    weights["w"] += 1
    assert recorder.selected.weights["w"].item() == 0


def test_a_loss_that_is_not_finite_marks_the_run_and_is_never_selected(recorder):
    recorder.start_training()
    recorder.evaluated("validation", np.full((4, 2), np.nan), LABELS, 10, 1, dict)
    assert recorder.diverged
    assert recorder.selected is None
    recorder.select_last(10, 1, {"w": torch.ones(1)})
    assert "no finite validation loss" in recorder.selected.reason


def test_metrics_csv_has_the_columns_of_every_framework_and_rates_of_the_schedule(recorder):
    epoch(recorder, 1, 4, 1.0)
    recorder.close()
    with open(recorder.ready / "metrics.csv", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["step", "epoch", "split", "metric", "value", "learning_rate", "seconds"]
    assert {(row["split"], row["metric"]) for row in rows} == {
        (split, metric) for split in ("train", "validation") for metric in ("accuracy", "loss")
    }
    assert float(rows[0]["learning_rate"]) == pytest.approx(1e-3 * (1 - 9 / 40))  # of update 10
    assert list((recorder.ready / "tensorboard").iterdir())


def test_event_files_show_the_curves(recorder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    epoch(recorder, 1, 3, 1.0)
    recorder.close()
    events = EventAccumulator(str(recorder.ready / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("validation/accuracy")] == [(10, 0.75)]


def test_a_recorder_that_goes_on_from_a_state_ends_like_one_that_never_stopped(recorder, tmp_path):
    """The state is taken in the middle of the second epoch, whose first batch it holds."""

    def first(one):
        epoch(one, 1, 3, 1.0)
        one.count_tokens(20, 24)
        one.add_batch(torch.tensor([[1.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1]))

    def second(one):
        one.start_training()
        one.count_tokens(10, 16)
        one.add_batch(torch.tensor([[0.5, 0.0]]), torch.tensor([1]))
        one.end_training_epoch(20, 2)
        one.evaluated("validation", logits(2, 1.0), LABELS, 20, 2, dict)
        one.resume_training()

    first(recorder)
    second(recorder)
    stopped, resumed = (
        Recorder(SETTINGS, 40, tmp_path / name, torch.device("cpu")) for name in ("stopped", "resumed")
    )
    first(stopped)
    resumed.restore(copy.deepcopy(stopped.state()))
    second(resumed)

    def rows(one):
        return [{key: value for key, value in row.items() if key != "seconds"} for row in one.rows]

    assert rows(resumed) == rows(recorder)
    assert resumed.selected.step == 10
    assert resumed.selected.weights["w"].item() == 1.0
    assert np.array_equal(resumed.selected.outputs, logits(3, 1.0))
    usage, expected = resumed.usage(), recorder.usage()
    assert usage["padding_share"] == expected["padding_share"]
    assert resumed.examples_seen == recorder.examples_seen == 7
    for phase in ("train", "evaluate"):
        assert resumed.clock.seconds[phase] > stopped.clock.seconds[phase]
    assert resumed.holds("validation", 20)
    assert not resumed.holds("test", 20)


def test_the_peak_of_memory_is_that_of_all_processes(recorder):
    epoch(recorder, 1, 4, 1.0)
    recorder.restore({**recorder.state(), "peak_memory": 1e9})
    assert recorder.usage()["peak_memory_mib"] == 1e9


def test_prediction_rows_carry_names_and_probabilities():
    rows = prediction_rows("test", ["a", "b"], [0, 1], np.log([[0.75, 0.25], [0.5, 0.5]]), ["no", "yes"])
    assert rows[0] == {
        "split": "test", "example": "a", "label": "no", "prediction": "no",
        "probability_no": "0.75", "probability_yes": "0.25",
    }  # fmt: skip
    assert rows[1]["prediction"] == "no"  # a tie goes to the first class


def test_publication_replaces_an_older_folder_as_a_whole(tmp_path):
    old, new = tmp_path / "runs" / "seed0", tmp_path / "work" / "run"
    for folder, name in ((old, "old.txt"), (new, "new.txt")):
        folder.mkdir(parents=True)
        (folder / name).write_text("x")
    publish_folder(new, old)
    assert [path.name for path in old.iterdir()] == ["new.txt"]
    assert not new.exists()


def test_speed_energy_and_seconds_in_numbers(tmp_path, monkeypatch):
    joules = iter([100.0, 130.0, 130.0, 500.0, 520.0])
    monkeypatch.setattr(hardware, "energy_joules", lambda device: next(joules))
    first = Recorder(SETTINGS, 40, tmp_path / "first", torch.device("cpu"))
    first.count_tokens(30, 40)
    first.clock.seconds["start_up"] = 1000.0
    epoch(first, 1, 4, 1.0)
    assert first.rows[-1]["seconds"] < 100  # start-up does not count
    first.clock.seconds["train"] = 2.0
    first.clock.switch("write")
    used = first.usage()
    assert used["samples_per_second"] == pytest.approx(4 / first.clock.seconds["train"])
    assert used["tokens_per_second"] == pytest.approx(30 / first.clock.seconds["train"])
    assert used["energy_joules"] == 30.0
    assert used["training_checkpoints"]["seconds"] == 0.0
    state = first.state()  # with the 30 joules
    second = Recorder(SETTINGS, 40, tmp_path / "second", torch.device("cpu"))
    second.restore(state)
    assert second.usage()["energy_joules"] == 50.0


def test_logits_that_are_not_finite_predict_nothing():
    logits = np.array([[np.nan, 0], [0, 1], [2, 0]])
    rows = prediction_rows("test", list("abc"), [0, 1, 0], logits, ["no", "yes"])
    assert [row["prediction"] for row in rows] == [None, "yes", "no"]


def test_the_metric_of_the_task_selects(tmp_path):
    labels = np.array([0] * 8 + [1] * 2)
    task = TASKS["classification"].measured_by("macro_f1")
    about = {"labels": ["often", "rare"]}
    recorder = Recorder(SETTINGS, 40, tmp_path / "run", torch.device("cpu"), task, about)
    # first one class throughout, with 80% right; then both rare ones are found, with 70% right
    wrong = {1: [8, 9], 2: [0, 1, 2]}
    for number, places in wrong.items():
        predicted = np.where(np.isin(np.arange(10), places), 1 - labels, labels)
        logits = np.eye(2)[predicted]
        recorder.evaluated("validation", logits, labels, number, number, lambda: {"w": torch.zeros(1)})
    assert recorder.selected.step == 2
    assert recorder.selected.reason == "best validation macro_f1"
    told = {row["metric"]: row["value"] for row in recorder.rows if row["step"] == 1}
    assert told["accuracy"] == 0.8
    assert told["macro_f1"] == pytest.approx((2 * 8 / 18 + 0) / 2)
    assert told["mcc"] == 0.0
