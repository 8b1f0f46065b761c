"""NVIDIA's multi-process service (MPS) for runs that share a GPU; it lasts as long as someone uses it.

Without MPS the processes on a GPU take turns; with it they compute at the same time. A control daemon serves
all GPUs and all workflows of a user on this host. Its folder, beside the slots of `gpu_slots`, holds

    guard    a lock, held while the daemon is started
    users    a lock, shared by the workflows and their jobs
    keeper   a lock, held by the process that waits for `users` to be free, and then stops the daemon
    pipe     the daemon's sockets
    log      what the last daemon has written, and why it did not start

The kernel frees the locks of ended processes. So the daemon is stopped however a workflow ends, and after a
`kill -9` of the workflow when its last job has ended.

An MPS of the user's own is used, and left alone: one that CUDA_MPS_PIPE_DIRECTORY names, or one in NVIDIA's
default folder.
"""

import contextlib
import ctypes
import math
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core import locks
from seedbed.core.errors import SeedbedError
from seedbed.core.locks import Lock
from seedbed.core.printable import one_line
from seedbed.running import gpu_memory, gpu_slots, gpus

CONTROL = "nvidia-cuda-mps-control"
PIPE, LOG = gpu_memory.MPS_PIPE, "CUDA_MPS_LOG_DIRECTORY"
DEFAULT_PIPE = Path("/tmp/nvidia-mps")
LIBRARY = Path(__file__).parents[2]
MOST_CLIENTS = 48  # of a GPU, since Volta; drivers of CUDA 13 allow 60
LONGEST_SOCKET = 107  # bytes of the path of a Unix socket
PROCESS = "nvidia-cuda-mps"  # the kernel keeps 15 letters of the name of the daemon, and of its server
PATIENCE = 30  # seconds for an answer of the daemon; on a host of eight GPUs it starts in a few
POLL = 0.05  # seconds between two looks at a daemon that starts or ends

_shared: list[Lock] = []  # this process's share of `users`, until it ends


class Unavailable(Exception):
    """MPS cannot be used; the text is the reason, without a full stop."""


# --- in the workflow ----------------------------------------------------------------------------------------


def begin(workflow: Any, config: Mapping[str, Any], at_once: int) -> str | None:
    """Let the jobs of a workflow use MPS if they share GPUs of this host; call it in `onstart`.

    Jobs find it by the environment of this process.

    Args:
        workflow: Snakemake's, whose jobs are known.
        config: the experiment's config, of which `gpus` and `device` are used.
        at_once: number of processes of a job.

    Returns:
        With `gpus.mps: auto`, a sentence if jobs share GPUs without MPS.

    Raises:
        SeedbedError: with `gpus.mps: true`, MPS cannot be used; or a named device does not exist.
    """
    wanted = config["gpus"]["mps"]
    jobs = gpu_slots.limited(workflow, gpu_slots.number_of_jobs(workflow))
    if wanted is False or config["device"] == "cpu" or jobs * at_once < 2:
        return None
    devices = gpus.devices(config)
    sharing = math.ceil(jobs / len(devices)) * at_once  # jobs are spread before they are stacked
    if sharing < 2:
        return None
    try:
        if sharing > MOST_CLIENTS:
            raise Unavailable(f"{sharing} processes may share a GPU, and MPS serves {MOST_CLIENTS}")
        os.environ.update(start(devices))
    except Unavailable as error:
        if wanted is True:
            raise _refused(error) from error
        return f"Runs share a GPU without NVIDIA's MPS, and take longer: {error} (gpus.mps)."
    return None


def _refused(error: Unavailable) -> SeedbedError:
    return SeedbedError(
        "NVIDIA's MPS cannot be used",
        where="config, gpus.mps: true",
        found=str(error),
        hint="remove the cause, or set gpus: {mps: auto}: without MPS, runs that share a GPU take longer",
    )


def start(devices: Sequence[str]) -> dict[str, str]:
    """Start MPS, or share the one that is there, until this process ends.

    Args:
        devices: GPUs, in the form of CUDA_VISIBLE_DEVICES.

    Returns:
        Variables for its clients; none if the user has set them.

    Raises:
        Unavailable: it does not start, or a process cannot use it.
    """
    if os.environ.get(PIPE):
        return {}
    if _answers(DEFAULT_PIPE):
        return {PIPE: str(DEFAULT_PIPE)}
    if shutil.which(CONTROL) is None:
        raise Unavailable(f"{CONTROL} is not installed here")
    if any(device.startswith("MIG-") for device in devices):
        raise Unavailable("it serves no instances of a divided GPU (MIG) together")
    try:
        return _start(_folder(), devices)
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(one_line(error)) from error
    except SeedbedError as error:
        raise Unavailable(one_line(f"{error.what} ({error.found})")) from error


def _start(folder: Path, devices: Sequence[str]) -> dict[str, str]:
    guard = locks.wait(folder / "guard", 4 * PATIENCE, "starts MPS")
    if guard is None:
        raise Unavailable(f"another workflow does not finish to start it: {locks.note(folder / 'guard')}")
    users = locks.share(folder / gpu_slots.MPS_USERS)
    try:
        _run_keeper(folder)
        if not _answers(folder / "pipe"):
            _clean(folder, "pipe", "log")
            _run_daemon(folder)
        _try_client(folder, devices)
    except BaseException:
        users.release()  # the keeper stops the daemon
        raise
    finally:
        guard.release()
    _shared.append(users)
    return _variables(folder) | {gpu_slots.MPS: str(folder)}


def _folder() -> Path:
    """The user's folder of MPS, which others cannot enter.

    Raises:
        Unavailable: it is another user's, or its path is too long.
        SeedbedError: the folder of the slots cannot be used.
    """
    place = gpu_slots.folder() / f"mps-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        os.mkdir(place, 0o700)
    there = os.lstat(place)
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.geteuid() or stat.S_IMODE(there.st_mode) & 0o77:
        raise Unavailable(f"{place} is not a folder of this user alone")
    if len(os.fsencode(place / "pipe/control_privileged")) > LONGEST_SOCKET:
        raise Unavailable(f"the path {place} is too long for a socket")
    return place


def _variables(folder: Path) -> dict[str, str]:
    return {PIPE: str(folder / "pipe"), LOG: str(folder / "log")}


# --- the daemon ---------------------------------------------------------------------------------------------


def _run_daemon(folder: Path) -> None:
    # with CUDA_VISIBLE_DEVICES the daemon would number the GPUs anew, and serve those alone
    environment = {name: value for name, value in os.environ.items() if name != gpus.VISIBLE}
    # into a file: the daemon, which outlives its starter, would keep a pipe open
    told = folder / "log" / "start.log"
    with told.open("wb") as stream:
        code = subprocess.run(
            [CONTROL, "-d"],
            env=environment | _variables(folder),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in the terminal is for the workflow
            timeout=PATIENCE,
        ).returncode
    until = time.monotonic() + (PATIENCE if code == 0 else 0)
    while not _answers(folder / "pipe"):
        if time.monotonic() > until:
            last = told.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]
            raise Unavailable(f"its daemon does not start: {one_line(last) or f'it ended with code {code}'}")
        time.sleep(POLL)


def _ask(pipe: Path, command: str) -> str | None:
    """The answer of the daemon of a folder to a command; None if there is none."""
    try:
        done = subprocess.run(
            [CONTROL],
            input=f"{command}\n",
            env={**os.environ, PIPE: str(pipe)},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _answers(pipe: Path) -> bool:
    return pipe.is_dir() and _ask(pipe, "get_server_list") is not None


def _try_client(folder: Path, devices: Sequence[str]) -> None:
    """Let a process use the devices through MPS, which also starts the server that the first run would start.

    Raises:
        Unavailable: it cannot.
    """
    if all(map(gpus.is_fake, devices)):
        return
    done = subprocess.run(
        _command("connect"),
        env=_environment() | _variables(folder) | {gpus.VISIBLE: ",".join(devices)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )
    if done.returncode != 0:
        last = (done.stdout + done.stderr).strip().rpartition("\n")[2]
        raise Unavailable(f"a process cannot use the GPUs through it: {one_line(last)}")
    # CUDA goes on without MPS where it finds no daemon
    if not (_ask(folder / "pipe", "get_server_list") or "").strip():
        raise Unavailable("CUDA does not use it on these GPUs")


def _clean(folder: Path, *names: str) -> None:
    """End what a dead daemon has left, such as its server, and make these of its folders anew."""
    for process in _processes(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder / name)
        os.mkdir(folder / name, 0o700)


def _processes(folder: Path) -> Iterator[int]:
    """The daemon of a folder, and its server."""
    mark = f"{PIPE}={folder / 'pipe'}".encode()
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            named = (place / "comm").read_text(encoding="utf-8", errors="replace").strip() == PROCESS
            if named and mark in (place / "environ").read_bytes().split(b"\0"):
                yield int(place.name)


# --- processes of this module -------------------------------------------------------------------------------


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "seedbed.running.mps", *arguments]


def _environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(LIBRARY), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}


def _run_keeper(folder: Path) -> None:
    with (folder / "keeper.log").open("wb") as stream:
        subprocess.Popen(
            _command("keep", str(folder)),
            env=_environment(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # what ends the workflow must not end it
        )


def keep(folder: Path) -> None:
    """Wait until nobody uses the daemon of a folder, and stop it; do nothing if another process does so."""
    lock = locks.take(folder / "keeper", "stops MPS after its last user")
    if lock is None:
        return
    users = locks.share(folder / gpu_slots.MPS_USERS)
    users.wait_for_others()
    _ask(folder / "pipe", "quit")
    until = time.monotonic() + PATIENCE
    while any(_processes(folder)) and time.monotonic() < until:
        time.sleep(POLL)
    _clean(folder, "pipe")
    lock.release()  # before `users`: the next workflow, which waits for these, needs a keeper
    users.release()


def connect() -> None:
    """Make a context on each visible GPU, as PyTorch does; end with CUDA's message if one cannot be made."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        sys.exit(f"there is no driver: {error}")
    number, device, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
    _must(driver, driver.cuInit(0))
    _must(driver, driver.cuDeviceGetCount(ctypes.byref(number)))
    for index in range(number.value):
        _must(driver, driver.cuDeviceGet(ctypes.byref(device), index))
        _must(driver, driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))


def _must(driver: Any, code: int) -> None:
    if code:
        text = ctypes.c_char_p()
        driver.cuGetErrorString(code, ctypes.byref(text))
        sys.exit(f"{(text.value or b'an unknown error').decode()} (CUDA error {code})")


if __name__ == "__main__":
    if sys.argv[1] == "keep":
        keep(Path(sys.argv[2]))
    else:
        connect()
