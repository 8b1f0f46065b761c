"""Refuse results that do not fit into memory, before they are loaded."""

from seedbed.core import memory
from seedbed.core.errors import SeedbedError

MIB = 2**20
# the peak of reading and arranging: 88 to 121 of ten million rows, up to 149 where each example has two rows
# (benchmarks/outside.py); columns of datasets and clusters add a little
BYTES_A_ROW = 160


def require_room(rows: int, where: str) -> None:
    """Refuse a table with more rows than memory can hold.

    Args:
        rows: their number, known or estimated.
        where: the table, for the error.

    Raises:
        SeedbedError: it takes more memory than is free.
    """
    needed, free = rows * BYTES_A_ROW, memory.free_bytes()
    if needed > free:
        raise SeedbedError(
            "the table is too large for the memory of this host",
            where=where,
            found=f"about {rows:,} rows, which take {needed // MIB:,} MiB; {free // MIB:,} MiB are free",
            hint="give one file for each dataset, and read one at a time; or take a host with more memory",
        )
