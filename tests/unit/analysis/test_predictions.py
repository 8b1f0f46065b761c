"""Reading predictions.csv into arrays, and every fault that it must notice."""

from pathlib import Path

import numpy as np
import pytest

from seedbed.analysis.outputs import stack
from seedbed.analysis.predictions import read_predictions, without_leaks
from seedbed.core.errors import SeedbedError

NAMES = ("bad", "good")
HEADER = "split,example,label,prediction,probability_bad,probability_good"
ROWS = [
    "validation,v0,good,good,0.25,0.75",
    "test,t0,bad,bad,0.8,0.2",
    "test,t1,bad,good,0.4,0.6",
    "test,t2,good,good,0,1",
]


def write(folder: Path, rows: list[str], header: str = HEADER) -> Path:
    path = folder / "predictions.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def fails(path: Path, *parts: str, names: tuple[str, ...] = NAMES) -> None:
    with pytest.raises(SeedbedError) as caught:
        read_predictions(path, names)
    for part in (str(path), *parts):
        assert part in str(caught.value)


def test_arrays_of_a_run(tmp_path):
    found = read_predictions(write(tmp_path, ROWS), NAMES)
    test = found["test"]
    assert test.names == NAMES
    assert test.ids == ("t0", "t1", "t2")
    assert test.labels.tolist() == [0, 0, 1]
    assert test.predicted.tolist() == [[0, 1, 1]]
    assert test.confidence == pytest.approx(np.array([[0.8, 0.6, 1.0]]))
    assert test.loss == pytest.approx(-np.log([[0.8, 0.4, 1.0]]))
    assert test.correct.tolist() == [[True, False, True]]
    assert (test.labels.dtype, test.predicted.dtype) == (np.int16, np.int16)
    assert (test.confidence.dtype, test.loss.dtype) == (np.float32, np.float32)
    assert found["validation"].ids == ("v0",)
    assert found["validation"].correct.tolist() == [[True]]


def test_classes_are_found_by_name_whatever_the_order_of_columns(tmp_path):
    rows = [row.rsplit(",", 2) for row in ROWS]
    swapped = write(
        tmp_path,
        [f"{head},{good},{bad}" for head, bad, good in rows],
        "split,example,label,prediction,probability_good,probability_bad",
    )
    assert read_predictions(swapped, NAMES)["test"].confidence == pytest.approx(np.array([[0.8, 0.6, 1.0]]))


@pytest.mark.parametrize("cells", ["good,,", "good,nan,0.3", ",,", "good,,0.3"])
def test_without_a_number_there_is_no_prediction(tmp_path, cells):
    test = read_predictions(write(tmp_path, [*ROWS, f"test,t3,good,{cells}"]), NAMES)["test"]
    assert test.predicted[0, 3] == -1
    assert np.isnan(test.confidence[0, 3])
    assert np.isnan(test.loss[0, 3])
    assert test.correct.tolist() == [[True, False, True, False]]


def test_the_loss_of_an_impossible_label_is_infinite(tmp_path):
    test = read_predictions(write(tmp_path, [*ROWS, "test,t3,bad,good,0,1"]), NAMES)["test"]
    assert test.loss[0, 3] == np.inf


def test_ids_may_hold_commas_quotes_line_ends_and_any_letter(tmp_path):
    rows = [*ROWS, 'test,"a, ""b""\nc",bad,bad,1,0', "test,NA,bad,bad,1,0", "test,été,bad,bad,1,0"]
    assert read_predictions(write(tmp_path, rows), NAMES)["test"].ids[3:] == ('a, "b"\nc', "NA", "été")


def test_a_table_longer_than_a_block_of_the_reader(tmp_path):
    rows = [f"test,example-{number},{NAMES[number % 2]},bad,0.75,0.25" for number in range(40_000)]
    test = read_predictions(write(tmp_path, [*ROWS[:1], *rows]), NAMES)["test"]
    assert test.ids[-1] == "example-39999"
    assert test.correct.sum() == 20_000


def test_stacked_seeds_and_some_examples(tmp_path):
    one = read_predictions(write(tmp_path, ROWS), NAMES)["test"]
    other = read_predictions(write(tmp_path, [*ROWS[:3], "test,t2,good,bad,0.9,0.1"]), NAMES)["test"]
    both = stack([one, other])
    assert both.predicted.tolist() == [[0, 1, 1], [0, 1, 0]]
    assert both.all_same.tolist() == [False, False]
    assert both.majority_share == 2 / 3
    part = both.keep(np.array([True, False, True]))
    assert part.ids == ("t0", "t2")
    assert part.correct.tolist() == [[True, True], [True, False]]
    assert part.all_same.tolist() == [False, True]


def test_examples_that_did_not_leak():
    assert without_leaks(("a", "b", "c"), {"b", "x"}).tolist() == [True, False, True]
    assert without_leaks(("a", "b"), {"x"}) is None
    assert without_leaks(("a", "b"), {"a", "b"}) is None


# --- faults ---


@pytest.mark.parametrize("cells", ["1.5,0.2", "-0.1,1.1", "inf,0.1"])
def test_a_probability_outside_its_range_is_refused(tmp_path, cells):
    fails(write(tmp_path, [*ROWS, f"test,t3,bad,bad,{cells}"]), "outside [0, 1]", "line 6, probability_bad")


def test_an_example_that_stands_twice_is_refused(tmp_path):
    fails(write(tmp_path, [*ROWS, ROWS[2]]), "test example stands twice", "found: t1")


def test_one_name_may_stand_in_both_splits(tmp_path):
    found = read_predictions(write(tmp_path, [*ROWS, "test,v0,bad,bad,1,0"]), NAMES)
    assert found["validation"].ids == ("v0",)
    assert found["test"].ids[-1] == "v0"


@pytest.mark.parametrize("row", ["test,t3,ugly,bad,1,0", "test,t3,bad,ugly,1,0"])
def test_a_class_that_the_run_does_not_know_is_refused(tmp_path, row):
    fails(write(tmp_path, [*ROWS, row]), "a label that the run does not know", "found: ugly", "bad, good")


def test_a_row_without_a_label_is_refused(tmp_path):
    fails(write(tmp_path, [*ROWS, "test,t3,,bad,1,0"]), "line 6", "without a label")


def test_a_short_row_is_refused(tmp_path):
    fails(write(tmp_path, [*ROWS, "test,t3,bad"]), "line 6", "a row of 3 cells, not 6")


def test_a_probability_that_is_no_number_is_refused(tmp_path):
    fails(write(tmp_path, [*ROWS, "test,t3,bad,bad,much,0"]), "line 6", "'much' in column probability_bad")


def test_another_split_is_refused(tmp_path):
    fails(write(tmp_path, [*ROWS, "train,t3,bad,bad,1,0"]), "line 6", "a row of the split 'train'")


@pytest.mark.parametrize(
    ("rows", "split"), [(ROWS[:1], "test"), (ROWS[1:], "validation"), ([], "validation")]
)
def test_a_missing_split_is_refused(tmp_path, rows, split):
    fails(write(tmp_path, rows), f"no row of the split {split}")


@pytest.mark.parametrize(
    "header",
    [
        "split,example,label,prediction",
        "split,example,label,probability_bad,probability_good",
        f"{HEADER},split",
    ],
)
def test_missing_or_repeated_columns_are_refused(tmp_path, header):
    fails(write(tmp_path, [], header), "line 1", f"columns {', '.join(header.split(','))}")


def test_an_empty_file_is_refused(tmp_path):
    path = tmp_path / "predictions.csv"
    path.touch()
    fails(path, "an empty file")


def test_a_class_without_probabilities_is_refused(tmp_path):
    fails(write(tmp_path, ROWS), "the classes bad, good, new", names=(*NAMES, "new"))


def test_bytes_that_are_not_utf8_are_refused(tmp_path):
    path = write(tmp_path, ROWS)
    path.write_bytes(path.read_bytes().replace(b"t1", b"\xe9"))
    fails(path, "not a table of predictions", "line 4", "not UTF-8")


def test_a_header_that_is_not_utf8_is_refused(tmp_path):
    path = write(tmp_path, ROWS)
    path.write_bytes(path.read_bytes().replace(b"probability_bad", b"probability_\xe9"))
    fails(path, "line 1", "not UTF-8")


def test_a_byte_order_mark_is_named(tmp_path):
    path = write(tmp_path, ROWS)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    fails(path, "line 1", "a byte order mark")


def test_a_file_that_was_cut_is_refused_although_its_last_row_seems_whole(tmp_path):
    path = write(tmp_path, ROWS)
    path.write_text(path.read_text()[:-1])
    fails(path, "not a whole table of predictions", "line 5", "the file was cut", "'test,t2,good,good,0,1'")


@pytest.mark.parametrize(
    ("cells", "refused"), [("0.9,0.1002", True), ("0.9,0.0998", True), ("0.9,0.09995", False)]
)
def test_probabilities_sum_to_one(tmp_path, cells, refused):
    path = write(tmp_path, [*ROWS, f"test,t3,bad,bad,{cells}"])
    if refused:
        fails(path, "do not sum to 1", "line 6", f"found: {sum(map(float, cells.split(','))):.9g}")
    else:
        assert read_predictions(path, NAMES)["test"].predicted[0, 3] == 0


@pytest.mark.parametrize(("prediction", "cells"), [("bad", "0.4,0.6"), ("good", "0.50000002,0.49999998")])
def test_a_prediction_that_is_not_the_likeliest_class_is_refused(tmp_path, prediction, cells):
    rows = [*ROWS, f"test,t3,bad,{prediction},{cells}"]
    fails(write(tmp_path, rows), "not the class of the largest probability", "line 6", "found: 0.")


def test_an_empty_prediction_beside_probabilities_is_refused(tmp_path):
    rows = [*ROWS, "test,t3,bad,,0.4,0.6"]
    fails(write(tmp_path, rows), "not the class of the largest probability", "found: 0.4, 0.6")


@pytest.mark.parametrize("cells", ["0.5,0.5", "0.499999999,0.500000001"])
def test_of_equal_probabilities_either_class_may_be_predicted(tmp_path, cells):
    rows = [*ROWS, f"test,t3,bad,bad,{cells}", f"test,t4,bad,good,{cells}"]
    assert read_predictions(write(tmp_path, rows), NAMES)["test"].predicted[0, 3:].tolist() == [0, 1]
