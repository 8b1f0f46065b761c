"""Texts with any number of labels: every spelling of a set gives the same files; mistakes and draws."""

import io
import json
import logging
from collections import Counter

import datasets
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders_datasets import SPLITS, define_dataset, write_source

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl
from seedbed.data.duplicates import read_duplicates
from seedbed.data.preparation import prepare as prepare_dataset

TEXTS = ["bon livre", "nul !", "moyen", "long"]
SETS = [["a", "c"], [], ["b"], ["c"]]
CODES = [[1, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 1]]


def define(form, ending=None, **changes):
    columns = {"text": ["text"], "label": changes.pop("column", "label")}
    names = {"labels": ["a", "b", "c"], "label_names": ["a", "b", "c"]}
    return define_dataset(
        form, f".{ending or form}", **{"task": "multilabel", "columns": columns, **names, **changes}
    )


def prepare(tmp_path, contents, definition):
    manifest = write_source(tmp_path / "source", contents)
    prepare_dataset("d", definition, manifest, tmp_path / "out", {})
    return tmp_path / "out"


def error(tmp_path, contents, definition):
    with pytest.raises(SeedbedError) as caught:
        prepare(tmp_path, contents, definition)
    assert not (tmp_path / "out").exists()
    return caught.value


def lines(sets=SETS, texts=None):
    rows = zip(texts or TEXTS, sets, strict=True)
    return "".join(json.dumps({"text": text, "label": held}) + "\n" for text, held in rows)


def parquet(kind):
    table = pa.table({"text": TEXTS, "label": pa.array(SETS, pa.list_(kind))})
    stream = io.BytesIO()
    pq.write_table(table, stream)
    return stream.getvalue()


def workbook():
    book = openpyxl.Workbook()
    for row in [("text", "label"), *zip(TEXTS, ["a;c", None, "b", " c "], strict=True)]:
        book.active.append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


SPELLINGS = {
    "jsonl": (lines(), {}),
    "json": (json.dumps([json.loads(line) for line in lines().splitlines()]), {}),
    "csv": ("text,label\nbon livre,a;c\nnul !,\nmoyen,b\nlong, c \n", {"label_separator": ";"}),
    "tsv": ("label\ttext\na | c\tbon livre\n\tnul !\nb\tmoyen\nc\tlong\n", {"label_separator": "|"}),
    "parquet": (parquet(pa.string()), {}),
    "xlsx": (workbook(), {"label_separator": ";"}),
}


@pytest.mark.parametrize("ending", SPELLINGS)
def test_every_spelling_gives_the_same_files(tmp_path, ending):
    content, keys = SPELLINGS[ending]
    form = {"xlsx": "excel"}.get(ending, ending)
    contents = {f"{split}.{ending}": content for split in SPLITS}
    out = prepare(tmp_path, contents, define(form, ending, **keys))
    for split in SPLITS:
        rows = read_jsonl(out / f"{split}.jsonl")
        assert [(row["text"], row["label"]) for row in rows] == list(zip(TEXTS, CODES, strict=True))
        assert (out / f"{split}.label").read_text() == "1 0 1\n0 0 0\n0 1 0\n0 0 1\n"
    assert read_json(out / "labels.json") == {"labels": ["a", "b", "c"], "names": ["a", "b", "c"]}


def test_a_column_for_each_label(tmp_path):
    content = "text,a,b,c\nbon livre,1,0,true\nnul !,0,0,False\nmoyen,0,1,0\nlong,0.0,0,1.0\n"
    definition = define("csv", column=["a", "b", "c"])
    out = prepare(tmp_path, {f"{split}.csv": content for split in SPLITS}, definition)
    assert [row["label"] for row in read_jsonl(out / "train.jsonl")] == CODES
    wrong = content.replace("0,0,False", "0,,False")
    told = error(tmp_path / "again", {f"{split}.csv": wrong for split in SPLITS}, definition)
    assert "train.csv, line 3" in told.where
    assert told.found == "'' in column 'b'"


def test_lists_of_a_saved_dataset_and_its_names(tmp_path):
    names = datasets.ClassLabel(names=["c", "a", "b"])
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.List(names)})
    rows = {"text": TEXTS, "label": [[1, 0], [], [2], [0]]}
    saved = datasets.Dataset.from_dict(rows, features=features)
    datasets.DatasetDict(dict.fromkeys(SPLITS, saved)).save_to_disk(tmp_path / "source/files")
    out = prepare(tmp_path, {}, define("huggingface") | {"files": {split: split for split in SPLITS}})
    assert [row["label"] for row in read_jsonl(out / "train.jsonl")] == CODES


@pytest.mark.parametrize(
    ("wrong", "what", "found", "hint"),
    [
        (["a", "x"], "a label is not among the declared ones", "'x'", "declared labels: a, b, c"),
        (["a", "a"], "a text has a label twice", '["a", "a"]', "name each label of a text once"),
        (None, "the labels of a text are missing", "'null'", "an empty list"),
        ("a;b", "labels are text, and the dataset has no label_separator", "'a;b'", 'label_separator: ";"'),
        ({"a": 1}, "the labels of a text are not a list", '{"a": 1}', '["a", "b"]'),
        ([["a"]], "a label is neither text nor a number", '["a"] among [["a"]]', "as text"),
    ],
)
def test_a_wrong_set_is_told_with_its_line(tmp_path, wrong, what, found, hint):
    contents = {f"{split}.jsonl": lines() for split in SPLITS}
    contents["train.jsonl"] = lines([*SETS[:2], wrong, *SETS[3:]])
    told = error(tmp_path, contents, define("jsonl"))
    assert str(told).startswith(what)
    assert "train.jsonl, line 3" in told.where
    assert told.found == found
    assert hint in told.hint


def test_a_cell_of_csv_needs_a_separator(tmp_path):
    contents = {f"{split}.csv": "text,label\none,a|b\ntwo,b\n" for split in SPLITS}
    told = error(tmp_path, contents, define("csv"))
    assert "train.csv, line 2" in told.where
    assert 'label_separator: "|"' in told.hint


@pytest.mark.parametrize(("form", "content"), [("jsonl", lines()), ("parquet", parquet(pa.string()))])
def test_lists_of_labels_name_the_task(tmp_path, form, content):
    definition = define(form, task="classification")
    told = error(tmp_path, {f"{split}.{form}": content for split in SPLITS}, definition)
    assert "task: multilabel" in told.hint
    assert f"train.{form}" in told.where


def test_a_label_without_a_text_is_refused_or_allowed(tmp_path):
    contents = {f"{split}.jsonl": lines() for split in SPLITS}
    contents["test.jsonl"] = lines([["a"], [], ["a"], ["c"]])
    told = error(tmp_path / "test", contents, define("jsonl"))
    assert "none with b" in told.found
    assert "absent_labels: allow" in told.hint
    prepare(tmp_path / "allowed", contents, define("jsonl", absent_labels="allow"))
    contents["train.jsonl"] = contents["test.jsonl"]
    told = error(tmp_path / "train", contents, define("jsonl", absent_labels="allow"))
    assert "none with b" in told.found
    assert "datasets.d.labels" in told.hint


# --- draws ------------------------------------------------------------------------------------------------


def many(size=400):
    """Texts of frequent sets, and of rare ones of whose labels c is the rarest."""
    sets = [["a"], ["b"], ["a", "b"], []]
    found = [sets[index % 4] for index in range(size - 12)] + [["a", "c"], ["b", "c"], ["a", "b", "c"]] * 4
    return lines(found, [f"text number {index}" for index in range(size)])


def drawn(tmp_path, **changes):
    contents = {"train.jsonl": many(), "test.jsonl": lines()}
    definition = define("jsonl", **changes)
    definition["files"] = {"train": "train.jsonl", "validation": None, "test": "test.jsonl"}
    out = prepare(tmp_path, contents, definition)
    return {split: read_jsonl(out / f"{split}.jsonl") for split in SPLITS}, out


def test_a_split_has_each_frequent_set_and_each_rarest_label_in_proportion(tmp_path):
    splits, out = drawn(tmp_path, validation_split={"size": 0.25, "seed": 0})
    counts = Counter("with c" if row["label"][2] else tuple(row["label"]) for row in splits["validation"])
    assert counts.pop("with c") == 3  # a quarter of 12
    assert sorted(counts.values()) == [24, 24, 24, 25]
    assert read_json(out / "splits.json")["validation"]["size"] == 0.25
    again, _ = drawn(tmp_path / "again", validation_split={"size": 0.25, "seed": 1})
    assert again["validation"] != splits["validation"]


def test_near_duplicates_stay_together(tmp_path):
    texts = [
        f"un livre sur le numéro {index // 2} que je conseille" + "!" * (index % 2) for index in range(200)
    ]
    content = lines([SETS[index % 4] for index in range(200)], texts)
    definition = define("jsonl", near_duplicates=0.8, validation_split={"size": 0.2, "seed": 0})
    definition["validation_split"]["together"] = "near"
    definition["files"] = {"train": "train.jsonl", "validation": None, "test": "test.jsonl"}
    contents = {"train.jsonl": content, "test.jsonl": lines()}
    out = prepare(tmp_path, contents, definition)
    rows = read_duplicates(out / "duplicates.csv")
    assert not [row for row in rows if (row["split"], row["with_split"]) == ("validation", "train")]


def test_a_sample_is_a_part_of_a_larger_one_and_has_every_label(tmp_path, caplog):
    ids = []
    for size in (20, 60):
        sample = {"train": size, "validation": None, "test": None, "seed": 0}
        splits, _ = drawn(tmp_path / str(size), sample=sample)
        assert len(splits["train"]) == size
        assert all(any(row["label"][code] for row in splits["train"]) for code in range(3))
        ids.append({row["id"] for row in splits["train"]})
    assert ids[0] < ids[1]


def test_a_drawn_split_may_lack_a_rare_label_with_a_warning(tmp_path, caplog):
    texts = [f"text number {index}" for index in range(100)]
    sets = [["a"], ["b"]] * 49 + [["b"], ["c"]]
    definition = define("jsonl", validation_split={"size": 20, "seed": 0})
    definition["files"] = {"train": "train.jsonl", "validation": None, "test": "test.jsonl"}
    with caplog.at_level(logging.WARNING):
        prepare(tmp_path, {"train.jsonl": lines(sets, texts), "test.jsonl": lines()}, definition)
    assert "validation: no text with the label c" in caplog.text
    assert "sets of labels too rare for this split, which has one example or none: rare sets with c" in (
        caplog.text
    )
