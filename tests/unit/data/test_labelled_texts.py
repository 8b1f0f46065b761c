"""Preparing datasets: every format gives the same files, and every mistake is told with its place."""

import bz2
import io
import json
import logging
import unicodedata
import zipfile

import pytest
from builders_datasets import write_source

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl
from seedbed.data import clusters
from seedbed.data.duplicates import read_duplicates
from seedbed.data.preparation import prepare as prepare_dataset
from seedbed.data.texts import clean_line

SPLITS = ("train", "validation", "test")
STAMP = {"experiment": "demo", "fingerprint": "0123456789abcdef"}
ENDINGS = {"csv": ".csv", "tsv": ".tsv", "jsonl": ".jsonl", "lab": ""}


def define(form, labels=("neg", "pos"), **changes):
    return {
        "task": "classification",
        "format": form,
        "files": {split: f"{split}{ENDINGS[form]}" for split in SPLITS},
        "columns": {"text": "text", "label": "label"},
        "labels": list(labels),
        "label_names": list(labels),
        "validation_split": {"size": 0.1, "seed": 0},
        "neutral_ratings": "error",
        "near_duplicates": None,
        "drop_leaks": False,
        **changes,
    }


def good_files(form, split):
    return {
        "lab": {f"{split}.review": "bon livre\nnul !\nmoyen\n", f"{split}.label": "pos\nneg\npos\n"},
        "csv": {f"{split}.csv": 'id,text,label\n1,bon livre,pos\n2,"nul !",neg\n3,moyen,pos\n'},
        "tsv": {f"{split}.tsv": 'label\ttext\npos\tbon livre\nneg\t"nul !"\npos\tmoyen\n'},
        "jsonl": {
            f"{split}.jsonl": '{"text": "bon livre", "label": "pos"}\n{"label": "neg", "text": "nul !"}\n'
            '{"text": "moyen", "label": "pos", "more": 1}\n'
        },
    }[form]


def prepare(tmp_path, form, train, definition=None):
    """Prepare with these files for train and good ones for the other splits."""
    files = {**good_files(form, "validation"), **good_files(form, "test"), **train}
    manifest = write_source(tmp_path / "source", files)
    prepare_dataset("d", definition or define(form), manifest, tmp_path / "out", STAMP)
    return tmp_path / "out"


def error(tmp_path, form, train, definition=None):
    with pytest.raises(SeedbedError) as caught:
        prepare(tmp_path, form, train, definition)
    assert not (tmp_path / "out").exists()
    return str(caught.value)


def texts(out):
    return [row["text"] for row in read_jsonl(out / "train.jsonl")]


@pytest.mark.parametrize("form", ENDINGS)
def test_all_formats_give_the_same_files(tmp_path, form):
    out = prepare(tmp_path, form, good_files(form, "train"))
    for split in SPLITS:
        assert read_jsonl(out / f"{split}.jsonl") == [
            {"id": f"{split}-0", "text": "bon livre", "label": 1},
            {"id": f"{split}-1", "text": "nul !", "label": 0},
            {"id": f"{split}-2", "text": "moyen", "label": 1},
        ]
        assert (out / f"{split}.text").read_bytes() == b"bon livre\nnul !\nmoyen\n"
        assert (out / f"{split}.label").read_bytes() == b"1\n0\n1\n"
    assert read_json(out / "labels.json") == {"labels": ["neg", "pos"], "names": ["neg", "pos"]}
    assert read_json(out / "fingerprint.json") == STAMP
    assert read_json(out / "splits.json") == {
        "validation": "given",
        "ids": {},
        "read": dict.fromkeys(SPLITS, 3),
        "dropped_leaks": [],
    }
    assert len(list(out.iterdir())) == 13


def test_class_k_is_the_kth_declared_label(tmp_path):
    definition = define("lab", labels=("pos", "neg"), label_names=["good", "bad"])
    out = prepare(tmp_path, "lab", good_files("lab", "train"), definition)
    assert (out / "train.label").read_text() == "0\n1\n0\n"
    assert read_json(out / "labels.json") == {"labels": ["pos", "neg"], "names": ["good", "bad"]}


def test_numbers_and_booleans_of_jsonl_are_labels(tmp_path):
    lines = '{"text": "a", "label": 0}\n{"text": "b", "label": "1"}\n'
    definition = define("jsonl", labels=("0", "1"))
    files = {f"{split}.jsonl": lines for split in SPLITS}
    assert (prepare(tmp_path, "jsonl", files, definition) / "train.label").read_text() == "0\n1\n"
    files["train.jsonl"] += '{"text": "c", "label": true}\n'
    text = error(tmp_path / "again", "jsonl", files, definition)
    assert "train.jsonl, line 3" in text
    assert "'true'" in text


def test_harmless_things_are_mended_and_logged(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    review = b"\xef\xbb\xbfbon  livre \r\nnul !\r\n\r\n"
    out = prepare(tmp_path, "lab", {"train.review": review, "train.label": "pos\r\nneg\r\n"})
    assert texts(out) == ["bon  livre", "nul !"]
    assert "train.review: skipped the byte order mark" in caplog.text
    assert "train.review: read 3 CRLF line ends as LF" in caplog.text
    assert "train.review: ignored the blank line at the end" in caplog.text
    assert "d, train: 2 examples (neg: 1, pos: 1); words: text 2 to 2, median 2" in caplog.text


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
def test_crlf_bom_and_blank_line_in_tables(tmp_path, form):
    name, content = next(iter(good_files(form, "train").items()))
    data = b"\xef\xbb\xbf" + content.replace("\n", "\r\n").encode() + b"\r\n"
    assert texts(prepare(tmp_path, form, {name: data})) == ["bon livre", "nul !", "moyen"]


def test_only_line_feeds_end_lines(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    review = "un\u2028deux\nA\x85B\x0bC\x0c D\u2029E\tF\rG\x1cH\n"
    out = prepare(tmp_path, "lab", {"train.review": review, "train.label": "pos\nneg\n"})
    assert texts(out) == ["un deux", "A B C D E F G H"]
    assert (out / "train.text").read_text().splitlines() == texts(out)
    assert "train.review: 8 tabs, line ends and line separators inside texts became spaces" in caplog.text


def test_labels_file_with_crlf_mark_and_blank_line(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    label = b"\xef\xbb\xbfpos\r\nneg\r\n \r\n"
    out = prepare(tmp_path, "lab", {"train.review": "bon\nnul\n", "train.label": label})
    assert (out / "train.label").read_bytes() == b"1\n0\n"
    assert "train.label: skipped the byte order mark" in caplog.text
    assert "train.label: read 3 CRLF line ends as LF" in caplog.text
    assert "train.label: ignored the blank line at the end" in caplog.text


def in_format(form, rows):
    """{file name: content} of a training split with these (text, label)."""
    if form == "lab":
        return {
            "train.review": "".join(f"{text}\n" for text, _ in rows),
            "train.label": "".join(f"{label}\n" for _, label in rows),
        }
    if form == "jsonl":
        return {
            "train.jsonl": "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)
        }
    mark = {"csv": ",", "tsv": "\t"}[form]
    return {f"train.{form}": f"text{mark}label\n" + "".join(f"{text}{mark}{label}\n" for text, label in rows)}


@pytest.mark.parametrize("form", ENDINGS)
def test_long_reviews_and_emoji(tmp_path, form):
    # 100,000 characters, and more than the 131,072 that csv allows a cell by itself
    rows = [("é" * 100_000, "pos"), ("mot " * 50_000 + "fin", "neg"), ("👩‍👧 génial 😀", "pos")]
    assert texts(prepare(tmp_path, form, in_format(form, rows))) == [text for text, _ in rows]


@pytest.mark.parametrize("form", ENDINGS)
def test_control_characters_become_spaces(tmp_path, form, caplog):
    caplog.set_level(logging.INFO)
    rows = [("un\x01 deux\x00\x07trois\x1b[0m\x7f", "pos"), ("l\x92eau \x08" + "mot " * 50, "neg")]
    out = prepare(tmp_path, form, in_format(form, rows))
    # those from U+0080 on stay, for the audit to report
    assert texts(out) == ["un deux trois [0m", "l\x92eau " + ("mot " * 50).strip()]
    # the one at the end of a text is no more than white space there
    assert "6 control characters inside texts became spaces" in caplog.text


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark(tmp_path, encoding):
    data = "text,label\nbon livre,pos\nnul,neg\n".encode(encoding)
    text = error(tmp_path, "csv", {"train.csv": data})
    assert "the file is not UTF-8 text" in text
    assert "train.csv, line 1 (from" in text
    assert "33 NUL bytes among 66" in text
    assert f"set encoding: {encoding} for this dataset" in text


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        (" a \r\n\n b\t", "a b"),
        ("a  b", "a  b"),
        ("\ufeffa\ufeff", "a"),
        ("a\u00a0!", "a\u00a0!"),
        ("\n\u2028", ""),
    ],
)
def test_clean_line(raw, clean):
    assert clean_line(raw) == clean


def test_cell_of_several_lines(tmp_path):
    content = 'text,label\n"un ""livre"",\n\n  bon",pos\nb,neg\n'
    assert texts(prepare(tmp_path, "csv", {"train.csv": content})) == ['un "livre", bon', "b"]


def test_missing_split_file(tmp_path):
    text = error(tmp_path, "csv", {"trian.csv": "x"})
    assert "the source has no file 'train.csv'" in text
    assert "where: config, datasets.d.files.train; source fetched from https://host/data.zip" in text
    assert "found: the source has test.csv, trian.csv, validation.csv" in text
    assert "did you mean 'trian.csv'?" in text


def test_inner_folder_of_another_name(tmp_path):
    definition = define("csv")
    definition["files"]["train"] = "cls.books/train.csv"
    text = error(tmp_path, "csv", {"Livres (1)/train.csv": "x", "cls.books/test.csv": "x"}, definition)
    assert "the source has no file 'cls.books/train.csv'" in text
    assert "did you mean 'Livres (1)/train.csv'?" in text


def test_missing_label_file_of_the_lab_format(tmp_path):
    assert "no file 'train.label'" in error(tmp_path, "lab", {"train.review": "a\n"})


def test_not_utf8(tmp_path):
    data = b"bon\n" + "déçu\nété\n".encode("cp1252")
    text = error(tmp_path, "lab", {"train.review": data, "train.label": "pos\nneg\nneg\n"})
    assert "the file is not UTF-8 (and 1 more like it)" in text
    assert "train.review, line 2 (from https://host/data.zip), byte offset 5" in text
    assert r"found: b'\xe9\xe7u'" in text
    assert "set encoding: cp1252 (Windows in western Europe) or latin-1" in text


def test_utf16_is_recognised(tmp_path):
    text = error(tmp_path, "csv", {"train.csv": "text,label\n".encode("utf-16")})
    assert "begins as UTF-16" in text
    assert "set encoding: utf-16 for this dataset" in text


def test_byte_offset_counts_the_byte_order_mark(tmp_path):
    assert "byte offset 4" in error(tmp_path, "csv", {"train.csv": b"\xef\xbb\xbfa\xff"})


def test_lengths_differ(tmp_path):
    text = error(tmp_path, "lab", {"train.review": "a\nb\nc\n", "train.label": "pos\nneg\n"})
    assert "the files of texts and of labels differ in length" in text
    assert "train.review and " in text
    assert "train.label (from https://host/data.zip)" in text
    assert "found: 3 texts and 2 labels\n" in text


@pytest.mark.parametrize(
    ("review", "label", "told"),
    [
        ("a\nb\nc\n", "pos\nnegpos\n", "train.label, line 2, is not a declared label: 'negpos'"),
        ("a\nb\npos\nc\n", "pos\nneg\n", "train.review, line 3, is a label, not a text: 'pos'"),
        ("a\nb\rc\n", "pos\nneg\npos\n", "train.review, line 2, has a CR: it may have been two lines"),
    ],
)
def test_lengths_differ_and_a_line_tells_why(tmp_path, review, label, told):
    text = error(tmp_path, "lab", {"train.review": review, "train.label": label})
    assert f"labels; {told}" in text


@pytest.mark.parametrize(
    ("name", "other"), [("train.review", "train.label"), ("train.label", "train.review")]
)
def test_empty_line_of_the_lab_format(tmp_path, name, other):
    text = error(tmp_path, "lab", {name: "pos\n\nneg\n \nneg\n", other: "pos\nneg\nneg\n"})
    assert "a line is empty (and 1 more like it)" in text
    assert f"{name}, line 2 (from" in text


def test_two_blank_lines_at_the_end_are_too_many(tmp_path):
    text = error(tmp_path, "lab", {"train.review": "a\nb\n\n\n", "train.label": "pos\nneg\n"})
    assert "train.review, line 3" in text


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
def test_empty_line_in_tables(tmp_path, form):
    name, content = next(iter(good_files(form, "train").items()))
    lines = content.splitlines()
    text = error(tmp_path, form, {name: "\n".join([*lines[:2], "", *lines[2:]])})
    assert "a line is empty\n" in text
    assert f"{name}, line 3" in text


def test_label_that_is_not_declared(tmp_path):
    text = error(tmp_path, "csv", {"train.csv": 'text,label\n"a\nb",pos\nb,Neg\nc,2\n'})
    assert "a label is not among the declared ones (and 1 more like it)" in text
    assert "train.csv, line 4 (from" in text
    assert "found: 'Neg'" in text
    assert "did you mean 'neg'? (capital letters differ) declared labels: neg, pos; correct the file" in text


def test_label_error_of_the_lab_format_names_the_label_file(tmp_path):
    text = error(tmp_path, "lab", {"train.review": "a\nb\n", "train.label": "pos\n1\n"})
    assert "train.label, line 2" in text


def test_missing_column(tmp_path):
    text = error(tmp_path, "csv", {"train.csv": "texte,label\na,pos\n"})
    assert "column 'text' is not in the header" in text
    assert "train.csv, line 1" in text
    assert "found: columns 'texte', 'label'" in text
    assert (
        "hint:  did you mean 'texte'? write columns: {text: texte} in the block of the dataset, or " in text
    )


@pytest.mark.parametrize(
    ("header", "row", "hint"),
    [
        ("review,label", "bon,pos", "is it 'review'? write columns: {text: review} in the block"),
        ("id,review,label", f"a1,{'bon livre ' * 5},pos", "is it 'review'? write columns: {text: review}"),
        ("id,no,label", "a1,b,pos", "columns.text of the dataset in the config"),
        ("first,second,label", f"{'a' * 50},{'b' * 50},pos", "columns.text of the dataset in the config"),
        ("text,no", "bon,pos", "is it 'no'? write columns: {label: 'no'} in the block"),
        ("label", "pos", "columns.text of the dataset in the config"),
    ],
)
def test_the_column_that_is_probably_meant_is_named_with_the_yaml_to_write(tmp_path, header, row, hint):
    assert hint in error(tmp_path, "csv", {"train.csv": f"{header}\n{row}\n"})


@pytest.mark.parametrize(
    ("header", "told"), [("", "the file is empty"), ("text,text,label\n", "more than once")]
)
def test_headers_that_do_not_work(tmp_path, header, told):
    assert told in error(tmp_path, "csv", {"train.csv": header})


def test_number_of_cells(tmp_path):
    text = error(tmp_path, "csv", {"train.csv": "text,label\nbon, mais long,pos\nb,neg\nx\n"})
    assert "a row and the header differ in the number of cells (and 1 more like it)" in text
    assert "train.csv, line 2" in text
    assert "found: 3 cells, 2 columns" in text


@pytest.mark.parametrize(
    ("form", "content", "line"),
    [
        ("csv", 'text,label\na,pos\n"b" c,neg\n', 3),
        ("csv", 'text,label\na,pos\n"never closed,neg\nc,neg\n', 3),
        ("tsv", 'text\tlabel\n"never closed\tpos\nc"\tneg\n', 2),
    ],
)
def test_unbalanced_quotes(tmp_path, form, content, line):
    text = error(tmp_path, form, {f"train.{form}": content})
    assert "quotes are not balanced" in text
    assert f"train.{form}, line {line} (from" in text


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ('{"text": "a"', "not JSON"),
        ('["a", "pos"]', "not a JSON object"),
        ('{"txt": "a", "label": "pos"}', "key 'text' is missing"),
        ('{"text": null, "label": "pos"}', "a text is null"),
        ('{"text": 5, "label": "pos"}', "a text is not a string"),
        (r'{"text": "\ud800", "label": "pos"}', "half a surrogate pair"),
        ('{"text": " \\n", "label": "pos"}', "a text is empty"),
    ],
)
def test_bad_lines_of_jsonl(tmp_path, bad, told):
    text = error(tmp_path, "jsonl", {"train.jsonl": f'{{"text": "a", "label": "neg"}}\n{bad}\n'})
    assert told in text
    assert "train.jsonl, line 2" in text


def test_missing_key_shows_the_nearest(tmp_path):
    text = error(tmp_path, "jsonl", {"train.jsonl": '{"txt": "a", "label": "pos"}\n'})
    assert "found: keys 'txt', 'label'" in text
    assert "did you mean 'txt'?" in text


def test_empty_text(tmp_path):
    text = error(tmp_path, "csv", {"train.csv": "text,label\na,pos\n \t,neg\n,neg\n"})
    assert "a text is empty (and 1 more like it)" in text
    assert "train.csv, line 3" in text


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
@pytest.mark.parametrize(
    "text", ["\u200b", "\u00ad", "\u2060 \u2060", "\ufeff", "\u180e", "\u200f", "\u3164"]
)
def test_a_text_of_invisible_characters_is_empty(tmp_path, form, text):
    rows = {"csv": f"text,label\na,pos\n{text},neg\n", "tsv": f"text\tlabel\na\tpos\n{text}\tneg\n"}
    rows["jsonl"] = "".join(json.dumps({"text": each, "label": "pos"}) + "\n" for each in ("a", "b", text))
    told = error(tmp_path, form, {f"train.{form}": rows[form]})
    assert "a text is empty" in told
    assert f"train.{form}, line 3" in told
    assert f"found: nothing but spaces, U+{ord(text[0]):04X}" in told


@pytest.mark.parametrize("rows", ["", "a,pos\n"])
def test_too_few_examples(tmp_path, rows):
    text = error(tmp_path, "csv", {"train.csv": f"text,label\n{rows}"})
    assert "the train split of 'd' has fewer than 2 examples" in text
    assert f"found: {len(rows.splitlines())} examples" in text


def test_class_without_training_example(tmp_path):
    text = error(tmp_path, "csv", {"train.csv": "text,label\na,pos\nb,pos\n"})
    assert "a class has no training example in 'd'" in text
    assert "found: none of neg; pos: 2" in text


def test_class_without_test_example_is_an_error_unless_it_is_allowed(tmp_path, caplog):
    files = {**good_files("csv", "train"), "test.csv": "text,label\na,pos\nb,pos\n"}
    text = error(tmp_path, "csv", files)
    assert "a class has no test example in 'd'" in text
    assert "config, datasets.d.files.test: test.csv" in text
    assert "found: none of neg; pos: 2" in text
    prepare(tmp_path / "allowed", "csv", files, define("csv", absent_classes="allow"))
    assert "d, test: no example of neg" in caplog.text


# --- texts of several columns -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("csv", 'title,text,label\n Un , bon,pos\n,nul,neg\n"Trois\n", ,pos\n'),
        ("tsv", "title\ttext\tlabel\n Un \t bon\tpos\n\tnul\tneg\nTrois\t \tpos\n"),
        (
            "jsonl",
            '{"title": " Un ", "text": " bon", "label": "pos"}\n'
            '{"title": null, "text": "nul", "label": "neg"}\n'
            '{"title": "Trois\\n", "text": " ", "label": "pos"}\n',
        ),
    ],
)
def test_text_of_several_columns(tmp_path, form, content, caplog):
    caplog.set_level(logging.INFO)
    definition = define(form, columns={"text": ["title", "text"], "label": "label"})
    files = {f"{split}.{form}": content for split in SPLITS}
    assert texts(prepare(tmp_path, form, files, definition)) == ["Un bon", "nul", "Trois"]
    assert f"train.{form}: 'title' is empty in 1 of 3 examples" in caplog.text


def test_empty_column_between_two_others_leaves_one_space(tmp_path):
    definition = define("csv", columns={"text": ["a", "b", "c"], "label": "label"})
    files = {f"{split}.csv": "a,b,c,label\nun,,deux,pos\nun, x ,deux,neg\n" for split in SPLITS}
    assert texts(prepare(tmp_path, "csv", files, definition)) == ["un deux", "un x deux"]


def test_one_of_several_columns_is_missing(tmp_path):
    definition = define("csv", columns={"text": ["titel", "text"], "label": "label"})
    text = error(tmp_path, "csv", {"train.csv": "title,text,label\na,b,pos\n"}, definition)
    assert "column 'titel' is not in the header" in text
    assert "did you mean 'title'? write columns: {text: [title, text]} in the block" in text


def test_all_of_several_columns_are_empty(tmp_path):
    definition = define("csv", columns={"text": ["title", "text"], "label": "label"})
    text = error(tmp_path, "csv", {"train.csv": "title,text,label\na,b,pos\n , ,neg\n"}, definition)
    assert "a text is empty" in text
    assert "train.csv, line 3" in text


# --- splits that are drawn, and leaks that are dropped ----------------------------------------------------


def numbered(count, start=0):
    return [(f"texte numéro {start + index}", ("neg", "pos")[index % 2]) for index in range(count)]


def without_validation(**changes):
    definition = define("lab", **changes)
    definition["files"]["validation"] = None
    return definition


def test_validation_split_is_drawn_and_recorded(tmp_path):
    definition = without_validation(validation_split={"size": 6, "seed": 3})
    out = prepare(tmp_path, "lab", in_format("lab", numbered(30)), definition)
    rows = {split: read_jsonl(out / f"{split}.jsonl") for split in SPLITS}
    ids = {split: [row["id"] for row in rows[split]] for split in SPLITS}
    # an id is the place in train.review, whichever split the example went to
    assert sorted(ids["train"] + ids["validation"]) == sorted(f"train-{index}" for index in range(30))
    for row in rows["train"] + rows["validation"]:
        assert row["text"] == f"texte numéro {row['id'][6:]}"
    assert ids["test"] == ["test-0", "test-1", "test-2"]
    assert [row["label"] for row in rows["validation"]].count(1) == 3
    assert read_json(out / "splits.json") == {
        "validation": {"size": 6, "seed": 3, "drawn_from": "train"},
        "ids": {"validation": ids["validation"]},
        "read": {"train": 30, "test": 3},
        "dropped_leaks": [],
    }
    assert (out / "validation.text").read_text().splitlines() == [row["text"] for row in rows["validation"]]
    assert (out / "validation.label").read_text() == "".join(
        f"{row['label']}\n" for row in rows["validation"]
    )


def test_validation_split_that_is_too_small(tmp_path):
    definition = without_validation(validation_split={"size": 1, "seed": 0})
    text = error(tmp_path, "lab", in_format("lab", numbered(30)), definition)
    assert "no validation split of use can be drawn from train of 'd'" in text


def duplicates_of(out):
    return [
        (row["example"], row["with_example"], row["kind"]) for row in read_duplicates(out / "duplicates.csv")
    ]


LONG = (
    "un roman dont chaque page surprend et que je relirai volontiers cet été sous un arbre au bord de la mer"
)
LEAKY = [
    ("bon livre", "pos"),  # stands in validation and test
    *numbered(4),
    ("NUL  !", "neg"),  # so does this, but for case and spaces
    (LONG, "pos"),
    (f"{LONG} bleue", "pos"),
]


@pytest.mark.parametrize(("threshold", "dropped"), [(None, []), (0.8, ["train-7"])])
def test_leaks_are_dropped_from_train(tmp_path, threshold, dropped, caplog):
    definition = define("lab", near_duplicates=threshold, drop_leaks=True)
    test = {
        "test.review": f"bon livre\nnul !\n{LONG}\n",
        "test.label": "pos\nneg\npos\n",
    }
    out = prepare(tmp_path, "lab", {**in_format("lab", LEAKY), **test}, definition)
    kept = [row["id"] for row in read_jsonl(out / "train.jsonl")]
    gone = ["train-0", "train-5", "train-6", *dropped]
    assert kept == [f"train-{index}" for index in range(8) if f"train-{index}" not in gone]
    assert (out / "train.text").read_text().count("\n") == len(kept)
    splits = read_json(out / "splits.json")
    assert splits["dropped_leaks"] == gone
    assert splits["read"]["train"] == 8
    assert f"dropped {len(gone)} training examples" in caplog.text
    assert f"(neg: 1, pos: {len(gone) - 1})" in caplog.text
    # what was found is told, though it is gone from train
    assert ("train-5", "test-1", "exact") in duplicates_of(out)
    assert (("train-7", "test-2", "near") in duplicates_of(out)) == bool(dropped)


def test_leaks_stay_unless_they_are_to_be_dropped(tmp_path):
    out = prepare(tmp_path, "lab", in_format("lab", LEAKY))
    assert len(texts(out)) == 8
    assert read_json(out / "splits.json")["dropped_leaks"] == []
    assert ("train-0", "test-0", "exact") in duplicates_of(out)


def test_class_that_loses_all_its_training_examples(tmp_path):
    rows = [("bon livre", "pos"), *((text, "neg") for text, _ in numbered(4))]
    definition = define("lab", drop_leaks=True)
    text = error(tmp_path, "lab", in_format("lab", rows), definition)
    assert "dropping leaks would leave too few training examples of 'd'" in text
    assert "config, datasets.d.drop_leaks" in text
    assert "1 of 5 are also in validation or test, among them all of pos" in text


def test_a_file_that_changed_since_it_was_fetched_is_refused(tmp_path):
    good = [good_files("lab", split) for split in SPLITS]
    manifest = write_source(tmp_path / "source", {name: text for each in good for name, text in each.items()})
    path = tmp_path / "source/files/validation.label"
    path.write_text(path.read_text().replace("neg", "pos", 1))
    with pytest.raises(SeedbedError, match="has changed since it was fetched") as caught:
        prepare_dataset("d", define("lab"), manifest, tmp_path / "out", STAMP)
    assert caught.value.where == str(path)
    assert not (tmp_path / "out").exists()


# --- what newcomers bring ---


@pytest.mark.parametrize(
    ("labels", "values", "written"),
    [
        (("0", "1"), ("0.5", "1.5"), ["0.5", "1.5"]),
        (("1", "2"), ("01", "02"), ["01", "02"]),
        (("neg", "pos"), ("neg", "neutral", "pos"), ["neg", "pos", "neutral"]),
        (("negativ", "pos"), ("negative", "pos"), ["negative", "pos"]),
        (("neg", "other", "pos"), ("neg", "neutral", "pos"), ["neg", "pos", "neutral"]),
    ],
)
def test_labels_can_be_taken_as_they_stand_in_the_file(tmp_path, labels, values, written):
    rows = "".join(f"texte {number},{value}\n" for number, value in enumerate(values * 2))
    source = write_source(tmp_path / "source", {f"{split}.csv": f"text,label\n{rows}" for split in SPLITS})
    with pytest.raises(SeedbedError) as caught:
        prepare_dataset("d", define("csv", labels), source, tmp_path / "out", STAMP)
    remedy = caught.value.hint.rpartition("To use the labels of the file: labels: ")[2]
    assert json.loads(remedy.partition("]")[0] + "]") == written
    prepare_dataset("d", define("csv", written), source, tmp_path / "out", STAMP)
    found = [row["label"] for row in read_jsonl(tmp_path / "out/train.jsonl")]
    assert found == [written.index(value) for value in values * 2]


@pytest.mark.parametrize(
    ("declared", "found", "how"),
    [
        ("très bon", "très\xa0bon", "character 5 is U+00A0 NO-BREAK SPACE, not U+0020 SPACE"),
        ("neg", "neg\u200b", "character 4 is U+200B ZERO WIDTH SPACE, not missing"),
        ("neg", "Neg", "capital letters differ"),
    ],
)
def test_a_label_that_looks_like_a_declared_one_is_told_with_what_differs(tmp_path, declared, found, how):
    rows = f"un,{found}\ndeux,pos\n"
    text = error(tmp_path, "csv", {"train.csv": f"text,label\n{rows}"}, define("csv", (declared, "pos")))
    assert f"did you mean {declared!r}? ({how})" in text
    assert "the labels of the file" not in text


def test_many_labels_may_be_another_column(tmp_path):
    rows = "".join(f"texte {number},{number + 0.5}\n" for number in range(30))
    text = error(tmp_path, "csv", {"train.csv": f"text,label\n{rows}"})
    assert "The file has 30 different labels: columns.label may name another column" in text


def test_names_are_the_same_in_both_forms_of_unicode(tmp_path):
    composed, decomposed = "déçu", unicodedata.normalize("NFD", "déçu")
    files = {
        f"donne\u0301es-{split}.csv": f"texte\u0301,label\nun,{decomposed}\ndeux,content\ntrois,{composed}\n"
        for split in SPLITS
    }
    definition = define("csv", (composed, "content"), columns={"text": "texté", "label": "label"})
    definition["files"] = {split: f"données-{split}.csv" for split in SPLITS}
    prepare_dataset("d", definition, write_source(tmp_path / "source", files), tmp_path / "out", STAMP)
    assert [row["label"] for row in read_jsonl(tmp_path / "out/train.jsonl")] == [0, 1, 0]
    assert read_json(tmp_path / "out/labels.json")["labels"] == [composed, "content"]


def test_keys_of_json_are_the_same_in_both_forms_of_unicode(tmp_path):
    lines = '{"texte\u0301": "un", "label": "neg"}\n{"texté": "deux", "label": "pos"}\n'
    files = {f"{split}.jsonl": lines for split in SPLITS}
    definition = define("jsonl", columns={"text": "texté", "label": "label"})
    prepare_dataset("d", definition, write_source(tmp_path / "source", files), tmp_path / "out", STAMP)
    assert [row["text"] for row in read_jsonl(tmp_path / "out/train.jsonl")] == ["un", "deux"]


@pytest.mark.parametrize(
    ("form", "header", "remedy", "changes"),
    [
        ("tsv", "text|label", 'format: csv and delimiter: "|"', {"format": "csv", "delimiter": "|"}),
        ("tsv", "text,label", "format: csv", {"format": "csv"}),
        ("tsv", "text;label", 'format: csv and delimiter: ";"', {"format": "csv", "delimiter": ";"}),
    ],
)
def test_another_delimiter_is_named_and_can_be_set(tmp_path, form, header, remedy, changes):
    mark = header[4]
    content = f"{header}\nbon livre{mark}pos\nnul{mark}neg\n"
    source = write_source(tmp_path / "source", {f"{split}{ENDINGS[form]}": content for split in SPLITS})
    definition = define(form)
    with pytest.raises(SeedbedError) as caught:
        prepare_dataset("d", definition, source, tmp_path / "out", STAMP)
    assert f"the columns seem to be separated by {mark!r}: set {remedy};" in str(caught.value)
    prepare_dataset("d", definition | changes, source, tmp_path / "out", STAMP)
    assert [row["label"] for row in read_jsonl(tmp_path / "out/train.jsonl")] == [1, 0]


def spreadsheet(name: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, "x" * 100)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "what", "remedy"),
    [
        (bz2.compress(b"text,label\nbon,pos\n"), "compressed with bzip2", "decompress it: bunzip2"),
        (spreadsheet("xl/workbook.xml"), "a spreadsheet", "set format: excel for .xlsx"),
        (spreadsheet("train.csv"), "a zip archive", "unpack it"),
        (b"PAR1\x15\x04\x15\x10\xff" + bytes(20), "a Parquet file", "set format: parquet"),
    ],
    # the bytes of zip hold the time, and workers would not agree on the name of a test
    ids=["bzip2", "xlsx", "zip", "parquet"],
)
@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
def test_a_file_of_another_kind_is_called_what_it_is(tmp_path, form, content, what, remedy):
    text = error(tmp_path, form, {f"train{ENDINGS[form]}": content})
    assert f"the file is not text: it is {what}" in text
    assert remedy in text
    assert "iconv" not in text


def test_a_text_may_begin_as_other_files_do(tmp_path):
    prepare(tmp_path, "csv", {"train.csv": "PK,text,label\n1,bon,pos\n2,nul,neg\n"})
    assert [row["text"] for row in read_jsonl(tmp_path / "out/train.jsonl")] == ["bon", "nul"]


def test_texts_of_several_columns_are_told(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    definition = define("csv", columns={"text": ["title", "body"], "label": "label"})
    files = {f"{split}.csv": "title,body,label\nbon,livre,pos\nun,nul,neg\n" for split in SPLITS}
    prepare_dataset("d", definition, write_source(tmp_path / "source", files), tmp_path / "out", STAMP)
    assert "d: the columns title, body are joined by a space into one text" in caplog.text


def test_an_archive_that_was_fetched_under_another_name_is_called_one(tmp_path):
    source = write_source(tmp_path / "forum", {"download": spreadsheet("train.csv")})
    with pytest.raises(SeedbedError, match="the source has no file") as caught:
        prepare_dataset("d", define("csv"), source, tmp_path / "out", STAMP)
    told = "download is an archive without the suffix of one: set kind: archive under sources.forum in"
    assert told in caught.value.hint


# --- clusters ---

CLUSTERED = {"text": "text", "label": "label", "cluster": "author"}
AUTHORS = ("Zola", "Sand", "Zola")


def clustered_files(form, split, authors=AUTHORS):
    rows = list(zip(("bon livre", "nul !", "moyen"), ("pos", "neg", "pos"), authors, strict=True))
    if form == "jsonl":
        lines = [json.dumps(dict(zip(("text", "label", "author"), row, strict=True))) for row in rows]
    else:
        mark = {"csv": ",", "tsv": "\t"}[form]
        lines = [mark.join(row) for row in (("text", "label", "author"), *rows)]
    return {f"{split}{ENDINGS[form]}": "\n".join(lines) + "\n"}


def prepare_clustered(tmp_path, form, definition=None, **authors):
    files = {}
    for split in SPLITS:
        files |= clustered_files(form, split, authors.get(split, AUTHORS))
    definition = definition or define(form, columns=CLUSTERED)
    return prepare(tmp_path, form, files, definition)


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
def test_clusters_stand_in_the_record_of_splits_alone(tmp_path, form):
    plain = prepare(tmp_path / "plain", form, clustered_files(form, "train"))
    out = prepare_clustered(tmp_path / "clustered", form)
    expected = {split: {"Zola": [f"{split}-0", f"{split}-2"], "Sand": [f"{split}-1"]} for split in SPLITS}
    assert read_json(out / "splits.json")["clusters"] == expected
    assert clusters.by_example(out / "splits.json")["test"] == {
        "test-0": "Zola", "test-1": "Sand", "test-2": "Zola",
    }  # fmt: skip
    # what is trained on is the same with clusters and without
    for path in plain.iterdir():
        if path.name != "splits.json":
            assert (out / path.name).read_bytes() == path.read_bytes(), path.name
    assert {path.name for path in plain.iterdir()} == {path.name for path in out.iterdir()}
    assert clusters.read_clusters(plain / "splits.json") == {}


def test_clusters_are_compared_without_spaces_and_in_one_form_of_unicode(tmp_path):
    composed, decomposed = "Zol\u00e9", "Zole\u0301 "
    out = prepare_clustered(tmp_path, "csv", test=(composed, decomposed, "Sand"))
    assert list(read_json(out / "splits.json")["clusters"]["test"]) == [composed, "Sand"]


def test_numbers_of_jsonl_are_clusters(tmp_path):
    out = prepare_clustered(tmp_path, "jsonl", test=(7, "7", 8))
    assert read_json(out / "splits.json")["clusters"]["test"] == {
        "7": ["test-0", "test-1"], "8": ["test-2"],
    }  # fmt: skip


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_missing_column_of_clusters(tmp_path, form):
    definition = define(form, columns=CLUSTERED | {"cluster": "auteur"})
    with pytest.raises(SeedbedError) as caught:
        prepare_clustered(tmp_path, form, definition)
    assert "'auteur'" in str(caught.value)
    assert "write columns: {cluster: author} in" in caught.value.hint


@pytest.mark.parametrize(("form", "empty"), [("csv", " "), ("tsv", ""), ("jsonl", ""), ("jsonl", None)])
def test_an_empty_cluster(tmp_path, form, empty):
    with pytest.raises(SeedbedError) as caught:
        prepare_clustered(tmp_path, form, test=("Zola", empty, "Sand"))
    assert "a cluster is empty" in str(caught.value)
    assert f"test{ENDINGS[form]}, line {2 if form == 'jsonl' else 3}" in caught.value.where
    assert "a cluster of its own" in caught.value.hint


def test_half_a_surrogate_pair_as_a_cluster(tmp_path):
    with pytest.raises(SeedbedError, match="half a surrogate pair"):
        prepare_clustered(tmp_path, "jsonl", test=("Zola", "\ud800", "Sand"))


@pytest.mark.parametrize("split", ["validation", "test"])
def test_a_single_cluster_says_nothing_of_the_spread(tmp_path, split):
    with pytest.raises(SeedbedError, match=f"the {split} split of 'd' has a single cluster"):
        prepare_clustered(tmp_path, "csv", **{split: ["Zola"] * 3})


def test_train_may_have_a_single_cluster(tmp_path):
    out = prepare_clustered(tmp_path, "csv", train=["Zola"] * 3)
    assert list(read_json(out / "splits.json")["clusters"]["train"]) == ["Zola"]


def test_a_drawn_split_shares_no_cluster_with_train(tmp_path):
    rows = [f"texte {n},{('pos', 'neg')[n % 2]},auteur {n // 4}" for n in range(40)]
    files = {"train.csv": "\n".join(["text,label,author", *rows]) + "\n", **clustered_files("csv", "test")}
    definition = define("csv", columns=CLUSTERED, validation_split={"size": 0.2, "seed": 0})
    definition["files"] = definition["files"] | {"validation": None}
    out = prepare(tmp_path, "csv", files, definition)
    found = clusters.read_clusters(out / "splits.json")
    assert not set(found["train"]) & set(found["validation"])
    assert sum(map(len, found["validation"].values())) == 8
    assert all(set(row) == {"id", "text", "label"} for row in read_jsonl(out / "validation.jsonl"))


def test_an_example_in_two_clusters_is_refused(tmp_path):
    path = tmp_path / "splits.json"
    path.write_text(json.dumps({"clusters": {"test": {"a": ["test-0"], "b": ["test-0"]}}}))
    with pytest.raises(SeedbedError, match="in two clusters"):
        clusters.read_clusters(path)
