"""README and docs: short, current, and with configs that work."""

import copy
import re

import pytest
import yaml
from builders import load_config
from builders_pages import README, ROOT, blocks, configs

from seedbed.config.resolve import resolve_config
from seedbed.core.errors import SeedbedError

CONFIGS = configs()
TUTORIAL = ROOT / "docs/tutorials/your-texts.md"


def test_the_readme_is_one_screen():
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    assert [line for line in lines if len(line) > 110] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs/how-to").glob("*.md")), ids=lambda page: page.stem)
def test_a_how_to_page_is_short(page):
    assert len(page.read_text(encoding="utf-8").splitlines()) <= 90


def test_the_site_has_every_page():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r"([\w/-]+\.md)$", text, re.MULTILINE)
    assert sorted(named) == sorted(
        str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")
    )


def test_the_generated_pages_are_up_to_date(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs/generator"))
    import pages as generator

    made = generator.all_pages()
    kept = {path for path in (ROOT / "docs/reference").glob("*.md") if path.name != "index.md"}
    assert kept == {path for path in made if path.suffix == ".md"}
    for path in kept - {generator.documentation.PAGE}:  # tests/unit/config/test_documentation.py has that
        assert path.read_text(encoding="utf-8") == made[path](), f"run `make reference`: {path}"


# --- configs on pages ---


@pytest.mark.parametrize(("place", "block"), CONFIGS, ids=[place for place, _ in CONFIGS])
def test_a_config_on_a_page_is_accepted(place, block, tmp_path):
    """Over config.yaml, and over the file that its first line names after `over`."""
    assert re.fullmatch(r"[\w-]+\.yaml(, over \S+)?(, with a mistake)?", block.title), "name its file"
    over = re.findall(r", over (\S+?)(?=,|$)", block.title)
    path = tmp_path / "block.yaml"
    path.write_text(block.text, encoding="utf-8")
    raw = load_config([ROOT / "config.yaml", *(ROOT / name for name in over), path])
    raw["results"] = str(tmp_path / "results")
    if block.title.endswith("with a mistake"):
        with pytest.raises(SeedbedError):
            resolve_config(raw)
    else:
        before = copy.deepcopy(raw)
        resolve_config(raw)
        assert raw == before


def test_the_readme_and_the_tutorial_have_the_same_config_of_ten_lines():
    (own,) = (block for block in blocks(README) if block.language == "yaml")
    renamed = own.text.replace("[data]", "[texts]").replace("mine", "reviews")
    assert renamed in [block.text for block in blocks(TUTORIAL)]
    assert len(own.text.splitlines()) <= 1 + 10  # below the name of the file
    config = yaml.safe_load(own.text)
    assert config["grid"] == {"datasets": ["mine"], "frameworks": ["transformers"], "seeds": [0, 1, 2]}
