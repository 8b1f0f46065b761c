"""The parity gate: passes on converted models of both kinds, and fails on any difference."""

import argparse
import csv
import json
import logging
import math
import shutil
from pathlib import Path

import pytest
import sentencepiece
import torch
from builders import ODD_TEXTS, make_fairseq_checkpoint, make_manifest, make_reviews, make_weights
from safetensors.torch import load_file, save_file

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl, write_jsonl
from seedbed.models import conversion, parity
from seedbed.models.fast_tokenizers import build_tokenizer
from seedbed.models.intake import prepare
from seedbed.models.parity import Example, check_parity, choose
from seedbed.models.subwords import match_vocabulary, published
from seedbed.models.tokenization import tokenize_texts

DEFINITION = {
    "source": "lab",
    "checkpoint": "model.pt",
    "dictionary": "dict.txt",
    "sentencepiece": "sentencepiece.bpe.model",
}
SPLITS = ("train", "validation", "test")
ROOT = Path(__file__).parents[3]


def make_data(folder: Path, kind: str, vocab: int = 200) -> Path:
    """A converted model of a kind and the tokens of a small dataset."""
    source = make_fairseq_checkpoint(folder / "archive", model_type=kind, vocab=vocab)
    request = prepare(make_manifest(source, folder / "source"), DEFINITION)
    conversion.work({**request, "folder": str(folder / "model")}, forked=False)
    write_texts(folder, [review["text"] for review in make_reviews(60, seed=2)] + list(ODD_TEXTS))
    return folder


def write_texts(folder: Path, texts: list[str]) -> None:
    """Prepared splits of the texts, and their tokens."""
    for number, split in enumerate(SPLITS):
        rows = [{"id": f"{split}-{i}", "text": text, "label": 0} for i, text in enumerate(texts[number::3])]
        write_jsonl(folder / f"{split}.jsonl", rows)
    model = folder / "model"
    files = {
        "subwords": model / "subwords",
        "dictionary": model / "fairseq" / "dict.txt",
        "definition": model / "model.json",
    }
    tokenize_texts({split: folder / f"{split}.jsonl" for split in SPLITS}, files, folder / "tokens", 1.0)


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def made(request, tmp_path_factory):
    return make_data(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture
def data(made, tmp_path):
    return shutil.copytree(made, tmp_path / "data")


def run(data: Path, reviews: int = 20, tolerance: float = 1e-4):
    return check_parity(
        texts={split: data / f"{split}.jsonl" for split in SPLITS},
        tokens={split: data / "tokens" / f"{split}.jsonl" for split in SPLITS},
        model=data / "model",
        reviews=reviews,
        tolerance=tolerance,
        output=data / "parity.json",
    )


def refused(data: Path, **options) -> SeedbedError:
    with pytest.raises(SeedbedError) as error:
        run(data, **options)
    assert not (data / "parity.json").exists()
    return error.value


# --- the whole gate ---


def test_both_frameworks_agree(data):
    result = run(data)
    assert result == read_json(data / "parity.json")
    assert result["token_ids_equal"] is True
    assert (result["texts"], result["compared"]) == (71, 20)
    assert result["positions"] > 20 * 10
    assert 0 <= result["largest_difference"] < 1e-5
    assert result["logits"]["positions"] == result["positions"]
    assert result["logits"]["largest_difference"] < 1e-4
    assert result["tolerance"] == 1e-4


def test_more_reviews_than_there_are(data):
    assert run(data, reviews=1000)["compared"] == 71


def reference_states(weights: dict[str, torch.Tensor], ids: list[int], heads: int) -> torch.Tensor:
    """RoBERTa written out: Devlin et al. 2019, with Vaswani et al. 2017 for the blocks (post-norm)."""
    get = lambda name: weights[f"encoder.sentence_encoder.{name}"].double()  # noqa: E731

    def linear(name, x):
        return x @ get(f"{name}.weight").T + get(f"{name}.bias")

    def norm(name, x):
        centred = x - x.mean(-1, keepdim=True)
        scale = (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        return centred / scale * get(f"{name}.weight") + get(f"{name}.bias")

    x = get("embed_tokens.weight")[ids] + get("embed_positions.weight")[torch.arange(len(ids)) + 2]
    x = norm("layernorm_embedding", x)
    for layer in range(2):
        name = f"layers.{layer}"
        q, k, v = (
            linear(f"{name}.self_attn.{p}_proj", x).unflatten(1, (heads, -1)).transpose(0, 1) for p in "qkv"
        )
        mixed = (q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])).softmax(-1) @ v
        x = norm(
            f"{name}.self_attn_layer_norm",
            x + linear(f"{name}.self_attn.out_proj", mixed.transpose(0, 1).flatten(1)),
        )
        inner = linear(f"{name}.fc1", x)
        inner = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))
        x = norm(f"{name}.final_layer_norm", x + linear(f"{name}.fc2", inner))
    return x


def test_both_frameworks_compute_roberta(made):
    weights = {name: tensor.half() for name, tensor in make_weights(2, 16, 24, 200, 40).items()}
    ids = [0, 17, 5, 3, 199, 42, 8, 2]
    expected = reference_states(weights, ids, heads=2)
    batch = torch.tensor([ids, [0, 9, 2, 1, 1, 1, 1, 1]])
    with torch.inference_mode():
        ours = parity.load_fairseq(made / "model")(batch, features_only=True)[0][0]
        theirs = (
            parity.load_huggingface(made / "model").roberta(batch, batch.ne(1).long()).last_hidden_state[0]
        )
    assert (ours - expected).abs().max() < 1e-5
    assert (theirs - expected).abs().max() < 1e-5


# --- whether the checkpoint knows the ids ---


def embedded(folder: Path, change=lambda source: None) -> dict:
    """parity.json of the embedded checkpoint and reviews, after a change of the checkpoint's files."""
    source = shutil.copytree(ROOT / "resources" / "RoBERTa_tiny_fr", folder / "archive")
    change(source)
    request = prepare(make_manifest(source, folder / "source"), DEFINITION)
    conversion.work({**request, "folder": str(folder / "model")}, forked=False)
    write_texts(folder, read_reviews())
    return run(folder, reviews=30)


def read_reviews() -> list[str]:
    with open(ROOT / "resources" / "reviews_fr" / "train.csv", encoding="utf-8") as stream:
        return [row["text"] for row in csv.DictReader(stream)][:60]


def test_a_pretrained_checkpoint_is_better_than_guessing_by_frequency(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        found = embedded(tmp_path)["masked_lm"]
    assert 0 < found["loss"] < found["frequency_loss"] - 1
    assert found["tokens"] > 100
    assert "mean nothing" not in caplog.text


def shift_dictionary(source: Path) -> None:
    lines = (source / "dict.txt").read_bytes().splitlines(keepends=True)
    (source / "dict.txt").write_bytes(b"".join([*lines[-1:], *lines[:-1]]))


def lose_a_layer(source: Path) -> None:
    with torch.serialization.safe_globals([argparse.Namespace]):
        content = torch.load(source / "model.pt", weights_only=True)
    for name, tensor in content["model"].items():
        if ".layers.2." in name and tensor.dim() == 2:
            tensor.copy_(torch.randn(tensor.shape, generator=torch.Generator().manual_seed(1)))
    torch.save(content, source / "model.pt")


@pytest.mark.parametrize("change", [shift_dictionary, lose_a_layer])
def test_ids_or_weights_that_mean_nothing_are_told(tmp_path, caplog, change):
    """Both frameworks agree on them, so that nothing else would notice."""
    with caplog.at_level(logging.WARNING):
        found = embedded(tmp_path, change)["masked_lm"]
    assert found["loss"] > found["frequency_loss"]
    assert "these token ids mean nothing to this checkpoint" in caplog.text
    assert "guessing by frequency" in caplog.text


def test_the_loss_of_guessing_by_frequency(made):
    """Worked out by hand: 3 tokens twice and once, and 200 words."""
    texts = [Example("train", 1, "a", ("",), [0, 7, 7, 9, 2]), Example("train", 2, "b", ("",), [0, 2])]
    network = parity.load_huggingface(made / "model")
    found = parity.compare_with_frequencies(texts, texts, network, made / "model")
    assert found["tokens"] == 1  # 15% of 3, rounded up
    expected = {math.log(203 / 3), math.log(203 / 2)}
    assert min(abs(found["frequency_loss"] - value) for value in expected) < 1e-12
    assert parity.compare_with_frequencies(texts[1:], texts[1:], network, made / "model") is None


# --- what it catches ---


def change_weight(data: Path, name: str, change) -> None:
    path = data / "model" / "huggingface" / "model.safetensors"
    weights = load_file(path)
    change(weights[name])
    save_file(weights, path)


def test_a_changed_weight(data):
    change_weight(data, "roberta.encoder.layer.1.output.LayerNorm.bias", lambda tensor: tensor[3].add_(0.01))
    error = refused(data)
    assert error.what == "the hidden states of fairseq and transformers differ by 0.01, more than 0.0001"
    assert "'split': " in error.where
    assert "'position': " in error.where
    assert "checks.parity_tolerance" in error.hint
    assert run(data, tolerance=0.1)["largest_difference"] == pytest.approx(0.01, abs=1e-4)


def test_a_changed_head(data):
    change_weight(data, "lm_head.bias", lambda tensor: tensor[77].add_(1.0))
    assert refused(data).what.startswith(
        "the logits of the language-model head of fairseq and transformers differ by 1,"
    )


def test_a_weight_that_is_no_number(data):
    change_weight(data, "roberta.encoder.layer.0.output.dense.bias", lambda tensor: tensor[0].fill_(math.nan))
    assert "differ by inf" in refused(data).what


def test_a_missing_weight(data):
    path = data / "model" / "huggingface" / "model.safetensors"
    weights = load_file(path)
    del weights["roberta.encoder.layer.0.output.dense.bias"]
    save_file(weights, path)
    error = refused(data)
    assert error.what == "transformers does not find the expected weights"
    assert "roberta.encoder.layer.0.output.dense.bias" in str(error.found)


def test_other_token_ids(data):
    path = data / "tokens" / "validation.jsonl"
    rows = read_jsonl(path)
    rows[4]["ids"][1] += 1
    write_jsonl(path, rows)
    error = refused(data)
    assert error.what == "the fast tokenizer gives 1 of 71 texts other ids than the SentencePiece model does"
    assert error.where.startswith("split validation, line 5 (validation-4): ")
    assert str(rows[4]["ids"]) in error.found
    assert error.found.count("[") == 2


def test_a_bpe_model_read_as_unigram(tmp_path):
    """The trap of transformers' own tokenizers: no error, other ids on nearly every text."""
    data = make_data(tmp_path, "bpe")
    model = data / "model"
    path = model / "huggingface" / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = sorted(content["model"]["vocab"].items(), key=lambda item: item[1])
    content["model"] = {
        "type": "Unigram",
        "unk_id": 3,
        "vocab": [[word, -float(number)] for word, number in vocabulary],
        "byte_fallback": False,
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    error = refused(data)
    assert error.what.startswith("the fast tokenizer gives ")


def test_tokens_of_other_examples(data):
    rows = read_jsonl(data / "tokens" / "test.jsonl")
    write_jsonl(data / "tokens" / "test.jsonl", rows[1:])
    error = refused(data)
    assert error.what == "texts and token ids of the split 'test' are of different examples"
    assert error.found == "23 texts, 22 rows of ids"


def test_texts_that_split_equally_well_are_counted_not_refused(tmp_path, caplog):
    """In a unigram model `...` may be `.. .` or `. ..`: one score, and rounding decides for SentencePiece."""
    data = make_data(tmp_path, "unigram", vocab=480)
    model = data / "model"
    files = published(model / "subwords"), model / "fairseq" / "dict.txt"
    vocabulary, fast = match_vocabulary(*files), build_tokenizer(*files)
    exact = sentencepiece.SentencePieceProcessor(model_file=str(files[0].path))
    texts = [f"{review['text']} Avec regret{'.' * dots}" for review in make_reviews(60) for dots in (3, 5, 7)]
    for text in texts:
        ids = [0, *vocabulary.ids(exact.encode(text, out_type=str)), 2]
        if ids != fast.encode(text).ids:
            break
    else:
        pytest.fail("no text with two equally good splits among those tried")
    with caplog.at_level(logging.WARNING):
        assert parity.check_token_ids([Example("train", 1, "train-0", (text,), ids)], model) == 1
    assert "1 texts have two equally good splits, first train-0" in caplog.text
    wrong = Example("train", 1, "train-0", (text,), [0, *ids[2:]])
    with pytest.raises(SeedbedError, match="gives 1 of 1 texts other ids"):
        parity.check_token_ids([wrong], model)


# --- choosing reviews ---


def examples(lengths: dict[str, list[int]]) -> list[Example]:
    return [
        Example(split, line, f"{split}-{line}", ("",), [0] * length)
        for split, row in lengths.items()
        for line, length in enumerate(row, 1)
    ]


def test_the_longest_of_each_split_are_chosen_and_the_rest_spread():
    every = examples({"train": [5] * 50 + [90] + [5] * 49, "validation": [7, 60, 7], "test": [6] * 30 + [70]})
    chosen = choose(every, 12)
    assert [len(example.ids) for example in chosen][-3:] == [60, 70, 90]
    assert len({example.name for example in chosen}) == 12
    assert {example.split for example in chosen} == {"train", "validation", "test"}
    assert sum(example.split == "train" for example in chosen) == pytest.approx(12 * 100 / 134, abs=2)
    assert [e.name for e in choose(every, 10**6)] == [e.name for e in sorted(every, key=lambda e: len(e.ids))]
    assert len(choose(every, 2)) == 2
    assert len(choose(every, 3)) == 3
