"""Causal language models: their files arrive unchanged, and nothing harmful or foreign passes."""

import json
import logging
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import builders_checkpoints
import pytest
import torch
from builders import make_fairseq_checkpoint, make_manifest
from builders_causal import CLASSES, SPECIALS, make_causal_model
from builders_checkpoints import edit, rewrite
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, sha256, write_json
from seedbed.models import intake

DEFINITION = {
    "source": "models",
    "format": "causal",
    "checkpoint": "model.safetensors",
    "config": "config.json",
    "tokenizer": "tokenizer.json",
}
PUBLISHED = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {kind: make_causal_model(folder / kind, kind) for kind in CLASSES}


@pytest.fixture
def source(tmp_path, models) -> Callable[[str], Path]:
    """A copy of a model, to be changed."""
    return lambda kind="bloom": Path(shutil.copytree(models[kind], tmp_path / "source_of_it"))


def convert(source: Path, **changes: str) -> Path:
    return builders_checkpoints.convert(source, DEFINITION | changes)


def refused(source: Path, **changes: str) -> SeedbedError:
    error = builders_checkpoints.refused(source, DEFINITION | changes)
    assert not (source.parent / "model" / "huggingface").exists()
    return error


def logits(folder: Path) -> torch.Tensor:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        return model(torch.tensor([[5, 6, 7, 8]])).logits


# --- what comes out -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CLASSES)
def test_the_published_model_is_the_same_and_loads_with_its_tokenizer(source, kind):
    given = source(kind)
    folder = convert(given)
    published = folder / "huggingface"
    assert {path.name for path in published.iterdir()} == PUBLISHED
    assert (published / "model.safetensors").read_bytes() == (given / "model.safetensors").read_bytes()
    assert torch.equal(logits(published), logits(given))
    text = "Question : Où ?\nRéponse : l'Hérault, </s> là"
    tokenizer = AutoTokenizer.from_pretrained(published)
    assert tokenizer(text)["input_ids"] == AutoTokenizer.from_pretrained(given)(text)["input_ids"]
    assert tokenizer(text)["input_ids"] == Tokenizer.from_file(str(given / "tokenizer.json")).encode(text).ids
    ids = {name: tokenizer.convert_tokens_to_ids(token) for name, token in SPECIALS[kind].items()}
    found = read_json(folder / "model.json")
    assert found == {
        "architecture": kind,
        "layers": 2,
        "embed_dim": 16,
        "vocabulary": 400,
        "max_positions": None if kind == "bloom" else 64,
        "parameters": sum(
            weight.numel() for weight in AutoModelForCausalLM.from_pretrained(given).parameters()
        ),
        **{name: ids[name] for name in ("bos", "eos", "pad")},
        "pad_is": "pad",
        "dtypes": ["float32"],
        "checkpoint_sha256": sha256(given / "model.safetensors"),
    }
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id) == (ids["eos"], ids["pad"])
    assert not list(folder.glob(".reading*"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_type_of_the_weights_stays(tmp_path, dtype):
    given = make_causal_model(tmp_path / "given", "gpt2", dtype=dtype)
    folder = convert(given)
    assert read_json(folder / "model.json")["dtypes"] == [dtype]
    weights = load_file(folder / "huggingface" / "model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {getattr(torch, dtype)}


def test_defaults_of_generation_and_code_of_the_authors_are_not_taken_over(source):
    given = source("gpt2")
    asked = {"do_sample": True, "max_length": 50}
    own = {"auto_map": {"AutoModelForCausalLM": "own.Model"}, "_name_or_path": "/home/someone"}
    edit(
        given / "config.json",
        task_specific_params={"text-generation": asked},
        temperature=0.7,
        **asked,
        **own,
    )
    (given / "own.py").write_text("raise SystemExit('own code was run')", encoding="utf-8")
    published = convert(given) / "huggingface"
    content = read_json(published / "config.json")
    assert content.keys().isdisjoint({*asked, *own, "temperature", "task_specific_params"})
    assert content["n_embd"] == 16
    generation = AutoModelForCausalLM.from_pretrained(published).generation_config
    assert not generation.do_sample
    assert generation.temperature in (None, 1.0)
    assert {path.name for path in published.iterdir()} == PUBLISHED


@pytest.mark.parametrize("kind", CLASSES)
def test_without_a_padding_token_the_end_token_stands_in_and_is_told(tmp_path, kind, caplog):
    given = make_causal_model(tmp_path / "given", kind, pad=False)
    with caplog.at_level(logging.WARNING):
        found = read_json(convert(given) / "model.json")
    assert (found["pad"], found["pad_is"]) == (found["eos"], "eos")
    assert "has no padding token" in caplog.text
    assert read_json(given.parent / "model" / "huggingface" / "config.json")["pad_token_id"] == found["eos"]


def test_a_padding_token_that_is_the_end_token_stands_in_for_it(source):
    given = source()
    edit(given / "tokenizer_config.json", pad_token="</s>")
    found = read_json(convert(given) / "model.json")
    assert (found["pad"], found["pad_is"]) == (found["eos"], "eos")


@pytest.mark.parametrize("named", ["config.json", "special_tokens_map.json", "dictionary"])
def test_special_tokens_may_be_named_elsewhere(source, named):
    given = source()
    if named == "dictionary":
        token = {"content": "</s>", "lstrip": False}
        edit(given / "tokenizer_config.json", eos_token=token)
    else:
        (given / "tokenizer_config.json").unlink()
    if named == "special_tokens_map.json":
        names = {f"{name}_token": token for name, token in SPECIALS["bloom"].items()}
        write_json(given / named, names)
        edit(given / "config.json", bos_token_id=None, eos_token_id=None, pad_token_id=None)
    found = read_json(convert(given) / "model.json")
    assert {name: found[name] for name in ("bos", "eos", "pad")} == {"bos": 1, "eos": 2, "pad": 3}


def test_the_tokenizers_end_token_goes_before_the_configs(source, caplog):
    given = source()
    edit(given / "config.json", eos_token_id=[7, 8])
    with caplog.at_level(logging.WARNING):
        folder = convert(given)
    assert read_json(folder / "model.json")["eos"] == 2
    assert read_json(folder / "huggingface" / "config.json")["eos_token_id"] == 2
    assert "eos_token_id = [7, 8]" in caplog.text


# --- weights in other forms ---------------------------------------------------------------------------------


def strip(prefix: str) -> Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
    return lambda weights: {name.removeprefix(prefix): weight for name, weight in weights.items()}


@pytest.mark.parametrize("kind", ["bloom", "gpt2"])
def test_names_without_the_prefix_load(source, kind):
    given = source(kind)
    before = logits(given)
    rewrite(given, strip("transformer."))
    assert "transformer.ln_f.weight" not in load_file(given / "model.safetensors")
    assert torch.equal(logits(convert(given) / "huggingface"), before)


def test_what_old_versions_kept_beside_the_weights_is_no_weight(source):
    given = source("gpt2")
    rewrite(given, lambda weights: weights.update({"transformer.h.0.attn.bias": torch.ones(1, 1, 4, 4)}))
    assert read_json(convert(given) / "model.json")["parameters"] == 11904


@pytest.mark.parametrize("kind", CLASSES)
def test_shards_become_one_file(tmp_path, kind, models):
    given = make_causal_model(tmp_path / "given", kind, shard_size="15KB")
    assert len(list(given.glob("model-*.safetensors"))) > 1
    folder = convert(given)
    assert {path.name for path in (folder / "huggingface").iterdir()} == PUBLISHED
    # builders draw the same weights for the same seed
    assert torch.equal(logits(folder / "huggingface"), logits(models[kind]))
    found = read_json(folder / "model.json")
    assert found["checkpoint_sha256"] == sha256(given / "model.safetensors.index.json")


def test_a_missing_shard_is_named(tmp_path):
    given = make_causal_model(tmp_path / "given", shard_size="15KB")
    shard = sorted(given.glob("model-*.safetensors"))[1]
    shard.unlink()
    error = refused(given)
    assert (error.what, error.found) == ("the source lacks files of the model's weights", shard.name)


def test_a_weight_in_two_shards_is_an_error(tmp_path):
    given = make_causal_model(tmp_path / "given", shard_size="15KB")
    first, second = sorted(given.glob("model-*.safetensors"))[:2]
    both = {**load_file(first), **load_file(second)}
    save_file(both, second, metadata={"format": "pt"})
    assert refused(given).what == "a weight is in two files of the model"


@pytest.mark.parametrize("content", ["[]", "{}", '{"weight_map": {"a": "../../other.safetensors"}}', "{"])
def test_an_index_that_is_none_or_leads_outside_is_refused(source, content):
    given = source()
    (given / "model.safetensors").unlink()
    (given / "model.safetensors.index.json").write_text(content, encoding="utf-8")
    assert "model.safetensors.index.json" in refused(given).where


@pytest.mark.parametrize("kind", CLASSES)
def test_a_pickle_of_weights_with_a_tied_matrix(source, kind):
    given = source(kind)
    before = logits(given)
    model = AutoModelForCausalLM.from_pretrained(given)
    torch.save(model.state_dict(), given / "pytorch_model.bin")
    (given / "model.safetensors").unlink()
    folder = convert(given, checkpoint="pytorch_model.bin")
    assert torch.equal(logits(folder / "huggingface"), before)
    assert read_json(folder / "model.json")["checkpoint_sha256"] == sha256(given / "pytorch_model.bin")


class Harmful:
    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def test_a_harmful_pickle_runs_nothing(source, tmp_path):
    given = source()
    (given / "pytorch_model.bin").write_bytes(pickle.dumps({"h": Harmful(tmp_path / "harm")}, protocol=2))
    assert "it was refused" in refused(given, checkpoint="pytorch_model.bin").what
    assert not (tmp_path / "harm").exists()


def test_a_checkpoint_of_fairseq_is_refused(source):
    given = source()
    torch.save({"model": {"weight": torch.ones(1)}, "args": None}, given / "pytorch_model.bin")
    assert "this is a checkpoint of fairseq" in refused(given, checkpoint="pytorch_model.bin").what


@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"]
)
def test_a_file_that_changed_since_it_was_fetched_is_refused(source, name):
    given = source()
    manifest = make_manifest(given, given.parent / "fetched")
    path = manifest.parent / "files" / name
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(SeedbedError, match="has changed since it was fetched"):
        intake.prepare(manifest, DEFINITION)


def test_the_isolated_process_answers(source):
    given = source("llama")
    manifest = make_manifest(given, given.parent / "fetched")
    found = intake.convert_checkpoint(manifest, DEFINITION, given.parent / "model")
    assert found == read_json(given.parent / "model" / "model.json")
    assert found["architecture"] == "llama"


def test_the_isolated_process_passes_on_what_is_wrong(source):
    given = source("llama")
    edit(given / "config.json", architectures=["LlamaForSequenceClassification"])
    manifest = make_manifest(given, given.parent / "fetched")
    with pytest.raises(SeedbedError, match="cannot be fine-tuned as a causal language model"):
        intake.convert_checkpoint(manifest, DEFINITION, given.parent / "model")


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model_type": "bert", "architectures": ["BertForMaskedLM"]}, "it is a masked language model"),
        ({"model_type": "bert", "architectures": ["BertLMHeadModel"]}, "it is an encoder"),
        ({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}, "it is an encoder-decoder"),
        ({"model_type": "bart", "is_encoder_decoder": True}, "it is an encoder-decoder"),
        (
            {"model_type": "own", "architectures": ["Own"], "auto_map": {"AutoModel": "own.Own"}},
            "it needs its authors' code",
        ),
        (
            {"model_type": "own", "architectures": ["Own"]},
            "Transformers has no causal language model of its type",
        ),
        (
            {"architectures": ["BloomForSequenceClassification"]},
            "its type requires the class BloomForCausalLM",
        ),
        ({"architectures": None}, "its type requires the class BloomForCausalLM"),
        ({"model_type": "llama"}, "its type requires the class LlamaForCausalLM"),
    ],
)
def test_other_architectures_are_refused_by_name(source, changes, reason):
    given = source()
    edit(given / "config.json", **changes)
    error = refused(given)
    assert f"this model cannot be fine-tuned as a causal language model: {reason}" in error.what
    assert str(changes.get("model_type", "bloom")) in error.found
    assert "BloomForCausalLM, LlamaForCausalLM, GPT2LMHeadModel" in error.hint


def test_quantized_weights_are_refused(source):
    given = source()
    edit(given / "config.json", quantization_config={"quant_method": "gptq", "bits": 4})
    error = refused(given)
    assert error.what == "the weights are stored quantized"
    assert "qlora" in error.hint


@pytest.mark.parametrize("kind", CLASSES)
def test_a_missing_and_an_unknown_weight_are_named(source, kind):
    given = source(kind)
    removed = []

    def change(weights: dict[str, torch.Tensor]) -> None:
        removed.append(next(name for name in sorted(weights) if ".1." in name))
        del weights[removed[0]]
        weights["classifier.weight"] = torch.ones(2, 2)

    rewrite(given, change)
    error = refused(given)
    assert "the weights do not fit the network" in error.what
    assert error.found == f"missing: {removed[0]}; unexpected: classifier.weight"


def test_another_shape_is_named(source):
    given = source()
    rewrite(given, lambda weights: weights.update({"transformer.ln_f.bias": torch.ones(3)}))
    error = refused(given)
    assert "transformer.ln_f.bias" in error.where
    assert error.found == "(3,), expected (16,)"


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"n_layer": 3}, "the weights do not fit the network"),
        ({"n_layer": 10**9}, "more layers than there are weights"),
        ({"vocab_size": 399}, "the shape of a weight differs"),
        ({"hidden_size": "wide"}, "cannot build the network"),
    ],
)
def test_a_config_of_another_model_is_refused(source, changes, what):
    given = source()
    edit(given / "config.json", **changes)
    assert what in refused(given).what


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_finite_numbers_are_refused(source, value):
    given = source("llama")

    def change(weights: dict[str, torch.Tensor]) -> None:
        weights["model.layers.1.mlp.up_proj.weight"][3, :2] = value

    rewrite(given, change)
    error = refused(given)
    assert "not finite numbers" in error.what
    assert "model.layers.1.mlp.up_proj.weight" in error.where
    assert error.found.startswith("2 of ")


def test_whole_numbers_are_no_weights(source):
    given = source()
    rewrite(given, lambda weights: {name: weight.to(torch.int8) for name, weight in weights.items()})
    assert refused(given).found == "torch.int8"


def test_an_output_matrix_that_is_not_the_embedding_though_the_config_ties_them(source):
    given = source("gpt2")
    rewrite(given, lambda weights: weights.update({"lm_head.weight": torch.ones(400, 16)}))
    error = refused(given)
    assert "the output matrix differs from the embeddings" in error.what
    assert "lm_head.weight" in error.where


def test_more_tokens_than_rows_are_refused(tmp_path):
    given = make_causal_model(tmp_path / "given", "llama", vocabulary=400)
    other = make_causal_model(tmp_path / "other", "llama", vocabulary=420)
    shutil.copy(other / "tokenizer.json", given / "tokenizer.json")
    error = refused(given)
    assert error.what == "the tokenizer has more tokens than the embedding has rows"
    assert "has id 419; 400 rows" in error.found


def test_fewer_tokens_than_rows_are_not(tmp_path):
    given = make_causal_model(tmp_path / "given", "llama", vocabulary=420)
    other = make_causal_model(tmp_path / "other", "llama", vocabulary=400)
    shutil.copy(other / "tokenizer.json", given / "tokenizer.json")
    assert read_json(convert(given) / "model.json")["vocabulary"] == 420


def test_a_tokenizer_without_an_end_token_is_refused(source):
    given = source()
    edit(given / "tokenizer_config.json", eos_token=None, pad_token=None)
    edit(given / "config.json", eos_token_id=None, pad_token_id=None)
    error = refused(given)
    assert "the tokenizer has no end token" in error.what
    assert error.found == "padding token: None"
    assert "eos_token" in error.hint


def test_a_special_token_outside_the_vocabulary_is_refused(source):
    given = source()
    edit(given / "tokenizer_config.json", pad_token="[PAD]")
    error = refused(given)
    assert "pad_token is not in its vocabulary" in error.what
    assert error.found == "'[PAD]'"


def test_a_damaged_file_of_weights_is_refused(source):
    given = source()
    data = (given / "model.safetensors").read_bytes()
    (given / "model.safetensors").write_bytes(data[:-100])
    assert "not a safetensors file, or it is damaged" in refused(given).what


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_damaged_json_file_is_refused(source, name):
    given = source()
    (given / name).write_text("{", encoding="utf-8")
    assert name in refused(given).where


@pytest.mark.parametrize(
    ("name", "key", "hint"),
    [
        ("model.safetensors", "checkpoint", "set checkpoint to the file's path"),
        ("config.json", "config", "set config to the file's path"),
        ("tokenizer.json", "tokenizer", "save_pretrained, which writes tokenizer.json"),
    ],
)
def test_a_missing_file_is_told_with_what_to_do(source, name, key, hint):
    given = source()
    (given / name).unlink()
    error = refused(given)
    assert f"has no file {name!r}" in error.what
    assert key in error.where
    assert hint in error.hint


@pytest.mark.parametrize("checkpoint", ["model.safetensors", "model.pt"])
def test_a_folder_of_fairseq_is_told_which_files_are_wanted(tmp_path, checkpoint):
    given = make_fairseq_checkpoint(tmp_path / "fairseq", layers=1, dim=16, ffn=24, heads=2, vocab=200)
    error = refused(given, checkpoint=checkpoint)
    assert error.what == "this is a checkpoint of fairseq"
    told = "set format: fairseq for the model, which serves classification, multilabel and regression. "
    assert error.hint.startswith(told)
    assert "from config.json, model.safetensors and tokenizer.json" in error.hint
    assert "did you mean" not in error.hint


@pytest.mark.parametrize("kind", ["roberta", "camembert"])
def test_an_encoder_is_told_its_own_format(source, kind):
    given = source()
    edit(given / "config.json", model_type=kind, architectures=["RobertaForMaskedLM"])
    error = refused(given)
    assert error.what.endswith(f"type {kind!r} in Transformers' format, and its format is not causal")
    assert error.hint.startswith(
        "set format: huggingface for the model, which serves classification, multilabel and regression. "
    )


def test_other_files_of_weights_are_proposed(source):
    given = source()
    (given / "model.safetensors").rename(given / "pytorch_model.bin")
    assert "did you mean 'pytorch_model.bin'?" in refused(given).hint


def test_a_file_in_a_folder_of_the_source(source):
    given = source()
    (given / "bloom").mkdir()
    for path in list(given.glob("*.json")) + list(given.glob("*.safetensors")):
        path.rename(given / "bloom" / path.name)
    paths = {key: f"bloom/{DEFINITION[key]}" for key in ("checkpoint", "config", "tokenizer")}
    found = read_json(convert(given, **paths) / "model.json")
    assert (found["eos"], found["pad_is"]) == (2, "pad")
    assert (
        json.loads((given.parent / "model" / "huggingface" / "config.json").read_text())["model_type"]
        == "bloom"
    )


# --- made to do harm --------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["normalizer", "pre_tokenizer"])
def test_a_tokenizer_that_takes_all_memory_or_breaks_its_library_is_refused(source, part):
    given = source()
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    growing = {"type": "Replace", "pattern": {"String": "e"}, "content": "e" * 10**6}
    harm = {"normalizer": growing, "pre_tokenizer": split}
    edit(given / "tokenizer.json", **{part: harm[part]})
    error = refused(given)
    assert error.where.endswith("tokenizer.json")
    assert "download the file from its authors again" in error.hint


def test_code_and_kernels_that_a_config_names_are_not_taken_over(source):
    given = source()
    keys = ("attn_implementation", "_attn_implementation", "experts_implementation")
    edit(
        given / "config.json", transformers_weights="../../x.safetensors", **dict.fromkeys(keys, "owner/name")
    )
    published = read_json(convert(given) / "huggingface" / "config.json")
    assert not {*keys, "transformers_weights"} & published.keys()


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("damage", ["deep", "digits", "list", "surrogate", "levels"])
def test_json_that_breaks_its_reader_is_one_clear_error(source, name, damage):
    given = source()
    surrogate = json.dumps(read_json(given / name) | {"x": "\ud800"})
    nested = '{"model_type": "bloom", "architectures": ' + "[" * 50_000 + "]" * 50_000 + "}"
    content = {"deep": nested, "digits": '{"a": ' + "1" * 5000 + "}", "list": "[[[]]]"}
    content["surrogate"] = surrogate
    levels = "[" * 200 + "]" * 200
    content["levels"] = surrogate.replace(r'"\ud800"', levels)
    (given / name).write_text(content[damage], encoding="utf-8")
    error = refused(given)
    assert len(str(error).splitlines()) <= 4
    assert len(str(error)) < 1000
