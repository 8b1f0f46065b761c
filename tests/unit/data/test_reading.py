"""Files as people have them: every format and dialect gives the same examples, and every fault its place."""

import datetime
import gzip
import io
import json
import logging

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders_datasets import SPLITS, define_dataset, write_source
from builders_web import hub, serving

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl
from seedbed.data.preparation import prepare as prepare_dataset
from seedbed.sources import fetch

ROWS = [("bon livre", "1"), ("nul !", "0"), ("un été à relire", "1")]
COLUMNS = {"text": ["text"], "label": "label"}
EXPECTED = [("bon livre", 1), ("nul !", 0), ("un été à relire", 1)]


def prepare(tmp_path, form, contents, **changes):
    """The training examples of a dataset with these files, as (text, class)."""
    manifest = write_source(tmp_path / "source", contents)
    prepare_dataset("d", define_dataset(form, **changes), manifest, tmp_path / "out", {})
    return [(row["text"], row["label"]) for row in read_jsonl(tmp_path / "out/train.jsonl")]


def error(tmp_path, form, contents, **changes):
    with pytest.raises(SeedbedError) as caught:
        prepare(tmp_path, form, contents, **changes)
    assert not (tmp_path / "out").exists()
    return caught.value


def in_all_splits(content, ending=""):
    return {f"{split}{ending}": content for split in SPLITS}


def of(ending):
    return {split: f"{split}{ending}" for split in SPLITS}


def table(mark=",", header="text{}label", rows=ROWS):
    head = [header.format(mark)] if header else []
    return "\n".join([*head, *(f"{text}{mark}{label}" for text, label in rows)]) + "\n"


def parquet(columns=None, **options):
    stream = io.BytesIO()
    texts, labels = zip(*ROWS, strict=True)
    table = pa.table(columns or {"text": list(texts), "label": [int(label) for label in labels]})
    pq.write_table(table, stream, **options)
    return stream.getvalue()


def workbook(*sheets, header=("text", "label")):
    """A workbook; each sheet is a name and rows, by default ROWS with their labels as numbers."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets or [("Feuille 1", None)]:
        sheet = book.create_sheet(name)
        rows = [(text, int(label)) for text, label in ROWS] if rows is None else rows
        for row in [header, *rows] if header and rows else rows:
            sheet.append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


OBJECTS = [{"text": text, "label": int(label), "more": None} for text, label in ROWS]
NESTED = [{"review": {"text": text}, "label": {"value": label}} for text, label in ROWS]
NAMES = {"text": ["review.text"], "label": "label.value"}

# --- every format -----------------------------------------------------------------------------------------

FORMATS = {
    "csv": ("csv", table(), {}),
    "semicolon": ("csv", table(";"), {}),
    "tab": ("csv", table("\t"), {}),
    "bar": ("csv", table("|"), {}),
    "delimiter": ("csv", table("#"), {"delimiter": "#"}),
    "mark of Excel": ("csv", f"sep=;\r\n{table(';')}", {}),
    "tsv": ("tsv", table("\t"), {}),
    "header": ("csv", table(header=""), {"header": ["text", "label"]}),
    "header, semicolon": ("csv", table(";", header=""), {"header": ["text", "label"]}),
    "header, tsv": ("tsv", table("\t", header=""), {"header": ["text", "label"]}),
    "cp1252": ("csv", table().encode("cp1252"), {"encoding": "cp1252"}),
    "utf-16": ("csv", table().encode("utf-16"), {"encoding": "utf-16"}),
    "utf-16-le with a mark": ("csv", f"\ufeff{table()}".encode("utf-16-le"), {"encoding": "utf-16-le"}),
    "jsonl": ("jsonl", "".join(json.dumps(row) + "\n" for row in OBJECTS), {}),
    "jsonl, nested": ("jsonl", "".join(json.dumps(row) + "\n" for row in NESTED), {"columns": NAMES}),
    "json": ("json", json.dumps(OBJECTS), {}),
    "json, data": ("json", json.dumps({"data": OBJECTS}), {}),
    "json, records": (
        "json",
        json.dumps({"data": {"items": NESTED, "n": 3}}),
        {"records": "data.items", "columns": NAMES},
    ),
    "parquet": ("parquet", parquet(), {}),
    "parquet, gzip": ("parquet", parquet(compression="gzip"), {}),
    "parquet, struct": ("parquet", parquet({"review": [row["review"] for row in NESTED],
                                            "label": [row["label"] for row in NESTED]}), {"columns": NAMES}),
    "parquet, categories": ("parquet", parquet({"text": [text for text, _ in ROWS], "label":
                                                pa.array(["b", "a", "b"]).dictionary_encode()}),
                            {"labels": ["a", "b"]}),
    "parquet, floats": ("parquet", parquet({"text": [text for text, _ in ROWS],
                                            "label": [1.0, 0.0, 1.0]}), {}),
    "excel": ("excel", workbook(), {}),
    "excel, sheet": ("excel", workbook(("1", [("a", 1)]), ("2", None)), {"sheet": "2"}),
    "excel, empty sheets": ("excel", workbook(("1", []), ("2", None), ("3", [])), {}),
    "excel, empty rows": ("excel", workbook(("1", [(), ("text", "label"), *ROWS, ()]), header=()), {}),
    "excel, header": ("excel", workbook(header=()), {"header": ["text", "label"]}),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_examples(tmp_path, name):
    form, content, changes = FORMATS[name]
    assert prepare(tmp_path, form, in_all_splits(content), **changes) == EXPECTED


@pytest.mark.parametrize("name", ["csv", "tsv", "jsonl", "json", "cp1252"])
@pytest.mark.parametrize("named", ["train.gz", "train"])
def test_gzip_of_each_format_of_text(tmp_path, name, named):
    form, content, changes = FORMATS[name]
    data = gzip.compress(content if isinstance(content, bytes) else content.encode())
    files = {**in_all_splits(content), "train.gz": data}
    del files["train"]
    assert prepare(tmp_path, form, files, files=of("") | {"train": named}, **changes) == EXPECTED


def test_gzip_of_the_lab_format(tmp_path):
    files = in_all_splits("a\nb\n", ".review") | in_all_splits("1\n0\n", ".label")
    files["train.review.gz"] = gzip.compress(files.pop("train.review").encode())
    assert prepare(tmp_path, "lab", files) == [("a", 1), ("b", 0)]


def folders(split="train", texts=ROWS):
    return {f"{split}/{label}/{place}_9.txt": f"{text}\n" for place, (text, label) in enumerate(texts)}


def test_folders_of_text_files(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    files = {name: text for split in SPLITS for name, text in folders(split).items()}
    files |= {"train/urls.txt": "http://", "train/1/.DS_Store": "x", "README": "y"}
    files["train/1/7_8.txt.gz"] = gzip.compress("\ufeffTrès\r\nbon".encode())
    found = prepare(tmp_path, "folders", files)
    assert found == [("nul !", 0), ("bon livre", 1), ("un été à relire", 1), ("Très bon", 1)]
    assert "left out 2 files that are no texts of a class" in caplog.text


def test_folders_in_another_encoding_and_below_a_folder(tmp_path):
    files = {
        f"data/{name}": text.encode("cp1252") for split in SPLITS for name, text in folders(split).items()
    }
    found = prepare(tmp_path, "folders", files, encoding="cp1252", files=of("") | {
        split: f"data/{split}" for split in SPLITS})  # fmt: skip
    assert sorted(found) == sorted(EXPECTED)


def test_several_files_of_a_split(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    files = {"part-1.csv": table(rows=ROWS[:1]), "part-2.csv": table(rows=ROWS[1:]), **in_all_splits(table())}
    paths = of("") | {"train": "part-*.csv"}
    assert prepare(tmp_path, "csv", files, files=paths) == EXPECTED
    assert "datasets.d.files.train: 2 files: part-1.csv, part-2.csv" in caplog.text
    ids = [row["id"] for row in read_jsonl(tmp_path / "out/train.jsonl")]
    assert ids == ["train-0", "train-1", "train-2"]
    files["part-2.csv"] = table(rows=[*ROWS[1:], ("x", "9")])
    assert "part-2.csv, line 4" in error(tmp_path / "again", "csv", files, files=paths).where


def test_what_a_dialect_is_taken_for_stands_in_the_log(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    prepare(tmp_path, "csv", in_all_splits(table(";").encode("cp1252")), encoding="cp1252")
    assert "train: read as cp1252" in caplog.text
    assert "train: read with the delimiter ';', which fits the columns" in caplog.text


# --- files as they are published --------------------------------------------------------------------------

# layouts of public sets, with sentences of our own: GLUE's MRPC and STS-B, TREC, AG News
MRPC = (
    "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    '1\t70\t71\tHe said "no.\tHe said the " foodservice pie business.\n'
    "0\t80\t81\tIt rose 2 %.\tIt fell.\n"
)
TREC = 'DESC:manner How did serfdom develop ?\nENTY:cremat What "films , \nENTY:animal What fowl ?\n'.encode(
    "latin-1"
)
AG_NEWS = '"3","Wall St. Bears, again","Short ""sellers"" are\\back."\n"4","Title","Text"\n'


def test_glue_has_quotes_that_are_letters(tmp_path):
    found = prepare(
        tmp_path, "tsv", in_all_splits(MRPC), quoting="none",
        columns={"text": ["#1 String", "#2 String"], "label": "Quality"},
    )  # fmt: skip
    assert found[0] == ('He said "no. He said the " foodservice pie business.', 1)
    told = error(tmp_path / "quotes", "tsv", in_all_splits(MRPC.replace('He said "no.', '"no" he')),
                 columns={"text": ["#1 String"], "label": "Quality"})  # fmt: skip
    assert "quotes are not balanced" in told.what
    assert "quoting: none" in told.hint


def test_trec_has_no_header_and_a_space_after_the_label(tmp_path):
    groups = {"labels": ["DESC", "ENTY"], "groups": [["DESC:manner"], ["ENTY:cremat", "ENTY:animal"]]}
    found = prepare(
        tmp_path, "csv", in_all_splits(TREC), quoting="none", delimiter=" ", header=["label", "text"],
        encoding="latin-1", **groups,
    )  # fmt: skip
    assert found == [("How did serfdom develop ?", 0), ('What "films ,', 1), ("What fowl ?", 1)]


def test_ag_news_has_no_header(tmp_path):
    found = prepare(tmp_path, "csv", in_all_splits(AG_NEWS), header=["label", "title", "text"],
                    columns={"text": ["title", "text"], "label": "label"}, labels=["3", "4"])  # fmt: skip
    assert found == [('Wall St. Bears, again Short "sellers" are\\back.', 0), ("Title Text", 1)]


def class_label(values):
    """Parquet as the hub has it: the names of the labels are in the schema's metadata."""
    kind = {"_type": "ClassLabel", "names": ["neg", "pos"]}
    info = {"info": {"features": {"text": {"dtype": "string", "_type": "Value"}, "label": kind}}}
    table = pa.table({"text": [text for text, _ in ROWS], "label": pa.array(values, pa.int64())})
    stream = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({"huggingface": json.dumps(info)}), stream)
    return stream.getvalue()


@pytest.mark.parametrize("labels", [["neg", "pos"], ["0", "1"]])
@pytest.mark.parametrize(
    ("names", "paths"),
    [
        (["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet",
          "data/test-00000-of-00001.parquet"], {"train": "train", "test": "test"}),
        (["default/train/0000.parquet", "default/train/0001.parquet", "default/test/0000.parquet"],
         {"train": "train", "test": "test"}),
        (["fr/train-00000-of-00001-ab12.parquet", "fr/train-00001-of-00001-ab12.parquet",
          "en/train-00000-of-00001.parquet", "fr/test.parquet"], {"train": "fr/train", "test": "test"}),
    ],
    ids=["data", "converted", "subsets"],
)  # fmt: skip
def test_a_dataset_of_the_hub(tmp_path, monkeypatch, labels, names, paths):
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    commit = "1" * 40
    files = {name: class_label([1, 0, 1]) for name in names}
    files |= {".gitattributes": b"", "README.md": b"---\n---\n"}
    with serving(hub({"main": commit}, {commit: files}, kind="datasets")) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        source = {"locations": ["hf://datasets/owner/name"], "include": ["*.parquet"]}
        fetch.fetch("s", source, tmp_path / "s")
    definition = define_dataset("parquet", labels=labels, files={"validation": "test", **paths})
    prepare_dataset("d", definition, tmp_path / "s/manifest.json", tmp_path / "out", {})
    found = [(row["text"], row["label"]) for row in read_jsonl(tmp_path / "out/train.jsonl")]
    assert found == EXPECTED * 2


def test_a_split_in_several_folders_of_the_hub_is_asked_for(tmp_path):
    files = {f"{name}/{split}-00000-of-00001.parquet": parquet() for name in ("de", "fr") for split in SPLITS}
    told = error(tmp_path, "parquet", files)
    assert "several folders of the source have Parquet files of 'train'" in told.what
    assert told.found == "de/, fr/"
    assert told.hint == "give one of them: de/train"


def test_parquet_where_a_saved_dataset_was_expected(tmp_path):
    told = error(
        tmp_path, "huggingface", {f"data/{split}-00000-of-00001.parquet": parquet() for split in SPLITS}
    )
    assert "no file 'train/state.json'" in told.what
    assert "the source has Parquet files: set format: parquet" in told.hint


# --- labels -----------------------------------------------------------------------------------------------


def labelled(*values):
    return in_all_splits("".join(json.dumps({"text": f"texte {n}", "label": value}) + "\n"
                                 for n, value in enumerate(values)))  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "values", "classes"),
    [
        (["0", "1"], [1.0, 0, "1", "0.0", 1e0, "1.00"], [1, 0, 1, 0, 1, 1]),
        (["false", "true"], [True, False, "True", "FALSE", "true"], [1, 0, 1, 0, 1]),
        (["1", "1.0"], [1, 1.0, "1.0"], [0, 1, 1]),
        (["0.5", "1.5"], [0.5, "1.50", "5e-1"], [0, 1, 0]),
        (["-1", "1"], [-1, 1, "-1.0"], [0, 1, 0]),
    ],
)
def test_numbers_and_truth_values_are_what_they_mean(tmp_path, labels, values, classes):
    found = prepare(tmp_path, "jsonl", labelled(*values), labels=labels)
    assert [label for _, label in found] == classes


@pytest.mark.parametrize(
    ("labels", "value", "told"),
    [
        (["1", "2"], "01", "YAML reads 01 without quotes as 1: put the labels into quotes"),
        (["8", "1"], "010", "YAML reads 010 without quotes as 8: put the labels into quotes"),
        (
            ["false", "true"],
            "no",
            "YAML reads no without quotes as a truth value: put the labels into quotes",
        ),
        (["0", "1"], True, 'To use the labels of the file: labels: ["0", "1", "true"]'),
        (["0", "1"], "1,0", 'To use the labels of the file: labels: ["0", "1", "1,0"]'),
    ],
)
def test_labels_that_yaml_reads_otherwise_are_explained(tmp_path, labels, value, told):
    values = labels if labels[0] != "8" else []
    assert told in error(tmp_path, "jsonl", labelled(*values, value), labels=labels).hint


GROUPS = {"labels": ["low", "high"], "groups": [["1", "2", "3", "4"], {"above": 6.5, "at_most": 10}]}


def test_grouped_labels(tmp_path):
    values = [1, "2", 3.0, "4.0", 7, 10, "6.51"]
    found = prepare(tmp_path, "jsonl", labelled(*values), **GROUPS)
    assert [label for _, label in found] == [0, 0, 0, 0, 1, 1, 1]


def test_a_label_of_no_group_is_an_error_or_dropped_and_counted(tmp_path, caplog):
    values = [1, 5, 7, 6, 5, None, 2, 10.5, "nan"]
    told = error(tmp_path, "jsonl", labelled(1, 5, 7, 6, 5), **GROUPS)
    assert told.what == "a label is not among the declared ones (and 2 more like it)"
    assert "train, line 2" in told.where
    assert "declared labels: low: 1, 2, 3, 4; high: above 6.5 and at most 10" in told.hint
    assert "other_labels: drop leaves such examples out" in told.hint
    found = prepare(tmp_path, "jsonl", labelled(*values), other_labels="drop", **GROUPS)
    assert found == [("texte 0", 0), ("texte 2", 1), ("texte 6", 0)]
    recorded = {"number": 6, "commonest": {"5": 2, "6": 1, "null": 1, "10.5": 1, "nan": 1}}
    splits = read_json(tmp_path / "out/splits.json")
    assert splits["other_labels"] == dict.fromkeys(SPLITS, recorded)
    assert [row["id"] for row in read_jsonl(tmp_path / "out/train.jsonl")] == [
        "train-0",
        "train-2",
        "train-6",
    ]
    assert (
        "d, train: dropped 6 of 9 examples, whose labels are none of the declared ones: 5: 2" in caplog.text
    )


# --- splits and samples -----------------------------------------------------------------------------------


def one_file(number=200, rare=()):
    texts = [f"texte numéro {n} avec des mots {n * 7} et {n * 11}" for n in range(number)]
    classes = [index % 2 for index in range(number)]
    for index in rare:
        classes[index] = 2
    return table(rows=list(zip(texts, classes, strict=True)))


ONE = {"train": "all.csv", "validation": None, "test": None}


def split_ids(tmp_path):
    return {split: [row["id"] for row in read_jsonl(tmp_path / "out" / f"{split}.jsonl")] for split in SPLITS}


def test_one_file_is_divided_into_three_splits(tmp_path):
    asked = {"size": 0.2, "seed": 0, "together": "near"}
    changes = {"files": ONE, "test_split": asked, "validation_split": {"size": 20, "seed": 1}}
    prepare(tmp_path, "csv", {"all.csv": one_file()}, near_duplicates=0.8, **changes)
    ids = split_ids(tmp_path)
    assert {split: len(found) for split, found in ids.items()} == {"train": 140, "validation": 20, "test": 40}
    assert sorted(name for found in ids.values() for name in found) == sorted(
        f"train-{n}" for n in range(200)
    )
    for split, found in ids.items():
        classes = [row["label"] for row in read_jsonl(tmp_path / "out" / f"{split}.jsonl")]
        assert sum(classes) == len(found) / 2
    splits = read_json(tmp_path / "out/splits.json")
    assert splits["test"] == {"size": 0.2, "seed": 0, "together": "near", "drawn_from": "train"}
    assert splits["validation"] == {"size": 20, "seed": 1, "drawn_from": "train"}
    assert splits["ids"] == {"test": ids["test"], "validation": ids["validation"]}
    assert splits["read"] == {"train": 200}
    # the test split does not depend on that of validation
    changes["validation_split"] = {"size": 60, "seed": 5}
    prepare(tmp_path, "csv", {"all.csv": one_file()}, near_duplicates=0.8, **changes)
    assert split_ids(tmp_path)["test"] == ids["test"]


def test_near_duplicates_do_not_leak_into_a_drawn_test_split(tmp_path):
    words = [" ".join(f"mot{n}x{place}" for place in range(40)) for n in range(60)]
    rows = [(f"{text} {end}", str(n % 2)) for n, text in enumerate(words) for end in ("fin", "autre fin")]
    asked = {"size": 0.2, "seed": 0, "together": "near"}
    changes = {"files": ONE, "test_split": asked, "validation_split": asked}
    prepare(tmp_path, "csv", {"all.csv": table(rows=rows)}, near_duplicates=0.8, **changes)
    lines = (tmp_path / "out/duplicates.csv").read_text().splitlines()[1:]
    assert len(lines) == 60
    assert all(line.split(",")[0] == line.split(",")[2] for line in lines)


def test_a_class_that_is_too_rare_for_a_drawn_split_is_told(tmp_path, caplog):
    changes = {"files": ONE, "test_split": {"size": 0.1, "seed": 0}, "labels": ["0", "1", "2"]}
    prepare(tmp_path, "csv", {"all.csv": one_file(rare=[3, 50])}, label_names=["a", "b", "c"], **changes)
    assert (
        "d, test: classes too rare for this split, which has one example or none: 2 (0 of 2)" in caplog.text
    )
    assert [row["label"] for row in read_jsonl(tmp_path / "out/train.jsonl")].count(2) == 2


def test_a_sample_is_recorded_and_the_same_again(tmp_path):
    files = {"train.csv": one_file(300), "test.csv": one_file(100)}
    paths = {"train": "train.csv", "validation": None, "test": "test.csv"}
    asked = {"train": 60, "validation": None, "test": 0.5, "seed": 0}
    prepare(tmp_path, "csv", files, files=paths)
    whole = split_ids(tmp_path)
    prepare(tmp_path / "small", "csv", files, files=paths, sample=asked)
    ids = split_ids(tmp_path / "small")
    assert {split: len(found) for split, found in ids.items()} == {"train": 60, "validation": 30, "test": 50}
    assert ids["validation"] == whole["validation"]
    assert set(ids["train"]) <= set(whole["train"])
    assert read_json(tmp_path / "small/out/splits.json")["sample"] == {
        "seed": 0,
        "train": {"size": 60, "of": 270, "ids": ids["train"]},
        "test": {"size": 0.5, "of": 100, "ids": ids["test"]},
    }
    assert sum(row["label"] for row in read_jsonl(tmp_path / "small/out/train.jsonl")) == 30
    prepare(tmp_path / "other", "csv", files, files=paths, sample=asked | {"seed": 1})
    assert split_ids(tmp_path / "other")["train"] != ids["train"]


# --- faults -----------------------------------------------------------------------------------------------

NAN = {"text": ["a", "b", "c"], "label": pa.array([1.0, float("nan"), 0.0])}
FAULTS = {
    "another encoding": ("csv", table().encode("cp1252"), {}, "the file is not UTF-8",
                         "set encoding: cp1252"),
    "bytes that cp1252 lacks": ("csv", b"text,label\n\x81\xe9,1\n", {}, "the file is not UTF-8",
                                "set encoding: latin-1"),
    "the wrong encoding": ("csv", table(), {"encoding": "cp1252"}, "the file is UTF-8, not cp1252",
                           "leave encoding out"),
    "UTF-8 as UTF-16": ("csv", b"text,label\na,0\nbc,1\n", {"encoding": "utf-16"},
                        "the file is UTF-8, not utf-16", "leave encoding out"),
    "not in its encoding": ("csv", table().encode("cp1252"), {"encoding": "ascii"}, "the file is not ascii",
                            "set encoding: cp1252"),
    "damaged gzip": ("csv", gzip.compress(table().encode() * 99)[:-20], {},
                     "the compressed file is damaged or truncated", "gzip -t"),
    "a bomb": ("csv", gzip.compress(bytes(32 * 2**20)), {}, "refused to decompress the file", "gunzip"),
    "header in file and config": ("csv", table(), {"header": ["text", "label"]},
                                  "the first line names the columns, although", "leave header out"),
    "header of another length": ("csv", table(header=""), {"header": ["text", "label", "more"]},
                                 "differ in the number of cells", "header in the config names 'text'"),
    "no header": ("csv", table(header=""), {}, "column 'text' is not in the header", "header: [label, text]"),
    "missing label column": ("parquet", parquet({"text": ["a"], "labels": [1]}), {},
                             "the dataset has no column 'label'", "did you mean 'labels'?"),
    "missing label key": ("json", '[{"text": "a", "lable": 1}]', {}, "key 'label' is missing",
                          "did you mean 'lable'?"),
    "missing label in Excel": ("excel", workbook(header=("text", "note")), {},
                               "column 'label' is not in the header", "columns: {label: note}"),
    "list of a column": ("parquet", parquet({"text": [["a"]], "label": [1]}), {},
                         "column 'text' is not a column of text", "columns.text"),
    "damaged Parquet": ("parquet", parquet()[:-8], {}, "the file cannot be read as Parquet",
                        "fetch it again"),
    "no workbook": ("excel", table(), {}, "the file cannot be read as an .xlsx workbook", "save it as .xlsx"),
    "several sheets": ("excel", workbook(("1", None), ("2", None)), {}, "the workbook has several sheets",
                       "sheet of the dataset"),
    "no such sheet": ("excel", workbook(("Avis", None)), {"sheet": "Avi"}, "the workbook has no sheet 'Avi'",
                      "did you mean 'Avis'?"),
    "a date in a text": ("excel", workbook(("1", [("a", 1), (datetime.date(2024, 1, 31), 0)])), {},
                         "a text is not a string", "in Excel as text"),
    "an empty cell": ("excel", workbook(("1", [("a", 1), (None, 0)])), {}, "a text is null",
                      "fill in the text"),
    "an empty label": ("csv", table(rows=[*ROWS, ("x", "")]), {}, "a label is missing", "other_labels: drop"),
    "NaN in Parquet": ("parquet", parquet(NAN), {}, "a label is missing", "other_labels: drop"),
    "NaN in JSON": ("json", '[{"text": "a", "label": NaN}]', {}, "a label is missing", "fill in the label"),
    "null in JSON": ("json", '[{"text": "a", "label": null}]', {}, "a label is missing", "fill in the label"),
    "mixed types": ("json", '[{"text": "a", "label": 1}, {"text": 3, "label": 0}]', {},
                    "a text is not a string", "in JSON in quotes"),
    "one class only": ("csv", table(rows=ROWS[:1] * 3), {}, "a class has no training example",
                       "add examples"),
    "no list": ("json", '{"items": []}', {}, "the file is not a list of examples", "records: OUTER.INNER"),
    "no list at the path": ("json", '{"data": {"item": []}}', {"records": "data.items"},
                            "no list of examples is at 'data.items'", "records: OUTER.INNER"),
    "a list as JSON lines": ("jsonl", json.dumps(OBJECTS), {}, "a line is not a JSON object",
                             "set format: json"),
    "JSON lines as a list": ("json", '{"text": "a"}\n{"text": "b"}\n', {}, "the file is not JSON",
                             "set format: jsonl"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_with_its_file_and_a_remedy(tmp_path, name):
    form, content, changes, what, remedy = FAULTS[name]
    told = error(tmp_path, form, in_all_splits(content), **changes)
    assert what in told.what
    assert remedy in told.hint
    assert "train" in told.where
    if what == "a label is missing":
        assert told.where.split(" (from")[0].endswith(
            {"csv": "line 5", "json": "item 1", "parquet": "row 2"}[form]
        )


def test_a_folder_without_texts_is_told(tmp_path):
    told = error(tmp_path, "folders", {"train/pos.csv": "x", **folders("validation"), **folders("test")})
    assert "the split has no folder with text files" in told.what
    assert "found" in str(told)
    assert "pos.csv" in told.found
    told = error(tmp_path / "other", "folders", folders("trains"))
    assert "the source has no file 'train'" in told.what


def test_a_folder_of_no_class_is_told_with_the_file(tmp_path):
    files = {**folders(), **folders("validation"), **folders("test"), "train/unsup/0_0.txt": "sans note"}
    told = error(tmp_path, "folders", files)
    assert "a label is not among the declared ones" in told.what
    assert "train/unsup/0_0.txt, line 1" in told.where
    assert len(prepare(tmp_path, "folders", files, other_labels="drop")) == 3
