"""Models in Hugging Face format: the converted model computes what the original computes, token by token."""

import json
import logging
import shutil
from pathlib import Path

import builders_checkpoints
import pytest
import sentencepiece
import torch
from builders import make_reviews, train_sentencepiece
from builders_checkpoints import make_huggingface_model
from safetensors.torch import load_file, save_file

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json
from seedbed.models.dictionaries import read_dictionary
from seedbed.models.subwords import match_vocabulary, published

DEFINITION = {
    "source": "hub",
    "format": "huggingface",
    "checkpoint": "model.safetensors",
    "config": "config.json",
    "dictionary": None,
    "sentencepiece": "sentencepiece.bpe.model",
}
TEXTS = [review["text"] for review in make_reviews(6, seed=3)] + ["Le récit ☃ inconnu"]


def convert(source: Path, **changes: str) -> Path:
    return builders_checkpoints.convert(source, DEFINITION | changes)


def refused(source: Path, **changes: str) -> SeedbedError:
    return builders_checkpoints.refused(source, DEFINITION | changes)


def change_config(source: Path, **changes) -> None:
    path = source / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in config.items() if value != "absent"}))


def original_ids(source: Path, kind: str, text: str) -> list[int]:
    """Ids as the model's own tokenizer class gave them: piece i at i + 1 (XLM-R) or i + 4 (CamemBERT)."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(source / DEFINITION["sentencepiece"]))
    offset, bos, eos = (4, 5, 6) if kind == "camembert" else (1, 0, 2)
    pieces = [3 if number == 0 else number + offset for number in processor.encode(text)]
    return [bos, *pieces[:38], eos]


def canonical_ids(folder: Path, text: str) -> list[int]:
    files = published(folder / "subwords"), folder / "fairseq" / "dict.txt"
    (pieces,) = files[0].encode([text])
    return [0, *match_vocabulary(*files).ids(pieces)[:38], 2]


@torch.inference_mode()
def compute(folder: Path, ids: list[int], head: bool = True) -> tuple[torch.Tensor, torch.Tensor | None]:
    from transformers import AutoModel, AutoModelForMaskedLM

    loaded = (AutoModelForMaskedLM if head else AutoModel).from_pretrained(folder, dtype=torch.float32).eval()
    batch = torch.tensor([ids])
    states = (loaded.roberta if head else loaded)(batch).last_hidden_state[0]
    return states, loaded(batch).logits[0] if head else None


KINDS = {
    "xlm-roberta": {"kind": "xlm-roberta"},
    "roberta, BPE, half precision": {"kind": "roberta", "model_type": "bpe", "dtype": "float16"},
    "xlm-roberta, bfloat16, tokenizer.json": {"kind": "xlm-roberta", "dtype": "bfloat16", "tokenizer": True},
    "camembert": {"kind": "camembert", "vocab": 203},
    "camembert, tokenizer.json": {"kind": "camembert", "vocab": 203, "tokenizer": True},
    "token types": {"kind": "xlm-roberta", "token_types": True, "layers": 3, "dim": 32, "heads": 4},
    "pickled": {"kind": "camembert", "vocab": 203, "pickled": True},
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_converted_model_computes_what_the_original_computes(tmp_path, kind):
    options = KINDS[kind]
    source = make_huggingface_model(tmp_path / "hub", **options)
    name = "pytorch_model.bin" if options.get("pickled") else "model.safetensors"
    folder = convert(source, checkpoint=name)
    words = read_dictionary(folder / "fairseq" / "dict.txt")
    assert words[:4] == ["<s>", "<pad>", "</s>", "<unk>"]
    assert words[-1] == "<mask>"
    for text in TEXTS:
        before, after = original_ids(source, options["kind"], text), canonical_ids(folder, text)
        assert len(before) == len(after)
        states, logits = compute(source, before)
        found_states, found_logits = compute(folder / "huggingface", after)
        assert torch.allclose(found_states, states, atol=1e-5)
        # the same token has the same logit, wherever it stands
        places = torch.tensor([[b, a] for b, a in dict(zip(before, after, strict=True)).items()])
        assert torch.allclose(found_logits[:, places[:, 1]], logits[:, places[:, 0]], atol=1e-4)


def test_camembert_rows_are_permuted_and_all_kept(tmp_path):
    source = make_huggingface_model(tmp_path / "hub", kind="camembert", vocab=203)
    folder = convert(source)
    name = "roberta.embeddings.word_embeddings.weight"
    before = load_file(source / "model.safetensors")[name]
    after = load_file(folder / "huggingface" / "model.safetensors")[name]
    expected = [5, 1, 6, 3, 0, 2, 4, *range(7, 203)]
    assert torch.equal(after, before[expected])
    words = read_dictionary(folder / "fairseq" / "dict.txt")
    assert words[4:7] == ["<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"]
    definition = read_json(folder / "model.json")
    assert definition["renumbered_tokens"] == 5
    assert definition["words_without_piece"] == 0
    fairseq = torch.load(folder / "fairseq" / "model.pt", weights_only=True)["model"]
    assert torch.equal(fairseq["encoder.sentence_encoder.embed_tokens.weight"], after)


def test_tokenizer_json_says_the_order_of_any_vocabulary(tmp_path):
    """Rows in an order that is nobody's convention, and more of them than tokens."""
    source = make_huggingface_model(tmp_path / "hub", tokenizer=True)
    folder = convert(source)
    expected = load_file(folder / "huggingface" / "model.safetensors")
    expected_words = read_dictionary(folder / "fairseq" / "dict.txt")
    order = [3, 1, 0, *range(199, 3, -1), 2]
    content = json.loads((source / "tokenizer.json").read_text())
    vocabulary = content["model"]["vocab"]
    content["model"]["vocab"] = [vocabulary[number] for number in order]
    for token in content["added_tokens"]:
        token["id"] = order.index(token["id"])
    (source / "tokenizer.json").write_text(json.dumps(content))
    weights = load_file(source / "model.safetensors")
    for name in ("roberta.embeddings.word_embeddings.weight", "lm_head.bias"):
        extra = torch.ones_like(weights[name][:3])
        weights[name] = torch.cat([weights[name][order], extra])
    save_file(weights, source / "model.safetensors")
    found = load_file(convert(source) / "huggingface" / "model.safetensors")
    name = "roberta.embeddings.word_embeddings.weight"
    assert len(found[name]) == 203
    words = read_dictionary(folder / "fairseq" / "dict.txt")
    assert words[-4:] == ["madeupword0000", "madeupword0001", "madeupword0002", "<mask>"]
    for number, word in enumerate(expected_words):
        assert torch.equal(found[name][words.index(word)], expected[name][number]), word


def test_an_encoder_saved_alone_gets_a_head_that_is_said(tmp_path, caplog):
    source = make_huggingface_model(tmp_path / "hub", head=False)
    assert "embeddings.word_embeddings.weight" in load_file(source / "model.safetensors")
    with caplog.at_level(logging.WARNING):
        folder = convert(source)
    assert "has no language-model head" in caplog.text
    definition = read_json(folder / "model.json")
    assert definition["lm_head"] == "filled"
    assert {"pooler.dense.bias", "pooler.dense.weight"} == set(definition["ignored_keys"])
    states, _ = compute(source, [0, 9, 5, 2], head=False)
    found, _ = compute(folder / "huggingface", [0, 9, 5, 2])
    assert torch.allclose(found, states, atol=1e-5)


def test_special_tokens_follow_the_tokenizer_where_the_config_disagrees(tmp_path, caplog):
    source = make_huggingface_model(tmp_path / "hub", kind="camembert", vocab=203)
    change_config(source, bos_token_id=0, eos_token_id=2)
    with caplog.at_level(logging.WARNING):
        folder = convert(source)
    assert "says bos_token_id = 0; the tokenizer's id of <s>, 5, is used instead" in caplog.text
    assert canonical_ids(folder, "Le récit")[0] == 0


# --- what is refused ---


@pytest.mark.parametrize(
    ("changes", "key", "hint"),
    [
        ({"layer_norm_eps": 1e-12}, "layer_norm_eps", "fairseq always uses 1e-05"),
        ({"layer_norm_eps": "absent"}, "layer_norm_eps", "fairseq always uses 1e-05"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type", "'absolute'"),
        ({"pad_token_id": 0}, "pad_token_id", "only has 1"),
        ({"hidden_act": "silu"}, "hidden_act", "'gelu' or"),
        ({"is_decoder": True}, "is_decoder", "only has False"),
        ({"num_hidden_layers": "2"}, "num_hidden_layers", "a positive integer"),
    ],
)
def test_networks_that_fairseq_has_not(tmp_path, changes, key, hint):
    source = make_huggingface_model(tmp_path / "hub")
    change_config(source, **changes)
    error = refused(source)
    assert error.what.startswith(f"the model has {key} = ")
    assert error.what.endswith(", which fairseq's RoBERTa does not support")
    assert error.where.endswith(f"config.json, {key}")
    assert hint in error.hint


def test_a_model_without_a_type_is_refused(tmp_path):
    source = make_huggingface_model(tmp_path / "hub")
    change_config(source, model_type="absent")
    error = refused(source)
    assert error.what == "models of type None are not supported"
    assert "roberta, xlm-roberta, camembert" in error.hint


@pytest.mark.parametrize(
    ("kind", "architecture", "files"),
    [
        ("bert", "BertForMaskedLM", ("vocab.txt", "tokenizer.json")),
        ("distilbert", "DistilBertForMaskedLM", ("vocab.txt",)),
        ("deberta-v2", "DebertaV2ForMaskedLM", ("spm.model",)),
        ("electra", "ElectraForPreTraining", ("vocab.txt",)),
        ("t5", "T5ForConditionalGeneration", ("spiece.model",)),
    ],
)
@pytest.mark.parametrize("form", ["huggingface", "fairseq"])
def test_other_types_of_models_are_refused_by_name(tmp_path, kind, architecture, files, form):
    source = make_huggingface_model(tmp_path / "hub")
    (source / "sentencepiece.bpe.model").unlink()
    for name in files:
        (source / name).write_text("{}")
    change_config(source, model_type=kind, architectures=[architecture])
    fairseq = {"checkpoint": "model.pt", "dictionary": "dict.txt", "config": None}
    error = refused(source, format=form, **(fairseq if form == "fairseq" else {}))
    assert f"this is a model of the type {kind!r} in Transformers' format" in error.what
    assert f"model_type {kind!r}, architectures [{architecture!r}]" in error.found
    assert "such as hf://almanach/camembert-base" in error.hint
    if kind == "t5":
        assert error.what.endswith("which is not supported")
        assert "Encoder-decoders such as T5 are not supported" in error.hint
    else:
        assert error.hint.startswith("set format: auto for the model")


def test_a_causal_model_is_told_its_own_format(tmp_path):
    source = make_huggingface_model(tmp_path / "hub")
    change_config(source, model_type="gpt2", architectures=["GPT2LMHeadModel"])
    error = refused(source)
    assert error.what.endswith("type 'gpt2' in Transformers' format, and its format is not huggingface")
    assert error.hint.startswith("set format: causal for the model, which serves generation. ")


def test_weights_of_transformers_may_have_the_ending_of_fairseq(tmp_path):
    source = make_huggingface_model(tmp_path / "hub")
    torch.save(load_file(source / "model.safetensors"), source / "weights.pt")
    (source / "model.safetensors").unlink()
    assert (convert(source, checkpoint="weights.pt") / "model.json").exists()


def test_a_model_without_sentencepiece_is_told_what_it_needs(tmp_path):
    source = make_huggingface_model(tmp_path / "hub")
    (source / "sentencepiece.bpe.model").unlink()
    (source / "tokenizer.json").unlink(missing_ok=True)
    assert "let the source's include match it" in refused(source).hint
    tokenizer = {"model": {"type": "BPE"}, "decoder": {"type": "ByteLevel"}}
    (source / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert refused(source).what.startswith("GPT-2's byte-level BPE")


def untie(weights):
    weights["lm_head.decoder.weight"] = weights["roberta.embeddings.word_embeddings.weight"] + 1


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (untie, "the language-model head's matrix differs from the embeddings"),
        (lambda w: w.pop("lm_head.dense.bias"), "the weights do not fit the network"),
        (lambda w: w.pop("roberta.embeddings.word_embeddings.weight"), "the weights do not fit the network"),
        (lambda w: w.update({"roberta.adapter.weight": torch.ones(1)}), "the weights do not fit the network"),
        (lambda w: w["lm_head.bias"].fill_(float("inf")), "the checkpoint holds weights that are not finite"),
        (
            lambda w: w.update({"lm_head.bias": torch.ones(200, dtype=torch.int8)}),
            "the checkpoint holds weights",
        ),
    ],
)
def test_weights_that_do_not_fit(tmp_path, change, what):
    source = make_huggingface_model(tmp_path / "hub")
    weights = load_file(source / "model.safetensors")
    change(weights)
    save_file(weights, source / "model.safetensors")
    error = refused(source)
    assert error.what.startswith(what)
    assert "model.safetensors" in error.where


def test_a_sentencepiece_model_of_another_size_or_class(tmp_path):
    source = make_huggingface_model(tmp_path / "hub", kind="xlm-roberta")
    (source / "sentencepiece.bpe.model").write_bytes(train_sentencepiece(195, "unigram"))
    error = refused(source)
    assert error.what == "the SentencePiece model does not fit the embedding"
    assert error.found == "200 rows; 195 pieces make 197 tokens by the convention of XLM-R"
    # of the right size for the other convention: the ids would shift
    change_config(source, model_type="camembert")
    convert(source)
    (source / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "XLMRobertaTokenizer"}))
    shutil.rmtree(tmp_path / "model")
    assert "by the convention of XLM-R" in refused(source).found


def test_a_sentencepiece_model_of_another_model_with_the_same_size(tmp_path):
    source = make_huggingface_model(tmp_path / "hub", tokenizer=True)
    (source / "sentencepiece.bpe.model").write_bytes(train_sentencepiece(198, "unigram", seed=9))
    error = refused(source)
    assert error.what == "the dictionary and the SentencePiece model belong to different models"
    assert "files/tokenizer.json and " in error.where


def test_damaged_and_foreign_files(tmp_path):
    source = make_huggingface_model(tmp_path / "hub")
    path = source / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert refused(source).what == "this is not a safetensors file, or it is damaged"
    path.write_bytes(whole)
    (source / "config.json").write_text("[]")
    assert refused(source).what == "this file is not a JSON object"


def test_byte_order_marks_of_json_files_change_nothing(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    source = make_huggingface_model(tmp_path / "hub", tokenizer=True)
    plain = convert(source)
    names = ("fairseq/dict.txt", "huggingface/model.safetensors", "huggingface/tokenizer.json")
    before = {name: (plain / name).read_bytes() for name in names}
    for name in ("config.json", "tokenizer.json"):
        (source / name).write_bytes(b"\xef\xbb\xbf" + (source / name).read_bytes().replace(b"\n", b"\r\n"))
    shutil.rmtree(plain)
    again = convert(source)
    assert {name: (again / name).read_bytes() for name in names} == before
    assert "config.json: skipped the byte order mark" in caplog.text


def test_a_file_of_fairseq_is_no_model_of_transformers(tmp_path):
    from builders import make_fairseq_checkpoint

    fairseq = make_fairseq_checkpoint(tmp_path / "lab")
    source = make_huggingface_model(tmp_path / "hub", model_type="bpe", pickled=True)
    weights = source / "pytorch_model.bin"
    shutil.copy(weights, fairseq / "model.pt")
    shutil.copy(fairseq / "dict.txt", source / "dict.txt")
    error = refused(fairseq, format="fairseq", checkpoint="model.pt", dictionary="dict.txt")
    assert error.what == "this is a file of weights, as of Transformers, not a checkpoint of fairseq"
    assert error.hint == "set format: huggingface for the model in the config"
    make_fairseq_checkpoint(tmp_path / "lab")
    shutil.copy(fairseq / "model.pt", weights)
    assert refused(source, checkpoint="pytorch_model.bin").hint.startswith("set format: fairseq")


def test_a_gpt2_vocabulary_is_refused_by_name(tmp_path):
    source = tmp_path / "roberta.base"
    source.mkdir()
    for name in ("model.safetensors", "config.json", "vocab.json", "merges.txt"):
        (source / name).write_text("{}")
    error = refused(source)
    assert "GPT-2's byte-level BPE, as in roberta-base" in error.what
    assert "merges.txt" in error.found
    assert "format: auto" in error.hint


def test_missing_weights_are_named_with_those_there_are(tmp_path):
    source = make_huggingface_model(tmp_path / "hub", pickled=True)
    error = refused(source)
    assert error.what == "the source 'hub' has no file 'model.safetensors'"
    assert "did you mean 'pytorch_model.bin'?" in error.hint
