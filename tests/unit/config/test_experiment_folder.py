"""The folder of an experiment from its config files."""

from pathlib import Path

import pytest

from seedbed.config.experiment_folder import folder_of
from seedbed.core.errors import SeedbedError


def test_the_folder_is_found_by_the_config_files(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "block.yaml").write_text("experiment: mine # a name\ngrid: {seeds: [0]}\n")
    (tmp_path / "flow.yaml").write_text('{"experiment": "other", "results": "my results"}')
    (tmp_path / "home.yaml").write_text("results: ~/far")
    assert folder_of([]) == Path("results/demo")
    assert folder_of([tmp_path / "block.yaml"]) == Path("results/mine")
    assert folder_of([tmp_path / "block.yaml", tmp_path / "flow.yaml"]) == Path("my results/other")
    assert folder_of([tmp_path / "block.yaml", tmp_path / "home.yaml"]) == tmp_path / "far/mine"


def test_a_missing_file_and_one_that_is_no_yaml_are_refused(tmp_path):
    with pytest.raises(SeedbedError, match="no such config file"):
        folder_of([tmp_path / "none.yaml"])
    (tmp_path / "broken.yaml").write_text("experiment: [one\n")
    with pytest.raises(SeedbedError, match=r"no YAML\n  where: .*broken.yaml, line 2"):
        folder_of([tmp_path / "broken.yaml"])
