"""Names that are not defined: what was meant, and how to define it."""

from pathlib import Path

import pytest
from builders import load_config
from builders_config import demo_config, refused

from seedbed.config.resolve import resolve_config
from seedbed.core.errors import SeedbedError

ROOT = Path(__file__).parents[3]


@pytest.fixture
def raw(tmp_path):
    return demo_config(tmp_path)


def test_a_name_that_is_not_defined_names_the_nearest(raw):
    raw["grid"]["datasets"] = ["review_fr"]
    message = refused(raw)
    assert "'review_fr' is not defined under datasets" in message
    assert "did you mean 'reviews_fr'?" in message


def test_the_sweep_overlay_alone_stops_instead_of_sweeping_the_demo():
    alone = load_config([ROOT / "config.yaml", ROOT / "experiments/cls_books_lr.yaml"])
    assert "'cls_books' is not defined under datasets" in refused(alone)


def yaml_of(hint: str) -> dict:
    """What a hint says to add, read as YAML: one config."""
    import yaml

    added: dict = {}
    text = hint.partition("To define it, add ")[2].replace(", and grid: ", ", grid: ")
    for key, content in yaml.safe_load(f"{{{text}}}").items():
        added[key] = content
    return added


@pytest.mark.parametrize(
    ("kind", "name", "form"),
    [
        ("models", "xlm-roberta-base", "huggingface"),
        ("models", "someone/small-encoder", "huggingface"),
        ("models", "almanach/camembert-base", "huggingface"),  # of which the table of sources knows
        ("models", "openai-community/gpt2", "causal"),
        ("models", "roberta-base", "auto"),
        ("models", "FacebookAI/roberta-large", "auto"),
        ("models", "bert-base-uncased", "auto"),
        ("models", "microsoft/deberta-v3-base", "auto"),
        ("models", "answerdotai/ModernBERT-base", "auto"),
        ("models", "almanach/camembertv2-base", "auto"),
        ("datasets", "imdb", "csv"),
        ("datasets", "stanfordnlp/imdb", "parquet"),
        ("recipes", "short", None),
    ],
)
def test_a_name_that_is_not_defined_is_told_with_a_definition_that_works(raw, kind, name, form):
    raw["grid"][kind] = [name]
    with pytest.raises(SeedbedError, match=f"{name!r} is not defined under {kind}") as error:
        resolve_config(raw)
    added = yaml_of(error.value.hint)
    for key, content in added.items():
        raw[key] = {**(raw.get(key) or {}), **content}
    if kind == "recipes":
        assert resolve_config(raw)["recipes"][name]["epochs"] == 3
    elif form == "causal":
        assert "does not fit the task classification" in refused(raw)  # and why
    else:
        (short,) = added[kind]
        config = resolve_config(raw)
        assert config["grid"][kind] == [short]
        assert config[kind][short]["format"] == form
    if name == "almanach/camembert-base":
        assert added["models"]["camembert-base"]["source"] == "camembert_base_hf"
    elif "/" in name:
        place = {"models": "hf://", "datasets": "hf://datasets/"}[kind]
        assert added["sources"][name.split("/")[1]]["locations"] == [f"{place}{name}"]


@pytest.mark.parametrize(
    "name",
    [
        "roberta.base",
        "xlnet-base-cased",
        "t5-small",
    ],
)
def test_a_model_of_the_hub_that_cannot_be_read_is_not_offered(raw, name):
    raw["grid"]["models"] = [name]
    message = refused(raw)
    assert f"{name} cannot be added: " in message
    assert "which is not supported" in message
    assert "To define it" not in message
