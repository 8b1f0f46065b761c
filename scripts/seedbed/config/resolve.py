"""The configuration: validation with errors that help, defaults, and the expansion of recipes."""

import copy
import itertools
import math
import os
import re
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from seedbed.core import spelling
from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json
from seedbed.core.methods import METHODS, SETTINGS
from seedbed.core.paths import NAME_BYTES
from seedbed.core.printable import one_line
from seedbed.core.tasks import DEFAULT, NO_PREDICTION, TASKS, Task, task_of
from seedbed.core.words import framework_name, join
from seedbed.sources.locations import ROOT, local_path
from seedbed.sources.table import read_source_table

SCHEMA_PATH = ROOT / "schemas" / "config.schema.json"
SOURCE_TABLE = ROOT / "resources" / "sources.csv"
# what stands in tables where a run made no prediction
RESERVED_NAMES = frozenset({"", NO_PREDICTION})
REPLICATES_IN_A_TAIL = 10  # beyond each bound of an interval, at least
RECIPE_BYTES = 200  # of an expanded recipe's name, which is a part of the names of logs
PLACEHOLDERS = ("question", "context")  # of a template of prompts
FUSED_PRECISIONS = ("float32", "tf32", "bfloat16")  # float16 scales the loss, for each seed by another factor
# columns that by their names hold two texts to be compared
TWINS = (
    ("1", "2"), ("_a", "_b"), ("sentencea", "sentenceb"), ("texta", "textb"), ("_one", "_two"),
    ("_first", "_second"), ("_left", "_right"),
)  # fmt: skip
PAIRS = (
    {"premise", "hypothesis"}, {"question", "sentence"}, {"question", "passage"}, {"question", "context"},
    {"question", "answer"}, {"query", "passage"}, {"query", "document"}, {"claim", "evidence"},
    {"source", "target"}, {"first", "second"}, {"left", "right"},
)  # fmt: skip
CAUSAL = re.compile(r"gpt|bloom|llama|mistral|qwen|gemma|phi-|opt-", re.IGNORECASE)  # names of causal models
# names on the hub of what people ask for and Seedbed cannot read, and why
UNSUPPORTED = tuple(
    (re.compile(pattern, re.IGNORECASE), why)
    for pattern, why in (
        (r"^(facebookai/|roberta\.)?(distil)?roberta[-_.](base|large)", "it has GPT-2's byte-level BPE"),
        (r"(^|/)(distil|al|mobile|modern)?bert[-_]|distilbert", "it is a BERT"),
        (r"deberta|electra|xlnet", "its architecture is not RoBERTa's"),
        (r"(^|/)(m|flan-|by)?t5[-_]|(^|/)m?bart[-_]", "it is an encoder-decoder"),
    )
)
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
    "causal": {
        "checkpoint": "model.safetensors",
        "config": "config.json",
        "tokenizer": "tokenizer.json",
    },
}


def resolve_config(raw: dict[str, Any]) -> dict[str, Any]:
    """Check a raw configuration and return it complete: types, defaults, expanded recipes.

    `raw` is not changed. The result's `sources` holds those of resources/sources.csv, too; an entry of the
    config replaces the table's of the same name. Its `recipes` holds one entry for each resolved recipe,
    swept ones under their expanded name (`lab.learning_rate=1e-05`), each with `family` and `swept`;
    `grid.recipes` lists the expanded names. `grid.seeds` is a list, combinations written out.
    Keys that the experiment's task or a recipe's method does not use are left out, so that changing them
    changes nothing; `grid.frameworks` of the task generation is Transformers alone.

    Raises:
        SeedbedError: an unknown key, a value of the wrong type, a name that is not defined; datasets of
            several tasks in one grid; a model, a method or an adapter that does not fit the task; what
            fused seeds cannot do.
    """
    schema = read_json(SCHEMA_PATH)
    config = _coerce(copy.deepcopy(_plain(raw)), schema, schema)
    _check_finite(config)
    _check_tasks(config)
    _check_types_of_labels(config)
    _check(config, schema)
    config["sources"] = read_source_table(SOURCE_TABLE) | config.get("sources", {})
    config = _with_defaults(config, schema, schema)
    _check_names(config)
    _check_paths(config)
    _check_locations(config)
    _check_statistics(config["statistics"])
    _check_datasets(config)
    _check_models(config)
    _fit_to_task(config)
    _expand_seeds(config["grid"])
    _expand_recipes(config, schema)
    if config["fused_seeds"]:
        _check_fused(config)
    return config


def _plain(value: Any) -> Any:
    """Ordinary dicts and lists, whatever mapping type Snakemake used; keys become strings."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _deref(schema: dict[str, Any], root: dict[str, Any], value: Any = None) -> dict[str, Any]:
    if "else" in schema:  # one of two definitions: which, the value says
        import jsonschema

        holds = jsonschema.Draft202012Validator(schema["if"]).is_valid(value)
        schema = schema["then" if holds else "else"]
    reference = schema.get("$ref")
    return root["$defs"][reference.rsplit("/", 1)[1]] if reference else schema


def _child(
    schema: dict[str, Any], key: str, root: dict[str, Any], value: Any = None
) -> dict[str, Any] | None:
    """The schema of a key, `value` being what stands there; None: the schema has none."""
    properties = schema.get("properties", {})
    if key in properties:
        return _deref(properties[key], root, value)
    extra = schema.get("additionalProperties")
    return _deref(extra, root, value) if isinstance(extra, dict) else None


def _coerce(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> Any:
    """Read what arrives as text: YAML 1.1 wants a dot in `1e-5`, and `--config` reads True, not true."""
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types == ["boolean"] and value in ("true", "false"):
        return value == "true"
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
            child = _child(schema, key, root, item)
            if child is not None:
                value[key] = _coerce(item, child, root)
    return value


def _coerce_sweep(sweep: dict[str, Any], recipe: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    coerced = {}
    for key, values in sweep.items():
        child: dict[str, Any] | None = recipe
        for part in key.split("."):
            child = _child(child, part, root) if child is not None else None
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


def _check_tasks(config: dict[str, Any]) -> None:
    """Refuse an unknown task before the schema does, which would go on to miss the keys of labelled texts."""
    datasets = config.get("datasets")
    for name, dataset in datasets.items() if isinstance(datasets, dict) else ():
        task = dataset.get("task", DEFAULT) if isinstance(dataset, dict) else DEFAULT
        if task not in list(TASKS):  # a list, as what stands there need not be hashable
            raise SeedbedError(
                f"there is no task {task!r}",
                where=f"config, datasets.{name}.task",
                found=task,
                hint=f"{spelling.nearest(str(task), TASKS, cutoff=0.85)}give "
                f"{' or '.join(f'{each.name} ({each.meaning})' for each in TASKS.values())}; numbers to "
                "predict, labels of words, several labels for a text and pairs of texts are not supported",
            )


def _check_types_of_labels(config: dict[str, Any]) -> None:
    """Refuse labels that YAML has read as something else than text or whole numbers."""
    datasets = config.get("datasets")
    for name, dataset in datasets.items() if isinstance(datasets, dict) else ():
        labels = dataset.get("labels") if isinstance(dataset, dict) else None
        for label in labels if isinstance(labels, list) else ():
            if isinstance(label, bool) or not isinstance(label, (str, int)):
                raise SeedbedError(
                    f"a label is not text: {label!r}",
                    where=f"config, datasets.{name}.labels",
                    found=labels,
                    hint='put labels into quotes, as they stand in the file: labels: ["no", "yes"]; without '
                    "quotes YAML reads no as false, 1.0 as a number and 2024-01-31 as a date",
                )


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
    hint = _how_to_write(error) + hint
    return SeedbedError(
        f"configuration: {error.message}", where=f"config, {where}", found=error.instance, hint=hint
    )


def _how_to_write(error: Any) -> str:
    """How to write a value of the wrong kind, where the value shows what was meant; else nothing."""
    key = next((part for part in reversed(error.absolute_path) if isinstance(part, str)), "")
    if error.validator == "enum":
        return spelling.nearest(str(error.instance), map(str, error.validator_value), cutoff=0.75)
    if error.validator != "type":
        return ""
    if "array" in error.validator_value and isinstance(error.instance, dict):
        names = ", ".join(map(str, error.instance.values()))
        listed = ", ".join(f'"{name}"' for name in error.instance)
        labels = f", and label_names: [{names}]" if key == "labels" else ""
        return f"give a list: {key}: [{listed}]{labels}. "
    if "array" in error.validator_value and error.instance is not None:
        return f"give a list: {key}: [{error.instance}]. "
    if error.validator_value == "object":
        return f"give a block of keys: {key}: {{{', '.join(error.schema.get('properties', {}))}}}. "
    return ""


def _nearest(name: str, known: list[str], what: str) -> str:
    return f"{spelling.nearest(name, known)}valid {what}s: {', '.join(known) or 'none is defined'}"


def _with_defaults(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> Any:
    if not isinstance(value, dict):
        return value
    filled = dict(value)
    for key, child in schema.get("properties", {}).items():
        child = _deref(child, root)
        if key not in filled and "default" in child:
            filled[key] = copy.deepcopy(child["default"])
    for key, item in filled.items():
        child = _child(schema, key, root, item)
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
                hint=f"{spelling.nearest(name, config[kind], cutoff=0.7)}valid names: "
                f"{', '.join(config[kind]) or 'none is defined'}. {_how_to_define(kind, name, config)}",
            )


def _how_to_define(kind: str, name: str, config: dict[str, Any]) -> str:
    """What to add to the config for a name that is not defined, as YAML."""
    if kind == "models" and (reason := next((why for word, why in UNSUPPORTED if word.search(name)), "")):
        return f"{name} cannot be added: {reason}, which is not supported"
    short = re.sub(r"[^A-Za-z0-9_.-]", "_", name.split("/")[-1]).lstrip("_.-") or "mine"
    known = short.lower().replace("-", "_")
    known = next((source for source in (f"{known}_hf", known) if source in config["sources"]), None)
    owner = name if re.fullmatch(r"[\w.-]+/[\w.-]+", name) else f"OWNER/{short}"
    source = {"models": f"hf://{owner}"}.get(kind, f"data/{short}.zip")
    form = "causal" if CAUSAL.search(name) else "huggingface"
    if kind == "models" and known:
        model = f"{short}: {{source: {known}, format: {form}}}"
        return f"To define it, add models: {{{model}}}, and grid: {{models: [{short}]}}"
    definitions = {
        "sources": f"sources: {{{short}: {{locations: [PATH or URL]}}}}",
        "recipes": f"recipes: {{{short}: {{epochs: 3, learning_rate: 1.0e-5}}}}",
        "models": f'sources: {{{short}: {{locations: ["{source}"]}}}}, '
        f"models: {{{short}: {{source: {short}, format: {form}}}}}, and grid: {{models: [{short}]}}",
        "datasets": f"sources: {{{short}: {{locations: [{source}]}}}}, "
        f"datasets: {{{short}: {{source: {short}, format: csv, "
        "files: {train: train.csv, test: test.csv}, columns: {text: text, label: label}, "
        f'labels: ["0", "1"]}}}}, and grid: {{datasets: [{short}]}}',
    }
    return f"To define it, add {definitions[kind]}"


def _check_locations(config: dict[str, Any]) -> None:
    """Refuse locations, of the sources that the grid needs, that are neither a path nor a URL."""
    used = ((kind, name) for kind in ("datasets", "models") for name in config["grid"][kind])
    for source in dict.fromkeys(config[kind][name]["source"] for kind, name in used):
        for location in config["sources"][source]["locations"]:
            where = f"config, sources.{source}.locations"
            if one_line(location) != location:
                raise SeedbedError(
                    "a location holds a control character",
                    where=where,
                    found=repr(location),
                    hint="take it out: it is mostly a slip of copying; of a URL write %0A for a line end",
                )
            try:
                urlsplit(location)
                path = local_path(location)
            except ValueError as error:
                raise SeedbedError(
                    f"this is no location: {error}",
                    where=where,
                    found=location,
                    hint="give a URL, or a path; write [ and ] of a file:// URL as %5B and %5D",
                ) from None
            except RuntimeError:
                raise _no_such_user(where, location) from None
            if path is not None and set("{}") & set(str(path)):
                raise SeedbedError(
                    "a path of a source has a brace, which Snakemake takes for a wildcard",
                    where=where,
                    found=location,
                    hint="rename the file or the folder",
                )


def _check_paths(config: dict[str, Any]) -> None:
    """Refuse paths in the folder of a user that there is not, and those that no file system can have."""
    for key in ("results", "lock", "mirror"):
        text = config[key] or ""
        try:
            path = Path(text).expanduser()
        except RuntimeError:
            raise _no_such_user(f"config, {key}", text) from None
        if one_line(text) != text or text.strip() != text:
            raise SeedbedError(
                "a path holds a control character, or white space at an end",
                where=f"config, {key}",
                found=repr(text),
                hint="take it out: it is mostly a slip of copying",
            )
        longest = max(map(str, path.parts), key=_bytes, default="")
        if _bytes(longest) > NAME_BYTES:
            raise SeedbedError(
                "a name in this path is longer than file systems allow",
                where=f"config, {key}",
                found=f"{_bytes(longest)} bytes: {longest[:40]}...",
                hint=f"give a folder whose name has {NAME_BYTES} bytes at most",
            )


def _bytes(name: str) -> int:
    return len(os.fsencode(name))


def _no_such_user(where: str, path: str) -> SeedbedError:
    return SeedbedError(
        "this is in the folder of a user that there is not",
        where=where,
        found=path,
        hint="write the folder out; ~ alone is your own, and ./~ a folder of that name",
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
        if TASKS[dataset["task"]].writes_answers:
            _check_prompts(name, dataset)
        else:
            _check_labels(name, dataset)
        _check_delimiter(name, dataset)
        _drop_unused(dataset)


def _check_labels(name: str, dataset: dict[str, Any]) -> None:
    # as those of the files, which are stripped, too
    dataset["labels"] = [str(label).strip() for label in dataset["labels"]]
    if len(set(map(spelling.normal, dataset["labels"]))) != len(dataset["labels"]):
        raise SeedbedError(
            "a label stands twice",
            where=f"config, datasets.{name}.labels",
            found=dataset["labels"],
            hint="labels are compared as text, without spaces around them: 1 and '1' are the same",
        )
    names = dataset["label_names"] or dataset["labels"]
    for key, texts in (("labels", dataset["labels"]), ("label_names", names)):
        for text in texts:
            if one_line(text) != text:
                raise SeedbedError(
                    "a label holds a control character, such as a line end",
                    where=f"config, datasets.{name}.{key}",
                    found=repr(text),
                    hint="take it out: tables and figures show labels in one line",
                )
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
    _refuse_pairs(name, dataset["columns"]["text"])


def _refuse_pairs(name: str, columns: Sequence[str]) -> None:
    """Refuse two texts that by their names are compared: joined by a space, nobody could tell them apart."""
    words = [column.lower() for column in columns]
    for one, other in itertools.combinations(words, 2):
        twins = any(
            one.endswith(a) and other.endswith(b) and one.removesuffix(a) == other.removesuffix(b)
            for a, b in TWINS
        )
        if twins or {one, other} in PAIRS:
            raise SeedbedError(
                f"the texts of {name!r} seem to be pairs. Seedbed takes single texts: no pairs yet",
                where=f"config, datasets.{name}.columns.text",
                found=", ".join(columns),
                hint="columns are joined with a space, so that the model could not see where the second text "
                "begins. If they make one text all the same, give them other names in the file",
            )


def _check_delimiter(name: str, dataset: dict[str, Any]) -> None:
    """Keep the delimiter only where it says something, so that datasets without it stay as they are."""
    delimiter = dataset.pop("delimiter")
    if delimiter is None or (dataset["format"] == "csv" and delimiter == ","):
        return
    if dataset["format"] != "csv":
        raise SeedbedError(
            f"the format {dataset['format']} has no delimiter to choose",
            where=f"config, datasets.{name}.delimiter",
            found=repr(delimiter),
            hint="leave it out, or set format: csv",
        )
    dataset["delimiter"] = delimiter


def _check_class_names(names: list[str], where: str) -> None:
    for reserved in RESERVED_NAMES & set(names):
        raise SeedbedError(
            "a class may not be called so: tables mark a missing prediction with it",
            where=f"config, {where}",
            found=repr(reserved),
            hint="give the classes other names under label_names",
        )


def _check_prompts(name: str, dataset: dict[str, Any]) -> None:
    """Check that the template holds what the columns give, and nothing else."""
    where, template = f"config, datasets.{name}.template", dataset["template"]
    has_context = dataset["columns"]["context"] is not None
    expected = PLACEHOLDERS if has_context else PLACEHOLDERS[:1]
    try:
        parts = [part for part in string.Formatter().parse(template) if part[1] is not None]
    except ValueError as error:
        raise SeedbedError(
            f"the template cannot be read: {error}",
            where=where,
            found=repr(template),
            hint="write {{ and }} where the prompt has a brace of its own",
        ) from None
    named = [field for _, field, _, _ in parts]
    plain = all(not form and not conversion for _, _, form, conversion in parts)
    if set(named) != set(expected) or not plain:
        raise SeedbedError(
            f"the template has to name {' and '.join(f'{{{key}}}' for key in expected)}, and nothing else",
            where=where,
            found=repr(template),
            hint=_about_context(has_context, named),
        )
    if dataset["overlong"] == "cut" and not has_context:
        raise SeedbedError(
            "there is nothing to cut: only contexts are shortened, and this dataset has none",
            where=f"config, datasets.{name}.overlong",
            found="cut",
            hint="give error or drop, or name the column of the context under columns.context",
        )


def _about_context(has_context: bool, named: list[str]) -> str:
    if has_context and "context" not in named:
        return "columns.context is set: put {context} into the template, or take the column out"
    if not has_context and "context" in named:
        return "columns.context is null: name the column of the context, or take {context} out"
    return "write the placeholders as they stand here, without a format; {{ and }} are braces"


def _drop_unused(dataset: dict[str, Any]) -> None:
    """Take out what a dataset does not use, so that changing it makes nothing anew."""
    for split in ("validation", "test"):
        if dataset["files"][split] is not None:
            dataset.pop(f"{split}_split", None)
    if dataset["format"] != "webis_cls":
        dataset.pop("neutral_ratings", None)


def _check_models(config: dict[str, Any]) -> None:
    """Fill in the paths that a model's format has, and refuse those that it has not."""
    for name, model in config["models"].items():
        defaults = MODEL_FILES[model["format"]]
        folder = Path(model["checkpoint"] or "").parent
        for key in ("checkpoint", "dictionary", "config", "tokenizer", "sentencepiece"):
            if key not in defaults and model[key] is not None:
                raise SeedbedError(
                    f"a model in the format {model['format']} has no {key}",
                    where=f"config, models.{name}.{key}",
                    found=model[key],
                    hint=f"leave it out, or give another format; this one has {', '.join(defaults)}",
                )
            if key in defaults and model[key] is None:
                model[key] = (folder / defaults[key]).as_posix()
        # the other task's; definitions of models that are there already stay as they were
        for key in ("dictionary", "sentencepiece") if model["format"] == "causal" else ("tokenizer",):
            del model[key]


def _fit_to_task(config: dict[str, Any]) -> None:
    """Hold the grid to one task, and leave out what that task does not use."""
    grid = config["grid"]
    task = task_of(config)
    for name in grid["datasets"]:
        if config["datasets"][name]["task"] != task.name:
            raise SeedbedError(
                "the grid holds datasets of two tasks",
                where="config, grid.datasets",
                found=", ".join(f"{each} ({config['datasets'][each]['task']})" for each in grid["datasets"]),
                hint="make two experiments: each task has its own metrics, tables and figures",
            )
    for name in grid["models"]:
        if config["models"][name]["format"] not in task.formats:
            raise SeedbedError(
                f"the model {name!r} is not one for the task {task.name}",
                where=f"config, grid.models; models.{name}.format",
                found=config["models"][name]["format"],
                hint=f"{task.name} takes models in the format {' or '.join(task.formats)}",
            )
    frameworks = [name for name in grid["frameworks"] if name in task.frameworks]
    if not frameworks:
        raise SeedbedError(
            f"{task.name} runs with {join([framework_name(name) for name in task.frameworks])} only",
            where="config, grid.frameworks",
            found=grid["frameworks"],
            hint=f"add {' or '.join(task.frameworks)}, or leave the key out",
        )
    grid["frameworks"] = frameworks
    if not task.writes_answers:
        del config["evaluation"]["max_new_tokens"]


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
        _drop_unused_settings(recipe, task_of(config))
        _check_sweep(family, sweep, recipe)
        for values in itertools.product(*sweep.values()):
            swept = dict(zip(sweep, values, strict=True))
            name = ".".join([family, *(f"{key}={_format(value)}" for key, value in swept.items())])
            _check_expanded_name(name, family)
            if name in expanded:
                raise SeedbedError(
                    f"two recipes are called {name!r}",
                    where=f"config, recipes.{family}.sweep",
                    found=sweep,
                    hint="leave out the value that stands there twice, or rename the recipe",
                )
            expanded[name] = {**_with_values(recipe, swept), "family": family, "swept": swept}
            members.setdefault(family, []).append(name)
            _check_recipe(name, expanded[name], config, schema)
            if family in config["grid"]["recipes"]:
                _check_values(name, expanded[name], config)
                _check_method(name, expanded[name], config)
    config["recipes"] = expanded
    config["grid"]["recipes"] = [name for family in config["grid"]["recipes"] for name in members[family]]


def _check_expanded_name(name: str, family: str) -> None:
    """Refuse a name that cannot be a folder's: swept values that are texts become a part of it."""
    bad = "/" in name or one_line(name) != name or name.strip() != name
    if bad or _bytes(name) > RECIPE_BYTES:
        raise SeedbedError(
            "the values of a sweep make a recipe's name that cannot be a folder's",
            where=f"config, recipes.{family}.sweep",
            found=repr(name) if bad else f"{_bytes(name)} bytes: {name[:80]}...",
            hint="sweep values without slashes and control characters, in names of at most "
            f"{RECIPE_BYTES} bytes, or write a recipe for each value",
        )


def _drop_unused_settings(recipe: dict[str, Any], task: Task) -> None:
    """Take out what a recipe's method or the task does not use, so that changing it reruns nothing."""
    method = METHODS[recipe["method"]]
    of_tasks = {key for each in TASKS.values() for key in each.settings}
    used = {key: key in method.settings for key in SETTINGS} | {key: key in task.settings for key in of_tasks}
    for key in (key for key, is_used in used.items() if not is_used):
        del recipe[key]


def _with_values(recipe: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the recipe with some values in place of its own; a dot leads into a block."""
    changed = copy.deepcopy(recipe)
    for key, value in values.items():
        *blocks, last = key.split(".")
        place = changed
        for block in blocks:
            place = place[block]
        place[last] = value
    return changed


def _check_sweep(family: str, sweep: dict[str, list[Any]], recipe: dict[str, Any]) -> None:
    nested = [f"{key}.{part}" for key, block in recipe.items() if isinstance(block, dict) for part in block]
    whole = [key for key, block in recipe.items() if isinstance(block, dict)]
    known = [key for key in (*recipe, *nested) if key != "method" and key not in whole]
    for key, values in sweep.items():
        if key not in known:
            raise SeedbedError(
                f"cannot sweep {key!r} with the method {recipe['method']}",
                where=f"config, recipes.{family}.sweep.{key}",
                found=values,
                hint=_nearest(key, known, "key"),
            )
    if sweep and not METHODS[recipe["method"]].trains:
        raise SeedbedError(
            f"nothing is trained with the method {recipe['method']}, so a sweep would repeat the same runs",
            where=f"config, recipes.{family}.sweep",
            found=sweep,
            hint="leave the sweep out",
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


def _check_values(name: str, recipe: dict[str, Any], config: dict[str, Any]) -> None:
    """Refuse values of a recipe of the grid that the schema allows, but not together."""
    in_fairseq = "fairseq" in {*METHODS[recipe["method"]].frameworks} & {*config["grid"]["frameworks"]}
    if recipe["precision"] == "bfloat16" and in_fairseq:
        raise SeedbedError(
            "fairseq 0.12 has no bfloat16 on a GPU, so the frameworks would differ",
            where=f"config, recipes.{recipe['family']}.precision",
            found="bfloat16",
            hint="use float16 or float32, or leave fairseq out of grid.frameworks",
        )
    if recipe["schedule"] != "constant" and recipe["end_learning_rate"] > recipe["learning_rate"]:
        raise SeedbedError(
            f"recipe {name!r} ends at a higher learning rate than its peak",
            where=f"config, recipes.{recipe['family']}.end_learning_rate",
            found=recipe["end_learning_rate"],
            hint=f"give at most learning_rate ({recipe['learning_rate']:g})",
        )


def _check_method(name: str, recipe: dict[str, Any], config: dict[str, Any]) -> None:
    """Refuse a recipe of the grid whose method or limits are not ones of the task."""
    task, method = task_of(config), METHODS[recipe["method"]]
    where = f"config, recipes.{recipe['family']}"
    if method.name not in task.methods:
        others = [each.name for each in TASKS.values() if method.name in each.methods]
        raise SeedbedError(
            f"recipe {name!r}: the method {method.name} is for {join(others)} only",
            where=f"{where}.method",
            found=method.name,
            hint=f"use {' or '.join(task.methods)} for {task.name}",
        )
    if task.writes_answers and recipe["max_positions"] is not None:
        others = [each.name for each in TASKS.values() if not each.writes_answers]
        raise SeedbedError(
            f"recipe {name!r}: max_positions is for {join(others)} only",
            where=f"{where}.max_positions",
            found=recipe["max_positions"],
            hint="set max_tokens and overlong of the dataset instead",
        )
    if not {*method.frameworks} & {*config["grid"]["frameworks"]}:
        raise SeedbedError(
            f"recipe {name!r}: {method.name} needs Transformers, as fairseq trains all weights",
            where=f"config, grid.frameworks; recipes.{recipe['family']}.method",
            found=config["grid"]["frameworks"],
            hint=f"add {' or '.join(method.frameworks)} to grid.frameworks",
        )
    if method.has_adapter and recipe["lora"]["task_type"] != task.adapter_type:
        raise SeedbedError(
            f"recipe {name!r}: the adapter's task_type does not fit the task {task.name}",
            where=f"{where}.lora.task_type",
            found=recipe["lora"]["task_type"],
            hint=f"give {task.adapter_type}",
        )


def _check_fused(config: dict[str, Any]) -> None:
    """Refuse what seeds of a cell cannot do that are trained as one batched model."""
    if not task_of(config).fuses_seeds:
        others = [each.name for each in TASKS.values() if each.fuses_seeds]
        raise SeedbedError(
            f"fused seeds are for {join(others)} only",
            where="config, fused_seeds; grid.datasets",
            found=f"the task {task_of(config).name}",
            hint="set fused_seeds to false",
        )
    if config["batches"]["at_once"] != 1:
        raise SeedbedError(
            "fused seeds are trained in one process, so that there is nothing to do at once",
            where="config, batches.at_once; fused_seeds",
            found=config["batches"]["at_once"],
            hint="set batches.at_once to 1; batches.runs limits how many seeds train together",
        )
    for name in config["grid"]["recipes"]:
        recipe = config["recipes"][name]
        for key, possible in (("method", ("full",)), ("precision", FUSED_PRECISIONS)):
            if recipe[key] not in possible:
                raise SeedbedError(
                    f"recipe {name!r}: seeds cannot be fused with the {key} {recipe[key]}",
                    where=f"config, recipes.{recipe['family']}.{key}; fused_seeds",
                    found=recipe[key],
                    hint=f"give {' or '.join(possible)}, or set fused_seeds to false",
                )


def _format(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):  # a part of a path, which neither commas nor quotes should be
        return "+".join(map(_format, value)) or "nothing"
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
