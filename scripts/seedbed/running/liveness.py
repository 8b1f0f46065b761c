"""Whether a process is still alive, on this host or another, without comparing clocks.

A process that wants to be found signs a file (`Presence`). Others judge it by what they can see: on the same
kernel by /proc, in Slurm by squeue, and anywhere else by its heart: its file changes every BEAT seconds, and
one that has not changed while this process watched for SILENCE seconds of its own monotonic clock is dead.
"""

import contextlib
import errno
import functools
import json
import os
import shutil
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

BEAT = 15.0  # seconds between two signs of life: each costs one small request to the file system
SILENCE = 90.0  # seconds without one: six are missing
UNKNOWN = "unknown"
ASK_SLURM = 30.0  # seconds between two questions to Slurm's controller, which serves everybody
INITIAL_NAMESPACE = "pid:[4026531836]"  # of processes outside of any container
# what file systems without hard links answer
NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
# squeue's states of a job whose processes exist
RUNNING = {"RUNNING", "SUSPENDED", "STOPPED", "SIGNALING", "COMPLETING", "RESIZING", "STAGE_OUT"}


@dataclass(frozen=True)
class Process:
    """A process, told apart from all others: pids are used again, and hosts share names.

    Attributes:
        host: name of the host, for people.
        machine: /etc/machine-id; it survives a restart.
        boot: the kernel's boot id.
        namespace: the pid namespace; containers on one kernel have their own pids.
        pid: process id.
        started: when the process started, in the kernel's own count.
        slurm_job, slurm_restart, slurm_cluster: of the Slurm job it belongs to; empty outside of one.
        since: wall-clock time, for people.
        doing: what it does, for people.
    """

    host: str
    machine: str
    boot: str
    namespace: str
    pid: int
    started: str
    slurm_job: str = ""
    slurm_restart: str = ""
    slurm_cluster: str = ""
    since: str = ""
    doing: str = ""

    @property
    def is_unknown(self) -> bool:
        """Whether its file could not be read (`read`)."""
        return self.boot == UNKNOWN

    def __str__(self) -> str:
        job = f" (Slurm job {self.slurm_job})" if self.slurm_job else ""
        doing = f", {self.doing}" if self.doing else ""
        return f"process {self.pid} on host {self.host}{job}, since {self.since}{doing}"


def this_process(doing: str = "") -> Process:
    """The process that asks."""
    pid = os.getpid()
    return Process(
        host=socket.gethostname(),
        machine=_read("/etc/machine-id"),
        boot=_boot(),
        namespace=_namespace(),
        pid=pid,
        started=started(pid) or "",
        slurm_job=os.environ.get("SLURM_JOB_ID", ""),
        slurm_restart=os.environ.get("SLURM_RESTART_COUNT", "0") if "SLURM_JOB_ID" in os.environ else "",
        slurm_cluster=os.environ.get("SLURM_CLUSTER_NAME", ""),
        since=time.strftime("%Y-%m-%d %H:%M:%S %Z"),
        doing=doing,
    )


def _read(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text(encoding="utf-8").strip()
    return ""


@functools.cache
def _boot() -> str:
    return _read("/proc/sys/kernel/random/boot_id") or _answer("sysctl", "-n", "kern.bootsessionuuid")


def _namespace() -> str:
    with contextlib.suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""


def started(pid: int) -> str | None:
    """When a process of this kernel started: clock ticks since boot; None where there is none that lives."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
        return _answer("ps", "-o", "lstart=", "-p", str(pid)) or None
    except ProcessLookupError:
        return None
    values = stat.rpartition(")")[2].split()  # the name before it may hold anything
    return None if values[0] in "ZX" else values[19]


def _answer(*command: str) -> str:
    """What a program prints; empty where it fails or is not there."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    return ""


# --- judging ---


@dataclass(frozen=True)
class Verdict:
    """Whether a process is alive (None: cannot be told from here), and how that is known."""

    alive: bool | None
    why: str


def judge(process: Process) -> Verdict:
    """What kernel and Slurm say of a process; nothing is waited for."""
    here = this_process()
    if process.boot == here.boot and process.namespace == here.namespace:
        return _judge_by_kernel(process)
    outside = process.namespace == here.namespace == INITIAL_NAMESPACE
    if outside and (process.host, process.machine) == (here.host, here.machine):
        return Verdict(False, f"host {here.host} was restarted since")
    return _judge_by_slurm(process, here)


def _judge_by_kernel(process: Process) -> Verdict:
    found = started(process.pid)
    if found == process.started:
        return Verdict(True, "it is running")
    if found is None and _is_hidden(process.pid):
        return Verdict(None, "another user's, whose processes are hidden")
    return Verdict(False, "another process has its number" if found else "it is gone")


def _is_hidden(pid: int) -> bool:
    """Whether there is a process that /proc does not show (its option hidepid)."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        pass
    return False


def _judge_by_slurm(process: Process, here: Process) -> Verdict:
    unknown = Verdict(None, "it cannot be seen from here")
    if not process.slurm_job or shutil.which("squeue") is None:
        return unknown
    cluster = here.slurm_cluster or (_local_cluster() if process.slurm_cluster else "")
    if process.slurm_cluster and cluster and process.slurm_cluster != cluster:
        return unknown  # another cluster has other jobs under the same numbers
    same_job = (process.slurm_job, process.slurm_cluster) == (here.slurm_job, here.slurm_cluster)
    if same_job:
        # steps that srun starts are not told how often their job was restarted: its nodes tell as well
        other_host = process.boot != here.boot  # else another container of this very job
        if process.slurm_restart != here.slurm_restart or (other_host and _job_has_one_node()):
            return Verdict(False, f"Slurm has restarted job {process.slurm_job} since")
        if "SLURM_RESTART_COUNT" not in os.environ:
            return unknown  # on another of the job's nodes, or before it was restarted
    states = _states(process.slurm_job)
    if states is None:
        return unknown
    if set(states) & RUNNING:
        return Verdict(True, f"Slurm says of job {process.slurm_job}: {', '.join(states)}")
    if process.slurm_cluster and not cluster:
        return unknown  # it may be another cluster's
    return Verdict(
        False, f"Slurm says of job {process.slurm_job}: {', '.join(states) or 'unknown, so it is over'}"
    )


def _job_has_one_node() -> bool:
    """Whether all of this Slurm job's processes are on this host."""
    # inside a step the first may be the step's nodes, the second is always the job's
    nodes = [os.environ.get(name) for name in ("SLURM_JOB_NODELIST", "SLURM_NODELIST")]
    known = [node for node in nodes if node]
    return bool(known) and not any(set(node) & set("[,") for node in known)


@functools.cache
def _local_cluster() -> str:
    """The name of the cluster that squeue asks."""
    for line in _answer("scontrol", "show", "config").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "ClusterName":
            return value.strip()
    return ""


def _states(job: str) -> list[str] | None:
    """squeue's states of a job; empty where Slurm no longer knows it, None where Slurm does not answer."""
    command = ["squeue", "-h", "-j", job, "-o", "%T"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode == 0:
        return done.stdout.split()
    return [] if "Invalid job id" in done.stderr else None


class Watch:
    """Judges one signed file again and again, by its heart where nothing else tells."""

    def __init__(self, path: Path, process: Process):
        self.path, self.process = path, process
        self._mark: int | None = None
        self._since = time.monotonic()
        self._asked: tuple[float, Verdict] | None = None

    def verdict(self) -> Verdict:
        """Whether the process is alive; None until it has shown a sign of life or SILENCE is over."""
        verdict = self._judge()
        if verdict.alive is not None:
            return verdict
        now, mark = time.monotonic(), _mark(self.path)
        if self._mark is None or mark != self._mark:
            alive = None if self._mark is None else True
            self._mark, self._since = mark, now
            return Verdict(alive, "it shows signs of life")
        if now - self._since > SILENCE:
            return Verdict(False, f"it showed no sign of life for {SILENCE:.0f} s")
        return Verdict(None, f"watching for a sign of life, for {SILENCE:.0f} s")

    def _judge(self) -> Verdict:
        if not self.process.slurm_job or self.process.boot == _boot():
            return judge(self.process)
        now = time.monotonic()
        if self._asked is None or now - self._asked[0] > ASK_SLURM:
            self._asked = now, judge(self.process)
        return self._asked[1]


def _mark(path: Path) -> int:
    """The file's time, which its owner sets; opening it makes a network file system ask its server."""
    try:
        with open(path, "rb") as stream:
            return os.fstat(stream.fileno()).st_mtime_ns
    except OSError:
        return -1


# --- being found ---


class Presence:
    """A file that says that this process is there, and its heart.

    Attributes:
        path: the file.
        lost: whether somebody removed the file, or `still` said that it no longer counts.

    Args:
        path: the file.
        still: whether the file still counts.
        when_lost: called once, from whichever thread notices the loss.
    """

    def __init__(
        self,
        path: Path,
        still: Callable[[], bool] = lambda: True,
        when_lost: Callable[[], None] = lambda: None,
    ):
        self.path, self.lost, self._still, self._when_lost = path, False, still, when_lost
        self._began = time.time_ns(), time.monotonic_ns()
        _heart.add(self)

    def beat(self) -> None:
        """Change the file's time; forward, whatever the wall clock does."""
        if self.lost:
            return
        stamp = self._began[0] + time.monotonic_ns() - self._began[1]
        try:
            os.utime(self.path, ns=(stamp, stamp))
            self.lost = not self._still()
        except FileNotFoundError:
            self.lost = True
        except OSError:
            pass  # a network that stumbles is tried again at the next beat
        if self.lost:
            self._when_lost()

    def end(self, remove: bool = True) -> None:
        """Remove the file, unless it is another's by now."""
        _heart.discard(self)
        if remove:
            with contextlib.suppress(OSError):
                self.path.unlink()


class _Heart:
    """One thread for all presences of the process."""

    def __init__(self) -> None:
        self._presences: set[Presence] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()

    def add(self, presence: Presence) -> None:
        with self._lock:
            self._presences.add(presence)
            if self._thread is None or not self._thread.is_alive():  # a fork has no threads
                self._thread = threading.Thread(target=self._run, name="heart", daemon=True)
                self._thread.start()

    def discard(self, presence: Presence) -> None:
        with self._lock:
            self._presences.discard(presence)

    def _run(self) -> None:
        while not self._wake.wait(BEAT):
            with self._lock:
                presences = list(self._presences)
            for presence in presences:
                presence.beat()


_heart = _Heart()


def sign(path: Path, process: Process) -> bool:
    """Create a signed file, whole at once; False where the name is taken.

    Raises:
        OSError: it cannot be written.
    """
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    try:
        with open(descriptor, "w", encoding="utf-8") as stream:
            json.dump(asdict(process), stream)
        return _give_name(part, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            part.unlink()


def _give_name(part: Path, path: Path) -> bool:
    try:
        os.link(part, path)
        return True
    except FileExistsError:
        # over a network, a link that was made may be reported as one that could not
        return part.stat().st_nlink == 2 and part.samefile(path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    with open(descriptor, "wb") as stream:
        stream.write(part.read_bytes())
    return True


def read(path: Path) -> Process | None:
    """Who signed a file; None where it is gone. One that cannot be read is nobody's, known by its heart."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        known = {field.name for field in fields(Process)}
        return Process(**{key: value for key, value in content.items() if key in known})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, AttributeError):
        return Process(UNKNOWN, "", UNKNOWN, "", 0, "", since="an unknown time")
