"""Encoders of the format auto: what is published of them, and what is refused before anything trains."""

import shutil
from pathlib import Path

import builders_checkpoints
import pytest
import torch
from builders import ODD_TEXTS, make_reviews, tiered
from builders_checkpoints import edit, rewrite
from builders_encoders import DEFINITION, KINDS, convert_encoder, make_encoder
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl, write_json, write_jsonl
from seedbed.models import parameters, text_ids

PUBLISHED = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
# names of a head's weights begin with these; BERT's pooler is only sometimes pretrained
HEADS = ("classifier.", "pre_classifier.", "pooler.", "bert.pooler.")
QUERY = "bert.encoder.layer.0.attention.self.query.weight"


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Path:
    return make_encoder(tmp_path_factory.mktemp("models") / "bert", "BERT")


@pytest.fixture
def source(tmp_path, bert) -> Path:
    """A copy of BERT, to be changed."""
    return Path(shutil.copytree(bert, tmp_path / "source_of_it"))


def convert(source: Path, **changes: str) -> Path:
    return builders_checkpoints.convert(source, DEFINITION | changes)


def refused(source: Path, **changes: str) -> SeedbedError:
    error = builders_checkpoints.refused(source, DEFINITION | changes)
    assert not (source.parent / "model" / "huggingface").exists()
    return error


# --- what comes out -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", tiered(KINDS, "BERT", "DeBERTa-v3", "ModernBERT", "XLM-R"))
def test_each_kind_arrives_with_its_weights_and_tokens(tmp_path, kind):
    model = convert_encoder(tmp_path, kind)
    given, published = tmp_path / "archive", model / "huggingface"
    assert {path.name for path in published.iterdir()} == PUBLISHED
    described = read_json(model / "model.json")
    assert (described["format"], described["max_positions"]) == ("auto", 48)
    assert described["new_weights"]
    assert all(name.startswith(HEADS) for name in described["new_weights"])

    theirs = AutoModelForSequenceClassification.from_pretrained(given)
    weights = load_file(published / "model.safetensors")
    expected = {name: w for name, w in theirs.named_parameters() if name not in described["new_weights"]}
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weight, expected[name]) for name, weight in weights.items())
    rows = parameters.tabulate(kind, described, published / "model.safetensors")
    counted = {row["component"]: row["counted"] for row in rows}
    total = counted.pop("total")
    assert total == sum(counted.values()) == sum(weight.numel() for weight in expected.values())

    texts = {split: tmp_path / f"{split}.jsonl" for split in ("train", "test")}
    written = [*(review["text"] for review in make_reviews(20)), *ODD_TEXTS]
    written.remove("madeupword0000 et <unk>NOTUSED")  # a special token of CamemBERT's class, not of the file
    for number, path in enumerate(texts.values()):
        rows = [{"id": str(i), "text": text, "label": 0} for i, text in enumerate(written[number::2])]
        write_jsonl(path, rows)
    text_ids.tokenize(texts, model, tmp_path / "tokens", 1.0)
    tokenizer = AutoTokenizer.from_pretrained(given)
    for split, path in texts.items():
        found = read_jsonl(tmp_path / "tokens" / f"{split}.jsonl")
        read = [row["text"] for row in read_jsonl(path)]
        assert [row["ids"] for row in found] == tokenizer(read, truncation=True, max_length=48)["input_ids"]
        assert [row["length"] for row in found] == [len(ids) for ids in tokenizer(read)["input_ids"]]


def test_an_encoder_saved_alone_and_in_16_bits(tmp_path):
    given = make_encoder(tmp_path / "given", "BERT", head="none")
    rewrite(given, lambda weights: weights.update({k: w.half() for k, w in weights.items()}))
    described = read_json(convert(given) / "model.json")
    assert described["new_weights"] == ["classifier.bias", "classifier.weight"]  # its pooler was saved
    assert described["dtypes"] == ["float16"]
    published = load_file(given.parent / "model" / "huggingface" / "model.safetensors")
    assert {weight.dtype for weight in published.values()} == {torch.float32}


@pytest.mark.parametrize("kind", ["RoBERTa, byte-level BPE", "ModernBERT"])
def test_the_head_of_an_earlier_fine_tuning_is_not_used(tmp_path, caplog, kind):
    described = read_json(convert_encoder(tmp_path, kind, head="classification") / "model.json")
    assert {name.split(".")[0] for name in described["new_weights"]} <= {"classifier", "head"}
    assert (
        "classifier.weight" in described["new_weights"]
        or "classifier.dense.weight" in described["new_weights"]
    )
    assert "the head of an earlier fine-tuning" in caplog.text


def test_torch_weights_and_shards_are_read_where_there_is_no_safetensors(source):
    weights = load_file(source / "model.safetensors")
    expected = load_file(convert(source) / "huggingface" / "model.safetensors")
    (source / "model.safetensors").unlink()
    torch.save(weights, source / "pytorch_model.bin")
    for form in ("whole", "shards"):
        found = load_file(convert(source) / "huggingface" / "model.safetensors")
        assert all(torch.equal(weight, found[name]) for name, weight in expected.items()), form
        names = sorted(weights)
        parts = {"a.bin": names[::2], "b.bin": names[1::2]}
        for file, part in parts.items():
            torch.save({name: weights[name] for name in part}, source / file)
        where = {name: file for file, part in parts.items() for name in part}
        write_json(source / "pytorch_model.bin.index.json", {"weight_map": where})
        (source / "pytorch_model.bin").unlink(missing_ok=True)


def test_the_files_of_a_slow_tokenizer_are_converted(source):
    text = "L'Histoire reste magnifique, près de la fenêtre [MASK]."
    expected = AutoTokenizer.from_pretrained(source)(text)["input_ids"]
    vocabulary = read_json(source / "tokenizer.json")["model"]["vocab"]
    lines = "".join(f"{token}\n" for token in sorted(vocabulary, key=vocabulary.get))
    (source / "vocab.txt").write_text(lines, encoding="utf-8")
    (source / "tokenizer.json").unlink()
    published = convert(source) / "huggingface"
    assert AutoTokenizer.from_pretrained(published)(text)["input_ids"] == expected


def test_a_tokenizer_that_autotokenizer_rebuilds_otherwise_stays_as_it_is(source, caplog):
    content = read_json(source / "tokenizer.json")
    content["normalizer"]["lowercase"] = False  # BertTokenizer's class follows tokenizer_config.json
    write_json(source / "tokenizer.json", content)
    edit(source / "tokenizer_config.json", do_lower_case=True)
    published = convert(source) / "huggingface"
    assert read_json(published / "tokenizer.json") == content
    assert "AutoTokenizer makes other tokens" in caplog.text


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"config": {"max_position_embeddings": None}, "tokenizer": {"model_max_length": None}}, 512),
        ({"config": {}, "tokenizer": {"model_max_length": 30}}, 30),
        ({"config": {"max_position_embeddings": 0}, "tokenizer": {"model_max_length": None}}, None),
    ],
)
def test_relative_positions_have_the_limit_of_config_or_tokenizer(tmp_path, changes, expected):
    given = make_encoder(tmp_path / "given", "DeBERTa-v3")
    edit(given / "config.json", **changes["config"])
    edit(given / "tokenizer_config.json", **changes["tokenizer"])
    assert read_json(convert(given) / "model.json")["max_positions"] == expected


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_code_of_the_authors_is_refused(source, file):
    edit(source / file, auto_map={"AutoModel": "modeling_own.Own"})
    error = refused(source)
    assert error.what == "the model needs code of its authors, which is never run"
    assert error.where.endswith(f"{file}, auto_map")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model_type": "my_bert"}, "does not know its type"),
        ({"model_type": "dpr", "architectures": ["DPRQuestionEncoder"]}, "no class of its type"),
        (
            {"model_type": "t5", "is_encoder_decoder": True, "architectures": ["T5Model"]},
            "an encoder-decoder",
        ),
        ({"is_decoder": True}, "predicts the next token"),
    ],
)
def test_a_model_that_cannot_classify_is_refused(source, changes, told):
    edit(source / "config.json", **changes)
    error = refused(source)
    assert told in error.what
    assert "take an encoder, such as BERT" in error.hint


def test_a_tokenizer_without_a_padding_token_is_refused(source):
    edit(source / "tokenizer_config.json", pad_token="[NOTHING]")
    error = refused(source)
    assert error.what == "the tokenizer has no padding token"
    assert "tokenizer_config.json" in error.hint


def test_a_tokenizer_without_special_tokens_is_refused(tmp_path):
    given = make_encoder(tmp_path / "given", "ModernBERT")
    edit(given / "tokenizer.json", post_processor=None)
    assert "no special token around a text" in refused(given).what


def test_no_tokenizer_is_refused(source):
    (source / "tokenizer.json").unlink()
    error = refused(source)
    assert error.what == "the tokenizer has no vocabulary"
    assert "tokenizer.json" in error.hint


def drop(weights: dict[str, torch.Tensor]) -> None:
    del weights[QUERY]


def misspell(weights: dict[str, torch.Tensor]) -> None:
    weights[QUERY.replace("query", "querry")] = weights.pop(QUERY)


def add_layer(weights: dict[str, torch.Tensor]) -> None:
    weights[QUERY.replace("layer.0", "layer.2")] = weights[QUERY].clone()


def cut(weights: dict[str, torch.Tensor]) -> None:
    weights[QUERY] = weights[QUERY][:-1].contiguous()


def break_number(weights: dict[str, torch.Tensor]) -> None:
    weights[QUERY][0, 0] = float("nan")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (drop, "the weights do not fit the network"),
        (misspell, "the weights do not fit the network"),
        (add_layer, "the weights do not fit the network"),
        (cut, "the shape of a weight differs"),
        (break_number, "not finite numbers"),
    ],
)
def test_a_wrong_weight_of_the_encoder_never_starts_at_random(source, change, told):
    rewrite(source, change)
    error = refused(source)
    assert told in error.what
    assert "layer." in f"{error.where} {error.found}"


def test_more_tokens_than_rows_are_refused(source):
    rows = "bert.embeddings.word_embeddings.weight"
    rewrite(source, lambda weights: weights.update({rows: weights[rows][:-5].contiguous()}))
    edit(source / "config.json", vocab_size=read_json(source / "config.json")["vocab_size"] - 5)
    assert refused(source).what == "the tokenizer has more tokens than the embedding has rows"


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_damaged_file_is_one_clear_error(source, name):
    data = (source / name).read_bytes()
    (source / name).write_bytes(data[: len(data) // 2])
    error = refused(source)
    assert name in error.where
    assert error.hint


@pytest.mark.parametrize("kind", ["BERT", "RoBERTa, byte-level BPE"])
def test_another_format_is_told_this_one(tmp_path, kind):
    given = make_encoder(tmp_path / "given", kind)
    other = {"format": "huggingface", "sentencepiece": "sentencepiece.bpe.model"}
    assert "format: auto" in refused(given, **other).hint


def test_texts_of_unknown_tokens_are_refused_with_their_letters(tmp_path, bert):
    model = builders_checkpoints.convert(Path(shutil.copytree(bert, tmp_path / "given")), DEFINITION)
    write_jsonl(tmp_path / "test.jsonl", [{"id": "a", "text": "日本語 est magnifique", "label": 0}])
    with pytest.raises(SeedbedError, match="of the pieces in the split 'test' are unknown") as error:
        text_ids.tokenize({"test": tmp_path / "test.jsonl"}, model, tmp_path / "tokens", 0.01)
    assert "日" in str(error.value.found)
    assert not (tmp_path / "tokens").exists()


def test_ids_that_autotokenizer_does_not_give_are_refused(tmp_path, bert):
    model = builders_checkpoints.convert(Path(shutil.copytree(bert, tmp_path / "given")), DEFINITION)
    edit(
        model / "huggingface" / "tokenizer_config.json", tokenizer_class="BertTokenizer", do_lower_case=False
    )
    write_jsonl(tmp_path / "test.jsonl", [{"id": "a", "text": "Magnifique", "label": 0}])
    with pytest.raises(SeedbedError, match="AutoTokenizer gives 1 of 1 texts other ids"):
        text_ids.tokenize({"test": tmp_path / "test.jsonl"}, model, tmp_path / "tokens", 1.0)
