"""Kill workflows at random moments, start them again, and see that nothing is lost.

    python tests/workflow/faults/kill_loop.py --kills 30 [--mode separate batches fused] [--seed 1]

Every other kill hits Snakemake alone, whose jobs go on; the others hit all processes, as a power cut does.
The same command follows until it ends by itself. It must then end with 0, and have left every run and the
report; predictions and metrics (but for seconds) are byte for byte those of a workflow that nobody killed,
and no run that was finished at a kill was trained again. The next round begins without results. Prints a
line a mode, and exits with 1 where anything was lost.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[3] / "scripts")]

from harness import ALWAYS, PATIENCE, Project, copy
from stock import Stock

MODES = {
    "separate": {},
    "batches": {"batches": {"runs": 4, "at_once": 2}},
    "fused": {"fused_seeds": True},
}
SEEDS = [0, 1]  # 2 frameworks x 2 inits x 2 seeds
FILES = ("predictions.csv", "metrics.csv", "run.json")


@dataclass
class Outcome:
    """What the kills of a mode led to.

    Attributes:
        kills: of Snakemake alone, and of all processes.
        rounds: workflows that came to their end.
        finished: results that were there at a kill.
        again: those of them that were trained again.
        missing: runs, or reports, that were not there after exit code 0.
        different: files that differ from those of a workflow that nobody killed.
        same: files that do not.
        failed: exit codes of workflows that failed without having been killed.
    """

    kills: dict[str, int] = field(default_factory=lambda: {"alone": 0, "all": 0})
    rounds: int = 0
    finished: int = 0
    again: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    same: int = 0
    failed: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether nothing was lost."""
        return not (self.again or self.missing or self.different or self.failed)

    def __str__(self) -> str:
        return "; ".join(
            [
                f"{sum(self.kills.values())} kills, {self.kills['alone']} of Snakemake alone",
                f"{self.rounds} workflows to their end, {len(self.failed)} failed",
                f"{self.finished} results finished at a kill, {len(self.again)} trained again",
                f"{len(self.missing)} files missing",
                f"{self.same} files byte-identical, {len(self.different)} not",
            ]
        )


def loop(prepared: Project, folder: Path, mode: str, kills: int, draw: random.Random) -> Outcome:
    """Kill workflows of a mode so many times.

    Args:
        prepared: as in `Stock.prepared`.
        folder: where the workflows work.
        mode: one of MODES.
        kills: how many.
        draw: gives the moments.
    """
    reference = begin(prepared, folder / "reference", mode)
    seconds = time.monotonic()
    reference.run_all()
    seconds = time.monotonic() - seconds
    outcome = Outcome()
    while sum(outcome.kills.values()) < kills:
        own = begin(prepared, folder / f"round{outcome.rounds}", mode)
        finished: dict[str, bytes] = {}
        while sum(outcome.kills.values()) < kills:
            whom = ("alone", "all")[sum(outcome.kills.values()) % 2]
            process = own.start_all()
            if not is_killed(own, process, whom, draw.uniform(1, seconds)):
                break
            outcome.kills[whom] += 1
            finished |= results_of(own)
        else:
            process = own.start_all()
        process.wait(timeout=PATIENCE)
        own.wait_until_all_have_left()
        if process.returncode != 0:
            outcome.failed.append(f"{own.folder.name}: {process.returncode}{own.said()}{own.logs()}")
        compare(own, reference, finished, outcome)
        outcome.rounds += 1
        if outcome.is_clean:
            shutil.rmtree(own.folder)
    return outcome


class Grid(Project):
    """A directory whose workflows are asked for the whole experiment."""

    def start_all(self) -> subprocess.Popen:
        """Start Snakemake without targets; nobody reads what it prints before it has ended."""
        command = self.command()
        with open(self.folder / "said", "w") as stream:
            return self.popen(command[: command.index("--")], stdout=stream)

    def said(self) -> str:
        """The end of what the last Snakemake printed."""
        return f"\n{(self.folder / 'said').read_text(encoding='utf-8')[-4000:]}"

    def run_all(self) -> None:
        """Run Snakemake without targets to its successful end."""
        assert self.start_all().wait(timeout=PATIENCE) == 0, self.said() + self.logs()


def begin(prepared: Project, folder: Path, mode: str) -> Grid:
    """A directory in which everything but the runs is made."""
    config = {**prepared.config, **MODES[mode], "training_checkpoints": ALWAYS}
    config["grid"] = {**config["grid"], "seeds": SEEDS}
    return Grid(copy(prepared, folder).folder, config=config)


def is_killed(own: Grid, process: subprocess.Popen, whom: str, after: float) -> bool:
    """Kill a workflow after so many seconds; False where it has ended before."""
    try:
        process.wait(timeout=after)
        return False
    except subprocess.TimeoutExpired:
        pass
    if whom == "all":
        own.kill_everything()
    else:
        os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=PATIENCE)
    return True


def folders(own: Grid) -> Iterator[tuple[str, Path]]:
    """Names of runs, and the folders that may hold their results: published, or kept for their rule."""
    experiment = own.results / "small"
    for path in experiment.glob("runs/*/*/*/*/*/*"):
        yield str(path.relative_to(experiment / "runs")), path
    for path in experiment.glob("work/*/*/*/*/*/*/kept"):
        yield str(path.parent.relative_to(experiment / "work")), path


def results_of(own: Grid) -> dict[str, bytes]:
    """run.json of the runs that are finished, by name; it holds the seconds that training took."""
    found = {}
    for name, path in folders(own):
        try:
            if all((path / file).exists() for file in FILES):
                found[name] = (path / "run.json").read_bytes()
        except FileNotFoundError:
            continue  # its process goes on, and has just put another in its place
    return found


def compare(own: Grid, reference: Grid, finished: dict[str, bytes], outcome: Outcome) -> None:
    """Compare what a workflow has left with one that nobody killed, and with what was finished before."""
    here, there = (project.results / "small" for project in (own, reference))
    expected = [str(path.parent.relative_to(there / "runs")) for path in there.glob("runs/**/run.json")]
    assert len(expected) == 2 * 2 * len(SEEDS)
    names = [f"runs/{name}/{file}" for name in expected for file in FILES] + ["report.html", "summary.md"]
    outcome.missing += [f"{own.folder.name}: {name}" for name in names if not (here / name).exists()]
    for name in expected:
        for file in ("predictions.csv", "metrics.csv"):
            place = Path("small/runs") / name / file
            if not (own.results / place).exists():
                continue
            if content(own, place) == content(reference, place):
                outcome.same += 1
            else:
                outcome.different.append(f"{own.folder.name}: {place}")
    outcome.finished += len(finished)
    outcome.again += [
        f"{own.folder.name}: {name}"
        for name, run in finished.items()
        if (here / "runs" / name / "run.json").exists()
        and (here / "runs" / name / "run.json").read_bytes() != run
    ]


def content(own: Grid, place: Path) -> object:
    """A file of a run; metrics without the seconds, which differ each time."""
    path = own.results / place
    if path.name != "metrics.csv":
        return path.read_bytes()
    return [{key: value for key, value in row.items() if key != "seconds"} for row in own.rows(str(path))]


def main() -> int:
    """Run the loop for the modes that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=30, help="kills a mode")
    parser.add_argument("--mode", nargs="+", choices=MODES, default=[*MODES])
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the moments")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    clean = True
    with tempfile.TemporaryDirectory() as scratch:
        prepared = Stock(Path(scratch) / "stock").prepared()
        for mode in arguments.mode:
            draw = random.Random(arguments.seed)
            outcome = loop(prepared, Path(scratch) / mode, mode, arguments.kills, draw)
            clean &= outcome.is_clean
            print(f"{mode}: {outcome}", flush=True)
            for problem in (*outcome.again, *outcome.missing, *outcome.different, *outcome.failed):
                print(f"  {problem}")
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
