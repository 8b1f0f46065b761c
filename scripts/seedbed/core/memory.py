"""The memory that processes of this host may still take."""

from pathlib import Path


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
