"""What each option of a recipe is called by `fairseq-train` and by Transformers' run_glue.py."""

import functools
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from seedbed.core import wording
from seedbed.core.words import code
from seedbed.report.documents.blocks import Cell, Table
from seedbed.report.parts import cell_word, headers

WORDS = wording.Words("report/flags")
TRAINING, SCRIPT, CONFIG = "TrainingArguments", "run_glue.py", "RobertaConfig"


@dataclass(frozen=True)
class Option:
    """An option of a recipe in both frameworks' terms; what it means stands in the config's `Recipe`.

    Attributes:
        key: its name in a recipe.
        fairseq: flags of `fairseq-train`, with Seedbed's plugin.
        transformers: (where, name): a field of TrainingArguments, which run_glue.py takes as a flag; a flag
            of run_glue.py's own; or a key of the model's config.json, for which run_glue.py has no flag.
        note: what Seedbed does that the names do not say.
    """

    key: str
    fairseq: tuple[str, ...]
    transformers: tuple[tuple[str, str], ...]
    note: str


@functools.cache
def options() -> tuple[Option, ...]:
    """The options of data/options.yaml, in the order of the report."""
    return tuple(
        Option(
            row["option"],
            tuple(row.get("fairseq", ())),
            tuple((where, name) for where, names in row.get("transformers", {}).items() for name in names),
            row.get("note", ""),
        )
        for row in wording.data("report/options")
    )


def table(recipe: Mapping[str, Any], *, named: bool = True) -> Table:
    """The options of a recipe with its values, and what both frameworks call them.

    Args:
        recipe: a resolved recipe, such as one of `Plan.reporting()["recipes"]`; what it lacks is left out.
        named: whether the names of both frameworks stand beside.
    """
    rows = [
        (
            code(option.key),
            _value(recipe[option.key]),
            _flags(option.fairseq),
            _flags(_name(where, name) for where, name in option.transformers),
        )
        for option in options()
        if option.key in recipe
    ]
    columns, caption = (
        headers("flags", "option", "value", "fairseq", "transformers"),
        WORDS.say("flags", named),
    )
    if not named:
        return Table("flags", columns[:2], [row[:2] for row in rows], caption)
    return Table("flags", columns, rows, caption)


def meanings(keys: Collection[str], *, named: bool = True) -> Table:
    """What options of a recipe mean, their defaults, and what Seedbed does that no flag says.

    Args:
        keys: the options.
        named: whether that last part, of both frameworks' flags, is told.
    """
    # here, since all else of summary and report needs no pydantic
    from seedbed.config.settings import Recipe
    from seedbed.config.validation import as_written

    defaults = as_written(Recipe())
    described = {name: field.description for name, field in Recipe.model_fields.items()}
    rows = [
        (code(option.key), _value(defaults[option.key]), _meaning(option, described, named))
        for option in options()
        if option.key in keys
    ]
    columns = headers("flags", "option", "default", "meaning")
    return Table("options", columns, rows, WORDS.say("meanings", named))


def _meaning(option: Option, described: Mapping[str, Any], named: bool) -> str:
    return f"{described[option.key]} {option.note * named}".rstrip()


def _value(value: Any) -> Cell:
    """A value as the config may write it."""
    text = json.dumps(value)
    return Cell(code(text), value if isinstance(value, (int, float, str)) else text)


def _name(where: str, name: str) -> str:
    return cell_word("config_key", name=name) if where == CONFIG else f"--{name}"


def _flags(names: Iterable[str]) -> str | None:
    return ", ".join(map(code, names)) or None
