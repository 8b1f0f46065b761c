"""Tokenizers from outside that take all memory or time, or break their library: refused, without a hang."""

import json
import resource
import time

import pytest
from builders_causal import CLASSES, make_questions, train_tokenizer

from seedbed.core.errors import SeedbedError
from seedbed.models import tokenizer_probe
from seedbed.models.prompts import load_tokenizer

GROWING = {"type": "Replace", "pattern": {"String": "e"}, "content": "ee"}


def replace(expression, content="x"):
    return {"type": "Replace", "pattern": {"Regex": expression}, "content": content}


def split(expression):
    return {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}


def sequence(kind, steps):
    return {"type": "Sequence", kind: steps}


def write(folder, kind="bloom", **parts):
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads(train_tokenizer(kind)) | parts), encoding="utf-8")
    return path


def refused(path, texts=()):
    began = time.monotonic()
    with pytest.raises(SeedbedError) as caught:
        tokenizer_probe.check(path, texts)
    assert time.monotonic() - began < 60
    told = str(caught.value)
    assert str(path) in told
    assert len(told.splitlines()) == 4
    assert "Traceback" not in told
    return told


HARMFUL = {
    "normalizers that double a letter": {"normalizer": sequence("normalizers", [GROWING] * 22)},
    "a dozen of them": {"normalizer": sequence("normalizers", [GROWING] * 12)},
    "more than there is memory for": {
        "normalizer": sequence("normalizers", [replace("q", "q" * 10**4), replace("q", "q" * 10**4)])
    },
    "one long replacement": {"normalizer": replace("q", "x" * 10**6)},
    "a long prefix": {"normalizer": {"type": "Prepend", "prepend": "x" * 10**6}},
    "a regular expression": {"normalizer": replace("(a+)+$")},
    "of other letters": {"normalizer": replace("(é+)+$")},
    "of a class": {"normalizer": replace(r"(\w+\s?)+$")},
    "of a script": {"normalizer": replace(r"(\p{Han}+)+$")},
    "of two letters": {"normalizer": replace("(zq|z|q)+$")},
    "of a range": {"normalizer": replace("([b-y]+)*[0-9]")},
    "of spaces": {"normalizer": replace(r"(\s*)*\z")},
    "before the model": {"pre_tokenizer": split("(a|aa)+$")},
    "in a sequence": {"pre_tokenizer": sequence("pretokenizers", [split("(x+x+)+y")])},
    "behind the model": {"decoder": sequence("decoders", [GROWING] * 22)},
    "an expression behind the model": {
        "decoder": sequence("decoders", [{"type": "Fuse"}, replace("(a+)+$")])
    },
    "an expression that is none": {"normalizer": replace("(")},
    "a charsmap that is none": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "////////"}},
    "a part that is none": {"post_processor": {"type": "None"}},
}


@pytest.mark.parametrize("parts", HARMFUL.values(), ids=HARMFUL)
def test_what_takes_all_memory_or_time_is_refused(tmp_path, parts, capfd):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(write(tmp_path, **parts))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 100 * 2**10  # KiB
    assert capfd.readouterr().err == ""  # where the library says that it panics


def test_a_post_processor_that_adds_thousands_of_tokens_is_refused(tmp_path):
    special = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    number = json.loads(train_tokenizer("bloom"))["model"]["vocab"]["<s>"]
    template = {
        "type": "TemplateProcessing",
        "single": [special] * 5000 + [{"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [number], "tokens": ["<s>"]}},
    }
    assert "tokens of " in refused(write(tmp_path, post_processor=template))


HONEST = {
    "nfkc": {"normalizer": {"type": "NFKC"}},
    "nfd": {"normalizer": sequence("normalizers", [{"type": "NFD"}, {"type": "StripAccents"}])},
    "sentencepiece": {
        "normalizer": sequence(
            "normalizers", [replace(" {2,}", " "), {"type": "Prepend", "prepend": "▁"}, replace(r"▁+\z", "")]
        )
    },
    "llama 3": {
        "pre_tokenizer": sequence(
            "pretokenizers",
            [
                split(
                    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
                    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
                ),
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
            ],
        )
    },
    "bloom": {"pre_tokenizer": split(" ?[^(\\s|[.,!?…。，、।۔،])]+")},
    "words of bert": {"normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "BertPreTokenizer"}},
}


@pytest.mark.parametrize("parts", HONEST.values(), ids=HONEST)
def test_what_tokenizers_have_passes(tmp_path, parts):
    tokenizer_probe.check(write(tmp_path, **parts))


@pytest.mark.parametrize("kind", CLASSES)
def test_tokenizers_of_models_pass_on_texts_of_any_length(tmp_path, kind):
    path = write(tmp_path, kind)
    tokenizer_probe.check(path)
    texts = [row["question"] for row in make_questions(50)]
    tokenizer_probe.check(path, [*texts, "", "é" * 20_000, " ".join(texts * 100)])


def test_an_expression_that_only_the_texts_of_a_dataset_break_is_refused_before_they_are_encoded(tmp_path):
    path = write(tmp_path, normalizer=replace(r"((\p{Cyrillic}\p{Greek})+)+$"))
    tokenizer_probe.check(path)
    assert "crashes on this file or on a text" in refused(path, ["a text", "жω" * 40 + "!"])


def test_a_panic_while_a_tokenizer_is_loaded_is_an_error(tmp_path):
    path = write(tmp_path, normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"})
    with pytest.raises(SeedbedError):
        load_tokenizer(path)
