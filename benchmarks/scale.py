"""What many runs cost: the graph of 10,000 jobs, the files of a run, a cluster that works through 1,000 runs.

    python benchmarks/scale.py dag FOLDER [--runs 10000]
    python benchmarks/scale.py files FOLDER
    python benchmarks/scale.py status FOLDER [--runs 1000]
    python benchmarks/scale.py cluster FOLDER [--runs 1000] [--batch 10] [--profile profiles/slurm]

FOLDER becomes a working directory with the repository's Snakefile; nothing else is written.

dag: seconds and peak memory of Snakemake's process for parsing, for a dry-run of everything, for a dry-run
where everything is there (as empty files), and for scheduling and recording all jobs (Snakemake's executor
that only touches files, without its pause of 0.1 s a job).

files: the files that one run leaves, and the calls that make, rename, link or remove a file or folder while
Snakemake makes that run, by place (needs strace).

status: seconds of `seedbed status` and of `make status` for made-up files of runs, of which 60% are done, 16
are at work (with real locks), and 1% have failed; FOLDER must not exist.

cluster: the embedded experiment with as many seeds as it takes, submitted to Slurm by the profile; where this
host belongs to no cluster, to a real Slurm on this host with invented nodes and GPUs (tests/slurm). Rules,
resources, claims, publication and all that Snakemake does for a job are the real ones. The training is not: a
stand-in sleeps for --seconds and writes the files of a run folder (benchmarks/scale/stand_in): importing
PyTorch a thousand times would take hours of CPU time.
"""

import argparse
import collections
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNS_OF_A_SEED = 4  # 2 frameworks x 2 inits
TOUCH = """
import sys
import snakemake.executors.touch
from snakemake.cli import main
snakemake.executors.touch.Executor.SLEEPING_TIME = 0
main(sys.argv[1:])
"""


def work_in(folder: Path, runs: int, **config: object) -> None:
    """Make `folder` a working directory whose experiment has as many runs, in scale.yaml."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "config.yaml", folder)
    for name in ("resources", "profiles"):
        if not (folder / name).exists():
            (folder / name).symlink_to(ROOT / name)
    seeds = list(range(-(-runs // RUNS_OF_A_SEED)))
    overlay = {"experiment": "scale", "grid": {"seeds": seeds}, **config}
    (folder / "scale.yaml").write_text(json.dumps(overlay), encoding="utf-8")  # JSON is YAML


def snakemake(folder: Path, *options: str, program: tuple[str, ...] = ("-m", "snakemake")) -> list[str]:
    """Snakemake's command line for the experiment in `folder`."""
    command = [sys.executable, *program, "--snakefile", str(ROOT / "Snakefile")]
    return [*command, "--configfile", "scale.yaml", *options]


def measure(what: str, folder: Path, command: list[str], expected: int = 0, **environment: str) -> float:
    """Run a command, print its seconds and the peak memory of its process; what it says goes to a file.

    Any other exit code than the expected one ends the benchmark.
    """
    output = folder / f"{re.sub(r'[^a-z]+', '-', what.lower())}.log"
    start = time.monotonic()
    with open(output, "w", encoding="utf-8") as stream:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": "", **environment},
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - start
    worked = used.ru_utime + used.ru_stime
    peak = used.ru_maxrss / 1024
    print(f"{what}: {seconds:.2f} s ({worked:.2f} s of one core), peak memory {peak:.0f} MiB", flush=True)
    if process.returncode != expected:
        sys.exit(
            f"exit code {process.returncode}; see {output}:\n{output.read_text(encoding='utf-8')[-3000:]}"
        )
    return seconds


# --- the graph ---


def measure_dag(asked: argparse.Namespace) -> None:
    """Parse, dry-run, dry-run where all is there, schedule."""
    folder = asked.folder
    work_in(folder, asked.runs)
    local = ("--workflow-profile", "none", "--cores", "16")
    measure("parse", folder, snakemake(folder, *local, "--list-rules"))
    measure("dry-run", folder, snakemake(folder, *local, "--dry-run"))
    print(f"{make_empty_outputs(folder, folder / 'dry-run.log'):,} outputs", flush=True)
    measure("dry-run, all is there", folder, snakemake(folder, *local, "--dry-run"))
    touch = snakemake(folder, *local, "--touch", "--forceall", program=("-c", TOUCH))
    measure("schedule", folder, [*touch, "--scheduler", asked.scheduler])


def make_empty_outputs(folder: Path, dry_run: Path) -> int:
    """Make the outputs that a dry-run names, empty; how many there are."""
    count = 0
    for line in dry_run.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"    output: (.*)", line):
            for name in match[1].split(", "):
                path = folder / name.split(" (")[0]
                if path.name in ("fingerprint.json", "statistics.json"):
                    continue  # they are read while the workflow is parsed
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch() if path.suffix else path.mkdir(exist_ok=True)
                count += 1
    return count


# --- the files of one run ---

CALLS = (
    "openat,open,creat,rename,renameat,renameat2,link,linkat,"
    "symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir"
)


def count_files(asked: argparse.Namespace) -> None:
    """Run one run under strace, and count what it leaves and what it does."""
    folder = asked.folder
    work_in(folder, RUNS_OF_A_SEED)
    local = ("--workflow-profile", "none", "--cores", "2")
    measure("prepare", folder, snakemake(folder, *local, "--", *PREPARED))
    for framework in ("fairseq", "transformers"):
        run = f"reviews_fr/roberta_tiny_fr/{framework}/pretrained/demo/seed0"
        before = set(all_files(folder))
        trace = folder / f"{framework}.strace"
        command = snakemake(folder, *local, "--", f"results/scale/runs/{run}/predictions.csv")
        measure(
            f"one run, {framework}",
            folder,
            ["strace", "-f", "-y", "-o", str(trace), "-e", f"trace={CALLS}", *command],
        )
        left = sorted(str(path.relative_to(folder)) for path in set(all_files(folder)) - before)
        print(f"{framework}: {len(left)} files are left:", *left, sep="\n  ")
        print(f"{framework}: calls that change a folder:")
        for (place, call), number in sorted(changes(trace, folder).items()):
            print(f"  {number:5d} {call:8s} {place}")


PREPARED = (  # what the runs of the embedded experiment are made from
    "results/data/reviews_fr/roberta_tiny_fr/parity.json",
    "results/data/reviews_fr/roberta_tiny_fr/binarized/binarized.json",
    "results/models/roberta_tiny_fr/fairseq/model.pt",
)


def all_files(folder: Path) -> list[Path]:
    """Every file below a folder but the traces of this benchmark and Snakemake's log of the session."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in found if path.parent != folder and ".snakemake/log" not in str(path)]


def changes(trace: Path, folder: Path) -> collections.Counter:
    """Successful calls that make, rename, link or remove something below the folder, by place and call."""
    counted: collections.Counter = collections.Counter()
    begun: dict[str, str] = {}  # calls that strace shows in two parts, as another process's came between
    for line in trace.read_text(encoding="utf-8", errors="replace").splitlines():
        process, _, said = line.partition(" ")
        said = said.strip()
        if said.endswith("<unfinished ...>"):
            begun[process] = said.removesuffix("<unfinished ...>")
            continue
        if said.startswith("<..."):
            said = begun.pop(process, "") + said.partition("resumed>")[2]
        match = re.match(r"(\w+)\((.*)\) += (\d+)", said)
        if not match or (match[1] in ("openat", "open") and "O_CREAT" not in match[2]):
            continue
        names = re.findall(r'"([^"]*)"', match[2])
        bases = re.findall(r"<([^>]*)>", match[2])
        path = Path(*bases[:1] or [folder], names[0]) if names else folder
        if not path.is_relative_to(folder):
            continue
        parts = path.relative_to(folder).parts
        place = "/".join(parts[: 3 if parts[0] == "results" else 2])
        call = "open" if match[1] in ("openat", "open") else re.sub(r"(at2?)$", "", match[1])
        counted[place, call] += 1
    return counted


# --- how far it is ---


def measure_status(asked: argparse.Namespace) -> None:
    """Make the files of runs up, and ask how far they are."""
    sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]
    from builders_watch import Watched

    asked.folder.mkdir(parents=True)
    made = Watched(asked.folder, grid={"seeds": list(range(-(-asked.runs // RUNS_OF_A_SEED)))})
    made.begin()
    made.workflow()
    total = len(made.runs)
    done, failed = int(0.6 * total), int(0.01 * total)
    for run in made.runs[:done]:
        made.finish(run)
    for run in made.runs[done : done + failed]:
        made.write_log(run, "2026-01-01 00:00:00,000 ERROR   the loss is not finite\n" * 100)
    for run in made.runs[done + failed :][:16]:
        made.hold(run)
    print(f"{total:,} runs", flush=True)
    environment = {"PYTHONPATH": str(ROOT / "scripts")}
    status = [sys.executable, "-m", "seedbed", "status", str(made.folder)]
    make = ["make", "--no-print-directory", "-C", str(ROOT), "status", f"RESULTS={made.folder}"]
    for name, command in (("seedbed status", status), ("seedbed status --json", [*status, "--json"])):
        measure(name, asked.folder, command, expected=1, **environment)
    measure("make status", asked.folder, make, expected=2)  # make's own code where a command has failed
    made.end()


# --- a cluster ---


def measure_cluster(asked: argparse.Namespace) -> None:
    """Prepare what the runs share, then let the cluster work through all runs."""
    folder = asked.folder
    runs = RUNS_OF_A_SEED * -(-asked.runs // RUNS_OF_A_SEED)
    work_in(folder, runs, batches={"runs": asked.batch, "at_once": 1})
    local = ("--workflow-profile", "none", "--cores", "2")
    measure("prepare", folder, snakemake(folder, *local, "--", *PREPARED))
    options = ("--cores", str(asked.jobs))
    if asked.profile:
        options = ("--profile", str(ROOT / asked.profile))
    command = snakemake(
        folder, *options, *asked.option, "--until", "finetune_fairseq", "finetune_transformers"
    )
    stand_in = str(ROOT / "benchmarks" / "scale" / "stand_in")
    what = f"{runs} runs in batches of {asked.batch}"
    with cluster() if asked.profile else contextlib.nullcontext():
        busy = busy_seconds()
        seconds = measure(what, folder, command, PYTHONPATH=stand_in, SEEDBED_STAND_IN=str(asked.seconds))
        busy = busy_seconds() - busy
    published = len(list((folder / "results" / "scale" / "runs").rglob("run.json")))
    if published != runs:
        sys.exit(f"{published} of {runs} runs are published")
    jobs = -(-runs // asked.batch)
    print(f"{runs / seconds * 60:.1f} runs a minute; a job of {asked.batch} run(s): {seconds / jobs:.2f} s")
    print(f"a job of {asked.batch} run(s) takes {busy / jobs:.2f} CPU seconds, if nothing else ran here")


def busy_seconds() -> float:
    """CPU seconds of all processes of this machine since it started; 0 where /proc does not tell."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
    except OSError:
        return 0.0
    user, nice, system, _, _, interrupts, soft = map(int, fields[:7])
    return (user + nice + system + interrupts + soft) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def cluster() -> Iterator[None]:
    """The cluster that this host belongs to, else a simulated one as long as it is needed (as root)."""
    if subprocess.run(["sinfo"], capture_output=True, check=False).returncode == 0:
        yield
        return
    sys.path.insert(0, str(ROOT / "tests" / "slurm"))
    from cluster import running

    with running():
        yield


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_subparsers(required=True, metavar="dag | files | status | cluster")
    for name, function, runs in (
        ("dag", measure_dag, 10_000),
        ("files", count_files, 1),
        ("status", measure_status, 1_000),
        ("cluster", measure_cluster, 1_000),
    ):
        kind = kinds.add_parser(name)
        kind.add_argument("folder", type=Path)
        kind.add_argument("--runs", type=int, default=runs)
        kind.set_defaults(function=function)
        if name == "dag":
            kind.add_argument(
                "--scheduler", default="greedy", help="Snakemake's: greedy (the default here) or ilp"
            )
        if name == "cluster":
            kind.add_argument("--batch", type=int, default=1, help="runs of one job (1)")
            kind.add_argument("--profile", default="profiles/slurm", help="'' runs on this host instead")
            kind.add_argument("--jobs", type=int, default=2, help="jobs at a time, without a profile (2)")
            kind.add_argument("--seconds", type=float, default=1.0, help="of sleep in place of training (1)")
            kind.add_argument(
                "--option", action="append", default=[], help="further option of Snakemake; repeatable"
            )
    asked = parser.parse_args()
    asked.folder = asked.folder.resolve()
    asked.function(asked)


if __name__ == "__main__":
    main()
