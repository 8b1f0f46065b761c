"""Datasets of questions: every format, every fault with its place, and the draw of splits."""

import csv
import json
import logging
import random
from pathlib import Path
from typing import Any

import pytest
from builders import make_manifest
from builders_causal import make_passages, make_questions, write_questions

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl
from seedbed.data import clusters
from seedbed.data.duplicates import read_duplicates
from seedbed.data.preparation import prepare as prepare_dataset

SPLITS = ("train", "validation", "test")
WITH_CONTEXT = {
    "columns": {"question": "question", "answer": "answer", "context": "context"},
    "template": "{context}\n{question}\nRéponse :",
}


def definition(form: str = "jsonl", **changes: Any) -> dict[str, Any]:
    """A resolved block of the config, all splits drawn from train."""
    return {
        "task": "generation",
        "format": form,
        "files": {"train": f"train.{form}", "validation": None, "test": None},
        "columns": {"question": "question", "answer": "answer", "context": None},
        "template": "Question : {question}\nRéponse :",
        "answer_prefix": " ",
        "validation_split": {"size": 0.2, "seed": 0},
        "test_split": {"size": 0.2, "seed": 0},
        "near_duplicates": None,
        "drop_leaks": False,
        "max_tokens": None,
        "overlong": "error",
    } | changes


def prepare(tmp_path: Path, block: dict[str, Any]) -> Path:
    """Prepare the files in tmp_path/source, and return the folder of the splits."""
    manifest = make_manifest(tmp_path / "source", tmp_path / "fetched")
    prepare_dataset("qa", block, manifest, tmp_path / "qa", {"made": "by a test"})
    return tmp_path / "qa"


def prepared(tmp_path: Path, rows: list[dict[str, Any]], **changes: Any) -> dict[str, list[dict[str, Any]]]:
    block = definition(**changes)
    write_questions(tmp_path / "source" / block["files"]["train"], rows)
    folder = prepare(tmp_path, block)
    return {split: read_jsonl(folder / f"{split}.jsonl") for split in SPLITS}


def refused(tmp_path: Path, text: str, form: str = "jsonl", **changes: Any) -> SeedbedError:
    """The error of a training file with this text; nothing is written."""
    (tmp_path / "source").mkdir(exist_ok=True)
    (tmp_path / "source" / f"train.{form}").write_text(text, encoding="utf-8")
    with pytest.raises(SeedbedError) as caught:
        prepare(tmp_path, definition(form, **changes))
    assert not (tmp_path / "qa").exists()
    return caught.value


def lines(*rows: dict[str, Any]) -> str:
    good = make_questions(4)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in [*good, *rows])


# --- formats ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "tsv"])
def test_each_format_gives_the_same_examples(tmp_path, form):
    rows = make_passages(20)
    splits = prepared(tmp_path, rows, form=form, **WITH_CONTEXT)
    found = sorted((row for split in splits.values() for row in split), key=lambda row: int(row["id"][6:]))
    assert [row["id"] for row in found] == [f"train-{index}" for index in range(60)]
    for row, asked in zip(found, rows, strict=True):
        assert {part: row[part] for part in asked} == asked
        assert row["text"] == f"{asked['context']}\n{asked['question']}\nRéponse :"
        assert set(row) == {"id", "text", "question", "context", "answer"}
    record = read_json(tmp_path / "qa" / "splits.json")
    assert record["read"] == {"train": 60}
    assert record["sizes"] == {split: len(rows) for split, rows in splits.items()}
    assert record["sizes"] == {"train": 36, "validation": 12, "test": 12}
    assert record["groups"] == {"train": 12, "validation": 4, "test": 4}
    assert record["test"] == {"size": 0.2, "seed": 0, "drawn_from": "train"}
    assert record["ids"]["test"] == [row["id"] for row in splits["test"]]
    assert read_json(tmp_path / "qa" / "fingerprint.json") == {"made": "by a test"}


def test_a_list_under_data(tmp_path):
    path = tmp_path / "source" / "train.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"version": 1, "data": make_questions(20)}), encoding="utf-8")
    folder = prepare(tmp_path, definition("json"))
    assert len(read_jsonl(folder / "train.jsonl")) == 12


def test_other_names_of_columns(tmp_path):
    rows = [{"frage": row["question"], "antwort": row["answer"]} for row in make_questions(20)]
    columns = {"question": "frage", "answer": "antwort", "context": None}
    splits = prepared(tmp_path, rows, form="csv", columns=columns)
    assert splits["train"][0]["answer"] == next(
        row["antwort"] for row in rows if row["frage"] == splits["train"][0]["question"]
    )


def test_given_splits_stay_as_they_are(tmp_path):
    rows = make_questions(12)
    parts = {"train": rows[:6], "validation": rows[6:9], "test": rows[9:]}
    for split, part in parts.items():
        write_questions(tmp_path / "source" / f"{split}.csv", part)
    files = {split: f"{split}.csv" for split in SPLITS}
    folder = prepare(tmp_path, definition("csv", files=files))
    for split, part in parts.items():
        found = read_jsonl(folder / f"{split}.jsonl")
        assert [row["id"] for row in found] == [f"{split}-{index}" for index in range(len(part))]
        assert [row["answer"] for row in found] == [row["answer"] for row in part]
    record = read_json(folder / "splits.json")
    assert (record["validation"], record["test"], record["ids"]) == ("given", "given", {})


def test_harmless_faults_are_mended_and_line_ends_inside_a_text_stay(tmp_path, caplog):
    rows = [*make_questions(10), {"question": " Où\x07 ?\r\n ", "answer": "Ici,\r\nou là.", "context": None}]
    text = "\ufeff" + "".join(json.dumps(row) + "\r\n" for row in rows)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "train.jsonl").write_text(text, encoding="utf-8", newline="")
    with caplog.at_level(logging.INFO):
        folder = prepare(tmp_path, definition())
    found = [row for split in SPLITS for row in read_jsonl(folder / f"{split}.jsonl")]
    (mended,) = (row for row in found if row["id"] == "train-10")
    assert (mended["question"], mended["answer"]) == ("Où  ?", "Ici,\nou là.")
    assert "control characters" in caplog.text
    assert "byte order mark" in caplog.text


def test_braces_of_a_template_and_braces_of_a_text(tmp_path):
    rows = [*make_questions(10), {"question": "Que vaut {x} ?", "answer": "un", "context": None}]
    splits = prepared(tmp_path, rows, template="{{ {question} }}")
    (found,) = (row for split in splits.values() for row in split if row["answer"] == "un")
    assert found["text"] == "{ Que vaut {x} ? }"


def test_an_absent_context_is_allowed_and_told(tmp_path, caplog):
    rows = [*make_passages(10), {"question": "Seule ?", "answer": "oui", "context": ""}]
    with caplog.at_level(logging.WARNING):
        splits = prepared(tmp_path, rows, **WITH_CONTEXT)
    (found,) = (row for split in splits.values() for row in split if row["answer"] == "oui")
    assert (found["context"], found["text"]) == (None, "\nSeule ?\nRéponse :")
    assert "1 of 31 examples have no context" in caplog.text


# --- faults -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "what", "hint"),
    [
        ({"question": "Où ?", "anwser": "là"}, "key 'answer' is missing", "did you mean 'anwser'?"),
        ({"answer": "là", "q": "Où ?"}, "key 'question' is missing", "write columns: {question: q} in"),
        ({"question": " \t", "answer": "là"}, "a question is empty", "fill in the question"),
        ({"question": "Où ?", "answer": ""}, "an answer is empty", "fill in the answer"),
        ({"question": "Où ?", "answer": "\u200b \u00ad"}, "an answer is empty", "fill in the answer"),
        ({"question": "\u2060", "answer": "là"}, "a question is empty", "fill in the question"),
        ({"question": "Où ?", "answer": 1789}, "an answer is not a string", "in quotes"),
        ({"question": None, "answer": "là"}, "a question is not a string", "one string"),
        ({"question": "Où ?", "answer": {"text": ["là"]}}, "an answer is not a string", "one string"),
        ({"question": "Où ?", "answer": "\ud83d"}, "an answer has half a surrogate pair", "whole"),
    ],
)
def test_a_faulty_line_is_named(tmp_path, row, what, hint):
    text = "".join(json.dumps(each) + "\n" for each in [*make_questions(4), row])
    error = refused(tmp_path, text)
    assert error.what == what
    assert "train.jsonl, line 5 (from" in error.where
    assert hint in error.hint


def test_more_faults_of_a_kind_are_counted(tmp_path):
    empty = {"question": "Où ?", "answer": ""}
    assert refused(tmp_path, lines(empty, empty, empty)).what == "an answer is empty (and 2 more like it)"


def test_a_faulty_context_is_named(tmp_path):
    error = refused(tmp_path, lines({"question": "Où ?", "answer": "là", "context": ["ici"]}), **WITH_CONTEXT)
    assert (error.what, "line 5" in error.where) == ("a context is not a string", True)


@pytest.mark.parametrize(
    ("text", "what", "where"),
    [
        ('[{"question": "a",\n "answer" "b"}]', "the file is not JSON", "line 2"),
        ('{"data": {"question": "a"}}', "the file is not a list of examples", "train.json"),
        ('"text"', "the file is not a list of examples", "train.json"),
        ('[{"question": "a", "answer": "b"}, 3]', "an item is not a JSON object", "item 2"),
        ('[{"question": "a", "answer": "b"}, {"question": "c"}]', "key 'answer' is missing", "item 2"),
        (
            '[{"question": "a", "answer": "b"}, {"question": "c", "answer": ""}]',
            "an answer is empty",
            "item 2",
        ),
        ('{"data": [{"title": "t", "paragraphs": []}]}', "the file is nested like SQuAD's", "item 1"),
    ],
)
def test_faults_of_json(tmp_path, text, what, where):
    error = refused(tmp_path, text, "json")
    assert error.what == what
    assert where in error.where


@pytest.mark.parametrize(
    ("form", "text", "what", "where"),
    [
        ("jsonl", '{"question": "a"\n', "a line is not JSON", "line 1"),
        ("jsonl", '["a", "b"]\n', "a line is not a JSON object", "line 1"),
        ("csv", "question,reponse\na,b\n", "column 'answer' is not in the header", "line 1"),
        (
            "csv",
            "question,answer\na,b\nc\n",
            "a row and the header differ in the number of cells",
            "line 3",
        ),
        ("csv", 'question,answer\na,b\n"c,d\n', "a cell's quotes are not balanced", "line 3"),
        ("csv", "question,answer\na,b\n,d\n", "a question is empty", "line 3"),
        ("tsv", "question\tanswer\na\tb\nc\t \n", "an answer is empty", "line 3"),
    ],
)
def test_faults_of_tables_and_lines(tmp_path, form, text, what, where):
    error = refused(tmp_path, text, form)
    assert error.what == what
    assert where in error.where


def test_another_encoding_is_named_with_its_line(tmp_path):
    (tmp_path / "source").mkdir()
    text = "question,answer\nOù,là\n".encode("cp1252")
    (tmp_path / "source" / "train.csv").write_bytes(text)
    with pytest.raises(SeedbedError, match="not UTF-8") as caught:
        prepare(tmp_path, definition("csv"))
    assert "line 2" in caught.value.where


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_a_missing_file_is_named_with_the_nearest(tmp_path, split):
    write_questions(tmp_path / "source" / "train.jsonl", make_questions(20))
    write_questions(tmp_path / "source" / "dev.jsonl", make_questions(20))
    files = {"train": "train.jsonl", "validation": None, "test": None} | {split: "deev.jsonl"}
    with pytest.raises(SeedbedError, match=r"the source has no file 'deev\.jsonl'") as caught:
        prepare(tmp_path, definition(files=files))
    assert f"datasets.qa.files.{split}" in caught.value.where
    assert "did you mean 'dev.jsonl'?" in caught.value.hint


def test_a_split_of_one_example_is_an_error(tmp_path):
    write_questions(tmp_path / "source" / "train.jsonl", make_questions(20))
    write_questions(tmp_path / "source" / "test.jsonl", make_questions(1))
    files = {"train": "train.jsonl", "validation": None, "test": "test.jsonl"}
    with pytest.raises(SeedbedError, match="the test split of 'qa' has fewer than 2 examples"):
        prepare(tmp_path, definition(files=files))


# --- the draw -----------------------------------------------------------------------------------------------


def test_the_draw_does_not_depend_on_the_order_of_the_file(tmp_path):
    rows = make_passages(30)
    shuffled = random.Random(3).sample(rows, len(rows))
    first = prepared(tmp_path / "one", rows, **WITH_CONTEXT)
    second = prepared(tmp_path / "two", shuffled, **WITH_CONTEXT)
    for split in SPLITS:
        found, again = (
            {(row["context"], row["question"]) for row in drawn[split]} for drawn in (first, second)
        )
        assert found == again
    assert [row["id"] for row in first["test"]] != [row["id"] for row in second["test"]]


def test_questions_of_one_context_stay_together(tmp_path):
    rows = make_passages(30)
    rows[1]["context"] = rows[1]["context"].upper() + "  "  # the same, as texts are compared
    splits = prepared(tmp_path, rows, **WITH_CONTEXT)
    places = [{row["context"].casefold() for row in splits[split]} for split in SPLITS]
    assert [len(place) for place in places] == [18, 6, 6]
    assert not set.intersection(places[0], places[1] | places[2])
    assert not places[1] & places[2]


def test_without_a_context_equal_questions_stay_together(tmp_path):
    rows = [{**row, "answer": f"réponse {n}"} for row in make_questions(15) for n in range(2)]
    splits = prepared(tmp_path, rows)
    found = [[row["question"] for row in splits[split]] for split in SPLITS]
    assert [len(asked) for asked in found] == [18, 6, 6]
    assert sum(len(set(asked)) for asked in found) == 15


def test_another_seed_draws_others_and_the_test_split_does_not_depend_on_validation(tmp_path):
    rows = make_questions(50)
    first = prepared(tmp_path / "one", rows)
    smaller = prepared(tmp_path / "two", rows, validation_split={"size": 3, "seed": 5})
    other = prepared(tmp_path / "three", rows, test_split={"size": 0.2, "seed": 1})
    assert first["test"] == smaller["test"]
    assert len(smaller["validation"]) == 3
    assert first["test"] != other["test"]


def test_only_the_split_that_is_not_given_is_drawn(tmp_path):
    write_questions(tmp_path / "source" / "train.jsonl", make_questions(20))
    write_questions(tmp_path / "source" / "test.jsonl", make_questions(6, seed=1))
    files = {"train": "train.jsonl", "validation": None, "test": "test.jsonl"}
    folder = prepare(tmp_path, definition(files=files))
    record = read_json(folder / "splits.json")
    assert record["sizes"] == {"train": 16, "validation": 4, "test": 6}
    assert set(record["ids"]) == {"validation"}


@pytest.mark.parametrize("size", [0.5, 4])
def test_too_few_groups_to_draw_is_an_error(tmp_path, size):
    with pytest.raises(SeedbedError, match="has too few groups of examples to draw a test split") as caught:
        prepared(tmp_path, make_passages(1, each=8), **WITH_CONTEXT, test_split={"size": size, "seed": 0})
    assert "datasets.qa.test_split.size" in caught.value.where
    assert "1 groups of one context or question, the smallest of 8" in caught.value.found


@pytest.mark.parametrize("size", [20, 40, 2.5])
def test_a_size_that_cannot_be_drawn_is_an_error(tmp_path, size):
    with pytest.raises(SeedbedError, match="a validation split of this size cannot be drawn"):
        prepared(tmp_path, make_questions(20), validation_split={"size": size, "seed": 0})


# --- duplicates ---------------------------------------------------------------------------------------------


def leaking(tmp_path: Path, **changes: Any) -> Path:
    """Two questions of train also stand in test, one of them with another answer."""
    rows = make_questions(20)
    write_questions(tmp_path / "source" / "train.jsonl", rows[:12])
    again = [rows[0], {**rows[1], "answer": "une autre"}]
    write_questions(tmp_path / "source" / "test.jsonl", [*again, *rows[12:16]])
    write_questions(tmp_path / "source" / "dev.jsonl", rows[16:])
    files = {"train": "train.jsonl", "validation": "dev.jsonl", "test": "test.jsonl"}
    return prepare(tmp_path, definition(files=files, **changes))


def test_duplicates_tell_whether_the_answers_are_the_same(tmp_path):
    rows = read_duplicates(leaking(tmp_path) / "duplicates.csv")
    found = {
        (row["example"], row["with_example"]): row["same_label"] for row in rows if row["split"] == "test"
    }
    assert found == {("test-0", "train-0"): True, ("test-1", "train-1"): False}


def test_leaks_can_be_dropped_from_train(tmp_path):
    folder = leaking(tmp_path, drop_leaks=True)
    record = read_json(folder / "splits.json")
    assert record["dropped_leaks"] == ["train-0", "train-1"]
    assert [row["id"] for row in read_jsonl(folder / "train.jsonl")] == [f"train-{n}" for n in range(2, 12)]
    assert (record["read"]["train"], record["sizes"]["train"]) == (12, 10)
    with open(folder / "duplicates.csv", encoding="utf-8", newline="") as stream:
        assert "train-0" in {row["example"] for row in csv.DictReader(stream)}


def test_a_training_split_of_leaks_alone_is_an_error(tmp_path):
    for name in ("train", "test", "dev"):
        write_questions(tmp_path / "source" / f"{name}.jsonl", make_questions(6))
    files = {"train": "train.jsonl", "validation": "dev.jsonl", "test": "test.jsonl"}
    with pytest.raises(SeedbedError, match="dropping leaks would leave too few") as caught:
        prepare(tmp_path, definition(files=files, drop_leaks=True))
    assert "6 of 6" in caught.value.found


def test_the_same_question_about_two_contexts_is_no_duplicate(tmp_path):
    rows = make_passages(10)
    for row in rows:
        row["question"] = (
            "De quoi parle le texte ?" if row["question"].startswith("De quand") else row["question"]
        )
    prepared(tmp_path, rows, **WITH_CONTEXT)
    assert read_duplicates(tmp_path / "qa" / "duplicates.csv") == []


def test_questions_may_have_another_delimiter_and_names_in_either_form_of_unicode(tmp_path):
    rows = "".join(f"Qu'est-ce que {number} ?;{number}\n" for number in range(10))
    text = f"question;re\u0301ponse\n{rows}"
    columns = {"question": "question", "answer": "réponse", "context": None}
    files = {"train": "train.tsv", "validation": None, "test": None}
    error = refused(tmp_path, text, "tsv", format="tsv", files=files, columns=columns)
    assert 'set format: csv and delimiter: ";"' in error.hint
    (tmp_path / "source/train.tsv").rename(tmp_path / "source/train.csv")
    prepare(tmp_path, definition(format="csv", files={"train": "train.csv", "validation": None, "test": None},
                                 columns=columns, delimiter=";"))  # fmt: skip
    read = [row for split in SPLITS for row in read_jsonl(tmp_path / f"qa/{split}.jsonl")]
    assert sorted(row["answer"] for row in read) == sorted(map(str, range(10)))


# --- clusters -----------------------------------------------------------------------------------------------

TOPICS = {"question": "question", "answer": "answer", "context": None, "cluster": "topic"}


def with_topics(count: int, size: int) -> list[dict[str, Any]]:
    return [row | {"topic": f"topic {number // size}"} for number, row in enumerate(make_questions(count))]


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "tsv"])
def test_topics_are_drawn_whole_and_stand_in_the_record_of_splits_alone(tmp_path, form):
    splits = prepared(tmp_path, with_topics(40, 4), form=form, columns=TOPICS)
    found = clusters.read_clusters(tmp_path / "qa" / "splits.json")
    assert {split: len(ids) for split, ids in found.items()} == {"train": 6, "validation": 2, "test": 2}
    names = [name for members in found.values() for name in members]
    assert len(set(names)) == len(names)
    for split, members in found.items():
        assert sorted(name for ids in members.values() for name in ids) == sorted(
            row["id"] for row in splits[split]
        )
        assert all("cluster" not in row for row in splits[split])


def test_topics_that_share_a_context_stay_together(tmp_path):
    rows = with_topics(40, 4)
    for first in range(0, 40, 8):  # the last question of a topic and the first of the next one
        for row in rows[first + 3 : first + 5]:
            row["context"] = f"texte {first}"
    columns = TOPICS | {"context": "context"}
    rows = [{"context": f"texte propre {number}"} | row for number, row in enumerate(rows)]
    prepared(tmp_path, rows, columns=columns, template="{context} {question}")
    found = clusters.read_clusters(tmp_path / "qa" / "splits.json")
    for members in found.values():
        numbers = {int(name.split()[1]) for name in members}
        assert all(number ^ 1 in numbers for number in numbers)


@pytest.mark.parametrize("topic", [None, " "])
def test_a_question_without_a_topic(tmp_path, topic):
    rows = [*with_topics(4, 1), {"question": "Quoi ?", "answer": "Rien", "topic": topic}]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    error = refused(tmp_path, text, columns=TOPICS)
    assert "a cluster is empty" in str(error)
    assert "line 5" in error.where


def test_too_few_topics_to_draw_from(tmp_path):
    with pytest.raises(SeedbedError, match="groups of one cluster"):
        prepared(tmp_path, with_topics(20, 20), columns=TOPICS)
