"""Check and complete the definitions of datasets and models."""

import itertools
import string
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.config import label_columns, label_groups
from seedbed.config.file_formats import (
    FORMATS,
    OPTIONS,
    format_by_ending,
    formats_of,
    known_endings,
    wanted_columns,
)
from seedbed.config.yaml_files import flow
from seedbed.core import spelling
from seedbed.core.errors import SeedbedError
from seedbed.core.model_formats import MODEL_FORMATS
from seedbed.core.printable import one_line
from seedbed.core.splits import SPLITS
from seedbed.core.tasks import (
    ANSWERS,
    CLASSES,
    LABEL_SETS,
    NO_PREDICTION,
    TASKS,
    VALUES,
    class_of_metric,
    metric_named,
)

HUB_OF_DATASETS = "hf://datasets/"
# keys of a dataset with the value that changes nothing; they are left out of the definition
NEUTRAL = {
    "other_labels": "error", "empty_texts": "error", "absent_classes": "error", "absent_labels": "error",
}  # fmt: skip
# values of options that read a file as null does
SAME_AS_NULL = {"delimiter": [","], "encoding": ["utf-8", "UTF-8", "utf8", "UTF8"]}
# tables use these names for missing predictions
RESERVED_NAMES = frozenset({"", NO_PREDICTION})
PLACEHOLDERS = ("question", "context")  # of a template of prompts
# names of columns with two texts to compare
TWINS = (
    ("1", "2"), ("_a", "_b"), ("sentencea", "sentenceb"), ("texta", "textb"), ("_one", "_two"),
    ("_first", "_second"), ("_left", "_right"),
)  # fmt: skip
PAIRS = (
    {"premise", "hypothesis"}, {"question", "sentence"}, {"question", "passage"}, {"question", "context"},
    {"question", "answer"}, {"query", "passage"}, {"query", "document"}, {"claim", "evidence"},
    {"source", "target"}, {"first", "second"}, {"left", "right"},
)  # fmt: skip
# of paths to a model's files
MODEL_KEYS = tuple(dict.fromkeys(key for each in MODEL_FORMATS.values() for key in each.keys))


def complete_datasets(config: dict[str, Any]) -> None:
    """Check the datasets and complete them for later stages; unused keys are removed.

    Raises:
        SeedbedError: labels, their names or a template are invalid; a metric is of a class that there is not;
            both texts of pairs are under one key; a format is missing, or has no delimiter, pairs or
            clusters; the column of a second text or of clusters has another meaning, too.
    """
    for name, dataset in config["datasets"].items():
        _name_format(name, dataset, config["sources"][dataset["source"]])
        COMPLETIONS[TASKS[dataset["task"]].outputs](name, dataset)
        _check_cluster(name, dataset)
        _check_options(name, dataset)
        _check_header(name, dataset)
        _check_sizes(name, dataset)
        _drop_unused(dataset)


def _complete_classes(name: str, dataset: dict[str, Any]) -> None:
    """Complete a dataset of texts with one of several labels."""
    _check_labels(name, dataset)
    _name_metric(name, dataset)
    _check_pairs(name, dataset)


def _complete_label_sets(name: str, dataset: dict[str, Any]) -> None:
    """Complete a dataset of texts with any number of labels."""
    label_columns.complete(name, dataset)
    _check_labels(name, dataset)
    _name_other_metric(dataset)
    _check_pairs(name, dataset)


def _complete_values(name: str, dataset: dict[str, Any]) -> None:
    """Complete a dataset of texts with a number."""
    _name_other_metric(dataset)
    _check_pairs(name, dataset)


def _name_other_metric(dataset: dict[str, Any]) -> None:
    """Keep the metric only where it is another than the task's own, which is as good as none."""
    if dataset["metric"] in (None, TASKS[dataset["task"]].selection):
        del dataset["metric"]


def _name_format(name: str, dataset: dict[str, Any], source: Mapping[str, Any]) -> None:
    """Take a missing format from the ending of the training file; a dataset of the hub has Parquet files."""
    if dataset["format"] is not None:
        return
    outputs = TASKS[dataset["task"]].outputs
    dataset["format"] = format_by_ending(dataset["files"]["train"], outputs)
    if dataset["format"] is None and any(each.startswith(HUB_OF_DATASETS) for each in source["locations"]):
        dataset["format"] = "parquet"
    if dataset["format"] is None:
        raise SeedbedError(
            f"the ending of the training file does not tell the format of {name!r}",
            where=f"config, datasets.{name}.files.train",
            found=dataset["files"]["train"],
            hint=f"add format ({', '.join(formats_of(outputs))}); only files that end in "
            f"{', '.join(known_endings(outputs))} need none",
        )


def _check_labels(name: str, dataset: dict[str, Any]) -> None:
    label_groups.divide(name, dataset)
    names = dataset["label_names"] or dataset["labels"]
    for key, texts in (("labels", dataset["labels"]), ("label_names", names)):
        for text in texts:
            if one_line(text) != text:
                raise SeedbedError(
                    "a label has a control character, such as a line end",
                    where=f"config, datasets.{name}.{key}",
                    found=repr(text),
                    hint="remove it: tables and figures show labels in one line",
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


def _name_metric(name: str, dataset: dict[str, Any]) -> None:
    """Name the metric, and keep it only where one is chosen, so that earlier runs stay the same."""
    asked = dataset.pop("metric")
    if asked is None:
        return
    dataset["metric"] = metric_named(asked)
    label = class_of_metric(dataset["metric"])
    if label is not None and label not in dataset["labels"]:
        raise SeedbedError(
            f"the metric of {name!r} is of a class that the dataset does not have",
            where=f"config, datasets.{name}.metric.f1_of",
            found=repr(label),
            hint=f"give one of its labels: {', '.join(dataset['labels'])}",
        )


def _check_pairs(name: str, dataset: dict[str, Any]) -> None:
    """Check the columns of both texts; keep the second key only for pairs, so that other definitions stay."""
    columns, where = dataset["columns"], f"config, datasets.{name}.columns"
    second = columns.pop("text_pair")
    for key, names in (("text", columns["text"]), ("text_pair", second or ())):
        _refuse_joined_pair(name, f"{where}.{key}", names)
    if second is None:
        return
    _check_may_have(dataset, "second texts", f"{where}.text_pair", ", ".join(second))
    if both := [column for column in second if column in columns["text"]]:
        raise SeedbedError(
            f"a column of {name!r} is in both texts of its pairs",
            where=f"{where}.text_pair",
            found=", ".join(both),
            hint="name the column of the other text, or leave text_pair out for single texts",
        )
    dataset["columns"] = {"text": columns["text"], "text_pair": second} | columns


def _refuse_joined_pair(name: str, where: str, columns: Sequence[str]) -> None:
    """Refuse columns that are pairs of texts by their names: joined by a space, the border would be lost."""
    words = [column.lower() for column in columns]
    for (one, first), (other, second) in itertools.combinations(zip(words, columns, strict=True), 2):
        twins = any(
            one.endswith(a) and other.endswith(b) and one.removesuffix(a) == other.removesuffix(b)
            for a, b in TWINS
        )
        if twins or {one, other} in PAIRS:
            raise SeedbedError(
                f"the texts of {name!r} seem to be pairs, whose border would be lost",
                where=where,
                found=", ".join(columns),
                hint="columns under one key are joined with a space. Name both texts: "
                f"{flow({'columns': {'text': first, 'text_pair': second}})}; if they are parts of one text, "
                "rename them in the file",
            )


def _check_may_have(dataset: Mapping[str, Any], what: str, where: str, found: str) -> None:
    """Refuse a further column, of a second text or of clusters, if the format has none."""
    if reason := FORMATS[dataset["format"]].without_columns:
        raise SeedbedError(
            f"the format {dataset['format']} has no column of {what}", where=where, found=found, hint=reason
        )


def _check_cluster(name: str, dataset: dict[str, Any]) -> None:
    """Keep the column of clusters only where there is one, so that other definitions stay the same."""
    columns, where = dataset["columns"], f"config, datasets.{name}.columns.cluster"
    cluster = columns.pop("cluster")
    if cluster is None:
        return
    _check_may_have(dataset, "clusters", where, cluster)
    # pairs may share a text, such as a premise, and are not independent then
    shared = ("text", "text_pair") if "text_pair" in columns else ()
    if cluster in [column for key, column in wanted_columns(dataset) if key not in shared]:
        raise SeedbedError(
            "the column of clusters has another meaning, too",
            where=where,
            found=cluster,
            hint="name a column of authors, products or other groups of examples, or leave the key out",
        )
    columns["cluster"] = cluster


def _check_options(name: str, dataset: dict[str, Any]) -> None:
    """Keep options of reading only where they change something, so that other definitions stay the same."""
    taken = FORMATS[dataset["format"]].options
    for key, neutral in OPTIONS.items():
        value = dataset.pop(key)
        if value == neutral or value in SAME_AS_NULL.get(key, ()):
            continue
        if key not in taken:
            takers = [each for each, form in FORMATS.items() if key in form.options]
            raise SeedbedError(
                f"the format {dataset['format']} takes no {key}",
                where=f"config, datasets.{name}.{key}",
                found=repr(value),
                hint=f"leave it out, or set format: {' or '.join(takers)}",
            )
        dataset[key] = value


def _check_header(name: str, dataset: dict[str, Any]) -> None:
    """Check that a header in the config names the columns that are read."""
    if "header" not in dataset:
        return
    for key, column in wanted_columns(dataset):
        if spelling.find(column, dataset["header"]) is None:
            raise SeedbedError(
                f"the header names no column {column!r}",
                where=f"config, datasets.{name}.header",
                found=", ".join(dataset["header"]),
                hint=f"{spelling.nearest(column, dataset['header'])}correct the header, or columns.{key}",
            )


def _check_sizes(name: str, dataset: dict[str, Any]) -> None:
    """Refuse a number of examples that is not whole."""
    sizes = {f"sample.{split}": dataset.get("sample", {}).get(split) for split in SPLITS}
    for key, size in sizes.items():
        if size is not None and size >= 1 and size != int(size):
            raise SeedbedError(
                "a number of examples is not whole",
                where=f"config, datasets.{name}.{key}",
                found=size,
                hint="give a share below 1, or a whole number",
            )


def _check_class_names(names: list[str], where: str) -> None:
    for reserved in RESERVED_NAMES & set(names):
        raise SeedbedError(
            "the name of a class is reserved: tables mark missing predictions with it",
            where=f"config, {where}",
            found=repr(reserved),
            hint="give the classes other names under label_names",
        )


def _check_prompts(name: str, dataset: dict[str, Any]) -> None:
    """Check that the template has exactly the placeholders of the columns."""
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
            hint="write {{ and }} for literal braces",
        ) from None
    named = [field for _, field, _, _ in parts]
    plain = all(not form and not conversion for _, _, form, conversion in parts)
    if set(named) != set(expected) or not plain:
        raise SeedbedError(
            f"the template must name {' and '.join(f'{{{key}}}' for key in expected)}, and nothing else",
            where=where,
            found=repr(template),
            hint=_about_context(has_context, named),
        )
    if dataset["overlong"] == "cut" and not has_context:
        raise SeedbedError(
            "only contexts can be cut, and this dataset has none",
            where=f"config, datasets.{name}.overlong",
            found="cut",
            hint="give error or drop, or name the column of the context under columns.context",
        )


# by a task's outputs
COMPLETIONS: dict[str, Callable[[str, dict[str, Any]], None]] = {
    CLASSES: _complete_classes,
    LABEL_SETS: _complete_label_sets,
    VALUES: _complete_values,
    ANSWERS: _check_prompts,
}


def _about_context(has_context: bool, named: list[str]) -> str:
    if has_context and "context" not in named:
        return "columns.context is set: put {context} into the template, or remove the column"
    if not has_context and "context" in named:
        return "columns.context is null: name the column of the context, or take {context} out"
    return "write the placeholders as they stand here, without a format; {{ and }} are braces"


def _drop_unused(dataset: dict[str, Any]) -> None:
    """Remove unused keys of a dataset, so that changing them reruns nothing, and new keys nothing at all."""
    near = dataset["files"]["test"] is None and dataset["near_duplicates"] is not None
    for split in ("validation", "test"):
        asked = dataset.get(f"{split}_split", {})
        if dataset["files"][split] is not None:
            dataset.pop(f"{split}_split", None)
        elif "together" in asked and (asked["together"] or ("near" if near else "identical")) == "identical":
            del asked["together"]
        elif "together" in asked:
            asked["together"] = "near"
    if dataset["format"] != "webis_cls":
        dataset.pop("neutral_ratings", None)
    for key, neutral in NEUTRAL.items():
        if dataset.get(key) == neutral:
            del dataset[key]
    if dataset["files"]["test"] is None:
        dataset.pop("absent_classes", None)
        dataset.pop("absent_labels", None)
    sizes = {split: dataset.get("sample", {}).get(split) for split in SPLITS}
    if not any(sizes.values()):
        dataset.pop("sample", None)


def complete_models(config: dict[str, Any]) -> None:
    """Fill in the paths of each model's files; keys of formats with another converter are removed.

    Raises:
        SeedbedError: the model's format has no file for a path, or two kinds of files split texts.
    """
    for name, model in config["models"].items():
        format_, subwords = MODEL_FORMATS[model["format"]], _subwords(name, model)
        defaults = {**format_.files, **subwords}
        folder = Path(model["checkpoint"] or "").parent
        for key in MODEL_KEYS:
            if key not in defaults and model[key] is not None:
                raise SeedbedError(
                    f"a model in the format {model['format']} has no {key}",
                    where=f"config, models.{name}.{key}",
                    found=model[key],
                    hint=f"leave it out, or give another format; this one has {', '.join(format_.keys)}",
                )
            if key in defaults and model[key] is None:
                model[key] = (folder / defaults[key]).as_posix()
        # so keys of a new format do not change the definitions of other models
        kept = {*_keys_kept(model["format"]), *subwords}
        for key in (key for key in MODEL_KEYS if key not in kept):
            del model[key]


def _subwords(name: str, model: dict[str, Any]) -> Mapping[str, str]:
    """The defaults of the files that split a model's texts, of the kind that the model names."""
    kinds = MODEL_FORMATS[model["format"]].subwords
    named = [kind for kind in kinds if any(model[key] is not None for key in kind)]
    if len(named) > 1:
        keys = [" and ".join(kind) for kind in named]
        raise SeedbedError(
            "a model's texts are split by one kind of files, and two are named",
            where=f"config, models.{name}",
            found=", ".join(
                f"{key}: {model[key]}" for kind in named for key in kind if model[key] is not None
            ),
            hint=f"give either {' or '.join(keys)}",
        )
    return next(iter([*named, *kinds]), {})


def _keys_kept(format_: str) -> set[str]:
    """Keys of paths of all formats with the same converter, without those of the files that split texts."""
    converter = MODEL_FORMATS[format_].converter
    return {key for each in MODEL_FORMATS.values() if each.converter == converter for key in each.files}
