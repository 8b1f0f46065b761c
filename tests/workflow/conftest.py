"""Fixtures of tests of whole workflows: working directories that are bare, prepared or finished."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from builders import make_fairseq_checkpoint
from builders_workflow import SHAPE, link_repository, small_config, write_lab_dataset
from harness import Project, copy
from stock import Stock


@pytest.fixture(scope="session")
def stock(tmp_path_factory) -> Stock:
    """What all of pytest's workers share."""
    base = tmp_path_factory.getbasetemp()
    return Stock((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "stock")


@pytest.fixture
def project(tmp_path) -> Project:
    """A working directory with the repository's own config and resources."""
    return Project(link_repository(tmp_path / "work"))


@pytest.fixture
def small(tmp_path) -> tuple[Project, dict[str, Any]]:
    """A working directory with a generated dataset and checkpoint, and its config; nothing is made."""
    inputs = tmp_path / "inputs"
    write_lab_dataset(inputs / "books")
    make_fairseq_checkpoint(inputs / "generated", **SHAPE)
    return Project(link_repository(tmp_path / "work")), small_config(inputs)


@pytest.fixture
def prepared(stock, tmp_path) -> Iterator[Project]:
    """A directory of the test's own in which everything but the runs is made."""
    own = copy(stock.prepared(), tmp_path / "work")
    yield own
    own.kill_everything()  # where a test failed, its processes may still be there


@pytest.fixture
def reference(stock) -> Project:
    """The finished experiment, uninterrupted; not to be changed."""
    return stock.finished()


@pytest.fixture
def finished(stock, tmp_path) -> Project:
    """A directory of the test's own in which the experiment is finished."""
    return copy(stock.finished(), tmp_path / "work")
