"""Texts with a number: how numbers are read, every fault of a file, draws in proportion to the numbers."""

import json
import statistics

import numpy as np
import pytest
from builders_datasets import define_dataset, write_source

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl
from seedbed.data.preparation import prepare as prepare_dataset

SPLITS = ("train", "validation", "test")
STAMP = {"experiment": "demo", "fingerprint": "0123456789abcdef"}


def define(**changes):
    block = define_dataset("csv", ".csv", task="regression", columns={"text": ["text"], "label": "mark"})
    for key in ("labels", "label_names", "neutral_ratings"):
        del block[key]
    return block | changes


def table(numbers, start=0):
    """One row a number, each with a text of its own."""
    return "text,mark\n" + "".join(
        f"text number {start + row} here,{mark}\n" for row, mark in enumerate(numbers)
    )


def prepare(folder, train, definition=None, **others):
    contents = {f"{split}.csv": table([1, 2, 4.5], start=1000 * n) for n, split in enumerate(SPLITS)}
    contents["train.csv"] = train
    contents |= {f"{split}.csv": text for split, text in others.items()}
    manifest = write_source(folder / "source", contents)
    prepare_dataset("d", definition or define(), manifest, folder / "out", STAMP)
    return folder / "out"


def refused(folder, train, definition=None, **others):
    with pytest.raises(SeedbedError) as error:
        prepare(folder, train, definition, **others)
    assert not (folder / "out").exists()
    return error.value


def test_numbers_and_texts_of_numbers_are_labels(tmp_path):
    out = prepare(tmp_path, table([1, " 2.50", "-1e-1", ".5", "+3."]))
    assert [row["label"] for row in read_jsonl(out / "train.jsonl")] == [1.0, 2.5, -0.1, 0.5, 3.0]
    assert (out / "train.label").read_text() == "1.0\n2.5\n-0.1\n0.5\n3.0\n"
    marks = [1.0, 2.5, -0.1, 0.5, 3.0]
    assert read_json(out / "labels.json") == {
        "mean": statistics.fmean(marks),
        "sd": pytest.approx(float(np.std(marks))),
    }


def test_numbers_of_json_need_no_text(tmp_path):
    lines = [{"text": "a b c", "mark": 1}, {"text": "d e f", "mark": "2.5"}, {"text": "g h i", "mark": 3.25}]
    written = "".join(json.dumps(line) + "\n" for line in lines)
    definition = define(format="jsonl", files={split: f"{split}.jsonl" for split in SPLITS})
    contents = {f"{split}.jsonl": written for split in SPLITS}
    manifest = write_source(tmp_path / "source", contents)
    prepare_dataset("d", definition, manifest, tmp_path / "out", STAMP)
    assert [row["label"] for row in read_jsonl(tmp_path / "out/train.jsonl")] == [1.0, 2.5, 3.25]
    contents["train.jsonl"] += '{"text": "j k l", "mark": true}\n'
    with pytest.raises(SeedbedError) as error:
        prepare_dataset("d", definition, write_source(tmp_path / "s2", contents), tmp_path / "o2", STAMP)
    assert error.value.found == "'true'"
    assert "line 4" in error.value.where


@pytest.mark.parametrize(
    ("cell", "what", "hint"),
    [
        ('"3,5"', "not a finite number", "with a point: 3.5, not 3,5"),
        ("good", "not a finite number", "task: classification"),
        ("inf", "not a finite number", "takes numbers"),
        ("1e999", "not a finite number", "takes numbers"),
        ("1_000", "not a finite number", "takes numbers"),
        ("nan", "missing", "fill in the number"),
        ("", "missing", "fill in the number"),
    ],
)
def test_a_cell_that_is_no_number_is_told_with_its_line(tmp_path, cell, what, hint):
    error = refused(tmp_path, table([1, 2]) + f"another text,{cell}\n")
    assert what in error.what
    assert "train.csv, line 4" in error.where
    assert repr(cell.strip('"')) == error.found
    assert hint in error.hint


@pytest.mark.parametrize("split", SPLITS)
def test_a_split_whose_numbers_are_all_the_same_is_refused(tmp_path, split):
    files = {"train": table([1, 2, 3])} | {split: table([3, 3.0, "3"], start=50)}
    error = refused(tmp_path, files.pop("train"), **files)
    assert f"all numbers of the {split} split" in error.what
    assert f"{split}.csv" in error.where
    assert error.found == "3 in 3 examples"


def test_a_drawn_split_has_every_tenth_of_the_numbers(tmp_path):
    rng = np.random.default_rng(0)
    numbers = rng.lognormal(0, 1, 400)
    files = {"train": "train.csv", "validation": None, "test": None}
    definition = define(
        files=files,
        test_split={"size": 100, "seed": 1, "together": "identical"},
        validation_split={"size": 0.1, "seed": 0, "together": "identical"},
    )
    out = prepare(tmp_path, table(numbers), definition)
    drawn = {split: [row["label"] for row in read_jsonl(out / f"{split}.jsonl")] for split in SPLITS}
    assert {split: len(of) for split, of in drawn.items()} == {"train": 260, "validation": 40, "test": 100}
    together = drawn["train"] + drawn["validation"] + drawn["test"]
    assert sorted(together) == pytest.approx(sorted(numbers))
    edges = np.quantile(numbers, np.linspace(0, 1, 11))[1:-1]
    counts = np.bincount(np.searchsorted(edges, drawn["test"]), minlength=10)
    assert counts.tolist() == [10] * 10
    assert read_json(out / "splits.json")["test"] == {
        "size": 100, "seed": 1, "together": "identical", "drawn_from": "train",
    }  # fmt: skip


def test_a_draw_does_not_depend_on_the_order_of_the_file(tmp_path):
    """Half of the numbers are ties, which are divided among strata by their texts."""
    rows = [f"text number {row} here,{0 if row < 50 else row}" for row in range(100)]
    definition = define(
        files={"train": "train.csv", "validation": None, "test": "test.csv"},
        validation_split={"size": 20, "seed": 3, "together": "identical"},
    )
    found = []
    for name, lines in (("a", rows), ("b", rows[::-1])):
        out = prepare(tmp_path / name, "text,mark\n" + "\n".join(lines) + "\n", definition)
        found.append({row["text"] for row in read_jsonl(out / "validation.jsonl")})
    assert found[0] == found[1]
    assert len(found[0]) == 20


def test_a_smaller_sample_is_a_part_of_a_larger_one(tmp_path):
    numbers = np.random.default_rng(1).normal(size=200)
    kept = {}
    for size in (20, 60):
        sample = {"train": size, "validation": None, "test": None, "seed": 0}
        out = prepare(tmp_path / str(size), table(numbers), define(sample=sample))
        kept[size] = {row["id"] for row in read_jsonl(out / "train.jsonl")}
        recorded = read_json(out / "splits.json")["sample"]["train"]
        assert (recorded["size"], recorded["of"]) == (size, 200)
    assert kept[20] < kept[60]
    assert len(kept[60]) == 60


def test_dropping_leaks_may_not_leave_one_number(tmp_path):
    train = table([1, 1, 1]) + "a text of the test split,5\n"
    test = "text,mark\na text of the test split,5\nanother one there,2\n"
    error = refused(tmp_path, train, define(drop_leaks=True), test=test)
    assert "the numbers of the others are all the same" in error.found
