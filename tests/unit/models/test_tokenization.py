"""The rule tokenize_texts: ids, pieces and statistics of splits, and the limits of unknown pieces."""

import shutil
from collections import Counter

import pytest
import sentencepiece
from builders import ODD_TEXTS, make_dictionary, make_reviews, train_sentencepiece
from builders_subwords import reference, write_model

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl, write_json, write_jsonl
from seedbed.models.tokenization import tokenize_texts

TEXTS = [review["text"] for review in make_reviews(200, seed=1)] + list(ODD_TEXTS)


def tokenize(tmp_path, splits: dict[str, list[str]], share: float = 0.01, positions: int = 12, drop=()):
    model = train_sentencepiece(200)
    words = [word for word in make_dictionary(model) if word not in drop]
    _, dictionary = write_model(tmp_path / "subwords", model, words)
    write_json(tmp_path / "model.json", {"max_positions": positions})
    paths = {}
    for split, texts in splits.items():
        paths[split] = tmp_path / f"{split}.jsonl"
        rows = ({"id": f"{split}-{i}", "text": text, "label": i % 2} for i, text in enumerate(texts))
        write_jsonl(paths[split], rows)
    files = {"subwords": dictionary.parent, "dictionary": dictionary, "definition": tmp_path / "model.json"}
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
