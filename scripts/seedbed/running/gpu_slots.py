"""Assign a GPU to each run: Snakemake counts local GPU jobs, but assigns no devices.

A slot is the right to run on a device: a lock (`core.locks`) on a file DEVICE.KofN in a folder that all users
of the host share. N is the number of jobs that its holder allows on the device, K counts from 0. Another
lock, `guard`, protects the search for a free slot. With `gpus.runs_per_gpu: auto` N is what fits
(`gpu_memory`), and the file is DEVICE.KofNinG, where G is the GiB that the first job found free.

Workflows that allow different numbers of jobs may share a device. The strictest number counts: a job joins a
device only if the resulting number of jobs is allowed by it and by each job already there. So a job that
wants a device alone gets it alone, but may wait long while others keep the device busy.

A forked child, which shares the holder's device memory, keeps the slot taken until it has ended, too. A
program that a holder starts does so only with `descriptors()`, which each program that works on the device
must get. So no slot is free while a process trains on it, and no stray helper keeps one.
"""

import contextlib
import logging
import os
import random
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core import interruption, locks, waiting
from seedbed.core.errors import SeedbedError
from seedbed.core.files import without_umask
from seedbed.core.locks import Lock
from seedbed.core.memory import free_bytes
from seedbed.core.printable import Lines, one_line
from seedbed.running import gpu_memory
from seedbed.running.gpu_memory import MPS_PIPE, Place
from seedbed.running.gpus import VISIBLE, devices, search

if TYPE_CHECKING:
    from seedbed.config.plan import Plan
    from seedbed.running.jobs import Job

__all__ = [
    "FOLDER", "RESOURCE", "check", "descriptors", "devices", "folder", "held", "hold", "limited",
    "number_of_jobs", "register", "sharing",
]  # fmt: skip

RESOURCE = "gpu_slot"  # of the rules that train, set by profiles/local-gpu
# Not below TMPDIR, which Snakemake and schedulers set for each job. On a disk of this host, since a lock on
# a network file system may outlive its holder.
FOLDER = "/tmp/seedbed-gpu-slots"
FOLDER_VARIABLE = "SEEDBED_SLOTS"
HELD = "SEEDBED_GPU"  # the device whose slot this process, or its parent, holds
PROCESSES = "SEEDBED_PROCESSES_ON_GPU"  # how many were on it when the slot was taken, with the holder's
MPS = "SEEDBED_MPS"  # the folder of the MPS that this workflow uses (`mps`)
MPS_USERS = "users"  # the lock there that keeps it
AUTO = "auto"  # as many runs as fit (`runs_per_gpu`)
# seconds between two searches for a free slot: a few system calls per slot and, with AUTO, a question to the
# driver for each device that is not full
POLL = 1.0
log = logging.getLogger(__name__)

# what a job allows on a device, from its name and from what the jobs allow that are there
Allowed = Callable[[str, Sequence[Place]], Place]

_held: list[Lock] = []


# --- in a job -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def hold(
    config: Mapping[str, Any], run: str = "", jobs: Sequence["Job"] = (), at_once: int = 1
) -> Iterator[str]:
    """Wait for a slot and hold it during the block, with only its device visible to this process.

    Enter before CUDA is initialized, best before torch is imported. The device with the fewest jobs is taken.
    A process that a holder started uses the holder's slot. If this process itself used CUDA, the slot is free
    once it has ended, since its memory is, too.

    Args:
        config: the experiment's config, of which `gpus` is used.
        run: the run, for messages of waiting processes.
        jobs: the runs, for `runs_per_gpu: auto`.
        at_once: processes that use the slot.

    Yields:
        The device, in the form of CUDA_VISIBLE_DEVICES.

    Raises:
        SeedbedError: there is no GPU, a named device does not exist, or the folder cannot be used.
        Interrupted: a signal ended the wait.
    """
    if (device := held()) is not None:
        yield device
        return
    _refuse_late()
    found = search(config)
    if not found.devices:
        raise _no_gpu(found.looked_at)
    with waiting.counted():
        slot = _wait(found.devices, _allowed(config, jobs, at_once), run)
    taken = [slot.lock, *_share_of_mps()]
    _held.extend(taken)
    try:
        processes = str(slot.others + at_once)
        with _environment({VISIBLE: slot.device, HELD: slot.device, PROCESSES: processes}):
            yield slot.device
    finally:
        log.info("GPU slot released: %s", slot)
        if not _cuda_is_used():
            for lock in taken:
                _held.remove(lock)
                lock.release()


def _allowed(config: Mapping[str, Any], jobs: Sequence["Job"], at_once: int) -> Allowed:
    given = config.get("gpus", {}).get("runs_per_gpu", 1)
    if given != AUTO:
        return lambda device, there: Place(given)
    need = gpu_memory.of_job(jobs, at_once)
    return lambda device, there: gpu_memory.place(device, need, there, at_once)


def held() -> str | None:
    """The device whose slot this process, or its parent, holds."""
    return os.environ.get(HELD) or None


def sharing() -> dict[str, Any]:
    """How many processes were on the GPU when its slot was taken, and whether MPS serves them; for run.json.

    The maximum over an experiment's runs is the number of processes that shared a GPU. Empty without a slot.
    """
    if not held():
        return {}
    return {"processes_on_gpu": int(os.environ.get(PROCESSES, 1)), "mps": bool(os.environ.get(MPS_PIPE))}


def descriptors() -> list[int]:
    """Open files for a program that shares this process's device (`subprocess`'s `pass_fds`).

    The slot then stays taken until that program has ended, even if this process is killed.
    """
    return [lock.descriptor for lock in _held if lock.descriptor is not None]


def _share_of_mps() -> list[Lock]:
    """The lock that keeps the workflow's MPS for a job that outlives the workflow; none without MPS."""
    if place := os.environ.get(MPS):
        with contextlib.suppress(OSError):  # the workflow, as long as it lives, keeps MPS, too
            return [locks.share(Path(place) / MPS_USERS, shared_with_forks=True)]
    return []


def _cuda_is_used() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized()


def _refuse_late() -> None:
    if _cuda_is_used():
        raise RuntimeError("CUDA is initialized: it is too late to choose this process's GPU")


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# --- in the workflow ----------------------------------------------------------------------------------------


def register(workflow: Any, plan: "Plan") -> None:
    """Limit Snakemake's local jobs to the number of slots; call it while the Snakefile is read.

    This applies to the main process if rules request slots, the user has given no number
    (`--resources gpu_slot=N`), and jobs do not go to a cluster (`--jobs`), whose nodes have their own slots.
    The executor is not known yet: see `check`. With `runs_per_gpu: auto` there are no more slots than jobs
    for which this host has memory, but at least one for each GPU.

    Raises:
        SeedbedError: a named device does not exist.
    """
    if not (workflow.is_main_process and _asked(workflow)) or RESOURCE in workflow.global_resources:
        return
    if workflow.resource_settings.nodes is None and (found := devices(plan.config)):
        given = plan.config["gpus"]["runs_per_gpu"]
        if given == AUTO:
            need, at_once = gpu_memory.of_plan(plan), plan.batching.at_once
            fitting = sum(gpu_memory.most(device, need, at_once) for device in found)
            on_host = free_bytes() // (plan.training_memory * gpu_memory.MIB)
            slots = min(fitting, max(len(found), on_host))
        else:
            slots = len(found) * given
        workflow.register_resource(RESOURCE, slots)


def check(workflow: Any, config: Mapping[str, Any]) -> None:
    """Fail if a local job requests a slot and there is no GPU; call it in `onstart`.

    Raises:
        SeedbedError: there is no GPU, or a named device does not exist.
    """
    if number_of_jobs(workflow) and not (found := search(config)).devices:
        raise _no_gpu(found.looked_at)


def number_of_jobs(workflow: Any) -> int:
    """The number of jobs that request a slot of this host, none in a dry run; call it in `onstart`."""
    here = workflow.is_main_process and workflow.local_exec and not (workflow.dryrun or workflow.touch)
    if not (here and _asked(workflow)):
        return 0
    return sum(bool(job.resources.get(RESOURCE, 0)) for job in workflow.dag.needrun_jobs())


def limited(workflow: Any, jobs: int) -> int:
    """As many of these jobs as there are slots, by `register` or the user; all if nobody has said."""
    given = workflow.global_resources
    return min(jobs, given[RESOURCE].value) if RESOURCE in given else jobs


def _asked(workflow: Any) -> bool:
    """Whether the profile or the command line sets the resource for any rule."""
    settings = workflow.resource_settings
    wanted = [*(settings.overwrite_resources or {}).values(), settings.default_resources or {}]
    return any(RESOURCE in resources for resources in wanted)


def _no_gpu(looked_at: Sequence[str]) -> SeedbedError:
    return SeedbedError(
        "jobs request a GPU of this host (profiles/local-gpu), but there is none",
        where=Lines("searched, in this order:" + "".join(f"\n    {one_line(line)}" for line in looked_at)),
        hint=Lines(
            "name the GPUs (gpus: {devices: [0, 1]} in the config, or CUDA_VISIBLE_DEVICES=0,1), or make\n"
            "         nvidia-smi list them, or omit the profile: runs then use a GPU if PyTorch finds\n"
            "         one, else the CPU"
        ),
    )


# --- slots --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Slot:
    device: str
    number: int
    limit: int
    others: int  # jobs that were there already
    lock: Lock

    def __str__(self) -> str:
        return f"{self.device}, {self.number + 1} of {self.limit}"


def _wait(wanted: Sequence[str], allowed: Allowed, run: str) -> _Slot:
    place, since, is_told = folder(), time.monotonic(), False
    while True:
        interruption.leave_if_requested()
        try:
            slot, runs = _try(place, wanted, allowed, run)
        except OSError as error:
            raise _unusable(Path(error.filename or place), error) from error
        if slot is not None:
            waited = time.monotonic() - since
            log.info("GPU slot taken: %s%s", slot, f", after {waited:.0f} s" if waited >= 1 else "")
            return slot
        if runs and not is_told:
            is_told = True
            holders = [_describe(device, path) for device, paths in runs.items() for path in paths]
            log.info("all GPU slots are taken (%s); waiting. Held by:\n%s", place, "\n".join(holders))
        # not in step with other waiting processes; briefly if another process is just taking a slot
        time.sleep((POLL if runs else POLL / 10) * random.uniform(0.5, 1))


def _try(
    place: Path, wanted: Sequence[str], allowed: Allowed, run: str
) -> tuple[_Slot | None, dict[str, dict[Path, Place]]]:
    """Take a slot on the device with the fewest jobs, the first of equals.

    Returns: The slot, or None if none is free; and the held slots of each device (see `_runs_on`), empty if
        another process is just taking a slot.

    Raises:
        OSError: a file cannot be opened or locked.
    """
    guard = locks.take(place / "guard")
    if guard is None:
        return None, {}
    try:
        runs = {device: _runs_on(place, device) for device in wanted}
        free = {}
        for device, there in runs.items():
            # `auto` asks the driver, which takes longer than all else: not for a device that is full
            if all(len(there) < each.limit for each in there.values()):
                own = allowed(device, list(there.values()))
                if len(there) < own.limit:
                    free[device] = own
        if not free:
            return None, runs
        device = min(free, key=lambda device: len(runs[device]))
        own = free[device]
        room = "" if own.room is None else f"in{own.room}"
        for number in range(own.limit):
            path = place / f"{_file_name(device)}.{number}of{own.limit}{room}"
            lock = locks.take(path, run or "a run", shared_with_forks=True)
            if lock is not None:
                return _Slot(device, number, own.limit, len(runs[device]), lock), runs
        return None, {}  # another process takes slots without the guard: search again
    finally:
        guard.release()


def _runs_on(place: Path, device: str) -> dict[Path, Place]:
    """The held slots of a device, with what their holders allow; call under the guard."""
    found = {}
    for path in sorted(place.glob(f"{_file_name(device)}.*of*")):
        numbers = re.fullmatch(r"\d+of(\d+)(?:in(\d+))?", path.name.rpartition(".")[2])
        if numbers and locks.holder(path) is not None:
            found[path] = Place(int(numbers[1]), numbers[2] and int(numbers[2]))
    return found


def _file_name(device: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]", "_", device)


def _describe(device: str, path: Path) -> str:
    """The holder of a slot in words, as far as the file names it."""
    return f"  {device}: {locks.note(path) or f'unknown, see {path}'}"


def folder() -> Path:
    """The folder of the slots, created if missing; like /tmp, all users of the host may write to it.

    Raises:
        SeedbedError: it cannot be created, or is not a folder.
    """
    given = os.environ.get(FOLDER_VARIABLE)
    place = Path(given).resolve() if given else Path(FOLDER)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with without_umask(), contextlib.suppress(FileExistsError):
            os.mkdir(place, 0o1777)
        if not stat.S_ISDIR(os.lstat(place).st_mode):
            raise NotADirectoryError(f"{place} is not a folder")
    except OSError as error:
        raise _unusable(place, error) from error
    return place


def _unusable(path: Path, error: OSError) -> SeedbedError:
    return SeedbedError(
        "the GPU slots of this host cannot be shared",
        where=str(path),
        found=str(error),
        hint=f"remove it, or give all users another folder on a disk of this host in {FOLDER_VARIABLE}",
    )
