"""Fixtures of the faults suite: what is prepared once, and a directory for each test."""

import os
from collections.abc import Iterator

import pytest
from builders_workflow import (  # noqa: F401 - tests of whole workflows take them from `conftest`
    ROOT,
    SHAPE,
    Project,
    failed,
    link_repository,
    small_config,
    succeeded,
    write_lab_dataset,
)
from harness import Laboratory, copy, shared


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> tuple[Laboratory, Laboratory]:
    """(prepared, reference), made once for all of pytest's workers."""
    base = tmp_path_factory.getbasetemp()
    return shared((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "faults")


@pytest.fixture
def laboratory(made, tmp_path) -> Iterator[Laboratory]:
    """A directory of its own in which everything but the runs is made."""
    own = copy(made[0], tmp_path / "work")
    yield own
    own.kill_everything()  # where a test failed, its processes may still be there


@pytest.fixture
def reference(made) -> Laboratory:
    """The same experiment, uninterrupted."""
    return made[1]
