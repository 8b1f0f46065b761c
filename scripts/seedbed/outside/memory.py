"""Refuse results that do not fit into memory, before they are loaded."""

from pathlib import Path

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
    needed, free = rows * BYTES_A_ROW, free_bytes()
    if needed > free:
        raise SeedbedError(
            "the table is too large for the memory of this host",
            where=where,
            found=f"about {rows:,} rows, which take {needed // MIB:,} MiB; {free // MIB:,} MiB are free",
            hint="give one file for each dataset, and read one at a time; or take a host with more memory",
        )


def free_bytes() -> int:
    """Memory that this process can still take, within the limit of its control group, in bytes."""
    return min(_of_the_host(), _of_the_group())


def _of_the_host() -> int:
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 2**62  # not Linux: unknown, and never refused


def _of_the_group(root: Path = Path("/sys/fs/cgroup")) -> int:
    """What is left below the limit of a container or a Slurm job (control groups, version 2)."""
    own = next((line[3:].lstrip("/") for line in _lines(Path("/proc/self/cgroup")) if line[:3] == "0::"), "")
    limits = _lines(root / own / "memory.max") or _lines(root / "memory.max")
    used = _lines(root / own / "memory.current") or _lines(root / "memory.current")
    if not (limits and used and limits[0].isdigit()):
        return 2**62
    return max(0, int(limits[0]) - int(used[0]))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
