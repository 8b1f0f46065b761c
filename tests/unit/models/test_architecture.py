"""What each framework prints of a model is the model that its definition describes."""

import json
import re

import pytest
from builders import make_fairseq_checkpoint, make_manifest

from seedbed.models import conversion, parity
from seedbed.models.architecture import fairseq_classifier, write_architectures
from seedbed.models.intake import prepare
from seedbed.models.printouts import transformers_classifier
from seedbed.training.hardware import package_versions

DEFINITION = {
    "source": "lab",
    "checkpoint": "model.pt",
    "dictionary": "dict.txt",
    "sentencepiece": "sentencepiece.bpe.model",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("architecture")
    source = make_fairseq_checkpoint(folder / "archive", layers=3, dim=16, ffn=24, heads=2, vocab=200)
    request = prepare(make_manifest(source, folder / "source"), DEFINITION)
    conversion.work({**request, "folder": str(folder / "model")}, forked=False)
    return folder / "model"


@pytest.fixture(scope="module")
def texts(model):
    paths = {"fairseq": model / "architecture_fairseq.txt"}
    paths["transformers"] = model / "architecture_transformers.txt"
    write_architectures(model, **paths)
    return {framework: path.read_text(encoding="utf-8") for framework, path in paths.items()}


@pytest.mark.parametrize(
    ("framework", "parts"),
    {
        "fairseq": [
            "RobertaModel(",
            "(embed_tokens): Embedding(200, 16, padding_idx=1)",
            "3 x TransformerEncoderLayer",
            "(fc1): Linear(in_features=16, out_features=24, bias=True)",
            "(out_proj): Linear(in_features=16, out_features=2, bias=True)",
        ],
        "transformers": [
            "RobertaForSequenceClassification(",
            "(word_embeddings): Embedding(200, 16, padding_idx=1)",
            "3 x RobertaLayer(",
            "(dense): Linear(in_features=16, out_features=24, bias=True)",
            "(out_proj): Linear(in_features=16, out_features=2, bias=True)",
        ],
    }.items(),
)
def test_the_text_is_the_frameworks_own(texts, framework, parts):
    first, _, printed = texts[framework].partition("\n")
    assert f"{framework} {package_versions()[framework]}" in first
    assert "2 classes" in first
    assert [part for part in parts if part not in printed] == []


def test_both_have_the_positions_of_the_checkpoint(texts, model):
    rows = json.loads((model / "model.json").read_text(encoding="utf-8"))["max_positions"] + 2
    found = [re.findall(r"position\w*\): \w*Embedding\((\d+), 16", text) for text in texts.values()]
    assert found == [[str(rows)], [str(rows)]]


def test_both_have_the_shapes_of_the_models_that_are_loaded(model):
    loaded = parity.load_fairseq(model), parity.load_huggingface(model)
    built = fairseq_classifier(model), transformers_classifier(model)
    for ours, theirs, encoder in zip(built, loaded, ("encoder.sentence_encoder.", "roberta."), strict=True):
        shapes = [
            {name: tuple(tensor.shape) for name, tensor in network.state_dict().items() if encoder in name}
            for network in (ours, theirs)
        ]
        assert shapes[0] == shapes[1]
        assert len(shapes[0]) > 3 * 16


def test_no_weights_are_read(model, texts, tmp_path):
    for name in ("model.json", "fairseq/dict.txt", "huggingface/config.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((model / name).read_bytes())
    write_architectures(tmp_path, fairseq=tmp_path / "a.txt", transformers=tmp_path / "b.txt")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == texts["fairseq"]
    assert (tmp_path / "b.txt").read_text(encoding="utf-8") == texts["transformers"]
