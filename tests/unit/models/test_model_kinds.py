"""One generated model of each kind, from its files through the conversion and the parity gate."""

from pathlib import Path

import pytest
import torch
from builders import ODD_TEXTS, make_fairseq_checkpoint, make_manifest, make_reviews
from builders_checkpoints import make_huggingface_model, make_roberta_base
from safetensors.torch import load_file

from seedbed.core.files import read_json, read_jsonl, write_json, write_jsonl
from seedbed.models import conversion, intake, parameters
from seedbed.models.parity import check_parity
from seedbed.models.tokenization import tokenize_texts
from seedbed.training.fairseq.binarization import binarize

SPLITS = ("train", "validation", "test")
FAIRSEQ = {
    "the lab's: BPE, fp16, args": {},
    "unigram, fp32": {"model_type": "unigram", "dtype": "float32"},
    "bfloat16, cfg": {"dtype": "bfloat16", "settings": "cfg"},
    "cfg with a Namespace, fine-tuned": {"settings": "cfg-namespace", "finetuned": True},
    "cfg of omegaconf, unigram": {"settings": "cfg-omegaconf", "model_type": "unigram"},
    "old names, old layout of the file": {"old_names": True, "zipped": False},
    "one layer, wide": {"layers": 1, "dim": 48, "ffn": 16, "heads": 6, "positions": 30},
    "deep, one head, larger vocabulary": {"layers": 5, "heads": 1, "vocab": 460, "positions": 64},
    "without <mask>": {"mask_row": False},
    "<mask> and fillers in dict.txt": {"lines": ["<mask> 1", "madeupword0000 0", "madeupword0001 0"]},
    "camembert-base's dict.txt": {
        "model_type": "unigram",
        "first_lines": ["<unk>NOTUSED 9", "<s> 9 #fairseq:overwrite", "</s> 9 #fairseq:overwrite"],
    },
    "ReLU": {"activation": "relu"},
    "GELU by tanh": {"activation": "gelu_accurate"},
}
HUGGINGFACE = {
    "XLM-R": {"kind": "xlm-roberta"},
    "RoBERTa, BPE, fp16": {"kind": "roberta", "model_type": "bpe", "dtype": "float16"},
    "XLM-R, pytorch_model.bin": {"kind": "xlm-roberta", "pickled": True},
    "CamemBERT": {"kind": "camembert", "vocab": 203, "layers": 3},
    "CamemBERT, BPE, tokenizer.json": {
        "kind": "camembert",
        "vocab": 203,
        "model_type": "bpe",
        "tokenizer": True,
    },
    "token types": {"kind": "xlm-roberta", "token_types": True},
    "encoder alone": {"kind": "xlm-roberta", "head": False},
}
KINDS = [("fairseq", name) for name in (*FAIRSEQ, "roberta.base")] + [
    ("huggingface", name) for name in HUGGINGFACE
]


def make(folder: Path, kind: str, name: str) -> Path:
    """The converted model of a kind, in `folder`/model."""
    source = folder / "archive"
    definition = {"source": "made", "format": kind, "sentencepiece": "sentencepiece.bpe.model"}
    if kind == "fairseq":
        if name == "roberta.base":
            make_roberta_base(source)
        else:
            make_fairseq_checkpoint(source, **FAIRSEQ[name])
        definition |= {"checkpoint": "model.pt", "dictionary": "dict.txt", "config": None}
    else:
        make_huggingface_model(source, **HUGGINGFACE[name])
        weights = "pytorch_model.bin" if HUGGINGFACE[name].get("pickled") else "model.safetensors"
        definition |= {"checkpoint": weights, "dictionary": None, "config": "config.json"}
    request = intake.prepare(make_manifest(source, folder / "source"), definition)
    conversion.work({**request, "folder": str(folder / "model")}, forked=False)
    return folder / "model"


def write_data(folder: Path, model: Path) -> dict[str, dict[str, Path]]:
    """Texts, some of them odd, and their tokens, by split."""
    texts = [review["text"] for review in make_reviews(40, seed=2)] + list(ODD_TEXTS)
    for number, split in enumerate(SPLITS):
        rows = [{"id": f"{split}-{i}", "text": text, "label": 0} for i, text in enumerate(texts[number::3])]
        write_jsonl(folder / f"{split}.jsonl", rows)
    files = {
        "subwords": model / "subwords",
        "dictionary": model / "fairseq" / "dict.txt",
        "definition": model / "model.json",
    }
    tokenize_texts({split: folder / f"{split}.jsonl" for split in SPLITS}, files, folder / "tokens", 1.0)
    return {
        "texts": {split: folder / f"{split}.jsonl" for split in SPLITS},
        "tokens": {split: folder / "tokens" / f"{split}.jsonl" for split in SPLITS},
        "pieces": {split: folder / "tokens" / f"{split}.pieces" for split in SPLITS},
    }


def run_gate(folder: Path, kind: str, name: str) -> dict:
    """parity.json of a kind."""
    model = make(folder, kind, name)
    data = write_data(folder, model)
    return check_parity(
        data["texts"], data["tokens"], model, reviews=20, tolerance=1e-4, output=folder / "parity.json"
    )


@pytest.mark.parametrize(("kind", "name"), KINDS)
def test_a_model_of_each_kind_passes_the_gate(tmp_path, kind, name):
    result = run_gate(tmp_path, kind, name)
    assert result["token_ids_equal"] is True
    assert result["texts"] == 51
    assert result["positions"] > 20 * 10
    assert result["largest_difference"] < 1e-5
    definition = read_json(tmp_path / "model" / "model.json")
    same_head = definition["activation"] == "gelu" and definition["lm_head"] == "given"
    assert (result["logits"]["positions"] > 0) is same_head
    assert (result["masked_lm"] is not None) is (same_head and definition["mask_row"] == "given")
    assert definition["format"] == kind
    rows = parameters.tabulate("made", definition, tmp_path / "model" / "huggingface" / "model.safetensors")
    assert all(row["expected"] == row["counted"] for row in rows)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("fairseq", "camembert-base's dict.txt"), ("fairseq", "roberta.base"), ("huggingface", "CamemBERT")],
)
def test_fairseq_preprocess_gives_the_same_ids(tmp_path, kind, name):
    """Second rows of special tokens, and words that are numbers, must not shift what fairseq reads."""
    model = make(tmp_path, kind, name)
    data = write_data(tmp_path, model)
    labels = {split: tmp_path / f"{split}.label" for split in SPLITS}
    for split, path in labels.items():
        path.write_text("0\n" * len(read_jsonl(data["tokens"][split])), encoding="utf-8")
    write_json(tmp_path / "labels.json", {"labels": ["0", "1"]})
    files = model / "fairseq" / "dict.txt", tmp_path / "labels.json", tmp_path / "binarized"
    found = binarize(data["pieces"], labels, data["tokens"], *files)
    assert sum(split["texts"] for split in found["splits"].values()) == 51


def test_a_missing_mask_gets_the_mean_of_the_words(tmp_path):
    model = make(tmp_path, "fairseq", "without <mask>")
    weights = load_file(model / "huggingface" / "model.safetensors")
    embeddings = weights["roberta.embeddings.word_embeddings.weight"]
    assert len(embeddings) == 200
    assert torch.allclose(embeddings[-1], embeddings[4:-1].mean(dim=0))
    assert weights["lm_head.bias"][-1] == weights["lm_head.bias"][4:-1].min()
    assert read_json(model / "model.json")["mask_row"] == "added"
