"""Write schemas/config.schema.json and docs/reference/config.md from `settings`.

    make reference

Editors check YAML files against the schema; the page lists every key for people.
"""

import copy
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from seedbed.config import effects
from seedbed.config.settings import Settings
from seedbed.config.validation import as_written
from seedbed.sources.locations import ROOT

SCHEMA = ROOT / "schemas" / "config.schema.json"
PAGE = ROOT / "docs" / "reference" / "config.md"
INTRODUCTION = """\
# The configuration

Every key of config.yaml. `make reference` writes this page from scripts/seedbed/config/settings.py.

Settings are read from config.yaml, then from the files of `--configfile`, then from `--config`. Later ones
add to blocks and replace whole lists. Missing keys have their defaults; unknown keys are errors. Editors that
know JSON Schema check a file that begins with

    # yaml-language-server: $schema=PATH/TO/schemas/config.schema.json

The last column says what a change of the key makes again. It was found by changing each key and comparing the
parameters of all rules. Finished runs are adopted, if their settings, inputs, packages and code are the same.
"""
TITLES = ("key", "type, unit", "default", "meaning", "a change makes again")
HEADER = f"| {' | '.join(TITLES)} |\n{'| --- ' * len(TITLES)}|\n"
OPTIONS = ("csv", "json", "excel")  # formats that use every option of reading between them
ONE_FILE = {"files": {"validation": None, "test": None}, "sample": {"train": 0.5}}
SEVERAL_LABELS = {
    "grid": {"datasets": ["topics"]},
    "datasets": {
        "topics": {
            "task": "multilabel",
            "source": "reviews_fr",
            "files": {"train": "train.csv", "test": "test.csv"},
            "labels": ["love", "crime"],
            "label_separator": ";",
        }
    },
}
# experiments that use every key between them: the files over config.yaml, and what else they set
EXPERIMENTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("config.yaml", {}),
    ("experiments/demo_lora.yaml", {}),
    ("experiments/cls_all.yaml", {}),
    ("experiments/demo_sizes.yaml", {}),
    ("config.yaml", SEVERAL_LABELS),
    ("config.yaml", {"recipes": {"demo": {"method": "last_layers"}}}),
    ("experiments/demo_sobol.yaml", {}),
    *(("config.yaml", {"datasets": {"reviews_fr": {"format": form, **ONE_FILE}}}) for form in OPTIONS),
    *(("experiments/demo_lora.yaml", {"datasets": {"questions_fr": {"format": form}}}) for form in OPTIONS),
    (
        "experiments/demo_lora.yaml",
        {
            "datasets": {"questions_fr": {"files": {"validation": None, "test": None}}},
            "sources": {"questions_fr": {"locations": ["resources/questions_fr"]}},
        },
    ),
)
LIMITS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}
NAMES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}


class _Schema(GenerateJsonSchema):
    """JSON Schema for editors."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Keys are their own titles."""
        return False

    def encode_default(self, dft: Any) -> Any:
        """A default as written in the config: 32 stays 32, also for a number that may have a fraction."""
        return as_written(dft)

    def dict_schema(self, schema: Any) -> JsonSchemaValue:
        """Refuse names that do not match; pydantic's patternProperties would accept them."""
        made = super().dict_schema(schema)
        for pattern, values in made.pop("patternProperties", {}).items():
            made |= {"additionalProperties": values}
            made["propertyNames"] = {"pattern": pattern, **made.get("propertyNames", {})}
        return made

    def generate(self, schema: Any, mode: Any = "validation") -> JsonSchemaValue:
        """The whole schema, with its version of JSON Schema."""
        return {"$schema": self.schema_dialect, **super().generate(schema, mode)}


def schema() -> dict[str, Any]:
    """The JSON Schema of a config."""
    return Settings.model_json_schema(schema_generator=_Schema)


def schema_text() -> str:
    """schemas/config.schema.json."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def page() -> str:
    """docs/reference/config.md."""
    whole = schema()
    blocks = whole["$defs"]
    found = effects.effects([_experiment(*each) for each in EXPERIMENTS], _choices(whole))
    sections: dict[str, list[str]] = {}
    for name, place in _blocks(whole, blocks, ""):
        places = sections.setdefault(name, [])
        places += [place] if place not in places else []
    parts = [INTRODUCTION, _section("Top level", "settings", whole, blocks, [""], found)]
    for name, places in sections.items():
        title = ", ".join(f"`{place}`" for place in places)
        within = [f"{place}." for place in places]
        parts.append(_section(title, name.lower(), blocks[name], blocks, within, found))
    return "\n".join(parts)


def _experiment(path: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """A config in a folder without results, in which every name of the grid has another beside it."""
    raw: dict[str, Any] = {}
    for layer in (_read("config.yaml"), _read(path), changes, {"results": "results/none"}):
        _merge(raw, layer)
    for kind in ("datasets", "models", "recipes"):
        raw[kind]["other"] = copy.deepcopy(raw[kind][raw["grid"][kind][0]])
    return raw


def _read(path: str) -> dict[str, Any]:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def _merge(base: dict[str, Any], overlay: Mapping[str, Any]) -> None:
    """As Snakemake merges config files."""
    for key, value in overlay.items():
        if isinstance(value, Mapping) and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = value


def _choices(whole: dict[str, Any]) -> dict[str, list[Any]]:
    """The values of keys that take only some, by key."""
    found: dict[str, list[Any]] = {}
    for block in (whole, *whole["$defs"].values()):
        for key, value in block["properties"].items():
            found.setdefault(key, []).extend(_constants(value))
    return found


def _constants(value: dict[str, Any]) -> Iterator[Any]:
    yield from value.get("enum", [])
    yield from [value["const"]] if "const" in value else []
    for each in (*_alternatives(value), *([value["items"]] if value.get("items") else [])):
        yield from _constants(each)


def _blocks(block: dict[str, Any], blocks: dict[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    """The name and place of each block inside a block, such as `datasets.NAME.files`."""
    for key, value in block["properties"].items():
        for name, place in _references(value, f"{prefix}{key}"):
            yield name, place
            yield from _blocks(blocks[name], blocks, f"{place}.")


def _references(value: dict[str, Any], place: str) -> Iterator[tuple[str, str]]:
    if "$ref" in value:
        yield _name(value), place
    for each in _alternatives(value):
        yield from _references(each, place)
    if isinstance(value.get("additionalProperties"), dict):
        yield from _references(value["additionalProperties"], f"{place}.NAME")
    if "items" in value:
        yield from _references(value["items"], place)


def _alternatives(value: dict[str, Any]) -> list[dict[str, Any]]:
    return [*value.get("anyOf", []), *value.get("oneOf", [])]


def _section(
    title: str,
    anchor: str,
    block: dict[str, Any],
    blocks: dict[str, Any],
    places: list[str],
    found: Mapping[str, str],
) -> str:
    required = block.get("required", [])
    rows = (
        _row(key, value, key in required, blocks, _effect([f"{place}{key}" for place in places], found))
        for key, value in block["properties"].items()
    )
    text = _in_cell(block["description"])
    return f'<a id="{anchor}"></a>\n\n## {title}\n\n{text}\n\n{HEADER}{"".join(rows)}'


def _effect(keys: list[str], found: Mapping[str, str]) -> str:
    """What a change makes again, of the key or of the block that it is a part of."""
    for key in keys:
        while key:
            if key in found:
                return found[key]
            key = key.rpartition(".")[0]
    return "depends on keys that change with it"


def _row(key: str, value: dict[str, Any], required: bool, blocks: dict[str, Any], effect: str) -> str:
    meaning = value.get("description", "")
    default = "required" if required else _code(value["default"])
    if "$ref" in value:
        meaning = meaning or blocks[_name(value)]["description"]
        default = "required" if required else ""  # the block's own table has the defaults of its keys
    effect = (
        "" if any("$ref" in each for each in (value, *_parts(value))) else effect
    )  # its keys have their own
    kind = ", ".join(filter(None, (_kind(value), value.get("unit"))))
    cells = (f"`{key}`", kind, default, meaning, effect)
    return f"| {' | '.join(map(_in_cell, cells))} |\n"


def _parts(value: dict[str, Any]) -> list[dict[str, Any]]:
    """The schemas of the blocks that a mapping has by names."""
    values = value.get("additionalProperties")
    return [values, *_alternatives(values)] if isinstance(values, dict) else []


def _name(reference: dict[str, Any]) -> str:
    return reference["$ref"].rsplit("/", 1)[1]


def _kind(value: dict[str, Any]) -> str:
    """The type of a value in words."""
    if "$ref" in value:
        return f"[block](#{_name(value).lower()})"
    if alternatives := _alternatives(value):
        return " or ".join(map(_kind, alternatives))
    if "const" in value:
        return _code(value["const"])
    if "enum" in value:
        return " or ".join(map(_code, value["enum"]))
    if value.get("type") == "null":
        return "null"
    if value.get("type") == "array":
        items = _kind(value["items"]) if value.get("items") else "values"
        items = f"({items})" if " or " in items else items
        return f"list of {items}{', each once' * value.get('uniqueItems', False)}"
    if value.get("type") == "object":
        items = _kind(value["additionalProperties"])
        return f"NAME: {f'({items})' if ' or ' in items else items}"
    limits = [f"{words} {value[limit]:.10g}" for limit, words in LIMITS.items() if limit in value]
    return f"{NAMES[value['type']]} ({', '.join(limits)})" if limits else NAMES[value["type"]]


def _code(value: Any) -> str:
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _in_cell(text: str) -> str:
    """Text on one line of Markdown; text in backticks is unchanged."""
    parts = re.split(r"(`[^`]*`|<a .*?>)", " ".join(text.split()))
    escaped = [re.sub(r"([<*|])", r"\\\1", part) if at % 2 == 0 else part for at, part in enumerate(parts)]
    return "".join(escaped)


def main() -> None:
    """Write both files."""
    for path, text in ((SCHEMA, schema_text()), (PAGE, page())):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
