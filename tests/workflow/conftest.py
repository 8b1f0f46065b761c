"""A user's working directory for tests of whole workflows: the real Snakefile, another folder for results."""

from typing import Any

import pytest
from builders import make_fairseq_checkpoint
from builders_workflow import (  # noqa: F401 - tests take them from here
    ROOT,
    SHAPE,
    Project,
    failed,
    link_repository,
    small_config,
    succeeded,
    write_lab_dataset,
)


@pytest.fixture
def project(tmp_path) -> Project:
    """A working directory with the repository's own config and resources."""
    return link_repository(tmp_path / "work")


@pytest.fixture
def small(tmp_path) -> tuple[Project, dict[str, Any]]:
    """A working directory with a generated dataset and checkpoint, and its config."""
    inputs = tmp_path / "inputs"
    write_lab_dataset(inputs / "books")
    make_fairseq_checkpoint(inputs / "generated", **SHAPE)
    return link_repository(tmp_path / "work"), small_config(inputs)
