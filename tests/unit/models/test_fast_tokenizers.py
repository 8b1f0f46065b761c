"""SentencePiece is the authority, dict.txt gives the numbers, and the fast tokenizer agrees."""

import pytest
import sentencepiece
from builders import ODD_TEXTS, make_dictionary, make_reviews, train_sentencepiece
from builders_subwords import reference, write_model

from seedbed.core.errors import SeedbedError
from seedbed.models.fast_tokenizers import build_tokenizer, dictionary_ids
from seedbed.models.sentencepiece_models import SentencePiece
from seedbed.models.subwords import match_vocabulary

TEXTS = [review["text"] for review in make_reviews(200, seed=1)] + list(ODD_TEXTS)


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
    assert "sentencepiece.model" in error.value.where


def test_other_types_of_models_are_refused(tmp_path):
    model = train_sentencepiece(60, "char")
    with pytest.raises(SeedbedError, match="type 'char' are not supported"):
        build_tokenizer(*write_model(tmp_path, model, make_dictionary(model)))
    (tmp_path / "sentencepiece.model").write_bytes(b"\x00\x01 not a model")
    with pytest.raises(SeedbedError, match="not a SentencePiece model"):
        build_tokenizer(SentencePiece(tmp_path / "sentencepiece.model"), tmp_path / "dict.txt")
