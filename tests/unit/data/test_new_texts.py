"""New texts without labels: what is read, and what is refused."""

import gzip
import io
import sys

import pytest

from seedbed.core.errors import SeedbedError
from seedbed.data import new_texts

CSV = 'review,stars\nTrès bien,5\n"Deux\nlignes",3\n'


@pytest.mark.parametrize(
    ("name", "content", "columns", "lines"),
    [
        ("a.csv", CSV, ["review"], ["2", "3"]),
        ("a.csv", CSV.replace(",", ";"), ["review"], ["2", "3"]),
        ("a.tsv", "review\tstars\nTrès bien\t5\nDeux lignes\t3\n", ["review"], ["2", "3"]),
        ("a.jsonl", '{"review": "Très bien"}\n{"review": "Deux\\nlignes"}\n', ["review"], ["1", "2"]),
        ("a.txt", "Très bien\r\n Deux lignes \n", ["ignored"], ["1", "2"]),
    ],
)
def test_each_format_gives_clean_texts_and_their_lines(tmp_path, name, content, columns, lines):
    expected = [
        {"id": line, "text": text} for line, text in zip(lines, ["Très bien", "Deux lignes"], strict=True)
    ]
    (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    assert new_texts.read(str(tmp_path / name), columns) == expected
    with gzip.open(tmp_path / f"{name}.gz", "wb") as stream:
        stream.write(content.encode())
    assert new_texts.read(str(tmp_path / f"{name}.gz"), columns) == expected


def test_columns_are_joined_and_pairs_have_two(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("title,body,answer\nUn,deux,trois\n", encoding="utf-8")
    assert new_texts.read(str(path), ["title", "body"], "answer") == [
        {"id": "2", "text": "Un deux", "text_pair": "trois"}
    ]


def test_standard_input_has_plain_lines(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("é\nb\n".encode())))
    assert new_texts.read("-") == [{"id": "1", "text": "é"}, {"id": "2", "text": "b"}]


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("a.csv", CSV.encode(), ["'text' is not in the header", "'review', 'stars'", "--column"]),
        ("a.jsonl", b'{"review": "a"}\n', ["'text' is missing", "line 1", "'review'", "--column"]),
        ("a.csv", b"text\na\n   \nb\n", ["a text is empty", "line 3"]),
        ("a.jsonl", b'{"text": "a"}\n{"text": null}\n', ["a text is null", "line 2", "fill in the text"]),
        ("a.txt", b"a\n\nb\n", ["a text is empty", "line 2"]),
        ("a.txt", "a\né\n".encode("latin-1"), ["not UTF-8", "line 2", "iconv"]),
        ("a.txt", b"", ["there are no texts"]),
        ("a.csv", b"text\n", ["there are no texts"]),
        ("a.csv", b"", ["'text' is not in the header", "the file is empty"]),
        ("a.doc", b"a", ["no known format", ".doc", ".csv"]),
    ],
)
def test_faults_are_told_with_their_place(tmp_path, name, content, parts):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SeedbedError) as refused:
        new_texts.read(str(tmp_path / name))
    assert all(part in str(refused.value) for part in [name, *parts]), refused.value
    assert "config" not in refused.value.hint


def test_a_missing_file_a_folder_and_plain_lines_of_pairs_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("a\n")
    for source, pair, what in (("none.csv", None, "no such file"), (str(tmp_path), None, "a folder")):
        with pytest.raises(SeedbedError, match=what):
            new_texts.read(source, pair=pair)
    with pytest.raises(SeedbedError, match="takes pairs"):
        new_texts.read(str(tmp_path / "a.txt"), pair="b")
