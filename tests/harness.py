"""A user's working directory in which the real Snakefile runs, and in which faults can hit its runs.

`Project` is that directory. tests/stock.py makes directories that tests copy.
"""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from builders_workflow import ROOT

# Two runs, one a framework; of the inits each has another.
RUNS = {
    "fairseq": "books/generated/fairseq/pretrained/quick/seed0",
    "transformers": "books/generated/transformers/random/quick/seed0",
}
UPDATES = 40  # 24 reviews, 3 a batch, 5 epochs
PATIENCE = 600  # seconds that an event may take on a busy machine; on an idle one it takes a few
NEVER = {"interval": 3600, "max_share": 1.0}  # only where a signal asks for one
ALWAYS = {"interval": 0, "max_share": 1.0}  # after every update


@dataclass
class Project:
    """A folder in which Snakemake runs with the repository's Snakefile.

    Attributes:
        folder: the working directory.
        config: the overlay on config.yaml; None: none.
        results: the results folder; one outside `folder` is shared with other directories.
        faults: the folder of planned faults and of the journal of training processes.
    """

    folder: Path
    config: dict[str, Any] | None = None
    results: Path | None = None
    faults: Path | None = None

    def __post_init__(self) -> None:
        self.results = self.results or self.folder / "results"
        self.faults = self.faults or self.folder / "faults"

    def rows(self, path: str | Path) -> list[dict[str, str]]:
        """A CSV file below the project."""
        with open(self.folder / path, encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))

    # --- what goes wrong ---

    def plan(self, framework: str, *faults: dict[str, Any]) -> None:
        """The next training processes of a framework suffer these, one each.

        Args:
            framework: fairseq or transformers.
            faults: as workflow/faults/injected/sitecustomize.py describes them.
        """
        self.faults.mkdir(exist_ok=True)
        there = len(list(self.faults.glob(f"*-{framework}.*")))
        for number, fault in enumerate(faults, start=there):
            path = self.faults / f"{number:03d}-{framework}.json"
            path.write_text(json.dumps(fault), encoding="utf-8")

    def journal(self, event: str = "") -> list[dict[str, Any]]:
        """What training processes wrote down, of one kind of event or of all."""
        path = self.faults / "journal.jsonl"
        if not path.exists():
            return []
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [line for line in lines if line["event"].startswith(event)]

    def begun(self) -> list[int]:
        """After which update each training process began, in the order in which they began."""
        return [line["step"] for line in self.journal("begin")]

    def wait_for(self, event: str, process: subprocess.Popen, count: int = 1) -> list[dict[str, Any]]:
        """Wait until the journal has `count` such events, as long as Snakemake's `process` is at work."""
        for _ in patiently(process):
            found = self.journal(event)
            if len(found) >= count:
                return found
        raise AssertionError(f"no {event!r} in {self.journal()}{self.logs()}")

    def wait_for_logs(self, frameworks: Iterable[str], word: str, process: subprocess.Popen) -> None:
        """Wait until the log of each of these runs has a word, as long as `process` is at work."""
        for _ in patiently(process):
            if all(word in self.log(framework) for framework in frameworks):
                return
        raise AssertionError(f"no {word!r} in{self.logs()}")

    def wait_until_all_have_left(self) -> None:
        """Wait until no process of this directory's workflow is left."""
        for _ in patiently():
            if not self.processes():
                return
        raise AssertionError(f"processes {self.processes()} are still there")

    def go_on(self) -> None:
        """Release processes that hold, those to come as well."""
        (self.faults / "go_on").touch()

    # --- Snakemake ---

    def snakemake(
        self,
        *arguments: str,
        config: dict[str, Any] | None = None,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess:
        """Run Snakemake to its end, with one core unless `arguments` say otherwise.

        Args:
            config: in place of the project's overlay.
            prefix: a command that runs it, such as unshare's.
            environment: further variables.
        """
        return subprocess.run(
            [*prefix, *self._command(config or self.config), *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=1800,  # two minutes on an idle core; machines are shared
            env={**os.environ, "PYTHONPATH": "", **(environment or {})},
        )

    def log_of_snakemake(self) -> str:
        """The log file of the last Snakemake that ran jobs here: all of its messages, also untold ones."""
        return max((self.folder / ".snakemake/log").glob("*.log")).read_text(encoding="utf-8")

    def ran(self) -> set[str]:
        """Rules of the jobs that the last Snakemake ran."""
        return set(re.findall(r"^(?:local)?rule (\w+):", self.log_of_snakemake(), re.MULTILINE))

    def _command(self, config: dict[str, Any] | None, cores: int = 1) -> list[str]:
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
        command += ["--cores", str(cores)]
        if config is None:
            return command
        overlay = self.folder / "overlay.yaml"
        overlay.write_text(yaml.safe_dump(config, allow_unicode=True, sort_keys=False), encoding="utf-8")
        return [*command, "--configfile", str(overlay)]

    def command(self, *frameworks: str, options: tuple[str, ...] = ()) -> list[str]:
        """Snakemake's command line for the runs of these frameworks (all of RUNS, where none is named)."""
        targets = [
            os.path.relpath(self.run_folder(name) / "predictions.csv", self.folder)
            for name in frameworks or RUNS
        ]
        return [*self._command(self.config, cores=2), *options, "--", *targets]

    def start(
        self, *frameworks: str, options: tuple[str, ...] = (), prefix: tuple[str, ...] = ()
    ) -> subprocess.Popen:
        """Start Snakemake as a terminal does: in a session and process group of its own."""
        return self.popen([*prefix, *self.command(*frameworks, options=options)])

    def popen(self, command: list[str], stdout: Any = subprocess.PIPE) -> subprocess.Popen:
        """Start a command line of Snakemake whose training processes suffer what is planned."""
        self.faults.mkdir(exist_ok=True)
        path = str(Path(__file__).parent / "workflow/faults/injected")
        environment = {**os.environ, "PYTHONPATH": path, "SEEDBED_FAULTS": str(self.faults)}
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *frameworks: str, **more: Any) -> str:
        """Run Snakemake to its successful end; what it printed."""
        process = self.start(*frameworks, **more)
        out, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, out[-8000:] + self.logs()
        return out

    def processes(self) -> list[int]:
        """All processes that belong to this directory's workflow, whoever is their parent."""
        mark = f"SEEDBED_FAULTS={self.faults}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                alive = (folder / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
                if alive and mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                continue  # it ended meanwhile, or is another user's
        return found

    def kill_everything(self) -> None:
        """As when the machine loses its power."""
        for _ in patiently():
            if not (processes := self.processes()):
                return
            for process in processes:
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    continue

    # --- what is there ---

    def run_folder(self, framework: str) -> Path:
        """The published folder of a run."""
        return self.results / "small" / "runs" / RUNS[framework]

    def work_folder(self, framework: str) -> Path:
        """The work folder of a run."""
        return self.results / "small" / "work" / RUNS[framework]

    def states(self, framework: str) -> list[Path]:
        """Complete training checkpoints, oldest first."""
        return sorted((self.work_folder(framework) / "states").glob("*.state"))

    def log(self, framework: str) -> str:
        """The log of the last process of a run."""
        parts = RUNS[framework].split("/")
        path = self.results / "small" / "logs" / f"finetune_{framework}" / "/".join(parts[:2] + parts[3:])
        path = path.with_suffix(".log")
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def logs(self) -> str:
        """The logs of all runs, for a message."""
        paths = sorted((self.results / "small" / "logs").glob("finetune_*/**/*.log"))
        return "".join(f"\n=== {path}\n{path.read_text(encoding='utf-8')[-4000:]}" for path in paths)

    def record(self, framework: str) -> dict[str, Any]:
        """run.json of a run."""
        return json.loads((self.run_folder(framework) / "run.json").read_text(encoding="utf-8"))

    def resumed_at(self, framework: str) -> list[int]:
        """After which updates a run went on."""
        return [stop["step"] for stop in self.record(framework)["resumed"]]


def patiently(process: subprocess.Popen | None = None) -> Iterator[None]:
    """Poll an event: yields until PATIENCE is over or `process` has ended, then once more."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and (process is None or process.poll() is None):
        yield
        time.sleep(0.02)
    yield
    if process is not None and process.poll() is not None:
        raise AssertionError(f"Snakemake ended, {process.returncode}:\n{process.communicate()[0][-8000:]}")


def assert_whole(project: Project, reference: Project, *frameworks: str) -> None:
    """Nothing is lost and nothing is half-written.

    Predictions equal those of the uninterrupted run byte for byte, and so do the metrics but for their
    seconds; the run folder holds the same files, and nothing else is left: no part files, no work folder, no
    process.
    """
    for framework in frameworks or RUNS:
        here, there = project.run_folder(framework), reference.run_folder(framework)
        assert names(here) == names(there)
        assert (here / "predictions.csv").read_bytes() == (there / "predictions.csv").read_bytes()
        assert metrics(project, framework) == metrics(reference, framework)
        mine, other = project.record(framework), reference.record(framework)
        for key in ("selected", "validation", "test", "updates", "total_updates", "diverged"):
            assert mine[key] == other[key], key
        assert not project.work_folder(framework).exists(), names(project.work_folder(framework))
    assert not [path for path in project.results.rglob("*") if is_leftover(path)]
    assert not project.processes()


def names(folder: Path) -> list[str]:
    """The names of the files below a folder; those of event files differ by host and time."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted("events" if path.name.startswith("events.out") else str(path) for path in paths)


def metrics(project: Project, framework: str) -> list[dict[str, str]]:
    """metrics.csv without the seconds."""
    path = project.run_folder(framework) / "metrics.csv"
    rows = project.rows(str(path))
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def is_leftover(path: Path) -> bool:
    """What an interrupted write leaves."""
    return path.suffix in (".part", ".tmp", ".corrupt", ".old", ".state") or path.name.startswith(".nfs")


def copy(original: Project, folder: Path, **config: Any) -> Project:
    """A directory of its own with the same content and times, and with what Snakemake knows of it."""
    shutil.copytree(original.folder, folder, symlinks=True, copy_function=shutil.copy2, dirs_exist_ok=True)
    return Project(folder, config={**original.config, **config})


def succeeded(done: subprocess.CompletedProcess) -> subprocess.CompletedProcess:
    """Assert that Snakemake succeeded, and show what it said where it did not."""
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return done


def failed(done: subprocess.CompletedProcess) -> str:
    """Assert that Snakemake failed; all that it printed."""
    assert done.returncode != 0
    return done.stdout + done.stderr
