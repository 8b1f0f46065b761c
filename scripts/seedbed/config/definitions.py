"""Check and complete the definitions of datasets and models."""

import itertools
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.core.formats import FORMATS
from seedbed.core.printable import one_line
from seedbed.core.tasks import NO_PREDICTION, TASKS

# formats without named columns, which have no place for a cluster
WITHOUT_CLUSTERS = {
    "lab": "its files have a text and a label on each line, nothing else: write them as csv, tsv or jsonl",
    "webis_cls": "its elements are read for text and rating alone: write the reviews as csv, tsv or jsonl",
}
# of files whose format need not be named; the last is of questions alone
ENDINGS = ("csv", "tsv", "jsonl", "json")
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
MODEL_KEYS = tuple(dict.fromkeys(key for each in FORMATS.values() for key in each.keys))


def complete_datasets(config: dict[str, Any]) -> None:
    """Check the datasets and complete them for later stages; unused keys are removed.

    Raises:
        SeedbedError: labels, their names or a template are invalid; texts are pairs; a format is missing, or
            has no delimiter or no clusters; the column of clusters has another meaning, too.
    """
    for name, dataset in config["datasets"].items():
        _name_format(name, dataset)
        if TASKS[dataset["task"]].writes_answers:
            _check_prompts(name, dataset)
        else:
            _check_labels(name, dataset)
        _check_cluster(name, dataset)
        _check_delimiter(name, dataset)
        _drop_unused(dataset)


def _name_format(name: str, dataset: dict[str, Any]) -> None:
    """Take a missing format from the ending of the training file."""
    if dataset["format"] is not None:
        return
    known = ENDINGS if TASKS[dataset["task"]].writes_answers else ENDINGS[:-1]
    ending = Path(dataset["files"]["train"]).suffix.lower().removeprefix(".")
    if ending not in known:
        raise SeedbedError(
            f"the ending of the training file does not tell the format of {name!r}",
            where=f"config, datasets.{name}.files.train",
            found=dataset["files"]["train"],
            hint=f"add format; only files that end in {', '.join(f'.{each}' for each in known)} need none",
        )
    dataset["format"] = ending


def _check_labels(name: str, dataset: dict[str, Any]) -> None:
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
    _refuse_pairs(name, dataset["columns"]["text"])


def _refuse_pairs(name: str, columns: Sequence[str]) -> None:
    """Refuse columns that are pairs of texts by their names: joined by a space, the border would be lost."""
    words = [column.lower() for column in columns]
    for one, other in itertools.combinations(words, 2):
        twins = any(
            one.endswith(a) and other.endswith(b) and one.removesuffix(a) == other.removesuffix(b)
            for a, b in TWINS
        )
        if twins or {one, other} in PAIRS:
            raise SeedbedError(
                f"the texts of {name!r} seem to be pairs, but Seedbed only takes single texts",
                where=f"config, datasets.{name}.columns.text",
                found=", ".join(columns),
                hint="columns are joined with a space, so the model would not see where the second text "
                "begins. If they are parts of one text, rename them in the file",
            )


def _check_cluster(name: str, dataset: dict[str, Any]) -> None:
    """Keep the column of clusters only where there is one, so that other definitions stay the same."""
    columns, where = dataset["columns"], f"config, datasets.{name}.columns.cluster"
    cluster = columns.pop("cluster")
    if cluster is None:
        return
    if dataset["format"] in WITHOUT_CLUSTERS:
        raise SeedbedError(
            f"the format {dataset['format']} has no column of clusters",
            where=where,
            found=cluster,
            hint=WITHOUT_CLUSTERS[dataset["format"]],
        )
    taken = [column for key, column in columns.items() if key != "text"] + columns.get("text", [])
    if cluster in taken:
        raise SeedbedError(
            "the column of clusters has another meaning, too",
            where=where,
            found=cluster,
            hint="name a column of authors, products or other groups of examples, or leave the key out",
        )
    columns["cluster"] = cluster


def _check_delimiter(name: str, dataset: dict[str, Any]) -> None:
    """Keep the delimiter only for formats that use it, so that other definitions stay the same."""
    delimiter = dataset.pop("delimiter")
    if delimiter is None or (dataset["format"] == "csv" and delimiter == ","):
        return
    if dataset["format"] != "csv":
        raise SeedbedError(
            f"the format {dataset['format']} takes no delimiter",
            where=f"config, datasets.{name}.delimiter",
            found=repr(delimiter),
            hint="leave it out, or set format: csv",
        )
    dataset["delimiter"] = delimiter


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


def _about_context(has_context: bool, named: list[str]) -> str:
    if has_context and "context" not in named:
        return "columns.context is set: put {context} into the template, or remove the column"
    if not has_context and "context" in named:
        return "columns.context is null: name the column of the context, or take {context} out"
    return "write the placeholders as they stand here, without a format; {{ and }} are braces"


def _drop_unused(dataset: dict[str, Any]) -> None:
    """Remove unused keys of a dataset, so that changing them reruns nothing."""
    for split in ("validation", "test"):
        if dataset["files"][split] is not None:
            dataset.pop(f"{split}_split", None)
    if dataset["format"] != "webis_cls":
        dataset.pop("neutral_ratings", None)


def complete_models(config: dict[str, Any]) -> None:
    """Fill in the paths of each model's files; keys of formats with another converter are removed.

    Raises:
        SeedbedError: the model's format has no file for a path, or two kinds of files split texts.
    """
    for name, model in config["models"].items():
        format_, subwords = FORMATS[model["format"]], _subwords(name, model)
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
    kinds = FORMATS[model["format"]].subwords
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
    converter = FORMATS[format_].converter
    return {key for each in FORMATS.values() if each.converter == converter for key in each.files}
