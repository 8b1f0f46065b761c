"""Read one long table from one or several files, so that only integer codes stay in memory."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from seedbed.core.errors import SeedbedError
from seedbed.outside import memory
from seedbed.outside.columns import roles
from seedbed.outside.csv_files import open_csv
from seedbed.outside.long_table import Column, LongTable, Part, place_in
from seedbed.outside.parquet_files import MAGIC, open_parquet
from seedbed.outside.table_files import CODES, TableFile, first_bytes, unreadable


def read_tables(
    paths: Sequence[Path], columns: Mapping[str, str] | None = None, metric: str | None = None
) -> LongTable:
    """Read files of one table, in this order.

    Args:
        paths: CSV, also compressed by gzip, or Parquet.
        columns: by role the column that has it, see `columns.NAMES`; others are recognised by their names.
        metric: the metric, or the column of its scores.

    Raises:
        SeedbedError: a file is empty, damaged, not UTF-8 or no table; a column is missing; a cell is empty or
            no number; the files have different columns; they are too large for memory.
    """
    chunks: dict[str, list[pa.Array]] = {}
    parts: list[Part] = []
    taken: dict[str, str] = {}
    rows = 0
    for path in paths:
        table = _open(path)
        own = roles(table.header, columns, metric, str(path))
        if parts:
            _require_equal(own, path, taken, parts[0].path)
        taken = taken or own
        memory.require_room(rows + table.rows, str(path))
        parts.append(Part(path, rows, table.first_number))
        for batch in table.batches(list(own.values()), own.get("score")):
            for role, name in own.items():
                chunks.setdefault(role, []).append(batch[name])
            rows += len(batch[own["system"]])
        if rows == parts[-1].first:
            raise unreadable(path, "no row below the names of the columns", "write the rows into it")
    scored = "score" in taken
    return LongTable(
        columns={role: _codes(chunks.pop(role), role, parts) for role in taken if role != "score"},
        scores=_scores(chunks["score"], parts) if scored else None,
        metric=(metric or taken["score"]) if scored else "accuracy",
        parts=parts,
        taken=taken,
    )


def read_texts(path: Path) -> dict[str, list[str]]:
    """A small table, by column the texts of its cells.

    Raises:
        SeedbedError: see `read_tables`.
    """
    table = _open(path)
    memory.require_room(table.rows, str(path))
    batches = list(table.batches(table.header, None))
    return {name: [text for batch in batches for text in batch[name].to_pylist()] for name in table.header}


def _open(path: Path) -> TableFile:
    sample = first_bytes(path)
    return open_parquet(path) if sample.startswith(MAGIC) else open_csv(path, sample)


def _require_equal(own: Mapping[str, str], path: Path, taken: Mapping[str, str], first: Path) -> None:
    if own.keys() != taken.keys():
        raise SeedbedError(
            "two files of one table have different columns",
            where=f"{path}, line 1",
            found=f"columns for {', '.join(own)}; {first} has columns for {', '.join(taken)}",
            hint="give all files the same columns",
        )


def _codes(chunks: list[pa.Array], role: str, parts: Sequence[Part]) -> Column:
    """The chunks of a column with one list of names.

    Raises:
        SeedbedError: a cell is empty.
    """
    whole = pa.chunked_array(chunks, CODES).unify_dictionaries()
    names = whole.chunk(0).dictionary.to_pylist()
    codes = np.concatenate([chunk.indices.fill_null(-1).to_numpy() for chunk in whole.chunks])
    if whole.null_count:
        raise _bad_cell(f"a cell of the column for {role} is empty", codes < 0, None, parts)
    return Column(codes, names)


def _scores(chunks: list[pa.Array], parts: Sequence[Part]) -> np.ndarray:
    """The chunks of the scores, (rows,) float32.

    Raises:
        SeedbedError: a score is empty, no number, or infinite.
    """
    scores = np.concatenate([chunk.to_numpy(zero_copy_only=False) for chunk in chunks])
    wrong = ~np.isfinite(scores)
    if wrong.any():
        found = f"{scores[wrong.argmax()]}, an empty cell or no number"
        raise _bad_cell("a score is not a finite number", wrong, found, parts)
    return scores.astype(np.float32, copy=False)


def _bad_cell(what: str, wrong: np.ndarray, found: str | None, parts: Sequence[Part]) -> SeedbedError:
    more = f"{wrong.sum() - 1:,} more such rows" if wrong.sum() > 1 else None
    return SeedbedError(
        what,
        where=place_in(parts, int(wrong.argmax())),
        found="; and ".join(filter(None, (found, more))) or None,
        hint="fill it: an example without an answer may have a class of its own, or the lowest score",
    )
