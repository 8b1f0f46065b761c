"""A real Slurm on this host for the tests: two nodes with stand-ins for GPUs, a database, partitions.

Several slurmd run on one host, each a node that claims more cores and memory than there are. A GPU is a
device node that is another /dev/null: Slurm gives jobs CUDA_VISIBLE_DEVICES for it as for a real one. All
daemons listen on 127.0.0.1, and all that they write lies in one folder. Root is needed, systemd is not.

For its jobs each node is a host of its own, with a name and a boot id that no other has: whether a process on
it is alive is then asked of Slurm, as on a real cluster, and not seen in /proc. In a container that allows no
namespaces, the nodes remain one host.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

# The step inside a job's allocation gets no SLURM_CONF from the plugin: it looks where Slurm does by default.
ETC = Path("/etc/slurm")
FILES = ("slurm.conf", "gres.conf", "cgroup.conf")
LOCK = Path("/run/seedbed-slurm.lock")  # one cluster a host at a time
NODES = ("gpu1", "gpu2")
GPUS = 2  # of a node
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
PATIENCE = 120  # seconds that a daemon may take to answer on a busy machine

SLURM_CONF = """\
ClusterName=seedbed
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
# cred_expire: how long a requeued or preempted job waits until it may start again; 120 s by default
AuthInfo=socket={folder}/run/munge.sock,cred_expire=5
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/spool/ctld
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
MpiDefault=none
SwitchType=switch/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
# without control groups: jobs that take more memory than they asked for are killed all the same
JobAcctGatherParams=OverMemoryKill
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
DefMemPerCPU=100
ReturnToService=2
SlurmdTimeout=60
# seconds between SIGTERM and SIGKILL; 30 is Slurm's default
KillWait=30
MinJobAge=300
JobRequeue=1
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,bf_resolution=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd}
# path of munge's socket for talks with slurmdbd; AuthInfo is not used there
AccountingStoragePass={folder}/run/munge.sock
AccountingStorageTRES=gres/gpu
AccountingStoreFlags=job_comment
NodeName=DEFAULT CPUs=8 RealMemory=32000 Gres=gpu:a100:{gpus}
NodeName=gpu1 NodeHostname={host} NodeAddr=127.0.0.1 Port={gpu1}
NodeName=gpu2 NodeHostname={host} NodeAddr=127.0.0.1 Port={gpu2}
PartitionName=gpu Nodes=gpu1,gpu2 Default=YES DefaultTime=60 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=urgent Nodes=gpu1,gpu2 DefaultTime=60 PriorityTier=10 PreemptMode=OFF
"""

MY_CNF = """\
[mariadbd]
user=root
datadir={folder}/db/data
socket={folder}/run/mysqld.sock
pid-file={folder}/run/mariadbd.pid
log-error={folder}/log/mariadbd.log
skip-networking
skip-log-bin
performance-schema=off
innodb_buffer_pool_size=64M
innodb_log_file_size=32M
innodb_lock_wait_timeout=900
innodb_flush_log_at_trx_commit=0
innodb_flush_method=nosync
"""

DATABASE = """\
CREATE DATABASE slurm_acct_db;
CREATE USER 'slurm'@'localhost' IDENTIFIED BY 'slurm';
GRANT ALL ON slurm_acct_db.* TO 'slurm'@'localhost';
"""

SLURMDBD_CONF = """\
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd}
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.sock
SlurmUser=root
CommunicationParameters=NoInAddrAny
LogFile={folder}/log/slurmdbd.log
PidFile={folder}/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
"""


class Cluster:
    """The cluster of a folder; `start` and `stop` it, or use `running`.

    Attributes:
        folder: all its files.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._said = ""  # the last command's errors
        host = socket.gethostname().partition(".")[0]
        ports = dict(zip(("ctld", "dbd", *NODES), _free_ports(2 + len(NODES)), strict=True))
        self._values = {"folder": folder, "host": host, "gpus": GPUS, **ports}
        self._environment = {
            **os.environ,
            "PATH": f"{os.environ['PATH']}:{SBIN}",
            "SLURM_CONF": str(folder / "etc/slurm.conf"),  # slurmdbd.conf is looked for beside it
            # where libmariadb looks for the socket of "localhost"
            "MYSQL_UNIX_PORT": str(folder / "run/mysqld.sock"),
        }

    # --- asking Slurm ---

    def run(self, *command: str | Path, check: bool = True) -> str:
        """What a command prints, with the daemons' folders on its PATH.

        Raises:
            AssertionError: it fails, and `check` is on.
        """
        done = self._done(*command)
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def _done(self, *command: str | Path) -> subprocess.CompletedProcess:
        done = subprocess.run(
            list(map(str, command)), env=self._environment, capture_output=True, text=True, timeout=PATIENCE
        )
        self._said = done.stderr
        return done

    def accounts(self, workdir: Path) -> list[dict[str, str]]:
        """Slurm's accounting of the jobs submitted in a folder, all of which have ended; as `sacct` names it.

        A job that was started anew under its number has a row for each time.
        """
        fields = "JobIDRaw,Comment,State,ReqMem,Timelimit,AllocTRES,ElapsedRaw,NodeList,WorkDir"
        command = ("sacct", "-X", "--parsable2", "--duplicates", f"--format={fields}", "--starttime=now-1day")
        rows: list[dict[str, str]] = []

        def ended() -> bool:
            header, *lines = self.run(*command).splitlines()
            found = (dict(zip(header.split("|"), line.split("|"), strict=True)) for line in lines)
            rows[:] = [row for row in found if row["WorkDir"] == str(workdir)]
            return bool(rows) and all(row["State"] not in ("RUNNING", "PENDING", "REQUEUED") for row in rows)

        # the daemon of the accounting hears of a job's end a moment later
        self.wait(ended, f"no end of all jobs of {workdir} in the accounting")
        return rows

    def jobs(self, *states: str) -> dict[str, str]:
        """{id: comment} of the jobs in the queue in any of these states (RUNNING, PENDING and so on)."""
        lines = self.run("squeue", "-h", "-o", "%A|%k", "-t", ",".join(states)).splitlines()
        return dict(line.split("|") for line in lines)

    def wait(self, what: Callable[[], object], told: str) -> None:
        """Poll until `what` is true.

        Raises:
            AssertionError: it does not become true.
        """
        end = time.monotonic() + PATIENCE
        while not what():
            assert time.monotonic() < end, f"{told}\n{self._said}\n{self._logs()}"
            time.sleep(0.1)

    def _logs(self) -> str:
        paths = sorted((self.folder / "log").glob("*.log"))
        return "".join(f"=== {path.name}\n{path.read_text(errors='replace')[-1500:]}\n" for path in paths)

    # --- start ---

    def start(self) -> None:
        """Start all daemons, one after the other, each when the one before answers."""
        for name in ("etc", "run", "log", "munge", "dev", "spool/ctld", "db"):
            (self.folder / name).mkdir(parents=True)
        self.folder.chmod(0o755)  # munge refuses a folder that others may write to
        (self.folder / "munge").chmod(0o700)
        self._configure()
        self._start_munge()
        self._start_accounting()
        self.run("slurmctld")
        self.wait(lambda: "UP" in self.run("scontrol", "ping", check=False), "slurmctld does not answer")
        for node in NODES:
            self.start_node(node)

    def start_node(self, node: str) -> None:
        """Start a node's slurmd, and wait until Slurm would give it jobs."""
        (self.folder / "spool" / node).mkdir(exist_ok=True)
        disguise = f"hostname {node}"
        for path, text in (
            (Path("/proc/sys/kernel/random/boot_id"), f"{uuid.uuid4()}\n"),
            (Path("/etc/hosts"), f"{Path('/etc/hosts').read_text()}\n127.0.0.1 {' '.join(NODES)}\n"),
        ):
            own = self.folder / "etc" / f"{node}.{path.name}"
            own.write_text(text, encoding="utf-8")
            disguise += f" && mount --bind {own} {path}"
        apart = ("unshare", "--mount", "--uts", "sh", "-c")
        if self._done(*apart, disguise).returncode == 0:
            self.run(*apart, f"{disguise} && exec slurmd -N {node}")
        else:  # some containers allow no namespaces
            self.run("slurmd", "-N", node)
        self.wait(lambda: node in self.nodes("idle,mix,alloc"), f"node {node} does not come up")

    def nodes(self, states: str) -> set[str]:
        """The nodes in these states, as `sinfo --states` names them."""
        return set(self.run("sinfo", "-h", "-N", "-o", "%N", "-t", states).split())

    def _configure(self) -> None:
        self._write("slurm.conf", SLURM_CONF)
        self._write("my.cnf", MY_CNF)
        self._write("slurmdbd.conf", SLURMDBD_CONF).chmod(0o600)
        # slurmd loads a plugin of control groups whatever the others are; this one waits to be asked
        self._write("cgroup.conf", "CgroupPlugin=cgroup/v1\n")
        lines = []
        for node in NODES:
            for number in range(GPUS):
                path = self.folder / "dev" / f"{node}.nvidia{number}"
                # with a plain file, jobs would not get CUDA_VISIBLE_DEVICES
                os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            lines.append(
                f"NodeName={node} Name=gpu Type=a100 File={path.parent}/{node}.nvidia[0-{GPUS - 1}]\n"
            )
        self._write("gres.conf", "".join(lines))
        ETC.mkdir(exist_ok=True)
        for name in FILES:
            (ETC / name).symlink_to(self.folder / "etc" / name)

    def _write(self, name: str, text: str) -> Path:
        path = self.folder / "etc" / name
        path.write_text(text.format(**self._values), encoding="utf-8")
        return path

    def _start_munge(self) -> None:
        key = self.folder / "munge/key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.run(
            "munged", f"--key-file={key}", f"--socket={self.folder}/run/munge.sock",
            f"--pid-file={self.folder}/run/munged.pid", f"--log-file={self.folder}/munge/munged.log",
            f"--seed-file={self.folder}/munge/seed", "--num-threads=2",
        )  # fmt: skip

    def _start_accounting(self) -> None:
        options = f"--defaults-file={self.folder}/etc/my.cnf"
        self.run(
            "mariadb-install-db", options, "--user=root", "--auth-root-authentication-method=socket",
            "--skip-test-db",
        )  # fmt: skip
        subprocess.Popen(
            ["mariadbd", options],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        root = ("--no-defaults", f"--socket={self.folder}/run/mysqld.sock", "-u", "root")
        alive = ("mariadb-admin", *root, "ping")
        self.wait(lambda: "alive" in self.run(*alive, check=False), "MariaDB does not answer")
        self.run("mariadb", *root, "-e", DATABASE)
        self.run("slurmdbd")
        asked = ("sacctmgr", "-n", "show", "cluster", "format=cluster")
        self.wait(lambda: self._done(*asked).returncode == 0, "slurmdbd does not answer")
        if "seedbed" not in self.run(*asked):
            self.run("sacctmgr", "-i", "add", "cluster", "seedbed")
        self.run("sacctmgr", "-i", "add", "account", "lab", "cluster=seedbed")
        self.run("sacctmgr", "-i", "add", "user", "root", "account=lab", "cluster=seedbed", check=False)

    # --- stop ---

    def stop(self) -> None:
        """Cancel all jobs, stop the daemons by their process ids and remove the folder."""
        with contextlib.suppress(AssertionError, OSError, subprocess.SubprocessError):
            self.cancel_all()
        daemons = [f"slurmd.{node}" for node in NODES]
        for name in (*daemons, "slurmctld", "slurmdbd", "mariadbd", "munged"):
            stop_daemon(self.folder / "run" / f"{name}.pid", name.partition(".")[0])
        for name in FILES:
            with contextlib.suppress(OSError):
                if os.readlink(ETC / name) == str(self.folder / "etc" / name):
                    (ETC / name).unlink()
        shutil.rmtree(self.folder, ignore_errors=True)

    def cancel_all(self) -> None:
        """Cancel all jobs and wait until they have ended."""
        # at once: a job that stops at SIGTERM by itself may be one that somebody holds
        self.run("scancel", "--full", "--signal=KILL", "--user=root", check=False)
        self.run("scancel", "--user=root", check=False)
        self.wait(lambda: not self.run("squeue", "-h", "-o", "%A"), "jobs do not end")

    def kill_node(self, node: str) -> None:
        """As when a node loses its power: its slurmd and all processes of its jobs are gone at once."""
        path = self.folder / "run" / f"slurmd.{node}.pid"
        slurmd = int(path.read_text())
        namespace = _uts(slurmd)
        if namespace == _uts(os.getpid()):
            family = [slurmd, *_job_processes(node)]
        else:
            family = [process for process in _processes() if _uts(process) == namespace]
        # they are stopped first, so that none sees another one's end
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, number)
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def running() -> Iterator[Cluster]:
    """A cluster that runs; waits for another test session's to end, and removes what a killed session left.

    Raises:
        RuntimeError: this host belongs to a cluster.
    """
    with open(LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _clear()
        cluster = Cluster(Path(tempfile.mkdtemp(prefix="seedbed-slurm-")))
        before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
            signal.signal(signal.SIGTERM, before)


def _clear() -> None:
    for name in FILES:
        path = ETC / name
        if path.is_symlink() and path.readlink().parent.parent.name.startswith("seedbed-slurm-"):
            Cluster(path.readlink().parent.parent).stop()
            path.unlink(missing_ok=True)
        elif os.path.lexists(path):
            raise RuntimeError(
                f"{path} exists: this host belongs to a cluster, or one was set up here; the tests need "
                "a host of their own, such as a container"
            )


def stop_daemon(path: Path, name: str) -> None:
    """End the daemon of a pid file, by force where it does not leave."""
    try:
        process = int(path.read_text())
    except (OSError, ValueError):
        return
    for number, patience in ((signal.SIGTERM, 20), (signal.SIGKILL, 5)):
        if _name(process) != name:
            break
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)
        end = time.monotonic() + patience
        while _name(process) == name and time.monotonic() < end:
            time.sleep(0.05)


def _free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _stat(process: int) -> tuple[str, str, int] | None:
    """(name, state, parent) of a process."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
    return name, rest[0], int(rest[1])


def _name(process: int) -> str:
    """Name of a process that lives; a zombie, whose parent does not ask for it, does not."""
    found = _stat(process)
    return found[0] if found and found[1] != "Z" else ""


def _uts(process: int) -> str:
    """The namespace that holds a process's host name."""
    try:
        return os.readlink(f"/proc/{process}/ns/uts")
    except OSError:
        return ""


def _job_processes(node: str) -> list[int]:
    """The processes of a node's jobs, by their environment, and the daemons above them."""
    found = []
    for process in _processes():
        with contextlib.suppress(OSError):
            if f"SLURMD_NODENAME={node}".encode() in Path(f"/proc/{process}/environ").read_bytes().split(
                b"\0"
            ):
                found.append(process)
    above = {seen[2] for process in found if (seen := _stat(process))}
    return [process for process in above if _name(process) == "slurmstepd"] + found
