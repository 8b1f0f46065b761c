"""Rows of an experiment's tables: one dict a row, which is enough here and loads fast."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.files import write_rows

Row = dict[str, Any]

CELL = ("dataset", "model", "framework", "init", "recipe")
# what each test set's columns of runs.csv end in; a leak is a test example that stands in another split, too
TEST_SETS = {"all": "", "without leaks": "_without_leaks"}
TEXT_COLUMNS = frozenset(
    {*CELL, "recipe_family", "method", "metric", "test_set", "selection", "ci_method", "family", "contrast"}
    | {"dataset_b", "model_b", "a", "b", "recipe_a", "recipe_b", "equivalence", "device", "split"}
    | {"component", "formula", "example", "label", "prediction", "most_common_prediction"}
)


def read_table(path: str | Path) -> list[Row]:
    """Rows of one of these tables with numbers as numbers, true and false as bool, empty cells as None."""
    with open(path, encoding="utf-8", newline="") as stream:
        return [{key: _parse(key, text) for key, text in row.items()} for row in csv.DictReader(stream)]


def write_table(path: str | Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Write rows so that `read_table` reads them back; a missing key or None is an empty cell."""
    write_rows(path, columns, map(_cells, rows))


def _parse(column: str, text: str) -> Any:
    if column in TEXT_COLUMNS:
        return text
    if text == "":
        return None
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _cells(row: Row) -> Row:
    return {key: str(value).lower() if isinstance(value, bool) else value for key, value in row.items()}


def grouped(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by their values of `keys`, in the order of appearance."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def on_test_set(rows: Iterable[Row], test_set: str = "all") -> list[Row]:
    """The rows of summary.csv or contrasts.csv that are of one test set."""
    return [row for row in rows if row["test_set"] == test_set]


def value_column(row: Mapping[str, Any]) -> str:
    """The column of runs.csv behind a row of summary.csv or contrasts.csv."""
    return f"test_{row['metric']}{TEST_SETS[row['test_set']]}"


def seed_values(runs: Iterable[Row], column: str) -> dict[tuple[int, int], float]:
    """A column of the runs of one summary row, by (init seed, data seed)."""
    return {(run["init_seed"], run["data_seed"]): run[column] for run in runs}
