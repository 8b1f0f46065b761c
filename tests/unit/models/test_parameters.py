"""Parameter counts: the formula on known numbers, the count on generated models."""

import csv

import pytest
import torch
from builders import make_fairseq_checkpoint, make_manifest
from safetensors.torch import load_file, save_file

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json
from seedbed.models.intake import convert_checkpoint
from seedbed.models.parameters import expected_parameters, write_parameters

DEFINITION = {
    "source": "lab",
    "checkpoint": "model.pt",
    "dictionary": "dict.txt",
    "sentencepiece": "sentencepiece.bpe.model",
}


def test_formula_on_roberta_small_fr():
    """Numbers of RoBERTa-small-fr: N = 4, d = f = 512, V = 32,000, T = 256."""
    found = expected_parameters(layers=4, d=512, f=512, vocabulary=32000, positions=256)
    numbers = {component: number for component, (_, number) in found.items()}
    assert numbers["total"] == 22_829_056
    assert numbers["total without biases and layer norms"] == 22_807_552
    assert numbers["total without biases, layer norms and positions"] == 22_675_456
    parts = list(numbers.values())[:6]
    assert parts == [16_384_000, 132_096, 1_024, 4_202_496, 2_101_248, 8_192]
    assert sum(parts) == numbers["total"]


def test_formula_on_roberta_base():
    """125M (Liu et al. 2019): transformers counts 124,055,040 without pooler and the row of token types."""
    found = expected_parameters(layers=12, d=768, f=3072, vocabulary=50265, positions=512)
    assert found["total"][1] == 124_055_040 - 768


@pytest.mark.parametrize(
    ("layers", "dim", "ffn", "heads", "vocab", "positions"), [(1, 8, 8, 1, 180, 20), (3, 12, 40, 3, 200, 33)]
)
def test_count_on_generated_models(tmp_path, layers, dim, ffn, heads, vocab, positions):
    source = make_fairseq_checkpoint(
        tmp_path / "s", layers=layers, dim=dim, ffn=ffn, heads=heads, vocab=vocab, positions=positions
    )
    folder = tmp_path / "model"
    convert_checkpoint(make_manifest(source, tmp_path / "source"), DEFINITION, folder)
    write_parameters("generated", folder, folder / "parameters.csv")
    with open(folder / "parameters.csv", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["model", "component", "formula", "expected", "counted"]
    assert {row["model"] for row in rows} == {"generated"}
    assert all(row["expected"] == row["counted"] for row in rows)
    total = next(row for row in rows if row["component"] == "total")
    n, d, f = layers, dim, ffn
    assert total["formula"] == "N(4d² + 2df + 9d + f) + dV + d(T + 2) + 2d"
    blocks = n * (4 * d * d + 2 * d * f + 9 * d + f)
    assert int(total["counted"]) == blocks + d * vocab + d * (positions + 2) + 2 * d


def test_another_number_than_expected_is_an_error(tmp_path):
    folder = tmp_path / "model"
    convert_checkpoint(
        make_manifest(make_fairseq_checkpoint(tmp_path / "s"), tmp_path / "source"), DEFINITION, folder
    )
    path = folder / "huggingface" / "model.safetensors"
    weights = load_file(path)
    name = "roberta.encoder.layer.1.intermediate.dense.weight"
    save_file({**weights, name: torch.zeros(25, 16)}, path)
    with pytest.raises(SeedbedError, match="unexpected number of parameters: feed-forward") as error:
        write_parameters("m", folder, folder / "parameters.csv")
    assert "1,632 counted, N(2df + d + f) = 1,616 expected" in error.value.found
    assert "remove the model's folder" in error.value.hint
    assert not (folder / "parameters.csv").exists()
    save_file({**weights, "roberta.pooler.dense.weight": torch.zeros(1)}, path)
    with pytest.raises(SeedbedError, match="belongs to no component") as error:
        write_parameters("m", folder, folder / "parameters.csv")
    assert error.value.found == "roberta.pooler.dense.weight"
    assert read_json(folder / "model.json")["layers"] == 2
