"""dict.txt is read as fairseq reads it, and its faults are told with their line."""

import logging

import pytest

from seedbed.core.errors import SeedbedError
from seedbed.models.dictionaries import read_dictionary


def test_dictionary_has_special_tokens_first_and_mask_last(tmp_path):
    (tmp_path / "dict.txt").write_text("▁le 10\n▁ 3\nmadeupword0000 0\n", encoding="utf-8")
    words = ["<s>", "<pad>", "</s>", "<unk>", "▁le", "▁", "madeupword0000", "<mask>"]
    assert read_dictionary(tmp_path / "dict.txt") == words
    (tmp_path / "dict.txt").write_text("▁le 10\n<mask> 1\n", encoding="utf-8")
    assert read_dictionary(tmp_path / "dict.txt")[4:] == ["▁le", "<mask>"]


def test_dictionary_as_fairseq_reads_it(tmp_path):
    from seedbed.models.fairseq_launcher import prepare_import

    prepare_import()
    from fairseq.data import Dictionary

    path = tmp_path / "dict.txt"
    path.write_text("a 1\nb -2\na 3 #fairseq:overwrite\n\u00e9 4\n", encoding="utf-8")
    theirs = Dictionary.load(str(path))
    assert read_dictionary(path) == [*theirs.symbols, "<mask>"]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("▁le 10\n▁le 3\n", 2, "a word is listed twice in the dictionary"),
        ("▁le 10\n<pad> 3\n", 2, "a word is listed twice in the dictionary"),
        ("▁le 10\n▁la\n", 2, "this is not a line of a fairseq dictionary"),
        ("▁le\t-3.5\n", 1, "this is not a line of a fairseq dictionary"),
        ("\n▁le 10\n", 1, "this is not a line of a fairseq dictionary"),
    ],
)
def test_faults_of_a_dictionary_are_told_with_their_line(tmp_path, text, line, what):
    (tmp_path / "dict.txt").write_text(text, encoding="utf-8")
    with pytest.raises(SeedbedError) as error:
        read_dictionary(tmp_path / "dict.txt")
    assert error.value.what == what
    assert error.value.where == f"{tmp_path / 'dict.txt'}, line {line}"
    assert error.value.hint


@pytest.mark.parametrize(
    "content", ["\ufeff▁le 10\n▁la 3\n", "▁le 10 \r\n▁la 3  \r\n", "\ufeff▁le 10\r\n▁la 3"]
)
def test_a_byte_order_mark_and_line_ends_of_windows_are_no_part_of_a_word(tmp_path, caplog, content):
    caplog.set_level(logging.INFO)
    (tmp_path / "dict.txt").write_bytes(content.encode())
    assert read_dictionary(tmp_path / "dict.txt")[4:6] == ["▁le", "▁la"]
    assert "skipped the byte order mark" in caplog.text or content[0] != "\ufeff"


def test_a_dictionary_in_another_encoding_is_told(tmp_path):
    (tmp_path / "dict.txt").write_bytes("▁le 10\n".encode("utf-16"))
    with pytest.raises(SeedbedError, match="iconv -f UTF-16 -t UTF-8"):
        read_dictionary(tmp_path / "dict.txt")
