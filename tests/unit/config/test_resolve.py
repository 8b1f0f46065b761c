"""The resolved config: defaults, the table of sources, the repository's own recipes."""

import copy
from pathlib import Path

import pytest
from builders import load_config
from builders_config import demo_config, refused

from seedbed.config.resolve import resolve_config

ROOT = Path(__file__).parents[3]


@pytest.fixture
def raw(tmp_path):
    return demo_config(tmp_path)


def test_defaults_fill_what_is_left_out_and_the_raw_config_stays_as_it_was(raw):
    raw["recipes"]["short"] = {"epochs": 1}
    before = copy.deepcopy(raw)
    recipe = resolve_config(raw)["recipes"]["short"]
    assert (recipe["batch_size"], recipe["learning_rate"], recipe["warmup_ratio"]) == (8, 1e-5, 0.06)
    assert raw == before


def test_the_labs_recipe_is_what_the_lab_states():
    config = resolve_config(load_config([ROOT / "config.yaml", ROOT / "experiments/cls_books.yaml"]))
    lab = config["recipes"]["lab"]
    assert (lab["batch_size"], lab["learning_rate"], lab["epochs"], lab["warmup_ratio"]) == (8, 1e-5, 5, 0.06)


@pytest.mark.parametrize(
    ("confidence", "needed"), [(0.9, 200), (0.95, 400), (0.99, 2_000), (0.999, 20_000), (0.9995, 40_000)]
)
def test_each_tail_of_an_interval_holds_ten_replicates(raw, confidence, needed):
    raw["statistics"] |= {"confidence": confidence, "replicates": needed - 1}
    message = refused(raw)
    assert f"too few bootstrap replicates for intervals of {confidence}" in message
    assert f"give at least {needed:,}" in message
    raw["statistics"]["replicates"] = needed
    assert resolve_config(raw)["statistics"]["replicates"] == needed


def test_the_table_of_sources_is_there_and_the_config_overrides_a_row(raw):
    raw["sources"]["cls_books"] = {"locations": ["here.zip"], "sha256": "0" * 64}
    sources = resolve_config(raw)["sources"]
    assert sources["cls_books"]["locations"] == ["here.zip"]
    assert sources["cls_books"]["version"] is None
    small = sources["roberta_small_fr"]
    assert small["locations"][0].endswith("RoBERTa_small_fr.zip")
    assert set(small) == set(sources["cls_books"])
