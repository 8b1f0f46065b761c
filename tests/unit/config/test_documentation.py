"""The schema and the page of the config are those of the settings, and config files pass the schema."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from builders import load_config

from seedbed.config import documentation, settings
from seedbed.config.validation import as_written

ROOT = Path(__file__).parents[3]
SCHEMA = documentation.schema()
EXPERIMENTS = sorted((ROOT / "experiments").glob("*.yaml"))
# their blocks in config.yaml are an example
EXAMPLES = ("experiment", "grid", "datasets", "models", "recipes")


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    return load_config([ROOT / "config.yaml"])


def blocks() -> list[type[settings.Block]]:
    """All blocks of keys."""
    return settings.Block.__subclasses__()


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every mapping inside a schema."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(item)


def test_the_files_are_up_to_date():
    for path, text in (
        (documentation.SCHEMA, documentation.schema_text()),
        (documentation.PAGE, documentation.page()),
    ):
        assert path.read_text(encoding="utf-8") == text, "run `make reference`"


def test_the_page_has_every_key_and_no_broken_link():
    page = documentation.page()
    for block in blocks():
        rows = page.partition(f'<a id="{block.__name__.lower()}"></a>')[2].partition("<a id=")[0]
        assert re.findall(r"^\| `(\w+)` \|", rows, flags=re.MULTILINE) == list(block.model_fields)
    anchors = re.findall(r'<a id="(\w+)">', page)
    assert sorted(anchors) == sorted(block.__name__.lower() for block in blocks())
    assert set(re.findall(r"\(#(\w+)\)", page)) <= set(anchors)
    cells = {line.replace("\\|", "").count("|") for line in page.splitlines() if line.startswith("|")}
    assert cells == {6}


def test_every_key_and_every_block_has_a_description():
    for block in blocks():
        assert block.__doc__
        for name, field in block.model_fields.items():
            described = field.description or getattr(field.annotation, "__doc__", "")
            assert described, f"{block.__name__}.{name}"


@pytest.mark.parametrize("block", blocks(), ids=lambda block: block.__name__)
def test_defaults_are_values_that_users_may_give(block):
    fields = ((name, field) for name, field in block.model_fields.items() if not field.is_required())
    own = SCHEMA if block is settings.Settings else SCHEMA["$defs"][block.__name__]
    validator = jsonschema.Draft202012Validator({**own, "required": [], "$defs": SCHEMA["$defs"]})
    defaults = {name: as_written(field.default) for name, field in fields}
    assert [error.message for error in validator.iter_errors(defaults)] == []


# --- the schema, which editors read ---


def test_the_schema_is_a_valid_schema_without_words_of_pydantic():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert not [node for node in nodes(SCHEMA) if {"ge", "le", "gt", "lt"} & node.keys()]


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_config_files_pass_the_schema(path):
    validator = jsonschema.Draft202012Validator(SCHEMA)
    assert list(validator.iter_errors(load_config([ROOT / "config.yaml", path]))) == []


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("grid", "seeds"), {"init": [0]}),
        (("grid", "seeds"), [0, 0]),
        (("grid", "frameworks"), ["fairseq", "fairseq"]),
        (("datasets", "reviews_fr", "task"), "token_classification"),
        (("datasets", "reviews_fr", "labels"), ["a"]),
        (("datasets", "a b"), {}),
        (("recipes", "demo", "epochs"), 0),
        (("recipes", "demo", "epoch"), 1),
        (("recipes", "demo", "dropout"), 1),
        (("recipes", "demo", "max_positions"), 2),
        (("statistics", "replicates"), 1_000_001),
        (("gpus", "devices"), []),
    ],
)
def test_the_schema_refuses_what_the_workflow_refuses(config, place, value):
    changed = load_config([ROOT / "config.yaml"])
    block = changed
    for key in place[:-1]:
        block = block[key]
    block[place[-1]] = value
    validator = jsonschema.Draft202012Validator(SCHEMA)
    assert validator.is_valid(config)
    assert not validator.is_valid(changed)


def test_every_pattern_of_the_schema_ends_where_the_text_does():
    found = {node["pattern"] for node in nodes(SCHEMA) if isinstance(node.get("pattern"), str)}
    assert len(found) > 3
    for pattern in found:
        validator = jsonschema.Draft202012Validator({"pattern": pattern})
        texts = ["a", "a" * 64]
        assert any(validator.is_valid(text) for text in texts)
        assert not any(validator.is_valid(text + "\n") for text in texts)


# --- config.yaml ---


def test_config_yaml_shows_every_key(config):
    assert set(config) == set(settings.Settings.model_fields)
    assert set(config["recipes"]["demo"]) == set(settings.Recipe.model_fields)


def test_config_yaml_has_the_defaults(config):
    defaults = {
        name: as_written(field.default)
        for name, field in settings.Settings.model_fields.items()
        if name not in EXAMPLES
    }
    assert {name: config[name] for name in defaults} == defaults


# --- what a change of a key makes again ---


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("results", "everything, in another folder"),
        ("seeds", "the new runs, tables, report"),
        ("drop_leaks", "the data, their runs, tables, report"),
        ("label_names", "tables, report"),
        ("learning_rate", "the runs, tables, report"),
        ("max_new_tokens", "the runs, tables, report"),
        ("replicates", "tables, report"),
        ("smoothing", "figures, report"),
        ("runs_per_gpu", "the report"),
        ("parity_reviews", "the checks"),
    ],
)
def test_the_page_says_what_a_change_makes_again(key, told):
    rows = documentation.PAGE.read_text(encoding="utf-8").splitlines()
    assert {row.rsplit(" | ", 1)[1] for row in rows if row.startswith(f"| `{key}` |")} == {f"{told} |"}


def test_effects_look_at_every_param_of_the_rules():
    """A rule with a param that is new may change what a key makes again."""
    rules = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "rules").glob("*.smk")))
    params = re.findall(r"^    params:\n((?:^ {8}.*\n)+)", rules, re.MULTILINE)
    looked_at = (ROOT / "scripts/seedbed/config/effects.py").read_text(encoding="utf-8")
    for name in {name for block in params for name in re.findall(r"PLAN\.(\w+)", block)}:
        own = {"config": "canonical(plan.config)", "model_stamp": "source_stamp"}
        own |= {"dataset_stamp": "source_stamp", "fairseq_batch_runs": "fairseq_run"}
        own |= {"transformers_batch_runs": "transformers_run", "task": "aggregation()"}
        assert f"plan.{name}" in looked_at or own.get(name, f"plan.{name}") in looked_at, name
