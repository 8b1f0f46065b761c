"""Pairs of texts as token ids: those of Transformers for every kind of model, in both frameworks."""

import shutil

import pytest
from builders import make_fairseq_checkpoint, make_manifest, tiered
from builders_checkpoints import make_huggingface_model, make_roberta_base
from builders_encoders import KINDS, convert_encoder
from builders_pairs import SPLITS, tokenize, write_pairs
from transformers import AutoTokenizer

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl, write_json, write_jsonl
from seedbed.models import conversion, intake, text_ids
from seedbed.models.parity import check_parity

LAB = {"format": "fairseq", "checkpoint": "model.pt", "dictionary": "dict.txt", "config": None}
HUB = {
    "format": "huggingface",
    "checkpoint": "model.safetensors",
    "dictionary": None,
    "config": "config.json",
}
MODELS = {
    "SentencePiece of type BPE": (make_fairseq_checkpoint, {}, LAB),
    "SentencePiece of type unigram": (make_fairseq_checkpoint, {"model_type": "unigram"}, LAB),
    "GPT-2's BPE": (make_roberta_base, {}, LAB),
    "CamemBERT": (make_huggingface_model, {"kind": "camembert", "vocab": 203}, HUB),
}
TYPED = ("BERT", "ELECTRA", "DeBERTa")  # these have two types of tokens here


@pytest.fixture(scope="module", params=MODELS)
def data(request, tmp_path_factory):
    """A folder with a converted model, prepared pairs and their tokens."""
    folder = tmp_path_factory.mktemp("pairs")
    make, options, definition = MODELS[request.param]
    source = make_manifest(make(folder / "archive", **options), folder / "source")
    definition = {"source": "made", "sentencepiece": "sentencepiece.bpe.model", **definition}
    asked = intake.prepare(source, definition)
    conversion.work({**asked, "folder": str(folder / "model")}, forked=False)
    tokenize(folder, folder / "model")
    return folder


def columns(path):
    rows = read_jsonl(path)
    return [row["text"] for row in rows], [row["text_pair"] for row in rows]


def test_the_rows_of_pairs(data):
    limit = read_json(data / "model" / "model.json")["max_positions"]
    rows = read_jsonl(data / "tokens" / "train.jsonl")
    pieces = (data / "tokens" / "train.pieces").read_text(encoding="utf-8").splitlines()
    cut = 0
    for row, line in zip(rows, pieces, strict=True):
        before, first, between, second, after = row["pair"]
        assert (before, between, after) == (1, 2, 1)
        assert row["length"] == first + second + 4
        assert len(row["ids"]) == min(limit, row["length"])
        kept = [len(part.split(" ")) for part in line.split("\t")]
        border = row["ids"].index(2)
        assert (row["ids"][0], row["ids"][border : border + 2], row["ids"][-1]) == (0, [2, 2], 2)
        assert kept == [border - 1, len(row["ids"]) - border - 3]
        cut += row["length"] > limit
    assert 0 < cut < len(rows)
    told = read_json(data / "tokens" / "statistics.json")["train"]
    assert (told["truncated"], told["texts"]) == (cut, len(rows))
    assert told["tokens"] == sum(len(row["ids"]) for row in rows)
    assert told["longest"] == max(row["length"] for row in rows)


def gate(data, output):
    return check_parity(
        {split: data / f"{split}.jsonl" for split in SPLITS},
        {split: data / "tokens" / f"{split}.jsonl" for split in SPLITS},
        data / "model", reviews=20, tolerance=1e-4, output=output,
    )  # fmt: skip


def test_both_frameworks_agree_on_pairs(data, tmp_path):
    result = gate(data, tmp_path / "parity.json")
    assert result["token_ids_equal"] is True
    assert (result["texts"], result["compared"]) == (60, 20)
    assert 0 <= result["largest_difference"] < 1e-5


def test_a_pair_with_another_border_does_not_pass_the_gate(data, tmp_path):
    changed = shutil.copytree(data, tmp_path / "changed")
    rows = read_jsonl(changed / "tokens" / "test.jsonl")
    border = rows[3]["ids"].index(2)
    ids = rows[3]["ids"]
    rows[3]["ids"] = [*ids[: border - 1], 2, 2, ids[border - 1], *ids[border + 2 :]]
    write_jsonl(changed / "tokens" / "test.jsonl", rows)
    with pytest.raises(SeedbedError, match="gives 1 of 60 texts other ids") as error:
        gate(changed, tmp_path / "parity.json")
    assert "split test, line 4" in error.value.where


# --- models with their own tokenizer ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", tiered(KINDS, "BERT", "DeBERTa", "DeBERTa-v3", "DistilBERT", "XLM-R"))
def test_pairs_have_the_ids_and_types_of_the_models_own_tokenizer(tmp_path, kind):
    model = convert_encoder(tmp_path, kind, **({"type_vocab_size": 2} if kind == "DeBERTa" else {}))
    texts = write_pairs(tmp_path)
    statistics = text_ids.tokenize(texts, model, tmp_path / "tokens", 1.0)
    tokenizer = AutoTokenizer.from_pretrained(model / "huggingface")
    asked = {"truncation": "longest_first", "max_length": 48, "return_token_type_ids": True}
    for split, path in texts.items():
        rows, found = read_jsonl(tmp_path / "tokens" / f"{split}.jsonl"), tokenizer(*columns(path), **asked)
        assert [row["ids"] for row in rows] == found["input_ids"]
        if kind in TYPED:
            assert [row["types"] for row in rows] == found["token_type_ids"]
            assert all({0, 1} == {*row["types"]} for row in rows)
        else:
            assert not any("types" in row for row in rows)
        assert [row["length"] for row in rows] == [len(ids) for ids in tokenizer(*columns(path))["input_ids"]]
        lengths = [[len(ids) for ids in tokenizer(each)["input_ids"]] for each in columns(path)]
        pieces = [[row["pair"][1], row["pair"][3]] for row in rows]
        assert pieces == [[one - 2, other - 2] for one, other in zip(*lengths, strict=True)]
    assert 0 < statistics["train"]["truncated"] < statistics["train"]["texts"]


def test_unknown_tokens_of_a_second_text_are_told(tmp_path):
    model = convert_encoder(tmp_path, "BERT")
    rows = [{"id": "a", "text": "Bon", "text_pair": "日本", "label": 0}]
    write_jsonl(tmp_path / "test.jsonl", rows)
    with pytest.raises(SeedbedError, match="are unknown") as error:
        text_ids.tokenize({"test": tmp_path / "test.jsonl"}, model, tmp_path / "tokens", 0.01)
    assert "日" in str(error.value.found)


def test_a_tokenizer_that_puts_nothing_between_two_texts_is_refused(tmp_path):
    model = convert_encoder(tmp_path, "BERT")
    path = model / "huggingface" / "tokenizer.json"
    content = read_json(path)
    pair = content["post_processor"]["pair"]
    content["post_processor"]["pair"] = [pair[0], pair[1], *pair[3:]]
    write_json(path, content)
    with pytest.raises(SeedbedError, match="no special token between two texts") as error:
        text_ids.tokenize(write_pairs(tmp_path), model, tmp_path / "tokens", 1.0)
    assert "post_processor" in error.value.hint
    assert not (tmp_path / "tokens").exists()


def test_a_type_that_the_model_lacks_is_refused(tmp_path):
    model = convert_encoder(tmp_path, "BERT")
    path = model / "huggingface" / "tokenizer.json"
    content = read_json(path)
    for part in content["post_processor"]["pair"][3:]:
        next(iter(part.values()))["type_id"] = 2
    write_json(path, content)
    with pytest.raises(SeedbedError, match="a type that the model lacks") as error:
        text_ids.tokenize(write_pairs(tmp_path), model, tmp_path / "tokens", 1.0)
    assert error.value.found == "type 2; type_vocab_size 2"
