"""Builders of a user's working directory, in which the real Snakefile runs: results lie there, not here."""

import shutil
from pathlib import Path
from typing import Any

from builders import make_reviews

ROOT = Path(__file__).parents[1]
# Small enough that a run trains in a second; the dimensions differ on purpose.
SHAPE = {"layers": 2, "dim": 32, "ffn": 48, "heads": 4, "vocab": 300, "positions": 40}


def link_repository(folder: Path) -> Path:
    """Make `folder` a working directory: config.yaml, resources and experiments of the repository."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "config.yaml", folder)  # a copy: nothing a test does may write through a link
    for name in ("resources", "experiments"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def write_lab_dataset(folder: Path, sizes: dict[str, int] | None = None) -> None:
    """A dataset in the lab's layout: books/train.review and books/train.label, and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (split, size) in enumerate((sizes or {"train": 24, "valid": 12, "test": 16}).items()):
        reviews = make_reviews(size, seed=seed)
        (folder / f"{split}.review").write_text("".join(f"{r['text']}\n" for r in reviews), encoding="utf-8")
        (folder / f"{split}.label").write_text("".join(f"{r['label']}\n" for r in reviews), encoding="utf-8")


def small_config(folder: Path) -> dict[str, Any]:
    """An overlay: a generated dataset and checkpoint below `folder`, one seed, one epoch."""
    return {
        "experiment": "small",
        "grid": {
            "datasets": ["books"], "models": ["generated"], "recipes": ["quick"], "seeds": [0],
        },
        "sources": {
            "books": {"locations": [str(folder / "books")]},
            "generated": {"locations": [str(folder / "generated")]},
        },
        "datasets": {
            "books": {
                "source": "books",
                "format": "lab",
                "files": {"train": "train", "validation": "valid", "test": "test"},
                "labels": ["0", "1"],
                "label_names": ["negative", "positive"],
            }
        },
        "models": {"generated": {"source": "generated"}},
        "recipes": {"quick": {"epochs": 1, "learning_rate": 1e-3}},
        "checks": {"parity_reviews": 20},
    }  # fmt: skip
