"""Token ids: SentencePiece is the authority, dict.txt gives the numbers, the fast tokenizer agrees."""

import logging
import shutil
from collections import Counter
from pathlib import Path

import pytest
import sentencepiece
from builders import ODD_TEXTS, make_dictionary, make_reviews, train_sentencepiece

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl, write_json, write_jsonl
from seedbed.models.tokenization import (
    build_tokenizer,
    dictionary_ids,
    match_vocabulary,
    read_dictionary,
    tokenize_texts,
)

TEXTS = [review["text"] for review in make_reviews(200, seed=1)] + list(ODD_TEXTS)


def write_model(folder: Path, model: bytes, words: list[str]) -> tuple[Path, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spm.model").write_bytes(model)
    (folder / "dict.txt").write_text("".join(f"{word} 1\n" for word in words), encoding="utf-8")
    return folder / "spm.model", folder / "dict.txt"


def reference(model: bytes, words: list[str], text: str) -> list[int]:
    """Ids by hand: SentencePiece's pieces, looked up in the list of words, which starts at 4."""
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model).encode(text, out_type=str)
    return [0, *(4 + words.index(piece) if piece in words else 3 for piece in pieces), 2]


# --- dict.txt ---


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


# --- the fast tokenizer ---


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"byte_fallback": True},
        {"normalization_rule_name": "identity", "character_coverage": 0.98},
        {"add_dummy_prefix": False, "remove_extra_whitespaces": False},
        {"split_by_whitespace": False},
    ],
    ids=str,
)
def test_fast_tokenizer_gives_the_ids_of_sentencepiece(tmp_path, kind, options):
    model = train_sentencepiece(460, kind, **options)
    words = make_dictionary(model)
    tokenizer = build_tokenizer(*write_model(tmp_path, model, words))
    for text in TEXTS:
        found, expected = tokenizer.encode(text).ids, reference(model, words, text)
        if kind == "bpe":
            assert found == expected
        else:  # two splits of a text may have one score: the same pieces in another order
            assert sorted(found) == sorted(expected), text


def test_unigram_texts_differ_only_where_scores_tie(tmp_path):
    model = train_sentencepiece(460, "unigram")
    words = make_dictionary(model)
    tokenizer = build_tokenizer(*write_model(tmp_path, model, words))
    equal = [tokenizer.encode(text).ids == reference(model, words, text) for text in TEXTS]
    assert sum(equal) >= 0.95 * len(TEXTS)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_ids_follow_the_strings_of_the_pieces_not_their_positions(tmp_path, kind):
    model = train_sentencepiece(200, kind)
    words = sorted(make_dictionary(model))  # any order
    words.insert(100, "madeupword0000")
    files = write_model(tmp_path, model, words)
    tokenizer, vocabulary = build_tokenizer(*files), match_vocabulary(*files)
    text = "Le récit est vraiment touchant. madeupword0000"
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model).encode(text, out_type=str)
    expected = reference(model, words, text)
    assert [0, *vocabulary.ids(pieces), 2] == expected
    assert tokenizer.encode(text).ids == expected
    assert tokenizer.token_to_id("<mask>") == 4 + len(words)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_pieces_that_the_dictionary_lacks_are_unknown(tmp_path, kind):
    model = train_sentencepiece(200, kind)
    words = [word for word in make_dictionary(model) if word not in ("▁de", "e", "re", "a")]
    files = write_model(tmp_path, model, words)
    tokenizer, vocabulary = build_tokenizer(*files), match_vocabulary(*files)
    assert set(vocabulary.outside) <= {"▁de", "e", "re", "a"}
    size = len(words) + 5
    for text in TEXTS:
        expected = reference(model, words, text)
        found = dictionary_ids(tokenizer.encode(text).ids, size)
        assert found == expected or (kind == "unigram" and sorted(found) == sorted(expected))
    assert 3 in reference(model, words, "de la lecture")


def test_special_tokens_in_a_text_are_text(tmp_path):
    model = train_sentencepiece(200)
    words = make_dictionary(model)
    tokenizer = build_tokenizer(*write_model(tmp_path, model, words))
    ids = tokenizer.encode("<s> <pad> </s> <mask>").ids
    assert ids == reference(model, words, "<s> <pad> </s> <mask>")
    assert not {0, 1, 2, len(words) + 4} & set(ids[1:-1])


def test_a_few_words_that_are_no_pieces_pass_and_many_do_not(tmp_path):
    model = train_sentencepiece(200)
    words = make_dictionary(model)
    files = write_model(tmp_path, model, [*words[:-1], "étranger", "<unk>NOTUSED", "madeupword0000"])
    assert match_vocabulary(*files).foreign == ["étranger"]
    write_model(tmp_path, model, [*words[:-2], "étranger", "inconnu"])
    with pytest.raises(SeedbedError, match="belong to different models") as error:
        match_vocabulary(*files)
    assert "2 of 197 words" in error.value.found
    assert "'étranger', 'inconnu'" in error.value.found
    assert "spm.model" in error.value.where


def test_other_types_of_models_are_refused(tmp_path):
    model = train_sentencepiece(60, "char")
    with pytest.raises(SeedbedError, match="type 'char' are not supported"):
        build_tokenizer(*write_model(tmp_path, model, make_dictionary(model)))
    (tmp_path / "spm.model").write_bytes(b"\x00\x01 not a model")
    with pytest.raises(SeedbedError, match="not a SentencePiece model"):
        build_tokenizer(tmp_path / "spm.model", tmp_path / "dict.txt")


# --- tokenize_texts ---


def tokenize(tmp_path, splits: dict[str, list[str]], share: float = 0.01, positions: int = 12, drop=()):
    model = train_sentencepiece(200)
    words = [word for word in make_dictionary(model) if word not in drop]
    spm, dictionary = write_model(tmp_path, model, words)
    write_json(tmp_path / "model.json", {"max_positions": positions})
    paths = {}
    for split, texts in splits.items():
        paths[split] = tmp_path / f"{split}.jsonl"
        rows = ({"id": f"{split}-{i}", "text": text, "label": i % 2} for i, text in enumerate(texts))
        write_jsonl(paths[split], rows)
    files = {"sentencepiece": spm, "dictionary": dictionary, "definition": tmp_path / "model.json"}
    statistics = tokenize_texts(paths, files, tmp_path / "tokens", share)
    return model, words, statistics


def test_ids_pieces_and_statistics(tmp_path):
    short, long = "Le récit", "Le récit est vraiment touchant, magnifique et drôle."
    model, words, statistics = tokenize(tmp_path, {"train": [short, long], "test": [""]})
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model).encode(long, out_type=str)
    assert len(pieces) > 10
    rows = read_jsonl(tmp_path / "tokens" / "train.jsonl")
    ids = reference(model, words, short)
    assert rows[0] == {"id": "train-0", "label": 0, "ids": ids, "length": len(ids)}
    ids = [*reference(model, words, long)[:11], 2]
    assert rows[1] == {"id": "train-1", "label": 1, "ids": ids, "length": len(pieces) + 2}
    lines = (tmp_path / "tokens" / "train.pieces").read_text(encoding="utf-8").split("\n")
    assert lines[1:] == [" ".join(pieces[:10]), ""]
    assert read_jsonl(tmp_path / "tokens" / "test.jsonl")[0]["ids"] == [0, 2]
    assert (tmp_path / "tokens" / "test.pieces").read_text() == "\n"
    first = len(rows[0]["ids"])
    assert statistics == read_json(tmp_path / "tokens" / "statistics.json")
    expected = {"texts": 2, "tokens": first + 12, "longest": len(pieces) + 2, "truncated": 1}
    assert statistics["train"] == expected | {
        "truncated_share": 0.5,
        "unknown": 0,
        "unknown_share": 0.0,
        "least_limit": 0.0,
    }
    assert statistics["test"]["tokens"] == 2


def test_too_many_unknown_pieces(tmp_path):
    good = "Le récit est touchant."
    with pytest.raises(SeedbedError) as error:
        tokenize(tmp_path, {"train": [good] * 50, "test": [good, "Le 日本 ☃ ☃", "☃"]}, positions=40)
    text = str(error.value)
    assert "of the pieces in the split 'test' are unknown, more than 1.0%" in text
    assert "test.jsonl, first on line 2: 'Le 日本 ☃ ☃'" in text
    assert "'☃' (3 times), '日本' (1 times)" in text
    assert "raise checks.max_unknown_share in the config" in text
    assert not (tmp_path / "tokens" / "statistics.json").exists()
    assert not (tmp_path / "tokens" / "test.jsonl").exists()


def test_unknown_pieces_are_written_so_that_fairseq_cannot_split_them(tmp_path):
    """U+0085 is an unknown character for SentencePiece and white space for fairseq."""
    _, _, statistics = tokenize(tmp_path, {"train": ["Le\x85 récit ☃"]}, share=1.0, positions=40)
    (line,) = (tmp_path / "tokens" / "train.pieces").read_text(encoding="utf-8").splitlines()
    assert line.split().count("<unk>") == 2
    assert len(line.split()) + 2 == len(read_jsonl(tmp_path / "tokens" / "train.jsonl")[0]["ids"])
    assert statistics["train"]["unknown"] == 2


def test_a_share_right_at_the_limit_passes(tmp_path):
    _, _, statistics = tokenize(tmp_path, {"train": ["a a a ☃"]}, share=1.0, positions=40)
    tokenize(tmp_path, {"train": ["a a a ☃"]}, share=statistics["train"]["unknown_share"], positions=40)


@pytest.mark.parametrize("limit", [0.5, 1.0])
def test_a_dictionary_may_not_lack_the_most_frequent_piece_whatever_its_share(tmp_path, limit):
    model = sentencepiece.SentencePieceProcessor(model_proto=train_sentencepiece(200))
    counts = Counter(piece for text in TEXTS for piece in model.encode(text, out_type=str))
    piece, count = counts.most_common(1)[0]
    with pytest.raises(SeedbedError) as error:
        tokenize(tmp_path, {"train": TEXTS}, share=limit, positions=400, drop=(piece,))
    assert error.value.what == "the dictionary lacks a frequent piece of the split 'train'"
    assert f"{piece!r} ({count} times)" in error.value.found
    assert "max_unknown_share" not in error.value.hint
    assert not (tmp_path / "tokens").exists()


def test_a_frequent_piece_that_the_dictionary_lacks_is_refused_below_the_limit_of_all(tmp_path, caplog):
    """As a byte order mark or a lost character in one line of dict.txt makes it."""
    texts = ["a a a a a a a a a a a a"] * 80
    few, many = [*texts, *["é"] * 4], [*texts, *["é"] * 8]
    found = tokenize(tmp_path, {"train": few}, positions=40, drop=("▁é",))[2]["train"]
    assert (found["unknown"], found["least_limit"]) == (4, found["unknown_share"])
    assert "train: pieces that the dictionary lacks are <unk>: '▁é' (4 times)" in caplog.text
    shutil.rmtree(tmp_path / "tokens")
    with pytest.raises(SeedbedError) as error:
        tokenize(tmp_path, {"train": many}, positions=40, drop=("▁é",))
    assert error.value.found == "'▁é' (8 times); the first is 0.83% of all pieces"
    assert "set checks.max_unknown_share to 0.083 or more" in error.value.hint
    found = tokenize(tmp_path, {"train": many}, share=0.083, positions=40, drop=("▁é",))[2]["train"]
    assert found["least_limit"] == pytest.approx(10 * 8 / 968)
