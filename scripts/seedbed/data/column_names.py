"""The column that a config probably means, if it names one that a file lacks."""

from collections.abc import Mapping, Sequence

from seedbed.config.yaml_files import flow
from seedbed.core import spelling
from seedbed.data.texts import PARTS

DEFAULTS = ("text", "label", "question", "answer")  # keys whose column has the same name by default
LONG = 20  # mean letters of a cell, from which on a column may hold texts


def remedy(key: str, name: str, named: Sequence[tuple[str, str]], columns: Mapping[str, float]) -> str:
    """A question after the probable column, and the YAML that names it; empty if no column stands out.

    A near name counts first, then the only column that the config does not use, then, for a text, the column
    with the longest cells.

    Args:
        key: the key under `columns` whose column is missing.
        name: the missing column.
        named: all keys and columns of the config.
        columns: the columns of the file, with the mean letters of their cells.
    """
    used = {column for _, column in named}
    free = {column: letters for column, letters in columns.items() if column not in used}
    if meant := spelling.near(name, free):
        question = spelling.nearest(name, free)
    elif meant := _only(free) or (_longest(free) if key in PARTS else ""):
        question = f"is it {meant!r}? "
    else:
        return ""
    block: dict[str, list[str]] = {}
    for other, column in named:
        block.setdefault(other, []).append(meant if (other, column) == (key, name) else column)
    return f"{question}write {_as_yaml(block)} in the block of the dataset"


def _as_yaml(columns: Mapping[str, Sequence[str]]) -> str:
    written = {
        key: list(names) if len(names) > 1 else names[0]
        for key, names in columns.items()
        if key not in DEFAULTS or list(names) != [key]
    }
    return flow({"columns": written})


def _only(free: Mapping[str, float]) -> str:
    return next(iter(free)) if len(free) == 1 else ""


def _longest(free: Mapping[str, float]) -> str:
    """The column with long cells, if those of all others are at most half as long."""
    if not free:
        return ""
    first, *others = sorted(free, key=lambda column: -free[column])
    return first if free[first] >= max(LONG, *(2 * free[other] for other in others), 0) else ""
