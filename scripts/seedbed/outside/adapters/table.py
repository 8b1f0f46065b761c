"""One long table, in one or several files: a row for each system, seed and example, or without examples."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from seedbed.core.errors import SeedbedError
from seedbed.core.known import known
from seedbed.outside.arrange import arrange, integer
from seedbed.outside.by_seed import Value, results_of
from seedbed.outside.long_table import LongTable
from seedbed.outside.results import Results
from seedbed.outside.tables import read_tables
from seedbed.outside.wanted import Wanted


def files_of(folder: Path) -> list[Path]:
    """None: a table is named by its files, since any file in a folder may be a table."""
    return []


def fits(path: Path) -> bool:
    """Any file may be a table; `read` refuses those that are none."""
    return True


def read(paths: Sequence[Path], wanted: Wanted) -> list[Results]:
    """The results of each dataset of the table.

    Raises:
        SeedbedError: see `read_tables` and `arrange`; of a table without examples `by_seed.results_of`.
    """
    table = read_tables(paths, wanted.columns, wanted.metric)
    if "example" in table.columns:
        return arrange(table, wanted.dataset, wanted.bounds)
    notes = [
        "The table has no column of examples: each score is taken for that of a whole run.",
        *table.notes,
    ]
    found = results_of(
        _values(table, wanted.dataset), wanted, [part.path for part in table.parts], "table", notes
    )
    return [replace(one, taken=table.taken) for one in found]


def _values(table: LongTable, dataset: str | None) -> list[Value]:
    """The scores of a table without examples.

    Raises:
        SeedbedError: a system has two scores of one seed, as where the column of examples was not recognised.
    """
    values = []
    rows: dict[tuple[str, str, int], int] = {}
    for row, score in enumerate(known(table.scores)):
        name = table.columns["dataset"].of(row) if "dataset" in table.columns else dataset or ""
        system = table.columns["system"].of(row)
        seed = integer(table.columns["seed"].of(row), table.place(row)) if "seed" in table.columns else 0
        first = rows.setdefault((name, system, seed), row)
        if first != row:
            raise SeedbedError(
                "a system has two scores of one seed, and the table has no column of examples",
                where=f"{table.place(first)}, and {table.place(row)}",
                found=f"{system}, seed {seed}",
                hint="name the column of examples, or that of seeds: example=NAME or seed=NAME in columns",
            )
        # the shortest decimal number of the float32 is the one that the file has
        values.append(Value(name, system, seed, table.metric, float(str(score)), table.place(row)))
    return values
