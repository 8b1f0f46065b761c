"""Prepared pairs of texts, and the tokens that a model makes of them."""

import random
from pathlib import Path
from typing import Any

from builders import make_reviews

from seedbed.core import files

SPLITS = ("train", "validation", "test")


def make_pairs(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Pairs of invented reviews; the second text of class 1 begins with the first word of the first."""
    draw = random.Random(seed)
    texts = [review["text"][: draw.randrange(8, 120)] for review in make_reviews(2 * count, seed)]
    rows = []
    for number, (first, other) in enumerate(zip(texts[:count], texts[count:], strict=True)):
        label = number % 2
        second = f"{first.split()[0]} {other}" if label else other
        rows.append({"text": first.strip(), "text_pair": second.strip(), "label": label})
    return rows


def write_pairs(folder: Path, count: int = 60) -> dict[str, Path]:
    """Prepared splits of pairs, and their labels."""
    rows = make_pairs(count)
    paths = {split: folder / f"{split}.jsonl" for split in SPLITS}
    for number, (split, path) in enumerate(paths.items()):
        own = [rows[index] for index in range(len(rows)) if index // 2 % 3 == number]
        files.write_jsonl(path, [{"id": f"{split}-{index}", **row} for index, row in enumerate(own)])
        files.write_text(path.with_suffix(".label"), "".join(f"{row['label']}\n" for row in own))
    files.write_json(folder / "labels.json", {"labels": ["0", "1"], "names": ["negative", "positive"]})
    return paths


def tokenize(folder: Path, model: Path, count: int = 60) -> dict[str, Path]:
    """Pairs below `folder` as token ids of a converted model that fairseq trains, too; the files by split."""
    from seedbed.models.tokenization import tokenize_texts

    made = {"subwords": model / "subwords", "dictionary": model / "fairseq" / "dict.txt"}
    made["definition"] = model / "model.json"
    tokenize_texts(write_pairs(folder, count), made, folder / "tokens", 1.0)
    return {split: folder / "tokens" / f"{split}.jsonl" for split in SPLITS}
