"""The table of measured grids, benchmarks/results/speed/records.csv, to which every machine may add."""

import datetime
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import seedbed
from bench import tables
from bench.processes import ROOT
from bench.tables import Row
from bench.workload import files

PATH = ROOT / "benchmarks" / "results" / "speed" / "records.csv"
COLUMNS = (
    "date", "version", "commit", "hardware", "cores", "experiment", "settings", "runs", "mode", "precision",
    "wall_seconds", "training_seconds", "floor_seconds", "share", "equivalence", "raw",
)  # fmt: skip
SHOWN = ("date", "commit", "hardware", "cores", "settings", "runs", "mode", "precision")


def read(path: Path = PATH) -> list[dict[str, str]]:
    """All records, their cells as text; none where there is no table."""
    return files.read_rows(path) if path.exists() else []


def add(record: Mapping[str, Any], path: Path = PATH) -> None:
    """Add a record; a column that it lacks, or that is None, is an empty cell."""
    files.write_rows(path, COLUMNS, [*read(path), {name: record.get(name) for name in COLUMNS}])


def record(
    machine: Mapping[str, Any],
    gpus: int,
    configs: Sequence[Path],
    measured: Mapping[str, Any],
    floor: Row | None,
    raw: Path | None,
) -> Row:
    """A record of a grid that was measured now, without a verdict on its accuracy.

    Args:
        machine: as `describe_machine` gives it.
        gpus: that the grid used.
        configs: the experiment's config files.
        measured: cores, settings, runs, mode, precision and wall_seconds.
        floor: the grid's row of floor.csv; None: its work is not counted.
        raw: the table or folder that was kept.
    """
    counted = floor or {}
    return {
        "date": datetime.date.today().isoformat(),
        "version": seedbed.__version__,
        "commit": commit(),
        "hardware": hardware(machine, gpus),
        "experiment": experiment(configs),
        "training_seconds": _rounded(counted.get("measured_seconds"), 2),
        "floor_seconds": _rounded(counted.get("floor_seconds"), 3),
        "share": _rounded(counted.get("share"), 4),
        "raw": place(raw),
        **measured,
        "wall_seconds": round(measured["wall_seconds"], 2),
    }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def experiment(configs: Sequence[Path]) -> str:
    """The names of the config files; `demo` without any."""
    return " ".join(path.stem for path in configs) or "demo"


def hardware(machine: Mapping[str, Any], gpus: int) -> str:
    """The GPUs that were used, and the CPU."""
    names = [f"{gpus} x {machine['gpus'][0]}"] if gpus else []
    return ", ".join([*names, machine["cpu"]])


def commit() -> str:
    """The short hash of the checked out commit, with `+` where files differ from it; empty without Git."""
    found = _git("rev-parse", "--short", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", "scripts", "benchmarks/bench")
    return f"{found}+" if found and changed else found


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):  # no Git, or no repository
        return ""
    return done.stdout.strip()


def place(raw: Path | None) -> str:
    """A path within the repository, relative to it; empty for others and for what Git ignores."""
    if raw is None or not raw.resolve().is_relative_to(ROOT) or _git("check-ignore", str(raw.resolve())):
        return ""
    return raw.resolve().relative_to(ROOT).as_posix()


def section(records: Sequence[Mapping[str, str]], name: str, runs: int) -> str:
    """The records of an experiment's grids of so many runs for people, the shortest first."""
    mine = [one for one in records if (one["experiment"], one["runs"]) == (name, str(runs))]
    mine.sort(key=lambda one: float(one["wall_seconds"]))
    lines = []
    for one in mine:
        share = f"{100 * float(one['share']):.1f}%" if one["share"] else ""
        seconds = [
            tables.number(float(one[column]) if one[column] else None)
            for column in ("wall_seconds", "training_seconds", "floor_seconds")
        ]
        lines.append([*(one[column] for column in SHOWN), one["equivalence"], *seconds, share])
    title = f"## Records of {name}, {runs} runs"
    if not lines:
        return f"{title}\n\nThere are none. --mode grid --record adds one.\n"
    header = (*SHOWN, "equivalence", "wall (s)", "training (s)", "floor (s)", "share reached")
    return f"{title}\n\n{tables.table(header, lines, len(SHOWN) + 1)}"
