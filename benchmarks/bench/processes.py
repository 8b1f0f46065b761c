"""Processes that are measured: none outlives the benchmark, and one that fails is an error with its log."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from seedbed.core import files

ROOT = Path(__file__).resolve().parents[2]
CODE = ("scripts", "benchmarks/bench")
SCRIPT = ".snakemake/scripts/"  # Snakemake runs a copy of a rule's script from there
INTERVAL = 0.2  # seconds between two looks at Snakemake's processes
PATIENCE = 10  # seconds that a process gets to leave by itself
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


class BenchError(Exception):
    """What keeps the benchmark from going on, in words for people."""


@dataclass
class Usage:
    """What a process and all that it started used.

    Attributes:
        wall: seconds.
        cpu: CPU seconds of the process and of all its descendants that ended.
        snakemake: what `Watch` saw, where it was asked to.
    """

    wall: float = 0.0
    cpu: float = 0.0
    snakemake: "Watch | None" = None


def end_on_signals() -> None:
    """Have SIGTERM and SIGHUP end this process as Ctrl-C does: what it started is ended first."""

    def leave(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)


@contextlib.contextmanager
def started(command: Sequence[str], log: Path, **environment: str) -> Iterator[subprocess.Popen]:
    """A process in a session of its own, its output in `log`; on an error it and all that it started end."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w", encoding="utf-8") as stream:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=ROOT,
            env={**os.environ, **OFFLINE, **environment},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            kill_tree(process)


def kill_tree(process: subprocess.Popen) -> None:
    """End a process and its descendants: by request, after PATIENCE seconds by force."""
    if process.returncode is not None or process.poll() is not None:
        return
    found = [process.pid, *(child.pid for child in _descendants(process.pid))]
    alive = []
    for pid in found:
        with contextlib.suppress(psutil.Error):
            alive.append(psutil.Process(pid))
    for number in (signal.SIGTERM, signal.SIGKILL):
        for one in alive:
            with contextlib.suppress(psutil.Error):
                one.send_signal(number)
        process.poll()
        _, alive = psutil.wait_procs(alive, timeout=PATIENCE)
        if not alive:
            break
    process.wait()


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def run(command: Sequence[str], log: Path, watch: bool = False, **environment: str) -> Usage:
    """Run a command to its end.

    Args:
        command: the command line.
        log: where its output goes.
        watch: whether it is Snakemake, whose own processes are told from those of its scripts.
        environment: variables beside those of this process.

    Raises:
        BenchError: it failed.
    """
    usage = Usage(snakemake=Watch() if watch else None)
    begin = time.perf_counter()
    with started(command, log, **environment) as process:
        while True:
            done, status, used = os.wait4(process.pid, os.WNOHANG)
            if done:
                break
            if usage.snakemake:
                usage.snakemake.look(process.pid)
            time.sleep(INTERVAL if watch else 0.02)
        process.returncode = os.waitstatus_to_exitcode(status)
    usage.wall, usage.cpu = time.perf_counter() - begin, used.ru_utime + used.ru_stime
    if usage.snakemake:
        usage.snakemake.end(usage)
    check(process.returncode, command, log)
    return usage


def run_all(jobs: Sequence[tuple[Sequence[str], Path]], at_once: int, done: Callable[[int, float], None],
            **environment: str) -> None:  # fmt: skip
    """Run commands, so many at a time.

    Args:
        jobs: commands and their logs.
        at_once: how many at a time.
        done: told a job's place and its wall seconds when it has ended well.
        environment: variables beside those of this process.

    Raises:
        BenchError: one failed; the others are ended.
    """
    waiting, running = list(enumerate(jobs)), {}
    with contextlib.ExitStack() as stack:
        while waiting or running:
            while waiting and len(running) < at_once:
                place, (command, log) = waiting.pop(0)
                running[place] = (stack.enter_context(started(command, log, **environment)), time.monotonic())
            time.sleep(0.02)
            for place in [place for place, (process, _) in running.items() if process.poll() is not None]:
                process, begin = running.pop(place)
                check(process.returncode, *jobs[place])
                done(place, time.monotonic() - begin)


def check(code: int, command: Sequence[str], log: Path) -> None:
    """Raise a BenchError that shows the end of the log, unless the exit code is 0."""
    if code:
        end = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-40:])
        shown = " ".join(map(str, command))
        raise BenchError(f"exit code {code} of {shown[:400]}\nthe end of {log}:\n{end}")


@dataclass
class Watch:
    """Snakemake's processes over time: its own, and those of the scripts that it started.

    A process is a script's if Snakemake runs it from its folder of scripts, or if such a process started it.
    Snakemake's own are all others: the main process, and one a job that starts the script.

    Attributes:
        scripts: name, begin and end (seconds of the system's clock) and CPU seconds of every script. The end
            is the first look that did not see it any more, at most INTERVAL too late.
        working: seconds in which at least one script's process was there, up to the last look that saw it.
        own_cpu: CPU seconds of Snakemake's own processes.
        own_cpu_working: the part of it while a script was at work.
    """

    scripts: list[tuple[str, float, float, float]] = field(default_factory=list)
    working: float = 0.0
    own_cpu: float = 0.0
    own_cpu_working: float = 0.0
    _seen: dict[int, dict[str, Any]] = field(default_factory=dict)

    def look(self, pid: int) -> None:
        """Look at the processes that there are."""
        now, own = time.time(), 0.0
        found = []
        with contextlib.suppress(psutil.Error):
            found = [psutil.Process(pid), *_descendants(pid)]
        active = False
        for process in found:
            with contextlib.suppress(psutil.Error), process.oneshot():
                if process.pid not in self._seen:
                    self._seen[process.pid] = {"cpu": 0.0, "begin": began(process)}
                seen = self._seen[process.pid]
                if not seen.get("script"):  # a shell may have become another program since
                    parent = self._seen.get(process.ppid(), {})
                    seen["script"] = _script(process) or parent.get("script")
                    if seen["script"]:
                        seen["root"] = parent.get("root", process.pid)
                times = process.cpu_times()
                spent = times.user + times.system
                if seen["script"]:
                    active = True
                else:
                    own += spent - seen["cpu"]
                seen["cpu"], seen["end"] = spent, now
        there = {process.pid for process in found}
        for pid, seen in self._seen.items():
            if pid not in there:
                seen.setdefault("gone", now)
        if active:
            self.own_cpu_working += own

    def end(self, usage: Usage) -> None:
        """Sum up, once the process has ended; CPU seconds that no look saw count as Snakemake's own."""
        now = time.time()
        scripts = [seen for seen in self._seen.values() if seen.get("script")]
        spent: dict[int, float] = {}
        for seen in scripts:
            spent[seen["root"]] = spent.get(seen["root"], 0.0) + seen["cpu"]
        self.scripts = sorted(
            (seen["script"], seen["begin"], seen.get("gone", now), spent[pid])
            for pid, seen in self._seen.items()
            if seen.get("root") == pid
        )
        self.working = min(usage.wall, covered([(seen["begin"], seen["end"]) for seen in scripts]))
        self.own_cpu = max(0.0, usage.cpu - sum(seen["cpu"] for seen in scripts))
        self.own_cpu_working = min(self.own_cpu_working, self.own_cpu)

    def own_seconds(self, wall: float, cores: int) -> float:
        """Snakemake's own share of the wall time, in seconds.

        The time in which no script works, and what Snakemake's processes take from scripts that do: their
        CPU seconds in that time, divided by the number of cores.
        """
        return wall - self.working + self.own_cpu_working / cores


def began(process: psutil.Process) -> float:
    """When a process began, in seconds of the system's clock.

    On Linux psutil says so up to a second too early: it knows the boot's time in whole seconds.
    """
    try:
        stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux, or it has ended
        return process.create_time()
    ticks = stat.rpartition(")")[2].split()[19]  # the name before it may hold anything
    uptime = time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.time() - uptime + int(ticks) / os.sysconf("SC_CLK_TCK")


def _script(process: psutil.Process) -> str:
    """The name of the rule's script that a process runs, else nothing."""
    for part in process.cmdline()[1:3]:
        _, found, name = part.partition(SCRIPT)
        if found:
            return name.partition(".")[2].removesuffix(".py")  # tmpabcdef.NAME.py
    return ""


def covered(spans: Sequence[tuple[float, float]]) -> float:
    """Seconds that at least one of the spans (begin, end) covers."""
    total, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def code_of() -> str:
    """A short hash of what is measured and of what measures it."""
    paths = sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py"))
    return files.fingerprint([(str(path.relative_to(ROOT)), path.read_text("utf-8")) for path in paths])


def describe_machine(python: str = sys.executable) -> dict[str, Any]:
    """The machine, the versions of packages and the code, as Seedbed's runs record them, and the memory.

    There are no names of people or places in it.
    """
    code = (
        "import json, sys; sys.path.insert(0, 'scripts'); from seedbed.training import hardware; "
        "told = {**hardware.describe_hardware(), 'versions': hardware.package_versions()}; "
        "print(json.dumps(told))"
    )
    told = subprocess.run([python, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    if told.returncode:
        raise BenchError(f"the machine cannot be described:\n{told.stderr[-2000:]}")
    machine = json.loads(told.stdout.splitlines()[-1])
    machine.pop("gpu_id", None)
    machine["code"] = code_of()
    machine["memory_gib"] = round(psutil.virtual_memory().total / 2**30, 1)
    machine["usable_cpus"] = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    )
    machine["load_before"] = round(os.getloadavg()[0], 2)
    return machine
