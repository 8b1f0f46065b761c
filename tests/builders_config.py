"""Configs for tests of seedbed.config."""

import copy
from pathlib import Path
from typing import Any

import pytest
from builders import load_config

from seedbed.config.resolve import resolve_config
from seedbed.core.errors import SeedbedError

ROOT = Path(__file__).parents[1]
QUESTIONS = {
    "task": "generation",
    "source": "reviews_fr",
    "format": "jsonl",
    "files": {"train": "questions.jsonl"},
}
CAUSAL = {"source": "bloom_560m", "format": "causal"}
SEQ_CLS = {"task_type": "SEQ_CLS", "target_modules": ["query", "value"]}


def demo_config(folder: Path) -> dict[str, Any]:
    """config.yaml, with results in `folder`: a plan looks at the results that are there."""
    return {**load_config([ROOT / "config.yaml"]), "results": str(folder / "results")}


def questions_config(folder: Path) -> dict[str, Any]:
    """An experiment of generation on top of it, as an overlay would make it."""
    raw = demo_config(folder)
    raw["experiment"] = "asked"
    raw["datasets"]["asked"] = copy.deepcopy(QUESTIONS)
    raw["models"]["bloom"] = copy.deepcopy(CAUSAL)
    raw["recipes"] |= {
        "none": {"method": "none"},
        "adapter": {"method": "lora"},
        "packed": {"method": "qlora"},
        "whole": {"method": "full"},
    }
    raw["grid"] = {
        "datasets": ["asked"],
        "models": ["bloom"],
        "recipes": ["none", "adapter", "packed", "whole"],
        "inits": ["pretrained"],
        "seeds": [0, 1],
    }
    return raw


def refusal(raw: dict[str, Any]) -> SeedbedError:
    """The error that a config is refused with."""
    with pytest.raises(SeedbedError) as error:
        resolve_config(raw)
    return error.value


def refused(raw: dict[str, Any]) -> str:
    """Why a config is refused."""
    return str(refusal(raw))
