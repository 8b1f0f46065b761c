"""The configuration: validation with errors that help, defaults, and the expansion of recipes."""

import copy
import difflib
import itertools
import math
from pathlib import Path
from typing import Any

from seedbed.errors import SeedbedError
from seedbed.files import read_json
from seedbed.source_table import read_source_table
from seedbed.tasks import NO_PREDICTION

ROOT = Path(__file__).parents[2]
SCHEMA_PATH = ROOT / "schemas" / "config.schema.json"
SOURCE_TABLE = ROOT / "resources" / "sources.csv"
# what stands in tables where a run made no prediction
RESERVED_NAMES = frozenset({"", NO_PREDICTION})
REPLICATES_IN_A_TAIL = 10  # beyond each bound of an interval, at least
# paths of a model's files, beside its weights, by format; the first is the weights' own
MODEL_FILES = {
    "fairseq": {
        "checkpoint": "model.pt",
        "dictionary": "dict.txt",
        "sentencepiece": "sentencepiece.bpe.model",
    },
    "huggingface": {
        "checkpoint": "model.safetensors",
        "config": "config.json",
        "sentencepiece": "sentencepiece.bpe.model",
    },
}


def resolve_config(raw: dict[str, Any]) -> dict[str, Any]:
    """Check a raw configuration and return it complete: types, defaults, expanded recipes.

    `raw` is not changed. The result's `sources` holds those of resources/sources.csv, too; an entry of the
    config replaces the table's of the same name. Its `recipes` holds one entry for each resolved recipe,
    swept ones under their expanded name (`lab.learning_rate=1e-05`), each with `family` and `swept`;
    `grid.recipes` lists the expanded names. `grid.seeds` is a list, combinations written out.

    Raises:
        SeedbedError: an unknown key, a value of the wrong type, a name that is not defined.
    """
    schema = read_json(SCHEMA_PATH)
    config = _coerce(copy.deepcopy(_plain(raw)), schema, schema)
    _check_finite(config)
    _check(config, schema)
    config["sources"] = read_source_table(SOURCE_TABLE) | config.get("sources", {})
    config = _with_defaults(config, schema, schema)
    _check_names(config)
    _check_statistics(config["statistics"])
    _check_datasets(config)
    _check_models(config)
    _expand_seeds(config["grid"])
    _expand_recipes(config, schema)
    return config


def _plain(value: Any) -> Any:
    """Ordinary dicts and lists, whatever mapping type Snakemake used; keys become strings."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _deref(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    return root["$defs"][reference.rsplit("/", 1)[1]] if reference else schema


def _child(schema: dict[str, Any], key: str, root: dict[str, Any]) -> dict[str, Any] | None:
    properties = schema.get("properties", {})
    if key in properties:
        return _deref(properties[key], root)
    extra = schema.get("additionalProperties")
    return _deref(extra, root) if isinstance(extra, dict) else None


def _coerce(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> Any:
    """Read numbers that YAML took for text: YAML 1.1 wants a dot, so `1e-5` arrives as a string."""
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if isinstance(value, str) and "string" not in types and {"number", "integer"} & set(types):
        value = _as_number(value)
    if isinstance(value, float) and value.is_integer() and "integer" in types and "number" not in types:
        return int(value)  # 1e4, which a schema takes for an integer and range() does not
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [_coerce(item, _deref(schema["items"], root), root) for item in value]
    if isinstance(value, dict):
        if "sweep" in schema.get("properties", {}) and isinstance(value.get("sweep"), dict):
            value["sweep"] = _coerce_sweep(value["sweep"], schema, root)
        for key, item in value.items():
            child = _child(schema, key, root)
            if child is not None:
                value[key] = _coerce(item, child, root)
    return value


def _coerce_sweep(sweep: dict[str, Any], recipe: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    coerced = {}
    for key, values in sweep.items():
        child = _child(recipe, key, root)
        listed = isinstance(values, list) and child is not None
        coerced[key] = [_coerce(value, child, root) for value in values] if listed else values
    return coerced


def _as_number(text: str) -> Any:
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text
    return int(text) if text.lstrip("+-").isdigit() else number


def _check_finite(value: Any, where: str = "") -> None:
    """Refuse NaN and infinity, which YAML has and which no limit of the schema keeps out."""
    if isinstance(value, float) and not math.isfinite(value):
        raise SeedbedError(
            "a number that is not finite", where=f"config, {where}", found=value, hint="give a finite number"
        )
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        _check_finite(item, f"{where}.{key}" if where else str(key))


def _check(config: dict[str, Any], schema: dict[str, Any]) -> None:
    error = _first_error(config, schema)
    if error is not None:
        raise _as_seedbed_error(error)


def _first_error(value: dict[str, Any], schema: dict[str, Any]) -> Any:
    # jsonschema takes a tenth of a second to import; only the workflow's start needs it
    import jsonschema

    validator = jsonschema.Draft202012Validator(schema)
    return jsonschema.exceptions.best_match(validator.iter_errors(value))


def _as_seedbed_error(error: Any) -> SeedbedError:
    where = ".".join(str(part) for part in error.absolute_path) or "top level"
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = list(error.schema.get("properties", {}))
        unknown = sorted(set(error.instance) - set(known))
        key = unknown[0]
        prefix = "" if where == "top level" else f"{where}."
        return SeedbedError(
            f"unknown configuration key {key!r}",
            where=f"config, {prefix}{key}",
            found=error.instance[key],
            hint=_nearest(key, known, "key"),
        )
    hint = error.schema.get("description", "") if isinstance(error.schema, dict) else ""
    if error.validator == "required":
        hint = "add the key; schemas/config.schema.json describes it"
    return SeedbedError(
        f"configuration: {error.message}", where=f"config, {where}", found=error.instance, hint=hint
    )


def _nearest(name: str, known: list[str], what: str) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    listed = f"valid {what}s: {', '.join(known) or 'none is defined'}"
    return f"did you mean {close[0]!r}? {listed}" if close else listed


def _with_defaults(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> Any:
    if not isinstance(value, dict):
        return value
    filled = dict(value)
    for key, child in schema.get("properties", {}).items():
        child = _deref(child, root)
        if key not in filled and "default" in child:
            filled[key] = copy.deepcopy(child["default"])
    for key, item in filled.items():
        child = _child(schema, key, root)
        if child is not None:
            filled[key] = _with_defaults(item, child, root)
    return filled


def _check_names(config: dict[str, Any]) -> None:
    references = [
        *(
            (f"grid.{kind}", kind, name)
            for kind in ("datasets", "models", "recipes")
            for name in config["grid"][kind]
        ),
        *(
            (f"datasets.{name}.source", "sources", item["source"])
            for name, item in config["datasets"].items()
        ),
        *((f"models.{name}.source", "sources", item["source"]) for name, item in config["models"].items()),
    ]
    for where, kind, name in references:
        if name not in config[kind]:
            raise SeedbedError(
                f"{name!r} is not defined under {kind}",
                where=f"config, {where}",
                found=name,
                hint=_nearest(name, list(config[kind]), "name"),
            )


def _check_statistics(statistics: dict[str, Any]) -> None:
    """Refuse so few replicates that the bounds of an interval rest on a handful of them."""
    outside = 1 - statistics["confidence"]
    needed = math.ceil(round(2 * REPLICATES_IN_A_TAIL / outside, 6))
    if statistics["replicates"] < needed:
        raise SeedbedError(
            f"too few bootstrap replicates for intervals of {statistics['confidence']:.10g}",
            where="config, statistics.replicates",
            found=statistics["replicates"],
            hint=f"give at least {needed:,}, {REPLICATES_IN_A_TAIL} beyond each bound, or a lower confidence",
        )


def _check_datasets(config: dict[str, Any]) -> None:
    for name, dataset in config["datasets"].items():
        dataset["labels"] = [str(label) for label in dataset["labels"]]
        if len(set(dataset["labels"])) != len(dataset["labels"]):
            raise SeedbedError(
                "a label stands twice",
                where=f"config, datasets.{name}.labels",
                found=dataset["labels"],
                hint="labels are compared as text: 1 and '1' are the same",
            )
        names = dataset["label_names"] or dataset["labels"]
        if len(names) != len(dataset["labels"]):
            raise SeedbedError(
                "label_names and labels differ in length",
                where=f"config, datasets.{name}.label_names",
                found=f"{len(names)} names for {len(dataset['labels'])} labels",
                hint="give one name for each label, in the same order",
            )
        _check_class_names(names, f"datasets.{name}.{'label_names' if dataset['label_names'] else 'labels'}")
        dataset["label_names"] = list(names)
        text = dataset["columns"]["text"]
        dataset["columns"]["text"] = [text] if isinstance(text, str) else text
        _drop_unused(dataset)


def _check_class_names(names: list[str], where: str) -> None:
    for reserved in RESERVED_NAMES & set(names):
        raise SeedbedError(
            "a class may not be called so: tables mark a missing prediction with it",
            where=f"config, {where}",
            found=repr(reserved),
            hint="give the classes other names under label_names",
        )


def _drop_unused(dataset: dict[str, Any]) -> None:
    """Take out what a dataset does not use, so that changing it makes nothing anew."""
    if dataset["files"]["validation"] is not None:
        del dataset["validation_split"]
    if dataset["format"] != "webis_cls":
        del dataset["neutral_ratings"]


def _check_models(config: dict[str, Any]) -> None:
    """Fill in the paths that a model's format has, and refuse those that it has not."""
    for name, model in config["models"].items():
        defaults = MODEL_FILES[model["format"]]
        folder = Path(model["checkpoint"] or "").parent
        for key in ("checkpoint", "dictionary", "config", "sentencepiece"):
            if key not in defaults and model[key] is not None:
                raise SeedbedError(
                    f"a model in the format {model['format']} has no {key}",
                    where=f"config, models.{name}.{key}",
                    found=model[key],
                    hint=f"leave it out, or give another format; this one has {', '.join(defaults)}",
                )
            if key in defaults and model[key] is None:
                model[key] = (folder / defaults[key]).as_posix()


def _expand_seeds(grid: dict[str, Any]) -> None:
    """Write the combinations of {init: [...], data: [...]} out as a list of {init: I, data: D}."""
    seeds = grid["seeds"]
    if isinstance(seeds, dict):
        pairs = itertools.product(seeds["init"], seeds["data"])
        grid["seeds"] = [{"init": init, "data": data} for init, data in pairs]


def _expand_recipes(config: dict[str, Any], schema: dict[str, Any]) -> None:
    expanded: dict[str, dict[str, Any]] = {}
    members: dict[str, list[str]] = {}
    for family, recipe in config["recipes"].items():
        sweep = recipe.pop("sweep")
        _check_sweep(family, sweep, recipe)
        for values in itertools.product(*sweep.values()):
            swept = dict(zip(sweep, values, strict=True))
            name = ".".join([family, *(f"{key}={_format(value)}" for key, value in swept.items())])
            if name in expanded:
                raise SeedbedError(
                    f"two recipes are called {name!r}",
                    where=f"config, recipes.{family}.sweep",
                    found=sweep,
                    hint="leave out the value that stands there twice, or rename the recipe",
                )
            expanded[name] = {**recipe, **swept, "family": family, "swept": swept}
            members.setdefault(family, []).append(name)
            _check_recipe(name, expanded[name], config, schema)
    config["recipes"] = expanded
    config["grid"]["recipes"] = [name for family in config["grid"]["recipes"] for name in members[family]]


def _check_sweep(family: str, sweep: dict[str, list[Any]], recipe: dict[str, Any]) -> None:
    for key, values in sweep.items():
        if key not in recipe or key == "method":
            raise SeedbedError(
                f"cannot sweep {key!r}",
                where=f"config, recipes.{family}.sweep.{key}",
                found=values,
                hint=_nearest(key, [name for name in recipe if name != "method"], "key"),
            )


def _check_recipe(name: str, recipe: dict[str, Any], config: dict[str, Any], schema: dict[str, Any]) -> None:
    body = {key: value for key, value in recipe.items() if key not in ("family", "swept")}
    error = _first_error(body, {**schema["$defs"]["recipe"], "$defs": schema["$defs"]})
    if error is not None:
        raise SeedbedError(
            f"recipe {name!r}: {error.message}",
            where=f"config, recipes.{recipe['family']}.{'.'.join(map(str, error.absolute_path))}",
            found=error.instance,
            hint=error.schema.get("description", ""),
        )
    if recipe["precision"] == "bfloat16" and "fairseq" in config["grid"]["frameworks"]:
        raise SeedbedError(
            "fairseq 0.12 has no bfloat16 on a GPU, so the frameworks would differ",
            where=f"config, recipes.{recipe['family']}.precision",
            found="bfloat16",
            hint="use float16 or float32, or leave fairseq out of grid.frameworks",
        )
    if recipe["end_learning_rate"] > recipe["learning_rate"]:
        raise SeedbedError(
            f"recipe {name!r} ends at a higher learning rate than its peak",
            where=f"config, recipes.{recipe['family']}.end_learning_rate",
            found=recipe["end_learning_rate"],
            hint=f"give at most learning_rate ({recipe['learning_rate']:g})",
        )


def _format(value: Any) -> str:
    if value is None:
        return "null"
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
