"""Builders of a user's working directory, in which the real Snakefile runs: results lie there, not here."""

import csv
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from builders import make_reviews

ROOT = Path(__file__).parents[1]
# Small enough that a run trains in a second; the dimensions differ on purpose.
SHAPE = {"layers": 2, "dim": 32, "ffn": 48, "heads": 4, "vocab": 300, "positions": 40}


@dataclass
class Project:
    """A folder in which Snakemake runs, with the repository's Snakefile."""

    folder: Path

    def snakemake(
        self,
        *arguments: str,
        config: dict[str, Any] | None = None,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess:
        """Run Snakemake with one core and `config` as an overlay on config.yaml.

        `prefix` is a command that runs it, such as unshare's, `environment` adds variables.
        """
        command = [*prefix, sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
        command += ["--cores", "1"]
        if config is not None:
            overlay = self.folder / "overlay.yaml"
            overlay.write_text(yaml.safe_dump(config, allow_unicode=True, sort_keys=False), encoding="utf-8")
            command += ["--configfile", str(overlay)]
        return subprocess.run(
            [*command, *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=1800,  # two minutes on an idle core; machines are shared
            env={**os.environ, "PYTHONPATH": "", **(environment or {})},
        )

    def rows(self, path: str) -> list[dict[str, str]]:
        """A CSV file below the project."""
        with open(self.folder / path, encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))


def succeeded(done: subprocess.CompletedProcess) -> subprocess.CompletedProcess:
    """Assert that Snakemake succeeded, and show what it said where it did not."""
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return done


def failed(done: subprocess.CompletedProcess) -> str:
    """Assert that Snakemake failed; all that it printed."""
    assert done.returncode != 0
    return done.stdout + done.stderr


def link_repository(folder: Path) -> Project:
    """Make `folder` a working directory: config.yaml, resources and experiments of the repository."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "config.yaml", folder)  # a copy: nothing a test does may write through a link
    for name in ("resources", "experiments"):
        (folder / name).symlink_to(ROOT / name)
    return Project(folder)


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
