"""Binarized data: made by fairseq-preprocess, read back by fairseq, and only then published."""

import pytest

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl, write_json, write_jsonl
from seedbed.training.fairseq.binarization import binarize, load_dictionary

WORDS = ["▁le", "▁la", "▁un", "e", "."]  # ids 4 to 8
SPLITS = ("train", "validation", "test")


@pytest.fixture
def data(tmp_path):
    """Class 1 is the most frequent and comes first: fairseq left alone would number it 0."""
    (tmp_path / "dict.txt").write_text("".join(f"{word} 1\n" for word in WORDS), encoding="utf-8")
    write_json(tmp_path / "labels.json", {"labels": ["neg", "pos"], "names": ["negative", "positive"]})
    rows = [([4, 7, 8], 1), ([5, 3], 1), ([], 0), ([6], 1)]
    for split in SPLITS:
        pieces = [" ".join("<unk>" if n == 3 else WORDS[n - 4] for n in ids) for ids, _ in rows]
        (tmp_path / f"{split}.pieces").write_text("".join(f"{p}\n" for p in pieces), encoding="utf-8")
        (tmp_path / f"{split}.label").write_text("".join(f"{label}\n" for _, label in rows))
        write_jsonl(
            tmp_path / f"{split}.jsonl",
            [
                {"id": f"{split}-{i}", "label": label, "ids": [0, *ids, 2]}
                for i, (ids, label) in enumerate(rows)
            ],
        )
    return tmp_path


def run(data):
    return binarize(
        pieces={split: data / f"{split}.pieces" for split in SPLITS},
        labels={split: data / f"{split}.label" for split in SPLITS},
        tokens={split: data / f"{split}.jsonl" for split in SPLITS},
        dictionary=data / "dict.txt",
        classes=data / "labels.json",
        output=data / "binarized",
    )


def refused(data) -> SeedbedError:
    """The error of a run, which must leave nothing behind."""
    before = {path.name for path in data.iterdir()}
    with pytest.raises(SeedbedError) as error:
        run(data)
    assert {path.name for path in data.iterdir()} == before
    return error.value


def test_fairseq_reads_back_ids_and_classes(data):
    summary = run(data)
    assert summary == read_json(data / "binarized" / "binarized.json")
    assert summary["classes"] == 2
    assert summary["splits"]["train"] == {"texts": 4, "tokens": 10}
    from fairseq.data import data_utils

    labels = load_dictionary(data / "binarized" / "label")
    assert (labels.index("0"), labels.index("1"), labels.nspecial) == (4, 5, 4)
    read = data_utils.load_indexed_dataset(str(data / "binarized" / "label" / "valid"), labels)
    assert [read[i].tolist() for i in range(4)] == [[5, 2], [5, 2], [4, 2], [5, 2]]
    words = load_dictionary(data / "binarized" / "input0")
    assert len(words) == len(WORDS) + 5
    read = data_utils.load_indexed_dataset(str(data / "binarized" / "input0" / "test"), words)
    assert [read[i].tolist() for i in range(4)] == [[4, 7, 8, 2], [5, 3, 2], [2], [6, 2]]


def test_the_task_of_fairseq_sees_class_k_as_label_k(data):
    run(data)
    from fairseq.tasks.sentence_prediction import SentencePredictionConfig, SentencePredictionTask

    settings = SentencePredictionConfig(data=str(data / "binarized"), num_classes=2, init_token=0)
    settings.no_shuffle, settings.regression_target, settings.seed, settings.max_positions = (
        True,
        False,
        1,
        40,
    )
    task = SentencePredictionTask.setup_task(settings)
    dataset = task.load_dataset("train")
    assert [dataset[i]["target"].item() for i in range(4)] == [1, 1, 0, 1]
    assert dataset[0]["net_input.src_tokens"].tolist() == [0, 4, 7, 8, 2]


def test_only_what_fairseq_needs_is_left(data):
    run(data)
    run(data)  # a second time, over the first
    names = {path.relative_to(data / "binarized").as_posix() for path in (data / "binarized").rglob("*.*")}
    expected = {f"{split}.{kind}" for split in ("train", "valid", "test") for kind in ("bin", "idx")} | {
        "dict.txt"
    }
    assert names == {f"{part}/{name}" for part in ("input0", "label") for name in expected} | {
        "binarized.json"
    }
    assert not [path for path in data.iterdir() if path.name.startswith(".")]


def test_other_pieces_than_ids(data):
    text = (data / "test.pieces").read_text(encoding="utf-8")
    (data / "test.pieces").write_text(text.replace("▁un", "▁la"), encoding="utf-8")
    error = refused(data)
    assert error.what == "fairseq reads back wrong token ids in the split 'test'"
    assert error.where.endswith("test.jsonl, line 4")
    assert "expected: [6, 2]" in error.found
    assert "read:     [5, 2]" in error.found
    assert "remove the folder of the tokens" in error.hint


def test_other_labels_than_classes(data):
    (data / "train.label").write_text("1\n0\n0\n1\n")
    error = refused(data)
    assert error.what == "fairseq reads back wrong classes in the split 'train'"
    assert error.where.endswith("train.jsonl, line 2")
    assert "expected: [1]" in error.found


@pytest.mark.parametrize(("label", "read"), [("2", -1), ("-1", -1), ("pos", -1)])
def test_a_label_that_is_no_class(data, label, read):
    rows = [{"id": f"test-{i}", "label": read, "ids": [0, 4, 2]} for i in range(1)]
    write_jsonl(data / "test.jsonl", rows)
    (data / "test.pieces").write_text("▁le\n", encoding="utf-8")
    (data / "test.label").write_text(f"{label}\n")
    error = refused(data)
    assert error.what == "a label of the split 'test' is none of the 2 classes"
    assert error.where.endswith("test.jsonl, line 1")


def test_another_number_of_examples(data):
    with open(data / "validation.pieces", "a", encoding="utf-8") as stream:
        stream.write("▁le\n")
    error = refused(data)
    assert error.what == "fairseq reads back a wrong number of examples in the split 'validation'"
    assert error.found == "token ids: 5 examples, expected 4"


def test_a_path_with_a_comma(data, tmp_path_factory):
    odd = tmp_path_factory.mktemp("a,b")
    for path in data.iterdir():
        (odd / path.name).write_bytes(path.read_bytes())
    error = refused(odd)
    assert error.what == "fairseq-preprocess reads a comma in a path as the end of the path"
    assert "whose path has no comma" in error.hint


@pytest.fixture
def numbers(data):
    """The same texts with numbers to predict."""
    write_json(data / "labels.json", {"mean": 1.5, "sd": 0.5})
    marks = [0.1, 2.0, -3.25, 1e-05]
    for split in SPLITS:
        (data / f"{split}.label").write_text("".join(f"{mark!r}\n" for mark in marks))
        rows = read_jsonl(data / f"{split}.jsonl")
        write_jsonl(data / f"{split}.jsonl", [row | {"label": m} for row, m in zip(rows, marks, strict=True)])
    return data


def test_fairseq_reads_numbers_as_they_are(numbers):
    summary = run(numbers)
    assert summary.keys() == {"splits"}
    from fairseq.tasks.sentence_prediction import SentencePredictionConfig, SentencePredictionTask

    settings = SentencePredictionConfig(data=str(numbers / "binarized"), num_classes=1, init_token=0)
    settings.no_shuffle, settings.regression_target, settings.seed = True, True, 1
    settings.max_positions = 40
    task = SentencePredictionTask.setup_task(settings)
    found = task.load_dataset("valid")
    assert [found[index]["target"] for index in range(4)] == [[0.1], [2.0], [-3.25], [1e-05]]


def test_another_number_is_an_error(numbers):
    (numbers / "test.label").write_text("0.1\n2.0\n-3.25\n1e-06\n")
    error = refused(numbers)
    assert "wrong numbers" in error.what
    assert "line 4" in error.where
