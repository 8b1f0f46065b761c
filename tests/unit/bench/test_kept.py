"""The kept tables of full-size experiments are those that the present code makes of their runs."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

import kept


@pytest.mark.slow  # 12 s
@pytest.mark.parametrize("name", kept.CONFIGS)
def test_kept_tables_are_current(name):
    assert kept.differing(name) == []
