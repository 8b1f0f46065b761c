"""The table of sources: one row per source, with the keys of the config's `sources`."""

import csv
import re
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError

COLUMNS = ("name", "version", "kind", "urls", "bytes", "sha256", "licence", "include", "description")
KINDS = ("auto", "archive", "file", "folder", "hub")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,149}")
SHA256 = re.compile(r"[0-9a-f]{64}")


def read_source_table(path: str | Path) -> dict[str, dict[str, Any]]:
    """Read a table of sources: {name: definition}, with every key of a source in the config.

    A table is CSV in UTF-8 with the header `COLUMNS` and one row per source; entries of `urls` and `include`
    are separated by spaces. An empty cell becomes None, an empty kind "auto", an empty licence or description
    "".

    Raises:
        SeedbedError: with file and line: a missing or unknown column, a row of the wrong length, a duplicate
            or invalid name, no URL, an unknown kind, a size that is not a number, or an invalid SHA-256.
    """
    table: dict[str, dict[str, Any]] = {}
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            header = tuple(next(reader, ()))
            if header != COLUMNS:
                raise SeedbedError(
                    "the table of sources has other columns",
                    where=f"{path}, line 1",
                    found=",".join(header),
                    hint=f"the header is {','.join(COLUMNS)}",
                )
            for cells in filter(None, reader):
                where = f"{path}, line {reader.line_num}"
                row = _row(cells, where)
                if row["name"] in table:
                    raise SeedbedError("this source is twice in the table", where=where, found=row["name"])
                table[row["name"]] = _definition(row, where)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SeedbedError("the table of sources cannot be read", where=str(path), found=error) from error
    return table


def _row(cells: list[str], where: str) -> dict[str, str]:
    if len(cells) != len(COLUMNS):
        raise SeedbedError(
            f"a row of the table of sources has {len(cells)} cells instead of {len(COLUMNS)}",
            where=where,
            found=",".join(cells),
            hint="put cells with a comma into double quotes",
        )
    return dict(zip(COLUMNS, map(str.strip, cells), strict=True))


def _definition(row: dict[str, str], where: str) -> dict[str, Any]:
    checks = {
        "name": (NAME.fullmatch(row["name"]), "letters, digits, and _ . - after the first; 150 at most"),
        "urls": (row["urls"], "at least one URL or path"),
        "kind": (row["kind"] in ("", *KINDS), f"one of {', '.join(KINDS)}, or empty"),
        "bytes": (not row["bytes"] or row["bytes"].isdecimal(), "digits only, or empty"),
        "sha256": (not row["sha256"] or SHA256.fullmatch(row["sha256"]), "64 digits of 0-9a-f, or empty"),
    }
    for column, (good, expected) in checks.items():
        if not good:
            raise SeedbedError(
                f"a source's {column} is not valid",
                where=f"{where}, column {column}",
                found=repr(row[column]),
                hint=expected,
            )
    return {
        "locations": row["urls"].split(),
        "sha256": row["sha256"] or None,
        "bytes": int(row["bytes"]) if row["bytes"] else None,
        "version": row["version"] or None,
        "kind": row["kind"] or "auto",
        "include": row["include"].split() or None,
        "licence": row["licence"],
        "description": row["description"],
    }
