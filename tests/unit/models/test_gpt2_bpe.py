"""GPT-2's BPE: fairseq is the authority, dict.txt gives the ids, and the fast tokenizer agrees."""

import functools
import json
import shutil
from pathlib import Path

import builders_checkpoints
import pytest
from builders import ODD_TEXTS, make_dictionary, make_reviews, train_sentencepiece
from builders_checkpoints import make_roberta_base
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbed.core.files import read_json
from seedbed.models.fairseq_launcher import prepare_import
from seedbed.models.fast_tokenizers import build_tokenizer, dictionary_ids
from seedbed.models.gpt2_bpe import Gpt2Bpe
from seedbed.models.subwords import match_vocabulary

DEFINITION = {
    "source": "lab",
    "checkpoint": "model.pt",
    "dictionary": "dict.txt",
    "sentencepiece": "sentencepiece.bpe.model",
}
NAMED = {key: DEFINITION[key] for key in ("source", "checkpoint", "dictionary")}
NAMED |= {"encoder": "encoder.json", "bpe": "vocab.bpe"}
HARD = (
    "« guillemets » ‹ fins ›, “anglais” ‘simples’ et l’apostrophe",
    "I'll don't we've he'd they're I'M 'sound' ''",
    "  deux espaces  devant et derrière  ",
    "\ttabulation\n\n ligne \r\n\x0b\x0c\x1c\x1d\x1e\x1f\x85 fin",
    "\x00\x01\x07\x08\x1b[31m\x7f\x80\x9f\xad",
    "👩‍👩‍👧‍👦 🇫🇷 👍🏽 ❤️ 1️⃣ 😀😀",
    "\u00a0\u2003\u2009\u202f\u3000 blancs \u200b\u200d\u2060\ufeff",
    "١٢٣ ४५६ Ⅷ ½ ² 12,5 3 000 1e-5",
    "日本語テキスト 한국어 العربية हिन्दी ไทย",
    "<|endoftext|> <s></s> <mask> madeupword0000 50256 13 850314647",
    "\U0010ffff\ufffe\U000e0041 e\u0301",
)
TEXTS = [review["text"] for review in make_reviews(100, seed=1)] + [*ODD_TEXTS, *HARD]


@pytest.fixture
def source(tmp_path) -> Path:
    return make_roberta_base(tmp_path / "archive")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    return make_roberta_base(tmp_path_factory.mktemp("roberta.base"))


def refused(source: Path, definition=DEFINITION):
    return builders_checkpoints.refused(source, definition)


@functools.lru_cache
def fairseq_encoder(folder: Path):
    """fairseq's way from a text to ids: its GPT2BPE, its Dictionary with `<mask>`, `<s>` before it."""
    prepare_import()
    from fairseq.data import Dictionary
    from fairseq.data.encoders.gpt2_bpe import GPT2BPE, GPT2BPEConfig

    files = {"gpt2_encoder_json": "encoder.json", "gpt2_vocab_bpe": "vocab.bpe"}
    bpe = GPT2BPE(GPT2BPEConfig(**{key: str(folder / name) for key, name in files.items()}))
    dictionary = Dictionary.load(str(folder / "dict.txt"))
    dictionary.add_symbol("<mask>")
    return bpe, dictionary


def reference(folder: Path, text: str) -> list[int]:
    bpe, dictionary = fairseq_encoder(folder)
    line = f"<s> {bpe.encode(text)} </s>"
    return dictionary.encode_line(line, append_eos=False, add_if_not_exist=False).tolist()


@functools.lru_cache
def opened(folder: Path):
    """The BPE of a folder, its vocabulary and its fast tokenizer."""
    splitter, dictionary = Gpt2Bpe(folder / "encoder.json", folder / "vocab.bpe"), folder / "dict.txt"
    return splitter, match_vocabulary(splitter, dictionary), build_tokenizer(splitter, dictionary)


def test_ids_are_those_of_fairseq_and_of_the_fast_tokenizer(made):
    splitter, vocabulary, fast = opened(made)
    for text, pieces in zip(TEXTS, splitter.encode(TEXTS), strict=True):
        expected = reference(made, text)
        assert [0, *vocabulary.ids(pieces), 2] == expected, text
        assert fast.encode(text).ids == expected, text
        assert fast.decode(expected) == text
    assert vocabulary.foreign == vocabulary.outside == []
    assert fast.token_to_id("<mask>") == len(vocabulary.words) - 1


# characters that no version of Unicode in use leaves unassigned: libraries differ in those
@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs", "Cn")), max_size=40))
def test_any_text_has_the_ids_of_fairseq(made, text):
    splitter, vocabulary, fast = opened(made)
    expected = reference(made, text)
    (pieces,) = splitter.encode([text])
    assert [0, *vocabulary.ids(pieces), 2] == expected
    assert fast.encode(text).ids == expected


def test_numbers_that_the_dictionary_lacks_are_unknown(source):
    lines = (source / "dict.txt").read_text(encoding="utf-8").splitlines()
    (source / "dict.txt").write_text("".join(f"{line}\n" for line in lines[2:]), encoding="utf-8")
    _, vocabulary, fast = opened(source)
    left_out = {line.split()[0] for line in lines[:2]}
    assert set(vocabulary.outside) == left_out
    text = TEXTS[0]
    assert 3 in reference(source, text)
    assert dictionary_ids(fast.encode(text).ids, len(vocabulary.words)) == reference(source, text)


def test_the_files_are_found_beside_the_weights_or_by_their_names(source):
    model = builders_checkpoints.convert(source, DEFINITION)
    made = {path.name for path in (model / "subwords").iterdir()}
    assert made == {"encoder.json", "vocab.bpe"}
    described = read_json(model / "model.json")
    assert described["byte_level_bpe_merges"] == 60
    assert described["words_without_piece"] == described["pieces_without_word"] == 0
    assert "decoder.sentence_encoder.version" in described["ignored_keys"]
    tokenizer = (model / "huggingface" / "tokenizer.json").read_bytes()
    (source / "gpt2").mkdir()
    (source / "encoder.json").rename(source / "gpt2" / "vocab.json")
    (source / "vocab.bpe").rename(source / "gpt2" / "merges.txt")
    named = {**NAMED, "encoder": "gpt2/vocab.json", "bpe": "gpt2/merges.txt"}
    model = builders_checkpoints.convert(source, named)
    assert (model / "huggingface" / "tokenizer.json").read_bytes() == tokenizer


@pytest.mark.parametrize("missing", ["encoder.json", "vocab.bpe"])
def test_a_missing_file_of_the_bpe_is_named(source, missing):
    (source / missing).unlink()
    error = refused(source)
    assert error.what.startswith("the words of the dictionary are numbers of GPT-2's tokens")
    assert "dict.txt" in error.where
    assert missing not in error.found
    assert f"gpt2_bpe/{missing}" in error.hint
    error = refused(source, NAMED)
    assert error.what == f"the source 'lab' has no file {missing!r}"


def test_a_sentencepiece_model_does_not_fit_a_dictionary_of_numbers(source):
    (source / DEFINITION["sentencepiece"]).write_bytes(train_sentencepiece(200))
    error = refused(source)
    assert error.what.startswith("the words of the dictionary are numbers of GPT-2's tokens")
    assert error.found == "sentencepiece.bpe.model, a SentencePiece model"
    assert "as encoder and bpe" in error.hint
    builders_checkpoints.convert(source, NAMED)


def test_gpt2s_bpe_does_not_fit_a_dictionary_of_pieces(source):
    words = make_dictionary(train_sentencepiece(200))
    (source / "dict.txt").write_text("".join(f"{word} 1\n" for word in words), encoding="utf-8")
    error = refused(source, NAMED)
    assert error.what == "the dictionary and GPT-2's BPE belong to different models"
    assert "dict.txt" in error.where
    assert "encoder.json" in error.where
    assert error.hint.startswith(
        "take dict.txt, unaltered, from the checkpoint's own archive; take encoder.json"
    )


def change_numbers(source: Path, change) -> None:
    numbers = json.loads((source / "encoder.json").read_text(encoding="utf-8"))
    (source / "encoder.json").write_text(json.dumps(change(numbers)), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "what", "found"),
    [
        (
            lambda numbers: {token: number + 1000 for token, number in numbers.items()},
            "the dictionary and GPT-2's BPE belong to different models",
            "317 of 317 words of the dictionary are not pieces",
        ),
        (
            lambda numbers: {token: n for token, n in numbers.items() if n not in (3, 300)},
            "encoder.json and vocab.bpe belong to different models",
            "2 bytes or merged tokens have no number",
        ),
        (lambda numbers: numbers | {"<s>": 900}, "a token of the BPE has the name of a special token", "<s>"),
        (lambda numbers: numbers | {"x": 4, "y": 4}, "this file does not give each token", "given twice"),
        (lambda numbers: numbers | {"x": "4"}, "this file does not give each token", "1 values are no"),
        (lambda numbers: numbers | {"\ud800": 900}, "this file does not give each token", "surrogates"),
        (list, "this file does not give each token", "a JSON list"),
    ],
)  # fmt: skip
def test_an_encoder_that_does_not_fit_is_refused(source, change, what, found):
    change_numbers(source, change)
    error = refused(source)
    assert error.what.startswith(what)
    assert found in error.found
    assert "encoder.json" in error.where
    assert error.hint


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda lines: lines[1:], 1),
        (lambda lines: [*lines[:5], "a b c", *lines[5:]], 6),
        (lambda lines: [*lines[:5], "", *lines[5:]], 6),
        (lambda lines: [*lines[:5], "abc", *lines[5:]], 6),
    ],
)
def test_faults_of_a_file_of_merges_are_told_with_their_line(source, change, line):
    path = source / "vocab.bpe"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("".join(f"{each}\n" for each in change(lines)), encoding="utf-8")
    error = refused(source)
    assert error.what == "this is not a line of a vocab.bpe with the merges of a BPE"
    assert error.where.endswith(f"vocab.bpe, line {line}")


def test_merges_of_another_bpe_are_refused(source, tmp_path):
    shutil.copy(make_roberta_base(tmp_path / "other", merges=90) / "vocab.bpe", source)
    error = refused(source)
    assert error.what == "encoder.json and vocab.bpe belong to different models"
    assert error.found.startswith("30 bytes or merged tokens have no number")
