"""Conversion of fairseq checkpoints: every weight arrives, and nothing harmful or foreign passes."""

import argparse
import logging
import os
import pickle
import zipfile
from pathlib import Path

import builders_checkpoints
import pytest
import torch
from builders import (
    make_args,
    make_dictionary,
    make_fairseq_checkpoint,
    make_weights,
    train_sentencepiece,
)
from safetensors.torch import load_file

from seedbed.core import naming
from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, sha256

DEFINITION = {
    "source": "lab",
    "checkpoint": "model.pt",
    "dictionary": "dict.txt",
    "sentencepiece": "sentencepiece.bpe.model",
}
SHAPE = {"layers": 2, "dim": 16, "ffn": 24, "heads": 2, "vocab": 200, "positions": 40}


@pytest.fixture
def source(tmp_path) -> Path:
    return make_fairseq_checkpoint(tmp_path / "archive", **SHAPE)


def convert(source: Path, **changes: str) -> Path:
    return builders_checkpoints.convert(source, DEFINITION | changes)


def refused(source: Path, **changes: str) -> SeedbedError:
    """The error of a conversion, which must leave no model.json."""
    return builders_checkpoints.refused(source, DEFINITION | changes)


def rewrite(source: Path, change) -> None:
    """Apply `change` to the checkpoint's content, in place."""
    with torch.serialization.safe_globals([argparse.Namespace]):
        content = torch.load(source / "model.pt", weights_only=True)
    change(content)
    torch.save(content, source / "model.pt")


# --- what comes out ---


def test_every_weight_arrives_in_both_formats(source):
    folder = convert(source)
    original = {name: tensor.half().float() for name, tensor in make_weights(2, 16, 24, 200, 40).items()}
    ours = torch.load(folder / "fairseq" / "model.pt", weights_only=True)["model"]
    assert set(ours) == set(original)
    assert all(torch.equal(ours[name], original[name]) for name in original)
    assert {tensor.dtype for tensor in ours.values()} == {torch.float32}
    theirs = load_file(folder / "huggingface" / "model.safetensors")
    names = naming.huggingface_names(2)
    tied, types = "encoder.lm_head.weight", "roberta.embeddings.token_type_embeddings.weight"
    assert set(theirs) == {names[name] for name in original if name in names and name != tied} | {types}
    for name, tensor in original.items():
        if name in names and name != tied:
            assert torch.equal(theirs[names[name]], tensor), name
    assert torch.equal(theirs[types], torch.zeros(1, 16))


def test_definition_and_files(source):
    folder = convert(source)
    definition = read_json(folder / "model.json")
    expected = {"layers": 2, "embed_dim": 16, "ffn_dim": 24, "attention_heads": 2, "vocabulary": 200}
    expected |= {"max_positions": 40, "activation": "gelu", "sentencepiece_type": "bpe"}
    expected |= {"checkpoint_dtypes": ["float16"], "words_without_piece": 0, "pieces_without_word": 0}
    expected |= {"ignored_keys": ["encoder.sentence_encoder.version"]}
    expected |= {"format": "fairseq", "mask_row": "given", "lm_head": "given"}
    expected |= {"checkpoint_sha256": sha256(source / "model.pt")}
    assert definition == expected
    for copy, original in (
        ("fairseq/dict.txt", "dict.txt"),
        ("subwords/sentencepiece.model", DEFINITION["sentencepiece"]),
    ):
        assert (folder / copy).read_bytes() == (source / original).read_bytes()
    config = read_json(folder / "huggingface" / "config.json")
    assert config["max_position_embeddings"] == 42
    assert config["layer_norm_eps"] == 1e-5
    assert (config["bos_token_id"], config["pad_token_id"], config["eos_token_id"]) == (0, 1, 2)
    assert config["hidden_act"] == "gelu"
    assert (folder / "huggingface" / "model.safetensors").stat().st_mode & 0o444 == 0o444
    assert not [path for path in folder.rglob("*") if path.name.startswith(".")]


def test_old_names_are_understood(source):
    def age(content):
        model = content["model"]
        for layer in range(2):
            name = f"encoder.sentence_encoder.layers.{layer}.self_attn"
            for kind in ("weight", "bias"):
                parts = [model.pop(f"{name}.{part}_proj.{kind}") for part in "qkv"]
                model[f"{name}.in_proj_{kind}"] = torch.cat(parts)
        content["model"] = {
            name.replace("encoder.", "decoder.", 1).replace("layernorm_embedding", "emb_layer_norm"): tensor
            for name, tensor in model.items()
        }

    new = load_file(convert(source) / "huggingface" / "model.safetensors")
    rewrite(source, age)
    old = load_file(convert(source) / "huggingface" / "model.safetensors")
    assert set(old) == set(new)
    assert all(torch.equal(old[name], new[name]) for name in new)


@pytest.mark.parametrize("kind", ["dict", "Namespace", "omegaconf"])
def test_settings_in_cfg(source, kind):
    from omegaconf import OmegaConf

    network = vars(make_args(2, 16, 24, 2, 40))
    config = {"model": network, "task": {"_name": "masked_lm"}}
    if kind == "Namespace":
        config["model"] = argparse.Namespace(**network)
    rewrite(
        source,
        lambda content: content.update(
            args=None, cfg=OmegaConf.create(config) if kind == "omegaconf" else config
        ),
    )
    assert read_json(convert(source) / "model.json")["attention_heads"] == 2


def test_heads_of_an_earlier_fine_tuning_are_ignored_and_listed(source):
    name = "classification_heads.sentence_classification_head.dense.weight"
    rewrite(source, lambda content: content["model"].update({name: torch.zeros(2, 2)}))
    assert name in read_json(convert(source) / "model.json")["ignored_keys"]


def test_a_mask_in_the_dictionary_is_no_further_word(source):
    with open(source / "dict.txt", "a", encoding="utf-8") as stream:
        stream.write("<mask> 1\n")
    assert read_json(convert(source) / "model.json")["vocabulary"] == 200


@pytest.mark.parametrize(("mark", "end"), [("\ufeff", "\n"), ("", "\r\n"), ("\ufeff", " \r\n")])
def test_a_byte_order_mark_of_the_dictionary_changes_nothing(source, caplog, mark, end):
    caplog.set_level(logging.INFO)
    before = (source / "dict.txt").read_text(encoding="utf-8")
    (source / "dict.txt").write_bytes((mark + before.replace("\n", end)).encode())
    folder = convert(source)
    described = read_json(folder / "model.json")
    assert (described["words_without_piece"], described["pieces_without_word"]) == (0, 0)
    kept = (folder / "fairseq" / "dict.txt").read_bytes().decode()
    assert [line.rstrip() for line in kept.split("\n")] == before.split("\n")


# --- what is refused ---


@pytest.mark.parametrize("zipped", [True, False])
def test_harmful_pickle_is_refused_by_name_and_not_run(source, zipped):
    trace = source / "executed"

    class Harmful:
        def __reduce__(self):
            return os.system, (f"touch {trace}",)

    content = {"args": Harmful(), "model": {}}
    torch.save(content, source / "model.pt", _use_new_zipfile_serialization=zipped)
    error = refused(source)
    assert not trace.exists()
    assert error.what == "the checkpoint asks Python for posix.system, which no weights need; it was refused"
    assert "model.pt" in error.where
    assert error.hint.startswith("nothing was run, but the file may be harmful: download it from its authors")


def test_settings_of_an_unknown_class_are_refused_by_name(source):
    import fractions

    rewrite(source, lambda content: content.update(args=fractions.Fraction(1, 2)))
    assert refused(source).found == "fractions.Fraction"


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "pickle"])
def test_damaged_file(source, damage):
    path = source / "model.pt"
    whole = path.read_bytes()
    contents = {
        "cut": whole[: len(whole) // 2],
        "empty": b"",
        "text": b"<html>" * 99,
        "pickle": pickle.dumps({"a": 1}),
    }
    path.write_bytes(contents[damage])
    error = refused(source)
    told = ("the checkpoint cannot be read", "the checkpoint has more than", "this is not a checkpoint of")
    assert error.what.startswith(told)
    assert str(path.name) in error.where
    assert error.hint


def test_missing_files_are_named_with_the_nearest(source):
    (source / "model.pt").rename(source / "modle.pt")
    error = refused(source)
    assert error.what == "the source 'lab' has no file 'model.pt'"
    assert error.found == "dict.txt, modle.pt, sentencepiece.bpe.model"
    assert error.hint.startswith("did you mean 'modle.pt'?")
    (source / "inner").mkdir()
    (source / "modle.pt").rename(source / "inner" / "model.pt")
    assert "did you mean 'inner/model.pt'?" in refused_again(source).hint


def refused_again(source: Path) -> SeedbedError:
    import shutil

    shutil.rmtree(source.parent / "source")
    return refused(source)


def test_dictionary_of_another_checkpoint(source):
    lines = (source / "dict.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    (source / "dict.txt").write_text("".join(lines[:-1]), encoding="utf-8")
    error = refused(source)
    assert error.what == "this dict.txt belongs to another checkpoint"
    assert "dict.txt" in error.where
    assert "model.pt" in error.where
    assert error.found == "199 words (lines, 4 special tokens and <mask>), but 200 rows in the embedding"


def test_sentencepiece_of_another_model(source):
    (source / DEFINITION["sentencepiece"]).write_bytes(train_sentencepiece(170, "unigram"))
    error = refused(source)
    assert error.what == "the dictionary and the SentencePiece model belong to different models"
    assert "of 195 words of the dictionary are not pieces" in error.found


def replace_pieces(source: Path, count: int) -> None:
    """Give `count` pieces of the SentencePiece model, evenly spread, other strings."""
    from sentencepiece import sentencepiece_model_pb2

    path = source / DEFINITION["sentencepiece"]
    model = sentencepiece_model_pb2.ModelProto.FromString(path.read_bytes())
    for number in range(count):
        model.pieces[10 + number * 180 // count].piece = f"étranger{number}"
    path.write_bytes(model.SerializeToString())


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sentencepiece_of_another_model_with_as_many_pieces(source, kind):
    (source / DEFINITION["sentencepiece"]).write_bytes(train_sentencepiece(198, kind, seed=5))
    error = refused(source)
    assert error.what == "the dictionary and the SentencePiece model belong to different models"
    assert DEFINITION["sentencepiece"] in error.where


def test_sentencepiece_with_a_few_other_pieces(source, caplog):
    """Up to 1% of the words may be no pieces: their ids do not shift, and the log names them."""
    replace_pieces(source, 1)
    with caplog.at_level(logging.WARNING):
        definition = read_json(convert(source) / "model.json")
    assert (definition["words_without_piece"], definition["pieces_without_word"]) == (1, 1)
    assert "1 words are not pieces: " in caplog.text
    assert "1 pieces have no word and become <unk>: étranger0" in caplog.text
    (source.parent / "model" / "model.json").unlink()
    replace_pieces(source, 4)
    assert "4 of 195 words of the dictionary are not pieces" in refused(source).found


def test_dictionary_of_another_model_with_as_many_lines(source):
    words = make_dictionary(train_sentencepiece(198, seed=5))
    (source / "dict.txt").write_text("".join(f"{word} 1\n" for word in words), encoding="utf-8")
    error = refused(source)
    assert error.what == "the dictionary and the SentencePiece model belong to different models"
    assert "dict.txt" in error.where


def test_a_line_too_many_is_no_missing_mask(source):
    """With one line more than the checkpoint has, its last row would pass for a word's."""
    with open(source / "dict.txt", "a", encoding="utf-8") as stream:
        stream.write("étranger 1\n")
    assert refused(source).what == "this dict.txt belongs to another checkpoint"


def test_words_listed_again_are_listed_once(tmp_path, caplog):
    first = ["<unk>NOTUSED 9", "<s> 9 #fairseq:overwrite", "</s> 9 #fairseq:overwrite"]
    source = make_fairseq_checkpoint(tmp_path / "archive", first_lines=first)
    before = (source / "dict.txt").read_text(encoding="utf-8").splitlines()
    with caplog.at_level(logging.WARNING):
        folder = convert(source)
    assert (
        "lists words twice, as camembert-base's does: <s>, </s>, whose rows 5, 6 are not used" in caplog.text
    )
    after = (folder / "fairseq" / "dict.txt").read_text(encoding="utf-8").splitlines()
    assert after[:3] == ["<unk>NOTUSED 1", "madeupword0000 1", "madeupword0001 1"]
    assert after[3:] == before[3:]


@pytest.mark.parametrize("part", ["piece", "normalisation"])
def test_sentencepiece_made_to_use_up_memory(source, part):
    from sentencepiece import sentencepiece_model_pb2

    path, model = source / DEFINITION["sentencepiece"], sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(path.read_bytes())
    if part == "piece":
        model.pieces[50].piece = "e" * 10**5  # each way to split it in two is a merge
    else:
        model.normalizer_spec.precompiled_charsmap += b"x" * 10**5 + b"\0"
    path.write_bytes(model.SerializeToString())
    error = refused(source)
    assert error.what == "the SentencePiece model has an entry far longer than any piece of a text"
    assert error.found.startswith("100,0")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("dict.txt", "\x1b[31mforged\n2026-01-01 00:00:00,000 ERROR   forged\n"),
        ("dict.txt", "a\u2028b 1\n" * 3),
        (DEFINITION["sentencepiece"], ""),
    ],
)
def test_text_of_a_files_own_in_an_error_is_printable(source, file, content):
    (source / file).write_text(content, encoding="utf-8")
    told = str(refused(source))
    assert told.replace("\n", "").isprintable()
    assert len(told.splitlines()) == 4


def test_a_dictionary_that_is_not_utf8_is_named(source):
    path = source / "dict.txt"
    path.write_bytes(path.read_bytes() + b"\xe9t\xe9 1\n")
    error = refused(source)
    assert error.what == "the file is not UTF-8"
    assert "dict.txt, line" in error.where


def test_names_of_weights_cannot_forge_lines(source):
    content = torch.load(source / "model.pt", weights_only=False)
    content["model"]["x\n2026-01-01 00:00:00,000 ERROR   forged\x1b[2J"] = torch.zeros(1)
    torch.save(content, source / "model.pt")
    error = refused(source)
    assert r"x\n2026-01-01 00:00:00,000 ERROR   forged\x1b[2J" in error.found
    assert len(str(error).splitlines()) == 4


def test_sentencepiece_that_is_none(source):
    (source / DEFINITION["sentencepiece"]).write_text("▁le\t-1\n", encoding="utf-8")
    assert refused(source).what == "this file is not a SentencePiece model"


@pytest.mark.parametrize(
    ("change", "what", "found"),
    [
        (
            lambda c: c["model"].update({"encoder.sentence_encoder.layers.2.fc1.bias": torch.zeros(24)}),
            "the weights do not fit the network of the settings",
            "missing: none; unexpected: encoder.sentence_encoder.layers.2.fc1.bias",
        ),
        (
            lambda c: c["model"].pop("encoder.lm_head.dense.bias"),
            "the weights do not fit the network of the settings",
            "missing: encoder.lm_head.dense.bias; unexpected: none",
        ),
        (
            lambda c: setattr(c["args"], "encoder_layers", 1),
            "the weights do not fit the network of the settings",
            "and 11 more",
        ),
        (
            lambda c: setattr(c["args"], "encoder_ffn_embed_dim", 32),
            "the shape of a weight differs from the settings",
            "(24, 16), expected (32, 16)",
        ),
        (
            lambda c: c["model"]["encoder.lm_head.weight"].mul_(2),
            "the language-model head's matrix differs from the embeddings",
            None,
        ),
        (
            lambda c: c["model"]["encoder.lm_head.bias"].fill_(float("nan")),
            "the checkpoint holds weights that are not finite numbers",
            "200 of 200",
        ),
        (
            lambda c: setattr(c["args"], "encoder_normalize_before", True),
            "the network has encoder_normalize_before = True, which transformers' RoBERTa does not support",
            True,
        ),
        (lambda c: setattr(c["args"], "activation_fn", "swish"), "unknown activation 'swish'", "swish"),
        (
            lambda c: setattr(c["args"], "encoder_attention_heads", 3),
            "the width is not a multiple of the number of heads",
            "encoder_embed_dim 16, encoder_attention_heads 3",
        ),
        (
            lambda c: c.update(args=None),
            "the checkpoint does not describe its network",
            "encoder_attention_heads; only an empty block",
        ),
        (
            lambda c: c.pop("model"),
            "this is not a checkpoint of fairseq: it has no weights under the key 'model'",
            None,
        ),
    ],
)
def test_networks_that_are_not_ours(source, change, what, found):
    rewrite(source, change)
    error = refused(source)
    assert error.what == what
    assert "model.pt" in error.where
    if found is not None:
        assert str(found) in str(error.found)


# --- fairseq's own loader ---


def test_fairseq_loads_the_rewritten_checkpoint_without_any_allowance(source):
    """No class is allowed: the settings are plain data."""
    content = torch.load(convert(source) / "fairseq" / "model.pt", weights_only=True)
    assert content["args"] is None
    assert content["cfg"]["model"]["encoder_ffn_embed_dim"] == 24
    assert content["optimizer_history"][-1]["num_updates"] == 0
    assert content["extra_state"]["train_iterator"] == {"epoch": 1}


def test_an_archive_without_its_ending_is_called_one(tmp_path):
    (tmp_path / "lab").mkdir()
    with zipfile.ZipFile(tmp_path / "lab/download", "w") as archive:
        archive.writestr("model.pt", "")
    hint = refused(tmp_path / "lab").hint
    assert "download is an archive without the suffix of one: set kind: archive under sources.lab" in hint
