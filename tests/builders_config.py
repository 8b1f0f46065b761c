"""Configs for tests of seedbed.config."""

from pathlib import Path
from typing import Any

import pytest
from builders import load_config

from seedbed.config.resolve import resolve_config
from seedbed.core.errors import SeedbedError

ROOT = Path(__file__).parents[1]


def demo_config(folder: Path) -> dict[str, Any]:
    """config.yaml, with results in `folder`: a plan looks at the results that are there."""
    return {**load_config([ROOT / "config.yaml"]), "results": str(folder / "results")}


def refused(raw: dict[str, Any]) -> str:
    """Why a config is refused."""
    with pytest.raises(SeedbedError) as error:
        resolve_config(raw)
    return str(error.value)
